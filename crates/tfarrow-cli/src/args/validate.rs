//! Arguments of `validate`, and its output formats.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::{
    format::{FormatArgs, OutputFormat},
    headings::{COMPARISON, OUTPUT},
    part::PartArgs,
    reading::Looking,
    values::share,
};

/// What a data set is compared with.
#[derive(Debug, Args)]
pub(crate) struct Expectations {
    /// A tensorflow.metadata.v0.Schema in text format, as TensorFlow Data Validation and
    /// schema --format pbtxt write it
    #[arg(long, value_name = "FILE", help_heading = COMPARISON)]
    pub(crate) schema: Option<PathBuf>,
    /// Baseline data set for drift and example counts (repeatable)
    #[arg(long, value_name = "SRC", help_heading = COMPARISON)]
    pub(crate) baseline: Vec<String>,
    /// Maximum drift from the baseline, from 0 to 1, of features without a comparator in the
    /// schema: L-infinity distance (bytes) or Jensen-Shannon divergence (numbers)
    #[arg(long, value_name = "DISTANCE", requires = "baseline", value_parser = share, allow_negative_numbers = true, help_heading = COMPARISON)]
    pub(crate) max_drift: Option<f64>,
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
  tfarrow validate train.tfrecord --baseline yesterday.parquet
  tfarrow validate today/ --schema schema.pbtxt --update schema.pbtxt")]
pub(crate) struct Validate {
    /// Files, folders, globs, URLs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) against: Expectations,
    /// Environment of the schema to validate in, such as SERVING
    #[arg(long, value_name = "NAME", help_heading = COMPARISON)]
    pub(crate) environment: Option<String>,
    #[command(flatten)]
    pub(crate) format: FormatArgs<ValidateFormat>,
    /// Write a schema that accepts the data to this file, replacing it
    #[arg(long, value_name = "FILE", conflicts_with = "part", help_heading = OUTPUT)]
    pub(crate) update: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) looking: Looking,
    #[command(flatten)]
    pub(crate) part: PartArgs,
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

impl OutputFormat for ValidateFormat {
    const TABLE: Self = Self::Table;
    const JSON: Self = Self::Json;
}
