//! Expansion of a leading `~/` in names of files to the user's home directory, as in a shell.

use std::{convert::Infallible, ops::ControlFlow};

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectName, ObjectNamePart, TableFactor, Value, VisitorMut,
};

use super::summarize::SUMMARIZE;

/// The name of the table function whose arguments without a name are sources, which are names of files.
pub(crate) const READ_TFRECORD: &str = "read_tfrecord";

/// A visitor that expands `~/` in the names of files of a statement: in FROM, and in the sources of
/// `read_tfrecord` and `summarize`.
pub(crate) struct HomeDir(String);

impl HomeDir {
    /// The home directory of the current user; `None` if the system has none for the user.
    pub(crate) fn of_user() -> Option<Self> {
        let folder = std::env::home_dir()?.to_str()?.trim_end_matches('/').to_owned();
        Some(Self(folder))
    }

    /// Expands `~` and `~/..`. Home directories of other users (`~name`) are not supported.
    pub(crate) fn expand(&self, name: &mut String) {
        if let Some(rest) = name.strip_prefix('~')
            && (rest.is_empty() || rest.starts_with('/'))
        {
            *name = format!("{}{rest}", self.0);
        }
    }

    /// Expands the name of a relation that has a single part.
    pub(crate) fn expand_relation(&self, relation: &mut ObjectName) {
        if let [ObjectNamePart::Identifier(name)] = relation.0.as_mut_slice() {
            self.expand(&mut name.value);
        }
    }
}

impl VisitorMut for HomeDir {
    type Break = Infallible;

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Infallible> {
        self.expand_relation(relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table { name, args: Some(args), .. } = factor
            && [READ_TFRECORD, SUMMARIZE].iter().any(|known| name.to_string().eq_ignore_ascii_case(known))
        {
            for arg in &mut args.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(source))) = arg
                    && let Value::SingleQuotedString(source) = &mut source.value
                {
                    self.expand(source);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_leading_tilde_of_the_user_is_expanded() {
        let home = HomeDir("/home/me".to_owned());
        for (name, expanded) in
            [("~/x", "/home/me/x"), ("~", "/home/me"), ("~you/x", "~you/x"), ("a/~/x", "a/~/x"), ("", "")]
        {
            let mut name = name.to_owned();
            home.expand(&mut name);
            assert_eq!(name, expanded);
        }
    }
}
