//! Planning of one statement.

use datafusion::{
    error::{DataFusionError, Result},
    execution::SessionState,
    logical_expr::LogicalPlan,
    sql::parser::Statement,
};

use crate::{
    catalog::table_definition::{show_create, shown_source},
    session::{
        all_columns::{with_all_columns, without_all_columns},
        described_types::without_metadata,
        drop_check::check_drop,
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
