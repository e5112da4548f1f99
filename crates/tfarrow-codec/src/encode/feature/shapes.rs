//! Columns with one value a row, a list a row, and a list of steps a row.
//!
//! ```text
//! ScalarColumn   row ─▶ value              entry, value
//! ListColumn     row ─▶ values             entry, values
//! StepsColumn    row ─▶ steps ─▶ values    entry, (0a len Feature) for each step
//! ```

use arrow_buffer::NullBuffer;

use super::{Column, Family, Steps};
use crate::encode::{
    entry::{Entry, field_len, kind_tag, tag},
    lists::Lists,
    out::Out,
};

/// The length that stands for an absent row.
const ABSENT: u32 = u32::MAX;

/// Limits a length to 32 bits. Larger ones exceed the limit of a record, which is then refused.
fn capped(len: u64) -> u32 {
    len.min(u64::from(ABSENT - 1)) as u32
}

/// Returns the length of a list's body, given the length of its values.
#[inline]
fn body_len<F: Family>(len: u64) -> u64 {
    if F::PACKED && len > 0 { field_len(len) } else { len }
}

/// A column of one value a row.
pub(super) struct ScalarColumn<F> {
    entry: Entry,
    nulls: Option<NullBuffer>,
    family: F,
}

impl<F> ScalarColumn<F> {
    pub(super) fn new(entry: Entry, nulls: Option<NullBuffer>, family: F) -> Self {
        Self { entry, nulls: nulls.filter(|nulls| nulls.null_count() > 0), family }
    }
}

impl<F: Family> Column for ScalarColumn<F> {
    fn measure(&mut self, totals: &mut [u64]) {
        let len = |row| self.entry.len(body_len::<F>(self.family.one_len(row)));
        match &self.nulls {
            None => totals.iter_mut().enumerate().for_each(|(row, total)| *total += len(row)),
            Some(nulls) => nulls.valid_indices().for_each(|row| {
                if let Some(total) = totals.get_mut(row) {
                    *total += len(row);
                }
            }),
        }
    }

    fn is_present(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }

    #[inline]
    fn write(&self, row: usize, out: &mut Out<'_>) {
        if self.is_present(row) {
            let len = self.family.one_len(row);
            self.entry.begin(body_len::<F>(len), out);
            self.family.write_one(row, len, out);
        }
    }
}

/// A column of a list a row.
pub(super) struct ListColumn<F> {
    entry: Entry,
    lists: Lists,
    family: F,
    /// Length of each row's values in bytes; [`ABSENT`] for null rows.
    lens: Vec<u32>,
}

impl<F> ListColumn<F> {
    pub(super) fn new(entry: Entry, lists: Lists, family: F) -> Self {
        Self { entry, lists, family, lens: Vec::new() }
    }
}

impl<F: Family> Column for ListColumn<F> {
    fn measure(&mut self, totals: &mut [u64]) {
        self.lens.reserve_exact(totals.len());
        for (row, total) in totals.iter_mut().enumerate() {
            self.lens.push(match self.lists.get(row) {
                None => ABSENT,
                Some(values) => {
                    let len = self.family.all_len(values);
                    *total += self.entry.len(body_len::<F>(len));
                    capped(len)
                }
            });
        }
    }

    fn is_present(&self, row: usize) -> bool {
        self.lists.get(row).is_some()
    }

    #[inline]
    fn write(&self, row: usize, out: &mut Out<'_>) {
        match self.lens.get(row) {
            None | Some(&ABSENT) => {}
            Some(len) => {
                let len = u64::from(*len);
                self.entry.begin(body_len::<F>(len), out);
                self.family.write_all(self.lists.range(row), len, out);
            }
        }
    }
}

/// The steps of a feature list that have one kind; the list of a step with another kind or none is null.
///
/// ```text
/// rows      [[1], null]   [[2, 3]]        steps    0 2 3        the lists of each row
///                                         lists    0 1 1 3      the values of each list; list 1 is null
///                                         values   1 2 3
/// ```
pub(super) struct StepsPart<F> {
    /// The steps of each row.
    steps: Lists,
    /// The values of each step.
    lists: Lists,
    family: F,
    /// Length of each step's values in bytes.
    lens: Vec<u32>,
}

impl<F> StepsPart<F> {
    pub(super) fn new(steps: Lists, lists: Lists, family: F) -> Self {
        Self { steps, lists, family, lens: Vec::new() }
    }

    /// Returns the length of a list's values in bytes.
    fn len(&self, list: usize) -> u64 {
        self.lens.get(list).copied().unwrap_or_default().into()
    }
}

impl<F: Family> Steps for StepsPart<F> {
    fn measure(&mut self) {
        let len = |step| self.lists.get(step).map_or(0, |values| capped(self.family.all_len(values)));
        self.lens = (0..self.lists.len()).map(len).collect();
    }

    fn steps(&self) -> &Lists {
        &self.steps
    }

    fn list(&self, row: usize, step: usize) -> Option<usize> {
        let list = self.steps.get(row)?.nth(step)?;
        self.lists.get(list).map(|_| list)
    }

    fn feature_len(&self, list: usize) -> u64 {
        field_len(body_len::<F>(self.len(list)))
    }

    fn write(&self, list: usize, out: &mut Out<'_>) {
        let len = self.len(list);
        out.byte(kind_tag(F::KIND));
        out.varint(body_len::<F>(len));
        self.family.write_all(self.lists.range(list), len, out);
    }
}

/// A column of a list of steps a row.
pub(super) struct StepsColumn {
    /// Everything before the steps.
    entry: Entry,
    /// The steps of each kind.
    parts: Vec<Box<dyn Steps>>,
    /// Length of each row's steps in bytes; [`ABSENT`] for null rows.
    lens: Vec<u32>,
}

impl StepsColumn {
    pub(super) fn new(entry: Entry, parts: Vec<Box<dyn Steps>>) -> Self {
        Self { entry, parts, lens: Vec::new() }
    }

    /// Returns the number of steps of a row; `None` if the row does not have the feature list.
    fn count(&self, row: usize) -> Option<usize> {
        self.parts.iter().find_map(|part| part.steps().get(row)).map(|steps| steps.len())
    }

    /// Returns the part and the list of a step; `None` if the step has no kind.
    fn list(&self, row: usize, step: usize) -> Option<(&dyn Steps, usize)> {
        self.parts.iter().find_map(|part| Some((part.as_ref(), part.list(row, step)?)))
    }

    /// Returns the length of the `Feature` of a step, which is empty without a kind.
    fn feature_len(&self, row: usize, step: usize) -> u64 {
        self.list(row, step).map_or(0, |(part, list)| part.feature_len(list))
    }
}

impl Column for StepsColumn {
    fn measure(&mut self, totals: &mut [u64]) {
        self.parts.iter_mut().for_each(|part| part.measure());
        self.lens.reserve_exact(totals.len());
        for (row, total) in totals.iter_mut().enumerate() {
            self.lens.push(match self.count(row) {
                None => ABSENT,
                Some(count) => {
                    let len = (0..count).map(|step| field_len(self.feature_len(row, step))).sum();
                    *total += self.entry.len(len);
                    capped(len)
                }
            });
        }
    }

    fn is_present(&self, row: usize) -> bool {
        self.count(row).is_some()
    }

    fn write(&self, row: usize, out: &mut Out<'_>) {
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
