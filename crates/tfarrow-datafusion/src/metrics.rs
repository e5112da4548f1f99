//! What EXPLAIN ANALYZE says of a scan.

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};

/// The counters of one partition.
#[derive(Clone, Debug)]
pub(crate) struct ScanMetrics {
    /// Bytes read, as they are stored.
    pub(crate) bytes_scanned: Count,
    /// Records that were read, and decoded as far as the query needs them.
    pub(crate) records_decoded: Count,
    /// Records that the query's filter dropped before their other columns were decoded.
    pub(crate) rows_pruned: Count,
    /// Records that were passed over for being bad.
    pub(crate) records_skipped: Count,
    /// Records whose CRC did not hold.
    pub(crate) crc_errors: Count,
    /// Time that cores took to decode; not what reading and inflating took.
    pub(crate) decode_time: Time,
}

impl ScanMetrics {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            bytes_scanned: MetricBuilder::new(metrics).counter("bytes_scanned", partition),
            records_decoded: MetricBuilder::new(metrics).counter("records_decoded", partition),
            rows_pruned: MetricBuilder::new(metrics).counter("rows_pruned", partition),
            records_skipped: MetricBuilder::new(metrics).counter("records_skipped", partition),
            crc_errors: MetricBuilder::new(metrics).counter("crc_errors", partition),
            decode_time: MetricBuilder::new(metrics).subset_time("decode_time", partition),
        }
    }
}
