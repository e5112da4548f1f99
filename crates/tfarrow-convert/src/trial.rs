//! Converting by a sample, on trial: one pass over the data where inference and conversion are two.
//!
//! Columns are what all records say. But most data sets are what their first records are, and a summary that is
//! [settled](tfarrow_codec::Summary::is_settled) can be proven right while everything is converted by it: a record that
//! would have changed the columns is one that does not fit them. Where one is met, all is undone, and done in two passes:
//! the output is the same either way. So nothing may be tried that cannot be undone.

use std::fs;

use tfarrow_dataset::{Inferred, SAMPLE_RECORDS, Sample};

use crate::{
    Error, Recut, Result,
    job::{self, Done},
    run::Conversion,
    sink::Destination,
};

/// What was done, or `None` where it takes two passes.
pub(crate) fn run(conversion: &Conversion<'_>) -> Result<Option<Done>> {
    let Some(inferred) = sample(conversion).filter(|_| can_be_undone(conversion)) else { return Ok(None) };
    let (done, result) = job::run(conversion.jobs(Some(&inferred))?, conversion.options.jobs.max(1));
    match result {
        Ok(()) => Ok(Some(done)),
        Err(error) if error.is_misfit() => undo(&done).map(|()| None),
        Err(error) => Err(error),
    }
}

/// What a sample says, where that can stand for everything. What is wrong with it is told by the pass over everything.
fn sample(conversion: &Conversion<'_>) -> Option<Inferred> {
    let inferred = conversion.infer(Sample::Records(SAMPLE_RECORDS), &|_| ()).ok()?;
    let options = conversion.options;
    inferred.summary.is_settled(options.layout, options.record_type).then_some(inferred)
}

/// Whether outputs can be taken back. What went down a pipe cannot, nor a file that another has replaced: of several
/// outputs some have their names before the others fail. Shards of equal length have to be counted first, which a pass
/// over everything does.
fn can_be_undone(conversion: &Conversion<'_>) -> bool {
    let alone = conversion.outputs.len() == 1;
    let can = |output: &Destination| matches!(output, Destination::File(path) if alone || !path.exists());
    !matches!(conversion.options.recut, Some(Recut::Shards(_))) && conversion.outputs.iter().all(can)
}

fn undo(done: &Done) -> Result<()> {
    done.outputs.iter().try_for_each(|output| match output {
        Destination::File(path) => fs::remove_file(path).map_err(|e| Error::io(path, e)),
        Destination::Stdout => Ok(()),
    })
}
