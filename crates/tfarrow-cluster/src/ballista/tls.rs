//! TLS between the processes of a cluster.

use std::{error::Error, fmt, fs, path::Path, sync::Arc, time::Duration};

use ballista_core::{
    extension::{BallistaConfigGrpcEndpoint, EndpointOverrideFn},
    utils::{GrpcClientConfig, create_grpc_client_endpoint},
};
use datafusion::{common::exec_datafusion_err, error::Result};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig};

/// Time after which a process from which rows are fetched is lost: for a connection, between two
/// pings, and for their answers.
const FETCH_WAIT: Duration = Duration::from_secs(10);

/// The certificate and the key of a process, and the certificate of the authority of its cluster.
/// Both sides of a connection have a certificate that the authority has signed.
#[derive(Clone)]
pub struct Tls {
    identity: Identity,
    authority: Certificate,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads `tls.crt`, `tls.key` and `ca.crt` of a folder, in PEM. These are the names of a TLS
    /// secret of Kubernetes.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let identity = Identity::from_pem(pem(folder, "tls.crt")?, pem(folder, "tls.key")?);
        Ok(Self {
            identity,
            authority: Certificate::from_pem(pem(folder, "ca.crt")?),
        })
    }

    /// The settings of a server, which refuses clients without a certificate.
    pub(crate) fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new()
            .identity(self.identity.clone())
            .client_ca_root(self.authority.clone())
    }

    /// The endpoint at the same address with TLS and the settings of `config`. Ballista makes
    /// endpoints without TLS.
    pub(crate) fn secured(
        &self,
        endpoint: &Endpoint,
        config: Option<&GrpcClientConfig>,
    ) -> Result<Endpoint, Box<dyn Error + Send + Sync>> {
        let address = endpoint
            .uri()
            .authority()
            .map(ToString::to_string)
            .unwrap_or_default();
        let endpoint = create_grpc_client_endpoint(format!("https://{address}"), config)?;
        let tls = ClientTlsConfig::new()
            .identity(self.identity.clone())
            .ca_certificate(self.authority.clone());
        Ok(endpoint.tls_config(tls)?)
    }

    /// [`Self::secured`] for the connections of a Ballista executor.
    pub(crate) fn endpoint_override(self, config: Option<GrpcClientConfig>) -> EndpointOverrideFn {
        Arc::new(move |endpoint| self.secured(&endpoint, config.as_ref()))
    }
}

/// Reads a file of a folder, which is in PEM.
fn pem(folder: &Path, name: &str) -> Result<Vec<u8>> {
    let path = folder.join(name);
    fs::read(&path).map_err(|error| exec_datafusion_err!("{}: {error}", path.display()))
}

/// The settings of connections that fetch rows. Ballista has none: a process would wait without end
/// for one that is frozen, or whose machine has lost its power.
pub(crate) fn fetch_endpoint(tls: Option<Tls>) -> Arc<BallistaConfigGrpcEndpoint> {
    Arc::new(BallistaConfigGrpcEndpoint::new(Arc::new(move |endpoint| {
        let endpoint = match &tls {
            Some(tls) => tls.secured(&endpoint, None)?,
            None => endpoint,
        };
        let endpoint = endpoint
            .connect_timeout(FETCH_WAIT)
            .http2_keep_alive_interval(FETCH_WAIT);
        Ok(endpoint
            .keep_alive_timeout(FETCH_WAIT)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true))
    })))
}
