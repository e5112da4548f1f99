//! The format of a byte string, guessed from its first bytes.

/// A format that a byte string looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFormat {
    /// An unknown format.
    Other,
    /// A value of no bytes.
    Empty,
    /// UTF-8 without control characters other than white space, and not JSON.
    Text,
    /// A JSON object or array, judged by its first and last character.
    Json,
    /// A JPEG image.
    Jpeg,
    /// A PNG image.
    Png,
    /// A GIF image.
    Gif,
    /// A WebP image.
    WebP,
    /// A BMP image.
    Bmp,
    /// A WAV file.
    Wav,
    /// A FLAC file.
    Flac,
    /// An MP3 file, with or without an ID3 tag.
    Mp3,
    /// Data compressed with gzip.
    Gzip,
    /// A serialized `tensorflow.TensorProto`, judged by its `dtype` and `tensor_shape` fields.
    Tensor,
}

impl ValueFormat {
    /// Number of formats.
    pub const COUNT: usize = Self::ALL.len();

    /// All formats, in the order of their discriminants.
    pub const ALL: [Self; 14] = [
        Self::Other,
        Self::Empty,
        Self::Text,
        Self::Json,
        Self::Jpeg,
        Self::Png,
        Self::Gif,
        Self::WebP,
        Self::Bmp,
        Self::Wav,
        Self::Flac,
        Self::Mp3,
        Self::Gzip,
        Self::Tensor,
    ];

    /// Guesses the format of a value. `is_text` says whether the value is UTF-8 without control characters other than
    /// white space.
    pub fn of(value: &[u8], is_text: bool) -> Self {
        match value {
            [] => Self::Empty,
            [0xff, 0xd8, 0xff, ..] => Self::Jpeg,
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Self::Png,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Self::Gif,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Self::WebP,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Self::Wav,
            [b'f', b'L', b'a', b'C', ..] => Self::Flac,
            [b'I', b'D', b'3', 2..=4, ..] => Self::Mp3,
            [0xff, second, ..] if second & 0xe6 == 0xe2 => Self::Mp3,
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Self::Bmp,
            _ if is_tensor(value) => Self::Tensor,
            _ if is_text && is_json(value) => Self::Json,
            _ if is_text => Self::Text,
            _ => Self::Other,
        }
    }

    /// Returns whether the format is an image format.
    pub fn is_image(self) -> bool {
        matches!(self, Self::Jpeg | Self::Png | Self::Gif | Self::WebP | Self::Bmp)
    }

    /// Returns the name that reports print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Empty => "empty",
            Self::Text => "text",
            Self::Json => "JSON",
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Gif => "GIF",
            Self::WebP => "WebP",
            Self::Bmp => "BMP",
            Self::Wav => "WAV",
            Self::Flac => "FLAC",
            Self::Mp3 => "MP3",
            Self::Gzip => "gzip",
            Self::Tensor => "TensorProto",
        }
    }
}

/// Returns whether a value is UTF-8 (`is_utf8`) and has no control characters other than white space.
pub(crate) fn is_text(value: &[u8], is_utf8: bool) -> bool {
    let is_odd = |c: char| c.is_control() && !c.is_whitespace();
    is_utf8
        && match value.is_ascii() {
            true => !value.iter().any(|byte| is_odd(char::from(*byte))),
            false => std::str::from_utf8(value).is_ok_and(|text| !text.contains(is_odd)),
        }
}

fn is_json(value: &[u8]) -> bool {
    let text = value.trim_ascii();
    matches!((text.first(), text.last()), (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))) && text.len() > 1
}

/// Returns whether a value begins with field 1, a `DataType` of one byte, and field 2, a `TensorShapeProto` of less
/// than 128 bytes that is empty or begins with its field 2.
fn is_tensor(value: &[u8]) -> bool {
    let [0x08, 1..=30, 0x12, length, rest @ ..] = value else { return false };
    let length = usize::from(*length);
    length < 0x80 && rest.get(..length).is_some_and(|shape| shape.is_empty() || shape.first() == Some(&0x12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognized_by_their_first_bytes() {
        let of = |value: &[u8]| ValueFormat::of(value, is_text(value, std::str::from_utf8(value).is_ok())).name();
        for (value, expect) in [
            (&b""[..], "empty"),
            (b"words", "text"),
            (b" {\"a\": 1}\n", "JSON"),
            (b"[", "text"),
            (b" \t\r\n\x0b\x0c", "text"),
            ("größe\u{85}".as_bytes(), "text"),
            (b"\0", "other"),
            (b"\x01", "other"),
            (b"a\x1b[2J", "other"),
            (b"{\x7f}", "other"),
            ("größe\u{9b}".as_bytes(), "other"),
            (b"\xff\xd8\xff\xe0", "JPEG"),
            (b"\x89PNG\r\n\x1a\n", "PNG"),
            (b"GIF89a", "GIF"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "WebP"),
            (b"RIFF\0\0\0\0WAVEfmt ", "WAV"),
            (b"\x1f\x8b\x08\0", "gzip"),
            (b"\x08\x01\x12\x04\x12\x02\x08\x03\x22\x0c", "TensorProto"),
            (b"\x08\x01\x12\x00", "TensorProto"),
            (b"\xfe\xff", "other"),
        ] {
            assert_eq!(of(value), expect, "{value:?}");
        }
    }

    #[test]
    fn all_formats_are_listed_in_the_order_of_discriminants() {
        for (number, format) in ValueFormat::ALL.into_iter().enumerate() {
            assert_eq!(format as usize, number);
        }
    }
}
