//! Comparison of two data sets, record by record.

use std::path::PathBuf;

use pyo3::{prelude::*, types::PyDict};
use tfarrow_codec::diff::Tolerance;
use tfarrow_convert::{DiffOptions, Progress, diff as diff_sources};
use tfarrow_report::{diff_json, diff_text, text::Screen};

use super::RawReport;
use crate::{
    errors::{failed, usage},
    found::warn_files,
    interrupt::watch,
    notices::{warn, warn_all},
    options::{ReadingOptions, names},
};

/// Compares two data sets. `options` are those of reading, and `rules` those of the comparison, by
/// name. Returns the report, and whether they are equal.
#[pyfunction]
#[pyo3(signature = (left, right, options, rules, max_differences=10, progress=None))]
pub(crate) fn diff(
    py: Python<'_>,
    left: Vec<PathBuf>,
    right: Vec<PathBuf>,
    options: &Bound<'_, PyDict>,
    rules: &Bound<'_, PyDict>,
    max_differences: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(RawReport, bool)> {
    let options = ReadingOptions::of(options)?;
    let counters = Progress::default();
    let record_type = options.table.record_type;
    let read = options.read();
    let mut options = DiffOptions {
        record_type,
        read,
        max_differences,
        ..DiffOptions::default()
    };
    for (name, value) in rules {
        if !value.is_none() {
            set(&mut options, &name.extract::<String>()?, &value)?;
        }
    }
    let found = watch(py, &counters, progress, || {
        diff_sources(&left, &right, &options, &counters)
    })?;
    let found = found.map_err(|error| failed(py, error))?;
    for other in &found.other_files {
        warn_files(py, &other.skipped_files, &other.missing, &other.splits)?;
    }
    found
        .skipped
        .iter()
        .try_for_each(|skipped| warn(py, skipped, &[]))?;
    warn_all(py, &found.why_raw.iter().cloned().collect::<Vec<_>>())?;
    let json = diff_json(&found).map_err(|error| failed(py, error))?;
    let is_equal = found.is_equal();
    let names = [&left, &right].map(|sources| {
        sources
            .iter()
            .map(|source| source.to_string_lossy())
            .collect::<Vec<_>>()
            .join(", ")
    });
    let report = RawReport::new(
        move |_| {
            diff_text(
                names.each_ref().map(String::as_str),
                &found,
                Screen::plain(None),
            )
        },
        json,
    );
    Ok((report, is_equal))
}

fn set(options: &mut DiffOptions, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let known = options.tolerance.unwrap_or(Tolerance {
        absolute: 0.0,
        relative: 0.0,
    });
    match name {
        "on" => options.on = names(name, value)?,
        "exclude" => options.exclude = names(name, value)?,
        "tolerance" => {
            options.tolerance = Some(Tolerance {
                absolute: tolerance(name, value)?,
                ..known
            })
        }
        "relative_tolerance" => {
            options.tolerance = Some(Tolerance {
                relative: tolerance(name, value)?,
                ..known
            })
        }
        "only_a" => options.unmatched[0] = Some(value.extract()?),
        "only_b" => options.unmatched[1] = Some(value.extract()?),
        "overwrite" => options.overwrite = value.extract()?,
        "memory_limit" => {
            options.memory_limit = value
                .extract()
                .map_err(|_| usage(value.py(), &format!("{name}: expected a number of bytes")))?
        }
        other => return Err(usage(value.py(), &format!("there is no option {other:?}"))),
    }
    Ok(())
}

/// The value of an option of this name: an allowed difference.
fn tolerance(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let number = value.extract::<f64>().ok().filter(|number| *number >= 0.0);
    number.ok_or_else(|| usage(value.py(), &format!("{name}: expected a number from 0")))
}
