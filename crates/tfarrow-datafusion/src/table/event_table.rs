//! The table of TensorBoard's event files: a query of the table of their messages, with a row for
//! each value of a summary. Parquet and Arrow files that event files were converted to have the
//! same table.
//!
//! ```text
//! messages   step  wall_time  summary: {value: [{tag, metadata, simple_value, tensor, ..}, ..]}
//! rows       run  step  wall_time  tag  plugin  kind  value  text  image  histogram
//! ```

use std::{borrow::Cow, sync::Arc};

use arrow_schema::{DataType, Field, SchemaRef};
use datafusion::{
    catalog::{Session, TableProvider},
    common::{Column, JoinType, UnnestOptions},
    datasource::{ViewTable, provider_as_source},
    error::Result,
    functions::core::expr_fn::get_field,
    logical_expr::{
        Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableType, col, ident,
        lit,
    },
};

use tfarrow_codec::{
    WriterBuilder,
    schema::{INDEX_COLUMN, MESSAGE},
};
use tfarrow_dataset::{ShardFormat, internals::EVENT_MESSAGE};

use crate::{
    functions::event_value::{EVENT_VALUE_COLUMNS, event_time, event_value, event_value_field},
    options::{FILE_COLUMN, MetadataColumns},
    plan_future::PlanFuture,
    schema::partition_columns::RUN_COLUMN,
    table::TfRecordTable,
};

/// The names of the tables of messages in the plan.
const EVENTS_SCAN: &str = "tensorboard_events";
const RESTARTS_SCAN: &str = "tensorboard_restarts";
/// The columns of an event that the query reads.
const STEP: &str = "step";
const WALL_TIME: &str = "wall_time";
const SUMMARY: &str = "summary";
/// The fields of the event of a restart, and its status.
const SESSION_LOG: &str = "session_log";
const STATUS: &str = "status";
const START: &str = "START";
const TAG: &str = "tag";
/// The column of the results of `event_value`, in the plan.
const EVENT_VALUE: &str = "event_value";
/// The column of the values of a summary, which are then unnested, in the plan.
const SUMMARY_VALUE: &str = "summary_value";

/// Returns whether rows with these columns are TensorBoard's events: they were converted from event
/// files, and have the columns that the query reads.
pub fn are_event_columns(schema: &SchemaRef) -> bool {
    let message = schema.metadata().get(MESSAGE);
    message.is_some_and(|message| message == EVENT_MESSAGE)
        && [STEP, WALL_TIME, SUMMARY]
            .iter()
            .all(|column| schema.column_with_name(column).is_some())
        && WriterBuilder::new()
            .build_encoder(Arc::clone(schema))
            .is_ok()
}

/// The table of TensorBoard's event files. DataFusion replaces it by its query, as it does for
/// views.
#[derive(Debug)]
pub struct EventTable {
    view: ViewTable,
    /// Whether the files are no event files, but files that these were converted to.
    is_converted: bool,
}

impl EventTable {
    /// Creates the table of the values in the `tensorflow.Event` messages of `table`. Metadata
    /// columns of `table` are the last columns.
    ///
    /// # Errors
    /// The files of `table` cannot be listed, or it has no such messages.
    pub(crate) fn new(table: &TfRecordTable) -> Result<Self> {
        let is_converted = table.shards().is_some_and(|shards| {
            shards
                .iter()
                .any(|shard| shard.format != ShardFormat::TfRecord)
        });
        Ok(Self {
            view: ViewTable::new(query(table)?, None),
            is_converted,
        })
    }

    /// Returns whether the files are no event files, but files that these were converted to.
    pub fn is_converted(&self) -> bool {
        self.is_converted
    }
}

/// Not a view, because `DROP TABLE` and `CREATE OR REPLACE EXTERNAL TABLE` accept tables only.
impl TableProvider for EventTable {
    fn schema(&self) -> SchemaRef {
        self.view.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.view.get_logical_plan()
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.view.supports_filters_pushdown(filters)
    }

    fn scan<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        state: &'life1 dyn Session,
        projection: Option<&'life2 Vec<usize>>,
        filters: &'life3 [Expr],
        limit: Option<usize>,
    ) -> PlanFuture<'async_trait>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
    {
        self.view.scan(state, projection, filters, limit)
    }
}

/// The query of the rows.
fn query(table: &TfRecordTable) -> Result<LogicalPlan> {
    let events = table.with_runs(columns())?;
    let mut metadata = Vec::new();
    for field in events.schema().fields() {
        if ![RUN_COLUMN, STEP, WALL_TIME, SUMMARY].contains(&field.name().as_str()) {
            metadata.push(ident(field.name()));
        }
    }
    let events = match table.options().purge_orphaned_data {
        true => purged(table)?,
        false => scan(EVENTS_SCAN, events)?,
    };
    let time = event_time().call(vec![col(WALL_TIME)]).alias(WALL_TIME);
    let values = get_field(col(SUMMARY), "value").alias(SUMMARY_VALUE);
    let tag = get_field(col(SUMMARY_VALUE), TAG).alias(TAG);
    // A projection of its own, so that a value is read once for all columns.
    let value = event_value()
        .call(vec![col(SUMMARY_VALUE)])
        .alias(EVENT_VALUE);
    let mut rows = Vec::from([RUN_COLUMN, STEP, WALL_TIME, TAG].map(col));
    for name in EVENT_VALUE_COLUMNS {
        let field = event_value_field(name).call(vec![col(EVENT_VALUE)]);
        rows.push(field.alias(name));
    }
    // An event without a summary has no row.
    let unnest = UnnestOptions::new().with_preserve_nulls(false);
    events
        .project(
            [col(RUN_COLUMN), col(STEP), time, values]
                .into_iter()
                .chain(metadata.iter().cloned()),
        )?
        .unnest_column_with_options(Column::from_name(SUMMARY_VALUE), unnest)?
        .project(
            [col(RUN_COLUMN), col(STEP), col(WALL_TIME), tag, value]
                .into_iter()
                .chain(metadata.iter().cloned()),
        )?
        .project(rows.into_iter().chain(metadata))?
        .build()
}

/// The events that no later restart of their run replaces. An event is replaced if an event of a
/// restart with the same or an earlier step follows it in its file, or is in a later file of the
/// run (`EventAccumulator` of TensorBoard).
fn purged(table: &TfRecordTable) -> Result<LogicalPlanBuilder> {
    let wanted = MetadataColumns {
        file: true,
        record: true,
        ..table.options().metadata_columns
    };
    let table = table.with_metadata_columns(wanted);
    // What is skipped is reported by the other scan of the same records.
    let restarts = scan(
        RESTARTS_SCAN,
        table.with_runs(restart_columns())?.with_notices(None),
    )?
    .filter(get_field(col(SESSION_LOG), STATUS).eq(lit(START)))?
    .project([RUN_COLUMN, STEP, FILE_COLUMN, INDEX_COLUMN].map(ident))?;
    let [run, step, file, record] = [RUN_COLUMN, STEP, FILE_COLUMN, INDEX_COLUMN].map(|column| {
        let of_event = Column::new(Some(EVENTS_SCAN), column);
        let of_restart = Column::new(Some(RESTARTS_SCAN), column);
        (Expr::Column(of_event), Expr::Column(of_restart))
    });
    let is_later = file
        .1
        .clone()
        .gt(file.0.clone())
        .or(file.1.eq(file.0).and(record.1.gt(record.0)));
    let is_replaced = [run.0.eq(run.1), step.1.lt_eq(step.0), is_later];
    // The restarts, of which there are few, are held in memory.
    let events = scan(EVENTS_SCAN, table.with_runs(columns())?)?.build()?;
    restarts.join_on(events, JoinType::RightAnti, is_replaced)
}

/// The scan of a table of messages, which has this name in the plan.
fn scan(name: &str, events: TfRecordTable) -> Result<LogicalPlanBuilder> {
    LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(events)), None)
}

/// The fields of the event of a restart.
fn restart_columns() -> Vec<Field> {
    let status = Field::new(STATUS, DataType::Utf8, false);
    let session_log = Field::new(SESSION_LOG, DataType::Struct(vec![status].into()), true);
    vec![Field::new(STEP, DataType::Int64, false), session_log]
}

/// The fields of an event that the query reads. Tensors and audio stay serialized: `event_value`
/// reads tensors.
fn columns() -> Vec<Field> {
    let plugin_data = vec![Field::new("plugin_name", DataType::Utf8, false)];
    let metadata = vec![Field::new_struct("plugin_data", plugin_data, true)];
    let image = vec![
        Field::new("height", DataType::Int32, false),
        Field::new("width", DataType::Int32, false),
        Field::new("encoded_image_string", DataType::Binary, false),
    ];
    let doubles = DataType::new_list(DataType::Float64, true);
    let histo = vec![
        Field::new("min", DataType::Float64, false),
        Field::new("max", DataType::Float64, false),
        Field::new("bucket_limit", doubles.clone(), false),
        Field::new("bucket", doubles, false),
    ];
    let value = vec![
        Field::new(TAG, DataType::Utf8, false),
        Field::new_struct("metadata", metadata, true),
        Field::new("simple_value", DataType::Float32, true),
        Field::new_struct("image", image, true),
        Field::new_struct("histo", histo, true),
        Field::new("audio", DataType::Binary, true),
        Field::new("tensor", DataType::Binary, true),
    ];
    let values = DataType::new_list(DataType::Struct(value.into()), true);
    let summary = vec![Field::new("value", values, false)];
    vec![
        Field::new(WALL_TIME, DataType::Float64, false),
        Field::new(STEP, DataType::Int64, false),
        Field::new_struct(SUMMARY, summary, true),
    ]
}
