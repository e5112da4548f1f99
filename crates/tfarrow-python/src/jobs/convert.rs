//! Conversion and repair.

use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use pyo3::{
    prelude::*,
    types::{PyBool, PyDict},
};
use tfarrow_codec::{OnConflict, OnError, VerifyCrc};
use tfarrow_convert::{
    ConvertOptions, ConvertReport, OutputCompression, OutputSplit, Progress, Reshard, Target,
    TimestampUnit, convert as convert_sources, dry_run, read_schema, repair as repair_sources,
};
use tfarrow_dataset::{PartialTail, load_message};
use tfarrow_report::{
    FaultReport, conversion_json, plan_json, plan_text, rounded_text, text::Screen,
};

use super::RawReport;
use crate::{
    errors::{failed, usage},
    found::warn_files,
    interrupt::watch,
    notices::{warn, warn_all},
    options::{limits, named, names, record_type, sample},
};

/// Converts a data set. `options` are those of the command, by name.
#[pyfunction]
#[pyo3(signature = (sources, dest, options, progress=None))]
pub(crate) fn convert(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    dest: PathBuf,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawReport> {
    let options = convert_options(options)?;
    let counters = Progress::default();
    run(py, &dest, &counters, progress, || {
        convert_sources(&sources, &dest, &options, &counters)
    })
}

/// Plans a conversion, and writes nothing. `options` are those of [`convert`].
#[pyfunction]
#[pyo3(signature = (sources, dest, options, progress=None))]
pub(crate) fn plan_conversion(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    dest: PathBuf,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawReport> {
    let options = convert_options(options)?;
    let counters = Progress::default();
    let plan = watch(py, &counters, progress, || {
        dry_run(&sources, &dest, &options, &counters)
    })?;
    let plan = plan.map_err(|error| failed(py, error))?;
    warn_files(py, &plan.skipped_files, &plan.missing, &plan.splits)?;
    let json = plan_json(&dest, &plan).map_err(|error| failed(py, error))?;
    Ok(RawReport::new(
        move |width| plan_text(&plan, Screen::plain(width)),
        json,
    ))
}

/// Copies the valid records of TFRecord files.
#[pyfunction]
#[pyo3(signature = (sources, dest, options, progress=None))]
pub(crate) fn repair(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    dest: PathBuf,
    options: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawReport> {
    let options = convert_options(options)?;
    let counters = Progress::default();
    run(py, &dest, &counters, progress, || {
        repair_sources(&sources, &dest, &options, &counters)
    })
}

/// Runs a conversion, warns of what was lost or skipped, and returns the report.
fn run(
    py: Python<'_>,
    dest: &Path,
    counters: &Progress,
    progress: Option<&Bound<'_, PyAny>>,
    convert: impl FnOnce() -> tfarrow_convert::Result<ConvertReport> + Send,
) -> PyResult<RawReport> {
    let report = watch(py, counters, progress, convert)?.map_err(|error| failed(py, error))?;
    reported(py, dest, report)
}

fn convert_options(given: &Bound<'_, PyDict>) -> PyResult<ConvertOptions> {
    let mut options = ConvertOptions::default();
    let mut proto = None::<PathBuf>;
    let mut message = None::<String>;
    for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
        match name.extract::<String>()?.as_str() {
            "proto" => proto = Some(value.extract()?),
            "message" => message = Some(value.extract()?),
            name => set(&mut options, name, &value)?,
        }
    }
    let py = given.py();
    match message {
        Some(_) if options.schema.is_some() => {
            return Err(usage(
                py,
                "schema and message both give the columns: omit one",
            ));
        }
        // The limits are among the options.
        Some(message) => {
            options.schema = Some(message_schema(py, proto.as_deref(), &message, &options)?)
        }
        None if proto.is_some() => {
            return Err(usage(
                py,
                "proto needs message, the name of a message in the file",
            ));
        }
        None => {}
    }
    Ok(options)
}

/// The columns of the messages of a type.
fn message_schema(
    py: Python<'_>,
    proto: Option<&Path>,
    message: &str,
    options: &ConvertOptions,
) -> PyResult<SchemaRef> {
    let message = load_message(proto, message).map_err(|error| failed(py, error))?;
    message
        .schema(&options.read.limits)
        .map_err(|error| failed(py, tfarrow_dataset::Error::from(error)))
}

fn set(options: &mut ConvertOptions, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = value.py();
    let text = || {
        value
            .extract::<String>()
            .map_err(|_| usage(py, &format!("{name}: expected a name")))
    };
    let number = || {
        let number = value.extract::<usize>().ok().filter(|number| *number > 0);
        number.ok_or_else(|| usage(py, &format!("{name}: expected a number from 1")))
    };
    match name {
        "to" => options.to = Some(named::<Target>(py, name, &text()?)?),
        "layout" => options.layout = named(py, name, &text()?)?,
        "compression" => {
            let known = OutputCompression::with_level(&text()?)
                .map_err(|error| usage(py, &format!("{name}: {error}")))?;
            (options.compression, options.compression_level) = (Some(known.0), known.1);
        }
        "threads" => options.jobs = number()?,
        "schema" => {
            let path: PathBuf = value.extract()?;
            options.schema = Some(read_schema(&path).map_err(|error| failed(py, error))?);
        }
        "columns" => options.columns = names(name, value)?,
        "exclude" => options.exclude = names(name, value)?,
        "sample" => options.sample = sample(py, value)?,
        "shards" => options.reshard = Some(Reshard::Shards(number()? as u64)),
        "shard_size" => options.reshard = Some(Reshard::Bytes(number()? as u64)),
        "partition_by" => options.partition_by = names(name, value)?,
        "shuffle" => options.shuffle = Some(seed(py, name, value)?),
        "fraction" => options.fraction = Some(fraction(name, value)?),
        "split" => options.splits = splits(value)?,
        "seed" => options.seed = Some(seed(py, name, value)?),
        "record_type" => options.record_type = record_type(py, &text()?)?,
        "lossy" => options.lossy = value.extract()?,
        "overwrite" => options.overwrite = value.extract()?,
        "verify_crc" => options.verify_crc = named::<VerifyCrc>(py, name, &text()?)?,
        "exact" => options.exact = value.extract()?,
        "on_conflict" => options.on_conflict = named::<OnConflict>(py, name, &text()?)?,
        "timestamp_unit" => options.timestamp_unit = named::<TimestampUnit>(py, name, &text()?)?,
        "on_error" => options.read.on_error = named::<OnError>(py, name, &text()?)?,
        "partial_tail" => options.read.partial_tail = named::<PartialTail>(py, name, &text()?)?,
        "limits" => options.read.limits = limits(value)?,
        "quarantine" => options.quarantine = Some(value.extract()?),
        "resume" => options.resume = value.extract()?,
        "row_group_rows" => options.row_group_rows = number()?,
        "bloom_filter" => options.bloom_filters = names(name, value)?,
        "page_index" => options.page_index = value.extract()?,
        other => return Err(usage(py, &format!("there is no option {other:?}"))),
    }
    Ok(())
}

/// The seed of a random choice. `True`, which other functions accept for a random order, is none.
fn seed(py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    match value.extract() {
        Ok(seed) if !value.is_instance_of::<PyBool>() => Ok(seed),
        _ => {
            let expected = format!("{name}: expected a number from 0, the seed");
            Err(usage(py, &expected))
        }
    }
}

/// A part of the records.
fn fraction(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|_| {
        let expected = format!("{name}: expected a number, such as 0.8");
        usage(value.py(), &expected)
    })
}

/// Splits from a dict of names and fractions.
fn splits(value: &Bound<'_, PyAny>) -> PyResult<Vec<OutputSplit>> {
    let py = value.py();
    let expected =
        "split: expected a dict of names and parts, such as {\"train\": 0.8, \"test\": 0.2}";
    let given = value.cast::<PyDict>().map_err(|_| usage(py, expected))?;
    let mut splits = Vec::with_capacity(given.len());
    for (name, part) in given {
        let name = name.extract().map_err(|_| usage(py, expected))?;
        let split = OutputSplit::new(name, fraction("split", &part)?);
        splits.push(split.map_err(|error| usage(py, &format!("split: {error}")))?);
    }
    Ok(splits)
}

/// Warns of what was lost or skipped, and returns the report.
fn reported(py: Python<'_>, dest: &Path, report: ConvertReport) -> PyResult<RawReport> {
    let ConvertReport {
        shards,
        files,
        records,
        bytes_in,
        bytes_out,
        lossy_changes,
        why_raw,
        damage,
        ..
    } = &report;
    let lossy = lossy_changes
        .iter()
        .map(|(change, times)| format!("{change}: {times} times"));
    let rounded = Some(rounded_text(&report)).filter(|text| !text.is_empty());
    let warnings: Vec<_> = lossy
        .chain(rounded)
        .chain(why_raw.iter().cloned())
        .collect();
    warn_all(py, &warnings)?;
    warn_files(py, &report.skipped_files, &report.missing, &report.splits)?;
    warn(py, damage, &[])?;
    let json = conversion_json(dest, &report).map_err(|error| failed(py, error))?;
    let text = format!(
        "{records} records: read {bytes_in} bytes in {shards} files, wrote {bytes_out} bytes in {files} files: {}",
        if damage.is_empty() {
            "nothing skipped".to_owned()
        } else {
            FaultReport { files: &[], damage }.summary()
        },
    );
    Ok(RawReport::new(move |_| text.clone(), json))
}
