//! `SELECT *` of one table, without the time that DataFusion takes for each pair of columns.
//!
//! Workaround for DataFusion 55: apache/datafusion#16242 (`push_projection_dedupl`). Delete when
//! pull request 16389 is merged.

use std::{mem, sync::Arc};

use datafusion::{
    common::tree_node::{Transformed, TreeNode},
    error::Result,
    logical_expr::{LogicalPlan, Projection},
    sql::{
        parser::{CopyToSource, CopyToStatement, Statement},
        sqlparser::ast::{
            Expr, Ident, OrderBy, OrderByKind, Query, Select, SelectFlavor, SelectItem, SetExpr,
            Statement as SqlStatement, Value,
        },
    },
};

/// The name of the constant that replaces `*`. No column has it.
const ALL_COLUMNS: &str = "all columns of the table";

/// Replaces `*` by a constant in a statement that selects all columns of one table, with or without
/// WHERE, ORDER BY and LIMIT. The plan of the new statement, [`with_all_columns`], is that of the
/// given one; its errors are not. `None` for other statements.
///
/// DataFusion 55.2 compares the texts of all pairs of selected columns, in search of `unnest`
/// (`push_projection_dedupl`).
pub(super) fn without_all_columns(statement: &Statement) -> Option<Statement> {
    let is_query = match statement {
        Statement::Statement(statement) => matches!(statement.as_ref(), SqlStatement::Query(_)),
        statement => matches!(statement, Statement::CopyTo(_)),
    };
    let mut replaced = is_query.then(|| statement.clone())?;
    let selects_all = match &mut replaced {
        Statement::Statement(statement) => match statement.as_mut() {
            SqlStatement::Query(query) => selects_all(query, &[]),
            _ => false,
        },
        Statement::CopyTo(CopyToStatement {
            source: CopyToSource::Query(query),
            partitioned_by,
            ..
        }) => selects_all(query, partitioned_by),
        _ => false,
    };
    selects_all.then_some(replaced)
}

/// Replaces `*` in a query. `folders`: the columns of PARTITIONED BY, which the planner looks up in
/// the selected ones.
fn selects_all(query: &mut Query, folders: &[String]) -> bool {
    if !query.pipe_operators.is_empty() || !query.order_by.iter().all(is_of_columns) {
        return false;
    }
    let SetExpr::Select(select) = query.body.as_mut() else {
        return false;
    };
    if !is_all_of_table(select) {
        return false;
    }
    select.flavor = SelectFlavor::Standard;
    let alias = Ident::with_quote('"', ALL_COLUMNS);
    select.projection = vec![SelectItem::ExprWithAlias {
        expr: Expr::Value(Value::Null.into()),
        alias,
    }];
    for name in folders {
        select
            .projection
            .push(SelectItem::UnnamedExpr(Expr::Identifier(
                Ident::with_quote('"', name),
            )));
    }
    true
}

/// Returns whether an ORDER BY has names of columns only: numbers are places in `*`, and
/// expressions can add columns to the plan.
fn is_of_columns(order: &OrderBy) -> bool {
    let OrderByKind::Expressions(keys) = &order.kind else {
        return false;
    };
    keys.iter()
        .all(|key| matches!(key.expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
}

/// Returns whether a SELECT has one table, and no clause but `*`, FROM and WHERE.
fn is_all_of_table(select: &mut Select) -> bool {
    let from = mem::take(&mut select.from);
    let selection = select.selection.take();
    let others = select.to_string();
    (select.from, select.selection) = (from, selection);
    let words: Vec<_> = others.split_whitespace().collect();
    let is_all = matches!(
        words.as_slice(),
        ["SELECT", "*"] | ["FROM", "SELECT", "*"] | ["FROM", "*"]
    );
    is_all && matches!(select.from.as_slice(), [table] if table.joins.is_empty())
}

/// Removes the projections to the constant from a plan: one, and a second one below a sort, which
/// has the keys too.
pub(super) fn with_all_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) if is_all_columns(&projection) => {
            match Arc::unwrap_or_clone(projection.input) {
                LogicalPlan::Sort(sort) => with_all_columns(LogicalPlan::Sort(sort)),
                input => Ok(input),
            }
        }
        LogicalPlan::Projection(_) => Ok(plan),
        plan => Ok(plan
            .map_children(|child| with_all_columns(child).map(Transformed::yes))?
            .data),
    }
}

fn is_all_columns(projection: &Projection) -> bool {
    projection
        .schema
        .fields()
        .first()
        .is_some_and(|field| field.name() == ALL_COLUMNS)
}
