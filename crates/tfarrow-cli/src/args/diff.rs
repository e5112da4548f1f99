//! Arguments of `diff`.

use std::path::PathBuf;

use clap::Args;
use tfarrow_codec::RecordType;

use super::{
    format::FormatArgs,
    headings::{COLUMNS, COMPARISON, OUTPUT, RESOURCES},
    reading::DamageArgs,
    values::{Auto, NameList, features, names, record_type, size, tolerance},
    verify::FaultFormat,
};

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Records are compared in order, across formats and shards, or with --on by the values of key features, in any order. Records \
are equal if they have the same features, kinds and values, floats bit by bit or within a tolerance; their wire encoding may \
differ. In order, where two consecutive pairs differ, diff looks up to 1,000 records ahead for an insertion or deletion. By \
key, the records of B are held in memory; if they exceed --memory-limit, A and B are read several times.
Exit status: 0 the data sets are equal; 3 they differ, or records were skipped.

Examples:
  tfarrow diff shards/ parquet/
  tfarrow diff before.tfrecord after.tfrecord -n 100 --format json
  tfarrow diff old/ new/ --on id --exclude 'debug/*' --tolerance 1e-6
  tfarrow diff old/ new/ --on user,item --only-a removed.tfrecord --only-b added.tfrecord")]
pub(crate) struct Diff {
    /// A data set: a file, folder, glob or URL
    #[arg(value_name = "A", required = true)]
    pub(crate) left: String,
    /// The data set to compare with
    #[arg(value_name = "B", required = true)]
    pub(crate) right: String,
    /// Pair records that have the same values of these features, in place of their order
    /// (repeatable)
    #[arg(long, value_name = "FEATURE[,..]", value_parser = features, help_heading = COMPARISON)]
    pub(crate) on: Vec<NameList>,
    /// Do not compare these features: names, or globs such as 'image/*' (repeatable)
    #[arg(long, value_name = "FEATURE[,..]", value_parser = names, help_heading = COMPARISON)]
    pub(crate) exclude: Vec<NameList>,
    /// Floats are equal if they differ by at most this; NaN is equal to NaN
    #[arg(long, value_name = "NUMBER", value_parser = tolerance, allow_negative_numbers = true, help_heading = COMPARISON)]
    pub(crate) tolerance: Option<f64>,
    /// Floats are equal if they differ by at most this fraction of B's value, added to --tolerance
    /// as in numpy.isclose
    #[arg(long, value_name = "FRACTION", value_parser = tolerance, allow_negative_numbers = true, help_heading = COMPARISON)]
    pub(crate) relative_tolerance: Option<f64>,
    /// Write the records of A without a partner to this TFRecord file; it is created only if there
    /// are any
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) only_a: Option<PathBuf>,
    /// Write the records of B without a partner to this TFRecord file; it is created only if there
    /// are any
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) only_b: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) overwrite: bool,
    /// With --on, memory for the records of B, such as 4GB [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "on", help_heading = RESOURCES)]
    pub(crate) memory_limit: Option<u64>,
    /// Maximum number of differing records to list
    #[arg(short = 'n', long = "records", value_name = "N", default_value_t = 10, help_heading = OUTPUT)]
    pub(crate) records: usize,
    #[command(flatten)]
    pub(crate) format: FormatArgs<FaultFormat>,
    /// Type of the records
    #[arg(long, value_name = "TYPE", value_parser = record_type(), default_value = "auto", help_heading = COLUMNS)]
    pub(crate) record_type: Auto<RecordType>,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}
