//! Arguments of `index`, and where other commands look for indexes.

use std::num::NonZeroUsize;

use clap::Args;
use tfarrow_index::{IndexForm, IndexPlace};

use super::{
    format::SummaryArgs,
    headings::{OUTPUT, RESOURCES},
    part::ShareArgs,
    reading::Bounds,
    values::named,
};

/// Arguments of `index`.
#[derive(Debug, Args)]
#[command(after_help = "\
An index has the place and the length of each record, the columns that all records have together, and the smallest and \
largest values of blocks of records. It is a Parquet file beside its shard, a.tfrecord.tfindex for a.tfrecord, which other \
commands use when it is there. An index of a shard that has changed since is reported and not used.
All records are read, and their CRCs are checked. A damaged shard gets no index.
Exit status: 0 all shards have an index; 3 some have none.

Examples:
  tfarrow index shards/
  tfarrow index shards/ --update
  tfarrow index s3://bucket/train/ --to indexes/
  tfarrow index shards/ --format dali")]
pub(crate) struct Index {
    /// Files, folders, globs or URLs of TFRecord
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// Write the indexes to this folder, by the names of the shards in their sources [default: beside the shards]
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub(crate) to: Option<String>,
    /// Form of the indexes
    #[arg(long, value_parser = named::<IndexForm>(), default_value_t, help_heading = OUTPUT)]
    pub(crate) format: IndexForm,
    /// Keep the indexes of shards that have not changed
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) update: bool,
    /// Replace text indexes, and files of other programs with the name of an index
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) overwrite: bool,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = RESOURCES)]
    pub(crate) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    #[command(flatten)]
    pub(crate) share: ShareArgs,
}

/// Which indexes a command uses.
#[derive(Clone, Debug, Args)]
pub(crate) struct IndexArgs {
    /// Folder of the indexes, as `tfarrow index --to` has written them [default: beside the shards]
    #[arg(long, value_name = "DIR", help_heading = RESOURCES)]
    pub(crate) index: Option<String>,
    /// Use no index
    #[arg(long, conflicts_with = "index", help_heading = RESOURCES)]
    pub(crate) no_index: bool,
}

impl IndexArgs {
    /// Where the indexes are; `None` if none is used.
    pub(crate) fn place(&self) -> Option<IndexPlace> {
        if self.no_index {
            return None;
        }
        Some(place_in(self.index.clone()))
    }
}

/// The indexes of a folder; those beside shards without one.
pub(crate) fn place_in(folder: Option<String>) -> IndexPlace {
    folder.map_or(IndexPlace::Beside, IndexPlace::Folder)
}
