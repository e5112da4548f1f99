//! The editor of the user, for `\e`.

use std::{
    env,
    io::Write,
    process::{Command, ExitStatus},
};

use anyhow::{Context, Result, bail};

/// The variables that name an editor, the first one first. An empty value is that of an unset
/// variable.
const VARIABLES: [&str; 2] = ["VISUAL", "EDITOR"];
/// The editor without a variable.
const DEFAULT: &str = "vi";

/// Lets the user edit a text, and returns the changed text without white space at its end.
///
/// # Errors
/// The editor cannot be started, or fails.
pub(super) fn edit(text: &str) -> Result<String> {
    let mut file = tempfile::Builder::new()
        .prefix("tfarrow-")
        .suffix(".sql")
        .tempfile()?;
    writeln!(file, "{}", text.trim_end())?;
    // Editors may replace the file, which a handle would not show.
    let path = file.into_temp_path();
    let editor = VARIABLES.iter().find_map(|name| {
        env::var(name)
            .ok()
            .filter(|editor| !editor.trim().is_empty())
    });
    let editor = editor.unwrap_or_else(|| DEFAULT.to_owned());
    let mut words = editor.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(DEFAULT));
    let ended = command.args(words).arg(&path).status();
    let ended: ExitStatus =
        ended.with_context(|| format!("{editor}; set EDITOR to the command of an editor"))?;
    if !ended.success() {
        bail!("{editor} failed: {ended}; the statement is unchanged");
    }
    Ok(std::fs::read_to_string(&path)?.trim_end().to_owned())
}
