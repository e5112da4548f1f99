//! Arguments of `head`.

use clap::Args;
use tfarrow_codec::RecordType;

use super::{
    headings::{COLUMNS, OUTPUT},
    index::IndexArgs,
    reading::{Bounds, MessageArgs},
    values::{Auto, record_type},
};

/// Arguments of `head`.
#[derive(Debug, Args)]
#[command(after_help = "\
A record is one line. Features are lists, as they are in the record; absent features are left out.
  tf.Example            {\"label\": [3], \"city\": [\"Oslo\"]}
  tf.SequenceExample    {\"context\": {\"id\": [1]}, \"feature_lists\": {\"token\": [[\"a\"], [\"b\", \"c\"]]}}
  any other payload     {\"record\": \"text\"}
With --proto and --message, and in files of TensorBoard, a record is an object of the fields of the message; fields without \
a value are left out.
A feature (or step) without a kind is {\"unset\": true}. Bytes are text where they are UTF-8, else \
{\"b64\": \"..\"}; long ones are named only (\"<JPEG 112 kB>\"), and long lists and texts are cut, unless --full is given.

Examples:
  tfarrow head shards/ -n 3
  tfarrow head shards/ --record 5000000 -n 3
  tfarrow head shards/train-00000-of-00004.tfrecord --full | jq .label
  zcat a.tfrecord.gz | tfarrow head - -n 1
  tfarrow head motion.tfrecord --proto scenario.desc --message waymo.open_dataset.Scenario")]
pub(crate) struct Head {
    /// Files, folders, globs, or - for standard input
    #[arg(value_name = "SRC", required = true)]
    pub(crate) sources: Vec<String>,
    /// Number of records
    #[arg(short = 'n', long = "records", value_name = "N", default_value_t = 10, help_heading = OUTPUT)]
    pub(crate) records: usize,
    /// Number of the first record, from 0, in the order of the files; with an index of each file,
    /// those before it are not read
    #[arg(long = "record", value_name = "K", default_value_t = 0, help_heading = OUTPUT)]
    pub(crate) first: u64,
    /// Print long values in full
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) full: bool,
    /// Type of the records
    #[arg(long, value_name = "TYPE", value_parser = record_type(), default_value = "auto", help_heading = COLUMNS)]
    pub(crate) record_type: Auto<RecordType>,
    #[command(flatten)]
    pub(crate) message: MessageArgs,
    #[command(flatten)]
    pub(crate) indexes: IndexArgs,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
}
