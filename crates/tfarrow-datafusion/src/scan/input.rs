//! The input of a scan of one file: a shard that the table has listed, or an object in a store of DataFusion.

use std::{
    io::{self, Read},
    path::PathBuf,
    sync::Arc,
};

use bytes::{Buf, Bytes};
use datafusion::{datasource::listing::PartitionedFile, error::Result};
use futures::{StreamExt, stream::BoxStream};
use object_store::{GetResultPayload, ObjectStore, ObjectStoreExt, path::Path};
use tfarrow_dataset::{Error, ReadOptions, Shard, ShardReader, SharedReader};
use tokio::runtime::Handle;

/// The input of a scan of one file.
pub(crate) enum ScanInput {
    /// A shard, local or in a store, which the thread that reads it opens.
    Shard(Box<Shard>),
    /// An object in a store of DataFusion.
    Object { store: Arc<dyn ObjectStore>, path: Path },
}

impl ScanInput {
    /// The input of `file`: the shard that a [`TfRecordTable`](crate::TfRecordTable) attached to it, else an object of
    /// `store`.
    pub(crate) fn of(file: &PartitionedFile, store: &Arc<dyn ObjectStore>) -> Self {
        match file.extension::<Shard>() {
            Some(shard) => Self::Shard(Box::new(shard.clone())),
            None => Self::Object { store: Arc::clone(store), path: file.path().clone() },
        }
    }

    /// The name of the file in errors.
    pub(crate) fn name(&self) -> PathBuf {
        match self {
            Self::Shard(shard) => shard.path.clone(),
            Self::Object { path, .. } => PathBuf::from(path.to_string()),
        }
    }

    /// Opens the file. Blocks the thread.
    ///
    /// # Errors
    /// The file cannot be opened, or its first bytes cannot be read.
    pub(crate) fn open(&self, options: &ReadOptions, runtime: &Handle) -> Result<SharedReader, Error> {
        match self {
            Self::Shard(shard) => SharedReader::open(shard, options),
            Self::Object { store, path } => {
                let got = runtime.block_on(store.get(path)).map_err(|e| Error::io(self.name(), e.into()))?;
                let read: Box<dyn Read + Send> = match got.payload {
                    GetResultPayload::File(file, _) => Box::new(file),
                    GetResultPayload::Stream(stream) => Box::new(StreamRead::new(stream, runtime.clone())),
                };
                ShardReader::from_read(read, self.name(), options).map(SharedReader::from)
            }
        }
    }
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
        Self { stream, runtime, rest: Bytes::new() }
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
        self.rest.split_to(count).copy_to_slice(to.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_in_pieces_of_any_size_is_read_completely() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let pieces = [&b"ab"[..], b"", b"cdefg", b"h"];
        let stream = futures::stream::iter(pieces.map(|piece| Ok(Bytes::from_static(piece)))).boxed();
        let mut read = StreamRead::new(stream, runtime.handle().clone());
        let mut to = [0; 3];
        assert_eq!(read.read(&mut to).unwrap(), 2);
        let mut all = Vec::new();
        read.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"cdefgh");
    }
}
