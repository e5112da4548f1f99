//! The `tfarrow` program as a library: arguments, commands, output, exit status.
//!
//! [`run_program`] runs a command line. `main.rs` calls it, and has the allocator of the program.
//!
//! `args` defines the command line, and `commands` has one file or folder for each subcommand.
//! `output` is the only module that writes to standard output, except that `convert` passes
//! standard output to the library for the destination `-`. `stderr` is the only module that writes
//! messages to standard error. `error` makes texts and exit statuses of errors, and `defaults` reads
//! the configuration of the user. The other crates do the work, and `tfarrow-report` makes the texts
//! of results. `cluster` starts the program `tfarrow-cluster`, which calls this library with an engine
//! for the queries of `sql`.

mod args;
mod cluster;
mod commands;
mod defaults;
mod error;
mod interrupt;
mod output;
mod progress;
mod stderr;

use std::{ffi::OsString, time::Instant};

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, error::ErrorKind};
use tfarrow_report::text::escape;

use crate::{
    args::{Cli, Command, Global, with_destinations, with_tips},
    cluster::Cluster,
    defaults::Defaults,
    error::{SUCCESS, USAGE, Usage},
};

pub use crate::{
    args::{host_and_port as parse_host_and_port, size as parse_size},
    cluster::{ClusterAddress, Connect},
    stderr::print as print_message,
};

/// Runs a command line, and returns the exit status. The first of `args` is the name of the
/// program, as of [`args_os`](std::env::args_os).
///
/// The process should end with this status, because the handlers of signals and of panics that this
/// installs stay installed. A signal ends the process; a first signal only cancels `sql`, `convert`
/// and `repair`.
pub fn run_program(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<_> = args.into_iter().collect();
    run_with(args.clone(), &Cluster::Program(args))
}

/// Runs a command line as [`run_program`] does, and connects to the cluster of `--cluster` by
/// `connect`.
pub fn run_with_cluster(args: impl IntoIterator<Item = OsString>, connect: Connect) -> u8 {
    run_with(args.into_iter().collect(), &Cluster::Engine(connect))
}

fn run_with(args: Vec<OsString>, cluster: &Cluster) -> u8 {
    error::catch_panic(|| match parse(args)? {
        Ok(cli) => run(cli, cluster),
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

/// Parses a command line, with the defaults of the user. The outer error is one of the defaults.
fn parse(args: Vec<OsString>) -> Result<Result<Cli, clap::Error>> {
    let (mut command, defaults) = match with_defaults() {
        Err(_) if needs_no_defaults(&args) => (Cli::command(), Defaults::default()),
        found => found?,
    };
    let mut matches = command.clone().try_get_matches_from(&args);
    match &matches {
        Ok(found) => {
            let excluded = defaults::excluded(&command, found);
            if !excluded.is_empty() {
                command = defaults.apply(Cli::command(), &excluded)?;
                matches = command.clone().try_get_matches_from(&args);
            }
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            matches = with_destinations(command.clone()).try_get_matches_from(&args);
        }
        Err(_) => {}
    }
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = cli.map_err(|error| {
        with_tips(
            error.format(&mut command),
            args.get(1..).unwrap_or_default(),
        )
    });
    if let (
        Ok(Cli {
            global: Global { verbose: true, .. },
            ..
        }),
        Some(file),
    ) = (&cli, defaults.file())
    {
        stderr::print(&escape(&format!(
            "defaults of options are in {}",
            file.display()
        )));
    }
    Ok(cli)
}

/// The definition of the command line with the defaults of the user, and these defaults.
fn with_defaults() -> Result<(clap::Command, Defaults), Usage> {
    let defaults = Defaults::read()?;
    let command = defaults.apply(Cli::command(), &[])?;
    Ok((command, defaults))
}

/// Whether the command line asks for help, the version, or the texts that shells load when they
/// start. A configuration that is not valid must not prevent these.
fn needs_no_defaults(args: &[OsString]) -> bool {
    match Cli::command().try_get_matches_from(args) {
        Ok(matches) => matches!(matches.subcommand_name(), Some("man" | "completions")),
        Err(error) => matches!(
            error.kind(),
            ErrorKind::DisplayHelp
                | ErrorKind::DisplayVersion
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        ),
    }
}

fn run(cli: Cli, cluster: &Cluster) -> Result<u8> {
    let Global {
        quiet,
        verbose,
        no_pager,
    } = cli.global;
    if quiet {
        stderr::be_quiet();
    }
    if no_pager {
        output::without_pager();
    }
    let start = Instant::now();
    let status = run_command(cli.command, cluster);
    if verbose {
        stderr::print(&format!("{:.3} s", start.elapsed().as_secs_f64()));
    }
    status
}

fn run_command(command: Command, cluster: &Cluster) -> Result<u8> {
    // The other commands clean up first.
    if !matches!(
        command,
        Command::Sql(_) | Command::Convert(_) | Command::Repair(_) | Command::Index(_)
    ) {
        interrupt::on_interrupt(interrupt::end);
    }
    match command {
        Command::Sql(args) => commands::sql::run(&args, cluster),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Schema(args) => commands::schema::run(&args),
        Command::Stats(args) => commands::stats::run(&args),
        Command::Validate(args) => commands::validate::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Head(args) => commands::head::run(&args),
        Command::Count(args) => commands::count::run(&args),
        Command::Index(args) => commands::index::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        Command::Repair(args) => commands::repair::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Completions(args) => commands::shell::completions(&args),
        Command::Man(args) => commands::shell::man(&args),
    }
}
