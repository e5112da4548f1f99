//! Opens one file of a scan.

use std::sync::Arc;

use datafusion::{
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileOpenFuture, FileOpener},
    },
    error::Result,
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
