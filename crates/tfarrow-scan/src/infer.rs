//! Inference: a summary of the features of a data set, of all shards and on all cores.

use tfarrow_codec::{RecordType, infer::RecordObserver};
use tfarrow_columnar::{TextColumns, unify_text};
use tfarrow_dataset::{
    OnProgress, Result, Shard,
    internals::{are_events, check_one_payload},
};

use crate::{
    inferred::{Inferred, shown_names},
    options::InferOptions,
    sample::{Sample, Sampled, spread},
    scan::{Scanned, scan},
};

/// Infers a summary of shards of any format.
///
/// Rows of other formats than TFRecord are observed as the records that a conversion to TFRecord
/// would write, so that a data set and its conversion have the same summary. The record type is
/// that in the metadata of a file, and otherwise that of the options. Columns that no record can
/// hold are left out, and values are changed where they must be: [`Inferred::losses`] has both.
///
/// Standard input is consumed by this, unless it is [spooled](Shard::spool).
///
/// # Errors
/// The first error in the order of the data set: of reading, or of a record.
/// [`MixedRecords`](tfarrow_dataset::ErrorKind::MixedRecords) if files contain several kinds of
/// records. [`Rows`](tfarrow_dataset::ErrorKind::Rows) and
/// [`Checksum`](tfarrow_dataset::ErrorKind::Checksum) of rows.
/// [`Stopped`](tfarrow_dataset::ErrorKind::Stopped) if `progress` stops the scan.
pub fn infer(
    shards: &[Shard],
    options: &InferOptions,
    progress: &OnProgress<'_>,
) -> Result<Inferred> {
    infer_observed(shards, options, progress, || ()).map(|(inferred, _)| inferred)
}

/// Infers a summary of `shards`, as [`infer()`] does, and passes each record to an observer. Each
/// thread has an observer, which gets a part of the records.
/// [`Place::shard`](tfarrow_codec::Place::shard) is an index of `shards`.
///
/// # Errors
/// As [`infer()`].
pub fn infer_observed<O: RecordObserver + Send>(
    shards: &[Shard],
    options: &InferOptions,
    progress: &OnProgress<'_>,
    observer: impl Fn() -> O + Sync,
) -> Result<(Inferred, Vec<O>)> {
    unify_text(shards, TextColumns::OfFile, options.threads, progress)?;
    if options.record_type != Some(RecordType::Raw) {
        check_one_payload(shards)?;
    }
    let picked = match (options.part, options.sample) {
        (Some(part), _) => part.range(shards).collect(),
        (None, Sample::All) => (0..shards.len()).collect(),
        (None, Sample::Records(_)) => spread(shards),
    };
    let mut read = picked.len();
    let mut scanned = scan(shards, &picked, options, None, progress, &observer)?;
    if scanned.summary.records() == 0 && read < shards.len() && options.part.is_none() {
        // The shards of the sample contain no record, and another shard may.
        let rest: Vec<_> = (0..shards.len())
            .filter(|index| picked.binary_search(index).is_err())
            .collect();
        read = rest.len();
        scanned = scan(shards, &rest, options, None, progress, &observer)?;
    }
    let Scanned {
        summary,
        observers,
        damage: skipped,
        losses,
        is_cut,
        ..
    } = scanned;
    let is_sample = is_cut || (read < shards.len() && options.part.is_none());
    let sampled = is_sample.then(|| Sampled {
        records: summary.records(),
        shards: read,
        of: shards.len(),
    });
    let names = shown_names(shards);
    let mut inferred = Inferred {
        summary,
        names,
        sampled,
        skipped,
        losses,
        is_events: are_events(shards),
    };
    if options.part.is_none() {
        inferred.finish(options.read.on_error);
    }
    Ok((inferred, observers))
}
