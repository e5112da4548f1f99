//! Queries on a cluster: this program has no engine for them, and passes its command line on to one
//! that has.

use std::{env, ffi::OsString, io, path::PathBuf, process, sync::Arc};

use anyhow::Result;
use datafusion::error::DataFusionError;
use futures::future::BoxFuture;
use tfarrow_sql::Engine;

use crate::error::Usage;

/// The cluster that a command line names.
#[derive(Clone, Debug)]
pub struct ClusterAddress {
    /// The scheduler: `HOST:PORT`.
    pub scheduler: String,
    /// The folder with certificates for TLS.
    pub tls: Option<PathBuf>,
}

/// Connects to a cluster.
pub type Connect =
    fn(ClusterAddress) -> BoxFuture<'static, Result<Arc<dyn Engine>, DataFusionError>>;

/// How a query reaches a cluster.
pub(crate) enum Cluster {
    /// Another program runs this command line.
    Program(Vec<OsString>),
    /// This process connects to the cluster.
    Engine(Connect),
}

/// The program with an engine.
const PROGRAM: &str = "tfarrow-cluster";

/// Runs a command line in the program that has an engine, and returns its exit status.
///
/// # Errors
/// The program is not there.
pub(crate) fn run_elsewhere(args: &[OsString]) -> Result<u8> {
    let mut command = process::Command::new(program());
    command.args(args.get(1..).unwrap_or_default());
    #[cfg(unix)]
    {
        Err(missing(std::os::unix::process::CommandExt::exec(&mut command)).into())
    }
    #[cfg(not(unix))]
    {
        let status = command.status().map_err(missing)?;
        Ok(status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(crate::error::FAILURE))
    }
}

/// The error where the program cannot be started.
fn missing(error: io::Error) -> Usage {
    let build = "cargo build --release --workspace --features tfarrow-cluster/ballista builds it";
    Usage(format!(
        "--cluster needs the program {PROGRAM} ({error}), beside tfarrow or on the PATH; {build}"
    ))
}

/// The program beside this one, or else its name, which is looked up on the PATH.
fn program() -> PathBuf {
    let name = format!("{PROGRAM}{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe()
        .ok()
        .and_then(|path| path.canonicalize().ok())
        .map(|path| path.with_file_name(&name));
    beside
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from(name))
}
