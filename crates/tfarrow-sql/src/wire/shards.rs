//! The files of a scan.

use std::{
    io::{Read, Write},
    sync::Arc,
};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema};
use bytes::Bytes;
use datafusion::{
    common::{ScalarValue, exec_err},
    datasource::{listing::PartitionedFile, physical_plan::FileGroup},
    error::Result,
};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use prost::{
    DecodeError, Message,
    encoding::{DecodeContext, decode_key, skip_field},
};
use tfarrow_datafusion::internals::{RecordRange, external, partitioned_file, piece_of};
use tfarrow_dataset::{
    Shard, ShardFormat,
    internals::{FilePiece, ObjectAddress, ShardAddress},
};

use crate::wire::ipc::{batch_of_bytes, batch_to_bytes};

/// Maximum bytes of the inflated lists of files of a scan.
const MOST_BYTES: u64 = 1 << 30;
/// Maximum number of files of a scan of one task, which take some 2 kB of memory each.
const MOST_FILES: usize = 4_000_000;

/// The files of one partition of a scan.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GroupWire {
    /// The files, in order.
    #[prost(message, repeated, tag = "1")]
    pub files: Vec<FileWire>,
    /// The values of the partition columns: a batch with a row for each file; empty if there are no
    /// columns.
    #[prost(bytes = "vec", tag = "2")]
    pub values: Vec<u8>,
}

/// One file: the fields of [`ShardAddress`], and the records that are read.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FileWire {
    /// [`ShardAddress::path`]
    #[prost(string, tag = "1")]
    pub path: String,
    /// [`ShardAddress::absolute`]
    #[prost(string, tag = "2")]
    pub absolute: String,
    /// [`ShardAddress::name`], unless it is the end of the path.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Number of bytes at the end of the path that are the name, if `name` is empty.
    #[prost(uint32, tag = "4")]
    pub name_bytes: u32,
    /// Size in bytes.
    #[prost(uint64, tag = "5")]
    pub size: u64,
    /// [`ObjectAddress::key`]; absent for a file.
    #[prost(string, optional, tag = "6")]
    pub key: Option<String>,
    /// [`ObjectAddress::tag`]
    #[prost(string, optional, tag = "7")]
    pub tag: Option<String>,
    /// [`ObjectAddress::has_ranges`]
    #[prost(bool, tag = "8")]
    pub has_ranges: bool,
    /// The first record that is read.
    #[prost(uint64, tag = "9")]
    pub first: u64,
    /// The record after the last one that is read; absent: the end of the file.
    #[prost(uint64, optional, tag = "10")]
    pub end: Option<u64>,
    /// The piece of the file that is read; absent: all of it.
    #[prost(message, optional, tag = "11")]
    pub piece: Option<PieceWire>,
    /// The format.
    #[prost(enumeration = "FormatWire", tag = "12")]
    pub format: i32,
}

/// The formats whose rows are read as records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum FormatWire {
    /// [`ShardFormat::TfRecord`]
    TfRecord = 0,
    /// [`ShardFormat::Parquet`]
    Parquet = 1,
    /// [`ShardFormat::Arrow`]
    Arrow = 2,
}

impl FormatWire {
    fn of(shard: &Shard) -> Result<Self> {
        match shard.format {
            ShardFormat::TfRecord => Ok(Self::TfRecord),
            ShardFormat::Parquet => Ok(Self::Parquet),
            ShardFormat::Arrow => Ok(Self::Arrow),
            format @ (ShardFormat::Csv | ShardFormat::Json) => {
                exec_err!(
                    "{}: rows of {format} are not read as records",
                    shard.path.display()
                )
            }
        }
    }

    fn format(self) -> ShardFormat {
        match self {
            Self::TfRecord => ShardFormat::TfRecord,
            Self::Parquet => ShardFormat::Parquet,
            Self::Arrow => ShardFormat::Arrow,
        }
    }
}

/// The fields of a [`FilePiece`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PieceWire {
    /// The byte at or after which the first record begins.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// The byte at or after which the first record of the next piece begins.
    #[prost(uint64, tag = "2")]
    pub to: u64,
    /// [`FilePiece::version`]
    #[prost(string, optional, tag = "3")]
    pub version: Option<String>,
}

impl PieceWire {
    fn of(piece: &FilePiece) -> Self {
        let FilePiece { bytes, version } = piece.clone();
        Self {
            from: bytes.start,
            to: bytes.end,
            version,
        }
    }

    fn piece(self) -> Result<FilePiece> {
        if self.from > self.to {
            return exec_err!("the plan has a piece of a file that ends before it begins");
        }
        Ok(FilePiece {
            bytes: self.from..self.to,
            version: self.version,
        })
    }
}

/// The deflated [`GroupWire`] of a partition; an extension of its only file, in a process that does
/// not open the files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Deflated(Bytes);

/// Deflates the files of each partition, with the values of `columns`.
///
/// # Errors
/// Only this process can read a file, or a file is not one of a TFRecord table.
pub(super) fn deflated(groups: &[FileGroup], columns: &[FieldRef]) -> Result<Vec<Bytes>> {
    let group = |group: &FileGroup| match group
        .iter()
        .next()
        .and_then(PartitionedFile::extension::<Deflated>)
    {
        Some(Deflated(bytes)) => Ok(bytes.clone()),
        None => GroupWire::of(group.files(), columns)?.deflated(),
    };
    groups.iter().map(group).collect()
}

/// The files of deflated groups. Opens no file and no store.
///
/// # Errors
/// The bytes are corrupt.
pub(super) fn inflated(groups: &[Bytes], columns: &[FieldRef]) -> Result<Vec<FileGroup>> {
    let mut left = Left {
        bytes: MOST_BYTES,
        files: MOST_FILES,
    };
    let groups = groups
        .iter()
        .map(|bytes| GroupWire::inflated(bytes, &mut left))
        .collect::<Result<Vec<_>>>()?;
    // All files of a store share its connections.
    let addresses = groups
        .iter()
        .flat_map(|group| &group.files)
        .map(FileWire::address)
        .collect::<Result<Vec<_>>>()?;
    let mut shards = ShardAddress::shards(addresses)
        .map_err(external)?
        .into_iter();
    groups
        .into_iter()
        .map(|group| group.files(&mut shards, columns))
        .collect()
}

/// Partitions whose files stay deflated: they can be sent on, and not read.
pub(super) fn not_inflated(groups: &[Bytes]) -> Vec<FileGroup> {
    let group =
        |bytes: &Bytes| PartitionedFile::new("deflated", 0).with_extension(Deflated(bytes.clone()));
    groups
        .iter()
        .map(|bytes| FileGroup::new(vec![group(bytes)]))
        .collect()
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
            files: files.iter().map(FileWire::of).collect::<Result<_>>()?,
            values,
        })
    }

    /// The files, whose shards are the next ones of `shards`.
    fn files(
        self,
        shards: &mut impl Iterator<Item = Shard>,
        columns: &[FieldRef],
    ) -> Result<FileGroup> {
        let values = values_of_bytes(&self.values, columns, self.files.len())?;
        let file = |((wire, values), mut shard): ((FileWire, _), Shard)| {
            shard.format = wire.format().format();
            let file = partitioned_file(&shard, values, wire.range());
            Ok(match wire.piece {
                Some(piece) => piece_of(&file, piece.piece()?),
                None => file,
            })
        };
        Ok(FileGroup::new(
            self.files
                .into_iter()
                .zip(values)
                .zip(shards)
                .map(file)
                .collect::<Result<_>>()?,
        ))
    }

    fn deflated(&self) -> Result<Bytes> {
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::fast());
        deflated.write_all(&self.encode_to_vec())?;
        Ok(deflated.finish()?.into())
    }

    /// Inflates a message, and subtracts its bytes and files from those that are left.
    fn inflated(bytes: &[u8], left: &mut Left) -> Result<Self> {
        let mut inflated = Vec::new();
        let count = ZlibDecoder::new(bytes)
            .take(left.bytes.saturating_add(1))
            .read_to_end(&mut inflated);
        match count.map(|count| left.bytes.checked_sub(count as u64)) {
            Ok(Some(bytes)) => left.bytes = bytes,
            Ok(None) => {
                return exec_err!("the list of files of the plan has more than {MOST_BYTES} bytes");
            }
            Err(error) => return exec_err!("the list of files of the plan is corrupt: {error}"),
        }
        // An entry of two bytes would become a file of two hundred.
        match number_of_files(&inflated).map(|files| left.files.checked_sub(files)) {
            Ok(Some(files)) => left.files = files,
            Ok(None) => return exec_err!("a task of the plan reads more than {MOST_FILES} files"),
            Err(error) => return exec_err!("the list of files of the plan is corrupt: {error}"),
        }
        match Self::decode(inflated.as_slice()) {
            Ok(group) => Ok(group),
            Err(error) => exec_err!("the list of files of the plan is corrupt: {error}"),
        }
    }
}

/// Number of the files of an encoded [`GroupWire`].
fn number_of_files(mut group: &[u8]) -> Result<usize, DecodeError> {
    let mut files = 0;
    while !group.is_empty() {
        let (tag, wire_type) = decode_key(&mut group)?;
        files += usize::from(tag == 1);
        skip_field(wire_type, tag, &mut group, DecodeContext::default())?;
    }
    Ok(files)
}

impl FileWire {
    fn of(file: &PartitionedFile) -> Result<Self> {
        let Some(shard) = file.extension::<Shard>() else {
            return exec_err!(
                "{}: a file that no TFRecord table has listed cannot be sent to other machines",
                file.path()
            );
        };
        let RecordRange(range) = RecordRange::of(file);
        let ShardAddress {
            path,
            absolute,
            name,
            size,
            object,
        } = ShardAddress::of(shard).map_err(external)?;
        let name_bytes = u32::try_from(name.len())
            .ok()
            .filter(|_| path.ends_with(&name));
        let (key, tag, has_ranges) = match object {
            Some(ObjectAddress {
                key,
                tag,
                has_ranges,
            }) => (Some(key), tag, has_ranges),
            None => (None, None, false),
        };
        Ok(Self {
            path,
            absolute,
            name: if name_bytes.is_some() {
                String::new()
            } else {
                name
            },
            name_bytes: name_bytes.unwrap_or_default(),
            size,
            key,
            tag,
            has_ranges,
            first: range.start,
            end: (range.end != u64::MAX).then_some(range.end),
            piece: file.extension::<FilePiece>().map(PieceWire::of),
            format: FormatWire::of(shard)?.into(),
        })
    }

    fn range(&self) -> RecordRange {
        RecordRange(self.first..self.end.unwrap_or(u64::MAX))
    }

    fn address(&self) -> Result<ShardAddress> {
        let Self {
            path,
            absolute,
            mut name,
            name_bytes,
            size,
            key,
            tag,
            has_ranges,
            ..
        } = self.clone();
        if name.is_empty() {
            let end = path
                .len()
                .checked_sub(name_bytes as usize)
                .and_then(|at| path.get(at..));
            match end {
                Some(end) => end.clone_into(&mut name),
                None => return exec_err!("the plan has a file without a name"),
            }
        }
        let object = key.map(|key| ObjectAddress {
            key,
            tag,
            has_ranges,
        });
        Ok(ShardAddress {
            path,
            absolute,
            name,
            size,
            object,
        })
    }
}

/// The values of partition columns, as a batch with a row for each file.
fn values_to_bytes(files: &[PartitionedFile], columns: &[FieldRef]) -> Result<Vec<u8>> {
    let column = |column: usize| -> Result<ArrayRef> {
        ScalarValue::iter_to_array(
            files
                .iter()
                .filter_map(|file| file.partition_values.get(column).cloned()),
        )
    };
    let arrays = (0..columns.len()).map(column).collect::<Result<Vec<_>>>()?;
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
    let row = |row| {
        batch
            .columns()
            .iter()
            .map(|array| ScalarValue::try_from_array(array, row))
            .collect()
    };
    (0..count).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deflates `count` entries of two bytes.
    fn empty_entries(count: usize) -> Bytes {
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::fast());
        deflated.write_all(&[0x0a, 0x00].repeat(count)).unwrap();
        deflated.finish().unwrap().into()
    }

    #[test]
    fn files_are_counted_before_they_are_decoded() {
        let mut left = Left {
            bytes: MOST_BYTES,
            files: 3,
        };
        assert_eq!(
            GroupWire::inflated(&empty_entries(2), &mut left)
                .unwrap()
                .files
                .len(),
            2
        );
        assert_eq!(
            GroupWire::inflated(&empty_entries(1), &mut left)
                .unwrap()
                .files
                .len(),
            1
        );
        let error = GroupWire::inflated(&empty_entries(1), &mut left).unwrap_err();
        assert!(error.to_string().contains("files"), "{error}");
        let bytes = empty_entries(MOST_FILES + 1);
        assert!(bytes.len() < 100_000, "{}", bytes.len());
        assert!(inflated(&[bytes], &[]).is_err());
    }
}
