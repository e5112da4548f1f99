//! Work without the GIL that Ctrl-C stops.
//!
//! Python handles signals between its own instructions, and therefore not while Rust code works.
//! The work runs on a thread of its own; the calling thread waits for it, and lets Python handle
//! signals ten times a second.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

use pyo3::{exceptions::PyRuntimeError, prelude::*};

/// Interval between checks for signals.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The progress of an operation, and its cancellation.
pub(crate) trait Watched: Sync {
    /// Bytes done so far, and bytes in all; 0 if that is not known.
    fn bytes(&self) -> (u64, u64);

    /// Asks the operation to stop soon.
    fn stop(&self);
}

/// The progress of a pass over a data set, whose observer it is.
#[derive(Default)]
pub(crate) struct Pass {
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
}

impl Pass {
    /// Adds to the total.
    pub(crate) fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Relaxed);
    }

    /// Adds bytes that were read. Breaks where the pass is to stop.
    pub(crate) fn add(&self, bytes: u64) -> std::ops::ControlFlow<()> {
        self.done.fetch_add(bytes, Relaxed);
        if self.stopped.load(Relaxed) {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    }
}

impl Watched for Pass {
    fn bytes(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.total.load(Relaxed))
    }

    fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }
}

impl Watched for tfarrow_convert::Progress {
    fn bytes(&self) -> (u64, u64) {
        (tfarrow_convert::Progress::bytes(self), self.total())
    }

    fn stop(&self) {
        self.cancel();
    }
}

/// Runs `work` without the GIL, on a thread of its own that ends before this returns. `progress` is
/// called with the bytes done and the bytes in all, ten times a second and at the end.
///
/// # Errors
/// KeyboardInterrupt or what else a signal handler raises, an error of `progress`, and RuntimeError
/// after a panic.
pub(crate) fn watch<T: Send>(
    py: Python<'_>,
    watched: &impl Watched,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let mut interrupt = None;
    let done = thread::scope(|scope| {
        let (done, mut ended) = channel();
        scope.spawn(move || done.send(catch_unwind(AssertUnwindSafe(work))));
        loop {
            // A receiver can be lent to another thread, and not shared.
            let ended = &mut ended;
            match py.detach(move || ended.recv_timeout(TICK)) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if interrupt.is_none() => {
                    interrupt = check_signals(py)
                        .and_then(|()| report(watched, progress))
                        .err();
                    if interrupt.is_some() {
                        watched.stop();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    });
    if let Some(interrupt) = interrupt {
        return Err(interrupt);
    }
    report(watched, progress)?;
    match done {
        Some(Ok(value)) => Ok(value),
        Some(Err(_)) | None => Err(bug()),
    }
}

/// Calls `progress` with the bytes done and the bytes in all.
fn report(watched: &impl Watched, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match progress {
        Some(progress) => progress.call1(watched.bytes()).map(drop),
        None => Ok(()),
    }
}

/// The error after a panic.
pub(crate) fn bug() -> PyErr {
    PyRuntimeError::new_err(
        "a file that is read is corrupt, or tfarrow has a bug (please report it): the operation panicked",
    )
}

/// Lets Python handle signals.
///
/// # Errors
/// The exception of a signal handler, such as KeyboardInterrupt.
pub(crate) fn check_signals(py: Python<'_>) -> PyResult<()> {
    // Inside of a call from foreign code, `check_signals` alone does not see a signal: Python code
    // has to run.
    py.run(c"pass", None, None)?;
    py.check_signals()
}
