//! A TFRecord data set as a table.

use std::{ops::ControlFlow, sync::Arc};

use arrow_schema::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::runtime::SpawnedTask,
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    error::{DataFusionError, Result},
    execution::object_store::ObjectStoreUrl,
    logical_expr::{Expr, TableType},
    physical_plan::ExecutionPlan,
};
use tfarrow_codec::{
    Role,
    schema::{role_of, with_views},
};
use tfarrow_dataset::{Error, InferOptions, Shard, infer_with, resolve};

use crate::{
    error::external,
    options::TfRecordOptions,
    origin::Origin,
    source::TfRecordSource,
    unknown::{OnUnknownFeatures, Teller},
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
    shards: Vec<Shard>,
    schema: SchemaRef,
    options: TfRecordOptions,
    origin: Arc<Origin>,
    teller: Arc<Teller>,
}

impl TfRecordTable {
    /// The table of what `source` names: a file, a folder, a glob, or `-` for standard input. Its schema is inferred.
    ///
    /// # Errors
    /// Where the source names nothing, or something else than TFRecord; where a feature has more than one kind.
    pub async fn open(source: &str, options: &TfRecordOptions) -> Result<Self> {
        let source = source.to_owned();
        let shards = blocking(move || spooled(resolve(&[source])?)).await?;
        Self::infer(shards, options).await
    }

    /// The table of these shards, none of which is a stream. Its schema is inferred, from a sample or from all records
    /// as the options say.
    ///
    /// # Errors
    /// A shard that cannot be read, and a feature that has more than one kind.
    pub async fn infer(shards: Vec<Shard>, options: &TfRecordOptions) -> Result<Self> {
        let options = options.clone();
        blocking(move || {
            let jobs = std::thread::available_parallelism().map_or(1, usize::from);
            let verify = options.verify_crc;
            let infer = InferOptions { sample: options.sample, jobs, verify, ..InferOptions::default() };
            let inferred = infer_with(&shards, &infer, &|_, _| ControlFlow::Continue(()))?;
            let schema = visible(&*inferred.schema(options.layout, options.record_type)?);
            let mut table = Self::new(shards, schema, options);
            table.origin = Arc::new(Origin::inferred(inferred));
            Ok(table)
        })
        .await
    }

    /// The table of these shards with a declared schema.
    pub fn new(shards: Vec<Shard>, schema: SchemaRef, options: TfRecordOptions) -> Self {
        Self { shards, schema, options, origin: Arc::default(), teller: Arc::default() }
    }

    /// Whom a scan tells of features that have no column.
    pub fn with_unknown_features(mut self, tell: Option<OnUnknownFeatures>) -> Self {
        self.teller = Arc::new(Teller::new(tell));
        self
    }

    /// The shards.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Where the schema comes from.
    pub fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// How the records are decoded.
    fn source(&self) -> TfRecordSource {
        let guessed = self.origin.sample().is_some() && self.options.record_type.is_none();
        TfRecordSource::new(Arc::clone(&self.schema))
            .with_verify_crc(self.options.verify_crc)
            .with_pushdown_filters(self.options.pushdown_filters)
            .with_strict(guessed)
            .with_origin(Arc::clone(&self.origin), Arc::clone(&self.teller))
    }
}

/// The schema that a query sees: with views, and without the column that only the way back needs.
fn visible(schema: &Schema) -> SchemaRef {
    let is_visible = |(index, field): (usize, &Arc<_>)| (role_of(field) != Some(Role::Unset)).then_some(index);
    let kept: Vec<_> = schema.fields().iter().enumerate().filter_map(is_visible).collect();
    // No index is out of range, so that the schema itself never stands in.
    with_views(&schema.project(&kept).unwrap_or_else(|_| schema.clone()), true)
}

/// Copies of what can be read only once, and an error for what is no TFRecord.
pub(crate) fn spooled(mut shards: Vec<Shard>) -> Result<Vec<Shard>, Error> {
    shards.iter_mut().try_for_each(Shard::spool)?;
    Ok(shards)
}

/// Runs what may block on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T> {
    let done = SpawnedTask::spawn_blocking(work).join_unwind().await;
    done.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?.map_err(external)
}

#[async_trait]
impl TableProvider for TfRecordTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // A few rows come from the first files, in order, rather than from all files at once.
        let partitions = if limit.is_some() { 1 } else { state.config().target_partitions() };
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(self.source()))
            .with_file_groups(file_groups(&self.shards, partitions))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// The shards in at most so many groups of about the same size, each in the order of the shards.
fn file_groups(shards: &[Shard], partitions: usize) -> Vec<FileGroup> {
    let groups = partitions.min(shards.len()).max(1);
    let mut sizes = vec![(0u64, FileGroup::default()); groups];
    for shard in shards {
        if let Some((size, group)) = sizes.iter_mut().min_by_key(|(size, _)| *size) {
            // Also an empty file takes its turn, so that no group stays empty.
            *size += shard.size + 1;
            group.push(partitioned_file(shard));
        }
    }
    sizes.into_iter().map(|(_, group)| group).collect()
}

/// A shard as DataFusion knows files. The shard itself travels with it: its path may be no object's path.
fn partitioned_file(shard: &Shard) -> PartitionedFile {
    PartitionedFile::new(shard.path.to_string_lossy(), shard.size).with_extension(shard.clone())
}

#[cfg(test)]
mod tests {
    use tfarrow_dataset::Contents;

    use super::*;

    #[track_caller]
    fn check(sizes: &[u64], partitions: usize, expect: &[&[u64]]) {
        let shard = |size: &u64| Shard::file("a".into(), "a".into(), *size, Contents::TfRecord);
        let shards: Vec<_> = sizes.iter().map(shard).collect();
        let groups = file_groups(&shards, partitions);
        let found: Vec<Vec<u64>> =
            groups.iter().map(|group| group.iter().map(|file| file.object_meta.size).collect()).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn groups_are_of_about_one_size() {
        check(&[5, 5, 5, 5], 2, &[&[5, 5], &[5, 5]]);
        check(&[100, 1, 2, 3], 2, &[&[100], &[1, 2, 3]]);
        check(&[0, 0], 4, &[&[0], &[0]]);
        check(&[7], 8, &[&[7]]);
    }
}
