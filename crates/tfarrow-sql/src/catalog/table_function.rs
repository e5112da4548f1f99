//! The table function `read_tfrecord('shards/', layout => 'list')`: a table with its own options.
//!
//! It is a relation planner, because DataFusion's table functions take no named arguments.
//!
//! Workaround for DataFusion 55: apache/datafusion#17379, open. Make it a table function when these
//! take named arguments.

use std::sync::Arc;

use datafusion::{
    common::{DFSchema, plan_err},
    datasource::provider_as_source,
    error::Result,
    logical_expr::{
        Expr, LogicalPlanBuilder,
        planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning},
    },
    sql::sqlparser::ast::{Expr as SqlExpr, FunctionArg, FunctionArgExpr, TableFactor},
};
use tfarrow_datafusion::{TfRecordOptions, TfRecordTableBuilder, internals::TableRegistry};

use crate::statements::{clauses::check_relation, home_dir::READ_TFRECORD};

/// The name of the function, for messages.
const NAME: &str = READ_TFRECORD;

/// Plans calls of `read_tfrecord`, whose arguments are sources first, then options by name.
#[derive(Debug)]
pub(crate) struct ReadTfRecord(pub(crate) Arc<TableRegistry>);

impl RelationPlanner for ReadTfRecord {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        check_relation(&relation)?;
        let TableFactor::Table {
            name,
            alias,
            args: Some(args),
            ..
        } = &relation
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if !name.to_string().eq_ignore_ascii_case(NAME) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let session = context
            .context_provider()
            .options()
            .extensions
            .get::<TfRecordOptions>();
        let mut options = session.cloned().unwrap_or_default();
        let mut sources = Vec::new();
        for arg in &args.args {
            match arg {
                FunctionArg::Unnamed(value) => sources.push(literal(NAME, value, context)?),
                FunctionArg::Named {
                    name, arg: value, ..
                } => {
                    options = options
                        .with([(name.value.as_str(), literal(NAME, value, context)?.as_str())])?;
                }
                FunctionArg::ExprNamed {
                    name, arg: value, ..
                } => {
                    options = options.with([(
                        name.to_string().as_str(),
                        literal(NAME, value, context)?.as_str(),
                    )])?;
                }
            }
        }
        let [first, ..] = sources.as_slice() else {
            return plan_err!(
                "{NAME} needs a source: {NAME}('shards/*.tfrecord', layout => 'list')"
            );
        };
        // The planner is synchronous, so that this blocks its thread while files are listed and
        // sampled.
        let table = TfRecordTableBuilder::new(&sources).with_options(options);
        let table = self.0.register(table.build_blocking()?, first)?;
        let plan = LogicalPlanBuilder::scan(NAME, provider_as_source(table), None)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(
            plan,
            alias.clone(),
        ))))
    }
}

/// Evaluates an argument of the function `name`, which must be a constant, to text.
pub(super) fn literal(
    name: &str,
    arg: &FunctionArgExpr,
    context: &mut dyn RelationPlannerContext,
) -> Result<String> {
    let FunctionArgExpr::Expr(expr) = arg else {
        return plan_err!("{name}: found {arg}, expected a constant");
    };
    match context.sql_to_expr(SqlExpr::clone(expr), &DFSchema::empty())? {
        Expr::Literal(value, _) if !value.is_null() => Ok(value.to_string()),
        _ => plan_err!("{name}: found {expr}, expected a constant"),
    }
}
