//! The schema as a CREATE EXTERNAL TABLE statement that declares all columns.

use std::fmt::Write;

use tfarrow_codec::{Kind, RecordType, Role};
use tfarrow_convert::schema_json::columns_of;

use super::{
    inferred_schema::InferredSchema,
    spec::{Lengths, Spec},
};
use crate::text::{escape, is_control};

/// `CREATE EXTERNAL TABLE name (..) STORED AS TFRECORD LOCATION '..'`, with the sources of the
/// command line.
pub(super) fn statement(found: &InferredSchema, name: &str, sources: &[String]) -> String {
    // A statement that begins with a comment could not be an argument of a command.
    let name = identifier(&name.replace(is_control, "_"));
    let mut out = format!(
        "CREATE EXTERNAL TABLE {name} -- {}\n",
        escape(&found.headline())
    );
    let record_type = found.record_type();
    // The columns of structs follow from the records.
    if !matches!(record_type, RecordType::Raw | RecordType::ExampleList) {
        columns(&mut out, found);
    }
    let location = match sources {
        [source] => literal(source),
        sources => format!(
            "({})",
            sources
                .iter()
                .map(|source| literal(source))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    let folders = found
        .features()
        .filter(|(feature, _)| found.is_folder(feature));
    let folders: Vec<_> = folders
        .map(|(feature, _)| identifier(&feature.name))
        .collect();
    let partitions = match folders.is_empty() {
        true => String::new(),
        false => format!("PARTITIONED BY ({}) ", folders.join(", ")),
    };
    // Writing to a `String` cannot fail.
    let _ = write!(
        out,
        "STORED AS TFRECORD {partitions}LOCATION {location} OPTIONS (record_type '{}');",
        record_type.name()
    );
    out
}

/// The columns that can be declared, separated by commas, and the other features as comments.
fn columns(out: &mut String, found: &InferredSchema) {
    let records = found.inferred().summary.records();
    let known = columns_of(found.schema());
    let columns = found.features().map(|(feature, role)| {
        let column = known
            .get(&(feature.name.as_str(), role))
            .map(|column| column.name());
        let name = identifier(&feature.name);
        match Spec::of(feature, role, records) {
            Err(why) => Err(format!("{}: {why}", escape(&name))),
            // A declared column reads the feature of its own name.
            Ok(_) if column != Some(&feature.name) => {
                let column = column.map_or_else(String::new, |column| {
                    format!("; its column is called {column:?}")
                });
                Err(format!("{}: cannot be declared{column}", escape(&name)))
            }
            // SQL has escapes in strings, and none in names.
            Ok(_) if name.contains(is_control) => Err(format!(
                "{}: cannot be declared, for the control characters in its name",
                escape(&name)
            )),
            // The folders of further files may have no value.
            Ok(spec) if found.is_folder(feature) => Ok(format!(
                "{name} {}",
                data_type(
                    Spec {
                        always: false,
                        ..spec
                    },
                    role
                )
            )),
            Ok(spec) => Ok(format!("{name} {}", data_type(spec, role))),
        }
    });
    let columns: Vec<_> = columns.collect();
    let last = columns.iter().rposition(Result::is_ok);
    out.push_str("(\n");
    for (index, column) in columns.iter().enumerate() {
        let _ = match column {
            Ok(column) => writeln!(
                out,
                "  {column}{}",
                if Some(index) == last { "" } else { "," }
            ),
            Err(why) => writeln!(out, "  -- {why}"),
        };
    }
    out.push_str(") ");
}

fn data_type(spec: Spec<'_>, role: Role) -> String {
    let value = match spec.kind {
        Kind::Bytes if spec.is_text() => "VARCHAR",
        Kind::Bytes => "BYTEA",
        Kind::Float => "FLOAT",
        Kind::Int64 => "BIGINT",
    };
    let required = if spec.always { " NOT NULL" } else { "" };
    match (role, spec.lengths()) {
        (Role::Sequence, _) => format!("{value}[][]"),
        (_, Lengths::One) => format!("{value}{required}"),
        (_, Lengths::Fixed(count)) => format!("{value}[{count}]{required}"),
        (_, Lengths::Varying) => format!("{value}[]{required}"),
    }
}

/// A quoted identifier.
fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A string literal, in the escaped form `U&'..'` where it has control characters.
fn literal(text: &str) -> String {
    let text = text.replace('\'', "''");
    if !text.contains(is_control) {
        return format!("'{text}'");
    }
    let mut out = String::from("U&'");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            c if is_control(c) => out.push_str(&format!("\\{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "'"
}
