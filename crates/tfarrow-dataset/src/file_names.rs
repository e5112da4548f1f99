//! File names of shards, and the names of the outputs that are made of them.
//!
//! TensorFlow writes the number of a shard before the extension or after it, TFDS and others write
//! no extension:
//!
//! ```text
//! train-00000-of-00004.tfrecord         ─▶  train-00000-of-00004.parquet
//! mnist-train.tfrecord-00000-of-00001   ─▶  mnist-train-00000-of-00001.parquet
//! train-00000-of-00004                  ─▶  train-00000-of-00004.parquet
//! ```
//!
//! A Parquet file stores the name of its TFRecord file, which the conversion back to TFRecord
//! restores.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use memchr::memmem;

use crate::{Compression, compression::strip_extension};

/// The source that is standard input.
pub(crate) const STDIN: &str = "-";

/// Extensions of TFRecord files, before the ending of a compression. The first one is that of new
/// files.
pub const TFRECORD_EXTENSIONS: [&str; 5] = ["tfrecord", "tfrecords", "tfrec", "tfr", "record"];
/// Extensions of files of other formats, before the ending of a compression.
const OTHERS: [&str; 8] = [
    "parquet", "arrow", "arrows", "csv", "tsv", "jsonl", "ndjson", "json",
];
/// Extensions of files that are usually next to shards, and no shards: descriptions, and indexes of
/// several readers (`idx` of DALI, `tfindex` of the package tfrecord).
const SIDECARS: &[&str] = &["json", "txt", "index", "idx", "tfindex"];
/// The index that tfr-reader writes beside shards, which is a Parquet file.
const READER_INDEX: &str = "tfrds-reader-index.parquet";
/// The end of the names of the indexes of tfarrow, which are Parquet files, and of those of the
/// package tfrecord, which are text.
pub(crate) const INDEX_SUFFIX: &str = ".tfindex";

/// Returns the path of the output made of the shard `name`: in the same folder, with its extensions
/// replaced by `extension`, which has no dot before it, such as `parquet` or `tfrecord.gz`.
///
/// ```
/// use std::path::Path;
/// use tfarrow_dataset::file_names::output_name;
///
/// let output = |name| output_name(Path::new(name), "parquet");
/// assert_eq!(output("a/train-00000-of-00004.tfrecord.gz"), Path::new("a/train-00000-of-00004.parquet"));
/// assert_eq!(output("mnist-train.tfrecord-00000-of-00001"), Path::new("mnist-train-00000-of-00001.parquet"));
/// assert_eq!(output("a/table.csv.gz"), Path::new("a/table.parquet"));
/// ```
pub fn output_name(name: &Path, extension: &str) -> PathBuf {
    let mut output = stem(file_name(name));
    output.push(b'.');
    output.extend_from_slice(extension.as_bytes());
    name.with_file_name(os_string(output))
}

/// Returns the file name of shard `index` of `count` as TensorFlow writes it:
/// `train-00000-of-00004.tfrecord`.
pub fn tf_shard_name(stem: &str, index: usize, count: usize, extension: &str) -> String {
    format!("{stem}-{index:05}-of-{count:05}.{extension}")
}

/// Returns the index and the count in a name that [`tf_shard_name`] returns for this stem and
/// extension; `None` for another name.
///
/// ```
/// use tfarrow_dataset::file_names::tf_shard_number;
/// assert_eq!(tf_shard_number("train-00001-of-00004.tfrecord", "train", "tfrecord"), Some((1, 4)));
/// assert_eq!(tf_shard_number("test-00001-of-00004.tfrecord", "train", "tfrecord"), None);
/// ```
pub fn tf_shard_number(name: &str, stem: &str, extension: &str) -> Option<(usize, usize)> {
    let number = name
        .strip_prefix(stem)?
        .strip_prefix('-')?
        .strip_suffix(extension)?
        .strip_suffix('.')?;
    let (index, count) = number.split_once("-of-")?;
    Some((index.parse().ok()?, count.parse().ok()?))
}

/// Returns the stem that the shards of a set have in common, for [`tf_shard_name`]: the file name
/// without extensions and number.
pub fn set_name(name: &Path) -> String {
    let stem = stem(file_name(name));
    let (head, _) = split_number(&stem);
    let head = if head.is_empty() { &stem } else { head };
    String::from_utf8_lossy(head).into_owned()
}

/// Returns the path of the TFRecord output made of `name`, a file that was once made of the
/// TFRecord file `original`.
///
/// The folder is that of `name`; of `original`, which a file may contain with any content, only the
/// file name is used. If the compression of the output differs from that of the original, `was`,
/// the ending is replaced. `None` if `original` is not a valid file name.
///
/// ```
/// use std::path::Path;
/// use tfarrow_dataset::{Compression, file_names::original_name};
///
/// let name = original_name(Path::new("b/a.parquet"), "a.tfrecord.gz", Compression::Gzip, Compression::None);
/// assert_eq!(name.as_deref(), Some(Path::new("b/a.tfrecord")));
/// ```
pub fn original_name(
    name: &Path,
    original: &str,
    was: Compression,
    output: Compression,
) -> Option<PathBuf> {
    // A file written on Windows may store a path with the separator of Windows.
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

/// Splits the path of a numbered shard into the path of its set, its index, and the number of
/// shards, the last two as text.
pub(crate) fn set_member(name: &Path) -> Option<(PathBuf, String, String)> {
    let stem = stem(file_name(name));
    let (head, number) = split_number(&stem);
    let (index, of) = str::from_utf8(number)
        .ok()?
        .strip_prefix('-')?
        .split_once("-of-")?;
    Some((
        name.with_file_name(os_string(head.to_vec())),
        index.to_owned(),
        of.to_owned(),
    ))
}

/// Returns whether a file has the name of a shard: an extension of TFRecord, or a shard number.
pub fn is_shard_name(name: &Path) -> bool {
    is_tfrecord_name(name) || is_bare_shard(name)
}

/// Returns whether a file or folder is hidden by the first character of its name, which is `first`:
/// `_` or `.`. As in Spark, `_split=train` is not, which is the folder of a column.
pub(crate) fn is_hidden_by(name: &OsStr, first: char) -> bool {
    let name = name.as_encoded_bytes();
    name.first().is_some_and(|byte| char::from(*byte) == first)
        && (first != '_' || !name.contains(&b'='))
}

/// Returns whether a file has an extension of TFRecord, with or without the ending of a compression
/// and a shard number.
pub fn is_tfrecord_name(name: &Path) -> bool {
    let (plain, _) = Compression::of_name_bytes(file_name(name));
    let (head, number) = split_number(plain);
    let (head, _) = Compression::of_name_bytes(if number.is_empty() { plain } else { head });
    strip_one(head, &TFRECORD_EXTENSIONS).1
}

/// Returns whether a file has a shard number and no extension, except that of a compression:
/// `train-00000-of-00004`. With another extension it is not a shard, such as
/// `variables.data-00000-of-00001` of a checkpoint.
fn is_bare_shard(name: &Path) -> bool {
    let (head, number) = split_number(Compression::of_name_bytes(file_name(name)).0);
    !number.is_empty() && !head.contains(&b'.')
}

/// Returns whether a file is the index of a reader, in a format that also shards have.
pub(crate) fn is_reader_index(name: &Path) -> bool {
    let name = file_name(name);
    name == READER_INDEX.as_bytes() || name.ends_with(INDEX_SUFFIX.as_bytes())
}

/// Returns whether a file has the extension of files that are usually next to shards, such as
/// `dataset_info.json`.
pub(crate) fn is_sidecar(path: &Path) -> bool {
    path.extension().is_some_and(|own| {
        SIDECARS
            .iter()
            .any(|suffix| own.eq_ignore_ascii_case(suffix))
    })
}

/// Returns whether a file has the name of a TensorBoard file, such as
/// `events.out.tfevents.1700000000.host`. TensorBoard reads each file whose name contains
/// `tfevents`.
pub(crate) fn is_named_events(name: &Path) -> bool {
    memmem::find(file_name(name), b"tfevents").is_some()
}

/// Returns whether a file is hidden, by its path below the folder that is read: its name, or that
/// of a folder above it, begins with `.` or `_`. The files of TensorBoard are not hidden by `_`,
/// since runs may have any name.
pub(crate) fn is_hidden(below: &Path) -> bool {
    let is_events = is_named_events(below);
    let folders = below.parent().unwrap_or(Path::new(""));
    if folders.iter().any(|folder| hides(folder, is_events)) {
        return true;
    }
    let Some(name) = below.file_name() else {
        return false;
    };
    hides(name, is_events) && !is_numbered_tfrecord(below)
}

/// Returns whether the name of a file or folder hides the file. `is_events` is set for a file of
/// TensorBoard.
fn hides(name: &OsStr, is_events: bool) -> bool {
    is_hidden_by(name, '.') || is_hidden_by(name, '_') && !is_events
}

/// Returns whether a file has the name of a shard of TFRecord that begins with `_`, such as
/// `__c4-train.tfrecord-00000-of-01024` of MaxText. Such a name says what the file is, and does not
/// hide it.
pub(crate) fn is_numbered_tfrecord(name: &Path) -> bool {
    let begins = name.file_name().is_some_and(|name| is_hidden_by(name, '_'));
    begins && is_tfrecord_name(name) && set_member(name).is_some()
}

/// Returns the file name of a path, which need not be UTF-8; `records` if it has none.
pub(crate) fn file_name(name: &Path) -> &[u8] {
    name.file_name()
        .unwrap_or(OsStr::new("records"))
        .as_encoded_bytes()
}

/// Returns a file name without the extensions of formats and compressions, at most one of each
/// before and after its number.
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
    let (name, stripped) = strip_one(name, &TFRECORD_EXTENSIONS);
    if stripped {
        name
    } else {
        strip_one(name, &OTHERS).0
    }
}

/// Returns `name` without the one of `extensions` that it has, and whether it has one.
fn strip_one<'a>(name: &'a [u8], extensions: &[&str]) -> (&'a [u8], bool) {
    let stem = extensions
        .iter()
        .find_map(|extension| strip_extension(name, extension));
    (stem.unwrap_or(name), stem.is_some())
}

/// Splits a name before the shard number at its end, `-00000-of-00004`; without one, the second
/// part is empty.
fn split_number(name: &[u8]) -> (&[u8], &[u8]) {
    name.split_at(number_place(name).unwrap_or(name.len()))
}

/// Returns the place of the shard number at the end of a name; `None` without one.
fn number_place(name: &[u8]) -> Option<usize> {
    let rest = strip_digits(name)?.strip_suffix(b"-of-")?;
    Some(strip_digits(rest)?.strip_suffix(b"-")?.len())
}

/// Returns `name` without the digits at its end; `None` if there are none.
fn strip_digits(name: &[u8]) -> Option<&[u8]> {
    let digits = name
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
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
            (
                "train-00000-of-00004.tfrecord",
                "train-00000-of-00004.parquet",
            ),
            (
                "train-00000-of-00004.tfrecord.gz",
                "train-00000-of-00004.parquet",
            ),
            ("train-00000-of-01024", "train-00000-of-01024.parquet"),
            ("train-00000-of-01024.gz", "train-00000-of-01024.parquet"),
            (
                "mnist-train.tfrecord-00000-of-00001",
                "mnist-train-00000-of-00001.parquet",
            ),
            (
                "mnist-train.tfrecord-00000-of-00001.gz",
                "mnist-train-00000-of-00001.parquet",
            ),
            (
                "mnist-train.tfrecord.gz-00000-of-00001",
                "mnist-train-00000-of-00001.parquet",
            ),
            ("mtb.v5-00000-of-00001", "mtb.v5-00000-of-00001.parquet"),
            ("-00000-of-00001.tfrecord", "-00000-of-00001.parquet"),
            (
                ".tfrecord-00000-of-00001",
                ".tfrecord-00000-of-00001.parquet",
            ),
            ("a-0-of-1", "a-0-of-1.parquet"),
            ("a-of-00001.tfrecord", "a-of-00001.parquet"),
            (
                "data_tfrecord-00000-of-00012.gz",
                "data_tfrecord-00000-of-00012.parquet",
            ),
            (
                "events.out.tfevents.1599310762",
                "events.out.tfevents.1599310762.parquet",
            ),
            ("part-m-00000.gz", "part-m-00000.parquet"),
            ("größe.tfrecord", "größe.parquet"),
        ];
        for (name, expect) in table {
            assert_eq!(
                output_name(Path::new(name), "parquet"),
                Path::new(expect),
                "{name}"
            );
        }
        assert_eq!(
            output_name(Path::new("a/b.parquet"), "tfrecord.gz"),
            Path::new("a/b.tfrecord.gz")
        );
    }

    #[test]
    #[cfg(unix)]
    fn output_names_that_are_not_utf8() {
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
            (
                "train-00000-of-01024",
                Plain,
                Plain,
                Some("x/train-00000-of-01024"),
            ),
            (
                "train-00000-of-01024",
                Gzip,
                Plain,
                Some("x/train-00000-of-01024"),
            ),
            (
                "mnist-train.tfrecord-00000-of-00001",
                Plain,
                Plain,
                Some("x/mnist-train.tfrecord-00000-of-00001"),
            ),
            ("../../etc/passwd", Plain, Plain, Some("x/passwd")),
            ("C:\\data\\a.tfrecord", Plain, Plain, Some("x/a.tfrecord")),
            ("..", Plain, Plain, None),
            ("a/", Plain, Plain, None),
            ("", Plain, Plain, None),
            ("a\0b", Plain, Plain, None),
        ];
        for (original, was, output, expect) in table {
            let name = original_name(Path::new("x/y.parquet"), original, was, output);
            assert_eq!(
                name.as_deref(),
                expect.map(Path::new),
                "{original} {was} {output}"
            );
        }
    }

    #[test]
    fn numbered_names() {
        assert_eq!(
            tf_shard_name("train", 0, 4, "tfrecord"),
            "train-00000-of-00004.tfrecord"
        );
        assert_eq!(
            tf_shard_name("train", 123_456, 1_000_000, "parquet"),
            "train-123456-of-1000000.parquet"
        );
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
    fn names_with_and_without_an_extension_of_tfrecord() {
        for name in [
            "a.tfrecord",
            "a.TFRECORDS",
            "a.tfrec.gz",
            "m.tfrecord-00000-of-00001",
            "a.tfrecord-0-of-1.gz",
            "a.record",
        ] {
            assert!(is_tfrecord_name(Path::new(name)), "{name}");
        }
        for name in [
            "a",
            "a.gz",
            "tfrecord",
            "a.tfrecord.spec",
            "a.tfrecord.idx",
            "d.array_record-00000-of-00002",
            ".tfrecord",
        ] {
            assert!(!is_tfrecord_name(Path::new(name)), "{name}");
        }
    }
}
