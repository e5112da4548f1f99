//! Checks of the options of a conversion.

use std::collections::HashSet;

use tfarrow_codec::{
    Layout, OnConflict, OnError, RecordType, VerifyCrc,
    schema::{RECORD_COLUMN, record_type_of},
};
use tfarrow_dataset::{Shard, ShardFormat};
use tfarrow_scan::Sample;

use crate::{ConvertOptions, Error, NotASplit, Result, Target, options::is_fraction};

const SEED: &str = "the seed determines which records are a fraction or a split, and neither is wanted; the seed of a random order \
                    is its own";
/// What the sum of fractions may exceed 1 by.
const ROUNDING: f64 = 1e-9;

/// Checks that no option would be ignored, and that the options do not contradict each other.
pub(super) fn check_options(shards: &[Shard], options: &ConvertOptions) -> Result<()> {
    let columnar = shards
        .iter()
        .find(|shard| shard.format != ShardFormat::TfRecord);
    let of_tfrecord = [
        (options.schema.is_some(), "a schema"),
        (options.sample != Sample::All, "a sample"),
        (options.layout != Layout::Auto, "a layout"),
        (options.exact, "the option exact"),
        (
            options.on_conflict != OnConflict::Fail,
            "the option on_conflict",
        ),
    ];
    if let (Some(shard), Some((_, option))) =
        (columnar, of_tfrecord.iter().find(|(is_set, _)| *is_set))
    {
        let path = shard.path.display();
        let format = shard.format.name();
        return Err(Error::Usage(format!(
            "{option} applies to TFRecord sources only, and {path} is {format}"
        )));
    }
    if options.chooses() {
        check_choice(shards, options)?;
    }
    if options.seed.is_some() && options.fraction.is_none() && options.splits.is_empty() {
        return Err(Error::Usage(SEED.to_owned()));
    }
    if options.exact && options.verify_crc != VerifyCrc::Always {
        return Err(Error::Usage(
            "the option exact requires that the CRC of every record is verified".to_owned(),
        ));
    }
    if options.exact && !(options.columns.is_empty() && options.exclude.is_empty()) {
        return Err(Error::Usage(
            "the option exact stores the encoding of complete records, and needs all columns: omit it, or the choice of columns"
                .to_owned(),
        ));
    }
    if options.exact && reads_messages(options) {
        return Err(Error::Usage(
            "messages have no column of exact forms: omit the option exact".to_owned(),
        ));
    }
    if options.quarantine.is_some() && options.read.on_error == OnError::Fail {
        return Err(Error::NoQuarantine);
    }
    if let Some(schema) = &options.schema
        && options.record_type == Some(RecordType::Raw)
        && !matches!(&schema.fields()[..], [field] if field.name() == RECORD_COLUMN)
    {
        return Err(Error::Usage(
            "raw records have one column, `record`, and the schema has others: omit the schema or the record type"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Checks that records can be chosen as the options say.
fn check_choice(shards: &[Shard], options: &ConvertOptions) -> Result<()> {
    for shard in shards {
        if shard.format != ShardFormat::TfRecord {
            let path = shard.path.display();
            let format = shard.format.name();
            let why = "only records of TFRecord files are shuffled, sampled or split: convert it to TFRecord first";
            return Err(Error::Usage(format!("{path}: is {format}; {why}")));
        }
    }
    if !options.partition_by.is_empty() {
        let why = "partition_by keeps folders of sources, which shuffled, sampled or split records do not: convert each folder \
                   by itself";
        return Err(Error::Usage(why.to_owned()));
    }
    if let Some(fraction) = options.fraction
        && !is_fraction(fraction)
    {
        return Err(Error::Usage(
            NotASplit::Fraction(fraction.to_string()).to_string(),
        ));
    }
    let mut names = HashSet::new();
    let mut sum = 0.0;
    for split in &options.splits {
        // Folders of some systems do not tell letters of different cases apart.
        if !names.insert(split.name().to_lowercase()) {
            let name = split.name();
            return Err(Error::Usage(format!("there are two splits {name:?}")));
        }
        sum += split.fraction();
    }
    if sum > 1.0 + ROUNDING {
        return Err(Error::Usage(format!(
            "the splits have {sum:.3} of the records together, which is more than all of them"
        )));
    }
    Ok(())
}

/// Checks that no option of Parquet outputs would be ignored.
pub(super) fn check_parquet_options(target: Target, options: &ConvertOptions) -> Result<()> {
    let of_parquet = [
        (!options.bloom_filters.is_empty(), "Bloom filters"),
        (!options.page_index, "a page index"),
    ];
    match of_parquet.iter().find(|(is_set, _)| *is_set) {
        Some((_, what)) if target != Target::Parquet => Err(Error::Usage(format!(
            "only Parquet files have {what}, and the output format is {}",
            target.name()
        ))),
        _ => Ok(()),
    }
}

/// Whether the columns are those of messages of a type that a descriptor gives.
pub(super) fn reads_messages(options: &ConvertOptions) -> bool {
    options
        .schema
        .as_ref()
        .is_some_and(|schema| record_type_of(schema) == RecordType::Message)
}
