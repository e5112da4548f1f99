//! Errors: exit statuses, texts, and what the user can do about them.

mod message;

use std::{
    env,
    error::Error,
    fmt, io,
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use tfarrow_codec::Category;
use tfarrow_dataset::{Damage, ErrorKind};

pub(crate) use message::message;

/// The exit status of a command that completed, and found or skipped something.
pub(crate) const FOUND: u8 = 3;

/// An invalid command line, which ends the program with status 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// The message and the location of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Calls `run` and converts a panic, such as one of a third-party reader, into an error. With `RUST_BACKTRACE` set, the
/// panic is printed as well.
pub(crate) fn catch_panic(run: impl FnOnce() -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    if env::var_os("RUST_BACKTRACE").is_none() {
        panic::set_hook(Box::new(|panic| {
            *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
        }));
    }
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let panic = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
        let cause = "a Parquet or Arrow file is corrupt, or tfarrow has a bug (please report it)";
        Err(anyhow::Error::msg(format!("{cause}: {panic}")))
    })
}

/// Whether the reader of the output has closed it, which is not a failure.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let broken = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}

/// The result of a write; success where the reader of the output has closed it, for commands that have more to report.
pub(crate) fn unless_closed(written: anyhow::Result<()>) -> anyhow::Result<()> {
    written.or_else(|error| if is_closed_pipe(&error) { Ok(()) } else { Err(error) })
}

/// Advice on the error, as the end of a sentence.
pub(crate) fn remedy(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(remedy_of)
}

fn remedy_of(cause: &(dyn Error + 'static)) -> Option<String> {
    let converted = cause.downcast_ref().and_then(|error| match error {
        tfarrow_convert::Error::Dataset(error) => Some(error),
        _ => None,
    });
    let shard: Option<&tfarrow_dataset::Error> = cause.downcast_ref().or(converted);
    let is_damage = match (shard.map(tfarrow_dataset::Error::kind), cause.downcast_ref::<tfarrow_codec::Error>()) {
        (Some(ErrorKind::NotTfRecord { is_known: false, .. }), _) => {
            let remedy = "; if it was a TFRecord file, tfarrow repair recovers the valid records after the damage";
            return Some(remedy.to_owned());
        }
        (Some(ErrorKind::Io(_)), _) if shard.is_some_and(tfarrow_dataset::Error::is_out_of_files) => {
            return Some("; raise the limit of open files, e.g. with ulimit -n 1024".to_owned());
        }
        // The message names the limit.
        (Some(ErrorKind::Damaged { damage: Damage::Bomb { .. }, .. }), _) => false,
        (Some(ErrorKind::Damaged { .. }), _) => true,
        (_, Some(error)) => {
            if let Some(name) = error.limit() {
                return Some(format!("; --limit {name}=N allows more"));
            }
            matches!(error.category(), Category::Corrupt | Category::Truncated)
        }
        _ => false,
    };
    is_damage.then(|| "; tfarrow verify lists all damage, tfarrow repair recovers the valid records".to_owned())
}
