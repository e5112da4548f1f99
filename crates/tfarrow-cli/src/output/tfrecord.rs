//! TFRecord on standard output.

use std::io;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tfarrow_codec::{Writer, schema_of_rows};

use super::{
    rows::{Rows, of_arrow},
    sink::Out,
};

/// Writes a record for each row: an Example, or a record of the type of the table if its columns
/// are those of such records.
pub(super) struct TfRecord(Writer<Out>);

impl TfRecord {
    pub(super) fn new(out: Out, schema: &SchemaRef) -> io::Result<Self> {
        Writer::new(out, schema_of_rows(schema))
            .map(Self)
            .map_err(io::Error::other)
    }
}

impl Rows for TfRecord {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        self.0.write(batch).map_err(of_arrow)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish().map_err(of_arrow)
    }
}
