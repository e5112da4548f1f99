//! A physical optimizer rule that reads nothing for the rows that OFFSET skips.

use std::sync::Arc;

use datafusion::{
    common::{
        config::ConfigOptions,
        stats::Precision,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    error::Result,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{ExecutionPlan, limit::GlobalLimitExec},
};
use tfarrow_codec::OnError;
use tfarrow_index::ShardIndex;

use crate::scan::{record_range::RecordRange, source::TfRecordSource};

/// A physical optimizer rule for `OFFSET`: a scan of files with indexes begins at the first record
/// that is returned.
///
/// It follows [`PreserveOrder`](crate::PreserveOrder), which scans files as one partition, whose
/// first rows OFFSET skips. Sessions of `tfarrow_sql::session_context` have both.
#[derive(Debug, Default)]
pub struct SkipRecords;

impl PhysicalOptimizerRule for SkipRecords {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match without_skip(&plan)? {
                Some(changed) => Transformed::yes(changed),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "skip_records"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Moves the skipped rows of a limit into the scan below it; `None` for other plans.
fn without_skip(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() else {
        return Ok(None);
    };
    let Some(scan) = limit.input().downcast_ref::<DataSourceExec>() else {
        return Ok(None);
    };
    let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else {
        return Ok(None);
    };
    let Some(source) = config.file_source().downcast_ref::<TfRecordSource>() else {
        return Ok(None);
    };
    // Every record is a row.
    let is_exact = source.predicate().is_none() && source.read_options().on_error == OnError::Fail;
    let [group] = config.file_groups.as_slice() else {
        return Ok(None);
    };
    if limit.skip() == 0 || !is_exact {
        return Ok(None);
    }
    let Some(files) = files_after(group, limit.skip() as u64) else {
        return Ok(None);
    };
    let scan = DataSourceExec::from_data_source(begun_later(config, files, limit));
    let limit = GlobalLimitExec::new(scan, 0, limit.fetch());
    Ok(Some(Arc::new(limit)))
}

/// The scan of these files, which are those of `config` without the rows that `limit` skips.
fn begun_later(
    config: &FileScanConfig,
    files: Vec<PartitionedFile>,
    limit: &GlobalLimitExec,
) -> FileScanConfig {
    let mut statistics = config.statistics();
    if let Precision::Exact(rows) = statistics.num_rows {
        statistics.num_rows = Precision::Exact(rows.saturating_sub(limit.skip()));
    }
    FileScanConfigBuilder::from(config.clone())
        .with_file_groups(vec![FileGroup::new(files)])
        .with_statistics(statistics)
        .with_limit(limit.fetch())
        .build()
}

/// The files that are left after `skip` records, the first of which begins later; `None` if a file
/// before that has no index, or no record is left.
fn files_after(group: &FileGroup, mut skip: u64) -> Option<Vec<PartitionedFile>> {
    let mut left = Vec::new();
    for file in group.iter() {
        if skip == 0 {
            left.push(file.clone());
            continue;
        }
        let records = file.extension::<ShardIndex>()?.records();
        let range = RecordRange::of(file).0;
        let end = range.end.min(records);
        let held = end.saturating_sub(range.start);
        if held > skip {
            let range = RecordRange(range.start + skip..range.end);
            left.push(file.clone().with_extension(range));
            skip = 0;
        } else {
            skip -= held;
        }
    }
    (!left.is_empty()).then_some(left)
}
