//! Arguments of the commands for the shell: `completions` and `man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfarrow completions bash > ~/.local/share/bash-completion/completions/tfarrow
  tfarrow completions zsh > \"${fpath[1]}/_tfarrow\"
  tfarrow completions fish > ~/.config/fish/completions/tfarrow.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfarrow man | man -l -
  tfarrow man -o ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write a page for each command to this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
}
