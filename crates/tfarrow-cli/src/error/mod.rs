//! Errors: exit statuses, messages and remedies.

mod remedy;

use std::{
    env, io,
    panic::{self, AssertUnwindSafe},
};

use datafusion::error::DataFusionError;
use tfarrow_dataset::{ErrorKind, internals::Lock};
use tfarrow_report::{UnsupportedFormat, error_message};

pub(crate) use remedy::{index_remedy, reading_remedy, remedy, words};

/// The exit status of success.
pub(crate) const SUCCESS: u8 = 0;

/// The exit status of a failure.
pub(crate) const FAILURE: u8 = 1;

/// The exit status of an invalid command line.
pub(crate) const USAGE: u8 = 2;

/// The exit status of a command that completed, and found or skipped something.
pub(crate) const FOUND: u8 = 3;

/// An invalid command line, which ends the program with status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// An invalid `--option` of `sql`, which ends the program with status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidOption(#[source] pub(crate) DataFusionError);

/// Whether the command line is invalid, rather than the data or the machine: also where an output
/// of it exists.
pub(crate) fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<Usage>()
        || error.is::<UnsupportedFormat>()
        || error.is::<InvalidOption>()
        || error.chain().any(|cause| {
            let error = cause.downcast_ref::<tfarrow_dataset::Error>();
            error.is_some_and(|error| matches!(error.kind(), ErrorKind::Exists))
        })
}

/// An error of a statement, with advice.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Hinted {
    #[source]
    pub(crate) error: DataFusionError,
    pub(crate) hint: String,
}

/// The text of an error, without remedies.
pub(crate) fn message(error: &anyhow::Error) -> String {
    // These have the text of the error in them.
    if let Some(Hinted { error, .. }) = error.downcast_ref() {
        return error_message(error);
    }
    if let Some(InvalidOption(error)) = error.downcast_ref() {
        return error_message(error);
    }
    error_message(error.as_ref())
}

/// The message and the location of the last panic.
static PANIC: Lock<String> = Lock::new(String::new());

/// Calls `run` and converts a panic, such as one of a third-party reader, into an error. With
/// `RUST_BACKTRACE` set, the panic is printed as well.
pub(crate) fn catch_panic(run: impl FnOnce() -> anyhow::Result<u8>) -> anyhow::Result<u8> {
    if env::var_os("RUST_BACKTRACE").is_none() {
        panic::set_hook(Box::new(|panic| {
            *PANIC.lock() = panic.to_string();
        }));
    }
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let panic = PANIC.lock();
        let cause = "a Parquet or Arrow file is corrupt, or tfarrow has a bug (please report it)";
        Err(anyhow::Error::msg(format!("{cause}: {panic}")))
    })
}

/// Whether the reader of the output has closed it, which is not a failure.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// The result of a write; success where the reader of the output has closed it, for commands that
/// have more to report.
pub(crate) fn unless_closed(written: anyhow::Result<()>) -> anyhow::Result<()> {
    written.or_else(|error| {
        if is_closed_pipe(&error) {
            Ok(())
        } else {
            Err(error)
        }
    })
}
