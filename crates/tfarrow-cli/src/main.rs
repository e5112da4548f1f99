//! The `tfarrow` program: arguments, commands, output, exit status.
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
mod stderr;
mod text;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::args::{Cli, Command};

/// Batches are freed by other threads than those that allocate them, which slows the system's allocator down.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    error::catch_panic(|| match Cli::try_parse() {
        Ok(cli) => run(cli),
        // Help and version are errors in clap, which would ignore a failed write.
        Err(error) if !error.use_stderr() => {
            output::styled(&error.render())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => error.exit(),
    })
    .unwrap_or_else(|error| stderr::report(&error))
}

fn run(cli: Cli) -> Result<ExitCode> {
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
