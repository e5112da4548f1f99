//! The [`FileOpener`] of a scan of text files.

use std::{path::PathBuf, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileOpenFuture, FileOpener},
    },
    error::Result,
    execution::object_store::ObjectStoreUrl,
    physical_plan::stream::RecordBatchReceiverStreamBuilder,
};
use futures::{
    FutureExt, StreamExt, future,
    stream::{self, BoxStream},
};
use object_store::{ObjectStore, path::Path};
use tfarrow_columnar::TextFile;
use tfarrow_datafusion::internals::external;
use tokio::runtime::Handle;

use crate::text::{object::TextObject, options::TextOptions};

/// Number of batches that are parsed ahead of the query.
const BATCHES_AHEAD: usize = 2;

/// Opens the files of one partition.
#[derive(Debug)]
pub(super) struct TextOpener {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) url: ObjectStoreUrl,
    pub(super) options: TextOptions,
    /// The columns of the files, and the indices of those that are read.
    pub(super) columns: SchemaRef,
    pub(super) read_columns: Arc<[usize]>,
    /// Maximum number of rows of a batch, and of each file.
    pub(super) batch_rows: usize,
    pub(super) limit: Option<usize>,
    /// Whether the columns may have other names than in the headers of CSV files.
    pub(super) is_declared: bool,
    /// Whether each row of all files is on a line of its own.
    pub(super) has_row_per_line: bool,
}

impl FileOpener for TextOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let mut lines = None;
        if let Some(range) = &file.range {
            let bounds = (u64::try_from(range.start), u64::try_from(range.end));
            match bounds {
                (Ok(start), Ok(end)) if self.has_row_per_line => lines = Some(start..end),
                // Another planner has split the file. The range with the first byte reads the
                // complete file.
                _ if range.contains(0) => {}
                _ => return Ok(future::ready(Ok(stream::empty().boxed())).boxed()),
            }
        }
        let store = Arc::clone(&self.store);
        let location = file.path().clone();
        let object = TextObject {
            store,
            name: name_of(&self.url, &location),
            location,
        };
        let text = object.text(&self.options, Arc::default(), Handle::current())?;
        let mut rows = TextFile::new(text, Arc::clone(&self.columns))
            .with_columns(Arc::clone(&self.read_columns))
            .with_batch_rows(self.batch_rows)
            .with_max_rows(self.limit.map_or(u64::MAX, |rows| rows as u64));
        if self.is_declared {
            rows = rows.with_own_names();
        }
        if let Some(lines) = lines {
            rows = rows.with_lines(lines);
        }
        let schema = Arc::new(self.columns.project(&self.read_columns)?);
        Ok(future::ready(Ok(batches(rows, schema))).boxed())
    }
}

/// The batches of a file, which a thread that may block parses.
fn batches(file: TextFile, schema: SchemaRef) -> BoxStream<'static, Result<RecordBatch>> {
    let mut builder = RecordBatchReceiverStreamBuilder::new(schema, BATCHES_AHEAD);
    let batches = builder.tx();
    builder.spawn_blocking(move || {
        for batch in file.rows().map_err(external)? {
            if batches.blocking_send(batch.map_err(external)).is_err() {
                // The query needs no more rows.
                break;
            }
        }
        Ok(())
    });
    builder.build().boxed()
}

/// The name of an object in errors: a path, or a URL.
fn name_of(store: &ObjectStoreUrl, location: &Path) -> PathBuf {
    match *store == ObjectStoreUrl::local_filesystem() {
        true => std::path::Path::new("/").join(location.as_ref()),
        false => PathBuf::from(format!("{store}{location}")),
    }
}
