//! The shards of the sources of a call, and warnings of what was skipped there.

use std::path::PathBuf;

use pyo3::prelude::*;
use tfarrow_dataset::{
    FormatFilter, MissingShards, Resolved, Shard, SkippedFiles,
    internals::{TfdsSplit, tfds_splits},
    resolve_filtered,
};
use tfarrow_report::source_notes;

use crate::notices::warn_all;

/// The shards of sources, and the files there that were skipped or are missing.
pub(crate) struct Found {
    pub(crate) shards: Vec<Shard>,
    pub(crate) skipped_files: SkippedFiles,
    pub(crate) missing: Vec<MissingShards>,
    pub(crate) splits: Vec<TfdsSplit>,
}

impl Found {
    /// Finds the shards of sources that have a format. `spool` copies those that cannot be read as
    /// they are.
    pub(crate) fn of(
        sources: &[PathBuf],
        filter: FormatFilter,
        spool: impl Fn(&mut Shard) -> tfarrow_dataset::Result<()>,
    ) -> tfarrow_dataset::Result<Self> {
        let Resolved {
            mut shards,
            skipped_files,
            missing,
        } = resolve_filtered(sources, filter)?;
        let splits = tfds_splits(&shards);
        shards.iter_mut().try_for_each(spool)?;
        Ok(Self {
            shards,
            skipped_files,
            missing,
            splits,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.size).sum()
    }

    /// The notes about files that may contain data and were skipped, about missing shards, and
    /// about several splits.
    pub(crate) fn notes(&self) -> Vec<String> {
        source_notes(&self.skipped_files, &self.missing, &self.splits)
    }

    /// Issues the notes as warnings.
    pub(crate) fn warn(&self, py: Python<'_>) -> PyResult<()> {
        warn_all(py, &self.notes())
    }
}

pub(crate) fn warn_files(
    py: Python<'_>,
    skipped: &SkippedFiles,
    missing: &[MissingShards],
    splits: &[TfdsSplit],
) -> PyResult<()> {
    warn_all(py, &source_notes(skipped, missing, splits))
}
