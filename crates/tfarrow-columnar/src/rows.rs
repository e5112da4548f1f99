//! The rows, the number of rows and the schema of a file of any format of this crate.

use std::{path::Path, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_codec::{Limits, schema::check_columns};
use tfarrow_dataset::{Error, Result, Shard, ShardFormat};

use crate::{
    arrow_file::{arrow_batches, arrow_reader},
    parquet_file::ParquetFile,
    parquet_rows::row_group_rows,
};

/// The batches of a file, which end after the first error.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Reads the rows of a Parquet or Arrow file in batches of bounded size.
///
/// # Errors
/// A file that cannot be opened, or whose footer is corrupt. Corrupt rows are errors of the iterator.
pub fn rows(shard: &Shard) -> Result<Batches> {
    rows_of(shard, None)
}

/// Reads the rows of a Parquet or Arrow file, as [`rows`] does, with the columns of these indices, which are in ascending order,
/// or with all columns.
///
/// # Errors
/// As [`rows`].
pub fn rows_of(shard: &Shard, columns: Option<Arc<[usize]>>) -> Result<Batches> {
    if shard.format != ShardFormat::Parquet {
        return Ok(Box::new(arrow_batches(shard, columns.map(|columns| columns.to_vec()))?.1));
    }
    let file = ParquetFile::open(&shard.path, shard.local_path())?.with_columns(columns);
    let groups = 0..file.groups().len();
    Ok(Box::new(row_group_rows(shard, &file, groups)?))
}

/// The number of rows of a Parquet or Arrow file. The values are not read.
///
/// # Errors
/// A file that cannot be read.
pub fn count(shard: &Shard) -> Result<u64> {
    if shard.format != ShardFormat::Parquet {
        return arrow_batches(shard, Some(Vec::new()))?.1.try_fold(0, |sum, batch| Ok(sum + batch?.num_rows() as u64));
    }
    let file = ParquetFile::open(&shard.path, shard.local_path())?;
    Ok(file.metadata.metadata().file_metadata().num_rows().try_into().unwrap_or(0))
}

/// The schema of the file `local` if it is Parquet or Arrow. Errors have the path `path`.
pub fn schema(contents: Option<ShardFormat>, path: &Path, local: &Path) -> Result<Option<SchemaRef>> {
    match contents {
        Some(ShardFormat::Parquet) => {
            ParquetFile::open(path, local).map(|file| Some(Arc::clone(file.metadata.schema())))
        }
        Some(ShardFormat::Arrow) => arrow_reader(path, local, None).map(|(reader, _)| Some(reader.schema())),
        Some(ShardFormat::TfRecord) | None => Ok(None),
    }
}

/// The schema of a shard if it is Parquet or Arrow. Checks its number of columns, each of which takes memory per batch.
///
/// # Errors
/// A file that cannot be read, or has more columns than `limits` allow.
pub fn schema_within(shard: &Shard, limits: &Limits) -> Result<Option<SchemaRef>> {
    let schema = schema(Some(shard.format), &shard.path, shard.local_path())?;
    let checked = schema.as_ref().map_or(Ok(()), |schema| check_columns(schema, limits));
    checked.map_err(|e| Error::codec(&shard.path, e))?;
    Ok(schema)
}
