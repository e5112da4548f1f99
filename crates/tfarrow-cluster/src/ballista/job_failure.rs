//! The text form of a task's error. Ballista sends errors as text, inside of texts of its own.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use datafusion::error::DataFusionError;
use serde::{Deserialize, Serialize};
use std::io;
use tfarrow_sql::TaskError;

/// The beginning and the end of an error in a text.
const BEGIN: &str = "<tfarrow-error:";
const END: char = '>';

/// The failure of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum JobFailure {
    /// A task has failed.
    Task(TaskError),
    /// Results of an executor that was lost would be read together with those of the attempt that
    /// replaced it. The query has to run again.
    ExecutorLost,
}

impl JobFailure {
    /// The failure as an error of a task. Ballista runs a task again if its error is one of I/O.
    pub(crate) fn into_error(self) -> DataFusionError {
        let is_transient = matches!(&self, Self::Task(error) if error.is_transient());
        match serde_json::to_vec(&self) {
            Ok(json) => {
                let text = format!("{BEGIN}{}{END}", URL_SAFE_NO_PAD.encode(json));
                if is_transient {
                    DataFusionError::IoError(io::Error::other(text))
                } else {
                    DataFusionError::Execution(text)
                }
            }
            Err(error) => DataFusionError::External(Box::new(error)),
        }
    }

    /// The last failure in a text.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(BEGIN)?;
        let (encoded, _) = rest.split_once(END)?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_found_in_texts() {
        let cause = DataFusionError::Execution("quotes \" and \\ stay".to_owned());
        let first = JobFailure::Task(TaskError::of(&DataFusionError::Internal(
            "first".to_owned(),
        )))
        .into_error();
        let last = JobFailure::Task(TaskError::of(&cause)).into_error();
        let text = format!(
            "Job failed due to stage 1 failed: {first:?}, {:?}",
            format!("{last:?}")
        );
        let Some(JobFailure::Task(found)) = JobFailure::of_text(&text) else {
            panic!("{text}")
        };
        let plan: std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan> =
            std::sync::Arc::new(datafusion::physical_plan::empty::EmptyExec::new(
                std::sync::Arc::new(arrow_schema::Schema::empty()),
            ));
        assert_eq!(
            found.into_error(&plan).strip_backtrace(),
            cause.strip_backtrace()
        );
        assert!(JobFailure::of_text("no failure").is_none());
        assert!(JobFailure::of_text("<tfarrow-error:!!>").is_none());
    }

    #[test]
    fn only_transient_errors_are_tried_again() {
        let network = DataFusionError::IoError(io::Error::other("connection reset"));
        assert!(matches!(
            JobFailure::Task(TaskError::of(&network)).into_error(),
            DataFusionError::IoError(_)
        ));
        let missing = DataFusionError::IoError(io::Error::from(io::ErrorKind::NotFound));
        assert!(matches!(
            JobFailure::Task(TaskError::of(&missing)).into_error(),
            DataFusionError::Execution(_)
        ));
    }
}
