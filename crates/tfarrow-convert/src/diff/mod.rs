//! Comparison of two data sets of any format and sharding, record by record and feature by feature.
//!
//! ```text
//! sources ─▶ Side: records, read ahead ─┬▶ in_order: by position ─┬▶ rules: two records ─▶ DataSetDiff
//!            one thread each            └▶ by_key: by features ───┴▶ unmatched: files of records without a partner
//! ```

use std::{ffi::OsStr, ops::ControlFlow};

use tfarrow_codec::{RecordType, schema::record_type_of};
use tfarrow_columnar::{TextColumns, schema_within, unify_text};
use tfarrow_dataset::{
    FormatFilter, Resolved, Shard,
    internals::{check_one_payload, tfds_splits},
    resolve_filtered,
};
use tfarrow_scan::{InferOptions, SAMPLE_RECORDS, Sample, infer};

use self::{rules::Rules, sides::Sources, unmatched::Unmatched};
use crate::{Error, Progress, Result};

mod by_key;
mod in_order;
mod records;
mod report;
mod rules;
mod sides;
mod unmatched;

pub use self::report::{
    DataSetDiff, DiffOptions, KeyReport, OtherFiles, RecordDifference, RecordPosition,
};

/// Compares the records of two data sets. Without key features, they are compared in order, reading
/// each once; at a mismatch, up to 1,000 records ahead are searched for an insertion or deletion.
///
/// # Errors
/// Data sets that cannot be read, and records that cannot be compared.
pub fn diff<S: AsRef<OsStr>>(
    left: &[S],
    right: &[S],
    options: &DiffOptions,
    progress: &Progress,
) -> Result<DataSetDiff> {
    let found = [
        resolve_filtered(left, FormatFilter::Any)?,
        resolve_filtered(right, FormatFilter::Any)?,
    ];
    let [left, right] = found.map(
        |Resolved {
             shards,
             skipped_files,
             missing,
         }| {
            let splits = tfds_splits(&shards);
            (
                shards,
                OtherFiles {
                    skipped_files,
                    missing,
                    splits,
                },
            )
        },
    );
    let mut shards = [left.0, right.0];
    let other_files = [left.1, right.1];
    for shard in shards.iter_mut().flatten() {
        shard.spool()?;
        if shard.is_remote() {
            shard.spool_columnar()?;
        }
    }
    unify_text(
        &shards.concat(),
        TextColumns::OfFile,
        InferOptions::default().threads,
        &|_, _| progress.flow(),
    )?;
    let mut unmatched = Unmatched::new(options)?;
    let (record_type, why_raw) = record_type(&shards, options)?;
    check_raw(record_type, why_raw.as_deref(), options)?;
    let rules = Rules::new(record_type, options)?;
    let sources = Sources {
        shards,
        record_type,
        progress,
    };
    progress.restart(sources.bytes());
    let found = if options.on.is_empty() {
        let max = options.max_differences;
        let (found, skipped) = sources.read(options, |sides| {
            in_order::compare(sides, rules, &mut unmatched, max, progress)
        })?;
        DataSetDiff { skipped, ..found }
    } else {
        by_key::compare(&sources, rules, &mut unmatched, options)?
    };
    unmatched.finish()?;
    Ok(DataSetDiff {
        why_raw,
        other_files,
        ..found
    })
}

/// Checks that no option about features would be ignored because records are compared as bytes.
fn check_raw(record_type: RecordType, why_raw: Option<&str>, options: &DiffOptions) -> Result<()> {
    let of_features = [
        (!options.on.is_empty(), "keys"),
        (!options.exclude.is_empty(), "excluded features"),
        (options.tolerance.is_some(), "a tolerance"),
    ];
    match of_features
        .into_iter()
        .find(|(is_set, _)| *is_set && record_type == RecordType::Raw)
    {
        None => Ok(()),
        Some((_, option)) => {
            let why = why_raw.map_or(String::new(), |why| format!("; {why}"));
            Err(Error::Usage(format!(
                "{option} need features, and raw records have none{why}"
            )))
        }
    }
}

/// The type of the records of both data sets, and the reason if it was inferred to be raw.
fn record_type(
    sides: &[Vec<Shard>; 2],
    options: &DiffOptions,
) -> Result<(RecordType, Option<String>)> {
    if let Some(record_type) = options.record_type {
        if record_type != RecordType::Raw {
            sides
                .iter()
                .try_for_each(|shards| check_one_payload(shards))?;
        }
        return Ok((record_type, None));
    }
    let mut types = Vec::new();
    let mut why_raw = None;
    for shards in sides {
        match type_in_metadata(shards, options)? {
            Some(RecordType::Raw) => return Ok((RecordType::Raw, None)),
            Some(record_type) => types.push(record_type),
            None => {
                let sample = Sample::Records(SAMPLE_RECORDS);
                let options = InferOptions {
                    sample,
                    record_type: options.record_type,
                    read: options.read,
                    ..InferOptions::default()
                };
                let inferred = infer(shards, &options, &|_, _| ControlFlow::Continue(()))?;
                let why = inferred.why_raw();
                // An empty data set does not determine the type.
                let is_known = why.is_none() && inferred.summary.records() > 0;
                types.extend(Some(inferred.summary.record_type()).filter(|_| is_known));
                why_raw = why_raw.or(why);
            }
        }
    }
    // If the records of one data set are messages, those of the other that do not parse are corrupt
    // messages.
    Ok(
        match types
            .iter()
            .max_by_key(|record_type| **record_type == RecordType::SequenceExample)
        {
            Some(record_type) => (*record_type, None),
            None if why_raw.is_some() => (RecordType::Raw, why_raw),
            None => (RecordType::Example, None),
        },
    )
}

/// The record type in the metadata of the first file of another format than TFRecord; `None` if
/// there is no such file.
fn type_in_metadata(shards: &[Shard], options: &DiffOptions) -> Result<Option<RecordType>> {
    let schemas = shards
        .iter()
        .filter_map(|shard| schema_within(shard, &options.read.limits).transpose());
    let schemas = schemas.collect::<tfarrow_dataset::Result<Vec<_>>>()?;
    Ok(schemas.first().map(|schema| record_type_of(schema)))
}
