//! Files that `prost` wrote decode to the values that `prost` reads.

use arrow_array::Array;
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use tfarrow_codec::{Layout, Limits, OnConflict, ReaderBuilder, RecordType};
use tfarrow_testkit::{
    arrow, config, frame,
    generate::{self, DataSet},
    oracle::{self, ModelKind, ModelRow, ModelSide, ModelValue},
    proto,
};

use crate::support::{WAYS, chunks, decode_way, schema_of, summary};

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn every_layout_decodes_every_record(set in generate::data_sets()) {
        let file = set.file();
        for way in WAYS {
            let batches = decode_way(&file, set.sequence, way).unwrap();
            for column in batches.iter().flat_map(|batch| batch.columns()) {
                column.to_data().validate_full().unwrap();
            }
            prop_assert_eq!(arrow::rows_from_batches(&batches).unwrap(), &set.rows[..], "{:?}", way);
        }
    }

    #[test]
    fn the_schema_follows_from_the_records(set in generate::data_sets()) {
        let file = set.file();
        for way in WAYS {
            check_schema(&schema_of(&file, set.sequence, way).unwrap(), &set, way)?;
        }
    }

    #[test]
    fn the_record_type_follows_from_the_records(set in generate::data_sets()) {
        let has_value = set.rows.iter().any(|row| !row.is_empty());
        let has_lists = set.rows.iter().flatten().any(|((side, _), _)| *side == ModelSide::Lists);
        let expected = match (has_value, has_lists) {
            (false, _) => RecordType::Raw,
            (true, true) => RecordType::SequenceExample,
            (true, false) => RecordType::Example,
        };
        let summary = summary(&set.file()).unwrap();
        prop_assert_eq!(summary.record_type(), expected);
        let schema = summary.schema(Layout::Auto, None).unwrap();
        prop_assert_eq!(arrow::record_type(&schema), Some(expected.name()));
    }
}

/// The limits for names apply to features without a column, so that they never change the values of
/// a column.
#[test]
fn a_schema_may_have_more_columns_than_the_limit() {
    let record =
        proto::example((0..9).map(|i| (format!("feature {i}"), proto::KindOneof::ints([i]))));
    let kinds = proto::example((0..9).map(|i| {
        (
            format!("feature {i}"),
            proto::KindOneof::bytes(format!("{i}")),
        )
    }));
    let file = frame::file([record, kinds]);
    let schema = summary(&file)
        .unwrap()
        .schema_with(Layout::List, None, OnConflict::Split)
        .unwrap();
    assert_eq!(schema.fields().len(), 18);
    let records = chunks(&file, 1 << 20).unwrap();
    let decode = |limits| {
        let mut decoder = ReaderBuilder::new(std::sync::Arc::clone(&schema))
            .with_limits(limits)
            .build_batch_decoder()
            .unwrap();
        records
            .iter()
            .map(|records| decoder.decode(records).unwrap())
            .collect::<Vec<_>>()
    };
    let few = Limits {
        features: 2,
        name_bytes: 20,
        ..Limits::default()
    };
    assert_eq!(decode(few), decode(Limits::default()));
}

fn check_schema(
    schema: &Schema,
    set: &DataSet,
    (layout, views): (Layout, bool),
) -> Result<(), TestCaseError> {
    let mut expected = oracle::kinds(&set.rows);
    // A feature that never has a kind has no column; a feature list always has one.
    expected.retain(|(side, _), kinds| *side == ModelSide::Lists || !kinds.is_empty());
    let (ours, columns): (Vec<_>, Vec<_>) = schema
        .fields()
        .iter()
        .partition(|field| arrow::feature_of(field).is_none());
    prop_assert_eq!(!ours.is_empty(), oracle::has_unset(&set.rows));
    prop_assert!(ours.len() <= 1 && columns.len() + ours.len() == schema.fields().len());
    prop_assert!(
        ours.is_empty() || schema.fields().last() == ours.first().copied(),
        "the virtual column comes last"
    );
    prop_assert!(
        columns
            .windows(2)
            .all(|pair| pair[0].name() < pair[1].name()),
        "columns are sorted, and differ"
    );
    prop_assert_eq!(columns.len(), expected.len());
    for column in columns {
        let feature = arrow::feature_of(column).unwrap();
        let kind = expected
            .remove(&feature)
            .map(|kinds| kinds.first().copied().unwrap_or(ModelKind::Bytes));
        prop_assert_eq!(arrow::kind_of(column), kind, "{}", column.name());
        prop_assert_eq!(
            column.data_type(),
            &data_type(&set.rows, &feature, kind.unwrap(), layout, views)
        );
        prop_assert!(
            *column.name() == feature.1 || is_taken(&feature, set),
            "{} has {feature:?}",
            column.name()
        );
    }
    Ok(())
}

/// Returns whether the name of a feature cannot be that of its column.
fn is_taken((side, name): &(ModelSide, String), set: &DataSet) -> bool {
    let plain = |((other, other_name), _): (&(ModelSide, String), _)| {
        *other == ModelSide::Features && other_name == name
    };
    let looks_renamed = name.starts_with("feature_lists/") || name.starts_with("features/");
    name.starts_with("_tfarrow")
        || looks_renamed
        || (*side == ModelSide::Lists && set.rows.iter().flatten().any(plain))
}

/// The type that docs/mapping.md gives a feature with these rows.
fn data_type(
    rows: &[ModelRow],
    feature: &(ModelSide, String),
    kind: ModelKind,
    layout: Layout,
    views: bool,
) -> DataType {
    let values: Vec<_> = rows
        .iter()
        .filter_map(|row| row.get(feature))
        .flat_map(|cell| cell.values())
        .collect();
    let lists: Vec<_> = values
        .iter()
        .filter(|value| ***value != ModelValue::Unset)
        .collect();
    let all_bytes: Vec<&[u8]> = lists.iter().flat_map(|value| bytes(value)).collect();
    let is_control = |byte: &u8| (*byte < 32 && ![9, 10, 12, 13].contains(byte)) || *byte == 127;
    let filled = all_bytes.iter().filter(|bytes| !bytes.is_empty()).count();
    let controls = all_bytes
        .iter()
        .filter(|bytes| bytes.iter().any(is_control))
        .count();
    let text = layout == Layout::Auto
        && all_bytes
            .iter()
            .all(|bytes| std::str::from_utf8(bytes).is_ok())
        && 10 * controls < filled;
    let value = match (kind, text, views) {
        (ModelKind::Int64, _, _) => DataType::Int64,
        (ModelKind::Float, _, _) => DataType::Float32,
        (ModelKind::Bytes, false, false) => DataType::Binary,
        (ModelKind::Bytes, false, true) => DataType::BinaryView,
        (ModelKind::Bytes, true, false) => DataType::Utf8,
        (ModelKind::Bytes, true, true) => DataType::Utf8View,
    };
    let list = |value| DataType::List(Field::new_list_field(value, true).into());
    match (feature.0, layout) {
        (ModelSide::Lists, _) => list(list(value)),
        (ModelSide::Features, Layout::Auto) if lists.iter().all(|value| value.len() == 1) => value,
        (ModelSide::Features, _) => list(value),
    }
}

fn bytes(value: &ModelValue) -> Vec<&[u8]> {
    match value {
        ModelValue::Bytes(values) => values.iter().map(Vec::as_slice).collect(),
        ModelValue::Unset | ModelValue::Float(_) | ModelValue::Int64(_) => Vec::new(),
    }
}
