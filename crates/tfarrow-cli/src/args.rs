//! The command line: what can be asked for, and how it is spelled. What is asked for is done in `commands`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use tfarrow_codec::{Layout, Limits, OnConflict, OnError, RecordType, VerifyCrc};
use tfarrow_convert::OutputCompression;
use tfarrow_dataset::{PartialTail, ReadOptions, Sample};

/// TFRecord files of tf.Example and tf.SequenceExample records as Arrow, Parquet and SQL.
#[derive(Debug, Parser)]
#[command(name = "tfarrow", version, arg_required_else_help = true, after_help = AFTER)]
pub(crate) struct Cli {
    /// What to do.
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
Exit status: 0 done; 1 could not finish; 2 wrong usage; 3 done, and something was found or lost.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer SQL over TFRecord, Parquet and Arrow files where they lie
    Sql(Sql),
    /// Turn TFRecord into Parquet or Arrow, and back, without losing anything
    Convert(Convert),
    /// Say what is in a data set: features, kinds, presence, lengths, Arrow types
    Schema(SchemaArgs),
    /// Say what its values are: ranges, means, quantiles, histograms, most frequent values
    Stats(Stats),
    /// Say what is wrong with a data set: what is not as a schema says, or as it was before
    Validate(Validate),
    /// Show a data set as a page: features with histograms, anomalies, images
    Report(Report),
    /// Print the first records as JSON lines
    Head(Head),
    /// Count records
    Count(Count),
    /// Say whether files are as they were written: every CRC, every record, every checksum
    Verify(Verify),
    /// Save what is sound of damaged files
    Repair(Repair),
    /// Say in which records two data sets differ
    Diff(Diff),
}

/// Arguments of `sql`.
#[derive(Debug, Args)]
#[command(after_help = "\
Any source stands in quotes after FROM; folders end in a slash. Names with capitals, dots or slashes need double quotes.
Without a query, a terminal gets a prompt (\\? there tells what it knows), and from a pipe statements are read.

Options of --option, also for SET tfarrow.NAME = VALUE, OPTIONS (NAME VALUE) and read_tfrecord('..', NAME => VALUE):
  layout, record_type, on_conflict, sample_records, verify_crc, on_error,
  partial_tail, bytes_type, metadata_columns, pushdown_filters,
  and for what is written compression, shards, overwrite, lossy

Examples:
  tfarrow sql \"SELECT city, avg(price) FROM 'shards/*.tfrecord' GROUP BY city\"
  tfarrow sql \"SELECT \\\"image/height\\\" FROM 'shards/' LIMIT 3\" --format csv
  tfarrow sql \"COPY (SELECT * FROM 'shards/' WHERE price > 40) TO 'dear/train.tfrecord' OPTIONS (shards 4)\"
  tfarrow sql -f report.sql")]
pub(crate) struct Sql {
    /// Statements, parted by ;
    #[arg(value_name = "QUERY")]
    pub(crate) queries: Vec<String>,
    /// Statements, as QUERY; they come before it
    #[arg(short, long, value_name = "QUERY")]
    pub(crate) command: Vec<String>,
    /// Read statements from this file (- for standard input); they come before all others
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
    /// Go on after a statement that fails; the exit status is 1 all the same
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Infer the columns from up to N records of each of up to 16 shards, or from all records [default: 1000]
    #[arg(long, alias = "sample-records", value_name = "N|all", value_parser = sample)]
    pub(crate) sample: Option<Sample>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// When the CRC of a record's data is checked
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Crc::Always)]
    pub(crate) verify_crc: Crc,
    #[command(flatten)]
    pub(crate) damage: Damage,
    /// Memory that sorts, joins and groups may take together, such as 4GB; what needs more goes to temporary files
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Set an option, as SET tfarrow.NAME = VALUE does
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = option)]
    pub(crate) option: Vec<(String, String)>,
}

/// How records are read as columns.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reading {
    /// auto: bare values where every list has one, text where all bytes are UTF-8; list: always lists of the kind's own type
    #[arg(long, value_enum, default_value_t = LayoutArg::Auto)]
    pub(crate) layout: LayoutArg,
    /// What the records are, instead of what they look like
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) record_type: Option<RecordTypeArg>,
}

impl Reading {
    /// The layout asked for.
    pub(crate) fn layout(&self) -> Layout {
        self.layout.into()
    }

    /// The record type asked for.
    pub(crate) fn record_type(&self) -> Option<RecordType> {
        self.record_type.and_then(RecordTypeArg::record_type)
    }
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
DEST is a folder, or one file (or -) where there is one source and DEST has a known extension; either may be in a \
store (s3://bucket/parquet/, gs://, az://). A name with any other extension is refused unless it ends with a slash or is a \
folder already; in mnist-1.0 nothing is an extension. Missing folders are created, and reported if they are above DEST. \
What is written bears its name only once it is whole.

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
    /// What to write, where DEST's extension does not say [default: parquet, where SRC is TFRecord]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<To>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Parquet: zstd (default), snappy, gzip, lz4, none; Arrow: none (default), zstd, lz4; TFRecord: none (default), gzip,
    /// zlib, original
    #[arg(long, value_enum, value_name = "CODEC", hide_possible_values = true)]
    pub(crate) compression: Option<CompressionArg>,
    /// Threads to work with [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<std::num::NonZeroUsize>,
    /// Take the columns from this Parquet or Arrow file, or from the JSON of `tfarrow schema --format json`
    #[arg(long, value_name = "FILE", conflicts_with = "layout")]
    pub(crate) schema: Option<PathBuf>,
    /// Infer the columns from a sample instead of all records
    #[arg(long, value_name = "N|all", value_parser = sample, conflicts_with = "schema")]
    pub(crate) sample: Option<Sample>,
    /// Cut the output into N shards
    #[arg(long, value_name = "N", conflicts_with = "shard_size")]
    pub(crate) shards: Option<std::num::NonZeroUsize>,
    /// Cut the output into shards of about this size, such as 512MB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) shard_size: Option<u64>,
    /// Keep in one column more what the way back needs to give the same bytes: the order of features, the form of lists
    #[arg(long)]
    pub(crate) exact: bool,
    /// What becomes of a feature that has more than one kind: split gives each kind a column, which the way back joins
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnConflictArg::Error)]
    pub(crate) on_conflict: OnConflictArg,
    /// Write values that TFRecord can only hold changed, and say which
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Replace outputs that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// When the CRC of a record's data is checked
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Crc::Always)]
    pub(crate) verify_crc: Crc,
    /// Rows of a Parquet row group, at most
    #[arg(long, value_name = "ROWS")]
    pub(crate) row_group_rows: Option<std::num::NonZeroUsize>,
    /// Resume this conversion: outputs of an interrupted run that are complete are kept; after a complete run, outputs are
    /// compared with what the conversion makes, and nothing is written
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) damage: Damage,
    /// With --on-error skip, write what is damaged to this TFRecord file; no damage, no file
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
    /// How to say it
    #[arg(long, value_enum, default_value_t = SchemaFormat::Table)]
    pub(crate) format: SchemaFormat,
    #[command(flatten)]
    pub(crate) looking: Looking,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// How much of a data set is looked at.
#[derive(Clone, Debug, Args)]
pub(crate) struct Looking {
    /// Look at up to N records of each of up to 16 shards only
    #[arg(long, value_name = "N|all", value_parser = sample, default_value = "all")]
    pub(crate) sample: Sample,
    #[command(flatten)]
    pub(crate) damage: Damage,
}

/// How TFRecord is read that may be damaged, unfinished or hostile.
#[derive(Clone, Debug, Args)]
pub(crate) struct Damage {
    /// What becomes of what is damaged or does not fit: skip reads on behind it, counts it, and ends with status 3
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnErrorArg::Fail)]
    pub(crate) on_error: OnErrorArg,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// Where reading ends.
#[derive(Clone, Debug, Args)]
pub(crate) struct Bounds {
    /// What becomes of a last record that is cut short: ignore takes it for not yet written
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = PartialTailArg::Fail)]
    pub(crate) partial_tail: PartialTailArg,
    /// What input may make the program hold: record-bytes, record-features, values, key-bytes, columns, name-bytes,
    /// nesting, inflate-ratio; may be given again
    #[arg(long, value_name = "NAME=N", value_parser = limit, long_help = limits())]
    pub(crate) limit: Vec<(String, usize)>,
}

impl Bounds {
    /// How files are read within them.
    pub(crate) fn read(&self, on_error: OnError) -> ReadOptions {
        let mut limits = Limits::default();
        for (name, value) in &self.limit {
            if let Some(limit) = limits.by_name(name) {
                *limit = *value;
            }
        }
        ReadOptions { on_error, partial_tail: self.partial_tail.into(), limits, ..ReadOptions::default() }
    }
}

impl Damage {
    /// How files are read.
    pub(crate) fn read(&self) -> ReadOptions {
        self.bounds.read(self.on_error.into())
    }
}

/// What a data set is held against.
#[derive(Debug, Args)]
pub(crate) struct HeldAgainst {
    /// A tensorflow.metadata.v0.Schema in text format, as TensorFlow Data Validation and schema --format pbtxt write it
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// The data set as it was, for distances and numbers of records; more than one source with more than one --baseline
    #[arg(long, value_name = "SRC")]
    pub(crate) baseline: Vec<String>,
    /// What a feature may differ from the baseline where the schema has no comparator for it: in L-infinity (bytes) or
    /// Jensen-Shannon divergence (numbers), from 0 to 1
    #[arg(long, value_name = "DISTANCE", requires = "baseline", value_parser = share, allow_negative_numbers = true)]
    pub(crate) max_drift: Option<f64>,
}

/// Arguments of `stats`.
#[derive(Debug, Args)]
#[command(after_help = "\
Counts, ranges, means and standard deviations are of all values. Medians, deciles and histograms are of up to 16,384 \
values of a feature (fewer where there are more than 256 features), taken by chance, and the same each time; distinct \
values are counted up to 20,000 (fewer where more than 3 features have long texts or 26 have texts), and estimated beyond.
With --by, figures are of all records, and of those of each value of a feature: up to 256 integers or byte strings.
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
    /// How to say it
    #[arg(long, value_enum, default_value_t = StatsFormat::Table)]
    pub(crate) format: StatsFormat,
    /// Say it of each slice of the data set as well: of the records of each value of this feature
    #[arg(long, value_name = "FEATURE")]
    pub(crate) by: Option<String>,
    #[command(flatten)]
    pub(crate) looking: Looking,
}

/// Arguments of `validate`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("held against").args(["schema", "baseline"]).required(true).multiple(true), after_help = "\
The anomalies are those of TensorFlow Data Validation, each with the number of records that have it and the first one.
Without --schema, the data is held against what schema --format pbtxt says of the baseline.
With --baseline, the drift and skew comparators of the schema are held against it as well, and all distances are told.
Floats that are NaN or infinite are noted; disallow_nan and disallow_inf in a float_domain of the schema make them anomalies.
Exit status: 0 nothing is wrong; 3 something is.

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
    pub(crate) against: HeldAgainst,
    /// The environment of the schema that the data is of, such as SERVING
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// How to say it
    #[arg(long, value_enum, default_value_t = ValidateFormat::Table)]
    pub(crate) format: ValidateFormat,
    /// Write the schema that the data would fit to this file, which is replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) update: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) looking: Looking,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "\
The page is one file that needs nothing else, opens from disk, and asks no other machine for anything.
Exit status: 0; 3 where the schema or the baseline shows anomalies, which stand on the page.

Examples:
  tfarrow report shards/ -o report.html
  tfarrow report today/ -o report.html --baseline yesterday/
  tfarrow report today/ -o report.html --schema schema.pbtxt --on-error skip")]
pub(crate) struct Report {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// The page, which is replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// What the page is called [default: the sources]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) against: HeldAgainst,
    /// Records that are shown, chosen by chance, and the same each time
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) examples: usize,
    #[command(flatten)]
    pub(crate) looking: Looking,
}

/// Arguments of `head`.
#[derive(Debug, Args)]
#[command(after_help = "\
A record is one line. Features are lists, as they are in the record; features that it has not are left out.
  tf.Example            {\"label\": [3], \"city\": [\"Oslo\"]}
  tf.SequenceExample    {\"context\": {\"id\": [1]}, \"feature_lists\": {\"token\": [[\"a\"], [\"b\", \"c\"]]}}
  any other payload     {\"record\": \"text\"}
A feature (or step) that is there with no kind is {\"unset\": true}. Bytes are text where they are UTF-8, else \
{\"b64\": \"..\"}; long ones are named only (\"<JPEG 112 kB>\"), and long lists and texts are cut, unless --full is given.

Examples:
  tfarrow head shards/ -n 3
  tfarrow head shards/train-00000-of-00004.tfrecord --full | jq .label
  zcat a.tfrecord.gz | tfarrow head - -n 1")]
pub(crate) struct Head {
    /// Files, folders, globs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// How many records
    #[arg(short = 'n', long = "records", value_name = "N", default_value_t = 10)]
    pub(crate) records: usize,
    /// Show long values as they are
    #[arg(long)]
    pub(crate) full: bool,
    /// What the records are, instead of what they look like
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) record_type: Option<RecordTypeArg>,
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
    /// A line a file: its number of records, a tab, its path
    #[arg(long)]
    pub(crate) per_file: bool,
    #[command(flatten)]
    pub(crate) damage: Damage,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each line is a fault: the file, the record, the byte where it begins (decompressed), and what is wrong. Behind a length \
that cannot be believed, records go on where both CRCs of a frame hold. Parquet and Arrow files that convert has written \
have a checksum for each row group or batch; of others all that can be told is whether they can be read. What else folders \
hold is told, and so is what numbered shards lack (train-00001-of-00002 where there is a train-00000-of-00002): neither is \
a fault.
Exit status: 0 nothing is wrong; 3 something is.

Examples:
  tfarrow verify shards/
  tfarrow verify shards/ --format json | jq '.faults[] | {file, offset, kind}'
  tfarrow verify growing.tfrecord --partial-tail ignore")]
pub(crate) struct Verify {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// How to say it
    #[arg(long, value_enum, default_value_t = FaultFormat::Table)]
    pub(crate) format: FaultFormat,
    /// Faults that are told with their places; others are counted
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_faults: usize,
    /// What the records are: of example and sequence-example, one that is no such message is a fault (an Example is a
    /// SequenceExample without feature lists); raw records may be anything [default: what most of them look like]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) record_type: Option<RecordTypeArg>,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// Arguments of `repair`.
#[derive(Debug, Args)]
#[command(after_help = "\
Records whose CRCs hold are written as they are, to files of the same names and compression. Behind a length that cannot \
be believed, records go on where both CRCs of a frame hold; within a record whose length could be read, nothing is looked \
for. What is lost is told as `verify` tells it.
The quarantine is a TFRecord file of Examples: data, fault, file, offset, record, and stored, which is 1 where data is \
bytes of a compressed file that do not inflate.
Exit status: 0 nothing was lost; 3 something was.

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
    /// Write what is lost to this TFRecord file; no loss, no file
    #[arg(long, value_name = "FILE")]
    pub(crate) quarantine: Option<PathBuf>,
    /// How to say what is lost
    #[arg(long, value_enum, default_value_t = FaultFormat::Table)]
    pub(crate) format: FaultFormat,
    /// Threads to work with [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<std::num::NonZeroUsize>,
    /// Replace outputs that exist
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Resume this repair: outputs of an interrupted run that are complete are kept; after a complete run, outputs are
    /// compared with what the repair makes, and nothing is written
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
The first record of A is held against the first of B, and so on, whatever formats and shards they are in. Records are equal \
if they have the same features, kinds and values, floats to the bit; their form on the wire is not looked at. Where two \
differ, and the two behind them as well, and one of the first two is equal to a record up to 1,000 behind the other, then \
what stands before that has no partner. Sets in another order have to be sorted first.
Exit status: 0 the data sets are equal; 3 they differ, or something was passed over.

Examples:
  tfarrow diff shards/ parquet/
  tfarrow diff before.tfrecord after.tfrecord -n 100 --format json")]
pub(crate) struct Diff {
    /// A file, folder, glob or URL
    #[arg(value_name = "A", required = true)]
    pub(crate) left: String,
    /// Another
    #[arg(value_name = "B", required = true)]
    pub(crate) right: String,
    /// How many records that differ are told
    #[arg(short = 'n', long = "records", value_name = "N", default_value_t = 10)]
    pub(crate) records: usize,
    /// How to say it
    #[arg(long, value_enum, default_value_t = FaultFormat::Table)]
    pub(crate) format: FaultFormat,
    /// What the records are, instead of what they look like
    #[arg(long, value_enum, value_name = "TYPE")]
    pub(crate) record_type: Option<RecordTypeArg>,
    #[command(flatten)]
    pub(crate) damage: Damage,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people: long values are elided
    Table,
    /// With a header; lists as JSON
    Csv,
    /// One array of objects
    Json,
    /// An object a line
    Ndjson,
    /// As csv, with tabs
    Tsv,
    /// One Parquet file
    Parquet,
    /// One Arrow IPC file
    Arrow,
}

impl Format {
    /// Whether it is one file, for programs alone.
    pub(crate) fn is_binary(self) -> bool {
        match self {
            Self::Parquet | Self::Arrow => true,
            Self::Table | Self::Csv | Self::Tsv | Self::Json | Self::Ndjson => false,
        }
    }
}

/// How a schema is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFormat {
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
    /// What TensorFlow Datasets reads beside the shards
    FeaturesJson,
    /// A schema.pbtxt, as TensorFlow Data Validation infers it
    Pbtxt,
}

/// How `stats` says what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// For people
    Table,
    /// Everything, for programs
    Json,
    /// For TensorFlow Data Validation and Facets
    Pb,
}

/// How `validate` says what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ValidateFormat {
    /// For people
    Table,
    /// Everything, for programs
    Json,
    /// For TensorFlow Data Validation: a tensorflow.metadata.v0.Anomalies, without places
    Pbtxt,
}

/// How faults and differences are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FaultFormat {
    /// For people
    Table,
    /// Everything, for programs
    Json,
}

/// What `convert` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// Parquet files
    Parquet,
    /// TFRecord files
    Tfrecord,
    /// Arrow IPC files
    Arrow,
}

/// An [`OutputCompression`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressionArg {
    None,
    Zstd,
    Snappy,
    Gzip,
    Lz4,
    Zlib,
    Original,
}

impl From<CompressionArg> for OutputCompression {
    fn from(compression: CompressionArg) -> Self {
        match compression {
            CompressionArg::None => Self::None,
            CompressionArg::Zstd => Self::Zstd,
            CompressionArg::Snappy => Self::Snappy,
            CompressionArg::Gzip => Self::Gzip,
            CompressionArg::Lz4 => Self::Lz4,
            CompressionArg::Zlib => Self::Zlib,
            CompressionArg::Original => Self::Original,
        }
    }
}

/// A [`Layout`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutArg {
    Auto,
    List,
}

impl From<LayoutArg> for Layout {
    fn from(layout: LayoutArg) -> Self {
        match layout {
            LayoutArg::Auto => Self::Auto,
            LayoutArg::List => Self::List,
        }
    }
}

/// A [`RecordType`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordTypeArg {
    Auto,
    Example,
    #[value(alias = "sequence_example")]
    SequenceExample,
    Raw,
}

impl RecordTypeArg {
    /// `None`: what the records look like.
    pub(crate) fn record_type(self) -> Option<RecordType> {
        match self {
            Self::Auto => None,
            Self::Example => Some(RecordType::Example),
            Self::SequenceExample => Some(RecordType::SequenceExample),
            Self::Raw => Some(RecordType::Raw),
        }
    }
}

/// A [`VerifyCrc`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Crc {
    /// Before a record is read
    Always,
    /// Only where a record cannot be read
    #[value(alias = "on_parse_failure")]
    OnParseFailure,
    /// Never
    Never,
}

impl From<Crc> for VerifyCrc {
    fn from(crc: Crc) -> Self {
        match crc {
            Crc::Always => Self::Always,
            Crc::OnParseFailure => Self::OnParseFailure,
            Crc::Never => Self::Never,
        }
    }
}

/// An [`OnError`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnErrorArg {
    /// It is an error
    Fail,
    /// They are passed over
    Skip,
}

impl From<OnErrorArg> for OnError {
    fn from(on_error: OnErrorArg) -> Self {
        match on_error {
            OnErrorArg::Fail => Self::Fail,
            OnErrorArg::Skip => Self::Skip,
        }
    }
}

/// A [`PartialTail`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartialTailArg {
    /// It is an error
    Fail,
    /// It is not looked at
    Ignore,
}

impl From<PartialTailArg> for PartialTail {
    fn from(partial_tail: PartialTailArg) -> Self {
        match partial_tail {
            PartialTailArg::Fail => Self::Fail,
            PartialTailArg::Ignore => Self::Ignore,
        }
    }
}

/// An [`OnConflict`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnConflictArg {
    /// It is an error
    Error,
    /// Each kind gets a column
    Split,
}

impl From<OnConflictArg> for OnConflict {
    fn from(on_conflict: OnConflictArg) -> Self {
        match on_conflict {
            OnConflictArg::Error => Self::Fail,
            OnConflictArg::Split => Self::Split,
        }
    }
}

/// What limits there are, and how much each is where nothing else is said.
fn limits() -> String {
    let mut limits = Limits::default();
    let known = Limits::NAMES.map(|name| format!("{name}={}", limits.by_name(name).copied().unwrap_or_default()));
    format!("What input may make the program hold; may be given again. By default {}", known.join(", "))
}

/// The name of a limit, and how much it is: a number, or a size.
fn limit(text: &str) -> Result<(String, usize), String> {
    let known = || format!("expected NAME=N, such as record-bytes=64MB; there are {}", Limits::NAMES.join(", "));
    let (name, value) = text.split_once('=').ok_or_else(known)?;
    let name = name.trim().replace('_', "-");
    if !Limits::NAMES.contains(&name.as_str()) {
        return Err(known());
    }
    Ok((name, usize::try_from(size(value.trim())?).unwrap_or(usize::MAX)))
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as layout=list")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

fn sample(text: &str) -> Result<Sample, String> {
    if text == "all" {
        return Ok(Sample::All);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a number of records, or `all`".to_owned()),
        Ok(records) => Ok(Sample::Records(records)),
    }
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
    fn the_command_line_is_sound() {
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
