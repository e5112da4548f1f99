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

/// Replaces each `SUMMARIZE` and its argument by a query of the table function `summarize`. Other
/// statements stay as they are.
///
/// ```text
/// SUMMARIZE 'a', 'b'              SELECT * FROM summarize('a', 'b')
/// SUMMARIZE SELECT 1              SELECT * FROM summarize((SELECT 1))
/// SUMMARIZE t                     SELECT * FROM summarize((SELECT * FROM t))
/// EXPLAIN SUMMARIZE t             EXPLAIN SELECT * FROM summarize((SELECT * FROM t))
/// SELECT 1 FROM (SUMMARIZE t)     SELECT 1 FROM (SELECT * FROM summarize((SELECT * FROM t)))
/// ```
///
/// # Errors
/// No argument.
pub(super) fn expand(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let first = tokens.iter().find(|token| is_significant(token));
    if first.is_some_and(|first| is_word(&first.token, &[SUMMARIZE])) && find(&tokens).is_none() {
        return plan_err!(
            "SUMMARIZE takes names of files, a table or a query, as SUMMARIZE 'shards/'"
        );
    }
    while let Some((start, end, [before, after])) = find(&tokens) {
        let rest = tokens.split_off(end);
        let source: Vec<_> = tokens
            .drain(start..)
            .skip(1)
            .filter(is_significant)
            .collect();
        tokens.extend(tokenized(&format!("SELECT * FROM summarize({before}"))?);
        tokens.extend(source);
        tokens.extend(tokenized(&format!("{after})"))?);
        tokens.extend(rest);
    }
    Ok(tokens)
}

/// The tokens of a text, which have no place in the statement.
fn tokenized(text: &str) -> Result<Vec<TokenWithSpan>> {
    let tokens = Tokenizer::new(&GenericDialect {}, text)
        .tokenize()
        .map_err(ParserError::from)?;
    Ok(tokens.into_iter().map(TokenWithSpan::wrap).collect())
}

/// Finds the first `SUMMARIZE` that begins a query: its place, that of the end of its argument, and
/// the texts around the argument of the function.
fn find(tokens: &[TokenWithSpan]) -> Option<(usize, usize, [&'static str; 2])> {
    let mut significant = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| is_significant(token))
        .peekable();
    let (mut creates, mut before): (_, Option<&Token>) = (false, None);
    while let Some((at, token)) = significant.next() {
        let token = &token.token;
        let begins = match before {
            None => true,
            Some(&Token::LParen) => !significant
                .peek()
                .is_some_and(|(_, next)| is_word(&next.token, &["FROM"])),
            Some(before) => {
                is_word(before, &["EXPLAIN", "ANALYZE", "VERBOSE"])
                    || creates && is_word(before, &["AS"])
            }
        };
        if begins
            && is_word(token, &[SUMMARIZE])
            && let Some(around) = significant.peek().and_then(around)
        {
            return Some((at, end(tokens, at), around));
        }
        creates |= before.is_none() && is_word(token, &["CREATE"]);
        before = Some(token);
    }
    None
}

/// The place after the argument that follows the token at `start`: that of the parenthesis that
/// closes one before it, or the end of the statement.
fn end(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return at,
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The texts before and after an argument of the function, by the first token of the argument of
/// the statement; `None` for one that no argument begins with. A query is an argument only if it
/// begins with SELECT or WITH.
fn around((_, first): &(usize, &TokenWithSpan)) -> Option<[&'static str; 2]> {
    match &first.token {
        Token::SingleQuotedString(_) => Some(["", ""]),
        token if is_word(token, &["SELECT", "WITH"]) => Some(["(", ")"]),
        token if is_word(token, &["FROM"]) => Some(["(SELECT * ", ")"]),
        token if is_word(token, &["VALUES", "TABLE"]) || *token == Token::LParen => {
            Some(["(SELECT * FROM (", "))"])
        }
        Token::Word(_) => Some(["(SELECT * FROM ", ")"]),
        _ => None,
    }
}

/// Whether a token is one of these keywords, and not a name in quotes.
fn is_word(token: &Token, words: &[&str]) -> bool {
    let Token::Word(found) = token else {
        return false;
    };
    found.quote_style.is_none()
        && words
            .iter()
            .any(|word| found.value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(statement: &str, expected: &str) {
        let tokens = Tokenizer::new(&GenericDialect {}, statement)
            .tokenize()
            .unwrap();
        let expanded = expand(tokens.into_iter().map(TokenWithSpan::wrap).collect()).unwrap();
        let text = |tokens: &[Token]| {
            let words = tokens
                .iter()
                .filter(|token| !matches!(token, Token::Whitespace(_)));
            words.map(ToString::to_string).collect::<Vec<_>>()
        };
        let found: Vec<_> = expanded.into_iter().map(|token| token.token).collect();
        let expected = Tokenizer::new(&GenericDialect {}, expected)
            .tokenize()
            .unwrap();
        assert_eq!(text(&found), text(&expected));
    }

    #[test]
    fn a_query_that_begins_with_summarize_calls_the_function() {
        check("SUMMARIZE 'a', 'b'", "SELECT * FROM summarize('a', 'b')");
        check("summarize SELECT 1", "SELECT * FROM summarize((SELECT 1))");
        check(
            "EXPLAIN ANALYZE SUMMARIZE t",
            "EXPLAIN ANALYZE SELECT * FROM summarize((SELECT * FROM t))",
        );
        check(
            "CREATE TABLE x AS SUMMARIZE t",
            "CREATE TABLE x AS SELECT * FROM summarize((SELECT * FROM t))",
        );
        check(
            "COPY (SUMMARIZE 'a') TO 'b.csv'",
            "COPY (SELECT * FROM summarize('a')) TO 'b.csv'",
        );
        check(
            "SELECT kind FROM (SUMMARIZE SELECT (1)) WHERE kind = 'x'",
            "SELECT kind FROM (SELECT * FROM summarize((SELECT (1)))) WHERE kind = 'x'",
        );
        check(
            "SUMMARIZE SELECT * FROM (SUMMARIZE 'a')",
            "SELECT * FROM summarize((SELECT * FROM (SELECT * FROM summarize('a'))))",
        );
    }

    #[test]
    fn summarize_is_also_a_name() {
        for statement in [
            "SELECT 1 AS summarize FROM t",
            "SELECT summarize FROM t",
            "SELECT sum(summarize) FROM t",
            "SELECT trim(summarize FROM t)",
            "SELECT * FROM summarize('a')",
            "SELECT * FROM \"summarize\"",
        ] {
            check(statement, statement);
        }
    }

    #[test]
    fn an_argument_is_needed() {
        assert!(expand(vec![TokenWithSpan::wrap(Token::make_keyword("SUMMARIZE"))]).is_err());
    }
}
