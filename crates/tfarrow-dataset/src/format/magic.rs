//! Other formats, recognized by their magic numbers, and the message for a file of one of them.
//!
//! ```text
//! a.zip: not TFRecord: starts like zip; unpack it first
//!                                 name   next step
//! ```

use std::{fs::File, io::Read, path::Path};

/// The next step for a file in a compression that TFRecord does not have. Snappy here is its framing
/// format, which TensorFlow does not write.
const DECOMPRESS: &str =
    "decompress it first: the compressions of TFRecord are gzip, zlib and TensorFlow's Snappy";

/// Known formats: the magic number, the name, and the next step for the user, if there is one.
const MAGICS: &[(&[u8], &str, &str)] = &[
    (
        b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f",
        "ArrayRecord (a Riegeli file)",
        "read it with the array_record package, and write its records as TFRecord",
    ),
    (b"PAR1", "Parquet", ""),
    (b"ARROW1", "an Arrow IPC file", ""),
    (b"\xff\xff\xff\xff", "an Arrow IPC stream", ""),
    (b"FEA1", "Feather (version 1)", ""),
    (b"Obj\x01", "Avro", ""),
    (b"ORC", "ORC", ""),
    (b"SEQ", "a Hadoop sequence file", ""),
    (b"\x0a\x23\xd7\xce", "RecordIO of MXNet", ""),
    (b"\x89HDF\r\n\x1a\n", "HDF5", ""),
    (b"\x93NUMPY", "a NumPy array", ""),
    (b"SQLite format 3\0", "SQLite", ""),
    (b"PK\x03\x04", "zip", "unpack it first"),
    (b"PK\x05\x06", "zip", "it is empty"),
    (b"\x28\xb5\x2f\xfd", "zstd", DECOMPRESS),
    (b"BZh", "bzip2", DECOMPRESS),
    (b"\xfd7zXZ\0", "xz", DECOMPRESS),
    (b"\x04\x22\x4d\x18", "lz4", DECOMPRESS),
    (b"\xff\x06\0\0sNaPpY", "Snappy", DECOMPRESS),
    (b"\x1f\x8b", "gzip", "decompress it once"),
    (b"\x89PNG", "a PNG image", ""),
    (b"\xff\xd8\xff", "a JPEG image", ""),
    (b"GIF8", "a GIF image", ""),
    (b"%PDF", "PDF", ""),
    (b"\x7fELF", "a program", ""),
    (b"\x80\x02", "a Python pickle", ""),
    (b"\x80\x03", "a Python pickle", ""),
    (b"\x80\x04\x95", "a Python pickle", ""),
    (b"\x80\x05\x95", "a Python pickle", ""),
    (
        b"version https://git-lfs",
        "a Git LFS pointer instead of the file",
        "fetch the file with `git lfs pull`",
    ),
];

/// Length in bytes of magic numbers that occur by chance in the length of a record.
const SHORT_MAGIC: usize = 2;
/// Minimum number of bytes of text: shorter heads are too often the rest of another file.
const TEXT_BYTES: usize = 4;
/// Offset and magic number of a tar archive.
const TAR: (usize, &[u8]) = (257, b"ustar");
/// Number of bytes at the start of a file that identify its format.
pub(crate) const HEAD_BYTES: u64 = 512;
/// Number of bytes that the message for an unknown format shows.
const SHOWN: usize = 12;

/// Returns the message for a file of a known format that begins with `head`: the name and the next
/// step.
pub(crate) fn known(head: &[u8]) -> Option<String> {
    let (name, step) = magic(head).or_else(|| tar(head)).or_else(|| text(head))?;
    Some(if step.is_empty() {
        format!("starts like {name}")
    } else {
        format!("starts like {name}; {step}")
    })
}

/// Returns whether `head` is the start of a known format, and not by chance that of a corrupt
/// record.
pub(crate) fn is_surely_known(head: &[u8]) -> bool {
    if let Some((magic, ..)) = MAGICS.iter().find(|(magic, ..)| head.starts_with(magic))
        && magic.len() <= SHORT_MAGIC
    {
        return false;
    }
    known(head).is_some()
}

/// Returns whether `head` is the start of an archive, which may contain complete TFRecord files.
pub(crate) fn is_archive(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || tar(head).is_some()
}

/// Returns the message for the file at `path` if it has a known format. Pipes are not opened,
/// because reading them could block.
pub(crate) fn known_file(path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(path)
        .ok()?
        .take(HEAD_BYTES)
        .read_to_end(&mut head)
        .ok()?;
    known(&head)
}

/// Returns the message for the file at `path` that begins with `head`, of any format. `size` is its
/// size in bytes, if known.
pub(crate) fn looks_like(head: &[u8], size: Option<u64>, path: &Path) -> String {
    known(head).unwrap_or_else(|| {
        let size = size.map_or_else(String::new, |size| format!("the file is {size} bytes and "));
        let hint = if is_named_recordio(path) {
            "; the file name says RecordIO, which is another format"
        } else {
            ""
        };
        format!(
            "{size}begins with {}, where a first record's length and its CRC should be{hint}",
            hex(head)
        )
    })
}

/// Returns the name of the format that `head` is the start of, by its magic number.
pub(crate) fn name(head: &[u8]) -> Option<&'static str> {
    magic(head).map(|(name, _)| name)
}

fn magic(head: &[u8]) -> Option<(&'static str, &'static str)> {
    MAGICS
        .iter()
        .find(|(magic, ..)| head.starts_with(magic))
        .map(|&(_, name, step)| (name, step))
}

fn tar(head: &[u8]) -> Option<(&'static str, &'static str)> {
    head.get(TAR.0..)
        .filter(|rest| rest.starts_with(TAR.1))
        .map(|_| ("a tar archive", "unpack it first"))
}

fn text(head: &[u8]) -> Option<(&'static str, &'static str)> {
    // The head may end inside of a character.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    if text.len() < TEXT_BYTES || text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let text = text.trim_start_matches('\u{feff}').trim_start();
    Some(match text.chars().next() {
        Some('{' | '[') => ("JSON", ""),
        Some('<') => (
            "HTML or XML",
            "if it was downloaded, the server may have sent an error page",
        ),
        _ => ("text", ""),
    })
}

fn is_named_recordio(path: &Path) -> bool {
    path.file_name().is_some_and(|name| {
        name.to_string_lossy()
            .to_ascii_lowercase()
            .contains("recordio")
    })
}

fn hex(head: &[u8]) -> String {
    let bytes: Vec<_> = head
        .iter()
        .take(SHOWN)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    bytes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &[u8], name: &str, expect: &str) {
        assert_eq!(looks_like(head, Some(323), Path::new(name)), expect);
    }

    #[test]
    fn known_formats_are_named() {
        check(
            b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0",
            "digits.array_record",
            "starts like ArrayRecord (a Riegeli file); read it with the array_record package, and write its records as TFRecord",
        );
        check(b"PAR1\x15\0", "x", "starts like Parquet");
        check(b"{\"a\": 1}", "x", "starts like JSON");
        check(b"\n [1, 2]", "x", "starts like JSON");
        check("grüße".as_bytes(), "x", "starts like text");
        check(
            &"grüß".as_bytes()[..3],
            "x",
            "the file is 323 bytes and begins with 67 72 c3, where a first record's length and its CRC should be",
        );
        let mut tar = vec![b'a'; 300];
        tar[257..262].copy_from_slice(b"ustar");
        check(&tar, "x", "starts like a tar archive; unpack it first");
    }

    #[test]
    fn the_first_bytes_of_an_unknown_format_are_shown() {
        check(
            b"\xdd\x04\0\0\x4d\xe1\xe9\x67\xd3\x3b\x33\xb4\x0a",
            "data.recordio",
            "the file is 323 bytes and begins with dd 04 00 00 4d e1 e9 67 d3 3b 33 b4, where a first record's \
             length and its CRC should be; the file name says RecordIO, which is another format",
        );
    }

    #[test]
    fn short_heads_are_not_text() {
        assert_eq!(known(b"abc"), None);
        assert_eq!(known(b""), None);
        assert_eq!(known(b"ab\0c"), None);
    }
}
