//! Arguments of `schema`, and its output formats.

use clap::Args;
use tfarrow_report::SchemaFormat;

use super::{
    format::{FormatArgs, OutputFormat},
    part::PartArgs,
    reading::{Looking, Reading},
};

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
All records are read, unless --sample says otherwise. A feature that has more than one kind is reported with the first \
place of each, and the exit status is 3.
--format json can be edited and given to `tfarrow convert --schema`; --format python is a feature spec for tf.io.
With --proto and --message, and for files of TensorBoard, the schema follows from the definition of the message, and no \
record is read.

Examples:
  tfarrow schema shards/
  tfarrow schema shards/ --format python > spec.py
  tfarrow schema 'shards/*.tfrecord.gz' --sample 1000 --format json")]
pub(crate) struct SchemaArgs {
    /// Files, folders, globs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs<SchemaFormat>,
    #[command(flatten)]
    pub(crate) looking: Looking,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

impl OutputFormat for SchemaFormat {
    const TABLE: Self = Self::Table;
    const JSON: Self = Self::Json;
}
