//! Helper of the line editor: completion of keywords, columns, names of the session and quoted
//! paths, and styles.

use std::{borrow::Cow, collections::BTreeSet};

use anstyle::{AnsiColor, Style};

use datafusion::{
    common::utils::quote_identifier,
    prelude::SessionContext,
    sql::sqlparser::{
        dialect::GenericDialect,
        keywords::ALL_KEYWORDS,
        tokenizer::{Token, Tokenizer},
    },
};
use rustyline::{
    Context, Helper, Result,
    completion::{Completer, FilenameCompleter, Pair},
    highlight::{CmdKind, Highlighter},
    hint::Hinter,
    validate::Validator,
};
use tfarrow_report::text::escape;
use tokio::runtime::Handle;

use super::{file_columns::FileColumns, highlight::highlighted, prompt_command::PromptCommand};

const PROMPT: Style = AnsiColor::Blue.on_default();
/// Bytes of a line above which a typed character does not draw the line again: the output would
/// grow with the square of the line.
const LONG_LINE: usize = 500;

/// The keywords of the parser that consist of letters. The others are names of functions, or
/// options of other dialects.
fn keywords() -> impl Iterator<Item = &'static str> {
    let words = ALL_KEYWORDS.iter().copied().chain(["TFRECORD"]);
    words.filter(|word| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// The schema and the name of each table of a session.
pub(super) fn table_names(context: &SessionContext) -> Vec<(String, String)> {
    let state = context.state();
    let mut names = Vec::new();
    for catalog in state.catalog_list().catalog_names() {
        let Some(catalog) = state.catalog_list().catalog(&catalog) else {
            continue;
        };
        for schema in catalog.schema_names() {
            let tables = catalog
                .schema(&schema)
                .map_or_else(Vec::new, |schema| schema.table_names());
            names.extend(tables.into_iter().map(|table| (schema.clone(), table)));
        }
    }
    names
}

/// Completes words and styles the input.
pub(super) struct SqlHelper {
    paths: FilenameCompleter,
    columns: FileColumns,
    /// Names of tables, functions and options.
    names: BTreeSet<String>,
    /// The earlier lines of the statement.
    pub(super) begun: String,
}

impl SqlHelper {
    pub(super) fn new(context: &SessionContext, runtime: &Handle) -> Self {
        let columns = FileColumns::new(context.clone(), runtime.clone());
        let (names, begun) = Default::default();
        let mut helper = Self {
            paths: FilenameCompleter::new(),
            columns,
            names,
            begun,
        };
        let state = context.state();
        let functions = state
            .scalar_functions()
            .keys()
            .chain(state.aggregate_functions().keys());
        helper
            .names
            .extend(functions.chain(state.window_functions().keys()).cloned());
        helper.names.insert("read_tfrecord".to_owned());
        let options = context.state().config_options().entries();
        helper
            .names
            .extend(options.into_iter().map(|entry| entry.key));
        helper.learn(context);
        helper
    }

    /// Adds the tables that the session has now.
    pub(super) fn learn(&mut self, context: &SessionContext) {
        let printable = table_names(context)
            .into_iter()
            .filter(|(_, name)| is_printable(name));
        self.names
            .extend(printable.map(|(_, name)| quote_identifier(&name).into_owned()));
    }

    /// The words that begin with `prefix`, in any case: columns of the tables that `statement`
    /// names, keywords, and names of the session.
    fn words(&self, prefix: &str, statement: &str) -> Vec<Pair> {
        let prefix = prefix.trim_start_matches('"');
        let lower = prefix.to_ascii_lowercase();
        let mut columns = Vec::new();
        for column in self.columns.of_statement(statement) {
            let name = quote_identifier(&column);
            if is_printable(&column) && begins_with(&name, &lower) {
                columns.push(name.into_owned());
            }
        }
        let is_upper = prefix.chars().any(|c| c.is_ascii_uppercase());
        let mut others = Vec::new();
        for keyword in keywords() {
            let word = keyword.to_ascii_lowercase();
            if word.starts_with(&lower) {
                others.push(if is_upper { keyword.to_owned() } else { word });
            }
        }
        for name in &self.names {
            if begins_with(name, &lower) {
                others.push(name.clone());
            }
        }
        others.retain(|word| !columns.contains(word));
        columns
            .into_iter()
            .chain(others)
            .map(|word| Pair {
                display: word.clone(),
                replacement: word,
            })
            .collect()
    }
}

impl Completer for SqlHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> Result<(usize, Vec<Pair>)> {
        let before = line.get(..position).unwrap_or(line);
        if let Some(quote) = open_quote(before, '\'') {
            let path = before.get(quote + 1..).unwrap_or_default();
            let (start, mut found) = self.paths.complete_path(path, path.len())?;
            found.retain(|pair| is_printable(&pair.display) && is_printable(&pair.replacement));
            return Ok((quote + 1 + start, found));
        }
        let start = open_quote(before, '"').unwrap_or_else(|| word_start(before));
        let prefix = before.get(start..).unwrap_or_default();
        let statement = format!("{}{line}", self.begun);
        Ok((
            start,
            if prefix.is_empty() {
                Vec::new()
            } else {
                self.words(prefix, &statement)
            },
        ))
    }
}

/// Whether a name, in quotes or without and in any case, begins with a text in lower case.
fn begins_with(name: &str, lower: &str) -> bool {
    name.trim_start_matches('"')
        .to_ascii_lowercase()
        .starts_with(lower)
}

/// Whether a name has no control characters, which would reach the terminal.
fn is_printable(name: &str) -> bool {
    escape(name) == name
}

/// The position at which the last word of a text begins.
fn word_start(text: &str) -> usize {
    text.char_indices()
        .rev()
        .take_while(|(_, c)| c.is_alphanumeric() || matches!(c, '_' | '.'))
        .last()
        .map_or(text.len(), |(at, _)| at)
}

/// The position of the quote that is still open, if it is `quote`. Quotes in other quotes are text.
fn open_quote(text: &str, quote: char) -> Option<usize> {
    let mut open: Option<(usize, char)> = None;
    for (at, c) in text.char_indices().filter(|(_, c)| matches!(c, '\'' | '"')) {
        open = match open {
            None => Some((at, c)),
            Some((_, opened)) if opened == c => None,
            other => other,
        };
    }
    open.filter(|(_, opened)| *opened == quote)
        .map(|(at, _)| at)
}

/// Whether an input is complete: a command of the prompt, or a text whose last token is a
/// semicolon.
pub(super) fn is_complete(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || !matches!(PromptCommand::of(text), PromptCommand::Statements(_)) {
        return true;
    }
    // A text that cannot be tokenized has an open quote or an error, which the parser reports.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, text).tokenize() else {
        return open_quote(text, '\'').is_none() && open_quote(text, '"').is_none();
    };
    let last = tokens
        .iter()
        .rev()
        .find(|token| !matches!(token, Token::Whitespace(_)));
    matches!(last, None | Some(Token::SemiColon))
}

impl Hinter for SqlHelper {
    type Hint = String;
}

impl Highlighter for SqlHelper {
    fn highlight<'l>(&self, line: &'l str, _position: usize) -> Cow<'l, str> {
        match line.starts_with('\\') {
            true => Cow::Borrowed(line),
            false => Cow::Owned(highlighted(line)),
        }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _is_default: bool,
    ) -> Cow<'b, str> {
        Cow::Owned(format!("{PROMPT}{prompt}{PROMPT:#}"))
    }

    fn highlight_char(&self, line: &str, _position: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor && line.len() <= LONG_LINE
    }
}

impl Validator for SqlHelper {}

impl Helper for SqlHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_at_its_semicolon() {
        for text in [
            "",
            "SELECT 1;",
            "SELECT 1; -- so",
            "\\d",
            "quit",
            "EXIT",
            ".tables",
            "SELECT ';';",
            "-- nothing",
        ] {
            assert!(is_complete(text), "{text}");
        }
        for text in ["SELECT 1", "SELECT ';", "SELECT ';'", "SELECT 1 -- ;"] {
            assert!(!is_complete(text), "{text}");
        }
    }

    #[tokio::test]
    async fn words_are_completed_in_their_case_and_paths_in_quotes() {
        let helper = SqlHelper::new(&SessionContext::new(), &Handle::current());
        let words = |begun: &str| {
            helper
                .words(begun, "")
                .into_iter()
                .map(|pair| pair.replacement)
                .collect::<Vec<_>>()
        };
        assert_eq!(words("SEL"), ["SELECT"]);
        assert!(words("arra").contains(&"array_length".to_owned()));
        assert_eq!(words("tfrec"), ["tfrecord"]);
        assert_eq!(open_quote("FROM 'a/b", '\''), Some(5));
        assert_eq!(open_quote("FROM 'a/b' WHERE x = 'y", '\''), Some(21));
        assert_eq!(open_quote("FROM 'a/b' ", '\''), None);
        assert_eq!(open_quote("\"it's", '"'), Some(0));
        assert_eq!(open_quote("\"it's", '\''), None);
    }

    #[tokio::test]
    async fn names_with_capitals_are_completed() {
        let context = SessionContext::new();
        context
            .sql("CREATE VIEW \"Photos\" AS SELECT 1")
            .await
            .unwrap();
        let helper = SqlHelper::new(&context, &Handle::current());
        for begun in ["pho", "Pho", "PHO"] {
            assert!(
                helper
                    .words(begun, "")
                    .iter()
                    .any(|pair| pair.replacement == "\"Photos\""),
                "{begun}"
            );
        }
    }

    #[tokio::test]
    async fn names_with_control_characters_are_not_completed() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "plain.tfrecord",
            "p\u{1b}[31mred.tfrecord",
            "p\u{202e}x.tfrecord",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let context = SessionContext::new();
        context
            .sql("CREATE VIEW \"p\u{1b}[31m\" AS SELECT 1")
            .await
            .unwrap();
        let helper = SqlHelper::new(&context, &Handle::current());
        assert!(
            helper
                .words("p", "")
                .iter()
                .all(|pair| is_printable(&pair.replacement))
        );
        let line = format!("FROM '{}/p", folder.path().display());
        let history = rustyline::history::MemHistory::new();
        let (_, found) = helper
            .complete(&line, line.len(), &Context::new(&history))
            .unwrap();
        let found: Vec<_> = found.into_iter().map(|pair| pair.display).collect();
        assert_eq!(found, ["plain.tfrecord"]);
    }
}
