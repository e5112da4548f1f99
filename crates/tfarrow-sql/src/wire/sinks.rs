//! The sinks of COPY and INSERT.

use std::{num::NonZeroUsize, sync::Arc};

use datafusion::{
    common::exec_datafusion_err,
    datasource::{
        listing::ListingTableUrl,
        physical_plan::FileSinkConfig,
        sink::{DataSink, DataSinkExec},
    },
    error::Result,
};
use tfarrow_codec::RecordType;
use tfarrow_datafusion::{
    TfRecordOptions, TfRecordSink,
    internals::{OutputFolder, PART},
};

use crate::{
    wire::reading::named,
    write::staging::{StagingSink, StatementOutput},
};

/// A sink of TFRecord files, besides its [`FileSinkConfig`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct TfRecordSinkWire {
    /// The compression, which may be that of the name of the file.
    #[prost(string, tag = "1")]
    pub compression: String,
    /// Number of shards; absent: DataFusion determines the number of files.
    #[prost(uint64, optional, tag = "2")]
    pub shards: Option<u64>,
    /// Whether to replace existing files.
    #[prost(bool, tag = "3")]
    pub overwrite: bool,
    /// Whether to write the nearest value for one that TFRecord cannot represent.
    #[prost(bool, tag = "4")]
    pub lossy: bool,
    /// The type of the records; absent: that of the columns.
    #[prost(string, optional, tag = "5")]
    pub record_type: Option<String>,
    /// Whether to write rows in the order of the files that they are read from.
    #[prost(bool, tag = "6")]
    pub preserve_order: bool,
    /// The stem of the names of shards.
    #[prost(string, tag = "7")]
    pub stem: String,
    /// Whether all rows go to files whose names are known before the first row.
    #[prost(bool, tag = "8")]
    pub is_single: bool,
    /// Whether to round floats of 64 bits to those of 32 bits.
    #[prost(bool, tag = "9")]
    pub round_floats: bool,
}

impl TfRecordSinkWire {
    /// The message of a sink, and its configuration; `None` for other sinks.
    pub fn of(sink: &dyn DataSink) -> Option<(Self, &FileSinkConfig)> {
        let sink = sink.downcast_ref::<TfRecordSink>()?;
        let (config, options, stem, is_single) = sink.parts();
        let wire = Self {
            compression: options.compression.name().to_owned(),
            shards: options.shards.map(|shards| shards.get() as u64),
            overwrite: options.overwrite,
            lossy: options.lossy,
            record_type: options
                .record_type
                .map(|record_type| record_type.name().to_owned()),
            preserve_order: options.preserve_order,
            stem: stem.to_owned(),
            is_single,
            round_floats: options.round_floats,
        };
        Some((wire, config))
    }

    /// The sink.
    ///
    /// # Errors
    /// The message is corrupt, or a column cannot be encoded.
    pub fn sink(self, config: FileSinkConfig) -> Result<Arc<dyn DataSink>> {
        let number = |shards| usize::try_from(shards).ok().and_then(NonZeroUsize::new);
        let allowed = |shards: &NonZeroUsize| TfRecordOptions::allows_shards(*shards);
        let valid = |shards| {
            number(shards)
                .filter(allowed)
                .ok_or_else(|| exec_datafusion_err!("the plan writes {shards} shards"))
        };
        let record_type = self
            .record_type
            .map(|name| named::<RecordType>("record_type", &name))
            .transpose()?;
        let options = TfRecordOptions {
            compression: named("compression", &self.compression)?,
            shards: self.shards.map(valid).transpose()?,
            overwrite: self.overwrite,
            lossy: self.lossy,
            round_floats: self.round_floats,
            record_type,
            preserve_order: self.preserve_order,
            ..TfRecordOptions::default()
        };
        Ok(Arc::new(TfRecordSink::of_parts(
            config,
            options,
            self.stem,
            self.is_single,
        )?))
    }
}

/// A wrapper of a sink of another format, whose files get their names after it has finished.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StagingSinkWire {
    /// The URL of the file that the statement names; absent if it names a folder.
    #[prost(string, optional, tag = "1")]
    pub file: Option<String>,
    /// Whether to replace existing files.
    #[prost(bool, tag = "2")]
    pub overwrite: bool,
    /// The URL of the folder that COPY writes to; absent for a file, and for INSERT.
    #[prost(string, optional, tag = "3")]
    pub folder: Option<String>,
    /// The columns of PARTITIONED BY.
    #[prost(string, repeated, tag = "4")]
    pub keys: Vec<String>,
    /// Whether these columns are also in the files.
    #[prost(bool, tag = "5")]
    pub keeps_columns: bool,
}

impl StagingSinkWire {
    /// The message of a sink, and the operator of the other sink; `None` for other sinks.
    pub fn of(sink: &dyn DataSink) -> Option<(Self, &DataSinkExec)> {
        let sink = sink.downcast_ref::<StagingSink>()?;
        let (exec, target) = sink.parts();
        let file = target.file.as_ref().map(ToString::to_string);
        let overwrite = target.overwrite;
        let (url, folder) = target.folder.clone().unzip();
        let (keys, keeps_columns) = folder
            .map(|folder| (folder.keys, folder.keeps_columns))
            .unwrap_or_default();
        Some((
            Self {
                file,
                overwrite,
                folder: url.map(|url| url.to_string()),
                keys,
                keeps_columns,
            },
            exec,
        ))
    }

    /// The sink.
    ///
    /// # Errors
    /// A URL is invalid.
    pub fn sink(self, exec: DataSinkExec) -> Result<Arc<dyn DataSink>> {
        let Self {
            file,
            overwrite,
            folder,
            keys,
            keeps_columns,
        } = self;
        let file = file.map(ListingTableUrl::parse).transpose()?;
        let named = |url: ListingTableUrl| {
            let path = url.prefix().clone();
            let stem = PART.to_owned();
            (
                url,
                OutputFolder {
                    path,
                    keys,
                    keeps_columns,
                    stem,
                },
            )
        };
        let folder = folder.map(ListingTableUrl::parse).transpose()?.map(named);
        Ok(Arc::new(StagingSink::of_parts(
            exec,
            StatementOutput {
                file,
                folder,
                overwrite,
            },
        )))
    }
}
