//! The number of relations that a statement expands to: DataFusion plans a common table expression
//! again for each of its uses.
//!
//! Workaround for DataFusion 55: apache/datafusion#17737, open. Delete when a common table
//! expression is planned once.

use std::{collections::HashMap, ops::ControlFlow};

use datafusion::{
    common::plan_datafusion_err,
    error::DataFusionError,
    sql::sqlparser::ast::{ObjectName, Query, Visit, VisitorMut, visit_relations},
};

/// A visitor that counts the relations of each common table expression, and those of its uses.
#[derive(Debug)]
pub(crate) struct RelationCount {
    limit: usize,
    /// The number of relations of each common table expression.
    by_name: HashMap<String, usize>,
}

impl RelationCount {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            by_name: HashMap::new(),
        }
    }

    /// The relations of a query or an expression of a query.
    fn relations(&self, part: &impl Visit) -> usize {
        let mut count: usize = 0;
        let ControlFlow::Continue(()) = visit_relations(part, |name: &ObjectName| {
            let relations = self
                .by_name
                .get(&name.to_string().to_lowercase())
                .copied()
                .unwrap_or(1);
            count = count.saturating_add(relations);
            ControlFlow::<std::convert::Infallible>::Continue(())
        });
        count.max(1)
    }
}

impl VisitorMut for RelationCount {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            let relations = self.relations(&table.query);
            self.by_name
                .insert(table.alias.name.to_string().to_lowercase(), relations);
        }
        let relations = self.relations(&query.body);
        if relations <= self.limit {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(Box::new(plan_datafusion_err!(
            "a statement reads {relations} relations, more than query_relations={}: common table expressions that use each other \
             several times multiply; write a result to a file or a table, and query that",
            self.limit
        )))
    }
}
