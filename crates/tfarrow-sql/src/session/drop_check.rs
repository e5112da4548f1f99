//! Errors for DROP of files. DataFusion would find a table of their name, remove nothing, and
//! report no error.
//!
//! Workaround for DataFusion 55, of which no issue is known.

use datafusion::{
    common::plan_err,
    error::Result,
    execution::SessionState,
    logical_expr::{DdlStatement, LogicalPlan},
};

/// Rejects `DROP TABLE` and `DROP VIEW` of files.
pub(crate) async fn check_drop(plan: &LogicalPlan, state: &SessionState) -> Result<()> {
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
