//! Errors of the libraries as exceptions of `tfarrow.errors`, with the place of the error as
//! attributes.

use std::{error::Error, io, path::Path};

use datafusion::error::DataFusionError;
use pyo3::{prelude::*, types::PyDict};
use tfarrow_codec::{Category, Remedy};
use tfarrow_datafusion::AdvisedError;
use tfarrow_dataset::ErrorKind;
use tfarrow_report::error_message;

use crate::remedy;

/// The place and the class of an error.
#[derive(Debug, Default)]
struct Finding {
    /// The name of the exception's class.
    class: &'static str,
    file: Option<String>,
    record: Option<u64>,
    offset: Option<u64>,
    feature: Option<String>,
    errno: Option<i32>,
    remedies: Vec<Remedy>,
}

/// An error of a library as the exception that callers catch.
pub(crate) fn failed(py: Python<'_>, error: impl Into<anyhow::Error>) -> PyErr {
    let error = error.into();
    let finding = Finding::of(&error);
    let text = error_message(error.as_ref()) + &remedy::sentence(&finding.remedies);
    finding.raise(py, &text)
}

/// An error of a file whose path is in the text of the error only.
pub(crate) fn failed_at(py: Python<'_>, error: &anyhow::Error, path: &Path) -> PyErr {
    let finding = Finding {
        file: Some(path.display().to_string()),
        ..Finding::of(error)
    };
    finding.raise(py, &error_message(error.as_ref()))
}

/// An error of a query, whose text words remedies in SQL if it has any, and ends with the hint.
pub(crate) fn failed_sql(py: Python<'_>, error: DataFusionError, hint: Option<&str>) -> PyErr {
    let error = anyhow::Error::new(error);
    let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
    Finding::of(&error).raise(py, &(error_message(error.as_ref()) + &hint))
}

/// The error of a scan. Its remedies are options of the package, in place of those of SQL.
pub(crate) fn failed_scan(py: Python<'_>, error: DataFusionError) -> PyErr {
    match within(&error) {
        Some(error) => {
            let finding = Finding::of_dataset(error);
            let text = error.to_string() + &remedy::sentence(&finding.remedies);
            finding.raise(py, &text)
        }
        None => failed_sql(py, error, None),
    }
}

/// The error of invalid arguments.
pub(crate) fn usage(py: Python<'_>, text: &str) -> PyErr {
    Finding {
        class: "UsageError",
        ..Finding::default()
    }
    .raise(py, text)
}

/// The error of rows in which a column is not what was announced, or the rows as a whole are not.
pub(crate) fn mismatched(py: Python<'_>, column: Option<String>, text: &str) -> PyErr {
    Finding {
        class: "DataError",
        feature: column,
        ..Finding::default()
    }
    .raise(py, text)
}

/// The error of rows that do not have all features of their records.
pub(crate) fn incomplete(py: Python<'_>, text: &str) -> PyErr {
    Finding {
        class: "DataError",
        ..Finding::default()
    }
    .raise(py, &format!("not all features would be written: {text}"))
}

/// The exception of Python code that ended a query: the same object.
pub(crate) fn raised_in(py: Python<'_>, error: &(dyn Error + 'static)) -> Option<PyErr> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(exception) = error.downcast_ref::<PyErr>() {
            return Some(exception.clone_ref(py));
        }
        next = error.source();
    }
    None
}

/// The error of a file in an error of a query.
fn within<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e tfarrow_dataset::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        if let Some(advised) = error.downcast_ref::<AdvisedError>() {
            return Some(advised.error());
        }
        next = error.source();
    }
    None
}

impl Finding {
    /// The class of an error, and the place of its cause.
    fn of(error: &anyhow::Error) -> Self {
        for cause in error.chain() {
            if let Some(error) = cause.downcast_ref::<tfarrow_convert::Error>() {
                return Self::of_convert(error);
            }
            if let Some(error) = cause.downcast_ref::<AdvisedError>() {
                return Self::of_dataset(error.error());
            }
            if let Some(error) = cause.downcast_ref::<tfarrow_dataset::Error>() {
                return Self::of_dataset(error);
            }
            if let Some(error) = cause.downcast_ref::<tfarrow_codec::Error>() {
                return Self::of_codec(error);
            }
            if let Some(error) = cause.downcast_ref::<io::Error>() {
                return Self::of_io(error);
            }
        }
        let is_sql = error.chain().any(|cause| cause.is::<DataFusionError>());
        Self {
            class: if is_sql { "SqlError" } else { "UsageError" },
            ..Self::default()
        }
    }

    fn of_convert(error: &tfarrow_convert::Error) -> Self {
        use tfarrow_convert::Error as E;
        let (class, file) = match error {
            E::Dataset(error) => return Self::of_dataset(error),
            E::NotComparable(cause) => {
                return Self {
                    remedies: error.remedies(),
                    ..Self::of_dataset(cause)
                };
            }
            E::Exists { path, .. } => ("ExistsError", path_text(path)),
            E::Differs { path } => ("ExistsError", path_text(path)),
            E::Interrupted { folder, .. } => ("ExistsError", path_text(folder)),
            E::Parquet { path, .. } | E::Arrow { path, .. } => ("CorruptError", path_text(path)),
            E::NotSampled { path, .. } => ("DataError", path_text(path)),
            E::SourceChanged { path, .. } => ("IoError", path_text(path)),
            E::Columns { path, .. } | E::Selection { path, .. } => {
                ("UsageError", path.as_deref().and_then(path_text))
            }
            E::NotASchema { path, .. } => ("UsageError", path_text(path)),
            E::Incomparable(_) | E::Data(_) => ("DataError", None),
            E::NoFormat(_)
            | E::NoColumns
            | E::NoParquetType { .. }
            | E::NoQuarantine
            | E::Usage(_) => ("UsageError", None),
            E::Cancelled => ("TfarrowError", None),
            // The enum may grow.
            _ => ("TfarrowError", None),
        };
        Self {
            class,
            file,
            remedies: error.remedies(),
            ..Self::default()
        }
    }

    fn of_dataset(error: &tfarrow_dataset::Error) -> Self {
        let file = error.path().map(|path| path.display().to_string());
        let found = match error.kind() {
            ErrorKind::Codec(error) => Self::of_codec(error),
            ErrorKind::Io(error) => Self::of_io(error),
            ErrorKind::Damaged { offset, record, .. }
            | ErrorKind::Checksum { offset, record, .. } => {
                let record = Some(*record);
                let offset = Some(*offset);
                Self {
                    class: "CorruptError",
                    record,
                    offset,
                    ..Self::default()
                }
            }
            ErrorKind::Rows { row, .. } => Self {
                class: "CorruptError",
                record: Some(*row),
                ..Self::default()
            },
            kind @ ErrorKind::MixedKinds { feature, .. } => Self {
                class: class_of(kind),
                feature: Some(feature.clone()),
                ..Self::default()
            },
            kind => Self {
                class: class_of(kind),
                ..Self::default()
            },
        };
        Self {
            file,
            remedies: error.remedies(),
            ..found
        }
    }

    fn of_codec(error: &tfarrow_codec::Error) -> Self {
        let class = match error.category() {
            Category::Truncated | Category::Corrupt => "CorruptError",
            Category::Data => "DataError",
            Category::Limit => "LimitError",
            Category::Usage => "UsageError",
        };
        // Errors about a schema have no position.
        let (record, offset, feature) = match error.category() {
            Category::Usage => (
                None,
                None,
                error.position().feature.as_deref().map(str::to_owned),
            ),
            _ => {
                let at = error.position();
                (
                    Some(at.record),
                    Some(at.offset),
                    at.feature.as_deref().map(str::to_owned),
                )
            }
        };
        Self {
            class,
            record,
            offset,
            feature,
            remedies: error.remedies(),
            ..Self::default()
        }
    }

    fn of_io(error: &io::Error) -> Self {
        let class = match error.kind() {
            io::ErrorKind::NotFound => "NotFoundError",
            io::ErrorKind::AlreadyExists => "ExistsError",
            _ => "IoError",
        };
        Self {
            class,
            errno: error.raw_os_error(),
            ..Self::default()
        }
    }

    fn raise(self, py: Python<'_>, text: &str) -> PyErr {
        self.exception(py, text)
            .map_or_else(|error| error, PyErr::from_value)
    }

    fn exception<'py>(self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        let attributes = PyDict::new(py);
        attributes.set_item("file", self.file)?;
        attributes.set_item("record", self.record)?;
        attributes.set_item("offset", self.offset)?;
        attributes.set_item("feature", self.feature)?;
        attributes.set_item("errno", self.errno)?;
        py.import("tfarrow.errors")?
            .getattr(self.class)?
            .call((text,), Some(&attributes))
    }
}

/// The path of a file, as an attribute of an exception.
fn path_text(path: &Path) -> Option<String> {
    Some(path.display().to_string())
}

/// The class of an error of a file that has no place in it.
fn class_of(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotTfRecord {
            is_known: false, ..
        } => "CorruptError",
        ErrorKind::NotTfRecord { .. }
        | ErrorKind::MixedKinds { .. }
        | ErrorKind::MixedRecords { .. } => "DataError",
        ErrorKind::NoShards { .. } => "NotFoundError",
        ErrorKind::Exists | ErrorKind::NotAFile => "ExistsError",
        ErrorKind::Glob(_) | ErrorKind::Usage(_) | ErrorKind::Descriptors(_) => "UsageError",
        // Errors with a place have classes of their own.
        _ => "TfarrowError",
    }
}
