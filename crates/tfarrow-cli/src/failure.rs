//! What goes wrong, as one line on standard error and as an exit status.

use std::{
    env,
    error::Error,
    fmt,
    io::{self, Write as _},
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_schema::ArrowError;
use datafusion::{
    common::{Column, SchemaError, utils::quote_identifier},
    error::DataFusionError,
};

use tfarrow_codec::Category;
use tfarrow_dataset::{Damage, ErrorKind, MissingShards, PassedOver};

use crate::output::escape;

/// Done, and something was found or lost.
pub(crate) const FOUND: u8 = 3;

/// The command line asks for what cannot be.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// Says what went wrong, and how the program ends for it.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    tell(error);
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}

/// What the last panic said, and where it was.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Calls `run`, and makes an error of its panic, which else prints lines that help nobody but us.
pub(crate) fn without_panic(run: impl FnOnce() -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    if env::var_os("RUST_BACKTRACE").is_none() {
        panic::set_hook(Box::new(|panic| {
            *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
        }));
    }
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let why = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
        let whose = "a Parquet or Arrow file is damaged, or this is a fault of tfarrow's, then please report it";
        Err(anyhow::Error::msg(format!("{whose}: {why}")))
    })
}

/// Prints one line for the user to read.
pub(crate) fn say(message: &str) {
    note(&format!("tfarrow: {message}"));
}

/// Prints what is no failure, such as how long an answer took, for the user of a terminal.
pub(crate) fn note(message: &str) {
    // Whoever closes it, or lets its disk fill, is to get the exit status nevertheless.
    let _ = writeln!(io::stderr(), "{message}");
}

/// Says what folders hold besides what was read, where it may be data, and what sets of shards in them lack.
pub(crate) fn tell_besides(passed_over: &PassedOver, missing: &[MissingShards]) {
    missing.iter().for_each(|set| say(&escape(&set.to_string())));
    if passed_over.may_matter() {
        say(&escape(&passed_over.to_string()));
    }
}

/// Whoever reads our output has read enough, which is no error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let broken = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}

/// Prints an error for the user to read, and what can be done where a TFRecord file is damaged, or more than is allowed.
pub(crate) fn tell(error: &anyhow::Error) {
    let way_out = error.chain().find_map(way_out).unwrap_or_default();
    say(&(message(error) + &way_out));
}

fn way_out(cause: &(dyn Error + 'static)) -> Option<String> {
    let converted = cause.downcast_ref().and_then(|error| match error {
        tfarrow_convert::Error::Dataset(error) => Some(error),
        _ => None,
    });
    let shard: Option<&tfarrow_dataset::Error> = cause.downcast_ref().or(converted);
    let is_damage = match (shard.map(tfarrow_dataset::Error::kind), cause.downcast_ref::<tfarrow_codec::Error>()) {
        (Some(ErrorKind::NotTfRecord { is_known: false, .. }), _) => {
            return Some("; if it was TFRecord once, tfarrow repair saves what is whole behind the damage".to_owned());
        }
        (Some(ErrorKind::Io(_)), _) if shard.is_some_and(tfarrow_dataset::Error::is_out_of_files) => {
            return Some(
                "; this process may open too few files: raise the limit, such as with ulimit -n 1024".to_owned(),
            );
        }
        // It names its limit itself.
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
    is_damage.then(|| "; tfarrow verify tells all that is damaged, tfarrow repair saves the rest".to_owned())
}

/// What a write came to, where whoever reads our output may have read enough: what is still to be said does not depend on
/// it.
pub(crate) fn unless_closed(written: anyhow::Result<()>) -> anyhow::Result<()> {
    written.or_else(|error| if is_closed_pipe(&error) { Ok(()) } else { Err(error) })
}

/// The error and its causes as one line. Text that a cause repeats is left out.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain() {
        let part = Part::of(cause);
        let (Part::Text(text) | Part::Root(text)) = &part else { continue };
        if text.starts_with(&message) {
            message.clone_from(text);
        } else if !message.contains(text) {
            message.push_str(": ");
            message.push_str(text);
        }
        if matches!(part, Part::Root(_)) {
            break;
        }
    }
    let lines: Vec<_> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    escape(&lines.join(" "))
}

/// What one cause adds to a message.
enum Part {
    /// Nothing: the text of the wrapper is that of its source and the name of a variant.
    Wrapper,
    /// A text, to which the causes below may add theirs.
    Text(String),
    /// A text that says all that the causes below say.
    Root(String),
}

impl Part {
    fn of(cause: &(dyn Error + 'static)) -> Self {
        let shared = || cause.downcast_ref::<Arc<DataFusionError>>().map(AsRef::as_ref);
        match cause.downcast_ref::<DataFusionError>().or_else(shared) {
            Some(error) => Self::of_datafusion(error),
            None if matches!(cause.downcast_ref(), Some(ArrowError::ExternalError(_))) => Self::Wrapper,
            None => Self::Text(cause.to_string()),
        }
    }

    fn of_datafusion(error: &DataFusionError) -> Self {
        match error {
            DataFusionError::Context(context, _) if !is_step(context) => Self::Text(context.clone()),
            DataFusionError::ArrowError(error, _) => match error.as_ref() {
                ArrowError::CastError(text) => Self::Root(format!(
                    "{text}; compare with a value of the same type, or write TRY_CAST(.. AS type), which gives NULL"
                )),
                _ => Self::Wrapper,
            },
            DataFusionError::Context(..)
            | DataFusionError::External(_)
            | DataFusionError::IoError(_)
            | DataFusionError::ObjectStore(_)
            | DataFusionError::Diagnostic(..)
            | DataFusionError::Collection(_)
            | DataFusionError::Shared(_) => Self::Wrapper,
            error => Self::Root(root_text(error)),
        }
    }
}

/// Whether a context is the name of a step of DataFusion's planner, as `type_coercion`.
fn is_step(context: &str) -> bool {
    context.starts_with("Optimizer rule '") || !context.contains(' ')
}

/// The text of an error that wraps no other, without the name of its variant.
fn root_text(error: &DataFusionError) -> String {
    match error {
        DataFusionError::SQL(error, _) => {
            let text = error.to_string();
            format!("syntax error: {}", text.strip_prefix("sql parser error: ").unwrap_or(&text))
        }
        DataFusionError::Plan(text) | DataFusionError::Execution(text) | DataFusionError::Configuration(text) => {
            let text = without_backtrace(text);
            wrong_arguments(&text).unwrap_or_else(|| quoted_if_file(text))
        }
        DataFusionError::NotImplemented(text) => {
            // Some of them print the parser's tree.
            let text = without_backtrace(text);
            format!("not supported: {}", text.split(" { ").next().unwrap_or(&text))
        }
        // What a file has led to is no bug to be reported.
        DataFusionError::Internal(text) => format!("internal error of DataFusion: {}", without_backtrace(text)),
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => no_column(field, valid_fields),
            error => error.to_string(),
        },
        error => error.strip_backtrace(),
    }
}

/// What DataFusion says of a function whose arguments have other types than it takes, without the many ways that it has
/// tried.
fn wrong_arguments(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("No function matches the given name and argument types '")?;
    let (call, rest) = rest.split_once("'.")?;
    let (_, candidates) = rest.split_once("Candidate functions:")?;
    let candidates: Vec<_> = candidates.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let takes = match candidates.as_slice() {
        [] => String::new(),
        known => format!("; there is {}", known.join(", ")),
    };
    Some(format!("no function {call}{takes}; convert the arguments with CAST(.. AS type)"))
}

/// A table that was not found, with a word on quotes where its name looks like a file's.
fn quoted_if_file(text: String) -> String {
    let name = text.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
    let name = name.map(|name| name.trim_start_matches("datafusion.").trim_start_matches("public."));
    match name {
        Some(name) if name.contains(['.', '/']) => {
            format!("table {name} not found; a file is named in single quotes: FROM '{name}'")
        }
        Some(name) => format!("there is no table {name}, and no file or folder of that name"),
        None => text,
    }
}

/// Columns that are listed where one is not found.
const LISTED: usize = 30;

fn no_column(column: &Column, known: &[Column]) -> String {
    let one_table = known.windows(2).all(|pair| matches!(pair, [a, b] if a.relation == b.relation));
    let name = |column: &Column| match one_table {
        true => quote_identifier(&column.name).into_owned(),
        false => column.quoted_flat_name(),
    };
    let mut names: Vec<_> = known.iter().take(LISTED).map(name).collect();
    if known.len() > LISTED {
        names.push(format!("and {} more", known.len() - LISTED));
    }
    let there_are = match &*names {
        [] => String::new(),
        [name] => format!("; there is {name}"),
        names => format!("; there are {}", names.join(", ")),
    };
    format!("no column {}{there_are}", column.quoted_flat_name())
}

fn without_backtrace(text: &str) -> String {
    text.split(DataFusionError::BACK_TRACE_SEP).next().unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let cause = io::Error::other("no room");
        let error = anyhow::Error::from(cause).context("a.parquet: no room").context("cannot write");
        assert_eq!(message(&error), "cannot write: a.parquet: no room");
        let error = anyhow::Error::msg("two\n  lines\x1b");
        assert_eq!(message(&error), "two lines\\u{1b}");
    }

    #[test]
    fn wrappers_are_taken_off() {
        let inner = DataFusionError::External(Box::new(io::Error::other("a.tfrecord: record 3")));
        let arrow = ArrowError::ExternalError(Box::new(inner));
        let outer = DataFusionError::Shared(Arc::new(DataFusionError::ArrowError(Box::new(arrow), None)));
        assert_eq!(message(&anyhow::Error::new(outer)), "a.tfrecord: record 3");
        let file = DataFusionError::Plan("table 'datafusion.a.tfrecord' not found".to_owned());
        let quoted = "table a.tfrecord not found; a file is named in single quotes: FROM 'a.tfrecord'";
        assert_eq!(message(&anyhow::Error::new(file)), quoted);
        let plan = DataFusionError::Plan("table 'x' not found".to_owned());
        assert_eq!(message(&anyhow::Error::new(plan)), "there is no table x, and no file or folder of that name");
    }
    #[test]
    fn a_function_of_other_types_is_told_in_one_sentence() {
        let text = "Internal error: Function 'avg' failed, errors: .. filing a bug report. No function matches the given \
                    name and argument types 'avg(Utf8View)'. You might need to add explicit type casts.\n\tCandidate \
                    functions:\n\tavg(Decimal)\n\tavg(Float64)";
        let found = message(&anyhow::Error::new(DataFusionError::Plan(text.to_owned())));
        let expect = "no function avg(Utf8View); there is avg(Decimal), avg(Float64); convert the arguments with CAST(.. AS type)";
        assert_eq!(found, expect);
    }

    #[test]
    fn steps_of_the_planner_are_not_told() {
        let cast = || DataFusionError::ArrowError(Box::new(ArrowError::CastError("no".to_owned())), None);
        for step in ["Optimizer rule 'simplify_expressions' failed", "type_coercion"] {
            let found = message(&anyhow::Error::new(cast().context(step)));
            assert!(found.starts_with("no; compare with a value of the same type"), "{found}");
        }
        let kept = message(&anyhow::Error::new(cast().context("while reading x")));
        assert!(kept.starts_with("while reading x: no; "), "{kept}");
    }
}
