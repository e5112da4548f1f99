//! The rows of a query, computed by threads of its own and taken batch by batch.
//!
//! ```text
//! plan ─▶ schema ─▶ DataFusion's tasks ─▶ channel ─▶ QueryRows ─┬▶ a call of the package
//!                                                               └▶ ForeignRows: pyarrow, Polars, DuckDB ..
//! ```
//!
//! Each query has its own runtime, which ends with it: threads do not survive a fork, so that a
//! runtime of the process would leave a forked worker without threads. Batches pass a channel of
//! the standard library, because the consumer may be a task of another runtime, as in
//! datafusion-python.

use std::{
    future::Future,
    mem, process,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    time::{Duration, Instant},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{
    error::{DataFusionError, Result},
    execution::SendableRecordBatchStream,
    prelude::{SessionConfig, SessionContext},
};
use pyo3::prelude::*;
use tfarrow_datafusion::{OnNotice, RowMessage, TfRecordOptions, send_rows};
use tfarrow_sql::{Cancellation, SessionOptions, session_context};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{
    errors,
    interrupt::{TICK, bug, check_signals},
    notices::Notices,
    options::ReadingOptions,
    remedy::Wording,
};

/// Time that threads which run Python code have to end.
const PATIENCE: Duration = Duration::from_millis(400);

/// Stack size of each thread that plans and runs queries, in bytes, as in the program.
const STACK: usize = 16 << 20;

/// How a query runs.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    /// Options of TFRecord tables that the query names.
    pub(crate) tables: TfRecordOptions,
    pub(crate) threads: usize,
    /// Maximum number of rows of a batch; DataFusion's by default.
    pub(crate) batch_rows: Option<usize>,
    /// Maximum bytes of sorts, joins and groups.
    pub(crate) memory_limit: Option<usize>,
    /// Whether tables of the query are objects of Python.
    pub(crate) runs_python: bool,
}

impl Running {
    /// As these options say, in batches of DataFusion's size.
    pub(crate) fn of(options: &ReadingOptions) -> Self {
        let ReadingOptions {
            table,
            threads,
            memory_limit,
        } = options.clone();
        Self {
            tables: table,
            threads,
            batch_rows: None,
            memory_limit,
            runs_python: false,
        }
    }
}

/// An error of a query, with a hint of the session that it ran in.
#[derive(Debug)]
pub(crate) struct QueryError {
    pub(crate) error: DataFusionError,
    pub(crate) hint: Option<String>,
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        Self { error, hint: None }
    }
}

/// An error while rows are taken.
pub(crate) enum RowsError {
    /// The exception of a signal handler, such as KeyboardInterrupt.
    Interrupted(PyErr),
    /// An error of the query.
    Failed(QueryError),
    /// The process has forked since the query began, and has none of its threads.
    Forked,
    /// An error ended the rows before.
    Over,
    /// A panic.
    Bug,
}

impl<E: Into<QueryError>> From<E> for RowsError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl RowsError {
    /// The exception.
    pub(crate) fn raise(self, py: Python<'_>, wording: Wording) -> PyErr {
        match self {
            Self::Interrupted(error) => error,
            Self::Failed(QueryError { error, hint }) => match errors::raised_in(py, &error) {
                Some(exception) => exception,
                None if wording == Wording::Arguments => errors::failed_scan(py, error),
                None => errors::failed_sql(py, error, hint.as_deref()),
            },
            Self::Forked => errors::usage(
                py,
                "the rows were opened before the process forked: read the scan or the query anew",
            ),
            Self::Over => errors::usage(
                py,
                "an error ended the rows: read the scan or the query anew",
            ),
            Self::Bug => bug(),
        }
    }
}

/// What is left of the rows.
enum Rest {
    /// What the query sends.
    Running(Receiver<RowMessage<QueryError>>),
    /// Nothing: all rows were taken.
    Ended,
    /// Unknown: an error, an interrupt or a panic came first.
    Failed,
}

/// The running query.
pub(crate) struct QueryRows {
    schema: SchemaRef,
    rest: Rest,
    runtime: Option<Runtime>,
    cancellation: Cancellation,
    notices: Arc<Notices>,
    wording: Wording,
    /// Whether threads of the query may run Python code.
    runs_python: bool,
    /// The time of the last check for signals.
    checked: Instant,
    /// The id of the process that runs the query.
    process: u32,
}

impl QueryRows {
    /// Plans a query in a session of its own, and starts it. Blocks until it is planned.
    ///
    /// # Errors
    /// An invalid query, and an interrupt.
    pub(crate) fn start<F>(
        running: &Running,
        wording: Wording,
        plan: impl FnOnce(SessionContext, OnNotice) -> F + Send + 'static,
    ) -> Result<Self, RowsError>
    where
        F: Future<Output = Result<SendableRecordBatchStream, QueryError>> + Send,
    {
        let cancellation = Cancellation::default();
        let notices = Arc::new(Notices::default());
        let mut config = SessionConfig::new().with_target_partitions(running.threads);
        if let Some(rows) = running.batch_rows {
            config = config.with_batch_size(rows.max(1));
        }
        let gathered = Arc::clone(&notices);
        let on_notice: OnNotice = Arc::new(move |notice| gathered.add(notice, wording));
        let context = session_context(SessionOptions {
            config,
            tables: running.tables.clone(),
            memory_limit: running.memory_limit,
            on_notice: Some(Arc::clone(&on_notice)),
            cancellation: cancellation.clone(),
            ..SessionOptions::default()
        })?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(running.threads)
            .thread_stack_size(STACK)
            .enable_all()
            .build()
            .map_err(DataFusionError::from)?;
        // A batch waits in the channel while the consumer works on the one before.
        let (sender, messages) = sync_channel(1);
        let handle = runtime.handle().clone();
        runtime
            .spawn_blocking(move || handle.block_on(send_rows(plan(context, on_notice), sender)));
        let mut rows = Self {
            schema: SchemaRef::new(arrow_schema::Schema::empty()),
            rest: Rest::Failed,
            runtime: Some(runtime),
            cancellation,
            notices,
            wording,
            runs_python: running.runs_python,
            checked: Instant::now(),
            process: process::id(),
        };
        match rows.receive(&messages)? {
            RowMessage::Schema(schema) => rows.schema = schema,
            RowMessage::Failed(error) => return Err(error.into()),
            RowMessage::Batch(_) | RowMessage::End => return Err(RowsError::Bug),
        }
        rows.rest = Rest::Running(messages);
        Ok(rows)
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The syntax of the remedies in its errors.
    pub(crate) fn wording(&self) -> Wording {
        self.wording
    }

    /// The next batch; `None` at the end. May be called with or without the GIL, which it takes
    /// only to check for signals.
    ///
    /// # Errors
    /// An error of the query, an interrupt, a panic of the query; and each call after one of these.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, RowsError> {
        self.check_process()?;
        if self.checked.elapsed() > TICK {
            self.check()?;
        }
        let messages = match mem::replace(&mut self.rest, Rest::Failed) {
            Rest::Running(messages) => messages,
            Rest::Failed => return Err(RowsError::Over),
            Rest::Ended => {
                self.rest = Rest::Ended;
                return Ok(None);
            }
        };
        match self.receive(&messages)? {
            RowMessage::Batch(batch) => {
                self.rest = Rest::Running(messages);
                Ok(Some(batch))
            }
            RowMessage::End => {
                self.rest = Rest::Ended;
                Ok(None)
            }
            RowMessage::Failed(error) => Err(error.into()),
            RowMessage::Schema(_) => Err(RowsError::Bug),
        }
    }

    /// Receives the next message. A query that ends without a last message has panicked.
    fn receive(
        &mut self,
        messages: &Receiver<RowMessage<QueryError>>,
    ) -> Result<RowMessage<QueryError>, RowsError> {
        loop {
            match messages.recv_timeout(TICK) {
                Ok(message) => return Ok(message),
                Err(RecvTimeoutError::Disconnected) => return Err(RowsError::Bug),
                Err(RecvTimeoutError::Timeout) => self.check()?,
            }
        }
    }

    /// Checks that the query runs in this process.
    ///
    /// # Errors
    /// [`RowsError::Forked`].
    pub(crate) fn check_process(&self) -> Result<(), RowsError> {
        if process::id() == self.process {
            Ok(())
        } else {
            Err(RowsError::Forked)
        }
    }

    fn check(&mut self) -> Result<(), RowsError> {
        self.checked = Instant::now();
        // At the end of the interpreter there is nothing to attach to, and no signal to handle.
        Python::try_attach(check_signals)
            .unwrap_or(Ok(()))
            .map_err(RowsError::Interrupted)
    }

    /// The warnings of the query.
    pub(crate) fn notices(&self) -> &Arc<Notices> {
        &self.notices
    }
}

impl Drop for QueryRows {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            // Threads of the parent may have held locks of these when it forked.
            mem::forget((
                mem::replace(&mut self.rest, Rest::Failed),
                self.runtime.take(),
            ));
            return;
        }
        self.cancellation.cancel();
        // The query may wait until a message is taken.
        self.rest = Rest::Failed;
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        // A thread that runs Python code must end before the interpreter does. It may wait for the
        // GIL. In a task of another runtime nothing may wait.
        if self.runs_python && Handle::try_current().is_err() {
            Python::try_attach(|py| py.detach(|| runtime.shutdown_timeout(PATIENCE)));
        } else {
            // A thread of its own waits for the threads of the runtime. Tokio would detach them,
            // and `pthread_detach` of glibc 2.36 reads the memory of a thread that ends at the same
            // time, which may be unmapped.
            drop(std::thread::Builder::new().spawn(move || drop(runtime)));
        }
    }
}
