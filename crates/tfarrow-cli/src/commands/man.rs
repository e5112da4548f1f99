//! `tfarrow man`: manual pages.

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::{
    args::{Cli, Man, with_destinations},
    error::SUCCESS,
    output,
};

/// Prints the page of the program, or writes the pages of all commands.
pub(crate) fn run(args: &Man) -> Result<u8> {
    match &args.output {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(with_destinations(Cli::command())).render(&mut page)?;
            output::bytes(&page)?;
        }
        Some(folder) => {
            let written = std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(with_destinations(Cli::command()), folder));
            written.with_context(|| folder.display().to_string())?;
        }
    }
    Ok(SUCCESS)
}
