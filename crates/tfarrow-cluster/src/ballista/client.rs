//! The connection of a client to a scheduler.

use std::{error::Error, time::Duration};

use ballista_core::{
    serde::protobuf::{CreateUpdateSessionParams, scheduler_grpc_client::SchedulerGrpcClient},
    utils::{GrpcClientConfig, create_grpc_client_endpoint},
};
use datafusion::{
    common::exec_datafusion_err,
    error::{DataFusionError, Result},
};
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

use crate::{
    ballista::{
        MOST_MESSAGE_BYTES,
        headers::{CORES, SCHEDULER_VERSION, number},
        tls::Tls,
    },
    codec::check_version,
};

/// Time for a connection to the scheduler.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A client of a scheduler.
pub(crate) type SchedulerClient = SchedulerGrpcClient<Channel>;

/// A connection to a scheduler, and the session of this process there.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// `HOST:PORT`
    pub(crate) address: String,
    pub(crate) tls: Option<Tls>,
    pub(crate) scheduler: SchedulerClient,
    pub(crate) session: String,
    /// Number of cores of all executors.
    pub(crate) cores: usize,
    /// Shows a message to the user of this process.
    pub(crate) on_message: fn(&str),
}

impl Connection {
    /// Connects to the scheduler at `address`, `HOST:PORT`, and starts a session.
    ///
    /// # Errors
    /// No scheduler of this version of tfarrow is there.
    pub(crate) async fn open(
        address: String,
        tls: Option<Tls>,
        on_message: fn(&str),
    ) -> Result<Self> {
        let mut scheduler = connected(&address, tls.as_ref()).await?;
        let session = uuid::Uuid::now_v7().to_string();
        let params = CreateUpdateSessionParams {
            session_id: session.clone(),
            settings: Vec::new(),
        };
        let answer = scheduler.create_update_session(params).await;
        // A server with TLS closes other connections at their first request.
        let answer = answer.map_err(|status| match status.source() {
            Some(cause) => unreachable(&address, &innermost(cause)),
            None => failed(&address, &status),
        })?;
        let version = answer
            .metadata()
            .get(SCHEDULER_VERSION)
            .and_then(|version| version.to_str().ok());
        let (Some(version), Some(cores)) = (version, number(answer.metadata(), CORES)) else {
            return Err(exec_datafusion_err!(
                "{address} is a scheduler of another program"
            ));
        };
        check_version(&format!("scheduler at {address}"), version)?;
        let cores = usize::try_from(cores).unwrap_or(usize::MAX);
        Ok(Self {
            address,
            tls,
            scheduler,
            session,
            cores,
            on_message,
        })
    }
}

/// Connects to the scheduler at `address`, `HOST:PORT`.
///
/// # Errors
/// No server is there, or its certificate is not that of the host.
pub(crate) async fn connected(address: &str, tls: Option<&Tls>) -> Result<SchedulerClient> {
    let channel = endpoint(address, tls)?.connect().await;
    Ok(client(channel.map_err(|error| {
        unreachable(address, &innermost(&error))
    })?))
}

/// A client of the scheduler at `address` that connects when it is used. Must be called in a
/// runtime of tokio.
///
/// # Errors
/// The address or the certificate is invalid.
pub(crate) fn connecting(address: &str, tls: Option<&Tls>) -> Result<SchedulerClient> {
    Ok(client(endpoint(address, tls)?.connect_lazy()))
}

fn endpoint(address: &str, tls: Option<&Tls>) -> Result<Endpoint> {
    let config = GrpcClientConfig {
        connect_timeout_seconds: CONNECT_TIME.as_secs(),
        ..GrpcClientConfig::default()
    };
    let endpoint = create_grpc_client_endpoint(format!("http://{address}"), Some(&config));
    let endpoint = endpoint.map_err(|error| unreachable(address, &innermost(&error)))?;
    let Some(tls) = tls else { return Ok(endpoint) };
    let secured = tls.secured(&endpoint, Some(&config));
    secured.map_err(|error| exec_datafusion_err!("TLS: {}", innermost(error.as_ref())))
}

fn client(channel: Channel) -> SchedulerClient {
    let client = SchedulerClient::new(channel);
    client
        .max_encoding_message_size(MOST_MESSAGE_BYTES)
        .max_decoding_message_size(MOST_MESSAGE_BYTES)
}

fn unreachable(address: &str, cause: &str) -> DataFusionError {
    exec_datafusion_err!(
        "no scheduler answers at {address} ({cause}); tfarrow-cluster scheduler starts one, and one with TLS refuses clients without a certificate"
    )
}

/// The error of a request to the scheduler.
pub(crate) fn failed(address: &str, status: &Status) -> DataFusionError {
    let cause = status
        .source()
        .map_or_else(|| status.message().to_owned(), innermost);
    exec_datafusion_err!("the scheduler at {address} failed: {cause}")
}

/// The text of the innermost cause, which has no text of a library.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |&error| error.source())
        .last()
        .unwrap_or(error)
        .to_string()
}
