//! The command line: commands, arguments and options. `commands` runs them. Each command has a
//! file, which also has its output formats; `reading.rs` has the options that several commands
//! share, and `values.rs` parses values.

mod convert;
mod count;
mod diff;
mod format;
mod head;
mod headings;
mod index;
mod merge;
mod part;
mod paths;
mod reading;
mod repair;
mod report;
mod schema;
mod shell;
mod sql;
mod stats;
mod tips;
mod validate;
mod values;
mod verify;

use clap::{Args, Parser, Subcommand};

use self::headings::GLOBAL;

pub use self::values::{host_and_port, size};
pub(crate) use self::{
    convert::Convert,
    count::Count,
    diff::Diff,
    head::Head,
    index::{Index, place_in},
    merge::Merge,
    part::PartArgs,
    paths::with_destinations,
    reading::Looking,
    repair::Repair,
    report::Report,
    schema::SchemaArgs,
    shell::{Completions, Man},
    sql::{Format, Sql},
    stats::{Stats, StatsFormat},
    tips::with_tips,
    validate::{Expectations, Validate, ValidateFormat},
    values::NameList,
    verify::{FaultFormat, Verify},
};

/// TFRecord files of tf.Example and tf.SequenceExample records as Arrow, Parquet and SQL.
#[derive(Debug, Parser)]
#[command(name = "tfarrow", version, arg_required_else_help = true, after_help = AFTER)]
pub(crate) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

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

const AFTER: &str = "\
Examples:
  tfarrow sql \"SELECT label, count(*) FROM 'shards/*.tfrecord' GROUP BY label\"
  tfarrow convert shards/ parquet/
  tfarrow schema shards/
  tfarrow head shards/ -n 3

Sources are files, folders (recursive), globs (* ? [..] {a,b} **), shard specs (train@10), objects and folders in \
stores (s3://bucket/train/, gs://, az://, https://) and - for standard input.
Options have defaults in a configuration file and in variables, such as TFARROW_ON_ERROR=skip: see docs/program.md.
Exit status: 0 success; 1 failure; 2 wrong usage; 3 completed, with records skipped, faults or differences found.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Query TFRecord, Parquet, Arrow, CSV and JSON files in place with SQL
    Sql(Sql),
    /// Convert TFRecord to Parquet or Arrow and back without loss, and CSV or JSON to each of them
    Convert(Convert),
    /// Infer the schema of a data set: features, kinds, presence, lengths, Arrow types
    Schema(SchemaArgs),
    /// Compute statistics: ranges, means, quantiles, histograms, most frequent values
    Stats(Stats),
    /// Validate a data set against a schema or a baseline
    Validate(Validate),
    /// Write an HTML report: features with histograms, anomalies, images
    Report(Report),
    /// Print the first records as JSON lines
    Head(Head),
    /// Count records
    Count(Count),
    /// Write indexes of TFRecord files: counts, records and queries without reading all of a file
    Index(Index),
    /// Check the integrity of files: every CRC, every record, every checksum
    Verify(Verify),
    /// Copy the intact records of corrupt files
    Repair(Repair),
    /// Compare two data sets record by record
    Diff(Diff),
    /// Merge the results of all parts of a data set that several processes have read
    Merge(Merge),
    /// Print a script that completes command lines in a shell
    Completions(Completions),
    /// Print the manual page, or write those of all commands
    Man(Man),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }
}
