//! A row of the page's feature table: one feature and kind, with the statistics of both data sets.

use maud::{Markup, html};
use tfarrow_stats::{
    ByteStringStatistics, Distance, FeatureStatistics, HistogramBucket, KindStatistics, Measure, NumberStatistics,
    TopValue,
};

use super::{
    chart,
    text::{NAME_CHARS, excerpt},
};
use crate::output::{count, frequent, image_sizes, percent, range, short};

/// The columns, and whether each holds numbers.
pub(super) const HEADS: [(&str, bool); 10] = [
    ("feature", false),
    ("values look like", false),
    ("kind", false),
    ("missing", true),
    ("values", true),
    ("min", true),
    ("median", true),
    ("max", true),
    ("mean", true),
    ("distinct", true),
];

/// Number of frequent values in the details, and characters of each.
const TOP_VALUES: usize = 20;
const VALUE_CHARS: usize = 80;

/// A feature of one kind, in the data set, in the baseline, or in both.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) now: Option<FeatureKind<'a>>,
    pub(super) before: Option<FeatureKind<'a>>,
    /// Whether there is a baseline.
    pub(super) has_baseline: bool,
    /// The distances from the baseline; `None` where no feature of the page has one.
    pub(super) distances: Option<&'a [Distance]>,
    /// Whether charts and details are left out.
    pub(super) is_plain: bool,
}

/// A feature, and its statistics of one kind; `None` where the feature has no kind.
#[derive(Clone, Copy)]
pub(super) struct FeatureKind<'a> {
    pub(super) feature: &'a FeatureStatistics,
    pub(super) kind: Option<&'a KindStatistics>,
}

/// A cell: the key to sort by, and the content.
#[derive(Default)]
struct Cell {
    key: String,
    content: Markup,
}

impl Cell {
    /// A cell of a number; empty for NaN.
    fn number(value: f64) -> Self {
        let key = match value {
            _ if value.is_nan() => return Self::default(),
            // As JavaScript's Number() reads it.
            f64::INFINITY => "Infinity".to_owned(),
            f64::NEG_INFINITY => "-Infinity".to_owned(),
            _ => value.to_string(),
        };
        Self { key, content: html! { (short(value)) } }
    }
}

impl Row<'_> {
    /// The row as HTML.
    pub(super) fn html(&self) -> Markup {
        let Some(FeatureKind { feature, kind }) = self.now.or(self.before) else { return Markup::default() };
        let name = if feature.name.is_empty() { "\"\"" } else { &feature.name };
        let name = format!("{}{}", excerpt(name, NAME_CHARS), if feature.is_list { "[]" } else { "" });
        let mark = match (self.now, self.before) {
            (Some(_), None) if self.has_baseline => Some("new"),
            (None, Some(_)) => Some("gone"),
            _ => None,
        };
        let kind = kind.map_or("none", |kind| kind.kind);
        html! {
            tr {
                th scope="row" data-sort=(name) { (name) @if let Some(mark) = mark { " " small { (mark) } } }
                td data-sort="" { @if !self.is_plain { (self.distribution()) } }
                td data-sort=(kind) { (kind) }
                @for Cell { key, content } in self.numbers() {
                    td class="number" data-sort=(key) { (content) }
                }
            }
        }
    }

    /// The cells of numbers, in the order of [`HEADS`].
    fn numbers(&self) -> impl Iterator<Item = Cell> {
        let number = |of: fn(&NumberStatistics) -> f64| {
            self.cell(move |side| {
                side.kind?.numbers.as_ref().filter(|numbers| numbers.count > 0).map(|n| Cell::number(of(n)))
            })
        };
        let cells = [
            self.cell(|side| Some(missing(side.feature))),
            self.cell(|side| side.kind.map(lengths)),
            number(|numbers| numbers.min),
            number(|numbers| numbers.median),
            number(|numbers| numbers.max),
            number(|numbers| numbers.mean),
            self.cell(|side| side.kind?.strings.as_ref().map(distinct)),
        ];
        let drift = self.distances.map(|distances| drift(distances).map(Cell::number).unwrap_or_default());
        cells.into_iter().chain(drift)
    }

    /// A cell with the value of the data set, and that of the baseline in small print.
    fn cell(&self, of: impl Fn(FeatureKind<'_>) -> Option<Cell>) -> Cell {
        let Cell { key, content } = self.now.and_then(&of).unwrap_or_default();
        let before = self.before.and_then(of).map(|cell| cell.content).filter(|before| !before.0.is_empty());
        Cell { key, content: html! { (content) @if let Some(before) = before { br; small { (before) } } } }
    }

    /// The charts of the values, and the details that they open.
    fn distribution(&self) -> Markup {
        let (now, before) = (self.now.and_then(|side| side.kind), self.before.and_then(|side| side.kind));
        let Some(kind) = now.or(before) else { return Markup::default() };
        let buckets = |kind: &KindStatistics| kind.numbers.as_ref().map(|numbers| numbers.histogram.clone());
        let tops = |kind: &KindStatistics| kind.strings.as_ref().map(|strings| strings.top.clone());
        let charts = if kind.numbers.is_some() {
            chart::histograms(&now.and_then(buckets).unwrap_or_default(), before.and_then(buckets).as_deref())
        } else {
            chart::ranks(&now.and_then(tops).unwrap_or_default(), before.and_then(tops).as_deref())
        };
        let caption = match (&kind.strings, &kind.numbers) {
            (Some(strings), _) => formats(strings),
            (None, Some(numbers)) => special_numbers(numbers),
            (None, None) => String::new(),
        };
        html! {
            details {
                summary { (charts) span { (caption) } }
                @if let Some(now) = now { (details(now)) }
                @if let Some(before) = before { h3 { "before" } (details(before)) }
                (distances(self.distances.unwrap_or_default()))
            }
        }
    }
}

/// The distance of the distributions, by the one measure that both numbers and strings have. Other measures are not
/// comparable with it: a normalized absolute difference grows with the size of the data set.
fn drift(distances: &[Distance]) -> Option<f64> {
    let divergence = distances.iter().find(|distance| distance.measure == Measure::JensenShannonDivergence);
    divergence.map(|distance| distance.value)
}

/// All distances, each with the name of its measure.
fn distances(distances: &[Distance]) -> Markup {
    let name = |measure| match measure {
        Measure::LInfty => "L-infinity distance of shares",
        Measure::JensenShannonDivergence => "Jensen-Shannon divergence",
        Measure::NormalizedAbsoluteDifference => "difference of counts, which sizes differ in as well",
    };
    html! {
        @if !distances.is_empty() {
            h3 { "distances" }
            dl {
                @for distance in distances {
                    dt { (name(distance.measure)) }
                    dd { @if distance.is_estimated { "about " } (short(distance.value)) }
                }
            }
        }
    }
}

fn missing(feature: &FeatureStatistics) -> Cell {
    let records = feature.present + feature.missing;
    let absent = feature.absent();
    let share = if absent == 0 { "0".to_owned() } else { percent(absent, records) };
    Cell { key: absent.to_string(), content: html! { (share) } }
}

fn lengths(kind: &KindStatistics) -> Cell {
    let lengths = &kind.lengths;
    let content = html! {
        (range(lengths.min, lengths.max))
        @if lengths.min != lengths.max { br; (short(lengths.mean)) " on average" }
    };
    Cell { key: lengths.mean.to_string(), content }
}

fn distinct(strings: &ByteStringStatistics) -> Cell {
    let about = if strings.is_distinct_exact { "" } else { "about " };
    Cell { key: strings.distinct.to_string(), content: html! { (about) (count(strings.distinct)) } }
}

/// The formats, the image sizes and the lengths of byte strings.
fn formats(strings: &ByteStringStatistics) -> String {
    let formats = strings.formats.iter().map(|(name, count)| format!("{name} {}", percent(*count, strings.total)));
    let formats: Vec<_> = formats.collect();
    let images = strings.images.and_then(image_sizes).map(|sizes| format!(", {sizes} pixels"));
    let bytes = range(strings.min_length, strings.max_length);
    format!("{}{}, {bytes} bytes", formats.join(", "), images.unwrap_or_default())
}

/// The shares of zeros, NaN and infinities.
fn special_numbers(numbers: &NumberStatistics) -> String {
    let special = [
        (numbers.zeros, "zeros"),
        (numbers.nan, "NaN"),
        (numbers.positive_infinities, "infinity"),
        (numbers.negative_infinities, "-infinity"),
    ];
    let all = numbers.count + numbers.nan;
    let found = special.iter().filter(|(count, _)| *count > 0);
    found.map(|(count, name)| format!("{} {name}", percent(*count, all))).collect::<Vec<_>>().join(", ")
}

/// The details of one data set.
fn details(kind: &KindStatistics) -> Markup {
    let KindStatistics { lists, empty, values, lengths, .. } = kind;
    html! {
        dl {
            dt { "lists, empty ones, values" }
            dd { (count(*lists)) ", " (count(*empty)) ", " (count(*values)) }
            @if lengths.min < lengths.max {
                dt { "lengths of lists" } dd { (chart::histograms(&equal_buckets(&lengths.deciles), None)) }
                dt { "deciles of lengths" } dd { (deciles(&lengths.deciles)) }
            }
            @if let Some(numbers) = &kind.numbers { (number_details(numbers)) }
            @if let Some(strings) = &kind.strings { (string_details(strings)) }
        }
    }
}

fn number_details(numbers: &NumberStatistics) -> Markup {
    html! {
        dt { "standard deviation" } dd { (Cell::number(numbers.std_dev).content) }
        dt { "deciles" } dd { (deciles(&numbers.deciles)) }
        dt { "histogram" }
        dd { (numbers.histogram.iter().map(chart::bucket_text).collect::<Vec<_>>().join(" · ")) }
        @if let Some(sampled) = numbers.sampled {
            dt { "quantiles and histogram are of" } dd { "a sample of " (count(sampled)) " values" }
        }
    }
}

fn string_details(strings: &ByteStringStatistics) -> Markup {
    let damaged = strings.images.map_or(0, |images| images.damaged);
    let top: Vec<&TopValue> = strings.top.iter().take(TOP_VALUES).collect();
    html! {
        dt { "bytes on average" } dd { (Cell::number(strings.mean_length).content) }
        @if damaged > 0 { dt { "images with corrupt headers" } dd { (count(damaged)) } }
        @if strings.invalid_utf8 > 0 { dt { "not UTF-8" } dd { (count(strings.invalid_utf8)) } }
        @if !top.is_empty() {
            dt {
                "most frequent"
                @if let Some(sampled) = strings.sampled { ", by a sample of " (count(sampled)) }
            }
            dd {
                ol {
                    @for top in top {
                        li { (excerpt(&frequent(top), VALUE_CHARS)) " " small { (count(top.count.round() as u64)) } }
                    }
                }
            }
        }
    }
}

/// Buckets of one value each, between the bounds.
fn equal_buckets(bounds: &[f64]) -> Vec<HistogramBucket> {
    bounds.windows(2).map(|bounds| HistogramBucket { low: bounds[0], high: bounds[1], count: 1.0 }).collect()
}

fn deciles(deciles: &[f64]) -> String {
    deciles.iter().map(|value| short(*value)).collect::<Vec<_>>().join(" · ")
}
