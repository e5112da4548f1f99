//! Verification of all records.

use std::path::PathBuf;

use pyo3::{prelude::*, types::PyDict};
use serde_json::{Map, json};
use tfarrow_cli::render::{faults_json, faults_summary, faults_text};
use tfarrow_convert::verify_data_set;
use tfarrow_dataset::{FormatFilter, Shard};

use super::{Found, RawReport, warn_files};
use crate::{
    errors::failed,
    interrupt::{Pass, watch},
    options::ReadingOptions,
    rows::warn_all,
};

/// Verifies all records of a data set. Returns the report, and whether there are no faults.
#[pyfunction]
#[pyo3(signature = (sources, options, max_faults=10_000, progress=None))]
pub(crate) fn verify(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    options: &Bound<'_, PyDict>,
    max_faults: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(RawReport, bool)> {
    let (options, pass) = (ReadingOptions::of(options)?, Pass::default());
    let work = || -> tfarrow_convert::Result<_> {
        let found = Found::of(&sources, FormatFilter::ToVerify, Shard::spool_columnar)?;
        pass.expect(found.bytes());
        let Found { shards, skipped_files, missing } = found;
        let (record_type, read) = (options.table.record_type, options.read());
        let verified =
            verify_data_set(shards, record_type, options.threads, read, max_faults, &|bytes, _| pass.add(bytes))?;
        Ok((verified, skipped_files, missing))
    };
    let (verified, skipped_files, missing) = watch(py, &pass, progress, work)?.map_err(|error| failed(py, error))?;
    warn_files(py, &skipped_files, &missing)?;
    warn_all(py, &verified.mixed_records.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let names: Vec<_> = verified.shards.iter().map(|shard| shard.path.to_string_lossy().into_owned()).collect();
    let without: Vec<_> = verified.without_checksums.iter().map(|path| path.to_string_lossy()).collect();
    let mut fields = Map::new();
    fields.insert("files".to_owned(), json!(names.len()));
    fields.insert("without_checksums".to_owned(), json!(without));
    fields.insert("records".to_owned(), json!(verified.found.records));
    fields.insert("bytes".to_owned(), json!(verified.found.bytes));
    let record_type = verified.has_tfrecord.then(|| verified.found.record_type.name());
    fields.insert("record_type".to_owned(), json!(record_type));
    let damage = verified.found.damage;
    let json = faults_json(&names, &damage, fields).map_err(|error| failed(py, error))?;
    let is_valid = damage.is_empty();
    let (files, records) = (names.len(), verified.found.records);
    let text = move |_| {
        let faults = faults_text(&damage);
        let line = if faults.is_empty() { "" } else { "\n" };
        format!("{faults}{line}{files} files, {records} valid records: {}", faults_summary(&damage))
    };
    Ok((RawReport::new(text, json), is_valid))
}
