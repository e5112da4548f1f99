//! The input of a scan of one file: a shard that the table has listed, or an object in a store of
//! DataFusion.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
    sync::Arc,
};

use bytes::{Buf, Bytes};
use datafusion::{datasource::listing::PartitionedFile, error::Result};
use futures::{StreamExt, stream::BoxStream};
use object_store::{GetOptions, GetRange, GetResultPayload, ObjectStore, path::Path};
use tfarrow_codec::frame::FrameRange;
use tfarrow_dataset::{
    Error, ReadOptions, Shard, ShardFormat, ShardReader, SharedReader, internals::FilePiece,
};
use tfarrow_index::{OpenIndex, ShardIndex, UnusableIndex};
use tfarrow_scan::record_bytes;
use tokio::runtime::Handle;

use crate::scan::blocks::FileBlocks;

/// The input of a scan of one file.
pub(crate) enum ScanInput {
    /// A shard of any format, local or in a store, which the thread that reads it opens, and its
    /// index.
    Shard(Box<Shard>, Option<ShardIndex>),
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
            (Some(shard), None) => Self::Shard(
                Box::new(shard.clone()),
                file.extension::<ShardIndex>().cloned(),
            ),
            (None, _) => Self::Object {
                store: Arc::clone(store),
                path: file.path().clone(),
            },
        }
    }

    /// The name of the file in errors.
    pub(crate) fn name(&self) -> PathBuf {
        match self {
            Self::Shard(shard, _) | Self::Piece(shard, _) => shard.path.clone(),
            Self::Object { path, .. } => PathBuf::from(path.to_string()),
        }
    }

    /// Whether the file has other records than its index had when the query was planned.
    pub(crate) fn has_changed(&self) -> bool {
        match self {
            Self::Shard(shard, Some(index)) => !index.is_of(shard),
            Self::Shard(_, None) | Self::Piece(..) | Self::Object { .. } => false,
        }
    }

    /// Opens the blocks of the file that a scan may read, by its index. `None` if it has none, or is
    /// read as a whole, also after an error of the file. Blocks the thread.
    ///
    /// # Errors
    /// The index cannot be used.
    pub(crate) fn open_blocks(
        &self,
        options: &ReadOptions,
        find: impl FnOnce(&OpenIndex) -> Result<FileBlocks, Error>,
    ) -> Result<Option<SharedReader>, UnusableIndex> {
        let Self::Shard(shard, Some(index)) = self else {
            return Ok(None);
        };
        let index = index.open(shard)?;
        let blocks = find(&index).map_err(UnusableIndex::of_error)?;
        let wanted = blocks.wanted();
        let points = index.points(&wanted).map_err(UnusableIndex::of_error)?;
        // A compressed file is inflated by several threads, each from another access point on.
        if points.is_empty() && blocks.is_whole(index.records()) {
            return Ok(None);
        }
        let is_wanted = Box::new(move |block: &FrameRange| blocks.wants(block));
        let opened = SharedReader::open_blocks(shard, options, wanted, points, is_wanted);
        Ok(opened.unwrap_or_default())
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
            Self::Shard(shard, _) if shard.format == ShardFormat::TfRecord => {
                SharedReader::open(shard, options)
            }
            Self::Shard(shard, _) => {
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
