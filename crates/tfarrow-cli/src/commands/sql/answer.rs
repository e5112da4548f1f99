//! Execution of one statement, whose result is printed batch by batch.

use std::sync::Arc;

use anyhow::Result;
use arrow_schema::Schema;
use datafusion::{
    error::DataFusionError,
    logical_expr::LogicalPlan,
    physical_plan::execute_stream,
    prelude::SessionContext,
    sql::{parser::Statement, sqlparser::ast::Statement as SqlStatement},
};
use futures::StreamExt;
use tfarrow_datafusion::check_names;
use tfarrow_sql::{explain_missing_column, plan_statement};

use super::{missing_function, query_progress::QueryProgress, skip_report::SkipReport};
use crate::{
    args::Format,
    error::{Hinted, Usage},
    output::{self, Sink, View},
};

/// Executes the statements of one session, and prints their results.
#[derive(Clone)]
pub(super) struct Answers {
    context: SessionContext,
    pub(super) format: Format,
    pub(super) view: View,
    /// Whether a pager shows results that are longer than the terminal.
    pub(super) pages: bool,
    /// The destination of the results.
    pub(super) sink: Sink,
    skip_report: Arc<SkipReport>,
    /// Number of results printed.
    results: usize,
}

impl Answers {
    /// Executes statements in `context`, whose scans add to `skip_report`.
    pub(super) fn new(
        context: SessionContext,
        format: Format,
        sink: Sink,
        view: View,
        skip_report: Arc<SkipReport>,
    ) -> Self {
        Self {
            context,
            format,
            view,
            pages: true,
            sink,
            skip_report,
            results: 0,
        }
    }

    /// The session.
    pub(super) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Prints the result of a statement, and then the report of skipped records. Returns the number
    /// of rows; `None` for a statement without a result, such as SET.
    ///
    /// # Errors
    /// Planning or execution fails, or standard output cannot be written.
    pub(super) async fn answer(&mut self, statement: Statement) -> Result<Option<u64>> {
        self.skip_report.begin();
        let rows = self.print(statement).await;
        self.skip_report.print();
        rows
    }

    async fn print(&mut self, statement: Statement) -> Result<Option<u64>> {
        let state = self.context.state();
        let is_definition = is_show_create(&statement);
        let plan = plan_statement(statement, &state)
            .await
            .map_err(|error| self.explain(error))?;
        self.skip_report
            .set_writes(matches!(plan, LogicalPlan::Copy(_) | LogicalPlan::Dml(_)));
        let full = is_definition || describes(&plan);
        let frame = self
            .context
            .execute_logical_plan(plan)
            .await
            .map_err(|error| self.explain(error))?;
        let task = Arc::new(frame.task_ctx());
        let plan = frame
            .create_physical_plan()
            .await
            .map_err(|error| self.explain(error))?;
        let mut progress = Some(QueryProgress::of(Arc::clone(&plan)));
        let mut batches = execute_stream(plan, task).map_err(|error| self.explain(error))?;
        let schema = batches.schema();
        if schema.fields().is_empty() {
            while let Some(batch) = batches.next().await {
                batch.map_err(|error| self.explain(error))?;
            }
            return Ok(None);
        }
        self.check_format(&schema)?;
        let view = View { full, ..self.view };
        let sink = if self.pages {
            self.sink.paged()
        } else {
            self.sink.clone()
        };
        let mut rows = output::rows(self.format, &schema, view, &sink)?;
        let mut count = 0;
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(|error| self.explain(error))?;
            count += batch.num_rows() as u64;
            if !rows.is_waiting() {
                progress = None;
            }
            rows.write(&batch)?;
        }
        drop(progress);
        rows.finish()?;
        sink.show()?;
        self.results += 1;
        Ok(Some(count))
    }

    /// Checks that the format can have one more result, with the names of its columns.
    fn check_format(&self, schema: &Schema) -> Result<()> {
        if self.format.is_binary() && self.results > 0 {
            let why =
                "a file of this format holds one result: give one query, or use another --format";
            return Err(Usage(why.to_owned()).into());
        }
        if matches!(
            self.format,
            Format::Json | Format::Ndjson | Format::Parquet | Format::Arrow | Format::Tfrecord
        ) {
            check_names(schema)?;
        }
        Ok(())
    }

    /// An error with a hint at another column or function, if there is one of a similar name.
    fn explain(&self, error: DataFusionError) -> anyhow::Error {
        let hint = explain_missing_column(&error, &self.context);
        match hint.or_else(|| missing_function::hint(&error, &self.context)) {
            Some(hint) => Hinted { error, hint }.into(),
            None => anyhow::Error::new(error),
        }
    }
}

/// Whether a statement is SHOW CREATE TABLE, whose result is a statement.
fn is_show_create(statement: &Statement) -> bool {
    let Statement::Statement(statement) = statement else {
        return false;
    };
    matches!(statement.as_ref(), SqlStatement::ShowCreate { .. })
}

/// Whether the rows of a plan describe a table or a plan, so that no part of them can be left out.
fn describes(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_)
    )
}
