//! Escapes for control characters, which must not reach a terminal or a page.

use std::io;

use serde::Serialize;
pub use tfarrow_columnar::is_control;

/// Returns `text` with its control characters escaped as in Rust (`\n`, `\u{1b}`).
pub fn escape(text: &str) -> String {
    escape_except(text, &[])
}

/// Returns `text` with its control characters escaped, except those of `keep`.
pub fn escape_except(text: &str, keep: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) && !keep.contains(&c) {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
    }
    out
}

/// Returns `value` as indented JSON. Control characters are escaped, except the line feeds between
/// values.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn pretty_json<T: Serialize + ?Sized>(value: &T) -> io::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Line feeds of values are escaped already. The control characters that JSON leaves have 16
        // bits.
        if c != '\n' && is_control(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)))
        } else {
            out.push(c)
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            escape("a\x1b[2Jb\n\u{9b}\u{202e}é"),
            "a\\u{1b}[2Jb\\n\\u{9b}\\u{202e}é"
        );
        assert_eq!(
            escape("\u{61c}\u{2028}\u{2067}"),
            "\\u{61c}\\u{2028}\\u{2067}"
        );
    }
}
