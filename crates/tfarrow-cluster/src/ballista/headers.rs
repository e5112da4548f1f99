//! The headers and the counter for values that the messages of Ballista have no field for.

use tonic::metadata::{MetadataMap, MetadataValue};

/// The beginning of the name of a counter: the rest is the JSON of
/// [`TaskNotices`](tfarrow_sql::TaskNotices).
pub(crate) const NOTICES: &str = "tfarrow_notices:";
/// The header with the version of the scheduler.
pub(crate) const SCHEDULER_VERSION: &str = "tfarrow-version";
/// The header of requests of executors, which do not renew the lease of a job.
pub(crate) const EXECUTOR: &str = "tfarrow-executor";
/// The header with the number of cores of all executors.
pub(crate) const CORES: &str = "tfarrow-cores";
/// The header with the number of finished tasks that scan files.
pub(crate) const FINISHED: &str = "tfarrow-finished-tasks";
/// The header with the number of all tasks that scan files.
pub(crate) const TASKS: &str = "tfarrow-tasks";

/// A number in a header; `None` if the header is absent.
pub(crate) fn number(headers: &MetadataMap, name: &str) -> Option<u32> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// Sets a number in a header.
pub(crate) fn set_number(headers: &mut MetadataMap, name: &'static str, number: usize) {
    headers.insert(
        name,
        MetadataValue::from(u64::try_from(number).unwrap_or(u64::MAX)),
    );
}
