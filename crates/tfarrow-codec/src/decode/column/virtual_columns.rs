//! Virtual columns, which are made of a record as a whole instead of a feature: its bytes, its
//! number, its offset, and the names of its features without a kind.
//!
//! ```text
//! column            role      type            row of the second record of a shard, whose first one has 9 bytes
//! record, _raw      Record    Binary          its payload
//! _record           Index     Int64           1
//! _offset           Offset    Int64           25: a header of 12 bytes, 9 bytes, a footer of 4
//! _tfarrow_unset    Unset     List<Utf8>      ["x"], if the feature `x` is present without a kind
//! ```

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Int64Array,
    builder::{BinaryViewBuilder, ListBuilder, StringBuilder},
    types::BinaryType,
};

use super::{ColumnError, Result, bytes::value_of_chunk, within_offsets};
use crate::{Records, example::tape::Unset, schema::Values};

/// Builds the column `record`: the payload of each record. A view array refers to the chunk; others
/// copy the payloads, but for that of a single long record.
///
/// # Errors
/// [`ColumnError`] for records of more than 2^31 - 1 bytes together, unless they are views.
pub(crate) fn record(values: Values, records: &Records) -> Result<ArrayRef> {
    match values {
        Values::BinaryView => record_views(records),
        Values::Binary | Values::Utf8 | Values::Utf8View | Values::Float32 | Values::Int64 => {
            let bytes = records.iter().map(<[u8]>::len).sum();
            within_offsets("bytes of one column of a batch", bytes)?;
            let only = records.data(0).filter(|_| records.len() == 1);
            let in_chunk =
                only.and_then(|data| value_of_chunk::<BinaryType>(records.chunk(), data));
            Ok(in_chunk.unwrap_or_else(|| Arc::new(BinaryArray::from_iter_values(records.iter()))))
        }
    }
}

/// Builds the column `record` as views into the chunk.
fn record_views(records: &Records) -> Result<ArrayRef> {
    let mut views = BinaryViewBuilder::with_capacity(records.len());
    let block = views.append_block(records.chunk().clone());
    for span in records.spans() {
        views
            .try_append_view(block, span.start as u32, span.len as u32)
            .map_err(ColumnError::Arrow)?;
    }
    Ok(Arc::new(views.finish()))
}

/// Builds the column `_record`: the number of each record in its shard.
pub(crate) fn index(records: &Records) -> ArrayRef {
    let numbers = (0..records.len()).map(|index| records.position(index).record as i64);
    Arc::new(Int64Array::from_iter_values(numbers))
}

/// Builds the column `_offset`: the offset in bytes of each record's frame in the decompressed
/// shard.
pub(crate) fn offset(records: &Records) -> ArrayRef {
    let offsets = (0..records.len()).map(|index| records.position(index).offset as i64);
    Arc::new(Int64Array::from_iter_values(offsets))
}

/// Builds the column `_tfarrow_unset`: the names of the features without a kind of each record, or
/// null if it has none.
///
/// # Errors
/// [`ColumnError`] for more names, or more bytes in them, than 32-bit offsets can count.
pub(crate) fn unset(unset: &Unset, names: &[Box<str>]) -> Result<ArrayRef> {
    within_offsets("features with no kind in a batch", unset.names.len())?;
    let bytes = unset.names.iter().map(|id| name_of(names, *id).len()).sum();
    within_offsets(
        "bytes of the names of features with no kind in a batch",
        bytes,
    )?;
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut ids = unset.names.iter();
    for length in &unset.lengths {
        for id in ids.by_ref().take(*length) {
            lists.values().append_value(name_of(names, *id));
        }
        lists.append(*length > 0);
    }
    Ok(Arc::new(lists.finish()))
}

/// Returns the name with a number; none is empty.
fn name_of(names: &[Box<str>], id: u32) -> &str {
    names.get(id as usize).map_or("", |name| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn overflow(result: Result<ArrayRef>) -> (u64, u64) {
        match result {
            Err(ColumnError::Overflow { found, limit, .. }) => (found, limit),
            other => panic!("{other:?}"),
        }
    }

    /// 2,048 records of 1 MiB exceed 31 bits by one. They share one place in memory.
    #[test]
    fn more_bytes_of_records_than_offsets_count_are_an_overflow() {
        let records = Records::repeated(&vec![0; MIB], 2048);
        assert_eq!(
            overflow(record(Values::Binary, &records)),
            (1 << 31, i32::MAX as u64)
        );
        assert_eq!(record(Values::BinaryView, &records).unwrap().len(), 2048);
    }

    #[test]
    fn more_bytes_of_names_than_offsets_count_are_an_overflow() {
        let names = ["x".repeat(MIB).into_boxed_str()];
        let rows = |count| {
            let mut rows = Unset::default();
            rows.names = vec![0; count];
            rows.lengths = vec![1; count];
            rows
        };
        assert_eq!(
            overflow(unset(&rows(2048), &names)),
            (1 << 31, i32::MAX as u64)
        );
        assert_eq!(unset(&rows(2), &names).unwrap().len(), 2);
    }
}
