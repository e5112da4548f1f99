//! `CREATE EXTERNAL TABLE .. STORED AS TFRECORD`.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider, TableProviderFactory},
    common::{DFSchema, ScalarValue, plan_err},
    error::Result,
    logical_expr::{CreateExternalTable, Expr},
};
use tfarrow_codec::{OnError, RecordType};
use tfarrow_dataset::{Inferred, Sample, Shard};

use crate::{
    columns::Columns,
    error::external,
    options::TfRecordOptions,
    origin::Origin,
    partitions::Partitions,
    session::Shared,
    table::{Files, TfRecordTable, blocking, look},
};

/// Records of each shard that are looked at where the columns are declared.
const LOOK: usize = 10;

/// Makes the tables of `CREATE EXTERNAL TABLE name [(columns)] STORED AS TFRECORD [PARTITIONED BY (..)] LOCATION '..'
/// [OPTIONS (..)]`.
///
/// Without columns the schema is inferred. Columns that are declared are the parse spec of `tf.io.parse_example`:
///
/// | SQL | `tf.io` |
/// |---|---|
/// | `label INT` | `FixedLenFeature([], tf.int64)`, and null where the feature is missing |
/// | `label INT DEFAULT 0` | `FixedLenFeature([], tf.int64, 0)` |
/// | `label INT NOT NULL` | `FixedLenFeature([], tf.int64)` |
/// | `embedding FLOAT[3]` | `FixedLenFeature([3], tf.float32)` |
/// | `tokens BIGINT[]` | `VarLenFeature(tf.int64)`, `RaggedFeature` |
/// | `frames FLOAT[][]` | a feature list of a SequenceExample |
///
/// The location is a source as in `FROM '..'`; what it names is looked up by every query. One with declared columns may
/// be a folder that is empty or not there, for INSERT to fill.
#[derive(Debug, Default)]
pub struct TfRecordTableFactory;

#[async_trait]
impl TableProviderFactory for TfRecordTableFactory {
    async fn create(&self, state: &dyn Session, command: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        if command.unbounded {
            return plan_err!("TFRECORD tables are read to their end: leave UNBOUNDED out");
        }
        if !command.order_exprs.is_empty() {
            return plan_err!("nothing in TFRecord files says that they are sorted: ORDER BY in the query instead");
        }
        if !command.constraints.is_empty() {
            return plan_err!("nothing checks keys of TFRECORD tables: leave PRIMARY KEY and UNIQUE out");
        }
        let given = command.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let options = TfRecordOptions::of(state.config()).with(given)?;
        let table = match command.schema.fields().is_empty() {
            true => inferred(command, options).await?,
            false => declared(command, options, state).await?,
        };
        match state.config().get_extension::<Shared>() {
            Some(shared) => Ok(shared.adopt(table, command.name.table())),
            None => Ok(Arc::new(table)),
        }
    }
}

/// The folders that are columns are those that the statement names, else those that are found.
async fn inferred(command: &CreateExternalTable, options: TfRecordOptions) -> Result<TfRecordTable> {
    let (sources, named) = (command.locations.clone(), command.table_partition_cols.clone());
    blocking(move || {
        let table = TfRecordTable::named_blocking(sources, &options)?;
        let folders = named.into_iter().map(|name| Arc::new(Field::new(name, DataType::Utf8View, true)));
        table.partitioned(folders.collect(), &options)
    })
    .await
}

async fn declared(
    command: &CreateExternalTable,
    options: TfRecordOptions,
    state: &dyn Session,
) -> Result<TfRecordTable> {
    let schema = command.schema.as_arrow();
    let folder = |name: &String| schema.field_with_name(name).cloned().map(Arc::new);
    let folders = command.table_partition_cols.iter().map(folder).collect::<Result<Vec<FieldRef>, _>>()?;
    let is_feature = |field: &&FieldRef| !command.table_partition_cols.contains(field.name());
    let features = Schema::new(schema.fields().iter().filter(is_feature).cloned().collect::<Vec<_>>());
    let defaults = command.column_defaults.iter().map(|(name, value)| Ok((name.clone(), constant(value, state)?)));
    let defaults = defaults.collect::<Result<HashMap<_, _>>>()?;
    let sources = command.locations.clone();
    let table = blocking(move || {
        let (files, shards) = Files::named(sources).map_err(external)?;
        let seen = first_records(&shards, &options)?;
        let record_type = options.record_type.or_else(|| record_type(seen.as_ref()?));
        let columns = Columns::declared(&features, &defaults, record_type, options.bytes_type.is_view())?;
        let table = TfRecordTable::of_columns(files, columns, Partitions::declared(folders), &options)?;
        Ok(table.with_origin(Origin::declared(seen)))
    })
    .await?;
    Ok(table.with_defaults(command.column_defaults.clone()))
}

/// What a few records hold, which tells their type and about how long they are; `None` where there are none yet.
fn first_records(shards: &[Shard], options: &TfRecordOptions) -> Result<Option<Inferred>> {
    // What is damaged is said by the query that reads it.
    let skip = TfRecordOptions { on_error: OnError::Skip, ..options.clone() };
    match (!shards.is_empty()).then(|| look(shards, &skip, Sample::Records(LOOK))).transpose() {
        // Only their length is asked for, which is a help and no need.
        Err(_) if options.record_type.is_some() => Ok(None),
        seen => seen,
    }
}

/// What the records look like. Columns are declared, so that features are expected; what records have none says so by
/// record and byte.
fn record_type(seen: &Inferred) -> Option<RecordType> {
    Some(seen.summary.record_type()).filter(|record_type| *record_type != RecordType::Raw)
}

/// The value of an expression that no row has a part in.
fn constant(expr: &Expr, state: &dyn Session) -> Result<ScalarValue> {
    let expr = state.create_physical_expr(expr.clone(), &DFSchema::empty())?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    ScalarValue::try_from_array(&expr.evaluate(&row)?.into_array(1)?, 0)
}
