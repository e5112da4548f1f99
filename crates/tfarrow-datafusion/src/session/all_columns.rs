//! `SELECT *` of one table, without the time that DataFusion takes for each pair of columns.

use std::{mem, sync::Arc};

use datafusion::{
    common::tree_node::{Transformed, TreeNode},
    error::Result,
    logical_expr::LogicalPlan,
    sql::{
        parser::{CopyToSource, CopyToStatement, Statement},
        sqlparser::ast::{Expr, Query, Select, SelectFlavor, SelectItem, SetExpr, Statement as SqlStatement, Value},
    },
};

/// Replaces `*` by one constant in a statement that selects all columns of one table, with or without WHERE and LIMIT. The plan
/// of the new statement, [`with_all_columns`], is that of the given one. Returns whether it did.
///
/// DataFusion 55.2 compares the texts of all pairs of selected columns, in search of `unnest` (`push_projection_dedupl`).
pub(super) fn replace_all_columns(statement: &mut Statement) -> bool {
    let query = match statement {
        Statement::Statement(statement) => match statement.as_mut() {
            SqlStatement::Query(query) => query,
            _ => return false,
        },
        // The columns of folders are looked up in the selected ones.
        Statement::CopyTo(CopyToStatement { source: CopyToSource::Query(query), partitioned_by, .. })
            if partitioned_by.is_empty() =>
        {
            query
        }
        _ => return false,
    };
    selects_all(query)
}

/// Replaces `*` in a query.
fn selects_all(query: &mut Query) -> bool {
    let is_ordered = query.order_by.is_some() || !query.pipe_operators.is_empty();
    let SetExpr::Select(select) = query.body.as_mut() else { return false };
    if is_ordered || !is_all_of_table(select) {
        return false;
    }
    select.flavor = SelectFlavor::Standard;
    select.projection = vec![SelectItem::UnnamedExpr(Expr::Value(Value::Null.into()))];
    true
}

/// Returns whether a SELECT has one table, and no clause but `*`, FROM and WHERE.
fn is_all_of_table(select: &mut Select) -> bool {
    let (from, selection) = (mem::take(&mut select.from), select.selection.take());
    let others = select.to_string();
    (select.from, select.selection) = (from, selection);
    let words: Vec<_> = others.split_whitespace().collect();
    let is_all = matches!(words.as_slice(), ["SELECT", "*"] | ["FROM", "SELECT", "*"] | ["FROM", "*"]);
    is_all && matches!(select.from.as_slice(), [table] if table.joins.is_empty())
}

/// Removes the projection to the constant from a plan.
pub(super) fn with_all_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => Ok(Arc::unwrap_or_clone(projection.input)),
        plan => Ok(plan.map_children(|child| with_all_columns(child).map(Transformed::yes))?.data),
    }
}
