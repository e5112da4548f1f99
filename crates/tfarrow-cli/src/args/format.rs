//! The output format of a command with formats for people and for programs.

use clap::{Args, ValueEnum};

use super::headings::OUTPUT;

/// A set of output formats.
pub(crate) trait OutputFormat: ValueEnum + Send + Sync + 'static {
    /// The format for people.
    const TABLE: Self;
    /// The format for programs.
    const JSON: Self;
}

/// The output format.
#[derive(Clone, Debug, Args)]
pub(crate) struct FormatArgs<F: OutputFormat> {
    /// Output format
    #[arg(long, value_enum, default_value_t = F::TABLE, help_heading = OUTPUT)]
    format: F,
    /// Print JSON, as --format json does
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    json: bool,
}

/// The form of the summary of a command that has no formats of its own.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SummaryArgs {
    /// Print a summary as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

impl<F: OutputFormat> FormatArgs<F> {
    /// The format that was chosen.
    pub(crate) fn get(&self) -> F {
        if self.json {
            F::JSON
        } else {
            self.format.clone()
        }
    }
}
