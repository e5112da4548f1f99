//! The error of an INSERT whose query has another number of columns than its table, with both
//! numbers.
//!
//! Workaround for DataFusion 55, of which no issue is known. Delete when its error has the numbers.

use datafusion::{
    common::plan_datafusion_err,
    error::{DataFusionError, Result},
    execution::SessionState,
    sql::{
        parser::Statement,
        planner::object_name_to_table_reference,
        sqlparser::ast::{Insert, ObjectName, Query, Statement as SqlStatement, TableObject},
    },
};

/// The beginning of DataFusion's error, which has no numbers.
const MISMATCH: &str = "Column count doesn't match insert query!";

/// The parts of an INSERT that have columns.
pub(crate) struct InsertColumns {
    table: ObjectName,
    /// Number of columns that the statement lists after the table.
    listed: usize,
    query: Box<Query>,
}

impl InsertColumns {
    /// The parts of a statement that is an INSERT of a query.
    pub(crate) fn of(statement: &Statement) -> Option<Self> {
        let Statement::Statement(statement) = statement else {
            return None;
        };
        let SqlStatement::Insert(Insert {
            table,
            columns,
            source: Some(query),
            ..
        }) = statement.as_ref()
        else {
            return None;
        };
        let TableObject::TableName(table) = table else {
            return None;
        };
        Some(Self {
            table: table.clone(),
            listed: columns.len(),
            query: query.clone(),
        })
    }

    /// Adds the numbers to the error of DataFusion. Other errors stay as they are.
    pub(crate) async fn explained(
        self,
        error: DataFusionError,
        state: &SessionState,
    ) -> DataFusionError {
        match error.find_root() {
            DataFusionError::Plan(text) if text.starts_with(MISMATCH) => {}
            _ => return error,
        }
        self.mismatch(state).await.unwrap_or(error)
    }

    async fn mismatch(self, state: &SessionState) -> Result<DataFusionError> {
        let Self {
            table,
            listed,
            query,
        } = self;
        let (place, expected) = match listed {
            0 => {
                let name = object_name_to_table_reference(table.clone(), true)?;
                let found = state
                    .schema_for_ref(name.clone())?
                    .table(name.table())
                    .await?;
                (
                    "the table",
                    found.map_or(0, |table| table.schema().fields().len()),
                )
            }
            listed => ("the list of the statement", listed),
        };
        let query = Statement::Statement(Box::new(SqlStatement::Query(query)));
        let found = state
            .statement_to_plan(query)
            .await?
            .schema()
            .fields()
            .len();
        let s = if found == 1 { "" } else { "s" };
        Ok(plan_datafusion_err!(
            "INSERT INTO {table}: the query has {found} column{s}, {place} has {expected}; \
             list the columns: INSERT INTO {table} (a, b) SELECT a, b .."
        ))
    }
}
