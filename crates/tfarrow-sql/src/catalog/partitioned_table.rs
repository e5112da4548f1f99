//! Listing tables of DataFusion with the columns of folders `key=value`, which are those of the
//! data set.
//!
//! DataFusion's own partition columns are text, and have no null. The files of this table are those
//! of a listing table without partition columns, to each of which the values of its folders are
//! added.
//!
//! Workaround for DataFusion 55: apache/datafusion#18083 (null, open). Delete when its partition
//! columns have types and null.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{FieldRef, Schema, SchemaRef};
use datafusion::{
    catalog::{Session, TableProvider},
    common::{
        ColumnStatistics, ScalarValue, Statistics, internal_datafusion_err, project_schema,
        stats::Precision,
    },
    datasource::{
        listing::{ListingTable, PartitionedFile},
        physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder},
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    error::Result,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType},
    physical_plan::{ExecutionPlan, empty::EmptyExec},
};
use object_store::path::Path;
use tfarrow_datafusion::internals::{PartitionColumns, PlanFuture, urls};
use tfarrow_dataset::Shard;

/// A listing table with the columns of folders.
#[derive(Debug)]
pub(crate) struct PartitionedTable {
    /// The files, without columns of folders.
    listing: ListingTable,
    columns: PartitionColumns,
    /// The values of the columns for each file.
    values: HashMap<Path, Vec<ScalarValue>>,
    /// The columns of the files, and then those of folders.
    schema: SchemaRef,
}

impl PartitionedTable {
    /// Adds the columns of the folders of `shards`, which are the files of `listing`, but for those
    /// that the files have themselves. Returns the listing table if there are none.
    ///
    /// # Errors
    /// A file whose name is no valid URL.
    pub(crate) fn of(listing: ListingTable, shards: &[Shard]) -> Result<Arc<dyn TableProvider>> {
        let own = listing.schema();
        let columns = PartitionColumns::inferred(shards, &own);
        if columns.fields().is_empty() {
            return Ok(Arc::new(listing));
        }
        let mut values = HashMap::new();
        for shard in shards {
            values.insert(urls::shard(shard)?.prefix().clone(), columns.values(shard)?);
        }
        let fields: Vec<FieldRef> = own
            .fields()
            .iter()
            .cloned()
            .chain(columns.fields())
            .collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()));
        Ok(Arc::new(Self {
            listing,
            columns,
            values,
            schema,
        }))
    }

    /// The files, without columns of folders.
    pub(crate) fn listing(&self) -> &ListingTable {
        &self.listing
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
            let scan = self.listing.scan(state, None, &[], None).await?;
            let source = scan
                .downcast_ref::<DataSourceExec>()
                .map(DataSourceExec::data_source);
            let groups = match source.and_then(|source| source.downcast_ref::<FileScanConfig>()) {
                Some(config) => self.groups(config, filters, state)?,
                None => Vec::new(),
            };
            if groups.is_empty() {
                let empty: Arc<dyn ExecutionPlan> =
                    Arc::new(EmptyExec::new(project_schema(&self.schema, projection)?));
                return Ok(empty);
            }
            let own = self.listing.schema();
            let schema = TableSchema::builder(own)
                .with_table_partition_cols(self.columns.fields())
                .build();
            let format = &self.listing.options().format;
            let store = self
                .listing
                .table_paths()
                .first()
                .map(|path| path.object_store());
            let store = store.ok_or_else(|| internal_datafusion_err!("a table without files"))?;
            let config = FileScanConfigBuilder::new(store, format.file_source(schema))
                .with_statistics(self.statistics(&groups)?)
                .with_file_groups(groups)
                .with_projection_indices(projection.cloned())?
                .with_limit(limit)
                .build();
            format.create_physical_plan(state, config).await
        })
    }

    /// The groups of the files that `filters` keep, with the values of their folders.
    fn groups(
        &self,
        config: &FileScanConfig,
        filters: &[Expr],
        state: &dyn Session,
    ) -> Result<Vec<FileGroup>> {
        let deciding: Vec<_> = filters
            .iter()
            .filter(|filter| self.columns.decides(filter))
            .collect();
        let mut groups = Vec::new();
        for group in &config.file_groups {
            let files: Vec<_> = group
                .iter()
                .map(|file| self.with_values(file))
                .collect::<Result<_>>()?;
            let values: Vec<_> = files
                .iter()
                .map(|file| file.partition_values.clone())
                .collect();
            let keep = self.columns.keep(&deciding, &values, state)?;
            let kept: Vec<_> = files
                .into_iter()
                .zip(keep)
                .filter(|(_, keep)| *keep)
                .map(|(file, _)| file)
                .collect();
            if !kept.is_empty() {
                groups.push(FileGroup::new(kept));
            }
        }
        Ok(groups)
    }

    /// The file with the values of its folders.
    fn with_values(&self, file: &PartitionedFile) -> Result<PartitionedFile> {
        let location = &file.object_meta.location;
        let values = self.values.get(location);
        let values = values
            .ok_or_else(|| internal_datafusion_err!("{location}: is no file of the table"))?;
        let mut file = file.clone();
        file.partition_values.clone_from(values);
        file.statistics = file.statistics.map(|statistics| {
            let mut statistics = Arc::unwrap_or_clone(statistics);
            let added = values
                .iter()
                .map(|value| statistics_of(value, statistics.num_rows));
            statistics
                .column_statistics
                .extend(added.collect::<Vec<_>>());
            Arc::new(statistics)
        });
        Ok(file)
    }

    /// The statistics of all files; unknown ones if those of a file are.
    fn statistics(&self, groups: &[FileGroup]) -> Result<Statistics> {
        let files: Vec<_> = groups.iter().flat_map(FileGroup::iter).collect();
        let known: Vec<_> = files
            .iter()
            .filter_map(|file| file.statistics.as_deref())
            .collect();
        match known.len() == files.len() {
            true => Statistics::try_merge_iter(known, &self.schema),
            false => Ok(Statistics::new_unknown(&self.schema)),
        }
    }
}

/// The statistics of a column that has one value in all rows.
fn statistics_of(value: &ScalarValue, rows: Precision<usize>) -> ColumnStatistics {
    let unknown = ColumnStatistics::new_unknown();
    if value.is_null() {
        return ColumnStatistics {
            null_count: rows,
            ..unknown
        };
    }
    let exact = Precision::Exact(value.clone());
    ColumnStatistics {
        null_count: Precision::Exact(0),
        min_value: exact.clone(),
        max_value: exact,
        ..unknown
    }
}

impl TableProvider for PartitionedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Filters on columns of folders prune files while planning. The optimizer of the physical plan
    /// pushes others down.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(self.columns.pushdown(filters))
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
}
