//! The division of the records of a data set among the processes of a training run.

/// How the positions of an order are divided among ranks (the processes of a run, one for each
/// accelerator) and the workers of each rank (processes that load data for it).
///
/// ```text
/// positions         start ──────────────────────────────────── records
/// batches of a run  ├───── 0 ─────┼───── 1 ─────┼───── 2 ──┤     of batch_size x ranks positions
/// ranks             0 1 2 0 1 2 ..                               take the positions in turns
/// workers           0             1             0                take the batches in turns
/// ```
///
/// All ranks have the same number of batches, because a rank that has one more would wait for the
/// others forever. Every batch but the last has exactly `batch_size` records. The records of the last
/// one are divided as evenly as may be: those of two ranks differ by at most one, and a batch is empty
/// only where fewer records are left than there are ranks.
///
/// After `n` batches of each rank, exactly the first `n * batch_size * ranks` positions were read. A
/// run is therefore continued from that position with any number of ranks and workers, and any batch
/// size. The division is a function of its fields alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Number of records of the data set.
    pub records: u64,
    /// The first position; those before it were read.
    pub start: u64,
    /// Number of records of a batch. At least 1.
    pub batch_size: u64,
    /// Number of ranks. At least 1.
    pub ranks: u64,
    /// Number of workers of each rank. At least 1.
    pub workers: u64,
    /// Whether a last batch of fewer than `batch_size` records is left out, on all ranks.
    pub drop_last: bool,
}

/// The part of a worker of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    division: Division,
    rank: u64,
    worker: u64,
}

impl Division {
    /// Number of batches of each rank.
    ///
    /// ```
    /// use tfarrow_loader::Division;
    /// let division = Division {
    ///     records: 1_000, start: 0, batch_size: 256, ranks: 2, workers: 1, drop_last: false,
    /// };
    /// assert_eq!(division.batches(), 2);
    /// let sizes: Vec<_> = division.share(1, 0).unwrap().batches().map(|batch| batch.count()).collect();
    /// assert_eq!(sizes, [256, 244]);
    /// ```
    pub fn batches(&self) -> u64 {
        let of_run = self.of_run();
        let left = self.records.saturating_sub(self.start);
        match self.drop_last {
            true => left / of_run,
            false => left.div_ceil(of_run),
        }
    }

    /// Number of positions of a batch of the run.
    fn of_run(&self) -> u64 {
        self.batch_size.max(1).saturating_mul(self.ranks.max(1))
    }

    /// The first position after this many batches of each rank.
    pub fn position_after(&self, batches: u64) -> u64 {
        let read = batches.saturating_mul(self.of_run());
        self.start.saturating_add(read).min(self.records)
    }

    /// The part of a worker of a rank; `None` for numbers that do not exist.
    pub fn share(&self, rank: u64, worker: u64) -> Option<Share> {
        let exists = rank < self.ranks && worker < self.workers;
        exists.then_some(Share {
            division: *self,
            rank,
            worker,
        })
    }
}

impl Share {
    /// Number of records of each batch but the last one.
    pub(crate) fn batch_size(&self) -> u64 {
        self.division.batch_size
    }

    /// The number of batches.
    pub fn count(&self) -> u64 {
        let Division { workers, .. } = self.division;
        self.division
            .batches()
            .saturating_sub(self.worker)
            .div_ceil(workers)
    }

    /// The positions of each batch from number `first` on, in order.
    pub fn batches_from(self, first: u64) -> impl Iterator<Item = impl Iterator<Item = u64>> {
        (first..self.count()).map(move |number| self.batch(number))
    }

    /// The positions of each batch, in order.
    pub fn batches(self) -> impl Iterator<Item = impl Iterator<Item = u64>> {
        self.batches_from(0)
    }

    /// The positions of a batch, by its number among those of the worker.
    pub fn batch(&self, number: u64) -> impl Iterator<Item = u64> + use<> {
        let Division {
            records,
            batch_size,
            ranks,
            workers,
            ..
        } = self.division;
        let of_rank = self.worker + number * workers;
        let start = self.division.position_after(of_rank) + self.rank;
        let positions = (start..records).step_by(ranks as usize);
        positions.take(batch_size.max(1) as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    /// The positions of each batch of a rank, in the order in which its workers are asked.
    fn batches_of(division: &Division, rank: u64) -> Vec<Vec<u64>> {
        let mut found = Vec::new();
        for batch in 0..division.batches() {
            let share = division.share(rank, batch % division.workers).unwrap();
            found.push(share.batch(batch / division.workers).collect());
        }
        found
    }

    proptest! {
        #[test]
        fn every_position_is_in_one_batch(
            records in 0_u64..2_000, start in 0_u64..2_000, batch_size in 1_u64..70,
            ranks in 1_u64..5, workers in 1_u64..4, drop_last: bool,
        ) {
            let division = Division { records, start, batch_size, ranks, workers, drop_last };
            let mut seen = Vec::new();
            for rank in 0..ranks {
                let mut count = 0;
                for worker in 0..workers {
                    count += division.share(rank, worker).unwrap().count();
                }
                prop_assert_eq!(count, division.batches());
                let batches = batches_of(&division, rank);
                if let Some((last, others)) = batches.split_last() {
                    prop_assert!(others.iter().all(|batch| batch.len() as u64 == batch_size));
                    let left = records - division.position_after(division.batches() - 1);
                    let even = left / ranks..=left.div_ceil(ranks);
                    prop_assert!(even.contains(&(last.len() as u64)) || last.len() as u64 == batch_size);
                    prop_assert!(!drop_last || last.len() as u64 == batch_size);
                }
                seen.extend(batches.into_iter().flatten());
            }
            seen.sort_unstable();
            let end = division.position_after(division.batches());
            prop_assert_eq!(seen, (start.min(end)..end).collect::<Vec<_>>());
            prop_assert!(drop_last || end == records.max(start.min(records)));
            prop_assert!(records.saturating_sub(end) < batch_size * ranks);
        }

        #[test]
        fn a_run_that_is_continued_reads_the_rest(
            records in 0_u64..2_000, first in (1_u64..40, 1_u64..5, 1_u64..4),
            then in (1_u64..40, 1_u64..5, 1_u64..4), stop in 0_u64..60,
        ) {
            let of = |start, (batch_size, ranks, workers)| {
                Division { records, start, batch_size, ranks, workers, drop_last: false }
            };
            let division = of(0, first);
            let stop = stop.min(division.batches());
            let mut seen = Vec::new();
            for rank in 0..division.ranks {
                let batches = batches_of(&division, rank);
                seen.extend(batches.into_iter().take(stop as usize).flatten());
            }
            let division = of(division.position_after(stop), then);
            for rank in 0..division.ranks {
                seen.extend(batches_of(&division, rank).into_iter().flatten());
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..records).collect::<Vec<_>>());
        }
    }
}
