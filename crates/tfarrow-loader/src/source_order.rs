//! The order in which the records of one source are read.

use tfarrow_codec::named_values;

use crate::permutation::{Permutation, key};

/// Bytes of records of a block: consecutive records, which are read together.
const BLOCK_BYTES: u64 = 256 << 10;
/// The same where reading at a place takes long: in a compressed file up to 2 MiB before it are
/// inflated, and a store is asked by a request.
const LARGE_BLOCK_BYTES: u64 = 8 << 20;
/// Number of records of a round: those in memory, among which records are drawn.
const ROUND_RECORDS: u64 = 16 << 10;
/// Bytes of records of a round. The least of them are as many as the cache of a processor holds.
const LEAST_ROUND_BYTES: u64 = 16 << 20;
const MOST_ROUND_BYTES: u64 = 64 << 20;
/// Number of streams that a round is drawn from in turns. A rank of `n` ranks reads only its own
/// streams if `n` divides this number.
const STREAMS: u64 = 8;

/// How records are shuffled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shuffle {
    /// Not at all.
    #[default]
    None,
    /// Blocks of consecutive records in random order, and records drawn from some of them.
    Blocks,
    /// All records, each read at its place.
    Global,
}

named_values!(Shuffle {
    None = "none": "The order of the files",
    Blocks = "blocks": "Blocks of records in random order, and records drawn from those in memory",
    Global = "global": "All records in random order, each read at its place",
});

/// The order of the records of a source: see [`Order`](crate::Order).
#[derive(Clone, Debug)]
pub(crate) struct SourceOrder {
    count: u64,
    kind: OrderKind,
    /// Number of positions whose records are read together; `None` if each is read by itself.
    round: Option<u64>,
}

#[derive(Clone, Debug)]
enum OrderKind {
    Sequential,
    Global(Permutation),
    Blocks(BlockOrder),
}

/// See [`Order`](crate::Order).
#[derive(Clone, Debug)]
struct BlockOrder {
    count: u64,
    /// Number of records of each block but the last one of the data set.
    block: u64,
    blocks: Permutation,
    /// The place of the last block of the data set among the permuted ones, and its records.
    last_place: u64,
    last_records: u64,
    /// Number of records of a window.
    window: u64,
    key: u64,
}

/// The records that an order is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataExtent {
    /// Their number.
    pub records: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// Whether reading at a place takes long: a file is compressed, or in a store.
    pub is_slow: bool,
}

impl DataExtent {
    /// The bytes of a record, at least 1.
    pub(crate) fn mean_bytes(&self) -> u64 {
        (self.bytes / self.records.max(1)).max(1)
    }

    /// Number of records of a round.
    pub(crate) fn round(&self) -> u64 {
        let most = self.records_of(MOST_ROUND_BYTES);
        match self.is_slow {
            true => most,
            false => ROUND_RECORDS
                .max(self.records_of(LEAST_ROUND_BYTES))
                .min(most),
        }
    }

    /// Number of records with so many bytes, at least 1.
    fn records_of(&self, bytes: u64) -> u64 {
        (bytes / self.mean_bytes()).max(1)
    }
}

impl SourceOrder {
    /// The order of these records, of which `round` are in memory.
    pub(crate) fn new(
        extent: DataExtent,
        round: u64,
        shuffle: Shuffle,
        seed: u64,
        epoch: u64,
    ) -> Self {
        let count = extent.records;
        let key = key(&[seed, epoch]);
        let (kind, round) = match shuffle {
            Shuffle::None if extent.is_slow => (OrderKind::Sequential, Some(round)),
            Shuffle::None => (OrderKind::Sequential, None),
            Shuffle::Global => (OrderKind::Global(Permutation::new(count, key)), None),
            Shuffle::Blocks if count <= round => {
                (OrderKind::Global(Permutation::new(count, key)), Some(round))
            }
            Shuffle::Blocks => {
                let order = BlockOrder::new(&extent, round, key);
                let round = order.window * STREAMS;
                (OrderKind::Blocks(order), Some(round))
            }
        };
        Self { count, kind, round }
    }

    /// The number of records.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The record at a position below the number of records.
    pub(crate) fn record(&self, position: u64) -> u64 {
        match &self.kind {
            OrderKind::Sequential => position,
            OrderKind::Global(permutation) => permutation.of(position),
            OrderKind::Blocks(blocks) => blocks.record(position),
        }
    }

    /// The number of positions of a round, whose records are best read together; `None` if those of a
    /// batch are.
    pub(crate) fn round(&self) -> Option<u64> {
        self.round
    }
}

impl BlockOrder {
    fn new(extent: &DataExtent, round: u64, order_key: u64) -> Self {
        let count = extent.records;
        let block_bytes = match extent.is_slow {
            true => LARGE_BLOCK_BYTES,
            false => BLOCK_BYTES,
        };
        let block = extent.records_of(block_bytes);
        let blocks = count.div_ceil(block);
        let permutation = Permutation::new(blocks, key(&[order_key, blocks]));
        let last = blocks.saturating_sub(1);
        Self {
            count,
            block,
            last_place: permutation.inverse(last),
            last_records: count - last * block,
            blocks: permutation,
            window: (round / STREAMS).max(1),
            key: order_key,
        }
    }

    fn record(&self, position: u64) -> u64 {
        let stream = position % STREAMS;
        let place = position / STREAMS;
        // Streams are parts of the permuted blocks, of which the first ones have a record more.
        let least = self.count / STREAMS;
        let more = self.count % STREAMS;
        let start = stream * least + stream.min(more);
        let length = least + u64::from(stream < more);
        let window = place / self.window;
        let first = window * self.window;
        let records = self.window.min(length - first);
        let permutation = Permutation::new(records, key(&[self.key, stream, window]));
        self.permuted(start + first + permutation.of(place - first))
    }

    /// The record at a place of the permuted blocks.
    fn permuted(&self, place: u64) -> u64 {
        let last_start = self.last_place * self.block;
        let last_end = last_start + self.last_records;
        if place < last_start {
            let block = self.blocks.of(place / self.block);
            return block * self.block + place % self.block;
        }
        if place < last_end {
            return self.blocks.of(self.last_place) * self.block + (place - last_start);
        }
        let after = place - last_end;
        let block = self.blocks.of(self.last_place + 1 + after / self.block);
        block * self.block + after % self.block
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(records: u64, record_bytes: u64) -> DataExtent {
        DataExtent {
            records,
            bytes: records * record_bytes,
            is_slow: false,
        }
    }

    fn order_of(extent: DataExtent, shuffle: Shuffle, seed: u64, epoch: u64) -> SourceOrder {
        SourceOrder::new(extent, extent.round(), shuffle, seed, epoch)
    }

    fn shuffles() -> impl Strategy<Value = Shuffle> {
        prop_oneof![
            Just(Shuffle::None),
            Just(Shuffle::Blocks),
            Just(Shuffle::Global)
        ]
    }

    proptest! {
        #[test]
        fn each_record_is_at_one_position(
            records in 0_u64..3_000,
            record_bytes in prop_oneof![1_u64..1000, 20_000_u64..20_000_000],
            is_slow: bool,
            shuffle in shuffles(),
            seed: u64,
            epoch in 0_u64..3,
        ) {
            let extent = DataExtent { is_slow, ..extent(records, record_bytes) };
            let order = order_of(extent, shuffle, seed, epoch);
            let mut found: Vec<_> = (0..records).map(|position| order.record(position)).collect();
            found.sort_unstable();
            prop_assert_eq!(found, (0..records).collect::<Vec<_>>());
        }
    }

    /// The sum of (found - expected)² / expected, for each cell.
    fn chi_square(counts: &[u64], expected: f64) -> f64 {
        let mut sum = 0.0;
        for count in counts {
            let difference = *count as f64 - expected;
            sum += difference * difference / expected;
        }
        sum
    }

    /// The bound that a sum of squares of this many cells exceeds once in 10,000 times: the
    /// distribution is nearly normal, with this mean and twice this variance.
    fn bound(cells: usize) -> f64 {
        cells as f64 + 3.8 * (2.0 * cells as f64).sqrt()
    }

    #[test]
    fn a_record_is_at_any_position_alike() {
        const CELLS: usize = 20;
        const SEEDS: u64 = 400;
        // 256 blocks in a round, and some rounds.
        for (records, record_bytes, shuffle) in [
            (20, 1000, Shuffle::Global),
            (20, 1000, Shuffle::Blocks),
            (999, 1000, Shuffle::Global),
            (10_000, 1 << 15, Shuffle::Blocks),
            (2_000, 3 << 20, Shuffle::Blocks),
        ] {
            let mut counts = vec![0; CELLS * CELLS];
            for seed in 0..SEEDS {
                let order = order_of(extent(records, record_bytes), shuffle, seed, seed % 3);
                for position in 0..records {
                    let from = position * CELLS as u64 / records;
                    let to = order.record(position) * CELLS as u64 / records;
                    counts[from as usize * CELLS + to as usize] += 1;
                }
            }
            let expected = (SEEDS * records) as f64 / counts.len() as f64;
            let mut sum = chi_square(&counts, expected);
            if shuffle == Shuffle::Blocks && records > 512 {
                // The records of a block come together, so that there are fewer draws than records.
                sum /= (BLOCK_BYTES / record_bytes).max(1) as f64;
            }
            assert!(
                sum < bound(counts.len()),
                "{records} {record_bytes} {shuffle}: {sum}"
            );
        }
    }

    #[test]
    fn a_round_has_records_of_many_blocks_in_any_order() {
        // Blocks of 8 records, rounds of 2,048 positions.
        let order = order_of(extent(20_000, 1 << 15), Shuffle::Blocks, 1, 0);
        assert_eq!(order.round(), Some(2048));
        let found: Vec<_> = (0..2048).map(|position| order.record(position)).collect();
        let mut blocks: Vec<_> = found.iter().map(|record| record / 8).collect();
        blocks.sort_unstable();
        blocks.dedup();
        // Windows begin and end inside of blocks.
        assert!((256..=264).contains(&blocks.len()), "{}", blocks.len());
        // A batch of 64 has records of many blocks.
        let mut of_batch: Vec<_> = found[..64].iter().map(|record| record / 8).collect();
        of_batch.sort_unstable();
        of_batch.dedup();
        assert!(of_batch.len() > 48, "{}", of_batch.len());
        // Each rank of two reads blocks of its own, but those that two streams share.
        let of_rank = |rank: usize| -> Vec<u64> {
            let mut blocks: Vec<_> = found
                .iter()
                .skip(rank)
                .step_by(2)
                .map(|it| it / 8)
                .collect();
            blocks.sort_unstable();
            blocks.dedup();
            blocks
        };
        let both = of_rank(0)
            .iter()
            .filter(|it| of_rank(1).contains(it))
            .count();
        assert!(both <= 8, "{both}");
    }

    #[test]
    fn an_epoch_and_a_seed_have_orders_of_their_own() {
        for shuffle in [Shuffle::Blocks, Shuffle::Global] {
            let order = |seed, epoch| -> Vec<u64> {
                let order = order_of(extent(20_000, 1 << 15), shuffle, seed, epoch);
                (0..100).map(|position| order.record(position)).collect()
            };
            assert_eq!(order(1, 0), order(1, 0));
            assert_ne!(order(1, 0), order(1, 1));
            assert_ne!(order(1, 0), order(2, 0));
        }
    }

    #[test]
    fn the_orders_never_change() {
        let found = |shuffle, records, record_bytes, from: u64| -> Vec<u64> {
            let order = order_of(extent(records, record_bytes), shuffle, 1, 2);
            let mut found = Vec::new();
            for position in from..from + 10 {
                found.push(order.record(position));
            }
            found
        };
        // Computed by another implementation, in Python.
        let small = [948, 28, 763, 560, 847, 332, 37, 794, 820, 416];
        assert_eq!(found(Shuffle::Global, 1_000, 100, 0), small);
        assert_eq!(found(Shuffle::Blocks, 1_000, 100, 0), small);
        assert_eq!(
            found(Shuffle::Blocks, 100_000, 10_000, 0),
            [
                14261, 14626, 60158, 34876, 74956, 62872, 84971, 73518, 29058, 91500
            ]
        );
        assert_eq!(
            found(Shuffle::Blocks, 100_000, 10_000, 99_990),
            [
                80699, 63045, 11996, 97720, 91004, 85867, 81219, 1378, 98830, 63323
            ]
        );
    }
}
