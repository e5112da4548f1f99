//! `tfarrow sql`: answers to queries over files where they lie: of the command line, of files, of a pipe, of a prompt.

mod answer;
mod complete;
mod losses;
mod prompt;

use std::{
    fs::File,
    io::{IsTerminal, Read, stdin, stdout},
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use datafusion::prelude::SessionContext;
use tfarrow_datafusion::{
    Cancellation, Notice, QueryLimits, SessionOptions, Statements, TfRecordOptions, session_context, statements,
};
use tfarrow_dataset::ReadOptions;
use tokio::{runtime::Runtime, sync::Notify};

use self::{answer::Answers, losses::Losses};
use crate::{
    args::Sql,
    failure::{self, FOUND, Usage},
    interrupt::{self, end, on_interrupt},
    output,
};

/// How long a query has to end in good order after Ctrl-C or an error.
const PATIENCE: Duration = Duration::from_millis(500);

/// Bytes of stack of each thread that plans and runs queries: those that nest as deep as `query_depth` allows need less.
const STACK: usize = 16 << 20;

/// Prints the answers to all statements, in order; with none, asks for them.
pub(crate) fn run(args: &Sql) -> Result<ExitCode> {
    if args.format.is_binary() {
        output::refuse_terminal()?;
    }
    let losses = Arc::new(Losses::default());
    let cancellation = Cancellation::default();
    let context = session(args, Arc::clone(&losses), cancellation.clone())?;
    let answers = Answers::new(context, args.format, Arc::clone(&losses));
    let runtime = tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build()?;
    if args.queries.is_empty() && args.command.is_empty() && args.file.is_empty() && stdin().is_terminal() {
        if !stdout().is_terminal() {
            return Err(Usage("no query: give one, or -f FILE, or standard input".to_owned()).into());
        }
        let done = prompt::run(&runtime, answers, cancellation);
        runtime.shutdown_background();
        return done.map(|()| ExitCode::SUCCESS);
    }
    let texts = texts(args, answers.context())?;
    let outcome = interruptible(&runtime, answers, texts, args.keep_going);
    match outcome {
        Ok(ExitCode::SUCCESS) => {
            // What still reads in the background is of no use to anyone.
            runtime.shutdown_background();
            Ok(if losses.are_told() { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
        }
        outcome => {
            // What was being written is removed by those who write it.
            runtime.shutdown_timeout(PATIENCE);
            outcome
        }
    }
}

/// Answers until it is done or the program is asked to end.
fn interruptible(
    runtime: &Runtime,
    answers: Answers,
    texts: Vec<Result<Statements>>,
    keep_going: bool,
) -> Result<ExitCode> {
    let interrupted = Arc::new(Notify::new());
    let interrupt = Arc::clone(&interrupted);
    on_interrupt(move || {
        interrupt.notify_one();
        // A query that is busy hears nothing. One that listens has ended the program before this is over.
        std::thread::sleep(PATIENCE);
        end();
    });
    runtime.block_on(async {
        tokio::select! {
            outcome = answer_all(answers, texts, keep_going) => outcome,
            () = interrupted.notified() => Ok(ExitCode::from(interrupt::status())),
        }
    })
}

async fn answer_all(mut answers: Answers, texts: Vec<Result<Statements>>, keep_going: bool) -> Result<ExitCode> {
    let mut status = ExitCode::SUCCESS;
    let mut failed = |error: anyhow::Error| {
        // Nobody reads on where the output is closed.
        if !keep_going || failure::is_closed_pipe(&error) {
            return Err(error);
        }
        status = failure::report(&error);
        Ok(())
    };
    for text in texts {
        let statements = match text {
            Ok(statements) => statements,
            Err(error) => {
                failed(error)?;
                continue;
            }
        };
        for statement in statements {
            let answered = match statement {
                Ok(statement) => answers.answer(statement).await.map(drop),
                Err(error) => Err(error.into()),
            };
            answered.or_else(&mut failed)?;
        }
    }
    Ok(status)
}

/// The statements of all texts, those of files first. A syntax error is found before the first is run, or, with
/// `--keep-going`, is reported in its turn.
fn texts(args: &Sql, context: &SessionContext) -> Result<Vec<Result<Statements>>> {
    let mut texts = args.file.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    texts.extend(args.command.iter().chain(&args.queries).cloned());
    if texts.is_empty() {
        texts.push(read(Path::new("-"))?);
    }
    if args.keep_going {
        return Ok(texts.iter().map(|text| parse(text, context)).collect());
    }
    texts.iter().map(|text| checked(text, context).map(Ok)).collect()
}

/// The statements of a text, which are parsed one by one.
fn parse(text: &str, context: &SessionContext) -> Result<Statements> {
    Ok(statements(text, context, QueryLimits::default())?)
}

/// The statements of a text in which no one has a syntax error.
fn checked(text: &str, context: &SessionContext) -> Result<Statements> {
    for statement in parse(text, context)? {
        statement?;
    }
    parse(text, context)
}

/// The text of a file, or as much of it as shows that it is too long.
fn read(path: &Path) -> Result<String> {
    let most = QueryLimits::default().bytes as u64 + 1;
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        stdin().take(most).read_to_end(&mut bytes).context("standard input")?;
    } else {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        file.take(most).read_to_end(&mut bytes).with_context(|| path.display().to_string())?;
    }
    if bytes.len() as u64 == most {
        // It may have been cut within a character.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).with_context(|| path.display().to_string())
}

fn session(args: &Sql, losses: Arc<Losses>, cancellation: Cancellation) -> Result<SessionContext> {
    let ReadOptions { on_error, partial_tail, limits, .. } = args.damage.read();
    let mut tables = TfRecordOptions {
        layout: args.reading.layout,
        record_type: args.reading.record_type,
        verify_crc: args.verify_crc,
        on_error,
        partial_tail,
        limits,
        ..TfRecordOptions::default()
    };
    if let Some(sample) = args.sample {
        tables.sample = sample;
    }
    let given = args.option.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let tables = tables.with(given).map_err(|error| Usage(failure::message(&error.into())))?;
    let on_notice = move |notice: &Notice| match notice {
        Notice::Skipped(skipped) => losses.add(skipped.clone()),
        Notice::UnknownFeatures(unknown) => failure::say(&unknown.to_string()),
    };
    Ok(session_context(SessionOptions {
        tables,
        memory_limit: args.memory_limit.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        on_notice: Some(Arc::new(on_notice)),
        cancellation,
        ..SessionOptions::default()
    })?)
}
