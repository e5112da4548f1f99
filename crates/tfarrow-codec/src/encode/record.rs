//! Writing records row by row: the header of the frame, the messages, the CRC of the payload.
//!
//! ```text
//! Example           0a len, entries                      Example.features
//! SequenceExample   0a len, entries  12 len, entries     SequenceExample.context, .feature_lists
//! ```
//!
//! An Example and a SequenceExample without feature lists have the same bytes.

use std::collections::HashMap;

use super::{
    block_writer::BlockWriter,
    entry::{field_len, tag},
    feature::FeatureColumn,
    plan::ColumnPlan,
};
use crate::{frame, slices};

/// A field of a record that is a message with a map: `Example.features`, or one of a
/// SequenceExample's fields.
pub(super) struct Message<'a> {
    /// The tag of the field.
    tag: u8,
    /// The columns, in the order of their entries.
    columns: Vec<Box<dyn FeatureColumn>>,
    /// Length of each row's entries in bytes.
    lens: Vec<u64>,
    /// Indices of the columns of each feature.
    by_name: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Message<'a> {
    /// Creates the field `field` of `rows` records.
    pub(super) fn new(field: u8, rows: usize) -> Self {
        Self {
            tag: tag(field),
            columns: Vec::new(),
            lens: vec![0; rows],
            by_name: HashMap::new(),
        }
    }

    /// Measures a column and adds it, if there is one. Its entries follow those of the columns
    /// before.
    pub(super) fn push(&mut self, plan: &'a ColumnPlan, column: Option<Box<dyn FeatureColumn>>) {
        if let Some(mut column) = column {
            column.measure(&mut self.lens);
            self.by_name
                .entry(&plan.feature)
                .or_default()
                .push(self.columns.len());
            self.columns.push(column);
        }
    }

    /// Returns whether a row has a feature.
    pub(super) fn has(&self, feature: &str, row: usize) -> bool {
        self.columns_of(feature, row) > 0
    }

    /// Returns the number of columns in which a feature has a value in a row.
    pub(super) fn columns_of(&self, feature: &str, row: usize) -> usize {
        let columns = self
            .by_name
            .get(feature)
            .into_iter()
            .flatten()
            .filter_map(|index| self.columns.get(*index));
        columns.filter(|column| column.is_present(row)).count()
    }

    /// Returns the length in bytes of a row's field with its tag and length. A field without
    /// entries is not written.
    fn len(&self, row: usize) -> u64 {
        match self.entries_len(row) {
            0 => 0,
            len => field_len(len),
        }
    }

    /// Returns the length of a row's entries in bytes.
    fn entries_len(&self, row: usize) -> u64 {
        slices::item(&self.lens, row)
    }

    /// Writes a row's field.
    fn write(&self, row: usize, out: &mut BlockWriter<'_>) {
        let len = self.entries_len(row);
        if len > 0 {
            out.byte(self.tag);
            out.varint(len);
            self.columns
                .iter()
                .for_each(|column| column.write(row, out));
        }
    }
}

/// Returns the length of each row's record in bytes.
pub(super) fn lens(messages: &[Message<'_>], rows: usize) -> Vec<u64> {
    (0..rows)
        .map(|row| messages.iter().map(|message| message.len(row)).sum())
        .collect()
}

/// Writes the frames of all rows; `lens` are the lengths of their records.
///
/// ```text
/// frame     length: u64 │ crc: u32 │ payload                         │ crc: u32
/// payload   0a len, entries of features │ 12 len, entries of feature lists
/// ```
pub(super) fn write(messages: &[Message<'_>], lens: &[u64], bytes: &mut Vec<u8>) {
    let mut out = BlockWriter::new(bytes);
    for (row, len) in lens.iter().enumerate() {
        let bytes = out.flush();
        frame::begin(*len as usize, bytes);
        let start = bytes.len();
        messages
            .iter()
            .for_each(|message| message.write(row, &mut out));
        let bytes = out.flush();
        debug_assert_eq!(bytes.len() - start, *len as usize);
        frame::end(start, bytes);
    }
}
