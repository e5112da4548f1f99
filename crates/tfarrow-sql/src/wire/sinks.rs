//! The sinks of COPY and INSERT.

use std::{num::NonZeroUsize, sync::Arc};

use datafusion::{
    common::exec_err,
    datasource::{
        listing::ListingTableUrl,
        physical_plan::FileSinkConfig,
        sink::{DataSink, DataSinkExec},
    },
    error::Result,
};
use serde::{Deserialize, Serialize};
use tfarrow_codec::RecordType;
use tfarrow_datafusion::{
    TfRecordOptions, TfRecordSink,
    internals::{OutputFolder, PART},
};
use tfarrow_dataset::Compression;

use crate::write::staging::{StagingSink, StatementOutput};

/// A sink of TFRecord files, besides its [`FileSinkConfig`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TfRecordSinkWire {
    /// The compression, which may be the one that the name of the file states.
    pub compression: Compression,
    /// Number of shards; `None`: DataFusion determines the number of files.
    pub shards: Option<NonZeroUsize>,
    /// Whether to replace existing files.
    pub overwrite: bool,
    /// Whether to write the nearest value for one that TFRecord cannot represent.
    pub lossy: bool,
    /// Whether to round floats of 64 bits to floats of 32 bits.
    pub round_floats: bool,
    /// The type of the records; `None`: the columns determine it.
    pub record_type: Option<RecordType>,
    /// Whether to write rows in the order of the files that they are read from.
    pub preserve_order: bool,
    /// The stem of the names of shards.
    pub stem: String,
    /// Whether all rows go to files whose names are known before the first row.
    pub is_single: bool,
}

impl TfRecordSinkWire {
    /// The parts of a sink, and its configuration; `None` for other sinks.
    pub fn of(sink: &dyn DataSink) -> Option<(Self, &FileSinkConfig)> {
        let sink = sink.downcast_ref::<TfRecordSink>()?;
        let (config, options, stem, is_single) = sink.parts();
        let wire = Self {
            compression: options.compression,
            shards: options.shards,
            overwrite: options.overwrite,
            lossy: options.lossy,
            round_floats: options.round_floats,
            record_type: options.record_type,
            preserve_order: options.preserve_order,
            stem: stem.to_owned(),
            is_single,
        };
        Some((wire, config))
    }

    /// The sink.
    ///
    /// # Errors
    /// The number of shards is not allowed, or a column cannot be encoded.
    pub fn sink(self, config: FileSinkConfig) -> Result<Arc<dyn DataSink>> {
        if let Some(shards) = self.shards
            && !TfRecordOptions::allows_shards(shards)
        {
            return exec_err!("the plan writes {shards} shards");
        }
        let options = TfRecordOptions {
            compression: self.compression,
            shards: self.shards,
            overwrite: self.overwrite,
            lossy: self.lossy,
            round_floats: self.round_floats,
            record_type: self.record_type,
            preserve_order: self.preserve_order,
            ..TfRecordOptions::default()
        };
        let sink = TfRecordSink::of_parts(config, options, self.stem, self.is_single)?;
        Ok(Arc::new(sink))
    }
}

/// A wrapper of a sink of another format, whose files get their names after it has finished.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StagingSinkWire {
    /// The URL of the file that the statement names; `None` if it names a folder.
    pub file: Option<String>,
    /// Whether to replace existing files.
    pub overwrite: bool,
    /// The folder that COPY writes to; `None` for a file, and for INSERT.
    pub folder: Option<FolderWire>,
}

/// A folder that COPY writes to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FolderWire {
    /// The URL.
    pub url: String,
    /// The columns of PARTITIONED BY.
    pub keys: Vec<String>,
    /// Whether these columns are also in the files.
    pub keeps_columns: bool,
}

impl StagingSinkWire {
    /// The parts of a sink, and the operator of the other sink; `None` for other sinks.
    pub fn of(sink: &dyn DataSink) -> Option<(Self, &DataSinkExec)> {
        let sink = sink.downcast_ref::<StagingSink>()?;
        let (exec, target) = sink.parts();
        let folder = target.folder.as_ref().map(|(url, folder)| FolderWire {
            url: url.to_string(),
            keys: folder.keys.clone(),
            keeps_columns: folder.keeps_columns,
        });
        let wire = Self {
            file: target.file.as_ref().map(ToString::to_string),
            overwrite: target.overwrite,
            folder,
        };
        Some((wire, exec))
    }

    /// The sink.
    ///
    /// # Errors
    /// A URL is invalid.
    pub fn sink(self, exec: DataSinkExec) -> Result<Arc<dyn DataSink>> {
        let file = match self.file {
            Some(url) => Some(ListingTableUrl::parse(url)?),
            None => None,
        };
        let folder = match self.folder {
            Some(folder) => {
                let url = ListingTableUrl::parse(folder.url)?;
                let folder = OutputFolder {
                    path: url.prefix().clone(),
                    keys: folder.keys,
                    keeps_columns: folder.keeps_columns,
                    stem: PART.to_owned(),
                };
                Some((url, folder))
            }
            None => None,
        };
        let output = StatementOutput {
            file,
            folder,
            overwrite: self.overwrite,
        };
        Ok(Arc::new(StagingSink::of_parts(exec, output)))
    }
}
