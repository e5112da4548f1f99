//! A physical optimizer rule that ignores the bounds of float columns in the statistics of files.
//!
//! Workaround for DataFusion 55: apache/datafusion#15812 (pruning by bounds without NaN), open.
//! Delete when it is closed.

use std::sync::Arc;

use datafusion::{
    common::{
        Statistics,
        config::ConfigOptions,
        stats::Precision,
        tree_node::{Transformed, TransformedResult, TreeNode},
    },
    datasource::{
        physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder},
        source::DataSourceExec,
    },
    error::Result,
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::ExecutionPlan,
};

use crate::functions::normalize::has_floats;

/// Removes the minimum and maximum of float columns from the statistics of files, before any other
/// rule uses them.
///
/// Parquet's statistics leave NaN out, and have -0.0 and 0.0 as different values. DataFusion takes
/// a column whose minimum is its maximum for a constant, even for a query that only returns the
/// column, and skips files that cannot have a value.
#[derive(Debug)]
pub(crate) struct FloatStatistics;

impl PhysicalOptimizerRule for FloatStatistics {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let scan = node.downcast_ref::<DataSourceExec>();
            let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
            Ok(match config.and_then(without_float_bounds) {
                Some(config) => Transformed::yes(
                    DataSourceExec::from_data_source(config) as Arc<dyn ExecutionPlan>
                ),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "float_statistics"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a scan without the bounds of float columns; `None` if it has no such columns, or no
/// statistics.
fn without_float_bounds(config: &FileScanConfig) -> Option<FileScanConfig> {
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    if files.filter(|file| file.statistics.is_some()).count() == 0 {
        return None;
    }
    let fields = config.file_source().table_schema().table_schema().fields();
    let floats: Vec<_> = (0..fields.len())
        .filter(|index| has_floats(fields[*index].data_type()))
        .collect();
    if floats.is_empty() {
        return None;
    }
    let groups = config
        .file_groups
        .iter()
        .map(|group| group_without_bounds(group, &floats))
        .collect();
    let mut statistics = config.statistics();
    remove_bounds(&mut statistics, &floats);
    let builder = FileScanConfigBuilder::from(config.clone())
        .with_file_groups(groups)
        .with_statistics(statistics);
    Some(builder.build())
}

fn group_without_bounds(group: &FileGroup, columns: &[usize]) -> FileGroup {
    let mut files = Vec::with_capacity(group.len());
    for file in group.iter() {
        let mut file = file.clone();
        if let Some(statistics) = &mut file.statistics {
            remove_bounds(Arc::make_mut(statistics), columns);
        }
        files.push(file);
    }
    let without = FileGroup::new(files);
    match group.file_statistics(None) {
        Some(statistics) => {
            let mut statistics = statistics.clone();
            remove_bounds(&mut statistics, columns);
            without.with_statistics(Arc::new(statistics))
        }
        None => without,
    }
}

fn remove_bounds(statistics: &mut Statistics, columns: &[usize]) {
    for column in columns {
        if let Some(statistics) = statistics.column_statistics.get_mut(*column) {
            (statistics.min_value, statistics.max_value) = (Precision::Absent, Precision::Absent);
            statistics.sum_value = Precision::Absent;
            statistics.distinct_count = Precision::Absent;
        }
    }
}
