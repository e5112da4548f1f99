//! Nesting depth of statements. DataFusion plans, copies and evaluates trees recursively, so that
//! each level needs stack.
//!
//! Workaround for DataFusion 55: apache/datafusion#22936, open. Delete when deep statements are
//! errors there.

use std::{mem, ops::ControlFlow};

use datafusion::{
    error::DataFusionError,
    sql::sqlparser::ast::{BinaryOperator, Expr, Query, Select, SetExpr, Value, VisitorMut},
};

/// Minimum number of terms of a chain of AND or OR that is rebuilt as a balanced tree. Shorter
/// chains keep the shape that EXPLAIN shows.
const LONG_CHAIN: usize = 100;

/// A visitor that measures the depth of nested expressions and queries, and of operators that are
/// planned on top of each other: set operations, joins, common table expressions and pipes.
///
/// It also rebuilds long chains of AND and OR as equivalent balanced trees: 10,000 terms then have
/// 14 levels.
#[derive(Debug, Default)]
pub(crate) struct NestingDepth {
    level: usize,
    deepest: usize,
}

impl NestingDepth {
    /// The largest number of levels so far.
    pub(crate) fn deepest(&self) -> usize {
        self.deepest
    }

    fn enter(&mut self, levels: usize) {
        self.level += levels;
        self.deepest = self.deepest.max(self.level);
    }

    fn leave(&mut self, levels: usize) {
        self.level -= levels;
    }
}

impl VisitorMut for NestingDepth {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.enter(levels_of_query(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.leave(levels_of_query(query));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        self.enter(levels_of_select(select));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        self.leave(levels_of_select(select));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        balance(expr);
        self.enter(1);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _expr: &mut Expr) -> ControlFlow<Self::Break> {
        self.leave(1);
        ControlFlow::Continue(())
    }
}

fn levels_of_query(query: &Query) -> usize {
    let tables = query.with.as_ref().map_or(0, |with| with.cte_tables.len());
    1 + tables + query.pipe_operators.len() + levels_of_body(&query.body)
}

/// Levels of nested set operations in a query.
fn levels_of_body(body: &SetExpr) -> usize {
    let mut deepest = 0;
    let mut bodies = vec![(body, 0)];
    while let Some((body, level)) = bodies.pop() {
        deepest = deepest.max(level);
        if let SetExpr::SetOperation { left, right, .. } = body {
            bodies.extend([(left.as_ref(), level + 1), (right.as_ref(), level + 1)]);
        }
    }
    deepest
}

fn levels_of_select(select: &Select) -> usize {
    1 + select
        .from
        .iter()
        .map(|from| 1 + from.joins.len())
        .sum::<usize>()
}

/// Rebuilds a long chain `a OR b OR c ..`, which is parsed as `((a OR b) OR c) ..`, as a balanced
/// tree.
fn balance(expr: &mut Expr) {
    let Expr::BinaryOp {
        op: op @ (BinaryOperator::And | BinaryOperator::Or),
        ..
    } = expr
    else {
        return;
    };
    let op = op.clone();
    if chain_length(expr, &op) < LONG_CHAIN {
        return;
    }
    let mut rest = mem::replace(expr, Expr::value(Value::Null));
    let mut terms = Vec::new();
    loop {
        match rest {
            Expr::BinaryOp {
                left,
                op: inner,
                right,
            } if inner == op => {
                terms.push(*right);
                rest = *left;
            }
            first => {
                terms.push(first);
                break;
            }
        }
    }
    terms.reverse();
    if let Some(tree) = tree(terms, &op) {
        *expr = tree;
    }
}

fn chain_length(mut expr: &Expr, op: &BinaryOperator) -> usize {
    let mut terms = 1;
    while let Expr::BinaryOp {
        left, op: inner, ..
    } = expr
        && inner == op
    {
        terms += 1;
        expr = left;
    }
    terms
}

/// Combines neighbours pairwise until one expression remains; `None` without terms.
fn tree(mut terms: Vec<Expr>, op: &BinaryOperator) -> Option<Expr> {
    while terms.len() > 1 {
        let mut joined = Vec::with_capacity(terms.len().div_ceil(2));
        let mut terms_left = terms.into_iter();
        while let Some(left) = terms_left.next() {
            joined.push(match terms_left.next() {
                Some(right) => Expr::BinaryOp {
                    left: Box::new(left),
                    op: op.clone(),
                    right: Box::new(right),
                },
                None => left,
            });
        }
        terms = joined;
    }
    terms.pop()
}
