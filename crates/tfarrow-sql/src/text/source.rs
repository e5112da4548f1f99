//! The [`FileSource`] of CSV and JSON.

use std::{fmt, sync::Arc};

use datafusion::{
    common::tree_node::TreeNodeRecursion,
    datasource::{
        physical_plan::{
            FileGroupPartitioner, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
        },
        projection::{ProjectionOpener, SplitProjection},
        table_schema::TableSchema,
    },
    error::Result,
    physical_expr::{LexOrdering, projection::ProjectionExprs},
    physical_plan::{
        DisplayFormatType, PhysicalExpr, apply_expression_roots, metrics::ExecutionPlanMetricsSet,
    },
};
use object_store::ObjectStore;
use tfarrow_datafusion::internals::BATCH_SIZE;

use crate::text::{inferred_files::InferredFiles, opener::TextOpener, options::TextOptions};

/// The [`FileSource`] of CSV and JSON: configuration of a scan.
#[derive(Clone, Debug)]
pub(crate) struct TextSource {
    options: TextOptions,
    table_schema: TableSchema,
    projection: SplitProjection,
    batch_size: usize,
    metrics: ExecutionPlanMetricsSet,
    /// Whether a statement declares the columns, which may then have other names than in the
    /// headers of CSV files.
    is_declared: bool,
    /// Whether each row of all files is on a line of its own, so that files can be read in parts.
    has_row_per_line: bool,
    /// The files that determined the columns, in the process that planned the query.
    inferred: Arc<InferredFiles>,
}

impl TextSource {
    pub(crate) fn new(options: TextOptions, table_schema: TableSchema) -> Self {
        Self {
            options,
            projection: SplitProjection::unprojected(&table_schema),
            table_schema,
            batch_size: BATCH_SIZE,
            metrics: ExecutionPlanMetricsSet::new(),
            is_declared: false,
            has_row_per_line: false,
            inferred: Arc::default(),
        }
    }

    pub(crate) fn with_options(self, options: TextOptions) -> Self {
        Self { options, ..self }
    }

    /// Sets whether a statement declares the columns.
    pub(crate) fn with_declared(self, is_declared: bool) -> Self {
        Self {
            is_declared,
            ..self
        }
    }

    /// Sets whether each row of all files is on a line of its own.
    pub(crate) fn with_row_per_line(self, has_row_per_line: bool) -> Self {
        Self {
            has_row_per_line,
            ..self
        }
    }

    /// Sets the files that determined the columns.
    pub(super) fn with_inferred(self, inferred: &Arc<InferredFiles>) -> Self {
        Self {
            is_declared: inferred.is_none(),
            inferred: Arc::clone(inferred),
            ..self
        }
    }

    pub(crate) fn options(&self) -> &TextOptions {
        &self.options
    }

    pub(crate) fn is_declared(&self) -> bool {
        self.is_declared
    }

    pub(crate) fn has_row_per_line(&self) -> bool {
        self.has_row_per_line
    }
}

impl FileSource for TextSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let opener = TextOpener {
            store,
            url: config.object_store_url.clone(),
            options: self.options.clone(),
            columns: Arc::clone(self.table_schema.file_schema()),
            read_columns: self.projection.file_indices.as_slice().into(),
            batch_rows: self.batch_size,
            limit: config.limit,
            is_declared: self.is_declared,
            has_row_per_line: self.has_row_per_line,
        };
        ProjectionOpener::try_new(
            self.projection.clone(),
            Arc::new(opener),
            self.table_schema.file_schema(),
        )
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
        self.options.name()
    }

    /// Whether a row begins after each line feed, as inference has found.
    fn supports_repartitioning(&self) -> bool {
        self.has_row_per_line
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        repartition_file_min_size: usize,
        output_ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        if self.options.compression().is_compressed() || !self.inferred.has_row_per_line(config) {
            return Ok(None);
        }
        let groups = FileGroupPartitioner::new()
            .with_target_partitions(target_partitions)
            .with_repartition_file_min_size(repartition_file_min_size)
            .with_preserve_order_within_groups(output_ordering.is_some())
            .repartition_file_groups(&config.file_groups);
        let Some(file_groups) = groups else {
            return Ok(None);
        };
        let source = Arc::new(self.clone().with_row_per_line(true));
        let divided = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(file_groups)
            .with_source(source);
        Ok(Some(divided.build()))
    }

    fn fmt_extra(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.options, format) {
            (_, DisplayFormatType::TreeRender) | (TextOptions::Json(_), _) => Ok(()),
            (TextOptions::Csv(_), _) => write!(f, ", has_header={}", self.options.has_header()),
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
            ..self.clone()
        })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projection.source.iter().map(|column| &column.expr), f)
    }
}
