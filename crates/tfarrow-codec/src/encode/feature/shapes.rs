//! Columns of one value, of a list, and of a list of steps a row.

use arrow_buffer::NullBuffer;

use super::{Column, Family};
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

/// A list of steps a row, each a list, or null where it has no kind.
pub(super) struct StepsColumn<F> {
    entry: Entry,
    steps: Lists,
    lists: Lists,
    family: F,
    /// Bytes of each row's steps.
    lens: Vec<u32>,
    /// Bytes of each step's values.
    step_lens: Vec<u32>,
}

impl<F: Family> StepsColumn<F> {
    pub(super) fn new(entry: Entry, steps: Lists, lists: Lists, family: F) -> Self {
        Self { entry, steps, lists, family, lens: Vec::new(), step_lens: Vec::new() }
    }

    /// Bytes of the feature of a step whose values take `len` bytes.
    #[inline]
    fn feature_len(len: u32) -> u64 {
        match len {
            ABSENT => 0,
            len => field_len(body_len::<F>(u64::from(len))),
        }
    }

    #[inline]
    fn write_step(&self, step: usize, len: u32, out: &mut Out<'_>) {
        out.byte(tag(1));
        out.varint(Self::feature_len(len));
        if len != ABSENT {
            let len = u64::from(len);
            out.byte(kind_tag(F::KIND));
            out.varint(body_len::<F>(len));
            self.family.write_all(self.lists.range(step), len, out);
        }
    }
}

impl<F: Family> Column for StepsColumn<F> {
    fn measure(&mut self, totals: &mut [u64]) {
        let len = |step| self.lists.get(step).map_or(ABSENT, |values| capped(self.family.all_len(values)));
        self.step_lens = (0..self.lists.len()).map(len).collect();
        self.lens.reserve_exact(totals.len());
        for (row, total) in totals.iter_mut().enumerate() {
            self.lens.push(match self.steps.get(row) {
                None => ABSENT,
                Some(steps) => {
                    let lens = self.step_lens.get(steps).unwrap_or_default();
                    let len = lens.iter().map(|len| field_len(Self::feature_len(*len))).sum();
                    *total += self.entry.len(len);
                    capped(len)
                }
            });
        }
    }

    fn is_present(&self, row: usize) -> bool {
        self.steps.get(row).is_some()
    }

    fn write(&self, row: usize, out: &mut Out<'_>) {
        match self.lens.get(row) {
            None | Some(&ABSENT) => {}
            Some(len) => {
                self.entry.begin(u64::from(*len), out);
                let steps = self.steps.range(row);
                let lens = self.step_lens.get(steps.clone()).unwrap_or_default();
                steps.zip(lens).for_each(|(step, len)| self.write_step(step, *len, out));
            }
        }
    }
}
