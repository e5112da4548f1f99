//! The prompt: statements are typed, answered, and remembered.

use std::{
    path::PathBuf,
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::Result;
use rustyline::{CompletionType, Config, Editor, error::ReadlineError, history::FileHistory};
use tfarrow_datafusion::Cancellation;
use tokio::{
    runtime::Runtime,
    sync::watch::{self, Receiver},
};

use super::{answer::Answers, checked, complete::Typist};
use crate::{failure, interrupt, output};

const PROMPT: &str = "tfarrow> ";
/// Statements that are remembered.
const REMEMBERED: usize = 10_000;

/// How long a query that is stopped has to end.
const PATIENCE: Duration = Duration::from_secs(1);

const HELP: &str = "\
A statement ends in ; and may have several lines. Files are tables: SELECT * FROM 'shards/*.tfrecord' LIMIT 3;
  \\d          the tables that were made with CREATE
  \\d NAME     the columns of a table, or of files: \\d 'shards/'
  \\timing     whether it is said how long an answer took
  \\?          this help
  \\q          the end; Ctrl-D is, too
Ctrl-C stops a query. Tab completes words, and paths in quotes.";

/// Asks for statements until there are no more.
///
/// # Errors
/// Where the terminal fails. What is wrong with a statement is said, and the next asked for.
pub(super) fn run(runtime: &Runtime, answers: Answers, cancellation: Cancellation) -> Result<()> {
    let context = answers.context().clone();
    let interrupts = watch_interrupts(cancellation)?;
    let config = Config::builder().max_history_size(REMEMBERED)?.completion_type(CompletionType::List).build();
    let mut editor: Editor<Typist, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Typist::new(&context)));
    let history = history();
    if let Some(path) = &history {
        // The first time there is none.
        let _ = editor.load_history(path);
    }
    failure::note(&format!(
        "tfarrow {}: SQL over TFRecord, Parquet and Arrow files. \\? for help.",
        env!("CARGO_PKG_VERSION")
    ));
    let mut session = Session { runtime, answers, interrupts, timing: true };
    loop {
        match editor.readline(PROMPT) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                if let Some(path) = &history {
                    // A prompt is of use without a memory.
                    let _ = editor.append_history(path);
                }
                if session.takes(line.trim()) == Next::End {
                    return Ok(());
                }
                if let Some(typist) = editor.helper_mut() {
                    typist.learn(&context);
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The file of what was typed before, in the folder where programs of this user keep such.
fn history() -> Option<PathBuf> {
    let folder = dirs::state_dir().or_else(dirs::data_local_dir)?.join("tfarrow");
    std::fs::create_dir_all(&folder).ok()?;
    let path = folder.join("history");
    // A pipe of this name would keep the prompt waiting for its other end.
    std::fs::metadata(&path).map_or(true, |metadata| metadata.is_file()).then_some(path)
}

/// Cancels the running queries at each Ctrl-C, and then notifies the receiver.
///
/// Ctrl-C is caught before this returns: the line editor restores, after each line, the signal handlers that it found. The
/// thread is not one of the runtime's, all of which may be busy with queries.
fn watch_interrupts(cancellation: Cancellation) -> Result<Receiver<()>> {
    let (notify, interrupts) = watch::channel(());
    let pressed = interrupt::ctrl_c()?;
    std::thread::spawn(move || {
        for () in pressed {
            cancellation.cancel();
            if notify.send(()).is_err() {
                break;
            }
        }
    });
    Ok(interrupts)
}

/// Whether to ask on.
#[derive(PartialEq)]
enum Next {
    Ask,
    End,
}

struct Session<'a> {
    runtime: &'a Runtime,
    answers: Answers,
    interrupts: Receiver<()>,
    timing: bool,
}

impl Session<'_> {
    /// Does what a line says.
    fn takes(&mut self, line: &str) -> Next {
        let word = line.trim_end_matches(';').trim();
        match word {
            "\\q" | "quit" | "exit" => return Next::End,
            "\\?" | "\\h" | "help" => failure::note(HELP),
            "\\timing" => {
                self.timing = !self.timing;
                failure::note(if self.timing { "timing is on" } else { "timing is off" });
            }
            "\\d" => self.answer("SELECT table_name, table_type FROM information_schema.tables WHERE table_schema <> 'information_schema' ORDER BY 1"),
            _ => match word.strip_prefix("\\d ") {
                Some(name) => self.answer(&format!("DESCRIBE SELECT * FROM {}", name.trim())),
                None if word.starts_with('\\') => failure::note(&format!("{word} is not known here; \\? for help")),
                None => self.answer(line),
            },
        }
        Next::Ask
    }

    /// Answers all statements of a text; the first that fails, or is stopped, is the last.
    fn answer(&mut self, text: &str) {
        self.interrupts.mark_unchanged();
        let statements = match checked(text, self.answers.context()) {
            Ok(statements) => statements,
            Err(error) => return failure::tell(&error),
        };
        for statement in statements {
            let statement = match statement {
                Ok(statement) => statement,
                Err(error) => return failure::tell(&error.into()),
            };
            let begun = Instant::now();
            // The query runs apart, so that Ctrl-C is heard whatever it is at.
            let mut answers = self.answers.clone();
            let (running, ended) = mpsc::channel::<()>();
            let query = self.runtime.spawn(async move {
                let _running = running;
                answers.answer(statement).await
            });
            let stop = query.abort_handle();
            let outcome = self.runtime.block_on(async {
                tokio::select! {
                    outcome = query => Some(outcome),
                    Ok(()) = self.interrupts.changed() => None,
                }
            });
            match outcome {
                None => {
                    stop.abort();
                    // Its output ends before the next prompt begins. No timer of the runtime is asked: its threads may
                    // all be busy.
                    let _ = ended.recv_timeout(PATIENCE);
                    return failure::note("stopped");
                }
                Some(Ok(Ok(rows))) if self.timing => failure::note(&taken(rows, begun)),
                Some(Ok(Ok(_))) => {}
                Some(Ok(Err(error))) => return failure::tell(&error),
                Some(Err(panic)) => return failure::say(&panic.to_string()),
            }
        }
    }
}

fn taken(rows: Option<u64>, begun: Instant) -> String {
    let seconds = begun.elapsed().as_secs_f64();
    match rows {
        Some(rows) => {
            let s = if rows == 1 { "" } else { "s" };
            format!("{} row{s}, {seconds:.3} s", output::count(rows))
        }
        None => format!("done, {seconds:.3} s"),
    }
}
