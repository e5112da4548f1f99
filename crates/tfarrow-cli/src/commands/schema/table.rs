//! The schema as a table for people.

use arrow_schema::Field;
use tfarrow_codec::{FeatureSummary, RecordType};
use tfarrow_convert::schema_json::{columns_of, type_name};

use super::inferred_schema::InferredSchema;
use crate::{
    output::{Screen, count, percent, range, text_table},
    text::escape,
};

/// The numbers of records and shards, and a table with a row for each feature.
pub(super) fn text(found: &InferredSchema, screen: Screen) -> String {
    let sequence = found.record_type() == RecordType::SequenceExample;
    let mut names = vec!["feature", "kind", "present", "missing", "unset", "lengths", "arrow"];
    let mut right = vec![false, false, true, true, true, false, false];
    if sequence {
        names.splice(1..1, ["role"]);
        names.splice(6..6, ["steps"]);
        right.splice(1..1, [false]);
        right.splice(6..6, [false]);
    }
    let columns = columns_of(found.schema());
    let rows = found.features().map(|(feature, role)| {
        let mut row = row(found, feature, columns.get(&(feature.name.as_str(), role)).copied());
        if sequence {
            row.splice(1..1, [role.name().to_owned()]);
            row.splice(6..6, [feature.steps.map_or_else(String::new, |(min, max)| range(min, max))]);
        }
        row
    });
    let mut rows: Vec<_> = rows.collect();
    if found.record_type() == RecordType::Raw {
        rows.push(["record", "", "100 %", "0", "0", "", "binary"].map(str::to_owned).to_vec());
    }
    format!("{}\n{}", found.headline(), text_table(&names, &right, &["unset", "missing"], rows, screen))
}

fn row(found: &InferredSchema, feature: &FeatureSummary, column: Option<&Field>) -> Vec<String> {
    let records = found.inferred().summary.records();
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
