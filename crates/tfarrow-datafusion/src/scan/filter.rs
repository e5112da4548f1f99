//! Filters that a scan evaluates: their columns are decoded first, and other columns only for the
//! records that pass.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::Schema;
use datafusion::{
    common::{ScalarValue, cast::as_boolean_array},
    error::Result,
    functions_nested::extract::ArrayElement,
    physical_expr::{
        ScalarFunctionExpr,
        expressions::{Column, DynamicFilterTracking, Literal},
        utils::{collect_columns, reassign_expr_columns},
    },
    physical_expr_common::physical_expr::is_volatile,
    physical_plan::PhysicalExpr,
};

/// A filter over batches of exactly the columns that it refers to.
#[derive(Debug)]
pub(crate) struct Filter {
    predicate: Arc<dyn PhysicalExpr>,
    /// The columns, as indices of the file schema.
    columns: Vec<usize>,
}

/// Returns whether a scan can evaluate a filter: it refers to columns of the file only, and is not
/// volatile.
pub(crate) fn is_decidable(filter: &Arc<dyn PhysicalExpr>, file_schema: &Schema) -> bool {
    for column in collect_columns(filter) {
        let field = file_schema.fields().get(column.index());
        if field.is_none_or(|field| field.name() != column.name()) {
            return false;
        }
    }
    !is_volatile(filter)
}

/// Returns whether a filter, or a part of it, is dynamic: it changes while the query runs.
pub(crate) fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
    DynamicFilterTracking::classify(filter).contains_dynamic_filter()
}

impl Filter {
    /// Creates a filter from a predicate over the file schema.
    pub(crate) fn new(predicate: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self> {
        let columns: BTreeSet<_> = collect_columns(predicate)
            .iter()
            .map(Column::index)
            .collect();
        let columns: Vec<_> = columns.into_iter().collect();
        let predicate = reassign_expr_columns(Arc::clone(predicate), &schema.project(&columns)?)?;
        Ok(Self { predicate, columns })
    }

    /// The columns that the filter refers to, as indices of the file schema.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The list columns of which the filter needs only the first values, as in `ids[1] < 30`, and
    /// the number of values.
    pub(crate) fn first_values(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut found = HashMap::new();
        collect_first_values(&self.predicate, &mut found);
        found
            .into_iter()
            .filter_map(move |(index, most)| Some((*self.columns.get(index)?, most?)))
    }

    /// Evaluates the filter for a batch of its columns. Rows for which the result is null or false
    /// do not pass.
    pub(crate) fn keep(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let kept = self
            .predicate
            .evaluate(batch)?
            .into_array(batch.num_rows())?;
        Ok(as_boolean_array(&kept)?.clone())
    }
}

/// Collects the maximum number of first values of each column that an expression needs; `None`: all
/// values.
fn collect_first_values(expr: &Arc<dyn PhysicalExpr>, found: &mut HashMap<usize, Option<usize>>) {
    if let Some((column, value)) = element(expr.as_ref()) {
        let most = found.entry(column).or_insert(Some(value));
        *most = most.map(|most| most.max(value));
    } else if let Some(column) = expr.downcast_ref::<Column>() {
        found.insert(column.index(), None);
    } else {
        expr.children()
            .into_iter()
            .for_each(|child| collect_first_values(child, found));
    }
}

/// The column and the index of an expression such as `ids[3]` with a positive constant index.
fn element(expr: &dyn PhysicalExpr) -> Option<(usize, usize)> {
    let call = ScalarFunctionExpr::try_downcast_func::<ArrayElement>(expr)?;
    let [list, index] = call.args() else {
        return None;
    };
    let column = list.downcast_ref::<Column>()?.index();
    match index.downcast_ref::<Literal>()?.value() {
        ScalarValue::Int64(Some(index)) if *index > 0 => {
            Some((column, usize::try_from(*index).ok()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field};
    use datafusion::{
        functions_nested::extract::array_element_udf,
        logical_expr::Operator,
        physical_expr::expressions::{binary, is_null, lit},
    };

    use super::*;

    #[test]
    fn first_values_of_lists_are_found() {
        let list = |name: &str| Field::new(name, DataType::new_list(DataType::Int64, true), true);
        let schema = Schema::new(vec![
            Field::new("label", DataType::Int64, true),
            list("ids"),
            list("mask"),
        ]);
        let column = |index: usize| {
            Arc::new(Column::new(schema.field(index).name(), index)) as Arc<dyn PhysicalExpr>
        };
        let value = |index: usize, at: i64| {
            let call = ScalarFunctionExpr::try_new(
                array_element_udf(),
                vec![column(index), lit(at)],
                &schema,
                Arc::default(),
            );
            Arc::new(call.unwrap()) as Arc<dyn PhysicalExpr>
        };
        let compared = |one, other| binary(one, Operator::Lt, other, &schema).unwrap();
        let both = |one, other| binary(one, Operator::And, other, &schema).unwrap();
        let first_values = |predicate: Arc<dyn PhysicalExpr>| {
            let mut found: Vec<_> = Filter::new(&predicate, &schema)
                .unwrap()
                .first_values()
                .collect();
            found.sort_unstable();
            found
        };
        assert_eq!(first_values(compared(value(1, 1), lit(30_i64))), [(1, 1)]);
        let several = both(
            compared(value(2, 3), value(2, 7)),
            compared(value(1, 2), column(0)),
        );
        assert_eq!(first_values(several), [(1, 2), (2, 7)]);
        // Negative indices and complete lists need all values, whatever the order of terms.
        assert_eq!(first_values(compared(value(1, -1), lit(30_i64))), []);
        let whole = || is_null(column(1)).unwrap();
        assert_eq!(
            first_values(both(whole(), compared(value(1, 1), value(2, 1)))),
            [(2, 1)]
        );
        assert_eq!(
            first_values(both(compared(value(1, 1), value(2, 1)), whole())),
            [(2, 1)]
        );
    }
}
