//! A row of the page's table: a feature, beside what it was.

use tfarrow_stats::{FeatureFigures, KindFigures, NumberFigures, StringFigures};

use super::{
    chart,
    html::{bytes, text},
};
use crate::output::{count, percent, range, short};

/// The columns, and whether each is of numbers.
pub(super) const HEADS: [(&str, bool); 10] = [
    ("feature", false),
    ("kind", false),
    ("missing", true),
    ("values", true),
    ("values look like", false),
    ("min", true),
    ("median", true),
    ("max", true),
    ("mean", true),
    ("distinct", true),
];

/// Values that the details list, and characters of each.
const LISTED: usize = 20;
const CHARACTERS: usize = 80;
/// Bars of the most frequent values.
const BARS: usize = 20;

/// A feature, and the one of its name in the data set as it was.
pub(super) struct Row<'a> {
    pub(super) feature: &'a FeatureFigures,
    pub(super) before: Option<&'a FeatureFigures>,
    /// Whether there is a data set as it was.
    pub(super) has_before: bool,
    /// Without chart and details.
    pub(super) is_plain: bool,
}

/// A cell: what it is sorted by, and what it shows.
type Cell = (String, String);

impl Row<'_> {
    /// Writes a row for each kind; `drift` is the distance, and `None` in it where there is none.
    pub(super) fn write(&self, drift: Option<Option<f64>>, out: &mut String) {
        if self.feature.kinds.is_empty() {
            self.write_kind(None, drift, out);
        }
        for kind in &self.feature.kinds {
            self.write_kind(Some(kind), drift, out);
        }
    }

    fn write_kind(&self, kind: Option<&KindFigures>, drift: Option<Option<f64>>, out: &mut String) {
        let feature = self.feature;
        let before = kind.and_then(|kind| self.before?.kinds.iter().find(|before| before.kind == kind.kind));
        let name = format!("{}{}", feature.name, if feature.is_list { "[]" } else { "" });
        let is_new = if self.has_before && self.before.is_none() { " <small>new</small>" } else { "" };
        out.push_str(&format!("<tr><th scope=\"row\" data-sort=\"{0}\">{0}{is_new}</th>", text(&name)));
        let number = |value: Option<f64>| match value {
            Some(value) => (value.to_string(), short(value)),
            None => Default::default(),
        };
        let two = |now: Cell, before: Option<Cell>| match before.filter(|(_, before)| !before.is_empty()) {
            Some((_, before)) => (now.0, format!("{}<br><small>{before}</small>", now.1)),
            None => now,
        };
        let of_kind = |of: &dyn Fn(&KindFigures) -> Cell| match kind {
            Some(kind) => two(of(kind), before.map(of)),
            None => Cell::default(),
        };
        let numbers = |of: fn(&NumberFigures) -> f64| of_kind(&|kind| number(kind.numbers.as_ref().map(of)));
        let missing = |feature: &FeatureFigures| {
            let records = feature.present + feature.missing;
            let absent = feature.missing + if feature.is_list { 0 } else { feature.unset };
            (absent.to_string(), if absent == 0 { "0".to_owned() } else { percent(absent, records) })
        };
        let lengths = |kind: &KindFigures| {
            let mean = if kind.lengths.min == kind.lengths.max {
                String::new()
            } else {
                format!(", {} on average", short(kind.lengths.mean))
            };
            (kind.lengths.mean.to_string(), format!("{}{mean}", range(kind.lengths.min, kind.lengths.max)))
        };
        let distinct = |kind: &KindFigures| match &kind.strings {
            Some(strings) => {
                let about = if strings.is_distinct_exact { "" } else { "about " };
                (strings.distinct.to_string(), format!("{about}{}", count(strings.distinct)))
            }
            None => Cell::default(),
        };
        let word = kind.map_or("none", |kind| kind.kind);
        let cells = [
            (false, (word.to_owned(), word.to_owned())),
            (true, two(missing(feature), self.before.map(missing))),
            (true, of_kind(&lengths)),
            (false, (String::new(), if self.is_plain { String::new() } else { distribution(kind, before) })),
            (true, numbers(|numbers| numbers.min)),
            (true, numbers(|numbers| numbers.median)),
            (true, numbers(|numbers| numbers.max)),
            (true, numbers(|numbers| numbers.mean)),
            (true, of_kind(&distinct)),
        ];
        let drift = drift.map(|drift| (true, number(drift)));
        for (is_number, (key, shown)) in cells.into_iter().chain(drift) {
            let class = if is_number { " class=\"number\"" } else { "" };
            out.push_str(&format!("<td{class} data-sort=\"{}\">{shown}</td>", text(&key)));
        }
        out.push_str("</tr>\n");
    }
}

/// The chart of the values, and what can be told of them besides.
fn distribution(kind: Option<&KindFigures>, before: Option<&KindFigures>) -> String {
    let Some(kind) = kind else { return String::new() };
    let charts = [chart_of(kind, "now"), before.map(|before| chart_of(before, "before")).unwrap_or_default()].concat();
    let said = match (&kind.strings, &kind.numbers) {
        (Some(strings), _) => looks(strings),
        (None, Some(numbers)) => odd(numbers),
        (None, None) => String::new(),
    };
    format!("<details><summary>{charts}<span>{said}</span></summary>{}</details>", details(kind))
}

fn chart_of(kind: &KindFigures, class: &str) -> String {
    if let Some(numbers) = &kind.numbers {
        return chart::histogram(&numbers.histogram, class);
    }
    let Some(strings) = &kind.strings else { return String::new() };
    let told = strings.top.iter().filter(|top| top.count > 1.0).take(BARS);
    let bars = told.map(|top| {
        let value: String = String::from_utf8_lossy(&top.value).chars().take(CHARACTERS).collect();
        (top.count, format!("{value}: {}", count(top.count.round() as u64)))
    });
    chart::bars(&bars.collect::<Vec<_>>(), class)
}

fn looks(strings: &StringFigures) -> String {
    let formats = strings.formats.iter().map(|(name, count)| format!("{name} {}", percent(*count, strings.total)));
    let looks: Vec<_> = formats.collect();
    format!("{}, {} bytes", text(&looks.join(", ")), range(strings.min_length, strings.max_length))
}

/// What numbers are besides ordinary.
fn odd(numbers: &NumberFigures) -> String {
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

fn details(kind: &KindFigures) -> String {
    let mut out = String::from("<dl>");
    let mut line = |name: &str, value: String| out.push_str(&format!("<dt>{name}</dt><dd>{value}</dd>"));
    line("lists, empty ones, values", format!("{}, {}, {}", count(kind.lists), count(kind.empty), count(kind.values)));
    if kind.lengths.min < kind.lengths.max {
        line("deciles of lengths", deciles(&kind.lengths.deciles));
    }
    if let Some(numbers) = &kind.numbers {
        line("standard deviation", short(numbers.std_dev));
        line("deciles", deciles(&numbers.deciles));
        if let Some(sampled) = numbers.sampled {
            line("quantiles are of", format!("a sample of {} values", count(sampled)));
        }
    }
    if let Some(strings) = &kind.strings {
        line("bytes on average", short(strings.mean_length));
        if strings.invalid_utf8 > 0 {
            line("no UTF-8", count(strings.invalid_utf8));
        }
        let value = |top: &tfarrow_stats::Top| {
            format!("<li>{} <small>{}</small></li>", bytes(&top.value, CHARACTERS), count(top.count.round() as u64))
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

fn deciles(deciles: &[f64]) -> String {
    deciles.iter().map(|value| short(*value)).collect::<Vec<_>>().join(" · ")
}
