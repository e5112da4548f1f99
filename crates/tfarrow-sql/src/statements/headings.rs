//! Column headings of results, without the paths of files.
//!
//! DataFusion names a computed column after its expression, in which each column is qualified by
//! its table: `avg(shards/train.tfrecord.price)`. A table name that the user chose identifies a
//! column; a path only makes headings long, and columns of written files hard to refer to.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use datafusion::{
    common::{
        Column, TableReference,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeVisitor},
    },
    datasource::source_as_provider,
    error::Result,
    execution::SessionState,
    logical_expr::{
        DdlStatement, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Projection, Statement,
        Unnest,
        dml::CopyTo,
        expr::{Alias, Unnest as UnnestExpr},
        logical_plan::Prepare,
    },
    sql::utils::UNNEST_PLACEHOLDER,
};
use tfarrow_datafusion::TfRecordTable;

/// Returns the plan of a statement with computed columns renamed to names without the paths of
/// files: `avg(price)` instead of `avg(shards/train.tfrecord.price)`.
///
/// Renames the columns of the result of a query, of a file that COPY writes, and of a table or view
/// that CREATE makes from a query. Columns of subqueries keep DataFusion's names, by which the
/// outer query refers to them. Aliases and names of registered tables stay in names, as does a path
/// without which two columns would have equal names.
///
/// ```
/// use tfarrow_sql::{SessionOptions, session_context, with_headings};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
/// let context = session_context(SessionOptions::default())?;
/// let query = format!("SELECT avg(price) FROM '{testdata}/shards/'");
/// let plan = with_headings(context.state().create_logical_plan(&query).await?, &context.state())?;
/// assert_eq!(plan.schema().field(0).name(), "avg(price)");
/// let batches = context.execute_logical_plan(plan).await?.collect().await?;
/// assert_eq!(batches[0].schema().field(0).name(), "avg(price)");
/// # Ok(()) }
/// ```
///
/// # Errors
/// DataFusion cannot rebuild the plan with the new names.
pub fn with_headings(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Copy(copy) => {
            let input = renamed(&copy.input, &copy.partition_by, state)?;
            let CopyTo {
                output_url,
                partition_by,
                file_type,
                options,
                ..
            } = copy;
            Ok(LogicalPlan::Copy(CopyTo::new(
                Arc::new(input),
                output_url,
                partition_by,
                file_type,
                options,
            )))
        }
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) => {
            table.input = Arc::new(renamed(&table.input, &[], state)?);
            Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
        }
        LogicalPlan::Ddl(DdlStatement::CreateView(mut view)) => {
            view.input = Arc::new(renamed(&view.input, &[], state)?);
            Ok(LogicalPlan::Ddl(DdlStatement::CreateView(view)))
        }
        LogicalPlan::Statement(Statement::Prepare(Prepare {
            name,
            fields,
            input,
        })) => {
            let input = Arc::new(with_headings(Arc::unwrap_or_clone(input), state)?);
            Ok(LogicalPlan::Statement(Statement::Prepare(Prepare {
                name,
                fields,
                input,
            })))
        }
        LogicalPlan::Ddl(_)
        | LogicalPlan::Dml(_)
        | LogicalPlan::Statement(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::DescribeTable(_) => Ok(plan),
        query => renamed(&query, &[], state),
    }
}

/// Renames the columns of a query, except those in `kept`.
fn renamed(query: &LogicalPlan, kept: &[String], state: &SessionState) -> Result<LogicalPlan> {
    let mut headings = Headings {
        paths: paths(query, state)?,
        names: HashMap::new(),
    };
    if headings.paths.is_empty() {
        return Ok(query.clone());
    }
    query.visit_with_subqueries(&mut headings)?;
    kept.iter()
        .for_each(|name| drop(headings.names.remove(name)));
    let fields = query.schema().fields();
    let mut uses = HashMap::new();
    fields
        .iter()
        .for_each(|field| *uses.entry(headings.name(field.name())).or_insert(0) += 1);
    let mut columns = Vec::with_capacity(fields.len());
    let mut are_renamed = false;
    for column in query.schema().columns() {
        let heading = headings.name(&column.name);
        let is_renamed = heading != column.name && uses.get(&heading) == Some(&1);
        let heading = is_renamed.then(|| heading.into_owned());
        columns.push(match heading {
            Some(heading) => Expr::Column(column).alias(heading),
            None => Expr::Column(column),
        });
        are_renamed |= is_renamed;
    }
    if !are_renamed {
        return Ok(query.clone());
    }
    LogicalPlanBuilder::from(query.clone())
        .project(columns)?
        .build()
}

/// Returns whether a plan is the query of a table of TensorBoard's events, whose alias is the name
/// of its files.
fn is_of_events(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_of_events(&projection.input),
        LogicalPlan::Unnest(unnest) => is_of_events(&unnest.input),
        LogicalPlan::TableScan(scan) => {
            let table = source_as_provider(&scan.source);
            table.is_ok_and(|table| {
                table
                    .downcast_ref::<TfRecordTable>()
                    .is_some_and(TfRecordTable::has_runs)
            })
        }
        _ => false,
    }
}

/// The names of scanned tables that the user has not chosen: those of files, and of functions such
/// as `read_tfrecord`.
fn paths(query: &LogicalPlan, state: &SessionState) -> Result<HashSet<TableReference>> {
    let mut scanned = HashSet::new();
    let mut chosen = HashSet::new();
    query.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) if !is_registered(&scan.table_name, state) => {
                scanned.insert(scan.table_name.clone());
            }
            LogicalPlan::SubqueryAlias(alias)
                if is_of_events(&alias.input) && !is_registered(&alias.alias, state) =>
            {
                scanned.insert(alias.alias.clone());
            }
            LogicalPlan::SubqueryAlias(alias) => {
                chosen.insert(alias.alias.clone());
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(&scanned - &chosen)
}

fn is_registered(name: &TableReference, state: &SessionState) -> bool {
    state
        .schema_for_ref(name.clone())
        .is_ok_and(|schema| schema.table_exist(name.table()))
}

/// A visitor that collects the headings of computed columns of a plan, from the leaves to the root.
struct Headings {
    /// The table names to remove.
    paths: HashSet<TableReference>,
    /// Maps DataFusion's names of columns to headings, if the two differ.
    names: HashMap<String, String>,
}

impl<'n> TreeNodeVisitor<'n> for Headings {
    type Node = LogicalPlan;

    fn f_up(&mut self, node: &'n LogicalPlan) -> Result<TreeNodeRecursion> {
        match node {
            LogicalPlan::Projection(projection) => self.add_all(&projection.expr)?,
            LogicalPlan::Window(window) => self.add_all(&window.window_expr)?,
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.add_all(&distinct.select_expr)?,
            LogicalPlan::Aggregate(aggregate) => {
                self.add_all(&aggregate.aggr_expr)?;
                match aggregate.group_expr.as_slice() {
                    [Expr::GroupingSet(set)] => self.add_all(set.distinct_expr())?,
                    columns => self.add_all(columns)?,
                }
            }
            LogicalPlan::Unnest(unnest) => self.add_unnested(unnest)?,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    }
}

impl Headings {
    /// The heading of the column with DataFusion's name `name`.
    fn name<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        match self.names.get(name) {
            Some(heading) => Cow::Borrowed(heading),
            None => self.without_path_texts(name),
        }
    }

    /// Removes paths from the arguments in the text of a name. Some functions, such as `mean`, get
    /// their name before they are replaced by the function that they are another name of. A name
    /// that begins with a path may be one that the user chose.
    fn without_path_texts<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let mut name = Cow::Borrowed(name);
        for (path, before) in self
            .paths
            .iter()
            .flat_map(|path| ['(', ',', ' '].map(|before| (path, before)))
        {
            let prefix = format!("{before}{path}.");
            if name.contains(&prefix) {
                name = Cow::Owned(name.replace(&prefix, &before.to_string()));
            }
        }
        name
    }

    fn add_all<'a>(&mut self, exprs: impl IntoIterator<Item = &'a Expr>) -> Result<()> {
        exprs.into_iter().try_for_each(|expr| self.add(expr))
    }

    /// Adds the heading of an expression if its name contains a path.
    fn add(&mut self, expr: &Expr) -> Result<()> {
        if matches!(expr, Expr::Column(_)) {
            return Ok(());
        }
        let name = expr.qualified_name().1;
        let heading = self.without_paths(expr)?.qualified_name().1;
        if heading != name {
            self.names.insert(name, heading);
        }
        Ok(())
    }

    /// Adds the headings of `unnest(x)`, which the planner replaces by an alias over a separate
    /// plan node.
    fn add_unnested(&mut self, unnest: &Unnest) -> Result<()> {
        let LogicalPlan::Projection(Projection { expr, .. }) = unnest.input.as_ref() else {
            return Ok(());
        };
        for (index, list) in &unnest.list_type_columns {
            let Some(Expr::Alias(Alias { expr, .. })) = expr.get(*index) else {
                continue;
            };
            let mut nested = expr.as_ref().clone();
            for _ in 0..list.depth {
                nested = Expr::Unnest(UnnestExpr::new(nested));
            }
            self.add(&nested)?;
        }
        Ok(())
    }

    /// Returns the heading of a column, without the path of its table.
    fn without_path(&self, column: Column) -> Column {
        let Column { relation, name, .. } = column;
        let relation = relation.filter(|table| !self.paths.contains(table));
        Column::new(relation, self.name(&name))
    }

    /// Returns the expression with each column replaced by its heading, without paths.
    fn without_paths(&self, expr: &Expr) -> Result<Expr> {
        let transformed = expr.clone().transform_down(|expr| {
            Ok(Transformed::yes(match expr {
                Expr::Column(column) => Expr::Column(self.without_path(column)),
                Expr::OuterReferenceColumn(field, column) => {
                    Expr::OuterReferenceColumn(field, self.without_path(column))
                }
                Expr::ScalarSubquery(query) => {
                    let name = query.subquery.schema().field(0).name();
                    Expr::Column(Column::new_unqualified(self.name(name)))
                }
                Expr::Alias(mut alias) => {
                    if let Some(heading) = self.of_alias(&alias)? {
                        alias.name = heading;
                    }
                    Expr::Alias(alias)
                }
                other => return Ok(Transformed::no(other)),
            }))
        })?;
        Ok(transformed.data)
    }

    /// The heading of an alias that the planner made: of `unnest(x)`, or of a function that is
    /// called by an alias of its name. `None` for an alias that the user has chosen.
    fn of_alias(&self, alias: &Alias) -> Result<Option<String>> {
        let args = match alias.expr.as_ref() {
            Expr::Column(column) if column.name.starts_with(UNNEST_PLACEHOLDER) => {
                return Ok(self.names.get(&alias.name).cloned());
            }
            Expr::ScalarFunction(function) => &function.args,
            Expr::HigherOrderFunction(function) => &function.args,
            Expr::AggregateFunction(function) => &function.params.args,
            Expr::WindowFunction(function) => &function.params.args,
            _ => return Ok(None),
        };
        let Some(called) = alias.name.strip_suffix(&format!("({})", joined(args))) else {
            return Ok(None);
        };
        let args = args
            .iter()
            .map(|arg| self.without_paths(arg))
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(format!("{called}({})", joined(&args))))
    }
}

/// The arguments in the name of a call.
fn joined(args: &[Expr]) -> String {
    let args: Vec<_> = args.iter().map(Expr::to_string).collect();
    args.join(",")
}
