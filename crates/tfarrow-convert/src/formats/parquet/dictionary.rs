//! The choice of the columns of a Parquet row group that get a dictionary.
//!
//! Parquet's writer begins every column with a dictionary, and abandons it when it is full. Until then it hashes each value.
//! A small row group, which does not fill the dictionary, keeps it even if no value repeats, and stores an index per value
//! in addition. This module therefore estimates the number of distinct values from the first values.

use std::{collections::HashSet, hash::Hash};

use arrow_array::{
    Array, ArrayRef,
    cast::AsArray,
    types::{Float32Type, Int64Type},
};
use arrow_schema::DataType;
use foldhash::fast::RandomState;
use parquet::file::properties::DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT;

/// Maximum columns with a dictionary in a row group: an empty dictionary takes 72 kB.
pub(crate) const MAX_COLUMNS: usize = 1024;

/// Maximum number of first values from which the distinct values are estimated.
pub(crate) const VALUES: usize = 4096;
/// Bytes of first values after which no further values are used.
const BYTES: usize = DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT;
/// In schemas with more than [`MAX_COLUMNS`] columns, the minimum number of first values of a column with a dictionary. In
/// other schemas, a column without first values gets a dictionary, since it may have values later.
pub(crate) const MIN_VALUES: usize = 16;

/// Whether a column has at least `min_values` first values, and all its values are likely to fit in a dictionary. True for
/// types that tfarrow does not decode to, for which Parquet's writer decides.
pub(crate) fn may_fit<'a>(first: impl Iterator<Item = &'a ArrayRef>, min_values: usize) -> bool {
    let leaves: Vec<_> = first.map(leaf).collect();
    match leaves.first().map(|leaf| leaf.data_type()) {
        Some(DataType::Int64) => {
            let values = leaves.iter().flat_map(|leaf| leaf.as_primitive::<Int64Type>()).flatten();
            fits(values.map(|value| (value, 8)), min_values)
        }
        Some(DataType::Float32) => {
            let values = leaves.iter().flat_map(|leaf| leaf.as_primitive::<Float32Type>()).flatten();
            fits(values.map(|value| (value.to_bits(), 4)), min_values)
        }
        Some(DataType::Binary) => {
            fits(leaves.iter().flat_map(|leaf| leaf.as_binary::<i32>()).flatten().map(sized), min_values)
        }
        Some(DataType::Utf8) => {
            let values = leaves.iter().flat_map(|leaf| leaf.as_string::<i32>()).flatten();
            fits(values.map(str::as_bytes).map(sized), min_values)
        }
        _ => true,
    }
}

/// Whether at most half of the first values of a column of bytes are distinct. Used for values that are hardly longer than
/// an index into a dictionary.
pub(crate) fn repeats<'a>(first: impl Iterator<Item = &'a ArrayRef>) -> bool {
    let leaves: Vec<_> = first.map(leaf).collect();
    let values = leaves.iter().filter_map(|leaf| leaf.as_binary_opt::<i32>()).flatten().flatten().take(VALUES);
    let (mut distinct, mut count) = (HashSet::<_, RandomState>::default(), 0);
    for value in values {
        distinct.insert(value);
        count += 1;
    }
    2 * distinct.len() <= count
}

/// A value, and its size in a dictionary, where it follows its length of 4 bytes.
fn sized(value: &[u8]) -> (&[u8], usize) {
    (value, value.len() + 4)
}

/// The values of an array, or of all its lists.
fn leaf(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let (first, last) = (lists.offsets().first(), lists.offsets().last());
            let (first, last) = (*first.unwrap_or(&0) as usize, *last.unwrap_or(&0) as usize);
            leaf(&lists.values().slice(first, last - first))
        }
        _ => ArrayRef::clone(array),
    }
}

/// Whether there are `min_values` values, and all values are likely to fit in a dictionary.
///
/// Of `n` values that are drawn from `d` equally frequent ones, about n² / 2d are repetitions. If some values are more
/// frequent than others, the estimate of distinct values is too low, and Parquet's writer tries a dictionary without need.
fn fits<T: Hash + Eq>(values: impl Iterator<Item = (T, usize)>, min_values: usize) -> bool {
    let mut distinct = HashSet::<_, RandomState>::default();
    let (mut count, mut bytes) = (0, 0);
    for (value, size) in values.take(VALUES) {
        distinct.insert(value);
        count += 1;
        bytes += size;
        if bytes >= BYTES {
            break;
        }
    }
    if count < min_values && bytes < BYTES {
        return false;
    }
    let repetitions = (count - distinct.len()).max(1);
    // There are about count² / (2 * repetitions) distinct values, of the average size of these.
    bytes.saturating_mul(count) / (2 * repetitions) <= DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BinaryArray, Float32Array, Int64Array, ListArray, StringArray};

    use super::*;

    /// Pseudorandom numbers below `end`.
    fn numbers(count: u64, end: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % end)
    }

    fn ints(count: u64, end: u64) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(numbers(count, end).map(|i| i as i64)))
    }

    fn one_may_fit(array: &ArrayRef) -> bool {
        may_fit([array].into_iter(), 0)
    }

    #[test]
    fn columns_with_repeated_values_get_a_dictionary() {
        assert!(one_may_fit(&ints(8192, 2)));
        assert!(one_may_fit(&ints(8192, 30_000)), "a vocabulary: 240 kB of dictionary");
        assert!(!one_may_fit(&ints(8192, 1 << 20)), "8 MB");
        assert!(!one_may_fit(&ints(8192, u64::MAX)));
        assert!(one_may_fit(&ints(50, u64::MAX)), "too few values for an estimate");
        assert!(one_may_fit(&ints(0, 1)));
        let in_wide = |array: ArrayRef| may_fit([&array].into_iter(), MIN_VALUES);
        assert!(!in_wide(ints(0, 1)) && !in_wide(ints(15, 1)) && in_wide(ints(16, 1)));
        let all = ints(8192, u64::MAX);
        let parts = [all.slice(0, 0), all.slice(0, 100), all.slice(100, 4096)];
        assert!(may_fit(parts[..2].iter(), 0) && !may_fit(parts.iter(), 0), "all parts count");
    }

    #[test]
    fn distinct_values_of_every_feature_type_are_estimated() {
        let texts = |end| StringArray::from_iter_values(numbers(4096, end).map(|i| format!("{i:016x}")));
        assert!(
            one_may_fit(&(Arc::new(texts(100)) as ArrayRef)) && !one_may_fit(&(Arc::new(texts(u64::MAX)) as ArrayRef))
        );
        let floats = |end| Float32Array::from_iter_values(numbers(4096, end).map(|i| i as f32));
        assert!(
            one_may_fit(&(Arc::new(floats(100)) as ArrayRef)) && !one_may_fit(&(Arc::new(floats(1 << 44)) as ArrayRef))
        );
        let images = BinaryArray::from_iter_values(numbers(30, u64::MAX).map(|i| i.to_le_bytes().repeat(12_000)));
        assert!(!one_may_fit(&(Arc::new(images) as ArrayRef)), "few, but long");
    }

    #[test]
    fn sliced_lists_count_only_their_own_values() {
        let lists = |of: u64| numbers(64 * of, u64::MAX).map(|i| Some(i as i64)).collect::<Vec<_>>();
        let same = std::iter::repeat_n(Some(vec![Some(7); 64]), 64);
        let differ = lists(64).chunks(64).map(|list| Some(list.to_vec())).collect::<Vec<_>>();
        let all = ListArray::from_iter_primitive::<Int64Type, _, _>(same.chain(differ));
        assert!(one_may_fit(&(Arc::new(all.slice(0, 64)) as ArrayRef)));
        assert!(!one_may_fit(&(Arc::new(all.slice(64, 64)) as ArrayRef)));
    }
}
