//! Styles of SQL at the prompt.

use anstyle::{AnsiColor, Style};
use datafusion::sql::sqlparser::{
    dialect::GenericDialect,
    keywords::Keyword,
    tokenizer::{Location, Token, Tokenizer, Whitespace},
};

const KEYWORD: Style = AnsiColor::Blue.on_default().bold();
const TEXT: Style = AnsiColor::Green.on_default();
const NUMBER: Style = AnsiColor::Cyan.on_default();
const COMMENT: Style = Style::new().dimmed();

/// The text with styles. Characters and their widths stay as they are.
pub(super) fn highlighted(text: &str) -> String {
    let mut tokens = Vec::new();
    // The tokens before an error, such as a quote without an end, are complete.
    let is_complete = Tokenizer::new(&GenericDialect {}, text)
        .tokenize_with_location_into_buf(&mut tokens)
        .is_ok();
    let starts = LineStarts::of(text);
    let mut shown = String::with_capacity(text.len() * 2);
    let mut done = 0;
    for token in &tokens {
        let end = starts.offset(token.span.end).clamp(done, text.len());
        push(
            &mut shown,
            style(&token.token),
            text.get(done..end).unwrap_or_default(),
        );
        done = end;
    }
    let rest = text.get(done..).unwrap_or_default();
    let is_quote = !is_complete && rest.trim_start().starts_with('\'');
    push(&mut shown, is_quote.then_some(TEXT), rest);
    shown
}

fn push(shown: &mut String, style: Option<Style>, text: &str) {
    match style {
        Some(style) if !text.is_empty() => shown.push_str(&format!("{style}{text}{style:#}")),
        _ => shown.push_str(text),
    }
}

fn style(token: &Token) -> Option<Style> {
    match token {
        Token::Word(word) if word.quote_style.is_none() && word.keyword != Keyword::NoKeyword => {
            Some(KEYWORD)
        }
        Token::Number(..) => Some(NUMBER),
        Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_) => Some(TEXT),
        Token::Whitespace(
            Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_),
        ) => Some(COMMENT),
        _ => None,
    }
}

/// The bytes at which the lines of a text begin.
struct LineStarts<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> LineStarts<'t> {
    fn of(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// The byte of a location, whose line and column count from 1; the end of the text for a
    /// location after it.
    fn offset(&self, Location { line, column }: Location) -> usize {
        let start = self
            .starts
            .get(index_of(line))
            .copied()
            .unwrap_or(self.text.len());
        let line = self.text.get(start..).unwrap_or_default();
        line.char_indices()
            .nth(index_of(column))
            .map_or(self.text.len(), |(offset, _)| start + offset)
    }
}

/// The index of a number that counts from 1.
fn index_of(number: u64) -> usize {
    usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_styles_by_kind() {
        let on = KEYWORD.to_string();
        let off = format!("{KEYWORD:#}");
        assert_eq!(highlighted("SELECT x"), format!("{on}SELECT{off} x"));
        assert_eq!(
            highlighted("'a\nb' 1"),
            format!("{TEXT}'a\nb'{TEXT:#} {NUMBER}1{NUMBER:#}")
        );
        assert_eq!(
            highlighted("x -- so"),
            format!("x {COMMENT}-- so{COMMENT:#}")
        );
        assert_eq!(highlighted("x 'open"), format!("x {TEXT}'open{TEXT:#}"));
    }

    #[test]
    fn the_text_stays_as_it_is() {
        for text in [
            "",
            " ",
            "SELECT 'ä', \"ö\"\n FROM 'x';\n",
            "\\d",
            "1..2 ~ @ \u{1f600}",
            "/* open",
            "\"open",
            "$$",
            "U&'\\",
        ] {
            assert_eq!(
                anstream::adapter::strip_str(&highlighted(text)).to_string(),
                text,
                "{text}"
            );
        }
    }
}
