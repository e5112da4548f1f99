//! The runtime of all requests to object stores.

use std::{future::Future, io};

use futures::executor::block_on;
use tokio::runtime::{Builder, Runtime};

use crate::process::PerProcess;

/// Returns the runtime of this process, which is created at the first request.
pub(super) fn runtime() -> &'static Runtime {
    static RUNTIME: PerProcess<Runtime> = PerProcess::new();
    RUNTIME.get(|| {
        let mut builder = Builder::new_multi_thread();
        #[expect(
            clippy::expect_used,
            reason = "without threads nothing else works either"
        )]
        builder
            .worker_threads(2)
            .thread_name("tfarrow-store")
            .enable_all()
            .build()
            .expect("threads for requests")
    })
}

/// Runs a request, and blocks the calling thread, which may be any, until it is complete.
///
/// # Errors
/// The request panicked.
pub(crate) fn wait<T: Send + 'static>(
    request: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    block_on(runtime().spawn(request)).map_err(io::Error::other)
}
