//! `tfarrow stats`: statistics of the values of a data set.

use anyhow::Result;
use prost::Message;
use serde::Serialize;
use tfarrow_dataset::Part;
use tfarrow_stats::{
    ByteStringStatistics, DatasetStatistics, FeatureStatistics, HistogramBucket, KindStatistics,
    NumberStatistics, PartWork, Slice, SliceValue, SlicedStatistics, Statistics,
    proto::DatasetFeatureStatisticsList,
};

use crate::{
    args::{Looking, Stats, StatsFormat},
    commands::{
        inspect,
        part_settings::PartSettings,
        partial::{self, value_name},
    },
    error::{FOUND, SUCCESS, Usage},
    output::{self, Screen, TITLE, count, image_sizes, number, plural, range, short},
    text::escape,
};

/// The name of the command.
const NAME: &str = "stats";

/// Number of characters shown of a frequent value.
const SHOWN: usize = 24;

/// Columns: records without the feature, records or steps with it that have no kind, numbers of
/// values of a list, and values that are NaN or infinite.
const MISSING: &str = "missing";
const UNSET: &str = "unset";
const LENGTHS: &str = "lengths";
const NON_FINITE: &str = "NaN, inf";

/// Prints the statistics.
pub(crate) fn run(args: &Stats) -> Result<u8> {
    if let Some(part) = args.part.part {
        return read_part(args, part);
    }
    check(args.format.get())?;
    let (all, report) = match &args.by {
        None => {
            let all = collect(&args.sources, &args.looking)?;
            let report = StatisticsReport::new(all.summarize());
            (all, report)
        }
        Some(by) => {
            let found = collect_sliced(&args.sources, &args.looking, by)?;
            let report = StatisticsReport::sliced(&found, by);
            (found.all, report)
        }
    };
    print(args.format.get(), &all, &report)
}

/// Checks that standard output can show the format.
fn check(format: StatsFormat) -> Result<(), Usage> {
    if format == StatsFormat::Pb {
        output::refuse_terminal()
    } else {
        Ok(())
    }
}

/// Reads a part of the sources.
fn read_part(args: &Stats, part: Part) -> Result<u8> {
    let work = args
        .by
        .as_deref()
        .map_or(PartWork::Statistics, PartWork::Slices);
    let source = partial::source(&args.sources, part)?;
    let settings = PartSettings {
        command: NAME.to_owned(),
        sources: args.sources.clone(),
        format: Some(value_name(&args.format.get())),
        ..PartSettings::default()
    };
    partial::write(
        &args.part,
        part,
        &source,
        work,
        &settings,
        &inspect::options(&args.looking),
    )
}

/// Prints statistics and the report of them, and returns the exit status.
pub(super) fn print(
    format: StatsFormat,
    all: &Statistics,
    report: &StatisticsReport,
) -> Result<u8> {
    check(format)?;
    match format {
        StatsFormat::Table => output::line(&report.text(Screen::stdout()))?,
        StatsFormat::Json => output::line(&output::pretty(&report)?)?,
        StatsFormat::Pb => output::bytes(&report.to_proto().encode_to_vec())?,
    }
    let has_lost = inspect::report_all([Some(all)]);
    Ok(if has_lost { FOUND } else { SUCCESS })
}

/// Collects the statistics of the sources, with a progress bar.
pub(super) fn collect(sources: &[String], looking: &Looking) -> Result<Statistics> {
    let (shards, progress) = inspect::shards(sources)?;
    Ok(Statistics::collect(
        &shards,
        &inspect::options(looking),
        &inspect::observer(&progress),
    )?)
}

fn collect_sliced(sources: &[String], looking: &Looking, by: &str) -> Result<SlicedStatistics> {
    let (shards, progress) = inspect::shards(sources)?;
    Ok(Statistics::collect_sliced(
        &shards,
        &inspect::options(looking),
        &inspect::observer(&progress),
        by,
    )?)
}

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
        let slice = |slice: &Slice| SliceFigures {
            value: slice.value.clone(),
            figures: slice.statistics.summarize(),
        };
        let slices = found.slices.iter().map(slice).collect();
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

    /// The message that TensorFlow Data Validation and Facets read.
    pub fn to_proto(&self) -> DatasetFeatureStatisticsList {
        match &self.slices {
            None => self.figures.to_proto(),
            Some(Slices { by, slices, .. }) => self.figures.to_proto_with(
                by,
                slices.iter().map(|slice| (&slice.value, &slice.figures)),
            ),
        }
    }

    /// The tables of the data set and of each slice.
    pub(crate) fn text(&self, screen: Screen) -> String {
        let mut text = tables(&self.figures, screen);
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
            text.push_str(&format!("\n\n{title}: {}", tables(figures, screen)));
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

/// The size of a data set, a table of its numbers, and one of its byte strings.
pub(crate) fn tables(figures: &DatasetStatistics, screen: Screen) -> String {
    let sample = figures
        .sampled
        .map(|(shards, of)| format!(", a sample of {shards} of {}", plural(of as u64, "shard")));
    let (records, bytes) = (
        plural(figures.records, "record"),
        output::size(figures.bytes),
    );
    let mut parts = vec![format!(
        "{records}, {bytes} of payload{}",
        sample.unwrap_or_default()
    )];
    let kinds = || {
        figures
            .features
            .iter()
            .flat_map(|feature| feature.kinds.iter().map(move |kind| (feature, kind)))
    };
    let numbers: Vec<_> = kinds()
        .filter_map(|(feature, kind)| Some(number_row(feature, kind, kind.numbers.as_ref()?)))
        .collect();
    if !numbers.is_empty() {
        parts.push(number_table(numbers, screen));
    }
    let strings: Vec<_> = kinds()
        .filter_map(|(feature, kind)| Some(string_row(feature, kind, kind.strings.as_ref()?)))
        .collect();
    if !strings.is_empty() {
        parts.push(string_table(strings, screen));
    }
    let bare = figures
        .features
        .iter()
        .filter(|feature| feature.kinds.is_empty());
    let bare: Vec<_> = bare.map(|feature| escape(&feature.name)).collect();
    if !bare.is_empty() {
        parts.push(format!(
            "features without a kind, and so without values: {}",
            bare.join(", ")
        ));
    }
    if let Some(size) = kinds()
        .filter_map(|(_, kind)| kind.numbers.as_ref()?.sampled)
        .min()
    {
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
    let is_empty = |column: usize| {
        rows.iter()
            .all(|row| row.get(column).is_none_or(String::is_empty))
    };
    // These columns are omitted where they are empty, and are not spared on narrow terminals where
    // they are not.
    let shown: Vec<bool> = names
        .iter()
        .enumerate()
        .map(|(at, name)| ![UNSET, NON_FINITE].contains(name) || !is_empty(at))
        .collect();
    let names: Vec<_> = only(names.iter().copied(), &shown);
    let right: Vec<_> = names.iter().map(|name| !left.contains(name)).collect();
    let rows = rows.into_iter().map(|row| only(row, &shown)).collect();
    output::text_table(&names, &right, spared, rows, screen)
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
        _ => output::percent(part, whole),
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
            let times = output::percent(top.count as u64, strings.total);
            format!("{} {about_top}{times}", shown(&output::frequent(top)))
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
    let bar = |bucket: &HistogramBucket| match bucket.count / highest {
        // A bucket with values has a visible bar.
        share if share > 0.0 => BARS
            .get((share * 8.0).ceil() as usize - 1)
            .copied()
            .unwrap_or('█'),
        _ => ' ',
    };
    buckets.iter().map(bar).collect()
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
