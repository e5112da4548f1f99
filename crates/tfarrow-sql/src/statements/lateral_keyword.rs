//! `LATERAL UNNEST(t.list)`, which is `UNNEST(t.list)`.
//!
//! Workaround for DataFusion 55, of which no issue is known. Delete when DataFusion plans `LATERAL
//! UNNEST(..)`.

use std::ops::ControlFlow;

use datafusion::{
    error::DataFusionError,
    sql::sqlparser::ast::{FunctionArg, FunctionArgExpr, TableFactor, VisitorMut},
};

/// A visitor that replaces `LATERAL UNNEST(..)`, which is parsed as the call of a table function,
/// by `UNNEST(..)`, which DataFusion supports.
pub(crate) struct LateralKeyword;

impl VisitorMut for LateralKeyword {
    type Break = Box<DataFusionError>;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Function {
            name,
            args,
            with_ordinality,
            alias,
            ..
        } = factor
            && name.to_string().eq_ignore_ascii_case("unnest")
        {
            let mut array_exprs = Vec::with_capacity(args.len());
            for arg in args.iter() {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else {
                    return ControlFlow::Continue(());
                };
                array_exprs.push(expr.clone());
            }
            *factor = TableFactor::UNNEST {
                alias: alias.take(),
                array_exprs,
                with_offset: false,
                with_offset_alias: None,
                with_ordinality: *with_ordinality,
            };
        }
        ControlFlow::Continue(())
    }
}
