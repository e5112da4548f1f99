use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};

/// 9 tf.SequenceExample records in 1 shard.
pub fn schema() -> Schema {
    let map = |key: &str, value: &str| HashMap::from([(key.to_owned(), value.to_owned())]);
    let fields = vec![
        Field::new("empty", DataType::List(Field::new("item", DataType::List(Field::new("item", DataType::Binary, true).into()), true).into()), true),
        Field::new("feature_lists/shared", DataType::List(Field::new("item", DataType::List(Field::new("item", DataType::Int64, true).into()), true).into()), true).with_metadata(map("tfarrow.feature", "shared")),
        Field::new("frame", DataType::List(Field::new("item", DataType::List(Field::new("item", DataType::Float32, true).into()), true).into()), true),
        Field::new("id", DataType::Int64, true),
        Field::new("rates", DataType::List(Field::new("item", DataType::Int64, true).into()), true),
        Field::new("shared", DataType::Utf8, true),
        Field::new("speaker", DataType::Utf8, true),
        Field::new("tags", DataType::List(Field::new("item", DataType::List(Field::new("item", DataType::Int64, true).into()), true).into()), true),
        Field::new("token", DataType::List(Field::new("item", DataType::List(Field::new("item", DataType::Utf8, true).into()), true).into()), true),
        Field::new("unset", DataType::List(Field::new("item", DataType::List(Field::new("item", DataType::Binary, true).into()), true).into()), true),
        Field::new("_tfarrow_unset", DataType::List(Field::new("item", DataType::Utf8, true).into()), true),
    ];
    Schema::new_with_metadata(fields, map("tfarrow.record_type", "sequence-example"))
}
