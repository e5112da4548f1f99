//! Errors of tasks, which one process sends to another.

use std::{error::Error as StdError, io, iter, path::PathBuf, sync::Arc};

use arrow_schema::ArrowError;
use datafusion::{error::DataFusionError, physical_plan::ExecutionPlan};
use serde::{Deserialize, Serialize};
use tfarrow_codec::Remedy;
use tfarrow_datafusion::{
    internals::{PieceError, conflicting_feature, kind_advice, scan_advice, with_advice},
    sql_advice,
};
use tfarrow_dataset::{Error, ErrorKind, Fault, FaultKind};

use crate::engine::source_of;

/// The error of a task. It can be serialized. The process that planned the query makes an error of
/// it, which has the text that the error of a scan in that process has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskError {
    cause: Cause,
    /// The texts that operators have added, the outermost first.
    contexts: Vec<String>,
    is_transient: bool,
    /// Whether the task read a piece of a file.
    is_of_piece: bool,
}

/// The innermost error.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Cause {
    File(FileFault),
    Cast(String),
    Execution(String),
    NotImplemented(String),
    Internal(String),
    ResourcesExhausted(String),
    /// Another error.
    Text(String),
}

/// An error of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct FileFault {
    path: PathBuf,
    /// The text, with the record, the byte and the feature.
    message: String,
    fault: FaultKind,
    remedies: Vec<Remedy>,
    /// The feature that has another kind than its column, if the error is about one. The planning
    /// process knows where the first record with the kind of the column is.
    conflict: Option<String>,
}

impl TaskError {
    /// The error of a task: an error of DataFusion, of Arrow, or of an engine that wraps one.
    pub fn of(error: &(dyn StdError + 'static)) -> Self {
        let is_of_piece = chain(error).any(|cause| cause.is::<PieceError>());
        let contexts = chain(error).filter_map(context).collect();
        let file = chain(error).find_map(|cause| cause.downcast_ref::<Error>());
        if let Some((error, fault)) = file.and_then(|error| Some((error, FileFault::of(error)?))) {
            return Self {
                cause: Cause::File(fault),
                contexts,
                is_transient: error.is_machine(),
                is_of_piece,
            };
        }
        let known = chain(error).filter_map(Cause::of).last();
        let cause = known.unwrap_or_else(|| Cause::Text(error.to_string()));
        Self {
            cause,
            contexts,
            is_transient: chain(error).any(is_transient),
            is_of_piece,
        }
    }

    /// An error with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            cause: Cause::Text(text.into()),
            contexts: Vec::new(),
            is_transient: false,
            is_of_piece: false,
        }
    }

    /// The same error of a task that must not run again.
    pub fn not_transient(self) -> Self {
        Self {
            is_transient: false,
            ..self
        }
    }

    /// Whether another attempt may succeed, as after an error of a network.
    pub fn is_transient(&self) -> bool {
        self.is_transient
    }

    /// Whether a piece of a file could not be read. The file is then read as a whole, by the plan
    /// of [`with_whole_files`](crate::with_whole_files).
    pub fn is_of_piece(&self) -> bool {
        self.is_of_piece
    }

    /// The error of the query with the plan `plan`, with advice as for an error of its scans.
    pub fn into_error(self, plan: &Arc<dyn ExecutionPlan>) -> DataFusionError {
        let error = match self.cause {
            Cause::File(fault) => fault.into_error(plan),
            Cause::Cast(text) => {
                DataFusionError::ArrowError(Box::new(ArrowError::CastError(text)), None)
            }
            Cause::Execution(text) => DataFusionError::Execution(text),
            Cause::NotImplemented(text) => DataFusionError::NotImplemented(text),
            Cause::Internal(text) => DataFusionError::Internal(text),
            Cause::ResourcesExhausted(text) => DataFusionError::ResourcesExhausted(text),
            Cause::Text(text) => DataFusionError::External(text.into()),
        };
        self.contexts
            .into_iter()
            .rev()
            .fold(error, |error, text| error.context(text))
    }
}

/// An error, its source, the source of that, and so on.
fn chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

/// The text that an operator has added to an error.
fn context(error: &(dyn StdError + 'static)) -> Option<String> {
    match of_datafusion(error)? {
        DataFusionError::Context(text, _) => Some(text.clone()),
        _ => None,
    }
}

/// An error of DataFusion, which several readers of one result may share.
fn of_datafusion<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e DataFusionError> {
    error.downcast_ref::<DataFusionError>().or_else(|| {
        let shared = error.downcast_ref::<Arc<DataFusionError>>();
        shared.map(AsRef::as_ref)
    })
}

impl Cause {
    /// The cause that an error names, if it is not that of its source.
    fn of(error: &(dyn StdError + 'static)) -> Option<Self> {
        if let Some(error) = error.downcast_ref::<ArrowError>() {
            return match error {
                ArrowError::ExternalError(_) => None,
                ArrowError::CastError(text) => Some(Self::Cast(text.clone())),
                error => Some(Self::Text(error.to_string())),
            };
        }
        let Some(error) = of_datafusion(error) else {
            return Some(Self::Text(error.to_string()));
        };
        match error {
            DataFusionError::ArrowError(..)
            | DataFusionError::Context(..)
            | DataFusionError::Diagnostic(..)
            | DataFusionError::Collection(_)
            | DataFusionError::Shared(_)
            | DataFusionError::External(_)
            | DataFusionError::IoError(_)
            | DataFusionError::ObjectStore(_) => None,
            DataFusionError::Plan(text)
            | DataFusionError::Execution(text)
            | DataFusionError::Configuration(text) => Some(Self::Execution(text.clone())),
            DataFusionError::NotImplemented(text) => Some(Self::NotImplemented(text.clone())),
            DataFusionError::Internal(text) => Some(Self::Internal(text.clone())),
            DataFusionError::ResourcesExhausted(text) => {
                Some(Self::ResourcesExhausted(text.clone()))
            }
            error => Some(Self::Text(error.strip_backtrace())),
        }
    }
}

impl FileFault {
    /// An error of a file; `None` if it is not about a single file.
    fn of(error: &Error) -> Option<Self> {
        let path = error.path()?.to_owned();
        let mut remedies = error.remedies();
        // The types that a rewrite names are those of columns, which only the planning process
        // checks.
        remedies.retain(|remedy| !matches!(remedy, Remedy::Rewrite { .. }));
        Some(Self {
            path,
            message: error.kind().to_string(),
            fault: Fault::kind_of(error),
            remedies,
            conflict: conflicting_feature(error).map(ToOwned::to_owned),
        })
    }

    fn into_error(self, plan: &Arc<dyn ExecutionPlan>) -> DataFusionError {
        let Self {
            path,
            message,
            fault,
            remedies,
            conflict,
        } = self;
        let source = source_of(plan, &path);
        let error = Error::new(
            path,
            ErrorKind::Reported {
                message,
                fault,
                remedies,
            },
        );
        let advice = match (&source, &conflict) {
            (Some(source), Some(feature)) => kind_advice(feature, source.provenance()),
            (Some(source), None) => scan_advice(&error, source.provenance()),
            (None, _) => sql_advice(&error.remedies()),
        };
        with_advice(error, advice)
    }
}

/// Whether a cause of an error may not be there at another attempt.
fn is_transient(cause: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
        );
    }
    matches!(
        cause.downcast_ref::<object_store::Error>(),
        Some(object_store::Error::Generic { .. })
    )
}

#[cfg(test)]
mod tests {
    use arrow_schema::Schema;
    use datafusion::physical_plan::empty::EmptyExec;

    use tfarrow_datafusion::internals::external;

    use super::*;

    #[test]
    fn texts_of_operators_are_kept() {
        let full = || Error::io("a.csv", io::ErrorKind::StorageFull.into());
        let error = external(full())
            .context("3 of 4 files")
            .context("all of it");
        let found = TaskError::of(&DataFusionError::Shared(Arc::new(error)));
        assert!(found.is_transient() && !found.clone().not_transient().is_transient());
        let plan: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
        let text = found.into_error(&plan).strip_backtrace();
        let expected = external(full())
            .context("3 of 4 files")
            .context("all of it")
            .strip_backtrace();
        assert_eq!(text, expected);
    }
}
