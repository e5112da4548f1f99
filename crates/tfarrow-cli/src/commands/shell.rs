//! Commands for the shell: `tfarrow completions` and `tfarrow man`.

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::{
    args::{Cli, Completions, Man, with_destinations},
    error::SUCCESS,
    output,
};

/// Prints a script that completes command lines.
pub(crate) fn completions(args: &Completions) -> Result<u8> {
    let mut command = with_destinations(Cli::command());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tfarrow", &mut script);
    output::bytes(&script)?;
    Ok(SUCCESS)
}

/// Prints the manual page of the program, or writes the pages of all commands.
pub(crate) fn man(args: &Man) -> Result<u8> {
    let command = with_destinations(Cli::command());
    match &args.output {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            output::bytes(&page)?;
        }
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(command, folder))
                .with_context(|| folder.display().to_string())?;
        }
    }
    Ok(SUCCESS)
}
