//! The input of a scan of one file: a shard that the table has listed, or an object in a store of
//! DataFusion.

use std::{
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::PathBuf,
    sync::Arc,
};

use bytes::{Buf, Bytes};
use datafusion::{datasource::listing::PartitionedFile, error::Result};
use futures::{StreamExt, stream::BoxStream};
use object_store::{GetOptions, GetRange, GetResultPayload, ObjectStore, path::Path};
use tfarrow_codec::Records;
use tfarrow_dataset::{
    Error, ReadOptions, Shard, ShardFormat, ShardReader, SharedReader, internals::FilePiece,
};
use tfarrow_scan::record_bytes;
use tokio::runtime::Handle;

/// The records of a file that a scan reads, by their numbers in the file; an extension of a
/// [`PartitionedFile`]. All records by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRange(pub Range<u64>);

impl Default for RecordRange {
    fn default() -> Self {
        Self(0..u64::MAX)
    }
}

impl RecordRange {
    /// The range of `file`; all records if it has none.
    pub fn of(file: &PartitionedFile) -> Self {
        file.extension::<Self>().cloned().unwrap_or_default()
    }

    /// The records of a chunk that are in the range; `None` if the range ends before them.
    pub(crate) fn of_chunk(&self, records: Records) -> Option<Records> {
        let from = self.0.start.saturating_sub(records.first());
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let to = self.0.end.saturating_sub(records.first());
        let to = usize::try_from(to).unwrap_or(usize::MAX);
        if to == 0 {
            return None;
        }
        let (records, _) = records.split_at(to);
        Some(records.split_at(from).1)
    }
}

/// The input of a scan of one file.
pub(crate) enum ScanInput {
    /// A shard of any format, local or in a store, which the thread that reads it opens.
    Shard(Box<Shard>),
    /// A piece of a shard.
    Piece(Box<Shard>, FilePiece),
    /// An object in a store of DataFusion.
    Object {
        store: Arc<dyn ObjectStore>,
        path: Path,
    },
}

impl ScanInput {
    /// The input of `file`: the shard that a [`TfRecordTable`](crate::TfRecordTable) attached to
    /// it, else an object of `store`.
    pub(crate) fn of(file: &PartitionedFile, store: &Arc<dyn ObjectStore>) -> Self {
        match (file.extension::<Shard>(), file.extension::<FilePiece>()) {
            (Some(shard), Some(piece)) => Self::Piece(Box::new(shard.clone()), piece.clone()),
            (Some(shard), None) => Self::Shard(Box::new(shard.clone())),
            (None, _) => Self::Object {
                store: Arc::clone(store),
                path: file.path().clone(),
            },
        }
    }

    /// The name of the file in errors.
    pub(crate) fn name(&self) -> PathBuf {
        match self {
            Self::Shard(shard) | Self::Piece(shard, _) => shard.path.clone(),
            Self::Object { path, .. } => PathBuf::from(path.to_string()),
        }
    }

    /// Opens the file. Rows of other formats are read as the records that a conversion to TFRecord
    /// writes. Blocks the thread.
    ///
    /// # Errors
    /// The file cannot be opened, or its first bytes cannot be read.
    pub(crate) fn open(
        &self,
        options: &ReadOptions,
        runtime: &Handle,
    ) -> Result<SharedReader, Error> {
        match self {
            Self::Shard(shard) if shard.format == ShardFormat::TfRecord => {
                SharedReader::open(shard, options)
            }
            Self::Shard(shard) => {
                let mut shard = Shard::clone(shard);
                shard.spool_for_scan()?;
                let bytes = record_bytes(&shard, &options.limits)?;
                ShardReader::from_read(bytes, self.name(), options).map(SharedReader::from)
            }
            Self::Piece(shard, piece) => {
                ShardReader::open_piece(shard, piece, options).map(SharedReader::from)
            }
            Self::Object { store, path } => {
                let read = open_object(store.as_ref(), path, 0, runtime)
                    .map_err(|e| Error::io(self.name(), e))?;
                ShardReader::from_read(read, self.name(), options).map(SharedReader::from)
            }
        }
    }
}

/// Opens an object at the byte `from`. Blocks the thread.
///
/// # Errors
/// The object cannot be opened, or has fewer bytes.
pub fn open_object(
    store: &dyn ObjectStore,
    path: &Path,
    from: u64,
    runtime: &Handle,
) -> io::Result<Box<dyn Read + Send>> {
    let range = (from > 0).then_some(GetRange::Offset(from));
    let got = runtime.block_on(store.get_opts(
        path,
        GetOptions {
            range,
            ..GetOptions::default()
        },
    ))?;
    Ok(match got.payload {
        GetResultPayload::File(mut file, _) => {
            file.seek(SeekFrom::Start(from))?;
            Box::new(file)
        }
        GetResultPayload::Stream(stream) => Box::new(StreamRead::new(stream, runtime.clone())),
    })
}

/// A blocking reader of a stream of bytes.
struct StreamRead {
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    runtime: Handle,
    /// Received bytes that have not been read yet.
    rest: Bytes,
}

impl StreamRead {
    fn new(stream: BoxStream<'static, object_store::Result<Bytes>>, runtime: Handle) -> Self {
        Self {
            stream,
            runtime,
            rest: Bytes::new(),
        }
    }
}

impl Read for StreamRead {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.runtime.block_on(self.stream.next()) {
                Some(bytes) => self.rest = bytes?,
                None => return Ok(0),
            }
        }
        let count = to.len().min(self.rest.len());
        self.rest
            .split_to(count)
            .copy_to_slice(to.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_cuts_the_records_of_each_chunk() {
        let mut bytes = Vec::new();
        (0..6).for_each(|_| tfarrow_codec::frame::write(b"x", &mut bytes));
        let all = Records::from_frames(bytes, tfarrow_codec::Limits::default()).unwrap();
        let (first, second) = all.split_at(4);
        let cut = |range: Range<u64>| {
            let range = RecordRange(range);
            let found = [&first, &second].map(|chunk| range.of_chunk(chunk.clone()));
            found.map(|records| records.map(|records| (records.first(), records.len())))
        };
        assert_eq!(cut(0..u64::MAX), [Some((0, 4)), Some((4, 2))]);
        assert_eq!(cut(1..3), [Some((1, 2)), None]);
        assert_eq!(cut(3..5), [Some((3, 1)), Some((4, 1))]);
        assert_eq!(cut(5..6), [Some((4, 0)), Some((5, 1))]);
    }

    #[test]
    fn a_stream_in_pieces_of_any_size_is_read_completely() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let pieces = [&b"ab"[..], b"", b"cdefg", b"h"];
        let stream =
            futures::stream::iter(pieces.map(|piece| Ok(Bytes::from_static(piece)))).boxed();
        let mut read = StreamRead::new(stream, runtime.handle().clone());
        let mut to = [0; 3];
        assert_eq!(read.read(&mut to).unwrap(), 2);
        let mut all = Vec::new();
        read.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"cdefgh");
    }
}
