//! SQL over files and over objects of Python.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use datafusion::{
    catalog::streaming::StreamingTable,
    common::{TableReference, plan_err},
    error::Result,
    execution::SendableRecordBatchStream,
    physical_plan::{stream::RecordBatchStreamAdapter, streaming::PartitionStream},
    prelude::SessionContext,
    sql::parser::Statement,
};
use futures::StreamExt;
use pyo3::{prelude::*, types::PyDict};
use tfarrow_codec::schema_of_rows;
use tfarrow_datafusion::{OnNotice, QueryLimits, explain_missing_column, plan_statement, statements};

use crate::{
    options::ReadingOptions,
    remedy::Wording,
    rows::{QueryError, QueryRows, Running},
    stream::RawStream,
    tables::PythonTable,
};

/// Runs statements, and returns the rows of the last one. `tables` are objects with rows by their names: see [`PythonTable`].
#[pyfunction]
#[pyo3(signature = (query, tables, options, batch_rows=None))]
pub(crate) fn sql(
    py: Python<'_>,
    query: String,
    tables: &Bound<'_, PyDict>,
    options: &Bound<'_, PyDict>,
    batch_rows: Option<usize>,
) -> PyResult<RawStream> {
    let running = Running { batch_rows, ..Running::of(&ReadingOptions::of(options)?) };
    let table = |(name, object): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let table = PythonTable::new(format!("table {name}: "), &object)?;
        Ok((name, table))
    };
    let tables = tables.iter().map(table).collect::<PyResult<_>>()?;
    start(py, &running, Wording::Sql, query, tables).map(RawStream::new)
}

/// Starts statements over these tables.
pub(crate) fn start(
    py: Python<'_>,
    running: &Running,
    wording: Wording,
    query: String,
    tables: Vec<(String, PythonTable)>,
) -> PyResult<QueryRows> {
    let runs_python = !tables.is_empty();
    let plan = move |context: SessionContext, _: OnNotice| async move {
        run(&context, &query, tables).await.map_err(|error| {
            let hint = explain_missing_column(&error, &context);
            QueryError { error, hint }
        })
    };
    let running = Running { runs_python, ..running.clone() };
    py.detach(|| QueryRows::start(&running, wording, plan)).map_err(|error| error.raise(py, wording))
}

async fn run(
    context: &SessionContext,
    query: &str,
    tables: Vec<(String, PythonTable)>,
) -> Result<SendableRecordBatchStream> {
    for (name, table) in tables {
        let schema = Arc::clone(table.schema());
        let table = StreamingTable::try_new(schema, vec![Arc::new(table)])?;
        context.register_table(TableReference::bare(name), Arc::new(table))?;
    }
    let mut all = statements(query, context, QueryLimits::default())?.collect::<Result<Vec<_>>>()?;
    let Some(last) = all.pop() else { return plan_err!("there is no statement in the query") };
    for statement in all {
        let mut rows = execute(context, statement).await?;
        while let Some(batch) = rows.next().await {
            batch?;
        }
    }
    execute(context, last).await
}

/// Starts a statement. The rows have a record type only if their columns are those of such records.
async fn execute(context: &SessionContext, statement: Statement) -> Result<SendableRecordBatchStream> {
    let state = context.state();
    let plan = plan_statement(statement, &state).await?;
    let rows = context.execute_logical_plan(plan).await?.execute_stream().await?;
    let schema = schema_of_rows(&rows.schema());
    let batches = {
        let schema = Arc::clone(&schema);
        rows.map(move |batch| {
            let (_, columns, rows) = batch?.into_parts();
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?)
        })
    };
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}
