//! Arguments of `repair`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::Args;

use super::{
    format::FormatArgs,
    headings::{DAMAGE, OUTPUT, RESOURCES},
    paths::Paths,
    reading::Bounds,
    verify::FaultFormat,
};

/// Arguments of `repair`.
#[derive(Debug, Args)]
#[command(
    override_usage = "tfarrow repair [OPTIONS] <SRC>... <DEST>",
    after_help = "\
Records with valid CRCs are copied unchanged, to files of the same names and compression. After a corrupt length, reading \
resumes at the next frame whose length and data CRCs are both valid; a record with a valid length and corrupt data is not \
searched. Lost data is listed as by `verify`.
The quarantine is a TFRecord file of Examples: data, fault, file, offset, record, and stored, which is 1 where data is \
compressed bytes that cannot be decompressed.
Exit status: 0 nothing was lost; 3 data was lost.

Examples:
  tfarrow repair damaged.tfrecord sound.tfrecord
  tfarrow repair shards/ sound/ --quarantine lost.tfrecord
  tfarrow sql \"SELECT file, \\\"offset\\\", fault FROM 'lost.tfrecord'\""
)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) paths: Paths,
    /// Write lost data to this TFRecord file; it is created only if there is any
    #[arg(long, value_name = "FILE", help_heading = DAMAGE)]
    pub(crate) quarantine: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs<FaultFormat>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = RESOURCES)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Replace outputs that exist
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) overwrite: bool,
    /// Resume this repair: outputs of an interrupted run that are complete are kept; after a
    /// complete run, outputs are compared with the output of the repair, and nothing is written
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}
