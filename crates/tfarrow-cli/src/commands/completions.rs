//! `tfarrow completions`: a script that completes command lines in a shell.

use anyhow::Result;
use clap::CommandFactory;

use crate::{
    args::{Cli, Completions, with_destinations},
    error::SUCCESS,
    output,
};

/// Prints the script.
pub(crate) fn run(args: &Completions) -> Result<u8> {
    let mut command = with_destinations(Cli::command());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tfarrow", &mut script);
    output::bytes(&script)?;
    Ok(SUCCESS)
}
