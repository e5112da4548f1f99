//! Text, as a page may have it.

use std::fmt::Write;

use crate::output::escape;

/// Text as HTML: what would be markup is not, here and in attributes, and control characters can be seen.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escape(text).chars() {
        match c {
            '<' | '>' | '&' | '"' | '\'' | '`' => {
                // A `String` takes all that is written to it.
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Bytes as HTML: text where they are some, else what they look like; no more than so many characters.
pub(super) fn bytes(bytes: &[u8], most: usize) -> String {
    match std::str::from_utf8(bytes) {
        Ok(whole) => {
            let cut: String = whole.chars().take(most).collect();
            let more = if cut.len() < whole.len() { "…" } else { "" };
            format!("{}{more}", text(&cut))
        }
        Err(_) => text(&crate::output::blob(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(text("<script>\"a\" & 'b'`\u{1b}"), "&#60;script&#62;&#34;a&#34; &#38; &#39;b&#39;&#96;\\u{1b}");
        assert_eq!(bytes(b"abcdef", 3), "abc…");
        assert_eq!(bytes(b"\xff\xd8\xff", 3), "&#60;JPEG 3 B&#62;");
    }
}
