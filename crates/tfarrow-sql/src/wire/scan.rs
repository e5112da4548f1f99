//! The scan of TFRecord files.

use std::{num::NonZeroUsize, sync::Arc};

use arrow_schema::Schema;
use datafusion::{
    datasource::{
        physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    error::Result,
    physical_expr::PhysicalExpr,
    physical_plan::ExecutionPlan,
};
use serde::{Deserialize, Serialize};
use tfarrow_codec::VerifyCrc;
use tfarrow_datafusion::TfRecordSource;
use tfarrow_dataset::ReadOptions;

use crate::wire::{
    columns::ColumnsWire,
    ipc::{schema_of_bytes, schema_to_bytes},
    shards::{deflated, inflated, not_inflated},
};

/// Maximum bytes that a received plan may read at a time.
const MOST_CHUNK_BYTES: usize = 64 << 20;

/// The parts of a scan that are no expressions. The projection and the filter are sent beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScanWire {
    /// The columns of the files.
    pub columns: ColumnsWire,
    /// The schema of the partition columns.
    pub partition_columns: Vec<u8>,
    /// The options.
    pub reading: ReadingWire,
    /// The files of each partition, deflated.
    pub groups: Vec<Vec<u8>>,
    /// Whether the files are read in their order.
    pub preserve_order: bool,
}

/// The options of a scan.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReadingWire {
    /// When to verify the CRC of a record's data.
    pub verify_crc: VerifyCrc,
    /// The options of reading a file.
    pub read: ReadOptions,
    /// Whether a record with fields of another message type is an error.
    pub strict: bool,
    /// Whether the scan evaluates filters.
    pub pushdown_filters: bool,
    /// Whether all files may be scanned as one ordered partition.
    pub preserves_order: bool,
}

impl ReadingWire {
    fn of(source: &TfRecordSource) -> Self {
        Self {
            verify_crc: source.verify_crc(),
            read: *source.read_options(),
            strict: source.is_strict(),
            pushdown_filters: source.pushes_filters_down(),
            preserves_order: source.preserves_order(),
        }
    }

    /// Sets the options of a source.
    fn apply(&self, source: TfRecordSource) -> TfRecordSource {
        let ReadOptions {
            chunk_bytes,
            limits,
            on_error,
            partial_tail,
        } = self.read;
        // A chunk longer than a record of maximum length is no use, and would only take memory.
        let most = limits.record_bytes.clamp(1, MOST_CHUNK_BYTES);
        source
            .with_verify_crc(self.verify_crc)
            .with_on_error(on_error)
            .with_partial_tail(partial_tail)
            .with_limits(limits)
            .with_chunk_bytes(chunk_bytes.clamp(1, most))
            .with_strict(self.strict)
            .with_pushdown_filters(self.pushdown_filters)
            .with_preserve_order(self.preserves_order)
    }
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
            columns: ColumnsWire::of(source.columns())?,
            partition_columns: schema_to_bytes(&Schema::new(partitions.to_vec()))?,
            reading: ReadingWire::of(source),
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
        let columns = Arc::new(self.columns.columns()?);
        let partitions = schema_of_bytes(&self.partition_columns)?.fields().to_vec();
        let source = TfRecordSource::of_columns(columns, partitions);
        Ok(self.reading.apply(source).with_threads(NonZeroUsize::MIN))
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
