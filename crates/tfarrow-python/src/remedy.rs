//! Remedies as arguments and calls of the package. The libraries return remedies as data.

use tfarrow_codec::{RecordType, Remedy};
use tfarrow_datafusion::sql_rewrite;

/// The syntax of remedies in errors and warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Arguments of the package.
    Arguments,
    /// Statements and options of SQL.
    Sql,
}

/// The remedies as the end of a message; empty if there are none.
pub(crate) fn sentence(remedies: &[Remedy]) -> String {
    let words: Vec<_> = remedies.iter().map(words).collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("; {}", words.join(", or "))
    }
}

fn words(remedy: &Remedy) -> String {
    let words = match remedy {
        Remedy::RaiseLimit(limit) => return format!("limits={{\"{limit}\": N}} allows more"),
        Remedy::ReadAs(RecordType::Raw) => "record_type=\"raw\" reads the records as they are",
        Remedy::ReadAs(record_type) => {
            return format!("record_type=\"{record_type}\" reads them as such");
        }
        Remedy::StateRecordType => "record_type states what the records are",
        Remedy::NewerDescriptor => "a newer proto may define the field",
        Remedy::SampleAll => "sample=\"all\" infers the columns from all records",
        Remedy::StateColumns => {
            "schema states the columns; tfarrow.schema infers them from all records"
        }
        Remedy::WidenToList => "layout=\"list\" or a larger sample reads it",
        Remedy::WidenToBinary => "layout=\"list\" or a larger sample reads it as bytes",
        Remedy::SplitKinds => "on_conflict=\"split\" gives each kind a column",
        Remedy::SkipErrors => "on_error=\"skip\" skips them",
        Remedy::Repair => {
            "on_error=\"skip\" skips it, or tfarrow.repair recovers the other records"
        }
        Remedy::RepairTfRecord => "if it was TFRecord, tfarrow.repair recovers its records",
        Remedy::WriteAs(record_type) => return format!("record_type=\"{record_type}\" writes it"),
        Remedy::AllowLossy => "lossy=True allows the change",
        Remedy::Rewrite { column, with } => {
            return format!("in tfarrow.sql, {}", sql_rewrite(column, with));
        }
        Remedy::Overwrite => "overwrite=True replaces it",
        Remedy::Resume => "resume=True continues it",
        Remedy::StartOver => "overwrite=True begins again",
        Remedy::StateFormat => "to=\"parquet\", \"arrow\" or \"tfrecord\" states the format",
        Remedy::WriteArrow => "to=\"arrow\" keeps their number",
        Remedy::WriteSchema => "the command tfarrow schema --format json writes one",
        Remedy::RaiseOpenFiles => "raise the limit of open files, e.g. with resource.setrlimit",
    };
    words.to_owned()
}
