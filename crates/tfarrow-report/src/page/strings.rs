//! The body of the card of a feature with byte strings.

use std::collections::HashMap;

use maud::{Markup, html};
use tfarrow_stats::{ByteStringStatistics, TopValue};

use super::{
    card::{Card, FeatureKind, Figure, figures},
    chart,
    excerpt::excerpt,
};
use crate::text::{count, frequent, image_sizes, percent, range, short};

/// Number of frequent values shown, and of those that are shown at once.
const VALUES: usize = 20;
const FIRST_VALUES: usize = 8;
/// Characters of each value.
const VALUE_CHARS: usize = 80;

/// The figures and the most frequent values, and the lengths of lists as details.
pub(super) fn body(card: &Card<'_>) -> Markup {
    let values = FrequentValue::of(card);
    let details = card.common_details();
    html! {
        div class="body" {
            (figures(&string_figures(card)))
            div class="plot" {
                @match values.is_empty() {
                    true => (no_values(card)),
                    false => (table("Most frequent values", values.get(..FIRST_VALUES).unwrap_or(&values))),
                }
                (sample_note(card))
            }
        }
        @let rest = values.get(FIRST_VALUES..).unwrap_or_default();
        @if !rest.is_empty() || !details.0.is_empty() {
            details {
                summary { @if rest.is_empty() { "Tables" } @else { "More values and tables" } }
                div class="details" {
                    @if !rest.is_empty() { (table("Further values", rest)) }
                    (details)
                }
            }
        }
    }
}

fn strings<'a>(side: FeatureKind<'a>) -> Option<&'a ByteStringStatistics> {
    side.kind?.strings.as_ref()
}

fn string_figures(card: &Card<'_>) -> Vec<Figure> {
    let string = |name, of: fn(&ByteStringStatistics) -> Option<String>| {
        card.figure(name, move |side| {
            of(side
                .kind?
                .strings
                .as_ref()
                .filter(|strings| strings.total > 0)?)
        })
    };
    let distinct = |strings: &ByteStringStatistics| {
        let about = if strings.is_distinct_exact {
            ""
        } else {
            "about "
        };
        Some(format!("{about}{}", count(strings.distinct)))
    };
    let formats = |strings: &ByteStringStatistics| {
        let formats = strings
            .formats
            .iter()
            .map(|(name, count)| match *count == strings.total {
                true => (*name).to_owned(),
                false => format!("{name} {}", percent(*count, strings.total)),
            });
        Some(formats.collect::<Vec<_>>().join(", "))
    };
    let mut all = card.common_figures();
    all.extend([
        string("distinct", distinct),
        string("format", formats),
        string("pixels", |strings| image_sizes(strings.images?)),
        string("bytes", |strings| {
            Some(range(strings.min_length, strings.max_length))
        }),
        string("bytes, mean", |strings| {
            (strings.min_length < strings.max_length).then(|| short(strings.mean_length))
        }),
        string("not UTF-8", |strings| {
            let is_mixed = strings.invalid_utf8 > 0 && strings.invalid_utf8 < strings.total;
            is_mixed.then(|| percent(strings.invalid_utf8, strings.total))
        }),
        string("damaged images", |strings| {
            strings
                .images
                .filter(|images| images.damaged > 0)
                .map(|images| count(images.damaged))
        }),
        card.figure("values", |side| side.kind.map(|kind| count(kind.values))),
    ]);
    all
}

/// A frequent value of either data set, with its shares.
struct FrequentValue {
    text: String,
    count: f64,
    now: Option<f64>,
    before: Option<f64>,
}

impl FrequentValue {
    /// The values that occur more than once, in descending order of their counts, then those of the
    /// baseline alone.
    fn of(card: &Card<'_>) -> Vec<Self> {
        let sides = [card.now, card.before].map(|side| side.and_then(strings));
        let top = |side: Option<&ByteStringStatistics>| {
            let repeated = side
                .into_iter()
                .flat_map(|side| &side.top)
                .filter(|top| top.count > 1.0);
            repeated.take(VALUES).cloned().collect::<Vec<TopValue>>()
        };
        let [now, before] = sides.map(top);
        let counts = |top: &[TopValue]| {
            top.iter()
                .map(|top| (top.hash, top.count))
                .collect::<HashMap<u64, f64>>()
        };
        let in_now = counts(&now);
        let in_before = counts(&before);
        let share = |side: Option<&ByteStringStatistics>, count: Option<&f64>| {
            side.map(|side| count.copied().unwrap_or_default() / side.total.max(1) as f64)
        };
        let added = before.iter().filter(|top| !in_now.contains_key(&top.hash));
        let value = |top: &TopValue| Self {
            text: excerpt(&frequent(top), VALUE_CHARS),
            count: in_now.get(&top.hash).copied().unwrap_or_default(),
            now: share(sides[0], in_now.get(&top.hash)),
            before: share(sides[1], in_before.get(&top.hash)),
        };
        now.iter().chain(added).take(VALUES).map(value).collect()
    }
}

/// Values with bars of their shares.
fn table(title: &str, values: &[FrequentValue]) -> Markup {
    let has_before = values.iter().any(|value| value.before.is_some());
    // Bars are shares of the largest bar of the table.
    let shares = values
        .iter()
        .flat_map(|value| [value.now, value.before])
        .flatten();
    let largest = shares.fold(f64::MIN_POSITIVE, f64::max);
    let percentage = |share: Option<f64>| {
        share.map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share))
    };
    html! {
        table class="values" {
            caption { (title) }
            thead {
                tr {
                    th scope="col" { "value" }
                    th scope="col" class="bar" { "share" }
                    th scope="col" class="number" { "count" }
                    th scope="col" class="number" { @if has_before { "now" } @else { "share" } }
                    @if has_before { th scope="col" class="number" { "before" } }
                }
            }
            tbody {
                @for value in values {
                    tr {
                        th scope="row" { (value.text) }
                        td class="bar" { (chart::bar(value.now.map(|share| share / largest), value.before.map(|share| share / largest))) }
                        td class="number" { (count(value.count.round() as u64)) }
                        td class="number" { (percentage(value.now)) }
                        @if has_before { td class="number" { (percentage(value.before)) } }
                    }
                }
            }
        }
    }
}

/// The reason why there are no frequent values, and some values.
fn no_values(card: &Card<'_>) -> Markup {
    let reason = match card.side().and_then(strings) {
        Some(strings) if strings.total == 0 => "No list has a value.",
        Some(strings) if strings.total == 1 => "One value.",
        Some(strings) if strings.distinct == strings.total => "No two values are equal.",
        _ => "No value is frequent.",
    };
    html! {
        p class="note" { (reason) @if !card.samples.is_empty() { " Examples:" } }
        @if !card.samples.is_empty() { ul class="samples" { @for sample in &card.samples { li { (sample) } } } }
    }
}

/// Names the size of the sample that the values are of.
fn sample_note(card: &Card<'_>) -> Markup {
    let sampled = card
        .now
        .and_then(strings)
        .and_then(|strings| strings.sampled);
    html! {
        @if let Some(sampled) = sampled {
            p class="note" { "Counts are extrapolated from a sample of " (count(sampled)) " values." }
        }
    }
}
