//! The division of the records of a data set among the processes of a training run.

use std::ops::Range;

/// How the records of a data set are divided among ranks (the processes of a run, one for each
/// accelerator) and the workers of each rank (processes that load data for it).
///
/// ```text
/// records     0 ─────────────────────────────────────────────── n
/// ranks       ├──── rank 0 ────────┼──── rank 1 ────────┤        one range each, of n / ranks records
/// batches     ├──┼──┼──┼──┼──┼──┼──┼──┼── ..                     the same number for each rank
/// workers     ├─ worker 0 ─┼─ 1 ──┤                              ranges of whole batches
/// ```
///
/// All ranks have the same number of batches, because a rank that has one more would wait for the
/// others forever. The records of a rank are spread over its batches evenly, so that the sizes of
/// two batches of a run differ by at most two, and none is larger than the batch size. A batch is
/// empty only where there are fewer records than ranks, or where batches of one record cannot be
/// divided evenly. The division is a function of its fields alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Number of records of the data set.
    pub records: u64,
    /// Maximum number of records of a batch. At least 1.
    pub batch_size: u64,
    /// Number of ranks. At least 1.
    pub ranks: u64,
    /// Number of workers of each rank. At least 1.
    pub workers: u64,
    /// Whether all batches have exactly `batch_size` records. The records that are left over, fewer
    /// than `batch_size` for each rank, are dropped.
    pub drop_last: bool,
}

/// The records of one worker of one rank, as batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The records, by their numbers in the data set.
    pub records: Range<u64>,
    /// The number of records of each batch, in order.
    pub batches: Vec<u64>,
}

impl Division {
    /// Number of batches of each rank.
    ///
    /// ```
    /// use tfarrow_loader::Division;
    /// let division = Division { records: 1_000, batch_size: 256, ranks: 2, workers: 1, drop_last: false };
    /// assert_eq!(division.batches(), 2);
    /// assert_eq!(division.share(1, 0).batches, [250, 250]);
    /// ```
    pub fn batches(&self) -> u64 {
        let ranks = self.ranks.max(1);
        let size = self.batch_size.max(1);
        if self.drop_last {
            self.records / ranks / size
        } else {
            self.records.div_ceil(ranks).div_ceil(size)
        }
    }

    /// The share of a worker of a rank; an empty one for numbers that do not exist.
    pub fn share(&self, rank: u64, worker: u64) -> Share {
        let ranks = self.ranks.max(1);
        let workers = self.workers.max(1);
        let batches = self.batches();
        if rank >= ranks || worker >= workers {
            return Share {
                records: 0..0,
                batches: Vec::new(),
            };
        }
        let start = part(self.records, ranks, rank);
        let of_rank = match self.drop_last {
            true => batches * self.batch_size.max(1),
            false => part(self.records, ranks, rank + 1) - start,
        };
        let own = part(batches, workers, worker)..part(batches, workers, worker + 1);
        let mut sizes = Vec::with_capacity((own.end - own.start) as usize);
        let first = start + part(of_rank, batches.max(1), own.start);
        let mut end = first;
        for batch in own {
            let begin = end;
            end = start + part(of_rank, batches.max(1), batch + 1);
            sizes.push(end - begin);
        }
        Share {
            records: first..end,
            batches: sizes,
        }
    }
}

/// The beginning of part `index` of `count` items that are divided into `parts` parts as evenly as
/// possible.
fn part(count: u64, parts: u64, index: u64) -> u64 {
    (u128::from(count) * u128::from(index) / u128::from(parts)) as u64
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn every_record_is_in_one_batch(
            records in 0_u64..5_000, batch_size in 1_u64..70, ranks in 1_u64..5, workers in 1_u64..4
        ) {
            let division = Division { records, batch_size, ranks, workers, drop_last: false };
            let mut next = 0;
            for rank in 0..ranks {
                let mut batches = 0;
                for worker in 0..workers {
                    let share = division.share(rank, worker);
                    prop_assert_eq!(share.records.start, next);
                    prop_assert_eq!(share.records.end - share.records.start, share.batches.iter().sum::<u64>());
                    prop_assert!(share.batches.iter().all(|size| *size <= batch_size));
                    // Batches of one record cannot be as many on each rank otherwise.
                    prop_assert!(batch_size == 1 || records < ranks || share.batches.iter().all(|size| *size > 0));
                    next = share.records.end;
                    batches += share.batches.len() as u64;
                }
                prop_assert_eq!(batches, division.batches());
            }
            prop_assert_eq!(next, records);
        }

        #[test]
        fn dropped_records_are_fewer_than_a_batch_of_each_rank(
            records in 0_u64..5_000, batch_size in 1_u64..70, ranks in 1_u64..5, workers in 1_u64..4
        ) {
            let division = Division { records, batch_size, ranks, workers, drop_last: true };
            let mut seen = Vec::new();
            for rank in 0..ranks {
                for worker in 0..workers {
                    let share = division.share(rank, worker);
                    prop_assert!(share.batches.iter().all(|size| *size == batch_size));
                    seen.extend(share.records);
                }
            }
            let count = seen.len();
            seen.dedup();
            prop_assert_eq!(seen.len(), count);
            prop_assert!(seen.is_sorted());
            prop_assert!(records - (count as u64) < ranks * batch_size + ranks);
        }
    }
}
