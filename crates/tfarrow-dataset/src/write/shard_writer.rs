//! Compression of TFRecord frames that are written to a sink.

use std::{
    fmt,
    io::{self, Write},
};

use flate2::write::{GzEncoder, ZlibEncoder};

use super::snappy_writer::SnappyWriter;
use crate::Compression;

/// Writes the bytes of TFRecord frames to a sink, and compresses them.
///
/// [`finish`](Self::finish) must be called at the end.
///
/// ```
/// use std::io::Write;
/// use tfarrow_dataset::{Compression, ShardWriter};
/// # fn main() -> std::io::Result<()> {
/// let mut frame = Vec::new();
/// tfarrow_codec::frame::write(b"a record", &mut frame);
/// let mut writer = ShardWriter::new(Vec::new(), Compression::Gzip);
/// writer.write_all(&frame)?;
/// let shard = writer.finish()?;
/// assert_eq!(Compression::of(&shard), Compression::Gzip);
/// # Ok(()) }
/// ```
pub struct ShardWriter<W: Write> {
    sink: Sink<W>,
}

/// The sink, and the compressor that writes to it.
enum Sink<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zlib(ZlibEncoder<W>),
    Snappy(Box<SnappyWriter<W>>),
}

impl<W: Write> ShardWriter<W> {
    /// Writes to `sink`, with the default level of zlib, as TensorFlow does.
    pub fn new(sink: W, compression: Compression) -> Self {
        Self::with_level(sink, compression, flate2::Compression::default().level())
    }

    /// Writes to `sink`, with a level of zlib from 0, which does not compress, to 9. Higher levels
    /// are 9. Snappy has no levels.
    pub fn with_level(sink: W, compression: Compression, level: u32) -> Self {
        let level = flate2::Compression::new(level.min(9));
        let sink = match compression {
            Compression::None => Sink::Plain(sink),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(sink, level)),
            Compression::Zlib => Sink::Zlib(ZlibEncoder::new(sink, level)),
            Compression::Snappy => Sink::Snappy(Box::new(SnappyWriter::new(sink))),
        };
        Self { sink }
    }

    /// The sink, to which all or most of the compressed bytes so far are written.
    pub fn get_mut(&mut self) -> &mut W {
        match &mut self.sink {
            Sink::Plain(sink) => sink,
            Sink::Gzip(encoder) => encoder.get_mut(),
            Sink::Zlib(encoder) => encoder.get_mut(),
            Sink::Snappy(writer) => writer.get_mut(),
        }
    }

    /// Writes the rest, and returns the sink. Without this call, a compressed shard is truncated.
    ///
    /// # Errors
    /// An error of the sink.
    pub fn finish(self) -> io::Result<W> {
        match self.sink {
            Sink::Plain(mut sink) => {
                sink.flush()?;
                Ok(sink)
            }
            Sink::Gzip(encoder) => encoder.finish(),
            Sink::Zlib(encoder) => encoder.finish(),
            Sink::Snappy(writer) => writer.finish(),
        }
    }
}

impl<W: Write> Write for ShardWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Plain(sink) => sink.write(bytes),
            Sink::Gzip(sink) => sink.write(bytes),
            Sink::Zlib(sink) => sink.write(bytes),
            Sink::Snappy(sink) => sink.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Plain(sink) => sink.flush(),
            Sink::Gzip(sink) => sink.flush(),
            Sink::Zlib(sink) => sink.flush(),
            Sink::Snappy(sink) => sink.flush(),
        }
    }
}

impl<W: Write> fmt::Debug for ShardWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compression = match self.sink {
            Sink::Plain(_) => Compression::None,
            Sink::Gzip(_) => Compression::Gzip,
            Sink::Zlib(_) => Compression::Zlib,
            Sink::Snappy(_) => Compression::Snappy,
        };
        f.debug_struct("ShardWriter")
            .field("compression", &compression)
            .finish_non_exhaustive()
    }
}
