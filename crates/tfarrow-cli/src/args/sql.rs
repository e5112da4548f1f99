//! Arguments of `sql`, and its output formats.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::{Args, ValueEnum};
use tfarrow_codec::VerifyCrc;
use tfarrow_dataset::file_names::TFRECORD_EXTENSIONS;
use tfarrow_scan::Sample;

use super::{
    headings::{COLUMNS, DAMAGE, OUTPUT, RESOURCES},
    reading::{DamageArgs, Reading},
    values::{named, option, scheduler, size},
};

/// Arguments of `sql`.
#[derive(Debug, Args)]
#[command(after_help = "\
Quote a source after FROM; folders end in a slash. Names with capitals, dots or slashes need double quotes.
Without a query, statements are read from a prompt (\\? lists its commands) or from a pipe.

Names for --option, also for SET tfarrow.NAME = VALUE, OPTIONS (NAME VALUE) and read_tfrecord('..', NAME => VALUE):
  layout, record_type, proto, message, on_conflict, sample_records, verify_crc, on_error,
  partial_tail, bytes_type, metadata_columns, purge_orphaned_data, pushdown_filters,
  preserve_order, piece_bytes,
  and for written files compression, shards, overwrite, lossy, round_floats

Examples:
  tfarrow sql \"SELECT city, avg(price) FROM 'shards/*.tfrecord' GROUP BY city\"
  tfarrow sql \"SELECT \\\"image/height\\\" FROM 'shards/' LIMIT 3\" --format csv
  tfarrow sql \"COPY (SELECT * FROM 'shards/' WHERE price > 40) TO 'dear/train.tfrecord' OPTIONS (shards 4)\"
  tfarrow sql -f report.sql")]
pub(crate) struct Sql {
    /// Statements, separated by ;
    #[arg(value_name = "QUERY")]
    pub(crate) queries: Vec<String>,
    /// Statements to run before QUERY
    #[arg(short, long, value_name = "QUERY")]
    pub(crate) command: Vec<String>,
    /// Read statements to run first from this file (- for standard input)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
    /// Continue after a failed statement; the exit status is still 1
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Output format [default: that of the extension of FILE, else table]
    #[arg(long, value_enum, help_heading = OUTPUT)]
    pub(crate) format: Option<Format>,
    /// Print JSON, as --format json does
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Write the results to a file (- for standard output), which gets its name when all are
    /// complete
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, requires = "output", help_heading = OUTPUT)]
    pub(crate) overwrite: bool,
    /// Rows of a table on a terminal, half of them the last ones; 0 for all
    #[arg(long, value_name = "N", default_value_t = 40, help_heading = OUTPUT)]
    pub(crate) max_rows: usize,
    /// Infer the columns from up to N records of each of up to 16 shards, or from all records
    /// [default: 1000]
    #[arg(long, alias = "sample-records", value_name = "N|all", value_parser = Sample::from_str, help_heading = COLUMNS)]
    pub(crate) sample: Option<Sample>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// When to check the CRC of a record's data
    #[arg(long, value_name = "WHEN", value_parser = named::<VerifyCrc>(), default_value_t, help_heading = DAMAGE)]
    pub(crate) verify_crc: VerifyCrc,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
    /// Memory for sorts, joins and groups together, such as 4GB; beyond it they spill to temporary
    /// files
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = RESOURCES)]
    pub(crate) memory_limit: Option<u64>,
    /// Run the queries on the cluster of this scheduler, whose machines must have access to the
    /// files: see docs/cluster.md
    #[arg(long, value_name = "HOST:PORT", value_parser = scheduler, help_heading = RESOURCES)]
    pub(crate) cluster: Option<String>,
    /// Connect to the cluster with TLS, with the certificates of a folder: tls.crt, tls.key and
    /// ca.crt
    #[arg(long, value_name = "DIR", requires = "cluster", help_heading = RESOURCES)]
    pub(crate) cluster_tls: Option<PathBuf>,
    /// Set an option, as SET tfarrow.NAME = VALUE does
    #[arg(long, value_name = "NAME=VALUE", value_parser = option)]
    pub(crate) option: Vec<(String, String)>,
}

/// Output format of `sql`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people; values, columns and rows are cut to fit a terminal
    Table,
    /// One line a value
    Line,
    /// A table of GitHub's Markdown
    Markdown,
    /// An HTML table
    Html,
    /// With a header; lists as JSON
    Csv,
    /// One array of objects
    Json,
    /// One object a line
    Ndjson,
    /// As csv, with tabs
    Tsv,
    /// One Parquet file
    Parquet,
    /// One Arrow IPC file
    Arrow,
    /// One TFRecord file, without compression
    Tfrecord,
}

impl Format {
    /// The format of files with the extension of a path, if it has one.
    pub(crate) fn of_extension(path: &Path) -> Option<Self> {
        Some(
            match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
                "txt" => Self::Table,
                "md" => Self::Markdown,
                "html" | "htm" => Self::Html,
                "csv" => Self::Csv,
                "tsv" => Self::Tsv,
                "json" => Self::Json,
                "ndjson" | "jsonl" => Self::Ndjson,
                "parquet" => Self::Parquet,
                "arrow" | "feather" | "ipc" => Self::Arrow,
                other if TFRECORD_EXTENSIONS.contains(&other) => Self::Tfrecord,
                _ => return None,
            },
        )
    }

    /// Whether it is a binary file format.
    pub(crate) fn is_binary(self) -> bool {
        match self {
            Self::Parquet | Self::Arrow | Self::Tfrecord => true,
            Self::Table
            | Self::Line
            | Self::Markdown
            | Self::Html
            | Self::Csv
            | Self::Tsv
            | Self::Json
            | Self::Ndjson => false,
        }
    }
}
