//! Options of all commands.

use clap::Args;

use super::headings::GLOBAL;

/// Options of all commands.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Global {
    /// Print errors only: no warnings, summaries and progress
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Print the configuration file, and the time that the command took
    #[arg(short, long, global = true, conflicts_with = "quiet", help_heading = GLOBAL)]
    pub(crate) verbose: bool,
    /// Print output that is longer than the terminal without a pager
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) no_pager: bool,
}
