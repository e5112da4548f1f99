//! Inference over data sets of any format.

use tfarrow_codec::infer::RecordObserver;
use tfarrow_dataset::{InferOptions, Inferred, OnProgress, Result, Shard, infer_observed_by};

use crate::{
    records::RowFiles,
    text_columns::{TextColumns, unify_text},
};

/// Infers a summary of shards of any format. See [`infer_observed`].
///
/// # Errors
/// As [`infer_observed`].
pub fn infer_with(shards: &[Shard], options: &InferOptions, progress: &OnProgress<'_>) -> Result<Inferred> {
    infer_observed(shards, options, progress, || ()).map(|(inferred, _)| inferred)
}

/// Infers a summary of shards of any format, and passes each record to an observer, as
/// [`infer_observed`](tfarrow_dataset::infer_observed) does.
///
/// Rows of other formats than TFRecord are observed as the records that a conversion to TFRecord would write, so that a data set
/// and its conversion have the same summary. The record type is that in the metadata of a file, and otherwise that of the
/// options. Columns that no record can hold are left out, and values are changed where they must be:
/// [`Inferred::losses`] has both.
///
/// # Errors
/// As [`infer_with`](tfarrow_dataset::infer_with). Errors about rows have the kinds [`Rows`](tfarrow_dataset::ErrorKind::Rows)
/// and [`Checksum`](tfarrow_dataset::ErrorKind::Checksum).
pub fn infer_observed<O: RecordObserver + Send>(
    shards: &[Shard],
    options: &InferOptions,
    progress: &OnProgress<'_>,
    observer: impl Fn() -> O + Sync,
) -> Result<(Inferred, Vec<O>)> {
    unify_text(shards, TextColumns::OfFile, options.jobs, progress)?;
    let rows = RowFiles::new(options);
    let (mut inferred, observers) = infer_observed_by(shards, options, progress, &rows, observer)?;
    inferred.losses = rows.into_losses();
    Ok((inferred, observers))
}
