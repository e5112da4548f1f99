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

/// A figure of byte strings, which a side without byte strings does not have.
fn string_figure(
    card: &Card<'_>,
    name: &'static str,
    of: fn(&ByteStringStatistics) -> Option<String>,
) -> Figure {
    card.figure(name, |side| {
        let strings = strings(side)?;
        if strings.total > 0 { of(strings) } else { None }
    })
}

/// The number of distinct values, which may be an estimate.
fn distinct(strings: &ByteStringStatistics) -> String {
    let about = if strings.is_distinct_exact {
        ""
    } else {
        "about "
    };
    format!("{about}{}", count(strings.distinct))
}

/// The formats of the values, with their shares if there are several.
fn formats(strings: &ByteStringStatistics) -> String {
    let mut formats = Vec::with_capacity(strings.formats.len());
    for (name, count) in &strings.formats {
        formats.push(match *count == strings.total {
            true => (*name).to_owned(),
            false => format!("{name} {}", percent(*count, strings.total)),
        });
    }
    formats.join(", ")
}

fn string_figures(card: &Card<'_>) -> Vec<Figure> {
    let mut all = card.common_figures();
    all.extend([
        string_figure(card, "distinct", |strings| Some(distinct(strings))),
        string_figure(card, "format", |strings| Some(formats(strings))),
        string_figure(card, "pixels", |strings| image_sizes(strings.images?)),
        string_figure(card, "bytes", |strings| {
            Some(range(strings.min_length, strings.max_length))
        }),
        string_figure(card, "bytes, mean", |strings| {
            (strings.min_length < strings.max_length).then(|| short(strings.mean_length))
        }),
        string_figure(card, "not UTF-8", |strings| {
            let is_mixed = strings.invalid_utf8 > 0 && strings.invalid_utf8 < strings.total;
            is_mixed.then(|| percent(strings.invalid_utf8, strings.total))
        }),
        string_figure(card, "damaged images", |strings| {
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
        let now = card.now.and_then(strings);
        let before = card.before.and_then(strings);
        let top_now = repeated(now);
        let top_before = repeated(before);
        let in_now = counts(&top_now);
        let in_before = counts(&top_before);
        let added = top_before
            .iter()
            .filter(|top| !in_now.contains_key(&top.hash));
        let mut values = Vec::new();
        for top in top_now.iter().chain(added).take(VALUES) {
            let count = in_now.get(&top.hash);
            values.push(Self {
                text: excerpt(&frequent(top), VALUE_CHARS),
                count: count.copied().unwrap_or_default(),
                now: share(now, count),
                before: share(before, in_before.get(&top.hash)),
            });
        }
        values
    }
}

/// The most frequent values of those that occur more than once.
fn repeated(strings: Option<&ByteStringStatistics>) -> Vec<TopValue> {
    let Some(strings) = strings else {
        return Vec::new();
    };
    let repeated = strings.top.iter().filter(|top| top.count > 1.0);
    repeated.take(VALUES).cloned().collect()
}

/// The counts of values by their hashes.
fn counts(top: &[TopValue]) -> HashMap<u64, f64> {
    top.iter().map(|top| (top.hash, top.count)).collect()
}

/// The share of a value with this count; `None` on a side without byte strings.
fn share(strings: Option<&ByteStringStatistics>, count: Option<&f64>) -> Option<f64> {
    strings.map(|strings| count.copied().unwrap_or_default() / strings.total.max(1) as f64)
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

fn percentage(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share))
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
