//! Compression of complete shards: its names, its file name endings, and how it is recognized.

use tfarrow_codec::{frame::length, named_values};

use crate::snappy::begins_with_record;

/// Compression of a complete shard.
///
/// TensorFlow's [`TFRecordOptions`] has the first three values; its datasets also read and write
/// Snappy.
///
/// [`TFRecordOptions`]: https://www.tensorflow.org/api_docs/python/tf/io/TFRecordOptions
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// gzip (RFC 1952), in one member or several.
    Gzip,
    /// zlib (RFC 1950).
    Zlib,
    /// Snappy in blocks, each after its length, as TensorFlow writes it.
    Snappy,
}

named_values!(Compression {
    None = "none": "Do not compress",
    Gzip = "gzip": "gzip (RFC 1952)",
    Zlib = "zlib": "zlib (RFC 1950)",
    Snappy = "snappy": "Snappy in the blocks of TensorFlow",
});

impl Compression {
    /// Endings of the names of compressed files, after the last dot, each with its compression.
    pub const ENDINGS: [(&str, Self); 5] = [
        ("gz", Self::Gzip),
        ("gzip", Self::Gzip),
        ("zz", Self::Zlib),
        ("zlib", Self::Zlib),
        ("snappy", Self::Snappy),
    ];

    /// The ending that names of output files get, including the dot; empty without compression.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zlib => ".zlib",
            Self::Snappy => ".snappy",
        }
    }

    /// Splits a file name into the name without the ending of a compression, and that compression,
    /// if there is one.
    ///
    /// ```
    /// use tfarrow_dataset::Compression;
    /// assert_eq!(Compression::of_name("a.tfrecord.GZ"), ("a.tfrecord", Some(Compression::Gzip)));
    /// assert_eq!(Compression::of_name("a.tfrecord"), ("a.tfrecord", None));
    /// ```
    pub fn of_name(name: &str) -> (&str, Option<Self>) {
        let (stem, compression) = Self::of_name_bytes(name.as_bytes());
        (name.get(..stem.len()).unwrap_or(name), compression)
    }

    /// Does the same for a name that need not be UTF-8.
    pub(crate) fn of_name_bytes(name: &[u8]) -> (&[u8], Option<Self>) {
        for (ending, compression) in Self::ENDINGS {
            if let Some(stem) = strip_extension(name, ending) {
                return (stem, Some(compression));
            }
        }
        (name, None)
    }

    /// Recognizes the compression of a file by its first bytes, about 64 of which are needed for
    /// Snappy: it has no magic number, and is recognized by the CRC of the first record's length.
    ///
    /// A file that begins with a record's length whose CRC matches is plain TFRecord, even if the
    /// bytes of the length are a magic number: a first record of 35,615 bytes begins like gzip, one
    /// of 40,056 bytes like zlib.
    pub fn of(head: &[u8]) -> Self {
        if length(head).is_some() {
            return Self::None;
        }
        match *head {
            [0x1f, 0x8b] | [0x1f, 0x8b, 0x08, ..] => Self::Gzip,
            // zlib: the compression method is 8 (deflate), the window has at most 32 KiB, there is
            // no preset dictionary, and the two bytes are a multiple of 31.
            [cmf, flg, ..]
                if cmf & 0x0f == 8
                    && cmf >> 4 <= 7
                    && flg & 0x20 == 0
                    && u16::from_be_bytes([cmf, flg]) % 31 == 0 =>
            {
                Self::Zlib
            }
            _ if begins_with_record(head) => Self::Snappy,
            _ => Self::None,
        }
    }
}

/// Returns `name` without `extension` and the dot before it, in upper or lower case. `None` if the
/// name has another extension, or nothing before this one.
pub(crate) fn strip_extension<'a>(name: &'a [u8], extension: &str) -> Option<&'a [u8]> {
    let (stem, end) = name.split_at_checked(name.len().checked_sub(extension.len())?)?;
    let stem = stem.strip_suffix(b".")?;
    (!stem.is_empty() && end.eq_ignore_ascii_case(extension.as_bytes())).then_some(stem)
}
