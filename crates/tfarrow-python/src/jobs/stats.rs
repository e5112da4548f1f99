//! Statistics of the values of a data set, and the schema that TensorFlow Data Validation infers
//! from them.

use std::path::PathBuf;

use prost::Message;
use pyo3::{prelude::*, types::PyDict};
use tfarrow_dataset::{FormatFilter, Shard};
use tfarrow_report::{
    StatisticsReport, record_warnings, skipped_text,
    text::{Screen, pretty_json},
};
use tfarrow_stats::{Statistics, schema_to_text};

use super::RawReport;
use crate::{
    errors::failed,
    found::Found,
    interrupt::{Pass, watch},
    notices::warn_all,
    options::ReadingOptions,
};

/// Statistics of a data set, and of its slices by a feature, with the message of TensorFlow
/// Metadata as bytes.
#[pyfunction]
#[pyo3(signature = (sources, options, by=None, progress=None))]
pub(crate) fn stats(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    options: &Bound<'_, PyDict>,
    by: Option<String>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(RawReport, Vec<u8>)> {
    let options = ReadingOptions::of(options)?;
    let pass = Pass::default();
    let collected = watch(py, &pass, progress, || -> anyhow::Result<_> {
        let found = Found::of(&sources, FormatFilter::Any, Shard::spool_for_scan)?;
        pass.expect(found.bytes());
        let infer = options.infer();
        let (all, report) = match &by {
            None => {
                let all = Statistics::collect(&found.shards, &infer, &|bytes, _| pass.add(bytes))?;
                let report = StatisticsReport::new(all.summarize());
                (all, report)
            }
            Some(by) => {
                let sliced = Statistics::collect_sliced(
                    &found.shards,
                    &infer,
                    &|bytes, _| pass.add(bytes),
                    by,
                )?;
                let report = StatisticsReport::sliced(&sliced, by);
                (sliced.all, report)
            }
        };
        Ok((
            found,
            record_warnings(&all.inferred, skipped_text).texts,
            report,
        ))
    })?;
    let (found, warnings, report) = collected.map_err(|error| failed(py, error))?;
    found.warn(py)?;
    reported(py, &warnings, report)
}

/// Warns, and returns the statistics with their message.
pub(super) fn reported(
    py: Python<'_>,
    warnings: &[String],
    report: StatisticsReport,
) -> PyResult<(RawReport, Vec<u8>)> {
    warn_all(py, warnings)?;
    let json = pretty_json(&report).map_err(|error| failed(py, error))?;
    let message = report.to_proto().encode_to_vec();
    Ok((
        RawReport::new(move |width| report.text(Screen::plain(width)), json),
        message,
    ))
}

/// The schema that TensorFlow Data Validation would infer, in text format.
#[pyfunction]
#[pyo3(signature = (sources, options, progress=None))]
pub(crate) fn schema_pbtxt(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = ReadingOptions::of(options)?;
    let pass = Pass::default();
    let statistics = watch(py, &pass, progress, || -> tfarrow_dataset::Result<_> {
        let found = Found::of(&sources, FormatFilter::Any, Shard::spool_for_scan)?;
        pass.expect(found.bytes());
        Statistics::collect(&found.shards, &options.infer(), &|bytes, _| pass.add(bytes))
    })?;
    let statistics = statistics.map_err(|error| failed(py, error))?;
    schema_to_text(&statistics.infer_schema()).map_err(|error| failed(py, error))
}
