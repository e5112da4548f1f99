//! The inferred schema of a data set, in the formats of `tfarrow schema`.

mod features_json;
mod format;
mod inferred_schema;
mod message;
mod python;
mod rust;
mod spec;
mod sql;
mod table;

use anyhow::Result;
use arrow_schema::Schema;
use serde_json::json;
use tfarrow_codec::RecordType;
use tfarrow_convert::schema_json::{to_json, type_name};
use tfarrow_dataset::{ShardFormat, file_names};

pub(crate) use self::message::outlined;
pub use self::{
    format::SchemaFormat, inferred_schema::InferredSchema, message::message_schema_text,
};
use crate::{
    text::{Screen, count, escape, pretty_json},
    warnings::{SkippedText, Warnings, losses, skipped, unreadable},
};

/// The error of a format that cannot describe these records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedFormat(String);

/// Returns the schema in a format. The statement of [`SchemaFormat::Sql`] reads `sources`; no other
/// format uses them.
///
/// # Errors
/// [`UnsupportedFormat`] for [`SchemaFormat::Pbtxt`], which depends on the values: see
/// [`Statistics::infer_schema`](tfarrow_stats::Statistics::infer_schema); for records of a type that
/// the format has not; and for a statement that would read another format than TFRecord.
pub fn schema_text(
    found: &InferredSchema,
    format: SchemaFormat,
    sources: &[String],
    screen: Screen,
) -> Result<String> {
    Ok(match format {
        SchemaFormat::Table => table::text(found, screen),
        SchemaFormat::Json => pretty_json(&json(found))?,
        SchemaFormat::Arrow => arrow(found.schema()),
        SchemaFormat::Python => python::spec(found),
        SchemaFormat::Rust => rust::function(found),
        SchemaFormat::Sql => {
            if let Some(other) = found
                .shards()
                .iter()
                .find(|shard| shard.format != ShardFormat::TfRecord)
            {
                let why = "a statement declares the columns of TFRecord; SQL reads other formats by their names";
                return Err(UnsupportedFormat(format!(
                    "{} is {}: {why}",
                    other.path.display(),
                    other.format
                ))
                .into());
            }
            let first = found.shards().first();
            let name = first.map_or("records".to_owned(), |shard| {
                file_names::set_name(&shard.name)
            });
            sql::statement(found, &name, sources)
        }
        SchemaFormat::FeaturesJson => features_json(found)?,
        SchemaFormat::Pbtxt => {
            let why = "a schema.pbtxt depends on the values: infer it from statistics";
            return Err(UnsupportedFormat(why.to_owned()).into());
        }
    })
}

/// The schema as JSON, with the probable kind of raw records.
fn json(found: &InferredSchema) -> serde_json::Value {
    let mut json = to_json(found.inferred(), found.schema());
    if let Some(probable) = found.probable() {
        let fields = probable.fields.iter().flat_map(|fields| &fields.fields);
        let fields = fields.map(|(path, field)| {
            json!({"path": path, "present": field.present, "values": field.values, "kinds": field.kinds})
        });
        json["probable"] = json!({"name": probable.name, "records": probable.records, "fields": fields.collect::<Vec<_>>()});
    }
    json
}

fn features_json(found: &InferredSchema) -> Result<String> {
    let Some((document, _)) = features_json::document(found) else {
        let why = format!(
            "TensorFlow Datasets reads tf.Example records; these are {}",
            found.record_type().name()
        );
        return Err(UnsupportedFormat(why).into());
    };
    Ok(pretty_json(&document)?)
}

/// The columns and their types, a line for each.
fn arrow(schema: &Schema) -> String {
    let mut lines = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let null = if field.is_nullable() { "" } else { " not null" };
        lines.push(format!(
            "{}: {}{null}",
            escape(field.name()),
            type_name(field.data_type())
        ));
    }
    lines.join("\n")
}

/// Returns the features that a format leaves out, with the reasons. There are some for
/// [`SchemaFormat::FeaturesJson`] only.
pub fn schema_omissions(found: &InferredSchema, format: SchemaFormat) -> Vec<String> {
    let document = (format == SchemaFormat::FeaturesJson)
        .then(|| features_json::document(found))
        .flatten();
    let left_out = document.map(|(_, left_out)| left_out).unwrap_or_default();
    left_out
        .into_iter()
        .map(|why| format!("{why}, and is omitted"))
        .collect()
}

/// Returns the warnings about records that were skipped or do not parse, or else about features that
/// have no column, because they have more than one kind.
pub fn schema_warnings(found: &InferredSchema, skipped_text: SkippedText) -> Warnings {
    let inferred = found.inferred();
    let (odd, is_minority) = match found.stated_type() {
        None => (inferred.why_raw(), inferred.has_strays()),
        Some(RecordType::Raw) => (None, false),
        Some(_) => (unreadable(inferred), true),
    };
    let skipped = skipped(inferred, skipped_text);
    let has_lost_records = skipped.is_some() || (odd.is_some() && is_minority);
    let mixed = if has_lost_records {
        Vec::new()
    } else {
        mixed(found)
    };
    let has_lost = has_lost_records || !mixed.is_empty();
    let mut texts: Vec<_> = odd.into_iter().chain(skipped).collect();
    texts.extend(mixed);
    texts.extend(losses(inferred));
    Warnings { texts, has_lost }
}

/// The features of more than one kind, with the first record of each kind.
fn mixed(found: &InferredSchema) -> Vec<String> {
    let mut warnings = Vec::new();
    for (feature, _) in found.features() {
        if !feature.is_mixed() {
            continue;
        }
        let mut kinds: Vec<_> = feature.kinds().collect();
        kinds.sort_by_key(|(_, seen)| seen.first);
        let mut places = Vec::with_capacity(kinds.len());
        for (kind, seen) in kinds {
            places.push(format!(
                "{} first in {}, {} in all",
                kind.name(),
                found.place(seen.first),
                count(seen.lists)
            ));
        }
        warnings.push(format!(
            "feature {:?} has more than one kind: {}",
            feature.name,
            places.join("; ")
        ));
    }
    warnings
}
