//! Arguments of `convert`.

use std::{num::NonZeroUsize, path::PathBuf, str::FromStr};

use clap::Args;
use tfarrow_codec::{OnConflict, VerifyCrc};
use tfarrow_convert::{OutputCompression, OutputSplit, Target, TimestampUnit};
use tfarrow_dataset::Part;
use tfarrow_scan::{NotASample, Sample};

use super::{
    format::SummaryArgs,
    headings::{COLUMNS, DAMAGE, OUTPUT, PARTS, RECORDS, RESOURCES},
    paths::Paths,
    reading::{DamageArgs, Reading},
    values::{NameList, compressions, named, names, size},
};

/// Arguments of `convert`.
#[derive(Debug, Args)]
#[command(
    override_usage = "tfarrow convert [OPTIONS] <SRC>... <DEST>",
    after_help = "\
DEST is a folder, which gets one output per source file, or one file (or -), which gets the records of all of them in their \
order; either may be in a store (s3://bucket/parquet/, gs://, az://). A file has a known extension. A name with any other \
extension is refused unless it ends with a slash or is a folder already; in mnist-1.0 nothing is an extension. Missing folders are created, and reported if they are above DEST. \
Each output gets its name only when it is complete. \
SRC may also be CSV (.csv, .tsv) or JSON, one object a line or one array of objects (.json, .jsonl, .ndjson), also with .gz.

Examples:
  tfarrow convert shards/ parquet/
  tfarrow convert parquet/ back/ --to tfrecord
  tfarrow convert a.tfrecord.gz a.parquet --layout list
  tfarrow convert table.csv table.tfrecord
  tfarrow convert shards/ all.parquet --compression zstd:9
  tfarrow convert shards/ labels.parquet --columns label,image/filename
  tfarrow convert shards/ parquet/ --bloom-filter id
  tfarrow convert shards/ parquet/ --dry-run
  tfarrow convert s3://bucket/shards/ s3://bucket/parquet/ --part 3/16
  tfarrow convert shards/ small/ --to tfrecord --exclude 'image/*'
  tfarrow convert shards/ recut/ --to tfrecord --shards 4 --compression gzip
  tfarrow convert shards/ shuffled/ --to tfrecord --shuffle 1 --shards 64
  tfarrow convert shards/ splits/ --split train=0.8,test=0.2 --seed 1
  tfarrow convert motion/ parquet/ --proto scenario.desc --message waymo.open_dataset.Scenario"
)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) paths: Paths,
    /// Output format [default: by DEST's extension; else parquet, where SRC is TFRecord]
    #[arg(long, value_name = "FORMAT", value_parser = named::<Target>(), help_heading = OUTPUT)]
    pub(crate) to: Option<Target>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Compression of the output, and its level, such as zstd:9 [default: zstd for Parquet, else
    /// none]
    #[arg(long, value_name = "CODEC[:LEVEL]", value_parser = OutputCompression::with_level, long_help = compressions(), help_heading = OUTPUT)]
    pub(crate) compression: Option<(OutputCompression, Option<u32>)>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = RESOURCES)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Take the columns from this Parquet or Arrow file, or from the JSON of `tfarrow
    /// schema --format json`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["layout", "message"], help_heading = COLUMNS)]
    pub(crate) schema: Option<PathBuf>,
    /// Convert only these columns, in this order: names, or globs such as 'image/*' (repeatable)
    #[arg(long, value_name = "NAME[,..]", value_parser = names, conflicts_with = "exact", help_heading = COLUMNS)]
    pub(crate) columns: Vec<NameList>,
    /// Leave out these columns: names or globs (repeatable)
    #[arg(long, value_name = "NAME[,..]", value_parser = names, conflicts_with = "exact", help_heading = COLUMNS)]
    pub(crate) exclude: Vec<NameList>,
    /// Infer the columns from a sample instead of all records
    #[arg(long, value_name = "N|all", value_parser = sample, conflicts_with_all = ["schema", "message"], help_heading = COLUMNS)]
    pub(crate) sample: Option<Sample>,
    /// Cut the output into N shards
    #[arg(long, value_name = "N", conflicts_with = "shard_size", help_heading = OUTPUT)]
    pub(crate) shards: Option<NonZeroUsize>,
    /// Cut the output into shards of about this size, such as 512MB
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = OUTPUT)]
    pub(crate) shard_size: Option<u64>,
    /// With new shards, write the shards of each folder KEY=.. of the sources to a folder of this
    /// name (repeatable). Other folders become columns
    #[arg(long, value_name = "KEY[,..]", value_parser = names, help_heading = OUTPUT)]
    pub(crate) partition_by: Vec<NameList>,
    /// Write the records in random order, which the seed determines; without --shards or
    /// --shard-size, to as many new shards as there are sources
    #[arg(long, value_name = "SEED", help_heading = RECORDS)]
    pub(crate) shuffle: Option<u64>,
    /// Convert a random part of the records, such as 0.01
    #[arg(long, value_name = "PART", help_heading = RECORDS)]
    pub(crate) fraction: Option<f64>,
    /// Write random parts of the records to folders of these names, such as train=0.8,test=0.2
    /// (repeatable)
    #[arg(long, value_name = "NAME=PART[,..]", value_delimiter = ',', value_parser = OutputSplit::from_str, help_heading = RECORDS)]
    pub(crate) split: Vec<OutputSplit>,
    /// The seed of the random choice of --fraction and --split [default: 0]
    #[arg(long, value_name = "SEED", help_heading = RECORDS)]
    pub(crate) seed: Option<u64>,
    /// Add a column with each record's wire encoding, so that converting back is byte-identical
    #[arg(long, help_heading = COLUMNS)]
    pub(crate) exact: bool,
    /// How to handle a feature of more than one kind
    #[arg(long, value_name = "ACTION", value_parser = named::<OnConflict>(), default_value_t, help_heading = COLUMNS)]
    pub(crate) on_conflict: OnConflict,
    /// Unit of the timestamps of messages in Parquet and Arrow
    #[arg(long, value_name = "UNIT", value_parser = named::<TimestampUnit>(), default_value_t, help_heading = COLUMNS)]
    pub(crate) timestamp_unit: TimestampUnit,
    /// Allow lossy conversions, such as float64 to float32, and report them
    #[arg(long, help_heading = COLUMNS)]
    pub(crate) lossy: bool,
    /// Replace outputs that exist
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) overwrite: bool,
    /// When to check the CRC of a record's data
    #[arg(long, value_name = "WHEN", value_parser = named::<VerifyCrc>(), default_value_t, help_heading = DAMAGE)]
    pub(crate) verify_crc: VerifyCrc,
    /// Maximum number of rows in a Parquet row group
    #[arg(long, value_name = "ROWS", help_heading = OUTPUT)]
    pub(crate) row_group_rows: Option<NonZeroUsize>,
    /// Write a Bloom filter of each row group for these columns of a Parquet output: names or globs
    /// (repeatable)
    #[arg(long, value_name = "NAME[,..]", value_parser = names, help_heading = OUTPUT)]
    pub(crate) bloom_filter: Vec<NameList>,
    /// Write no page index, which has the range of the values of each page, to a Parquet output
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) no_page_index: bool,
    /// Resume this conversion: outputs of an interrupted run that are complete are kept; after a
    /// complete run, outputs are compared with the output of the conversion, and nothing is written
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) resume: bool,
    /// Convert part K of N of the shards only, from 0/N on; the outputs of all parts are those of
    /// one run. A part can be run again: outputs that exist are compared with those of the part,
    /// and an error if they differ
    #[arg(long, value_name = "K/N", value_parser = Part::from_str, help_heading = PARTS)]
    pub(crate) part: Option<Part>,
    /// Print which outputs would be written from which sources, and their columns, and write
    /// nothing
    #[arg(long, conflicts_with = "resume", help_heading = OUTPUT)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
    /// With --on-error skip, write corrupt data to this TFRecord file; it is created only if there
    /// is any
    #[arg(long, value_name = "FILE", help_heading = DAMAGE)]
    pub(crate) quarantine: Option<PathBuf>,
}

/// Parses a sample for the columns.
fn sample(text: &str) -> Result<Sample, String> {
    let is_fraction = text.parse().is_ok_and(|part: f64| part > 0.0 && part < 1.0);
    text.parse().map_err(|error: NotASample| match is_fraction {
        true => format!("{error}; `--fraction {text}` converts a part of the records"),
        false => error.to_string(),
    })
}
