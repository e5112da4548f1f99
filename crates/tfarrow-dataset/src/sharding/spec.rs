//! Shard specs, TensorFlow's short names of complete sets of shards: `train@10` for
//! `train-00000-of-00010` to `train-00009-of-00010`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{Error, ErrorKind, Result, SkippedFiles, file_names::is_sidecar};

/// A parsed shard spec.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShardSpec<'a> {
    folder: &'a Path,
    stem: &'a str,
    count: usize,
    /// The extension of the files, including the dot. If it is empty, any extension matches.
    suffix: &'a str,
}

/// Returns whether `source` has the form of a shard spec, such as `train@10` or
/// `train@10.tfrecord`.
pub fn is_shard_spec(source: &str) -> bool {
    ShardSpec::parse(source).is_some()
}

impl<'a> ShardSpec<'a> {
    /// Parses a shard spec; `None` if `source` has another form.
    pub(crate) fn parse(source: &'a str) -> Option<Self> {
        let path = Path::new(source);
        let (stem, rest) = path.file_name()?.to_str()?.rsplit_once('@')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (count, suffix) = rest.split_at_checked(digits)?;
        let count = count.parse().ok().filter(|count| *count > 0)?;
        let is_spec = !stem.is_empty() && (suffix.is_empty() || suffix.starts_with('.'));
        is_spec.then_some(Self {
            folder: path.parent()?,
            stem,
            count,
            suffix,
        })
    }

    /// Returns the paths of all shards, in the order of their numbers.
    ///
    /// # Errors
    /// A shard is missing or exists twice, or an I/O error.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let here = Path::new(".");
        let folder = if self.folder.as_os_str().is_empty() {
            here
        } else {
            self.folder
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
            let name = entry.map_err(|e| Error::io(folder, e))?.file_name();
            // The name of a shard in a spec is UTF-8, so that other names do not match.
            files.extend(
                name.to_str()
                    .map(|text| (text.to_owned(), self.folder.join(&name))),
            );
        }
        self.choose(files)
    }

    /// Returns the shards among `files`, which are given with their names, in the order of their
    /// numbers.
    ///
    /// # Errors
    /// A shard is missing, or exists twice.
    pub(crate) fn choose<T>(&self, files: impl IntoIterator<Item = (String, T)>) -> Result<Vec<T>> {
        let mut shards = BTreeMap::new();
        for (name, file) in files {
            let Some(index) = self.index_of(&name) else {
                continue;
            };
            if let Some((other, _)) = shards.insert(index, (name.clone(), file)) {
                return Err(self.missing(format!(
                    "{name} and {other} are the same shard; add their extension to the source"
                )));
            }
        }
        match (0..self.count).find(|index| !shards.contains_key(index)) {
            None => Ok(shards.into_values().map(|(_, file)| file).collect()),
            Some(first) => {
                let missing = self.count - shards.len();
                let name = self.name(first);
                let are = if missing == 1 { "is" } else { "are" };
                Err(self.missing(format!(
                    "of {} shards {missing} {are} missing, the first {name}",
                    self.count
                )))
            }
        }
    }

    /// Returns the file name of a shard, as [`tf_shard_name`](crate::file_names::tf_shard_name)
    /// does.
    fn name(&self, index: usize) -> String {
        format!(
            "{}-{index:05}-of-{:05}{}",
            self.stem, self.count, self.suffix
        )
    }

    /// Returns the number of the shard with this file name; `None` if it is not a shard of the set.
    fn index_of(&self, name: &str) -> Option<usize> {
        let rest = name.strip_prefix(self.stem)?.strip_prefix('-')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let index = rest
            .get(..digits)?
            .parse()
            .ok()
            .filter(|index| *index < self.count)?;
        let end = name.strip_prefix(&self.name(index))?;
        let is_shard = end.is_empty()
            || self.suffix.is_empty() && end.starts_with('.') && !is_sidecar(Path::new(name));
        is_shard.then_some(index)
    }

    fn missing(&self, searched: String) -> Error {
        let spec = self
            .folder
            .join(format!("{}@{}{}", self.stem, self.count, self.suffix));
        Error::new(
            spec,
            ErrorKind::NoShards {
                looked: searched,
                skipped_files: SkippedFiles::default(),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expect: Option<(&str, &str, usize, &str)>) {
        let found = ShardSpec::parse(source);
        let found = found.map(|spec| {
            (
                spec.folder.to_str().unwrap(),
                spec.stem,
                spec.count,
                spec.suffix,
            )
        });
        assert_eq!(found, expect);
    }

    #[test]
    fn a_spec_has_a_stem_a_number_and_an_optional_extension() {
        check("train@10", Some(("", "train", 10, "")));
        check(
            "/a/b/train@4.tfrecord.gz",
            Some(("/a/b", "train", 4, ".tfrecord.gz")),
        );
        check("a@b/c.tfrecord@1", Some(("a@b", "c.tfrecord", 1, "")));
        for none in [
            "@10",
            "train@",
            "train@x",
            "train@0",
            "train@1x",
            "train",
            "a@1/b",
            "x@99999999999999999999",
        ] {
            check(none, None);
        }
    }

    #[test]
    fn a_file_name_matches_by_number_and_extension() {
        let bare = ShardSpec::parse("train@12").unwrap();
        assert_eq!(bare.index_of("train-00003-of-00012"), Some(3));
        assert_eq!(bare.index_of("train-00011-of-00012.tfrecord.gz"), Some(11));
        for other in [
            "train-00012-of-00012",
            "train-3-of-12",
            "train-00003-of-00013",
            "train-00003-of-00012x",
        ] {
            assert_eq!(bare.index_of(other), None, "{other}");
        }
        assert_eq!(bare.index_of("train-00003-of-00012.index"), None);
        let ends = ShardSpec::parse("train@12.tfrecord").unwrap();
        assert_eq!(ends.index_of("train-00003-of-00012.tfrecord"), Some(3));
        assert_eq!(ends.index_of("train-00003-of-00012.parquet"), None);
    }
}
