//! The choice of the encoding of each column of a Parquet row group, from its first values.
//!
//! | encoding | values | bits per value |
//! |---|---|---|
//! | dictionary | all types, if the dictionary is likely to be at most 1 MiB | those of an index |
//! | delta | integers | those of the range of the differences, in blocks of 64 values |
//! | plain | all types | those of the type |
//! | long | one value of 64 MiB or more, in a row group of its own | those of the type |
//!
//! Parquet's writer begins every column with a dictionary, and abandons it when it is full. Until
//! then it hashes each value. A small row group, which does not fill the dictionary, keeps it even
//! if no value repeats, and stores an index per value in addition. This module therefore estimates
//! the number of distinct values from the first values.
//!
//! DELTA_BINARY_PACKED hashes nothing and stores no dictionary. It suits numbers of a bounded
//! range, such as the ids of tokens, and numbers that increase.

use std::{collections::HashSet, hash::Hash};

use arrow_array::{
    Array, ArrayRef, RecordBatch,
    cast::AsArray,
    types::{Float32Type, Int64Type},
};
use arrow_schema::DataType;
use foldhash::fast::RandomState;
use parquet::file::properties::DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT;

/// Maximum columns with a dictionary in a row group: an empty dictionary takes 72 kB. The columns
/// after these have plain values.
pub(crate) const MAX_COLUMNS: usize = 1024;
/// Maximum columns with deltas in a row group: the writer of each allocates a buffer of 1 MiB.
pub(crate) const MAX_DELTA_COLUMNS: usize = 64;

/// Maximum number of first values from which the distinct values are estimated.
pub(crate) const VALUES: usize = 4096;
/// Bytes of first values after which no further values are used.
const BYTES: usize = DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT;
/// In schemas with more than [`MAX_COLUMNS`] columns, the minimum number of first values of a
/// column with a dictionary. In other schemas, a column without first values gets a dictionary,
/// since it may have values later.
pub(crate) const MIN_VALUES: usize = 16;

/// Number of distinct integers up to which they get a dictionary: an index has at most 8 bits, and
/// a run of one index takes a few bytes, so that deltas are rarely smaller.
const FEW: usize = 256;
/// Number of values that DELTA_BINARY_PACKED stores with one bit width, and number of such
/// miniblocks that share a smallest difference.
const MINIBLOCK: usize = 64;
const MINIBLOCKS: usize = 4;
/// Bits of a block besides its values: the smallest difference, of 5 bytes for differences of 32
/// bits, and the widths.
const BLOCK_BITS: usize = 8 * (5 + MINIBLOCKS);

/// The encoding of the values of a column in a row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnEncoding {
    /// Indices into a dictionary, until it is full.
    Dictionary,
    /// Differences of consecutive integers (DELTA_BINARY_PACKED).
    Delta,
    /// The values.
    Plain,
    /// One [long value](LONG_VALUE), in one page and without statistics.
    Long,
}

/// Bytes of a value that is written as a row group of its own: those at which a row group ends by
/// default.
///
/// Parquet's writer copies a value for its page, for the compressed page, and twice for the
/// statistics, and it ends a page while it still has the array. Without statistics, and with a page
/// that ends with its row group, the array and the copies for the statistics are not in memory at
/// the same time as the page.
const LONG_VALUE: usize = 64 << 20;

/// Returns whether a batch is one row that has a long value.
pub(crate) fn has_long_value(batch: &RecordBatch) -> bool {
    batch.num_rows() == 1
        && batch
            .columns()
            .iter()
            .any(|array| is_long_value(&leaf(array)))
}

/// Returns whether an array of values is one long value. Rows of Parquet files may have views.
fn is_long_value(leaf: &ArrayRef) -> bool {
    if leaf.len() != 1 || leaf.is_null(0) {
        return false;
    }
    let bytes = match leaf.data_type() {
        DataType::Binary => leaf.as_binary::<i32>().value(0).len(),
        DataType::Utf8 => leaf.as_string::<i32>().value(0).len(),
        DataType::LargeBinary => leaf.as_binary::<i64>().value(0).len(),
        DataType::LargeUtf8 => leaf.as_string::<i64>().value(0).len(),
        DataType::BinaryView => leaf.as_binary_view().value(0).len(),
        DataType::Utf8View => leaf.as_string_view().value(0).len(),
        _ => 0,
    };
    bytes >= LONG_VALUE
}

/// Chooses the encoding of a column from its first values. A column with fewer than `min_values` of
/// them has no dictionary. Only with `has_deltas` may it be [`ColumnEncoding::Delta`]. For types
/// that tfarrow does not decode to, Parquet's writer decides.
pub(crate) fn choose<'a>(
    first: impl Iterator<Item = &'a ArrayRef>,
    min_values: usize,
    has_deltas: bool,
) -> ColumnEncoding {
    let leaves: Vec<_> = first.map(leaf).collect();
    if let [only] = leaves.as_slice()
        && is_long_value(only)
    {
        return ColumnEncoding::Long;
    }
    let fits = match leaves.first().map(|leaf| leaf.data_type()) {
        Some(DataType::Int64) => {
            let values = leaves
                .iter()
                .flat_map(|leaf| leaf.as_primitive::<Int64Type>())
                .flatten();
            return choose_for_integers(
                &values.take(VALUES).collect::<Vec<_>>(),
                min_values,
                has_deltas,
            );
        }
        Some(DataType::Float32) => {
            let values = leaves
                .iter()
                .flat_map(|leaf| leaf.as_primitive::<Float32Type>())
                .flatten();
            FirstValues::of(values.map(|value| (value.to_bits(), 4))).fit(min_values)
        }
        Some(DataType::Binary) => {
            let values = leaves
                .iter()
                .flat_map(|leaf| leaf.as_binary::<i32>())
                .flatten();
            FirstValues::of(values.map(sized)).fit(min_values)
        }
        Some(DataType::Utf8) => {
            let values = leaves
                .iter()
                .flat_map(|leaf| leaf.as_string::<i32>())
                .flatten();
            FirstValues::of(values.map(str::as_bytes).map(sized)).fit(min_values)
        }
        _ => true,
    };
    if fits {
        ColumnEncoding::Dictionary
    } else {
        ColumnEncoding::Plain
    }
}

/// Prefers deltas to a dictionary of more than a few values unless they take an eighth more bits:
/// they are faster to write, and an index is not all that a value in a dictionary takes.
fn choose_for_integers(values: &[i64], min_values: usize, has_deltas: bool) -> ColumnEncoding {
    let first = FirstValues::of(values.iter().map(|value| (*value, 8)));
    let fits = first.fit(min_values);
    if fits && first.estimated_distinct() <= FEW {
        return ColumnEncoding::Dictionary;
    }
    // Deltas that hardly take fewer bits than plain values take more if the first values are not
    // typical.
    let (most_bits, otherwise) = match fits {
        true => (
            9 * (first.estimated_distinct().ilog2() as usize + 1),
            ColumnEncoding::Dictionary,
        ),
        false => (7 * i64::BITS as usize, ColumnEncoding::Plain),
    };
    let has_deltas = has_deltas && values.len() > MINIBLOCK;
    if has_deltas && 8 * delta_bits(values) <= most_bits * values.len() {
        ColumnEncoding::Delta
    } else {
        otherwise
    }
}

/// Number of bits of the deltas of these values.
fn delta_bits(values: &[i64]) -> usize {
    let deltas: Vec<_> = values
        .windows(2)
        .filter_map(|pair| Some(pair.last()?.wrapping_sub(*pair.first()?)))
        .collect();
    let mut bits = 0;
    for block in deltas.chunks(MINIBLOCK * MINIBLOCKS) {
        let min = block.iter().min().copied().unwrap_or_default();
        bits += BLOCK_BITS;
        for miniblock in block.chunks(MINIBLOCK) {
            let max = miniblock.iter().max().copied().unwrap_or(min);
            let range = max.wrapping_sub(min) as u64;
            bits += MINIBLOCK * (u64::BITS - range.leading_zeros()) as usize;
        }
    }
    bits
}

/// Chooses the encoding of a column of exact forms, which are hardly longer than an index: a
/// dictionary if at most half of the first values are distinct.
pub(crate) fn choose_for_exact<'a>(first: impl Iterator<Item = &'a ArrayRef>) -> ColumnEncoding {
    let leaves: Vec<_> = first.map(leaf).collect();
    let values = leaves
        .iter()
        .filter_map(|leaf| leaf.as_binary_opt::<i32>())
        .flatten()
        .flatten();
    // The size of a dictionary does not matter here.
    let first = FirstValues::of(values.map(|value| (value, 0)));
    if 2 * first.distinct <= first.count {
        ColumnEncoding::Dictionary
    } else {
        ColumnEncoding::Plain
    }
}

/// A value, and its size in a dictionary, where it follows its length of 4 bytes.
fn sized(value: &[u8]) -> (&[u8], usize) {
    (value, value.len() + 4)
}

/// The values of an array, or of all its lists.
pub(crate) fn leaf(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let first = lists.offsets().first();
            let last = lists.offsets().last();
            let first = *first.unwrap_or(&0) as usize;
            let last = *last.unwrap_or(&0) as usize;
            leaf(&lists.values().slice(first, last - first))
        }
        _ => ArrayRef::clone(array),
    }
}

/// Counts of the first values of a column.
struct FirstValues {
    count: usize,
    distinct: usize,
    /// Their size in a dictionary, if each had an entry of its own.
    bytes: usize,
}

impl FirstValues {
    /// Counts values, which come with their size in a dictionary, up to [`VALUES`] or [`BYTES`].
    fn of<T: Hash + Eq>(values: impl Iterator<Item = (T, usize)>) -> Self {
        let mut distinct = HashSet::<_, RandomState>::default();
        let mut count = 0;
        let mut bytes = 0;
        for (value, size) in values.take(VALUES) {
            distinct.insert(value);
            count += 1;
            bytes += size;
            if bytes >= BYTES {
                break;
            }
        }
        Self {
            count,
            distinct: distinct.len(),
            bytes,
        }
    }

    /// The estimated number of distinct values of the column.
    ///
    /// Of `n` values that are drawn from `d` equally frequent ones, about n² / 2d are repetitions,
    /// if `n` is less than `d`. Else almost all of them have been seen. If some values are more
    /// frequent than others, the estimate is too low, and Parquet's writer tries a dictionary
    /// without need.
    fn estimated_distinct(&self) -> usize {
        let repetitions = self.repetitions();
        let is_typical = self.distinct > repetitions;
        let estimate = if is_typical {
            self.count * self.count / (2 * repetitions)
        } else {
            self.distinct
        };
        estimate.max(1)
    }

    /// Whether there are `min_values` values, and all values of the column are likely to fit in a
    /// dictionary.
    fn fit(&self, min_values: usize) -> bool {
        if self.count < min_values && self.bytes < BYTES {
            return false;
        }
        // The distinct values are of the average size of these.
        self.bytes.saturating_mul(self.count) / (2 * self.repetitions())
            <= DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT
    }

    /// Number of values that are not the first of their kind; at least 1, by which estimates
    /// divide.
    fn repetitions(&self) -> usize {
        (self.count - self.distinct).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BinaryArray, Float32Array, Int64Array, ListArray, RecordBatch, StringArray};
    use parquet::{
        arrow::ArrowWriter,
        basic::Encoding,
        file::properties::{EnabledStatistics, WriterProperties},
    };

    use super::*;

    /// Pseudorandom numbers below `end`.
    fn numbers(count: u64, end: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % end)
    }

    fn ints(count: u64, end: u64) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(
            numbers(count, end).map(|i| i as i64),
        ))
    }

    fn has_dictionary(array: &ArrayRef) -> bool {
        chosen(array) == ColumnEncoding::Dictionary
    }

    fn chosen(array: &ArrayRef) -> ColumnEncoding {
        choose([array].into_iter(), 0, true)
    }

    #[test]
    fn columns_with_repeated_values_get_a_dictionary() {
        assert_eq!(chosen(&ints(8192, 2)), ColumnEncoding::Dictionary);
        let random = |i: i64| i.wrapping_mul(0x1e37_79b9_7f4a_7c15).wrapping_mul(i);
        let random: ArrayRef = Arc::new(Int64Array::from_iter_values((1..8192).map(random)));
        assert_eq!(chosen(&random), ColumnEncoding::Plain);
        assert_eq!(
            chosen(&ints(50, u64::MAX)),
            ColumnEncoding::Dictionary,
            "too few values for an estimate"
        );
        assert_eq!(chosen(&ints(0, 1)), ColumnEncoding::Dictionary);
        let hashes = numbers(8192, 5000).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64);
        let hashes: ArrayRef = Arc::new(Int64Array::from_iter_values(hashes));
        assert_eq!(
            chosen(&hashes),
            ColumnEncoding::Dictionary,
            "5,000 values with a range of 64 bits"
        );
        let in_wide = |array: ArrayRef| choose([&array].into_iter(), MIN_VALUES, true);
        let wide = [0, 15, 16].map(|count| in_wide(ints(count, 1)));
        assert_eq!(
            wide,
            [
                ColumnEncoding::Plain,
                ColumnEncoding::Plain,
                ColumnEncoding::Dictionary
            ]
        );
        let all = random;
        let parts = [all.slice(0, 0), all.slice(0, 100), all.slice(100, 4096)];
        assert_eq!(
            choose(parts[..2].iter(), 0, true),
            ColumnEncoding::Dictionary
        );
        assert_eq!(
            choose(parts.iter(), 0, true),
            ColumnEncoding::Plain,
            "all parts count"
        );
    }

    #[test]
    fn integers_of_a_bounded_range_and_sequences_get_deltas() {
        let random = |end: u64| -> ArrayRef {
            let mix = |i: u64| (i ^ (i >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33;
            let values =
                (1..8192_u64).map(|i| (mix(i.wrapping_mul(0xbf58_476d_1ce4_e5b9)) % end) as i64);
            Arc::new(Int64Array::from_iter_values(values))
        };
        assert_eq!(
            chosen(&random(30_000)),
            ColumnEncoding::Delta,
            "a vocabulary: an index has 15 bits"
        );
        assert_eq!(
            chosen(&random(1 << 20)),
            ColumnEncoding::Delta,
            "a dictionary would have 8 MB"
        );
        assert_eq!(chosen(&random(200)), ColumnEncoding::Dictionary);
        let without_deltas = |end| choose([random(end)].iter(), 0, false);
        assert_eq!(without_deltas(30_000), ColumnEncoding::Dictionary);
        assert_eq!(without_deltas(1 << 20), ColumnEncoding::Plain);
        let sequence = |step: i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(
                (0..1000).map(|i: i64| i64::MIN.wrapping_add(i.wrapping_mul(step))),
            ))
        };
        assert_eq!(chosen(&sequence(1)), ColumnEncoding::Delta);
        assert_eq!(chosen(&sequence(i64::MAX / 1000)), ColumnEncoding::Delta);
    }

    /// The estimate is what Parquet's writer makes of the values, but for the header of the page.
    #[test]
    fn bits_of_deltas_are_those_that_parquet_writes() {
        for end in [1, 2, 1000, 1 << 33, u64::MAX] {
            let values: Vec<_> = numbers(4096, end).map(|i| i as i64).collect();
            let array: ArrayRef = Arc::new(Int64Array::from(values.clone()));
            let batch = RecordBatch::try_from_iter([("x", array)]).unwrap();
            let properties = WriterProperties::builder()
                .set_dictionary_enabled(false)
                .set_encoding(Encoding::DELTA_BINARY_PACKED)
                .set_statistics_enabled(EnabledStatistics::None)
                .build();
            let mut writer =
                ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            let written = writer
                .close()
                .unwrap()
                .row_group(0)
                .column(0)
                .compressed_size() as usize;
            let estimated = delta_bits(&values) / 8;
            assert!(
                written.abs_diff(estimated) < 100,
                "{end}: estimated {estimated}, written {written}"
            );
        }
    }

    #[test]
    fn distinct_values_of_every_feature_type_are_estimated() {
        let texts =
            |end| StringArray::from_iter_values(numbers(4096, end).map(|i| format!("{i:016x}")));
        assert!(
            has_dictionary(&(Arc::new(texts(100)) as ArrayRef))
                && !has_dictionary(&(Arc::new(texts(u64::MAX)) as ArrayRef))
        );
        let floats = |end| Float32Array::from_iter_values(numbers(4096, end).map(|i| i as f32));
        assert!(
            has_dictionary(&(Arc::new(floats(100)) as ArrayRef))
                && !has_dictionary(&(Arc::new(floats(1 << 44)) as ArrayRef))
        );
        let images = BinaryArray::from_iter_values(
            numbers(30, u64::MAX).map(|i| i.to_le_bytes().repeat(12_000)),
        );
        assert!(
            !has_dictionary(&(Arc::new(images) as ArrayRef)),
            "few, but long"
        );
    }

    #[test]
    fn sliced_lists_count_only_their_own_values() {
        let lists = |of: u64| {
            numbers(64 * of, u64::MAX)
                .map(|i| Some(i as i64))
                .collect::<Vec<_>>()
        };
        let same = std::iter::repeat_n(Some(vec![Some(7); 64]), 64);
        let differ = lists(64)
            .chunks(64)
            .map(|list| Some(list.to_vec()))
            .collect::<Vec<_>>();
        let all = ListArray::from_iter_primitive::<Int64Type, _, _>(same.chain(differ));
        assert!(has_dictionary(&(Arc::new(all.slice(0, 64)) as ArrayRef)));
        assert!(!has_dictionary(&(Arc::new(all.slice(64, 64)) as ArrayRef)));
    }
}
