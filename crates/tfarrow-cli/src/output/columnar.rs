//! Parquet and Arrow IPC files on standard output.

use std::io;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_ipc::{
    MetadataVersion,
    writer::{FileWriter, IpcWriteOptions},
};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
};

use tfarrow_codec::schema_of_rows;
use tfarrow_datafusion::without_views;

use super::{
    rows::{Rows, of_arrow},
    sink::Out,
};

/// A schema without view types, which not all readers support, and with the record type only if its
/// columns are those of such records.
struct Plain(SchemaRef);

impl Plain {
    fn new(schema: &SchemaRef) -> Self {
        Self(without_views(&schema_of_rows(schema)))
    }

    fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns =
            batch
                .columns()
                .iter()
                .zip(self.0.fields())
                .map(|(column, field)| match column.data_type() {
                    same if same == field.data_type() => Ok(ArrayRef::clone(column)),
                    _ => cast(column, field.data_type()),
                });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(
            SchemaRef::clone(&self.0),
            columns.collect::<Result<_, _>>()?,
            &options,
        )
    }
}

/// Writes batches as one Parquet file.
pub(super) struct Parquet {
    writer: ArrowWriter<Out>,
    plain: Plain,
}

impl Parquet {
    pub(super) fn new(out: Out, schema: &SchemaRef) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let plain = Plain::new(schema);
        let writer = ArrowWriter::try_new(out, SchemaRef::clone(&plain.0), Some(properties));
        Ok(Self {
            writer: writer.map_err(of_parquet)?,
            plain,
        })
    }
}

impl Rows for Parquet {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let batch = self.plain.batch(batch).map_err(of_arrow)?;
        self.writer.write(&batch).map_err(of_parquet)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.finish().map_err(of_parquet)?;
        Ok(())
    }
}

/// Writes batches as one Arrow IPC file.
pub(super) struct Arrow {
    writer: FileWriter<Out>,
    plain: Plain,
}

impl Arrow {
    pub(super) fn new(out: Out, schema: &SchemaRef) -> io::Result<Self> {
        let plain = Plain::new(schema);
        // The format has 8 bytes before the first message, and some readers expect it there.
        let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5).map_err(of_arrow)?;
        let writer = FileWriter::try_new_with_options(out, &plain.0, options).map_err(of_arrow)?;
        Ok(Self { writer, plain })
    }
}

impl Rows for Arrow {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let batch = self.plain.batch(batch).map_err(of_arrow)?;
        self.writer.write(&batch).map_err(of_arrow)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.finish().map_err(of_arrow)
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
