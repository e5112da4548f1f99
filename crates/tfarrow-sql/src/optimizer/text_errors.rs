//! Names the column of a Parquet file whose text is not UTF-8. Columns may be annotated as text
//! whatever their bytes are, as those of ClickHouse are; the error of the library names neither the
//! file nor the column.
//!
//! Workaround for parquet 59, of which no issue is known. Delete when its error names the column.

use std::{path::PathBuf, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use datafusion::{
    common::tree_node::{Transformed, TreeNode},
    datasource::{
        listing::PartitionedFile, object_store::ObjectStoreUrl, physical_plan::ParquetSource,
        source::DataSourceExec,
    },
    error::{DataFusionError, Result},
    execution::TaskContext,
    physical_plan::ExecutionPlan,
};
use futures::{StreamExt, stream::BoxStream};
use tfarrow_columnar::{ParquetFile, row_group_rows};
use tfarrow_datafusion::internals::{PassThrough, PassThroughExec, blocking, external};
use tfarrow_dataset::{Error, Shard, ShardFormat};

/// Makes the scans of local Parquet files in a plan name the column of text that is not UTF-8.
pub(crate) fn with_text_errors(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let named = plan.transform_up(|node| {
        let scan = node.downcast_ref::<DataSourceExec>();
        let scan = scan.and_then(|scan| scan.downcast_to_file_source::<ParquetSource>());
        match scan {
            Some((config, _)) if config.object_store_url == ObjectStoreUrl::local_filesystem() => {
                let errors = TextErrors {
                    scan: Arc::clone(&node),
                };
                Ok(Transformed::yes(
                    Arc::new(PassThroughExec::new(node, errors)) as _,
                ))
            }
            _ => Ok(Transformed::no(node)),
        }
    })?;
    Ok(named.data)
}

/// Names the columns in the errors of a scan of local Parquet files.
#[derive(Clone, Debug)]
struct TextErrors {
    scan: Arc<dyn ExecutionPlan>,
}

impl PassThrough for TextErrors {
    const NAME: &'static str = "TextErrorsExec";

    fn execute(
        &self,
        input: &dyn ExecutionPlan,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let errors = self.clone();
        let batches = input.execute(partition, context)?;
        let named = batches.then(move |batch| {
            let errors = errors.clone();
            async move {
                match batch {
                    Err(error) if is_of_text(&error) => Err(errors.named(error, partition).await),
                    batch => batch,
                }
            }
        });
        Ok(named.boxed())
    }
}

impl TextErrors {
    /// The error of the file and column that `error` of a partition is about. The columns of text
    /// are read again, first those of the scan and the files of the partition.
    async fn named(&self, error: DataFusionError, partition: usize) -> DataFusionError {
        let files = self.files(partition);
        let schema = self.scan.schema();
        let found = blocking(move || {
            let names_of_scan = files
                .iter()
                .find_map(|file| first_error(file, Some(&schema)));
            Ok(names_of_scan.or_else(|| files.iter().find_map(|file| first_error(file, None))))
        });
        match found.await {
            Ok(Some(found)) => external(found),
            Ok(None) | Err(_) => error,
        }
    }

    /// The files of the scan; those of the partition come first.
    fn files(&self, partition: usize) -> Vec<Shard> {
        let scan = self.scan.downcast_ref::<DataSourceExec>();
        let Some((config, _)) =
            scan.and_then(|scan| scan.downcast_to_file_source::<ParquetSource>())
        else {
            return Vec::new();
        };
        let (first, others): (Vec<_>, Vec<_>) = config
            .file_groups
            .iter()
            .enumerate()
            .partition(|(group, _)| *group == partition);
        first
            .iter()
            .chain(&others)
            .flat_map(|(_, group)| group.iter())
            .map(shard)
            .collect()
    }
}

/// Whether an error of a scan is about text.
fn is_of_text(error: &DataFusionError) -> bool {
    error.to_string().contains("UTF-8")
}

fn shard(file: &PartitionedFile) -> Shard {
    let path = PathBuf::from(format!("/{}", file.object_meta.location));
    Shard::file(
        path.clone(),
        path,
        file.object_meta.size,
        ShardFormat::Parquet,
    )
}

/// The first error of the columns of text of a file that `columns` has, or of all; `None` if there
/// is none.
fn first_error(shard: &Shard, columns: Option<&Schema>) -> Option<Error> {
    let file = ParquetFile::open(&shard.path, shard.local_path()).ok()?;
    let mut indices = Vec::new();
    for (index, field) in file.metadata.schema().fields().iter().enumerate() {
        let is_wanted =
            columns.is_none_or(|columns| columns.column_with_name(field.name()).is_some());
        if is_wanted && has_text(field.data_type()) {
            indices.push(index);
        }
    }
    if indices.is_empty() {
        return None;
    }
    let file = file.with_columns(Some(indices.into()));
    let groups = 0..file.groups().len();
    row_group_rows(shard, &file, groups).map_or_else(Some, |mut rows| rows.find_map(Result::err))
}

/// Whether a type has text, also within lists, structs and maps.
fn has_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => has_text(values),
        DataType::Struct(fields) => fields.iter().any(|field| has_text(field.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_text(item.data_type()),
        _ => false,
    }
}
