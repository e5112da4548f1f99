//! Features whose values do not decrease from record to record, such as a time or a key.
//!
//! ```text
//! chunk 0   ts 1, 1, 4 ─▶ run 1..4 ┐
//! chunk 1   ts 4, 9    ─▶ run 4..9 ┴▶ run 1..9
//! chunk 2   ts 12, 11  ─▶ not sorted: the feature is dropped
//! ```
//!
//! Chunks are added in any order. Chunks that follow each other become one run, so that memory is
//! needed for a few runs of each feature only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A feature that all records of a shard have, and whose values do not decrease from record to
/// record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortedFeature {
    /// The name of the feature.
    pub name: String,
    /// The value of the first record.
    pub first: SortedValue,
    /// The value of the last record.
    pub last: SortedValue,
}

/// A value of a sorted feature. Texts have the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SortedValue {
    /// An integer.
    Int64(i64),
    /// A short text.
    Text(String),
}

/// The features that are sorted in all chunks so far.
#[derive(Debug, Default)]
pub(crate) struct SortedRuns {
    /// The runs of each feature, by its number, in the order of the shard; `None` if it is not
    /// sorted.
    features: Vec<Option<BTreeMap<u64, SortedRun>>>,
}

/// Consecutive chunks in which a feature is sorted.
#[derive(Debug)]
struct SortedRun {
    /// The number of the chunk after the last one.
    end: u64,
    first: SortedValue,
    last: SortedValue,
}

impl SortedRuns {
    /// Whether a feature is sorted in all chunks so far.
    pub(crate) fn has(&self, feature: usize) -> bool {
        self.features.get(feature).is_none_or(Option::is_some)
    }

    /// Adds a chunk, with the first and the last value of a feature; `None` if the feature is not
    /// sorted in it.
    pub(crate) fn add(
        &mut self,
        feature: usize,
        chunk: u64,
        ends: Option<(SortedValue, SortedValue)>,
    ) {
        if self.features.len() <= feature {
            self.features
                .resize_with(feature + 1, || Some(BTreeMap::new()));
        }
        if let Some(runs) = self.features.get_mut(feature) {
            *runs = runs
                .take()
                .zip(ends)
                .and_then(|(runs, ends)| with_chunk(runs, chunk, ends));
        }
    }

    /// The first and the last value of a feature that is sorted in all of so many chunks.
    pub(crate) fn ends(&self, feature: usize, chunks: u64) -> Option<(SortedValue, SortedValue)> {
        let run = self.features.get(feature)?.as_ref()?.get(&0)?;
        (run.end == chunks).then(|| (run.first.clone(), run.last.clone()))
    }
}

/// Adds a chunk to the runs of a feature; `None` if its values are not between those of its
/// neighbours.
fn with_chunk(
    mut runs: BTreeMap<u64, SortedRun>,
    chunk: u64,
    (first, last): (SortedValue, SortedValue),
) -> Option<BTreeMap<u64, SortedRun>> {
    let mut begin = chunk;
    let mut run = SortedRun {
        end: chunk + 1,
        first,
        last,
    };
    if let Some((start, before)) = runs.range_mut(..chunk).next_back() {
        if before.last > run.first {
            return None;
        }
        if before.end == chunk {
            begin = *start;
            run.first = before.first.clone();
        }
    }
    if let Some((start, after)) = runs.range(chunk + 1..).next() {
        if run.last > after.first {
            return None;
        }
        let start = *start;
        if start == run.end
            && let Some(after) = runs.remove(&start)
        {
            run.end = after.end;
            run.last = after.last;
        }
    }
    runs.insert(begin, run);
    Some(runs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_are_sorted_in_any_order(
            mut values in prop::collection::vec(0i64..6, 2..20),
            sort in any::<bool>(),
            seed in any::<u64>(),
        ) {
            if sort {
                values.sort_unstable();
            }
            // A chunk of two values at most.
            let chunks: Vec<_> = values.chunks(2).collect();
            let mut order: Vec<_> = (0..chunks.len()).collect();
            order.sort_by_key(|number| (*number as u64 + 1).wrapping_mul(seed | 1) >> 7);
            let mut runs = SortedRuns::default();
            for number in order {
                let chunk = chunks[number];
                let ends = [chunk[0], chunk[chunk.len() - 1]].map(SortedValue::Int64);
                let ends = chunk.is_sorted().then(|| ends.into());
                runs.add(3, number as u64, ends);
            }
            let ends = [values[0], values[values.len() - 1]].map(SortedValue::Int64);
            let expected = values.is_sorted().then(|| ends.into());
            prop_assert_eq!(runs.has(3), expected.is_some());
            prop_assert_eq!(runs.ends(3, chunks.len() as u64), expected);
            prop_assert_eq!(runs.ends(3, chunks.len() as u64 + 1), None);
            prop_assert_eq!(runs.ends(2, 0), None);
        }
    }
}
