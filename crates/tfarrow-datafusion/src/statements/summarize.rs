//! `SUMMARIZE 'shards/'`, which the parser does not know.

use datafusion::{
    common::plan_err,
    error::Result,
    sql::sqlparser::{
        dialect::GenericDialect,
        parser::ParserError,
        tokenizer::{Token, TokenWithSpan, Tokenizer},
    },
};

use super::is_significant;

/// The name of the statement, and of the table function that it calls.
pub(crate) const SUMMARIZE: &str = "summarize";

/// Replaces `SUMMARIZE 'a', 'b'` by a query of the table function `summarize`. Other statements stay as they are.
///
/// # Errors
/// A query, or the name of a table, in place of files.
pub(super) fn expand(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let words: Vec<_> = tokens.iter().enumerate().filter(|(_, token)| is_significant(token)).take(2).collect();
    let start = match words.as_slice() {
        [(start, first), source @ ..] if is_summarize(&first.token) => match source {
            [(_, source)] if matches!(source.token, Token::SingleQuotedString(_)) => start + 1,
            _ => {
                return plan_err!(
                    "SUMMARIZE takes names of files, as SUMMARIZE 'shards/'; for a query, COPY its result to a file first"
                );
            }
        },
        _ => return Ok(tokens),
    };
    let sources = tokens.split_off(start).into_iter().filter(is_significant);
    let call = Tokenizer::new(&GenericDialect {}, "SELECT * FROM summarize(").tokenize().map_err(ParserError::from)?;
    let call = call.into_iter().map(TokenWithSpan::wrap);
    Ok(call.chain(sources).chain([TokenWithSpan::wrap(Token::RParen)]).collect())
}

/// Whether a token is the keyword, and not a name in quotes.
fn is_summarize(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(SUMMARIZE))
}
