//! Reading of statements and commands from a terminal, with a history.

use std::{io, mem, path::PathBuf};

use anstream::ColorChoice;
use anyhow::Result;
use datafusion::prelude::SessionContext;
use rustyline::{
    ColorMode, CompletionType, Config, Editor, config::Configurer, error::ReadlineError,
    history::FileHistory,
};
use tokio::runtime::Handle;

use super::{
    complete::{SqlHelper, is_complete},
    external_editor::edit,
    prompt_command::PromptCommand,
};
use crate::stderr;

const PROMPT: &str = "tfarrow> ";
/// The prompt of the further lines of a statement.
const CONTINUATION: &str = "      -> ";
/// Number of statements in the history.
const HISTORY_SIZE: usize = 10_000;

/// A line editor. A statement ends with a semicolon, and may take several lines.
pub(super) struct LineEditor {
    editor: Editor<SqlHelper, FileHistory>,
    history: Option<PathBuf>,
    /// The lines of a statement that is not complete.
    begun: String,
    /// The last input.
    last: String,
    /// A text that the next line begins with.
    initial: String,
}

impl LineEditor {
    /// An editor that completes the names of a session.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub(super) fn new(context: &SessionContext, runtime: &Handle) -> Result<Self> {
        let config = Config::builder()
            .max_history_size(HISTORY_SIZE)?
            .completion_type(CompletionType::List)
            .build();
        let mut editor: Editor<SqlHelper, FileHistory> = Editor::with_config(config)?;
        if anstream::AutoStream::choice(&std::io::stdout()) == ColorChoice::Never {
            editor.set_color_mode(ColorMode::Disabled);
        }
        editor.set_helper(Some(SqlHelper::new(context, runtime)));
        let history = history();
        if let Some(path) = &history {
            // There is no file before the first use.
            let _ = editor.load_history(path);
        }
        let (begun, last, initial) = Default::default();
        Ok(Self {
            editor,
            history,
            begun,
            last,
            initial,
        })
    }

    /// Reads the next input: statements, the last one with its semicolon, or a command of the
    /// prompt. `None` at the end of the input.
    ///
    /// # Errors
    /// The terminal cannot be read.
    pub(super) fn read(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(helper) = self.editor.helper_mut() {
                helper.begun.clone_from(&self.begun);
            }
            let prompt = if self.begun.is_empty() {
                PROMPT
            } else {
                CONTINUATION
            };
            let initial = mem::take(&mut self.initial);
            let line = match self.editor.readline_with_initial(prompt, (&initial, "")) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => {
                    self.begun.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => return Ok(None),
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    stderr::note("the line is dropped, because it has a byte that is not UTF-8");
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if PromptCommand::of(line.trim()) == PromptCommand::Edit {
                self.edit();
            } else if line.trim_start().starts_with('\\') {
                // A command does not end a statement that has begun.
                self.remember(&line);
                return Ok(Some(line));
            } else if let Some(input) = self.with_line(&line) {
                self.remember(&input);
                return Ok(Some(input));
            }
        }
    }

    /// Adds the tables that the session has now to the names for completion.
    pub(super) fn learn(&mut self, context: &SessionContext) {
        if let Some(helper) = self.editor.helper_mut() {
            helper.learn(context);
        }
    }

    /// Adds a line to the statement. Returns the statement if it is complete.
    fn with_line(&mut self, line: &str) -> Option<String> {
        if self.begun.is_empty() && line.trim().is_empty() {
            return None;
        }
        self.begun.push_str(line);
        if is_complete(&self.begun) {
            return Some(mem::take(&mut self.begun));
        }
        self.begun.push('\n');
        None
    }

    /// Opens the editor of the user with the statement that has begun, or else with the last one.
    /// The next line begins with the changed text.
    fn edit(&mut self) {
        let text = if self.begun.is_empty() {
            &self.last
        } else {
            &self.begun
        };
        match edit(text) {
            Ok(text) => {
                self.initial = text;
                self.begun.clear();
            }
            Err(error) => stderr::error(&error),
        }
    }

    /// Adds an input to the history.
    fn remember(&mut self, input: &str) {
        let _ = self.editor.add_history_entry(input);
        if matches!(
            PromptCommand::of(input.trim()),
            PromptCommand::Statements(_)
        ) {
            input.clone_into(&mut self.last);
        }
        if let Some(path) = &self.history {
            // The prompt works without a history.
            let _ = self.editor.append_history(path);
        }
    }
}

/// The file of the history, in the state folder of the user.
fn history() -> Option<PathBuf> {
    let folder = dirs::state_dir()
        .or_else(dirs::data_local_dir)?
        .join("tfarrow");
    std::fs::create_dir_all(&folder).ok()?;
    let path = folder.join("history");
    // Opening a pipe of this name would block.
    std::fs::metadata(&path)
        .map_or(true, |metadata| metadata.is_file())
        .then_some(path)
}
