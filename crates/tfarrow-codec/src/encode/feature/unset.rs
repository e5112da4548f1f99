//! The features of a record without a kind, from a list of their names in each row: the column
//! `_tfarrow_unset`.
//!
//! ```text
//! ["a"]    0a 05   0a 01 'a'   12 00        an entry whose value, a Feature, is empty
//! ```
//!
//! Such features are rare in practice: TensorFlow writes one for `tf.train.Feature()`. They are
//! kept because a reader can tell them from missing features.

use std::{collections::HashMap, ops::Range};

use super::FeatureColumn;
use crate::encode::{block_writer::BlockWriter, entry::Entry};

/// The column of features without a kind, with an entry for each name.
#[derive(Default)]
pub(in crate::encode) struct UnsetColumn {
    /// The entries of all rows.
    entries: Vec<u8>,
    /// End of the entries of each row, in bytes.
    ends: Vec<usize>,
    /// The entry of each name so far, since most rows name the same few features.
    known: HashMap<String, Vec<u8>>,
}

impl UnsetColumn {
    /// Adds the entry of a name to the current row.
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

    /// Ends the current row.
    pub(in crate::encode) fn end_row(&mut self) {
        self.ends.push(self.entries.len());
    }

    /// Returns the range in `entries` of a row's entries.
    fn range(&self, row: usize) -> Range<usize> {
        let start = row
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or_default();
        start..self.ends.get(row).copied().unwrap_or(start)
    }
}

impl FeatureColumn for UnsetColumn {
    fn measure(&mut self, totals: &mut [u64]) {
        totals
            .iter_mut()
            .enumerate()
            .for_each(|(row, total)| *total += self.range(row).len() as u64);
    }

    fn is_present(&self, row: usize) -> bool {
        !self.range(row).is_empty()
    }

    fn write(&self, row: usize, out: &mut BlockWriter<'_>) {
        out.bytes(self.entries.get(self.range(row)).unwrap_or_default());
    }
}

/// Returns the entry of a feature whose value is present and empty.
fn entry(name: &str) -> Vec<u8> {
    let mut entry = Vec::new();
    let mut out = BlockWriter::new(&mut entry);
    Entry::new(name, None).begin(0, &mut out);
    out.flush();
    entry
}
