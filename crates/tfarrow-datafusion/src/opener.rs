//! Opens one file of a scan.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::{
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileOpenFuture, FileOpener},
        projection::{ProjectionOpener, SplitProjection},
    },
    error::Result,
    physical_expr_adapter::rewrite::rewrite_input_file_name_in_projection,
};
use futures::{FutureExt, StreamExt, future, stream};
use object_store::ObjectStore;

use crate::{input::Input, scan::Scan};

/// Opens the files of one partition.
#[derive(Debug)]
pub struct TfRecordOpener {
    store: Arc<dyn ObjectStore>,
    scan: Scan,
}

impl TfRecordOpener {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, scan: Scan) -> Self {
        Self { store, scan }
    }
}

impl FileOpener for TfRecordOpener {
    /// A TFRecord file cannot be entered in its midst. Where a range of it is asked for, which another's planner may do
    /// without asking, the range that holds the first byte stands for the whole file, and the others for nothing.
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let stream = match &file.range {
            Some(range) if !range.contains(0) => stream::empty().boxed(),
            _ => {
                let (scan, input) = (self.scan.clone(), Input::of(&file, &self.store));
                stream::once(async move { scan.start(input) }).flatten().boxed()
            }
        };
        Ok(future::ready(Ok(stream)).boxed())
    }
}

/// Makes of the columns that a scan decodes those that a query asks for, where `input_file_name()` is among them: the name
/// that the user knows the file by, where DataFusion would give the key that it has in a store.
pub(crate) struct NamingOpener {
    inner: Arc<TfRecordOpener>,
    projection: SplitProjection,
    file_schema: SchemaRef,
}

impl NamingOpener {
    pub(crate) fn new(inner: TfRecordOpener, projection: SplitProjection, file_schema: SchemaRef) -> Self {
        Self { inner: Arc::new(inner), projection, file_schema }
    }
}

impl FileOpener for NamingOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let name = Input::of(&file, &self.inner.store).name();
        let source = self.projection.source.clone();
        let projection = rewrite_input_file_name_in_projection(source, &name.to_string_lossy())?;
        let projection = SplitProjection::new(&self.file_schema, &projection);
        let inner = Arc::clone(&self.inner);
        ProjectionOpener::try_new(projection, inner, &self.file_schema)?.open(file)
    }
}
