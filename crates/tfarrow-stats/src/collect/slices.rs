//! Slicing: the statistics of a data set, and of its records by the values of one feature.
//!
//! As in TFDV, a record is in the slice of each value that the feature has in it; a record without
//! a value is in no slice.

use std::{collections::BTreeMap, fmt, ops::ControlFlow};

use serde::{Deserialize, Serialize, Serializer};
use tfarrow_codec::{
    Limits, Place, Role, Summary,
    infer::{RecordObserver, SeenRecord, ValueList},
};
use tfarrow_dataset::{DamageReport, Error, OnProgress, Shard, internals::Lock};
use tfarrow_scan::{InferOptions, Inferred, RowLosses};

use super::{
    Statistics, StatisticsMerger, StatisticsObserver, StatisticsState, feature::FeatureAccumulator,
};
use crate::excerpt::text_or_bytes;

/// Largest number of slices. Each slice takes as much memory as a data set.
pub const MAX_SLICES: usize = 256;
/// Largest length of a slice's value in bytes.
const MAX_VALUE_BYTES: usize = 256;

/// Largest number of features that an error lists.
const MAX_NAMED: usize = 30;

/// The value of a feature that all records of a slice have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SliceValue {
    /// A value of an `Int64List`.
    Int64(i64),
    /// A value of a `BytesList`, of up to 256 bytes.
    Bytes(Box<[u8]>),
}

/// Serializes integers as numbers, and byte strings as text or `{"b64": ".."}`.
impl Serialize for SliceValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int64(value) => serializer.serialize_i64(*value),
            Self::Bytes(value) => text_or_bytes(value, serializer),
        }
    }
}

/// Writes byte strings as text, with U+FFFD for bytes that are not UTF-8.
impl fmt::Display for SliceValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int64(value) => value.fmt(f),
            Self::Bytes(value) => String::from_utf8_lossy(value).fmt(f),
        }
    }
}

/// The records whose feature has a value.
#[derive(Debug)]
pub struct Slice {
    /// The value of the feature.
    pub value: SliceValue,
    /// The statistics of the records.
    pub statistics: Statistics,
}

/// The statistics of a data set and of its slices.
#[derive(Debug)]
pub struct SlicedStatistics {
    /// The statistics of all records.
    pub all: Statistics,
    /// The slices, in descending order of their numbers of records, then in the order of their
    /// values.
    pub slices: Vec<Slice>,
    /// Number of records that are in no slice.
    pub without: u64,
}

/// The reason why a data set cannot be sliced by a feature.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    /// A shard cannot be read.
    #[error(transparent)]
    Read(Error),
    /// No record has the feature; the second field lists the features of the data set.
    #[error("no record has a feature {0:?} to slice by; there are {named}", named = named(.1))]
    Absent(String, Vec<String>),
    /// The feature has more than [`MAX_SLICES`] values.
    #[error(
        "feature {0:?} has more than {MAX_SLICES} values, and each slice has its own statistics: choose a feature with \
         fewer values"
    )]
    TooMany(String),
    /// The feature (first field) has values that cannot be sliced by (second field): floats, or
    /// byte strings that are too long. The third field is the file, record and byte offset of such
    /// a value.
    #[error(
        "feature {0:?} has {1}, in {2}: slice by integers, or by byte strings of up to {MAX_VALUE_BYTES} bytes"
    )]
    Unsupported(String, &'static str, String),
}

/// The first names of a list, and the number of the others.
fn named(all: &[String]) -> String {
    let first = all.get(..MAX_NAMED).unwrap_or(all).join(", ");
    let more = all.len().saturating_sub(MAX_NAMED);
    if more == 0 {
        return first;
    }
    format!("{first} and {more} more")
}

impl Statistics {
    /// Collects the statistics of `shards`, and of each slice of their records by the feature `by`.
    ///
    /// # Errors
    /// [`SliceError::Read`] with the errors of [`infer_observed`](tfarrow_scan::infer_observed);
    /// [`SliceError::Absent`], [`SliceError::TooMany`] and [`SliceError::Unsupported`] for a
    /// feature that the data set cannot be sliced by.
    pub fn collect_sliced(
        shards: &[Shard],
        options: &InferOptions,
        progress: &OnProgress<'_>,
        by: &str,
    ) -> Result<SlicedStatistics, SliceError> {
        let (all, slices) = SlicesByValue::collect(shards, options, progress, by)?;
        slices.finish(all, by)
    }
}

impl SlicedStatistics {
    /// Collects the statistics of a [part](InferOptions::part) of `shards`, and of its slices.
    ///
    /// # Errors
    /// Those of [`Statistics::collect_sliced`], except [`SliceError::Absent`].
    pub fn collect_part(
        shards: &[Shard],
        options: &InferOptions,
        progress: &OnProgress<'_>,
        by: &str,
    ) -> Result<SlicedState, SliceError> {
        let (all, slices) = SlicesByValue::collect(shards, options, progress, by)?;
        Ok(slices.into_state(all))
    }
}

/// The slices of a data set, or of a part of it.
#[derive(Default)]
struct SlicesByValue {
    /// The summary of each slice, and any number of accumulators of each of its features.
    by_value: BTreeMap<SliceValue, (Summary, Vec<FeatureAccumulator>)>,
    /// Number of records that are in some slice.
    sliced: u64,
}

impl SlicesByValue {
    /// Collects the statistics of all records, and the slices.
    fn collect(
        shards: &[Shard],
        options: &InferOptions,
        progress: &OnProgress<'_>,
        by: &str,
    ) -> Result<(Statistics, Self), SliceError> {
        let failure = Lock::new(None);
        let limits = options.read.limits;
        let counted = Statistics::collect_with(
            shards,
            options,
            &|bytes, records| {
                if failure.lock().is_some() {
                    ControlFlow::Break(())
                } else {
                    progress(bytes, records)
                }
            },
            || SliceObserver {
                by,
                limits,
                failure: &failure,
                slices: BTreeMap::new(),
                sliced: 0,
                shrunk: 0,
            },
        );
        let failed = *failure.lock();
        if let Some(failure) = failed {
            return Err(failure.into_error(by, shards));
        }
        let (all, slicers) = counted.map_err(SliceError::Read)?;
        let mut slices = Self::default();
        for slicer in slicers {
            slices.sliced += slicer.sliced;
            for (value, SliceAccumulator { summary, counter }) in slicer.slices {
                slices.add(value, &summary, counter.into_values(), limits);
            }
        }
        Ok((all, slices))
    }

    fn add(
        &mut self,
        value: SliceValue,
        summary: &Summary,
        values: impl IntoIterator<Item = FeatureAccumulator>,
        limits: Limits,
    ) {
        let (merged, all) = self
            .by_value
            .entry(value)
            .or_insert_with(|| (Summary::with_limits(0, limits), Vec::new()));
        // The slice has no more features than the data set, which is within the limits.
        let _ = merged.merge(summary);
        all.extend(values);
    }

    /// Returns the state of the statistics of a part, and of its slices.
    fn into_state(self, all: Statistics) -> SlicedState {
        let count = self.by_value.len();
        let mut slices = Vec::with_capacity(count);
        for (value, (summary, values)) in self.by_value {
            let inferred = of_slice(summary, &all);
            let merged = Statistics::merge_values(inferred, values.into_iter(), 1 + count);
            slices.push(SliceState {
                value,
                statistics: merged.into_state(),
            });
        }
        SlicedState {
            all: all.into_state(),
            slices,
            sliced: self.sliced,
        }
    }

    /// Returns the statistics of a complete data set.
    fn finish(self, all: Statistics, by: &str) -> Result<SlicedStatistics, SliceError> {
        let summary = &all.inferred.summary;
        if !summary
            .features()
            .any(|feature| feature.role == Role::Feature && feature.name == by)
        {
            let mut names = Vec::new();
            for feature in summary.features() {
                if feature.role == Role::Feature {
                    names.push(feature.name.clone());
                }
            }
            return Err(SliceError::Absent(by.to_owned(), names));
        }
        let without = summary.records().saturating_sub(self.sliced);
        let count = self.by_value.len();
        if count > MAX_SLICES {
            return Err(SliceError::TooMany(by.to_owned()));
        }
        let mut slices = Vec::with_capacity(count);
        for (value, (summary, values)) in self.by_value {
            let inferred = of_slice(summary, &all);
            let statistics = Statistics::merge_values(inferred, values.into_iter(), 1 + count);
            slices.push(Slice { value, statistics });
        }
        // The sort is stable, so that slices of equal size stay in the order of their values.
        slices.sort_by_key(|slice| std::cmp::Reverse(slice.statistics.inferred.summary.records()));
        Ok(SlicedStatistics {
            all,
            slices,
            without,
        })
    }
}

/// Returns the inference of a slice of a data set.
fn of_slice(summary: Summary, all: &Statistics) -> Inferred {
    let Inferred {
        names,
        sampled,
        is_events,
        ..
    } = &all.inferred;
    Inferred {
        summary,
        names: names.clone(),
        sampled: *sampled,
        skipped: DamageReport::default(),
        losses: RowLosses::default(),
        is_events: *is_events,
    }
}

/// Merges the statistics of all parts of a data set and of their slices, as [`StatisticsMerger`]
/// does.
#[derive(Debug)]
pub(crate) struct SlicesMerger {
    /// The name of the feature.
    by: String,
    all: StatisticsMerger,
    slices: BTreeMap<SliceValue, StatisticsMerger>,
    sliced: u64,
    options: InferOptions,
}

impl SlicesMerger {
    /// Creates a merger of parts that were read with these options.
    pub(crate) fn new(by: String, options: &InferOptions) -> Self {
        Self {
            by,
            all: StatisticsMerger::new(options),
            slices: BTreeMap::new(),
            sliced: 0,
            options: *options,
        }
    }

    /// Adds a part.
    ///
    /// # Errors
    /// More names of features than the limits allow, and [`SliceError::TooMany`].
    pub(crate) fn add(&mut self, part: SlicedState) -> Result<(), SliceError> {
        self.all.add(part.all).map_err(SliceError::Read)?;
        self.sliced += part.sliced;
        for slice in &part.slices {
            self.slices
                .entry(slice.value.clone())
                .or_insert_with(|| StatisticsMerger::new(&self.options));
        }
        if self.slices.len() > MAX_SLICES {
            return Err(SliceError::TooMany(self.by.clone()));
        }
        // Further parts can only have more slices. All of them share the memory with the complete
        // data set.
        let sets = 1 + self.slices.len();
        part.slices
            .into_iter()
            .try_for_each(
                |SliceState { value, statistics }| match self.slices.get_mut(&value) {
                    Some(merger) => merger
                        .add_to_set(statistics, sets)
                        .map_err(SliceError::Read),
                    None => Ok(()),
                },
            )
    }

    /// Returns the statistics of the data set, once all parts were added.
    ///
    /// # Errors
    /// [`SliceError::Absent`].
    pub(crate) fn finish(self, names: Vec<String>) -> Result<SlicedStatistics, SliceError> {
        let mut merged = SlicesByValue {
            sliced: self.sliced,
            ..SlicesByValue::default()
        };
        for (value, merger) in self.slices {
            let Statistics { inferred, values } = merger.finish(Vec::new());
            merged.by_value.insert(value, (inferred.summary, values));
        }
        merged.finish(self.all.finish(names), &self.by)
    }
}

/// The statistics of a part of a data set and of its slices, which can be serialized.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SlicedState {
    all: StatisticsState,
    slices: Vec<SliceState>,
    sliced: u64,
}

/// The statistics of one slice of a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SliceState {
    #[serde(with = "SliceValueState")]
    value: SliceValue,
    statistics: StatisticsState,
}

/// The form of [`SliceValue`] that keeps its kind.
#[derive(Serialize, Deserialize)]
#[serde(remote = "SliceValue")]
enum SliceValueState {
    Int64(i64),
    Bytes(Box<[u8]>),
}

/// The accumulated statistics of one slice in one thread.
#[derive(Debug)]
struct SliceAccumulator {
    /// The summary of the slice's records.
    summary: Summary,
    /// The accumulators of the slice's values.
    counter: StatisticsObserver,
}

/// The reason why a thread stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SliceFailure {
    /// A value that cannot be sliced by, the first place of such a value, and a description.
    Unsupported(Place, &'static str),
    /// More values than [`MAX_SLICES`].
    TooMany,
}

impl SliceFailure {
    /// Makes the error that the caller of [`Statistics::collect_sliced`] gets.
    fn into_error(self, by: &str, shards: &[Shard]) -> SliceError {
        match self {
            Self::TooMany => SliceError::TooMany(by.to_owned()),
            Self::Unsupported(place, what) => {
                let path = shards
                    .get(place.shard as usize)
                    .map(|shard| shard.path.display().to_string());
                SliceError::Unsupported(
                    by.to_owned(),
                    what,
                    format!("{}: {place}", path.unwrap_or_default()),
                )
            }
        }
    }
}

/// Assigns the records that one thread reads to slices.
struct SliceObserver<'a> {
    /// The name of the feature.
    by: &'a str,
    /// Limits of the summary of each slice.
    limits: Limits,
    /// The reason why all threads stop, once there is one.
    failure: &'a Lock<Option<SliceFailure>>,
    /// The slices of the records that the thread has read.
    slices: BTreeMap<SliceValue, SliceAccumulator>,
    /// Number of records that are in some slice.
    sliced: u64,
    /// The number of slices at which all accumulators are next cut to their budget.
    shrunk: usize,
}

impl SliceObserver<'_> {
    /// Stops all threads. Of the reasons that threads report before they stop, unsupported values
    /// come before too many values, and the first in data-set order is kept.
    fn fail(&self, failure: SliceFailure) {
        let mut held = self.failure.lock();
        *held = Some(held.map_or(failure, |held| held.min(failure)));
    }

    /// Returns the distinct values of the feature in a record.
    fn values(&self, record: &mut SeenRecord<'_>) -> Vec<SliceValue> {
        let mut values = Vec::new();
        let mut unfit = None;
        record.each_list(|feature, list| {
            if feature.name != self.by || feature.role != Role::Feature {
                return;
            }
            match list {
                ValueList::Unset | ValueList::Float([]) => {}
                ValueList::Float(_) => unfit = Some("floats"),
                ValueList::Int64(list) => {
                    values.extend(list.iter().map(|value| SliceValue::Int64(*value)))
                }
                ValueList::Bytes(list) => list.each(|value| match value.len() <= MAX_VALUE_BYTES {
                    true => values.push(SliceValue::Bytes(value.into())),
                    false => unfit = Some("long values"),
                }),
            }
        });
        if let Some(what) = unfit {
            self.fail(SliceFailure::Unsupported(record.place(), what));
        }
        values.sort_unstable();
        values.dedup();
        values
    }
}

impl RecordObserver for SliceObserver<'_> {
    fn record(&mut self, record: &mut SeenRecord<'_>) {
        let values = self.values(record);
        if self.slices.len() >= self.shrunk {
            // More slices leave less budget for the slices that have no new record, too.
            self.shrunk = 2 * self.slices.len().max(1);
            for part in self.slices.values_mut() {
                part.counter.others = part.counter.others.max(self.shrunk / 2);
                part.counter.shrink();
            }
        }
        self.sliced += u64::from(!values.is_empty());
        for value in values {
            let count = self.slices.len();
            if count >= MAX_SLICES && !self.slices.contains_key(&value) {
                return self.fail(SliceFailure::TooMany);
            }
            let limits = self.limits;
            let part = self
                .slices
                .entry(value)
                .or_insert_with(|| SliceAccumulator {
                    summary: Summary::with_limits(0, limits),
                    counter: StatisticsObserver::default(),
                });
            part.counter.others = count;
            part.counter.shrink();
            // The slice has no more features than the data set, which is within the limits.
            let _ = part.summary.observe_parsed(record, &mut part.counter);
        }
    }
}

#[cfg(test)]
mod tests {
    use tfarrow_codec::{Records, VerifyCrc};

    use super::*;
    use crate::collect::{
        budget::Budget,
        bytes::BytesAccumulator,
        distinct::{HashedValue, SampledValue},
        sample::{SampleKey, SampleValue},
    };

    /// The statistics of a part of a data set with long values of the feature `t`, as many as
    /// `budget` allows.
    fn statistics(part: u64, budget: Budget) -> StatisticsState {
        // {"t": "x"}
        let payload = [10, 12, 10, 10, 10, 1, b't', 18, 5, 10, 3, 10, 1, b'x'];
        let mut summary = Summary::new(0);
        summary
            .observe(
                &Records::from_payloads([&payload[..]]).unwrap(),
                VerifyCrc::Never,
            )
            .unwrap();
        let mut feature = FeatureAccumulator::new("t", Role::Feature);
        let bytes = feature.bytes.insert(Box::<BytesAccumulator>::default());
        for record in 0..1_000 {
            let key = SampleKey::of_record(Place {
                shard: part as u32,
                record,
                offset: None,
            })
            .of_value(0);
            bytes
                .sample
                .add(key, budget, || SampledValue::of(HashedValue::of(&[0; 250])));
        }
        bytes.sample.cut(budget);
        let names = Vec::new();
        let skipped = DamageReport::default();
        let losses = RowLosses::default();
        let inferred = Inferred {
            summary,
            names,
            sampled: None,
            skipped,
            losses,
            is_events: false,
        }
        .into_state();
        StatisticsState {
            inferred,
            values: vec![feature],
        }
    }

    #[test]
    fn merged_slices_share_the_memory_of_a_data_set() {
        let slices = 100;
        let parts = 4;
        let budget = Budget::per_feature(1 + slices, 1 + slices);
        let mut merger = SlicesMerger::new("by".to_owned(), &InferOptions::default());
        for part in 0..parts {
            let slice = |value| SliceState {
                value: SliceValue::Int64(value),
                statistics: statistics(part, budget),
            };
            let slices = (0..slices as i64).map(slice).collect();
            merger
                .add(SlicedState {
                    all: statistics(part, budget),
                    slices,
                    sliced: 0,
                })
                .unwrap();
        }
        let held = |merger: &StatisticsMerger| {
            let samples = merger
                .values
                .by_feature
                .values()
                .filter_map(|feature| Some(&feature.bytes.as_ref()?.sample));
            samples
                .flat_map(|sample| sample.values().map(SampleValue::bytes))
                .sum::<usize>()
        };
        let most = merger.slices.values().map(held).max().unwrap();
        assert!(
            most <= budget.sample_bytes && most > budget.sample_bytes - 300,
            "{most} bytes in a slice"
        );
    }
}
