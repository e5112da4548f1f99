//! Tips of errors about the command line.

use std::ffi::OsString;

use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue, Error, ErrorKind},
};

/// The words that statements begin with.
const STATEMENTS: [&str; 16] = [
    "select",
    "from",
    "with",
    "values",
    "copy",
    "create",
    "describe",
    "desc",
    "drop",
    "explain",
    "insert",
    "set",
    "show",
    "summarize",
    "table",
    "pivot",
];
/// The options of `sql` that take statements.
const OPTIONS: [&str; 4] = ["-c", "--command", "-f", "--file"];

/// Adds a tip where `args`, after the name of the program, are those of `sql`, and removes the tip
/// to write `--` before an unknown option, which is not what the user means.
pub(crate) fn with_tips(mut error: Error, args: &[OsString]) -> Error {
    let is_unknown = matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
    );
    if !is_unknown {
        return error;
    }
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    tips.retain(|tip| !tip.to_string().contains(" as a value, use "));
    if is_query(args) {
        // A command of a similar name does not help.
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        tips.push(StyledStr::from(
            "to run SQL, use 'tfarrow sql', such as: tfarrow sql \"SELECT 1\"",
        ));
    }
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Whether the first argument that is no option of all commands is a statement, or an option that
/// takes one.
fn is_query(args: &[OsString]) -> bool {
    let mut args = args.iter().filter_map(|arg| arg.to_str());
    let Some(first) =
        args.find(|arg| !matches!(*arg, "-q" | "--quiet" | "-v" | "--verbose" | "--no-pager"))
    else {
        return false;
    };
    let word = first
        .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '*'))
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let option = first.split('=').next().unwrap_or_default();
    OPTIONS.contains(&option) || STATEMENTS.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_recognized_by_their_first_word() {
        let check = |args: &[&str], expect| {
            let args: Vec<_> = args.iter().map(OsString::from).collect();
            assert_eq!(is_query(&args), expect, "{args:?}");
        };
        for args in [
            &["SELECT 1"][..],
            &["FROM 'x'"],
            &["select", "1"],
            &["-q", "-c", "x"],
            &["--command=x"],
            &["-f"],
        ] {
            check(args, true);
        }
        for args in [
            &[][..],
            &["selection/"],
            &["table/"],
            &["sqll", "SELECT 1"],
            &["head", "-c"],
            &["-q"],
            &["'x'"],
        ] {
            check(args, false);
        }
    }
}
