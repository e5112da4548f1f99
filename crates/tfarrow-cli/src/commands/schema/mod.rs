//! `tfarrow schema`: the inferred schema of a data set.

mod features_json;
mod python;
mod rust;
mod spec;
mod sql;

use std::process::ExitCode;

use anyhow::Result;
use arrow_schema::{Field, SchemaRef};
use tfarrow_codec::{
    Column, FeatureSummary, Kind, KindSummary, Place, RecordType, Role, Shape, Values,
    schema::{UNSET_COLUMN, record_type_of, with_record_type},
};
use tfarrow_convert::schema_json::{columns_of, to_json, type_name};
use tfarrow_dataset::{InferOptions, Inferred, Sampled, Shard, file_names, infer_with};
use tfarrow_stats::schema_to_text;

use crate::{
    args::{SchemaArgs, SchemaFormat},
    commands::{inspect, stats},
    error::{FOUND, Usage},
    output::{self, count, percent, range},
    stderr,
    text::escape,
};

/// Prints the schema in the format of the command line.
pub(crate) fn run(args: &SchemaArgs) -> Result<ExitCode> {
    match args.format {
        SchemaFormat::Table => columns(args, |found| found.table()),
        SchemaFormat::Json => columns(args, |found| found.json()),
        SchemaFormat::Arrow => columns(args, |found| found.arrow()),
        SchemaFormat::Python => columns(args, |found| Ok(output::line(&python::spec(found))?)),
        SchemaFormat::Rust => columns(args, |found| Ok(output::line(&rust::function(found))?)),
        SchemaFormat::Sql => columns(args, |found| {
            let name = found.shards.first().map_or("records".to_owned(), |shard| file_names::set_name(&shard.name));
            Ok(output::line(&sql::statement(found, &name, &args.sources))?)
        }),
        SchemaFormat::FeaturesJson => columns(args, |found| found.features_json()),
        SchemaFormat::Pbtxt => pbtxt(args),
    }
}

/// Prints the columns of a data set by `print`, and reports features that have none.
fn columns(args: &SchemaArgs, print: impl FnOnce(&InferredSchema<'_>) -> Result<()>) -> Result<ExitCode> {
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
    Ok(if has_lost { ExitCode::from(FOUND) } else { found.report_mixed() })
}

/// Prints the schema that TensorFlow Data Validation would infer, which depends on the values.
fn pbtxt(args: &SchemaArgs) -> Result<ExitCode> {
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
    Ok(if has_lost || !mixed.is_empty() { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// The schema of a data set, and the summary that it was inferred from.
struct InferredSchema<'a> {
    shards: &'a [Shard],
    inferred: &'a Inferred,
    schema: SchemaRef,
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

impl InferredSchema<'_> {
    fn record_type(&self) -> RecordType {
        record_type_of(&self.schema)
    }

    /// The features with their roles.
    fn features(&self) -> impl Iterator<Item = (&FeatureSummary, Role)> {
        let record_type = self.record_type();
        let summary = &self.inferred.summary;
        let all = summary.features().filter(move |_| record_type != RecordType::Raw);
        all.map(move |feature| (feature, summary.role(feature, record_type)))
    }

    fn json(&self) -> Result<()> {
        Ok(output::line(&output::pretty(&to_json(self.inferred, &self.schema))?)?)
    }

    fn features_json(&self) -> Result<()> {
        let Some((document, left_out)) = features_json::document(self) else {
            let why = format!("TensorFlow Datasets reads tf.Example records; these are {}", self.record_type().name());
            return Err(Usage(why).into());
        };
        output::line(&output::pretty(&document)?)?;
        left_out.iter().for_each(|why| stderr::print(&format!("{why}, and is omitted")));
        Ok(())
    }

    /// The numbers of records and shards, in one line.
    fn headline(&self) -> String {
        let records = count(self.inferred.summary.records());
        let what = match self.record_type() {
            RecordType::Example => "tf.Example",
            RecordType::SequenceExample => "tf.SequenceExample",
            RecordType::Raw => "raw",
        };
        let shards = match self.shards.len() {
            1 => "1 shard".to_owned(),
            many => format!("{} shards", count(many as u64)),
        };
        match &self.inferred.sampled {
            None => format!("{records} {what} records in {shards}"),
            Some(Sampled { shards: looked, of, .. }) => {
                let looked = count(*looked as u64);
                format!("{records} {what} records, a sample of {looked} of {} shards", count(*of as u64))
            }
        }
    }

    fn table(&self) -> Result<()> {
        output::line(&self.headline())?;
        let sequence = self.record_type() == RecordType::SequenceExample;
        let mut names = vec!["feature", "kind", "present", "missing", "unset", "lengths", "arrow"];
        let mut right = vec![false, false, true, true, true, false, false];
        if sequence {
            names.splice(1..1, ["role"]);
            names.splice(6..6, ["steps"]);
            right.splice(1..1, [false]);
            right.splice(6..6, [false]);
        }
        let columns = columns_of(&self.schema);
        let rows = self.features().map(|(feature, role)| {
            let mut row = self.row(feature, columns.get(&(feature.name.as_str(), role)).copied());
            if sequence {
                row.splice(1..1, [role.name().to_owned()]);
                row.splice(6..6, [feature.steps.map_or_else(String::new, |(min, max)| range(min, max))]);
            }
            row
        });
        let mut rows: Vec<_> = rows.collect();
        if self.record_type() == RecordType::Raw {
            rows.push(["record", "", "100 %", "0", "0", "", "binary"].map(str::to_owned).to_vec());
        }
        output::text_table(&names, &right, &["unset", "missing"], rows)?;
        Ok(())
    }

    fn row(&self, feature: &FeatureSummary, column: Option<&Field>) -> Vec<String> {
        let records = self.inferred.summary.records();
        let kinds: Vec<_> = feature.kinds().map(|(kind, _)| kind.name()).collect();
        let shortest = feature.kinds().map(|(_, seen)| seen.min_len).min();
        let longest = feature.kinds().map(|(_, seen)| seen.max_len).max();
        vec![
            escape(&feature.name),
            if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") },
            percent(feature.present, records),
            count(records.saturating_sub(feature.present)),
            count(feature.unset),
            shortest.zip(longest).map_or_else(String::new, |(min, max)| range(min, max)),
            column.map_or_else(|| "no column".to_owned(), |field| type_name(field.data_type())),
        ]
    }

    fn arrow(&self) -> Result<()> {
        let field = |field: &arrow_schema::FieldRef| {
            let null = if field.is_nullable() { "" } else { " not null" };
            format!("{}: {}{null}", escape(field.name()), type_name(field.data_type()))
        };
        let lines: Vec<_> = self.schema.fields().iter().map(field).collect();
        output::line(&lines.join("\n"))?;
        Ok(())
    }

    /// Reports the features of more than one kind, with the first record of each kind. Returns the exit status.
    fn report_mixed(&self) -> ExitCode {
        let mixed: Vec<_> = self.features().filter(|(feature, _)| feature.is_mixed()).collect();
        for (feature, _) in &mixed {
            let mut kinds: Vec<_> = feature.kinds().collect();
            kinds.sort_by_key(|(_, seen)| seen.first);
            let place = |(kind, seen): &(Kind, &KindSummary)| {
                format!("{} first in {}, {} in all", kind.name(), self.place(seen.first), count(seen.lists))
            };
            let places: Vec<_> = kinds.iter().map(place).collect();
            stderr::print(&format!("feature {:?} has more than one kind: {}", feature.name, places.join("; ")));
        }
        if mixed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FOUND) }
    }

    fn place(&self, place: Place) -> String {
        let name = self.inferred.names.get(place.shard as usize).map_or("", String::as_str);
        format!("{}, record {} (byte {})", escape(name), place.record, place.offset)
    }
}
