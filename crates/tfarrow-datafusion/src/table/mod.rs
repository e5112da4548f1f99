//! A TFRecord data set as a table of DataFusion.

pub(crate) mod builder;
pub(crate) mod dataset;
pub(crate) mod event_table;
pub(crate) mod external_table;
pub(crate) mod files;
pub(crate) mod indexes;
pub(crate) mod registry;
pub mod urls;

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
    num::NonZeroUsize,
    ops::Range,
    sync::Arc,
};

use arrow_schema::{Field, FieldRef, Schema, SchemaRef};
use datafusion::{
    catalog::{Session, TableProvider},
    common::{ScalarValue, SchemaExt, Statistics, plan_err, project_schema, stats::Precision},
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileOutputMode, FileScanConfigBuilder, FileSinkConfig},
        source::DataSourceExec,
    },
    error::Result,
    execution::object_store::ObjectStoreUrl,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType, dml::InsertOp},
    physical_plan::{ExecutionPlan, empty::EmptyExec},
};
use futures::future;
use tfarrow_codec::{
    OnError, RecordType,
    frame::{FOOTER, HEADER},
    schema::{MESSAGE, with_views},
};
use tfarrow_dataset::{
    Shard,
    internals::{EVENT_MESSAGE, FilePiece, check_one_payload, divide},
};

use tfarrow_index::ShardIndex;

use crate::{
    blocking::blocking,
    error::external,
    file_format,
    notice::{NoticeSender, OnNotice},
    options::{MetadataColumns, TfRecordOptions},
    plan_future::PlanFuture,
    scan::{file_scan::is_few, record_range::RecordRange, source::TfRecordSource},
    schema::{columns::Columns, partition_columns::PartitionColumns, provenance::SchemaProvenance},
    table::{builder::TfRecordTableBuilder, files::TableFiles, indexes::TableIndexes},
    write::output_folder::PART,
};

/// A [`TableProvider`] over the shards of one data set, which have one schema.
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
#[derive(Clone, Debug)]
pub struct TfRecordTable {
    files: TableFiles,
    indexes: TableIndexes,
    columns: Arc<Columns>,
    partitions: PartitionColumns,
    schema: SchemaRef,
    options: TfRecordOptions,
    defaults: HashMap<String, Expr>,
    provenance: Arc<SchemaProvenance>,
    notices: Arc<NoticeSender>,
    /// The records of each file that are read; `None` for all records.
    ranges: Option<Vec<RecordRange>>,
}

impl TfRecordTable {
    /// Opens the table of `source`, which is a file, a folder, a glob, or `-` for standard input.
    /// Infers the schema. TensorBoard's files have a row for each event.
    ///
    /// # Errors
    /// The source has no TFRecord files, a record cannot be read, or a feature has more than one
    /// kind.
    pub async fn open(source: &str, options: &TfRecordOptions) -> Result<Self> {
        let builder = TfRecordTableBuilder::new([source]).with_options(options.clone());
        builder.build().await
    }

    /// For each column of numbers with the same number of values in all records that the schema was
    /// inferred from: its name and that number. There are none for a declared schema. Features that
    /// some of these records do not have are left out.
    pub fn fixed_lengths(&self) -> impl Iterator<Item = (&str, u64)> {
        let fields = self.columns.schema().fields();
        fields.iter().filter_map(move |field| {
            let length = self.provenance.fixed_length(field)?;
            Some((field.name().as_str(), length))
        })
    }

    /// Creates the table of these files and columns, and adds the metadata columns of the options.
    fn of_columns(
        files: TableFiles,
        columns: Columns,
        partitions: PartitionColumns,
        options: &TfRecordOptions,
    ) -> Result<Self> {
        let wanted = options.metadata_columns;
        let columns = Arc::new(columns.with_metadata(wanted, options.bytes_type.is_view())?);
        let partitions = partitions.with_file(wanted.file, columns.schema())?;
        let schema = table_schema(&columns, &partitions);
        let options = options.clone();
        let defaults = HashMap::new();
        let (provenance, notices) = Default::default();
        Ok(Self {
            files,
            indexes: TableIndexes::default(),
            columns,
            partitions,
            schema,
            options,
            defaults,
            provenance,
            notices,
            ranges: None,
        })
    }

    /// Creates the table of some consecutive records of this one: those with the numbers `records`,
    /// counted from 0 in the order of the files. `counts` has the number of records of each file.
    /// Records before the range are not decoded, and files outside of the range are not read.
    ///
    /// # Errors
    /// The table lists its files for each query, or has another number of files than `counts`.
    pub fn with_records(&self, records: Range<u64>, counts: &[u64]) -> Result<Self> {
        let TableFiles::Fixed(shards) = &self.files else {
            return plan_err!(
                "the files of the table are listed by each query, and their records are not counted"
            );
        };
        if shards.len() != counts.len() {
            return plan_err!(
                "found {} files, expected the {} that were counted",
                shards.len(),
                counts.len()
            );
        }
        let mut files = Vec::new();
        let mut ranges = Vec::new();
        let mut start = 0;
        for (shard, count) in shards.iter().zip(counts) {
            let from = records.start.saturating_sub(start).min(*count);
            let to = records.end.saturating_sub(start).min(*count);
            if from < to {
                files.push(shard.clone());
                ranges.push(RecordRange(from..to));
            }
            start += count;
        }
        Ok(Self {
            files: TableFiles::Fixed(files.into()),
            ranges: Some(ranges),
            ..self.clone()
        })
    }

    /// The files of the table, if their list is fixed.
    pub fn shards(&self) -> Option<&[Shard]> {
        match &self.files {
            TableFiles::Fixed(shards) => Some(shards),
            TableFiles::Listed(_) => None,
        }
    }

    /// Replaces the inferred partition columns by these; keeps the inferred ones if there are none.
    /// The value of such a column is that of the folder `name=value` of each file, cast to the type
    /// of the column.
    ///
    /// # Errors
    /// The data has a feature of the name of a column.
    fn partitioned(self, columns: Vec<FieldRef>) -> Result<Self> {
        if columns.is_empty() {
            return Ok(self);
        }
        let features = self.columns.schema();
        if let Some(taken) = columns
            .iter()
            .find(|field| features.column_with_name(field.name()).is_some())
        {
            return plan_err!(
                "PARTITIONED BY {0}: the data already has a feature {0:?}",
                taken.name()
            );
        }
        let partitions = PartitionColumns::declared(columns)
            .with_file(self.options.metadata_columns.file, features)?;
        let schema = table_schema(&self.columns, &partitions);
        Ok(Self {
            partitions,
            schema,
            ..self
        })
    }

    /// Sets the callback that scans report features without a column to, and skipped records. It
    /// gets the indexes that are not used at once.
    pub fn with_notices(mut self, on_notice: Option<OnNotice>) -> Self {
        self.notices = Arc::new(NoticeSender::new(on_notice));
        self.notices.send_unusable(self.indexes.unusable());
        self
    }

    /// The columns of folders such as `split=train`.
    pub fn folder_columns(&self) -> &[FieldRef] {
        self.partitions.folders()
    }

    /// Returns whether the records are TensorBoard's events, and no option states it.
    pub(crate) fn is_of_events(&self) -> bool {
        let message = self.columns.schema().metadata().get(MESSAGE);
        self.options.message.is_none() && message.is_some_and(|message| message == EVENT_MESSAGE)
    }

    /// Creates the table of these columns of the messages, and of the column `run`, in place of the
    /// columns of folders. Its schema has no record type, because its rows are not written back as
    /// messages.
    ///
    /// # Errors
    /// The files cannot be listed.
    pub(crate) fn with_runs(&self, columns: Vec<Field>) -> Result<Self> {
        let schema = Schema::new_with_metadata(columns, self.columns.schema().metadata().clone());
        let columns =
            Columns::without_record_type(with_views(&schema, self.options.bytes_type.is_view()));
        let runs = PartitionColumns::of_runs(&self.files.shards().map_err(external)?);
        let table = Self::of_columns(self.files.clone(), columns, runs, &self.options)?;
        let provenance = Arc::clone(&self.provenance);
        let notices = Arc::clone(&self.notices);
        Ok(Self {
            indexes: self.indexes.clone(),
            provenance,
            notices,
            ranges: self.ranges.clone(),
            ..table
        })
    }

    /// Sets the metadata columns of the tables that [`with_runs`](Self::with_runs) creates.
    pub(crate) fn with_metadata_columns(&self, metadata_columns: MetadataColumns) -> Self {
        let options = TfRecordOptions {
            metadata_columns,
            ..self.options.clone()
        };
        Self {
            options,
            ..self.clone()
        }
    }

    /// Returns whether the table is that of the messages of TensorBoard's files, with their runs.
    pub fn has_runs(&self) -> bool {
        self.partitions.has_runs()
    }

    /// The options of the table.
    pub fn options(&self) -> &TfRecordOptions {
        &self.options
    }

    /// The provenance of the schema.
    pub fn provenance(&self) -> &Arc<SchemaProvenance> {
        &self.provenance
    }

    /// The file source of a scan.
    fn source(&self) -> TfRecordSource {
        let is_guessed = self.provenance.is_inferred() && self.options.record_type.is_none();
        TfRecordSource::of_columns(Arc::clone(&self.columns), self.partitions.fields())
            .with_verify_crc(self.options.verify_crc)
            .with_on_error(self.options.on_error)
            .with_partial_tail(self.options.partial_tail)
            .with_limits(self.options.limits)
            .with_pushdown_filters(self.options.pushdown_filters)
            .with_preserve_order(self.options.preserve_order)
            .with_strict(is_guessed)
            .with_provenance(Arc::clone(&self.provenance), Arc::clone(&self.notices))
    }

    /// Lists the files that the filters keep, with the values of their partition columns.
    async fn files(&self, filters: &[Expr], state: &dyn Session) -> Result<Vec<PartitionedFile>> {
        let files = self.files.clone();
        let shards = blocking(move || files.shards().map_err(external)).await?;
        let values = shards
            .iter()
            .map(|shard| self.partitions.values(shard))
            .collect::<Result<Vec<_>>>()?;
        let deciding: Vec<_> = filters
            .iter()
            .filter(|filter| self.partitions.decides(filter))
            .collect();
        let keep = self.partitions.keep(&deciding, &values, state)?;
        let kept: Arc<[Shard]> = match keep.contains(&false) {
            true => shards
                .iter()
                .zip(&keep)
                .filter(|(_, keep)| **keep)
                .map(|(shard, _)| shard.clone())
                .collect(),
            false => Arc::clone(&shards),
        };
        let is_message = self.columns.record_type() == RecordType::Message;
        if !is_message && self.options.record_type != Some(RecordType::Raw) {
            blocking(move || check_one_payload(&kept).map_err(external)).await?;
        }
        let mut files = Vec::with_capacity(shards.len());
        for (number, (values, _)) in values
            .into_iter()
            .zip(keep)
            .enumerate()
            .filter(|(_, (_, keep))| *keep)
        {
            let range = self
                .ranges
                .as_ref()
                .and_then(|ranges| ranges.get(number))
                .cloned();
            let Some(shard) = shards.get(number) else {
                continue;
            };
            let file = partitioned_file(shard, values, range.unwrap_or_default());
            files.push(match self.indexes.get(shard) {
                Some(index) => file.with_extension(index.clone()),
                None => file,
            });
        }
        Ok(files)
    }
}

/// The schema of a table: the columns of records, and then those of files.
fn table_schema(columns: &Columns, partitions: &PartitionColumns) -> SchemaRef {
    let fields: Vec<_> = columns
        .schema()
        .fields()
        .iter()
        .cloned()
        .chain(partitions.fields())
        .collect();
    Arc::new(Schema::new_with_metadata(
        fields,
        columns.schema().metadata().clone(),
    ))
}

impl TfRecordTable {
    /// Divides long files, if fewer files than partitions are read: by their indexes, or into pieces
    /// if an engine can read the query again after an error of a piece. The records of a piece have
    /// no numbers.
    async fn cut(
        &self,
        files: Vec<PartitionedFile>,
        partitions: usize,
    ) -> Result<Vec<PartitionedFile>> {
        let Some(least) = self
            .options
            .piece_bytes
            .filter(|_| files.len() < partitions)
        else {
            return Ok(files);
        };
        let reads_all = files.iter().all(|file| RecordRange::of(file).is_whole());
        if !reads_all {
            return Ok(files);
        }
        let can_fail = self.options.on_error == OnError::Fail;
        let division = Division {
            count: partitions,
            least: least.get() as u64,
            allows_pieces: can_fail && !self.options.metadata_columns.record,
        };
        blocking(move || Ok(division.of_files(files))).await
    }

    /// Plans the scan of the files that `filters` keep.
    fn plan_scan<'a>(
        &'a self,
        state: &'a dyn Session,
        projection: Option<&'a Vec<usize>>,
        filters: &'a [Expr],
        limit: Option<usize>,
    ) -> PlanFuture<'a> {
        Box::pin(async move {
            let files = self.files(filters, state).await?;
            if files.is_empty() {
                let empty: Arc<dyn ExecutionPlan> =
                    Arc::new(EmptyExec::new(project_schema(&self.schema, projection)?));
                return Ok(empty);
            }
            let statistics = self.statistics(&files);
            let threads = state.config().target_partitions();
            let files = if limit.is_none() {
                self.cut(files, threads).await?
            } else {
                files
            };
            // For a small LIMIT, read the first files in order instead of all files at once.
            let partitions = if limit.is_some_and(is_few) {
                1
            } else {
                threads
            };
            let source = self
                .source()
                .with_threads(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN));
            let config =
                FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
                    .with_file_groups(file_groups(files, partitions))
                    .with_statistics(statistics)
                    .with_projection_indices(projection.cloned())?
                    .with_limit(limit)
                    // A plan over long rows runs with a smaller batch size for operators that
                    // buffer rows. The scan bounds the bytes of its batches itself.
                    .with_batch_size(Some(state.config().batch_size()))
                    .build();
            let scan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
            Ok(scan)
        })
    }

    /// The estimated numbers of rows and bytes of these files, by which joins are ordered. The
    /// records of compressed files are more than estimated.
    fn statistics(&self, files: &[PartitionedFile]) -> Statistics {
        let unknown = Statistics::new_unknown(&self.schema);
        if let Some(rows) = self.known_rows(files) {
            return unknown.with_num_rows(Precision::Exact(rows));
        }
        let record_bytes = self.provenance.record_bytes();
        if record_bytes == 0 {
            return unknown;
        }
        let bytes: u64 = files.iter().map(|file| file.object_meta.size).sum();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let rows = bytes / (HEADER + record_bytes + FOOTER);
        unknown
            .with_num_rows(Precision::Inexact(rows))
            .with_total_byte_size(Precision::Inexact(bytes))
    }

    /// The number of rows of these files, if all of them have an index. Records that do not fit
    /// their columns may be skipped.
    fn known_rows(&self, files: &[PartitionedFile]) -> Option<usize> {
        if self.options.on_error == OnError::Skip {
            return None;
        }
        let mut rows = 0;
        for file in files {
            let records = file.extension::<ShardIndex>()?.records();
            let Range { start, end } = RecordRange::of(file).0;
            rows += end.min(records).saturating_sub(start);
        }
        usize::try_from(rows).ok()
    }

    /// Plans the write of new rows to new files in the folder of the table.
    fn plan_insert(
        &self,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if operation != InsertOp::Append {
            return plan_err!(
                "TFRECORD tables support INSERT INTO only; write another folder with COPY to replace rows"
            );
        }
        if self.options.metadata_columns != MetadataColumns::NONE {
            return plan_err!(
                "a table with tfarrow.metadata_columns is read-only; create one without them to INSERT"
            );
        }
        self.schema
            .logically_equivalent_names_and_types(&input.schema())?;
        let url = self.files.folder()?;
        let folders = self.partitions.fields();
        let config = FileSinkConfig {
            original_url: url.to_string(),
            object_store_url: url.object_store(),
            table_paths: vec![url],
            file_group: FileGroup::default(),
            output_schema: Arc::clone(&self.schema),
            table_partition_cols: folders
                .iter()
                .map(|f| (f.name().clone(), f.data_type().clone()))
                .collect(),
            insert_op: operation,
            keep_partition_by_columns: false,
            file_extension: String::new(),
            file_output_mode: FileOutputMode::Directory,
        };
        // New files have unique names, and never replace others.
        let options = TfRecordOptions {
            overwrite: false,
            ..self.options.clone()
        };
        let stem = format!("{PART}-{:016x}", RandomState::new().build_hasher().finish());
        file_format::write(input, config, None, options, stem)
    }
}

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

    /// Filters on partition columns prune files while planning. Filters on features are pushed down
    /// to the scan later, by the optimizer of the physical plan.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(self.partitions.pushdown(filters))
    }

    fn scan<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        state: &'life1 dyn Session,
        projection: Option<&'life2 Vec<usize>>,
        filters: &'life3 [Expr],
        limit: Option<usize>,
    ) -> PlanFuture<'async_trait>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
    {
        self.plan_scan(state, projection, filters, limit)
    }

    fn insert_into<'life0, 'life1, 'async_trait>(
        &'life0 self,
        _state: &'life1 dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> PlanFuture<'async_trait>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
    {
        Box::pin(future::ready(self.plan_insert(input, operation)))
    }
}

/// How files that are longer than the other files are divided.
struct Division {
    /// About the number of parts of all files.
    count: usize,
    /// Number of bytes of a part, or more.
    least: u64,
    /// Whether a file without an index may be divided.
    allows_pieces: bool,
}

impl Division {
    /// The files, some of them in parts. Blocks the thread.
    fn of_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        let bytes: u64 = files.iter().map(|file| file.object_meta.size).sum();
        let share = (bytes / self.count.max(1) as u64).max(self.least);
        let mut all = Vec::with_capacity(files.len());
        for file in files {
            match self.of_file(&file, share) {
                Some(parts) => all.extend(parts),
                None => all.push(file),
            }
        }
        all
    }

    /// The parts of a file, of about `share` bytes; `None` if it is read as a whole.
    fn of_file(&self, file: &PartitionedFile, share: u64) -> Option<Vec<PartitionedFile>> {
        let shard = file.extension::<Shard>()?;
        let mut parts = Vec::new();
        if let Some(index) = file.extension::<ShardIndex>() {
            // The scan warns of an index that cannot be read.
            let index = index.open(shard).ok()?;
            for part in index.divide(self.count, share).ok()?? {
                let mut file = file.clone();
                file.object_meta.size = part.bytes;
                parts.push(file.with_extension(RecordRange(part.records)));
            }
        } else if self.allows_pieces {
            for piece in FilePiece::divide(shard, self.count, share)? {
                parts.push(piece_of(file, piece));
            }
        } else {
            return None;
        }
        Some(parts)
    }
}

/// A piece of a file.
pub fn piece_of(file: &PartitionedFile, piece: FilePiece) -> PartitionedFile {
    let mut file = file.clone();
    file.object_meta.size = piece.bytes.end - piece.bytes.start;
    file.with_extension(piece)
}

/// Divides the files, in their order, into at most `partitions` groups of about the same number of
/// bytes.
fn file_groups(files: Vec<PartitionedFile>, partitions: usize) -> Vec<FileGroup> {
    let sizes: Vec<_> = files.iter().map(|file| file.object_meta.size).collect();
    let mut files = files.into_iter();
    let ranges = divide(&sizes, partitions);
    let mut groups = Vec::with_capacity(ranges.len());
    for range in ranges {
        let group = files.by_ref().take(range.len()).collect();
        groups.push(FileGroup::new(group));
    }
    groups
}

/// A shard as a file of a DataFusion scan. The shard is an extension of the file, because its path
/// may not be a valid path of an object store.
pub fn partitioned_file(
    shard: &Shard,
    values: Vec<ScalarValue>,
    range: RecordRange,
) -> PartitionedFile {
    let file = PartitionedFile::new(shard.path.to_string_lossy(), shard.size);
    let file = file.with_extension(shard.clone().without_folder_columns());
    // Plans copy their files, which may be hundreds of thousands.
    let file = if range.is_whole() {
        file
    } else {
        file.with_extension(range)
    };
    PartitionedFile {
        partition_values: values,
        ..file
    }
}

#[cfg(test)]
mod tests {
    use tfarrow_dataset::ShardFormat;

    use super::*;

    #[track_caller]
    fn check(sizes: &[u64], partitions: usize, expect: &[&[u64]]) {
        let shard = |size: &u64| Shard::file("a".into(), "a".into(), *size, ShardFormat::TfRecord);
        let files = sizes
            .iter()
            .map(|size| partitioned_file(&shard(size), vec![], RecordRange::default()))
            .collect();
        let groups = file_groups(files, partitions);
        let found: Vec<Vec<u64>> = groups
            .iter()
            .map(|group| group.iter().map(|file| file.object_meta.size).collect())
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn groups_are_of_about_one_size() {
        check(&[5, 5, 5, 5], 2, &[&[5, 5], &[5, 5]]);
        check(&[100, 1, 2, 3], 2, &[&[100], &[1, 2, 3]]);
        check(&[1, 2, 3, 100], 2, &[&[1, 2, 3, 100][..3], &[100]]);
        check(&[1, 1, 100, 1, 1], 3, &[&[1, 1], &[100], &[1, 1]]);
        check(&[0, 0], 4, &[&[0], &[0]]);
        check(&[7], 8, &[&[7]]);
    }
}
