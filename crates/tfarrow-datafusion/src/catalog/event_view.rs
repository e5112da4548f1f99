//! The table of TensorBoard's event files: a view of the table of their messages, with a row for each value of a summary.
//!
//! ```text
//! events   step  wall_time  summary: {value: [{tag, metadata, simple_value, tensor, ..}, ..]}
//! view     run  step  wall_time  tag  plugin  kind  value  text  image  histogram
//! ```

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::{
    catalog::TableProvider,
    common::{Column, UnnestOptions},
    datasource::{ViewTable, provider_as_source},
    error::Result,
    functions::core::expr_fn::get_field,
    logical_expr::{LogicalPlanBuilder, col, ident},
};

use crate::{
    functions::event_value::{EVENT_VALUE_COLUMNS, event_time, event_value},
    schema::partition_columns::{EVENTS_SCAN, RUN_COLUMN},
    table::TfRecordTable,
};

/// The columns of an event that the view uses.
const STEP: &str = "step";
const WALL_TIME: &str = "wall_time";
const SUMMARY: &str = "summary";
const TAG: &str = "tag";
/// The column of what `event_value` reads of a value, in the plan.
const EVENT_VALUE: &str = "event_value";
/// The column of the values of a summary, which are then unnested, in the plan.
const SUMMARY_VALUE: &str = "summary_value";

/// Creates the view of a table of `tensorflow.Event` messages. Metadata columns of the table are its last columns.
///
/// # Errors
/// The table has no such columns.
pub(crate) fn event_view(table: &TfRecordTable) -> Result<ViewTable> {
    let events = table.with_runs(columns())?;
    let is_metadata = |field: &&Arc<Field>| ![RUN_COLUMN, STEP, WALL_TIME, SUMMARY].contains(&field.name().as_str());
    let schema = events.schema();
    let metadata: Vec<_> = schema.fields().iter().filter(is_metadata).map(|field| ident(field.name())).collect();
    let time = event_time().call(vec![col(WALL_TIME)]).alias(WALL_TIME);
    let values = get_field(col(SUMMARY), "value").alias(SUMMARY_VALUE);
    let tag = get_field(col(SUMMARY_VALUE), TAG).alias(TAG);
    // A projection of its own, so that a value is read once for all columns.
    let value = event_value().call(vec![col(SUMMARY_VALUE)]).alias(EVENT_VALUE);
    let of_value = |name: &str| get_field(col(EVENT_VALUE), name).alias(name);
    let rows = [RUN_COLUMN, STEP, WALL_TIME, TAG].map(col).into_iter().chain(EVENT_VALUE_COLUMNS.map(of_value));
    // An event without a summary has no row.
    let unnest = UnnestOptions::new().with_preserve_nulls(false);
    let plan = LogicalPlanBuilder::scan(EVENTS_SCAN, provider_as_source(Arc::new(events)), None)?
        .project([col(RUN_COLUMN), col(STEP), time, values].into_iter().chain(metadata.iter().cloned()))?
        .unnest_column_with_options(Column::from_name(SUMMARY_VALUE), unnest)?
        .project([col(RUN_COLUMN), col(STEP), col(WALL_TIME), tag, value].into_iter().chain(metadata.iter().cloned()))?
        .project(rows.chain(metadata))?
        .build()?;
    Ok(ViewTable::new(plan, None))
}

/// The fields of an event that the view uses. Tensors and audio stay serialized: `event_value` reads tensors.
fn columns() -> Vec<Field> {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let bytes = |name: &str, nullable| Field::new(name, DataType::Binary, nullable);
    let number = |name: &str, data_type| Field::new(name, data_type, false);
    let doubles = |name: &str| Field::new(name, DataType::new_list(DataType::Float64, true), false);
    let message = |name: &str, fields: Vec<Field>| Field::new(name, DataType::Struct(fields.into()), true);
    let size = |name: &str| number(name, DataType::Int32);
    let double = |name: &str| number(name, DataType::Float64);
    let value = vec![
        text(TAG),
        message("metadata", vec![message("plugin_data", vec![text("plugin_name")])]),
        Field::new("simple_value", DataType::Float32, true),
        message("image", vec![size("height"), size("width"), bytes("encoded_image_string", false)]),
        message("histo", vec![double("min"), double("max"), doubles("bucket_limit"), doubles("bucket")]),
        bytes("audio", true),
        bytes("tensor", true),
    ];
    let values = DataType::new_list(DataType::Struct(value.into()), true);
    vec![double(WALL_TIME), number(STEP, DataType::Int64), message(SUMMARY, vec![Field::new("value", values, false)])]
}
