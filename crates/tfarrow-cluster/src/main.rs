//! The `tfarrow-cluster` program: the scheduler and the executors of a cluster, and the commands of
//! `tfarrow` that run queries on one.

mod args;

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};

use clap::Parser;
use datafusion::error::{DataFusionError, Result};
use tfarrow_cluster::ballista::{
    ClusterEngine, ExecutorOptions, STACK_BYTES, Tls, run_executor, run_scheduler,
};
use tfarrow_sql::Engine;

use crate::args::{ClusterCli, ClusterCommand};

/// Batches are freed by other threads than those that allocate them, which slows the system's
/// allocator down.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The program tfarrow passes its own command line on.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|command| command == "sql")
    {
        return ExitCode::from(tfarrow_cli::run_with_cluster(
            std::env::args_os(),
            |cluster| {
                Box::pin(async move {
                    let tls = cluster.tls.as_deref().map(Tls::read).transpose()?;
                    let engine =
                        ClusterEngine::connect(cluster.scheduler, tls, tfarrow_cli::print_message)
                            .await?;
                    Ok(Arc::new(engine) as Arc<dyn Engine>)
                })
            },
        ));
    }
    let cli = ClusterCli::parse();
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            message(&tfarrow_report::error_message(&error));
            // Wrong usage, as of the program tfarrow.
            ExitCode::from(if matches!(error, DataFusionError::Plan(_)) {
                2
            } else {
                1
            })
        }
    }
}

fn run(cli: ClusterCli) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match cli.command {
            ClusterCommand::Scheduler(args) => {
                run_scheduler(args.try_into()?, |address| message(&format!("the scheduler listens on {address}"))).await
            }
            ClusterCommand::Executor(args) => {
                let options: ExecutorOptions = args.try_into()?;
                let ExecutorOptions { scheduler_host, scheduler_port, cores, .. } = &options;
                let text =
                    format!("an executor with {cores} cores for the scheduler {scheduler_host}:{scheduler_port}");
                run_executor(options, || message(&text)).await
            }
        }
    })
}

/// Prints a message. A closed standard error is no failure.
fn message(text: &str) {
    _ = writeln!(io::stderr(), "tfarrow-cluster: {text}");
}
