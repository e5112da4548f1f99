//! The executor process.

use std::{
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::{
    config::TaskSchedulingPolicy,
    registry::BallistaFunctionRegistry,
    utils::{GrpcClientConfig, create_grpc_server},
};
use ballista_executor::{
    ArrowFlightServerProvider,
    executor_process::{ExecutorProcessConfig, start_executor_process},
    flight_service::BallistaFlightService,
};
use datafusion::{
    common::exec_datafusion_err, error::Result, execution::runtime_env::RuntimeEnvBuilder, prelude::SessionConfig,
};

use crate::ballista::{MOST_MESSAGE_BYTES, codec, stages::Stages, state, tls::Tls};

/// Time for which an executor tries to connect to its scheduler, in seconds.
const CONNECT_TIME: u16 = 30;

/// Options of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The host of the scheduler.
    pub scheduler_host: String,
    /// The port of the scheduler.
    pub scheduler_port: u16,
    /// Number of tasks that run at the same time.
    pub cores: usize,
    /// The folder for shuffles, results and spilled rows, which is created.
    pub work_dir: PathBuf,
    /// The address at which other executors and clients fetch results.
    pub bind: IpAddr,
    /// The port of this address.
    pub port: u16,
    /// The name by which other machines reach this one.
    pub external_host: String,
    /// The folder outside of which no local file is read or written; `None`: all files of the user of the process.
    pub root: Option<PathBuf>,
    /// Memory for sorts, joins and groups of all tasks together, in bytes; `None`: a part of the memory of the machine.
    pub memory_limit: Option<u64>,
    /// TLS of all connections; `None`: without TLS.
    pub tls: Option<Tls>,
}

/// Runs an executor until the process is asked to end by a signal.
///
/// # Errors
/// The scheduler cannot be reached, a folder does not exist, or the port is taken.
pub async fn run_executor(options: ExecutorOptions) -> Result<()> {
    let failed = |path: &Path, error: io::Error| exec_datafusion_err!("{}: {error}", path.display());
    let real = |path: &PathBuf| path.canonicalize().map_err(|error| failed(path, error));
    fs::create_dir_all(&options.work_dir).map_err(|error| failed(&options.work_dir, error))?;
    let work_dir = real(&options.work_dir)?;
    let Some(work_dir) = work_dir.to_str().map(ToOwned::to_owned) else {
        return Err(exec_datafusion_err!("{}: the name is not UTF-8", work_dir.display()));
    };
    let root = options.root.as_ref().map(real).transpose()?;
    let session = state(SessionConfig::new())?;
    let stores = Arc::clone(&session.runtime_env().object_store_registry);
    let spill = work_dir.clone();
    let config = ExecutorProcessConfig {
        bind_host: options.bind.to_string(),
        external_host: Some(options.external_host),
        port: options.port,
        scheduler_host: options.scheduler_host,
        scheduler_port: options.scheduler_port,
        scheduler_connect_timeout_seconds: CONNECT_TIME,
        vcores: options.cores,
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(work_dir),
        grpc_max_decoding_message_size: MOST_MESSAGE_BYTES,
        grpc_max_encoding_message_size: MOST_MESSAGE_BYTES,
        memory_pool_size: options.memory_limit,
        override_execution_engine: Some(Arc::new(Stages::new(root, options.tls.clone()))),
        override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(&session))),
        override_runtime_producer: Some(Arc::new(move |_| {
            let runtime = RuntimeEnvBuilder::new().with_temp_file_path(&spill);
            runtime.with_object_store_registry(Arc::clone(&stores)).build_arc()
        })),
        override_physical_codec: Some(Arc::new(codec())),
        override_create_grpc_client_endpoint: options
            .tls
            .clone()
            .map(|tls| tls.endpoint_override(Some(GrpcClientConfig::default()))),
        override_arrow_flight_service: options.tls.map(flight_service),
        ..ExecutorProcessConfig::default()
    };
    let ran = start_executor_process(Arc::new(config)).await;
    ran.map_err(|error| exec_datafusion_err!("the executor failed: {error}"))
}

/// The service from which executors and clients fetch rows, with TLS.
fn flight_service(tls: Tls) -> Arc<ArrowFlightServerProvider> {
    Arc::new(move |work_dir, address, mut shutdown, config| {
        let most = usize::try_from(MOST_MESSAGE_BYTES).unwrap_or(usize::MAX);
        let service = FlightServiceServer::new(BallistaFlightService::new(work_dir));
        let service = service.max_decoding_message_size(most).max_encoding_message_size(most);
        let server = create_grpc_server(&config).tls_config(tls.server());
        tokio::spawn(async move {
            let served = server?.add_service(service).serve_with_shutdown(address, shutdown.recv());
            Ok(served.await?)
        })
    })
}
