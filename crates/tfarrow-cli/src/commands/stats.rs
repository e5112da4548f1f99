//! `tfarrow stats`: statistics of the values of a data set.

use anyhow::Result;
use prost::Message;
use tfarrow_dataset::Part;
use tfarrow_report::{PartSettings, StatisticsReport, text::pretty_json};
use tfarrow_stats::{PartWork, SlicedStatistics, Statistics};

use crate::{
    args::{Looking, Stats, StatsFormat},
    commands::{
        inspect,
        partial::{self, value_name},
    },
    error::{FOUND, SUCCESS, Usage},
    output,
};

/// The name of the command.
const NAME: &str = "stats";

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
        StatsFormat::Table => output::line(&report.text(output::screen()))?,
        StatsFormat::Json => output::line(&pretty_json(&report)?)?,
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
