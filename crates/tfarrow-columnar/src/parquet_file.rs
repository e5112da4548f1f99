//! An open Parquet file: its metadata and its checksums.

use std::{fs::File, path::Path, sync::Arc};

use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    file::metadata::RowGroupMetaData,
};
use tfarrow_codec::schema::with_views;
use tfarrow_dataset::{Error, Result};

use crate::{
    checksums::RowGroupVerifier,
    guarded::guarded,
    serialized_examples::schema_of_records,
    unreadable::{unreadable, unreadable_parquet},
};

/// The metadata of an open Parquet file.
#[derive(Clone)]
pub struct ParquetFile {
    /// The metadata. Bytes and text have view types, so that reading copies no values out of the pages.
    pub metadata: ArrowReaderMetadata,
    /// Verifies the row groups; `None` if the file has no checksums.
    pub verifier: Option<Arc<RowGroupVerifier>>,
    /// The indices of the columns that are read, in ascending order; `None` for all columns. Those after the columns of the file
    /// are of its folders.
    pub columns: Option<Arc<[usize]>>,
}

impl ParquetFile {
    /// Reads the metadata of the file `local`. Errors have the path `path`.
    ///
    /// # Errors
    /// A file that cannot be read, and metadata that is corrupt.
    pub fn open(path: &Path, local: &Path) -> Result<Self> {
        let file = File::open(local).map_err(|e| Error::io(path, e))?;
        let parquet = |e| unreadable_parquet(path, e);
        guarded(path, || {
            let plain = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(parquet)?;
            let verifier = RowGroupVerifier::new(path, &file, plain.metadata())?.map(Arc::new);
            // Rows without columns take no bytes, so that corrupt metadata could claim any number of them.
            let has_rows = plain.metadata().row_groups().iter().any(|group| group.num_rows() != 0);
            if has_rows && plain.schema().fields().is_empty() {
                return Err(unreadable(path, "the metadata has rows, but no columns"));
            }
            let views = ArrowReaderOptions::new().with_schema(with_views(&schema_of_records(&file, &plain), true));
            let metadata = ArrowReaderMetadata::try_new(Arc::clone(plain.metadata()), views).map_err(parquet)?;
            Ok(Self { metadata, verifier, columns: None })
        })
    }

    /// Reads only the columns with these indices, which are in ascending order.
    pub fn with_columns(self, columns: Option<Arc<[usize]>>) -> Self {
        Self { columns, ..self }
    }

    /// The number of rows in all row groups.
    pub fn rows(&self) -> u64 {
        self.first_row(self.groups().len())
    }

    /// The number of rows before row group `group`.
    pub(crate) fn first_row(&self, group: usize) -> u64 {
        let rows = self.groups().iter().take(group).map(|group| group.num_rows().max(0) as u64);
        rows.fold(0, u64::saturating_add)
    }

    /// The metadata of the row groups.
    pub fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata.metadata().row_groups()
    }
}
