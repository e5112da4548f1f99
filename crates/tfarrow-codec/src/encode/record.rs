//! The rows' loop: a record's header, its messages, its CRC.

use std::collections::HashMap;

use super::{
    entry::{field_len, tag},
    feature::Column,
    out::Out,
    plan::ColumnPlan,
};
use crate::frame;

/// A field of a record that is a map: `Example.features`, say.
pub(super) struct Message<'a> {
    tag: u8,
    columns: Vec<Box<dyn Column>>,
    /// Bytes of each row's entries.
    lens: Vec<u64>,
    /// Where the columns of a feature are.
    by_name: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Message<'a> {
    /// The field of this number, for so many rows.
    pub(super) fn new(field: u8, rows: usize) -> Self {
        Self { tag: tag(field), columns: Vec::new(), lens: vec![0; rows], by_name: HashMap::new() }
    }

    /// Measures a column, where there is one.
    pub(super) fn push(&mut self, plan: &'a ColumnPlan, column: Option<Box<dyn Column>>) {
        if let Some(mut column) = column {
            column.measure(&mut self.lens);
            self.by_name.entry(&plan.feature).or_default().push(self.columns.len());
            self.columns.push(column);
        }
    }

    /// Whether a row has this feature.
    pub(super) fn has(&self, feature: &str, row: usize) -> bool {
        self.columns_of(feature, row) > 0
    }

    /// In how many of its columns a feature has something in a row.
    pub(super) fn columns_of(&self, feature: &str, row: usize) -> usize {
        let columns = self.by_name.get(feature).into_iter().flatten().filter_map(|index| self.columns.get(*index));
        columns.filter(|column| column.is_present(row)).count()
    }

    /// Bytes of a row's field. One without entries is left out.
    fn len(&self, row: usize) -> u64 {
        match self.entries_len(row) {
            0 => 0,
            len => field_len(len),
        }
    }

    fn entries_len(&self, row: usize) -> u64 {
        self.lens.get(row).copied().unwrap_or_default()
    }

    fn write(&self, row: usize, out: &mut Out<'_>) {
        let len = self.entries_len(row);
        if len > 0 {
            out.byte(self.tag);
            out.varint(len);
            self.columns.iter().for_each(|column| column.write(row, out));
        }
    }
}

/// Bytes of each row's record.
pub(super) fn lens(messages: &[Message<'_>], rows: usize) -> Vec<u64> {
    (0..rows).map(|row| messages.iter().map(|message| message.len(row)).sum()).collect()
}

/// Writes all rows, whose records have so many bytes.
pub(super) fn write(messages: &[Message<'_>], lens: &[u64], bytes: &mut Vec<u8>) {
    let mut out = Out::new(bytes);
    for (row, len) in lens.iter().enumerate() {
        let bytes = out.flush();
        frame::begin(*len as usize, bytes);
        let start = bytes.len();
        messages.iter().for_each(|message| message.write(row, &mut out));
        let bytes = out.flush();
        debug_assert_eq!(bytes.len() - start, *len as usize);
        frame::end(start, bytes);
    }
}
