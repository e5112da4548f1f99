//! Speculative conversion: one pass with the columns of a sample, in place of inference and
//! conversion.
//!
//! The columns of a conversion must fit all records. A sample usually determines them, and a
//! summary that is [settled](tfarrow_codec::Summary::is_settled) can be verified during the
//! conversion: every record that would change the columns does not fit them. If such a misfit is
//! found, no output has its name yet. The outputs are dropped, and the conversion runs in two
//! passes. The result is the same in both cases, except that the values of the sample, or all
//! values, decide whether a column is text or bytes.
//!
//! The parts of a conversion, which run in processes of their own, cannot go back: each of them
//! uses the columns of the same sample of all shards. If these are settled, and every record of
//! every part fits them, they are the columns of all records. A part with a misfit fails, and so
//! does the conversion.

use tfarrow_codec::OnError;
use tfarrow_scan::{Inferred, SAMPLE_RECORDS, Sample};

use crate::{
    ConvertOptions, Error, Reshard, Result, journal::Journal, output::Destination,
    plan::setup::Conversion, worker::job::JobTotals,
};

/// Converts with the columns of a sample. `None` if that is not safe, or a record does not fit.
///
/// # Errors
/// As [`Conversion::convert`], except for a record that does not fit the sample.
pub(crate) fn run(conversion: &Conversion<'_>) -> Result<Option<(JobTotals, Inferred)>> {
    let Some(inferred) = columns(conversion) else {
        return Ok(None);
    };
    match conversion.convert(Some(&inferred)) {
        // If the sample was the complete data set, the columns are certain, and the error is the
        // record's.
        Err(error) if error.is_misfit() && inferred.sampled.is_some() => Ok(None),
        result => result.map(|totals| Some((totals, inferred))),
    }
}

/// The columns of a sample; `None` if a conversion with them is not safe.
pub(crate) fn columns(conversion: &Conversion<'_>) -> Option<Inferred> {
    if is_possible(conversion) {
        sample(conversion)
    } else {
        None
    }
}

/// Converts the shards of a part with the columns of a sample of all shards.
///
/// # Errors
/// As [`columns_of_part`] and [`Conversion::convert`], and [`Error::PartColumns`] for a record that
/// does not fit the sample.
pub(crate) fn run_part(conversion: &Conversion<'_>) -> Result<(JobTotals, Inferred)> {
    let inferred = columns_of_part(conversion)?;
    match conversion.convert(Some(&inferred)) {
        Err(error)
            if error.is_misfit()
                && !matches!(error, Error::Differs { .. })
                && inferred.sampled.is_some() =>
        {
            Err(Error::PartColumns {
                misfit: Box::new(error),
            })
        }
        result => result.map(|totals| (totals, inferred)),
    }
}

/// The columns that all parts of a conversion have: those of the sample of the options, or those
/// that a sample has and all records must have.
///
/// # Errors
/// [`Error::UnsettledColumns`] if all records may have other columns, and those of
/// [`Conversion::infer`].
pub(crate) fn columns_of_part(conversion: &Conversion<'_>) -> Result<Inferred> {
    let options = conversion.options;
    let (sample, is_stated) = match options.sample {
        Sample::All => (Sample::Records(SAMPLE_RECORDS), false),
        sample => (sample, true),
    };
    let inferred = conversion.infer(sample, &|_| ())?;
    // Where corrupt records are skipped, so would be a record that does not fit.
    let is_certain = inferred.sampled.is_none()
        || options.read.on_error == OnError::Fail
            && inferred
                .summary
                .is_settled(options.layout, options.record_type);
    if is_certain || is_stated {
        Ok(inferred)
    } else {
        Err(Error::UnsettledColumns {
            why: why_unsettled(&inferred, options),
        })
    }
}

/// Returns why a sample does not determine the columns of all records.
fn why_unsettled(inferred: &Inferred, options: &ConvertOptions) -> String {
    let summary = &inferred.summary;
    let record_type = options.record_type.unwrap_or_else(|| summary.record_type());
    match summary.first_unsettled(options.layout, record_type) {
        _ if options.read.on_error == OnError::Skip => {
            "a record that does not fit them would be skipped".to_owned()
        }
        Some(feature) => {
            format!(
                "no record of the sample has a value that decides the type of feature {:?}",
                feature.name
            )
        }
        None => format!(
            "its records are {}, whose columns depend on all of them",
            record_type.name()
        ),
    }
}

/// Infers the columns from a sample; `None` if a misfit would not prove them wrong. The pass over
/// all records reports errors of the sample.
fn sample(conversion: &Conversion<'_>) -> Option<Inferred> {
    let inferred = conversion
        .infer(Sample::Records(SAMPLE_RECORDS), &|_| ())
        .ok()?;
    let options = conversion.options;
    let is_certain = inferred.sampled.is_none()
        || inferred
            .summary
            .is_settled(options.layout, options.record_type);
    is_certain.then_some(inferred)
}

/// Whether outputs can be dropped after a misfit, and misfits are found.
fn is_possible(conversion: &Conversion<'_>) -> bool {
    // Bytes that were written to a stream cannot be taken back.
    let is_stream = conversion
        .outputs
        .iter()
        .any(|(_, output)| *output == Destination::Stream);
    let failed_before = conversion.journal.is_some_and(Journal::speculation_failed);
    // A record that does not fit would be skipped.
    let skips = conversion.options.read.on_error == OnError::Skip;
    // A number of shards requires the number of records, which inference counts.
    let needs_count = matches!(conversion.options.reshard, Some(Reshard::Shards(_)))
        && conversion.choice.is_empty();
    !is_stream && !failed_before && !skips && !needs_count
}
