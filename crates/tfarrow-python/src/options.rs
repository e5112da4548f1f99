//! The options of the package, which have the names and the values of the program's.

use std::{str::FromStr, thread};

use datafusion::common::config::ExtensionOptions;
use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};
use tfarrow_codec::{Limit, Limits, NamedValue, RecordType, parse_name};
use tfarrow_datafusion::TfRecordOptions;
use tfarrow_dataset::ReadOptions;
use tfarrow_scan::{InferOptions, Sample};

use crate::errors::usage;

/// How a data set is read.
#[derive(Clone, Debug)]
pub(crate) struct ReadingOptions {
    pub(crate) table: TfRecordOptions,
    /// Number of threads of a pass or a query.
    pub(crate) threads: usize,
    /// Maximum bytes of sorts, joins and groups of a query.
    pub(crate) memory_limit: Option<usize>,
}

impl ReadingOptions {
    /// The options of a call: keyword arguments by their names. None is the default.
    ///
    /// # Errors
    /// UsageError for an unknown value.
    pub(crate) fn of(given: &Bound<'_, PyDict>) -> PyResult<Self> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let mut options = Self {
            table: TfRecordOptions::default(),
            threads,
            memory_limit: None,
        };
        for (name, value) in given {
            if !value.is_none() {
                options.set(&name.extract::<String>()?, &value)?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "threads" => {
                let threads = value.extract::<usize>().ok().filter(|threads| *threads > 0);
                self.threads = threads
                    .ok_or_else(|| usage(value.py(), "threads: expected a number from 1"))?;
            }
            "memory_limit" => {
                let limit = value
                    .extract()
                    .map_err(|_| usage(value.py(), "memory_limit: expected a number of bytes"))?;
                self.memory_limit = Some(limit);
            }
            "limits" => self.table.limits = limits(value)?,
            "sample" => self.table.sample = sample(value.py(), value)?,
            name => self.put(name, value)?,
        }
        Ok(())
    }

    fn put(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.table.set(name, &text(value)?).map_err(|error| {
            let text = error
                .strip_backtrace()
                .replace("Invalid or Unsupported Configuration: ", "");
            usage(value.py(), &text.replace("tfarrow.", ""))
        })
    }

    /// How records are read.
    pub(crate) fn read(&self) -> ReadOptions {
        let TfRecordOptions {
            on_error,
            partial_tail,
            limits,
            ..
        } = self.table;
        ReadOptions {
            on_error,
            partial_tail,
            limits,
            ..ReadOptions::default()
        }
    }

    /// How a data set is inferred.
    pub(crate) fn infer(&self) -> InferOptions {
        let TfRecordOptions {
            sample,
            verify_crc,
            record_type,
            ..
        } = self.table;
        InferOptions {
            sample,
            part: None,
            threads: self.threads,
            verify: verify_crc,
            record_type,
            read: self.read(),
        }
    }
}

/// The text of an option: a name, a number, a boolean, or a list of names.
pub(crate) fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(flag) = value.extract::<bool>() {
        return Ok(flag.to_string());
    }
    if value.is_instance_of::<PyString>() {
        return value.extract();
    }
    match value.extract::<Vec<String>>() {
        Ok(names) => Ok(names.join(",")),
        Err(_) => Ok(value.str()?.to_string()),
    }
}

/// Limits by their names, such as `{"record-bytes": 1 << 20}`; words may be joined by `_`.
pub(crate) fn limits(given: &Bound<'_, PyAny>) -> PyResult<Limits> {
    let py = given.py();
    let mut limits = Limits::default();
    let given = given
        .cast::<PyDict>()
        .map_err(|_| usage(py, "limits: expected a dict of names and numbers"))?;
    for (name, value) in given {
        let name: String = name.extract()?;
        let limit: Limit = parse_name(&name).map_err(|e| usage(py, &format!("limits: {e}")))?;
        let most = value
            .extract()
            .map_err(|_| usage(py, &format!("limits: {name}: expected a number")))?;
        *limits.get_mut(limit) = most;
    }
    Ok(limits)
}

/// The value of a name, of an option of an operation that has no table.
pub(crate) fn named<T: NamedValue>(py: Python<'_>, option: &str, name: &str) -> PyResult<T> {
    parse_name(name).map_err(|e| usage(py, &format!("{option}: {e}")))
}

/// The names of columns or features, and globs of them: a list, or one name.
pub(crate) fn names(option: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if value.is_instance_of::<PyString>() {
        return Ok(vec![value.extract()?]);
    }
    value
        .extract()
        .map_err(|_| usage(value.py(), &format!("{option}: expected a list of names")))
}

/// The type of the records; `None` for `auto`.
pub(crate) fn record_type(py: Python<'_>, name: &str) -> PyResult<Option<RecordType>> {
    if name == "auto" {
        Ok(None)
    } else {
        named(py, "record_type", name).map(Some)
    }
}

/// The records that columns are inferred from.
pub(crate) fn sample(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Sample> {
    Sample::from_str(&text(value)?).map_err(|e| usage(py, &format!("sample: {e}")))
}
