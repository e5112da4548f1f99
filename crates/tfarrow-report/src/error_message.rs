//! The text of an error. The names that DataFusion and Arrow give to their variants and planner
//! steps are left out.

use std::{collections::HashSet, error::Error, iter, sync::Arc};

use arrow_schema::ArrowError;
use datafusion::{
    common::{Column, SchemaError, utils::quote_identifier},
    error::DataFusionError,
};

use crate::text::{escape, similar};

/// Returns an error and its causes as one line, without remedies. Text that a cause repeats is left
/// out.
pub fn error_message(error: &(dyn Error + 'static)) -> String {
    let mut message = String::new();
    for cause in iter::successors(Some(error), |&error| error.source()) {
        let part = Part::of(cause);
        let (Part::Text(text) | Part::Root(text)) = &part else {
            continue;
        };
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
    let lines: Vec<_> = message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    escape(&lines.join(" "))
}

/// The contribution of one cause to a message.
enum Part {
    /// No text: the wrapper has the text of its source and the name of a variant.
    Wrapper,
    /// A text, to which the causes below may add theirs.
    Text(String),
    /// A text that includes the texts of all causes below.
    Root(String),
}

impl Part {
    fn of(cause: &(dyn Error + 'static)) -> Self {
        if let Some(error) = cause.downcast_ref::<DataFusionError>() {
            return Self::of_datafusion(error);
        }
        if let Some(error) = cause.downcast_ref::<Arc<DataFusionError>>() {
            return Self::of_datafusion(error);
        }
        match cause.downcast_ref() {
            Some(ArrowError::ExternalError(_)) => Self::Wrapper,
            _ => Self::Text(without_store(cause.to_string())),
        }
    }

    fn of_datafusion(error: &DataFusionError) -> Self {
        match error {
            DataFusionError::Context(context, _) if !is_step(context) => {
                Self::Text(context.clone())
            }
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

/// The text of an error of an object store, without the name that the library gives to it: `Generic
/// S3 error: `.
fn without_store(text: String) -> String {
    match text
        .strip_prefix("Generic ")
        .and_then(|rest| rest.split_once(" error: "))
    {
        Some((_, cause)) => cause.to_owned(),
        None => text,
    }
}

/// Whether a context is the name of a planner step, such as `type_coercion`, which does not help
/// the user.
fn is_step(context: &str) -> bool {
    context.starts_with("Optimizer rule '") || !context.contains(' ')
}

/// The text of an error that wraps no other, without the name of its variant.
fn root_text(error: &DataFusionError) -> String {
    match error {
        DataFusionError::SQL(error, _) => {
            let text = error.to_string();
            format!(
                "syntax error: {}",
                text.strip_prefix("sql parser error: ").unwrap_or(&text)
            )
        }
        DataFusionError::Plan(text)
        | DataFusionError::Execution(text)
        | DataFusionError::Configuration(text) => {
            let text = without_backtrace(text);
            if let Some(message) = wrong_arguments(&text) {
                return message;
            }
            match missing_function(error) {
                Some(name) => format!("there is no function {name}"),
                None => quoted_if_file(text),
            }
        }
        DataFusionError::NotImplemented(text) => {
            format!("not supported: {}", without_tree(&without_backtrace(text)))
        }
        // DataFusion asks for a bug report, but the cause may be a corrupt file.
        DataFusionError::Internal(text) => {
            format!("internal error of DataFusion: {}", without_backtrace(text))
        }
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound {
                field,
                valid_fields,
            } => no_column(field, valid_fields),
            error => error.to_string(),
        },
        error => error.strip_backtrace(),
    }
}

/// A message without the syntax tree that some of DataFusion's end in: `Unsupported JOIN operator
/// Semi(Using([Ident { ..`.
fn without_tree(text: &str) -> &str {
    let Some((begin, _)) = text.split_once(" { ") else {
        return text;
    };
    match begin.rsplit_once(' ') {
        // The beginning of the tree.
        Some((message, node)) if node.contains('(') => message.trim_end_matches(':'),
        _ => begin,
    }
}

/// The name in an error about an unknown function, also about one of FROM. DataFusion suggests the
/// nearest name, however far it is.
pub fn missing_function(error: &DataFusionError) -> Option<&str> {
    let DataFusionError::Plan(text) = error.find_root() else {
        return None;
    };
    match text.strip_prefix("Invalid function '") {
        Some(rest) => Some(rest.split_once('\'')?.0),
        None => Some(
            text.strip_prefix("table function '")?
                .split_once("' not found")?
                .0,
        ),
    }
}

/// A message about the argument types of a function, without the signatures that DataFusion tried.
fn wrong_arguments(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("No function matches the given name and argument types '")?;
    let (call, rest) = rest.split_once("'.")?;
    let (_, candidates) = rest.split_once("Candidate functions:")?;
    let candidates: Vec<_> = candidates
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let takes = match candidates.as_slice() {
        [] => String::new(),
        known => format!("; there is {}", known.join(", ")),
    };
    Some(format!(
        "no function {call}{takes}; convert the arguments with CAST(.. AS type)"
    ))
}

/// A message about a missing table, with a hint at quotes where its name looks like that of a file.
fn quoted_if_file(text: String) -> String {
    let name = text
        .strip_prefix("table '")
        .and_then(|rest| rest.strip_suffix("' not found"));
    let name = name.map(|name| {
        name.trim_start_matches("datafusion.")
            .trim_start_matches("public.")
    });
    match name {
        Some(name) if name.contains(['.', '/']) => {
            format!("table {name} not found; a file is named in single quotes: FROM '{name}'")
        }
        Some(name) => format!("there is no table {name}, and no file or folder of that name"),
        None => text,
    }
}

/// Number of columns listed where one is missing.
const LISTED: usize = 30;

fn no_column(column: &Column, known: &[Column]) -> String {
    let one_table = known
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if a.relation == b.relation));
    // The columns of a query include those of its input.
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for other in known {
        let name = match one_table {
            true => quote_identifier(&other.name).into_owned(),
            false => other.quoted_flat_name(),
        };
        if seen.insert(name.clone()) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(LISTED);
    if more > 0 {
        names.truncate(LISTED);
        names.push(format!("and {more} more"));
    }
    let there_are = match &*names {
        [] => String::new(),
        [name] => format!("; there is {name}"),
        names => format!("; there are {}", names.join(", ")),
    };
    let hint = similar(
        &column.name,
        known.iter().map(|column| column.name.as_str()),
    );
    format!("no column {}{hint}{there_are}", column.quoted_flat_name())
}

fn without_backtrace(text: &str) -> String {
    text.split(DataFusionError::BACK_TRACE_SEP)
        .next()
        .unwrap_or(text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn repeated_causes_are_left_out() {
        let cause = io::Error::other("no room");
        let error = anyhow::Error::from(cause)
            .context("a.parquet: no room")
            .context("cannot write");
        assert_eq!(error_message(&*error), "cannot write: a.parquet: no room");
        let error = anyhow::Error::msg("two\n  lines\x1b");
        assert_eq!(error_message(&*error), "two lines\\u{1b}");
    }

    #[test]
    fn wrappers_are_left_out() {
        let inner = DataFusionError::External(Box::new(io::Error::other("a.tfrecord: record 3")));
        let arrow = ArrowError::ExternalError(Box::new(inner));
        let outer =
            DataFusionError::Shared(Arc::new(DataFusionError::ArrowError(Box::new(arrow), None)));
        assert_eq!(
            error_message(&*anyhow::Error::new(outer)),
            "a.tfrecord: record 3"
        );
        let file = DataFusionError::Plan("table 'datafusion.a.tfrecord' not found".to_owned());
        let quoted =
            "table a.tfrecord not found; a file is named in single quotes: FROM 'a.tfrecord'";
        assert_eq!(error_message(&*anyhow::Error::new(file)), quoted);
        let plan = DataFusionError::Plan("table 'x' not found".to_owned());
        assert_eq!(
            error_message(&*anyhow::Error::new(plan)),
            "there is no table x, and no file or folder of that name"
        );
    }

    #[test]
    fn syntax_trees_are_left_out() {
        for (text, expect) in [
            (
                "Unsupported JOIN operator Semi(Using([Ident { value: \"a\" }]))",
                "Unsupported JOIN operator",
            ),
            (
                "Dot access not supported for non-string expr: Function(Function { name",
                "Dot access not supported for non-string expr",
            ),
            (
                "Unsupported statement: Grant { privileges: All { ",
                "Unsupported statement: Grant",
            ),
            ("no tree", "no tree"),
        ] {
            assert_eq!(without_tree(text), expect);
        }
    }

    #[test]
    fn columns_are_listed_once() {
        let known = ["a", "b", "a"].map(|name| Column::new(Some("t"), name));
        assert_eq!(
            no_column(&Column::from_name("xyz"), &known),
            "no column xyz; there are a, b"
        );
        let known: Vec<_> = (0..LISTED + 2)
            .map(|i| Column::new(Some("t"), format!("c{i}")))
            .collect();
        let known = [known.clone(), known].concat();
        assert!(no_column(&Column::from_name("xyz"), &known).ends_with(", c29, and 2 more"));
    }

    #[test]
    fn wrong_argument_types_are_one_sentence() {
        let text = "Internal error: Function 'avg' failed, errors: .. filing a bug report. No function matches the given \
                    name and argument types 'avg(Utf8View)'. You might need to add explicit type casts.\n\tCandidate \
                    functions:\n\tavg(Decimal)\n\tavg(Float64)";
        let found = error_message(&*anyhow::Error::new(DataFusionError::Plan(text.to_owned())));
        let expect = "no function avg(Utf8View); there is avg(Decimal), avg(Float64); convert the arguments with CAST(.. AS type)";
        assert_eq!(found, expect);
    }

    #[test]
    fn planner_steps_are_left_out() {
        let cast =
            || DataFusionError::ArrowError(Box::new(ArrowError::CastError("no".to_owned())), None);
        for step in [
            "Optimizer rule 'simplify_expressions' failed",
            "type_coercion",
        ] {
            let found = error_message(&*anyhow::Error::new(cast().context(step)));
            assert!(
                found.starts_with("no; compare with a value of the same type"),
                "{found}"
            );
        }
        let kept = error_message(&*anyhow::Error::new(cast().context("while reading x")));
        assert!(kept.starts_with("while reading x: no; "), "{kept}");
    }
}
