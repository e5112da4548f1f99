//! Operations on whole data sets, as the commands of the program: their arguments, the call of a
//! library, and the result as text and as JSON.

pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod diff;
pub(crate) mod part;
pub(crate) mod schema;
pub(crate) mod stats;
pub(crate) mod validate;
pub(crate) mod verify;

use pyo3::prelude::*;

/// The result of an operation: the text that the program prints, at any width, and the program's
/// JSON.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawReport {
    text: Box<dyn Fn(Option<usize>) -> String + Send + Sync>,
    json: String,
}

impl RawReport {
    fn new(text: impl Fn(Option<usize>) -> String + Send + Sync + 'static, json: String) -> Self {
        Self {
            text: Box::new(text),
            json,
        }
    }
}

#[pymethods]
impl RawReport {
    /// The text, with tables of at most `width` characters.
    #[pyo3(signature = (width=None))]
    fn text(&self, width: Option<usize>) -> String {
        (self.text)(width)
    }

    #[getter]
    fn json(&self) -> &str {
        &self.json
    }
}
