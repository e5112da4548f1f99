//! Parts of a data set: the shards that each of several processes reads, such as the jobs of an
//! array on a cluster.
//!
//! ```text
//! sizes of shards   4  4  9  3  1
//! 0/2               4  4              8 bytes
//! 1/2                     9  3  1    13 bytes
//! ```

use std::{fmt, ops::Range, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Result, Shard};

/// One of several parts of a data set, written as `3/16`. Parts are numbered from 0, as batch
/// systems number the jobs of an array and as shards are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    index: usize,
    count: usize,
}

impl Part {
    /// Returns the part of this number of `count` parts; `None` if there is no such part.
    pub fn new(index: usize, count: usize) -> Option<Self> {
        (index < count).then_some(Self { index, count })
    }

    /// Returns the number of the part, from 0.
    pub fn index(self) -> usize {
        self.index
    }

    /// Returns the number of parts.
    pub fn count(self) -> usize {
        self.count
    }

    /// Returns the indices of the shards of this part. Each shard is in exactly one part.
    ///
    /// The division depends on the sizes of the shards and their order alone, so that processes
    /// that find the same shards agree on it without a message. See [`divide`].
    pub fn range(self, shards: &[Shard]) -> Range<usize> {
        let sizes: Vec<_> = shards.iter().map(|shard| shard.size).collect();
        // Where there are fewer shards than parts, the last parts have none.
        divide(&sizes, self.count)
            .get(self.index)
            .cloned()
            .unwrap_or(shards.len()..shards.len())
    }

    /// Copies the shards of this part that need a local copy, as [`Shard::spool_for_scan`] does,
    /// and all such CSV and JSON files, whose columns have the types of all of them. None of the
    /// shards may be a [stream](Shard::is_stream): its size, by which the shards are divided, is
    /// known only after the copy.
    ///
    /// # Errors
    /// An I/O error.
    pub fn spool_for_scan(self, shards: &mut [Shard]) -> Result<()> {
        let own = self.range(shards);
        let mut shards = shards.iter_mut().enumerate();
        shards.try_for_each(|(number, shard)| {
            match own.contains(&number) || shard.format.is_text() {
                true => shard.spool_for_scan(),
                false => Ok(()),
            }
        })
    }
}

/// Divides items of these sizes, in their order, into at most `count` ranges of about the same size
/// in all, none of which is empty.
///
/// ```
/// use tfarrow_dataset::internals::divide;
/// assert_eq!(divide(&[4, 4, 9, 3, 1], 2), [0..2, 2..5]);
/// // An item that is far larger than the share has a range of its own.
/// assert_eq!(divide(&[1, 1, 1000, 1, 1], 3), [0..2, 2..3, 3..5]);
/// ```
pub fn divide(sizes: &[u64], count: usize) -> Vec<Range<usize>> {
    let mut left: u128 = sizes.iter().copied().map(weight).sum();
    let mut ranges = Vec::new();
    let mut start = 0;
    for ranges_left in (1..=count.min(sizes.len())).rev() {
        let share = left.div_ceil(ranges_left as u128);
        let mut end = start;
        let mut size = 0;
        // An item is kept for each of the remaining ranges.
        while size < share && sizes.len() - end >= ranges_left {
            let with = size + sizes.get(end).copied().map_or(0, weight);
            // The item is left to the next range if this one is then nearer to its share.
            if end > start && ranges_left > 1 && (size + with) * ranges_left as u128 > 2 * left {
                break;
            }
            (end, size) = (end + 1, with);
        }
        left -= size;
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// What an item of this size counts as. An empty one takes time as well, and sizes may be unknown.
fn weight(size: u64) -> u128 {
    u128::from(size) + 1
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// The error that a text is not a [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPart {
    /// The text is not two numbers.
    #[error("expected the number of the part, from 0, and that of all parts, such as 3/16")]
    Syntax,
    /// The number of parts is 0.
    #[error("there is no part of 0 parts")]
    NoParts,
    /// The number of the part is too large. Contains the number of parts, which is not 0.
    #[error("parts are numbered from 0: the last of {0} is {last}/{0}", last = .0 - 1)]
    Number(usize),
}

impl FromStr for Part {
    type Err = NotAPart;

    fn from_str(text: &str) -> Result<Self, NotAPart> {
        let (index, count) = text.split_once('/').ok_or(NotAPart::Syntax)?;
        let index: usize = index.parse().map_err(|_| NotAPart::Syntax)?;
        let count: usize = count.parse().map_err(|_| NotAPart::Syntax)?;
        if count == 0 {
            return Err(NotAPart::NoParts);
        }
        Self::new(index, count).ok_or(NotAPart::Number(count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ShardFormat;

    fn shards(sizes: &[u64]) -> Vec<Shard> {
        let shard = |size: &u64| Shard::file("s".into(), "s".into(), *size, ShardFormat::TfRecord);
        sizes.iter().map(shard).collect()
    }

    fn divided(sizes: &[u64], count: usize) -> Vec<Range<usize>> {
        let shards = shards(sizes);
        (0..count)
            .map(|index| Part::new(index, count).unwrap().range(&shards))
            .collect()
    }

    #[test]
    fn parts_are_even_by_bytes() {
        assert_eq!(divided(&[4, 4, 9, 3, 1], 2), [0..2, 2..5]);
        assert_eq!(divided(&[9, 4], 3), [0..1, 1..2, 2..2]);
        assert_eq!(divided(&[], 2), [0..0, 0..0]);
        // Sizes that are not known.
        assert_eq!(divided(&[0; 5], 2), [0..3, 3..5]);
        assert_eq!(divided(&[u64::MAX, u64::MAX, 1], 2), [0..1, 1..3]);
    }

    #[test]
    fn parts_are_parsed() {
        assert_eq!(
            "3/16".parse(),
            Ok(Part {
                index: 3,
                count: 16
            })
        );
        assert_eq!("3/16".parse::<Part>().unwrap().to_string(), "3/16");
        for (text, message) in [
            (
                "16/16",
                "parts are numbered from 0: the last of 16 is 15/16",
            ),
            ("0/0", "there is no part of 0 parts"),
            (
                "3",
                "expected the number of the part, from 0, and that of all parts, such as 3/16",
            ),
            (
                "-1/2",
                "expected the number of the part, from 0, and that of all parts, such as 3/16",
            ),
        ] {
            assert_eq!(text.parse::<Part>().unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn each_item_is_in_one_range(sizes in prop::collection::vec(0_u64..1_000, 0..60), count in 1_usize..20) {
            let ranges = divide(&sizes, count);
            prop_assert_eq!(ranges.len(), count.min(sizes.len()));
            prop_assert!(ranges.iter().all(|range| !range.is_empty()));
            prop_assert_eq!(ranges.iter().cloned().flatten().collect::<Vec<_>>(), (0..sizes.len()).collect::<Vec<_>>());
            // The largest range has at most one item more than its share.
            let size = |range: &Range<usize>| sizes[range.clone()].iter().map(|size| size + 1).sum::<u64>();
            let most = ranges.iter().map(size).max().unwrap_or_default();
            let largest = sizes.iter().max().map_or(0, |size| size + 1);
            let all = sizes.iter().map(|size| size + 1).sum::<u64>();
            prop_assert!(most <= all / count as u64 + largest, "{} of {}", most, all);
        }
    }
}
