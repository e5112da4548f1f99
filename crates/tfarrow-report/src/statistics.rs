//! Statistics of a data set and of its slices.

use serde::Serialize;
use tfarrow_stats::{
    ByteStringStatistics, DatasetStatistics, FeatureStatistics, HistogramBucket, KindStatistics,
    NumberStatistics, SliceValue, SlicedStatistics, proto::DatasetFeatureStatisticsList,
};

use crate::text::{
    Screen, TITLE, count, escape, frequent, image_sizes, number, percent, plural, range, short,
    size, text_table,
};

/// Number of characters shown of a frequent value.
const SHOWN: usize = 24;

/// Columns: records without the feature, records or steps with it that have no kind, numbers of
/// values of a list, and values that are NaN or infinite.
const MISSING: &str = "missing";
const UNSET: &str = "unset";
const LENGTHS: &str = "lengths";
const NON_FINITE: &str = "NaN, inf";

/// The statistics of a data set and of its slices. They serialize to the JSON of `stats`.
#[derive(Clone, Debug, Serialize)]
pub struct StatisticsReport {
    #[serde(flatten)]
    figures: DatasetStatistics,
    #[serde(flatten)]
    slices: Option<Slices>,
}

/// The slices by the values of a feature.
#[derive(Clone, Debug, Serialize)]
struct Slices {
    by: String,
    /// Number of records in no slice.
    without: u64,
    slices: Vec<SliceFigures>,
}

#[derive(Clone, Debug, Serialize)]
struct SliceFigures {
    value: SliceValue,
    #[serde(flatten)]
    figures: DatasetStatistics,
}

impl StatisticsReport {
    /// A report without slices.
    pub fn new(figures: DatasetStatistics) -> Self {
        Self {
            figures,
            slices: None,
        }
    }

    /// A report with a slice for each value of the feature `by`.
    pub fn sliced(found: &SlicedStatistics, by: &str) -> Self {
        let mut slices = Vec::with_capacity(found.slices.len());
        for slice in &found.slices {
            slices.push(SliceFigures {
                value: slice.value.clone(),
                figures: slice.statistics.summarize(),
            });
        }
        let slices = Slices {
            by: by.to_owned(),
            without: found.without,
            slices,
        };
        Self {
            figures: found.all.summarize(),
            slices: Some(slices),
        }
    }

    /// Returns the message that TensorFlow Data Validation and Facets read.
    pub fn to_proto(&self) -> DatasetFeatureStatisticsList {
        match &self.slices {
            None => self.figures.to_proto(),
            Some(Slices { by, slices, .. }) => self.figures.to_proto_with(
                by,
                slices.iter().map(|slice| (&slice.value, &slice.figures)),
            ),
        }
    }

    /// Returns the tables of the data set and of each slice.
    pub fn text(&self, screen: Screen) -> String {
        let mut text = statistics_text(&self.figures, screen);
        let Some(Slices {
            by,
            without,
            slices,
        }) = &self.slices
        else {
            return text;
        };
        for SliceFigures { value, figures } in slices {
            let title = screen.coloured(
                TITLE,
                &format!("{} = {}", escape(by), shown(&value.to_string())),
            );
            text.push_str(&format!(
                "\n\n{title}: {}",
                statistics_text(figures, screen)
            ));
        }
        if *without > 0 {
            let are = if *without == 1 { "is" } else { "are" };
            text.push_str(&format!(
                "\n\n{} without {} {are} in no slice",
                plural(*without, "record"),
                escape(by)
            ));
        }
        text
    }
}

/// Returns the statistics as text: the size of a data set, a table of its numbers, and one of its
/// byte strings.
pub fn statistics_text(figures: &DatasetStatistics, screen: Screen) -> String {
    let sample = figures
        .sampled
        .map(|(shards, of)| format!(", a sample of {shards} of {}", plural(of as u64, "shard")));
    let records = plural(figures.records, "record");
    let bytes = size(figures.bytes);
    let mut parts = vec![format!(
        "{records}, {bytes} of payload{}",
        sample.unwrap_or_default()
    )];
    let mut numbers = Vec::new();
    let mut strings = Vec::new();
    let mut bare = Vec::new();
    // The sizes of samples.
    let mut sizes = Vec::new();
    for feature in &figures.features {
        if feature.kinds.is_empty() {
            bare.push(escape(&feature.name));
        }
        for kind in &feature.kinds {
            if let Some(found) = &kind.numbers {
                numbers.push(number_row(feature, kind, found));
                sizes.extend(found.sampled);
            }
            if let Some(found) = &kind.strings {
                strings.push(string_row(feature, kind, found));
            }
        }
    }
    if !numbers.is_empty() {
        parts.push(number_table(numbers, screen));
    }
    if !strings.is_empty() {
        parts.push(string_table(strings, screen));
    }
    if !bare.is_empty() {
        parts.push(format!(
            "features without a kind, and so without values: {}",
            bare.join(", ")
        ));
    }
    if let Some(size) = sizes.into_iter().min() {
        parts.push(format!(
            "~ marks estimates from samples of {} values and more",
            count(size)
        ));
    }
    parts.join("\n")
}

fn number_table(rows: Vec<Vec<String>>, screen: Screen) -> String {
    let names = [
        "numbers",
        MISSING,
        UNSET,
        LENGTHS,
        NON_FINITE,
        "zeros",
        "min",
        "median",
        "max",
        "mean",
        "std",
        "histogram",
    ];
    table(
        &names,
        &["numbers", "histogram"],
        &["std", "zeros", "mean", "histogram", LENGTHS],
        rows,
        screen,
    )
}

fn string_table(rows: Vec<Vec<String>>, screen: Screen) -> String {
    let names = [
        "bytes",
        MISSING,
        UNSET,
        LENGTHS,
        "distinct",
        "bytes each",
        "look like",
        "most frequent",
    ];
    table(
        &names,
        &["bytes", "look like", "most frequent"],
        &["bytes each", "look like", LENGTHS],
        rows,
        screen,
    )
}

/// A table whose columns are aligned to the right, except those of `left`. Columns of `spared` are
/// omitted on narrow terminals.
fn table(
    names: &[&str],
    left: &[&str],
    spared: &[&str],
    rows: Vec<Vec<String>>,
    screen: Screen,
) -> String {
    // These columns are omitted where they are empty, and are not spared on narrow terminals where
    // they are not.
    let mut shown = Vec::with_capacity(names.len());
    for (column, name) in names.iter().enumerate() {
        let is_empty = [UNSET, NON_FINITE].contains(name)
            && rows
                .iter()
                .all(|row| row.get(column).is_none_or(String::is_empty));
        shown.push(!is_empty);
    }
    let names: Vec<_> = only(names.iter().copied(), &shown);
    let right: Vec<_> = names.iter().map(|name| !left.contains(name)).collect();
    let rows = rows.into_iter().map(|row| only(row, &shown)).collect();
    text_table(&names, &right, spared, rows, screen)
}

/// The cells of the columns that are shown.
fn only<T>(cells: impl IntoIterator<Item = T>, shown: &[bool]) -> Vec<T> {
    cells
        .into_iter()
        .zip(shown)
        .filter(|(_, shown)| **shown)
        .map(|(cell, _)| cell)
        .collect()
}

fn name_of(feature: &FeatureStatistics, kind: &KindStatistics) -> String {
    let name = format!(
        "{}{}",
        escape(&feature.name),
        if feature.is_list { "[]" } else { "" }
    );
    if feature.kinds.len() > 1 {
        format!("{name} ({})", kind.kind)
    } else {
        name
    }
}

fn share(part: u64, whole: u64) -> String {
    match part {
        0 => "0".to_owned(),
        _ => percent(part, whole),
    }
}

/// The beginning of a text, without control characters.
fn shown(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{more}", escape(&shown))
}

/// The numbers of NaN and infinities; empty where there are none.
fn non_finite(numbers: &NumberStatistics) -> String {
    let counts = [
        (numbers.nan, "NaN"),
        (numbers.positive_infinities, "inf"),
        (numbers.negative_infinities, "-inf"),
    ];
    let found = counts.into_iter().filter(|(times, _)| *times > 0);
    found
        .map(|(times, name)| format!("{} {name}", count(times)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn number_row(
    feature: &FeatureStatistics,
    kind: &KindStatistics,
    numbers: &NumberStatistics,
) -> Vec<String> {
    let about = about(numbers.sampled.is_none());
    let figures = [
        share(numbers.zeros, numbers.count),
        number(numbers.min),
        format!("{about}{}", short(numbers.median)),
        number(numbers.max),
        short(numbers.mean),
        short(numbers.std_dev),
        format!("{about}{}", bars(&numbers.histogram)),
    ];
    let mut row = common_cells(feature, kind);
    row.push(non_finite(numbers));
    // Without a value there are no figures.
    row.extend(figures.map(|figure| {
        if numbers.count > 0 {
            figure
        } else {
            String::new()
        }
    }));
    row
}

/// The mark of a figure that is an estimate.
fn about(is_exact: bool) -> &'static str {
    if is_exact { "" } else { "~" }
}

fn string_row(
    feature: &FeatureStatistics,
    kind: &KindStatistics,
    strings: &ByteStringStatistics,
) -> Vec<String> {
    let about_top = about(strings.sampled.is_none());
    let most = strings
        .top
        .first()
        .filter(|top| top.count > 1.0 || strings.distinct == 1)
        .map(|top| {
            let times = percent(top.count as u64, strings.total);
            format!("{} {about_top}{times}", shown(&frequent(top)))
        });
    let looks: Vec<_> = strings.formats.iter().map(|(name, _)| *name).collect();
    let sizes = strings
        .images
        .and_then(image_sizes)
        .map(|sizes| format!(" {sizes}"));
    let figures = [
        format!(
            "{}{}",
            about(strings.is_distinct_exact),
            count(strings.distinct)
        ),
        range(strings.min_length, strings.max_length),
        format!("{}{}", looks.join(", "), sizes.unwrap_or_default()),
        most.unwrap_or_default(),
    ];
    let mut row = common_cells(feature, kind);
    // Without a value there are no figures.
    row.extend(figures.map(|figure| {
        if strings.total > 0 {
            figure
        } else {
            String::new()
        }
    }));
    row
}

/// The cells that numbers and byte strings have in common.
fn common_cells(feature: &FeatureStatistics, kind: &KindStatistics) -> Vec<String> {
    let unset = if feature.unset > 0 {
        count(feature.unset)
    } else {
        String::new()
    };
    vec![
        name_of(feature, kind),
        count(feature.missing),
        unset,
        range(kind.lengths.min, kind.lengths.max),
    ]
}

/// A histogram with one character for each bucket.
fn bars(buckets: &[HistogramBucket]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = buckets
        .iter()
        .map(|bucket| bucket.count)
        .fold(0.0, f64::max);
    let mut bars = String::with_capacity(buckets.len());
    for bucket in buckets {
        bars.push(match bucket.count / highest {
            // A bucket with values has a visible bar.
            share if share > 0.0 => BARS
                .get((share * 8.0).ceil() as usize - 1)
                .copied()
                .unwrap_or('█'),
            _ => ' ',
        });
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_to_counts() {
        let buckets = [0.0, 1.0, 4.0, 8.0].map(|count| HistogramBucket {
            low: 0.0,
            high: 1.0,
            count,
        });
        assert_eq!(bars(&buckets), " ▁▄█");
        assert_eq!(bars(&[]), "");
    }
}
