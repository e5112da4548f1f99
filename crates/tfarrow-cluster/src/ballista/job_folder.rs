//! The folder of a job in the work folder of an executor, which Ballista names after the job.

use std::sync::Arc;

use ballista_core::{JobId, execution_plans::ShuffleReaderExec};
use datafusion::{
    common::{
        exec_err,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    error::Result,
    physical_plan::ExecutionPlan,
};

/// Returns whether a job can name a folder: the identifiers of Ballista are letters and digits.
/// Others could be paths to files outside of the work folder.
pub(crate) fn is_job_id(job: &JobId) -> bool {
    let job = job.as_str();
    !job.is_empty()
        && job
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Checks the job of a task, and the jobs whose results its plan reads.
///
/// # Errors
/// A job is no name of a folder.
pub(crate) fn check_jobs(job: &JobId, plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    check_job(job)?;
    plan.apply(|node| {
        if let Some(reader) = node.downcast_ref::<ShuffleReaderExec>() {
            for location in reader.partition.iter().flatten() {
                check_job(&location.partition_id.job_id)?;
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn check_job(job: &JobId) -> Result<()> {
    if is_job_id(job) {
        return Ok(());
    }
    exec_err!("{:?} is not the identifier of a job", job.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_names_of_folders() {
        for (job, expected) in [
            ("aB3dE6g", true),
            ("6f1c-2_b", true),
            ("", false),
            ("..", false),
            ("../other", false),
            ("/etc", false),
            ("a/b", false),
            ("a\\b", false),
            ("a\0", false),
        ] {
            assert_eq!(is_job_id(&JobId::new(job)), expected, "{job:?}");
        }
    }
}
