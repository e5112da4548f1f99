//! Notices of the scans of tasks, which one process sends to another.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use datafusion::{
    common::tree_node::{Transformed, TreeNode},
    datasource::{physical_plan::FileScanConfigBuilder, source::DataSourceExec},
    error::Result,
    physical_plan::ExecutionPlan,
};
use serde::{Deserialize, Serialize};
use tfarrow_datafusion::{Notice, OnNotice, internals::NoticeSender};
use tfarrow_dataset::DamageReport;
use tfarrow_dataset::internals::Lock;

use crate::engine::{paths, scan_of, source_of};

/// The notices of the scans of tasks. They can be serialized. Each scan is known by its first file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskNotices {
    scans: BTreeMap<PathBuf, ScanNotices>,
}

/// The notices of one scan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ScanNotices {
    /// Features without a column.
    unknown: BTreeSet<String>,
    /// A field that the type of the messages does not define.
    unknown_field: Option<u32>,
    /// Skipped records.
    skipped: DamageReport,
}

impl TaskNotices {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scans.is_empty()
    }

    /// Adds the notices of another task with the same plan, which has other files. A task with the
    /// same files is another attempt, or one that needs the same rows: its skipped records are not
    /// counted again.
    pub fn merge_task(&mut self, other: Self) {
        self.merge_with(other, |known, skipped| {
            if (known.records, known.ranges) < (skipped.records, skipped.ranges) {
                *known = skipped;
            }
        });
    }

    /// Adds the notices of the tasks of another part of a plan.
    pub fn merge(&mut self, other: Self) {
        self.merge_with(other, DamageReport::merge);
    }

    fn merge_with(&mut self, other: Self, merge_skipped: impl Fn(&mut DamageReport, DamageReport)) {
        for (path, notices) in other.scans {
            let ScanNotices {
                unknown,
                unknown_field,
                skipped,
            } = notices;
            let scan = self.scans.entry(path).or_default();
            scan.unknown.extend(unknown);
            scan.unknown_field = scan.unknown_field.or(unknown_field);
            merge_skipped(&mut scan.skipped, skipped);
        }
    }

    /// Sends the notices as those of the scans of `plan`.
    pub fn send(self, plan: &Arc<dyn ExecutionPlan>) {
        for (path, notices) in self.scans {
            let ScanNotices {
                unknown,
                unknown_field,
                skipped,
            } = notices;
            let Some(source) = source_of(plan, &path) else {
                continue;
            };
            source.notices().send_unknown(unknown, source.provenance());
            unknown_field
                .into_iter()
                .for_each(|field| source.notices().send_unknown_field(field));
            source.notices().send_skipped(skipped);
        }
    }

    fn add(&mut self, path: &Path, notice: &Notice) {
        let scan = self.scans.entry(path.to_owned()).or_default();
        match notice {
            Notice::UnknownFeatures(unknown) => scan.unknown.extend(unknown.names.iter().cloned()),
            Notice::UnknownField(field) => scan.unknown_field = Some(*field),
            Notice::Skipped(skipped) => scan.skipped.merge(skipped.clone()),
            // Notices of statistics and of planning, which are no work of a task.
            Notice::Losses(_)
            | Notice::NoFeatures(_)
            | Notice::Splits(_)
            | Notice::UnusableIndex(_) => {}
        }
    }
}

/// Adds the notices of the scans of a task's plan to `notices`.
///
/// # Errors
/// Those of DataFusion, for a plan that is not valid.
pub fn with_task_notices(
    plan: Arc<dyn ExecutionPlan>,
    notices: &Arc<Lock<TaskNotices>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let collected = plan.transform_up(|node| {
        let Some((config, source)) = scan_of(node.as_ref()) else {
            return Ok(Transformed::no(node));
        };
        let Some(path) = paths(config).next() else {
            return Ok(Transformed::no(node));
        };
        let path = path.to_owned();
        let notices = Arc::clone(notices);
        let on_notice: OnNotice = Arc::new(move |notice| {
            notices.lock().add(&path, notice);
        });
        let source = source
            .clone()
            .with_notices(Arc::new(NoticeSender::new(Some(on_notice))));
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(Arc::new(source))
            .build();
        Ok(Transformed::yes(
            DataSourceExec::from_data_source(config) as _
        ))
    });
    Ok(collected?.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_two_tasks_have_skipped_are_counted_once() {
        let of_task = |path: &str, records| {
            let mut notices = TaskNotices::default();
            let mut skipped = DamageReport::default();
            skipped.records = records;
            notices.add(Path::new(path), &Notice::Skipped(skipped));
            notices
        };
        let counts = |notices: &TaskNotices| {
            notices
                .scans
                .values()
                .map(|scan| scan.skipped.records)
                .collect::<Vec<_>>()
        };
        let mut stage = of_task("a", 2);
        stage.merge_task(of_task("b", 1));
        // The first attempt of a task may have ended early.
        stage.merge_task(of_task("a", 3));
        stage.merge_task(of_task("a", 3));
        assert_eq!(counts(&stage), [3, 1]);
        // Another part of the plan reads the same files for itself.
        stage.merge(of_task("a", 3));
        assert_eq!(counts(&stage), [6, 1]);
    }
}
