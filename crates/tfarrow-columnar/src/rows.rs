//! The rows, the number of rows and the schema of a file of any format of this crate.

use std::{path::Path, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_codec::{Limits, schema::check_columns};
use tfarrow_dataset::{Error, Result, Shard, ShardFormat};

use crate::{
    arrow_file::{arrow_batches, arrow_reader},
    folder_columns::FolderColumns,
    parquet_file::ParquetFile,
    parquet_rows::row_group_rows,
    text_file::TextFile,
};

/// The batches of a file, which end after the first error.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Reads the rows of a file in batches of bounded size, with the columns of its folders.
///
/// # Errors
/// A file that cannot be opened, or whose footer is corrupt. Corrupt rows are errors of the
/// iterator.
pub fn rows(shard: &Shard) -> Result<Batches> {
    rows_of(shard, None)
}

/// Reads the first rows of a file, at least `count` if it has as many. Of a CSV or JSON file, only
/// these are read, and determine the types of the columns.
///
/// # Errors
/// As [`rows`].
pub fn first_rows(shard: &Shard, count: u64) -> Result<Batches> {
    if shard.format.is_text() {
        Ok(Box::new(TextFile::open_first(shard, count)?.rows()?))
    } else {
        rows(shard)
    }
}

/// Reads the rows of a file, as [`rows`] does, with the columns of these indices, which are in
/// ascending order, or with all columns.
///
/// # Errors
/// As [`rows`].
pub fn rows_of(shard: &Shard, columns: Option<Arc<[usize]>>) -> Result<Batches> {
    Ok(match shard.format {
        ShardFormat::Parquet => {
            let file = ParquetFile::open(&shard.path, shard.local_path())?.with_columns(columns);
            let groups = 0..file.groups().len();
            Box::new(row_group_rows(shard, &file, groups)?)
        }
        ShardFormat::Csv | ShardFormat::Json => {
            let (file, _) = TextFile::open(shard)?;
            Box::new(
                columns
                    .into_iter()
                    .fold(file, TextFile::with_columns)
                    .rows()?,
            )
        }
        ShardFormat::Arrow | ShardFormat::TfRecord => {
            Box::new(arrow_batches(shard, columns.map(|columns| columns.to_vec()))?.1)
        }
    })
}

/// The number of rows of a file. The values of Parquet and Arrow files are not read.
///
/// # Errors
/// A file that cannot be read.
pub fn count(shard: &Shard) -> Result<u64> {
    match shard.format {
        ShardFormat::Parquet => Ok(ParquetFile::open(&shard.path, shard.local_path())?.rows()),
        ShardFormat::Csv | ShardFormat::Json => Ok(TextFile::open(shard)?.1),
        ShardFormat::Arrow | ShardFormat::TfRecord => arrow_batches(shard, Some(Vec::new()))?
            .1
            .try_fold(0, |sum, batch| Ok(sum + batch?.num_rows() as u64)),
    }
}

/// The schema of the file `local` if it is Parquet or Arrow. Errors have the path `path`.
pub fn schema(
    contents: Option<ShardFormat>,
    path: &Path,
    local: &Path,
) -> Result<Option<SchemaRef>> {
    match contents {
        Some(ShardFormat::Parquet) => {
            ParquetFile::open(path, local).map(|file| Some(Arc::clone(file.metadata.schema())))
        }
        Some(ShardFormat::Arrow) => {
            arrow_reader(path, local, None).map(|(reader, _)| Some(reader.schema()))
        }
        Some(ShardFormat::TfRecord | ShardFormat::Csv | ShardFormat::Json) | None => Ok(None),
    }
}

/// Adds the columns of the folders of a shard to those of its file.
pub fn with_folder_columns(shard: &Shard, own: &SchemaRef) -> SchemaRef {
    FolderColumns::of(shard, own).added_to(own)
}

/// The schema of a shard, with the columns of its folders, if it is not TFRecord. Checks its number
/// of columns, each of which takes memory per batch.
///
/// # Errors
/// A file that cannot be read, or has more columns than `limits` allow.
pub fn schema_within(shard: &Shard, limits: &Limits) -> Result<Option<SchemaRef>> {
    let schema = match shard.format.is_text() {
        true => Some(Arc::clone(TextFile::open(shard)?.0.schema())),
        false => schema(Some(shard.format), &shard.path, shard.local_path())?,
    };
    let schema = schema.map(|schema| with_folder_columns(shard, &schema));
    let checked = schema
        .as_ref()
        .map_or(Ok(()), |schema| check_columns(schema, limits));
    checked.map_err(|e| Error::codec(&shard.path, e))?;
    Ok(schema)
}
