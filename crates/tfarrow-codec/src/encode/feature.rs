//! COLUMNS: each column is measured for all rows in one tight loop, and then written row by row. The values' family is
//! behind the trait [`Family`], their shape and the family together behind [`Column`]; one `match`, in [`column`].

mod bytes;
mod numbers;
mod shapes;
mod unset;

use std::ops::Range;

use arrow_array::{ArrayRef, cast::AsArray};
use arrow_buffer::NullBuffer;

pub(super) use self::unset::UnsetColumn;
use self::{
    bytes::{BytesFamily, ViewFamily},
    numbers::{FloatFamily, Int64Family},
    shapes::{ListColumn, ScalarColumn, StepsColumn, StepsPart},
};
use super::{entry::Entry, lists::Lists, out::Out};
use crate::{Kind, Values};

/// How the values of one kind are written as a list's body.
trait Family {
    /// The kind of the lists.
    const KIND: Kind;
    /// Whether the values are one field of the list, with one tag and length for them all.
    const PACKED: bool;

    /// Bytes of one value.
    fn one_len(&self, value: usize) -> u64;

    /// Bytes of several values.
    fn all_len(&self, values: Range<usize>) -> u64 {
        values.map(|value| self.one_len(value)).sum()
    }

    /// Writes one value, which takes `len` bytes, as a list's body.
    fn write_one(&self, value: usize, len: u64, out: &mut Out<'_>);

    /// Writes several values, which take `len` bytes, as a list's body.
    fn write_all(&self, values: Range<usize>, len: u64, out: &mut Out<'_>);
}

/// One column of a batch.
pub(super) trait Column {
    /// Adds the bytes that each row's entry takes. It comes before the others.
    fn measure(&mut self, totals: &mut [u64]);

    /// Whether a row has the feature.
    fn is_present(&self, row: usize) -> bool;

    /// Writes a row's entry, where it has one.
    fn write(&self, row: usize, out: &mut Out<'_>);
}

/// Where the values of a column's rows lie.
pub(super) enum Rows {
    /// One value a row.
    Scalars(Option<NullBuffer>),
    /// A list a row.
    Lists(Lists),
}

/// The steps of a feature list that are of one kind.
pub(super) trait Steps {
    /// Counts the bytes that each step takes. It comes before the lengths are asked for.
    fn measure(&mut self);

    /// Which steps are of which row.
    fn steps(&self) -> &Lists;

    /// The number among all of step `step` of a row, where that has a list of this kind.
    fn list(&self, row: usize, step: usize) -> Option<usize>;

    /// Bytes of the feature of a list.
    fn feature_len(&self, list: usize) -> u64;

    /// Writes a list with its kind.
    fn write(&self, list: usize, out: &mut Out<'_>);
}

/// The column of a feature, whose values stand in `array`. Where `has_kind` is not, all its lists are empty and written without a kind.
pub(super) fn column(feature: &str, rows: Rows, has_kind: bool, values: Values, array: &ArrayRef) -> Box<dyn Column> {
    match values {
        Values::Binary => shaped(feature, rows, has_kind, BytesFamily::new(array.as_binary::<i32>())),
        Values::Utf8 => shaped(feature, rows, has_kind, BytesFamily::new(array.as_string::<i32>())),
        Values::BinaryView => shaped(feature, rows, has_kind, ViewFamily::new(array.as_binary_view())),
        Values::Utf8View => shaped(feature, rows, has_kind, ViewFamily::new(array.as_string_view())),
        Values::Float32 => shaped(feature, rows, has_kind, FloatFamily::new(array.as_primitive())),
        Values::Int64 => shaped(feature, rows, has_kind, Int64Family::new(array.as_primitive())),
    }
}

fn shaped<F: Family + 'static>(feature: &str, rows: Rows, has_kind: bool, family: F) -> Box<dyn Column> {
    let kind = has_kind.then_some(F::KIND);
    match rows {
        Rows::Scalars(nulls) => Box::new(ScalarColumn::new(Entry::new(feature, kind), nulls, family)),
        Rows::Lists(lists) => Box::new(ListColumn::new(Entry::new(feature, kind), lists, family)),
    }
}

/// The column of a feature list, whose steps stand in a part for each kind.
pub(super) fn feature_list(feature: &str, parts: Vec<Box<dyn Steps>>) -> Box<dyn Column> {
    Box::new(StepsColumn::new(Entry::new(feature, None), parts))
}

/// The steps of a feature list that are of one kind, whose values stand in `array`.
pub(super) fn steps(steps: Lists, lists: Lists, values: Values, array: &ArrayRef) -> Box<dyn Steps> {
    match values {
        Values::Binary => Box::new(StepsPart::new(steps, lists, BytesFamily::new(array.as_binary::<i32>()))),
        Values::Utf8 => Box::new(StepsPart::new(steps, lists, BytesFamily::new(array.as_string::<i32>()))),
        Values::BinaryView => Box::new(StepsPart::new(steps, lists, ViewFamily::new(array.as_binary_view()))),
        Values::Utf8View => Box::new(StepsPart::new(steps, lists, ViewFamily::new(array.as_string_view()))),
        Values::Float32 => Box::new(StepsPart::new(steps, lists, FloatFamily::new(array.as_primitive()))),
        Values::Int64 => Box::new(StepsPart::new(steps, lists, Int64Family::new(array.as_primitive()))),
    }
}
