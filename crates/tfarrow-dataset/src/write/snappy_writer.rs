//! Writing of TensorFlow's Snappy streams, whose blocks the module `snappy` describes.

use std::io::{self, Write};

use snap::raw::Encoder;

/// Number of bytes of a block. TensorFlow reads blocks of up to 256 KiB, and Snappy finds no
/// repetition over more than 64 KiB.
const BLOCK_BYTES: usize = 64 << 10;

/// Compresses bytes in blocks, each after the length of its compressed bytes.
pub(crate) struct SnappyWriter<W: Write> {
    sink: W,
    /// The bytes of the next block, fewer than [`BLOCK_BYTES`].
    pending: Vec<u8>,
    encoder: Encoder,
}

impl<W: Write> SnappyWriter<W> {
    pub(crate) fn new(sink: W) -> Self {
        Self {
            sink,
            pending: Vec::with_capacity(BLOCK_BYTES),
            encoder: Encoder::new(),
        }
    }

    /// The sink, to which all complete blocks are written.
    pub(crate) fn get_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    /// Writes the last block, and returns the sink.
    ///
    /// # Errors
    /// An error of the sink.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.sink)
    }

    fn write_block(&mut self) -> io::Result<()> {
        let block = self
            .encoder
            .compress_vec(&self.pending)
            .map_err(io::Error::other)?;
        let length = u32::try_from(block.len()).map_err(io::Error::other)?;
        self.sink.write_all(&length.to_be_bytes())?;
        self.sink.write_all(&block)?;
        self.pending.clear();
        Ok(())
    }
}

impl<W: Write> Write for SnappyWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(BLOCK_BYTES - self.pending.len());
        self.pending
            .extend_from_slice(bytes.get(..count).unwrap_or_default());
        if self.pending.len() == BLOCK_BYTES {
            self.write_block()?;
        }
        Ok(count)
    }

    /// Writes the bytes so far as a block, which may be short.
    fn flush(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.write_block()?;
        }
        self.sink.flush()
    }
}
