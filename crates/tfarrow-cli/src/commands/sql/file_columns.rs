//! The columns of the tables and files that a statement names, for completion.

use std::{
    collections::HashMap,
    sync::{Arc, mpsc},
    time::Duration,
};

use datafusion::{
    common::TableReference,
    prelude::SessionContext,
    sql::sqlparser::{
        dialect::GenericDialect,
        keywords::Keyword,
        tokenizer::{Token, Tokenizer},
    },
};
use tfarrow_dataset::internals::Lock;
use tokio::runtime::Handle;

/// Time that completion waits for the schema of a file. A schema that takes longer is there at a
/// later Tab.
const PATIENCE: Duration = Duration::from_millis(500);

/// The names of the columns of tables by the name of the table; `None` while they are read.
type Known = HashMap<String, Option<Vec<String>>>;

/// Reads the columns of tables and files, each once.
pub(super) struct FileColumns {
    context: SessionContext,
    runtime: Handle,
    known: Arc<Lock<Known>>,
}

impl FileColumns {
    pub(super) fn new(context: SessionContext, runtime: Handle) -> Self {
        Self {
            context,
            runtime,
            known: Arc::default(),
        }
    }

    /// The columns of the sources of a statement; of all sources so far, if it has none yet.
    pub(super) fn of_statement(&self, statement: &str) -> Vec<String> {
        let sources = sources(statement);
        sources.iter().for_each(|source| self.read(source));
        let known = self.known.lock();
        let mut columns = Vec::new();
        for (source, names) in known.iter() {
            let is_wanted = sources.is_empty() || sources.contains(source);
            if is_wanted && let Some(names) = names {
                columns.extend_from_slice(names);
            }
        }
        columns.sort();
        columns.dedup();
        columns
    }

    /// Reads the columns of a source, and waits for a short time.
    fn read(&self, source: &str) {
        {
            let mut known = self.known.lock();
            if known.contains_key(source) {
                return;
            }
            known.insert(source.to_owned(), None);
        }
        let (done, read) = mpsc::channel::<()>();
        let context = self.context.clone();
        let known = Arc::clone(&self.known);
        let source = source.to_owned();
        self.runtime.spawn(async move {
            let table = context
                .table_provider(TableReference::bare(source.as_str()))
                .await;
            let columns = table.map(|table| {
                table
                    .schema()
                    .fields()
                    .iter()
                    .map(|field| field.name().clone())
                    .collect()
            });
            match columns {
                Ok(columns) => drop(known.lock().insert(source, Some(columns))),
                // The file may exist at the next Tab.
                Err(_) => drop(known.lock().remove(&source)),
            }
            drop(done);
        });
        // The channel is closed when the columns are known.
        let _ = read.recv_timeout(PATIENCE);
    }
}

/// The names of tables and files after FROM and JOIN, and in the call of a table function there.
/// Standard input is left out, because reading it would wait for keys.
fn sources(statement: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    // A statement that is being typed may have a quote without an end.
    let _ =
        Tokenizer::new(&GenericDialect {}, statement).tokenize_with_location_into_buf(&mut tokens);
    let tokens = tokens.into_iter().map(|token| token.token);
    let tokens: Vec<_> = tokens
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect();
    let mut sources = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        if !matches!(
            word.keyword,
            Keyword::FROM | Keyword::JOIN | Keyword::DESCRIBE
        ) {
            continue;
        }
        let source = match tokens.get(index + 1..).unwrap_or_default() {
            [
                Token::Word(_),
                Token::LParen,
                Token::SingleQuotedString(source),
                ..,
            ]
            | [Token::SingleQuotedString(source), ..] => source.clone(),
            [Token::Word(word), ..] if word.quote_style.is_none() => {
                word.value.to_ascii_lowercase()
            }
            [Token::Word(word), ..] => word.value.clone(),
            _ => continue,
        };
        if source != "-" {
            sources.push(source);
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_follow_from_and_join() {
        assert_eq!(
            sources("SELECT 'x' FROM 'a b/' JOIN T u USING (id) WHERE c = 'y"),
            ["a b/", "t"]
        );
        assert_eq!(
            sources("SELECT * FROM read_tfrecord('a/', layout => 'list')"),
            ["a/"]
        );
        assert_eq!(sources("SELECT * FROM \"T\", '-'"), ["T"]);
        for none in [
            "",
            "SELECT 1",
            "SELECT * FROM",
            "SELECT * FROM '-'",
            "SELECT * FROM (SELECT 1)",
            "SELECT * FROM 'open",
        ] {
            assert_eq!(sources(none), [""; 0], "{none}");
        }
    }
}
