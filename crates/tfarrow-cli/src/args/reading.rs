//! Options of several commands: how records are read.

use std::{path::PathBuf, str::FromStr};

use clap::Args;
use tfarrow_codec::{Layout, Limit, Limits, MessageType, OnError, RecordType};
use tfarrow_dataset::{
    PartialTail, ReadOptions, Result, Shard, ShardFormat, event_message, internals::are_events,
    load_message,
};
use tfarrow_scan::Sample;

use super::{
    headings::{COLUMNS, DAMAGE, RESOURCES},
    values::{Auto, limit, limits, named, record_type},
};
use crate::error::Usage;

/// How records are read as columns.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reading {
    /// How features become columns
    #[arg(long, value_parser = named::<Layout>(), default_value_t, conflicts_with = "message", help_heading = COLUMNS)]
    pub(crate) layout: Layout,
    /// Type of the records
    #[arg(long, value_name = "TYPE", value_parser = record_type(), default_value = "auto", help_heading = COLUMNS)]
    pub(crate) record_type: Auto<RecordType>,
    #[command(flatten)]
    pub(crate) message: MessageArgs,
}

/// The type of records that are messages of any type.
#[derive(Clone, Debug, Args)]
pub(crate) struct MessageArgs {
    /// File that defines the messages: a FileDescriptorSet (protoc
    /// --include_imports --descriptor_set_out), or a .proto source
    #[arg(long, value_name = "FILE", requires = "message", help_heading = COLUMNS)]
    pub(crate) proto: Option<PathBuf>,
    /// Type of the records: a message that this file defines, such as waymo.open_dataset.Scenario,
    /// or tensorflow.Event
    #[arg(long, value_name = "NAME", conflicts_with = "record_type", help_heading = COLUMNS)]
    pub(crate) message: Option<String>,
}

impl MessageArgs {
    /// Loads the type of the messages; `None` if the command line does not name one.
    ///
    /// # Errors
    /// The errors of [`load_message`].
    pub(crate) fn load(&self) -> Result<Option<MessageType>> {
        self.message
            .as_ref()
            .map(|message| load_message(self.proto.as_deref(), message))
            .transpose()
    }

    /// Returns an error for a file whose records are no messages: one of another format than
    /// TFRecord.
    ///
    /// # Errors
    /// The command line names a message, and the format of the shard is known and is another one
    /// than TFRecord.
    pub(crate) fn check(&self, shard: &Shard) -> std::result::Result<(), Usage> {
        if self.message.is_none() || shard.is_stream() || shard.format == ShardFormat::TfRecord {
            return Ok(());
        }
        let path = shard.path.display();
        let format = shard.format;
        Err(Usage(format!(
            "--message applies to TFRecord sources only, and {path} is {format}"
        )))
    }

    /// Loads the type of the messages that the command line names, or that of TensorBoard's files,
    /// unless the command line states another type of the records.
    ///
    /// # Errors
    /// The errors of [`load_message`].
    pub(crate) fn of(
        &self,
        shards: &[Shard],
        record_type: Auto<RecordType>,
    ) -> Result<Option<MessageType>> {
        match self.load()? {
            None if record_type.is_none() && are_events(shards) => event_message().map(Some),
            message => Ok(message),
        }
    }
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
    /// How to handle corrupt or non-conforming records: stop, or skip, report the count and exit
    /// with status 3
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
        ReadOptions {
            on_error,
            partial_tail: self.partial_tail,
            limits,
            ..ReadOptions::default()
        }
    }
}

impl DamageArgs {
    /// How files are read.
    pub(crate) fn read(&self) -> ReadOptions {
        self.bounds.read(self.on_error)
    }
}
