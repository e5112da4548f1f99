//! Collecting statistics: one pass over the records, with an observer for each thread, whose
//! accumulators are merged.
//!
//! ```text
//! thread 1: records ─▶ StatisticsObserver ─ FeatureAccumulator per feature ─┐
//! thread 2: records ─▶ StatisticsObserver ─ FeatureAccumulator per feature ─┴─ merge ─▶ Statistics
//! ```

pub(crate) mod budget;
pub(crate) mod bytes;
pub(crate) mod distinct;
pub(crate) mod feature;
pub(crate) mod formats;
pub(crate) mod numbers;
pub(crate) mod rows;
pub(crate) mod sample;
pub(crate) mod slices;
mod sum;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tfarrow_codec::{
    FeatureSummary, RecordType, Role,
    infer::{RecordObserver, SeenRecord},
};
use tfarrow_dataset::{Error, OnProgress, Result, Shard};
use tfarrow_scan::{InferOptions, Inferred, InferredMerger, InferredState, infer_observed};

use self::{budget::Budget, feature::FeatureAccumulator, sample::SampleKey};

/// The accumulated statistics of a data set. [`Statistics::summarize`] computes the numbers that
/// reports print.
///
/// They depend neither on the number of threads nor on the division of the records into chunks and
/// parts: sums are exact, samples are chosen by the places of values, and sketches depend on the
/// set of values alone.
#[derive(Debug)]
pub struct Statistics {
    /// The summary of each feature: presence, kinds, list lengths, first places.
    pub inferred: Inferred,
    /// The accumulated values, in the order of
    /// [`Summary::features`](tfarrow_codec::Summary::features).
    values: Vec<FeatureAccumulator>,
}

/// The statistics of a part of a data set, which can be serialized.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatisticsState {
    inferred: InferredState,
    values: Vec<FeatureAccumulator>,
}

impl Statistics {
    /// Reads the records of `shards` and accumulates their statistics.
    ///
    /// # Errors
    /// The errors of [`infer_observed`]: unreadable, corrupt or truncated shards.
    pub fn collect(
        shards: &[Shard],
        options: &InferOptions,
        progress: &OnProgress<'_>,
    ) -> Result<Self> {
        Ok(Self::collect_with(shards, options, progress, || ())?.0)
    }

    /// Collects as [`collect`](Self::collect), and passes each record to further observers.
    /// `others` is called once for each thread; the observers are returned in no particular order.
    ///
    /// # Errors
    /// The errors of [`infer_observed`]: unreadable, corrupt or truncated shards.
    pub fn collect_with<O: RecordObserver + Send>(
        shards: &[Shard],
        options: &InferOptions,
        progress: &OnProgress<'_>,
        others: impl Fn() -> O + Sync,
    ) -> Result<(Self, Vec<O>)> {
        let observed = infer_observed(shards, options, progress, || {
            (StatisticsObserver::default(), others())
        });
        let (inferred, observers) = observed.map_err(Error::of_features)?;
        let (counters, others): (Vec<_>, Vec<_>) = observers.into_iter().unzip();
        Ok((Self::merge(inferred, counters, 1), others))
    }

    /// Merges the accumulators of all threads. `sets` is the number of data sets that share the
    /// memory budget.
    pub(crate) fn merge(
        inferred: Inferred,
        counters: Vec<StatisticsObserver>,
        sets: usize,
    ) -> Self {
        let parts = counters
            .into_iter()
            .flat_map(StatisticsObserver::into_values);
        Self::merge_values(inferred, parts, sets)
    }

    /// Merges accumulators of the features of `inferred`, any number of each.
    fn merge_values(
        inferred: Inferred,
        parts: impl Iterator<Item = FeatureAccumulator>,
        sets: usize,
    ) -> Self {
        let mut merged = ValuesMerger::default();
        let budget = Budget::of(&inferred.summary, sets);
        parts.for_each(|part| merged.add(part, budget));
        merged.finish(inferred, budget)
    }

    /// Returns the state of the statistics of a part of a data set.
    pub fn into_state(self) -> StatisticsState {
        StatisticsState {
            inferred: self.inferred.into_state(),
            values: self.values,
        }
    }

    /// Returns each feature's summary and its accumulated values; none for lists of examples, whose
    /// values are not read.
    pub(crate) fn features(&self) -> impl Iterator<Item = (&FeatureSummary, &FeatureAccumulator)> {
        let summary = &self.inferred.summary;
        let has_values = summary.record_type() != RecordType::ExampleList;
        summary
            .features()
            .zip(&self.values)
            .filter(move |_| has_values)
    }
}

/// Merges accumulators of one data set.
#[derive(Debug, Default)]
struct ValuesMerger {
    by_feature: HashMap<(String, bool), FeatureAccumulator>,
}

impl ValuesMerger {
    /// Adds the values of a feature.
    fn add(&mut self, part: FeatureAccumulator, budget: Budget) {
        let held = self
            .by_feature
            .entry((part.name.clone(), part.role == Role::Sequence));
        held.or_insert_with(|| FeatureAccumulator::new(&part.name, part.role))
            .merge(part, budget);
    }

    /// Returns the statistics, cut to a budget that is not larger than those before.
    fn finish(mut self, inferred: Inferred, budget: Budget) -> Statistics {
        let mut values = Vec::new();
        for feature in inferred.summary.features() {
            let held = self
                .by_feature
                .remove(&(feature.name.clone(), feature.role == Role::Sequence));
            let mut held =
                held.unwrap_or_else(|| FeatureAccumulator::new(&feature.name, feature.role));
            held.shrink(budget);
            values.push(held);
        }
        Statistics { inferred, values }
    }
}

/// Merges the statistics of all parts of a data set, in any order, one after the other. The result
/// is that of a single pass over the data set.
#[derive(Debug)]
pub(crate) struct StatisticsMerger {
    inferred: InferredMerger,
    values: ValuesMerger,
}

impl StatisticsMerger {
    /// Creates a merger of parts that were read with these options.
    pub(crate) fn new(options: &InferOptions) -> Self {
        Self {
            inferred: InferredMerger::new(options),
            values: ValuesMerger::default(),
        }
    }

    /// Adds a part.
    ///
    /// # Errors
    /// More names of features than the limits allow.
    pub(crate) fn add(&mut self, part: StatisticsState) -> Result<()> {
        self.add_to_set(part, 1)
    }

    /// Adds a part to one of several data sets that share the memory. `sets` is their number so
    /// far.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    fn add_to_set(&mut self, part: StatisticsState, sets: usize) -> Result<()> {
        self.inferred.add(part.inferred)?;
        // Further parts can only have more features, and so a smaller budget.
        let budget = Budget::of(self.inferred.summary(), sets);
        part.values
            .into_iter()
            .for_each(|values| self.values.add(values, budget));
        Ok(())
    }

    /// Returns the statistics of the data set, once all parts were added. `names` are those of all
    /// shards.
    pub(crate) fn finish(self, names: Vec<String>) -> Statistics {
        let budget = Budget::of(self.inferred.summary(), 1);
        self.values.finish(self.inferred.finish(names), budget)
    }
}

/// Returns why records have no features to summarize: they are events, lists of examples, or raw.
pub fn why_no_features(inferred: &Inferred) -> Option<String> {
    if inferred.is_events {
        let why = "the records are TensorBoard events, which have no features: sql reads them as a table of their values";
        return Some(why.to_owned());
    }
    if inferred.summary.record_type() == RecordType::ExampleList {
        let why = "the records are ExampleListWithContext messages, whose features have no statistics: select their examples \
                   in SQL, and write these as records";
        return Some(why.to_owned());
    }
    inferred.why_raw()
}

/// Accumulates the statistics of the records that one thread reads.
#[derive(Debug, Default)]
pub(crate) struct StatisticsObserver {
    /// Accumulators of features, and of feature lists, by their numbers in the thread's summary.
    sides: [Vec<FeatureAccumulator>; 2],
    /// Number of features and feature lists that have byte strings.
    strings: usize,
    /// Number of other data sets that share the memory budget: the other slices of a sliced data
    /// set.
    pub(crate) others: usize,
    /// The number of features, of all data sets, at which all accumulators are next cut to their
    /// budget.
    shrunk: usize,
}

impl StatisticsObserver {
    /// Returns the accumulators.
    fn into_values(self) -> impl Iterator<Item = FeatureAccumulator> {
        self.sides.into_iter().flatten()
    }

    /// Returns the budget of each feature.
    fn budget(&self) -> Budget {
        let features: usize = self.sides.iter().map(Vec::len).sum();
        Budget::per_feature(
            features * (1 + self.others),
            self.strings * (1 + self.others),
        )
    }

    /// Cuts all accumulators to their budget each time the number of features has doubled, since
    /// the accumulators of the first features have grown under a larger budget.
    pub(crate) fn shrink(&mut self) {
        let features: usize = self.sides.iter().map(Vec::len).sum();
        let features = (features + self.strings) * (1 + self.others);
        if features > self.shrunk {
            let budget = self.budget();
            self.sides
                .iter_mut()
                .flatten()
                .for_each(|values| values.shrink(budget));
            self.shrunk = 2 * features;
        }
    }
}

impl RecordObserver for StatisticsObserver {
    fn record(&mut self, record: &mut SeenRecord<'_>) {
        let key = SampleKey::of_record(record.place());
        let budget = self.budget();
        // The lists of a feature follow each other. They are counted for each feature, because a
        // record and its conversion may have their features in different orders.
        let mut last = (None, 0);
        record.each_list(|feature, list| {
            let side = &mut self.sides[usize::from(feature.role == Role::Sequence)];
            if feature.number >= side.len() {
                // Features are numbered in the order of their appearance, but a feature list
                // without a step gets a number and no list, so that the vector may have to grow by
                // more than one.
                side.resize_with(feature.number + 1, || {
                    FeatureAccumulator::new("", feature.role)
                });
            }
            let Some(values) = side.get_mut(feature.number) else {
                return;
            };
            if values.name.is_empty() {
                values.set_name(feature.name);
            }
            let this = Some((feature.role, feature.number));
            last = (this, if last.0 == this { last.1 + 1 } else { 0 });
            let had_strings = values.bytes.is_some();
            values.add(list, key.of_list(values.key, last.1), budget);
            self.strings += usize::from(!had_strings && values.bytes.is_some());
        });
        self.shrink();
    }
}
