//! The inferred schema of a data set.

use std::path::PathBuf;

use arrow_schema::SchemaRef;
use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict},
};
use tfarrow_codec::MessageType;
use tfarrow_dataset::{Shard, event_message, internals::are_events};
use tfarrow_report::{
    InferredSchema, SchemaFormat, message_schema_text, schema_omissions, schema_text,
    schema_warnings, skipped_text, text::Screen,
};

use crate::{
    capsule::export_schema,
    errors::{failed, usage},
    notices::warn_all,
    options::ReadingOptions,
    source::{inferred, listed},
};

/// The schema of a data set, and the counts that it was inferred from.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawSchema {
    columns: SchemaColumns,
    sources: Vec<String>,
}

/// The columns of a data set.
enum SchemaColumns {
    /// Inferred from records.
    Inferred(Box<InferredSchema>),
    /// Those of TensorBoard's events, of which no record was read.
    Events {
        message: MessageType,
        schema: SchemaRef,
    },
}

/// Infers the schema of a data set from all records, or from a sample. The schema of TensorBoard's
/// events follows from their definition. Warns of skipped records and features of several kinds.
#[pyfunction]
#[pyo3(signature = (sources, options, progress=None))]
pub(crate) fn schema(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawSchema> {
    let options = ReadingOptions::of(options)?;
    let shards = listed(py, &sources, Shard::spool_for_scan)?.shards;
    let sources = sources
        .iter()
        .map(|source| source.to_string_lossy().into_owned())
        .collect();
    if options.table.record_type.is_none() && are_events(&shards) {
        let message = event_message().map_err(|error| failed(py, error))?;
        let schema = message
            .schema(&options.table.limits)
            .map_err(|error| failed(py, tfarrow_dataset::Error::from(error)))?;
        return Ok(RawSchema {
            columns: SchemaColumns::Events { message, schema },
            sources,
        });
    }
    let inferred = inferred(py, &shards, &options, progress)?;
    let found = InferredSchema::new(
        shards,
        inferred,
        options.table.layout,
        options.table.record_type,
    );
    let found = found.and_then(|found| found.with_probable_payload(&options.read()));
    let found = found.map_err(|error| failed(py, error))?;
    warn_all(py, &schema_warnings(&found, skipped_text).texts)?;
    Ok(RawSchema::new(found, sources))
}

impl RawSchema {
    pub(super) fn new(found: InferredSchema, sources: Vec<String>) -> Self {
        Self {
            columns: SchemaColumns::Inferred(Box::new(found)),
            sources,
        }
    }
}

#[pymethods]
impl RawSchema {
    /// The schema in a format of the program: `table`, `json`, `arrow`, `python`, `rust`, `sql`,
    /// `features-json`.
    #[pyo3(signature = (format="table", width=None))]
    fn text(&self, py: Python<'_>, format: &str, width: Option<usize>) -> PyResult<String> {
        let Some(format) = SchemaFormat::from_name(format) else {
            return Err(usage(
                py,
                &format!("there is no format {format:?} of a schema"),
            ));
        };
        let screen = Screen::plain(width);
        let text = match &self.columns {
            SchemaColumns::Inferred(found) => schema_text(found, format, &self.sources, screen),
            SchemaColumns::Events { message, schema } => {
                message_schema_text(message, schema, format, screen)
            }
        };
        let text = text.map_err(|error| failed(py, error))?;
        if let SchemaColumns::Inferred(found) = &self.columns {
            warn_all(py, &schema_omissions(found, format))?;
        }
        Ok(text)
    }

    /// The sources.
    #[getter]
    fn sources(&self) -> Vec<String> {
        self.sources.clone()
    }

    #[getter]
    fn num_records(&self) -> u64 {
        match &self.columns {
            SchemaColumns::Inferred(found) => found.inferred().summary.records(),
            SchemaColumns::Events { .. } => 0,
        }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        match &self.columns {
            SchemaColumns::Inferred(found) => export_schema(py, found.schema()),
            SchemaColumns::Events { schema, .. } => export_schema(py, schema),
        }
    }
}
