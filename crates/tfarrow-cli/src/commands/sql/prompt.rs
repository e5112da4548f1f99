//! The prompt: its commands, and the execution of its statements.

use std::{
    path::Path,
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::ValueEnum;
use tfarrow_dataset::ErrorKind;
use tfarrow_report::text::{count, escape, plural};
use tfarrow_sql::Cancellation;
use tokio::{
    runtime::Runtime,
    sync::watch::{self, Receiver},
};

use super::{
    answer::Answers,
    complete::table_names,
    line_editor::LineEditor,
    prompt_command::{HELP, PromptCommand, counterpart},
    statements::{checked, read},
};
use crate::{
    args::Format,
    error::{Usage, is_closed_pipe},
    interrupt,
    output::Sink,
    stderr,
};

/// The statement of `\d`.
const TABLES: &str = "SELECT table_name, table_type FROM information_schema.tables \
    WHERE table_schema <> 'information_schema' ORDER BY 1";

/// Time that a cancelled query has to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads and executes statements until the end of input. The error of a statement is printed, and
/// the next one read.
///
/// # Errors
/// The terminal cannot be read.
pub(super) fn run(runtime: &Runtime, answers: Answers, cancellation: Cancellation) -> Result<()> {
    let context = answers.context().clone();
    let interrupts = watch_interrupts(cancellation)?;
    let mut editor = LineEditor::new(&context, runtime.handle())?;
    stderr::note(&format!(
        "tfarrow {}: SQL over TFRecord, Parquet and Arrow files. \\? for help.",
        env!("CARGO_PKG_VERSION")
    ));
    let mut session = Session {
        runtime,
        answers,
        interrupts,
        timing: true,
    };
    while let Some(input) = editor.read()? {
        if session.execute(input.trim()) == Next::Quit {
            break;
        }
        editor.learn(&context);
    }
    session.finish()
}

/// Notifies the receiver of each Ctrl-C, and then cancels the running queries.
///
/// Ctrl-C is caught before this returns: the line editor restores, after each line, the signal
/// handlers that it found. The thread is not one of the runtime's, all of which may be busy with
/// queries.
fn watch_interrupts(cancellation: Cancellation) -> Result<Receiver<()>> {
    let (notify, interrupts) = watch::channel(());
    let pressed = interrupt::ctrl_c()?;
    std::thread::spawn(move || {
        for () in pressed {
            // The prompt learns of Ctrl-C before a query fails because of it.
            if notify.send(()).is_err() {
                break;
            }
            cancellation.cancel();
        }
    });
    Ok(interrupts)
}

/// The step after a line.
#[derive(PartialEq)]
enum Next {
    Prompt,
    Quit,
}

struct Session<'a> {
    runtime: &'a Runtime,
    answers: Answers,
    interrupts: Receiver<()>,
    timing: bool,
}

impl Session<'_> {
    /// Executes a command of the prompt, or statements.
    fn execute(&mut self, line: &str) -> Next {
        match PromptCommand::of(line) {
            PromptCommand::Quit => return Next::Quit,
            PromptCommand::Help => stderr::note(HELP),
            PromptCommand::Timing => {
                self.timing = !self.timing;
                stderr::note(if self.timing {
                    "timing is on"
                } else {
                    "timing is off"
                });
            }
            PromptCommand::Lines => {
                let is_line = self.answers.format == Format::Line;
                self.set_format(if is_line { Format::Table } else { Format::Line });
            }
            PromptCommand::Format(name) => match Format::from_str(name, true) {
                Ok(format) if !format.is_binary() => self.set_format(format),
                _ => stderr::note(&format!("\\format NAME: {}", text_formats().join(", "))),
            },
            PromptCommand::Rows(number) => match number.parse() {
                Ok(rows) => {
                    self.answers.view.max_rows = rows;
                    stderr::note(&self.shown_rows());
                }
                Err(_) => stderr::note(&format!("\\rows N: {}", self.shown_rows())),
            },
            PromptCommand::Width(number) => match number.parse() {
                Ok(width) => {
                    self.answers.view.width = Some(width).filter(|width| *width > 0);
                    stderr::note(&self.shown_width());
                }
                Err(_) => stderr::note(&format!("\\width N: {}", self.shown_width())),
            },
            PromptCommand::Pager => {
                self.answers.pages = !self.answers.pages;
                stderr::note(if self.answers.pages {
                    "the pager is on"
                } else {
                    "the pager is off"
                });
            }
            PromptCommand::Output(path) => {
                // The results so far are complete.
                if let Err(error) = self.finish().and_then(|()| self.set_output(path)) {
                    stderr::error(&error);
                }
            }
            PromptCommand::Tables if self.has_no_tables() => {
                stderr::note(
                    "there are no tables: CREATE makes them, and files need none: SELECT * FROM 'shards/';",
                );
            }
            PromptCommand::Tables => self.answer(TABLES),
            PromptCommand::Columns(name) => self.answer(&format!("DESCRIBE SELECT * FROM {name}")),
            PromptCommand::File(path) => match read(Path::new(path)) {
                Ok(text) => self.answer(&text),
                Err(error) => stderr::error(&error),
            },
            // The line editor opens the editor of the user.
            PromptCommand::Edit => {}
            PromptCommand::Dotted(word) => stderr::note(&escape(&counterpart(word))),
            PromptCommand::Unknown(word) => {
                stderr::note(&format!("{word} is not a known command; \\? for help"))
            }
            PromptCommand::Statements(text) => self.answer(text),
        }
        Next::Prompt
    }

    fn set_format(&mut self, format: Format) {
        self.answers.format = format;
        stderr::note(&format!("the format is {}", name_of(format)));
    }

    /// Writes the next results to a file; to the terminal without a path.
    fn set_output(&mut self, path: &str) -> Result<()> {
        let path = Path::new(path);
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        let format = Format::of_extension(path);
        if let Some(format) = format.filter(|format| format.is_binary()) {
            let why = format!(
                "\\o writes text, and {} files hold one result: write COPY (..) TO '..'",
                name_of(format)
            );
            return Err(Usage(why).into());
        }
        self.answers.sink = Sink::of(path, false).map_err(of_output)?;
        if let Some(format) = format {
            self.set_format(format);
        }
        Ok(())
    }

    /// Gives the file of `\o` its name, if there is one. The next results are shown on the
    /// terminal.
    fn finish(&mut self) -> Result<()> {
        std::mem::take(&mut self.answers.sink)
            .persist()
            .map_err(of_output)
    }

    fn shown_rows(&self) -> String {
        match self.answers.view.max_rows {
            0 => "tables show all rows".to_owned(),
            rows => format!("tables show up to {}", plural(rows as u64, "row")),
        }
    }

    fn shown_width(&self) -> String {
        match self.answers.view.width {
            None => "tables fit the terminal".to_owned(),
            Some(width) => format!("tables fit {width} characters"),
        }
    }

    fn has_no_tables(&self) -> bool {
        table_names(self.answers.context())
            .iter()
            .all(|(schema, _)| schema == "information_schema")
    }

    /// Executes the statements of a text, up to the first that fails or is cancelled.
    fn answer(&mut self, text: &str) {
        self.interrupts.mark_unchanged();
        let statements = match checked(text, self.answers.context()) {
            Ok(statements) => statements,
            Err(error) => return stderr::error(&error),
        };
        for statement in statements {
            let statement = match statement {
                Ok(statement) => statement,
                Err(error) => return stderr::error(&error.into()),
            };
            let start = Instant::now();
            // The query runs in a task of its own, so that Ctrl-C is handled even while it does not
            // yield.
            let mut answers = self.answers.clone();
            let (running, ended) = mpsc::channel::<()>();
            let query = self.runtime.spawn(async move {
                let _running = running;
                answers.answer(statement).await
            });
            let stop = query.abort_handle();
            let outcome = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    Ok(()) = self.interrupts.changed() => None,
                    outcome = query => Some(outcome),
                }
            });
            match outcome {
                None => {
                    stop.abort();
                    // Its output ends before the next prompt. A timer of the runtime would not fire
                    // while all its threads are busy.
                    let _ = ended.recv_timeout(PATIENCE);
                    return stderr::note("stopped");
                }
                Some(Ok(Ok(rows))) if self.timing => stderr::note(&timing(rows, start)),
                Some(Ok(Ok(_))) => {}
                // The user has closed the pager.
                Some(Ok(Err(error))) if is_closed_pipe(&error) => return,
                Some(Ok(Err(error))) => return stderr::error(&error),
                Some(Err(panic)) => return stderr::print(&panic.to_string()),
            }
        }
    }
}

/// Returns an error of the file of `\o`. The prompt replaces no file, and has no option that does.
fn of_output(error: tfarrow_dataset::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Exists => {
            anyhow::Error::msg(format!("{error}; \\o with another name writes a new file"))
        }
        _ => error.into(),
    }
}

/// The names of the formats that a terminal can show.
fn text_formats() -> Vec<String> {
    Format::value_variants()
        .iter()
        .filter(|format| !format.is_binary())
        .map(|format| name_of(*format))
        .collect()
}

fn name_of(format: Format) -> String {
    format
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The number of rows and the time of a statement.
fn timing(rows: Option<u64>, start: Instant) -> String {
    let seconds = start.elapsed().as_secs_f64();
    match rows {
        Some(rows) => {
            let s = if rows == 1 { "" } else { "s" };
            format!("{} row{s}, {seconds:.3} s", count(rows))
        }
        None => format!("done, {seconds:.3} s"),
    }
}
