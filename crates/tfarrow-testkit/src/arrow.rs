//! Reads a decoded batch into the model, by the metadata of its schema.
//!
//! The metadata keys are repeated here, so that the tests find a changed key in the codec.

use arrow_array::{
    Array, ArrayRef, ListArray, RecordBatch,
    cast::AsArray,
    types::{Float32Type, Int64Type},
};
use arrow_schema::{DataType, Field, Schema};

use crate::{
    Error, Result,
    oracle::{ModelCell, ModelKind, ModelRow, ModelSide, ModelValue},
};

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Feature,
    Context,
    Sequence,
    Unset,
}

/// Reads a batch of Examples or SequenceExamples, in either layout, with views or without.
///
/// # Errors
/// A column that differs from its metadata, and a row in which a feature is both set and unset.
pub fn rows_from_batch(batch: &RecordBatch) -> Result<Vec<ModelRow>> {
    let mut rows = vec![ModelRow::new(); batch.num_rows()];
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        check_kind(field)?;
        for (row, cells) in rows.iter_mut().enumerate() {
            for (key, cell) in cells_of(field, column, row)? {
                if let Some(before) = cells.insert(key.clone(), cell) {
                    return Err(Error::new(format!(
                        "row {row}: {key:?} has two columns, and is also {before:?}"
                    )));
                }
            }
        }
    }
    Ok(rows)
}

/// Reads several batches, one after the other.
///
/// # Errors
/// As [`rows_from_batch`].
pub fn rows_from_batches(batches: &[RecordBatch]) -> Result<Vec<ModelRow>> {
    batches.iter().try_fold(Vec::new(), |mut rows, batch| {
        rows.extend(rows_from_batch(batch)?);
        Ok(rows)
    })
}

/// Returns the record type in the metadata of a schema: `example`, `sequence-example` or `raw`.
pub fn record_type(schema: &Schema) -> Option<&str> {
    schema
        .metadata()
        .get("tfarrow.record_type")
        .map(String::as_str)
}

/// Returns the feature of a column: its side and name. `None` for tfarrow's own columns.
pub fn feature_of(field: &Field) -> Option<(ModelSide, String)> {
    let side = match role_of(field).ok()? {
        Role::Feature | Role::Context => ModelSide::Features,
        Role::Sequence => ModelSide::Lists,
        Role::Unset => return None,
    };
    let name = field
        .metadata()
        .get("tfarrow.feature")
        .unwrap_or(field.name());
    Some((side, name.clone()))
}

/// Returns the kind in the metadata of a column.
pub fn kind_of(field: &Field) -> Option<ModelKind> {
    match field.metadata().get("tfarrow.kind")?.as_str() {
        "bytes_list" => Some(ModelKind::Bytes),
        "float_list" => Some(ModelKind::Float),
        "int64_list" => Some(ModelKind::Int64),
        _ => None,
    }
}

fn role_of(field: &Field) -> Result<Role> {
    match field.metadata().get("tfarrow.role").map(String::as_str) {
        Some("feature") => Ok(Role::Feature),
        Some("context") => Ok(Role::Context),
        Some("sequence") => Ok(Role::Sequence),
        Some("unset") if field.name() == "_tfarrow_unset" => Ok(Role::Unset),
        other => Err(Error::new(format!(
            "column {:?} has the role {other:?}",
            field.name()
        ))),
    }
}

/// Checks that the type of a column fits the kind in its metadata.
fn check_kind(field: &Field) -> Result<()> {
    let role = role_of(field)?;
    let mut data_type = field.data_type();
    let mut depth = 0;
    while let DataType::List(item) = data_type {
        (data_type, depth) = (item.data_type(), depth + 1);
    }
    let kind = match data_type {
        DataType::Binary | DataType::BinaryView | DataType::Utf8 | DataType::Utf8View => {
            Some(ModelKind::Bytes)
        }
        DataType::Float32 => Some(ModelKind::Float),
        DataType::Int64 => Some(ModelKind::Int64),
        _ => None,
    };
    let sound = match role {
        Role::Feature | Role::Context => kind.is_some() && kind == kind_of(field) && depth <= 1,
        Role::Sequence => kind.is_some() && kind == kind_of(field) && depth == 2,
        Role::Unset => {
            data_type == &DataType::Utf8
                && depth == 1
                && field.metadata().get("tfarrow.kind").is_none()
        }
    };
    if sound && field.is_nullable() {
        Ok(())
    } else {
        Err(Error::new(format!("column {field:?} is not what it says")))
    }
}

/// Returns the cells that one row of a column adds to the record.
fn cells_of(
    field: &Field,
    column: &ArrayRef,
    row: usize,
) -> Result<Vec<((ModelSide, String), ModelCell)>> {
    if column.is_null(row) {
        return Ok(Vec::new());
    }
    let Some((side, name)) = feature_of(field) else {
        let names = column.as_list::<i32>().value(row);
        let names = names.as_string::<i32>().iter().flatten().map(str::to_owned);
        return Ok(names
            .map(|name| {
                (
                    (ModelSide::Features, name),
                    ModelCell::One(ModelValue::Unset),
                )
            })
            .collect());
    };
    let cell = match (side, column.as_list_opt::<i32>()) {
        (ModelSide::Features, None) => ModelCell::One(values_of(&column.slice(row, 1))?),
        (ModelSide::Features, Some(list)) => ModelCell::One(values_of(&list.value(row))?),
        (ModelSide::Lists, Some(lists)) => {
            ModelCell::Steps(steps_of(lists.value(row).as_list::<i32>())?)
        }
        (ModelSide::Lists, None) => {
            return Err(Error::new(format!("column {name:?} has no steps")));
        }
    };
    Ok(vec![((side, name), cell)])
}

fn steps_of(steps: &ListArray) -> Result<Vec<ModelValue>> {
    let step = |i| {
        if steps.is_null(i) {
            Ok(ModelValue::Unset)
        } else {
            values_of(&steps.value(i))
        }
    };
    (0..steps.len()).map(step).collect()
}

fn values_of(values: &ArrayRef) -> Result<ModelValue> {
    if values.null_count() > 0 {
        return Err(Error::new("a value in a list is null"));
    }
    Ok(match values.data_type() {
        DataType::Binary => ModelValue::Bytes(
            values
                .as_binary::<i32>()
                .iter()
                .flatten()
                .map(<[u8]>::to_vec)
                .collect(),
        ),
        DataType::BinaryView => ModelValue::Bytes(
            values
                .as_binary_view()
                .iter()
                .flatten()
                .map(<[u8]>::to_vec)
                .collect(),
        ),
        DataType::Utf8 => ModelValue::Bytes(
            values
                .as_string::<i32>()
                .iter()
                .flatten()
                .map(|s| s.as_bytes().to_vec())
                .collect(),
        ),
        DataType::Utf8View => ModelValue::Bytes(
            values
                .as_string_view()
                .iter()
                .flatten()
                .map(|s| s.as_bytes().to_vec())
                .collect(),
        ),
        DataType::Float32 => ModelValue::Float(
            values
                .as_primitive::<Float32Type>()
                .values()
                .iter()
                .map(|f| f.to_bits())
                .collect(),
        ),
        DataType::Int64 => ModelValue::Int64(values.as_primitive::<Int64Type>().values().to_vec()),
        other => return Err(Error::new(format!("no feature is decoded to {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, sync::Arc};

    use arrow_array::{
        BinaryArray, StringArray, StringViewArray,
        builder::{Int64Builder, ListBuilder, StringBuilder},
    };

    use super::*;

    /// The name, the values and the metadata of a column.
    type Part<'a> = (&'a str, ArrayRef, &'a [(&'a str, &'a str)]);

    fn field((name, array, metadata): &Part<'_>) -> Field {
        let metadata: HashMap<_, _> = metadata
            .iter()
            .map(|(k, v)| (format!("tfarrow.{k}"), (*v).to_owned()))
            .collect();
        Field::new(*name, array.data_type().clone(), true).with_metadata(metadata)
    }

    fn batch(columns: Vec<Part<'_>>) -> RecordBatch {
        let fields: Vec<_> = columns.iter().map(field).collect();
        let arrays = columns.into_iter().map(|(_, array, _)| array).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
    }

    #[test]
    fn reads_each_state_and_role() {
        let text: ArrayRef = Arc::new(StringViewArray::from(vec![Some("t"), None]));
        let mut lists = ListBuilder::new(ListBuilder::new(Int64Builder::new()));
        lists.values().append_value([Some(1)]);
        lists.values().append_null();
        lists.append(true);
        lists.append(false);
        let mut unset = ListBuilder::new(StringBuilder::new());
        unset.append_null();
        unset.append_value([Some("t")]);
        let batch = batch(vec![
            ("t", text, &[("role", "context"), ("kind", "bytes_list")]),
            (
                "feature_lists/t",
                Arc::new(lists.finish()),
                &[
                    ("role", "sequence"),
                    ("kind", "int64_list"),
                    ("feature", "t"),
                ],
            ),
            (
                "_tfarrow_unset",
                Arc::new(unset.finish()),
                &[("role", "unset")],
            ),
        ]);
        let t = |side| (side, "t".to_owned());
        let steps = ModelCell::Steps(vec![ModelValue::Int64(vec![1]), ModelValue::Unset]);
        assert_eq!(
            rows_from_batch(&batch).unwrap(),
            [
                ModelRow::from([
                    (
                        t(ModelSide::Features),
                        ModelCell::One(ModelValue::Bytes(vec![b"t".to_vec()]))
                    ),
                    (t(ModelSide::Lists), steps)
                ]),
                ModelRow::from([(t(ModelSide::Features), ModelCell::One(ModelValue::Unset))]),
            ]
        );
    }

    #[test]
    fn batches_that_contradict_their_metadata_are_errors() {
        let bytes = || -> ArrayRef { Arc::new(BinaryArray::from(vec![&b"b"[..]])) };
        let unset = || -> ArrayRef {
            let mut unset = ListBuilder::new(StringBuilder::new());
            unset.append_value([Some("b")]);
            Arc::new(unset.finish())
        };
        let feature: &[_] = &[("role", "feature"), ("kind", "bytes_list")];
        for columns in [
            vec![
                ("b", bytes(), feature),
                ("_tfarrow_unset", unset(), &[("role", "unset")][..]),
            ],
            vec![(
                "b",
                bytes(),
                &[("role", "feature"), ("kind", "int64_list")][..],
            )],
            vec![(
                "b",
                bytes(),
                &[("role", "sequence"), ("kind", "bytes_list")][..],
            )],
            vec![(
                "b",
                Arc::new(StringArray::from(vec!["b"])),
                &[("kind", "bytes_list")][..],
            )],
        ] {
            assert!(rows_from_batch(&batch(columns)).is_err());
        }
    }
}
