//! JSON for people.

use std::io;

use serde::Serialize;

use super::escape::is_control;

/// Returns `value` as indented JSON. Control characters are escaped, except the line feeds between values.
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
