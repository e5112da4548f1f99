//! Text of the page without control characters. The templates escape it as HTML.

use crate::text::{blob, escape};

/// Length of names in characters.
pub(super) const NAME_CHARS: usize = 120;

/// The first `chars` characters of a text, and an ellipsis where there are more; control characters
/// are escaped.
pub(super) fn excerpt(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", escape(text.get(..end).unwrap_or_default())),
        None => escape(text),
    }
}

/// The name of a feature as text, with `[]` for a feature list.
pub(super) fn feature_name(name: &str, is_list: bool) -> String {
    let name = if name.is_empty() { "\"\"" } else { name };
    format!(
        "{}{}",
        excerpt(name, NAME_CHARS),
        if is_list { "[]" } else { "" }
    )
}

/// An excerpt of a byte string that is UTF-8; else its format and size. `bytes` may be the
/// beginning of a value of `length` bytes.
pub(super) fn bytes_excerpt(bytes: &[u8], length: usize, chars: usize) -> String {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        // The cut divides a character.
        Err(error) if error.error_len().is_none() && length > bytes.len() => bytes
            .get(..error.valid_up_to())
            .and_then(|valid| std::str::from_utf8(valid).ok()),
        Err(_) => None,
    };
    match text {
        Some(text) if length > bytes.len() && text.chars().count() <= chars => {
            format!("{}…", escape(text))
        }
        Some(text) => excerpt(text, chars),
        None => blob(bytes, length),
    }
}

/// The name of a source. The credentials and the query of a URL, which may be a signature, are left
/// out.
pub(super) fn without_secrets(source: &str) -> &str {
    if !source.contains("://") {
        return source;
    }
    let path = source.split_once('?').map_or(source, |(path, _)| path);
    path.split_once('@')
        .filter(|(user, _)| user.matches('/').count() == 2)
        .map_or(path, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_escape_markup() {
        let text = excerpt("<script>\"a\" & b\u{1b}", 80);
        let attribute = maud::html! { p title=(text) { (text) } }.into_string();
        let escaped = "&lt;script&gt;&quot;a&quot; &amp; b\\u{1b}";
        assert_eq!(attribute, format!("<p title=\"{escaped}\">{escaped}</p>"));
        assert_eq!(bytes_excerpt(b"\xff\xd8\xff", 5_000, 3), "<JPEG 5.0 kB>");
    }

    #[test]
    fn an_ellipsis_marks_a_cut() {
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(excerpt("äöü", 2), "äö…");
        assert_eq!(
            bytes_excerpt("aé".as_bytes().get(..2).unwrap(), 9, 80),
            "a…"
        );
        assert_eq!(bytes_excerpt(b"a\xc3", 2, 80), "<bytes 2 B>");
    }

    #[test]
    fn secrets_of_urls_are_left_out() {
        assert_eq!(
            without_secrets("https://host/a@b.tfrecord?X-Amz-Signature=1"),
            "https://host/a@b.tfrecord"
        );
        assert_eq!(without_secrets("https://me:word@host/a"), "host/a");
        assert_eq!(without_secrets("what?.tfrecord"), "what?.tfrecord");
    }
}
