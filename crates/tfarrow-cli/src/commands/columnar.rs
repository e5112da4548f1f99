//! Parquet and Arrow files among the sources of commands that are about TFRecord.

use std::{fs::File, io::BufReader};

use anyhow::Result;
use arrow_array::RecordBatchReader;
use arrow_ipc::reader::FileReader;
use datafusion::parquet::{
    arrow::arrow_reader::ParquetRecordBatchReaderBuilder,
    file::reader::{FileReader as _, SerializedFileReader},
};
use tfarrow_dataset::{Contents, Shard};

/// The first `rows` rows of a file, or, of Arrow, as many more as its first batches have.
pub(super) fn rows(shard: &Shard, rows: usize) -> Result<Box<dyn RecordBatchReader>> {
    let file = File::open(shard.local_path())?;
    if shard.contents == Contents::Arrow {
        return Ok(Box::new(FileReader::try_new(BufReader::new(file), None)?));
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    Ok(Box::new(builder.with_batch_size(rows.clamp(1, 1024)).with_limit(rows).build()?))
}

/// How many rows a file has.
pub(super) fn count(shard: &Shard) -> Result<u64> {
    let file = File::open(shard.local_path())?;
    if shard.contents == Contents::Arrow {
        let mut reader = FileReader::try_new(BufReader::new(file), Some(Vec::new()))?;
        return reader.try_fold(0, |sum, batch| Ok(sum + batch?.num_rows() as u64));
    }
    let reader = SerializedFileReader::new(file)?;
    Ok(u64::try_from(reader.metadata().file_metadata().num_rows())?)
}
