//! `tfarrow convert`: TFRecord to Parquet or Arrow, and back.

use std::{
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use tfarrow_convert::{ConvertOptions, Error, Progress, Recut, Report, Target, convert, read_schema};

use crate::{
    args::{Convert, To},
    failure::{self, FOUND, Usage},
    interrupt::{INTERRUPTED, on_interrupt},
    output::{count, size},
    progress::Bar,
};

/// How often the bar is brought up to date.
const TICK: Duration = Duration::from_millis(100);

/// Converts, and says in one line what was done.
pub(crate) fn run(args: &Convert) -> Result<ExitCode> {
    let options = options(args)?;
    let start = Instant::now();
    let progress = Arc::new(Progress::default());
    let cancel = Arc::clone(&progress);
    on_interrupt(move || cancel.cancel());
    match watched(args, &options, &progress) {
        Ok(report) => Ok(close(&report, start.elapsed())),
        Err(Error::Cancelled) => Ok(ExitCode::from(INTERRUPTED)),
        Err(Error::Usage(message)) => Err(Usage(message).into()),
        Err(error) => Err(error.into()),
    }
}

fn options(args: &Convert) -> Result<ConvertOptions> {
    let defaults = ConvertOptions::default();
    let shards = args.shards.map(|shards| Recut::Shards(shards.get() as u64));
    Ok(ConvertOptions {
        to: args.to.map(Target::from),
        layout: args.reading.layout(),
        compression: args.compression.map(Into::into),
        jobs: args.jobs.map_or(defaults.jobs, usize::from),
        schema: args.schema.as_deref().map(read_schema).transpose()?,
        sample: args.sample.unwrap_or(defaults.sample),
        recut: shards.or(args.shard_size.map(Recut::Bytes)),
        record_type: args.reading.record_type(),
        lossy: args.lossy,
        overwrite: args.overwrite,
        verify_crc: args.verify_crc.into(),
        row_group_rows: args.row_group_rows.map_or(defaults.row_group_rows, usize::from),
        ..defaults
    })
}

impl From<To> for Target {
    fn from(to: To) -> Self {
        match to {
            To::Parquet => Self::Parquet,
            To::Tfrecord => Self::TfRecord,
            To::Arrow => Self::Arrow,
        }
    }
}

/// Converts, with a bar on the terminal.
fn watched(args: &Convert, options: &ConvertOptions, progress: &Progress) -> Result<Report, Error> {
    let bar = Bar::new(0);
    std::thread::scope(|scope| {
        let (done, ended) = std::sync::mpsc::channel::<()>();
        let bar = &bar;
        if bar.is_shown() {
            scope.spawn(move || {
                while ended.recv_timeout(TICK).is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout) {
                    bar.set(progress.bytes(), progress.total(), progress.records());
                }
            });
        }
        let outcome = convert(&args.sources, Path::new(&args.dest), options, progress);
        drop(done);
        outcome
    })
}

/// The closing lines, and the exit status that they stand for.
fn close(report: &Report, took: Duration) -> ExitCode {
    let Report { shards, files, records, bytes_in, bytes_out, losses } = report;
    let plural = |number: &u64, word: &str| format!("{} {word}{}", count(*number), if *number == 1 { "" } else { "s" });
    let written = match files {
        0 => String::new(),
        files => format!(", wrote {} in {}", size(*bytes_out), plural(files, "file")),
    };
    let (records, read) = (plural(records, "record"), plural(shards, "file"));
    let (bytes_in, seconds) = (size(*bytes_in), took.as_secs_f64());
    failure::say(&format!("{records}: read {bytes_in} in {read}{written}, in {seconds:.1} s"));
    for (what, times) in losses {
        failure::say(&format!("{what}: {}", plural(times, "time")));
    }
    if losses.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FOUND) }
}
