//! Options of several commands: how records are read.

use std::str::FromStr;

use clap::Args;
use tfarrow_codec::{Layout, Limit, Limits, OnError, RecordType};
use tfarrow_dataset::{PartialTail, ReadOptions, Sample};

use super::{
    headings::{COLUMNS, DAMAGE, RESOURCES},
    values::{Auto, limit, limits, named, record_type},
};

/// How records are read as columns.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reading {
    /// How features become columns
    #[arg(long, value_parser = named::<Layout>(), default_value_t, help_heading = COLUMNS)]
    pub(crate) layout: Layout,
    /// Type of the records
    #[arg(long, value_name = "TYPE", value_parser = record_type(), default_value = "auto", help_heading = COLUMNS)]
    pub(crate) record_type: Auto<RecordType>,
}

/// How much of a data set is read, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct Looking {
    /// Read only up to N records of each of up to 16 shards
    #[arg(long, value_name = "N|all", value_parser = Sample::from_str, default_value = "all", help_heading = COLUMNS)]
    pub(crate) sample: Sample,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

/// How corrupt, unfinished or hostile TFRecord is read.
#[derive(Clone, Debug, Args)]
pub(crate) struct DamageArgs {
    /// How to handle corrupt or non-conforming records: stop, or skip, report the count and exit with status 3
    #[arg(long, value_name = "ACTION", value_parser = named::<OnError>(), default_value_t, help_heading = DAMAGE)]
    pub(crate) on_error: OnError,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}

/// Where reading ends.
#[derive(Clone, Debug, Args)]
pub(crate) struct Bounds {
    /// How to handle a truncated last record
    #[arg(long, value_name = "ACTION", value_parser = named::<PartialTail>(), default_value_t, help_heading = DAMAGE)]
    pub(crate) partial_tail: PartialTail,
    /// Override a resource limit (repeatable), such as record-bytes=64MB
    #[arg(long, value_name = "NAME=N", value_parser = limit, long_help = limits(), help_heading = RESOURCES)]
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
