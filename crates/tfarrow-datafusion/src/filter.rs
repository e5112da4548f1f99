//! Filters inside a scan: what they need is decoded first, and the rest only of the records that they keep.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::Schema;
use datafusion::{
    common::cast::as_boolean_array,
    error::Result,
    physical_expr::{
        expressions::Column,
        utils::{collect_columns, reassign_expr_columns},
    },
    physical_expr_common::physical_expr::is_volatile,
    physical_plan::PhysicalExpr,
};

/// A filter over a batch of the columns that it needs, and of no others.
#[derive(Debug)]
pub(crate) struct Filter {
    predicate: Arc<dyn PhysicalExpr>,
    /// These columns, by their numbers in the file's schema.
    columns: Vec<usize>,
}

/// Whether a scan can decide a filter: it is about features alone, and says the same whenever it is asked.
pub(crate) fn is_decidable(filter: &Arc<dyn PhysicalExpr>, file_schema: &Schema) -> bool {
    let known =
        |column: &Column| file_schema.fields().get(column.index()).is_some_and(|field| field.name() == column.name());
    collect_columns(filter).iter().all(known) && !is_volatile(filter)
}

impl Filter {
    /// The filter that `predicate` is, which is in terms of the file's schema.
    pub(crate) fn new(predicate: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self> {
        let columns: BTreeSet<_> = collect_columns(predicate).iter().map(Column::index).collect();
        let columns: Vec<_> = columns.into_iter().collect();
        let predicate = reassign_expr_columns(Arc::clone(predicate), &schema.project(&columns)?)?;
        Ok(Self { predicate, columns })
    }

    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Which rows of `batch`, which has these columns, the filter keeps: those for which it is true.
    pub(crate) fn keep(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let kept = self.predicate.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(as_boolean_array(&kept)?.clone())
    }
}
