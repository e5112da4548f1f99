//! Remedies in SQL. The codec and the data set return remedies as data; this module words them as
//! statements, options and functions.

use arrow_schema::DataType;
use tfarrow_codec::{ErrorKind as CodecErrorKind, RecordType, Remedy, Rewrite};
use tfarrow_dataset::{Error, ErrorKind};

use crate::schema::provenance::SchemaProvenance;

/// Infers the columns from all records.
pub(crate) const SAMPLE_ALL: &str = "SET tfarrow.sample_records = 'all'";

/// The remedies that can be expressed in SQL, as the end of a sentence; `None` if there are none,
/// as for a limit.
pub fn sql_advice(remedies: &[Remedy]) -> Option<String> {
    let words: Vec<_> = remedies.iter().filter_map(words).collect();
    (!words.is_empty()).then(|| words.join(", or "))
}

fn words(remedy: &Remedy) -> Option<String> {
    Some(match remedy {
        Remedy::ReadAs(RecordType::Raw) => {
            "SET tfarrow.record_type = 'raw' reads the records as they are".to_owned()
        }
        Remedy::ReadAs(record_type) => {
            format!("SET tfarrow.record_type = '{record_type}' reads them as such")
        }
        Remedy::StateRecordType => {
            "SET tfarrow.record_type = 'sequence-example' or 'raw' states their type".to_owned()
        }
        Remedy::NewerDescriptor => {
            "OPTIONS (proto 'FILE') with a newer file may define the field".to_owned()
        }
        Remedy::SampleAll => format!("{SAMPLE_ALL} infers the columns from all records"),
        Remedy::WidenToList => "SET tfarrow.layout = 'list' or a declared list reads it".to_owned(),
        Remedy::WidenToBinary => {
            "SET tfarrow.layout = 'list' or a declared binary column reads it".to_owned()
        }
        Remedy::SplitKinds => "SET tfarrow.on_conflict = 'split' gives each a column".to_owned(),
        Remedy::WriteAs(record_type) => format!("OPTIONS (record_type '{record_type}') writes it"),
        Remedy::AllowLossy => "OPTIONS (lossy true) allows the change".to_owned(),
        Remedy::Rewrite { column, with } => sql_rewrite(column, with),
        Remedy::Overwrite => "OPTIONS (overwrite true) replaces it".to_owned(),
        // Options and commands of a program.
        Remedy::RaiseLimit(_)
        | Remedy::StateColumns
        | Remedy::SkipErrors
        | Remedy::Repair
        | Remedy::RepairTfRecord
        | Remedy::Resume
        | Remedy::StartOver
        | Remedy::StateFormat
        | Remedy::WriteArrow
        | Remedy::WriteSchema
        | Remedy::RaiseOpenFiles => return None,
    })
}

/// The SQL that writes other values in place of a column, as the end of a sentence.
///
/// ```
/// use tfarrow_codec::Rewrite;
/// use tfarrow_datafusion::sql_rewrite;
/// let fields = Rewrite::Fields(vec!["x".to_owned(), "y".to_owned()]);
/// assert_eq!(sql_rewrite("p", &fields), r#"SELECT "p"['x'] AS "p.x", "p"['y'] AS "p.y" .. flattens it"#);
/// ```
pub fn sql_rewrite(column: &str, with: &Rewrite) -> String {
    let name = quoted(column);
    match with {
        Rewrite::Cast(to) => format!("SELECT {} AS {name} .. converts it", cast(&name, to)),
        Rewrite::SomeType => "CAST or arrow_cast gives the column a type".to_owned(),
        Rewrite::Unnest => format!("SELECT unnest({name}) AS {name} .. unnests it"),
        Rewrite::Flatten => format!("SELECT flatten({name}) AS {name} .. flattens it"),
        Rewrite::Fields(fields) => {
            let mut selected = Vec::with_capacity(fields.len());
            for field in fields {
                selected.push(format!(
                    "{name}['{}'] AS {}",
                    field.replace('\'', "''"),
                    part_of(column, field)
                ));
            }
            format!("SELECT {} .. flattens it", selected.join(", "))
        }
        Rewrite::MapKeys => {
            format!(
                "SELECT {name}['KEY'] AS {} .. takes out a key",
                part_of(column, "KEY")
            )
        }
        Rewrite::UnionFields => {
            format!(
                "SELECT union_extract({name}, 'FIELD') AS {} .. takes out a field",
                part_of(column, "FIELD")
            )
        }
        Rewrite::Alone => format!("SELECT {name} .. selects it"),
    }
}

/// A cast, with the type's name in SQL if it has one.
fn cast(name: &str, to: &DataType) -> String {
    match to {
        DataType::Int64 => format!("CAST({name} AS BIGINT)"),
        DataType::Float32 => format!("CAST({name} AS FLOAT)"),
        DataType::Utf8 => format!("CAST({name} AS VARCHAR)"),
        to => format!("arrow_cast({name}, '{to}')"),
    }
}

/// The quoted name of the column of a part of a column.
fn part_of(column: &str, part: &str) -> String {
    quoted(&format!("{column}.{part}"))
}

/// A quoted identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Advice on an error of a scan, which depends on the provenance of the schema.
pub fn scan_advice(error: &Error, provenance: &SchemaProvenance) -> Option<String> {
    if let Some(feature) = conflicting_feature(error) {
        return kind_advice(feature, provenance);
    }
    let remedies = error.remedies();
    let advice = sql_advice(&remedies)?;
    let is_of_schema = remedies.iter().any(|remedy| {
        matches!(
            remedy,
            Remedy::WidenToList
                | Remedy::WidenToBinary
                | Remedy::ReadAs(_)
                | Remedy::StateRecordType
        )
    });
    Some(match provenance.sample() {
        Some(sample) if is_of_schema => {
            format!(
                "the schema was inferred from {sample}: {SAMPLE_ALL} infers it from all records, or {advice}"
            )
        }
        _ => advice,
    })
}

/// The feature that has another kind than its column, if the error is about one.
pub fn conflicting_feature(error: &Error) -> Option<&str> {
    match error.kind() {
        ErrorKind::Codec(error) if matches!(error.kind(), CodecErrorKind::Kind { .. }) => {
            Some(error.position().feature.as_deref().unwrap_or_default())
        }
        _ => None,
    }
}

/// Advice on a feature that has another kind than its column: the position of the first record of
/// the sample with the kind of the column, and the options for columns of both kinds.
pub fn kind_advice(feature: &str, provenance: &SchemaProvenance) -> Option<String> {
    let (kind, seen) = provenance
        .features(feature)
        .find_map(|feature| feature.kinds().next())?;
    let kind = kind.name();
    let first = provenance.first(seen)?;
    let split = format!("{SAMPLE_ALL} and tfarrow.on_conflict = 'split' give each kind a column");
    Some(format!("the first {kind} is in {first}; {split}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        let fields = Rewrite::Fields(vec!["a".to_owned(), "b'\"".to_owned()]);
        let expected = r#"SELECT "x"['a'] AS "x.a", "x"['b''"'] AS "x.b'""" .. flattens it"#;
        assert_eq!(sql_rewrite("x", &fields), expected);
        let expected = r#"SELECT CAST("an ""x""" AS BIGINT) AS "an ""x""" .. converts it"#;
        assert_eq!(
            sql_rewrite("an \"x\"", &Rewrite::Cast(DataType::Int64)),
            expected
        );
        let expected = r#"SELECT "an ""x"""['KEY'] AS "an ""x"".KEY" .. takes out a key"#;
        assert_eq!(sql_rewrite("an \"x\"", &Rewrite::MapKeys), expected);
    }

    #[test]
    fn remedies_of_the_command_line_are_left_out() {
        assert_eq!(sql_advice(&[Remedy::Repair, Remedy::Resume]), None);
        let remedies = [Remedy::SplitKinds, Remedy::ReadAs(RecordType::Raw)];
        let expected = "SET tfarrow.on_conflict = 'split' gives each a column, or SET tfarrow.record_type = 'raw' reads the \
                        records as they are";
        assert_eq!(sql_advice(&remedies).as_deref(), Some(expected));
    }
}
