//! Arguments of `stats`, and its output formats.

use clap::{Args, ValueEnum};

use super::{
    format::{FormatArgs, OutputFormat},
    part::PartArgs,
    reading::Looking,
};

/// Arguments of `stats`.
#[derive(Debug, Args)]
#[command(after_help = "\
Counts, ranges, means and standard deviations are of all values. Medians, deciles and histograms are of up to 16,384 \
values of a feature (fewer where there are more than 256 features), a random sample with a fixed seed; distinct \
values are counted up to 20,000 (fewer where more than 3 features have long texts or 26 have texts), and estimated beyond. \
Estimates have the mark ~; in JSON, `sampled` is the size of their sample, and `length` that of a value that is cut.
missing counts records without the feature, unset those that have it without values of any kind.
With --by, statistics are of all records and of each slice: up to 256 integers or byte strings.
--format pb is a tensorflow.metadata.v0.DatasetFeatureStatisticsList, as tfdv.load_stats_binary reads it.

Examples:
  tfarrow stats shards/
  tfarrow stats shards/ --by label
  tfarrow stats train.parquet
  tfarrow stats shards/ --format json | jq '.features[] | {name, missing}'
  tfarrow stats shards/ --format pb > stats.pb")]
pub(crate) struct Stats {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs<StatsFormat>,
    /// Compute statistics also for each slice: the records with one value of this feature
    #[arg(long, value_name = "FEATURE")]
    pub(crate) by: Option<String>,
    #[command(flatten)]
    pub(crate) looking: Looking,
    #[command(flatten)]
    pub(crate) part: PartArgs,
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

impl OutputFormat for StatsFormat {
    const TABLE: Self = Self::Table;
    const JSON: Self = Self::Json;
}
