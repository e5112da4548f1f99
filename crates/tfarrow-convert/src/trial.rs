//! Converting by a sample, on trial: one pass over the data where inference and conversion are two.
//!
//! Columns are what all records say. But most data sets are what their first records are, and a summary that is
//! [settled](tfarrow_codec::Summary::is_settled) can be proven right while everything is converted by it: a record that
//! would have changed the columns is one that does not fit them. Where one is met, nothing was named yet, and all is done
//! in two passes: the output is the same either way.

use tfarrow_codec::OnError;
use tfarrow_dataset::{Inferred, SAMPLE_RECORDS, Sample};

use crate::{Reshard, Result, job::JobTotals, journal::Journal, output::Destination, run::Conversion};

/// What was done, or `None` where it takes two passes.
pub(crate) fn run(conversion: &Conversion<'_>) -> Result<Option<(JobTotals, Inferred)>> {
    if !can_be_tried(conversion) {
        return Ok(None);
    }
    let Some(inferred) = sample(conversion) else { return Ok(None) };
    match conversion.convert(Some(&inferred)) {
        // Columns that all records have said are not wrong: a record is.
        Err(error) if error.is_misfit() && inferred.sampled.is_some() => Ok(None),
        done => done.map(|done| Some((done, inferred))),
    }
}

/// What a sample says, where that can stand for everything. What is wrong with it is told by the pass over everything.
fn sample(conversion: &Conversion<'_>) -> Option<Inferred> {
    let inferred = conversion.infer(Sample::Records(SAMPLE_RECORDS), &|_| ()).ok()?;
    let options = conversion.options;
    let stands = inferred.sampled.is_none() || inferred.summary.is_settled(options.layout, options.record_type);
    stands.then_some(inferred)
}

/// What went down a pipe cannot be taken back. Shards of equal length have to be counted first, which a pass over
/// everything does.
fn can_be_tried(conversion: &Conversion<'_>) -> bool {
    let is_pipe = conversion.outputs.contains(&Destination::Stream);
    let speculation_failed = conversion.journal.is_some_and(Journal::speculation_failed);
    // Where records are passed over that do not fit, nothing would prove a sample wrong.
    let skips = conversion.options.read.on_error == OnError::Skip;
    !is_pipe && !speculation_failed && !skips && !matches!(conversion.options.reshard, Some(Reshard::Shards(_)))
}
