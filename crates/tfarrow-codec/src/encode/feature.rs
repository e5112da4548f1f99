//! Columns of a batch that can be measured and written. Each column is first measured for all rows, in one loop; then
//! records are written row by row, each by all columns.
//!
//! ```text
//! measure   column a: totals += lengths of its entries      |  totals: the length of each row's map
//!           column b: totals += lengths of its entries      |
//! write     row 0: a, b      row 1: a, b      ..
//! ```
//!
//! The trait [`Family`] is implemented for each family of value types, and [`Column`] for each shape of a family;
//! [`column`] chooses both.

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

/// Writes the values of one kind as the body of a list.
trait Family {
    /// The kind of the lists.
    const KIND: Kind;
    /// Whether the values of a list are packed in one field, with one tag and one length.
    const PACKED: bool;

    /// Returns the length of one value in bytes: with its tag and length, unless values are packed.
    fn one_len(&self, value: usize) -> u64;

    /// Returns the length of several values in bytes.
    fn all_len(&self, values: Range<usize>) -> u64 {
        values.map(|value| self.one_len(value)).sum()
    }

    /// Writes one value, whose length is `len`, as the body of a list.
    fn write_one(&self, value: usize, len: u64, out: &mut Out<'_>);

    /// Writes several values, whose length together is `len`, as the body of a list.
    fn write_all(&self, values: Range<usize>, len: u64, out: &mut Out<'_>);
}

/// A feature of all rows of a batch.
pub(super) trait Column {
    /// Adds the length of each row's entry to `totals`. Must be called before the other methods.
    fn measure(&mut self, totals: &mut [u64]);

    /// Returns whether a row has the feature.
    fn is_present(&self, row: usize) -> bool;

    /// Writes the entry of a row, if the row has the feature.
    fn write(&self, row: usize, out: &mut Out<'_>);
}

/// The assignment of values to rows.
pub(super) enum Rows {
    /// One value a row; the nulls are rows without one.
    Scalars(Option<NullBuffer>),
    /// One list a row.
    Lists(Lists),
}

/// The steps of a feature list that have lists of one kind.
///
/// ```text
/// step      0        1        2
/// int64     [1]      null     null
/// float     null     [0.5]    null         a part for each kind; step 2 has no kind
/// ```
pub(super) trait Steps {
    /// Measures the values of all steps. Must be called before the lengths are used.
    fn measure(&mut self);

    /// Returns the steps of each row.
    fn steps(&self) -> &Lists;

    /// Returns the index, among all lists, of step `step` of a row; `None` if that step has no list of this kind.
    fn list(&self, row: usize, step: usize) -> Option<usize>;

    /// Returns the length in bytes of the `Feature` of a list.
    fn feature_len(&self, list: usize) -> u64;

    /// Writes the list of a step, with its kind.
    fn write(&self, list: usize, out: &mut Out<'_>);
}

/// Makes the column of a feature with the values of `array`. Without `has_kind`, all lists are empty, and are written
/// without a kind.
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

/// Makes a column of the shape of `rows`.
fn shaped<F: Family + 'static>(feature: &str, rows: Rows, has_kind: bool, family: F) -> Box<dyn Column> {
    let kind = has_kind.then_some(F::KIND);
    match rows {
        Rows::Scalars(nulls) => Box::new(ScalarColumn::new(Entry::new(feature, kind), nulls, family)),
        Rows::Lists(lists) => Box::new(ListColumn::new(Entry::new(feature, kind), lists, family)),
    }
}

/// Makes the column of a feature list from parts, one for each kind.
pub(super) fn feature_list(feature: &str, parts: Vec<Box<dyn Steps>>) -> Box<dyn Column> {
    Box::new(StepsColumn::new(Entry::new(feature, None), parts))
}

/// Makes a part of a feature list with the values of `array`. `steps` assigns lists to rows, and `lists` values to
/// lists.
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
