//! The command line: commands, arguments and options. `commands` runs them.

use std::{
    iter,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::{
    ArgGroup, Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use tfarrow_codec::{Layout, Limit, Limits, NamedValue, OnConflict, OnError, RecordType, UnknownName, VerifyCrc};
use tfarrow_convert::{OutputCompression, Target};
use tfarrow_dataset::{PartialTail, ReadOptions, Sample};

/// TFRecord files of tf.Example and tf.SequenceExample records as Arrow, Parquet and SQL.
#[derive(Debug, Parser)]
#[command(name = "tfarrow", version, arg_required_else_help = true, after_help = AFTER)]
pub(crate) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER: &str = "\
Examples:
  tfarrow sql \"SELECT label, count(*) FROM 'shards/*.tfrecord' GROUP BY label\"
  tfarrow convert shards/ parquet/
  tfarrow schema shards/
  tfarrow head shards/ -n 3

Sources are files, folders (recursive), globs (* ? [..] {a,b} **), shard specs (train@10), objects and folders in \
stores (s3://bucket/train/, gs://, az://, https://) and - for standard input.
Exit status: 0 success; 1 failure; 2 wrong usage; 3 completed, with records skipped, faults or differences found.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Query TFRecord, Parquet and Arrow files in place with SQL
    Sql(Sql),
    /// Convert TFRecord to Parquet or Arrow, and back, without loss
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
    /// Check the integrity of files: every CRC, every record, every checksum
    Verify(Verify),
    /// Copy the intact records of corrupt files
    Repair(Repair),
    /// Compare two data sets record by record
    Diff(Diff),
}

/// Arguments of `sql`.
#[derive(Debug, Args)]
#[command(after_help = "\
Quote a source after FROM; folders end in a slash. Names with capitals, dots or slashes need double quotes.
Without a query, statements are read from a prompt (\\? lists its commands) or from a pipe.

Names for --option, also for SET tfarrow.NAME = VALUE, OPTIONS (NAME VALUE) and read_tfrecord('..', NAME => VALUE):
  layout, record_type, on_conflict, sample_records, verify_crc, on_error,
  partial_tail, bytes_type, metadata_columns, pushdown_filters, preserve_order,
  and for written files compression, shards, overwrite, lossy

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
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Write the results to a file (- for standard output), which gets its name when all are complete
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub(crate) overwrite: bool,
    /// Rows of a table on a terminal, half of them the last ones; 0 for all
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) max_rows: usize,
    /// Infer the columns from up to N records of each of up to 16 shards, or from all records [default: 1000]
    #[arg(long, alias = "sample-records", value_name = "N|all", value_parser = Sample::from_str)]
    pub(crate) sample: Option<Sample>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// When to check the CRC of a record's data
    #[arg(long, value_name = "WHEN", value_parser = named::<VerifyCrc>(), default_value_t)]
    pub(crate) verify_crc: VerifyCrc,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
    /// Memory for sorts, joins and groups together, such as 4GB; beyond it they spill to temporary files
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Set an option, as SET tfarrow.NAME = VALUE does
    #[arg(long, value_name = "NAME=VALUE", value_parser = option)]
    pub(crate) option: Vec<(String, String)>,
}

/// An option that may be left to the program.
pub(crate) type Auto<T> = Option<T>;

/// The help of `--record-type auto`.
const DETECTED: &str = "Detect the type from the records";

/// How records are read as columns.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reading {
    /// How features become columns
    #[arg(long, value_parser = named::<Layout>(), default_value_t)]
    pub(crate) layout: Layout,
    /// Type of the records
    #[arg(long, value_name = "TYPE", value_parser = named_or_auto::<RecordType>(DETECTED), default_value = "auto")]
    pub(crate) record_type: Auto<RecordType>,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
DEST is a folder, or one file (or -) where there is one source and DEST has a known extension; either may be in a \
store (s3://bucket/parquet/, gs://, az://). A name with any other extension is refused unless it ends with a slash or is a \
folder already; in mnist-1.0 nothing is an extension. Missing folders are created, and reported if they are above DEST. \
Each output gets its name only when it is complete.

Examples:
  tfarrow convert shards/ parquet/
  tfarrow convert parquet/ back/ --to tfrecord
  tfarrow convert a.tfrecord.gz a.parquet --layout list
  tfarrow convert shards/ recut/ --to tfrecord --shards 4 --compression gzip")]
pub(crate) struct Convert {
    /// Files, folders, globs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// A folder, a file with a known extension, or - for standard output
    #[arg(value_name = "DEST", required = true)]
    pub(crate) dest: String,
    /// Output format [default: by DEST's extension; else parquet, where SRC is TFRecord]
    #[arg(long, value_name = "FORMAT", value_parser = named::<Target>())]
    pub(crate) to: Option<Target>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Compression of the output [default: zstd for Parquet, else none]
    #[arg(long, value_name = "CODEC", value_parser = named::<OutputCompression>())]
    pub(crate) compression: Option<OutputCompression>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<std::num::NonZeroUsize>,
    /// Take the columns from this Parquet or Arrow file, or from the JSON of `tfarrow schema --format json`
    #[arg(long, value_name = "FILE", conflicts_with = "layout")]
    pub(crate) schema: Option<PathBuf>,
    /// Infer the columns from a sample instead of all records
    #[arg(long, value_name = "N|all", value_parser = Sample::from_str, conflicts_with = "schema")]
    pub(crate) sample: Option<Sample>,
    /// Cut the output into N shards
    #[arg(long, value_name = "N", conflicts_with = "shard_size")]
    pub(crate) shards: Option<std::num::NonZeroUsize>,
    /// Cut the output into shards of about this size, such as 512MB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) shard_size: Option<u64>,
    /// Add a column with each record's wire encoding, so that converting back is byte-identical
    #[arg(long)]
    pub(crate) exact: bool,
    /// How to handle a feature of more than one kind
    #[arg(long, value_name = "ACTION", value_parser = named::<OnConflict>(), default_value_t)]
    pub(crate) on_conflict: OnConflict,
    /// Allow lossy conversions, such as float64 to float32, and report them
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Replace outputs that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// When to check the CRC of a record's data
    #[arg(long, value_name = "WHEN", value_parser = named::<VerifyCrc>(), default_value_t)]
    pub(crate) verify_crc: VerifyCrc,
    /// Maximum number of rows in a Parquet row group
    #[arg(long, value_name = "ROWS")]
    pub(crate) row_group_rows: Option<std::num::NonZeroUsize>,
    /// Resume this conversion: outputs of an interrupted run that are complete are kept; after a complete run, outputs are
    /// compared with the output of the conversion, and nothing is written
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
    /// With --on-error skip, write corrupt data to this TFRecord file; it is created only if there is any
    #[arg(long, value_name = "FILE")]
    pub(crate) quarantine: Option<PathBuf>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
All records are read, unless --sample says otherwise. A feature that has more than one kind is reported with the first \
place of each, and the exit status is 3.
--format json can be edited and given to `tfarrow convert --schema`; --format python is a feature spec for tf.io.

Examples:
  tfarrow schema shards/
  tfarrow schema shards/ --format python > spec.py
  tfarrow schema 'shards/*.tfrecord.gz' --sample 1000 --format json")]
pub(crate) struct SchemaArgs {
    /// Files, folders, globs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = SchemaFormat::Table)]
    pub(crate) format: SchemaFormat,
    #[command(flatten)]
    pub(crate) looking: Looking,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// How much of a data set is read, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct Looking {
    /// Read only up to N records of each of up to 16 shards
    #[arg(long, value_name = "N|all", value_parser = Sample::from_str, default_value = "all")]
    pub(crate) sample: Sample,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

/// How corrupt, unfinished or hostile TFRecord is read.
#[derive(Clone, Debug, Args)]
pub(crate) struct DamageArgs {
    /// How to handle corrupt or non-conforming records: stop, or skip, report the count and exit with status 3
    #[arg(long, value_name = "ACTION", value_parser = named::<OnError>(), default_value_t)]
    pub(crate) on_error: OnError,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// Where reading ends.
#[derive(Clone, Debug, Args)]
pub(crate) struct Bounds {
    /// How to handle a truncated last record
    #[arg(long, value_name = "ACTION", value_parser = named::<PartialTail>(), default_value_t)]
    pub(crate) partial_tail: PartialTail,
    /// Override a resource limit (repeatable), such as record-bytes=64MB
    #[arg(long, value_name = "NAME=N", value_parser = limit, long_help = limits())]
    pub(crate) limit: Vec<(Limit, usize)>,
}

impl Bounds {
    /// How files are read within them.
    pub(crate) fn read(&self, on_error: OnError) -> ReadOptions {
        let mut limits = Limits::default();
        for (limit, value) in &self.limit {
            *limits.get_mut(*limit) = *value;
        }
        ReadOptions { on_error, partial_tail: self.partial_tail, limits, ..ReadOptions::default() }
    }
}

impl DamageArgs {
    /// How files are read.
    pub(crate) fn read(&self) -> ReadOptions {
        self.bounds.read(self.on_error)
    }
}

/// What a data set is compared with.
#[derive(Debug, Args)]
pub(crate) struct Expectations {
    /// A tensorflow.metadata.v0.Schema in text format, as TensorFlow Data Validation and schema --format pbtxt write it
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Baseline data set for drift and example counts (repeatable)
    #[arg(long, value_name = "SRC")]
    pub(crate) baseline: Vec<String>,
    /// Maximum drift from the baseline, from 0 to 1, of features without a comparator in the schema: L-infinity distance
    /// (bytes) or Jensen-Shannon divergence (numbers)
    #[arg(long, value_name = "DISTANCE", requires = "baseline", value_parser = share, allow_negative_numbers = true)]
    pub(crate) max_drift: Option<f64>,
}

/// Arguments of `stats`.
#[derive(Debug, Args)]
#[command(after_help = "\
Counts, ranges, means and standard deviations are of all values. Medians, deciles and histograms are of up to 16,384 \
values of a feature (fewer where there are more than 256 features), a random sample with a fixed seed; distinct \
values are counted up to 20,000 (fewer where more than 3 features have long texts or 26 have texts), and estimated beyond.
With --by, statistics are of all records and of each slice: up to 256 integers or byte strings.
--format pb is a tensorflow.metadata.v0.DatasetFeatureStatisticsList, as tfdv.load_stats_binary reads it.

Examples:
  tfarrow stats shards/
  tfarrow stats shards/ --by label
  tfarrow stats shards/ --format json | jq '.features[] | {name, missing}'
  tfarrow stats shards/ --format pb > stats.pb")]
pub(crate) struct Stats {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = StatsFormat::Table)]
    pub(crate) format: StatsFormat,
    /// Compute statistics also for each slice: the records with one value of this feature
    #[arg(long, value_name = "FEATURE")]
    pub(crate) by: Option<String>,
    #[command(flatten)]
    pub(crate) looking: Looking,
}

/// Arguments of `validate`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("compared with").args(["schema", "baseline"]).required(true).multiple(true), after_help = "\
The anomalies are those of TensorFlow Data Validation, each with the number of records that have it and the first one.
Without --schema, the data is validated against the schema inferred from the baseline, as of schema --format pbtxt.
With --baseline, the drift and skew comparators of the schema are checked as well, and all distances are reported.
Floats that are NaN or infinite are reported; disallow_nan and disallow_inf in a float_domain of the schema make them anomalies.
Exit status: 0 no anomalies; 3 anomalies found.

Examples:
  tfarrow schema train/ --format pbtxt > schema.pbtxt
  tfarrow validate today/ --schema schema.pbtxt
  tfarrow validate today/ --baseline yesterday/ --max-drift 0.1 --format json
  tfarrow validate today/ --schema schema.pbtxt --update schema.pbtxt")]
pub(crate) struct Validate {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) against: Expectations,
    /// Environment of the schema to validate in, such as SERVING
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ValidateFormat::Table)]
    pub(crate) format: ValidateFormat,
    /// Write a schema that accepts the data to this file, replacing it
    #[arg(long, value_name = "FILE")]
    pub(crate) update: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) looking: Looking,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "\
The report is one self-contained HTML file, which opens from disk and loads nothing from the network.
Exit status: 0 no anomalies; 3 the schema or the baseline shows anomalies, which the report lists.

Examples:
  tfarrow report shards/ -o report.html
  tfarrow report today/ -o report.html --baseline yesterday/
  tfarrow report today/ -o report.html --schema schema.pbtxt --on-error skip")]
pub(crate) struct Report {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// HTML file to write, replacing it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Title of the report [default: the sources]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) against: Expectations,
    /// Number of example records, a random sample with a fixed seed
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) examples: usize,
    #[command(flatten)]
    pub(crate) looking: Looking,
}

/// Arguments of `head`.
#[derive(Debug, Args)]
#[command(after_help = "\
A record is one line. Features are lists, as they are in the record; absent features are left out.
  tf.Example            {\"label\": [3], \"city\": [\"Oslo\"]}
  tf.SequenceExample    {\"context\": {\"id\": [1]}, \"feature_lists\": {\"token\": [[\"a\"], [\"b\", \"c\"]]}}
  any other payload     {\"record\": \"text\"}
A feature (or step) without a kind is {\"unset\": true}. Bytes are text where they are UTF-8, else \
{\"b64\": \"..\"}; long ones are named only (\"<JPEG 112 kB>\"), and long lists and texts are cut, unless --full is given.

Examples:
  tfarrow head shards/ -n 3
  tfarrow head shards/train-00000-of-00004.tfrecord --full | jq .label
  zcat a.tfrecord.gz | tfarrow head - -n 1")]
pub(crate) struct Head {
    /// Files, folders, globs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// Number of records
    #[arg(short = 'n', long = "records", value_name = "N", default_value_t = 10)]
    pub(crate) records: usize,
    /// Print long values in full
    #[arg(long)]
    pub(crate) full: bool,
    /// Type of the records
    #[arg(long, value_name = "TYPE", value_parser = named_or_auto::<RecordType>(DETECTED), default_value = "auto")]
    pub(crate) record_type: Auto<RecordType>,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// Arguments of `count`.
#[derive(Debug, Args)]
#[command(after_help = "\
Records are counted by their frames: the CRCs of their lengths are checked, those of their data are not.
With --on-error skip, counting continues after a corrupt length, and the exit status is 3.

Examples:
  tfarrow count shards/
  tfarrow count --per-file 'shards/*.tfrecord'")]
pub(crate) struct Count {
    /// Files, folders, globs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// Print a line for each file: its number of records, a tab, its path
    #[arg(long)]
    pub(crate) per_file: bool,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

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
    /// Output format
    #[arg(long, value_enum, default_value_t = FaultFormat::Table)]
    pub(crate) format: FaultFormat,
    /// Maximum number of faults to list; further ones are only counted
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_faults: usize,
    /// Type of the records; a record that is not a message of this type is a fault (an Example is also a SequenceExample)
    #[arg(long, value_name = "TYPE", value_parser = named_or_auto::<RecordType>(DETECTED), default_value = "auto")]
    pub(crate) record_type: Auto<RecordType>,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// Arguments of `repair`.
#[derive(Debug, Args)]
#[command(after_help = "\
Records with valid CRCs are copied unchanged, to files of the same names and compression. After a corrupt length, reading \
resumes at the next frame whose length and data CRCs are both valid; a record with a valid length and corrupt data is not \
searched. Lost data is listed as by `verify`.
The quarantine is a TFRecord file of Examples: data, fault, file, offset, record, and stored, which is 1 where data is \
compressed bytes that cannot be decompressed.
Exit status: 0 nothing was lost; 3 data was lost.

Examples:
  tfarrow repair damaged.tfrecord sound.tfrecord
  tfarrow repair shards/ sound/ --quarantine lost.tfrecord
  tfarrow sql \"SELECT file, \\\"offset\\\", fault FROM 'lost.tfrecord'\"")]
pub(crate) struct Repair {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// A folder, or a TFRecord file
    #[arg(value_name = "DEST", required = true)]
    pub(crate) dest: String,
    /// Write lost data to this TFRecord file; it is created only if there is any
    #[arg(long, value_name = "FILE")]
    pub(crate) quarantine: Option<PathBuf>,
    /// Output format of the list of lost data
    #[arg(long, value_enum, default_value_t = FaultFormat::Table)]
    pub(crate) format: FaultFormat,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<std::num::NonZeroUsize>,
    /// Replace outputs that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Resume this repair: outputs of an interrupted run that are complete are kept; after a complete run, outputs are
    /// compared with the output of the repair, and nothing is written
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

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
    #[arg(short = 'n', long = "records", value_name = "N", default_value_t = 10)]
    pub(crate) records: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = FaultFormat::Table)]
    pub(crate) format: FaultFormat,
    /// Type of the records
    #[arg(long, value_name = "TYPE", value_parser = named_or_auto::<RecordType>(DETECTED), default_value = "auto")]
    pub(crate) record_type: Auto<RecordType>,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
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
}

impl Format {
    /// The format of files with the extension of a path, if it has one.
    pub(crate) fn of_extension(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" => Self::Table,
            "md" => Self::Markdown,
            "html" | "htm" => Self::Html,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "json" => Self::Json,
            "ndjson" | "jsonl" => Self::Ndjson,
            "parquet" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            _ => return None,
        })
    }

    /// Whether it is a binary file format.
    pub(crate) fn is_binary(self) -> bool {
        match self {
            Self::Parquet | Self::Arrow => true,
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

/// Output format of `schema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaFormat {
    /// For people
    Table,
    /// Everything, for programs and for `convert --schema`
    Json,
    /// The columns and their Arrow types
    Arrow,
    /// A feature spec for tf.io.parse_example
    Python,
    /// A function that makes the Arrow schema
    Rust,
    /// CREATE EXTERNAL TABLE, with every column declared
    Sql,
    /// The features.json file of TensorFlow Datasets
    FeaturesJson,
    /// A schema.pbtxt, as TensorFlow Data Validation infers it
    Pbtxt,
}

impl SchemaFormat {
    /// Returns the format of a name, such as `features-json`; `None` if no format has it.
    pub fn from_name(name: &str) -> Option<Self> {
        <Self as ValueEnum>::from_str(name, false).ok()
    }
}

/// Output format of `stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// For people
    Table,
    /// Everything, for programs
    Json,
    /// For TensorFlow Data Validation and Facets
    Pb,
}

/// Output format of `validate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ValidateFormat {
    /// For people
    Table,
    /// Everything, for programs
    Json,
    /// For TensorFlow Data Validation: a tensorflow.metadata.v0.Anomalies, without positions
    Pbtxt,
}

/// Output format of `verify`, `repair` and `diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FaultFormat {
    /// For people
    Table,
    /// Everything, for programs
    Json,
}

/// Parses an option whose values have names, and lists them in its help.
fn named<T: NamedValue + FromStr<Err = UnknownName>>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::ALL.iter().copied().map(possible)).try_map(|name| name.parse())
}

/// Parses an option whose values have names, or `auto`: none of them.
fn named_or_auto<T: NamedValue + FromStr<Err = UnknownName>>(
    auto: &'static str,
) -> impl TypedValueParser<Value = Auto<T>> {
    let auto = PossibleValue::new("auto").help(auto);
    let values = iter::once(auto).chain(T::ALL.iter().copied().map(possible));
    PossibleValuesParser::new(values).try_map(|name| if name == "auto" { Ok(None) } else { name.parse().map(Some) })
}

fn possible<T: NamedValue>(value: T) -> PossibleValue {
    // Scripts may write a name as SQL does.
    let alias = value.name().contains('-').then(|| value.name().replace('-', "_"));
    PossibleValue::new(value.name()).aliases(alias).help(value.help())
}

/// The help of `--limit`, with the default of each limit.
fn limits() -> String {
    let limits = Limits::default();
    let known = Limit::ALL.map(|limit| format!("{limit}={}", limits.get(limit)));
    format!("Override a resource limit (repeatable), such as record-bytes=64MB. Defaults: {}", known.join(", "))
}

/// A limit and its value: a number, or a size.
fn limit(text: &str) -> Result<(Limit, usize), String> {
    let known = || format!("expected NAME=N, such as record-bytes=64MB; there are {}", Limit::names());
    let (name, value) = text.split_once('=').ok_or_else(known)?;
    let limit = name.trim().parse().map_err(|_| known())?;
    Ok((limit, usize::try_from(size(value.trim())?).unwrap_or(usize::MAX)))
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as layout=list")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// A size in bytes: a number, and a unit of 1000s (kB, MB, GB, TB) or of 1024s (KiB, MiB, GiB, TiB).
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a size such as 512MB or 1GiB, found {text:?}");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let unit: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let bytes = number * unit;
    if bytes >= 1.0 { Ok(bytes as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("512MB"), Ok(512_000_000));
        assert_eq!(size("1.5 GiB"), Ok(3 << 29));
        assert_eq!(size("100"), Ok(100));
        for wrong in ["", "MB", "12 apples", "0", "-1", "1.2.3"] {
            assert!(size(wrong).is_err(), "{wrong:?}");
        }
    }
}
