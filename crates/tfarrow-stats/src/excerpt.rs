//! The first bytes of a value, in texts and in JSON.

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use serde::Serialize;

/// Largest number of bytes of a value that is shown.
const MAX_SHOWN_BYTES: usize = 256;

/// Returns the beginning of a value that is shown. UTF-8 is cut between characters.
pub(crate) fn beginning(value: &[u8]) -> &[u8] {
    let Some(start) = value
        .get(..MAX_SHOWN_BYTES)
        .filter(|_| value.len() > MAX_SHOWN_BYTES)
    else {
        return value;
    };
    match std::str::from_utf8(start) {
        // The bytes at the end begin a character.
        Err(error) if error.error_len().is_none() => {
            start.get(..error.valid_up_to()).unwrap_or(start)
        }
        _ => start,
    }
}

/// Returns the beginning of a value of this length as text, with U+FFFD for bytes that are not
/// UTF-8.
pub(crate) fn excerpt(value: &[u8], length: u64) -> String {
    let start = beginning(value);
    let more = if (start.len() as u64) < length {
        "…"
    } else {
        ""
    };
    format!("{}{more}", String::from_utf8_lossy(start))
}

/// Serializes the first [`MAX_SHOWN_BYTES`] of a value: as a string if all of it is UTF-8, else as
/// `{"b64": ".."}`, which is also the form of `head` and `sql`.
pub(crate) fn text_or_bytes<S: serde::Serializer>(
    value: &[u8],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(value) {
        Ok(text) => serializer.serialize_str(
            text.get(..text.floor_char_boundary(MAX_SHOWN_BYTES))
                .unwrap_or(text),
        ),
        Err(_) => {
            let bytes = STANDARD.encode(value.get(..MAX_SHOWN_BYTES).unwrap_or(value));
            std::collections::BTreeMap::from([("b64", bytes)]).serialize(serializer)
        }
    }
}
