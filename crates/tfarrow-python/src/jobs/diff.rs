//! Comparison of two data sets, record by record.

use std::path::PathBuf;

use pyo3::{prelude::*, types::PyDict};
use tfarrow_cli::render::{diff_json, diff_text};
use tfarrow_convert::{DiffOptions, Progress, diff as diff_sources};

use super::RawReport;
use crate::{
    errors::failed,
    found::warn_files,
    interrupt::watch,
    notices::{warn, warn_all},
    options::ReadingOptions,
};

/// Compares two data sets. Returns the report, and whether they are equal.
#[pyfunction]
#[pyo3(signature = (left, right, options, max_differences=10, progress=None))]
pub(crate) fn diff(
    py: Python<'_>,
    left: Vec<PathBuf>,
    right: Vec<PathBuf>,
    options: &Bound<'_, PyDict>,
    max_differences: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(RawReport, bool)> {
    let (options, counters) = (ReadingOptions::of(options)?, Progress::default());
    let options = DiffOptions { record_type: options.table.record_type, read: options.read(), max_differences };
    let work = || diff_sources(&left, &right, &options, &counters);
    let found = watch(py, &counters, progress, work)?.map_err(|error| failed(py, error))?;
    found.other_files.iter().try_for_each(|other| warn_files(py, &other.skipped_files, &other.missing))?;
    found.skipped.iter().try_for_each(|skipped| warn(py, skipped, &[]))?;
    warn_all(py, &found.why_raw.iter().cloned().collect::<Vec<_>>())?;
    let json = diff_json(&found).map_err(|error| failed(py, error))?;
    let is_equal = found.is_equal();
    let names = [&left, &right]
        .map(|sources| sources.iter().map(|source| source.to_string_lossy()).collect::<Vec<_>>().join(", "));
    let text = move |_| diff_text(names.each_ref().map(String::as_str), &found);
    Ok((RawReport::new(text, json), is_equal))
}
