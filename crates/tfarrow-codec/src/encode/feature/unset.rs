//! Features that a record has without a kind: their names, a list of them a row.

use std::{collections::HashMap, ops::Range};

use super::Column;
use crate::encode::{entry::Entry, out::Out};

/// The column of names. It has an entry for each.
#[derive(Default)]
pub(in crate::encode) struct UnsetColumn {
    /// Each entry, whole.
    entries: Vec<u8>,
    /// Where each row's entries end.
    ends: Vec<usize>,
    /// The entries met so far, by name.
    known: HashMap<String, Vec<u8>>,
}

impl UnsetColumn {
    /// Adds an entry to the row that is being filled.
    pub(in crate::encode) fn push(&mut self, name: &str) {
        match self.known.get(name) {
            Some(entry) => self.entries.extend_from_slice(entry),
            None => {
                let entry = entry(name);
                self.entries.extend_from_slice(&entry);
                self.known.insert(name.to_owned(), entry);
            }
        }
    }

    /// Ends the row that is being filled.
    pub(in crate::encode) fn end_row(&mut self) {
        self.ends.push(self.entries.len());
    }

    fn range(&self, row: usize) -> Range<usize> {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        start..self.ends.get(row).copied().unwrap_or(start)
    }
}

impl Column for UnsetColumn {
    fn measure(&mut self, totals: &mut [u64]) {
        totals.iter_mut().enumerate().for_each(|(row, total)| *total += self.range(row).len() as u64);
    }

    fn is_present(&self, row: usize) -> bool {
        !self.range(row).is_empty()
    }

    fn write(&self, row: usize, out: &mut Out<'_>) {
        out.bytes(self.entries.get(self.range(row)).unwrap_or_default());
    }
}

/// An entry whose value is there, and empty.
fn entry(name: &str) -> Vec<u8> {
    let mut entry = Vec::new();
    let mut out = Out::new(&mut entry);
    Entry::new(name, None).begin(0, &mut out);
    out.flush();
    entry
}
