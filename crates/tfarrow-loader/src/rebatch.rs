//! Batches of other sizes.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;

/// Cuts batches of any size into batches of the sizes that a consumer asks for, in the same order.
///
/// Rows of one input batch are returned as a slice of it, without a copy. Rows of several are
/// copied.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
/// use tfarrow_loader::Rebatch;
/// # fn main() -> Result<(), arrow_schema::ArrowError> {
/// # let numbers = |range| -> ArrayRef { Arc::new(Int64Array::from_iter_values(range)) };
/// # let batch = |range| RecordBatch::try_from_iter([("x", numbers(range))]);
/// let mut batches = Rebatch::default();
/// batches.push(batch(0..5)?);
/// batches.push(batch(5..7)?);
/// assert_eq!(batches.next(4, false)?.unwrap().num_rows(), 4);
/// assert!(batches.next(4, false)?.is_none()); // three rows wait for the fourth
/// assert_eq!(batches.next(4, true)?.unwrap().num_rows(), 3);
/// assert!(batches.next(4, true)?.is_none());
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct Rebatch {
    /// Input of which rows were not returned, in order, without empty batches.
    waiting: VecDeque<RecordBatch>,
    /// Number of rows of the first waiting batch that were returned.
    taken: usize,
    /// Number of rows that were not returned.
    count: usize,
}

impl Rebatch {
    /// Adds a batch after those before.
    pub fn push(&mut self, batch: RecordBatch) {
        if batch.num_rows() > 0 {
            self.count += batch.num_rows();
            self.waiting.push_back(batch);
        }
    }

    /// Removes and returns the first `rows` rows; `None` if there are fewer. With `ended` no rows
    /// follow, and those that are left are returned, if there are any.
    ///
    /// # Errors
    /// The batches cannot be joined: they have other schemas, or more values than an array can
    /// hold.
    pub fn next(&mut self, rows: usize, ended: bool) -> Result<Option<RecordBatch>, ArrowError> {
        if self.count < rows && !ended {
            return Ok(None);
        }
        let mut left = rows.min(self.count);
        let mut parts = Vec::new();
        while left > 0
            && let Some(part) = self.take_first(left)
        {
            left -= part.num_rows();
            parts.push(part);
        }
        match parts.as_slice() {
            [] => Ok(None),
            [part] => Ok(Some(part.clone())),
            [first, ..] => concat_batches(&first.schema(), &parts).map(Some),
        }
    }

    /// Removes the first waiting batch, or its first `most` rows; `None` if nothing waits.
    pub fn take_first(&mut self, most: usize) -> Option<RecordBatch> {
        let first = self.waiting.front()?;
        let taken = self.taken;
        let left = first.num_rows() - self.taken;
        let rows = left.min(most);
        self.count -= rows;
        if rows < left {
            self.taken += rows;
            return Some(first.slice(taken, rows));
        }
        self.taken = 0;
        let first = self.waiting.pop_front()?;
        Some(if taken == 0 {
            first
        } else {
            first.slice(taken, rows)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, cast::AsArray, types::Int64Type};
    use proptest::{collection::vec, proptest};

    use super::*;

    fn batch(from: i64, rows: usize) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + rows as i64));
        RecordBatch::try_from_iter([("x", numbers)]).unwrap()
    }

    proptest! {
        #[test]
        fn batches_have_the_wanted_sizes_and_all_rows_in_order(
            sizes in vec(0_usize..20, 0..10), wanted in vec(1_usize..30, 1..5)
        ) {
            let mut rebatch = Rebatch::default();
            let mut found = Vec::new();
            let mut lengths = Vec::new();
            let mut next = 0;
            let mut take = |rebatch: &mut Rebatch, ended| {
                while let Some(batch) = rebatch.next(wanted[lengths.len() % wanted.len()], ended).unwrap() {
                    lengths.push(batch.num_rows());
                    found.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
                }
            };
            for size in sizes {
                rebatch.push(batch(next, size));
                next += size as i64;
                take(&mut rebatch, false);
            }
            take(&mut rebatch, true);
            assert_eq!(found, (0..next).collect::<Vec<_>>());
            let last = lengths.pop();
            let is_wanted = |(index, length): (usize, &usize)| *length == wanted[index % wanted.len()];
            assert!(lengths.iter().enumerate().all(is_wanted));
            assert!(last.is_none_or(|last| (1..=wanted[lengths.len() % wanted.len()]).contains(&last)));
        }
    }
}
