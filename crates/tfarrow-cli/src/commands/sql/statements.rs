//! The statements of the command line, of files and of standard input.

use std::{
    fs::File,
    io::{Read, stdin},
    path::Path,
};

use anyhow::{Context, Result};
use datafusion::prelude::SessionContext;
use tfarrow_sql::{QueryLimits, Statements, statements};

use crate::args::Sql;

/// The statements of all texts, those of files first. A syntax error is reported before the first
/// statement is run; with `--keep-going`, when it is reached.
pub(super) fn texts(args: &Sql, context: &SessionContext) -> Result<Vec<Result<Statements>>> {
    let mut texts = args
        .file
        .iter()
        .map(|path| read(path))
        .collect::<Result<Vec<_>>>()?;
    texts.extend(args.command.iter().chain(&args.queries).cloned());
    if texts.is_empty() {
        texts.push(read(Path::new("-"))?);
    }
    if args.keep_going {
        return Ok(texts.iter().map(|text| parse(text, context)).collect());
    }
    texts
        .iter()
        .map(|text| checked(text, context).map(Ok))
        .collect()
}

/// The statements of a text, parsed one by one.
fn parse(text: &str, context: &SessionContext) -> Result<Statements> {
    Ok(statements(text, context, QueryLimits::default())?)
}

/// The statements of a text without a syntax error.
pub(super) fn checked(text: &str, context: &SessionContext) -> Result<Statements> {
    for statement in parse(text, context)? {
        statement?;
    }
    parse(text, context)
}

/// The text of a file, or enough of it to show that it is too long.
pub(super) fn read(path: &Path) -> Result<String> {
    let most = QueryLimits::default().bytes as u64 + 1;
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        stdin()
            .take(most)
            .read_to_end(&mut bytes)
            .context("standard input")?;
    } else {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        file.take(most)
            .read_to_end(&mut bytes)
            .with_context(|| path.display().to_string())?;
    }
    if bytes.len() as u64 == most {
        // The cut may divide a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).with_context(|| path.display().to_string())
}
