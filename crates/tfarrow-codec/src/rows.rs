//! The rows of some records, of which each column is made when it is asked for: what a filter drops is never decoded.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take;

use crate::{
    BatchDecoder, ErrorKind, Records, Result,
    column::{self, Fault},
    schema::{Column, Role},
};

/// Records that have been walked: where each value lies is known, and nothing is decoded yet. See
/// [`BatchDecoder::rows`].
#[derive(Debug)]
pub struct Rows<'d> {
    decoder: &'d mut BatchDecoder,
    records: &'d Records,
    /// The record that each row is, once some were dropped.
    kept: Option<UInt32Array>,
}

impl<'d> Rows<'d> {
    pub(crate) fn new(decoder: &'d mut BatchDecoder, records: &'d Records) -> Self {
        Self { decoder, records, kept: None }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.records.len(), |kept| kept.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops every row but those where `filter`, which has a value a row, is true: not those where it is null.
    pub fn keep(&mut self, filter: &BooleanArray) {
        let rows: Vec<_> = (0..self.len()).filter(|row| *row < filter.len() && is_true(filter, *row)).collect();
        if rows.len() == self.len() {
            return;
        }
        self.decoder.tape.keep(&rows);
        self.kept = Some(rows.iter().map(|row| self.record(*row) as u32).collect::<Vec<_>>().into());
    }

    /// A batch of these columns, by their numbers in [`BatchDecoder::schema`], of all rows that are left.
    ///
    /// # Errors
    /// A record that does not fit the schema; a column that is not there.
    pub fn columns(&self, columns: &[usize]) -> Result<RecordBatch> {
        self.batch(Arc::new(self.decoder.schema().project(columns)?), columns.iter().copied())
    }

    /// A batch of all columns.
    pub(crate) fn all(&self) -> Result<RecordBatch> {
        self.batch(Arc::clone(self.decoder.schema()), 0..self.decoder.columns.len())
    }

    fn batch(&self, schema: SchemaRef, columns: impl Iterator<Item = usize>) -> Result<RecordBatch> {
        let columns = columns.filter_map(|index| Some((index, self.decoder.columns.get(index)?)));
        let arrays = columns.map(|(index, column)| self.array(index, column)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.len()));
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }

    fn array(&self, index: usize, column: &Column) -> Result<ArrayRef> {
        let tape = &self.decoder.tape;
        let array = match column.role {
            Role::Feature | Role::Context | Role::Sequence => {
                let lane = self.decoder.lanes.get(index).copied().unwrap_or(index);
                column::build(column.shape, column.values, tape.column(lane), tape.places(self.records.chunk()))
            }
            Role::Record => column::own::record(column.values, self.records).and_then(|all| self.kept(all)),
            Role::Unset => {
                let (unset, names) = tape.unset().unzip();
                let all = column::own::unset(unset.unwrap_or(&Default::default()), names.unwrap_or_default());
                all.and_then(|all| self.kept(all))
            }
        };
        array.map_err(|Fault { row, kind }| {
            let (records, record) = (self.records, self.record(row));
            let error = match kind {
                ErrorKind::Wire(e) => self.decoder.unreadable(e, records, record),
                kind => records.error(kind, record),
            };
            error.with_feature(&column.feature)
        })
    }

    /// The values of the rows that are left, of those of all records.
    fn kept(&self, all: ArrayRef) -> column::Result<ArrayRef> {
        match &self.kept {
            Some(kept) => take(&all, kept, None).map_err(Fault::arrow),
            None => Ok(all),
        }
    }

    /// Which of the records a row is.
    fn record(&self, row: usize) -> usize {
        let record = self.kept.as_ref().map(|kept| kept.values().get(row).map_or(0, |record| *record as usize));
        record.unwrap_or(row)
    }
}

fn is_true(filter: &BooleanArray, row: usize) -> bool {
    filter.is_valid(row) && filter.value(row)
}
