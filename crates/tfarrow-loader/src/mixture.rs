//! Records of several sources in one order, in proportion to weights.
//!
//! ```text
//! turns      a cycle of 1,000: 700 of source a, 300 of source b, each cycle permuted anew
//! source a   epoch 0 ───────────────────────────────────▶ epoch 1 ─────────── ..   an order of its own
//! source b   epoch 0 ────────▶ epoch 1 ────────▶ epoch 2 ────────▶ epoch 3 ── ..
//! mixture    epoch 0 ─────────────────────────────────▶ epoch 1 ───────────── ..
//! ```
//!
//! The turns and the orders are endless; an epoch of the mixture is a part of them. Each source is
//! read to its end before it is read again, also from one epoch of the mixture to the next.

use std::ops::Range;

use crate::{
    permutation::{Permutation, key},
    source_order::{DataExtent, Shuffle, SourceOrder},
};

/// Number of positions of a cycle.
const TURNS: u64 = 1_000;

/// Sources of records, and how many of 1,000 records are of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixture {
    sources: Vec<MixedSource>,
}

/// A source of a [`Mixture`].
#[derive(Clone, Debug, PartialEq, Eq)]
struct MixedSource {
    /// Its records among those of the data set that are selected.
    records: Range<u64>,
    /// Its turns of a cycle.
    turns: Range<u64>,
}

/// Why sources cannot be mixed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MixtureError {
    /// A weight is not a number above 0.
    #[error("a weight of {0}: expected a number above 0")]
    Weight(f64),
    /// A weight is too small.
    #[error(
        "a weight of {weight} of {sum}: expected at least a thousandth of the sum of the weights"
    )]
    Small {
        /// The weight.
        weight: f64,
        /// The sum of the weights.
        sum: f64,
    },
    /// A source has no records. Contains its number, from 0.
    #[error("source {0} has no records")]
    Empty(usize),
    /// There are no sources.
    #[error("there are no sources")]
    NoSources,
}

impl Mixture {
    /// Mixes sources of these weights, each of which has a range of the selected records.
    ///
    /// # Errors
    /// A source without records, or a weight that is no number from a thousandth of their sum.
    pub fn new(sources: &[(Range<u64>, f64)]) -> Result<Self, MixtureError> {
        let mut sum = 0.0;
        for (_, weight) in sources {
            if !(weight.is_finite() && *weight > 0.0) {
                return Err(MixtureError::Weight(*weight));
            }
            sum += weight;
        }
        if sources.is_empty() {
            return Err(MixtureError::NoSources);
        }
        let mut mixed = Vec::with_capacity(sources.len());
        let mut weights = 0.0;
        let mut start = 0;
        for (number, (records, weight)) in sources.iter().enumerate() {
            if records.is_empty() {
                return Err(MixtureError::Empty(number));
            }
            // Rounded sums are as near to the weights as turns can be, and end at the last turn.
            weights += weight;
            let end = (weights / sum * TURNS as f64).round() as u64;
            if end <= start {
                let weight = *weight;
                return Err(MixtureError::Small { weight, sum });
            }
            mixed.push(MixedSource {
                records: records.clone(),
                turns: start..end,
            });
            start = end;
        }
        Ok(Self { sources: mixed })
    }

    /// The number of positions of an epoch: those in which the first source to end is read once.
    pub fn count(&self) -> u64 {
        let mut least = u64::MAX;
        for source in &self.sources {
            let records = u128::from(source.count()) * u128::from(TURNS);
            let positions = records / u128::from(source.turns());
            least = least.min(u64::try_from(positions).unwrap_or(u64::MAX));
        }
        least
    }

    /// The number of turns of each source, of 1,000.
    pub fn turns(&self) -> Vec<u64> {
        self.sources.iter().map(MixedSource::turns).collect()
    }
}

impl MixedSource {
    fn count(&self) -> u64 {
        self.records.end - self.records.start
    }

    fn turns(&self) -> u64 {
        self.turns.end - self.turns.start
    }
}

/// The order of an epoch of a mixture.
#[derive(Clone, Debug)]
pub(crate) struct MixedOrder {
    count: u64,
    /// Number of positions whose records are read together; `None` if each is read by itself.
    round: Option<u64>,
    /// The turns before the epoch.
    first: u64,
    key: u64,
    sources: Vec<SourceOrders>,
}

/// The orders of the epochs of a source that an epoch of the mixture is in.
#[derive(Clone, Debug)]
struct SourceOrders {
    source: MixedSource,
    first_epoch: u64,
    orders: Vec<SourceOrder>,
}

impl MixedOrder {
    /// The order of an epoch. `extent` is that of the records of all sources.
    pub(crate) fn new(
        mixture: &Mixture,
        extent: DataExtent,
        shuffle: Shuffle,
        seed: u64,
        epoch: u64,
    ) -> Self {
        let count = mixture.count();
        let round = extent.round();
        let is_read_together = extent.is_slow || shuffle == Shuffle::Blocks;
        let first = epoch.saturating_mul(count);
        let last = first.saturating_add(count);
        let mut sources = Vec::with_capacity(mixture.sources.len());
        for (number, source) in mixture.sources.iter().enumerate() {
            let turns = source.turns();
            let records = source.count();
            let of_source = DataExtent {
                records,
                bytes: extent.mean_bytes().saturating_mul(records),
                ..extent
            };
            // All sources together have as many records in memory as one order has.
            let of_round = (round * turns / TURNS).max(1);
            let seed = key(&[seed, number as u64]);
            let first_epoch = first / TURNS * turns / records;
            let last_epoch = (last / TURNS + 1) * turns / records;
            let mut orders = Vec::new();
            for epoch in first_epoch..=last_epoch {
                orders.push(SourceOrder::new(of_source, of_round, shuffle, seed, epoch));
            }
            sources.push(SourceOrders {
                source: source.clone(),
                first_epoch,
                orders,
            });
        }
        Self {
            count,
            round: is_read_together.then_some(round),
            first,
            key: key(&[seed, TURNS]),
            sources,
        }
    }

    /// The number of positions of the epoch.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// See [`Order::round`](crate::Order).
    pub(crate) fn round(&self) -> Option<u64> {
        self.round
    }

    /// The place of the record at a position, among those that are selected.
    pub(crate) fn record(&self, position: u64) -> u64 {
        let position = self.first.saturating_add(position);
        let cycle = position / TURNS;
        let turns = Permutation::new(TURNS, key(&[self.key, cycle]));
        let turn = turns.of(position % TURNS);
        let number = self
            .sources
            .partition_point(|of_source| of_source.source.turns.end <= turn);
        let Some(SourceOrders {
            source,
            first_epoch,
            orders,
        }) = self.sources.get(number)
        else {
            // The turns of the sources are all turns.
            return u64::MAX;
        };
        let place = cycle * source.turns() + turn - source.turns.start;
        let epoch = place / source.count() - first_epoch;
        match orders.get(epoch as usize) {
            Some(order) => source.records.start + order.record(place % source.count()),
            None => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn extent(records: u64) -> DataExtent {
        DataExtent {
            records,
            bytes: records * 1_000,
            is_slow: false,
        }
    }

    /// The records of some epochs of a mixture.
    fn read(mixture: &Mixture, records: u64, shuffle: Shuffle, epochs: Range<u64>) -> Vec<u64> {
        let mut found = Vec::new();
        for epoch in epochs {
            let order = MixedOrder::new(mixture, extent(records), shuffle, 7, epoch);
            assert_eq!(order.count(), mixture.count());
            for position in 0..order.count() {
                found.push(order.record(position));
            }
        }
        found
    }

    proptest! {
        #[test]
        fn each_source_is_read_in_whole_epochs(
            sizes in prop::collection::vec(1_u64..900, 1..5),
            weights in prop::collection::vec(1_u32..100, 5),
            shuffle in prop_oneof![Just(Shuffle::None), Just(Shuffle::Blocks), Just(Shuffle::Global)],
        ) {
            let mut sources = Vec::new();
            let mut start = 0;
            for (size, weight) in sizes.iter().zip(&weights) {
                sources.push((start..start + size, f64::from(*weight)));
                start += size;
            }
            let mixture = Mixture::new(&sources).unwrap();
            let found = read(&mixture, start, shuffle, 0..4);
            let mut counts = BTreeMap::new();
            for record in &found {
                *counts.entry(*record).or_insert(0_u64) += 1;
            }
            for (source, turns) in sources.iter().zip(mixture.turns()) {
                // A cycle is permuted, so that a source may be one cycle ahead.
                let of_source: Vec<_> = source.0.clone().map(|it| counts.get(&it).copied().unwrap_or(0)).collect();
                let most = of_source.iter().max().unwrap();
                let least = of_source.iter().min().unwrap();
                let slack = 1 + turns.div_ceil(of_source.len() as u64);
                prop_assert!(most - least <= slack, "{of_source:?}");
                let expected = found.len() as u64 * turns / TURNS;
                prop_assert!(of_source.iter().sum::<u64>().abs_diff(expected) <= turns);
            }
        }
    }

    #[test]
    fn a_cycle_has_the_turns_of_each_source() {
        let mixture = Mixture::new(&[(0..4_000, 0.7), (4_000..9_000, 0.2), (9_000..9_500, 0.1)]);
        let mixture = mixture.unwrap();
        assert_eq!(mixture.turns(), [700, 200, 100]);
        assert_eq!(mixture.count(), 5_000);
        let found = read(&mixture, 9_500, Shuffle::Global, 0..2);
        for cycle in found.chunks(1_000) {
            let of_first = cycle.iter().filter(|record| **record < 4_000).count();
            let of_last = cycle.iter().filter(|record| **record >= 9_000).count();
            assert_eq!((of_first, of_last), (700, 100));
        }
        // The last source is read once an epoch, in another order.
        let of_last = |epoch: &[u64]| -> Vec<u64> {
            epoch.iter().copied().filter(|it| *it >= 9_000).collect()
        };
        let (one, two) = found.split_at(5_000);
        assert_ne!(of_last(one), of_last(two));
        for epoch in [one, two] {
            let mut records = of_last(epoch);
            records.sort_unstable();
            assert_eq!(records, (9_000..9_500).collect::<Vec<_>>());
        }
        // The first source ends in the second epoch, and not before each of its records was read.
        let mut of_first: Vec<_> = found
            .iter()
            .filter(|it| **it < 4_000)
            .copied()
            .take(4_000)
            .collect();
        of_first.sort_unstable();
        of_first.dedup();
        assert!(of_first.len() > 3_700, "{}", of_first.len());
    }

    #[test]
    fn turns_never_change() {
        let mixture = Mixture::new(&[(0..700, 7.0), (700..1_000, 3.0)]).unwrap();
        let order = MixedOrder::new(&mixture, extent(1_000), Shuffle::None, 1, 2);
        let found: Vec<_> = (0..10).map(|position| order.record(position)).collect();
        // Computed by another implementation, in Python.
        assert_eq!(found, [849, 996, 359, 892, 89, 452, 823, 523, 486, 893]);
    }

    #[test]
    fn weights_and_sources_are_checked() {
        let weight = |weight| Mixture::new(&[(0..1, 1.0), (1..2, weight)]);
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(weight(wrong), Err(MixtureError::Weight(_))));
        }
        assert!(matches!(weight(0.0001), Err(MixtureError::Small { .. })));
        assert!(weight(0.002).is_ok());
        assert_eq!(Mixture::new(&[]), Err(MixtureError::NoSources));
        assert_eq!(Mixture::new(&[(3..3, 1.0)]), Err(MixtureError::Empty(0)));
    }
}
