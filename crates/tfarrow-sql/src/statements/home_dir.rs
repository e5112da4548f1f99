//! Expansion of a leading `~/` in the names of files of statements.

use std::ops::ControlFlow;

use datafusion::{
    error::DataFusionError,
    sql::sqlparser::ast::{
        Expr, FunctionArg, FunctionArgExpr, ObjectName, ObjectNamePart, TableFactor, Value,
        VisitorMut,
    },
};
use tfarrow_datafusion::internals::HomeDir;

use super::summarize::SUMMARIZE;

/// The name of the table function whose arguments without a name are sources, which are names of
/// files.
pub(crate) const READ_TFRECORD: &str = "read_tfrecord";

/// Expands the name of a relation that has a single part.
pub(crate) fn expand_relation(home: &HomeDir, relation: &mut ObjectName) {
    if let [ObjectNamePart::Identifier(name)] = relation.0.as_mut_slice() {
        home.expand(&mut name.value);
    }
}

/// Expands the names of files of a statement: those in FROM, and the sources of `read_tfrecord` and
/// `summarize`.
pub(crate) struct HomeDirVisitor(pub(crate) HomeDir);

impl VisitorMut for HomeDirVisitor {
    type Break = Box<DataFusionError>;

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Self::Break> {
        expand_relation(&self.0, relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table {
            name,
            args: Some(args),
            ..
        } = factor
            && [READ_TFRECORD, SUMMARIZE]
                .iter()
                .any(|known| name.to_string().eq_ignore_ascii_case(known))
        {
            for arg in &mut args.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(source))) = arg
                    && let Value::SingleQuotedString(source) = &mut source.value
                {
                    self.0.expand(source);
                }
            }
        }
        ControlFlow::Continue(())
    }
}
