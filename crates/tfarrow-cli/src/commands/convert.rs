//! `tfarrow convert`: converts TFRecord to Parquet or Arrow, and back.

use std::{
    io::IsTerminal,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use arrow_schema::SchemaRef;
use tfarrow_convert::{
    ConvertOptions, ConvertReport, Error, OutputStream, Progress, Reshard, convert, read_schema,
};
use tfarrow_report::{
    conversion_json, plan_json, plan_text, rounded_text,
    text::{escape, plural, size},
};

use crate::{
    args::{Convert, NameList},
    error::{FOUND, SUCCESS, USAGE, Usage, unless_closed},
    interrupt::{self, on_interrupt},
    output,
    progress::Bar,
    stderr,
};

/// Interval between updates of the progress bar.
const TICK: Duration = Duration::from_millis(100);

/// Converts, and prints a summary.
pub(crate) fn run(args: &Convert) -> Result<u8> {
    let (sources, dest) = args.paths.split()?;
    if args.dry_run {
        return plan(args, sources, dest);
    }
    if args.summary.json && dest == "-" {
        return Err(
            Usage("--json needs standard output, which takes the output".to_owned()).into(),
        );
    }
    run_with(dest, &options(args)?, convert, sources, |run| {
        if args.summary.json {
            let summary = conversion_json(Path::new(dest), &run.report)?;
            unless_closed(output::line(&summary).map_err(Into::into))?;
        }
        run.report_skipped();
        Ok(run.status())
    })
}

/// Prints the plan of the conversion.
fn plan(args: &Convert, sources: &[String], dest: &str) -> Result<u8> {
    let options = options(args)?;
    let progress = Progress::default();
    let plan = match watched(&progress, || {
        tfarrow_convert::dry_run(sources, Path::new(dest), &options, &progress)
    }) {
        Err(error) if error.is_usage() => {
            stderr::error(&error.into());
            return Ok(USAGE);
        }
        plan => plan?,
    };
    let text = if args.summary.json {
        plan_json(Path::new(dest), &plan)?
    } else {
        plan_text(&plan, output::screen())
    };
    unless_closed(output::line(&text).map_err(Into::into))?;
    stderr::skipped_files(&plan.skipped_files, &plan.missing);
    stderr::splits(&plan.splits);
    Ok(SUCCESS)
}

/// A completed conversion.
pub(super) struct Run {
    pub(super) report: ConvertReport,
}

/// Runs `convert` on the sources, and prints a summary. `close` completes the report.
pub(super) fn run_with(
    dest: &str,
    options: &ConvertOptions,
    convert: impl Fn(
        &[String],
        &Path,
        &ConvertOptions,
        &Progress,
    ) -> tfarrow_convert::Result<ConvertReport>,
    sources: &[String],
    close: impl FnOnce(Run) -> Result<u8>,
) -> Result<u8> {
    if dest == "-" && std::io::stdout().is_terminal() {
        return Err(Usage(
            "a terminal cannot show a binary format: redirect the output to a file or a program"
                .to_owned(),
        )
        .into());
    }
    // A destination `-` is standard output.
    let options = &ConvertOptions {
        stream: Some(OutputStream::new(std::io::stdout())),
        ..options.clone()
    };
    let start = Instant::now();
    let progress = Arc::new(Progress::default());
    let cancel = Arc::clone(&progress);
    on_interrupt(move || cancel.cancel());
    let outcome = watched(&progress, || {
        convert(sources, Path::new(dest), options, &progress)
    });
    let status = match outcome {
        Ok(report) => {
            print_summary(&report, start.elapsed());
            return close(Run { report });
        }
        Err(Error::Cancelled) => interrupt::status(),
        Err(error) if error.is_usage() => {
            stderr::error(&error.into());
            USAGE
        }
        Err(error) => stderr::report(&error.into()),
    };
    if progress.is_resumable() {
        stderr::print("complete outputs were kept; run the same command with --resume to continue");
    }
    Ok(status)
}

fn options(args: &Convert) -> Result<ConvertOptions> {
    let defaults = ConvertOptions::default();
    let shards = args
        .shards
        .map(|shards| Reshard::Shards(shards.get() as u64));
    Ok(ConvertOptions {
        to: args.to,
        layout: args.reading.layout,
        compression: args.compression.map(|(compression, _)| compression),
        compression_level: args.compression.and_then(|(_, level)| level),
        jobs: args.jobs.map_or(defaults.jobs, usize::from),
        schema: schema(args)?,
        columns: NameList::join(&args.columns),
        exclude: NameList::join(&args.exclude),
        sample: args.sample.unwrap_or(defaults.sample),
        reshard: shards.or(args.shard_size.map(Reshard::Bytes)),
        partition_by: NameList::join(&args.partition_by),
        shuffle: args.shuffle,
        fraction: args.fraction,
        splits: args.split.clone(),
        seed: args.seed,
        record_type: args.reading.record_type,
        lossy: args.lossy,
        overwrite: args.overwrite,
        verify_crc: args.verify_crc,
        row_group_rows: args
            .row_group_rows
            .map_or(defaults.row_group_rows, usize::from),
        bloom_filters: NameList::join(&args.bloom_filter),
        page_index: !args.no_page_index,
        exact: args.exact,
        on_conflict: args.on_conflict,
        timestamp_unit: args.timestamp_unit,
        read: args.damage.read(),
        quarantine: args.quarantine.clone(),
        resume: args.resume,
        part: args.part,
        ..defaults
    })
}

/// The columns that the command line gives: those of a schema, or those of a message.
fn schema(args: &Convert) -> Result<Option<SchemaRef>> {
    if let Some(message) = args.reading.message.load()? {
        return Ok(Some(message.schema(&args.damage.read().limits)?));
    }
    Ok(args.schema.as_deref().map(read_schema).transpose()?)
}

/// Converts with a progress bar.
fn watched<T>(
    progress: &Progress,
    convert: impl FnOnce() -> tfarrow_convert::Result<T>,
) -> tfarrow_convert::Result<T> {
    let bar = Bar::new(0);
    std::thread::scope(|scope| {
        let (done, ended) = std::sync::mpsc::channel::<()>();
        let bar = &bar;
        if bar.is_shown() {
            scope.spawn(move || {
                while ended
                    .recv_timeout(TICK)
                    .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout)
                {
                    bar.set(progress.bytes(), progress.total(), progress.records());
                }
            });
        }
        let outcome = convert();
        drop(done);
        outcome
    })
}

/// Prints the summary and the warnings of a conversion.
fn print_summary(report: &ConvertReport, took: Duration) {
    let ConvertReport {
        shards,
        files,
        records,
        bytes_in,
        bytes_out,
        lossy_changes,
        why_raw,
        ..
    } = report;
    let written = match files {
        0 => "to standard output".to_owned(),
        files => format!("in {}", plural(*files, "file")),
    };
    let records = plural(*records, "record");
    let read = plural(*shards, "file");
    let bytes_in = size(*bytes_in);
    let bytes_out = size(*bytes_out);
    let seconds = took.as_secs_f64();
    stderr::print(&format!(
        "{records}: read {bytes_in} in {read}, wrote {bytes_out} {written}, in {seconds:.1} s"
    ));
    for (what, times) in lossy_changes {
        stderr::print(&format!("{what}: {}", plural(*times, "time")));
    }
    if !report.rounded.is_empty() {
        stderr::print(&escape(&rounded_text(report)));
    }
    why_raw.iter().for_each(|why| stderr::print(why));
    if let (folders @ 1.., Some(deepest)) = (report.new_folders.len(), report.new_folders.last()) {
        let count = plural(folders as u64, "folder");
        let deepest = deepest.display();
        stderr::print(&escape(&format!(
            "created {count} above the output: {deepest}"
        )));
    }
    stderr::skipped_files(&report.skipped_files, &report.missing);
    stderr::splits(&report.splits);
    if let Some(first) = report.kept_outputs.first() {
        let count = plural(report.kept_outputs.len() as u64, "output");
        let first = first.display();
        let why = "of the interrupted run has a source that is not among these, and is kept";
        stderr::print(&escape(&format!("{count} {why}, such as {first}")));
    }
}

impl Run {
    /// Prints how much was skipped, and the first fault.
    fn report_skipped(&self) {
        if !self.report.damage.is_empty() {
            stderr::skipped_records(&self.report.damage);
        }
    }

    /// The exit status: 3 for lossy values, unparsable or skipped records.
    fn status(&self) -> u8 {
        let ConvertReport {
            lossy_changes,
            has_strays,
            damage,
            ..
        } = &self.report;
        let found = !lossy_changes.is_empty() || *has_strays || !damage.is_empty();
        if found { FOUND } else { SUCCESS }
    }
}
