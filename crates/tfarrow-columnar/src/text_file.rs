//! CSV and JSON files: all rows determine the types of the columns, and are then parsed to them.
//!
//! ```text
//! file ─▶ TextReader ─▶ text_types: the types of the columns, the number of rows ─▶ text_columns: those of all files
//!      ─▶ TextReader ─▶ text_rows: batches
//! ```

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{ArrowError, Field, Fields, Schema, SchemaRef};
use tfarrow_dataset::{Result, Shard, ShardFormat};

use crate::{
    csv_header::header,
    folder_columns::FolderColumns,
    text_columns::schema_of,
    text_rows::text_rows,
    text_types::infer_types,
    unreadable::{unreadable, unreadable_arrow},
};

/// A CSV or JSON file, whose columns are known.
pub(crate) struct TextFile {
    shard: Shard,
    pub(crate) schema: SchemaRef,
    /// The number of rows that the columns were inferred from.
    pub(crate) row_count: u64,
    /// Maximum number of rows that are read.
    max_rows: u64,
}

impl TextFile {
    /// Infers the columns from all rows. The shard and its clones keep them, so that only the first call reads the file.
    ///
    /// # Errors
    /// A file that cannot be read, and rows that cannot be parsed, with their line.
    pub(crate) fn open(shard: &Shard) -> Result<Self> {
        let infer = || infer_types(shard, u64::MAX).map(|(types, rows)| (schema_of(types), rows));
        let (schema, row_count) = shard.text_columns(infer)?;
        Ok(Self { shard: shard.clone(), schema, row_count, max_rows: u64::MAX })
    }

    /// Infers the columns from the first rows, at most `rows`, and reads only these.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_first(shard: &Shard, rows: u64) -> Result<Self> {
        let (types, row_count) = infer_types(shard, rows)?;
        Ok(Self { shard: shard.clone(), schema: schema_of(types), row_count, max_rows: rows })
    }

    /// Reads the rows in batches. The columns of folders follow those of the file.
    ///
    /// # Errors
    /// A file that cannot be opened. A row that cannot be parsed is an error of the iterator.
    pub(crate) fn rows(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        let in_file = match self.shard.format {
            ShardFormat::Json => Arc::clone(&self.schema),
            _ => self.columns_in_file()?,
        };
        let (schema, path) = (Arc::clone(&self.schema), self.shard.path.clone());
        let folders = FolderColumns::of(&self.shard, &schema);
        let rows = text_rows(&self.shard, &in_file, self.max_rows)?;
        Ok(rows.map(move |batch| folders.add(arranged(batch?, &schema).map_err(|e| unreadable_arrow(&path, e))?)))
    }

    /// The columns of a CSV file in their order in the file. Other files of the data set may have further columns, or another
    /// order.
    fn columns_in_file(&self) -> Result<SchemaRef> {
        let column = |name: String| match self.schema.field_with_name(&name) {
            Ok(field) => Ok(field.clone()),
            Err(_) => Err(unreadable(&self.shard.path, format!("has a new column {name:?}: it was changed meanwhile"))),
        };
        let columns = header(&self.shard)?.into_iter().map(column).collect::<Result<Fields>>()?;
        Ok(if columns == *self.schema.fields() { Arc::clone(&self.schema) } else { Arc::new(Schema::new(columns)) })
    }
}

/// The columns of a batch in the order of `schema`, with nulls for those that the batch does not have.
fn arranged(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    if Arc::ptr_eq(batch.schema_ref(), schema) {
        return Ok(batch);
    }
    let rows = batch.num_rows();
    let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), rows),
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), schema.fields().iter().map(column).collect(), &options)
}
