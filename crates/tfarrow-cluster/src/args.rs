//! The command line.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use clap::{Args, Parser, Subcommand};
use datafusion::{common::plan_err, error::DataFusionError};
use tfarrow_cluster::ballista::{ExecutorOptions, SchedulerOptions, Tls};

/// The processes of a cluster that runs the queries of `tfarrow sql --cluster HOST:PORT`.
#[derive(Debug, Parser)]
#[command(name = "tfarrow-cluster", version, arg_required_else_help = true, after_help = AFTER)]
pub(crate) struct ClusterCli {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

const AFTER: &str = "\
Example, on one machine:
  tfarrow-cluster scheduler
  tfarrow-cluster executor --scheduler 127.0.0.1:50050 --work-dir /tmp/executor
  tfarrow sql --cluster 127.0.0.1:50050 \"SELECT label, count(*) FROM 'shards/' GROUP BY label\"

Without --tls, whoever can connect to a port of a cluster can read all data that its executors can read: see docs/cluster.md.
RUST_LOG=info shows what a process does.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Run the scheduler, which clients and executors connect to
    Scheduler(Scheduler),
    /// Run an executor, which runs tasks of queries
    Executor(Executor),
}

/// Arguments of `scheduler`.
#[derive(Debug, Args)]
pub(crate) struct Scheduler {
    /// Address and port for clients and executors
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50050")]
    bind: SocketAddr,
    #[command(flatten)]
    tls: TlsArgs,
}

impl TryFrom<Scheduler> for SchedulerOptions {
    type Error = DataFusionError;

    fn try_from(args: Scheduler) -> Result<Self, Self::Error> {
        Ok(Self {
            bind: args.bind,
            tls: args.tls.read()?,
        })
    }
}

/// The option for TLS.
#[derive(Debug, Args)]
struct TlsArgs {
    /// Use TLS, with the certificates of a folder: tls.crt and tls.key of this process, and ca.crt,
    /// whose key signed those of all processes of the cluster
    #[arg(long, value_name = "DIR")]
    tls: Option<PathBuf>,
}

impl TlsArgs {
    fn read(self) -> Result<Option<Tls>, DataFusionError> {
        self.tls.as_deref().map(Tls::read).transpose()
    }
}

/// Arguments of `executor`.
#[derive(Debug, Args)]
pub(crate) struct Executor {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT", value_parser = tfarrow_cli::parse_host_and_port)]
    scheduler: (String, u16),
    /// Number of tasks that run at the same time [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cores: Option<u32>,
    /// Folder for shuffles, results and spilled rows
    #[arg(long, value_name = "DIR")]
    work_dir: PathBuf,
    /// Address from which other executors and clients fetch rows
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Port from which other executors and clients fetch rows
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    port: u16,
    /// Name or address of this machine for other machines [default: that of --bind]
    #[arg(long, value_name = "HOST")]
    external_host: Option<String>,
    /// Read and write local files below this folder only; needed unless --bind is an address of
    /// this machine alone
    #[arg(long, value_name = "DIR", value_parser = real_folder)]
    root: Option<PathBuf>,
    /// Memory for sorts, joins and groups of all tasks together, such as 4GB; beyond it they spill
    /// to the work folder [default: a part of the memory of the machine]
    #[arg(long, value_name = "SIZE", value_parser = tfarrow_cli::parse_size)]
    memory_limit: Option<u64>,
    #[command(flatten)]
    tls: TlsArgs,
}

impl TryFrom<Executor> for ExecutorOptions {
    type Error = DataFusionError;

    fn try_from(args: Executor) -> Result<Self, Self::Error> {
        if args.root.is_none() && !args.bind.is_loopback() {
            return plan_err!(
                "--bind {} can be reached from other machines: name the folder that they may read with --root DIR (--root / for all files)",
                args.bind
            );
        }
        if args.external_host.is_none() && args.bind.is_unspecified() {
            return plan_err!(
                "--bind {} is no address of one machine: name this machine with --external-host HOST",
                args.bind
            );
        }
        let cores = args.cores.and_then(|cores| usize::try_from(cores).ok());
        let (scheduler_host, scheduler_port) = args.scheduler;
        Ok(Self {
            scheduler_host,
            scheduler_port,
            cores: cores
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
            work_dir: args.work_dir,
            external_host: bracketed(args.external_host.unwrap_or_else(|| args.bind.to_string())),
            bind: args.bind,
            port: args.port,
            root: args.root,
            memory_limit: args.memory_limit,
            tls: args.tls.read()?,
        })
    }
}

/// A host as in a URL, where an IPv6 address is in brackets.
fn bracketed(host: String) -> String {
    if host.parse::<Ipv6Addr>().is_ok() {
        format!("[{host}]")
    } else {
        host
    }
}

/// The real path of a folder.
fn real_folder(path: &str) -> io::Result<PathBuf> {
    let real = PathBuf::from(path).canonicalize()?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        ClusterCli::command().debug_assert();
    }

    #[test]
    fn addresses_of_the_network_need_a_root() {
        let options = |more: &[&str]| {
            let args = [
                "tfarrow-cluster",
                "executor",
                "--scheduler",
                "h:1",
                "--work-dir",
                "d",
            ];
            match ClusterCli::try_parse_from(args.iter().chain(more))
                .map_err(|error| error.to_string())?
                .command
            {
                ClusterCommand::Executor(executor) => {
                    ExecutorOptions::try_from(executor).map_err(|error| error.to_string())
                }
                other => Err(format!("{other:?}")),
            }
        };
        assert_eq!(options(&[]).unwrap().external_host, "127.0.0.1");
        assert!(
            options(&["--bind", "10.1.1.1"])
                .unwrap_err()
                .contains("--root DIR")
        );
        assert!(
            options(&["--bind", "0.0.0.0", "--root", "/"])
                .unwrap_err()
                .contains("--external-host")
        );
        assert_eq!(
            options(&["--bind", "10.1.1.1", "--root", "/"])
                .unwrap()
                .external_host,
            "10.1.1.1"
        );
        assert_eq!(options(&["--bind", "::1"]).unwrap().external_host, "[::1]");
        for root in [
            "/absent",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ] {
            assert!(
                options(&["--root", root])
                    .unwrap_err()
                    .contains("'--root <DIR>'")
            );
        }
    }
}
