//! Columns of one value, of a list, and of a list of steps a row.

use arrow_buffer::NullBuffer;

use super::{Column, Family, Steps};
use crate::encode::{
    entry::{Entry, field_len, kind_tag, tag},
    lists::Lists,
    out::Out,
};

/// The length of what is not there.
const ABSENT: u32 = u32::MAX;

/// Lengths past what a record may have are all the same: the record is refused.
fn capped(len: u64) -> u32 {
    len.min(u64::from(ABSENT - 1)) as u32
}

/// Bytes of a list's body, whose values take `len` bytes.
#[inline]
fn body_len<F: Family>(len: u64) -> u64 {
    if F::PACKED && len > 0 { field_len(len) } else { len }
}

/// One value a row.
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

/// A list a row.
pub(super) struct ListColumn<F> {
    entry: Entry,
    lists: Lists,
    family: F,
    /// Bytes of each row's values.
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

/// Steps of one kind, each a list, or null where it has another kind or none.
pub(super) struct StepsPart<F> {
    steps: Lists,
    lists: Lists,
    family: F,
    /// Bytes of each step's values.
    lens: Vec<u32>,
}

impl<F> StepsPart<F> {
    pub(super) fn new(steps: Lists, lists: Lists, family: F) -> Self {
        Self { steps, lists, family, lens: Vec::new() }
    }

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

/// A list of steps a row, whose kinds stand in a part each.
pub(super) struct StepsColumn {
    entry: Entry,
    parts: Vec<Box<dyn Steps>>,
    /// Bytes of each row's steps.
    lens: Vec<u32>,
}

impl StepsColumn {
    pub(super) fn new(entry: Entry, parts: Vec<Box<dyn Steps>>) -> Self {
        Self { entry, parts, lens: Vec::new() }
    }

    /// How many steps a row has, `None` where it has no such feature list.
    fn count(&self, row: usize) -> Option<usize> {
        self.parts.iter().find_map(|part| part.steps().get(row)).map(|steps| steps.len())
    }

    /// The part and the list that a step has; none where it has no kind.
    fn list(&self, row: usize, step: usize) -> Option<(&dyn Steps, usize)> {
        self.parts.iter().find_map(|part| Some((part.as_ref(), part.list(row, step)?)))
    }

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
