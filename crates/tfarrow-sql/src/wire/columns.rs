//! The columns of a scan.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use datafusion::{common::exec_err, error::Result};
use serde::{Deserialize, Serialize};
use tfarrow_datafusion::internals::Columns;

use crate::wire::ipc::{batch_of_bytes, batch_to_bytes, schema_of_bytes, schema_to_bytes};

/// The columns that a query reads, and those that records are decoded to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ColumnsWire {
    /// The schema that a query reads.
    pub schema: Vec<u8>,
    /// The schema that records are decoded to; empty if that is the same.
    pub decoded: Vec<u8>,
    /// The numbers of the columns that are cast to the type that a query reads.
    pub cast: Vec<usize>,
    /// The defaults of columns: a batch of one row, whose columns are named by the numbers; empty
    /// if there are none.
    pub defaults: Vec<u8>,
}

impl ColumnsWire {
    pub(super) fn of(columns: &Columns) -> Result<Self> {
        let decoded = match columns.schema() == columns.decoded_schema() {
            true => Vec::new(),
            false => schema_to_bytes(columns.decoded_schema())?,
        };
        let cast = (0..columns.schema().fields().len())
            .filter(|column| !columns.is_as_decoded(*column))
            .collect();
        let defaults = defaults_to_bytes(columns.defaults())?;
        Ok(Self {
            schema: schema_to_bytes(columns.schema())?,
            decoded,
            cast,
            defaults,
        })
    }

    pub(super) fn columns(&self) -> Result<Columns> {
        let schema = schema_of_bytes(&self.schema)?;
        let decoded = if self.decoded.is_empty() {
            Arc::clone(&schema)
        } else {
            schema_of_bytes(&self.decoded)?
        };
        let defaults = if self.defaults.is_empty() {
            HashMap::new()
        } else {
            defaults_of_bytes(&self.defaults)?
        };
        let cast = self.cast.iter().copied();
        Columns::of_parts(schema, decoded, cast, defaults)
    }
}

fn defaults_to_bytes<'c>(defaults: impl Iterator<Item = (usize, &'c ArrayRef)>) -> Result<Vec<u8>> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (column, array) in defaults {
        let data_type = array.data_type().clone();
        fields.push(Field::new(column.to_string(), data_type, true));
        arrays.push(Arc::clone(array));
    }
    if arrays.is_empty() {
        return Ok(Vec::new());
    }
    batch_to_bytes(&RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        arrays,
    )?)
}

fn defaults_of_bytes(bytes: &[u8]) -> Result<HashMap<usize, ArrayRef>> {
    let batch = batch_of_bytes(bytes)?;
    let schema = batch.schema();
    let mut defaults = HashMap::new();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        match field.name().parse::<usize>() {
            Ok(column) if array.len() == 1 => {
                defaults.insert(column, Arc::clone(array));
            }
            _ => return exec_err!("the plan has an invalid default of a column"),
        }
    }
    Ok(defaults)
}
