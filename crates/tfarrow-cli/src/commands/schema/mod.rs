//! `tfarrow schema`: the inferred schema of a data set.

mod features_json;
mod inferred_schema;
mod message;
mod python;
mod rust;
mod spec;
mod sql;
mod table;

use anyhow::Result;
use arrow_schema::{Schema, SchemaRef};
use serde_json::json;
use tfarrow_codec::{FeatureSummary, Kind, KindSummary, Limits, MessageType, RecordType, Role};
use tfarrow_columnar::schema_within;
use tfarrow_convert::schema_json::{to_json, type_name};
use tfarrow_dataset::{
    DamageReport, FormatFilter, Part, Shard, ShardFormat, are_events, event_message, file_names,
    resolve_filtered,
};
use tfarrow_scan::{InferOptions, infer};
use tfarrow_stats::{PartWork, Statistics, schema_to_text};

pub use self::inferred_schema::InferredSchema;
pub(super) use self::message::outlined;
pub(crate) use self::message::text as message_text;
use crate::{
    args::{SchemaArgs, SchemaFormat},
    commands::{
        inspect,
        part_settings::PartSettings,
        partial::{self, value_name},
    },
    error::{FOUND, SUCCESS, Usage},
    output::{self, Screen, count},
    stderr,
    text::escape,
};

/// The name of the command.
pub(super) const NAME: &str = "schema";

/// Prints the schema in the format of the command line.
pub(crate) fn run(args: &SchemaArgs) -> Result<u8> {
    if let Some(message) = args.reading.message.load()? {
        if args.part.part.is_some() {
            return Err(messages_have_no_parts().into());
        }
        // The sources have to exist, and no record of them is read.
        let found = resolve_filtered(&args.sources, FormatFilter::Any)?;
        found
            .shards
            .iter()
            .try_for_each(|shard| args.reading.message.check(shard))?;
        let schema = message.schema(&args.looking.damage.read().limits)?;
        return print_message(&message, &schema, args);
    }
    match args.part.part {
        Some(part) => read_part(args, part),
        None if args.format.get() == SchemaFormat::Pbtxt => pbtxt(args),
        None => columns(args),
    }
}

/// Reads a part of the sources.
fn read_part(args: &SchemaArgs, part: Part) -> Result<u8> {
    let (format, record_type) = (args.format.get(), args.reading.record_type);
    let source = partial::source(&args.sources, part)?;
    let mut options = inspect::options(&args.looking);
    if detected_message(&source.shards, record_type, &options.read.limits)?.is_some() {
        return Err(messages_have_no_parts().into());
    }
    let settings = PartSettings {
        command: NAME.to_owned(),
        sources: args.sources.clone(),
        format: Some(value_name(&format)),
        layout: Some(args.reading.layout),
        record_type,
        ..PartSettings::default()
    };
    if format == SchemaFormat::Pbtxt {
        return partial::write(
            &args.part,
            part,
            &source,
            PartWork::Statistics,
            &settings,
            &options,
        );
    }
    options.record_type = record_type;
    partial::write(
        &args.part,
        part,
        &source,
        PartWork::Columns,
        &settings,
        &options,
    )
}

fn messages_have_no_parts() -> Usage {
    let why = "the schema of messages follows from their definition, and no record is read: leave --part out";
    Usage(why.to_owned())
}

/// Prints the columns of messages.
fn print_message(message: &MessageType, schema: &Schema, args: &SchemaArgs) -> Result<u8> {
    output::line(&message::text(
        message,
        schema,
        args.format.get(),
        Screen::stdout(),
    )?)?;
    Ok(SUCCESS)
}

/// The type and the columns of TensorBoard's events, unless another type of the records is stated,
/// and of messages that were converted to Parquet or Arrow, from the metadata of the first such
/// file; `None` for other data sets.
fn detected_message(
    shards: &[Shard],
    record_type: Option<RecordType>,
    limits: &Limits,
) -> Result<Option<(MessageType, SchemaRef)>> {
    if record_type.is_none() && are_events(shards) {
        let message = event_message()?;
        let schema = message.schema(limits)?;
        return Ok(Some((message, schema)));
    }
    // In a store, the files of other parts have no local copies.
    let has_metadata = |shard: &&Shard| {
        matches!(shard.format, ShardFormat::Parquet | ShardFormat::Arrow) && !shard.is_remote()
    };
    let Some(shard) = shards.iter().find(has_metadata) else {
        return Ok(None);
    };
    let Some(schema) = schema_within(shard, limits)? else {
        return Ok(None);
    };
    Ok(MessageType::of_schema(&schema)?.map(|message| (message, schema)))
}

/// Prints the columns of a data set, and reports features that have none.
fn columns(args: &SchemaArgs) -> Result<u8> {
    let (shards, progress) = inspect::shards(&args.sources)?;
    let (layout, record_type) = (args.reading.layout, args.reading.record_type);
    let options = InferOptions {
        record_type,
        ..inspect::options(&args.looking)
    };
    if let Some((message, schema)) = detected_message(&shards, record_type, &options.read.limits)? {
        return print_message(&message, &schema, args);
    }
    let inferred = infer(&shards, &options, &inspect::observer(&progress))?;
    drop(progress);
    let found = InferredSchema::new(shards, inferred, layout, record_type)?
        .with_probable_payload(&options.read)?;
    print(&found, args.format.get(), &args.sources)
}

/// Prints an inferred schema, and returns the exit status. `sources` are the files that the SQL
/// statement names.
pub(super) fn print(
    found: &InferredSchema,
    format: SchemaFormat,
    sources: &[String],
) -> Result<u8> {
    output::line(&text(found, format, sources, Screen::stdout())?)?;
    omissions(found, format)
        .iter()
        .for_each(|why| stderr::print(why));
    let (warnings, is_incomplete) = warnings(found, stderr::skipped_text);
    warnings.iter().for_each(|warning| stderr::print(warning));
    Ok(if is_incomplete { FOUND } else { SUCCESS })
}

/// Prints the schema that TensorFlow Data Validation would infer, which depends on the values.
fn pbtxt(args: &SchemaArgs) -> Result<u8> {
    let (shards, progress) = inspect::shards(&args.sources)?;
    let options = inspect::options(&args.looking);
    if let Some((message, schema)) =
        detected_message(&shards, args.reading.record_type, &options.read.limits)?
    {
        return print_message(&message, &schema, args);
    }
    let statistics = Statistics::collect(&shards, &options, &inspect::observer(&progress))?;
    drop(progress);
    print_pbtxt(&statistics)
}

/// Prints the schema that TensorFlow Data Validation would infer from statistics, and returns the
/// exit status.
pub(super) fn print_pbtxt(statistics: &Statistics) -> Result<u8> {
    output::bytes(schema_to_text(&statistics.infer_schema())?.as_bytes())?;
    let has_lost = inspect::report_all([Some(statistics)]);
    let mixed = statistics
        .inferred
        .summary
        .features()
        .filter(|feature| feature.is_mixed());
    let mixed: Vec<_> = mixed.map(|feature| format!("{:?}", feature.name)).collect();
    if !mixed.is_empty() {
        let names = mixed.join(", ");
        stderr::print(&format!(
            "features of more than one kind, of which the schema has the one of most lists: {names}"
        ));
    }
    Ok(if has_lost || !mixed.is_empty() {
        FOUND
    } else {
        SUCCESS
    })
}

/// The schema in a format. `sources` are the files that the SQL statement names.
///
/// # Errors
/// The format is `pbtxt`, the records are of a type that the format has not, or a statement would
/// read another format than TFRecord.
pub(crate) fn text(
    found: &InferredSchema,
    format: SchemaFormat,
    sources: &[String],
    screen: Screen,
) -> Result<String> {
    Ok(match format {
        SchemaFormat::Table => table::text(found, screen),
        SchemaFormat::Json => output::pretty(&json(found))?,
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
                return Err(Usage(format!(
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
            return Err(Usage(why.to_owned()).into());
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
        return Err(Usage(why).into());
    };
    Ok(output::pretty(&document)?)
}

/// The columns and their types, a line for each.
fn arrow(schema: &Schema) -> String {
    let field = |field: &arrow_schema::FieldRef| {
        let null = if field.is_nullable() { "" } else { " not null" };
        format!(
            "{}: {}{null}",
            escape(field.name()),
            type_name(field.data_type())
        )
    };
    let lines: Vec<_> = schema.fields().iter().map(field).collect();
    lines.join("\n")
}

/// The features that a format leaves out, with the reasons.
pub(crate) fn omissions(found: &InferredSchema, format: SchemaFormat) -> Vec<String> {
    let document = (format == SchemaFormat::FeaturesJson)
        .then(|| features_json::document(found))
        .flatten();
    let left_out = document.map(|(_, left_out)| left_out).unwrap_or_default();
    left_out
        .into_iter()
        .map(|why| format!("{why}, and is omitted"))
        .collect()
}

/// The warnings about records that were skipped or do not parse, or else about features that have
/// no column; and whether records or features are lost. `skipped` words the report of skipped
/// records.
pub(crate) fn warnings(
    found: &InferredSchema,
    skipped: fn(&DamageReport) -> String,
) -> (Vec<String>, bool) {
    let inferred = found.inferred();
    let (odd, is_minority) = match found.stated_type() {
        None => (inferred.why_raw(), inferred.has_strays()),
        Some(RecordType::Raw) => (None, false),
        Some(_) => (inspect::unreadable(inferred), true),
    };
    let skipped = inspect::skipped(inferred, skipped);
    let has_lost = skipped.is_some() || (odd.is_some() && is_minority);
    let mixed = if has_lost { Vec::new() } else { mixed(found) };
    let is_incomplete = has_lost || !mixed.is_empty();
    (
        odd.into_iter()
            .chain(skipped)
            .chain(mixed)
            .chain(inspect::losses(inferred))
            .collect(),
        is_incomplete,
    )
}

/// The features of more than one kind, with the first record of each kind.
fn mixed(found: &InferredSchema) -> Vec<String> {
    let mixed = found.features().filter(|(feature, _)| feature.is_mixed());
    let warning = |(feature, _): (&FeatureSummary, Role)| {
        let mut kinds: Vec<_> = feature.kinds().collect();
        kinds.sort_by_key(|(_, seen)| seen.first);
        let place = |(kind, seen): &(Kind, &KindSummary)| {
            format!(
                "{} first in {}, {} in all",
                kind.name(),
                found.place(seen.first),
                count(seen.lists)
            )
        };
        let places: Vec<_> = kinds.iter().map(place).collect();
        format!(
            "feature {:?} has more than one kind: {}",
            feature.name,
            places.join("; ")
        )
    };
    mixed.map(warning).collect()
}
