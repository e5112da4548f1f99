//! Comparison in order. At a mismatch, both sides are searched ahead for a record that is equal to
//! the current one of the other side:
//!
//! ```text
//! left    a b c d e         a b c d e          a b c d e
//! right   a b x d e         a b x c d e        a b d e
//!             changed           x inserted         c deleted
//! ```

use tfarrow_codec::diff::{Difference, Incomparable};

use super::{
    report::DataSetDiff,
    rules::Rules,
    sides::{DiffSide, Record},
    unmatched::Unmatched,
};
use crate::{Error, Progress, Result};

/// Maximum records that are searched ahead after a mismatch.
const MAX_AHEAD: usize = 1000;

/// Comparisons of the search that are available at first, and that each record adds. They bound the
/// time of the search to a small multiple of the number of records.
const SEARCH_BUDGET: usize = 1 << 17;
const SEARCH_BUDGET_PER_RECORD: usize = 4;

/// Compares two data sets in order. Keeps the first `max` differences.
///
/// # Errors
/// Errors of reading, records that cannot be compared, errors of writing unmatched records, and
/// [`Error::Cancelled`].
pub(super) fn compare(
    sides: [DiffSide; 2],
    rules: Rules,
    unmatched: &mut Unmatched,
    max: usize,
    progress: &Progress,
) -> Result<DataSetDiff> {
    OrderedComparison {
        sides,
        rules,
        budget: SEARCH_BUDGET,
        unmatched,
        progress,
    }
    .run(max)
}

/// A running comparison.
struct OrderedComparison<'p> {
    sides: [DiffSide; 2],
    rules: Rules,
    /// Comparisons that remain for searching ahead.
    budget: usize,
    unmatched: &'p mut Unmatched,
    progress: &'p Progress,
}

impl OrderedComparison<'_> {
    fn run(mut self, max_differences: usize) -> Result<DataSetDiff> {
        let mut found = DataSetDiff::new();
        loop {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            self.progress.add_records(1);
            self.budget = (self.budget + SEARCH_BUDGET_PER_RECORD).min(SEARCH_BUDGET);
            let [left, right] = &mut self.sides;
            let (side, count) = match (left.peek(0)?, right.peek(0)?) {
                (None, None) => break,
                (Some(_), None) => (0, 1),
                (None, Some(_)) => (1, 1),
                (Some(left), Some(right)) => {
                    let differences = self.compare(&left, &right).map_err(Error::Incomparable)?;
                    let unpaired = if differences.is_empty() {
                        None
                    } else {
                        self.find_unpaired(&left, &right)?
                    };
                    let Some(unpaired) = unpaired else {
                        let pair = [left.position(), right.position()];
                        found.add_pair(self.sides[0].number, pair, differences, max_differences);
                        self.sides.iter_mut().for_each(DiffSide::advance);
                        continue;
                    };
                    unpaired
                }
            };
            self.skip_unpaired(side, count, &mut found, max_differences)?;
        }
        found.records = self.sides.map(|side| side.number);
        Ok(found)
    }

    /// Adds the next `count` records of one side, which have no partner, to the result.
    fn skip_unpaired(
        &mut self,
        index: usize,
        count: usize,
        found: &mut DataSetDiff,
        max: usize,
    ) -> Result<()> {
        let [left, right] = &mut self.sides;
        let side = if index == 0 { left } else { right };
        for _ in 0..count {
            if let Some(record) = side.peek(0)? {
                found.add_unpaired(index, side.number, record.position(), max);
                self.unmatched.add(index, record.data())?;
            }
            side.advance();
        }
        Ok(())
    }

    /// Searches ahead of two records that differ for the next pair. Returns the side with records
    /// that have no partner, and their number. `None` if the next records of both sides are equal,
    /// or if no record ahead is equal to one of the two.
    fn find_unpaired(&mut self, left: &Record, right: &Record) -> Result<Option<(usize, usize)>> {
        for ahead in 1..=MAX_AHEAD.min(self.budget / 2) {
            self.budget -= 2;
            let [one, other] = &mut self.sides;
            let one = one.peek(ahead)?;
            let other = other.peek(ahead)?;
            let is_changed = ahead == 1 && self.are_equal(one.as_ref(), other.as_ref());
            if is_changed || one.is_none() && other.is_none() {
                break;
            }
            let side = match () {
                () if self.are_equal(Some(left), other.as_ref()) => 1,
                () if self.are_equal(one.as_ref(), Some(right)) => 0,
                () => continue,
            };
            return Ok(Some((side, ahead)));
        }
        Ok(None)
    }

    /// Whether there are two records, and they are equal.
    fn are_equal(&mut self, one: Option<&Record>, other: Option<&Record>) -> bool {
        let (Some(one), Some(other)) = (one, other) else {
            return false;
        };
        self.compare(one, other).is_ok_and(|found| found.is_empty())
    }

    /// The differences of two records; empty if they are equal.
    fn compare(&mut self, left: &Record, right: &Record) -> Result<Vec<Difference>, Incomparable> {
        self.rules.compare(left.data(), right.data())
    }
}
