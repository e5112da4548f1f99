//! Arguments of `diff`.

use clap::Args;
use tfarrow_codec::RecordType;

use super::{
    headings::{COLUMNS, OUTPUT},
    reading::{Auto, DETECTED, DamageArgs},
    values::named_or_auto,
    verify::FaultFormat,
};

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Records are compared in order, across formats and shards. Records are equal if they have the same features, kinds and \
values, floats bit by bit; their wire encoding may differ. Where two consecutive pairs differ, diff looks up to 1,000 \
records ahead for an insertion or deletion. Sort data sets of different order first.
Exit status: 0 the data sets are equal; 3 they differ, or records were skipped.

Examples:
  tfarrow diff shards/ parquet/
  tfarrow diff before.tfrecord after.tfrecord -n 100 --format json")]
pub(crate) struct Diff {
    /// A data set: a file, folder, glob or URL
    #[arg(value_name = "A", required = true)]
    pub(crate) left: String,
    /// The data set to compare with
    #[arg(value_name = "B", required = true)]
    pub(crate) right: String,
    /// Maximum number of differing records to list
    #[arg(short = 'n', long = "records", value_name = "N", default_value_t = 10, help_heading = OUTPUT)]
    pub(crate) records: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = FaultFormat::Table, help_heading = OUTPUT)]
    pub(crate) format: FaultFormat,
    /// Type of the records
    #[arg(long, value_name = "TYPE", value_parser = named_or_auto::<RecordType>(DETECTED), default_value = "auto", help_heading = COLUMNS)]
    pub(crate) record_type: Auto<RecordType>,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}
