//! The order in which the records of a data set are read.

use crate::{
    mixture::{MixedOrder, Mixture},
    source_order::{DataExtent, Shuffle, SourceOrder},
};

/// An order of the records of a data set: the number of the record at each position.
///
/// It is a function of the data set, the seed and the epoch alone, and stays the same in all versions:
/// a training run may be continued with any number of processes.
///
/// ```text
/// global   position ─▶ keyed permutation ─▶ record
///
/// blocks   records   ├─ 0 ─┼─ 1 ─┼─ 2 ─┼─ 3 ─┼─ ..         blocks of about 256 KiB
///          permuted  ├─ 7 ─┼─ 2 ─┼─ 9 ─┼─ 0 ─┼─ ..
///          streams   ├── 0 ──────┼── 1 ──────┼─ ..         8 streams of equal length
///          windows   ├──┼──┼──┼──┼──┼──┼──┼──┼─ ..         each is permuted
///          round 0     0           0                       the first window of each stream, ..
///          position  0, 8, 16, ..  1, 9, 17, ..            drawn from the streams in turns
/// ```
///
/// A data set that fits into one round is permuted as a whole.
#[derive(Clone, Debug)]
pub struct Order(OrderKind);

#[derive(Clone, Debug)]
enum OrderKind {
    Source(SourceOrder),
    Mixed(MixedOrder),
}

impl Order {
    /// The order of these records.
    pub fn new(extent: DataExtent, shuffle: Shuffle, seed: u64, epoch: u64) -> Self {
        let order = SourceOrder::new(extent, extent.round(), shuffle, seed, epoch);
        Self(OrderKind::Source(order))
    }

    /// The order of a mixture, whose sources have these records.
    pub fn mixed(
        mixture: &Mixture,
        extent: DataExtent,
        shuffle: Shuffle,
        seed: u64,
        epoch: u64,
    ) -> Self {
        let order = MixedOrder::new(mixture, extent, shuffle, seed, epoch);
        Self(OrderKind::Mixed(order))
    }

    /// The number of records.
    pub fn count(&self) -> u64 {
        match &self.0 {
            OrderKind::Source(order) => order.count(),
            OrderKind::Mixed(order) => order.count(),
        }
    }

    /// The record at a position below the number of records.
    pub fn record(&self, position: u64) -> u64 {
        match &self.0 {
            OrderKind::Source(order) => order.record(position),
            OrderKind::Mixed(order) => order.record(position),
        }
    }

    /// The number of positions of a round, whose records are best read together; `None` if those of a
    /// batch are.
    pub fn round(&self) -> Option<u64> {
        match &self.0 {
            OrderKind::Source(order) => order.round(),
            OrderKind::Mixed(order) => order.round(),
        }
    }
}
