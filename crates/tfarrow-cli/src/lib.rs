//! The `tfarrow` program as a library: arguments, commands, output, exit status.
//!
//! [`run_program`] runs a command line. `main.rs` calls it, and has the allocator of the program. [`render`] returns the
//! texts of the commands without printing them.
//!
//! `args` defines the command line, and `commands` has one file or folder for each subcommand. `output` is the only module
//! that writes to standard output, except that `convert` passes standard output to the library for the destination `-`.
//! `stderr` is the only module that writes messages to standard error. `error` makes texts and exit statuses
//! of errors, and `page` makes the page of `report`. The other crates do the work.

mod args;
mod commands;
mod error;
mod interrupt;
mod output;
mod page;
mod progress;
pub mod render;
mod stderr;
mod text;

use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;

use crate::{
    args::{Cli, Command},
    error::{SUCCESS, USAGE},
};

/// Runs a command line, and returns the exit status. The first of `args` is the name of the program, as of
/// [`args_os`](std::env::args_os).
///
/// The process should end with this status, because the handlers of signals and of panics that this installs stay
/// installed. A signal ends the process; a first signal only cancels `sql`, `convert` and `repair`.
pub fn run_program(args: impl IntoIterator<Item = OsString>) -> u8 {
    error::catch_panic(|| match Cli::try_parse_from(args) {
        Ok(cli) => run(cli),
        // Help and version are errors in clap, which would ignore a failed write.
        Err(error) if !error.use_stderr() => {
            output::styled(&error.render())?;
            Ok(SUCCESS)
        }
        Err(error) => {
            stderr::wrong_usage(&error);
            Ok(USAGE)
        }
    })
    .unwrap_or_else(|error| stderr::report(&error))
}

fn run(cli: Cli) -> Result<u8> {
    // The other commands clean up first.
    if !matches!(cli.command, Command::Sql(_) | Command::Convert(_) | Command::Repair(_)) {
        interrupt::on_interrupt(interrupt::end);
    }
    match cli.command {
        Command::Sql(args) => commands::sql::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Schema(args) => commands::schema::run(&args),
        Command::Stats(args) => commands::stats::run(&args),
        Command::Validate(args) => commands::validate::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Head(args) => commands::head::run(&args),
        Command::Count(args) => commands::count::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        Command::Repair(args) => commands::repair::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
    }
}
