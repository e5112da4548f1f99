//! Visitors of the syntax trees of a statement.

use std::ops::ControlFlow;

use datafusion::{
    error::{DataFusionError, Result},
    sql::{
        parser::{CopyToSource, Statement},
        sqlparser::ast::{
            self, Expr, ObjectName, Query, Select, TableFactor, VisitMut, VisitorMut,
        },
    },
};

use super::innermost;

/// Visits the parts of a statement that are syntax trees of `sqlparser`.
///
/// # Errors
/// The error with which the visitor breaks off.
pub(super) fn visit(
    statement: &mut Statement,
    visitor: &mut dyn VisitorMut<Break = Box<DataFusionError>>,
) -> Result<()> {
    let mut visitor = AnyVisitor(visitor);
    let visited = match innermost(statement) {
        Statement::Statement(statement) => statement.visit(&mut visitor),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut visitor),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::CreateExternalTable(table) => table.columns.visit(&mut visitor),
        Statement::Explain(_) | Statement::Reset(_) => ControlFlow::Continue(()),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// Any visitor, as one type. `sqlparser` has a walk through all types of its trees, which is
/// compiled for each type of visitor.
struct AnyVisitor<'v>(&'v mut dyn VisitorMut<Break = Box<DataFusionError>>);

type Visited = ControlFlow<Box<DataFusionError>>;

impl VisitorMut for AnyVisitor<'_> {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> Visited {
        self.0.pre_visit_query(query)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> Visited {
        self.0.post_visit_query(query)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Visited {
        self.0.pre_visit_select(select)
    }

    fn post_visit_select(&mut self, select: &mut Select) -> Visited {
        self.0.post_visit_select(select)
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> Visited {
        self.0.pre_visit_relation(relation)
    }

    fn post_visit_relation(&mut self, relation: &mut ObjectName) -> Visited {
        self.0.post_visit_relation(relation)
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Visited {
        self.0.pre_visit_table_factor(factor)
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> Visited {
        self.0.post_visit_table_factor(factor)
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Visited {
        self.0.pre_visit_expr(expr)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Visited {
        self.0.post_visit_expr(expr)
    }

    fn pre_visit_statement(&mut self, statement: &mut ast::Statement) -> Visited {
        self.0.pre_visit_statement(statement)
    }

    fn post_visit_statement(&mut self, statement: &mut ast::Statement) -> Visited {
        self.0.post_visit_statement(statement)
    }

    fn pre_visit_value(&mut self, value: &mut ast::ValueWithSpan) -> Visited {
        self.0.pre_visit_value(value)
    }

    fn post_visit_value(&mut self, value: &mut ast::ValueWithSpan) -> Visited {
        self.0.post_visit_value(value)
    }
}
