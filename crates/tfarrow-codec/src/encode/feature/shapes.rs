//! Columns with one value a row, a list a row, and a list of steps a row.
//!
//! ```text
//! ScalarColumn   row ─▶ value              entry, value
//! ListColumn     row ─▶ values             entry, values
//! StepsColumn    row ─▶ steps ─▶ values    entry, (0a len Feature) for each step
//! ```
//!
//! Lists keep the length of each row's values from measuring to writing, in 32 bits: for integers
//! it takes a pass over the values. Scalars compute it twice, since that is cheaper than to store
//! it.

use arrow_buffer::NullBuffer;

use super::{FeatureColumn, Steps, ValueEncoder};
use crate::{
    encode::{
        block_writer::BlockWriter,
        entry::{Entry, field_len, kind_tag, tag},
        lists::Lists,
    },
    slices,
};

/// The length that marks a row without the feature.
const ABSENT: u32 = u32::MAX;

/// Limits a length in bytes to 32 bits, without [`ABSENT`]. Larger ones exceed the limit of a
/// record in `totals`, which have 64 bits, so that the batch is rejected before anything is
/// written.
fn capped(len: u64) -> u32 {
    len.min(u64::from(ABSENT - 1)) as u32
}

/// Returns the length in bytes of a list's body, given that of its values: packed values have a tag
/// and a length before them, others have theirs in `len` already.
#[inline]
fn body_len<V: ValueEncoder>(len: u64) -> u64 {
    if V::PACKED && len > 0 {
        field_len(len)
    } else {
        len
    }
}

/// A column of one value a row.
///
/// ```text
/// rows    7     null   9
/// nulls   1     0      1         values  7  _  9: a value for each row
/// ```
pub(super) struct ScalarColumn<V> {
    /// The bytes before the body of a list.
    entry: Entry,
    /// The rows without the feature; `None` if there are none.
    nulls: Option<NullBuffer>,
    /// The value of each row.
    values: V,
}

impl<V> ScalarColumn<V> {
    /// Creates the column. The index of a row is that of its value.
    pub(super) fn new(entry: Entry, nulls: Option<NullBuffer>, values: V) -> Self {
        Self {
            entry,
            nulls: nulls.filter(|nulls| nulls.null_count() > 0),
            values,
        }
    }
}

impl<V: ValueEncoder> ScalarColumn<V> {
    /// Returns the length in bytes of the entry of a row that has the feature.
    #[inline]
    fn entry_len(&self, row: usize) -> u64 {
        self.entry.len(body_len::<V>(self.values.one_len(row)))
    }
}

impl<V: ValueEncoder> FeatureColumn for ScalarColumn<V> {
    fn measure(&mut self, totals: &mut [u64]) {
        match &self.nulls {
            None => totals
                .iter_mut()
                .enumerate()
                .for_each(|(row, total)| *total += self.entry_len(row)),
            Some(nulls) => nulls.valid_indices().for_each(|row| {
                if let Some(total) = totals.get_mut(row) {
                    *total += self.entry_len(row);
                }
            }),
        }
    }

    fn is_present(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }

    #[inline]
    fn write(&self, row: usize, out: &mut BlockWriter<'_>) {
        if self.is_present(row) {
            let len = self.values.one_len(row);
            self.entry.begin(body_len::<V>(len), out);
            self.values.write_one(row, len, out);
        }
    }
}

/// A column of a list a row.
///
/// ```text
/// rows    [7]    null   [1, 2]
/// lists   0..1   null   1..3       values  7 1 2
/// lens    1      ABSENT 2          bytes of each row's varints
/// ```
pub(super) struct ListColumn<V> {
    /// The bytes before the body of a list.
    entry: Entry,
    /// The range of values of each row.
    lists: Lists,
    /// The values of all rows.
    values: V,
    /// Length of each row's values in bytes; [`ABSENT`] for null rows.
    lens: Vec<u32>,
}

impl<V> ListColumn<V> {
    /// Creates the column, which is not measured yet.
    pub(super) fn new(entry: Entry, lists: Lists, values: V) -> Self {
        Self {
            entry,
            lists,
            values,
            lens: Vec::new(),
        }
    }
}

impl<V: ValueEncoder> FeatureColumn for ListColumn<V> {
    fn measure(&mut self, totals: &mut [u64]) {
        self.lens.reserve_exact(totals.len());
        for (row, total) in totals.iter_mut().enumerate() {
            self.lens.push(match self.lists.get(row) {
                None => ABSENT,
                Some(values) => {
                    let len = self.values.all_len(values);
                    *total += self.entry.len(body_len::<V>(len));
                    capped(len)
                }
            });
        }
    }

    fn is_present(&self, row: usize) -> bool {
        self.lists.get(row).is_some()
    }

    #[inline]
    fn write(&self, row: usize, out: &mut BlockWriter<'_>) {
        match self.lens.get(row) {
            None | Some(&ABSENT) => {}
            Some(len) => {
                let len = u64::from(*len);
                self.entry.begin(body_len::<V>(len), out);
                self.values.write_all(self.lists.range(row), len, out);
            }
        }
    }
}

/// The steps of a feature list that have one kind; the list of a step with another kind or none is
/// null.
///
/// ```text
/// rows      [[1], null]   [[2, 3]]        steps    0 2 3        the lists of each row
///                                         lists    0 1 1 3      the values of each list; list 1 is null
///                                         values   1 2 3
/// ```
pub(super) struct StepsPart<V> {
    /// The steps of each row.
    steps: Lists,
    /// The range of values of each step.
    lists: Lists,
    /// The values of all steps.
    values: V,
    /// Length of each step's values in bytes.
    lens: Vec<u32>,
}

impl<V> StepsPart<V> {
    /// Creates the part, which is not measured yet.
    pub(super) fn new(steps: Lists, lists: Lists, values: V) -> Self {
        Self {
            steps,
            lists,
            values,
            lens: Vec::new(),
        }
    }

    /// Returns the length in bytes of the values of the list at an index among the lists of all
    /// rows.
    fn len(&self, list: usize) -> u64 {
        slices::item(&self.lens, list).into()
    }
}

impl<V: ValueEncoder> Steps for StepsPart<V> {
    fn measure(&mut self) {
        self.lens = (0..self.lists.len())
            .map(|step| match self.lists.get(step) {
                Some(values) => capped(self.values.all_len(values)),
                None => 0,
            })
            .collect();
    }

    fn steps(&self) -> &Lists {
        &self.steps
    }

    fn list(&self, row: usize, step: usize) -> Option<usize> {
        let list = self.steps.get(row)?.nth(step)?;
        self.lists.get(list).map(|_| list)
    }

    fn feature_len(&self, list: usize) -> u64 {
        field_len(body_len::<V>(self.len(list)))
    }

    fn write(&self, list: usize, out: &mut BlockWriter<'_>) {
        let len = self.len(list);
        out.byte(kind_tag(V::KIND));
        out.varint(body_len::<V>(len));
        self.values.write_all(self.lists.range(list), len, out);
    }
}

/// A column of a list of steps a row: a feature list.
///
/// ```text
/// FeatureList  0a 06  1a 04  0a 02 01 02        step 0: Feature of 6 bytes, int64_list [1, 2]
///              0a 00                            step 1: a Feature without a kind
/// ```
pub(super) struct StepsColumn {
    /// The bytes before the steps.
    entry: Entry,
    /// The steps of each kind.
    parts: Vec<Box<dyn Steps>>,
    /// Length of each row's steps in bytes; [`ABSENT`] for null rows.
    lens: Vec<u32>,
}

impl StepsColumn {
    /// Creates the column from the parts of each kind, which agree about the number of steps of
    /// each row.
    pub(super) fn new(entry: Entry, parts: Vec<Box<dyn Steps>>) -> Self {
        Self {
            entry,
            parts,
            lens: Vec::new(),
        }
    }

    /// Returns the number of steps of a row; `None` if the row does not have the feature list.
    fn count(&self, row: usize) -> Option<usize> {
        self.parts
            .iter()
            .find_map(|part| part.steps().get(row))
            .map(|steps| steps.len())
    }

    /// Returns the part and the list of a step; `None` if the step has no kind.
    fn list(&self, row: usize, step: usize) -> Option<(&dyn Steps, usize)> {
        self.parts
            .iter()
            .find_map(|part| Some((part.as_ref(), part.list(row, step)?)))
    }

    /// Returns the length of the `Feature` of a step, which is empty without a kind.
    fn feature_len(&self, row: usize, step: usize) -> u64 {
        self.list(row, step)
            .map_or(0, |(part, list)| part.feature_len(list))
    }
}

impl FeatureColumn for StepsColumn {
    fn measure(&mut self, totals: &mut [u64]) {
        self.parts.iter_mut().for_each(|part| part.measure());
        self.lens.reserve_exact(totals.len());
        for (row, total) in totals.iter_mut().enumerate() {
            self.lens.push(match self.count(row) {
                None => ABSENT,
                Some(count) => {
                    let len = (0..count)
                        .map(|step| field_len(self.feature_len(row, step)))
                        .sum();
                    *total += self.entry.len(len);
                    capped(len)
                }
            });
        }
    }

    fn is_present(&self, row: usize) -> bool {
        self.count(row).is_some()
    }

    fn write(&self, row: usize, out: &mut BlockWriter<'_>) {
        match self.lens.get(row) {
            None | Some(&ABSENT) => {}
            Some(len) => {
                self.entry.begin(u64::from(*len), out);
                for step in 0..self.count(row).unwrap_or_default() {
                    out.byte(tag(1));
                    out.varint(self.feature_len(row, step));
                    if let Some((part, list)) = self.list(row, step) {
                        part.write(list, out);
                    }
                }
            }
        }
    }
}
