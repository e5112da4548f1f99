//! The results of parts of a data set that several processes read, and their merge.

use std::path::PathBuf;

use anyhow::Context;
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use tfarrow_dataset::{FormatFilter, Part};
use tfarrow_report::{
    InferredSchema, PartSettings, StatisticsReport, record_warnings, schema_warnings, skipped_text,
};
use tfarrow_scan::{InferOptions, Sample};
use tfarrow_stats::{MergedContent, MergedResult, PartMerger, PartWork, PartialResult};

use super::{RawReport, schema::RawSchema, stats::reported};
use crate::{
    errors::{failed, usage},
    found::Found,
    interrupt::{Pass, watch},
    notices::warn_all,
    options::ReadingOptions,
};

/// Reads a part of a data set for `stats`, or for `schema`. Returns the result of the part, as
/// `--partial` of the program writes it.
#[pyfunction]
#[pyo3(signature = (command, sources, part, options, by=None, progress=None))]
pub(crate) fn read_part<'py>(
    py: Python<'py>,
    command: &str,
    sources: Vec<PathBuf>,
    part: (usize, usize),
    options: &Bound<'py, PyDict>,
    by: Option<String>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (index, count) = part;
    let Some(part) = Part::new(index, count) else {
        return Err(usage(
            py,
            &format!(
                "part: expected a number from 0 and the number of parts, found ({index}, {count})"
            ),
        ));
    };
    let options = ReadingOptions::of(options)?;
    let pass = Pass::default();
    let layout = options.table.layout;
    let record_type = options.table.record_type;
    let is_schema = match command {
        "schema" => true,
        "stats" => false,
        other => {
            return Err(usage(
                py,
                &format!("work: expected schema or stats, found {other:?}"),
            ));
        }
    };
    let result = watch(py, &pass, progress, || -> anyhow::Result<_> {
        let mut found = Found::of(&sources, FormatFilter::Any, |_| Ok(()))?;
        PartialResult::check_sources(&found.shards)?;
        part.spool_for_scan(&mut found.shards)?;
        pass.expect(
            found
                .shards
                .get(part.range(&found.shards))
                .unwrap_or_default()
                .iter()
                .map(|shard| shard.size)
                .sum(),
        );
        let settings = PartSettings {
            command: command.to_owned(),
            sources: sources
                .iter()
                .map(|source| source.to_string_lossy().into_owned())
                .collect(),
            format: Some("table".to_owned()),
            layout: is_schema.then_some(layout),
            record_type: record_type.filter(|_| is_schema),
            ..PartSettings::default()
        };
        let infer = InferOptions {
            part: Some(part),
            sample: Sample::All,
            ..options.infer()
        };
        let work = match &by {
            _ if is_schema => PartWork::Columns,
            Some(by) => PartWork::Slices(by),
            None => PartWork::Statistics,
        };
        let result = PartialResult::read(
            &found.shards,
            work,
            settings.to_map()?,
            &infer,
            &|bytes, _| pass.add(bytes),
        )?
        .with_notes(found.notes());
        Ok((found, result.to_bytes()))
    })?;
    let (found, bytes) = result.map_err(|error| failed(py, error))?;
    found.warn(py)?;
    Ok(PyBytes::new(py, &bytes))
}

/// A schema, or statistics with their message.
type MergedParts = (Option<RawSchema>, Option<(RawReport, Vec<u8>)>);

/// Merges the results of all parts.
#[pyfunction]
pub(crate) fn merge(py: Python<'_>, parts: Vec<Vec<u8>>) -> PyResult<MergedParts> {
    let merged = py.detach(|| -> anyhow::Result<_> {
        let mut merger = PartMerger::default();
        for (index, part) in parts.iter().enumerate() {
            let part = PartialResult::from_bytes(part)
                .with_context(|| format!("item {index} of the parts"))?;
            merger
                .add(part)
                .with_context(|| format!("item {index} of the parts"))?;
        }
        Ok(merger.finish()?)
    });
    let MergedResult {
        shards,
        settings,
        notes: _,
        content,
    } = merged.map_err(|error| failed(py, error))?;
    let settings = PartSettings::parse(&settings).map_err(|error| failed(py, error))?;
    match content {
        MergedContent::Columns(inferred, probable) => {
            let layout = settings.layout.unwrap_or_default();
            let found = InferredSchema::new(shards, inferred, layout, settings.record_type);
            let found = found
                .map_err(|error| failed(py, error))?
                .with_probable(probable);
            warn_all(py, &schema_warnings(&found, skipped_text).texts)?;
            Ok((Some(RawSchema::new(found, settings.sources)), None))
        }
        MergedContent::Statistics(all) => {
            let report = StatisticsReport::new(all.summarize());
            Ok((
                None,
                Some(reported(
                    py,
                    &record_warnings(&all.inferred, skipped_text).texts,
                    report,
                )?),
            ))
        }
        MergedContent::Slices(by, sliced) => {
            let report = StatisticsReport::sliced(&sliced, &by);
            Ok((
                None,
                Some(reported(
                    py,
                    &record_warnings(&sliced.all.inferred, skipped_text).texts,
                    report,
                )?),
            ))
        }
        MergedContent::Comparison(..) => Err(usage(
            py,
            "these are parts of validate or report, which `tfarrow merge` of the program merges",
        )),
    }
}
