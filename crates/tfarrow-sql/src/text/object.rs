//! The text of an object in a store of DataFusion, such as a local file.

use std::{
    io::{self, Read},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use datafusion::{
    common::parsers::CompressionTypeVariant,
    datasource::file_format::file_compression_type::FileCompressionType, error::Result,
};
use object_store::{ObjectStore, path::Path};
use tfarrow_columnar::Text;
use tfarrow_datafusion::internals::open_object;
use tokio::runtime::Handle;

use crate::text::options::TextOptions;

/// An object with a text.
#[derive(Clone, Debug)]
pub(super) struct TextObject {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) location: Path,
    /// The name of the object in errors.
    pub(super) name: PathBuf,
}

impl TextObject {
    /// The text, which blocks the threads that read it. They fail after `stopped` was set.
    ///
    /// # Errors
    /// An option is wrong.
    pub(super) fn text(
        self,
        options: &TextOptions,
        stopped: Arc<AtomicBool>,
        runtime: Handle,
    ) -> Result<Text> {
        let form = options.form()?;
        let compression = options.compression();
        let Self {
            store,
            location,
            name,
        } = self;
        Ok(Text::new(name, form, move |from| {
            let bytes = open_object(store.as_ref(), &location, from, &runtime)?;
            decompressed(
                Stoppable {
                    bytes,
                    stopped: Arc::clone(&stopped),
                },
                compression,
            )
        }))
    }
}

/// Decompresses what the reader of texts does not decompress itself.
fn decompressed(
    bytes: impl Read + Send + 'static,
    compression: FileCompressionType,
) -> io::Result<Box<dyn Read + Send>> {
    match compression.get_variant() {
        CompressionTypeVariant::UNCOMPRESSED | CompressionTypeVariant::GZIP => Ok(Box::new(bytes)),
        CompressionTypeVariant::BZIP2
        | CompressionTypeVariant::XZ
        | CompressionTypeVariant::ZSTD => compression.convert_read(bytes).map_err(io::Error::other),
    }
}

/// A reader that fails after it was stopped.
struct Stoppable {
    bytes: Box<dyn Read + Send>,
    stopped: Arc<AtomicBool>,
}

impl Read for Stoppable {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("the query was cancelled"));
        }
        self.bytes.read(to)
    }
}
