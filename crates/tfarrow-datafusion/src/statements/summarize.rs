//! `SUMMARIZE 'shards/'` and `SUMMARIZE SELECT ..`, which the parser does not know.

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

/// Replaces `SUMMARIZE` and its argument by a query of the table function `summarize`. Other statements stay as they are.
///
/// ```text
/// SUMMARIZE 'a', 'b'       SELECT * FROM summarize('a', 'b')
/// SUMMARIZE SELECT 1       SELECT * FROM summarize((SELECT 1))
/// SUMMARIZE t              SELECT * FROM summarize((SELECT * FROM t))
/// ```
///
/// # Errors
/// No argument.
pub(super) fn expand(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let words: Vec<_> = tokens.iter().enumerate().filter(|(_, token)| is_significant(token)).take(2).collect();
    let (start, [before, after]) = match words.as_slice() {
        [(start, first), source @ ..] if is_word(&first.token, &[SUMMARIZE]) => match source.first().and_then(around) {
            Some(around) => (start + 1, around),
            None => return plan_err!("SUMMARIZE takes names of files, a table or a query, as SUMMARIZE 'shards/'"),
        },
        _ => return Ok(tokens),
    };
    let source = tokens.split_off(start).into_iter().filter(is_significant);
    let parse = |text: &str| Tokenizer::new(&GenericDialect {}, text).tokenize().map_err(ParserError::from);
    let call = parse(&format!("SELECT * FROM summarize({before}"))?.into_iter().map(TokenWithSpan::wrap);
    Ok(call.chain(source).chain(parse(&format!("{after})"))?.into_iter().map(TokenWithSpan::wrap)).collect())
}

/// The texts before and after an argument of the function, by the first token of the argument of the statement; `None` for
/// one that no argument begins with. A query is an argument only if it begins with SELECT or WITH.
fn around((_, first): &(usize, &TokenWithSpan)) -> Option<[&'static str; 2]> {
    match &first.token {
        Token::SingleQuotedString(_) => Some(["", ""]),
        token if is_word(token, &["SELECT", "WITH"]) => Some(["(", ")"]),
        token if is_word(token, &["FROM"]) => Some(["(SELECT * ", ")"]),
        token if is_word(token, &["VALUES", "TABLE"]) || *token == Token::LParen => Some(["(SELECT * FROM (", "))"]),
        Token::Word(_) => Some(["(SELECT * FROM ", ")"]),
        _ => None,
    }
}

/// Whether a token is one of these keywords, and not a name in quotes.
fn is_word(token: &Token, words: &[&str]) -> bool {
    let is = |found: &str| words.iter().any(|word| found.eq_ignore_ascii_case(word));
    matches!(token, Token::Word(word) if word.quote_style.is_none() && is(&word.value))
}
