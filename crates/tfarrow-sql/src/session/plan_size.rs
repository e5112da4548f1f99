//! The size of a plan. A short statement can have a plan that grows exponentially: each level of a
//! chain of subqueries, common table expressions or views can use the one below it twice.
//!
//! Workaround for DataFusion 55: apache/datafusion#17737, open. Delete when plans share their
//! subplans.

use datafusion::{
    common::{
        Column, plan_err,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{Expr, LogicalPlan},
};

/// Returns an error if a plan is larger than `limit`.
///
/// The size of a plan is the number of its operators, with the columns of each, and of its
/// expressions. An expression counts as if the expressions of the columns that it uses were written
/// in their place, because DataFusion's optimizer does so when it moves filters.
///
/// # Errors
/// The plan is larger.
pub(crate) fn check_plan_size(plan: &LogicalPlan, limit: usize) -> Result<()> {
    PlanSize { total: 0, limit }.add_plan(plan)?;
    Ok(())
}

/// The size of the part of a plan that was visited.
struct PlanSize {
    total: usize,
    limit: usize,
}

impl PlanSize {
    /// Adds a plan. Returns the size of the expression behind each of its columns.
    fn add_plan(&mut self, plan: &LogicalPlan) -> Result<Vec<usize>> {
        let columns = plan.schema().fields().len();
        self.add(1 + columns)?;
        let mut inputs = Vec::new();
        for input in plan.inputs() {
            let sizes = self.add_plan(input)?;
            let is_computed = sizes.iter().any(|size| *size > 1);
            inputs.push(Source {
                plan: input,
                sizes,
                is_computed,
            });
        }
        let sources = Sources { inputs: &inputs };
        let mut sizes = Vec::new();
        plan.apply_expressions(|expr| {
            sizes.push(self.add_expr(expr, &sources)?);
            Ok(TreeNodeRecursion::Continue)
        })?;
        let computes = matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_));
        if computes && sizes.len() == columns {
            return Ok(sizes);
        }
        Ok(sources.columns(columns))
    }

    /// Adds an expression and its subqueries. Returns its size.
    fn add_expr(&mut self, expr: &Expr, sources: &Sources<'_>) -> Result<usize> {
        let mut size: usize = 0;
        expr.apply(|node| {
            match node {
                Expr::Column(column) => size = size.saturating_add(sources.size(column)),
                Expr::ScalarSubquery(subquery) => _ = self.add_plan(&subquery.subquery)?,
                Expr::Exists(exists) => _ = self.add_plan(&exists.subquery.subquery)?,
                Expr::InSubquery(subquery) => _ = self.add_plan(&subquery.subquery.subquery)?,
                Expr::SetComparison(comparison) => {
                    _ = self.add_plan(&comparison.subquery.subquery)?
                }
                _ => size = size.saturating_add(1),
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        self.add(size)?;
        Ok(size)
    }

    fn add(&mut self, size: usize) -> Result<()> {
        self.total = self.total.saturating_add(size);
        if self.total <= self.limit {
            return Ok(());
        }
        plan_err!(
            "the plan of the statement has more than plan_size={} operators, columns and expressions: subqueries, common table \
             expressions and views that use each other several times multiply; write a result to a file or a table, and query that",
            self.limit
        )
    }
}

/// An input of an operator.
struct Source<'p> {
    plan: &'p LogicalPlan,
    /// The size of the expression behind each column.
    sizes: Vec<usize>,
    /// Whether any column is more than a column of a file. Most inputs have thousands of columns or
    /// computed ones, and not both.
    is_computed: bool,
}

/// The inputs of an operator.
struct Sources<'p> {
    inputs: &'p [Source<'p>],
}

impl Sources<'_> {
    /// The size of the expression behind a column.
    fn size(&self, column: &Column) -> usize {
        for input in self.inputs.iter().filter(|input| input.is_computed) {
            if let Some(index) = input.plan.schema().maybe_index_of_column(column) {
                return input.sizes.get(index).copied().unwrap_or(1);
            }
        }
        1
    }

    /// The sizes behind the columns of an operator that passes columns on: those of its inputs one
    /// after another, as a join has them; otherwise the largest.
    fn columns(&self, count: usize) -> Vec<usize> {
        let mut sizes = Vec::new();
        for input in self.inputs {
            sizes.extend_from_slice(&input.sizes);
        }
        if sizes.len() == count {
            return sizes;
        }
        let largest = sizes.into_iter().max().unwrap_or(1);
        vec![largest; count]
    }
}
