//! An open Parquet file: its metadata and its checksums.

use std::{fs::File, path::Path, sync::Arc};

use arrow_schema::SchemaRef;
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    errors::ParquetError,
    file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
    schema::types::SchemaDescPtr,
};
use tfarrow_codec::schema::with_views;
use tfarrow_dataset::{Error, Result};

use crate::{
    arrow_types::check_stored_types,
    catch_panic::catch_panic_in,
    checksums::RowGroupVerifier,
    extension_types::with_extension_types,
    serialized_examples::schema_of_records,
    unreadable::{unreadable, unreadable_parquet},
};

/// The metadata of an open Parquet file.
#[derive(Clone)]
pub struct ParquetFile {
    /// The metadata. Bytes and text have view types, so that reading copies no values out of the
    /// pages.
    pub metadata: ArrowReaderMetadata,
    /// The metadata with the types of the file, which has no view types.
    stored: ArrowReaderMetadata,
    /// Verifies the row groups; `None` if the file has no checksums.
    pub verifier: Option<Arc<RowGroupVerifier>>,
    /// The indices of the columns that are read, in ascending order; `None` for all columns. Those
    /// after the columns of the file are of its folders.
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
        catch_panic_in(path, || {
            let metadata = ParquetMetaDataReader::new()
                .parse_and_finish(&file)
                .map_err(parquet)?;
            check_stored_types(&metadata).map_err(|error| unreadable(path, error))?;
            let plain = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new())
                .map_err(parquet)?;
            check_rows(plain.metadata()).map_err(|message| unreadable(path, message))?;
            let verifier = RowGroupVerifier::new(path, &file, plain.metadata())?.map(Arc::new);
            // Rows without columns take no bytes, so that corrupt metadata could claim any number
            // of them.
            let has_rows = plain
                .metadata()
                .row_groups()
                .iter()
                .any(|group| group.num_rows() != 0);
            if has_rows && plain.schema().fields().is_empty() {
                return Err(unreadable(path, "the metadata has rows, but no columns"));
            }
            let schema = schema_of_records(&file, &plain);
            Ok(Self {
                metadata: typed(&plain, &schema, true).map_err(parquet)?,
                stored: typed(&plain, &schema, false).map_err(parquet)?,
                verifier,
                columns: None,
            })
        })
    }

    /// Reads bytes and text as the types of the file, as [`stored_schema`](Self::stored_schema) has
    /// them.
    pub fn with_stored_types(self) -> Self {
        Self {
            metadata: self.stored.clone(),
            ..self
        }
    }

    /// The columns with the types of the file. View types, which the metadata of Arrow may name,
    /// are no types of Parquet: they are replaced by plain types.
    pub fn stored_schema(&self) -> &SchemaRef {
        self.stored.schema()
    }

    /// The columns with the types of the file, and with extension types for the annotations of
    /// Parquet that no Arrow type has.
    pub fn extended_schema(&self) -> SchemaRef {
        with_extension_types(self.stored_schema(), &self.parquet_schema())
    }

    /// The columns as Parquet describes them.
    pub fn parquet_schema(&self) -> SchemaDescPtr {
        self.metadata.metadata().file_metadata().schema_descr_ptr()
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
    pub fn first_row(&self, group: usize) -> u64 {
        let rows = self
            .groups()
            .iter()
            .take(group)
            .map(|group| group.num_rows().max(0) as u64);
        rows.fold(0, u64::saturating_add)
    }

    /// The metadata of the row groups.
    pub fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata.metadata().row_groups()
    }
}

/// Returns the metadata with the columns `schema`, with view types if `views` is true, and without
/// view types otherwise.
fn typed(
    plain: &ArrowReaderMetadata,
    schema: &SchemaRef,
    views: bool,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let options = ArrowReaderOptions::new().with_schema(with_views(schema, views));
    ArrowReaderMetadata::try_new(Arc::clone(plain.metadata()), options)
}

/// Checks that the number of rows in the footer is the sum of those of the row groups. Readers use
/// the one or the other.
///
/// # Errors
/// The message with both numbers.
pub fn check_rows(metadata: &ParquetMetaData) -> Result<(), String> {
    let stated = metadata.file_metadata().num_rows();
    let in_groups = metadata
        .row_groups()
        .iter()
        .map(RowGroupMetaData::num_rows)
        .fold(0, i64::saturating_add);
    if stated == in_groups {
        return Ok(());
    }
    Err(format!(
        "the footer is corrupt: it states {stated} rows, and its row groups have {in_groups}; write the file again"
    ))
}
