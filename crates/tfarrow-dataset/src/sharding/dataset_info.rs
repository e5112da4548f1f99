//! The description that TFDS writes beside the shards of a data set: its splits, and the number of
//! records of each shard.
//!
//! ```text
//! dataset_info.json   {"name": "mnist", "fileFormat": "tfrecord", "splits": [{"name": "train", "shardLengths": ["5", "5"]}]}
//! shards              mnist-train.tfrecord-00000-of-00002  mnist-train.tfrecord-00001-of-00002
//! ```

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use serde::Deserialize;

use crate::{
    Error, ErrorKind, Result, Shard, error::shown, file_names::set_member, store::OBJECTS_AT_ONCE,
    threads::try_map,
};

/// The file with the description.
const DATASET_INFO: &str = "dataset_info.json";
/// Maximum bytes of a description: many times those of a data set of 100,000 shards.
const MAX_BYTES: u64 = 4 << 20;
/// The names of shards, if the description has no template for them ([`ShardedFileTemplate`] of
/// TFDS).
///
/// [`ShardedFileTemplate`]:
/// https://www.tensorflow.org/datasets/api_docs/python/tfds/core/ShardedFileTemplate
const TEMPLATE: &str = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";
const TFRECORD: &str = "tfrecord";

/// Maximum bytes of a template.
const MAX_TEMPLATE: usize = 1 << 10;

/// A split of a data set that TFDS wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TfdsSplit {
    /// The name, such as `train`.
    pub name: String,
    /// The number of records of each shard.
    pub lengths: Vec<u64>,
    folder: PathBuf,
    /// The names of shards, with placeholders for their numbers.
    template: String,
}

impl TfdsSplit {
    /// The number of records of the shard at this path; `None` if it is no shard of the split.
    fn length(&self, path: &Path) -> Option<u64> {
        let (_, index, _) = set_member(path)?;
        let index: usize = index.parse().ok()?;
        let length = self.lengths.get(index)?;
        let of = self.lengths.len();
        let name = self.shard_name(
            &format!("{index:05}-of-{of:05}"),
            &format!("{index:05}"),
            &format!("{of:05}"),
        );
        (self.folder.join(name) == path).then_some(*length)
    }

    /// The name of a shard, with its number as TFDS writes it in the three places that a template
    /// can have.
    fn shard_name(&self, x_of_y: &str, index: &str, of: &str) -> String {
        let name = self.template.replace("{SHARD_X_OF_Y}", x_of_y);
        name.replace("{SHARD_INDEX}", index)
            .replace("{NUM_SHARDS}", of)
    }
}

impl fmt::Display for TfdsSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self
            .lengths
            .iter()
            .fold(0_u64, |sum, length| sum.saturating_add(*length));
        let pattern = self.folder.join(self.shard_name("*", "*", "*"));
        write!(f, "{} ({records} records, {})", self.name, shown(&pattern))
    }
}

/// The note that names the splits of a data set if they are several: a folder of TFDS has all
/// splits of a data set.
pub fn splits_note(splits: &[TfdsSplit]) -> Option<String> {
    if splits.len() < 2 {
        return None;
    }
    let names: Vec<_> = splits.iter().map(ToString::to_string).collect();
    Some(format!(
        "{} splits of TensorFlow Datasets: {}",
        splits.len(),
        names.join(", ")
    ))
}

/// The splits that any of these shards belong to, as the descriptions in their folders say. A
/// description that cannot be read is ignored. In a store, each folder with numbered shards is a
/// request.
pub fn tfds_splits(shards: &[Shard]) -> Vec<TfdsSplit> {
    let numbered: Vec<_> = shards
        .iter()
        .filter(|shard| !shard.is_stream() && set_member(&shard.path).is_some())
        .collect();
    // Any shard of a folder.
    let folders: BTreeMap<&Path, &Shard> = numbered
        .iter()
        .filter_map(|shard| Some((shard.path.parent()?, *shard)))
        .collect();
    let folders: Vec<_> = folders.into_iter().collect();
    let Ok(splits) = try_map(&folders, OBJECTS_AT_ONCE, |_, (folder, shard)| {
        Ok::<_, Infallible>(splits_of(folder, shard))
    });
    let mut splits: Vec<_> = splits.into_iter().flatten().collect();
    splits.retain(|split| {
        numbered
            .iter()
            .any(|shard| split.length(&shard.path).is_some())
    });
    splits
}

/// Checks the number of records of shards that TFDS wrote.
///
/// # Errors
/// A shard has another number of records than its description says.
pub fn check_length(splits: &[TfdsSplit], shard: &Shard, records: u64) -> Result<()> {
    match splits.iter().find_map(|split| split.length(&shard.path)) {
        Some(expected) if expected != records => Err(Error::new(
            &shard.path,
            ErrorKind::ShardLength {
                found: records,
                expected,
            },
        )),
        _ => Ok(()),
    }
}

/// The content of a description.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DatasetInfo {
    name: String,
    file_format: Option<String>,
    splits: Vec<SplitInfo>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SplitInfo {
    name: String,
    filepath_template: Option<String>,
    shard_lengths: Vec<ShardLength>,
}

/// A number of records. TFDS writes text, as the JSON of protobuf does for 64-bit integers.
#[derive(Deserialize)]
#[serde(untagged)]
enum ShardLength {
    Number(u64),
    Text(String),
}

/// The splits in the description in the folder of a shard.
fn splits_of(folder: &Path, shard: &Shard) -> Vec<TfdsSplit> {
    let text = match shard.object() {
        Some(object) => object.read_beside(DATASET_INFO, MAX_BYTES),
        None => read_file(&folder.join(DATASET_INFO)),
    };
    let info = text
        .and_then(|text| serde_json::from_slice::<DatasetInfo>(&text).ok())
        .unwrap_or_default();
    info.splits
        .iter()
        .filter_map(|split| info.split(split, folder))
        .collect()
}

/// Reads the first bytes of a description; `None` if it cannot be read.
fn read_file(path: &Path) -> Option<Bytes> {
    let mut text = Vec::new();
    File::open(path)
        .ok()?
        .take(MAX_BYTES)
        .read_to_end(&mut text)
        .ok()?;
    Some(text.into())
}

impl DatasetInfo {
    /// A split with its shards; `None` if a length is no number, or the template is longer than a
    /// name.
    fn split(&self, split: &SplitInfo, folder: &Path) -> Option<TfdsSplit> {
        let mut lengths = Vec::new();
        for length in &split.shard_lengths {
            lengths.push(match length {
                ShardLength::Number(records) => *records,
                ShardLength::Text(text) => text.parse().ok()?,
            });
        }
        let template = split.filepath_template.as_deref().unwrap_or(TEMPLATE);
        let file_format = self.file_format.as_deref().unwrap_or(TFRECORD);
        let parts = [template, &self.name, &split.name, file_format];
        if parts.iter().any(|part| part.len() > MAX_TEMPLATE) {
            return None;
        }
        let template = template
            .replace("{DATASET}", &self.name)
            .replace("{SPLIT}", &split.name)
            .replace("{FILEFORMAT}", file_format);
        Some(TfdsSplit {
            name: split.name.clone(),
            lengths,
            folder: folder.to_owned(),
            template,
        })
    }
}
