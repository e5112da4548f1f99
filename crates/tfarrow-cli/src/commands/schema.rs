//! `tfarrow schema`: the inferred schema of a data set.

use anyhow::Result;
use arrow_schema::{Schema, SchemaRef};
use tfarrow_codec::{Limits, MessageType, RecordType};
use tfarrow_columnar::schema_within;
use tfarrow_dataset::{
    FormatFilter, Part, Shard, ShardFormat, event_message, internals::are_events, resolve_filtered,
};
use tfarrow_report::{
    InferredSchema, PartSettings, SchemaFormat, message_schema_text, schema_omissions, schema_text,
    schema_warnings,
};
use tfarrow_scan::{InferOptions, infer};
use tfarrow_stats::{PartWork, Statistics, schema_to_text};

use crate::{
    args::SchemaArgs,
    commands::{
        inspect,
        partial::{self, value_name},
    },
    error::{FOUND, SUCCESS, Usage},
    output, stderr,
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
    let format = args.format.get();
    let record_type = args.reading.record_type;
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
    output::line(&message_schema_text(
        message,
        schema,
        args.format.get(),
        output::screen(),
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
    let Some(shard) = shards.iter().find(|shard| {
        matches!(shard.format, ShardFormat::Parquet | ShardFormat::Arrow) && !shard.is_remote()
    }) else {
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
    let layout = args.reading.layout;
    let record_type = args.reading.record_type;
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
    output::line(&schema_text(found, format, sources, output::screen())?)?;
    stderr::print_all(&schema_omissions(found, format));
    let warnings = schema_warnings(found, stderr::skipped_text);
    stderr::print_all(&warnings.texts);
    Ok(if warnings.has_lost { FOUND } else { SUCCESS })
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
