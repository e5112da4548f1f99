//! Arguments of `count`.

use clap::Args;

use super::{format::SummaryArgs, index::IndexArgs, part::ShareArgs, reading::DamageArgs};

/// Arguments of `count`.
#[derive(Debug, Args)]
#[command(after_help = "\
The index of a file has the number of its records. Without one, records are counted by their frames: the CRCs of their \
lengths are checked, those of their data are not.
With --on-error skip, counting continues after a corrupt length, and the exit status is 3.

Examples:
  tfarrow count shards/
  tfarrow count --per-file 'shards/*.tfrecord'
  tfarrow count --per-file shards/ --json")]
pub(crate) struct Count {
    /// Files, folders, globs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// Print a line for each file: its number of records, a tab, its path
    #[arg(long)]
    pub(crate) per_file: bool,
    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
    #[command(flatten)]
    pub(crate) indexes: IndexArgs,
    #[command(flatten)]
    pub(crate) share: ShareArgs,
}
