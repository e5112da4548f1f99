//! Operations on whole data sets, as the commands of the program: their arguments, the call of a library, and the result as
//! text and as JSON.

pub(crate) mod convert;
pub(crate) mod count;
pub(crate) mod diff;
pub(crate) mod schema;
pub(crate) mod stats;
pub(crate) mod validate;
pub(crate) mod verify;

use std::path::PathBuf;

use pyo3::prelude::*;
use tfarrow_dataset::{FormatFilter, MissingShards, Resolved, Shard, SkippedFiles, resolve_filtered};

use crate::rows::warn_all;

/// The result of an operation: the text that the program prints, at any width, and the program's JSON.
#[pyclass(frozen, module = "tfarrow._tfarrow")]
pub(crate) struct RawReport {
    text: Box<dyn Fn(Option<usize>) -> String + Send + Sync>,
    json: String,
}

impl RawReport {
    fn new(text: impl Fn(Option<usize>) -> String + Send + Sync + 'static, json: String) -> Self {
        Self { text: Box::new(text), json }
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

/// The shards of sources, and what else was found there.
pub(crate) struct Found {
    pub(crate) shards: Vec<Shard>,
    skipped_files: SkippedFiles,
    missing: Vec<MissingShards>,
}

impl Found {
    /// Finds the shards of sources that have a format. `spool` copies those that cannot be read as they are.
    pub(crate) fn of(
        sources: &[PathBuf],
        filter: FormatFilter,
        spool: impl Fn(&mut Shard) -> tfarrow_dataset::Result<()>,
    ) -> tfarrow_dataset::Result<Self> {
        let Resolved { mut shards, skipped_files, missing } = resolve_filtered(sources, filter)?;
        shards.iter_mut().try_for_each(spool)?;
        Ok(Self { shards, skipped_files, missing })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.size).sum()
    }

    /// Warns of files that may contain data and were skipped, and of missing shards.
    pub(crate) fn warn(&self, py: Python<'_>) -> PyResult<()> {
        warn_files(py, &self.skipped_files, &self.missing)
    }
}

fn warn_files(py: Python<'_>, skipped: &SkippedFiles, missing: &[MissingShards]) -> PyResult<()> {
    let mut texts: Vec<_> = missing.iter().map(ToString::to_string).collect();
    texts.extend(skipped.may_matter().then(|| skipped.to_string()));
    warn_all(py, &texts)
}
