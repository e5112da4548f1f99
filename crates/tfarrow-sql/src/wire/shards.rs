//! The files of a scan.

use std::{fmt::Display, io::Read, ops::Range, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema};
use datafusion::{
    common::{ScalarValue, exec_datafusion_err, exec_err, internal_err},
    datasource::{listing::PartitionedFile, physical_plan::FileGroup},
    error::{DataFusionError, Result},
};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use serde::{Deserialize, Serialize};
use tfarrow_datafusion::internals::{RecordRange, external, partitioned_file, piece_of};
use tfarrow_dataset::{
    Shard, ShardFormat,
    internals::{FilePiece, ShardAddress},
};
use tfarrow_index::{IndexAddress, ShardIndex};

use crate::wire::ipc::{batch_of_bytes, batch_to_bytes};

/// Maximum bytes of the inflated lists of files of a scan.
const MOST_BYTES: u64 = 1 << 30;
/// Maximum number of files of a scan of one task, with their indexes, which take some 2 kB of memory
/// each.
const MOST_FILES: usize = 4_000_000;

/// The files of one partition of a scan.
///
/// Serialized as the values, then one file after another, so that the files are counted while they
/// are read.
#[derive(Clone, Debug)]
struct GroupWire {
    /// The values of the partition columns: a batch with a row for each file; empty if there are no
    /// columns.
    values: Vec<u8>,
    /// The files, in order.
    files: Vec<FileWire>,
}

/// One file, and the records that are read.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct FileWire {
    address: ShardAddress,
    format: ShardFormat,
    /// The numbers of the records that are read.
    records: Range<u64>,
    /// The piece of the file that is read; `None`: all of it.
    piece: Option<FilePiece>,
    /// The index of the file.
    index: Option<IndexAddress>,
}

/// The deflated [`GroupWire`] of a partition; an extension of its only file, in a process that does
/// not open the files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Deflated(Vec<u8>);

/// Deflates the files of each partition, with the values of `columns`.
///
/// # Errors
/// Only this process can read a file, or a file is not one of a TFRecord table.
pub(super) fn deflated(groups: &[FileGroup], columns: &[FieldRef]) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::with_capacity(groups.len());
    for group in groups {
        let first = group.iter().next();
        all.push(match first.and_then(|file| file.extension::<Deflated>()) {
            Some(Deflated(bytes)) => bytes.clone(),
            None => GroupWire::of(group.files(), columns)?.deflated()?,
        });
    }
    Ok(all)
}

/// The files of deflated groups. Opens no file and no store.
///
/// # Errors
/// The bytes are corrupt.
pub(super) fn inflated(groups: &[Vec<u8>], columns: &[FieldRef]) -> Result<Vec<FileGroup>> {
    let mut left = Left {
        bytes: MOST_BYTES,
        files: MOST_FILES,
    };
    let mut inflated = Vec::with_capacity(groups.len());
    for bytes in groups {
        inflated.push(GroupWire::inflated(bytes, &mut left)?);
    }
    // All files of a store share its connections.
    let mut addresses = Vec::new();
    for file in inflated.iter().flat_map(|group| &group.files) {
        addresses.push(file.address.clone());
        addresses.extend(file.index.as_ref().map(|index| index.file.clone()));
    }
    let mut shards = ShardAddress::shards(addresses)
        .map_err(external)?
        .into_iter();
    inflated
        .into_iter()
        .map(|group| group.files(&mut shards, columns))
        .collect()
}

/// Partitions whose files stay deflated: they can be sent on, and not read.
pub(super) fn not_inflated(groups: &[Vec<u8>]) -> Vec<FileGroup> {
    let mut all = Vec::with_capacity(groups.len());
    for bytes in groups {
        let file = PartitionedFile::new("deflated", 0);
        let file = file.with_extension(Deflated(bytes.clone()));
        all.push(FileGroup::new(vec![file]));
    }
    all
}

/// The bytes and files that the next groups of a scan may have.
struct Left {
    bytes: u64,
    files: usize,
}

impl GroupWire {
    fn of(files: &[PartitionedFile], columns: &[FieldRef]) -> Result<Self> {
        let values = if columns.is_empty() || files.is_empty() {
            Vec::new()
        } else {
            values_to_bytes(files, columns)?
        };
        Ok(Self {
            values,
            files: files.iter().map(FileWire::of).collect::<Result<_>>()?,
        })
    }

    /// The files, whose shards and indexes are the next ones of `shards`.
    fn files(
        self,
        shards: &mut impl Iterator<Item = Shard>,
        columns: &[FieldRef],
    ) -> Result<FileGroup> {
        let values = values_of_bytes(&self.values, columns, self.files.len())?;
        let mut files = Vec::with_capacity(self.files.len());
        for (wire, values) in self.files.into_iter().zip(values) {
            files.push(wire.file(shards, values)?);
        }
        Ok(FileGroup::new(files))
    }

    fn deflated(&self) -> Result<Vec<u8>> {
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::fast());
        postcard::to_io(&self.values, &mut deflated).map_err(corrupt)?;
        for file in &self.files {
            postcard::to_io(file, &mut deflated).map_err(corrupt)?;
        }
        Ok(deflated.finish()?)
    }

    /// Inflates a group, and subtracts its bytes and files from those that are left.
    fn inflated(bytes: &[u8], left: &mut Left) -> Result<Self> {
        let mut inflated = Vec::new();
        let count = ZlibDecoder::new(bytes)
            .take(left.bytes.saturating_add(1))
            .read_to_end(&mut inflated)
            .map_err(corrupt)?;
        match left.bytes.checked_sub(count as u64) {
            Some(bytes) => left.bytes = bytes,
            None => {
                return exec_err!("the list of files of the plan has more than {MOST_BYTES} bytes");
            }
        }
        let (values, mut rest) = postcard::take_from_bytes(&inflated).map_err(corrupt)?;
        let mut files = Vec::new();
        // A file of a few bytes becomes one of hundreds.
        while !rest.is_empty() {
            let (file, after) = postcard::take_from_bytes::<FileWire>(rest).map_err(corrupt)?;
            let count = 1 + usize::from(file.index.is_some());
            match left.files.checked_sub(count) {
                Some(files) => left.files = files,
                None => return exec_err!("a task of the plan reads more than {MOST_FILES} files"),
            }
            files.push(file);
            rest = after;
        }
        Ok(Self { values, files })
    }
}

fn corrupt(error: impl Display) -> DataFusionError {
    exec_datafusion_err!("the list of files of the plan is corrupt: {error}")
}

impl FileWire {
    fn of(file: &PartitionedFile) -> Result<Self> {
        let Some(shard) = file.extension::<Shard>() else {
            return exec_err!(
                "{}: a file that no TFRecord table has listed cannot be sent to other machines",
                file.path()
            );
        };
        check_format(shard.format)?;
        let RecordRange(records) = RecordRange::of(file);
        let index = file.extension::<ShardIndex>().map(ShardIndex::address);
        Ok(Self {
            address: ShardAddress::of(shard).map_err(external)?,
            format: shard.format,
            records,
            piece: file.extension::<FilePiece>().cloned(),
            index: index.transpose().map_err(external)?,
        })
    }

    /// The file of the next one of `shards`, with the values of the partition columns.
    fn file(
        self,
        shards: &mut impl Iterator<Item = Shard>,
        values: Vec<ScalarValue>,
    ) -> Result<PartitionedFile> {
        check_format(self.format)?;
        let Some(mut shard) = shards.next() else {
            return internal_err!("a file of the plan has no address");
        };
        shard.format = self.format;
        let mut file = partitioned_file(&shard, values, RecordRange(self.records));
        if let Some(index) = self.index {
            let Some(of_index) = shards.next() else {
                return internal_err!("an index of the plan has no address");
            };
            file = file.with_extension(index.index(of_index));
        }
        match self.piece {
            Some(piece) if piece.bytes.start > piece.bytes.end => {
                exec_err!("the plan has a piece of a file that ends before it begins")
            }
            Some(piece) => Ok(piece_of(&file, piece)),
            None => Ok(file),
        }
    }
}

/// Refuses a format whose rows are not read as records.
fn check_format(format: ShardFormat) -> Result<()> {
    match format {
        ShardFormat::TfRecord | ShardFormat::Parquet | ShardFormat::Arrow => Ok(()),
        ShardFormat::Csv | ShardFormat::Json => {
            exec_err!("the plan reads rows of {format} as records")
        }
    }
}

/// The values of partition columns, as a batch with a row for each file.
fn values_to_bytes(files: &[PartitionedFile], columns: &[FieldRef]) -> Result<Vec<u8>> {
    let mut arrays = Vec::with_capacity(columns.len());
    for column in 0..columns.len() {
        let values = files
            .iter()
            .filter_map(|file| file.partition_values.get(column).cloned());
        arrays.push(ScalarValue::iter_to_array(values)?);
    }
    let schema = Arc::new(Schema::new(columns.to_vec()));
    let options = RecordBatchOptions::new().with_row_count(Some(files.len()));
    batch_to_bytes(&RecordBatch::try_new_with_options(
        schema, arrays, &options,
    )?)
}

/// The values of each of `count` files.
fn values_of_bytes(
    bytes: &[u8],
    columns: &[FieldRef],
    count: usize,
) -> Result<Vec<Vec<ScalarValue>>> {
    if columns.is_empty() || count == 0 {
        return Ok(vec![Vec::new(); count]);
    }
    let batch = batch_of_bytes(bytes)?;
    let has_types = batch
        .columns()
        .iter()
        .map(|array| array.data_type())
        .eq(columns.iter().map(|field| field.data_type()));
    if batch.num_rows() != count || !has_types {
        return exec_err!("the plan has other partition columns than its files");
    }
    let mut rows = Vec::with_capacity(count);
    for row in 0..count {
        let mut values = Vec::with_capacity(columns.len());
        for array in batch.columns() {
            values.push(ScalarValue::try_from_array(array, row)?);
        }
        rows.push(values);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of `count` files with empty names.
    fn nameless_files(count: usize) -> Vec<u8> {
        let file = FileWire {
            address: ShardAddress::default(),
            format: ShardFormat::TfRecord,
            records: 0..1,
            piece: None,
            index: None,
        };
        let group = GroupWire {
            values: Vec::new(),
            files: vec![file; count],
        };
        group.deflated().unwrap()
    }

    #[test]
    fn files_are_counted_while_they_are_read() {
        let mut left = Left {
            bytes: MOST_BYTES,
            files: 3,
        };
        let mut files = |count| {
            let group = GroupWire::inflated(&nameless_files(count), &mut left)?;
            Ok::<_, DataFusionError>(group.files.len())
        };
        assert_eq!(files(2).unwrap(), 2);
        assert_eq!(files(1).unwrap(), 1);
        let error = files(1).unwrap_err().to_string();
        assert!(
            error.contains("more than") && error.contains("files"),
            "{error}"
        );
    }

    #[test]
    fn bytes_are_counted_while_they_are_inflated() {
        let mut left = Left {
            bytes: 100,
            files: MOST_FILES,
        };
        let error = GroupWire::inflated(&nameless_files(100), &mut left).unwrap_err();
        assert!(error.to_string().contains("bytes"), "{error}");
    }
}
