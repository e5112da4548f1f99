//! Arguments of `report`.

use std::path::PathBuf;

use clap::Args;

use super::{
    format::SummaryArgs, headings::OUTPUT, part::PartArgs, reading::Looking, validate::Expectations,
};

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
    #[arg(short, long, value_name = "FILE", required_unless_present = "part", conflicts_with = "part", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Title of the report [default: the sources]
    #[arg(long, value_name = "TEXT", help_heading = OUTPUT)]
    pub(crate) title: Option<String>,
    #[command(flatten)]
    pub(crate) against: Expectations,
    /// Number of example records, a random sample with a fixed seed
    #[arg(long, value_name = "N", default_value_t = 24, help_heading = OUTPUT)]
    pub(crate) examples: usize,
    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
    #[command(flatten)]
    pub(crate) looking: Looking,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}
