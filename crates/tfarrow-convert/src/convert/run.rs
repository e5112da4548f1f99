//! The steps of a conversion after its checks: inference of the columns, and the jobs.

use tfarrow_dataset::{DamageReport, SkippedFiles};
use tfarrow_scan::{Inferred, Sample};

use super::{report::ConvertReport, speculative};
use crate::{Result, plan::setup::Conversion, worker::job::JobTotals};

/// Infers the columns if there are none, and converts.
pub(super) fn run(conversion: &Conversion<'_>) -> Result<ConvertReport> {
    let Conversion {
        shards,
        plan,
        options,
        progress,
        ..
    } = conversion;
    let bytes_in = conversion.bytes();
    progress.restart(bytes_in);
    let (totals, inferred) = match infers(conversion) {
        true => infer_and_convert(conversion, bytes_in)
            .map(|(totals, inferred)| (totals, Some(inferred)))?,
        false => (conversion.convert(None)?, None),
    };
    let inferred = inferred.filter(|_| options.record_type.is_none());
    let changes = totals.lossy_changes.into_iter().collect();
    // Where losses are not allowed, the floats of text are the only values of rows that change.
    let rounds = !options.lossy && !conversion.reads_tfrecord();
    let (lossy_changes, rounded) = if rounds {
        (Vec::new(), changes)
    } else {
        (changes, Vec::new())
    };
    Ok(ConvertReport {
        shards: plan.own.len() as u64,
        files: totals.files,
        records: totals.records,
        bytes_in,
        bytes_out: totals.bytes,
        lossy_changes,
        rounded,
        why_raw: inferred.as_ref().and_then(Inferred::why_raw),
        has_strays: inferred.is_some_and(|inferred| inferred.has_strays()),
        sources: shards
            .iter()
            .map(|shard| shard.path.to_string_lossy().into_owned())
            .collect(),
        damage: DamageReport::new(0),
        skipped_files: SkippedFiles::default(),
        missing: Vec::new(),
        splits: Vec::new(),
        kept_outputs: Vec::new(),
        new_folders: Vec::new(),
    })
}

/// The columns that a conversion would begin with: of a sample if that is safe, else of the records
/// of the options; `None` if it infers none.
///
/// # Errors
/// As [`Conversion::infer`].
pub(crate) fn infer_columns(conversion: &Conversion<'_>) -> Result<Option<Inferred>> {
    let Conversion {
        shards,
        options,
        progress,
        ..
    } = conversion;
    if !infers(conversion) {
        return Ok(None);
    }
    if options.part.is_some() {
        return speculative::columns_of_part(conversion).map(Some);
    }
    if options.sample == Sample::All
        && let Some(inferred) = speculative::columns(conversion)
    {
        return Ok(Some(inferred));
    }
    progress.restart(shards.iter().map(|shard| shard.size).sum());
    conversion
        .infer(options.sample, &|bytes| progress.add_bytes(bytes))
        .map(Some)
}

/// Whether the columns are inferred.
fn infers(conversion: &Conversion<'_>) -> bool {
    conversion.decodes() && conversion.options.schema.is_none()
}

/// Converts in one pass with the columns of a sample if that is safe, else in two passes. A part
/// has one pass.
fn infer_and_convert(conversion: &Conversion<'_>, bytes_in: u64) -> Result<(JobTotals, Inferred)> {
    let Conversion {
        options, progress, ..
    } = conversion;
    if options.part.is_some() {
        return speculative::run_part(conversion);
    }
    let infers_all = options.sample == Sample::All;
    if infers_all && let Some(converted) = speculative::run(conversion)? {
        return Ok(converted);
    }
    if let Some(journal) = conversion.journal.filter(|_| infers_all) {
        journal.record_failed_speculation()?;
    }
    progress.restart(bytes_in * (1 + u64::from(infers_all)));
    let inferred = conversion.infer(options.sample, &|bytes| progress.add_bytes(bytes))?;
    Ok((conversion.convert(Some(&inferred))?, inferred))
}
