//! Verification of all records.

use std::path::PathBuf;

use pyo3::{prelude::*, types::PyDict};
use tfarrow_dataset::{FormatFilter, Shard};
use tfarrow_report::{text::Screen, verified_json, verified_text};
use tfarrow_scan::VerifyOptions;

use super::RawReport;
use crate::{
    errors::failed,
    found::{Found, warn_files},
    interrupt::{Pass, watch},
    notices::warn_all,
    options::ReadingOptions,
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
    let options = ReadingOptions::of(options)?;
    let pass = Pass::default();
    let verified = watch(py, &pass, progress, || -> tfarrow_convert::Result<_> {
        let found = Found::of(&sources, FormatFilter::ToVerify, Shard::spool_columnar)?;
        pass.expect(found.bytes());
        let Found {
            shards,
            skipped_files,
            missing,
            splits: _,
        } = found;
        let options = VerifyOptions {
            record_type: options.table.record_type,
            threads: options.threads,
            read: options.read(),
            max_faults,
        };
        let verified = tfarrow_scan::verify(shards, &options, &|bytes, _| pass.add(bytes))?;
        Ok((verified, skipped_files, missing))
    })?;
    let (verified, skipped_files, missing) = verified.map_err(|error| failed(py, error))?;
    warn_files(py, &skipped_files, &missing, &verified.splits)?;
    warn_all(
        py,
        &verified
            .mixed_records
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    )?;
    let json =
        verified_json(&verified, &skipped_files, &missing).map_err(|error| failed(py, error))?;
    let is_valid = verified.damage.is_empty();
    Ok((
        RawReport::new(move |_| verified_text(&verified, Screen::plain(None)), json),
        is_valid,
    ))
}
