//! TFRecord files: pieces are frames, which are encoded from rows, or copied from another TFRecord
//! file.

use std::{
    io::Write,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_schema::SchemaRef;
use tfarrow_codec::{Encoder, WriterBuilder};
use tfarrow_dataset::{Compression, ShardWriter};

use super::{FileFormat, LossyChanges, PieceWriter, RowEncoder, RowFormat, WritePiece};
use crate::{Error, OutputCompression, Result, output::Output};

/// Minimum bytes of the frames in a piece, except for the last piece of a unit.
const PIECE_BYTES: usize = 4 << 20;

/// TFRecord files with this compression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TfRecordFileFormat {
    pub(crate) compression: Compression,
    /// The level of gzip and zlib; by default that of zlib.
    pub(crate) level: Option<u32>,
}

impl FileFormat for TfRecordFileFormat {
    type Piece = Buffer;
    type Writer = TfRecordFileWriter;

    fn create(&self, path: &Path, output: Output) -> Result<TfRecordFileWriter> {
        Ok(TfRecordFileWriter {
            path: path.to_owned(),
            writer: self.writer(output),
        })
    }

    fn held_bytes(frames: &Buffer) -> usize {
        frames.len()
    }
}

impl TfRecordFileFormat {
    fn writer(self, output: Output) -> ShardWriter<Output> {
        match self.level {
            Some(level) => ShardWriter::with_level(output, self.compression, level),
            None => ShardWriter::new(output, self.compression),
        }
    }
}

/// TFRecord files whose records are encoded from rows with this schema.
#[derive(Clone, Debug)]
pub(crate) struct TfRecordRowFormat {
    pub(crate) file: TfRecordFileFormat,
    pub(crate) builder: WriterBuilder,
    pub(crate) schema: SchemaRef,
}

impl FileFormat for TfRecordRowFormat {
    type Piece = Buffer;
    type Writer = TfRecordFileWriter;

    fn create(&self, path: &Path, output: Output) -> Result<TfRecordFileWriter> {
        self.file.create(path, output)
    }

    fn held_bytes(frames: &Buffer) -> usize {
        TfRecordFileFormat::held_bytes(frames)
    }
}

impl RowFormat for TfRecordRowFormat {
    type Encoder<'f> = FrameEncoder;

    fn encoder(&self) -> Result<FrameEncoder> {
        let encoder = self.builder.clone().build_encoder(Arc::clone(&self.schema));
        let encoder = encoder.map_err(|source| Error::Columns { path: None, source })?;
        Ok(FrameEncoder {
            encoder,
            frames: Vec::new(),
        })
    }
}

/// Encodes rows as frames.
pub(crate) struct FrameEncoder {
    encoder: Encoder,
    frames: Vec<u8>,
}

impl RowEncoder for FrameEncoder {
    type Piece = Buffer;

    fn begin_file(&mut self, is_text: bool) {
        // The digits of a text are no choice of float64, and records have no other floats than
        // float32.
        self.encoder.set_rounding(is_text);
    }

    fn encode(
        &mut self,
        path: &Path,
        batch: RecordBatch,
        write: &mut WritePiece<'_, Buffer>,
    ) -> Result<()> {
        self.encoder
            .encode(&batch, &mut self.frames)
            .map_err(|e| Error::codec(path, e))?;
        if self.frames.len() < PIECE_BYTES {
            Ok(())
        } else {
            write(mem::take(&mut self.frames).into())
        }
    }

    fn end_unit(&mut self, _path: &Path, write: &mut WritePiece<'_, Buffer>) -> Result<()> {
        write(mem::take(&mut self.frames).into())
    }

    fn lossy_changes(&self) -> LossyChanges {
        let mut changes = LossyChanges::new();
        for (column, change, count) in self.encoder.losses() {
            changes.insert(format!("column {column:?}: {change}"), count);
        }
        changes
    }
}

/// Writes a TFRecord file.
pub(crate) struct TfRecordFileWriter {
    path: PathBuf,
    writer: ShardWriter<Output>,
}

impl PieceWriter for TfRecordFileWriter {
    type Piece = Buffer;

    fn write(&mut self, frames: Buffer) -> Result<()> {
        self.writer
            .write_all(&frames)
            .map_err(|e| Error::io(&self.path, e))
    }

    fn finish(self) -> Result<Output> {
        self.writer.finish().map_err(|e| Error::io(&self.path, e))
    }
}

/// The compression of a TFRecord file. `Original` must be resolved before. Compressions of other
/// formats are `None`.
pub(crate) fn compression_of(compression: OutputCompression) -> Compression {
    match compression {
        OutputCompression::Gzip => Compression::Gzip,
        OutputCompression::Zlib => Compression::Zlib,
        OutputCompression::Snappy => Compression::Snappy,
        OutputCompression::None
        | OutputCompression::Zstd
        | OutputCompression::Lz4
        | OutputCompression::Original => Compression::None,
    }
}
