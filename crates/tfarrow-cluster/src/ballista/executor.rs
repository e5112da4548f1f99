//! The executor process.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use ballista_core::{
    config::TaskSchedulingPolicy, registry::BallistaFunctionRegistry,
    serde::protobuf::ExecutorStoppedParams, utils::GrpcClientConfig,
};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::{
    common::exec_datafusion_err, error::Result, execution::runtime_env::RuntimeEnvBuilder,
    prelude::SessionConfig,
};
use tokio::{
    net::TcpListener,
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

use crate::ballista::{
    MOST_MESSAGE_BYTES, STACK_BYTES,
    client::{connected, connecting},
    codec,
    fetch_service::fetch_service,
    running_jobs::RunningJobs,
    stages::Stages,
    state,
    tls::Tls,
    work_folder::WorkFolder,
};

/// Time for which an executor tries to connect to its scheduler, in seconds.
const CONNECT_TIME: u16 = 30;
/// Time after which an executor removes what is left of jobs, such as results that a task has
/// written after the end of its job, and the interval between two looks at them, in seconds.
const LEFTOVERS_TIME: u64 = 24 * 3600;
const LEFTOVERS_LOOK: u64 = 3600;
/// Maximum time that an executor which ends waits for its scheduler.
const STOP_TIME: Duration = Duration::from_secs(2);

/// Options of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The host of the scheduler; an IPv6 address is in brackets.
    pub scheduler_host: String,
    /// The port of the scheduler.
    pub scheduler_port: u16,
    /// Number of tasks that run at the same time.
    pub cores: usize,
    /// The folder for shuffles, results and spilled rows, which is created. The executor makes a
    /// folder of its own in it, and removes those of executors that were killed.
    pub work_dir: PathBuf,
    /// The address at which other executors and clients fetch results.
    pub bind: IpAddr,
    /// The port of this address.
    pub port: u16,
    /// The name by which other machines reach this one; an IPv6 address is in brackets.
    pub external_host: String,
    /// The folder outside of which no local file is read or written; `None`: all files of the user
    /// of the process.
    pub root: Option<PathBuf>,
    /// Memory for sorts, joins and groups of all tasks together, in bytes; `None`: a part of the
    /// memory of the machine.
    pub memory_limit: Option<u64>,
    /// TLS of all connections; `None`: without TLS.
    pub tls: Option<Tls>,
}

/// Runs an executor until the process is asked to end by a signal. `on_start` is called before it
/// connects to the scheduler, when its folders exist.
///
/// # Errors
/// The scheduler cannot be reached, a folder does not exist, or the port is taken.
pub async fn run_executor(options: ExecutorOptions, on_start: impl FnOnce()) -> Result<()> {
    let root = options.root.as_ref().map(|root| {
        root.canonicalize()
            .map_err(|error| exec_datafusion_err!("{}: {error}", root.display()))
    });
    let root = root.transpose()?;
    let work_folder = WorkFolder::create(&options.work_dir)
        .map_err(|error| exec_datafusion_err!("{}: {error}", options.work_dir.display()))?;
    // Ballista binds the address in a thread whose error it ignores.
    let address = SocketAddr::new(options.bind, options.port);
    TcpListener::bind(address)
        .await
        .map_err(|error| exec_datafusion_err!("{address}: {error}"))?;
    let scheduler = format!("{}:{}", options.scheduler_host, options.scheduler_port);
    let jobs = RunningJobs::new(connecting(&scheduler, options.tls.as_ref())?);
    let tls = options.tls.clone();
    let config = process_config(options, root, &work_folder, jobs)?;
    let executor_id = config.executor_id.clone();
    on_start();
    // The loop that asks for tasks ends only with its runtime.
    let runtime = Builder::new_multi_thread()
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()?;
    let process = runtime.spawn(start_executor_process(Arc::new(config)));
    let ended = tokio::select! {
        biased;
        asked = end_signal() => asked.map_err(Into::into),
        ran = process => Err(match ran {
            Ok(Ok(())) => exec_datafusion_err!("the executor has ended without a signal; RUST_LOG=info shows the cause"),
            Ok(Err(error)) => exec_datafusion_err!("the executor failed: {error}"),
            Err(error) => exec_datafusion_err!("the executor failed: {error}"),
        }),
    };
    // The process ends soon. Threads are not detached: `pthread_detach` of glibc 2.36 reads the
    // memory of a thread that ends at the same time.
    std::mem::forget(std::thread::Builder::new().spawn(move || drop(runtime)));
    if ended.is_ok() {
        let stopped = ExecutorStoppedParams {
            executor_id,
            reason: "it was asked to end".to_owned(),
        };
        let sent = async {
            connected(&scheduler, tls.as_ref())
                .await
                .ok()?
                .executor_stopped(stopped)
                .await
                .ok()
        };
        // Without this message, the scheduler notices later that the executor is lost.
        _ = tokio::time::timeout(STOP_TIME, sent).await;
    }
    ended
}

/// Waits for SIGINT or SIGTERM.
async fn end_signal() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed,
        _ = terminate.recv() => Ok(()),
    }
}

/// The configuration of the process of Ballista.
fn process_config(
    options: ExecutorOptions,
    root: Option<PathBuf>,
    work_folder: &WorkFolder,
    jobs: RunningJobs,
) -> Result<ExecutorProcessConfig> {
    let results = create_folder(work_folder, "results")?;
    let spills = create_folder(work_folder, "spills")?;
    let Some(results) = results.to_str().map(ToOwned::to_owned) else {
        return Err(exec_datafusion_err!(
            "{}: the name is not UTF-8",
            results.display()
        ));
    };
    let session = state(SessionConfig::new())?;
    let stores = Arc::clone(&session.runtime_env().object_store_registry);
    Ok(ExecutorProcessConfig {
        // Ballista adds the port to the text.
        bind_host: match options.bind {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        },
        external_host: Some(options.external_host),
        port: options.port,
        scheduler_host: options.scheduler_host,
        scheduler_port: options.scheduler_port,
        scheduler_connect_timeout_seconds: CONNECT_TIME,
        vcores: options.cores,
        task_scheduling_policy: TaskSchedulingPolicy::PullStaged,
        work_dir: Some(results),
        job_data_ttl_seconds: LEFTOVERS_TIME,
        job_data_clean_up_interval_seconds: LEFTOVERS_LOOK,
        grpc_max_decoding_message_size: MOST_MESSAGE_BYTES as u32,
        grpc_max_encoding_message_size: MOST_MESSAGE_BYTES as u32,
        memory_pool_size: options.memory_limit,
        override_execution_engine: Some(Arc::new(Stages::new(root, options.tls.clone(), jobs))),
        override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(&session))),
        override_runtime_producer: Some(Arc::new(move |_| {
            let runtime = RuntimeEnvBuilder::new().with_temp_file_path(&spills);
            runtime
                .with_object_store_registry(Arc::clone(&stores))
                .build_arc()
        })),
        override_physical_codec: Some(Arc::new(codec())),
        override_create_grpc_client_endpoint: options
            .tls
            .clone()
            .map(|tls| tls.endpoint_override(Some(GrpcClientConfig::default()))),
        override_arrow_flight_service: Some(fetch_service(options.tls)),
        ..ExecutorProcessConfig::default()
    })
}

/// Creates a folder in the work folder.
fn create_folder(work_folder: &WorkFolder, name: &str) -> Result<PathBuf> {
    let folder = work_folder.path().join(name);
    std::fs::create_dir(&folder)
        .map_err(|error| exec_datafusion_err!("{}: {error}", folder.display()))?;
    Ok(folder)
}
