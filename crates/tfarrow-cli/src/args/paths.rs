//! The positional arguments of commands that write files.

use clap::{Arg, Args, Command};

use crate::error::Usage;

/// The commands that have [`Paths`], with the help of their destination.
const WRITERS: [(&str, &str); 2] = [
    (
        "convert",
        "A folder, a file with a known extension, or - for standard output",
    ),
    (
        "repair",
        "A folder, one TFRecord file for all records, or - for standard output",
    ),
];

/// The sources, and then the destination: one list, because options may stand between any two of
/// them. A parser of two arguments takes the last name before an option as the destination.
#[derive(Clone, Debug, Args)]
pub(crate) struct Paths {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    paths: Vec<String>,
}

impl Paths {
    /// The sources, and the destination.
    ///
    /// # Errors
    /// There is one name only.
    pub(crate) fn split(&self) -> Result<(&[String], &str), Usage> {
        match self.paths.split_last() {
            Some((dest, sources)) if !sources.is_empty() => Ok((sources, dest)),
            _ => Err(Usage(
                "DEST is missing: the last name is the destination, and those before it are the sources".to_owned(),
            )),
        }
    }
}

/// The program as help, manual pages and completions show it: with the destination as an argument
/// of its own.
pub(crate) fn with_destinations(program: Command) -> Command {
    WRITERS.into_iter().fold(program, |program, (name, help)| {
        let dest = Arg::new("dest")
            .value_name("DEST")
            .required(true)
            .help(help);
        program.mut_subcommand(name, |command| command.arg(dest))
    })
}
