//! `CREATE EXTERNAL TABLE .. STORED AS TFRECORD`.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema};
use datafusion::{
    catalog::{Session, TableProvider, TableProviderFactory},
    common::{DFSchema, ScalarValue, plan_err},
    error::Result,
    logical_expr::{CreateExternalTable, Expr},
};
use futures::future::BoxFuture;
use tfarrow_codec::OnError;
use tfarrow_dataset::{Shard, internals::are_events};
use tfarrow_scan::{Inferred, Sample};

use crate::{
    blocking::blocking,
    error::external,
    options::TfRecordOptions,
    table::{
        TfRecordTable,
        builder::{SAMPLE_OF_LENGTHS, TfRecordTableBuilder, infer},
        files::TableFiles,
        registry::{TableRegistry, queried},
    },
};

/// Creates the tables of `CREATE EXTERNAL TABLE name [(columns)] STORED AS TFRECORD [PARTITIONED BY
/// (..)] LOCATION '..' [OPTIONS (..)]`.
///
/// Without columns, the schema is inferred, or follows from the options `proto` and `message`.
/// TensorBoard's event files have fixed columns. Declared columns correspond to the parse spec of
/// `tf.io.parse_example`:
///
/// | SQL | `tf.io` |
/// |---|---|
/// | `label INT` | `FixedLenFeature([], tf.int64)`, and null if the feature is missing |
/// | `label INT DEFAULT 0` | `FixedLenFeature([], tf.int64, 0)` |
/// | `label INT NOT NULL` | `FixedLenFeature([], tf.int64)` |
/// | `embedding FLOAT[3]` | `FixedLenFeature([3], tf.float32)` |
/// | `tokens BIGINT[]` | `VarLenFeature(tf.int64)`, `RaggedFeature` |
/// | `frames FLOAT[][]` | a feature list of a SequenceExample |
///
/// The location is a source as in `FROM '..'`; every query lists its files again. With declared
/// columns, it may be a folder that is empty or does not exist, for INSERT to fill.
#[derive(Debug, Default)]
pub struct TfRecordTableFactory;

impl TableProviderFactory for TfRecordTableFactory {
    fn create<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        state: &'life1 dyn Session,
        command: &'life2 CreateExternalTable,
    ) -> BoxFuture<'async_trait, Result<Arc<dyn TableProvider>>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
    {
        create_table(state, command)
    }
}

/// Lists the files of the table, and determines its columns.
fn create_table<'a>(
    state: &'a dyn Session,
    command: &'a CreateExternalTable,
) -> BoxFuture<'a, Result<Arc<dyn TableProvider>>> {
    Box::pin(async move {
        if command.unbounded {
            return plan_err!("TFRECORD tables cannot be unbounded; leave UNBOUNDED out");
        }
        if !command.order_exprs.is_empty() {
            return plan_err!(
                "TFRECORD tables have no declared order; write ORDER BY in the query"
            );
        }
        if !command.constraints.is_empty() {
            return plan_err!(
                "TFRECORD tables do not enforce keys; leave PRIMARY KEY and UNIQUE out"
            );
        }
        let given = command
            .options
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let options = TfRecordOptions::of(state.config()).with(given)?;
        let table = match command.schema.fields().is_empty() {
            true => inferred(command, options).await?,
            false => declared(command, options, state).await?,
        };
        match state.config().get_extension::<TableRegistry>() {
            Some(registry) => registry.register(table, command.name.table()),
            None => queried(table),
        }
    })
}

/// Infers the columns of the table. The partition columns are those that the statement names, else
/// those of the folders.
async fn inferred(
    command: &CreateExternalTable,
    options: TfRecordOptions,
) -> Result<TfRecordTable> {
    let sources = command.locations.clone();
    let named = command.table_partition_cols.clone();
    blocking(move || {
        let table = TfRecordTableBuilder::listed(sources)
            .with_options(options)
            .build_blocking()?;
        if table.is_of_events() && !named.is_empty() {
            return plan_err!(
                "tables of TensorBoard's files have the column run of their folders; leave \
                 PARTITIONED BY out"
            );
        }
        let mut partitions = Vec::with_capacity(named.len());
        for name in named {
            let columns = table.folder_columns();
            partitions.push(match columns.iter().find(|field| *field.name() == name) {
                Some(inferred) => Arc::clone(inferred),
                None => Arc::new(Field::new(name, DataType::Utf8View, true)),
            });
        }
        table.partitioned(partitions)
    })
    .await
}

async fn declared(
    command: &CreateExternalTable,
    options: TfRecordOptions,
    state: &dyn Session,
) -> Result<TfRecordTable> {
    if options.message.is_some() {
        return plan_err!(
            "the option message defines the columns of the table; leave the columns out of the statement, or the option"
        );
    }
    let schema = command.schema.as_arrow();
    let mut partitions = Vec::with_capacity(command.table_partition_cols.len());
    for name in &command.table_partition_cols {
        partitions.push(Arc::new(schema.field_with_name(name)?.clone()));
    }
    let mut features = schema.fields().to_vec();
    features.retain(|field| !command.table_partition_cols.contains(field.name()));
    let features = Schema::new(features);
    let defaults = command
        .column_defaults
        .iter()
        .map(|(name, value)| Ok((name.clone(), constant(value, state)?)));
    let defaults = defaults.collect::<Result<HashMap<_, _>>>()?;
    let sources = command.locations.clone();
    let insert_defaults = command.column_defaults.clone();
    blocking(move || {
        let (files, shards) = TableFiles::listed(sources).map_err(external)?;
        if options.record_type.is_none() && are_events(&shards) {
            return plan_err!(
                "the columns of TensorBoard's files are fixed; leave the columns out of the \
                 statement, and select some of them"
            );
        }
        let sample = first_records(&shards, &options)?;
        TfRecordTableBuilder::of_files(files, shards)
            .with_options(options)
            .with_schema(features, defaults)
            .with_seen(sample)
            .with_partition_columns(partitions)
            .with_insert_defaults(insert_defaults)
            .build_blocking()
    })
    .await
}

/// Summarizes the first records of the shards, for their type and average length; `None` without
/// shards.
fn first_records(shards: &[Shard], options: &TfRecordOptions) -> Result<Option<Inferred>> {
    // Corrupt records are reported by the query that reads them.
    let skip = TfRecordOptions {
        on_error: OnError::Skip,
        ..options.clone()
    };
    match (!shards.is_empty())
        .then(|| infer(shards, &skip, Sample::Records(SAMPLE_OF_LENGTHS)))
        .transpose()
    {
        // If the type is given, only the average length is used, which is optional.
        Err(_) if options.record_type.is_some() => Ok(None),
        sample => sample,
    }
}

/// Evaluates an expression that refers to no column.
fn constant(expr: &Expr, state: &dyn Session) -> Result<ScalarValue> {
    let expr = state.create_physical_expr(expr.clone(), &DFSchema::empty())?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    ScalarValue::try_from_array(&expr.evaluate(&row)?.into_array(1)?, 0)
}
