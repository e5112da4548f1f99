//! Planning of one statement.

use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Fields, Schema};
use datafusion::{
    common::plan_err,
    error::{DataFusionError, Result},
    execution::SessionState,
    logical_expr::{DdlStatement, DescribeTable, LogicalPlan},
    sql::parser::Statement,
};
use tfarrow_codec::file_schema::replace_fields;

use crate::{
    catalog::table_definition::{show_create, shown_source},
    session::{
        all_columns::{with_all_columns, without_all_columns},
        expr_limits::check_exprs,
        insert_columns::InsertColumns,
        plan_size::check_plan_size,
    },
    statements::headings::with_headings,
};

/// `plan_size`: the maximum number of operators, columns and expressions of a plan. The optimizer
/// needs up to some kilobytes for each.
const MAX_PLAN_SIZE: usize = 500_000;

/// Plans a statement of [`statements`](crate::statements). Computed columns get names without the
/// paths of files, `SHOW CREATE TABLE` accepts files, and DROP rejects them.
///
/// ```
/// use tfarrow_sql::{QueryLimits, SessionOptions, plan_statement, session_context, statements};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// let context = session_context(SessionOptions::default())?;
/// let query = format!("SELECT avg(price) FROM '{testdata}/shards/'");
/// for statement in statements(&query, &context, QueryLimits::default())? {
///     let plan = plan_statement(statement?, &context.state()).await?;
///     assert_eq!(plan.schema().field(0).name(), "avg(price)");
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
/// A name is unknown, a type does not fit, a file cannot be read, or the plan has more than 500,000
/// operators, columns and expressions.
pub async fn plan_statement(statement: Statement, state: &SessionState) -> Result<LogicalPlan> {
    let plan = match shown_source(&statement) {
        Some(source) => show_create(source, state).await?,
        None => planned(statement, state).await?,
    };
    check_plan_size(&plan, MAX_PLAN_SIZE)?;
    check_exprs(&plan, state.config().batch_size())?;
    check_drop(&plan, state).await?;
    with_headings(without_metadata(plan), state)
}

/// Plans a statement, with an error that names the numbers of columns where those of an INSERT
/// differ.
async fn planned(statement: Statement, state: &SessionState) -> Result<LogicalPlan> {
    if let Some(replaced) = without_all_columns(&statement) {
        match state.statement_to_plan(replaced).await {
            // The error of a column that does not exist would list the constant.
            Err(error) if matches!(error.find_root(), DataFusionError::SchemaError(..)) => {}
            planned => return with_all_columns(planned?),
        }
    }
    let insert = InsertColumns::of(&statement);
    match (state.statement_to_plan(statement).await, insert) {
        (Err(error), Some(insert)) => Err(insert.explained(error, state).await),
        (plan, _) => plan,
    }
}

/// Rejects `DROP TABLE` and `DROP VIEW` of files. DataFusion would find a table of their name, remove
/// nothing, and report no error.
///
/// Workaround for DataFusion 55, of which no issue is known.
async fn check_drop(plan: &LogicalPlan, state: &SessionState) -> Result<()> {
    let name = match plan {
        LogicalPlan::Ddl(DdlStatement::DropTable(drop)) => &drop.name,
        LogicalPlan::Ddl(DdlStatement::DropView(drop)) => &drop.name,
        _ => return Ok(()),
    };
    let Ok(schema) = state.schema_for_ref(name.clone()) else {
        return Ok(());
    };
    if schema.table_exist(name.table()) {
        return Ok(());
    }
    // A name that is neither a table nor readable files is an error of DataFusion, unless there is
    // IF EXISTS.
    match schema.table(name.table()).await {
        Ok(Some(_)) => plan_err!(
            "'{}' is a file source, not a table; DROP removes the tables and views that CREATE made, and no files",
            name.table()
        ),
        _ => Ok(()),
    }
}

/// Removes the metadata of nested Arrow fields from the types that a `DESCRIBE` shows, which
/// DataFusion prints. Other plans stay as they are.
///
/// Workaround for DataFusion 55, of which no issue is known.
fn without_metadata(plan: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::DescribeTable(DescribeTable {
        schema,
        output_schema,
    }) = plan
    else {
        return plan;
    };
    let fields: Fields = schema.fields().iter().map(plain_field).collect();
    let schema = Arc::new(Schema::new(fields));
    LogicalPlan::DescribeTable(DescribeTable {
        schema,
        output_schema,
    })
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let data_type = replace_fields(field.data_type(), plain_field);
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()))
}
