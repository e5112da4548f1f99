//! Comparison of a data set with a schema and a baseline, as anomalies or as a page.

use std::path::PathBuf;

use pyo3::{prelude::*, types::PyDict};
use tfarrow_codec::infer::RecordObserver;
use tfarrow_dataset::{FormatFilter, Shard};
use tfarrow_report::{
    EventCurves, record_warnings, report_page, report_title, skipped_text, text::Screen,
    validation_json, validation_text,
};
use tfarrow_stats::{
    Comparison, Expected, RecordProfiler, Statistics, read_schema, schema_to_text,
};

use super::RawReport;
use crate::{
    errors::{failed, failed_at},
    found::Found,
    interrupt::{Pass, watch},
    notices::warn_all,
    options::ReadingOptions,
};

/// What a data set is compared with.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ComparisonArguments {
    schema: Option<PathBuf>,
    baseline: Vec<PathBuf>,
    environment: Option<String>,
    max_drift: Option<f64>,
}

/// Validates a data set. Returns the report, whether there are anomalies, and the schema that
/// accepts the data.
#[pyfunction]
#[pyo3(signature = (sources, against, options, progress=None))]
pub(crate) fn validate(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    against: ComparisonArguments,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(RawReport, bool, String)> {
    let (compared, ..) = compare(py, &sources, &against, options, progress, || ())?;
    let json = validation_json(&compared).map_err(|error| failed(py, error))?;
    let updated = schema_to_text(&compared.found.updated).map_err(|error| failed(py, error))?;
    let has_anomalies = compared.has_anomalies();
    let report = RawReport::new(
        move |width| validation_text(&compared, Screen::plain(width)),
        json,
    );
    Ok((report, has_anomalies, updated))
}

/// The report page of a data set as HTML.
#[pyfunction]
#[pyo3(signature = (sources, against, options, title=None, examples=24, progress=None))]
pub(crate) fn report(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    against: ComparisonArguments,
    options: &Bound<'_, PyDict>,
    title: Option<String>,
    examples: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (compared, parts, shards) = compare(py, &sources, &against, options, progress, || {
        RecordProfiler::new(examples)
    })?;
    let names: Vec<_> = sources
        .iter()
        .map(|source| source.to_string_lossy().into_owned())
        .collect();
    let title = title.unwrap_or_else(|| report_title(&names));
    let profile = RecordProfiler::merged(examples, parts).finish();
    let read = ReadingOptions::of(options)?.read();
    let page = py.detach(|| -> anyhow::Result<_> {
        let curves = EventCurves::of_compared(&compared, &profile, &shards, &read)?;
        let html = report_page(&title, &compared, &profile, &shards, &curves, skipped_text);
        Ok((html, curves.note()))
    });
    let (html, note) = page.map_err(|error| failed(py, error))?;
    warn_all(py, note.as_slice())?;
    Ok(html)
}

/// Compares a data set. Returns the comparison, the observers, and the shards of the data set.
fn compare<O: RecordObserver + Send>(
    py: Python<'_>,
    sources: &[PathBuf],
    against: &ComparisonArguments,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
    observer: impl Fn() -> O + Sync + Send,
) -> PyResult<(Comparison, Vec<O>, Vec<Shard>)> {
    let options = ReadingOptions::of(options)?;
    let pass = Pass::default();
    let schema = match &against.schema {
        Some(path) => Some(read_schema(path).map_err(|error| failed_at(py, &error.into(), path))?),
        None => None,
    };
    let compared = watch(py, &pass, progress, || -> tfarrow_dataset::Result<_> {
        let found = Found::of(sources, FormatFilter::Any, Shard::spool_for_scan)?;
        pass.expect(found.bytes());
        let infer = options.infer();
        let baseline = match against.baseline.as_slice() {
            [] => None,
            baseline => {
                let before = Found::of(baseline, FormatFilter::Any, Shard::spool_for_scan)?;
                pass.expect(before.bytes());
                Some(Statistics::collect(&before.shards, &infer, &|bytes, _| {
                    pass.add(bytes)
                })?)
            }
        };
        let environment = against.environment.as_deref();
        let max_drift = against.max_drift;
        let expected = Expected {
            schema,
            baseline,
            environment,
            max_drift,
        };
        let compared = Comparison::run_with(
            &found.shards,
            expected,
            &infer,
            &|bytes, _| pass.add(bytes),
            observer,
        )?;
        Ok((found, compared))
    })?;
    let (found, (compared, observers)) = compared.map_err(|error| failed(py, error))?;
    found.warn(py)?;
    warn_all(
        py,
        &record_warnings(&compared.found.statistics.inferred, skipped_text).texts,
    )?;
    Ok((compared, observers, found.shards))
}
