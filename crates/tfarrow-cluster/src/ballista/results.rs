//! The results of a job, which executors keep.

use std::{collections::HashSet, error::Error, hash::Hash};

use ballista_core::{client::BallistaClient, serde::protobuf::PartitionLocation};
use datafusion::{
    arrow::record_batch::RecordBatch,
    common::exec_datafusion_err,
    error::{DataFusionError, Result},
};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};

use crate::ballista::{
    MOST_MESSAGE_BYTES,
    client::innermost,
    tls::{Tls, fetch_endpoint},
};

/// Number of results that are requested at the same time.
const REQUESTS: usize = 4;
/// Number of times that a result is requested from an executor that refuses connections, and the
/// time between them.
const TRIES: u8 = 2;
const WAIT_MILLIS: u64 = 200;

/// The results of a job: one for each partition of the last stage, in their order.
#[derive(Debug)]
pub(crate) struct Results {
    locations: Vec<PartitionLocation>,
    tls: Option<Tls>,
}

impl Results {
    /// The results at these places; `None` if there are those of two attempts of a task.
    pub(crate) fn new(mut locations: Vec<PartitionLocation>, tls: Option<Tls>) -> Option<Self> {
        if has_attempts(locations.iter().map(task_of)) {
            return None;
        }
        locations.sort_by_key(task_of);
        Some(Self { locations, tls })
    }

    /// Fetches the rows.
    pub(crate) fn fetch(self) -> BoxStream<'static, Result<RecordBatch>> {
        stream::iter(self.locations)
            .map(move |location| fetch(location, self.tls.clone()))
            .buffered(REQUESTS)
            .try_flatten()
            .boxed()
    }
}

/// The stage and the partition, if the scheduler gave them, and the task of a result.
fn task_of(location: &PartitionLocation) -> (Option<(u32, u32)>, u32) {
    let partition = location.partition_id.as_ref();
    (
        partition.map(|partition| (partition.stage_id, partition.partition_id)),
        location.map_partition_id,
    )
}

/// Returns whether there are results of two attempts of a task, by the stage, the partition and the
/// task of each result. The scheduler of Ballista 55 keeps the results of a task that it runs again
/// after an executor was lost, so that rows would be read twice.
pub(crate) fn has_attempts<K: Eq + Hash>(results: impl IntoIterator<Item = K>) -> bool {
    let mut seen = HashSet::new();
    !results.into_iter().all(|result| seen.insert(result))
}

async fn fetch(
    location: PartitionLocation,
    tls: Option<Tls>,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let layout = location.layout();
    let (Some(executor), Some(partition)) = (location.executor_meta, location.partition_id) else {
        return Err(exec_datafusion_err!(
            "the scheduler returned a result without a place"
        ));
    };
    let host = executor.host;
    let port = u16::try_from(executor.port).unwrap_or_default();
    let client = BallistaClient::try_new(
        &host,
        port,
        MOST_MESSAGE_BYTES,
        false,
        Some(fetch_endpoint(tls)),
        TRIES,
        WAIT_MILLIS,
        0,
        0,
    )
    .await;
    let mut client = client.map_err(|error| lost(&host, port, &error))?;
    let rows = client
        .fetch_partition_proxied(
            &executor.id,
            &partition.into(),
            location.file_id,
            layout,
            &host,
            port,
            true,
        )
        .await;
    let rows = rows.map_err(|error| lost(&host, port, &error))?;
    Ok(rows.map_err(move |error| lost(&host, port, &error)).boxed())
}

/// The error of an executor that does not return its part of a result.
fn lost(host: &str, port: u16, error: &(dyn Error + 'static)) -> DataFusionError {
    exec_datafusion_err!(
        "the executor {host}:{port}, which has a part of the result, is lost: {}",
        innermost(error)
    )
}
