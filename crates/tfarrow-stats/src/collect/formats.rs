//! The format of a byte string, guessed from its first bytes.

use tfarrow_codec::infer::has_control_character;

/// A format that a byte string looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFormat {
    /// An unknown format.
    Other,
    /// A value of no bytes.
    Empty,
    /// UTF-8 without [control characters](has_control_character), and not JSON.
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
    /// A TIFF image, which the statistics of images leave out.
    Tiff,
    /// An AVI video.
    Avi,
    /// An MP4 video, or another file of the ISO base media format.
    Mp4,
    /// A WebM or Matroska video.
    WebM,
    /// An Ogg sound or video.
    Ogg,
    /// A NumPy array.
    NumPy,
    /// An HDF5 file.
    Hdf5,
    /// A PDF document.
    Pdf,
    /// A zip archive.
    Zip,
    /// Zstandard.
    Zstd,
}

impl ValueFormat {
    /// Number of formats.
    pub const COUNT: usize = Self::ALL.len();

    /// All formats, in the order of their discriminants.
    pub const ALL: [Self; 24] = [
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
        Self::Tiff,
        Self::Avi,
        Self::Mp4,
        Self::WebM,
        Self::Ogg,
        Self::NumPy,
        Self::Hdf5,
        Self::Pdf,
        Self::Zip,
        Self::Zstd,
    ];

    /// Guesses the format of a value. `is_text` is true if the value is UTF-8 without
    /// [control characters](has_control_character).
    pub fn of(value: &[u8], is_text: bool) -> Self {
        match value {
            [] => Self::Empty,
            [0xff, 0xd8, 0xff, ..] => Self::Jpeg,
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Self::Png,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Self::Gif,
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Self::WebP,
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'A',
                b'V',
                b'E',
                ..,
            ] => Self::Wav,
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'A',
                b'V',
                b'I',
                b' ',
                ..,
            ] => Self::Avi,
            [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => Self::Tiff,
            [_, _, _, _, b'f', b't', b'y', b'p', ..] if !is_text => Self::Mp4,
            [0x1a, 0x45, 0xdf, 0xa3, ..] => Self::WebM,
            [b'O', b'g', b'g', b'S', 0, ..] => Self::Ogg,
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Self::NumPy,
            [0x89, b'H', b'D', b'F', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Self::Hdf5,
            [b'%', b'P', b'D', b'F', b'-', ..] => Self::Pdf,
            [b'P', b'K', 3, 4, ..] => Self::Zip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
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
        matches!(
            self,
            Self::Jpeg | Self::Png | Self::Gif | Self::WebP | Self::Bmp
        )
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
            Self::Tiff => "TIFF",
            Self::Avi => "AVI",
            Self::Mp4 => "MP4",
            Self::WebM => "WebM",
            Self::Ogg => "Ogg",
            Self::NumPy => "NumPy",
            Self::Hdf5 => "HDF5",
            Self::Pdf => "PDF",
            Self::Zip => "zip",
            Self::Zstd => "zstd",
        }
    }
}

/// Returns whether a value is UTF-8 (`is_utf8`) without control characters, by the rule for columns
/// of text.
pub(crate) fn is_text(value: &[u8], is_utf8: bool) -> bool {
    is_utf8 && !has_control_character(value)
}

fn is_json(value: &[u8]) -> bool {
    let text = value.trim_ascii();
    matches!(
        (text.first(), text.last()),
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
    ) && text.len() > 1
}

/// Returns whether a value begins with field 1, a `DataType` of one byte, and field 2, a
/// `TensorShapeProto` of less than 128 bytes that is empty or begins with its field 2.
fn is_tensor(value: &[u8]) -> bool {
    let [0x08, 1..=30, 0x12, length, rest @ ..] = value else {
        return false;
    };
    let length = usize::from(*length);
    length < 0x80
        && rest
            .get(..length)
            .is_some_and(|shape| shape.is_empty() || shape.first() == Some(&0x12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognized_by_their_first_bytes() {
        let of = |value: &[u8]| {
            ValueFormat::of(value, is_text(value, std::str::from_utf8(value).is_ok())).name()
        };
        for (value, expect) in [
            (&b""[..], "empty"),
            (b"words", "text"),
            (b" {\"a\": 1}\n", "JSON"),
            (b"[", "text"),
            (b" \t\r\n\x0c", "text"),
            (b"\x0b", "other"),
            ("größe\u{85}".as_bytes(), "text"),
            (b"\0", "other"),
            (b"\x01", "other"),
            (b"a\x1b[2J", "other"),
            (b"{\x7f}", "other"),
            (b"\xff\xd8\xff\xe0", "JPEG"),
            (b"\x89PNG\r\n\x1a\n", "PNG"),
            (b"GIF89a", "GIF"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "WebP"),
            (b"RIFF\0\0\0\0WAVEfmt ", "WAV"),
            (b"\x1f\x8b\x08\0", "gzip"),
            (b"RIFF\0\0\0\0AVI LIST", "AVI"),
            (b"II*\0\x08\0\0\0", "TIFF"),
            (b"\0\0\0\x18ftypmp42", "MP4"),
            (b"abcdftyp", "text"),
            (b"\x1a\x45\xdf\xa3", "WebM"),
            (b"OggS\0\x02", "Ogg"),
            (b"\x93NUMPY\x01\0", "NumPy"),
            (b"\x89HDF\r\n\x1a\n", "HDF5"),
            (b"%PDF-1.7\n", "PDF"),
            (b"PK\x03\x04", "zip"),
            (b"\x28\xb5\x2f\xfd", "zstd"),
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
