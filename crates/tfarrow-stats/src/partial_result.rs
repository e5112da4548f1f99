//! The results of reading the parts of a data set in several processes, such as the jobs of an
//! array on a cluster, and their merge.
//!
//! ```text
//! process 0: Part 0/2 ─▶ PartialResult::read ─▶ to_bytes ─┐
//! process 1: Part 1/2 ─▶ PartialResult::read ─▶ to_bytes ─┴▶ from_bytes ─▶ PartMerger ─▶ MergedResult
//! ```
//!
//! A merged result is that of one process that reads the whole data set. The merger holds one part
//! beside the merged ones, and takes as much memory as such a process.
//!
//! Engines need four functions: [`Part::range`] divides the shards, [`PartialResult::read`] reads a
//! part, [`PartialResult::to_bytes`] and [`PartialResult::from_bytes`] move the result to another
//! process, and [`PartMerger`] merges all of them.
//!
//! ```
//! use std::{collections::BTreeMap, ops::ControlFlow};
//! use tfarrow_dataset::{Part, resolve};
//! use tfarrow_scan::InferOptions;
//! use tfarrow_stats::{MergedContent, PartMerger, PartWork, PartialResult};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # for name in ["a.tfrecord", "b.tfrecord"] {
//! #     let mut bytes = Vec::new();
//! #     let example = [10, 12, 10, 10, 10, 1, b'x', 18, 5, 26, 3, 10, 1, 1];
//! #     tfarrow_codec::frame::write(&example, &mut bytes);
//! #     std::fs::write(folder.path().join(name), &bytes)?;
//! # }
//! # let source = folder.path();
//! let mut results = Vec::new();
//! for part in [Part::new(0, 2), Part::new(1, 2)] {
//!     let options = InferOptions { part, ..InferOptions::default() };
//!     let progress = |_, _| ControlFlow::Continue(());
//!     let result =
//!         PartialResult::read(&resolve(&[source])?, PartWork::Statistics, BTreeMap::new(), &options, &progress)?;
//!     results.push(result.to_bytes());
//! }
//! let mut merger = PartMerger::default();
//! for bytes in &results {
//!     merger.add(PartialResult::from_bytes(bytes)?)?;
//! }
//! let MergedContent::Statistics(statistics) = merger.finish()?.content else { unreachable!() };
//! assert_eq!(statistics.inferred.summary.records(), 2);
//! # Ok(()) }
//! ```

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use serde::{Deserialize, Serialize};
use tfarrow_codec::{Limit, Limits, OnError, RecordType};
use tfarrow_dataset::{
    OnProgress, Part, ReadOptions, Result, Shard, ShardFormat,
    internals::{ProbablePayload, ShardState, is_remote},
};
use tfarrow_scan::{
    InferOptions, Inferred, InferredMerger, InferredState, Sample, infer, shown_names,
};
use thiserror::Error;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::{
    Comparison, Expected, RecordProfile, RecordProfiler, SliceError, SlicedState, SlicedStatistics,
    Statistics, StatisticsState, Validation, ValidationState,
    collect::{StatisticsMerger, slices::SlicesMerger},
    proto::Schema,
    validation::ValidationMerger,
};

/// The number of the format that follows. It changes with the state of any statistic.
const FORMAT: u32 = 3;

/// The purpose for which a part is read.
#[derive(Clone, Copy, Debug)]
pub enum PartWork<'a> {
    /// The inferred schema.
    Columns,
    /// Statistics of values.
    Statistics,
    /// Statistics of values, and of each slice by the values of this feature.
    Slices(&'a str),
    /// A comparison with a schema and a baseline.
    Comparison(PartExpected<'a>),
}

/// The expectations for a data set that is read in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartExpected<'a> {
    /// The schema.
    pub schema: Option<&'a Schema>,
    /// The environment of the schema. See [`Validation::validate`].
    pub environment: Option<&'a str>,
    /// The shards of the baseline data set, which is read in parts as well. With a baseline there
    /// must be a schema: it cannot be inferred from a part of the baseline.
    pub baseline: Option<&'a [Shard]>,
    /// The largest distance from the baseline. See [`Validation::compare`].
    pub max_drift: Option<f64>,
    /// The number of example records of a profile; `None` for no profile.
    pub examples: Option<usize>,
}

/// The result of reading one part of a data set.
#[derive(Debug, Serialize, Deserialize)]
pub struct PartialResult {
    part: Part,
    data_set: DataSet,
    /// The shards of the part, with their numbers.
    shards: Vec<(u32, ShardState)>,
    options: PartOptions,
    settings: BTreeMap<String, String>,
    notes: Vec<String>,
    content: PartContent,
    /// The hash of the serialized result, if it was restored from bytes.
    #[serde(skip)]
    hash: Option<u64>,
}

/// The shards of a data set, as far as all parts must agree on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DataSet {
    shards: usize,
    /// A hash of their names and sizes, and of the versions of objects.
    hash: u64,
}

/// The options of reading that a merge needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PartOptions {
    record_type: Option<RecordType>,
    on_error: OnError,
    limits: Limits,
}

impl PartOptions {
    /// The options of reading, as far as a merge needs them.
    fn infer(&self) -> InferOptions {
        let Self {
            record_type,
            on_error,
            limits,
        } = *self;
        let read = ReadOptions {
            on_error,
            limits,
            ..ReadOptions::default()
        };
        InferOptions {
            record_type,
            read,
            ..InferOptions::default()
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
enum PartContent {
    Columns {
        inferred: InferredState,
        /// The probable kind of the first records of the data set, if the part has the first shard.
        probable: Option<ProbablePayload>,
    },
    Statistics(StatisticsState),
    Slices {
        by: String,
        state: SlicedState,
    },
    Comparison(Box<ComparedPart>),
}

#[derive(Debug, Serialize, Deserialize)]
struct ComparedPart {
    rules: PartRules,
    found: ValidationState,
    /// The statistics of the part of the baseline, and its shards with their numbers.
    baseline: Option<(StatisticsState, Vec<(u32, ShardState)>)>,
    profile: Option<RecordProfiler>,
}

/// The expectations that all parts have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PartRules {
    /// The serialized schema.
    schema: Option<Vec<u8>>,
    environment: Option<String>,
    baseline: Option<DataSet>,
    max_drift: Option<f64>,
    examples: Option<usize>,
}

/// The result of all parts of a data set.
#[derive(Debug)]
pub struct MergedResult {
    /// The shards of the data set. Their data cannot be read.
    pub shards: Vec<Shard>,
    /// The settings that the parts were made with.
    pub settings: BTreeMap<String, String>,
    /// The notes of all parts, each of them once.
    pub notes: Vec<String>,
    /// The result.
    pub content: MergedContent,
}

/// The result of all parts, by their [`PartWork`].
#[derive(Debug)]
pub enum MergedContent {
    /// The inferred schema, and the probable kind of records that are raw.
    Columns(Inferred, Option<ProbablePayload>),
    /// The statistics.
    Statistics(Statistics),
    /// The statistics, and those of the slices by the values of a feature.
    Slices(String, SlicedStatistics),
    /// The comparison, and the profile if the parts have one.
    Comparison(Box<Comparison>, Option<RecordProfile>),
}

impl PartialResult {
    /// Checks that each of several processes can read the shards of a data set.
    ///
    /// # Errors
    /// [`PartError::Stream`] for standard input or a pipe, which only one process can read, and whose
    /// size is not known.
    pub fn check_sources(shards: &[Shard]) -> Result<(), PartError> {
        let Some(stream) = shards.iter().find(|shard| shard.is_stream()) else {
            return Ok(());
        };
        let name = if stream.is_stdin() {
            "standard input".to_owned()
        } else {
            stream.path.display().to_string()
        };
        Err(PartError::Stream(name))
    }

    /// The first bytes of each result.
    pub const MAGIC: &[u8; 8] = b"tfarrowP";

    /// Reads the [part](InferOptions::part) of `shards` that the options name. `settings` are those
    /// of the caller, by name; results with different settings are not merged.
    ///
    /// # Errors
    /// [`PartError::Usage`] for options without a part or with a sample, and for a baseline without
    /// a schema; [`PartError::Slice`] and [`PartError::Read`] with the errors of
    /// [`Statistics::collect_sliced`] and [`Validation::validate`].
    pub fn read(
        shards: &[Shard],
        work: PartWork<'_>,
        settings: BTreeMap<String, String>,
        options: &InferOptions,
        progress: &OnProgress<'_>,
    ) -> Result<Self, PartError> {
        let part = options
            .part
            .ok_or(PartError::Usage("the options name no part"))?;
        if options.sample != Sample::All {
            return Err(PartError::Usage(
                "all records of a part are read: the options must not name a sample",
            ));
        }
        let content = match work {
            PartWork::Columns => {
                let inferred = infer(shards, options, progress)?;
                let probable = probable(shards, part, options)?;
                PartContent::Columns {
                    inferred: inferred.into_state(),
                    probable,
                }
            }
            PartWork::Statistics => PartContent::Statistics(
                Statistics::collect(shards, options, progress)?.into_state(),
            ),
            PartWork::Slices(by) => {
                let state = SlicedStatistics::collect_part(shards, options, progress, by)?;
                PartContent::Slices {
                    by: by.to_owned(),
                    state,
                }
            }
            PartWork::Comparison(expected) => PartContent::Comparison(Box::new(
                ComparedPart::read(shards, expected, part, options, progress)?,
            )),
        };
        let InferOptions {
            record_type,
            read: ReadOptions {
                on_error, limits, ..
            },
            ..
        } = *options;
        let options = PartOptions {
            record_type,
            on_error,
            limits,
        };
        let data_set = DataSet::of(shards);
        let shards = states(shards, part);
        Ok(Self {
            part,
            data_set,
            shards,
            options,
            settings,
            notes: Vec::new(),
            content,
            hash: None,
        })
    }

    /// Returns the result with notes of the caller. They may differ between the parts of a data
    /// set, such as those about files of its folder that a part has not read.
    pub fn with_notes(self, notes: Vec<String>) -> Self {
        Self {
            notes,
            hash: None,
            ..self
        }
    }

    /// Returns the part.
    pub fn part(&self) -> Part {
        self.part
    }

    /// Serializes the result. Equal results have equal bytes.
    ///
    /// ```text
    /// "tfarrowP"   format, 4 bytes   XXH3 of the rest, 8 bytes   the result (postcard)
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let body = self.body();
        [
            &Self::MAGIC[..],
            &FORMAT.to_le_bytes(),
            &xxh3_64(&body).to_le_bytes(),
            &body,
        ]
        .concat()
    }

    fn body(&self) -> Vec<u8> {
        // Writing to a vector does not fail, and the types have no maps or sequences of unknown
        // length.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Restores a result from its bytes, which are not trusted.
    ///
    /// # Errors
    /// [`PartError::NotAPart`] for other bytes, for truncated or changed ones, and for those of
    /// another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PartError> {
        let not = |reason| Err(PartError::NotAPart(reason));
        let Some(rest) = bytes.strip_prefix(Self::MAGIC) else {
            return not("it does not begin as one");
        };
        let Some((format, rest)) = rest.split_first_chunk() else {
            return not("it is truncated");
        };
        if u32::from_le_bytes(*format) != FORMAT {
            return not("another version of tfarrow has written it");
        }
        let Some((hash, body)) = rest.split_first_chunk() else {
            return not("it is truncated");
        };
        let hash = u64::from_le_bytes(*hash);
        if hash != xxh3_64(body) {
            return not("it is truncated or corrupt");
        }
        let result: Self = match postcard::from_bytes(body) {
            Ok(result) => result,
            Err(_) => return not("its content is not valid"),
        };
        match Part::new(result.part.index(), result.part.count()) {
            Some(_) => Ok(Self {
                hash: Some(hash),
                ..result
            }),
            None => not("there is no such part"),
        }
    }
}

impl ComparedPart {
    fn read(
        shards: &[Shard],
        expected: PartExpected<'_>,
        part: Part,
        options: &InferOptions,
        progress: &OnProgress<'_>,
    ) -> Result<Self, PartError> {
        let PartExpected {
            schema,
            environment,
            baseline,
            max_drift,
            examples,
        } = expected;
        if baseline.is_some() && schema.is_none() {
            return Err(PartError::Usage(
                "a baseline that is read in parts needs a schema",
            ));
        }
        let rules = PartRules {
            schema: schema.map(Schema::encode_to_vec),
            environment: environment.map(str::to_owned),
            baseline: baseline.map(DataSet::of),
            max_drift,
            examples,
        };
        let baseline = baseline.map(|baseline| {
            let statistics = Statistics::collect(baseline, options, progress)?;
            Ok::<_, PartError>((statistics.into_state(), states(baseline, part)))
        });
        let none = Schema::default();
        let (found, profilers) =
            Validation::validate_part(shards, schema.unwrap_or(&none), options, progress, || {
                examples.map(RecordProfiler::new)
            })?;
        let profile = examples
            .map(|examples| RecordProfiler::merged(examples, profilers.into_iter().flatten()));
        Ok(Self {
            rules,
            found,
            baseline: baseline.transpose()?,
            profile,
        })
    }
}

/// Merges the results of all parts of a data set, in any order, one after the other.
#[derive(Debug, Default)]
pub struct PartMerger {
    /// The properties that all parts have in common, once there is a part.
    common: Option<CommonOfParts>,
    /// The hash of the result of each part.
    hashes: BTreeMap<usize, u64>,
    /// The notes of each part.
    notes: BTreeMap<usize, Vec<String>>,
    shards: Vec<(u32, ShardState)>,
    content: Option<ContentMerger>,
}

/// The properties that all parts have in common.
#[derive(Debug, PartialEq)]
struct CommonOfParts {
    count: usize,
    data_set: DataSet,
    options: PartOptions,
    settings: BTreeMap<String, String>,
}

impl CommonOfParts {
    fn of(part: &PartialResult) -> Self {
        let PartialResult {
            data_set,
            options,
            settings,
            ..
        } = part;
        Self {
            count: part.part.count(),
            data_set: *data_set,
            options: *options,
            settings: settings.clone(),
        }
    }

    /// Returns in what the parts of another data set differ, so that they cannot be merged with
    /// these.
    fn difference(&self, other: &Self) -> Option<String> {
        let own = self.named();
        let others = other.named();
        if own.get(COMMAND) != others.get(COMMAND) {
            return Some(format!("commands: {}", values_of(COMMAND, &own, &others)));
        }
        if self.count != other.count {
            return Some(format!(
                "numbers of parts: {} and {}",
                self.count, other.count
            ));
        }
        if self.data_set != other.data_set {
            return Some("data sets, or of one that has changed".to_owned());
        }
        let name = own
            .keys()
            .chain(others.keys())
            .find(|name| own.get(*name) != others.get(*name))?;
        Some(format!(
            "options: {name} is {}",
            values_of(name, &own, &others)
        ))
    }

    /// Returns all options and settings by name.
    fn named(&self) -> BTreeMap<String, String> {
        let PartOptions {
            record_type,
            on_error,
            limits,
        } = self.options;
        let limits = Limit::ALL.iter().map(|limit| {
            (
                format!("limit {}", limit.name()),
                limits.get(*limit).to_string(),
            )
        });
        let mut named: BTreeMap<_, _> = limits.collect();
        named.insert("on-error".to_owned(), on_error.name().to_owned());
        named.extend(
            record_type
                .map(|record_type| ("record-type".to_owned(), record_type.name().to_owned())),
        );
        named.extend(self.settings.clone());
        named
    }
}

/// Returns both values of an option or setting, in words.
fn values_of(
    name: &str,
    own: &BTreeMap<String, String>,
    others: &BTreeMap<String, String>,
) -> String {
    let [own, other] = [own, others].map(|named| named.get(name).map_or("none", String::as_str));
    format!("{own} and {other}")
}

impl PartMerger {
    /// Adds the result of a part. A result that is added twice counts once.
    ///
    /// # Errors
    /// [`PartError::Mixed`] if the part is of another data set, division or command than those
    /// before, or was read with other options or settings; [`PartError::Twice`] for another result
    /// of the same part; [`PartError::Read`] for more names of features than the limits allow.
    pub fn add(&mut self, part: PartialResult) -> Result<(), PartError> {
        let common = CommonOfParts::of(&part);
        if let Some(what) = self
            .common
            .as_ref()
            .and_then(|first| first.difference(&common))
        {
            return Err(PartError::Mixed(what));
        }
        // Serializing a result takes its memory a second time.
        let hash = part.hash.unwrap_or_else(|| xxh3_64(&part.body()));
        match self.hashes.insert(part.part.index(), hash) {
            Some(known) if known == hash => return Ok(()),
            Some(_) => return Err(PartError::Twice(part.part)),
            None => {}
        }
        let options = common.options.infer();
        self.common.get_or_insert(common);
        self.notes.insert(part.part.index(), part.notes);
        self.shards.extend(part.shards);
        match &mut self.content {
            Some(content) => content.add(part.content),
            content @ None => content
                .insert(ContentMerger::of(&part.content, &options)?)
                .add(part.content),
        }
    }

    /// Returns the result of the data set.
    ///
    /// # Errors
    /// [`PartError::Missing`] if parts are missing; the errors of [`SlicedStatistics`].
    pub fn finish(self) -> Result<MergedResult, PartError> {
        let Self {
            common: Some(common),
            hashes,
            notes,
            shards,
            content: Some(content),
        } = self
        else {
            return Err(PartError::Empty);
        };
        let CommonOfParts {
            count,
            data_set,
            options,
            settings,
        } = common;
        if hashes.len() < count {
            let missing = (0..count)
                .filter(|index| !hashes.contains_key(index))
                .take(MAX_LISTED)
                .collect();
            return Err(PartError::Missing {
                missing,
                number: count - hashes.len(),
                of: count,
            });
        }
        let shards = data_set.restore(shards)?;
        let content = content.finish(shown_names(&shards), &options.infer())?;
        Ok(MergedResult {
            shards,
            settings,
            notes: distinct(notes),
            content,
        })
    }
}

/// Returns the notes of all parts in their order, each of them once.
fn distinct(notes: BTreeMap<usize, Vec<String>>) -> Vec<String> {
    let mut known = BTreeSet::new();
    notes
        .into_values()
        .flatten()
        .filter(|note| known.insert(note.clone()))
        .collect()
}

/// The name of the setting of a caller that tells its commands apart.
pub const COMMAND: &str = "command";

/// Maximum number of missing parts that an error lists.
const MAX_LISTED: usize = 1_000;

/// Merges results of one kind.
#[derive(Debug)]
enum ContentMerger {
    Columns {
        inferred: InferredMerger,
        probable: Option<ProbablePayload>,
    },
    Statistics(StatisticsMerger),
    Slices {
        by: String,
        slices: Box<SlicesMerger>,
    },
    Comparison(Box<ComparisonMerger>),
}

impl ContentMerger {
    /// Creates a merger of results such as this one.
    fn of(first: &PartContent, options: &InferOptions) -> Result<Self, PartError> {
        Ok(match first {
            PartContent::Columns { .. } => Self::Columns {
                inferred: InferredMerger::new(options),
                probable: None,
            },
            PartContent::Statistics(_) => Self::Statistics(StatisticsMerger::new(options)),
            PartContent::Slices { by, .. } => Self::Slices {
                by: by.clone(),
                slices: Box::new(SlicesMerger::new(by.clone(), options)),
            },
            PartContent::Comparison(part) => {
                Self::Comparison(Box::new(ComparisonMerger::new(part, options)?))
            }
        })
    }

    fn add(&mut self, part: PartContent) -> Result<(), PartError> {
        match (self, part) {
            (
                Self::Columns { inferred, probable },
                PartContent::Columns {
                    inferred: part,
                    probable: of_part,
                },
            ) => {
                *probable = probable.take().or(of_part);
                inferred.add(part)?;
            }
            (Self::Statistics(statistics), PartContent::Statistics(part)) => {
                statistics.add(part)?
            }
            (Self::Slices { by, slices }, PartContent::Slices { by: other, state })
                if *by == other =>
            {
                slices.add(state)?;
            }
            (Self::Comparison(comparison), PartContent::Comparison(part)) => {
                comparison.add(*part)?
            }
            (merger, part) => return Err(PartError::Mixed(merger.difference(&part))),
        }
        Ok(())
    }

    /// Returns in what a result of another kind differs from those of this one.
    fn difference(&self, part: &PartContent) -> String {
        let own = match self {
            Self::Slices { by, .. } => Some(by.as_str()),
            _ => None,
        };
        let other = match part {
            PartContent::Slices { by, .. } => Some(by.as_str()),
            _ => None,
        };
        match own.or(other) {
            Some(_) => format!(
                "features to slice by: {} and {}",
                own.unwrap_or("none"),
                other.unwrap_or("none")
            ),
            None => "kinds".to_owned(),
        }
    }

    fn finish(
        self,
        names: Vec<String>,
        options: &InferOptions,
    ) -> Result<MergedContent, PartError> {
        Ok(match self {
            Self::Columns { inferred, probable } => {
                let inferred = inferred.finish(names);
                let is_raw = options.record_type.is_none()
                    && inferred.summary.record_type() == RecordType::Raw;
                MergedContent::Columns(inferred, probable.filter(|_| is_raw))
            }
            Self::Statistics(statistics) => MergedContent::Statistics(statistics.finish(names)),
            Self::Slices { by, slices } => MergedContent::Slices(by, slices.finish(names)?),
            Self::Comparison(comparison) => comparison.finish(names)?,
        })
    }
}

/// Merges comparisons.
#[derive(Debug)]
struct ComparisonMerger {
    rules: PartRules,
    schema: Option<Schema>,
    found: ValidationMerger,
    baseline: StatisticsMerger,
    baseline_shards: Vec<(u32, ShardState)>,
    profile: Option<RecordProfiler>,
}

impl ComparisonMerger {
    fn new(first: &ComparedPart, options: &InferOptions) -> Result<Self, PartError> {
        let rules = first.rules.clone();
        let schema = rules.schema.as_deref().map(Schema::decode).transpose();
        let schema = schema.map_err(|_| PartError::NotAPart("its schema is not valid"))?;
        let none = Schema::default();
        let found = ValidationMerger::new(schema.as_ref().unwrap_or(&none), options);
        let profile = rules.examples.map(RecordProfiler::new);
        let baseline = StatisticsMerger::new(options);
        Ok(Self {
            rules,
            schema,
            found,
            baseline,
            baseline_shards: Vec::new(),
            profile,
        })
    }

    fn add(&mut self, part: ComparedPart) -> Result<(), PartError> {
        if part.rules != self.rules {
            return Err(PartError::Mixed(
                "schemas, baselines or other rules".to_owned(),
            ));
        }
        self.found.add(part.found)?;
        if let Some((statistics, shards)) = part.baseline {
            self.baseline.add(statistics)?;
            self.baseline_shards.extend(shards);
        }
        if let (Some(profile), Some(part)) = (&mut self.profile, part.profile) {
            profile.merge(part);
        }
        Ok(())
    }

    fn finish(self, names: Vec<String>) -> Result<MergedContent, PartError> {
        let Self {
            rules,
            schema,
            found,
            baseline,
            baseline_shards,
            profile,
        } = self;
        let baseline = match rules.baseline {
            Some(data_set) => {
                Some(baseline.finish(shown_names(&data_set.restore(baseline_shards)?)))
            }
            None => None,
        };
        let environment = rules.environment.as_deref();
        let expected = Expected {
            schema,
            baseline,
            environment,
            max_drift: rules.max_drift,
        };
        let compared = Comparison::of(expected, |_, environment| {
            Ok(found.finish(names, environment))
        })?;
        Ok(MergedContent::Comparison(
            Box::new(compared),
            profile.map(RecordProfiler::finish),
        ))
    }
}

/// Returns the probable kind of the first records of the data set if the part has the first shard:
/// all records are raw if those of any part are.
fn probable(
    shards: &[Shard],
    part: Part,
    options: &InferOptions,
) -> Result<Option<ProbablePayload>> {
    let is_tfrecord = shards
        .iter()
        .all(|shard| shard.format == ShardFormat::TfRecord);
    let may_be_raw = options.record_type.is_none() && is_tfrecord;
    match may_be_raw && part.range(shards).contains(&0) {
        true => ProbablePayload::of(shards, &options.read),
        false => Ok(None),
    }
}

/// The properties of the shards of a part, with their numbers.
fn states(shards: &[Shard], part: Part) -> Vec<(u32, ShardState)> {
    let range = part.range(shards);
    let own = shards.get(range.clone()).unwrap_or_default();
    range
        .zip(own)
        .map(|(number, shard)| (number as u32, shard.state()))
        .collect()
}

/// Returns the version of a shard in a store. Those of files are times, which may differ between
/// the machines that mount them.
fn object_version(shard: &Shard) -> Option<String> {
    shard
        .path
        .to_str()
        .is_some_and(is_remote)
        .then(|| shard.version())
        .flatten()
}

impl DataSet {
    fn of(shards: &[Shard]) -> Self {
        let mut hash = Xxh3::new();
        for shard in shards {
            let name = shard.name.as_os_str().as_encoded_bytes();
            hash.update(&(name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update(&shard.size.to_le_bytes());
            hash.update(object_version(shard).unwrap_or_default().as_bytes());
            hash.update(&[0]);
        }
        Self {
            shards: shards.len(),
            hash: hash.digest(),
        }
    }

    /// Restores the shards of the data set from those of all parts.
    fn restore(self, mut states: Vec<(u32, ShardState)>) -> Result<Vec<Shard>, PartError> {
        states.sort_by_key(|(number, _)| *number);
        let is_complete = states.len() == self.shards
            && states
                .iter()
                .enumerate()
                .all(|(index, (number, _))| index == *number as usize);
        if !is_complete {
            return Err(PartError::Shards {
                found: states.len(),
                of: self.shards,
            });
        }
        Ok(states
            .into_iter()
            .map(|(_, state)| Shard::of_state(state))
            .collect())
    }
}

/// The reasons why a part cannot be read, or parts cannot be merged.
#[derive(Debug, Error)]
pub enum PartError {
    /// A shard cannot be read, or features have more names than the limits allow.
    #[error("{0}")]
    Read(#[from] tfarrow_dataset::Error),
    /// The data set cannot be sliced by a feature.
    #[error("{0}")]
    Slice(#[from] SliceError),
    /// A shard that only one process can read.
    #[error(
        "{0} has no parts, because only one process can read it: copy it to a file, and name that file"
    )]
    Stream(String),
    /// The arguments are invalid.
    #[error("{0}")]
    Usage(&'static str),
    /// Bytes are no partial result.
    #[error("not a partial result: {0}")]
    NotAPart(&'static str),
    /// There is no partial result.
    #[error("there is no partial result")]
    Empty,
    /// Parts are missing.
    #[error(
        "{number} of {of} parts {are} missing: {listed}",
        are = if *number == 1 { "is" } else { "are" },
        listed = listed_parts(missing, *number, *of),
    )]
    Missing {
        /// The numbers of missing parts, up to 1,000.
        missing: Vec<usize>,
        /// Number of missing parts.
        number: usize,
        /// Number of parts.
        of: usize,
    },
    /// There are two different results of this part.
    #[error("there are two different results of part {0}")]
    Twice(Part),
    /// The results are of different things, which the text names in the plural.
    #[error(
        "these are partial results of different {0}; read all parts with the same command line"
    )]
    Mixed(String),
    /// All parts together do not have each shard of the data set once.
    #[error(
        "the parts have {found} shards, not each of the {of} of the data set once; read all parts again"
    )]
    Shards {
        /// Number of shards of the parts.
        found: usize,
        /// Number of shards of the data set.
        of: usize,
    },
}

/// The first parts of which there is no result, and the number of the others.
fn listed_parts(missing: &[usize], number: usize, of: usize) -> String {
    let listed: Vec<_> = missing
        .iter()
        .map(|index| format!("{index}/{of}"))
        .collect();
    let listed = listed.join(", ");
    match number.saturating_sub(missing.len()) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
