//! What is counted of a data set: the summary that tells its schema, and of every feature what its values are.

pub(crate) mod budget;
pub(crate) mod bytes;
pub(crate) mod feature;
pub(crate) mod formats;
pub(crate) mod images;
pub(crate) mod numbers;
pub(crate) mod sample;
pub(crate) mod slices;
mod sum;

use std::collections::HashMap;

use tfarrow_codec::{
    FeatureSummary, Kind, Role,
    infer::{RecordObserver, SeenRecord},
};
use tfarrow_dataset::{InferOptions, Inferred, OnProgress, Result, Shard, infer_observed};

use self::{budget::Budget, feature::FeatureAccumulator, sample::SampleKey};

/// What was counted of a data set.
///
/// It is the same however many threads have counted, and however the records are cut into chunks: what is sampled is told
/// by where values stand. Only how many distinct values there are, where that is estimated, and the last digits of means
/// and deviations may differ.
#[derive(Debug)]
pub struct Statistics {
    /// What was seen of each feature: presence, kinds, lengths, places.
    pub inferred: Inferred,
    /// By the order of [`Summary::features`](tfarrow_codec::Summary::features).
    values: Vec<FeatureAccumulator>,
}

impl Statistics {
    /// Counts what `shards` hold.
    ///
    /// # Errors
    /// As [`infer_observed`].
    pub fn collect(shards: &[Shard], options: &InferOptions, progress: &OnProgress<'_>) -> Result<Self> {
        Ok(Self::collect_with(shards, options, progress, || ())?.0)
    }

    /// Counts what `shards` hold, and tells others of each record as well: one a thread, which come back in no order.
    ///
    /// # Errors
    /// As [`infer_observed`].
    pub fn collect_with<O: RecordObserver + Send>(
        shards: &[Shard],
        options: &InferOptions,
        progress: &OnProgress<'_>,
        others: impl Fn() -> O + Sync,
    ) -> Result<(Self, Vec<O>)> {
        let (inferred, observers) =
            infer_observed(shards, options, progress, || (StatisticsObserver::default(), others()))?;
        let (counters, others): (Vec<_>, Vec<_>) = observers.into_iter().unzip();
        Ok((Self::merge(inferred, counters, 1), others))
    }

    /// What threads have counted together, of one of so many data sets.
    pub(crate) fn merge(inferred: Inferred, counters: Vec<StatisticsObserver>, sets: usize) -> Self {
        let mut merged: HashMap<(String, bool), FeatureAccumulator> = HashMap::new();
        let features: Vec<_> = inferred.summary.features().collect();
        let has_strings = |feature: &&&FeatureSummary| feature.kinds().any(|(kind, _)| kind == Kind::Bytes);
        let budget = Budget::per_feature(features.len() * sets, features.iter().filter(has_strings).count() * sets);
        for part in counters.into_iter().flat_map(|counter| counter.sides.into_iter().flatten()) {
            let held = merged.entry((part.name.clone(), part.role == Role::Sequence));
            held.or_insert_with(|| FeatureAccumulator::new(&part.name, part.role)).merge(part, budget);
        }
        let mut values = Vec::new();
        for feature in features {
            let held = merged.remove(&(feature.name.clone(), feature.role == Role::Sequence));
            values.push(held.unwrap_or_else(|| FeatureAccumulator::new(&feature.name, feature.role)));
        }
        Self { inferred, values }
    }

    /// Each feature: what was seen of it, and what was counted of its values.
    pub(crate) fn features(&self) -> impl Iterator<Item = (&FeatureSummary, &FeatureAccumulator)> {
        self.inferred.summary.features().zip(&self.values)
    }
}

/// What one thread counts.
#[derive(Debug, Default)]
pub(crate) struct StatisticsObserver {
    /// Features, and feature lists, by their numbers in the thread's summary.
    sides: [Vec<FeatureAccumulator>; 2],
    /// Features, and feature lists, that have byte strings.
    strings: usize,
    /// How many other data sets memory is shared with.
    pub(crate) others: usize,
    /// The number of features, of all data sets, at which all features are cut to their room again.
    shrunk: usize,
}

impl StatisticsObserver {
    fn budget(&self) -> Budget {
        let features: usize = self.sides.iter().map(Vec::len).sum();
        Budget::per_feature(features * (1 + self.others), self.strings * (1 + self.others))
    }

    /// Cuts all features to their room each time that the number of features has doubled: features that were met first
    /// have taken more than their share is now.
    pub(crate) fn shrink(&mut self) {
        let features: usize = self.sides.iter().map(Vec::len).sum();
        let features = (features + self.strings) * (1 + self.others);
        if features > self.shrunk {
            let budget = self.budget();
            self.sides.iter_mut().flatten().for_each(|values| values.shrink(budget));
            self.shrunk = 2 * features;
        }
    }
}

impl RecordObserver for StatisticsObserver {
    fn record(&mut self, record: &mut SeenRecord<'_>) {
        let key = SampleKey::of_record(record.place());
        let budget = self.budget();
        let mut lists = 0;
        record.each_list(|feature, list| {
            let side = &mut self.sides[usize::from(feature.role == Role::Sequence)];
            if feature.number >= side.len() {
                // NumberAccumulator are given in order, but to features with no step, of which nothing is told here, as well.
                side.resize_with(feature.number + 1, || FeatureAccumulator::new("", feature.role));
            }
            let Some(values) = side.get_mut(feature.number) else { return };
            if values.name.is_empty() {
                feature.name.clone_into(&mut values.name);
            }
            let had_strings = values.bytes.is_some();
            values.add(list, key.of_list(lists), budget);
            self.strings += usize::from(!had_strings && values.bytes.is_some());
            lists += 1;
        });
        self.shrink();
    }
}
