//! A row of the page's table: a feature of one kind, beside what it was.

use tfarrow_stats::{
    ByteStringStatistics, Distance, FeatureStatistics, HistogramBucket, KindStatistics, Measure, NumberStatistics,
    TopValue,
};

use super::{
    NAME, chart,
    html::{beginning, text},
};
use crate::output::{count, frequent, image_sizes, percent, range, short};

/// The columns, and whether each is of numbers.
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

/// Values that the details list, and characters of each.
const LISTED: usize = 20;
const CHARACTERS: usize = 80;

/// A feature of one kind, in the data set and in the one as it was. One of the two is there.
pub(super) struct Row<'a> {
    pub(super) now: Option<Seen<'a>>,
    pub(super) before: Option<Seen<'a>>,
    /// Whether there is a data set as it was.
    pub(super) has_before: bool,
    /// The distances of the two; `None` where no feature has one.
    pub(super) distances: Option<&'a [Distance]>,
    /// Without chart and details.
    pub(super) is_plain: bool,
}

/// A feature, and what it has of one kind; `None` where it has none.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) feature: &'a FeatureStatistics,
    pub(super) kind: Option<&'a KindStatistics>,
}

/// A cell: what it is sorted by, and what it shows.
type Cell = (String, String);

/// A number as a cell; none where it is none.
fn number(value: f64) -> Cell {
    match value {
        _ if value.is_nan() => Cell::default(),
        f64::INFINITY => ("Infinity".to_owned(), short(value)),
        f64::NEG_INFINITY => ("-Infinity".to_owned(), short(value)),
        _ => (value.to_string(), short(value)),
    }
}

impl Row<'_> {
    pub(super) fn write(&self, out: &mut String) {
        let Some(Seen { feature, .. }) = self.now.or(self.before) else { return };
        let name = if feature.name.is_empty() { "\"\"" } else { &feature.name };
        let name = format!("{}{}", beginning(name, NAME), if feature.is_list { "[]" } else { "" });
        let mark = match (self.now, self.before) {
            (Some(_), None) if self.has_before => " <small>new</small>",
            (None, Some(_)) => " <small>gone</small>",
            _ => "",
        };
        out.push_str(&format!("<tr><th scope=\"row\" data-sort=\"{name}\">{name}{mark}</th>"));
        let numbers = |of: fn(&NumberStatistics) -> f64| {
            self.cell(move |seen| {
                seen.kind?.numbers.as_ref().filter(|numbers| numbers.count > 0).map(|n| number(of(n)))
            })
        };
        let word = |seen: Seen<'_>| seen.kind.map_or("none", |kind| kind.kind).to_owned();
        let cells = [
            (false, (String::new(), if self.is_plain { String::new() } else { self.distribution() })),
            (false, self.now.or(self.before).map(|seen| (word(seen), word(seen))).unwrap_or_default()),
            (true, self.cell(|seen| Some(missing(seen.feature)))),
            (true, self.cell(|seen| seen.kind.map(lengths))),
            (true, numbers(|numbers| numbers.min)),
            (true, numbers(|numbers| numbers.median)),
            (true, numbers(|numbers| numbers.max)),
            (true, numbers(|numbers| numbers.mean)),
            (true, self.cell(|seen| seen.kind?.strings.as_ref().map(distinct))),
        ];
        let drift = self.distances.map(|distances| (true, drift(distances).map(number).unwrap_or_default()));
        for (is_number, (key, shown)) in cells.into_iter().chain(drift) {
            let class = if is_number { " class=\"number\"" } else { "" };
            out.push_str(&format!("<td{class} data-sort=\"{}\">{shown}</td>", text(&key)));
        }
        out.push_str("</tr>\n");
    }

    /// What it is, and small below it what it was.
    fn cell(&self, of: impl Fn(Seen<'_>) -> Option<Cell>) -> Cell {
        let (key, shown) = self.now.and_then(&of).unwrap_or_default();
        match self.before.and_then(of) {
            Some((_, before)) if !before.is_empty() => (key, format!("{shown}<br><small>{before}</small>")),
            _ => (key, shown),
        }
    }

    /// The charts of the values, and what can be told of them besides.
    fn distribution(&self) -> String {
        let (now, before) = (self.now.and_then(|seen| seen.kind), self.before.and_then(|seen| seen.kind));
        let Some(kind) = now.or(before) else { return String::new() };
        let buckets = |kind: &KindStatistics| kind.numbers.as_ref().map(|numbers| numbers.histogram.clone());
        let tops = |kind: &KindStatistics| kind.strings.as_ref().map(|strings| strings.top.clone());
        let charts = if kind.numbers.is_some() {
            chart::histograms(&now.and_then(buckets).unwrap_or_default(), before.and_then(buckets).as_deref())
        } else {
            chart::ranks(&now.and_then(tops).unwrap_or_default(), before.and_then(tops).as_deref())
        };
        let said = match (&kind.strings, &kind.numbers) {
            (Some(strings), _) => looks(strings),
            (None, Some(numbers)) => odd(numbers),
            (None, None) => String::new(),
        };
        let both = [("", now), ("before", before)].into_iter().filter_map(|(name, kind)| Some((name, kind?)));
        let details: String = both.map(|(name, kind)| details(name, kind)).collect();
        let details = details + &distances(self.distances.unwrap_or_default());
        format!("<details><summary>{charts}<span>{said}</span></summary>{details}</details>")
    }
}

/// How far the distributions are apart, by the one measure that numbers and strings share. Other measures are not
/// comparable with it: a normalized absolute difference grows with the size of a data set alone.
fn drift(distances: &[Distance]) -> Option<f64> {
    let divergence = distances.iter().find(|distance| distance.measure == Measure::JensenShannonDivergence);
    divergence.map(|distance| distance.value)
}

/// All distances, each by the name of its measure.
fn distances(distances: &[Distance]) -> String {
    if distances.is_empty() {
        return String::new();
    }
    let line = |distance: &Distance| {
        let name = match distance.measure {
            Measure::LInfty => "L-infinity distance of shares",
            Measure::JensenShannonDivergence => "Jensen-Shannon divergence",
            Measure::NormalizedAbsoluteDifference => "difference of counts, which sizes differ in as well",
        };
        let about = if distance.is_estimated { "about " } else { "" };
        format!("<dt>{name}</dt><dd>{about}{}</dd>", short(distance.value))
    };
    format!("<h3>distances</h3><dl>{}</dl>", distances.iter().map(line).collect::<String>())
}

fn missing(feature: &FeatureStatistics) -> Cell {
    let records = feature.present + feature.missing;
    let absent = feature.absent();
    (absent.to_string(), if absent == 0 { "0".to_owned() } else { percent(absent, records) })
}

fn lengths(kind: &KindStatistics) -> Cell {
    let lengths = &kind.lengths;
    let mean = match lengths.min == lengths.max {
        true => String::new(),
        false => format!("<br>{} on average", short(lengths.mean)),
    };
    (lengths.mean.to_string(), format!("{}{mean}", range(lengths.min, lengths.max)))
}

fn distinct(strings: &ByteStringStatistics) -> Cell {
    let about = if strings.is_distinct_exact { "" } else { "about " };
    (strings.distinct.to_string(), format!("{about}{}", count(strings.distinct)))
}

fn looks(strings: &ByteStringStatistics) -> String {
    let formats = strings.formats.iter().map(|(name, count)| format!("{name} {}", percent(*count, strings.total)));
    let looks: Vec<_> = formats.collect();
    let images = strings.images.and_then(image_sizes).map(|sizes| format!(", {sizes} pixels"));
    let bytes = range(strings.min_length, strings.max_length);
    format!("{}{}, {bytes} bytes", text(&looks.join(", ")), images.unwrap_or_default())
}

/// What numbers are besides ordinary.
fn odd(numbers: &NumberStatistics) -> String {
    let odd = [
        (numbers.zeros, "zeros"),
        (numbers.nan, "NaN"),
        (numbers.positive_infinities, "infinity"),
        (numbers.negative_infinities, "-infinity"),
    ];
    let all = numbers.count + numbers.nan;
    let told =
        odd.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{} {name}", percent(*count, all)));
    told.collect::<Vec<_>>().join(", ")
}

fn details(name: &str, kind: &KindStatistics) -> String {
    let mut out = if name.is_empty() { String::new() } else { format!("<h3>{name}</h3>") };
    out.push_str("<dl>");
    let mut line = |name: &str, value: String| out.push_str(&format!("<dt>{name}</dt><dd>{value}</dd>"));
    line("lists, empty ones, values", format!("{}, {}, {}", count(kind.lists), count(kind.empty), count(kind.values)));
    if kind.lengths.min < kind.lengths.max {
        line("lengths of lists", chart::histograms(&between(&kind.lengths.deciles), None));
        line("deciles of lengths", deciles(&kind.lengths.deciles));
    }
    if let Some(numbers) = &kind.numbers {
        line("standard deviation", number(numbers.std_dev).1);
        line("deciles", deciles(&numbers.deciles));
        line("histogram", numbers.histogram.iter().map(chart::name_of).collect::<Vec<_>>().join(" · "));
        if let Some(sampled) = numbers.sampled {
            line("quantiles and histogram are of", format!("a sample of {} values", count(sampled)));
        }
    }
    if let Some(strings) = &kind.strings {
        line("bytes on average", number(strings.mean_length).1);
        if let Some(damaged) = strings.images.map(|images| images.damaged).filter(|damaged| *damaged > 0) {
            line("images whose headers are damaged", count(damaged));
        }
        if strings.invalid_utf8 > 0 {
            line("no UTF-8", count(strings.invalid_utf8));
        }
        let value = |top: &TopValue| {
            let value = beginning(&frequent(top), CHARACTERS);
            format!("<li>{value} <small>{}</small></li>", count(top.count.round() as u64))
        };
        let values: String = strings.top.iter().take(LISTED).map(value).collect();
        if !values.is_empty() {
            let of = strings.sampled.map_or(String::new(), |sampled| format!(", by a sample of {}", count(sampled)));
            line(&format!("most frequent{of}"), format!("<ol>{values}</ol>"));
        }
    }
    out.push_str("</dl>");
    out
}

/// Buckets of as many each.
fn between(bounds: &[f64]) -> Vec<HistogramBucket> {
    bounds.windows(2).map(|bounds| HistogramBucket { low: bounds[0], high: bounds[1], count: 1.0 }).collect()
}

fn deciles(deciles: &[f64]) -> String {
    deciles.iter().map(|value| short(*value)).collect::<Vec<_>>().join(" · ")
}
