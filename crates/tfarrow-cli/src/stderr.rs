//! Messages on standard error: errors, warnings, summaries, and notes of the prompt.

use std::{
    io::{self, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use tfarrow_dataset::{
    DamageReport, MissingShards, SkippedFiles,
    internals::{TfdsSplit, splits_note},
};
use tfarrow_index::UnusableIndex;
use tfarrow_report::{source_notes, text::escape};

use crate::error::{
    FAILURE, SUCCESS, USAGE, index_remedy, is_closed_pipe, is_usage, message, reading_remedy,
    remedy,
};

/// Whether only errors are printed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Prints only errors from now on: no warnings, summaries and progress.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether only errors are printed.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a warning or a summary on standard error, in one line after the program's name, unless
/// the command line has `--quiet`.
pub fn print(message: &str) {
    if !is_quiet() {
        line(message);
    }
}

/// Prints warnings, as [`print`] does.
pub(crate) fn print_all(messages: &[String]) {
    for message in messages {
        print(message);
    }
}

/// Prints a line after the program's name.
fn line(message: &str) {
    note(&format!("tfarrow: {message}"));
}

/// Prints a note of the prompt, such as the time that a query took.
pub(crate) fn note(message: &str) {
    // A closed or full standard error must not change the exit status.
    let _ = writeln!(io::stderr(), "{message}");
}

/// Prints what is wrong with a command line. The text has styles where standard error shows them.
pub(crate) fn wrong_usage(error: &clap::Error) {
    // A closed or full standard error must not change the exit status.
    let _ = error.print();
}

/// Prints an error with advice.
pub(crate) fn error(error: &anyhow::Error) {
    line(&(message(error) + &escape(&remedy(error))));
}

/// Prints the error that ends a command, and returns the exit status.
pub(crate) fn report(error: &anyhow::Error) -> u8 {
    if is_closed_pipe(error) {
        return SUCCESS;
    }
    self::error(error);
    if is_usage(error) { USAGE } else { FAILURE }
}

/// Prints how much was skipped, and the first error.
pub(crate) fn skipped_records(skipped: &DamageReport) {
    print(&skipped_text(skipped));
}

/// The number of skipped records, and the first error with the option that reads such records.
pub(crate) fn skipped_text(skipped: &DamageReport) -> String {
    let remedy = skipped.first().map(reading_remedy).unwrap_or_default();
    escape(&format!("{skipped}{remedy}"))
}

/// Prints the number of files in folders that were skipped and may contain data, and the missing
/// shards.
pub(crate) fn skipped_files(skipped_files: &SkippedFiles, missing: &[MissingShards]) {
    source_notes(skipped_files, missing, &[])
        .iter()
        .for_each(|note| print(&escape(note)));
}

/// Prints the error of a shard that has no index, with advice.
pub(crate) fn index_error(error: &tfarrow_dataset::Error) {
    line(&escape(&format!("{error}{}", index_remedy(error))));
}

/// Prints the first of the indexes that are not used, and the number of the others.
pub(crate) fn unusable_indexes(unusable: &[UnusableIndex]) {
    let Some(first) = unusable.first() else {
        return;
    };
    let others = match unusable.len() - 1 {
        0 => String::new(),
        others => format!(" (and {others} more)"),
    };
    let advice = "`tfarrow index --update` makes it anew";
    print(&escape(&format!("warning: {first}{others}; {advice}")));
}

/// Prints the splits of TFDS that a command has read, if they are several.
pub(crate) fn splits(splits: &[TfdsSplit]) {
    if let Some(note) = splits_note(splits) {
        print(&escape(&note));
    }
}
