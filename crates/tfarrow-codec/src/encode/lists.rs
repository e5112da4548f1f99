//! Lists of any Arrow type as offsets into their values.

use std::{ops::Range, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericListArray, GenericListViewArray, Int64Array,
    OffsetSizeTrait, cast::AsArray,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};
use arrow_select::{filter::filter, take::take};

use super::losses::Ledger;
use crate::{Error, ErrorKind, Result};

/// Which values are whose. The values themselves stand beside it.
pub(super) struct Lists {
    /// Where each list ends, and the first begins.
    offsets: ScalarBuffer<i32>,
    nulls: Option<NullBuffer>,
}

/// The type of a list's items, if it is any type of list.
pub(super) fn item(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

/// Parts an array of lists from its values.
pub(super) fn split(array: &ArrayRef) -> Result<(Lists, ArrayRef)> {
    match array.data_type() {
        DataType::List(_) => offsets(array.as_list::<i32>()),
        DataType::LargeList(_) => offsets(array.as_list::<i64>()),
        DataType::ListView(_) => views(array.as_list_view::<i32>()),
        DataType::LargeListView(_) => views(array.as_list_view::<i64>()),
        DataType::FixedSizeList(_, _) => fixed(array.as_fixed_size_list()),
        other => Err(ArrowError::InvalidArgumentError(format!("expected lists, found {other}")).into()),
    }
}

fn offsets<O: OffsetSizeTrait>(array: &GenericListArray<O>) -> Result<(Lists, ArrayRef)> {
    let nulls = array.nulls().cloned();
    let all = array.values();
    let (first, last) = match (array.offsets().first(), array.offsets().last()) {
        (Some(first), Some(last)) => (first.as_usize(), last.as_usize()),
        _ => (0, 0),
    };
    let values = if last - first == all.len() { Arc::clone(all) } else { all.slice(first, last - first) };
    if let Some(array) = (array as &dyn Array).as_list_opt::<i32>().filter(|_| first == 0) {
        return Ok((Lists { offsets: array.offsets().inner().clone(), nulls }, values));
    }
    let ends = array.offsets().iter().map(|offset| offset.as_usize() - first);
    Ok((Lists { offsets: narrow(ends)?, nulls }, values))
}

/// Lists that may lie in any order, and share values: these are taken, each as often as it is needed.
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
    Ok((Lists { offsets: narrow(ends.into_iter())?, nulls }, values))
}

fn fixed(array: &FixedSizeListArray) -> Result<(Lists, ArrayRef)> {
    let size = usize::try_from(array.value_length()).unwrap_or_default();
    let ends = (0..=array.len()).map(|row| row * size);
    Ok((Lists { offsets: narrow(ends)?, nulls: array.nulls().cloned() }, Arc::clone(array.values())))
}

fn narrow(mut ends: impl Iterator<Item = usize>) -> Result<ScalarBuffer<i32>> {
    let limit = i32::MAX as u64;
    let refuse =
        |found| Error::usage(ErrorKind::Limit { what: "values in one column of a batch", limit, found, name: None });
    let narrowed = ends.try_fold(Vec::new(), |mut offsets, end| {
        offsets.push(i32::try_from(end).map_err(|_| refuse(end as u64))?);
        Ok::<_, Error>(offsets)
    });
    narrowed.map(ScalarBuffer::from)
}

impl Lists {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Where the values of a list lie, `None` where it is null.
    #[inline]
    pub(super) fn get(&self, list: usize) -> Option<Range<usize>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(list)) { None } else { Some(self.range(list)) }
    }

    /// Where the values of a list lie, which may be null.
    #[inline]
    pub(super) fn range(&self, list: usize) -> Range<usize> {
        match self.offsets.get(list..list + 2) {
            Some([start, end]) => *start as usize..*end as usize,
            _ => 0..0,
        }
    }

    /// The list that is not null and has this value.
    pub(super) fn list_of(&self, value: usize) -> Option<usize> {
        let list = self.offsets.partition_point(|offset| *offset as usize <= value).checked_sub(1)?;
        self.get(list).filter(|range| range.contains(&value)).map(|_| list)
    }

    /// Makes all lists null that have a value; those of no value stay.
    pub(super) fn nullify_all(&mut self) {
        self.nulls = Some(NullBuffer::new_null(self.len()));
    }

    /// Drops the nulls among the values, for a feature has none. `row_of` has the row of a list.
    ///
    /// # Errors
    /// Where there are any and no loss is allowed.
    pub(super) fn drop_nulls(
        &mut self,
        values: ArrayRef,
        row_of: impl Fn(usize) -> Option<usize>,
        ledger: &mut Ledger<'_>,
    ) -> Result<ArrayRef> {
        let Some(nulls) = values.logical_nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(values) };
        let mut dropped = 0;
        for list in 0..self.len() {
            let Some((range, row)) = self.get(list).zip(row_of(list)) else { continue };
            let count = nulls.slice(range.start, range.len()).null_count();
            if count > 0 {
                ledger.refuse(row, "a null inside its list", "drop it or put a value in its place")?;
                dropped += count as u64;
            }
        }
        // Where all nulls are values of lists that are null themselves, nobody reads them.
        if dropped == 0 {
            return Ok(values);
        }
        ledger.count("nulls inside lists dropped", dropped);
        self.offsets = kept(&self.offsets, &nulls);
        Ok(filter(&values, &BooleanArray::new(nulls.into_inner(), None))?)
    }
}

/// Offsets among the values that are not null.
fn kept(offsets: &[i32], nulls: &NullBuffer) -> ScalarBuffer<i32> {
    let mut before = 0;
    let mut count = 0;
    let offset = |offset: &i32| {
        let between = nulls.slice(before, *offset as usize - before);
        count += (between.len() - between.null_count()) as i32;
        before = *offset as usize;
        count
    };
    offsets.iter().map(offset).collect()
}
