//! `tfarrow stats`: what the values of a data set are.

use std::{ops::ControlFlow, process::ExitCode};

use anyhow::Result;
use prost::Message;
use tfarrow_stats::{Bucket, DatasetFigures, FeatureFigures, KindFigures, NumberFigures, Statistics, StringFigures};

use crate::{
    args::{Looking, Stats, StatsFormat},
    commands::look,
    failure::FOUND,
    output::{self, count, escape, range, short},
};

/// Characters of a frequent value that the table shows.
const SHOWN: usize = 24;

/// Prints what the values of a data set are.
pub(crate) fn run(args: &Stats) -> Result<ExitCode> {
    if args.format == StatsFormat::Pb {
        output::refuse_terminal()?;
    }
    let statistics = collect(&args.sources, args.looking)?;
    let figures = statistics.figures();
    match args.format {
        StatsFormat::Table => table(&figures)?,
        StatsFormat::Json => output::line(&serde_json::to_string_pretty(&figures)?)?,
        StatsFormat::Pb => output::bytes(&figures.to_proto().encode_to_vec())?,
    }
    let has_lost = look::tell_skipped(&statistics.inferred) | look::tell_strays(&statistics.inferred);
    Ok(if has_lost { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// Counts what the sources hold, with a bar.
pub(super) fn collect(sources: &[String], looking: Looking) -> Result<Statistics> {
    let (shards, progress) = look::shards(sources)?;
    Ok(Statistics::collect(&shards, &look::options(looking), &|bytes, records| {
        progress.add(bytes, records);
        ControlFlow::Continue(())
    })?)
}

/// A table of numbers, and one of byte strings.
fn table(figures: &DatasetFigures) -> Result<()> {
    let sample = figures.sampled.map(|(shards, of)| format!(", a sample of {shards} of {of} shards"));
    let (records, bytes) = (count(figures.records), output::size(figures.bytes));
    output::line(&format!("{records} records, {bytes} of payload{}", sample.unwrap_or_default()))?;
    let kinds = || figures.features.iter().flat_map(|feature| feature.kinds.iter().map(move |kind| (feature, kind)));
    let numbers: Vec<_> =
        kinds().filter_map(|(feature, kind)| Some(number_row(feature, kind, kind.numbers.as_ref()?))).collect();
    if !numbers.is_empty() {
        let names = ["numbers", "missing", "lengths", "zeros", "min", "median", "max", "mean", "std", ""];
        let right = [false, true, true, true, true, true, true, true, true, false];
        output::text_table(&names, &right, &["std", "zeros", "mean", "", "lengths"], numbers)?;
    }
    let strings: Vec<_> =
        kinds().filter_map(|(feature, kind)| Some(string_row(feature, kind, kind.strings.as_ref()?))).collect();
    if !strings.is_empty() {
        let names = ["bytes", "missing", "lengths", "distinct", "bytes each", "look like", "most frequent"];
        let right = [false, true, true, true, true, false, false];
        output::text_table(&names, &right, &["bytes each", "look like", "lengths"], strings)?;
    }
    let bare = figures.features.iter().filter(|feature| feature.kinds.is_empty());
    let bare: Vec<_> = bare.map(|feature| escape(&feature.name)).collect();
    if !bare.is_empty() {
        output::line(&format!("without a kind, so without values: {}", bare.join(", ")))?;
    }
    if let Some(size) = kinds().filter_map(|(_, kind)| kind.numbers.as_ref()?.sampled).min() {
        output::line(&format!("medians and histograms are those of samples of {} values and more", count(size)))?;
    }
    Ok(())
}

/// Records without a value that has a kind. Of a feature list, it is steps that have none.
fn missing(feature: &FeatureFigures) -> u64 {
    feature.missing + if feature.is_list { 0 } else { feature.unset }
}

fn name_of(feature: &FeatureFigures, kind: &KindFigures) -> String {
    let name = format!("{}{}", escape(&feature.name), if feature.is_list { "[]" } else { "" });
    if feature.kinds.len() > 1 { format!("{name} ({})", kind.kind) } else { name }
}

fn share(part: u64, whole: u64) -> String {
    match part {
        0 => "0".to_owned(),
        _ => output::percent(part, whole),
    }
}

fn number_row(feature: &FeatureFigures, kind: &KindFigures, numbers: &NumberFigures) -> Vec<String> {
    vec![
        name_of(feature, kind),
        count(missing(feature)),
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

fn string_row(feature: &FeatureFigures, kind: &KindFigures, strings: &StringFigures) -> Vec<String> {
    let about = if strings.is_distinct_exact { "" } else { "~" };
    let most = strings.top.first().filter(|top| top.count > 1.0 || strings.distinct == 1).map(|top| {
        let text = String::from_utf8_lossy(&top.value);
        let shown: String = text.chars().take(SHOWN).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        let times = output::percent(top.count as u64, strings.total);
        format!("{}{more} {times}", escape(&shown))
    });
    let looks: Vec<_> = strings.formats.iter().map(|(name, _)| *name).collect();
    vec![
        name_of(feature, kind),
        count(missing(feature)),
        range(kind.lengths.min, kind.lengths.max),
        format!("{about}{}", count(strings.distinct)),
        range(strings.min_length, strings.max_length),
        looks.join(", "),
        most.unwrap_or_default(),
    ]
}

/// A histogram in as many characters as it has buckets.
fn bars(buckets: &[Bucket]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = buckets.iter().map(|bucket| bucket.count).fold(0.0, f64::max);
    let bar = |bucket: &Bucket| match bucket.count / highest {
        // What is there is not shown as nothing.
        share if share > 0.0 => BARS.get((share * 8.0).ceil() as usize - 1).copied().unwrap_or('█'),
        _ => ' ',
    };
    buckets.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_buckets_are_full() {
        let buckets = [0.0, 1.0, 4.0, 8.0].map(|count| Bucket { low: 0.0, high: 1.0, count });
        assert_eq!(bars(&buckets), " ▁▄█");
        assert_eq!(bars(&[]), "");
    }
}
