//! The scheduler process.

use std::{net::SocketAddr, sync::Arc};

use ballista_core::{
    config::TaskSchedulingPolicy, serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer,
};
use ballista_scheduler::{
    cluster::BallistaCluster, config::SchedulerConfig, scheduler_process::create_scheduler,
};
use datafusion::{
    common::exec_datafusion_err,
    error::{DataFusionError, Result},
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use crate::{
    PlanCodec,
    ballista::{
        MOST_MESSAGE_BYTES, client::innermost, inner_codec, service::SchedulerService, state,
        tls::Tls,
    },
};

/// Time after its last request after which an executor is lost. An executor with tasks on all cores
/// asks every 5 s.
const EXECUTOR_TIME: u64 = 8;
/// Interval between two looks for lost executors.
const LOOK: u64 = 1;
/// Time for which executors keep the results of a job that no client has removed.
const RESULTS_TIME: u64 = 3600;
/// Time for which the scheduler keeps the state of a job that has ended: its plan, and the places
/// of all results of its tasks.
const STATE_TIME: u64 = 300;

/// Options of a scheduler.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// The address at which clients and executors reach the scheduler.
    pub bind: SocketAddr,
    /// TLS of all connections; `None`: without TLS.
    pub tls: Option<Tls>,
}

/// Runs a scheduler until the process ends. `on_ready` is called with the address when clients and
/// executors can connect.
///
/// # Errors
/// The address cannot be bound, or the certificate is invalid.
pub async fn run_scheduler(
    options: SchedulerOptions,
    on_ready: impl FnOnce(SocketAddr),
) -> Result<()> {
    let listener = TcpListener::bind(options.bind).await;
    let listener = listener.map_err(|error| exec_datafusion_err!("{}: {error}", options.bind))?;
    let address = listener.local_addr()?;
    let config = SchedulerConfig {
        external_host: address.ip().to_string(),
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        // With the other policy, cores stay taken after an executor was lost.
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        executor_timeout_seconds: EXECUTOR_TIME,
        expire_dead_executor_interval_seconds: LOOK,
        no_executors_grace_period_seconds: 0,
        finished_job_data_clean_up_interval_seconds: RESULTS_TIME,
        finished_job_state_clean_up_interval_seconds: STATE_TIME,
        grpc_client_max_message_size: MOST_MESSAGE_BYTES as u32,
        override_physical_codec: Some(Arc::new(PlanCodec::relay(inner_codec()))),
        override_session_builder: Some(Arc::new(state)),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config)
        .await
        .map_err(failed)?;
    let service = SchedulerService::new(
        create_scheduler(cluster, Arc::new(config))
            .await
            .map_err(failed)?,
    );
    tokio::spawn(service.clone().watch());
    let service = SchedulerGrpcServer::new(service)
        .max_decoding_message_size(MOST_MESSAGE_BYTES)
        .max_encoding_message_size(MOST_MESSAGE_BYTES);
    let mut server = Server::builder().tcp_nodelay(true);
    if let Some(tls) = options.tls {
        server = server
            .tls_config(tls.server())
            .map_err(|error| exec_datafusion_err!("TLS: {}", innermost(&error)))?;
    }
    on_ready(address);
    let served = server.add_service(service);
    let served = served
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await;
    served.map_err(|error| exec_datafusion_err!("{address}: {}", innermost(&error)))
}

fn failed(error: ballista_core::error::BallistaError) -> DataFusionError {
    exec_datafusion_err!("the scheduler cannot start: {error}")
}
