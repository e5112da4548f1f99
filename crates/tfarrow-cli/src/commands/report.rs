//! `tfarrow report`: the statistics of a data set as an HTML page.

use std::{io::Write, path::Path};

use anyhow::{Context, Result};
use serde_json::json;
use tfarrow_dataset::{DamageReport, OutputFile, Shard};
use tfarrow_report::{
    EventCurves, PartSettings, REPORT_START, report_page, report_title, skipped_json,
    text::{count, escape, plural, pretty_json},
};
use tfarrow_stats::{Comparison, RecordProfile, RecordProfiler};

use crate::{
    args::Report,
    commands::validate::{Compared, ComparisonTask, compare, compare_part, exit_status},
    error::Usage,
    output, stderr,
};

/// The name of the command.
pub(super) const NAME: &str = "report";

/// The format of the summary, besides text.
pub(super) const JSON: &str = "json";

/// Writes the page, and prints a summary.
pub(crate) fn run(args: &Report) -> Result<u8> {
    let Some(path) = &args.output else {
        return read_part(args);
    };
    check(path, args.summary.json)?;
    let Compared {
        compared,
        others,
        shards,
    } = compare(task(args), || RecordProfiler::new(args.examples))?;
    let title = args
        .title
        .clone()
        .unwrap_or_else(|| report_title(&args.sources));
    let profile = RecordProfiler::merged(args.examples, others).finish();
    let read = args.looking.damage.read();
    let curves = EventCurves::of_compared(&compared, &profile, &shards, &read)?;
    write(
        path,
        args.summary.json,
        &title,
        &compared,
        &profile,
        &shards,
        &curves,
    )
}

/// Reads a part of the sources. The command line has a part if it has no output.
fn read_part(args: &Report) -> Result<u8> {
    let Some(part) = args.part.part else {
        return Err(Usage("the output is missing".to_owned()).into());
    };
    let settings = PartSettings {
        command: NAME.to_owned(),
        sources: args.sources.clone(),
        baseline: args.against.baseline.clone(),
        title: args.title.clone(),
        format: args.summary.json.then(|| JSON.to_owned()),
        ..PartSettings::default()
    };
    compare_part(
        task(args),
        (&args.part, part),
        Some(args.examples),
        settings,
    )
}

fn task(args: &Report) -> ComparisonTask<'_> {
    ComparisonTask {
        sources: &args.sources,
        against: &args.against,
        environment: None,
        looking: &args.looking,
    }
}

/// Checks that the page can be written to `path`.
pub(super) fn check(path: &Path, json: bool) -> Result<()> {
    match path == Path::new("-") {
        true if json => {
            Err(Usage("--json needs standard output, which takes the page".to_owned()).into())
        }
        true => Ok(()),
        false => output::refuse_other_file(path, REPORT_START.as_bytes(), "a report page"),
    }
}

/// Writes the page to `path`, prints a summary, and returns the exit status.
pub(super) fn write(
    path: &Path,
    json: bool,
    title: &str,
    compared: &Comparison,
    profile: &RecordProfile,
    shards: &[Shard],
    curves: &EventCurves,
) -> Result<u8> {
    let html = report_page(
        title,
        compared,
        profile,
        shards,
        curves,
        stderr::skipped_text,
    );
    if path == Path::new("-") {
        output::bytes(html.as_bytes())?;
    } else {
        let mut file = OutputFile::create(path, true)?;
        file.write_all(html.as_bytes())
            .with_context(|| path.display().to_string())?;
        file.persist()?;
        let inferred = &compared.found.statistics.inferred;
        let figures = Figures {
            page: path,
            bytes: html.len(),
            files: shards.len(),
            records: inferred.summary.records(),
            features: (!inferred.is_events).then(|| inferred.summary.features().count()),
            anomalies: compared.anomalies().map(<[_]>::len),
            skipped: &skipped(&inferred.skipped, curves),
        };
        output::line(&if json {
            figures.json()?
        } else {
            figures.text()
        })?;
    }
    let note = curves.note();
    let status = exit_status(compared, note.is_some());
    note.iter().for_each(|note| stderr::print(note));
    Ok(status)
}

/// The skipped records, with the events that cannot be decoded.
fn skipped(skipped: &DamageReport, curves: &EventCurves) -> DamageReport {
    let mut counts = skipped.counts();
    counts.records += curves.undecodable;
    counts
}

/// The summary of a report.
struct Figures<'r> {
    page: &'r Path,
    /// The size of the page.
    bytes: usize,
    /// The numbers of files, records and features of the data set; events have no features.
    files: usize,
    records: u64,
    features: Option<usize>,
    /// The number of anomalies; `None` without a schema or a baseline.
    anomalies: Option<usize>,
    skipped: &'r DamageReport,
}

impl Figures<'_> {
    fn text(&self) -> String {
        let records = plural(self.records, "record");
        let features = self.features.map_or_else(String::new, |count| {
            format!(", {}", plural(count as u64, "feature"))
        });
        let anomalies = self.anomalies.map_or(String::new(), |found| match found {
            1 => ", 1 anomaly".to_owned(),
            many => format!(", {} anomalies", count(many as u64)),
        });
        let name = escape(&self.page.display().to_string());
        format!("{name}: {records}{features}{anomalies}")
    }

    fn json(&self) -> Result<String> {
        Ok(pretty_json(&json!({
            "output": self.page.to_string_lossy(),
            "bytes": self.bytes,
            "files": self.files,
            "records": self.records,
            "features": self.features,
            "anomalies": self.anomalies,
            "skipped": skipped_json(self.skipped),
        }))?)
    }
}
