//! `tfarrow stats`: statistics of the values of a data set.

use anyhow::Result;
use prost::Message;
use serde::Serialize;
use tfarrow_dataset::Part;
use tfarrow_stats::{
    ByteStringStatistics, DatasetStatistics, FeatureStatistics, HistogramBucket, KindStatistics, NumberStatistics,
    PartWork, Slice, SliceValue, SlicedStatistics, Statistics, proto::DatasetFeatureStatisticsList,
};

use crate::{
    args::{Looking, Stats, StatsFormat},
    commands::{
        inspect,
        part_settings::PartSettings,
        partial::{self, value_name},
    },
    error::{FOUND, SUCCESS, Usage},
    output::{self, Screen, TITLE, count, image_sizes, plural, range, short},
    text::escape,
};

/// The name of the command.
const NAME: &str = "stats";

/// Number of characters shown of a frequent value.
const SHOWN: usize = 24;

/// The column of values that are NaN or infinite.
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
    if format == StatsFormat::Pb { output::refuse_terminal() } else { Ok(()) }
}

/// Reads a part of the sources.
fn read_part(args: &Stats, part: Part) -> Result<u8> {
    let work = args.by.as_deref().map_or(PartWork::Statistics, PartWork::Slices);
    let source = partial::source(&args.sources, part)?;
    let settings = PartSettings {
        command: NAME.to_owned(),
        sources: args.sources.clone(),
        format: Some(value_name(&args.format.get())),
        ..PartSettings::default()
    };
    partial::write(&args.part, part, &source, work, &settings, &inspect::options(&args.looking))
}

/// Prints statistics and the report of them, and returns the exit status.
pub(super) fn print(format: StatsFormat, all: &Statistics, report: &StatisticsReport) -> Result<u8> {
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
    Ok(Statistics::collect(&shards, &inspect::options(looking), &inspect::observer(&progress))?)
}

fn collect_sliced(sources: &[String], looking: &Looking, by: &str) -> Result<SlicedStatistics> {
    let (shards, progress) = inspect::shards(sources)?;
    Ok(Statistics::collect_sliced(&shards, &inspect::options(looking), &inspect::observer(&progress), by)?)
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
        Self { figures, slices: None }
    }

    /// A report with a slice for each value of the feature `by`.
    pub fn sliced(found: &SlicedStatistics, by: &str) -> Self {
        let slice = |slice: &Slice| SliceFigures { value: slice.value.clone(), figures: slice.statistics.summarize() };
        let slices = found.slices.iter().map(slice).collect();
        let slices = Slices { by: by.to_owned(), without: found.without, slices };
        Self { figures: found.all.summarize(), slices: Some(slices) }
    }

    /// The message that TensorFlow Data Validation and Facets read.
    pub fn to_proto(&self) -> DatasetFeatureStatisticsList {
        match &self.slices {
            None => self.figures.to_proto(),
            Some(Slices { by, slices, .. }) => {
                self.figures.to_proto_with(by, slices.iter().map(|slice| (&slice.value, &slice.figures)))
            }
        }
    }

    /// The tables of the data set and of each slice.
    pub(crate) fn text(&self, screen: Screen) -> String {
        let mut text = tables(&self.figures, screen);
        let Some(Slices { by, without, slices }) = &self.slices else { return text };
        for SliceFigures { value, figures } in slices {
            let title = screen.coloured(TITLE, &format!("{} = {}", escape(by), shown(&value.to_string())));
            text.push_str(&format!("\n\n{title}: {}", tables(figures, screen)));
        }
        if *without > 0 {
            let are = if *without == 1 { "is" } else { "are" };
            text.push_str(&format!("\n\n{} without {} {are} in no slice", plural(*without, "record"), escape(by)));
        }
        text
    }
}

/// The size of a data set, a table of its numbers, and one of its byte strings.
pub(crate) fn tables(figures: &DatasetStatistics, screen: Screen) -> String {
    let sample =
        figures.sampled.map(|(shards, of)| format!(", a sample of {shards} of {}", plural(of as u64, "shard")));
    let (records, bytes) = (plural(figures.records, "record"), output::size(figures.bytes));
    let mut parts = vec![format!("{records}, {bytes} of payload{}", sample.unwrap_or_default())];
    let kinds = || figures.features.iter().flat_map(|feature| feature.kinds.iter().map(move |kind| (feature, kind)));
    let numbers: Vec<_> =
        kinds().filter_map(|(feature, kind)| Some(number_row(feature, kind, kind.numbers.as_ref()?))).collect();
    if !numbers.is_empty() {
        parts.push(number_table(numbers, screen));
    }
    let strings: Vec<_> =
        kinds().filter_map(|(feature, kind)| Some(string_row(feature, kind, kind.strings.as_ref()?))).collect();
    if !strings.is_empty() {
        let names = ["bytes", "missing", "lengths", "distinct", "bytes each", "look like", "most frequent"];
        let right = [false, true, true, true, true, false, false];
        parts.push(output::text_table(&names, &right, &["bytes each", "look like", "lengths"], strings, screen));
    }
    let bare = figures.features.iter().filter(|feature| feature.kinds.is_empty());
    let bare: Vec<_> = bare.map(|feature| escape(&feature.name)).collect();
    if !bare.is_empty() {
        parts.push(format!("features without a kind, and so without values: {}", bare.join(", ")));
    }
    if let Some(size) = kinds().filter_map(|(_, kind)| kind.numbers.as_ref()?.sampled).min() {
        parts.push(format!("medians and histograms are those of samples of {} values and more", count(size)));
    }
    parts.join("\n")
}

fn number_table(mut rows: Vec<Vec<String>>, screen: Screen) -> String {
    let mut names =
        vec!["numbers", "missing", NON_FINITE, "lengths", "zeros", "min", "median", "max", "mean", "std", "histogram"];
    let mut right = vec![false, true, true, true, true, true, true, true, true, true, false];
    // The column is omitted where it is empty, and is not spared on narrow terminals where it is not.
    let place = names.iter().position(|name| *name == NON_FINITE).unwrap_or_default();
    if rows.iter().all(|row| row[place].is_empty()) {
        names.remove(place);
        right.remove(place);
        rows.iter_mut().for_each(|row| drop(row.remove(place)));
    }
    output::text_table(&names, &right, &["std", "zeros", "mean", "histogram", "lengths"], rows, screen)
}

fn name_of(feature: &FeatureStatistics, kind: &KindStatistics) -> String {
    let name = format!("{}{}", escape(&feature.name), if feature.is_list { "[]" } else { "" });
    if feature.kinds.len() > 1 { format!("{name} ({})", kind.kind) } else { name }
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
    let counts = [(numbers.nan, "NaN"), (numbers.positive_infinities, "inf"), (numbers.negative_infinities, "-inf")];
    let found = counts.into_iter().filter(|(times, _)| *times > 0);
    found.map(|(times, name)| format!("{} {name}", count(times))).collect::<Vec<_>>().join(", ")
}

fn number_row(feature: &FeatureStatistics, kind: &KindStatistics, numbers: &NumberStatistics) -> Vec<String> {
    vec![
        name_of(feature, kind),
        count(feature.absent()),
        non_finite(numbers),
        range(kind.lengths.min, kind.lengths.max),
        share(numbers.zeros, numbers.count),
        short(numbers.min),
        short(numbers.median),
        short(numbers.max),
        short(numbers.mean),
        short(numbers.std_dev),
        bars(&numbers.histogram),
    ]
}

fn string_row(feature: &FeatureStatistics, kind: &KindStatistics, strings: &ByteStringStatistics) -> Vec<String> {
    let about = if strings.is_distinct_exact { "" } else { "~" };
    let most = strings.top.first().filter(|top| top.count > 1.0 || strings.distinct == 1).map(|top| {
        let times = output::percent(top.count as u64, strings.total);
        format!("{} {times}", shown(&output::frequent(top)))
    });
    let looks: Vec<_> = strings.formats.iter().map(|(name, _)| *name).collect();
    let sizes = strings.images.and_then(image_sizes).map(|sizes| format!(" {sizes}"));
    vec![
        name_of(feature, kind),
        count(feature.absent()),
        range(kind.lengths.min, kind.lengths.max),
        format!("{about}{}", count(strings.distinct)),
        range(strings.min_length, strings.max_length),
        format!("{}{}", looks.join(", "), sizes.unwrap_or_default()),
        most.unwrap_or_default(),
    ]
}

/// A histogram with one character for each bucket.
fn bars(buckets: &[HistogramBucket]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = buckets.iter().map(|bucket| bucket.count).fold(0.0, f64::max);
    let bar = |bucket: &HistogramBucket| match bucket.count / highest {
        // A bucket with values has a visible bar.
        share if share > 0.0 => BARS.get((share * 8.0).ceil() as usize - 1).copied().unwrap_or('█'),
        _ => ' ',
    };
    buckets.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional_to_counts() {
        let buckets = [0.0, 1.0, 4.0, 8.0].map(|count| HistogramBucket { low: 0.0, high: 1.0, count });
        assert_eq!(bars(&buckets), " ▁▄█");
        assert_eq!(bars(&[]), "");
    }
}
