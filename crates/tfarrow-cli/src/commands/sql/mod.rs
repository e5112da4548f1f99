//! `tfarrow sql`: answers to queries over files where they lie: of the command line, of files, of a pipe, of a prompt.

mod answer;
mod complete;
mod losses;
mod prompt;

use std::{
    collections::VecDeque,
    io::{IsTerminal, Read, stdin, stdout},
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use datafusion::{
    prelude::SessionContext,
    sql::{
        parser::{DFParserBuilder, Statement},
        sqlparser::{
            dialect::GenericDialect,
            tokenizer::{Token, Tokenizer},
        },
    },
};
use tfarrow_datafusion::{Cancellation, Notice, SessionOptions, TfRecordOptions, session_context};
use tfarrow_dataset::ReadOptions;
use tokio::{runtime::Runtime, sync::Notify};

use self::{answer::Answers, losses::Losses};
use crate::{
    args::Sql,
    failure::{self, FOUND, Usage, from_datafusion},
    interrupt::{self, end, on_interrupt},
    output,
};

/// How long a query has to end in good order after Ctrl-C or an error.
const PATIENCE: Duration = Duration::from_millis(500);

/// Prints the answers to all statements, in order; with none, asks for them.
pub(crate) fn run(args: &Sql) -> Result<ExitCode> {
    if args.format.is_binary() {
        output::refuse_terminal()?;
    }
    let losses = Arc::new(Losses::default());
    let cancellation = Cancellation::default();
    let context = session(args, Arc::clone(&losses), cancellation.clone())?;
    let answers = Answers::new(context, args.format, Arc::clone(&losses));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if args.queries.is_empty() && args.command.is_empty() && args.file.is_empty() && stdin().is_terminal() {
        if !stdout().is_terminal() {
            return Err(Usage("no query: give one, or -f FILE, or standard input".to_owned()).into());
        }
        let done = prompt::run(&runtime, answers, cancellation);
        runtime.shutdown_background();
        return done.map(|()| ExitCode::SUCCESS);
    }
    let statements = statements(args)?;
    let outcome = interruptible(&runtime, answers, statements, args.keep_going);
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
    statements: VecDeque<Result<Statement>>,
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
            outcome = answer_all(answers, statements, keep_going) => outcome,
            () = interrupted.notified() => Ok(ExitCode::from(interrupt::status())),
        }
    })
}

async fn answer_all(
    mut answers: Answers,
    statements: VecDeque<Result<Statement>>,
    keep_going: bool,
) -> Result<ExitCode> {
    let mut status = ExitCode::SUCCESS;
    for statement in statements {
        let answered = match statement {
            Ok(statement) => answers.answer(statement).await.map(drop),
            Err(error) => Err(error),
        };
        match answered {
            Ok(()) => {}
            // Nobody reads on where the output is closed.
            Err(error) if keep_going && !failure::is_closed_pipe(&error) => status = failure::report(&error),
            Err(error) => return Err(error),
        }
    }
    Ok(status)
}

/// All statements, those of files first. A syntax error is found before the first is run, or, where what fails is to be
/// passed over, is told in its turn.
fn statements(args: &Sql) -> Result<VecDeque<Result<Statement>>> {
    let mut texts = args.file.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    texts.extend(args.command.iter().chain(&args.queries).cloned());
    if texts.is_empty() {
        texts.push(read(Path::new("-"))?);
    }
    let mut statements = VecDeque::new();
    for text in &texts {
        match parse(text) {
            Ok(parsed) => statements.extend(parsed.into_iter().map(Ok)),
            Err(error) if !args.keep_going => return Err(error),
            Err(_) => pieces(text).iter().for_each(|piece| match parse(piece) {
                Ok(parsed) => statements.extend(parsed.into_iter().map(Ok)),
                Err(error) => statements.push_back(Err(error)),
            }),
        }
    }
    Ok(statements)
}

/// What stands between the semicolons of a text; all of it, where it does not even consist of words.
fn pieces(text: &str) -> Vec<String> {
    match Tokenizer::new(&GenericDialect {}, text).with_unescape(false).tokenize() {
        Ok(tokens) => {
            let pieces = tokens.split(|token| *token == Token::SemiColon);
            pieces.map(|tokens| tokens.iter().map(Token::to_string).collect()).collect()
        }
        Err(_) => vec![text.to_owned()],
    }
}

fn parse(text: &str) -> Result<VecDeque<Statement>> {
    let parser = DFParserBuilder::new(text).build();
    parser.and_then(|mut parser| parser.parse_statements()).map_err(from_datafusion)
}

fn read(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        stdin().read_to_string(&mut text).context("standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn session(args: &Sql, losses: Arc<Losses>, cancellation: Cancellation) -> Result<SessionContext> {
    let ReadOptions { on_error, partial_tail, limits, .. } = args.damage.read();
    let mut tables = TfRecordOptions {
        layout: args.reading.layout(),
        record_type: args.reading.record_type(),
        verify_crc: args.verify_crc.into(),
        on_error,
        partial_tail,
        limits,
        ..TfRecordOptions::default()
    };
    if let Some(sample) = args.sample {
        tables.sample = sample;
    }
    let given = args.option.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let tables = tables.with(given).map_err(|error| Usage(failure::message(&from_datafusion(error))))?;
    let on_notice = move |notice: &Notice| match notice {
        Notice::Skipped(skipped) => losses.add(skipped.clone()),
        Notice::UnknownFeatures(unknown) => failure::say(&unknown.to_string()),
    };
    session_context(SessionOptions {
        tables,
        memory_limit: args.memory_limit.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        on_notice: Some(Arc::new(on_notice)),
        cancellation,
        ..SessionOptions::default()
    })
    .map_err(from_datafusion)
}
