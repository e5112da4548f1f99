//! Under which names outputs go: those of their shards, with another ending.
//!
//! TensorFlow puts a shard's number before the suffix or after it (`train-00000-of-00004.tfrecord`,
//! `mnist-train.tfrecord-00000-of-00001`), TFDS and others leave the suffix away. All of them become
//! `NAME-00000-of-00004.parquet`; the way back takes the name that the Parquet file remembers.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use crate::Compression;

/// What the names of TFRecord files end in, before a compression's suffix.
const TFRECORD: &[&str] = &[".tfrecord", ".tfrecords", ".tfrec", ".tfr", ".record"];
/// What the names of the files end in that TFRecord is turned into.
const COLUMNAR: &[&str] = &[".parquet", ".arrow"];
/// The name of the output made of the shard `name`: in the same folder, with its suffixes replaced by `extension`
/// (`parquet`, `tfrecord.gz`; no dot before it).
///
/// ```
/// use std::path::Path;
/// use tfarrow_dataset::names::output_name;
///
/// let output = |name| output_name(Path::new(name), "parquet");
/// assert_eq!(output("a/train-00000-of-00004.tfrecord.gz"), Path::new("a/train-00000-of-00004.parquet"));
/// assert_eq!(output("mnist-train.tfrecord-00000-of-00001"), Path::new("mnist-train-00000-of-00001.parquet"));
/// ```
pub fn output_name(name: &Path, extension: &str) -> PathBuf {
    let mut output = stem(file_name(name));
    output.push(b'.');
    output.extend_from_slice(extension.as_bytes());
    name.with_file_name(os_string(output))
}

/// The name of shard `index` of `count`, as TensorFlow counts them: `train-00000-of-00004.tfrecord`.
pub fn tf_shard_name(stem: &str, index: usize, count: usize, extension: &str) -> String {
    format!("{stem}-{index:05}-of-{count:05}.{extension}")
}

/// The index and the count in a name that [`tf_shard_name`] gives for this stem and extension; `None` in another.
///
/// ```
/// use tfarrow_dataset::names::tf_shard_number;
/// assert_eq!(tf_shard_number("train-00001-of-00004.tfrecord", "train", "tfrecord"), Some((1, 4)));
/// assert_eq!(tf_shard_number("test-00001-of-00004.tfrecord", "train", "tfrecord"), None);
/// ```
pub fn tf_shard_number(name: &str, stem: &str, extension: &str) -> Option<(usize, usize)> {
    let number = name.strip_prefix(stem)?.strip_prefix('-')?.strip_suffix(extension)?.strip_suffix('.')?;
    let (index, count) = number.split_once("-of-")?;
    Some((index.parse().ok()?, count.parse().ok()?))
}

/// What the shards of a set have in common: `name` without its suffixes and its number, as [`tf_shard_name`] takes it.
pub fn set_name(name: &Path) -> String {
    let stem = stem(file_name(name));
    let (head, _) = split_number(&stem);
    let head = if head.is_empty() { &stem } else { head };
    String::from_utf8_lossy(head).into_owned()
}

/// The name that the way back gives to the output made of `name`, where its shard was once called `original`.
///
/// The folder is that of `name`: of the original path only the file's name is believed. Where the compression `was`
/// another than the output's, the name's suffix follows it. `None` where `original` cannot be a file's name.
///
/// ```
/// use std::path::Path;
/// use tfarrow_dataset::{Compression, names::original_name};
///
/// let name = original_name(Path::new("b/a.parquet"), "a.tfrecord.gz", Compression::Gzip, Compression::None);
/// assert_eq!(name.as_deref(), Some(Path::new("b/a.tfrecord")));
/// ```
pub fn original_name(name: &Path, original: &str, was: Compression, output: Compression) -> Option<PathBuf> {
    // Windows' separator is none on other systems, but a name from there may hold it.
    let original = original.rsplit(['/', '\\']).next()?;
    if matches!(original, "" | "." | "..") || original.contains('\0') {
        return None;
    }
    if was == output {
        return Some(name.with_file_name(original));
    }
    let (plain, _) = Compression::of_name(original);
    Some(name.with_file_name(format!("{plain}{}", output.suffix())))
}

/// The set that a numbered shard is of, in its folder; its number and how many there are, as the name has them.
pub(crate) fn set_member(name: &Path) -> Option<(PathBuf, String, String)> {
    let stem = stem(file_name(name));
    let (head, number) = split_number(&stem);
    let (index, of) = str::from_utf8(number).ok()?.strip_prefix('-')?.split_once("-of-")?;
    Some((name.with_file_name(os_string(head.to_vec())), index.to_owned(), of.to_owned()))
}

/// Whether a file is called as shards are: TFRecord, or numbered.
pub fn is_called_shard(name: &Path) -> bool {
    says_tfrecord(name) || is_bare_shard(name)
}

/// Whether the name says that the file is TFRecord, compressed or not, numbered or not.
pub fn says_tfrecord(name: &Path) -> bool {
    let (plain, _) = Compression::of_name_bytes(file_name(name));
    let (head, number) = split_number(plain);
    let (head, _) = Compression::of_name_bytes(if number.is_empty() { plain } else { head });
    strip(head, TFRECORD).1
}

/// Whether a file without an extension is numbered as TensorFlow numbers shards: `train-00000-of-00004`, also compressed.
/// With another extension it is something else's shard, such as a checkpoint's `variables.data-00000-of-00001`.
fn is_bare_shard(name: &Path) -> bool {
    let (head, number) = split_number(Compression::of_name_bytes(file_name(name)).0);
    !number.is_empty() && !head.contains(&b'.')
}

pub(crate) fn file_name(name: &Path) -> &[u8] {
    name.file_name().unwrap_or(OsStr::new("records")).as_encoded_bytes()
}

/// A file's name without the suffixes of formats and compressions, at most one of each before and after its number.
fn stem(name: &[u8]) -> Vec<u8> {
    let plain = strip_suffixes(name);
    let (head, number) = split_number(plain);
    if number.is_empty() || head.is_empty() {
        return plain.to_vec();
    }
    [strip_suffixes(head), number].concat()
}

fn strip_suffixes(name: &[u8]) -> &[u8] {
    let (name, _) = Compression::of_name_bytes(name);
    let (name, stripped) = strip(name, TFRECORD);
    if stripped { name } else { strip(name, COLUMNAR).0 }
}

/// `name` without the one of `endings` that it has, and whether there is one.
fn strip<'a>(name: &'a [u8], endings: &[&str]) -> (&'a [u8], bool) {
    let stem = endings.iter().find_map(|ending| strip_ending(name, ending));
    (stem.unwrap_or(name), stem.is_some())
}

/// `name` without this ending, in whatever case. Nothing is stripped to nothing.
pub(crate) fn strip_ending<'a>(name: &'a [u8], ending: &str) -> Option<&'a [u8]> {
    let (stem, end) = name.split_at_checked(name.len().checked_sub(ending.len())?)?;
    (!stem.is_empty() && end.eq_ignore_ascii_case(ending.as_bytes())).then_some(stem)
}

/// Parts a name before a shard's number, `-00000-of-00004`, where it ends in one; else the second part is empty.
fn split_number(name: &[u8]) -> (&[u8], &[u8]) {
    let number = |name: &[u8]| {
        let rest = strip_digits(name)?.strip_suffix(b"-of-")?;
        Some(strip_digits(rest)?.strip_suffix(b"-")?.len())
    };
    name.split_at(number(name).unwrap_or(name.len()))
}

/// `name` without the digits at its end; `None` where there are none.
fn strip_digits(name: &[u8]) -> Option<&[u8]> {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    name.get(..name.len() - digits).filter(|_| digits > 0)
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_names() {
        let table = [
            ("a.tfrecord", "a.parquet"),
            ("a.tfrecords", "a.parquet"),
            ("a.tfrec", "a.parquet"),
            ("a.tfr", "a.parquet"),
            ("a.record", "a.parquet"),
            ("A.TFRecord.GZ", "A.parquet"),
            ("a.tfrecord.gz", "a.parquet"),
            ("a.tfrecord.gzip", "a.parquet"),
            ("a.tfrecord.zz", "a.parquet"),
            ("a.tfrecord.zlib", "a.parquet"),
            ("a.gz", "a.parquet"),
            ("a", "a.parquet"),
            ("a.b.c", "a.b.c.parquet"),
            ("a.arrow", "a.parquet"),
            ("a.parquet", "a.parquet"),
            ("a.parquet.tfrecord", "a.parquet.parquet"),
            (".tfrecord", ".tfrecord.parquet"),
            (".gz", ".gz.parquet"),
            ("x/y.z/a.tfrecord", "x/y.z/a.parquet"),
            ("train-00000-of-00004.tfrecord", "train-00000-of-00004.parquet"),
            ("train-00000-of-00004.tfrecord.gz", "train-00000-of-00004.parquet"),
            ("train-00000-of-01024", "train-00000-of-01024.parquet"),
            ("train-00000-of-01024.gz", "train-00000-of-01024.parquet"),
            ("mnist-train.tfrecord-00000-of-00001", "mnist-train-00000-of-00001.parquet"),
            ("mnist-train.tfrecord-00000-of-00001.gz", "mnist-train-00000-of-00001.parquet"),
            ("mnist-train.tfrecord.gz-00000-of-00001", "mnist-train-00000-of-00001.parquet"),
            ("mtb.v5-00000-of-00001", "mtb.v5-00000-of-00001.parquet"),
            ("-00000-of-00001.tfrecord", "-00000-of-00001.parquet"),
            (".tfrecord-00000-of-00001", ".tfrecord-00000-of-00001.parquet"),
            ("a-0-of-1", "a-0-of-1.parquet"),
            ("a-of-00001.tfrecord", "a-of-00001.parquet"),
            ("data_tfrecord-00000-of-00012.gz", "data_tfrecord-00000-of-00012.parquet"),
            ("events.out.tfevents.1599310762", "events.out.tfevents.1599310762.parquet"),
            ("part-m-00000.gz", "part-m-00000.parquet"),
            ("größe.tfrecord", "größe.parquet"),
        ];
        for (name, expect) in table {
            assert_eq!(output_name(Path::new(name), "parquet"), Path::new(expect), "{name}");
        }
        assert_eq!(output_name(Path::new("a/b.parquet"), "tfrecord.gz"), Path::new("a/b.tfrecord.gz"));
    }

    #[test]
    #[cfg(unix)]
    fn output_names_that_are_no_text() {
        let name = os_string(b"\xff-00000-of-00001.tfrecord".to_vec());
        let expect = os_string(b"\xff-00000-of-00001.parquet".to_vec());
        assert_eq!(output_name(Path::new(&name), "parquet"), Path::new(&expect));
    }

    #[test]
    fn original_names() {
        use Compression::{Gzip, None as Plain, Zlib};
        let table = [
            ("a.tfrecord.gz", Gzip, Plain, Some("x/a.tfrecord")),
            ("a.tfrecord.gz", Gzip, Gzip, Some("x/a.tfrecord.gz")),
            ("a.tfrecord.gz", Gzip, Zlib, Some("x/a.tfrecord.zlib")),
            ("a.tfrecord.gz", Plain, Plain, Some("x/a.tfrecord.gz")),
            ("a.tfrecord", Gzip, Gzip, Some("x/a.tfrecord")),
            ("a.tfrecord", Plain, Gzip, Some("x/a.tfrecord.gz")),
            ("a.tfrecord.zz", Zlib, Plain, Some("x/a.tfrecord")),
            ("train-00000-of-01024", Plain, Plain, Some("x/train-00000-of-01024")),
            ("train-00000-of-01024", Gzip, Plain, Some("x/train-00000-of-01024")),
            ("mnist-train.tfrecord-00000-of-00001", Plain, Plain, Some("x/mnist-train.tfrecord-00000-of-00001")),
            ("../../etc/passwd", Plain, Plain, Some("x/passwd")),
            ("C:\\data\\a.tfrecord", Plain, Plain, Some("x/a.tfrecord")),
            ("..", Plain, Plain, None),
            ("a/", Plain, Plain, None),
            ("", Plain, Plain, None),
            ("a\0b", Plain, Plain, None),
        ];
        for (original, was, output, expect) in table {
            let name = original_name(Path::new("x/y.parquet"), original, was, output);
            assert_eq!(name.as_deref(), expect.map(Path::new), "{original} {was} {output}");
        }
    }

    #[test]
    fn numbered_names() {
        assert_eq!(tf_shard_name("train", 0, 4, "tfrecord"), "train-00000-of-00004.tfrecord");
        assert_eq!(tf_shard_name("train", 123_456, 1_000_000, "parquet"), "train-123456-of-1000000.parquet");
        for (name, expect) in [
            ("train-00000-of-00004.tfrecord.gz", "train"),
            ("x/mnist-train.tfrecord-00000-of-00001", "mnist-train"),
            ("a.tfrecord", "a"),
            ("-00000-of-00001", "-00000-of-00001"),
        ] {
            assert_eq!(set_name(Path::new(name)), expect, "{name}");
        }
    }

    #[test]
    fn names_that_say_tfrecord() {
        for name in
            ["a.tfrecord", "a.TFRECORDS", "a.tfrec.gz", "m.tfrecord-00000-of-00001", "a.tfrecord-0-of-1.gz", "a.record"]
        {
            assert!(says_tfrecord(Path::new(name)), "{name}");
        }
        for name in
            ["a", "a.gz", "tfrecord", "a.tfrecord.spec", "a.tfrecord.idx", "d.array_record-00000-of-00002", ".tfrecord"]
        {
            assert!(!says_tfrecord(Path::new(name)), "{name}");
        }
    }
}
