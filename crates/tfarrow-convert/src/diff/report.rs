//! The options and the result of a comparison.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use tfarrow_codec::{
    RecordType, Role,
    diff::{Difference, FeatureValue, Tolerance},
};
use tfarrow_dataset::{
    DamageReport, MissingShards, ReadOptions, SkippedFiles, internals::TfdsSplit,
};

/// The options of a comparison. The defaults are those of the command line.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// The type of the records. By default it is inferred.
    pub record_type: Option<RecordType>,
    /// How TFRecord is read.
    pub read: ReadOptions,
    /// Maximum number of differences that are kept.
    pub max_differences: usize,
    /// The key features, by whose values records are paired. By default they are paired by their
    /// order.
    pub on: Vec<String>,
    /// The names of features that are not compared, and globs of them.
    pub exclude: Vec<String>,
    /// How far two floats may differ to be equal. By default their bits must be equal.
    pub tolerance: Option<Tolerance>,
    /// Maximum bytes of the records of the right data set that are held to find their partners by
    /// key. A larger data set is compared in several passes.
    pub memory_limit: usize,
    /// TFRecord files for the records without a partner of the left and of the right data set. A
    /// file is created only if there are any.
    pub unmatched: [Option<PathBuf>; 2],
    /// Whether existing files for unmatched records are replaced.
    pub overwrite: bool,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            record_type: None,
            read: ReadOptions::default(),
            max_differences: 10,
            on: Vec::new(),
            exclude: Vec::new(),
            tolerance: None,
            memory_limit: 1 << 30,
            unmatched: [None, None],
            overwrite: false,
        }
    }
}

/// The position of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPosition {
    /// The path of its file.
    pub path: Arc<PathBuf>,
    /// Its number in the file, from 0.
    pub record: u64,
    /// Its offset in the decompressed TFRecord file; `None` for other formats.
    pub offset: Option<u64>,
}

impl fmt::Display for RecordPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: record {}", self.path.display(), self.record)?;
        self.offset
            .map_or(Ok(()), |offset| write!(f, " (byte {offset})"))
    }
}

/// Two records that differ, or a record that is only on one side.
#[derive(Clone, Debug)]
pub struct RecordDifference {
    /// The number of the record in its data set, from 0; in the left one for a pair.
    pub number: u64,
    /// The positions of the left and the right record.
    pub positions: [Option<RecordPosition>; 2],
    /// The differences of a pair; empty if a record is only on one side.
    pub differences: Vec<Difference>,
    /// The values of each key feature; `None` if records are paired by their order, or if the
    /// record has no key.
    pub key: Option<Vec<Vec<FeatureValue>>>,
}

/// The keys of a comparison by key. Arrays have the value of the left and of the right data set.
#[derive(Clone, Debug, Default)]
pub struct KeyReport {
    /// The names of the key features.
    pub features: Vec<String>,
    /// Number of records without a key, because they do not have all of its features. They have no
    /// partner.
    pub missing: [u64; 2],
    /// Number of records that have the key of an earlier record, for keys of both data sets. Of
    /// each key, the first record is paired with the first, the second with the second.
    pub repeated: [u64; 2],
    /// Number of times that both data sets were read.
    pub passes: u64,
}

impl KeyReport {
    /// The values of a key in words, such as `id = 7, name = "a"`.
    pub fn text(&self, values: &[Vec<FeatureValue>]) -> String {
        let mut texts = Vec::new();
        for (feature, values) in self.features.iter().zip(values) {
            let text = match &values[..] {
                [value] => value.to_string(),
                values => {
                    let values: Vec<_> = values.iter().map(FeatureValue::to_string).collect();
                    format!("[{}]", values.join(", "))
                }
            };
            texts.push(format!("{feature} = {text}"));
        }
        texts.join(", ")
    }
}

/// The result of a comparison. Arrays have the value of the left and of the right data set.
#[derive(Debug)]
pub struct DataSetDiff {
    /// Number of records.
    pub records: [u64; 2],
    /// Number of pairs that are equal.
    pub equal: u64,
    /// Number of pairs that differ.
    pub different: u64,
    /// Number of records that are only on one side.
    pub unpaired: [u64; 2],
    /// Number of pairs in which each feature differs.
    pub features: BTreeMap<(Role, String), u64>,
    /// The first differences.
    pub first: Vec<RecordDifference>,
    /// The keys; `None` if records are paired by their order.
    pub keys: Option<KeyReport>,
    /// Corrupt and unparsable records of TFRecord files that were skipped.
    pub skipped: [DamageReport; 2],
    /// Why the bytes of records were compared and not their features, if the record type was
    /// inferred.
    pub why_raw: Option<String>,
    /// Other files in the folders of the data sets.
    pub other_files: [OtherFiles; 2],
}

/// Files of a data set that were not compared, shards that are missing, and the splits that were
/// compared.
#[derive(Clone, Debug, Default)]
pub struct OtherFiles {
    /// Files that may be data, but are not shards.
    pub skipped_files: SkippedFiles,
    /// Shards that are missing from numbered sets.
    pub missing: Vec<MissingShards>,
    /// The splits of TFDS that the shards belong to.
    pub splits: Vec<TfdsSplit>,
}

impl DataSetDiff {
    /// The result of a comparison of no records.
    pub(super) fn new() -> Self {
        Self {
            records: [0, 0],
            equal: 0,
            different: 0,
            unpaired: [0, 0],
            features: BTreeMap::new(),
            first: Vec::new(),
            keys: None,
            skipped: Default::default(),
            why_raw: None,
            other_files: Default::default(),
        }
    }

    /// Whether the data sets have the same records: in the same order, or with the same keys.
    pub fn is_equal(&self) -> bool {
        self.different == 0 && self.unpaired == [0, 0]
    }

    /// Adds two records that are partners, and keeps their differences unless there are `max`
    /// already. `number` is that of the left record.
    pub(super) fn add_pair(
        &mut self,
        number: u64,
        pair: [RecordPosition; 2],
        differences: Vec<Difference>,
        max: usize,
    ) {
        if differences.is_empty() {
            self.equal += 1;
            return;
        }
        self.different += 1;
        for feature in differences
            .iter()
            .filter_map(|difference| difference.feature.clone())
        {
            *self.features.entry(feature).or_default() += 1;
        }
        if self.first.len() < max {
            let positions = pair.map(Some);
            self.first.push(RecordDifference {
                number,
                positions,
                differences,
                key: None,
            });
        }
    }

    /// Adds a record without a partner.
    pub(super) fn add_unpaired(
        &mut self,
        side: usize,
        number: u64,
        position: RecordPosition,
        max: usize,
    ) {
        let [left, right] = &mut self.unpaired;
        *(if side == 0 { left } else { right }) += 1;
        if self.first.len() < max {
            let positions = if side == 0 {
                [Some(position), None]
            } else {
                [None, Some(position)]
            };
            self.first.push(RecordDifference {
                number,
                positions,
                differences: Vec::new(),
                key: None,
            });
        }
    }
}
