//! TFRecord as a [`FileSource`] of DataFusion's file scan, with pushdown of projections and filters
//! to the decoder.

use std::{
    fmt,
    num::NonZeroUsize,
    sync::{Arc, Weak, atomic::AtomicUsize},
};

use arrow_schema::{FieldRef, SchemaRef};
use datafusion::{
    common::{config::ConfigOptions, exec_err, tree_node::TreeNodeRecursion},
    datasource::{
        physical_plan::{FileOpener, FileScanConfig, FileSource},
        projection::{ProjectionOpener, SplitProjection},
        table_schema::TableSchema,
    },
    error::Result,
    physical_expr::{LexOrdering, conjunction, projection::ProjectionExprs},
    physical_plan::{
        DisplayFormatType, PhysicalExpr, apply_expression_roots,
        filter_pushdown::{FilterPushdownPropagation, PushedDown},
        metrics::ExecutionPlanMetricsSet,
    },
};
use object_store::ObjectStore;
use tfarrow_codec::{Limits, OnError, ReaderBuilder, RecordType, VerifyCrc};
use tfarrow_dataset::{PartialTail, ReadOptions, internals::Lock};

use crate::{
    notice::NoticeSender,
    scan::{
        BATCH_SIZE,
        decoders::Decoders,
        file_scan::Scan,
        filter::{Filter, is_decidable, is_dynamic},
        metrics::ScanMetrics,
        opener::{NamingOpener, TfRecordOpener, uses_input_file_name},
    },
    schema::{columns::Columns, provenance::SchemaProvenance},
};

/// Bytes of a file that are read, and then decoded, at a time. Half of the cache of a core;
/// measured to be the fastest.
const CHUNK_BYTES: usize = 1 << 20;
/// Minimum bytes of a column per row, also for nulls: a number, or the end offset of a value.
const CELL_BYTES: usize = 4;

/// The [`FileSource`] of TFRecord: configuration of a scan.
#[derive(Clone)]
pub struct TfRecordSource {
    table_schema: TableSchema,
    projection: SplitProjection,
    batch_size: usize,
    metrics: ExecutionPlanMetricsSet,
    columns: Arc<Columns>,
    verify_crc: VerifyCrc,
    read: ReadOptions,
    pushdown_filters: bool,
    preserves_order: bool,
    /// Maximum number of threads that decode; `None`: one per worker of the runtime.
    threads: Option<usize>,
    /// The filters that the scan evaluates, over the table schema.
    predicate: Option<Arc<dyn PhysicalExpr>>,
    strict: bool,
    provenance: Arc<SchemaProvenance>,
    notices: Arc<NoticeSender>,
    execution: Arc<Execution>,
}

/// State that the partitions of one execution share.
#[derive(Debug, Default)]
struct Execution {
    decoders: Lock<Weak<Decoders>>,
    /// Number of files that are currently read.
    active: Arc<AtomicUsize>,
}

impl TfRecordSource {
    /// Creates a source that decodes records to the columns of `schema`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_schema::{DataType, Field, Schema};
    /// use datafusion::datasource::physical_plan::FileSource;
    /// use tfarrow_datafusion::TfRecordSource;
    ///
    /// let schema = Schema::new(vec![Field::new("label", DataType::Int64, true)]);
    /// let source = TfRecordSource::new(Arc::new(schema));
    /// assert!(!source.supports_repartitioning());
    /// ```
    pub fn new(schema: SchemaRef) -> Self {
        Self::of_columns(Arc::new(Columns::decoded(schema)), Vec::new())
    }

    /// Creates a source of the columns `columns` and the partition columns `partitions`.
    pub fn of_columns(columns: Arc<Columns>, partitions: Vec<FieldRef>) -> Self {
        let table_schema = TableSchema::builder(Arc::clone(columns.schema()))
            .with_table_partition_cols(partitions)
            .build();
        Self {
            projection: SplitProjection::unprojected(&table_schema),
            table_schema,
            batch_size: BATCH_SIZE,
            metrics: ExecutionPlanMetricsSet::new(),
            columns,
            verify_crc: VerifyCrc::Always,
            read: ReadOptions {
                chunk_bytes: CHUNK_BYTES,
                ..ReadOptions::default()
            },
            pushdown_filters: true,
            preserves_order: true,
            threads: None,
            predicate: None,
            strict: false,
            provenance: Arc::default(),
            notices: Arc::default(),
            execution: Arc::default(),
        }
    }

    /// Sets when to verify the CRC of a record's data; default: always.
    pub fn with_verify_crc(mut self, verify_crc: VerifyCrc) -> Self {
        self.verify_crc = verify_crc;
        self
    }

    /// Sets how to handle corrupt or non-conforming records; default: fail.
    pub fn with_on_error(mut self, on_error: OnError) -> Self {
        self.read.on_error = on_error;
        self
    }

    /// Sets how to handle a truncated last record; default: fail.
    pub fn with_partial_tail(mut self, partial_tail: PartialTail) -> Self {
        self.read.partial_tail = partial_tail;
        self
    }

    /// Sets the bytes of a file that are read, and then decoded, at a time.
    pub fn with_chunk_bytes(mut self, chunk_bytes: usize) -> Self {
        self.read.chunk_bytes = chunk_bytes;
        self
    }

    /// Sets the limits on records and columns.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.read.limits = limits;
        self
    }

    /// Sets whether to evaluate filters in the scan, and to decode other columns only for the rows
    /// that pass; default: true.
    pub fn with_pushdown_filters(mut self, pushdown_filters: bool) -> Self {
        self.pushdown_filters = pushdown_filters;
        self
    }

    /// Sets whether [`PreserveOrder`](crate::PreserveOrder) may scan all files as one ordered
    /// partition; default: true.
    pub fn with_preserve_order(mut self, preserve_order: bool) -> Self {
        self.preserves_order = preserve_order;
        self
    }

    /// Whether [`PreserveOrder`](crate::PreserveOrder) may scan all files as one ordered partition.
    pub fn preserves_order(&self) -> bool {
        self.preserves_order
    }

    /// Sets the maximum number of threads that decode at the same time; default: one per worker of
    /// the runtime.
    pub fn with_threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads.get());
        self
    }

    /// Sets whether a record with top-level fields of another message type is an error, as is
    /// necessary for an inferred record type.
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets the provenance of the schema, for errors, and the receiver of warnings.
    pub(crate) fn with_provenance(
        mut self,
        provenance: Arc<SchemaProvenance>,
        notices: Arc<NoticeSender>,
    ) -> Self {
        (self.provenance, self.notices) = (provenance, notices);
        self
    }

    /// Sets the receiver of warnings.
    pub fn with_notices(self, notices: Arc<NoticeSender>) -> Self {
        Self {
            notices,
            execution: Arc::default(),
            ..self
        }
    }

    /// The provenance of the schema.
    pub fn provenance(&self) -> &SchemaProvenance {
        &self.provenance
    }

    /// The receiver of warnings.
    pub fn notices(&self) -> &NoticeSender {
        &self.notices
    }

    /// Sets the filter that the scan evaluates, over the columns of the table.
    ///
    /// # Errors
    /// The scan cannot evaluate it.
    pub fn with_predicate(self, predicate: Arc<dyn PhysicalExpr>) -> Result<Self> {
        if !is_decidable(&predicate, self.table_schema.file_schema()) {
            return exec_err!(
                "the plan has a filter that a scan of TFRecord cannot evaluate: {predicate}"
            );
        }
        Ok(Self {
            predicate: Some(predicate),
            execution: Arc::default(),
            ..self
        })
    }

    /// The filter that the scan evaluates, over the columns of the table.
    pub fn predicate(&self) -> Option<&Arc<dyn PhysicalExpr>> {
        self.predicate.as_ref()
    }

    /// The columns of records.
    pub fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    /// How files are read.
    pub fn read_options(&self) -> &ReadOptions {
        &self.read
    }

    /// When the CRC of a record's data is verified.
    pub fn verify_crc(&self) -> VerifyCrc {
        self.verify_crc
    }

    /// Whether a record with top-level fields of another message type is an error.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Whether filters are evaluated in the scan.
    pub fn pushes_filters_down(&self) -> bool {
        self.pushdown_filters
    }

    /// The decoders that all partitions of an execution share. Creates new ones if no execution is
    /// running.
    fn decoders(&self) -> Result<Arc<Decoders>> {
        let mut shared = self.execution.decoders.lock();
        if let Some(decoders) = shared.upgrade() {
            return Ok(decoders);
        }
        let builder = ReaderBuilder::new(Arc::clone(self.columns.decoded_schema()))
            .with_verify_crc(self.verify_crc)
            .with_limits(self.read.limits)
            .with_strict(self.strict);
        let filter = self
            .predicate
            .as_ref()
            .map(|predicate| Filter::new(predicate, self.columns.schema()))
            .transpose()?;
        let projection = self.projection.file_indices.clone();
        let decoders = Decoders::new(
            &builder,
            &self.columns,
            projection,
            self.read.on_error,
            filter,
        )
        .with_provenance(Arc::clone(&self.provenance), Arc::clone(&self.notices));
        let decoders = Arc::new(decoders);
        *shared = Arc::downgrade(&decoders);
        Ok(decoders)
    }

    /// Average bytes per row of the projected columns, estimated from the sample.
    pub(crate) fn row_bytes(&self) -> usize {
        // The summary of a sample has no features of messages.
        if self.columns.record_type() == RecordType::Message {
            return self.provenance.record_bytes();
        }
        let fields = self.columns.schema().fields();
        let projected: Vec<_> = self
            .projection
            .file_indices
            .iter()
            .filter_map(|&index| fields.get(index))
            .collect();
        self.provenance
            .bytes_of(&projected)
            .into_iter()
            .map(|bytes| bytes.max(CELL_BYTES))
            .sum()
    }

    fn scan(&self, config: &FileScanConfig, partition: usize) -> Result<Scan> {
        Ok(Scan {
            decoders: self.decoders()?,
            columns: Arc::clone(&self.columns),
            predicate: self.predicate.clone(),
            provenance: Arc::clone(&self.provenance),
            notices: Arc::clone(&self.notices),
            read: self.read,
            batch_size: self.batch_size,
            threads: self.threads,
            // With a filter or skipped records, the number of records that a LIMIT needs is
            // unknown.
            limit: config
                .limit
                .filter(|_| self.predicate.is_none() && self.read.on_error == OnError::Fail),
            partitions: config.file_groups.len(),
            active: Arc::clone(&self.execution.active),
            metrics: ScanMetrics::new(&self.metrics, partition),
        })
    }
}

impl fmt::Debug for TfRecordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TfRecordSource")
            .field("verify_crc", &self.verify_crc)
            .finish_non_exhaustive()
    }
}

impl FileSource for TfRecordSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let opener = TfRecordOpener::new(store, self.scan(config, partition)?)
            .with_files_ahead(config, partition);
        let projection = self.projection.clone();
        let file_schema = self.table_schema.file_schema();
        if uses_input_file_name(self.projection.source.iter()) {
            return Ok(Arc::new(NamingOpener::new(
                opener,
                projection,
                Arc::clone(file_schema),
            )));
        }
        ProjectionOpener::try_new(projection, Arc::new(opener), file_schema)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self {
            batch_size: batch_size.max(1),
            ..self.clone()
        })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "tfrecord"
    }

    /// Files cannot be split, because the position of a record is known only after all previous
    /// ones have been read.
    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn repartitioned(
        &self,
        _target_partitions: usize,
        _repartition_file_min_size: usize,
        _output_ordering: Option<LexOrdering>,
        _config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        Ok(None)
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.predicate.clone()
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let schema = self.table_schema.file_schema();
        // The dynamic filter of a min or max aggregate may be false for rows that the aggregate
        // still needs: it ignores bounds that are unknown yet, and arguments that are not plain
        // columns. It is correct for pruning files, but not for removing rows, as this scan does.
        // The operator that owns a dynamic filter is unknown here, so that none is accepted while
        // aggregates create them. `session_context` disables those of aggregates, and so keeps
        // those of sorts and joins.
        let has_aggregates = config.optimizer.enable_aggregate_dynamic_filter_pushdown;
        let mut answers = Vec::with_capacity(filters.len());
        let mut taken = Vec::new();
        for filter in filters {
            let is_taken = self.pushdown_filters
                && is_decidable(&filter, schema)
                && (!has_aggregates || !is_dynamic(&filter));
            if is_taken {
                answers.push(PushedDown::Yes);
                taken.push(filter);
            } else {
                answers.push(PushedDown::No);
            }
        }
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        if taken.is_empty() {
            return Ok(propagation);
        }
        // This function is called several times: for the filters of the query, then for dynamic
        // filters of sorts and joins.
        let predicate = Some(conjunction(self.predicate.iter().cloned().chain(taken)));
        let source = Self {
            predicate,
            execution: Arc::default(),
            ..self.clone()
        };
        Ok(propagation.with_updated_node(Arc::new(source)))
    }

    fn fmt_extra(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.predicate, format) {
            (Some(predicate), DisplayFormatType::TreeRender) => {
                writeln!(f, "predicate={predicate}")
            }
            (Some(predicate), _) => write!(f, ", predicate={predicate}"),
            (None, _) => Ok(()),
        }
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self {
            projection,
            execution: Arc::default(),
            ..self.clone()
        })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(
            self.projection
                .source
                .iter()
                .map(|column| &column.expr)
                .chain(&self.predicate),
            f,
        )
    }
}
