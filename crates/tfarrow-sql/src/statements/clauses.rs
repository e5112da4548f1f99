//! Errors for clauses that DataFusion parses and then ignores. Without them, a query would silently
//! return the result of another query.
//!
//! Two statements are rewritten instead: `FROM x` reads all columns, and `SHOW COLUMNS FROM x`
//! describes `x`. Optimizer hints are ignored: they are comments, and never change a result.
//!
//! Workaround for DataFusion 55: apache/datafusion#24754 (modifiers of tables, open), #10743 (sizes
//! of VARCHAR) and #17737 (MATERIALIZED, open). Delete a check when DataFusion refuses its clause;
//! FETCH is refused since 55.2.

use std::ops::ControlFlow;

use datafusion::{
    common::{plan_datafusion_err, plan_err},
    error::{DataFusionError, Result},
    execution::SessionState,
    sql::{
        parser::{CopyToStatement, CreateExternalTable},
        sqlparser::ast::{
            ArrayElemTypeDef, ColumnDef, ColumnOption, Cte, CteAsMaterialized, DataType,
            DescribeAlias, DuplicateTreatment, ExactNumberInfo, Expr, Function,
            FunctionArgumentClause, FunctionArguments, GroupByExpr, Join, ObjectName, ObjectType,
            OrderByOptions, PipeOperator, Query, Select, SelectFlavor, SelectItem, SetExpr,
            ShowStatementOptions, Statement, TableAlias, TableFactor, TableWithJoins, VisitorMut,
        },
    },
};

use crate::statements::dialect::orders_all;

/// A visitor that rejects the clauses of one statement that DataFusion would ignore.
pub(crate) struct ClauseChecker<'a> {
    state: &'a SessionState,
}

impl<'a> ClauseChecker<'a> {
    /// A checker for a session, whose functions determine which clauses a call may have.
    pub(crate) fn new(state: &'a SessionState) -> Self {
        Self { state }
    }

    /// Returns whether a name is that of a scalar function, and not of an aggregate or window
    /// function.
    fn is_scalar(&self, name: &ObjectName) -> bool {
        let [part] = name.0.as_slice() else {
            return false;
        };
        let Some(name) = part.as_ident() else {
            return false;
        };
        let name = if name.quote_style.is_some() {
            name.value.clone()
        } else {
            name.value.to_ascii_lowercase()
        };
        self.state.scalar_functions().contains_key(&name)
            || self.state.higher_order_functions().contains_key(&name)
            || matches!(name.as_str(), "unnest" | "unnest_outer")
    }

    fn function(&self, function: &Function) -> Result<()> {
        let Function {
            name,
            uses_odbc_syntax: _,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        refuse_if(
            *parameters != FunctionArguments::None,
            &format!("a second list of arguments of {name}"),
            "give one list",
        )?;
        refuse_if(
            matches!(args, FunctionArguments::Subquery(_)),
            &format!("a query as argument of {name}"),
            PARENTHESES,
        )?;
        let (is_distinct, clauses) = match args {
            FunctionArguments::List(list) => (
                list.duplicate_treatment == Some(DuplicateTreatment::Distinct),
                list.clauses.as_slice(),
            ),
            _ => (false, [].as_slice()),
        };
        let is_ordered = clauses
            .iter()
            .any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
        let about_nulls = clauses
            .iter()
            .any(|clause| matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_)));
        if self.is_scalar(name) {
            let advice = "leave it out: the function takes the values of one row";
            refuse_if(is_distinct, &format!("DISTINCT of {name}"), advice)?;
            refuse_if(is_ordered, &format!("ORDER BY of {name}"), advice)?;
            refuse_if(filter.is_some(), &format!("FILTER of {name}"), advice)?;
            refuse_if(over.is_some(), &format!("OVER of {name}"), advice)?;
            refuse_if(
                !within_group.is_empty(),
                &format!("WITHIN GROUP of {name}"),
                advice,
            )?;
            let has_nulls = null_treatment.is_some() || about_nulls;
            return refuse_if(
                has_nulls,
                &format!("IGNORE NULLS or RESPECT NULLS of {name}"),
                advice,
            );
        }
        let is_window = over.is_some();
        refuse_if(
            is_window && is_ordered,
            &format!("ORDER BY among the arguments of {name}"),
            "write OVER (ORDER BY ..)",
        )
    }
}

const PARENTHESES: &str = "put the query in parentheses of its own";

impl VisitorMut for ClauseChecker<'_> {
    type Break = Box<DataFusionError>;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Self::Break> {
        if let Statement::ShowColumns {
            extended: false,
            full: false,
            show_options,
        } = &statement
            && let Some(table_name) = shown_table(show_options)
        {
            // DataFusion lists the columns of registered tables only, and not those of files.
            *statement = Statement::ExplainTable {
                describe_alias: DescribeAlias::Describe,
                hive_format: None,
                has_table_keyword: false,
                table_name,
            };
        }
        flow(check_statement(statement))
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        flow(check_query(query))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if select.flavor == SelectFlavor::FromFirstNoSelect && select.projection.is_empty() {
            select
                .projection
                .push(SelectItem::Wildcard(Default::default()));
        }
        flow(check_select(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        flow(check_relation(factor))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        flow(match expr {
            Expr::Function(function) => self.function(function),
            Expr::Cast { data_type, .. } => check_type(data_type),
            Expr::TypedString(string) => check_type(&string.data_type),
            _ => Ok(()),
        })
    }
}

fn flow(checked: Result<()>) -> ControlFlow<Box<DataFusionError>> {
    match checked {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Box::new(error)),
    }
}

fn refuse_if(is_there: bool, clause: &str, advice: &str) -> Result<()> {
    if is_there {
        plan_err!("{clause} is not supported; {advice}")
    } else {
        Ok(())
    }
}

/// The table of `SHOW COLUMNS FROM table`; `None` if the statement has a clause that DataFusion
/// rejects itself.
fn shown_table(options: &ShowStatementOptions) -> Option<ObjectName> {
    let ShowStatementOptions {
        show_in,
        starts_with,
        limit,
        limit_from,
        filter_position,
    } = options;
    let is_plain = starts_with.is_none()
        && limit.is_none()
        && limit_from.is_none()
        && filter_position.is_none();
    let from = show_in
        .as_ref()
        .filter(|from| is_plain && from.parent_type.is_none())?;
    from.parent_name.clone()
}

fn check_statement(statement: &Statement) -> Result<()> {
    const LEAVE: &str = "leave it out";
    match statement {
        Statement::ShowColumns { extended, full, .. } => refuse_if(
            *extended || *full,
            "SHOW FULL COLUMNS",
            "write DESCRIBE, or query information_schema.columns",
        ),
        Statement::CreateTable(table) => table.columns.iter().try_for_each(check_column),
        Statement::CreateView(view) => {
            refuse_if(
                view.or_alter,
                "CREATE OR ALTER VIEW",
                "write CREATE OR REPLACE VIEW",
            )?;
            refuse_if(view.secure, "SECURE", LEAVE)?;
            refuse_if(
                view.params.is_some(),
                "ALGORITHM, DEFINER or SQL SECURITY of a view",
                LEAVE,
            )
        }
        Statement::CreateSchema {
            with,
            options,
            default_collate_spec,
            clone,
            ..
        } => {
            let has_more = with.is_some()
                || options.is_some()
                || default_collate_spec.is_some()
                || clone.is_some();
            refuse_if(has_more, "a clause after the name of CREATE SCHEMA", LEAVE)
        }
        Statement::CreateDatabase {
            db_name,
            if_not_exists,
            ..
        } => {
            let exists = if *if_not_exists { "IF NOT EXISTS " } else { "" };
            let is_plain = statement.to_string() == format!("CREATE DATABASE {exists}{db_name}");
            refuse_if(
                !is_plain,
                "a clause of CREATE DATABASE besides its name",
                LEAVE,
            )
        }
        Statement::Drop {
            object_type,
            cascade,
            restrict,
            purge,
            temporary,
            table,
            ..
        } => {
            // DROP SCHEMA implements CASCADE and RESTRICT.
            let is_schema = *object_type == ObjectType::Schema;
            refuse_if(
                *cascade && !is_schema,
                "CASCADE",
                "drop dependent views first; they keep working otherwise",
            )?;
            refuse_if(*restrict && !is_schema, "RESTRICT", LEAVE)?;
            refuse_if(
                *purge,
                "PURGE",
                "remove the files yourself; DROP does not delete them",
            )?;
            refuse_if(*temporary, "TEMPORARY", LEAVE)?;
            refuse_if(table.is_some(), "ON after DROP", LEAVE)
        }
        _ => Ok(()),
    }
}

fn check_query(query: &Query) -> Result<()> {
    let Query {
        with,
        body,
        order_by,
        limit_clause: _,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    refuse_if(
        !locks.is_empty(),
        "FOR UPDATE or FOR SHARE",
        "leave it out: files are not locked",
    )?;
    refuse_if(
        for_clause.is_some(),
        "FOR XML, FOR JSON or FOR BROWSE",
        "leave it out: a query does not set the output format",
    )?;
    refuse_if(
        settings.is_some(),
        "SETTINGS",
        "write SET name = value before the query",
    )?;
    refuse_if(
        format_clause.is_some(),
        "FORMAT",
        "leave it out, or write COPY (..) TO 'file'",
    )?;
    refuse_if(fetch.is_some(), "FETCH", "write LIMIT n")?;
    // That of named columns was replaced by their numbers.
    refuse_if(
        order_by.as_ref().is_some_and(orders_all),
        "ORDER BY ALL of *",
        "name the columns after ORDER BY",
    )?;
    if let Some(with) = with {
        with.cte_tables
            .iter()
            .try_for_each(|table| check_cte(table, with.recursive))?;
    }
    check_into(body)?;
    pipe_operators.iter().try_for_each(check_pipe)
}

fn check_cte(cte: &Cte, is_recursive: bool) -> Result<()> {
    let Cte {
        alias,
        query,
        from,
        materialized,
        closing_paren_token: _,
    } = cte;
    let is_materialized = matches!(materialized, Some(CteAsMaterialized::Materialized));
    refuse_if(
        is_materialized,
        "AS MATERIALIZED",
        "write CREATE TABLE .. AS, which keeps the rows",
    )?;
    refuse_if(from.is_some(), "FROM after a query of WITH", "leave it out")?;
    // DataFusion plans only the two sides of the UNION of a recursive query.
    if is_recursive && matches!(*query.body, SetExpr::SetOperation { .. }) {
        let has_more =
            query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some();
        let clauses = "WITH, ORDER BY, OFFSET or LIMIT of a query of WITH RECURSIVE";
        refuse_if(
            has_more,
            clauses,
            "write it in the query that reads from it",
        )?;
    }
    check_alias(Some(alias))
}

/// DataFusion executes INTO of a plain SELECT, and ignores it within a set operation.
fn check_into(body: &SetExpr) -> Result<()> {
    if let SetExpr::Select(select) = body {
        let Some(into) = &select.into else {
            return Ok(());
        };
        return refuse_if(
            into.temporary || into.unlogged,
            "INTO TEMPORARY or UNLOGGED",
            "write CREATE TABLE .. AS",
        );
    }
    let mut bodies = vec![body];
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                bodies.extend([left.as_ref(), right.as_ref()])
            }
            SetExpr::Select(select) => {
                refuse_if(
                    select.into.is_some(),
                    "INTO within UNION, INTERSECT or EXCEPT",
                    "write CREATE TABLE .. AS",
                )?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_pipe(operator: &PipeOperator) -> Result<()> {
    match operator {
        PipeOperator::Aggregate {
            full_table_exprs,
            group_by_expr,
        } => {
            let plain = OrderByOptions {
                asc: None,
                nulls_first: None,
            };
            let is_ordered = full_table_exprs
                .iter()
                .chain(group_by_expr)
                .any(|expr| expr.order_by != plain);
            refuse_if(
                is_ordered,
                "ASC or DESC after |> AGGREGATE",
                "add |> ORDER BY",
            )
        }
        PipeOperator::Join(join) => check_join(join),
        _ => Ok(()),
    }
}

fn check_select(select: &Select) -> Result<()> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into: _,
        from,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window: _,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor: _,
    } = select;
    let order = "write ORDER BY";
    refuse_if(
        select_modifiers.is_some(),
        "a modifier of MySQL after SELECT",
        "leave it out",
    )?;
    refuse_if(
        projection.is_empty(),
        "SELECT without columns",
        "name columns, or write SELECT *",
    )?;
    refuse_if(top.is_some(), "TOP", "write LIMIT n")?;
    refuse_if(
        exclude.is_some(),
        "EXCLUDE after the columns",
        "write SELECT * EXCLUDE (..), right after the star",
    )?;
    refuse_if(
        !lateral_views.is_empty(),
        "LATERAL VIEW",
        "write unnest(..)",
    )?;
    refuse_if(prewhere.is_some(), "PREWHERE", "write WHERE")?;
    refuse_if(
        !connect_by.is_empty(),
        "CONNECT BY or START WITH",
        "write WITH RECURSIVE",
    )?;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    let sets = "write GROUP BY ROLLUP (..), CUBE (..) or GROUPING SETS (..)";
    refuse_if(
        !modifiers.is_empty(),
        "WITH ROLLUP, WITH CUBE or WITH TOTALS",
        sets,
    )?;
    refuse_if(!cluster_by.is_empty(), "CLUSTER BY", order)?;
    refuse_if(!distribute_by.is_empty(), "DISTRIBUTE BY", order)?;
    refuse_if(!sort_by.is_empty(), "SORT BY", order)?;
    refuse_if(
        value_table_mode.is_some(),
        "SELECT AS STRUCT or AS VALUE",
        "write SELECT struct(..)",
    )?;
    from.iter().try_for_each(check_joins)
}

fn check_joins(from: &TableWithJoins) -> Result<()> {
    from.joins.iter().try_for_each(check_join)
}

fn check_join(join: &Join) -> Result<()> {
    refuse_if(join.global, "GLOBAL JOIN", "leave GLOBAL out")
}

/// Rejects clauses of one table, function or subquery of FROM. The relation planner calls this
/// function as well, so that these clauses are also rejected in sessions that parse SQL without
/// [`statements`](fn@crate::statements).
pub(crate) fn check_relation(relation: &TableFactor) -> Result<()> {
    const UNNUMBERED: &str = "write row_number() OVER ()";
    match relation {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            check_sample(sample.is_some())?;
            refuse_if(
                version.is_some(),
                "AS OF, or another version of a table,",
                "name the files of that version",
            )?;
            refuse_if(
                !with_hints.is_empty(),
                "WITH (..) after a table",
                "leave it out",
            )?;
            refuse_if(*with_ordinality, "WITH ORDINALITY", UNNUMBERED)?;
            refuse_if(
                !partitions.is_empty(),
                "PARTITION (..) after a table",
                "write WHERE on the partition column",
            )?;
            refuse_if(
                json_path.is_some(),
                "a path after a table",
                "write it after a column",
            )?;
            refuse_if(
                !index_hints.is_empty(),
                "USE, IGNORE or FORCE INDEX",
                "leave it out: files have no index",
            )?;
            let has_settings = args.as_ref().is_some_and(|args| args.settings.is_some());
            refuse_if(
                has_settings,
                "SETTINGS of a table function",
                "write name => value",
            )?;
            check_alias(alias.as_ref())
        }
        TableFactor::Derived { sample, alias, .. } => {
            check_sample(sample.is_some())?;
            check_alias(alias.as_ref())
        }
        TableFactor::Function {
            with_ordinality,
            alias,
            ..
        } => {
            refuse_if(*with_ordinality, "WITH ORDINALITY", UNNUMBERED)?;
            check_alias(alias.as_ref())
        }
        TableFactor::UNNEST { alias, .. } => check_alias(alias.as_ref()),
        TableFactor::NestedJoin {
            table_with_joins,
            alias,
        } => {
            check_joins(table_with_joins)?;
            check_alias(alias.as_ref())
        }
        // DataFusion rejects the other kinds of relations itself.
        _ => Ok(()),
    }
}

fn check_sample(is_sampled: bool) -> Result<()> {
    refuse_if(
        is_sampled,
        "TABLESAMPLE",
        "write WHERE random() < 0.1 for a tenth of the rows",
    )
}

fn check_alias(alias: Option<&TableAlias>) -> Result<()> {
    let Some(TableAlias { columns, at, .. }) = alias else {
        return Ok(());
    };
    refuse_if(at.is_some(), "AT after an alias", "leave it out")?;
    let is_typed = columns.iter().any(|column| column.data_type.is_some());
    refuse_if(
        is_typed,
        "a type in the columns of an alias",
        "write CAST(column AS type)",
    )
}

/// Rejects clauses that `CREATE EXTERNAL TABLE` would ignore.
pub(crate) fn check_external_table(table: &CreateExternalTable) -> Result<()> {
    table.columns.iter().try_for_each(check_column)
}

/// Rejects options of a column that would be ignored. Constraints are checked by the factory of the
/// table's format.
fn check_column(column: &ColumnDef) -> Result<()> {
    let name = &column.name;
    check_type(&column.data_type)?;
    column
        .options
        .iter()
        .try_for_each(|option| match &option.option {
            ColumnOption::Null
            | ColumnOption::NotNull
            | ColumnOption::Default(_)
            | ColumnOption::Unique(_)
            | ColumnOption::PrimaryKey(_)
            | ColumnOption::ForeignKey(_)
            | ColumnOption::Check(_) => Ok(()),
            other => plan_err!("column {name}: {other} is not supported; leave it out"),
        })
}

/// Rejects size arguments of types, which would be ignored.
fn check_type(data_type: &DataType) -> Result<()> {
    let advice = match data_type {
        DataType::Varchar(Some(_)) | DataType::Char(Some(_)) | DataType::String(Some(_)) => {
            "write VARCHAR, and left(text, n) to cut text"
        }
        DataType::Float(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..)) => {
            "write FLOAT for 32 bits, DOUBLE for 64 bits, or FLOAT[n] for a list of n values"
        }
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::SquareBracket(element, _),
        ) => {
            return check_type(element);
        }
        _ => return Ok(()),
    };
    plan_err!("the size of {data_type} is not supported; {advice}")
}

/// Rejects an unknown format in STORED AS, which COPY would ignore if it knows the extension of the
/// file's name.
pub(crate) fn check_copy(copy: &CopyToStatement, state: &SessionState) -> Result<()> {
    match &copy.stored_as {
        Some(format) if state.get_file_format_factory(format).is_none() => {
            Err(plan_datafusion_err!(
                "STORED AS {format}: unknown format; write TFRECORD, PARQUET, ARROW, CSV or JSON"
            ))
        }
        _ => Ok(()),
    }
}
