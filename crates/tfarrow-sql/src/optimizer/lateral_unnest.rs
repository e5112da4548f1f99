//! `FROM t, UNNEST(t.list)`: a row for each item of a list of another table. DataFusion parses such
//! joins, but has no plan for them.
//!
//! The right side is a chain of steps over a relation of one row, and refers to columns of the left
//! side. The rule runs these steps over the rows of the left side instead:
//!
//! ```text
//! Cross Join                                   Projection: t.*, the item AS u.x
//!   t                                            Unnest: the list
//!   SubqueryAlias: u                   ─▶          Projection: t.*, t.list
//!     Projection: the item AS x                      t
//!       Unnest: the list
//!         Projection: outer_ref(t.list)
//!           one row
//! ```
//!
//! Workaround for DataFusion 55: apache/datafusion#21201, open. Delete when DataFusion plans these
//! joins.

use datafusion::{
    common::{
        DFSchema, NullHandling, ScalarValue,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode},
    },
    error::Result,
    logical_expr::{
        Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias,
    },
    optimizer::AnalyzerRule,
};

/// Plans joins with `UNNEST` of a list of the other side.
///
/// Supported are comma joins, CROSS JOIN and INNER JOIN, and LEFT JOIN with the condition `true`,
/// which keeps rows without items.
#[derive(Debug)]
pub(crate) struct LateralUnnest;

impl AnalyzerRule for LateralUnnest {
    fn name(&self) -> &str {
        "lateral_unnest"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(with_unnest)?.data)
    }
}

/// Replaces a join with `UNNEST` of a list of its left side.
fn with_unnest(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &plan else {
        return Ok(Transformed::no(plan));
    };
    let Some(nulls) = null_handling(join) else {
        return Ok(Transformed::no(plan));
    };
    if !join.on.is_empty() || !is_chain(&join.right, join.left.schema()) {
        return Ok(Transformed::no(plan));
    }
    let steps = Steps {
        left: &join.left,
        nulls,
    };
    let rows = LogicalPlanBuilder::from(steps.run(&join.right)?);
    let rows = match &join.filter {
        Some(filter) if nulls == NullHandling::Drop => rows.filter(filter.clone())?,
        _ => rows,
    };
    Ok(Transformed::yes(rows.build()?))
}

/// The treatment of rows without items that a join needs; `None` for a join that is not supported.
fn null_handling(join: &Join) -> Option<NullHandling> {
    let is_true = match &join.filter {
        Some(filter) => matches!(filter, Expr::Literal(ScalarValue::Boolean(Some(true)), _)),
        None => true,
    };
    match join.join_type {
        JoinType::Inner => Some(NullHandling::Drop),
        JoinType::Left if is_true => Some(NullHandling::PreserveAndExpandEmpty),
        _ => None,
    }
}

/// Whether a plan is a chain of steps over a relation of one row, with UNNEST among them, that
/// refers to `left` only.
fn is_chain(mut plan: &LogicalPlan, left: &DFSchema) -> bool {
    let mut has_unnest = false;
    let mut has_references = false;
    loop {
        plan = match plan {
            LogicalPlan::EmptyRelation(empty) => {
                return empty.produce_one_row && has_unnest && has_references;
            }
            LogicalPlan::Subquery(query) => {
                has_references |= !query.outer_ref_columns.is_empty();
                for column in &query.outer_ref_columns {
                    match column {
                        Expr::OuterReferenceColumn(_, column) if left.has_column(column) => {}
                        _ => return false,
                    }
                }
                &query.subquery
            }
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::Unnest(unnest) => {
                has_unnest = true;
                &unnest.input
            }
            _ => return false,
        };
    }
}

/// Runs the steps of the right side of a join over the rows of its left side.
struct Steps<'a> {
    left: &'a LogicalPlan,
    nulls: NullHandling,
}

impl Steps<'_> {
    /// Returns the rows of the step `right` and of all steps before it. Their columns are those of
    /// the left side, and then those of `right`.
    fn run(&self, right: &LogicalPlan) -> Result<LogicalPlan> {
        match right {
            LogicalPlan::Subquery(query) => self.run(&query.subquery),
            LogicalPlan::SubqueryAlias(alias) => self.run_with_alias(alias),
            LogicalPlan::Projection(projection) => {
                let input = self.run(&projection.input)?;
                let own = projection
                    .expr
                    .iter()
                    .map(of_left)
                    .collect::<Result<Vec<_>>>()?;
                LogicalPlanBuilder::from(input)
                    .project(self.columns().chain(own))?
                    .build()
            }
            LogicalPlan::Filter(filter) => {
                let input = self.run(&filter.input)?;
                LogicalPlanBuilder::from(input)
                    .filter(of_left(&filter.predicate)?)?
                    .build()
            }
            LogicalPlan::Unnest(unnest) => {
                let input = self.run(&unnest.input)?;
                let options = unnest.options.clone().with_null_handling(self.nulls);
                LogicalPlanBuilder::from(input)
                    .unnest_columns_with_options(unnest.exec_columns.clone(), options)?
                    .build()
            }
            // The relation of one row.
            _ => Ok(self.left.clone()),
        }
    }

    /// Returns the rows of an alias and of all steps before it.
    ///
    /// The columns of a projection get the alias at once. In a projection of its own, `e AS u.e`
    /// would have an input with a column `e`, and DataFusion fails when it moves the access to a
    /// field of `u.e` below that projection: its columns would include both names.
    fn run_with_alias(&self, alias: &SubqueryAlias) -> Result<LogicalPlan> {
        let (input, own) = match projection_of(&alias.input) {
            Some(projection) => {
                let own = projection
                    .expr
                    .iter()
                    .map(of_left)
                    .collect::<Result<Vec<_>>>()?;
                (
                    self.run(&projection.input)?,
                    own.into_iter().map(Expr::unalias).collect::<Vec<_>>(),
                )
            }
            None => {
                let input = self.run(&alias.input)?;
                let own = input
                    .schema()
                    .columns()
                    .into_iter()
                    .skip(self.width())
                    .map(Expr::Column)
                    .collect();
                (input, own)
            }
        };
        let own = own.into_iter().zip(alias.schema.iter());
        let own = own
            .map(|(expr, (relation, field))| expr.alias_qualified(relation.cloned(), field.name()));
        let exprs: Vec<_> = self.columns().chain(own).collect();
        LogicalPlanBuilder::from(input).project(exprs)?.build()
    }

    /// The columns of the left side.
    fn columns(&self) -> impl Iterator<Item = Expr> {
        self.left.schema().columns().into_iter().map(Expr::Column)
    }

    fn width(&self) -> usize {
        self.left.schema().fields().len()
    }
}

/// The projection that a plan is, without the node of the subquery around it.
fn projection_of(plan: &LogicalPlan) -> Option<&Projection> {
    match plan {
        LogicalPlan::Subquery(query) => projection_of(&query.subquery),
        LogicalPlan::Projection(projection) => Some(projection),
        _ => None,
    }
}

/// Replaces references to the outer query by columns, without a change of the name of the
/// expression.
fn of_left(expr: &Expr) -> Result<Expr> {
    let name = expr.schema_name().to_string();
    let changed = expr.clone().transform(|expr| {
        Ok(match expr {
            Expr::OuterReferenceColumn(_, column) => Transformed::yes(Expr::Column(column)),
            other => Transformed::no(other),
        })
    })?;
    Ok(if changed.transformed {
        changed.data.alias_if_changed(name)?
    } else {
        changed.data
    })
}
