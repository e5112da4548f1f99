//! Repair of TFRecord files: a conversion from TFRecord to TFRecord that skips corrupt records.

use std::{ffi::OsStr, path::Path};

use tfarrow_codec::OnError;
use tfarrow_dataset::{
    FormatFilter, ReadOptions, ShardFormat, internals::Payload, resolve_filtered,
};

use crate::{
    ConvertOptions, Error, OutputCompression, Progress, Result, Target, TimestampUnit,
    convert::{ConvertReport, convert_resolved},
};

/// Copies the valid records of TFRecord shards to shards of the same names and compression. Skips
/// corrupt records and bytes, and [reports](ConvertReport::damage) them. Options about columns are
/// ignored.
///
/// # Errors
/// As [`convert`](crate::convert()), except for corrupt records.
pub fn repair<S: AsRef<OsStr>>(
    sources: &[S],
    dest: &Path,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let mut found = resolve_filtered(sources, FormatFilter::TfRecord)?;
    if let Some(shard) = found
        .shards
        .iter()
        .find(|shard| shard.format != ShardFormat::TfRecord)
    {
        let path = shard.path.display();
        let format = shard.format.name();
        return Err(Error::Usage(format!(
            "{path}: is {format}; only TFRecord files can be repaired"
        )));
    }
    // Valid records are kept byte for byte, without the features of folders.
    for shard in &mut found.shards {
        *shard = shard.clone().without_folder_columns();
    }
    let options = ConvertOptions {
        to: Some(Target::TfRecord),
        compression: Some(OutputCompression::Original),
        compression_level: None,
        // A truncated last event is reported, unless it is to be ignored.
        read: ReadOptions {
            on_error: OnError::Skip,
            ..options.read.of_payload(Payload::Unknown)
        },
        columns: Vec::new(),
        exclude: Vec::new(),
        partition_by: Vec::new(),
        timestamp_unit: TimestampUnit::Nanoseconds,
        bloom_filters: Vec::new(),
        page_index: true,
        ..options.clone()
    };
    convert_resolved(found, dest, &options, progress)
}
