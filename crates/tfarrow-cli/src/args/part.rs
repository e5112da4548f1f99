//! Options of commands that read a part of a data set.

use std::{path::PathBuf, str::FromStr};

use clap::Args;
use tfarrow_dataset::Part;

use super::headings::PARTS;

/// The part of a data set that a command reads, as one of several processes.
#[derive(Clone, Debug, Args)]
pub(crate) struct PartArgs {
    /// Read part K of N of the shards, from 0/N on, and write its result for `tfarrow merge`
    #[arg(long, value_name = "K/N", value_parser = Part::from_str, conflicts_with = "sample", help_heading = PARTS)]
    pub(crate) part: Option<Part>,
    /// File or object for the result of the part, which is replaced [default: standard output]
    #[arg(long, value_name = "FILE", requires = "part", help_heading = PARTS)]
    pub(crate) partial: Option<PathBuf>,
}

/// The part of a data set that a command reads, of commands without results to merge.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ShareArgs {
    /// Read part K of N of the shards only, from 0/N on
    #[arg(long, value_name = "K/N", value_parser = Part::from_str, help_heading = PARTS)]
    pub(crate) part: Option<Part>,
}
