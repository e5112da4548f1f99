//! `tfarrow convert`: TFRecord to Parquet or Arrow, and back.

use std::{
    io::IsTerminal,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use tfarrow_convert::{ConvertOptions, Error, OutputStream, Progress, Recut, Report, convert, read_schema};
use tfarrow_dataset::SkippedRecords;

use crate::{
    args::Convert,
    failure::{self, FOUND, Usage},
    interrupt::{self, on_interrupt},
    output::{escape, plural, size},
    progress::Bar,
};

/// How often the bar is brought up to date.
const TICK: Duration = Duration::from_millis(100);

/// Converts, and says in one line what was done.
pub(crate) fn run(args: &Convert) -> Result<ExitCode> {
    run_with(&args.dest, &options(args)?, convert, &args.sources, |run| {
        run.tell_damage();
        Ok(run.status())
    })
}

/// A conversion that has ended well.
pub(super) struct Run {
    pub(super) report: Report,
}

/// Does with the sources what `convert` does, and says in one line what that was; `close` says the rest.
pub(super) fn run_with(
    dest: &str,
    options: &ConvertOptions,
    convert: impl Fn(&[String], &Path, &ConvertOptions, &Progress) -> tfarrow_convert::Result<Report>,
    sources: &[String],
    close: impl FnOnce(Run) -> Result<ExitCode>,
) -> Result<ExitCode> {
    if dest == "-" && std::io::stdout().is_terminal() {
        return Err(Usage("standard output is a terminal: send it to a file or a program".to_owned()).into());
    }
    // A destination `-` is standard output.
    let options = &ConvertOptions { stream: Some(OutputStream::new(std::io::stdout())), ..options.clone() };
    let start = Instant::now();
    let progress = Arc::new(Progress::default());
    let cancel = Arc::clone(&progress);
    on_interrupt(move || cancel.cancel());
    let outcome = watched(&progress, || convert(sources, Path::new(dest), options, &progress));
    let status = match outcome {
        Ok(report) => {
            tell(&report, start.elapsed());
            return close(Run { report });
        }
        Err(Error::Cancelled) => ExitCode::from(interrupt::status()),
        Err(Error::Usage(message)) => failure::report(&Usage(message).into()),
        Err(error) => failure::report(&error.into()),
    };
    if progress.is_resumable() {
        failure::say("what is whole was kept: the same command with --resume goes on behind it");
    }
    Ok(status)
}

fn options(args: &Convert) -> Result<ConvertOptions> {
    let defaults = ConvertOptions::default();
    let shards = args.shards.map(|shards| Recut::Shards(shards.get() as u64));
    Ok(ConvertOptions {
        to: args.to,
        layout: args.reading.layout,
        compression: args.compression,
        jobs: args.jobs.map_or(defaults.jobs, usize::from),
        schema: args.schema.as_deref().map(read_schema).transpose()?,
        sample: args.sample.unwrap_or(defaults.sample),
        recut: shards.or(args.shard_size.map(Recut::Bytes)),
        record_type: args.reading.record_type,
        lossy: args.lossy,
        overwrite: args.overwrite,
        verify_crc: args.verify_crc,
        row_group_rows: args.row_group_rows.map_or(defaults.row_group_rows, usize::from),
        exact: args.exact,
        on_conflict: args.on_conflict,
        read: args.damage.read(),
        quarantine: args.quarantine.clone(),
        resume: args.resume,
        ..defaults
    })
}

/// Converts, with a bar on the terminal.
fn watched(
    progress: &Progress,
    convert: impl FnOnce() -> tfarrow_convert::Result<Report>,
) -> tfarrow_convert::Result<Report> {
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
        let outcome = convert();
        drop(done);
        outcome
    })
}

/// The closing lines.
fn tell(report: &Report, took: Duration) {
    let Report { shards, files, records, bytes_in, bytes_out, losses, why_raw, .. } = report;
    let written = match files {
        0 => "to standard output".to_owned(),
        files => format!("in {}", plural(*files, "file")),
    };
    let (records, read) = (plural(*records, "record"), plural(*shards, "file"));
    let (bytes_in, bytes_out, seconds) = (size(*bytes_in), size(*bytes_out), took.as_secs_f64());
    failure::say(&format!("{records}: read {bytes_in} in {read}, wrote {bytes_out} {written}, in {seconds:.1} s"));
    for (what, times) in losses {
        failure::say(&format!("{what}: {}", plural(*times, "time")));
    }
    why_raw.iter().for_each(|why| failure::say(why));
    if let (folders @ 1.., Some(deepest)) = (report.new_folders.len(), report.new_folders.last()) {
        let (count, deepest) = (plural(folders as u64, "folder"), deepest.display());
        failure::say(&escape(&format!("created {count} above the output: {deepest}")));
    }
    failure::tell_besides(&report.passed_over, &report.missing);
    if let Some(first) = report.others.first() {
        let (count, first) = (plural(report.others.len() as u64, "output"), first.display());
        let why = "of the run that was interrupted is of a source that is not among these, and stays";
        failure::say(&escape(&format!("{count} {why}, such as {first}")));
    }
}

impl Run {
    /// Says how much was passed over, and what was wrong first.
    fn tell_damage(&self) {
        let damage = &self.report.damage;
        if let Some(first) = damage.faults.kept().next() {
            let skipped = SkippedRecords { first: Some(Arc::clone(&first.error)), ..damage.skipped.clone() };
            failure::say(&skipped.to_string());
        }
    }

    /// The exit status that the closing lines stand for.
    fn status(&self) -> ExitCode {
        let Report { losses, strays, damage, .. } = &self.report;
        let found = !losses.is_empty() || *strays || damage.faults.kept().next().is_some();
        if found { ExitCode::from(FOUND) } else { ExitCode::SUCCESS }
    }
}
