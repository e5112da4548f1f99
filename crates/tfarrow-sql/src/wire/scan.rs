//! The scan of TFRecord files.

use std::{num::NonZeroUsize, sync::Arc};

use arrow_schema::Schema;
use bytes::Bytes;
use datafusion::{
    common::exec_err,
    datasource::{
        physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    error::Result,
    physical_expr::PhysicalExpr,
    physical_plan::ExecutionPlan,
};
use tfarrow_datafusion::TfRecordSource;

use crate::wire::{
    columns::ColumnsWire,
    ipc::{schema_of_bytes, schema_to_bytes},
    reading::ReadingWire,
    shards::{deflated, inflated, not_inflated},
};

/// The parts of a scan that are no expressions. The projection and the filter are sent beside it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScanWire {
    /// The columns of the files.
    #[prost(message, optional, tag = "1")]
    pub columns: Option<ColumnsWire>,
    /// The schema of the partition columns.
    #[prost(bytes = "vec", tag = "2")]
    pub partition_columns: Vec<u8>,
    /// The options.
    #[prost(message, optional, tag = "3")]
    pub reading: Option<ReadingWire>,
    /// The files of each partition: a deflated message of its own.
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub groups: Vec<Bytes>,
    /// Whether the files are read in their order.
    #[prost(bool, tag = "5")]
    pub preserve_order: bool,
}

/// The parts of a scan, of which messages are made.
#[derive(Debug)]
pub struct ScanParts {
    /// The message.
    pub wire: ScanWire,
    /// The configuration without files.
    pub bare: FileScanConfig,
    /// The filter that the scan evaluates, over the columns of the table.
    pub predicate: Option<Arc<dyn PhysicalExpr>>,
}

impl ScanWire {
    /// The parts of a scan; `None` for other operators.
    ///
    /// # Errors
    /// Only this process can read one of the files.
    pub fn of(node: &dyn ExecutionPlan) -> Result<Option<ScanParts>> {
        let Some(exec) = node.downcast_ref::<DataSourceExec>() else {
            return Ok(None);
        };
        let Some((config, source)) = exec.downcast_to_file_source::<TfRecordSource>() else {
            return Ok(None);
        };
        let partitions = config.table_partition_cols();
        let wire = Self {
            columns: Some(ColumnsWire::of(source.columns())?),
            partition_columns: schema_to_bytes(&Schema::new(partitions.to_vec()))?,
            reading: Some(ReadingWire::of(source)),
            groups: deflated(&config.file_groups, partitions)?,
            preserve_order: config.preserve_order,
        };
        let bare = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(Vec::new())
            .build();
        Ok(Some(ScanParts {
            wire,
            bare,
            predicate: source.predicate().cloned(),
        }))
    }

    /// The source of the scan, with all columns and without a filter. It decodes on one thread,
    /// because an engine runs a task on each core.
    ///
    /// # Errors
    /// The message is corrupt.
    pub fn source(&self) -> Result<TfRecordSource> {
        let (Some(columns), Some(reading)) = (&self.columns, &self.reading) else {
            return exec_err!("the plan has a scan without columns or options");
        };
        let partitions = schema_of_bytes(&self.partition_columns)?.fields().to_vec();
        let source = TfRecordSource::of_columns(Arc::new(columns.columns()?), partitions);
        Ok(reading.apply(source)?.with_threads(NonZeroUsize::MIN))
    }

    /// The operator: `bare` with the files of the message. Opens no file and no store.
    ///
    /// # Errors
    /// The message is corrupt.
    pub fn exec(&self, bare: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        let groups = inflated(&self.groups, bare.table_partition_cols())?;
        Ok(self.exec_of(bare, groups))
    }

    /// The operator without its files, which cannot be executed: only a message can be made of it,
    /// or of some of its partitions. The time for it does not depend on the number of files.
    pub fn exec_to_send(&self, bare: FileScanConfig) -> Arc<dyn ExecutionPlan> {
        self.exec_of(bare, not_inflated(&self.groups))
    }

    fn exec_of(&self, bare: FileScanConfig, groups: Vec<FileGroup>) -> Arc<dyn ExecutionPlan> {
        let config = FileScanConfigBuilder::from(bare)
            .with_file_groups(groups)
            .with_preserve_order(self.preserve_order);
        DataSourceExec::from_data_source(config.build())
    }
}
