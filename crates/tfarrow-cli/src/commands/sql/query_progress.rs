//! The progress of a long query on a terminal: bytes read, and the time left.

use std::{
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use datafusion::physical_plan::ExecutionPlan;
use tfarrow_sql::{ScanProgress, scan_progress};

use crate::progress::{Bar, is_shown};

/// Time after which a query is long.
const LONG: Duration = Duration::from_secs(1);
/// Interval between updates.
const TICK: Duration = Duration::from_millis(100);

/// A progress bar of a running plan, which is removed when this is dropped.
///
/// It has a thread of its own, because all threads of the runtime may be busy with the query.
pub(super) struct QueryProgress {
    /// Closed at the end.
    running: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl QueryProgress {
    /// Shows the progress of a plan, if standard error is a terminal, once the query is long.
    pub(super) fn of(plan: Arc<dyn ExecutionPlan>) -> Self {
        if !is_shown() {
            return Self {
                running: None,
                thread: None,
            };
        }
        let (running, ended) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            if !is_running(&ended, LONG) {
                return;
            }
            let bar = Bar::new(0);
            loop {
                let ScanProgress { read, total } = scan_progress(plan.as_ref());
                bar.set(read, total.unwrap_or(0), 0);
                if !is_running(&ended, TICK) {
                    return;
                }
            }
        });
        Self {
            running: Some(running),
            thread: Some(thread),
        }
    }
}

/// Waits for a time. Returns whether the query still runs then.
fn is_running(ended: &mpsc::Receiver<()>, time: Duration) -> bool {
    ended.recv_timeout(time) == Err(mpsc::RecvTimeoutError::Timeout)
}

impl Drop for QueryProgress {
    fn drop(&mut self) {
        drop(self.running.take());
        // The bar is gone before the result is printed.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
