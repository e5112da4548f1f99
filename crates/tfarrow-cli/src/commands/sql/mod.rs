//! `tfarrow sql`: SQL over files in place, from the command line, from files, from a pipe, or from
//! a prompt.

mod answer;
mod complete;
mod external_editor;
mod file_columns;
mod highlight;
mod line_editor;
mod missing_function;
mod prompt;
mod prompt_command;
mod query_progress;
mod skip_report;
mod statements;

use std::{
    io::{IsTerminal, stdin, stdout},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use datafusion::prelude::SessionContext;
use tfarrow_datafusion::{Notice, TfRecordOptions};
use tfarrow_dataset::ReadOptions;
use tfarrow_sql::{Cancellation, Engine, SessionOptions, Statements, session_context};
use tokio::{runtime::Runtime, sync::Notify};

use self::{answer::Answers, skip_report::SkipReport};
use tfarrow_report::text::escape;

use crate::{
    args::{Format, Sql},
    cluster::{Cluster, ClusterAddress, run_elsewhere},
    error::{self, FOUND, InvalidOption, SUCCESS, Usage},
    interrupt::{self, end, on_interrupt},
    output::{self, Sink, View},
    stderr,
};

/// Time that a query has to clean up after Ctrl-C or an error.
const PATIENCE: Duration = Duration::from_millis(500);

/// Stack size of each thread that plans and runs queries, in bytes. Queries of the nesting depth
/// that `query_depth` allows need less.
const STACK: usize = 16 << 20;

/// The format of a file of results, by its extension: a table for a file without one.
///
/// # Errors
/// No format has the extension.
fn format_of(path: &Path) -> Result<Format, Usage> {
    match (Format::of_extension(path), path.extension()) {
        (Some(format), _) => Ok(format),
        (None, None) => Ok(Format::Table),
        (None, Some(extension)) => {
            let name = escape(&path.to_string_lossy());
            let extension = escape(&extension.to_string_lossy());
            Err(Usage(format!(
                "{name}: no format has the extension .{extension}; give one with --format"
            )))
        }
    }
}

/// Executes all statements in order; without any, starts the prompt.
pub(crate) fn run(args: &Sql, cluster: &Cluster) -> Result<u8> {
    if let (Some(_), Cluster::Program(args)) = (&args.cluster, cluster) {
        return run_elsewhere(args);
    }
    let format = match (
        args.format.or(args.json.then_some(Format::Json)),
        &args.output,
    ) {
        (Some(format), _) => format,
        (None, Some(path)) => format_of(path)?,
        (None, None) => Format::Table,
    };
    let file = args
        .output
        .as_deref()
        .map(|path| Sink::of(path, args.overwrite));
    let sink = file.transpose()?.unwrap_or_default();
    if format.is_binary() && matches!(sink, Sink::Stdout) {
        output::refuse_terminal()?;
    }
    let skip_report = Arc::new(SkipReport::default());
    let cancellation = Cancellation::default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()?;
    let engine = match (&args.cluster, cluster) {
        (Some(scheduler), Cluster::Engine(connect)) => {
            let address = ClusterAddress {
                scheduler: scheduler.clone(),
                tls: args.cluster_tls.clone(),
            };
            Some(runtime.block_on(connect(address))?)
        }
        _ => None,
    };
    let context = session(args, engine, Arc::clone(&skip_report), cancellation.clone())?;
    let view = View {
        full: false,
        max_rows: args.max_rows,
        width: None,
    };
    let answers = Answers::new(context, format, sink, view, Arc::clone(&skip_report));
    if args.queries.is_empty()
        && args.command.is_empty()
        && args.file.is_empty()
        && stdin().is_terminal()
    {
        if !stdout().is_terminal() {
            return Err(Usage(
                "no query: give one as an argument, with -f FILE, or on standard input".to_owned(),
            )
            .into());
        }
        let done = prompt::run(&runtime, answers, cancellation);
        end_with_program(runtime);
        return done.map(|()| SUCCESS);
    }
    let texts = statements::texts(args, answers.context())?;
    let outcome = interruptible(&runtime, answers, texts, args.keep_going);
    match outcome {
        Ok(SUCCESS) => {
            // Tasks that still read in the background have no result to add.
            end_with_program(runtime);
            Ok(if skip_report.any() { FOUND } else { SUCCESS })
        }
        outcome => {
            // Tasks that write remove their incomplete files.
            runtime.shutdown_timeout(PATIENCE);
            outcome
        }
    }
}

/// Ends the tasks of a runtime without waiting for them. The program ends soon.
///
/// `Runtime::shutdown_background` detaches threads, and `pthread_detach` of glibc 2.36 reads the
/// memory of a thread that ends at the same time, which may be unmapped: the program then ended by
/// a segmentation fault after it had printed its results. A thread of its own joins them instead.
fn end_with_program(runtime: Runtime) {
    std::mem::forget(std::thread::Builder::new().spawn(move || drop(runtime)));
}

/// Executes the statements until all are done or a signal arrives.
fn interruptible(
    runtime: &Runtime,
    answers: Answers,
    texts: Vec<Result<Statements>>,
    keep_going: bool,
) -> Result<u8> {
    let interrupted = Arc::new(Notify::new());
    let interrupt = Arc::clone(&interrupted);
    on_interrupt(move || {
        interrupt.notify_one();
        // A busy query does not yield to the runtime. Otherwise the program has ended before this.
        std::thread::sleep(PATIENCE);
        end();
    });
    runtime.block_on(async {
        tokio::select! {
            outcome = answer_all(answers, texts, keep_going) => outcome,
            () = interrupted.notified() => Ok(interrupt::status()),
        }
    })
}

async fn answer_all(
    mut answers: Answers,
    texts: Vec<Result<Statements>>,
    keep_going: bool,
) -> Result<u8> {
    let mut status = SUCCESS;
    for text in texts {
        let statements = match text {
            Ok(statements) => statements,
            Err(error) => {
                status = report(error, keep_going)?;
                continue;
            }
        };
        for statement in statements {
            let answered = match statement {
                Ok(statement) => answers.answer(statement).await.map(drop),
                Err(error) => Err(error.into()),
            };
            if let Err(error) = answered {
                status = report(error, keep_going)?;
            }
        }
    }
    answers.sink.persist()?;
    Ok(status)
}

/// Reports the error of a statement after which others are executed, and returns its exit status.
///
/// # Errors
/// The error itself, where no other statement is executed.
fn report(error: anyhow::Error, keep_going: bool) -> Result<u8> {
    // Without a reader of the output there is no reason to continue.
    if !keep_going || error::is_closed_pipe(&error) {
        return Err(error);
    }
    Ok(stderr::report(&error))
}

fn session(
    args: &Sql,
    engine: Option<Arc<dyn Engine>>,
    skip_report: Arc<SkipReport>,
    cancellation: Cancellation,
) -> Result<SessionContext> {
    let ReadOptions {
        on_error,
        partial_tail,
        limits,
        ..
    } = args.damage.read();
    let mut tables = TfRecordOptions {
        layout: args.reading.layout,
        record_type: args.reading.record_type,
        proto: args.reading.message.proto.clone(),
        message: args.reading.message.message.clone(),
        verify_crc: args.verify_crc,
        on_error,
        partial_tail,
        limits,
        ..TfRecordOptions::default()
    };
    if let Some(sample) = args.sample {
        tables.sample = sample;
    }
    let given = args
        .option
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let tables = tables.with(given).map_err(InvalidOption)?;
    Ok(session_context(SessionOptions {
        tables,
        memory_limit: args
            .memory_limit
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        on_notice: Some(Arc::new(move |notice: &Notice| {
            print_notice(notice, &skip_report)
        })),
        cancellation,
        engine,
        ..SessionOptions::default()
    })?)
}

/// Prints a notice, or adds it to the report of skipped records.
fn print_notice(notice: &Notice, skip_report: &SkipReport) {
    match notice {
        Notice::Skipped(skipped) => skip_report.add(skipped.clone()),
        Notice::UnknownFeatures(_) | Notice::UnknownField(_) => {
            skip_report.leave_out();
            stderr::print(&notice.to_string());
        }
        Notice::UnusableIndex(index) => stderr::unusable_indexes(std::slice::from_ref(index)),
        Notice::Losses(_) | Notice::NoFeatures(_) | Notice::Splits(_) => {
            stderr::print(&notice.to_string())
        }
    }
}
