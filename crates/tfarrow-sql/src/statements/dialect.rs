//! Syntax of DuckDB that DataFusion parses and cannot plan, as equal syntax that it plans.
//!
//! | statement | planned as |
//! |---|---|
//! | `x[1].name` | `x[1]['name']` |
//! | `a SEMI JOIN b`, `a ANTI JOIN b` | `a LEFT SEMI JOIN b`, `a LEFT ANTI JOIN b` |
//! | `SELECT a, b .. ORDER BY ALL` | `SELECT a, b .. ORDER BY 1, 2` |
//!
//! Workaround for DataFusion 55: apache/datafusion#21384 (`x[1].name`, open) and #25243 (ORDER BY
//! ALL, merged for 56, but its generic dialect does not parse it). Delete a row when DataFusion
//! plans its statement.

use std::{mem, ops::ControlFlow};

use datafusion::{
    error::DataFusionError,
    sql::sqlparser::ast::{
        AccessExpr, Expr, Ident, Join, JoinConstraint, JoinOperator, OrderBy, OrderByExpr,
        OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, Value, VisitorMut,
    },
};

/// A visitor that replaces the syntax of DuckDB.
pub(crate) struct Dialect;

impl VisitorMut for Dialect {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(order) = &mut query.order_by
            && orders_all(order)
            && let Some(columns) = columns(&query.body)
        {
            number(order, columns);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        select
            .from
            .iter_mut()
            .flat_map(|from| &mut from.joins)
            .for_each(give_side);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = factor
        {
            table_with_joins.joins.iter_mut().for_each(give_side);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::CompoundFieldAccess { root, access_chain } = expr {
            // In `t.x[1]`, the parts before the first subscript are those of the name of a column.
            let is_name = matches!(**root, Expr::Identifier(_));
            let fields = access_chain
                .iter_mut()
                .skip_while(|access| is_name && matches!(access, AccessExpr::Dot(_)));
            fields.for_each(quote_field);
        }
        ControlFlow::Continue(())
    }
}

/// Returns whether an ORDER BY is `ORDER BY ALL`, which DataFusion parses as a column of this name.
pub(crate) fn orders_all(order: &OrderBy) -> bool {
    let OrderByKind::Expressions(exprs) = &order.kind else {
        return true;
    };
    let [
        OrderByExpr {
            expr: Expr::Identifier(name),
            ..
        },
    ] = exprs.as_slice()
    else {
        return false;
    };
    name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all")
}

/// The number of columns of a query; `None` where a star stands for some of them.
fn columns(mut body: &SetExpr) -> Option<usize> {
    loop {
        body = match body {
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) => &query.body,
            SetExpr::Values(values) => return values.rows.first().map(|row| row.content.len()),
            SetExpr::Select(select) => {
                let columns = &select.projection;
                let are_single = columns.iter().all(|item| {
                    matches!(
                        item,
                        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
                    )
                });
                return (!columns.is_empty() && are_single).then_some(columns.len());
            }
            _ => return None,
        };
    }
}

/// Replaces `ALL` by the numbers of the columns, with the direction of `ALL`.
fn number(order: &mut OrderBy, columns: usize) {
    let options = match &order.kind {
        OrderByKind::All(options) => *options,
        OrderByKind::Expressions(exprs) => exprs
            .first()
            .map_or_else(Default::default, |expr| expr.options),
    };
    let mut exprs = Vec::with_capacity(columns);
    for number in 1..=columns {
        let number = Value::Number(number.to_string(), false);
        exprs.push(OrderByExpr {
            expr: Expr::Value(number.with_empty_span()),
            options,
            with_fill: None,
        });
    }
    order.kind = OrderByKind::Expressions(exprs);
}

/// Gives a semi join or an anti join its side, which is the left one.
fn give_side(join: &mut Join) {
    let operator = &mut join.join_operator;
    match operator {
        JoinOperator::Semi(constraint) => {
            let constraint = mem::replace(constraint, JoinConstraint::None);
            *operator = JoinOperator::LeftSemi(constraint);
        }
        JoinOperator::Anti(constraint) => {
            let constraint = mem::replace(constraint, JoinConstraint::None);
            *operator = JoinOperator::LeftAnti(constraint);
        }
        _ => {}
    }
}

/// Replaces the name of a field after a dot by a string. Names without quotes are in lower case.
fn quote_field(access: &mut AccessExpr) {
    if let AccessExpr::Dot(field) = access
        && let Expr::Identifier(Ident {
            value, quote_style, ..
        }) = field
    {
        let name = if quote_style.is_some() {
            value.clone()
        } else {
            value.to_lowercase()
        };
        *field = Expr::Value(Value::SingleQuotedString(name).with_empty_span());
    }
}
