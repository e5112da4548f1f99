//! An analyzer rule for sorts and windows by values that are random.
//!
//! Workaround for DataFusion 55, of which no issue is known: such a key is evaluated several times.

use std::sync::Arc;

use datafusion::{
    common::{
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode},
    },
    error::Result,
    logical_expr::{
        Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Sort, Window, col, expr::Sort as SortKey,
        expr_rewriter::NamePreserver,
    },
    optimizer::AnalyzerRule,
};

/// Projects the volatile keys of sorts, windows and ordered aggregates into columns below these
/// operators.
///
/// DataFusion evaluates a key in the sort of each partition, in each merge, and in the operator
/// above. Two values of `random()` for one row would leave the rows in no order at all, and not in
/// a random one.
///
/// ```text
/// Sort: random()          Projection: t.*
///   t               ─▶      Sort: __sort_key_0
///                             Projection: t.*, random() AS __sort_key_0
///                               t
/// ```
#[derive(Debug)]
pub(crate) struct VolatileKeys;

impl AnalyzerRule for VolatileKeys {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(with_key_columns)?.data)
    }

    fn name(&self) -> &'static str {
        "volatile_keys"
    }
}

fn with_key_columns(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut keys = KeyColumns::default();
    match plan {
        LogicalPlan::Sort(sort) if sort.expr.iter().any(|key| key.expr.is_volatile()) => {
            let columns = sort.input.schema().columns();
            let expr = keys.order(sort.expr);
            let input = keys.below(&sort.input)?;
            let sorted = LogicalPlan::Sort(Sort {
                expr,
                input,
                fetch: sort.fetch,
            });
            let plan = LogicalPlanBuilder::from(sorted)
                .project(columns.into_iter().map(Expr::Column))?
                .build()?;
            Ok(Transformed::yes(plan))
        }
        LogicalPlan::Window(window) if window.window_expr.iter().any(Expr::is_volatile) => {
            let columns = window.schema.columns();
            let calls = keys.calls(window.window_expr)?;
            let window = LogicalPlan::Window(Window::try_new(calls, keys.below(&window.input)?)?);
            let plan = LogicalPlanBuilder::from(window)
                .project(columns.into_iter().map(Expr::Column))?
                .build()?;
            Ok(Transformed::yes(plan))
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(Expr::is_volatile) => {
            let calls = keys.calls(aggregate.aggr_expr)?;
            let input = keys.below(&aggregate.input)?;
            Ok(Transformed::yes(LogicalPlan::Aggregate(
                Aggregate::try_new(input, aggregate.group_expr, calls)?,
            )))
        }
        plan => Ok(Transformed::no(plan)),
    }
}

/// The volatile keys of an operator. Equal keys are one column, so that windows of one order have
/// it.
#[derive(Default)]
struct KeyColumns(Vec<Expr>);

impl KeyColumns {
    /// The columns of the keys that are volatile, and all other keys.
    fn order(&mut self, keys: Vec<SortKey>) -> Vec<SortKey> {
        keys.into_iter()
            .map(|key| SortKey {
                expr: self.column(key.expr),
                ..key
            })
            .collect()
    }

    fn column(&mut self, key: Expr) -> Expr {
        if !key.is_volatile() {
            return key;
        }
        let position = self
            .0
            .iter()
            .position(|found| *found == key)
            .unwrap_or_else(|| {
                self.0.push(key);
                self.0.len() - 1
            });
        col(name_of(position))
    }

    /// Calls of functions with the columns of their volatile keys. The names of the calls stay.
    fn calls(&mut self, calls: Vec<Expr>) -> Result<Vec<Expr>> {
        let names = NamePreserver::new_for_projection();
        let mut changed = Vec::with_capacity(calls.len());
        for call in calls {
            let name = names.save(&call);
            changed.push(
                name.restore(
                    call.transform_up(|expr| Ok(Transformed::yes(self.call(expr))))?
                        .data,
                ),
            );
        }
        Ok(changed)
    }

    fn call(&mut self, expr: Expr) -> Expr {
        match expr {
            Expr::WindowFunction(mut call) => {
                call.params.order_by = self.order(call.params.order_by);
                let parts = call.params.partition_by.into_iter();
                call.params.partition_by = parts.map(|part| self.column(part)).collect();
                Expr::WindowFunction(call)
            }
            Expr::AggregateFunction(mut call) => {
                call.params.order_by = self.order(call.params.order_by);
                Expr::AggregateFunction(call)
            }
            expr => expr,
        }
    }

    /// The rows of `input`, with the keys as further columns.
    fn below(self, input: &Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
        let columns = input.schema().columns().into_iter().map(Expr::Column);
        let keys = self
            .0
            .into_iter()
            .enumerate()
            .map(|(position, key)| key.alias(name_of(position)));
        let plan = LogicalPlanBuilder::from(Arc::clone(input))
            .project(columns.chain(keys))?
            .build()?;
        Ok(Arc::new(plan))
    }
}

/// The name of the column of a key.
fn name_of(position: usize) -> String {
    format!("__sort_key_{position}")
}
