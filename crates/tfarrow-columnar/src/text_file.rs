//! CSV and JSON files: all rows determine the types of the columns, and are then parsed to them.
//!
//! ```text
//! file ─▶ TextReader ─▶ text_types: the columns, the number of rows
//!      ─▶ TextReader ─▶ text_rows: batches
//! ```

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_dataset::{Result, Shard};

use crate::{text_rows::text_rows, text_types::infer_columns};

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
        let (schema, row_count) = shard.text_columns(|| infer_columns(shard, u64::MAX))?;
        Ok(Self { shard: shard.clone(), schema, row_count, max_rows: u64::MAX })
    }

    /// Infers the columns from the first rows, at most `rows`, and reads only these.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_first(shard: &Shard, rows: u64) -> Result<Self> {
        let (schema, row_count) = infer_columns(shard, rows)?;
        Ok(Self { shard: shard.clone(), schema, row_count, max_rows: rows })
    }

    /// Reads the rows in batches.
    ///
    /// # Errors
    /// A file that cannot be opened. A row that cannot be parsed is an error of the iterator.
    pub(crate) fn rows(&self) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
        text_rows(&self.shard, &self.schema, self.max_rows)
    }
}
