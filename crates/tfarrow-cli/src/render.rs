//! The texts of the program as strings, for programs that embed tfarrow.
//!
//! The functions take the results of the libraries, and return what the commands print for them on
//! standard output, without a line feed at the end. They do not print. Tables are narrowed to
//! `width` characters if it is given, as on a terminal of that width. Texts have no terminal
//! styles. Warnings and error messages name no option of the program: the remedies for errors are
//! data ([`Remedy`](tfarrow_codec::Remedy)), which the embedding program words itself.
//!
//! | command | text | warnings |
//! |---|---|---|
//! | `schema` | [`schema_text`], of an [`InferredSchema`], or [`message_schema_text`] | [`schema_warnings`], [`schema_omissions`] |
//! | `stats` | [`statistics_text`], [`sliced_statistics_text`], [`statistics_json`] | [`record_warnings`] |
//! | `validate` | [`validation_text`], [`validation_json`] | [`record_warnings`] |
//! | `report` | [`report_page`] | [`record_warnings`] |
//! | `verify` | [`verify_text`], [`verify_json`] | |
//! | `convert` | [`conversion_json`], [`plan_text`], [`plan_json`] | [`rounded_text`] |
//! | `repair` | [`faults_text`], [`faults_summary`] | |
//! | `diff` | [`diff_text`], [`diff_json`] | |

use std::{error::Error, path::Path};

use anyhow::Result;
use tfarrow_codec::MessageType;
use tfarrow_convert::{ConversionPlan, ConvertReport, DataSetDiff};
use tfarrow_dataset::{DamageReport, MissingShards, ReadOptions, Shard, SkippedFiles, TfdsSplit};
use tfarrow_scan::{Inferred, Verified};
use tfarrow_stats::{
    Comparison, DatasetStatistics, Distance, PartError, RecordProfile, Validation, proto::Schema,
};

pub use crate::{
    args::SchemaFormat,
    commands::{part_settings::PartSettings, schema::InferredSchema, stats::StatisticsReport},
};
use crate::{
    commands::{
        convert, diff, dry_run, faults::FaultReport, inspect, partial, report, schema, stats,
        validate, verify,
    },
    error,
    output::{self, Screen},
    page, stderr,
    text::escape,
};

/// Returns the schema in a format. The statement of [`SchemaFormat::Sql`] reads `sources`; no other
/// format uses them.
///
/// # Errors
/// [`SchemaFormat::Pbtxt`], which depends on the values: see
/// [`Statistics::infer_schema`](tfarrow_stats::Statistics::infer_schema).
/// [`SchemaFormat::FeaturesJson`] for records that are not `tf.Example` messages.
pub fn schema_text(
    found: &InferredSchema,
    format: SchemaFormat,
    sources: &[String],
    width: Option<usize>,
) -> Result<String> {
    schema::text(found, format, sources, Screen::plain(width))
}

/// Returns the schema of messages, such as TensorBoard's events, in a format.
///
/// # Errors
/// A format that describes features of `tf.Example` records.
pub fn message_schema_text(
    message: &MessageType,
    schema: &arrow_schema::Schema,
    format: SchemaFormat,
    width: Option<usize>,
) -> Result<String> {
    schema::message_text(message, schema, format, Screen::plain(width))
}

/// Returns the warnings about records that were skipped or do not parse; without such records,
/// about features that have no column because they have more than one kind.
pub fn schema_warnings(found: &InferredSchema) -> Vec<String> {
    schema::warnings(found, skipped).0
}

/// Returns the features that a format leaves out, with the reasons. There are some for
/// [`SchemaFormat::FeaturesJson`] only.
pub fn schema_omissions(found: &InferredSchema, format: SchemaFormat) -> Vec<String> {
    schema::omissions(found, format)
}

/// Returns the warnings about records that were skipped, and about records that are taken as raw.
pub fn record_warnings(inferred: &Inferred) -> Vec<String> {
    inspect::warnings(inferred, skipped).0
}

/// Returns the statistics as tables.
pub fn statistics_text(figures: &DatasetStatistics, width: Option<usize>) -> String {
    stats::tables(figures, Screen::plain(width))
}

/// Returns the statistics of a data set and of its slices as tables.
pub fn sliced_statistics_text(report: &StatisticsReport, width: Option<usize>) -> String {
    report.text(Screen::plain(width))
}

/// Returns the statistics as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn statistics_json(report: &StatisticsReport) -> Result<String> {
    Ok(output::pretty(report)?)
}

/// Returns the anomalies and the distances from a baseline as text.
pub fn validation_text(found: &Validation, distances: &[Distance], width: Option<usize>) -> String {
    validate::ValidationReport { found, distances }.text(Screen::plain(width))
}

/// Returns the anomalies and the distances from a baseline as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn validation_json(found: &Validation, distances: &[Distance]) -> Result<String> {
    Ok(validate::ValidationReport { found, distances }.json()?)
}

/// Reads a schema from a file in text format, such as a `schema.pbtxt`.
///
/// # Errors
/// The file cannot be read, or is not a schema in text format.
pub fn read_schema(path: &Path) -> Result<Schema> {
    validate::read_schema(path)
}

/// Returns the cause of an error of a part, which has a place and remedies, or else the error.
pub fn part_error(error: PartError) -> anyhow::Error {
    partial::cause(error)
}

/// Checks that each of several processes can read the shards of a data set.
///
/// # Errors
/// Standard input or a pipe, which can be read only once.
pub fn check_part_sources(shards: &[Shard]) -> Result<()> {
    Ok(partial::check_sources(shards)?)
}

/// The page of a report.
#[derive(Clone, Debug)]
pub struct ReportPage {
    /// The page as HTML.
    pub html: String,
    /// The warning about events that cannot be decoded and are not in the curves.
    /// [`record_warnings`] has the others.
    pub warning: Option<String>,
}

/// Returns the report on the data set of these shards, none of which may be a stream. A
/// [`RecordProfiler`](tfarrow_stats::RecordProfiler) collects the profile while the data set is
/// compared. TensorBoard's event files are read again, for their curves.
///
/// # Errors
/// Event files that cannot be read.
pub fn report_page(
    title: &str,
    compared: &Comparison,
    profile: &RecordProfile,
    shards: &[Shard],
    read: &ReadOptions,
) -> Result<ReportPage> {
    let curves = report::curves(compared, profile, shards, read)?;
    let html = report::html(title, compared, profile, shards, &curves, skipped);
    Ok(ReportPage {
        html,
        warning: curves.note(),
    })
}

/// Returns the default title of a report: the first source, and the number of others.
pub fn report_title(sources: &[String]) -> String {
    page::title(sources)
}

/// Returns the notes about files in folders that were skipped and may contain data, about missing
/// shards, and about several splits of TFDS.
pub fn source_notes(
    skipped_files: &SkippedFiles,
    missing: &[MissingShards],
    splits: &[TfdsSplit],
) -> Vec<String> {
    stderr::source_notes(skipped_files, missing, splits)
}

/// Returns the faults that are kept, one a line; empty if there are none.
pub fn faults_text(damage: &DamageReport) -> String {
    FaultReport { files: &[], damage }.text(Screen::plain(None))
}

/// Returns the result of `verify` as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn verify_json(
    verified: &Verified,
    skipped_files: &SkippedFiles,
    missing: &[MissingShards],
) -> Result<String> {
    Ok(output::pretty(&verify::json(
        verified,
        skipped_files,
        missing,
    ))?)
}

/// Returns the faults that `verify` found, one a line, and a summary.
pub fn verify_text(verified: &Verified) -> String {
    let faults = faults_text(&verified.damage);
    let separator = if faults.is_empty() { "" } else { "\n" };
    format!("{faults}{separator}{}", verify::summary(verified))
}

/// Returns the number of faults by kind, such as `3 faults (2 data, 1 length)`.
pub fn faults_summary(damage: &DamageReport) -> String {
    FaultReport { files: &[], damage }.summary()
}

/// Returns the summary of a conversion to `dest` as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn conversion_json(dest: &Path, report: &ConvertReport) -> Result<String> {
    Ok(output::pretty(&convert::json(dest, report))?)
}

/// Returns the note about floats of text that a conversion rounded; empty if there are none.
pub fn rounded_text(report: &ConvertReport) -> String {
    convert::rounded_text(&report.rounded)
}

/// Returns the plan of a conversion as tables.
pub fn plan_text(plan: &ConversionPlan, width: Option<usize>) -> String {
    dry_run::text(plan, Screen::plain(width))
}

/// Returns the plan of a conversion to `dest` as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn plan_json(dest: &Path, plan: &ConversionPlan) -> Result<String> {
    Ok(output::pretty(&dry_run::json(dest, plan))?)
}

/// Returns the first differences of two data sets, the number of differences of each feature, and a
/// summary.
pub fn diff_text(names: [&str; 2], found: &DataSetDiff) -> String {
    diff::text(names, found, Screen::plain(None))
}

/// Returns the differences of two data sets as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn diff_json(found: &DataSetDiff) -> Result<String> {
    Ok(output::pretty(&diff::json(found))?)
}

/// Returns an error and its causes as one line, without remedies. Text that a cause repeats is left
/// out.
pub fn message(error: &(dyn Error + 'static)) -> String {
    error::message(error)
}

/// The report of skipped records, without remedies.
fn skipped(skipped: &DamageReport) -> String {
    escape(&skipped.to_string())
}
