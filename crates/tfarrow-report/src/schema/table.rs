//! The schema as a table for people.

use arrow_schema::Field;
use tfarrow_codec::{FeatureSummary, RecordType};
use tfarrow_convert::schema_json::{columns_of, type_name};
use tfarrow_dataset::internals::ProbablePayload;

use super::inferred_schema::InferredSchema;
use crate::text::{Screen, count, escape, percent, plural, range, text_table};

/// Maximum number of fields of messages of an unknown type in the table.
const MOST_FIELDS: usize = 40;

/// The numbers of records and shards, and a table with a row for each feature.
pub(super) fn text(found: &InferredSchema, screen: Screen) -> String {
    let sequence = found.record_type() == RecordType::SequenceExample;
    let roles = sequence || found.record_type() == RecordType::ExampleList;
    let mut names = vec![
        "feature", "kind", "present", "missing", "unset", "lengths", "arrow",
    ];
    let mut right = vec![false, false, true, true, true, false, false];
    if roles {
        names.splice(1..1, ["role"]);
        right.splice(1..1, [false]);
    }
    if sequence {
        names.splice(6..6, ["steps"]);
        right.splice(6..6, [false]);
    }
    let columns = columns_of(found.schema());
    let rows = found.features().map(|(feature, role)| {
        let mut row = row(
            found,
            feature,
            columns.get(&(feature.name.as_str(), role)).copied(),
        );
        if roles {
            row.splice(1..1, [role.name().to_owned()]);
        }
        if sequence {
            row.splice(
                6..6,
                [feature
                    .steps
                    .map_or_else(String::new, |(min, max)| range(min, max))],
            );
        }
        row
    });
    let mut rows: Vec<_> = rows.collect();
    if found.record_type() == RecordType::Raw && found.inferred().summary.records() > 0 {
        rows.push(
            ["record", "", "100 %", "0", "0", "", "binary"]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    let mut text = format!(
        "{}\n{}",
        found.headline(),
        text_table(&names, &right, &["unset", "missing"], rows, screen)
    );
    if let Some(probable) = found.probable() {
        text.push_str(&probable_text(probable, screen));
    }
    text
}

/// The probable kind of raw records and, for messages, a table of their fields.
fn probable_text(probable: &ProbablePayload, screen: Screen) -> String {
    let sample = plural(probable.records, "record");
    let headline = format!("\n\nprobably {}, by {sample}", probable.name);
    let Some(fields) = &probable.fields else {
        return headline;
    };
    let rows = fields.fields.iter().take(MOST_FIELDS).map(|(path, field)| {
        let path: Vec<_> = path.iter().map(u32::to_string).collect();
        let kinds: Vec<_> = field.kinds.keys().copied().collect();
        vec![
            path.join("."),
            kinds.join(", "),
            count(field.present),
            count(field.values),
        ]
    });
    let names = ["field", "wire", "messages", "values"];
    let table = text_table(
        &names,
        &[false, false, true, true],
        &[],
        rows.collect(),
        screen,
    );
    let more = fields.fields.len().saturating_sub(MOST_FIELDS);
    let more = if more == 0 {
        String::new()
    } else {
        format!("\n{} more", plural(more as u64, "field"))
    };
    format!("{headline}\n{table}{more}")
}

fn row(found: &InferredSchema, feature: &FeatureSummary, column: Option<&Field>) -> Vec<String> {
    let records = found.inferred().summary.instances(feature.role);
    let kinds: Vec<_> = feature.kinds().map(|(kind, _)| kind.name()).collect();
    let shortest = feature.kinds().map(|(_, seen)| seen.min_len).min();
    let longest = feature.kinds().map(|(_, seen)| seen.max_len).max();
    vec![
        escape(&feature.name),
        if kinds.is_empty() {
            "none".to_owned()
        } else {
            kinds.join(", ")
        },
        percent(feature.present, records),
        count(records.saturating_sub(feature.present)),
        count(feature.unset),
        shortest
            .zip(longest)
            .map_or_else(String::new, |(min, max)| range(min, max)),
        column.map_or_else(
            || "no column".to_owned(),
            |field| type_name(field.data_type()),
        ),
    ]
}
