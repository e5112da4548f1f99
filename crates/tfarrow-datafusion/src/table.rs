//! A TFRecord data set as a table.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, Hasher, RandomState},
    num::NonZeroUsize,
    ops::ControlFlow,
    path::Path,
    sync::Arc,
};

use arrow_schema::{FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::{ScalarValue, SchemaExt, plan_err, project_schema, runtime::SpawnedTask},
    datasource::{
        listing::{ListingTableUrl, PartitionedFile},
        physical_plan::{FileGroup, FileOutputMode, FileScanConfigBuilder, FileSinkConfig},
        source::DataSourceExec,
    },
    error::{DataFusionError, Result},
    execution::object_store::ObjectStoreUrl,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType, dml::InsertOp},
    physical_plan::{ExecutionPlan, empty::EmptyExec},
};
use tfarrow_codec::{
    RecordType, Role,
    schema::{role_of, with_views},
};
use tfarrow_dataset::{
    Error, ErrorKind, InferOptions, Inferred, ReadOptions, Sample, Shard, Wanted, check_one_payload, infer_with,
    is_shard_spec, names, resolve, resolve_wanted,
};

use crate::{
    columns::Columns,
    error::external,
    format, listing,
    notice::{OnNotice, Teller},
    options::{MetadataColumns, TfRecordOptions},
    origin::Origin,
    partitions::Partitions,
    scan::is_few,
    sink::PART,
    source::TfRecordSource,
};

/// The shards of one data set, read with one schema.
///
/// ```
/// # use std::sync::Arc;
/// use datafusion::prelude::SessionContext;
/// use tfarrow_datafusion::{TfRecordOptions, TfRecordTable};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// let source = format!("{testdata}/scalar.tfrecord");
/// let table = TfRecordTable::open(&source, &TfRecordOptions::default()).await?;
/// let context = SessionContext::new();
/// context.register_table("scalar", Arc::new(table))?;
/// assert!(context.sql("SELECT * FROM scalar").await?.count().await? > 0);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct TfRecordTable {
    files: Files,
    columns: Arc<Columns>,
    partitions: Partitions,
    schema: SchemaRef,
    options: TfRecordOptions,
    defaults: HashMap<String, Expr>,
    origin: Arc<Origin>,
    teller: Arc<Teller>,
}

/// The files of a table.
#[derive(Clone, Debug)]
pub(crate) enum Files {
    /// These.
    These(Vec<Shard>),
    /// Those that the sources name when they are asked for, so that new ones are seen. There may be none.
    Of(Vec<String>),
}

impl Files {
    /// Those that the sources name whenever they are asked for, but of what can be read only once, these; and those that
    /// they name now.
    pub(crate) fn named(sources: Vec<String>) -> Result<(Self, Vec<Shard>), Error> {
        let files = Self::Of(sources);
        let shards = files.shards()?;
        files.kept(shards)
    }

    /// These files, which are `shards` now; but of what can be read only once, those.
    fn kept(self, shards: Vec<Shard>) -> Result<(Self, Vec<Shard>), Error> {
        if !shards.iter().any(Shard::is_stream) {
            return Ok((self, shards));
        }
        let shards = spooled(shards)?;
        Ok((Self::These(shards.clone()), shards))
    }

    pub(crate) fn shards(&self) -> Result<Vec<Shard>, Error> {
        match self {
            Self::These(shards) => Ok(shards.clone()),
            Self::Of(sources) => match resolve_wanted(sources, Wanted::TfRecord) {
                Err(error) if is_empty(&error) && may_be_folder(sources) => Ok(Vec::new()),
                found => found.map(|found| found.shards),
            },
        }
    }

    /// The folder that new files go to.
    fn folder(&self) -> Result<ListingTableUrl> {
        let Self::Of(sources) = self else {
            return plan_err!("this table is what its files are: make one with CREATE EXTERNAL TABLE to write to");
        };
        match sources.as_slice() {
            [source] if !Path::new(source).is_file() && !is_pattern(source) => {
                // It may not be there yet: who writes the first file makes it.
                listing::folder(source)
            }
            _ => plan_err!("INSERT needs a table whose LOCATION is one folder, found {}", sources.join(", ")),
        }
    }
}

/// Whether a source names files by what they have in common.
pub(crate) fn is_pattern(source: &str) -> bool {
    source.contains(['*', '?', '[', '{']) || is_shard_spec(source)
}

/// Whether the sources may be a folder that is to be filled, and not files that are missing.
fn may_be_folder(sources: &[String]) -> bool {
    let [source] = sources else { return false };
    let name = Path::new(source);
    !is_pattern(source) && (source.ends_with('/') || !names::is_called_shard(name))
}

/// Whether a source names no file, or nothing that is there: a table that is to be filled.
fn is_empty(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::NoShards { passed_over, .. } => passed_over.other + passed_over.unwanted == 0,
        ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

impl TfRecordTable {
    /// The table of what `source` names: a file, a folder, a glob, or `-` for standard input. Its schema is inferred.
    ///
    /// # Errors
    /// Where the source names nothing, or something else than TFRecord; where a feature has more than one kind.
    pub async fn open(source: &str, options: &TfRecordOptions) -> Result<Self> {
        let (sources, options) = (vec![source.to_owned()], options.clone());
        blocking(move || Self::open_blocking(&sources, &options)).await
    }

    /// [`open`](Self::open), for several sources, on a thread that may block.
    pub(crate) fn open_blocking(sources: &[String], options: &TfRecordOptions) -> Result<Self> {
        let shards = resolve(sources).and_then(spooled).map_err(external)?;
        Self::infer_blocking(shards, options)
    }

    /// The table of these shards, none of which is a stream. Its schema is inferred, from a sample or from all records
    /// as the options say.
    ///
    /// # Errors
    /// A shard that cannot be read; a feature that has more than one kind, unless these get a column each.
    pub async fn infer(shards: Vec<Shard>, options: &TfRecordOptions) -> Result<Self> {
        let options = options.clone();
        blocking(move || Self::infer_blocking(shards, &options)).await
    }

    pub(crate) fn infer_blocking(shards: Vec<Shard>, options: &TfRecordOptions) -> Result<Self> {
        let inferred = look(&shards, options, options.sample)?;
        let TfRecordOptions { layout, record_type, on_conflict, .. } = *options;
        let schema = inferred.schema_with(layout, record_type, on_conflict).map_err(external)?;
        let columns = Columns::decoded(visible(&schema, options.bytes_type.is_view()));
        let partitions = Partitions::found(&shards, columns.schema());
        let table = Self::of_columns(Files::These(shards), columns, partitions, options)?;
        Ok(table.with_origin(Origin::inferred(inferred)))
    }

    /// The table of these shards with declared columns: those of `schema`, which may have the types that SQL has for
    /// numbers, text, bytes and lists of them. A record that has no such feature has the value of `defaults`, else null.
    ///
    /// ```
    /// use std::{collections::HashMap, sync::Arc};
    /// use arrow_schema::{DataType, Field, Schema};
    /// use tfarrow_datafusion::{TfRecordOptions, TfRecordTable};
    /// # fn main() -> datafusion::error::Result<()> {
    /// let schema = Schema::new(vec![Field::new("label", DataType::Int32, true)]);
    /// let table = TfRecordTable::declared(vec![], &schema, &HashMap::new(), &TfRecordOptions::default())?;
    /// # drop(table);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A type that no feature can be read as.
    pub fn declared(
        shards: Vec<Shard>,
        schema: &Schema,
        defaults: &HashMap<String, ScalarValue>,
        options: &TfRecordOptions,
    ) -> Result<Self> {
        let columns = Columns::declared(schema, defaults, options.record_type, options.bytes_type.is_view())?;
        Self::of_columns(Files::These(shards), columns, Partitions::default(), options)
    }

    /// The table of these files and columns. Those that the options ask for besides are added.
    pub(crate) fn of_columns(
        files: Files,
        columns: Columns,
        partitions: Partitions,
        options: &TfRecordOptions,
    ) -> Result<Self> {
        let wanted = options.metadata_columns;
        let columns = Arc::new(columns.with_metadata(wanted, options.bytes_type.is_view())?);
        let partitions = partitions.with_file(wanted.file, columns.schema())?;
        let fields: Vec<_> = columns.schema().fields().iter().cloned().chain(partitions.fields()).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, columns.schema().metadata().clone()));
        let (options, defaults) = (options.clone(), HashMap::new());
        let (origin, teller) = Default::default();
        Ok(Self { files, columns, partitions, schema, options, defaults, origin, teller })
    }

    /// The table of whatever files the sources name when a query asks; its schema is that of those that they name now.
    pub(crate) fn named_blocking(sources: Vec<String>, options: &TfRecordOptions) -> Result<Self> {
        let shards = resolve(&sources).map_err(external)?;
        let (files, shards) = Files::Of(sources).kept(shards).map_err(external)?;
        Ok(Self { files, ..Self::infer_blocking(shards, options)? })
    }

    /// This table, with these folders as columns in place of those that were found; where none is given, with those.
    pub(crate) fn partitioned(self, folders: Vec<FieldRef>, options: &TfRecordOptions) -> Result<Self> {
        if folders.is_empty() {
            return Ok(self);
        }
        if let Some(taken) =
            folders.iter().find(|folder| self.columns.schema().column_with_name(folder.name()).is_some())
        {
            return plan_err!("PARTITIONED BY {0}: the data has a feature {0:?} of its own", taken.name());
        }
        let Self { files, columns, origin, teller, .. } = self;
        let table = Self::of_columns(files, Columns::clone(&columns), Partitions::declared(folders), options)?;
        Ok(Self { origin, teller, ..table })
    }

    pub(crate) fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Arc::new(origin);
        self
    }

    /// What a statement says of the values that INSERT leaves out.
    pub(crate) fn with_defaults(mut self, defaults: HashMap<String, Expr>) -> Self {
        self.defaults = defaults;
        self
    }

    /// Whom a scan tells of features that have no column, and of records that it passes over.
    pub fn with_notices(mut self, tell: Option<OnNotice>) -> Self {
        self.teller = Arc::new(Teller::new(tell));
        self
    }

    /// Where the schema comes from.
    pub fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// How the records are decoded.
    fn source(&self) -> TfRecordSource {
        let guessed = self.origin.is_inferred() && self.options.record_type.is_none();
        TfRecordSource::of_columns(Arc::clone(&self.columns), self.partitions.fields())
            .with_verify_crc(self.options.verify_crc)
            .with_on_error(self.options.on_error)
            .with_partial_tail(self.options.partial_tail)
            .with_limits(self.options.limits)
            .with_pushdown_filters(self.options.pushdown_filters)
            .with_preserve_order(self.options.preserve_order)
            .with_strict(guessed)
            .with_origin(Arc::clone(&self.origin), Arc::clone(&self.teller))
    }

    /// The files that the filters leave, each with the values that its folders give.
    async fn files(&self, filters: &[Expr], state: &dyn Session) -> Result<Vec<PartitionedFile>> {
        let files = self.files.clone();
        let shards = blocking(move || files.shards().map_err(external)).await?;
        let values = shards.iter().map(|shard| self.partitions.values(shard)).collect::<Result<Vec<_>>>()?;
        let deciding: Vec<_> = filters.iter().filter(|filter| self.partitions.decides(filter)).collect();
        let keep = self.partitions.keep(&deciding, &values, state)?;
        let files = shards.into_iter().zip(values).zip(keep).filter(|(_, keep)| *keep);
        let (shards, values): (Vec<_>, Vec<_>) = files.map(|(file, _)| file).unzip();
        let is_raw = self.options.record_type == Some(RecordType::Raw);
        let check = move || if is_raw { Ok(shards) } else { check_one_payload(&shards).map(|()| shards) };
        let shards = blocking(move || check().map_err(external)).await?;
        Ok(shards.iter().zip(values).map(|(shard, values)| partitioned_file(shard, values)).collect())
    }
}

/// What is in these shards.
pub(crate) fn look(shards: &[Shard], options: &TfRecordOptions, sample: Sample) -> Result<Inferred> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let TfRecordOptions { verify_crc: verify, on_error, partial_tail, limits, record_type, .. } = *options;
    let read = ReadOptions { on_error, partial_tail, limits, ..ReadOptions::default() };
    let infer = InferOptions { sample, jobs, verify, record_type, read };
    infer_with(shards, &infer, &|_, _| ControlFlow::Continue(())).map_err(external)
}

/// The schema that a query sees: with views, and without the column that only the way back needs.
fn visible(schema: &Schema, views: bool) -> SchemaRef {
    let is_visible = |(index, field): (usize, &Arc<_>)| (role_of(field) != Some(Role::Unset)).then_some(index);
    let kept: Vec<_> = schema.fields().iter().enumerate().filter_map(is_visible).collect();
    // No index is out of range, so that the schema itself never stands in.
    with_views(&schema.project(&kept).unwrap_or_else(|_| schema.clone()), views)
}

/// Copies of what can be read only once, and an error for what is no TFRecord.
pub(crate) fn spooled(mut shards: Vec<Shard>) -> Result<Vec<Shard>, Error> {
    shards.iter_mut().try_for_each(Shard::spool)?;
    Ok(shards)
}

/// Runs what may block on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = SpawnedTask::spawn_blocking(work).join_unwind().await;
    done.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?
}

#[async_trait]
impl TableProvider for TfRecordTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    /// What is about files alone is decided before any is opened. About features, the scan itself decides, once the
    /// physical plan offers it the filters.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let decides = |filter: &&Expr| match self.partitions.decides(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(decides).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.files(filters, state).await?;
        if files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(project_schema(&self.schema, projection)?)));
        }
        let threads = state.config().target_partitions();
        // A few rows come from the first files, in order, rather than from all files at once.
        let partitions = if limit.is_some_and(is_few) { 1 } else { threads };
        let source = self.source().with_threads(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN));
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(file_groups(files, partitions))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            // What a plan over long records runs with is for operators that gather rows: the scan bounds its own bytes.
            .with_batch_size(Some(state.config().batch_size()))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    /// New rows are new files, in the folder that the table is.
    async fn insert_into(
        &self,
        _state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if operation != InsertOp::Append {
            return plan_err!("rows can be added to TFRECORD tables, not replaced: write another folder with COPY");
        }
        if self.options.metadata_columns != MetadataColumns::NONE {
            return plan_err!("a table with tfarrow.metadata_columns is to be read: make one without them to write to");
        }
        self.schema.logically_equivalent_names_and_types(&input.schema())?;
        let url = self.files.folder()?;
        let folders = self.partitions.fields();
        let config = FileSinkConfig {
            original_url: url.to_string(),
            object_store_url: url.object_store(),
            table_paths: vec![url],
            file_group: FileGroup::default(),
            output_schema: Arc::clone(&self.schema),
            table_partition_cols: folders.iter().map(|f| (f.name().clone(), f.data_type().clone())).collect(),
            insert_op: operation,
            keep_partition_by_columns: false,
            file_extension: String::new(),
            file_output_mode: FileOutputMode::Directory,
        };
        // Rows are added: to files whose names nobody has had, and in no other's place.
        let options = TfRecordOptions { overwrite: false, ..self.options.clone() };
        let stem = format!("{PART}-{:016x}", RandomState::new().build_hasher().finish());
        format::write(input, config, None, options, stem)
    }
}

/// The files, in their order, cut into at most so many groups of about the same size.
fn file_groups(files: Vec<PartitionedFile>, partitions: usize) -> Vec<FileGroup> {
    // An empty file has a weight too, so that the last groups get some.
    let weight = |file: &PartitionedFile| file.object_meta.size + 1;
    let mut bytes: u64 = files.iter().map(weight).sum();
    let mut files: VecDeque<_> = files.into();
    let mut groups = Vec::new();
    for left in (1..=partitions.min(files.len())).rev() {
        let (mut group, mut size) = (FileGroup::default(), 0);
        let share = bytes.div_ceil(left as u64);
        // Each of the groups after this one gets a file.
        while size < share && files.len() >= left.max(1) {
            let Some(file) = files.pop_front() else { break };
            size += weight(&file);
            group.push(file);
        }
        bytes -= size;
        groups.push(group);
    }
    groups
}

/// A shard as DataFusion knows files. The shard itself travels with it: its path may be no object's path.
fn partitioned_file(shard: &Shard, values: Vec<ScalarValue>) -> PartitionedFile {
    let file = PartitionedFile::new(shard.path.to_string_lossy(), shard.size).with_extension(shard.clone());
    PartitionedFile { partition_values: values, ..file }
}

#[cfg(test)]
mod tests {
    use tfarrow_dataset::Contents;

    use super::*;

    #[track_caller]
    fn check(sizes: &[u64], partitions: usize, expect: &[&[u64]]) {
        let shard = |size: &u64| Shard::file("a".into(), "a".into(), *size, Contents::TfRecord);
        let files = sizes.iter().map(|size| partitioned_file(&shard(size), vec![])).collect();
        let groups = file_groups(files, partitions);
        let found: Vec<Vec<u64>> =
            groups.iter().map(|group| group.iter().map(|file| file.object_meta.size).collect()).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn groups_are_of_about_one_size() {
        check(&[5, 5, 5, 5], 2, &[&[5, 5], &[5, 5]]);
        check(&[100, 1, 2, 3], 2, &[&[100], &[1, 2, 3]]);
        check(&[1, 2, 3, 100], 2, &[&[1, 2, 3, 100][..3], &[100]]);
        check(&[1, 1, 100, 1, 1], 3, &[&[1, 1, 100], &[1], &[1]]);
        check(&[0, 0], 4, &[&[0], &[0]]);
        check(&[7], 8, &[&[7]]);
    }
}
