//! Arguments of `merge`.

use std::path::PathBuf;

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser},
};
use tfarrow_report::SchemaFormat;

use super::{headings::OUTPUT, stats::StatsFormat, validate::ValidateFormat};

/// Arguments of `merge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints what one run of the command over all shards prints. The parts may be given in any order, and a part that was read twice \
counts once. Parts that are missing are listed, with exit status 1.
Exit status: that of the command.

Examples:
  tfarrow stats shards/ --part 0/2 --partial parts/0
  tfarrow stats shards/ --part 1/2 --partial parts/1
  tfarrow merge parts/
  tfarrow merge s3://bucket/parts/ --format json
  tfarrow merge parts/ -o report.html")]
pub(crate) struct Merge {
    /// Results of all parts, of schema, stats, validate or report: files, folders, globs, objects
    #[arg(value_name = "PART", required = true)]
    pub(crate) parts: Vec<String>,
    /// Output format, one of those of the command [default: that of the parts]
    #[arg(long, value_name = "FORMAT", value_parser = formats(), help_heading = OUTPUT)]
    pub(crate) format: Option<String>,
    /// Print JSON, as --format json does
    #[arg(long, conflicts_with = "format", help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// For parts of report: HTML file to write, replacing it
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// For parts of report: title of the report [default: that of the parts]
    #[arg(long, value_name = "TEXT", help_heading = OUTPUT)]
    pub(crate) title: Option<String>,
    /// For parts of validate: write a schema that accepts the data to this file, replacing it
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) update: Option<PathBuf>,
}

/// The formats of all commands whose parts are merged.
fn formats() -> PossibleValuesParser {
    let mut all: Vec<PossibleValue> = Vec::new();
    let more = [
        of::<StatsFormat>(),
        of::<SchemaFormat>(),
        of::<ValidateFormat>(),
    ]
    .concat();
    for value in more {
        if !all.iter().any(|known| known.get_name() == value.get_name()) {
            all.push(PossibleValue::new(value.get_name().to_owned()));
        }
    }
    all.into()
}

fn of<F: ValueEnum>() -> Vec<PossibleValue> {
    F::value_variants()
        .iter()
        .filter_map(ValueEnum::to_possible_value)
        .collect()
}
