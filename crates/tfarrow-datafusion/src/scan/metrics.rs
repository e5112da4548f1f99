//! Metrics of a scan, which EXPLAIN ANALYZE shows.

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};

/// The metrics of one partition.
#[derive(Clone, Debug)]
pub(crate) struct ScanMetrics {
    /// Bytes read, before decompression.
    pub(crate) bytes_scanned: Count,
    /// Blocks of files with an index that were read.
    pub(crate) blocks_read: Count,
    /// Blocks of files with an index that were not read, because no record of them passes the
    /// filter.
    pub(crate) blocks_pruned: Count,
    /// Records decoded, to the columns that the query needs.
    pub(crate) records_decoded: Count,
    /// Records that the filter removed before their other columns were decoded.
    pub(crate) rows_pruned: Count,
    /// Corrupt or non-conforming records that were skipped.
    pub(crate) records_skipped: Count,
    /// Records with an invalid CRC.
    pub(crate) crc_errors: Count,
    /// CPU time of decoding, without reading and decompression.
    pub(crate) decode_time: Time,
}

impl ScanMetrics {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            bytes_scanned: MetricBuilder::new(metrics).counter("bytes_scanned", partition),
            blocks_read: MetricBuilder::new(metrics).counter("blocks_read", partition),
            blocks_pruned: MetricBuilder::new(metrics).counter("blocks_pruned", partition),
            records_decoded: MetricBuilder::new(metrics).counter("records_decoded", partition),
            rows_pruned: MetricBuilder::new(metrics).counter("rows_pruned", partition),
            records_skipped: MetricBuilder::new(metrics).counter("records_skipped", partition),
            crc_errors: MetricBuilder::new(metrics).counter("crc_errors", partition),
            decode_time: MetricBuilder::new(metrics).subset_time("decode_time", partition),
        }
    }
}
