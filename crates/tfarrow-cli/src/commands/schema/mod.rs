//! `tfarrow schema`: the inferred schema of a data set.

mod features_json;
mod inferred_schema;
mod python;
mod rust;
mod spec;
mod sql;
mod table;

use anyhow::Result;
use arrow_schema::SchemaRef;
use tfarrow_codec::{
    Column, FeatureSummary, Kind, KindSummary, RecordType, Role, Shape, Values,
    schema::{UNSET_COLUMN, with_record_type},
};
use tfarrow_convert::schema_json::{to_json, type_name};
use tfarrow_dataset::{InferOptions, Inferred, file_names, infer_with};
use tfarrow_stats::schema_to_text;

use self::inferred_schema::InferredSchema;
use crate::{
    args::{SchemaArgs, SchemaFormat},
    commands::{inspect, stats},
    error::{FOUND, SUCCESS, Usage},
    output::{self, count},
    stderr,
    text::escape,
};

/// Prints the schema in the format of the command line.
pub(crate) fn run(args: &SchemaArgs) -> Result<u8> {
    match args.format {
        SchemaFormat::Table => columns(args, |found| Ok(table::print(found)?)),
        SchemaFormat::Json => columns(args, json),
        SchemaFormat::Arrow => columns(args, arrow),
        SchemaFormat::Python => columns(args, |found| Ok(output::line(&python::spec(found))?)),
        SchemaFormat::Rust => columns(args, |found| Ok(output::line(&rust::function(found))?)),
        SchemaFormat::Sql => columns(args, |found| {
            let name = found.shards.first().map_or("records".to_owned(), |shard| file_names::set_name(&shard.name));
            Ok(output::line(&sql::statement(found, &name, &args.sources))?)
        }),
        SchemaFormat::FeaturesJson => columns(args, features_json),
        SchemaFormat::Pbtxt => pbtxt(args),
    }
}

/// Prints the columns of a data set by `print`, and reports features that have none.
fn columns(args: &SchemaArgs, print: impl FnOnce(&InferredSchema<'_>) -> Result<()>) -> Result<u8> {
    let (shards, progress) = inspect::shards(&args.sources)?;
    let options = InferOptions { record_type: args.reading.record_type, ..inspect::options(&args.looking) };
    let inferred = infer_with(&shards, &options, &inspect::observer(&progress))?;
    drop(progress);
    let found = InferredSchema { shards: &shards, inferred: &inferred, schema: unmixed_schema(&inferred, args)? };
    print(&found)?;
    let has_strays = match args.reading.record_type {
        None => inspect::report_strays(&inferred),
        Some(RecordType::Raw) => false,
        Some(_) => inspect::report_unreadable(&inferred),
    };
    let has_lost = inspect::report_skipped(&inferred) | has_strays;
    Ok(if has_lost { FOUND } else { report_mixed(&found) })
}

/// Prints the schema that TensorFlow Data Validation would infer, which depends on the values.
fn pbtxt(args: &SchemaArgs) -> Result<u8> {
    let statistics = stats::collect(&args.sources, &args.looking)?;
    output::bytes(schema_to_text(&statistics.infer_schema())?.as_bytes())?;
    let has_lost = inspect::report_all([Some(&statistics)]);
    let mixed = statistics.inferred.summary.features().filter(|feature| feature.is_mixed());
    let mixed: Vec<_> = mixed.map(|feature| format!("{:?}", feature.name)).collect();
    if !mixed.is_empty() {
        let names = mixed.join(", ");
        stderr::print(&format!(
            "features of more than one kind, of which the schema has the one of most lists: {names}"
        ));
    }
    Ok(if has_lost || !mixed.is_empty() { FOUND } else { SUCCESS })
}

/// The schema of all features of at most one kind.
fn unmixed_schema(inferred: &Inferred, args: &SchemaArgs) -> Result<SchemaRef> {
    let (layout, record_type) = (args.reading.layout, args.reading.record_type);
    let summary = &inferred.summary;
    let record_type = record_type.unwrap_or_else(|| summary.record_type());
    if record_type == RecordType::Raw || summary.conflict().is_none() {
        return Ok(inferred.schema(layout, Some(record_type))?);
    }
    let fits = |feature: &&FeatureSummary| record_type == RecordType::SequenceExample || feature.role == Role::Feature;
    let column = |feature: &FeatureSummary| feature.column(layout, summary.role(feature, record_type));
    let columns = summary.features().filter(fits).filter_map(column);
    let mut fields: Vec<_> = columns.map(|column| column.field(&column.feature)).collect();
    if summary.has_unset() {
        let (role, shape, values) = (Role::Unset, Shape::List, Values::Utf8);
        let unset = Column { feature: UNSET_COLUMN.to_owned(), role, shape, values };
        fields.push(unset.field(UNSET_COLUMN));
    }
    Ok(with_record_type(fields, record_type))
}

fn json(found: &InferredSchema<'_>) -> Result<()> {
    Ok(output::line(&output::pretty(&to_json(found.inferred, &found.schema))?)?)
}

fn features_json(found: &InferredSchema<'_>) -> Result<()> {
    let Some((document, left_out)) = features_json::document(found) else {
        let why = format!("TensorFlow Datasets reads tf.Example records; these are {}", found.record_type().name());
        return Err(Usage(why).into());
    };
    output::line(&output::pretty(&document)?)?;
    left_out.iter().for_each(|why| stderr::print(&format!("{why}, and is omitted")));
    Ok(())
}

fn arrow(found: &InferredSchema<'_>) -> Result<()> {
    let field = |field: &arrow_schema::FieldRef| {
        let null = if field.is_nullable() { "" } else { " not null" };
        format!("{}: {}{null}", escape(field.name()), type_name(field.data_type()))
    };
    let lines: Vec<_> = found.schema.fields().iter().map(field).collect();
    output::line(&lines.join("\n"))?;
    Ok(())
}

/// Reports the features of more than one kind, with the first record of each kind. Returns the exit status.
fn report_mixed(found: &InferredSchema<'_>) -> u8 {
    let mixed: Vec<_> = found.features().filter(|(feature, _)| feature.is_mixed()).collect();
    for (feature, _) in &mixed {
        let mut kinds: Vec<_> = feature.kinds().collect();
        kinds.sort_by_key(|(_, seen)| seen.first);
        let place = |(kind, seen): &(Kind, &KindSummary)| {
            format!("{} first in {}, {} in all", kind.name(), found.place(seen.first), count(seen.lists))
        };
        let places: Vec<_> = kinds.iter().map(place).collect();
        stderr::print(&format!("feature {:?} has more than one kind: {}", feature.name, places.join("; ")));
    }
    if mixed.is_empty() { SUCCESS } else { FOUND }
}
