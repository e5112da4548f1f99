//! Arrow lists of any type, as offsets into their values.
//!
//! ```text
//! [[7], null, [1, 2]]     offsets  0 1 1 3     nulls  1 0 1     values  7 1 2  (kept by the caller)
//! ```
//!
//! Arrow has five types of lists. All of them become 32-bit offsets, so that the rest of the
//! encoder has one case:
//!
//! | type | offsets | values |
//! |---|---|---|
//! | `List` | its own, shared | a slice |
//! | `LargeList` | narrowed to 32 bits | a slice |
//! | `ListView`, `LargeListView` | from the sizes | gathered in the order of the lists |
//! | `FixedSizeList` | multiples of the size | all, also those of null lists |

use std::{ops::Range, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericListArray, GenericListViewArray,
    Int64Array, ListArray, OffsetSizeTrait, cast::AsArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field};
use arrow_select::{filter::filter, take::take};

use super::losses::Ledger;
use crate::{Error, ErrorKind, Result};

/// The assignment of values to lists.
pub(super) struct Lists {
    /// The start of the first list and the end of each list, as indices of values.
    offsets: ScalarBuffer<i32>,
    /// The lists that are null; `None` if no list is.
    nulls: Option<NullBuffer>,
}

/// Splits an array of lists of any type into offsets and values.
///
/// # Errors
/// An array that is not of lists, and more values than 32-bit offsets can count.
pub(super) fn split(array: &ArrayRef) -> Result<(Lists, ArrayRef)> {
    match array.data_type() {
        DataType::List(_) => offsets(array.as_list::<i32>()),
        DataType::LargeList(_) => offsets(array.as_list::<i64>()),
        DataType::ListView(_) => views(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => views(array.as_list_view::<i64>()),
        DataType::FixedSizeList(_, _) => fixed(array.as_fixed_size_list()),
        other => {
            Err(ArrowError::InvalidArgumentError(format!("expected lists, found {other}")).into())
        }
    }
}

/// Returns an array of lists of any type as one with 32-bit offsets.
///
/// # Errors
/// Those of [`split`].
pub(super) fn with_short_offsets(array: &ArrayRef) -> Result<ListArray> {
    if let Some(lists) = array.as_list_opt::<i32>() {
        return Ok(lists.clone());
    }
    let (lists, values) = split(array)?;
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Ok(ListArray::try_new(
        item,
        OffsetBuffer::new(lists.offsets),
        values,
        lists.nulls,
    )?)
}

/// Splits lists with offsets. A slice of an array gets only its own values, so that values of other
/// rows are neither converted nor checked. 32-bit offsets that begin at 0 are shared, others are
/// made anew.
fn offsets<O: OffsetSizeTrait>(array: &GenericListArray<O>) -> Result<(Lists, ArrayRef)> {
    let nulls = array.nulls().cloned();
    let all = array.values();
    let (first, last) = match (array.offsets().first(), array.offsets().last()) {
        (Some(first), Some(last)) => (first.as_usize(), last.as_usize()),
        _ => (0, 0),
    };
    let values = if last - first == all.len() {
        Arc::clone(all)
    } else {
        all.slice(first, last - first)
    };
    if let Some(array) = (array as &dyn Array)
        .as_list_opt::<i32>()
        .filter(|_| first == 0)
    {
        return Ok((
            Lists {
                offsets: array.offsets().inner().clone(),
                nulls,
            },
            values,
        ));
    }
    let ends = array
        .offsets()
        .iter()
        .map(|offset| offset.as_usize() - first);
    Ok((
        Lists {
            offsets: narrow(ends)?,
            nulls,
        },
        values,
    ))
}

/// Splits list views, which may overlap and be in any order: their values are gathered in the order
/// of the lists.
///
/// ```text
/// values 1 2 3, views (offset 1, size 2), (offset 0, size 2)     gathered 2 3 1 2, offsets 0 2 4
/// ```
fn views<O: OffsetSizeTrait>(array: &GenericListViewArray<O>) -> Result<(Lists, ArrayRef)> {
    let nulls = array.nulls().cloned();
    let mut indices = Vec::new();
    let mut ends = vec![0];
    for (row, (start, size)) in array.offsets().iter().zip(array.sizes().iter()).enumerate() {
        if array.is_valid(row) {
            let start = start.as_usize() as i64;
            indices.extend(start..start + size.as_usize() as i64);
        }
        ends.push(indices.len());
    }
    let values = take(array.values(), &Int64Array::from(indices), None)?;
    Ok((
        Lists {
            offsets: narrow(ends.into_iter())?,
            nulls,
        },
        values,
    ))
}

/// Splits lists of a fixed size. The values of null lists stay, since their offsets skip nothing.
fn fixed(array: &FixedSizeListArray) -> Result<(Lists, ArrayRef)> {
    let size = usize::try_from(array.value_length()).unwrap_or_default();
    let ends = (0..=array.len()).map(|row| row * size);
    Ok((
        Lists {
            offsets: narrow(ends)?,
            nulls: array.nulls().cloned(),
        },
        Arc::clone(array.values()),
    ))
}

/// Converts offsets to 32 bits.
///
/// # Errors
/// [`ErrorKind::Limit`] for an offset of 2^31 or more.
fn narrow(ends: impl Iterator<Item = usize>) -> Result<ScalarBuffer<i32>> {
    let mut offsets = Vec::new();
    for end in ends {
        let Ok(offset) = i32::try_from(end) else {
            return Err(Error::usage(ErrorKind::Limit {
                what: "values in one column of a batch",
                limit: i32::MAX as u64,
                found: end as u64,
                name: None,
            }));
        };
        offsets.push(offset);
    }
    Ok(ScalarBuffer::from(offsets))
}

impl Lists {
    /// Returns the number of lists.
    pub(super) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns the range of a list's values; `None` if the list is null.
    #[inline]
    pub(super) fn get(&self, list: usize) -> Option<Range<usize>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(list)) {
            None
        } else {
            Some(self.range(list))
        }
    }

    /// Returns the range of a list's values, also if the list is null.
    #[inline]
    pub(super) fn range(&self, list: usize) -> Range<usize> {
        match self.offsets.get(list..list + 2) {
            Some([start, end]) => *start as usize..*end as usize,
            _ => 0..0,
        }
    }

    /// Returns the index of the list that has the value at index `value`; `None` for the value of a
    /// null list or of none.
    pub(super) fn list_of(&self, value: usize) -> Option<usize> {
        let list = self
            .offsets
            .partition_point(|offset| *offset as usize <= value)
            .checked_sub(1)?;
        self.get(list)
            .filter(|range| range.contains(&value))
            .map(|_| list)
    }

    /// Makes all lists null.
    pub(super) fn nullify_all(&mut self) {
        self.nulls = Some(NullBuffer::new_null(self.len()));
    }

    /// Removes the nulls among the values, which a feature cannot have. `row_of` maps a list to its
    /// row.
    ///
    /// # Errors
    /// [`ErrorKind::Lossy`] for the first list with a null, unless losses are allowed.
    pub(super) fn drop_nulls(
        &mut self,
        values: ArrayRef,
        row_of: impl Fn(usize) -> Option<usize>,
        ledger: &mut Ledger<'_>,
    ) -> Result<ArrayRef> {
        let Some(nulls) = values
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0)
        else {
            return Ok(values);
        };
        let mut dropped = 0;
        for list in 0..self.len() {
            let Some((range, row)) = self.get(list).zip(row_of(list)) else {
                continue;
            };
            let count = nulls.slice(range.start, range.len()).null_count();
            if count > 0 {
                ledger.refuse(
                    row,
                    "a null inside its list",
                    "drop it or put a value in its place",
                )?;
                dropped += count as u64;
            }
        }
        // All nulls are values of null lists, which are not written.
        if dropped == 0 {
            return Ok(values);
        }
        ledger.count("nulls inside lists dropped", dropped);
        self.offsets = kept(&self.offsets, &nulls);
        Ok(filter(
            &values,
            &BooleanArray::new(nulls.into_inner(), None),
        )?)
    }
}

/// Returns offsets into the values that are not null.
///
/// ```text
/// values 7 null 1 2, offsets 0 2 4     without nulls: values 7 1 2, offsets 0 1 3
/// ```
fn kept(offsets: &[i32], nulls: &NullBuffer) -> ScalarBuffer<i32> {
    let mut before = 0;
    let mut count = 0;
    let mut kept = Vec::with_capacity(offsets.len());
    for offset in offsets {
        let end = *offset as usize;
        let between = nulls.slice(before, end - before);
        count += (between.len() - between.null_count()) as i32;
        before = end;
        kept.push(count);
    }
    ScalarBuffer::from(kept)
}
