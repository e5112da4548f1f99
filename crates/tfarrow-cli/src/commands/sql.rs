//! `tfarrow sql`: answers to queries over files where they lie. Results stream to standard output batch by batch.

use std::{
    collections::VecDeque,
    io::{IsTerminal, Read, stdin},
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use datafusion::{
    error::DataFusionError,
    logical_expr::LogicalPlan,
    prelude::SessionContext,
    sql::parser::{DFParserBuilder, Statement},
};
use futures::StreamExt;
use tfarrow_datafusion::{SessionOptions, TfRecordOptions, explain_missing_column, session_context};
use tokio::sync::Notify;

use crate::{
    args::{Format, Sql},
    failure::{self, Usage, from_datafusion},
    interrupt::{self, end, on_interrupt},
    output,
};

/// How long a query has to end in good order after Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(300);

/// Prints the answers to all statements, in order.
pub(crate) fn run(args: &Sql) -> Result<ExitCode> {
    let statements = statements(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let interrupted = Arc::new(Notify::new());
    let interrupt = Arc::clone(&interrupted);
    on_interrupt(move || {
        interrupt.notify_one();
        // A query that is busy hears nothing. One that listens has ended the program before this is over.
        std::thread::sleep(PATIENCE);
        end();
    });
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = answer_all(statements, args) => outcome.map(|()| ExitCode::SUCCESS),
            () = interrupted.notified() => Ok(ExitCode::from(interrupt::status())),
        }
    });
    // What still reads in the background is of no use to anyone.
    runtime.shutdown_background();
    outcome
}

/// All statements, those of files first. A syntax error is found before the first is run.
fn statements(args: &Sql) -> Result<VecDeque<Statement>> {
    let mut texts = args.file.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    texts.extend(args.queries.iter().cloned());
    if texts.is_empty() {
        if stdin().is_terminal() {
            return Err(Usage("no query: give one, or -f FILE, or standard input".to_owned()).into());
        }
        texts.push(read(Path::new("-"))?);
    }
    let mut statements = VecDeque::new();
    for text in &texts {
        let parser = DFParserBuilder::new(text.as_str()).build();
        let parsed = parser.and_then(|mut parser| parser.parse_statements());
        statements.extend(parsed.map_err(from_datafusion)?);
    }
    Ok(statements)
}

fn read(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        stdin().read_to_string(&mut text).context("standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

async fn answer_all(statements: VecDeque<Statement>, args: &Sql) -> Result<()> {
    let context = session(args).map_err(from_datafusion)?;
    for statement in statements {
        answer(&context, statement, args.format).await?;
    }
    Ok(())
}

fn session(args: &Sql) -> Result<SessionContext, DataFusionError> {
    let mut tables = TfRecordOptions {
        layout: args.reading.layout(),
        record_type: args.reading.record_type(),
        verify_crc: args.verify_crc.into(),
        ..TfRecordOptions::default()
    };
    if let Some(sample) = args.sample {
        tables.sample = sample;
    }
    let on_notice = Some(Arc::new(|notice: &_| failure::say(&format!("{notice}"))) as _);
    session_context(SessionOptions { tables, on_notice, ..SessionOptions::default() })
}

/// Prints the answer to one statement, if it has any.
async fn answer(context: &SessionContext, statement: Statement, format: Format) -> Result<()> {
    let explain = |error: DataFusionError| {
        let hint = explain_missing_column(&error, context);
        let error = from_datafusion(error);
        match hint {
            Some(hint) => anyhow::Error::msg(format!("{}; {hint}", failure::message(&error))),
            None => error,
        }
    };
    let plan = context.state().statement_to_plan(statement).await.map_err(explain)?;
    let is_plan = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
    let frame = context.execute_logical_plan(plan).await.map_err(explain)?;
    let mut batches = frame.execute_stream().await.map_err(explain)?;
    let schema = batches.schema();
    let mut rows = match schema.fields().is_empty() {
        // Statements such as SET have no answer.
        true => None,
        false => Some(output::rows(format, &schema, is_plan)?),
    };
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(explain)?;
        if let Some(rows) = &mut rows {
            rows.write(&batch)?;
        }
    }
    if let Some(rows) = &mut rows {
        rows.finish()?;
    }
    Ok(())
}
