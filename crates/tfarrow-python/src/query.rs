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
    sql::{
        parser::Statement,
        sqlparser::ast::{self, SetExpr},
    },
};
use futures::StreamExt;
use pyo3::{prelude::*, types::PyDict};
use tfarrow_codec::schema_of_rows;
use tfarrow_sql::{
    QueryLimits, SessionOptions, explain_missing_column, plan_statement, session_context,
    statements,
};

use crate::{
    options::ReadingOptions,
    remedy::Wording,
    rows::{QueryError, QueryRows, Running},
    stream::RawStream,
    tables::PythonTable,
};

/// Runs statements, and returns the rows of the last one. `tables` are objects with rows by their
/// names: see [`PythonTable`].
#[pyfunction]
#[pyo3(signature = (query, tables, options, batch_rows=None))]
pub(crate) fn sql(
    py: Python<'_>,
    query: String,
    tables: &Bound<'_, PyDict>,
    options: &Bound<'_, PyDict>,
    batch_rows: Option<usize>,
) -> PyResult<RawStream> {
    let running = Running {
        batch_rows,
        ..Running::of(&ReadingOptions::of(options)?)
    };
    let mut named = Vec::new();
    for (name, object) in tables {
        let name: String = name.extract()?;
        let table = PythonTable::new(format!("table {name}: "), &object)?;
        named.push((name, table));
    }
    start(py, &running, Wording::Sql, query, named).map(RawStream::new)
}

/// Whether statements run when they are given, once, and not each time that their rows are read:
/// one of them writes, or the last one has no rows. False for statements that cannot be parsed,
/// whose error is that of reading.
#[pyfunction]
pub(crate) fn runs_at_once(py: Python<'_>, query: &str) -> bool {
    let parsed = py.detach(|| -> Result<Vec<Statement>> {
        let context = session_context(SessionOptions::default())?;
        statements(query, &context, QueryLimits::default())?.collect()
    });
    let Ok(statements) = parsed else { return false };
    statements
        .iter()
        .any(|statement| effect(statement) == Effect::Writes)
        || statements
            .last()
            .is_some_and(|last| effect(last) == Effect::Defines)
}

/// What a statement does besides returning rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Nothing,
    /// Changes the session, and so the statements after it.
    Defines,
    /// Changes files, or may do so.
    Writes,
}

fn effect(statement: &Statement) -> Effect {
    match statement {
        Statement::CopyTo(_) => Effect::Writes,
        Statement::Explain(explain) if explain.options.analyze => effect(&explain.statement),
        Statement::Explain(_) => Effect::Nothing,
        Statement::CreateExternalTable(_) | Statement::Reset(_) => Effect::Defines,
        Statement::Statement(statement) => effect_of_ast(statement),
    }
}

fn effect_of_ast(statement: &ast::Statement) -> Effect {
    use ast::Statement as S;
    match statement {
        S::Query(query) => match *query.body {
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Effect::Writes
            }
            _ => Effect::Nothing,
        },
        // A prepared statement may be one that writes.
        S::Insert(_)
        | S::Update(_)
        | S::Delete(_)
        | S::Merge(_)
        | S::Truncate(_)
        | S::Copy { .. }
        | S::Execute { .. } => Effect::Writes,
        S::Explain { .. } | S::ExplainTable { .. } => Effect::Nothing,
        S::ShowTables { .. }
        | S::ShowColumns { .. }
        | S::ShowVariable { .. }
        | S::ShowCreate { .. } => Effect::Nothing,
        S::ShowFunctions { .. }
        | S::ShowVariables { .. }
        | S::ShowDatabases { .. }
        | S::ShowSchemas { .. } => Effect::Nothing,
        _ => Effect::Defines,
    }
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
    let running = Running {
        runs_python,
        ..running.clone()
    };
    let rows = py.detach(|| {
        QueryRows::start(&running, wording, move |context, _| {
            planned(context, query, tables)
        })
    });
    rows.map_err(|error| error.raise(py, wording))
}

/// Plans statements. An error has a hint at a column of a similar name, if there is one.
async fn planned(
    context: SessionContext,
    query: String,
    tables: Vec<(String, PythonTable)>,
) -> Result<SendableRecordBatchStream, QueryError> {
    run(&context, &query, tables).await.map_err(|error| {
        let hint = explain_missing_column(&error, &context);
        QueryError { error, hint }
    })
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
    let mut all =
        statements(query, context, QueryLimits::default())?.collect::<Result<Vec<_>>>()?;
    let Some(last) = all.pop() else {
        return plan_err!("there is no statement in the query");
    };
    for statement in all {
        let mut rows = execute(context, statement).await?;
        while let Some(batch) = rows.next().await {
            batch?;
        }
    }
    execute(context, last).await
}

/// Starts a statement. The rows have a record type only if their columns are those of such records.
async fn execute(
    context: &SessionContext,
    statement: Statement,
) -> Result<SendableRecordBatchStream> {
    let state = context.state();
    let plan = plan_statement(statement, &state).await?;
    let rows = context
        .execute_logical_plan(plan)
        .await?
        .execute_stream()
        .await?;
    let schema = schema_of_rows(&rows.schema());
    let batches = {
        let schema = Arc::clone(&schema);
        rows.map(move |batch| {
            let (_, columns, rows) = batch?.into_parts();
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            Ok(RecordBatch::try_new_with_options(
                Arc::clone(&schema),
                columns,
                &options,
            )?)
        })
    };
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}
