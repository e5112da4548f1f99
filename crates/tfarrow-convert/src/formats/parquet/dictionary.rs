//! Which columns of a Parquet row group get a dictionary.
//!
//! Parquet's writer begins every column with one, and gives it up once it is full. By then each value was hashed, and a
//! row group that is too small for it to fill up keeps it although nothing repeats, with an index a value on top. So a few
//! values are looked at before: they tell how many different ones there are likely to be in all.

use std::{collections::HashSet, hash::Hash};

use arrow_array::{
    Array, ArrayRef,
    cast::AsArray,
    types::{Float32Type, Int64Type},
};
use arrow_schema::DataType;
use foldhash::fast::RandomState;
use parquet::file::properties::DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT;

/// Columns of a row group that have one, at most: each takes 72 kB to begin with.
pub(crate) const MOST: usize = 1024;

/// Values that are looked at, if there are as many, and bytes of them.
pub(crate) const VALUES: usize = 4096;
const BYTES: usize = DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT;
/// In wide data sets, what a column has to have of these values for a dictionary to be worth the memory that it takes. In
/// others, a column that has none yet gets one: it may have them later.
pub(crate) const FEW: usize = 16;

/// Whether the values of a column that begins like this, with `least` values or more, are likely to fit into a dictionary.
/// So they are where the column is of a type that none of ours has: then Parquet finds out.
pub(crate) fn may_fit<'a>(begin: impl Iterator<Item = &'a ArrayRef>, least: usize) -> bool {
    let leaves: Vec<_> = begin.map(leaf).collect();
    match leaves.first().map(|leaf| leaf.data_type()) {
        Some(DataType::Int64) => {
            let values = leaves.iter().flat_map(|leaf| leaf.as_primitive::<Int64Type>()).flatten();
            fits(values.map(|value| (value, 8)), least)
        }
        Some(DataType::Float32) => {
            let values = leaves.iter().flat_map(|leaf| leaf.as_primitive::<Float32Type>()).flatten();
            fits(values.map(|value| (value.to_bits(), 4)), least)
        }
        Some(DataType::Binary) => {
            fits(leaves.iter().flat_map(|leaf| leaf.as_binary::<i32>()).flatten().map(sized), least)
        }
        Some(DataType::Utf8) => {
            let values = leaves.iter().flat_map(|leaf| leaf.as_string::<i32>()).flatten();
            fits(values.map(str::as_bytes).map(sized), least)
        }
        _ => true,
    }
}

/// Whether a column of bytes that begins like this has few different values: most of those that were looked at were there
/// before. For what takes hardly more bytes by itself than its number in a dictionary.
pub(crate) fn repeats<'a>(begin: impl Iterator<Item = &'a ArrayRef>) -> bool {
    let leaves: Vec<_> = begin.map(leaf).collect();
    let values = leaves.iter().filter_map(|leaf| leaf.as_binary_opt::<i32>()).flatten().flatten().take(VALUES);
    let (mut distinct, mut count) = (HashSet::<_, RandomState>::default(), 0);
    for value in values {
        distinct.insert(value);
        count += 1;
    }
    2 * distinct.len() <= count
}

/// A value as it stands in a dictionary: after its length.
fn sized(value: &[u8]) -> (&[u8], usize) {
    (value, value.len() + 4)
}

/// The values in all lists.
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

/// Of `n` values drawn from `d` that are equally frequent, about n² / 2d are not the first of their kind. Where some are
/// more frequent than others this finds too few, and a dictionary is tried in vain, which does no harm.
fn fits<T: Hash + Eq>(values: impl Iterator<Item = (T, usize)>, least: usize) -> bool {
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
    if count < least && bytes < BYTES {
        return false;
    }
    let again = (count - distinct.len()).max(1);
    // All of them have count / (2 * again) times the bytes of those that were looked at.
    bytes.saturating_mul(count) / (2 * again) <= DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BinaryArray, Float32Array, Int64Array, ListArray, StringArray};

    use super::*;

    /// Numbers below `most` that look random.
    fn numbers(count: u64, most: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % most)
    }

    fn ints(count: u64, most: u64) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(numbers(count, most).map(|i| i as i64)))
    }

    fn one_may_fit(array: &ArrayRef) -> bool {
        may_fit([array].into_iter(), 0)
    }

    #[test]
    fn what_repeats_gets_a_dictionary() {
        assert!(one_may_fit(&ints(8192, 2)));
        assert!(one_may_fit(&ints(8192, 30_000)), "a vocabulary: 240 kB of dictionary");
        assert!(!one_may_fit(&ints(8192, 1 << 20)), "8 MB");
        assert!(!one_may_fit(&ints(8192, u64::MAX)));
        assert!(one_may_fit(&ints(50, u64::MAX)), "too few to tell");
        assert!(one_may_fit(&ints(0, 1)));
        let in_many = |array: ArrayRef| may_fit([&array].into_iter(), FEW);
        assert!(!in_many(ints(0, 1)) && !in_many(ints(15, 1)) && in_many(ints(16, 1)));
        let all = ints(8192, u64::MAX);
        let parts = [all.slice(0, 0), all.slice(0, 100), all.slice(100, 4096)];
        assert!(may_fit(parts[..2].iter(), 0) && !may_fit(parts.iter(), 0), "all parts count");
    }

    #[test]
    fn every_type_that_features_have_is_looked_at() {
        let texts = |most| StringArray::from_iter_values(numbers(4096, most).map(|i| format!("{i:016x}")));
        assert!(
            one_may_fit(&(Arc::new(texts(100)) as ArrayRef)) && !one_may_fit(&(Arc::new(texts(u64::MAX)) as ArrayRef))
        );
        let floats = |most| Float32Array::from_iter_values(numbers(4096, most).map(|i| i as f32));
        assert!(
            one_may_fit(&(Arc::new(floats(100)) as ArrayRef)) && !one_may_fit(&(Arc::new(floats(1 << 44)) as ArrayRef))
        );
        let images = BinaryArray::from_iter_values(numbers(30, u64::MAX).map(|i| i.to_le_bytes().repeat(12_000)));
        assert!(!one_may_fit(&(Arc::new(images) as ArrayRef)), "few, but long");
    }

    #[test]
    fn lists_are_looked_into_where_they_are_cut() {
        let lists = |of: u64| numbers(64 * of, u64::MAX).map(|i| Some(i as i64)).collect::<Vec<_>>();
        let same = std::iter::repeat_n(Some(vec![Some(7); 64]), 64);
        let differ = lists(64).chunks(64).map(|list| Some(list.to_vec())).collect::<Vec<_>>();
        let all = ListArray::from_iter_primitive::<Int64Type, _, _>(same.chain(differ));
        assert!(one_may_fit(&(Arc::new(all.slice(0, 64)) as ArrayRef)));
        assert!(!one_may_fit(&(Arc::new(all.slice(64, 64)) as ArrayRef)));
    }
}
