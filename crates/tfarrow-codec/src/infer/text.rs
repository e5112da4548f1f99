//! Whether byte strings are text.
//!
//! Arrays of small integers, such as images of few grey levels, may be valid UTF-8, but have
//! control characters. Text has them seldom, so that a share of the values decides
//! (`KindSummary::is_text`).

/// Returns whether a value is UTF-8. Most values are short ASCII, which is checked first since that
/// is faster.
#[inline]
pub(super) fn is_utf8(value: &[u8]) -> bool {
    value.is_ascii() || simdutf8::basic::from_utf8(value).is_ok()
}

/// Returns whether a value has an ASCII control character other than a tab, a line feed, a form
/// feed or a carriage return.
///
/// ```
/// use tfarrow_codec::infer::has_control_character;
/// assert!(has_control_character(b"\x00\x01\x02") && has_control_character(b"\x7f"));
/// assert!(!has_control_character(b"two\r\nlines"));
/// ```
#[inline]
pub fn has_control_character(value: &[u8]) -> bool {
    let is_control =
        |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r');
    // A block without a branch for each byte is checked with vector instructions.
    value.chunks(64).any(|block| {
        block
            .iter()
            .fold(false, |found, byte| found | is_control(byte))
    })
}
