//! Arguments of `verify`, and its output formats.

use clap::{Args, ValueEnum};
use tfarrow_codec::RecordType;

use super::{
    format::{FormatArgs, OutputFormat},
    headings::{DAMAGE, OUTPUT},
    part::ShareArgs,
    reading::Bounds,
    values::{Auto, record_type},
};

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each line is a fault: the file, the record, its byte offset (decompressed), and the error. After a corrupt length, reading \
resumes at the next frame whose length and data CRCs are both valid. Parquet and Arrow files written by convert have a \
checksum for each row group or batch; other files are only checked to be readable. Other files in folders and missing \
numbered shards (train-00001-of-00002 where there is a train-00000-of-00002) are reported, but are no faults.
Exit status: 0 no faults; 3 faults found.

Examples:
  tfarrow verify shards/
  tfarrow verify shards/ --format json | jq '.faults[] | {file, offset, kind}'
  tfarrow verify growing.tfrecord --partial-tail ignore")]
pub(crate) struct Verify {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs<FaultFormat>,
    /// Maximum number of faults to list; further ones are only counted
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = OUTPUT)]
    pub(crate) max_faults: usize,
    /// Type of the records; a record that is not a message of this type is a fault (an Example is
    /// also a SequenceExample)
    #[arg(long, value_name = "TYPE", value_parser = record_type(), default_value = "auto", help_heading = DAMAGE)]
    pub(crate) record_type: Auto<RecordType>,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    #[command(flatten)]
    pub(crate) share: ShareArgs,
}

/// Output format of `verify`, `repair` and `diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FaultFormat {
    /// For people
    Table,
    /// Everything, for programs
    Json,
}

impl OutputFormat for FaultFormat {
    const TABLE: Self = Self::Table;
    const JSON: Self = Self::Json;
}
