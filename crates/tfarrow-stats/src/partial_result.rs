//! The results of reading the parts of a data set in several processes, such as the jobs of an array on a cluster, and their merge.
//!
//! ```text
//! process 0: Part 0/2 ─▶ PartialResult::read ─▶ to_bytes ─┐
//! process 1: Part 1/2 ─▶ PartialResult::read ─▶ to_bytes ─┴▶ from_bytes ─▶ PartialResult::merge ─▶ MergedResult
//! ```
//!
//! A merged result is that of one process that reads the whole data set.
//!
//! Engines need four functions: [`Part::indices`] divides the shards, [`PartialResult::read`] reads a part,
//! [`PartialResult::to_bytes`] and [`PartialResult::from_bytes`] move the result to another process, and
//! [`PartialResult::merge`] merges all of them.
//!
//! ```
//! use std::{collections::BTreeMap, ops::ControlFlow};
//! use tfarrow_dataset::{InferOptions, Part, resolve};
//! use tfarrow_stats::{MergedContent, PartWork, PartialResult};
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
//! let parts = results.iter().map(|bytes| PartialResult::from_bytes(bytes)).collect::<Result<_, _>>()?;
//! let MergedContent::Statistics(statistics) = PartialResult::merge(parts)?.content else { unreachable!() };
//! assert_eq!(statistics.inferred.summary.records(), 2);
//! # Ok(()) }
//! ```

use std::{collections::BTreeMap, fmt};

use prost::Message;
use serde::{Deserialize, Serialize};
use tfarrow_codec::{Limits, OnError, RecordType};
use tfarrow_columnar::infer_with;
use tfarrow_dataset::{
    Error, InferOptions, Inferred, InferredState, OnProgress, Part, ProbablePayload, ReadOptions, Result, Shard,
    ShardFormat, ShardState, shown_names,
};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::{
    Comparison, Expected, RecordProfile, RecordProfiler, SliceError, SlicedState, SlicedStatistics, Statistics,
    StatisticsState, Validation, ValidationState, proto::Schema,
};

/// The first bytes of a partial result.
const MAGIC: &[u8; 8] = b"tfarrowP";
/// The number of the format that follows. It changes with the state of any statistic.
const FORMAT: u32 = 1;

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
    /// The shards of the baseline data set, which is read in parts as well. With a baseline there must be a schema: it cannot be
    /// inferred from a part of the baseline.
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
    content: PartContent,
}

/// The shards of a data set, as far as all parts must agree on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DataSet {
    shards: usize,
    /// A hash of their names and sizes.
    hash: u64,
}

/// The options of reading that a merge needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PartOptions {
    record_type: Option<RecordType>,
    on_error: OnError,
    limits: Limits,
}

#[derive(Debug, Serialize, Deserialize)]
enum PartContent {
    Columns {
        inferred: InferredState,
        /// The first records of the data set, if the part has the first shard.
        first_records: Vec<Vec<u8>>,
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
    found: ValidationState,
    /// The serialized schema.
    schema: Option<Vec<u8>>,
    environment: Option<String>,
    /// The statistics of the part of the baseline, and the baseline's data set.
    baseline: Option<(StatisticsState, DataSet, Vec<(u32, ShardState)>)>,
    max_drift: Option<f64>,
    examples: usize,
    profile: Option<RecordProfiler>,
}

/// The result of all parts of a data set.
#[derive(Debug)]
pub struct MergedResult {
    /// The shards of the data set. Their data cannot be read.
    pub shards: Vec<Shard>,
    /// The settings that the parts were made with.
    pub settings: BTreeMap<String, String>,
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
    /// Reads the [part](InferOptions::part) of `shards` that the options name. `settings` are those of the caller, by name; results
    /// with different settings are not merged.
    ///
    /// # Errors
    /// [`PartError::Usage`] for options without a part or with a sample, and for a baseline without a schema;
    /// [`PartError::Slice`] and [`PartError::Read`] with the errors of [`Statistics::collect_sliced`] and
    /// [`Validation::validate`].
    pub fn read(
        shards: &[Shard],
        work: PartWork<'_>,
        settings: BTreeMap<String, String>,
        options: &InferOptions,
        progress: &OnProgress<'_>,
    ) -> Result<Self, PartError> {
        let part = options.part.ok_or(PartError::Usage("the options name no part"))?;
        let content = match work {
            PartWork::Columns => {
                let inferred = infer_with(shards, options, progress)?;
                let first_records = first_records(shards, part, options)?;
                PartContent::Columns { inferred: inferred.into_state(), first_records }
            }
            PartWork::Statistics => {
                PartContent::Statistics(Statistics::collect(shards, options, progress)?.into_state())
            }
            PartWork::Slices(by) => {
                let state = SlicedStatistics::collect_part(shards, options, progress, by)?;
                PartContent::Slices { by: by.to_owned(), state }
            }
            PartWork::Comparison(expected) => {
                PartContent::Comparison(Box::new(ComparedPart::read(shards, expected, part, options, progress)?))
            }
        };
        let InferOptions { record_type, read: ReadOptions { on_error, limits, .. }, .. } = *options;
        let options = PartOptions { record_type, on_error, limits };
        let (data_set, shards) = (DataSet::of(shards), states(shards, part));
        Ok(Self { part, data_set, shards, options, settings, content })
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
        // Writing to a vector does not fail, and the types have no maps or sequences of unknown length.
        let body = postcard::to_stdvec(self).unwrap_or_default();
        [&MAGIC[..], &FORMAT.to_le_bytes(), &xxh3_64(&body).to_le_bytes(), &body].concat()
    }

    /// Restores a result from its bytes, which are not trusted.
    ///
    /// # Errors
    /// [`PartError::NotAPart`] for other bytes, for truncated or changed ones, and for those of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PartError> {
        let not = |reason| Err(PartError::NotAPart(reason));
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return not("it does not begin as one") };
        let Some((format, rest)) = rest.split_first_chunk() else { return not("it is truncated") };
        if u32::from_le_bytes(*format) != FORMAT {
            return not("another version of tfarrow has written it");
        }
        let Some((hash, body)) = rest.split_first_chunk() else { return not("it is truncated") };
        if u64::from_le_bytes(*hash) != xxh3_64(body) {
            return not("it is truncated or corrupt");
        }
        let result: Self = match postcard::from_bytes(body) {
            Ok(result) => result,
            Err(_) => return not("its content is not valid"),
        };
        match Part::new(result.part.index(), result.part.count()) {
            Some(_) => Ok(result),
            None => not("there is no such part"),
        }
    }

    /// Merges the results of all parts, in any order. A result that is given twice counts once.
    ///
    /// # Errors
    /// [`PartError::Missing`] if parts are missing, [`PartError::Mixed`] if results are those of different data sets, divisions,
    /// options or settings, and [`PartError::Read`] for more names of features than the limits allow.
    pub fn merge(parts: Vec<Self>) -> Result<MergedResult, PartError> {
        let parts = complete(parts)?;
        let Some(Self { data_set, options, settings, .. }) = parts.first() else { return Err(PartError::Empty) };
        let (data_set, settings) = (*data_set, settings.clone());
        let PartOptions { record_type, on_error, limits } = *options;
        let read = ReadOptions { on_error, limits, ..ReadOptions::default() };
        let options = InferOptions { record_type, read, ..InferOptions::default() };
        let (mut states, mut contents) = (Vec::new(), Vec::new());
        for part in parts {
            states.extend(part.shards);
            contents.push(part.content);
        }
        let shards = data_set.restore(states)?;
        let content = MergedContent::of(contents, shown_names(&shards), &options)?;
        Ok(MergedResult { shards, settings, content })
    }
}

/// Checks that results are those of all parts of one data set, and returns them in order, each once.
fn complete(parts: Vec<PartialResult>) -> Result<Vec<PartialResult>, PartError> {
    let Some(count) = parts.first().map(|first| first.part.count()) else { return Err(PartError::Empty) };
    let mut by_index: BTreeMap<usize, PartialResult> = BTreeMap::new();
    for part in parts {
        let first = by_index.values().next();
        if let Some(what) = first.and_then(|first| first.difference(&part)) {
            return Err(PartError::Mixed(what));
        }
        let (number, bytes) = (part.part, part.to_bytes());
        if let Some(known) = by_index.insert(number.index(), part)
            && known.to_bytes() != bytes
        {
            return Err(PartError::Twice(number));
        }
    }
    if by_index.len() < count {
        let missing = (0..count).filter(|index| !by_index.contains_key(index));
        let missing: Vec<_> = missing.take(MAX_LISTED).collect();
        return Err(PartError::Missing { missing, number: count - by_index.len(), of: count });
    }
    Ok(by_index.into_values().collect())
}

/// Maximum number of missing parts that an error lists.
const MAX_LISTED: usize = 1_000;

impl PartialResult {
    /// Returns in what another result differs, so that it cannot be merged with this one.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        use std::mem::discriminant;
        let differences = [
            (discriminant(&self.content) != discriminant(&other.content), "commands"),
            (self.part.count() != other.part.count(), "numbers of parts"),
            (self.data_set != other.data_set, "data sets, or of one that has changed"),
            (self.options != other.options || self.settings != other.settings, "options"),
            (!self.content.has_same_rules(&other.content), "schemas, baselines or other rules"),
        ];
        differences.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }
}

impl PartContent {
    /// Returns whether the parts were compared with the same expectations, or sliced by the same feature.
    fn has_same_rules(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Slices { by, .. }, Self::Slices { by: other, .. }) => by == other,
            (Self::Comparison(one), Self::Comparison(other)) => one.rules() == other.rules(),
            _ => true,
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
        let PartExpected { schema, environment, baseline, max_drift, examples } = expected;
        if baseline.is_some() && schema.is_none() {
            return Err(PartError::Usage("a baseline that is read in parts needs a schema"));
        }
        let baseline = baseline.map(|baseline| {
            let statistics = Statistics::collect(baseline, options, progress)?;
            Ok::<_, PartError>((statistics.into_state(), DataSet::of(baseline), states(baseline, part)))
        });
        let count = examples.unwrap_or_default();
        let profiler = || examples.map(RecordProfiler::new);
        let none = Schema::default();
        let (found, profilers) =
            Validation::validate_part(shards, schema.unwrap_or(&none), options, progress, profiler)?;
        let profile = examples.map(|examples| RecordProfiler::merged(examples, profilers.into_iter().flatten()));
        Ok(Self {
            found,
            schema: schema.map(Schema::encode_to_vec),
            environment: environment.map(str::to_owned),
            baseline: baseline.transpose()?,
            max_drift,
            examples: count,
            profile,
        })
    }

    /// The expectations.
    fn rules(&self) -> (Option<&[u8]>, Option<&str>, Option<DataSet>, Option<u64>, usize, bool) {
        let baseline = self.baseline.as_ref().map(|(_, data_set, _)| *data_set);
        let (schema, drift) = (self.schema.as_deref(), self.max_drift.map(f64::to_bits));
        (schema, self.environment.as_deref(), baseline, drift, self.examples, self.profile.is_some())
    }

    fn merge(parts: Vec<Self>, names: Vec<String>, options: &InferOptions) -> Result<MergedContent, PartError> {
        let (mut found, mut baseline, mut profiles) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rules, mut baseline_set, mut baseline_shards) = (None, None, Vec::new());
        for part in parts {
            found.push(part.found);
            if let Some((statistics, data_set, shards)) = part.baseline {
                baseline.push(statistics);
                baseline_set = Some(data_set);
                baseline_shards.extend(shards);
            }
            profiles.extend(part.profile);
            rules = Some((part.schema, part.environment, part.max_drift, part.examples));
        }
        let Some((schema, environment, max_drift, examples)) = rules else { return Err(PartError::Empty) };
        let schema = schema.map(|schema| Schema::decode(schema.as_slice())).transpose();
        let schema = schema.map_err(|_| PartError::NotAPart("its schema is not valid"))?;
        let baseline = baseline_set.map(|data_set| {
            let shards = data_set.restore(baseline_shards)?;
            Ok::<_, PartError>(Statistics::from_states(baseline, shown_names(&shards), options)?)
        });
        let environment = environment.as_deref();
        let expected = Expected { schema, baseline: baseline.transpose()?, environment, max_drift };
        let compared = Comparison::from_states(found, names, expected, options)?;
        let has_profile = !profiles.is_empty();
        let profile = has_profile.then(|| RecordProfiler::merged(examples, profiles).finish());
        Ok(MergedContent::Comparison(Box::new(compared), profile))
    }
}

impl MergedContent {
    /// Merges results of one kind.
    fn of(parts: Vec<PartContent>, names: Vec<String>, options: &InferOptions) -> Result<Self, PartError> {
        let (mut columns, mut records, mut statistics) = (Vec::new(), Vec::new(), Vec::new());
        let (mut slices, mut sliced_by, mut compared) = (Vec::new(), None, Vec::new());
        for part in parts {
            match part {
                PartContent::Columns { inferred, first_records } => {
                    columns.push(inferred);
                    records.extend(first_records);
                }
                PartContent::Statistics(state) => statistics.push(state),
                PartContent::Slices { by, state } => {
                    slices.push(state);
                    sliced_by = Some(by);
                }
                PartContent::Comparison(part) => compared.push(*part),
            }
        }
        if let Some(by) = sliced_by {
            let sliced = SlicedStatistics::from_states(slices, names, options, &by)?;
            return Ok(Self::Slices(by, sliced));
        }
        if !compared.is_empty() {
            return ComparedPart::merge(compared, names, options);
        }
        if !statistics.is_empty() {
            return Ok(Self::Statistics(Statistics::from_states(statistics, names, options)?));
        }
        let inferred = Inferred::from_states(columns, names, options)?;
        let is_raw = options.record_type.is_none() && inferred.summary.record_type() == RecordType::Raw;
        let records: Vec<_> = records.iter().map(Vec::as_slice).collect();
        let probable = if is_raw { ProbablePayload::of_records(&records) } else { None };
        Ok(Self::Columns(inferred, probable))
    }
}

/// Returns the first records of the data set if the part has the first shard: all records are raw if those of any part are.
fn first_records(shards: &[Shard], part: Part, options: &InferOptions) -> Result<Vec<Vec<u8>>> {
    let is_tfrecord = shards.iter().all(|shard| shard.format == ShardFormat::TfRecord);
    let may_be_raw = options.record_type.is_none() && is_tfrecord;
    match may_be_raw && part.indices(shards).first() == Some(&0) {
        true => ProbablePayload::sample(shards, &options.read),
        false => Ok(Vec::new()),
    }
}

/// The properties of the shards of a part, with their numbers.
fn states(shards: &[Shard], part: Part) -> Vec<(u32, ShardState)> {
    let state = |index: usize| Some((index as u32, shards.get(index)?.state()));
    part.indices(shards).into_iter().filter_map(state).collect()
}

impl DataSet {
    fn of(shards: &[Shard]) -> Self {
        let mut hash = Xxh3::new();
        for shard in shards {
            let name = shard.name.as_os_str().as_encoded_bytes();
            hash.update(&(name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update(&shard.size.to_le_bytes());
        }
        Self { shards: shards.len(), hash: hash.digest() }
    }

    /// Restores the shards of the data set from those of all parts.
    fn restore(self, mut states: Vec<(u32, ShardState)>) -> Result<Vec<Shard>, PartError> {
        states.sort_by_key(|(number, _)| *number);
        let is_complete = states.len() == self.shards
            && states.iter().enumerate().all(|(index, (number, _))| index == *number as usize);
        if !is_complete {
            return Err(PartError::NotAPart("the parts have not all shards of the data set"));
        }
        Ok(states.into_iter().map(|(_, state)| Shard::of_state(state)).collect())
    }
}

/// The reasons why a part cannot be read, or parts cannot be merged.
#[derive(Debug)]
pub enum PartError {
    /// A shard cannot be read, or features have more names than the limits allow.
    Read(Error),
    /// The data set cannot be sliced by a feature.
    Slice(SliceError),
    /// The arguments are invalid.
    Usage(&'static str),
    /// Bytes are no partial result.
    NotAPart(&'static str),
    /// There is no partial result.
    Empty,
    /// Parts are missing.
    Missing {
        /// The numbers of missing parts, up to 1,000.
        missing: Vec<usize>,
        /// Number of missing parts.
        number: usize,
        /// Number of parts.
        of: usize,
    },
    /// There are two different results of this part.
    Twice(Part),
    /// The results are of different things, which the text names in the plural.
    Mixed(&'static str),
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Slice(error) => error.fmt(f),
            Self::Usage(reason) => f.write_str(reason),
            Self::NotAPart(reason) => write!(f, "not a partial result: {reason}"),
            Self::Empty => f.write_str("there is no partial result"),
            Self::Missing { missing, number, of } => {
                let listed: Vec<_> = missing.iter().map(|index| format!("{index}/{of}")).collect();
                let more = number - missing.len().min(*number);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let are = if *number == 1 { "part is" } else { "parts are" };
                write!(f, "{number} of {of} {are} missing: {}{more}", listed.join(", "))
            }
            Self::Twice(part) => write!(f, "there are two different results of part {part}"),
            Self::Mixed(what) => write!(f, "these are partial results of different {what}"),
        }
    }
}

impl std::error::Error for PartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => error.source(),
            Self::Slice(error) => error.source(),
            Self::Usage(_)
            | Self::NotAPart(_)
            | Self::Empty
            | Self::Missing { .. }
            | Self::Twice(_)
            | Self::Mixed(_) => None,
        }
    }
}

impl From<Error> for PartError {
    fn from(error: Error) -> Self {
        Self::Read(error)
    }
}

impl From<SliceError> for PartError {
    fn from(error: SliceError) -> Self {
        Self::Slice(error)
    }
}
