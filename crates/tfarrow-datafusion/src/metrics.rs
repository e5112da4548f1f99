//! What EXPLAIN ANALYZE says of a scan.

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};

/// The counters of one partition.
#[derive(Clone, Debug)]
pub(crate) struct ScanMetrics {
    /// Bytes read, as they are stored.
    pub(crate) bytes_scanned: Count,
    /// Records decoded.
    pub(crate) records_decoded: Count,
    /// Time that cores took to decode; not what reading and inflating took.
    pub(crate) decode_time: Time,
}

impl ScanMetrics {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            bytes_scanned: MetricBuilder::new(metrics).counter("bytes_scanned", partition),
            records_decoded: MetricBuilder::new(metrics).counter("records_decoded", partition),
            decode_time: MetricBuilder::new(metrics).subset_time("decode_time", partition),
        }
    }
}
