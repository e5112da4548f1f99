//! The construction of a table: its files, and where its columns come from.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use arrow_schema::{FieldRef, Schema};
use datafusion::{
    common::{ScalarValue, config_err},
    error::Result,
    logical_expr::Expr,
};
use tfarrow_codec::{MessageType, OnError, RecordType, schema::with_views};
use tfarrow_dataset::{
    ReadOptions, Shard, ShardFormat, event_message,
    internals::{are_events, without_folder_columns},
    load_message, resolve,
};
use tfarrow_scan::{InferOptions, Inferred, Sample};

use super::TfRecordTable;
use crate::{
    blocking::blocking,
    error::external,
    notice::OnNotice,
    options::TfRecordOptions,
    schema::{
        columns::{Columns, visible},
        partition_columns::PartitionColumns,
        provenance::SchemaProvenance,
    },
    table::{
        files::{TableFiles, spooled},
        indexes::TableIndexes,
    },
};

/// Records of each sampled shard that are read if they do not determine the columns: for their
/// average length.
pub(crate) const SAMPLE_OF_LENGTHS: usize = 10;

/// Builds a [`TfRecordTable`] of some files.
///
/// The columns are inferred from the records, unless one of
/// [`with_inferred`](Self::with_inferred), [`with_message`](Self::with_message) and
/// [`with_schema`](Self::with_schema) gives them. TensorBoard's files have a row for each event.
///
/// ```
/// # use std::sync::Arc;
/// use datafusion::prelude::SessionContext;
/// use tfarrow_codec::OnError;
/// use tfarrow_datafusion::{TfRecordOptions, TfRecordTableBuilder};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// let sources = ["*-00000-of-*", "*-00003-of-*"].map(|shard| format!("{testdata}/shards/{shard}"));
/// let options = TfRecordOptions { on_error: OnError::Skip, ..TfRecordOptions::default() };
/// let table = TfRecordTableBuilder::new(sources).with_options(options).build().await?;
/// let context = SessionContext::new();
/// context.register_table("two", Arc::new(table))?;
/// assert_eq!(context.sql("SELECT * FROM two").await?.count().await?, 100);
/// # Ok(()) }
/// ```
pub struct TfRecordTableBuilder {
    files: Files,
    options: TfRecordOptions,
    columns: ColumnSource,
    partitions: Vec<FieldRef>,
    defaults: HashMap<String, Expr>,
    /// Records that were read for their type and average length.
    seen: Option<Inferred>,
    on_notice: Option<OnNotice>,
}

/// The files of a table that is built.
enum Files {
    /// The current files of these sources.
    Sources(Vec<String>),
    /// The files that these sources have when a query is planned.
    Listed(Vec<String>),
    /// These files, none of which is a stream.
    Shards(Vec<Shard>),
    /// These files, and their current list.
    Opened(TableFiles, Arc<[Shard]>),
}

/// What determines the columns of a table.
enum ColumnSource {
    /// The options and the records.
    Records,
    /// Records that were read already.
    Inferred(Box<Inferred>),
    /// The type of the records.
    Message(MessageType),
    /// Columns with types, and the values of columns in records without the feature.
    Schema(Schema, HashMap<String, ScalarValue>),
}

impl TfRecordTableBuilder {
    /// Builds the table of these sources: files, folders, globs, URLs, or `-` for standard input.
    pub fn new(sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::of(Files::Sources(
            sources.into_iter().map(Into::into).collect(),
        ))
    }

    /// Builds the table of sources whose files are listed by each query, so that it reads new ones.
    pub(crate) fn listed(sources: Vec<String>) -> Self {
        Self::of(Files::Listed(sources))
    }

    /// Builds the table of these files, whose current list is `shards`.
    pub(crate) fn of_files(files: TableFiles, shards: Arc<[Shard]>) -> Self {
        Self::of(Files::Opened(files, shards))
    }

    /// Builds the table of these shards, none of which may be a stream.
    pub fn of_shards(shards: Vec<Shard>) -> Self {
        Self::of(Files::Shards(shards))
    }

    fn of(files: Files) -> Self {
        Self {
            files,
            options: TfRecordOptions::default(),
            columns: ColumnSource::Records,
            partitions: Vec::new(),
            defaults: HashMap::new(),
            seen: None,
            on_notice: None,
        }
    }

    /// Sets the options. By default those of [`TfRecordOptions`].
    pub fn with_options(mut self, options: TfRecordOptions) -> Self {
        self.options = options;
        self
    }

    /// Takes the columns from records, or a sample of them, that were read already.
    pub fn with_inferred(mut self, inferred: Inferred) -> Self {
        self.columns = ColumnSource::Inferred(Box::new(inferred));
        self
    }

    /// Sets the type of the records, whose fields are the columns.
    pub fn with_message(mut self, message: MessageType) -> Self {
        self.columns = ColumnSource::Message(message);
        self
    }

    /// Sets the type of the records to TensorBoard's events. The files may be of other formats that
    /// events were converted to.
    ///
    /// # Errors
    /// The type cannot be loaded.
    pub fn with_events(self) -> Result<Self> {
        Ok(self.with_message(event_message().map_err(external)?))
    }

    /// Sets the columns. Their types may be numbers, text, bytes, and lists of these. A record
    /// without the feature of a column gets the value in `defaults`, else null.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use arrow_schema::{DataType, Field, Schema};
    /// use tfarrow_datafusion::TfRecordTableBuilder;
    /// # fn main() -> datafusion::error::Result<()> {
    /// let schema = Schema::new(vec![Field::new("label", DataType::Int32, true)]);
    /// let table = TfRecordTableBuilder::of_shards(vec![]).with_schema(schema, HashMap::new());
    /// # drop(table.build_blocking()?);
    /// # Ok(()) }
    /// ```
    pub fn with_schema(mut self, schema: Schema, defaults: HashMap<String, ScalarValue>) -> Self {
        self.columns = ColumnSource::Schema(schema, defaults);
        self
    }

    /// Sets the partition columns. The value of such a column is that of the folder `name=value` of
    /// each file, cast to the type of the column. By default, they are inferred from the folders.
    pub fn with_partition_columns(mut self, columns: Vec<FieldRef>) -> Self {
        self.partitions = columns;
        self
    }

    /// Sets the defaults of columns that INSERT does not list.
    pub(crate) fn with_insert_defaults(mut self, defaults: HashMap<String, Expr>) -> Self {
        self.defaults = defaults;
        self
    }

    /// Sets the records that were read for their type and average length, where a schema is given.
    pub(crate) fn with_seen(mut self, seen: Option<Inferred>) -> Self {
        self.seen = seen;
        self
    }

    /// Sets the callback that scans report features without a column to, and skipped records.
    pub fn with_notices(mut self, on_notice: Option<OnNotice>) -> Self {
        self.on_notice = on_notice;
        self
    }

    /// Builds the table.
    ///
    /// # Errors
    /// A source has no TFRecord files, or a shard cannot be read. A feature has more than one kind,
    /// and `on_conflict` is not `split`. A feature cannot be cast to the type of its column, or a
    /// default is not a valid value of it. A message has no fields, or more columns than
    /// [`TfRecordOptions::limits`] allow. A partition column has the name of a feature.
    pub async fn build(self) -> Result<TfRecordTable> {
        blocking(move || self.build_blocking()).await
    }

    /// The blocking version of [`build`](Self::build).
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_blocking(self) -> Result<TfRecordTable> {
        let (files, shards) = self.files.open()?;
        let options = self.options;
        let is_declared = matches!(self.columns, ColumnSource::Schema(..));
        let (indexes, indexed) = TableIndexes::open(&shards, &options);
        let columns = self.columns;
        let (columns, provenance) = columns.columns(&shards, &options, self.seen, indexed)?;
        let partitions = match is_declared {
            true => PartitionColumns::default(),
            false => PartitionColumns::inferred(&shards, columns.schema()),
        };
        let mut table = TfRecordTable::of_columns(files, columns, partitions, &options)?;
        table.indexes = indexes;
        table.provenance = Arc::new(provenance);
        table.defaults = self.defaults;
        table
            .with_notices(self.on_notice)
            .partitioned(self.partitions)
    }
}

impl Files {
    /// The files of the table, and their current list.
    fn open(self) -> Result<(TableFiles, Arc<[Shard]>)> {
        let shards: Arc<[Shard]> = match self {
            Self::Listed(sources) => return TableFiles::listed(sources).map_err(external),
            Self::Sources(sources) => {
                let shards = resolve(&sources).and_then(spooled).map_err(external)?;
                shards.into()
            }
            Self::Shards(shards) => shards.into(),
            Self::Opened(files, shards) => return Ok((files, shards)),
        };
        Ok((TableFiles::Fixed(Arc::clone(&shards)), shards))
    }
}

impl ColumnSource {
    /// What the options or the records of these shards determine.
    fn of_records(
        shards: &[Shard],
        options: &TfRecordOptions,
        indexed: Option<Inferred>,
    ) -> Result<Self> {
        if let Some(message) = message_of(options)? {
            return Ok(Self::Message(message));
        }
        if options.record_type.is_none() && are_events(shards) {
            return Ok(Self::Message(event_message().map_err(external)?));
        }
        let inferred = match indexed {
            Some(inferred) => inferred,
            None => infer(shards, options, options.sample)?,
        };
        Ok(Self::Inferred(Box::new(inferred)))
    }

    /// The columns of records, and their provenance.
    fn columns(
        self,
        shards: &[Shard],
        options: &TfRecordOptions,
        seen: Option<Inferred>,
        indexed: Option<Inferred>,
    ) -> Result<(Columns, SchemaProvenance)> {
        let views = options.bytes_type.is_view();
        match self {
            Self::Records => {
                let found = Self::of_records(shards, options, indexed)?;
                found.columns(shards, options, seen, None)
            }
            Self::Inferred(inferred) => {
                let TfRecordOptions {
                    layout,
                    record_type,
                    on_conflict,
                    ..
                } = *options;
                let schema = inferred
                    .schema_with(layout, record_type, on_conflict)
                    .map_err(external)?;
                let columns = Columns::decoded(visible(&schema, views));
                Ok((columns, SchemaProvenance::inferred(*inferred)))
            }
            Self::Message(message) => {
                let schema = message.schema(&options.limits);
                let schema = schema.map_err(tfarrow_dataset::Error::from);
                let schema = schema.map_err(external)?;
                let columns = Columns::decoded(with_views(&schema, views));
                let sample = sample_of_lengths(shards, options);
                Ok((columns, SchemaProvenance::declared(sample)))
            }
            Self::Schema(schema, defaults) => {
                let record_type = options.record_type.or_else(|| type_of(seen.as_ref()?));
                let columns = Columns::declared(&schema, &defaults, record_type, views)?;
                Ok((columns, SchemaProvenance::declared(seen)))
            }
        }
    }
}

/// Loads the type of the records that `proto` and `message` give; `None` if they are not set.
///
/// # Errors
/// The options are incomplete or contradict the record type, or the file does not define the
/// message.
pub fn message_of(options: &TfRecordOptions) -> Result<Option<MessageType>> {
    match (&options.proto, &options.message) {
        (None, None) => Ok(None),
        (Some(_), None) => {
            config_err!("tfarrow.proto needs tfarrow.message, the name of a message in the file")
        }
        (_, Some(_)) if options.record_type.is_some() => {
            config_err!(
                "tfarrow.record_type and tfarrow.message are set, and each states the type of \
                 the records"
            )
        }
        (proto, Some(message)) => load_message(proto.as_deref(), message)
            .map(Some)
            .map_err(external),
    }
}

/// The type of the records of a sample; `None` for raw records: columns are declared, so that a
/// query should report a record without features by its number and byte.
fn type_of(sample: &Inferred) -> Option<RecordType> {
    let record_type = sample.summary.record_type();
    (record_type != RecordType::Raw).then_some(record_type)
}

/// Some records for their average length, which is optional: a query reports corrupt records. No
/// record is parsed as an Example.
fn sample_of_lengths(shards: &[Shard], options: &TfRecordOptions) -> Option<Inferred> {
    let raw = TfRecordOptions {
        on_error: OnError::Skip,
        record_type: Some(RecordType::Raw),
        ..options.clone()
    };
    infer(shards, &raw, Sample::Records(SAMPLE_OF_LENGTHS)).ok()
}

/// Infers a summary of the records of these shards.
pub(crate) fn infer(
    shards: &[Shard],
    options: &TfRecordOptions,
    sample: Sample,
) -> Result<Inferred> {
    let read = ReadOptions {
        on_error: options.on_error,
        partial_tail: options.partial_tail,
        limits: options.limits,
        ..ReadOptions::default()
    };
    let options = InferOptions {
        sample,
        part: None,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        verify: options.verify_crc,
        record_type: options.record_type,
        read,
    };
    // Columns of folders are those of the table, and no features.
    let mut shards = without_folder_columns(shards);
    if shards
        .iter()
        .any(|shard| shard.format != ShardFormat::TfRecord)
    {
        // Their rows are not read as records: such a file is an error, because it is not TFRecord.
        for shard in shards.to_mut() {
            shard.format = ShardFormat::TfRecord;
        }
    }
    tfarrow_scan::infer(&shards, &options, &|_, _| ControlFlow::Continue(())).map_err(external)
}
