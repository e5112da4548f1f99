//! The number of records.

use std::{ffi::OsString, path::PathBuf};

use pyo3::{prelude::*, types::PyDict};
use tfarrow_dataset::{FormatFilter, Shard};
use tfarrow_index::IndexPlace;
use tfarrow_scan::count as count_shards;

use crate::{
    errors::failed,
    found::Found,
    interrupt::{Pass, watch},
    notices::warn,
    options::ReadingOptions,
};

/// The path of each shard, as a string, and its number of records. Warns of skipped bytes and
/// files.
#[pyfunction]
#[pyo3(signature = (sources, options, progress=None))]
pub(crate) fn count(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(OsString, u64)>> {
    let options = ReadingOptions::of(options)?;
    let pass = Pass::default();
    let counted = watch(py, &pass, progress, || -> tfarrow_convert::Result<_> {
        let found = Found::of(&sources, FormatFilter::Any, Shard::spool_columnar)?;
        pass.expect(found.bytes());
        let counted = count_shards(
            &found.shards,
            &options.read(),
            options.threads,
            Some(&IndexPlace::Beside),
            &|bytes, _| pass.add(bytes),
        )?;
        Ok((found, counted))
    })?;
    let (found, counted) = counted.map_err(|error| failed(py, error))?;
    found.warn(py)?;
    let mut warnings = Vec::new();
    for error in &counted.wrong_lengths {
        warnings.push(error.to_string());
    }
    for index in &counted.unusable {
        warnings.push(index.to_string());
    }
    warn(py, &counted.damage, &warnings)?;
    Ok(found
        .shards
        .into_iter()
        .map(|shard| shard.path.into())
        .zip(counted.records)
        .collect())
}
