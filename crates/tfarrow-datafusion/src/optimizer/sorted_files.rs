//! A physical optimizer rule that removes sorts of files that are sorted already.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, SortOptions};
use datafusion::{
    common::{
        ColumnStatistics, ScalarValue, Statistics,
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
    physical_expr::{LexOrdering, PhysicalSortExpr, expressions::Column},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ExecutionPlan, ExecutionPlanProperties,
        coop::CooperativeExec,
        execution_plan::replace_children_if_necessary,
        filter::FilterExec,
        limit::{GlobalLimitExec, LocalLimitExec},
        projection::ProjectionExec,
        sorts::{sort::SortExec, sort_preserving_merge::SortPreservingMergeExec},
    },
};
use tfarrow_codec::{Role, schema::role_of};
use tfarrow_index::{ShardIndex, SortedFeature, SortedValue};

use crate::{
    scan::{record_range::RecordRange, source::TfRecordSource},
    schema::columns::feature_of,
};

/// Maximum number of files that are merged. Some megabytes of each are held.
const MOST_MERGED: usize = 32;

/// A physical optimizer rule that removes a sort by a column if the values of the column do not
/// decrease in the files of a scan, as their indexes prove. Then no row is held, and a LIMIT reads
/// the first records only. Files that are sorted, and overlap, are merged.
///
/// The rule follows those that insert sorts: DataFusion shares the files of a scan among its
/// partitions unless an order is declared, so that it is declared only where a sort is removed.
/// Sessions of `tfarrow_sql::session_context` have this rule.
#[derive(Debug, Default)]
pub struct SortedFiles;

impl PhysicalOptimizerRule for SortedFiles {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(match without_sort(&plan)? {
                Some(changed) => Transformed::yes(changed),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "sorted_files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A plan without its sort, if the files are sorted; `None` for other plans.
fn without_sort(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let input = in_order(sort.input(), sort.expr(), Grouping::Planned)?;
        return Ok(input.map(|input| limited(sort, input)));
    }
    let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() else {
        return Ok(None);
    };
    // A sort that is left below it: the files of a partition overlap.
    let Some(input) = files_to_merge(merge.input())? else {
        return Ok(None);
    };
    let merge = SortPreservingMergeExec::new(merge.expr().clone(), input).with_fetch(merge.fetch());
    Ok(Some(Arc::new(merge)))
}

/// How the files of a scan are divided into partitions.
#[derive(Clone, Copy)]
enum Grouping {
    /// As it was planned.
    Planned,
    /// Each file is a partition.
    OneFile,
}

/// The input of a merge, with the sorted files of its scan in place of the sort of its partitions;
/// `None` for another input.
fn files_to_merge(input: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(sort) = input.downcast_ref::<SortExec>() {
        if !sort.preserve_partitioning() || !has_any_partitions(sort.input()) {
            return Ok(None);
        }
        let files = in_order(sort.input(), sort.expr(), Grouping::OneFile)?;
        return Ok(files.map(|files| limited(sort, files)));
    }
    match input.children().as_slice() {
        [below] if keeps_partitions(input) => match files_to_merge(below)? {
            Some(below) => replace_children_if_necessary(Arc::clone(input), vec![below]).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Whether a plan is a scan below operators that [keep its partitions](keeps_partitions), so that it
/// may have any number of them.
fn has_any_partitions(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.children().as_slice() {
        [] => plan.is::<DataSourceExec>(),
        [input] => keeps_partitions(plan) && has_any_partitions(input),
        _ => false,
    }
}

/// Whether an operator returns each partition of its only input, in order and by itself.
fn keeps_partitions(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<ProjectionExec>() || plan.is::<FilterExec>() || plan.is::<CooperativeExec>()
}

/// The input of a sort whose scans declare their order; `None` if its rows do not have the order
/// `wanted`.
fn in_order(
    input: &Arc<dyn ExecutionPlan>,
    wanted: &LexOrdering,
    grouping: Grouping,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let options = wanted.first().options;
    if options.descending {
        return Ok(None);
    }
    let ordered = Arc::clone(input).transform_up(|node| {
        Ok(match with_order(&node, options, grouping) {
            Some(scan) => Transformed::yes(scan),
            None => Transformed::no(node),
        })
    })?;
    let properties = ordered.data.equivalence_properties();
    let has_order = ordered.transformed && properties.ordering_satisfy(wanted.iter().cloned())?;
    Ok(has_order.then_some(ordered.data))
}

/// The rows of `input` that are left of those that `sort` returns.
fn limited(sort: &SortExec, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match sort.fetch() {
        None => input,
        Some(fetch) if sort.preserve_partitioning() => Arc::new(LocalLimitExec::new(input, fetch)),
        Some(fetch) => Arc::new(GlobalLimitExec::new(input, 0, Some(fetch))),
    }
}

/// A scan of files with indexes that declares by which columns each of its partitions is sorted;
/// `None` for other plans, or if there are none. These columns have no nulls, so that `options` may
/// have them first or last.
fn with_order(
    node: &Arc<dyn ExecutionPlan>,
    options: SortOptions,
    grouping: Grouping,
) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = node.downcast_ref::<DataSourceExec>()?;
    let config = scan.data_source().downcast_ref::<FileScanConfig>()?;
    let file_groups = match grouping {
        Grouping::Planned => config.file_groups.clone(),
        Grouping::OneFile => one_file_each(&config.file_groups)?,
    };
    let source = config.file_source().downcast_ref::<TfRecordSource>()?;
    let schema = source.columns().schema();
    let mut orders = Vec::new();
    let mut sorted = Vec::new();
    for (index, field) in schema.fields().iter().enumerate() {
        let name = feature_of(field);
        let is_sorted = !source.columns().is_cast(index)
            && file_groups
                .iter()
                .all(|group| is_sorted_by(group, name, field));
        if is_sorted {
            let column = Arc::new(Column::new(field.name(), index));
            orders.extend(LexOrdering::new([PhysicalSortExpr::new(column, options)]));
            sorted.push((index, name));
        }
    }
    if orders.is_empty() {
        return None;
    }
    let mut groups = Vec::with_capacity(file_groups.len());
    for group in &file_groups {
        let mut files = Vec::with_capacity(group.len());
        for file in group.iter() {
            let mut statistics = Statistics::new_unknown(schema);
            for (index, name) in &sorted {
                let feature = sorted_feature(file, name)?;
                let of_column = statistics.column_statistics.get_mut(*index)?;
                *of_column = bounds(feature, schema.field(*index).data_type())?;
            }
            files.push(planned(file)?.with_statistics(Arc::new(statistics)));
        }
        groups.push(FileGroup::new(files));
    }
    let config = FileScanConfigBuilder::from(config.clone())
        .with_file_groups(groups)
        .with_output_ordering(orders)
        .build();
    Some(DataSourceExec::from_data_source(config))
}

/// The files as partitions of their own; `None` if they are too many to be read at once.
fn one_file_each(groups: &[FileGroup]) -> Option<Vec<FileGroup>> {
    let mut files = Vec::new();
    for file in groups.iter().flat_map(FileGroup::iter) {
        files.push(FileGroup::new(vec![file.clone()]));
    }
    (files.len() <= MOST_MERGED).then_some(files)
}

/// Whether the column of a feature is sorted in each of these files, and from file to file.
fn is_sorted_by(group: &FileGroup, name: &str, field: &FieldRef) -> bool {
    let is_feature = matches!(role_of(field), None | Some(Role::Feature | Role::Context));
    let mut last: Option<&SortedValue> = None;
    for file in group.iter() {
        let Some(feature) = sorted_feature(file, name).filter(|_| is_feature) else {
            return false;
        };
        let is_next = last.is_none_or(|last| *last <= feature.first);
        if !is_next || bounds(feature, field.data_type()).is_none() {
            return false;
        }
        last = Some(&feature.last);
    }
    true
}

/// What the index of a file says about a feature that is sorted.
fn sorted_feature<'f>(file: &'f PartitionedFile, name: &str) -> Option<&'f SortedFeature> {
    let index = file.extension::<ShardIndex>()?;
    index.sorted().iter().find(|feature| feature.name == name)
}

/// The bounds of the column of a sorted feature; `None` if the column has other values.
fn bounds(feature: &SortedFeature, data_type: &DataType) -> Option<ColumnStatistics> {
    let first = scalar(&feature.first, data_type)?;
    let last = scalar(&feature.last, data_type)?;
    Some(
        ColumnStatistics::new_unknown()
            .with_null_count(Precision::Exact(0))
            .with_min_value(Precision::Exact(first))
            .with_max_value(Precision::Exact(last)),
    )
}

/// A value of a sorted feature in a column of this type.
fn scalar(value: &SortedValue, data_type: &DataType) -> Option<ScalarValue> {
    Some(match (value, data_type) {
        (SortedValue::Int64(value), DataType::Int64) => ScalarValue::Int64(Some(*value)),
        (SortedValue::Text(text), DataType::Utf8) => ScalarValue::Utf8(Some(text.clone())),
        (SortedValue::Text(text), DataType::LargeUtf8) => {
            ScalarValue::LargeUtf8(Some(text.clone()))
        }
        (SortedValue::Text(text), DataType::Utf8View) => ScalarValue::Utf8View(Some(text.clone())),
        _ => return None,
    })
}

/// A file of which those records are read that it had when the query was planned: others may not be
/// sorted.
fn planned(file: &PartitionedFile) -> Option<PartitionedFile> {
    let records = file.extension::<ShardIndex>()?.records();
    let range = RecordRange::of(file).0;
    let range = RecordRange(range.start..range.end.min(records));
    Some(file.clone().with_extension(range))
}
