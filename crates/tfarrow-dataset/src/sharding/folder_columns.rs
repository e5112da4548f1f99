//! Folders `key=value`, as Hive, Spark and DuckDB write them, as columns of a data set.
//!
//! ```text
//! split=train/label=3/a.tfrecord                     split: "train"   label: 3
//! split=a%20b/label=__HIVE_DEFAULT_PARTITION__/b     split: "a b"     label: null
//! c.tfrecord                                         split: null      label: null
//! ```
//!
//! Only folders below the source count, or below the fixed part of a glob: the names of shards
//! begin there. A column has integers if all its values are integers in the form in which they are
//! written, and else text: `01`, `+1` and `-0` are text, so that folders can be written again with
//! the same names.

use std::{
    collections::{HashMap, HashSet},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tfarrow_codec::{SharedFeatures, SharedValue};

/// The value of a folder that stands for null.
pub const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";

/// The characters that are escaped in names of folders: those that DuckDB escapes, and more than
/// Spark does, which unescapes them all.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Maximum number of keys of a data set: each shard has a value of each of them.
const MAX_KEYS: usize = 64;

/// The value of a shard in the column of a folder key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderColumn {
    /// The key, which is the name of the column.
    pub key: String,
    /// The value as text; `None` for null, and if the shard is not in a folder of this key.
    pub text: Option<String>,
    /// Whether the column has integers of 64 bits. It has text otherwise.
    pub is_integer: bool,
}

impl FolderColumn {
    /// The value, if it is an integer.
    pub fn integer(&self) -> Option<i64> {
        self.text
            .as_deref()
            .filter(|_| self.is_integer)
            .and_then(integer)
    }
}

/// The name of a folder `key=value`, for the value that [`folder_value`] returns.
///
/// ```
/// use tfarrow_dataset::internals::{folder_name, folder_value};
/// assert_eq!(folder_name("image/height", &folder_value(Some("5"))), "image%2Fheight=5");
/// assert_eq!(folder_name("split", &folder_value(None)), "split=__HIVE_DEFAULT_PARTITION__");
/// assert_eq!(folder_value(Some("__HIVE_DEFAULT_PARTITION__")), "%5F_HIVE_DEFAULT_PARTITION__");
/// ```
pub fn folder_name(key: &str, value: &str) -> String {
    format!("{}={value}", escaped(key))
}

/// A value as it is written in the name of a folder; `None` is null.
pub fn folder_value(value: Option<&str>) -> String {
    match value {
        None => NULL_FOLDER.to_owned(),
        // With a character that is escaped, the name of null is text.
        Some(NULL_FOLDER) => NULL_FOLDER.replacen('_', "%5F", 1),
        Some(value) => escaped(value),
    }
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// The key and the value of a folder `key=value`; `None` for another name. The value is `None` for
/// null.
pub fn parse_folder_name(name: &str) -> Option<(String, Option<String>)> {
    let (key, value) = name.split_once('=').filter(|(key, _)| !key.is_empty())?;
    Some((
        unescaped(key),
        (value != NULL_FOLDER).then(|| unescaped(value)),
    ))
}

/// The text that [`escaped`] was made of.
fn unescaped(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The integer that `text` is the usual form of.
fn integer(text: &str) -> Option<i64> {
    text.parse()
        .ok()
        .filter(|value: &i64| value.to_string() == text)
}

/// The keys and values of some folders.
type Folders = Vec<(String, Option<String>)>;

/// The keys and values of the folders of a path; none if a key occurs twice.
fn folders(path: &Path) -> Folders {
    let mut found = Folders::new();
    for part in path.components() {
        let Component::Normal(name) = part else {
            continue;
        };
        let Some((key, value)) = name.to_str().and_then(parse_folder_name) else {
            continue;
        };
        if found.iter().any(|(other, _)| *other == key) {
            return Folders::new();
        }
        found.push((key, value));
    }
    found
}

/// The keys of a data set, in the order in which they occur first in the sorted paths, and whether
/// their values are integers; `None` for a key that has no value so far.
type Keys = Vec<(String, Option<bool>)>;

/// Adds the keys of further folders.
fn add_keys(keys: &mut Keys, folders: &Folders) {
    for (key, value) in folders {
        let is_integer = value.as_deref().map(|value| integer(value).is_some());
        match keys.iter_mut().find(|(other, _)| other == key) {
            Some((_, known)) => {
                *known = is_integer.map_or(*known, |is| Some(is && known.unwrap_or(true)))
            }
            None => keys.push((key.clone(), is_integer)),
        }
    }
}

/// The columns of some paths of folders, each of which has a value of each key; none if there are
/// no keys, or more than [`MAX_KEYS`].
pub(crate) fn folder_columns(paths: HashSet<&Path>) -> HashMap<PathBuf, Arc<[FolderColumn]>> {
    let mut all = Vec::new();
    let mut keys = Keys::new();
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_unstable();
    for path in paths {
        let folders = folders(path);
        add_keys(&mut keys, &folders);
        if keys.len() > MAX_KEYS {
            return HashMap::new();
        }
        all.push((path, folders));
    }
    if keys.is_empty() {
        return HashMap::new();
    }
    all.into_iter()
        .map(|(path, folders)| (path.to_owned(), columns_of(&keys, &folders)))
        .collect()
}

/// The columns of these keys for files in these folders.
fn columns_of(keys: &Keys, folders: &Folders) -> Arc<[FolderColumn]> {
    keys.iter()
        .map(|(key, is_integer)| FolderColumn {
            key: key.clone(),
            text: value_of(key, folders),
            is_integer: *is_integer == Some(true),
        })
        .collect()
}

/// The value of a key; `None` for null, and if none of the folders has the key.
fn value_of(key: &str, folders: &Folders) -> Option<String> {
    let (_, value) = folders.iter().find(|(other, _)| other == key)?;
    value.clone()
}

/// The columns of these keys for a shard of this name. They have text.
pub(crate) fn columns_of_name(name: &Path, keys: &[&str]) -> Arc<[FolderColumn]> {
    let keys = keys.iter().map(|key| ((*key).to_owned(), None)).collect();
    columns_of(&keys, &folders(name.parent().unwrap_or(Path::new(""))))
}

/// The features that the records of a shard have by its folders. Those of null are absent.
pub(crate) fn shared_features(columns: &[FolderColumn]) -> SharedFeatures {
    let mut features = Vec::new();
    for column in columns {
        let Some(text) = &column.text else { continue };
        let value = column
            .integer()
            .map_or(SharedValue::Text(text), SharedValue::Int64);
        features.push((column.key.as_str(), value));
    }
    SharedFeatures::new(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the columns of files with these names: the key, its type, and the value of each file.
    #[track_caller]
    fn check(names: &[&str], expect: &[(&str, &str, &[&str])]) {
        let parents: Vec<_> = names
            .iter()
            .map(|name| Path::new(name).parent().unwrap())
            .collect();
        let by_path = folder_columns(parents.iter().copied().collect());
        let rows: Vec<_> = parents
            .iter()
            .map(|parent| by_path.get(*parent).cloned().unwrap_or_default())
            .collect();
        let mut found = Vec::new();
        for index in 0..rows.first().map_or(0, |row| row.len()) {
            let columns: Vec<_> = rows.iter().map(|row| &row[index]).collect();
            let text = |column: &&FolderColumn| column.text.clone().unwrap_or("null".to_owned());
            let kind = if columns[0].is_integer {
                "integer"
            } else {
                "text"
            };
            found.push((
                columns[0].key.clone(),
                kind,
                columns.iter().map(text).collect::<Vec<_>>(),
            ));
        }
        let owned = |values: &[&str]| {
            values
                .iter()
                .map(|value| (*value).to_owned())
                .collect::<Vec<_>>()
        };
        let expect: Vec<_> = expect
            .iter()
            .map(|(key, kind, of)| ((*key).to_owned(), *kind, owned(of)))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn folders_are_columns_with_nulls_where_a_shard_is_in_no_such_folder() {
        check(
            &["split=a/year=1/x", "split=b/year=2/x"],
            &[
                ("split", "text", &["a", "b"]),
                ("year", "integer", &["1", "2"]),
            ],
        );
        check(&["split=a/x", "y"], &[("split", "text", &["a", "null"])]);
        check(
            &["a=1/x", "b=u/y"],
            &[
                ("a", "integer", &["1", "null"]),
                ("b", "text", &["null", "u"]),
            ],
        );
        check(&["a/x", "=1/x", "a=1.tfrecord"], &[]);
        check(&["a=1/a=2/x"], &[]);
        check(&[], &[]);
        let many: Vec<_> = (0..=MAX_KEYS).map(|key| format!("k{key}=1/x")).collect();
        check(&many.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    }

    #[test]
    fn values_are_integers_if_all_of_them_are_written_as_integers() {
        check(
            &["k=-7/x", "k=9223372036854775807/x"],
            &[("k", "integer", &["-7", "9223372036854775807"])],
        );
        for text in ["01", "+1", "-0", "9223372036854775808", "1.5", "", "a"] {
            check(
                &["k=1/x", &format!("k={text}/x")],
                &[("k", "text", &["1", text])],
            );
        }
        check(
            &[&format!("k={NULL_FOLDER}/x"), "k=1/x"],
            &[("k", "integer", &["null", "1"])],
        );
        check(
            &["k=a/x", &format!("k={NULL_FOLDER}/x"), "k=1/x"],
            &[("k", "text", &["a", "null", "1"])],
        );
        check(
            &[&format!("k={NULL_FOLDER}/x")],
            &[("k", "text", &["null"])],
        );
    }

    #[test]
    fn names_of_folders_are_escaped_and_unescaped() {
        let values = [
            "a b",
            "a/b",
            "a=b%c",
            "",
            "ä",
            "..",
            ".",
            "_x",
            "%31",
            NULL_FOLDER,
        ];
        for value in values {
            let name = folder_name("image/height", &folder_value(Some(value)));
            let ascii = |c: char| c.is_ascii_alphanumeric() || "-_.~%=".contains(c);
            assert!(name.chars().all(ascii), "{name}");
            assert_eq!(
                parse_folder_name(&name),
                Some(("image/height".to_owned(), Some(value.to_owned())))
            );
        }
        assert_eq!(
            parse_folder_name(&folder_name("k", &folder_value(None))),
            Some(("k".to_owned(), None))
        );
        assert_eq!(parse_folder_name("k"), None);
    }
}
