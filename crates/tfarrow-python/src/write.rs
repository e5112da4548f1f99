//! Writing of rows as TFRecord files.

use datafusion::config::ConfigExtension;
use pyo3::{
    prelude::*,
    types::{PyAny, PyDict},
};
use tfarrow_datafusion::TfRecordOptions;

use crate::{
    options::{ReadingOptions, text},
    query::start,
    remedy::Wording,
    rows::Running,
    tables::PythonTable,
};

/// The name of the table with the rows to write.
const DATA: &str = "data";

/// Writes the rows of an object (see [`PythonTable`]) to TFRecord files by COPY, whose options
/// these are. Returns the number of records.
#[pyfunction]
pub(crate) fn write(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    target: &str,
    options: &Bound<'_, PyDict>,
) -> PyResult<u64> {
    // An invalid value is an error of the argument, and not of the query that it becomes a part of.
    ReadingOptions::of(options)?;
    let mut given = Vec::new();
    for (name, value) in options {
        if !value.is_none() {
            given.push(format!(
                "'{}.{}' {}",
                TfRecordOptions::PREFIX,
                name.extract::<String>()?,
                quoted(&text(&value)?)
            ));
        }
    }
    let options = if given.is_empty() {
        String::new()
    } else {
        format!(" OPTIONS ({})", given.join(", "))
    };
    let query = format!(
        "COPY {DATA} TO {} STORED AS TFRECORD{options}",
        quoted(target)
    );
    let running = Running::of(&ReadingOptions::of(&PyDict::new(py))?);
    let tables = vec![(DATA.to_owned(), PythonTable::new(String::new(), data)?)];
    let mut rows = start(py, &running, Wording::Arguments, query, tables)?;
    let mut written = 0;
    while let Some(batch) = py
        .detach(|| rows.next())
        .map_err(|error| error.raise(py, Wording::Arguments))?
    {
        written += counted(&batch);
    }
    rows.notices().issue(py)?;
    Ok(written)
}

/// The number in the result of COPY.
fn counted(batch: &arrow_array::RecordBatch) -> u64 {
    use arrow_array::{cast::AsArray, types::UInt64Type};
    let counts = batch
        .columns()
        .first()
        .and_then(|column| column.as_primitive_opt::<UInt64Type>());
    counts.map_or(0, |counts| counts.iter().flatten().sum())
}

/// A text as a literal of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
