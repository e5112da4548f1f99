//! The columns of folders `key=value`, which the rows of a file have after its own columns.

use std::{iter::repeat_n, sync::Arc};

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, new_null_array,
};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use tfarrow_dataset::{Result, Shard, internals::FolderColumn};

use crate::unreadable::unreadable_arrow;

/// The folder columns of a file: those of its shard that the file does not have itself.
#[derive(Clone, Debug)]
pub(crate) struct FolderColumns {
    shard: Shard,
    columns: Vec<(FieldRef, FolderColumn)>,
}

impl FolderColumns {
    /// The folder columns of a file with the columns `own`.
    pub(crate) fn of(shard: &Shard, own: &Schema) -> Self {
        let mut columns = Vec::new();
        for column in shard.folder_columns() {
            if own.column_with_name(&column.key).is_none() {
                columns.push((field(column), column.clone()));
            }
        }
        Self {
            shard: shard.clone(),
            columns,
        }
    }

    /// Keeps the folder columns that are among the wanted ones, whose indices count the `own`
    /// columns of the file first, and are in ascending order. Returns the indices of the wanted
    /// columns of the file.
    pub(crate) fn keep(&mut self, wanted: &[usize], own: usize) -> Vec<usize> {
        let (of_file, of_folders) = wanted.split_at(wanted.partition_point(|index| *index < own));
        let kept = of_folders
            .iter()
            .filter_map(|index| self.columns.get(index - own).cloned());
        self.columns = kept.collect();
        of_file.to_vec()
    }

    /// The schema of rows with these columns after their own.
    pub(crate) fn added_to(&self, own: &SchemaRef) -> SchemaRef {
        if self.columns.is_empty() {
            return Arc::clone(own);
        }
        let added = self.columns.iter().map(|(field, _)| Arc::clone(field));
        let fields: Vec<_> = own.fields().iter().cloned().chain(added).collect();
        Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()))
    }

    /// Adds the columns to rows of the file.
    ///
    /// # Errors
    /// None that is known: the columns fit the rows.
    pub(crate) fn add(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if self.columns.is_empty() {
            return Ok(batch);
        }
        let rows = batch.num_rows();
        let added = self
            .columns
            .iter()
            .map(|(field, column)| array(field, column, rows));
        let arrays: Vec<_> = batch.columns().iter().cloned().chain(added).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let added =
            RecordBatch::try_new_with_options(self.added_to(batch.schema_ref()), arrays, &options);
        added.map_err(|e| unreadable_arrow(&self.shard.path, e))
    }
}

fn field(column: &FolderColumn) -> FieldRef {
    let data_type = if column.is_integer {
        DataType::Int64
    } else {
        DataType::Utf8
    };
    Arc::new(Field::new(&column.key, data_type, true))
}

/// A column of one value.
fn array(field: &Field, column: &FolderColumn, rows: usize) -> ArrayRef {
    match (column.integer(), &column.text) {
        (Some(value), _) => Arc::new(Int64Array::from_value(value, rows)),
        (None, Some(text)) => Arc::new(StringArray::from_iter_values(repeat_n(text, rows))),
        (None, None) => new_null_array(field.data_type(), rows),
    }
}
