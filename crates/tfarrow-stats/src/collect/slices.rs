//! A data set cut by the values of one of its features: the figures of each slice beside those of all.
//!
//! As TFDV has it, a record is in the slice of each value that the feature has in it, and in none where it has no value.

use std::{
    collections::BTreeMap,
    error::Error as StdError,
    fmt,
    ops::ControlFlow,
    sync::{Mutex, PoisonError},
};

use serde::{Serialize, Serializer};
use tfarrow_codec::{
    Limits, Place, Role, Summary,
    infer::{RecordObserver, SeenRecord, ValueList},
};
use tfarrow_dataset::{Error, InferOptions, Inferred, OnProgress, Shard, SkippedRecords};

use super::{Statistics, StatisticsObserver};
use crate::summary_statistics::text_or_bytes;

/// Values that a data set is cut by at most: each slice takes as much memory as a data set.
pub const MAX_SLICES: usize = 256;
/// Bytes of such a value at most.
const MAX_VALUE_BYTES: usize = 256;

/// Features that are named where one is not found.
const MAX_NAMED: usize = 30;

/// A value that a data set is cut by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SliceValue {
    /// An integer.
    Int64(i64),
    /// A byte string.
    Bytes(Box<[u8]>),
}

/// Integers as they are, byte strings as those of figures.
impl Serialize for SliceValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int64(value) => serializer.serialize_i64(*value),
            Self::Bytes(value) => text_or_bytes(value, serializer),
        }
    }
}

/// As text; bytes that are no UTF-8 with a mark in their place.
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
    /// The value.
    pub value: SliceValue,
    /// What was counted of them.
    pub statistics: Statistics,
}

/// A data set, and what it was cut into.
#[derive(Debug)]
pub struct SlicedStatistics {
    /// What was counted of all records.
    pub all: Statistics,
    /// Those of most records first, then by their values.
    pub slices: Vec<Slice>,
    /// Records that are in none.
    pub without: u64,
}

/// Why a data set cannot be cut.
#[derive(Debug)]
pub enum SliceError {
    /// Its records cannot be read.
    Read(Error),
    /// No record has the feature; these are the features that there are.
    Absent(String, Vec<String>),
    /// The feature has more than [`MAX_SLICES`] values.
    TooMany(String),
    /// The feature has floats, or byte strings that are too long, and where it has them.
    Unsupported(String, &'static str, String),
}

impl fmt::Display for SliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Absent(name, all) => {
                let named = all.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = all.len().saturating_sub(MAX_NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                write!(f, "no record has a feature {name:?} to slice by; there are {named}{more}")
            }
            Self::TooMany(name) => write!(
                f,
                "feature {name:?} has more than {MAX_SLICES} values, and each slice has figures of its own: take a \
                 feature of fewer values"
            ),
            Self::Unsupported(name, what, place) => write!(
                f,
                "feature {name:?} has {what}, in {place}: slices are of integers, and of byte strings of up to \
                 {MAX_VALUE_BYTES} bytes"
            ),
        }
    }
}

impl StdError for SliceError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Read(error) => error.source(),
            Self::Absent(..) | Self::TooMany(_) | Self::Unsupported(..) => None,
        }
    }
}

impl Statistics {
    /// Counts what `shards` hold, and what each slice of them by the feature `by` holds.
    ///
    /// # Errors
    /// As [`infer_observed`](tfarrow_dataset::infer_observed); a feature that is not there, or that has floats, values
    /// that are too long, or too many of them.
    pub fn collect_sliced(
        shards: &[Shard],
        options: &InferOptions,
        progress: &OnProgress<'_>,
        by: &str,
    ) -> Result<SlicedStatistics, SliceError> {
        let trouble = Mutex::new(None);
        let told = || *trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let on_progress = |bytes, records| match told() {
            Some(_) => ControlFlow::Break(()),
            None => progress(bytes, records),
        };
        let limits = options.read.limits;
        let begin = || SliceObserver { by, limits, trouble: &trouble, slices: BTreeMap::new(), inside: 0, shrunk: 0 };
        let counted = Self::collect_with(shards, options, &on_progress, begin);
        if let Some(trouble) = told() {
            return Err(trouble.told(by, shards));
        }
        let (all, slicers) = counted.map_err(SliceError::Read)?;
        if !all.inferred.summary.features().any(|feature| feature.role == Role::Feature && feature.name == by) {
            let features = all.inferred.summary.features().filter(|feature| feature.role == Role::Feature);
            return Err(SliceError::Absent(by.to_owned(), features.map(|feature| feature.name.clone()).collect()));
        }
        let inside: u64 = slicers.iter().map(|slicer| slicer.inside).sum();
        let without = all.inferred.summary.records().saturating_sub(inside);
        let mut parts: BTreeMap<SliceValue, Vec<SliceAccumulator>> = BTreeMap::new();
        for (value, part) in slicers.into_iter().flat_map(|slicer| slicer.slices) {
            parts.entry(value).or_default().push(part);
        }
        let count = parts.len();
        if count > MAX_SLICES {
            return Err(SliceError::TooMany(by.to_owned()));
        }
        let mut slices = Vec::new();
        for (value, parts) in parts {
            let mut summary = Summary::with_limits(0, options.read.limits);
            let mut counters = Vec::new();
            for part in parts {
                // It has no more names than the whole, which is within the limits.
                let _ = summary.merge(&part.summary);
                counters.push(part.counter);
            }
            let (names, sampled) = (all.inferred.names.clone(), all.inferred.sampled);
            let inferred = Inferred { summary, names, sampled, skipped: SkippedRecords::default() };
            slices.push(Slice { value, statistics: Self::merge(inferred, counters, 1 + count) });
        }
        // Of as many records, in the order of their values.
        slices.sort_by_key(|slice| std::cmp::Reverse(slice.statistics.inferred.summary.records()));
        Ok(SlicedStatistics { all, slices, without })
    }
}

/// What one thread has seen of a slice.
#[derive(Debug)]
struct SliceAccumulator {
    summary: Summary,
    counter: StatisticsObserver,
}

/// Why one thread has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SliceFailure {
    Unsupported(Place, &'static str),
    TooMany,
}

impl SliceFailure {
    fn told(self, by: &str, shards: &[Shard]) -> SliceError {
        match self {
            Self::TooMany => SliceError::TooMany(by.to_owned()),
            Self::Unsupported(Place { shard, record, offset }, what) => {
                let path = shards.get(shard as usize).map(|shard| shard.path.display().to_string());
                let place = format!("{}: record {record} (byte {offset})", path.unwrap_or_default());
                SliceError::Unsupported(by.to_owned(), what, place)
            }
        }
    }
}

/// Cuts the records that one thread sees.
struct SliceObserver<'a> {
    by: &'a str,
    /// Of each part's summary.
    limits: Limits,
    /// Why all threads give up.
    trouble: &'a Mutex<Option<SliceFailure>>,
    slices: BTreeMap<SliceValue, SliceAccumulator>,
    /// Records that are in some slice.
    inside: u64,
    /// The number of slices at which all of them have less room.
    shrunk: usize,
}

impl SliceObserver<'_> {
    /// Of what threads have met by then, the first in the data set is told.
    fn give_up(&self, trouble: SliceFailure) {
        let mut held = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(held.map_or(trouble, |held| held.min(trouble)));
    }

    /// The values of the feature in a record, each once.
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
                ValueList::Int64(list) => values.extend(list.iter().map(|value| SliceValue::Int64(*value))),
                ValueList::Bytes(list) => list.each(|value| match value.len() <= MAX_VALUE_BYTES {
                    true => values.push(SliceValue::Bytes(value.into())),
                    false => unfit = Some("long values"),
                }),
            }
        });
        if let Some(what) = unfit {
            self.give_up(SliceFailure::Unsupported(record.place(), what));
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
            // Slices without a new record have less room now as well.
            self.shrunk = 2 * self.slices.len().max(1);
            for part in self.slices.values_mut() {
                part.counter.others = part.counter.others.max(self.shrunk / 2);
                part.counter.shrink();
            }
        }
        self.inside += u64::from(!values.is_empty());
        for value in values {
            let count = self.slices.len();
            if count >= MAX_SLICES && !self.slices.contains_key(&value) {
                return self.give_up(SliceFailure::TooMany);
            }
            let limits = self.limits;
            let new = || SliceAccumulator {
                summary: Summary::with_limits(0, limits),
                counter: StatisticsObserver::default(),
            };
            let part = self.slices.entry(value).or_insert_with(new);
            part.counter.others = count;
            part.counter.shrink();
            // A part has no more names than the whole, which is within the limits.
            let _ = part.summary.observe_seen(record, &mut part.counter);
        }
    }
}
