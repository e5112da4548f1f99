//! The `tfarrow` program: arguments, commands, output, exit status.
//!
//! `args` says what can be asked for, a file of `commands` does it, `output` is the only module that writes to standard
//! output, `page` makes the page of `report`, and `failure` words what goes wrong. The work itself is done by the other crates.

mod args;
mod commands;
mod failure;
mod interrupt;
mod output;
mod page;
mod progress;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::args::{Cli, Command};

/// Threads hand batches to each other all the time, which the system's allocator takes badly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    failure::without_panic(|| match Cli::try_parse() {
        Ok(cli) => run(cli),
        // Help and version, which clap takes for errors; it ignores that they cannot be written.
        Err(error) if !error.use_stderr() => {
            output::styled(&error.render())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => error.exit(),
    })
    .unwrap_or_else(|error| failure::report(&error))
}

fn run(cli: Cli) -> Result<ExitCode> {
    // The others end in good order.
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
