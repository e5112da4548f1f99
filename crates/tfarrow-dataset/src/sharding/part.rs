//! Parts of a data set: the shards that each of several processes reads, such as the jobs of an array on a cluster.
//!
//! ```text
//! sizes of shards   9  4  4  3  1
//! 0/2               9        1          10 bytes
//! 1/2                  4  4  3          11 bytes
//! ```

use std::{cmp::Reverse, collections::BinaryHeap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::Shard;

/// One of several parts of a data set, written as `3/16`. Parts are numbered from 0, as batch systems number the jobs of an array
/// and as shards are numbered.
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

    /// Returns the indices of the shards of this part, in ascending order. Each shard is in exactly one part.
    ///
    /// The division depends on the sizes of the shards and their order alone, so that processes that find the same shards agree on
    /// it without a message. Shards are given to the part with the fewest bytes, the largest shard first: no part has more than
    /// 4/3 of the bytes of the best division (Graham 1969).
    pub fn indices(self, shards: &[Shard]) -> Vec<usize> {
        let mut largest_first: Vec<_> = (0..shards.len()).collect();
        // The sort is stable, so that shards of equal size stay in their order.
        largest_first.sort_by_key(|index| Reverse(shards.get(*index).map_or(0, |shard| shard.size)));
        // Further parts have no shard. Parts of equal size take empty shards, or those of unknown size, in turns.
        let parts = self.count.min(shards.len());
        let mut lightest: BinaryHeap<_> = (0..parts).map(|part| Reverse((0_u64, 0_usize, part))).collect();
        let mut own = Vec::new();
        for index in largest_first {
            let Some(mut part) = lightest.peek_mut() else { break };
            let Reverse((bytes, taken, number)) = &mut *part;
            *bytes = bytes.saturating_add(shards.get(index).map_or(0, |shard| shard.size));
            *taken += 1;
            if *number == self.index {
                own.push(index);
            }
        }
        own.sort_unstable();
        own
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// The error that a text is not a [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAPart {
    /// The text is not two numbers.
    Syntax,
    /// The number of the part is too large. Contains the number of parts.
    Number(usize),
}

impl fmt::Display for NotAPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax => f.write_str("expected the number of the part, from 0, and that of all parts, such as 3/16"),
            Self::Number(0) => f.write_str("there is no part of 0 parts"),
            Self::Number(count) => write!(f, "parts are numbered from 0: the last of {count} is {}/{count}", count - 1),
        }
    }
}

impl std::error::Error for NotAPart {}

impl FromStr for Part {
    type Err = NotAPart;

    fn from_str(text: &str) -> Result<Self, NotAPart> {
        let (index, count) = text.split_once('/').ok_or(NotAPart::Syntax)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| NotAPart::Syntax);
        let (index, count) = (number(index)?, number(count)?);
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

    fn divided(sizes: &[u64], count: usize) -> Vec<Vec<usize>> {
        let shards = shards(sizes);
        (0..count).map(|index| Part::new(index, count).unwrap().indices(&shards)).collect()
    }

    #[test]
    fn parts_are_even_by_bytes() {
        assert_eq!(divided(&[9, 4, 4, 3, 1], 2), [vec![0, 4], vec![1, 2, 3]]);
        assert_eq!(divided(&[9, 4], 3), [vec![0], vec![1], vec![]]);
        assert_eq!(divided(&[], 2), [vec![0_usize; 0], vec![]]);
        // Sizes that are not known.
        assert_eq!(divided(&[0; 5], 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(divided(&[u64::MAX, u64::MAX, 1], 2), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn parts_are_parsed() {
        assert_eq!("3/16".parse(), Ok(Part { index: 3, count: 16 }));
        assert_eq!("3/16".parse::<Part>().unwrap().to_string(), "3/16");
        for (text, message) in [
            ("16/16", "parts are numbered from 0: the last of 16 is 15/16"),
            ("0/0", "there is no part of 0 parts"),
            ("3", "expected the number of the part, from 0, and that of all parts, such as 3/16"),
            ("-1/2", "expected the number of the part, from 0, and that of all parts, such as 3/16"),
        ] {
            assert_eq!(text.parse::<Part>().unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn each_shard_is_in_one_part(sizes in prop::collection::vec(0_u64..1_000, 0..60), count in 1_usize..20) {
            let parts = divided(&sizes, count);
            let mut all: Vec<_> = parts.iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..sizes.len()).collect::<Vec<_>>());
            // The largest part has at most one shard more than its share of the bytes.
            let bytes = |part: &Vec<usize>| part.iter().map(|index| sizes[*index]).sum::<u64>();
            let most = parts.iter().map(bytes).max().unwrap();
            let largest = sizes.iter().max().copied().unwrap_or_default();
            prop_assert!(most <= sizes.iter().sum::<u64>() / count as u64 + largest);
        }
    }
}
