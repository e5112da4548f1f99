//! Serializable types for the parts of a physical plan that DataFusion's protobuf does not know:
//! scans of TFRecord, CSV and JSON files, sinks, and operators of this crate. They let another
//! process run a plan that this process has planned. Both processes have the same version, so that
//! a type may change with each version.
//!
//! ```text
//! DataSourceExec of a TfRecordSource ◀─▶ ScanWire ─┬ ColumnsWire    the columns, and the casts of declared columns
//!                                                  ├ ReadingWire    options and limits
//!                                                  └ groups         files of a partition, values of partition columns; deflated
//! DataSourceExec of a TextSource     ◀─▶ TextScanWire
//! CompactBatchesExec                 ◀─▶ CompactBatchesWire
//! DataSinkExec of a TFRecord sink    ◀─▶ TfRecordSinkWire
//! DataSinkExec of a staging sink     ◀─▶ StagingSinkWire
//! DataSinkExec of a TextSink         ◀─▶ messages of datafusion-proto
//! ```
//!
//! Expressions and the rest of a plan are messages of `datafusion-proto`, on which this crate does
//! not depend: the codec that combines both is in another crate. The types of columns, and values
//! of any type, are streams of Arrow IPC.
//!
//! Not in any message: credentials, because each process opens stores with its own environment; the
//! provenance of a schema, by which the planning process explains errors; and callbacks. Bytes of a
//! message are not trusted: each part is checked, and panics of libraries become errors.

mod columns;
mod ipc;
mod local_files;
mod scan;
mod shards;
mod sinks;
mod text;

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};
use tfarrow_datafusion::internals::{CompactBatches, PassThroughExec};

pub use crate::{
    functions::plan_function,
    text::sink::TextSink,
    wire::{
        columns::ColumnsWire,
        local_files::{check_shared, has_message, local_files},
        scan::{ReadingWire, ScanParts, ScanWire},
        sinks::{StagingSinkWire, TfRecordSinkWire},
        text::{CsvWire, TextScanWire},
    },
};

/// The operator that bounds the rows, and the memory, of each batch of its input.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CompactBatchesWire {
    /// Maximum rows of a batch.
    pub rows: usize,
}

impl CompactBatchesWire {
    /// The message of an operator; `None` for other operators.
    pub fn of(node: &dyn ExecutionPlan) -> Option<Self> {
        let exec = node.downcast_ref::<PassThroughExec<CompactBatches>>()?;
        Some(Self {
            rows: exec.work().rows,
        })
    }

    /// The operator above `input`.
    pub fn exec(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let rows = self.rows.max(1);
        Arc::new(PassThroughExec::new(input, CompactBatches { rows }))
    }
}
