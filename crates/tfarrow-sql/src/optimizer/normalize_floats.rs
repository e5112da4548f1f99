//! One rule of equality for floats: NaN is one value above all numbers, and -0.0 equals 0.0.
//!
//! Arrow compares floats by their bits, and the statistics and Bloom filters of Parquet files leave
//! NaN out and tell both zeros apart. The rule therefore compares [`normalize_nan_and_zero`] of
//! floats, as Spark does (`NormalizeFloatingNumbers`):
//!
//! ```text
//! Filter: x > 1                  Filter: normalize_nan_and_zero(x) > 1
//!   TableScan                ─▶    TableScan
//! ```
//!
//! Columns that are only carried keep their bits. DataFusion reads nothing about the result of a
//! function from statistics, so that predicates on floats prune no files and no row groups.
//!
//! DataFusion 55.2 treats -0.0 as 0.0 in grouping and joins (apache/datafusion#11108), but not NaN
//! of other bits. Delete when DataFusion has one NaN.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::{
    common::{
        DFSchema, DFSchemaRef,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode, TreeNodeContainer, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{
        Aggregate, Case, Distinct, Expr, ExprSchemable, Filter, Limit, LogicalPlan, Operator,
        Projection, RecursiveQuery, Sort, SubqueryAlias, Window,
        expr::{Alias, Cast, ScalarFunction},
        expr_rewriter::NamePreserver,
        utils::merge_schema,
    },
    optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule},
};

use crate::functions::normalize::{
    has_floats, is_normalize, normalize_nan_and_zero, normalized_scalar,
};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Rules of DataFusion that make joins of subqueries, and groups of DISTINCT.
const SUBQUERY_RULES: [&str; 4] = [
    "replace_distinct_aggregate",
    "decorrelate_predicate_subquery",
    "scalar_subquery_to_join",
    "decorrelate_lateral_join",
];

/// Scalar functions that compare their arguments, or the items of them.
const COMPARING: [&str; 21] = [
    "array_distinct",
    "array_except",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_intersect",
    "array_max",
    "array_min",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
    "array_sort",
    "array_union",
    "greatest",
    "least",
    "nullif",
];

/// Aggregate functions that compare their values.
const COMPARING_AGGREGATES: [&str; 8] = [
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "max",
    "median",
    "min",
    "percentile_cont",
];

/// Compares floats by [`normalize_nan_and_zero`], in filters, joins, groups, sorts, windows and the
/// functions that compare.
///
/// The rule runs twice: after the types of operands are known, before any comparison of constants
/// is computed; and after subqueries have become joins, whose plans DataFusion recognizes by
/// comparisons of bare columns.
#[derive(Debug)]
pub(crate) struct NormalizeFloats;

impl AnalyzerRule for NormalizeFloats {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(normalize_node)?.data)
    }

    fn name(&self) -> &'static str {
        "normalize_floats"
    }
}

impl OptimizerRule for NormalizeFloats {
    fn name(&self) -> &'static str {
        "normalize_floats"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(normalize_node)
    }
}

/// Adds [`NormalizeFloats`] to the rules of DataFusion, after those that plan subqueries as joins.
pub(crate) fn with_normalized_floats(mut rules: Vec<Rule>) -> Vec<Rule> {
    let after = rules
        .iter()
        .rposition(|rule| SUBQUERY_RULES.contains(&rule.name()));
    rules.insert(
        after.map_or(0, |position| position + 1),
        Arc::new(NormalizeFloats),
    );
    rules
}

/// Normalizes the floats that one operator compares.
fn normalize_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::RecursiveQuery(query) = plan {
        return normalize_recursion(query);
    }
    let keys = number_of_keys(&plan);
    if keys == 0 && !has_calls(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let names = preserved_names(&plan);
    let input = Input::of(&plan)?;
    let mut position = 0;
    let changed = plan.map_expressions(|expr| {
        let is_key = position < keys;
        position += 1;
        input.normalize(expr, is_key, names.as_ref())
    })?;
    if changed.transformed {
        changed.map_data(LogicalPlan::recompute_schema)
    } else {
        Ok(changed)
    }
}

/// Normalizes the rows of a recursive query whose rows are distinct.
fn normalize_recursion(mut query: RecursiveQuery) -> Result<Transformed<LogicalPlan>> {
    let mut transformed = false;
    if query.is_distinct {
        for term in [&mut query.static_term, &mut query.recursive_term] {
            let rows = normalize_rows(term)?;
            transformed |= rows.transformed;
            *term = rows.data;
        }
    }
    Ok(Transformed::new_transformed(
        LogicalPlan::RecursiveQuery(query),
        transformed,
    ))
}

/// Normalizes all columns of a plan.
fn normalize_rows(plan: &Arc<LogicalPlan>) -> Result<Transformed<Arc<LogicalPlan>>> {
    let input = Input {
        schema: Arc::clone(plan.schema()),
        plans: vec![Arc::clone(plan)],
    };
    let names = NamePreserver::new_for_projection();
    let columns: Vec<_> = plan
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect();
    let columns = columns.map_elements(|column| input.normalize(column, true, Some(&names)))?;
    if !columns.transformed {
        return Ok(Transformed::no(Arc::clone(plan)));
    }
    let projection = Projection::try_new(columns.data, Arc::clone(plan))?;
    Ok(Transformed::yes(Arc::new(LogicalPlan::Projection(
        projection,
    ))))
}

/// The number of expressions, from the first one on, by which an operator compares rows.
fn number_of_keys(plan: &LogicalPlan) -> usize {
    match plan {
        LogicalPlan::Join(join) => 2 * join.on.len(),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.len(),
        LogicalPlan::Sort(sort) => sort.expr.len(),
        _ => 0,
    }
}

/// Returns whether an operator computes anything. Many operators only select columns, which can be
/// thousands.
fn has_calls(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        let is_column = match expr {
            Expr::Alias(alias) => matches!(*alias.expr, Expr::Column(_)),
            expr => matches!(expr, Expr::Column(_)),
        };
        found |= !is_column;
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}

/// Keeps the names of the columns of an operator; `None` if its expressions are no columns.
fn preserved_names(plan: &LogicalPlan) -> Option<NamePreserver> {
    let are_columns = matches!(
        plan,
        LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Distinct(Distinct::On(_))
    );
    are_columns.then(NamePreserver::new_for_projection)
}

/// The rows that the expressions of an operator refer to.
struct Input {
    schema: DFSchemaRef,
    plans: Vec<Arc<LogicalPlan>>,
}

impl Input {
    fn of(plan: &LogicalPlan) -> Result<Self> {
        let schema = match plan {
            LogicalPlan::TableScan(scan) => {
                let schema = scan.source.schema();
                Arc::new(DFSchema::try_from_qualified_schema(
                    scan.table_name.clone(),
                    &schema,
                )?)
            }
            plan => match plan.inputs().as_slice() {
                [input] => Arc::clone(input.schema()),
                inputs => Arc::new(merge_schema(inputs)),
            },
        };
        let plans = match plan {
            LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::Filter(Filter { input, .. })
            | LogicalPlan::Aggregate(Aggregate { input, .. })
            | LogicalPlan::Window(Window { input, .. })
            | LogicalPlan::Sort(Sort { input, .. }) => vec![Arc::clone(input)],
            LogicalPlan::Join(join) => vec![Arc::clone(&join.left), Arc::clone(&join.right)],
            _ => Vec::new(),
        };
        Ok(Self { schema, plans })
    }

    /// Normalizes the operands of all comparisons in an expression, and its value if it is a key.
    fn normalize(
        &self,
        expr: Expr,
        is_key: bool,
        names: Option<&NamePreserver>,
    ) -> Result<Transformed<Expr>> {
        if matches!(expr, Expr::GroupingSet(_)) {
            return expr.map_children(|child| self.normalize(child, is_key, names));
        }
        let name = names.map(|names| names.save(&expr));
        let mut changed = expr.transform_up(|expr| self.normalize_operands(expr))?;
        if is_key {
            changed = changed.transform_data(|expr| self.normalize_value(expr))?;
        }
        Ok(match name {
            Some(name) if changed.transformed => changed.update_data(|expr| name.restore(expr)),
            _ => changed,
        })
    }

    /// Normalizes what an expression compares. Operands that refer to an outer query are left until
    /// they are those of a join.
    fn normalize_operands(&self, expr: Expr) -> Result<Transformed<Expr>> {
        if compares_children(&expr) {
            if expr.contains_outer() {
                return Ok(Transformed::no(expr));
            }
            return expr.map_children(|child| self.normalize_value(child));
        }
        match expr {
            Expr::Case(Case {
                expr: Some(value),
                when_then_expr,
                else_expr,
            }) => {
                let value = self.normalize_value(*value)?;
                let mut transformed = value.transformed;
                let mut whens = Vec::with_capacity(when_then_expr.len());
                for (when, then) in when_then_expr {
                    let when = self.normalize_value(*when)?;
                    transformed |= when.transformed;
                    whens.push((Box::new(when.data), then));
                }
                let case = Case {
                    expr: Some(Box::new(value.data)),
                    when_then_expr: whens,
                    else_expr,
                };
                Ok(Transformed::new_transformed(Expr::Case(case), transformed))
            }
            Expr::AggregateFunction(mut call) => {
                let order = call
                    .params
                    .order_by
                    .map_elements(|key| self.normalize_value(key))?;
                call.params.order_by = order.data;
                Ok(Transformed::new_transformed(
                    Expr::AggregateFunction(call),
                    order.transformed,
                ))
            }
            Expr::WindowFunction(mut call) => {
                let order = call
                    .params
                    .order_by
                    .map_elements(|key| self.normalize_value(key))?;
                let parts = call
                    .params
                    .partition_by
                    .map_elements(|key| self.normalize_value(key))?;
                (call.params.order_by, call.params.partition_by) = (order.data, parts.data);
                let transformed = order.transformed || parts.transformed;
                Ok(Transformed::new_transformed(
                    Expr::WindowFunction(call),
                    transformed,
                ))
            }
            expr => Ok(Transformed::no(expr)),
        }
    }

    /// Normalizes the value of an expression, unless it has no floats or is normalized already.
    fn normalize_value(&self, expr: Expr) -> Result<Transformed<Expr>> {
        match expr {
            Expr::Alias(alias) => {
                let Alias {
                    expr,
                    relation,
                    name,
                    metadata,
                } = alias;
                let value = self.normalize_value(*expr)?;
                Ok(value.update_data(|expr| {
                    Expr::Alias(Alias {
                        expr: Box::new(expr),
                        relation,
                        name,
                        metadata,
                    })
                }))
            }
            Expr::Literal(value, metadata) => {
                let normalized = if has_floats(&value.data_type()) {
                    normalized_scalar(&value)?
                } else {
                    value.clone()
                };
                let is_other = normalized != value;
                Ok(Transformed::new_transformed(
                    Expr::Literal(normalized, metadata),
                    is_other,
                ))
            }
            // An integer as a float is neither NaN nor -0.0, and a wider float is what the narrower
            // one is.
            Expr::Cast(cast)
                if widens(&cast.expr.get_type(&self.schema)?, cast.field.data_type()) =>
            {
                let value = self.normalize_value(*cast.expr)?;
                Ok(value.update_data(|value| {
                    Expr::Cast(Cast {
                        expr: Box::new(value),
                        field: cast.field,
                    })
                }))
            }
            expr if !has_floats(&expr.get_type(&self.schema)?) || self.is_normalized(&expr) => {
                Ok(Transformed::no(expr))
            }
            expr => Ok(Transformed::yes(Expr::ScalarFunction(
                ScalarFunction::new_udf(normalize_nan_and_zero(), vec![expr]),
            ))),
        }
    }

    fn is_normalized(&self, expr: &Expr) -> bool {
        is_call(expr) || self.plans.iter().any(|plan| is_normalized(expr, plan))
    }
}

/// Returns whether an expression compares all of its children with each other.
fn compares_children(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => matches!(
            binary.op,
            Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
                | Operator::IsDistinctFrom
                | Operator::IsNotDistinctFrom
        ),
        Expr::InList(_) | Expr::Between(_) => true,
        Expr::ScalarFunction(call) => COMPARING.contains(&call.name()),
        Expr::AggregateFunction(call) => {
            call.params.distinct || COMPARING_AGGREGATES.contains(&call.func.name())
        }
        Expr::WindowFunction(call) => {
            call.params.distinct || COMPARING_AGGREGATES.contains(&call.fun.name())
        }
        _ => false,
    }
}

/// Returns whether a cast has a normalized value if its operand has one: to a float that holds all
/// values of the operand.
fn widens(from: &DataType, to: &DataType) -> bool {
    let is_narrow = matches!(from, DataType::Float16 | DataType::Float32);
    to.is_floating() && (from.is_integer() || is_narrow && *to == DataType::Float64)
}

/// Returns whether an expression is a call of [`normalize_nan_and_zero`].
fn is_call(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if is_normalize(&call.func))
}

/// Returns whether an expression over the rows of `input` is normalized.
fn is_normalized(expr: &Expr, input: &LogicalPlan) -> bool {
    match expr {
        Expr::Alias(alias) => is_normalized(&alias.expr, input),
        expr if is_call(expr) => true,
        Expr::Column(column) => input
            .schema()
            .maybe_index_of_column(column)
            .is_some_and(|index| yields_normalized(input, index)),
        _ => false,
    }
}

/// Returns whether a column of an operator is normalized.
fn yields_normalized(plan: &LogicalPlan, column: usize) -> bool {
    match plan {
        LogicalPlan::Projection(Projection { expr, input, .. })
        | LogicalPlan::Aggregate(Aggregate {
            group_expr: expr,
            input,
            ..
        }) => expr
            .get(column)
            .is_some_and(|expr| is_normalized(expr, input)),
        LogicalPlan::Filter(Filter { input, .. })
        | LogicalPlan::Sort(Sort { input, .. })
        | LogicalPlan::Limit(Limit { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
            yields_normalized(input, column)
        }
        _ => false,
    }
}
