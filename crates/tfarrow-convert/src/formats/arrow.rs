//! Arrow IPC files: pieces are record batches.

use std::{
    io::BufWriter,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::{
    CompressionType, MetadataVersion,
    writer::{FileWriter, IpcWriteOptions},
};
use arrow_schema::{ArrowError, SchemaRef};
use tfarrow_columnar::checksums::{self, ChecksumWriter};

use super::{FileFormat, PieceWriter, RowEncoder, RowFormat, WritePiece};
use crate::{Error, OutputCompression, Result, output::Output};

/// Bytes of the buffer before the checksums.
const BUFFER_BYTES: usize = 1 << 20;

/// Bytes that buffers are aligned to. The format has as many before the first message, and some
/// readers expect it there.
const ALIGNMENT: usize = 8;

/// Arrow IPC files with this schema, which includes the metadata of the file.
#[derive(Clone, Debug)]
pub(crate) struct ArrowFileFormat {
    pub(crate) schema: SchemaRef,
    pub(crate) compression: OutputCompression,
    /// The level of zstd; by default that of the `arrow-ipc` crate.
    pub(crate) level: Option<u32>,
}

impl FileFormat for ArrowFileFormat {
    type Piece = RecordBatch;
    type Writer = ArrowFileWriter;

    fn create(&self, path: &Path, output: Output) -> Result<ArrowFileWriter> {
        let writer = self.begin(output).map_err(|e| Error::arrow(path, e))?;
        Ok(ArrowFileWriter {
            path: path.to_owned(),
            writer,
        })
    }

    fn held_bytes(batch: &RecordBatch) -> usize {
        batch.get_array_memory_size()
    }
}

impl RowFormat for ArrowFileFormat {
    type Encoder<'f> = SchemaEncoder<'f>;

    fn encoder(&self) -> Result<SchemaEncoder<'_>> {
        Ok(SchemaEncoder(&self.schema))
    }
}

impl ArrowFileFormat {
    fn begin(&self, output: Output) -> Result<InnerWriter, ArrowError> {
        let output = BufWriter::with_capacity(BUFFER_BYTES, ChecksumWriter::new(output));
        let mut writer = FileWriter::try_new_with_options(output, &self.schema, self.options()?)?;
        writer.flush()?;
        writer.get_mut().get_mut().begin()?;
        Ok(writer)
    }

    fn options(&self) -> Result<IpcWriteOptions, ArrowError> {
        let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?
            .try_with_compression(match self.compression {
                OutputCompression::Zstd => Some(CompressionType::ZSTD),
                OutputCompression::Lz4 => Some(CompressionType::LZ4_FRAME),
                OutputCompression::None
                | OutputCompression::Snappy
                | OutputCompression::Gzip
                | OutputCompression::Zlib
                | OutputCompression::Original => None,
            })?;
        options.try_with_compression_level(self.level.and_then(|level| i32::try_from(level).ok()))
    }
}

/// Gives batches the schema of the file. The writer encodes them.
pub(crate) struct SchemaEncoder<'f>(&'f SchemaRef);

impl RowEncoder for SchemaEncoder<'_> {
    type Piece = RecordBatch;

    fn encode(
        &mut self,
        path: &Path,
        batch: RecordBatch,
        write: &mut WritePiece<'_, RecordBatch>,
    ) -> Result<()> {
        // `RecordBatch::with_schema` requires that all metadata of the batch is kept, but the
        // metadata of the new file has the name of its own original shard.
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        let batch = RecordBatch::try_new_with_options(Arc::clone(self.0), columns, &options);
        write(batch.map_err(|e| Error::arrow(path, e))?)
    }

    fn end_unit(&mut self, _path: &Path, _write: &mut WritePiece<'_, RecordBatch>) -> Result<()> {
        Ok(())
    }
}

type InnerWriter = FileWriter<BufWriter<ChecksumWriter<Output>>>;

/// Writes an Arrow file, with a checksum of each batch.
pub(crate) struct ArrowFileWriter {
    path: PathBuf,
    writer: InnerWriter,
}

impl PieceWriter for ArrowFileWriter {
    type Piece = RecordBatch;

    fn write(&mut self, batch: RecordBatch) -> Result<()> {
        let written = self.writer.write(&batch).and_then(|()| self.writer.flush());
        written.map_err(|e| Error::arrow(&self.path, e))?;
        self.writer.get_mut().get_mut().end_part();
        Ok(())
    }

    fn finish(self) -> Result<Output> {
        let Self { path, mut writer } = self;
        let checksums = writer.get_mut().get_mut().end_parts();
        writer.write_metadata(checksums::KEY, checksums.clone());
        let output = writer
            .finish()
            .and_then(|()| writer.into_inner())
            .map_err(|e| Error::arrow(&path, e))?;
        let mut output = output
            .into_inner()
            .map_err(|e| Error::io(&path, e.into_error()))?;
        output
            .mark_arrow()
            .and_then(|()| output.end(&checksums))
            .map_err(|e| Error::io(&path, e))?;
        output.take_inner().map_err(|e| Error::io(&path, e))
    }
}
