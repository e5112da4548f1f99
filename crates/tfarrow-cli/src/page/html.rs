//! Text, as a page may have it.

use std::fmt::Write;

use crate::output::{blob, escape};

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

/// The beginning of a text as HTML: of so many characters.
pub(super) fn beginning(whole: &str, most: usize) -> String {
    match whole.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text(whole.get(..end).unwrap_or_default())),
        None => text(whole),
    }
}

/// The beginning of a byte string as HTML: text where it is some, else what it looks like. `length` is that of all of it.
pub(super) fn bytes(bytes: &[u8], length: usize, most: usize) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Ok(whole) => Some(whole),
        // A character was cut in two.
        Err(error) if error.error_len().is_none() && length > bytes.len() => {
            bytes.get(..error.valid_up_to()).and_then(|whole| std::str::from_utf8(whole).ok())
        }
        Err(_) => None,
    };
    match whole {
        Some(whole) if length > bytes.len() && whole.chars().count() <= most => format!("{}…", text(whole)),
        Some(whole) => beginning(whole, most),
        None => text(&blob(bytes, length)),
    }
}

/// A source as a page may tell it: of URLs neither who asks nor what signs.
pub(super) fn source(source: &str) -> &str {
    if !source.contains("://") {
        return source;
    }
    let path = source.split_once('?').map_or(source, |(path, _)| path);
    path.split_once('@').filter(|(user, _)| user.matches('/').count() == 2).map_or(path, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(text("<script>\"a\" & 'b'`\u{1b}"), "&#60;script&#62;&#34;a&#34; &#38; &#39;b&#39;&#96;\\u{1b}");
        assert_eq!(bytes(b"\xff\xd8\xff", 5_000, 3), "&#60;JPEG 5.0 kB&#62;");
    }

    #[test]
    fn what_is_cut_is_told() {
        assert_eq!(beginning("äöü", 3), "äöü");
        assert_eq!(beginning("äöü", 2), "äö…");
        assert_eq!(bytes("aé".as_bytes().get(..2).unwrap(), 9, 80), "a…");
        assert_eq!(bytes(b"a\xc3", 2, 80), "&#60;bytes 2 B&#62;");
    }

    #[test]
    fn secrets_of_urls_are_not_told() {
        assert_eq!(source("https://host/a@b.tfrecord?X-Amz-Signature=1"), "https://host/a@b.tfrecord");
        assert_eq!(source("https://me:word@host/a"), "host/a");
        assert_eq!(source("what?.tfrecord"), "what?.tfrecord");
    }
}
