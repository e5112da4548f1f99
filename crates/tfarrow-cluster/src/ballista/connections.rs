//! The connections of an executor to others, from which its tasks fetch rows. The pool of Ballista
//! is private to its own executor.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use ballista_core::{
    client::BallistaClient,
    client_pool::{BallistaClientPool, PooledClient},
    error::Result,
    extension::BallistaConfigGrpcEndpoint,
    utils::GrpcClientConfig,
};
use tfarrow_dataset::internals::Lock;

use crate::ballista::tls::{Tls, fetch_endpoint};

/// Time after which an unused connection is closed.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// The executor and the settings of a connection.
type Key = (String, u16, GrpcClientConfig);

/// Connections, and the times since which no task uses them.
type Idle = HashMap<Key, Vec<(BallistaClient, Instant)>>;

/// Connections that no task uses at the moment.
#[derive(Clone)]
pub(crate) struct Connections {
    tls: Option<Tls>,
    idle: Arc<Lock<Idle>>,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

impl Connections {
    pub(crate) fn new(tls: Option<Tls>) -> Self {
        Self {
            tls,
            idle: Arc::default(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Idle) -> T) -> T {
        let mut idle = self.idle.lock();
        idle.retain(|_, clients| {
            clients.retain(|(_, since)| since.elapsed() < IDLE_TIME);
            !clients.is_empty()
        });
        work(&mut idle)
    }
}

#[async_trait]
impl BallistaClientPool for Connections {
    async fn acquire(
        &self,
        host: &str,
        port: u16,
        config: &GrpcClientConfig,
        _: Option<Arc<BallistaConfigGrpcEndpoint>>,
    ) -> Result<PooledClient> {
        let key = (host.to_owned(), port, config.clone());
        let client = match self.with(|idle| idle.get_mut(&key).and_then(Vec::pop)) {
            Some((client, _)) => client,
            None => {
                BallistaClient::try_new(
                    host,
                    port,
                    config.max_message_size,
                    false,
                    Some(fetch_endpoint(self.tls.clone())),
                    config.io_retries_times,
                    config.io_retry_wait_time_ms,
                    config.initial_connection_window_size,
                    config.initial_stream_window_size,
                )
                .await?
            }
        };
        let pool = self.clone();
        Ok(PooledClient::new(
            client,
            Box::new(move |client| {
                pool.with(|idle| idle.entry(key).or_default().push((client, Instant::now())))
            }),
        ))
    }

    async fn evict_idle(&self) {
        self.with(|_| {});
    }
}
