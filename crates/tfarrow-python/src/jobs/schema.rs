//! The inferred schema of a data set.

use std::path::PathBuf;

use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict},
};
use tfarrow_cli::render::{InferredSchema, SchemaFormat, schema_omissions, schema_text, schema_warnings};

use crate::{
    capsule::export_schema,
    errors::{failed, usage},
    notices::warn_all,
    options::ReadingOptions,
    source::{InferredFor, inferred},
};

/// The schema of a data set, and the counts that it was inferred from.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawSchema {
    found: InferredSchema,
    sources: Vec<String>,
}

/// Infers the schema of a data set from all records, or from a sample. Warns of skipped records and features of several
/// kinds.
#[pyfunction]
#[pyo3(signature = (sources, options, progress=None))]
pub(crate) fn schema(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawSchema> {
    let options = ReadingOptions::of(options)?;
    let (shards, inferred) = inferred(py, &sources, &options, InferredFor::Records, progress)?;
    let found = InferredSchema::new(shards, inferred, options.table.layout, options.table.record_type);
    let found = found.and_then(|found| found.with_probable_payload(&options.read()));
    let found = found.map_err(|error| failed(py, error))?;
    warn_all(py, &schema_warnings(&found))?;
    let sources = sources.iter().map(|source| source.to_string_lossy().into_owned()).collect();
    Ok(RawSchema { found, sources })
}

impl RawSchema {
    pub(super) fn new(found: InferredSchema, sources: Vec<String>) -> Self {
        Self { found, sources }
    }
}

#[pymethods]
impl RawSchema {
    /// The schema in a format of the program: `table`, `json`, `arrow`, `python`, `rust`, `sql`, `features-json`.
    #[pyo3(signature = (format="table", width=None))]
    fn text(&self, py: Python<'_>, format: &str, width: Option<usize>) -> PyResult<String> {
        let unknown = || usage(py, &format!("there is no format {format:?} of a schema"));
        let format = SchemaFormat::from_name(format).ok_or_else(unknown)?;
        let text = schema_text(&self.found, format, &self.sources, width).map_err(|error| failed(py, error))?;
        warn_all(py, &schema_omissions(&self.found, format))?;
        Ok(text)
    }

    /// The sources.
    #[getter]
    fn sources(&self) -> Vec<String> {
        self.sources.clone()
    }

    #[getter]
    fn num_records(&self) -> u64 {
        self.found.inferred().summary.records()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, self.found.schema())
    }
}
