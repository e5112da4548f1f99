//! Columns of a batch that can be measured and written. Each column is first measured for all rows,
//! in one loop; then records are written row by row, each by all columns.
//!
//! ```text
//! measure   column a: totals += lengths of its entries      |  totals: the length of each row's map
//!           column b: totals += lengths of its entries      |
//! write     row 0: a, b      row 1: a, b      ..
//! ```
//!
//! The trait [`ValueEncoder`] is implemented for each type of values in Arrow, and
//! [`FeatureColumn`] for each shape; [`column()`] chooses both:
//!
//! ```text
//! Values              ValueEncoder          rows are                    FeatureColumn
//! Binary, Utf8        BytesEncoder          single values               ScalarColumn<V>
//! BinaryView,         ViewEncoder<T>        lists                       ListColumn<V>
//!   Utf8View                                lists of lists              StepsColumn, of a StepsPart<V> for each kind
//! Float32             FloatEncoder          names without a kind        UnsetColumn
//! Int64               Int64Encoder
//! ```
//!
//! Lengths come first because protobuf writes the length of a message before the message: of the
//! value, the list, the `Feature`, the map entry and the map. Measuring bottom-up once avoids
//! moving bytes that are already written.

mod bytes;
mod numbers;
mod shapes;
mod unset;

use std::ops::Range;

use arrow_array::{ArrayRef, cast::AsArray};
use arrow_buffer::NullBuffer;

pub(super) use self::unset::UnsetColumn;
use self::{
    bytes::{BytesEncoder, ViewEncoder},
    numbers::{FloatEncoder, Int64Encoder},
    shapes::{ListColumn, ScalarColumn, StepsColumn, StepsPart},
};
use super::{block_writer::BlockWriter, entry::Entry, lists::Lists};
use crate::{Kind, Values};

/// Writes the values of one kind as the body of a list.
trait ValueEncoder {
    /// The kind of the lists.
    const KIND: Kind;
    /// Whether the values of a list are packed in one field, with one tag and one length.
    const PACKED: bool;

    /// Returns the length in bytes of the value at an index: with its tag and length, unless values
    /// are packed.
    fn one_len(&self, value: usize) -> u64;

    /// Returns the length in bytes of the values in a range of indices.
    fn all_len(&self, values: Range<usize>) -> u64 {
        values.map(|value| self.one_len(value)).sum()
    }

    /// Writes the value at an index as the body of a list of one value. `len` is the result of
    /// [`one_len`](Self::one_len).
    fn write_one(&self, value: usize, len: u64, out: &mut BlockWriter<'_>);

    /// Writes the values in a range of indices as the body of a list. `len` is the result of
    /// [`all_len`](Self::all_len).
    fn write_all(&self, values: Range<usize>, len: u64, out: &mut BlockWriter<'_>);
}

/// A feature of all rows of a batch, which is written as an entry of each row's map.
pub(super) trait FeatureColumn {
    /// Adds the length in bytes of each row's entry to `totals`, which has an element for each row.
    /// Must be called before the other methods.
    fn measure(&mut self, totals: &mut [u64]);

    /// Returns whether a row has the feature.
    fn is_present(&self, row: usize) -> bool;

    /// Writes the entry of a row, if the row has the feature.
    fn write(&self, row: usize, out: &mut BlockWriter<'_>);
}

/// The assignment of an array of values to the rows of a batch.
pub(super) enum RowValues {
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

    /// Returns the index, among the lists of all rows, of step `step` of a row; `None` if that step
    /// has no list of this kind.
    fn list(&self, row: usize, step: usize) -> Option<usize>;

    /// Returns the length in bytes of the `Feature` of a list.
    fn feature_len(&self, list: usize) -> u64;

    /// Writes the list of a step, with its kind.
    fn write(&self, list: usize, out: &mut BlockWriter<'_>);
}

/// Makes the column of a feature with the values of `array`, whose type is that of `values`.
/// Without `has_kind`, all lists are empty, and are written without a kind.
pub(super) fn column(
    feature: &str,
    rows: RowValues,
    has_kind: bool,
    values: Values,
    array: &ArrayRef,
) -> Box<dyn FeatureColumn> {
    match values {
        Values::Binary => shaped(
            feature,
            rows,
            has_kind,
            BytesEncoder::new(array.as_binary::<i32>()),
        ),
        Values::Utf8 => shaped(
            feature,
            rows,
            has_kind,
            BytesEncoder::new(array.as_string::<i32>()),
        ),
        Values::BinaryView => shaped(
            feature,
            rows,
            has_kind,
            ViewEncoder::new(array.as_binary_view()),
        ),
        Values::Utf8View => shaped(
            feature,
            rows,
            has_kind,
            ViewEncoder::new(array.as_string_view()),
        ),
        Values::Float32 => shaped(
            feature,
            rows,
            has_kind,
            FloatEncoder::new(array.as_primitive()),
        ),
        Values::Int64 => shaped(
            feature,
            rows,
            has_kind,
            Int64Encoder::new(array.as_primitive()),
        ),
    }
}

/// Makes a column of the shape of `rows`.
fn shaped<V: ValueEncoder + 'static>(
    feature: &str,
    rows: RowValues,
    has_kind: bool,
    values: V,
) -> Box<dyn FeatureColumn> {
    let kind = has_kind.then_some(V::KIND);
    match rows {
        RowValues::Scalars(nulls) => {
            Box::new(ScalarColumn::new(Entry::new(feature, kind), nulls, values))
        }
        RowValues::Lists(lists) => {
            Box::new(ListColumn::new(Entry::new(feature, kind), lists, values))
        }
    }
}

/// Makes the column of a feature list from parts, one for each kind that its steps have.
pub(super) fn feature_list(feature: &str, parts: Vec<Box<dyn Steps>>) -> Box<dyn FeatureColumn> {
    Box::new(StepsColumn::new(Entry::new(feature, None), parts))
}

/// Makes a part of a feature list with the values of `array`. `steps` assigns lists to rows, and
/// `lists` values to lists.
pub(super) fn steps(
    steps: Lists,
    lists: Lists,
    values: Values,
    array: &ArrayRef,
) -> Box<dyn Steps> {
    match values {
        Values::Binary => Box::new(StepsPart::new(
            steps,
            lists,
            BytesEncoder::new(array.as_binary::<i32>()),
        )),
        Values::Utf8 => Box::new(StepsPart::new(
            steps,
            lists,
            BytesEncoder::new(array.as_string::<i32>()),
        )),
        Values::BinaryView => Box::new(StepsPart::new(
            steps,
            lists,
            ViewEncoder::new(array.as_binary_view()),
        )),
        Values::Utf8View => Box::new(StepsPart::new(
            steps,
            lists,
            ViewEncoder::new(array.as_string_view()),
        )),
        Values::Float32 => Box::new(StepsPart::new(
            steps,
            lists,
            FloatEncoder::new(array.as_primitive()),
        )),
        Values::Int64 => Box::new(StepsPart::new(
            steps,
            lists,
            Int64Encoder::new(array.as_primitive()),
        )),
    }
}
