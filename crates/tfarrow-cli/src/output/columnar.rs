//! Parquet and Arrow IPC files on standard output, for other programs.

use std::io;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
};

use super::{Out, Rows};

/// Writes batches as one Parquet file.
pub(super) struct Parquet(ArrowWriter<Out>);

impl Parquet {
    pub(super) fn new(out: Out, schema: &SchemaRef) -> io::Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let writer = ArrowWriter::try_new(out, SchemaRef::clone(schema), Some(properties));
        Ok(Self(writer.map_err(of_parquet)?))
    }
}

impl Rows for Parquet {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(of_parquet)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map_err(of_parquet)?;
        Ok(())
    }
}

/// Writes batches as one Arrow IPC file.
pub(super) struct Arrow(FileWriter<Out>);

impl Arrow {
    pub(super) fn new(out: Out, schema: &SchemaRef) -> io::Result<Self> {
        Ok(Self(FileWriter::try_new(out, schema).map_err(of_arrow)?))
    }
}

impl Rows for Arrow {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(of_arrow)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map_err(of_arrow)
    }
}

/// The system's own error where there is one: a closed pipe is known by it.
fn of_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}
