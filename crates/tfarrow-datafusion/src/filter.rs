//! Filters inside a scan: what they need is decoded first, and the rest only of the rows that they keep.

use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::Schema;
use datafusion::{
    common::cast::as_boolean_array,
    error::{DataFusionError, Result},
    physical_expr::utils::{collect_columns, reassign_expr_columns, split_conjunction},
    physical_plan::PhysicalExpr,
};
use tfarrow_codec::{Error as CodecError, Rows};

/// What goes wrong where records are decoded and filtered.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A record is to blame.
    Codec(CodecError),
    /// The query is, such as by a division by zero.
    Query(DataFusionError),
}

impl From<CodecError> for Fault {
    fn from(error: CodecError) -> Self {
        Self::Codec(error)
    }
}

impl From<DataFusionError> for Fault {
    fn from(error: DataFusionError) -> Self {
        Self::Query(error)
    }
}

/// The conditions of a filter, in the order of the query. A row has to meet all of them.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    conditions: Vec<Condition>,
}

#[derive(Debug)]
struct Condition {
    /// Over a batch of `columns` alone.
    expr: Arc<dyn PhysicalExpr>,
    /// The decoder's columns that it needs.
    columns: Vec<usize>,
}

/// Whether a scan can decide a filter: it is about features alone, and says the same whenever it is asked.
pub(crate) fn is_decidable(filter: &Arc<dyn PhysicalExpr>, file_schema: &Schema) -> bool {
    let known = |column: &datafusion::physical_expr::expressions::Column| {
        file_schema.fields().get(column.index()).is_some_and(|field| field.name() == column.name())
    };
    collect_columns(filter).iter().all(known) && !datafusion::physical_expr_common::physical_expr::is_volatile(filter)
}

impl Filter {
    /// The filter that `predicate` is, in terms of the file's schema. What it needs and `wanted`, the decoder's columns by
    /// their number in the file's schema, has not yet is added there.
    pub(crate) fn new(predicate: &Arc<dyn PhysicalExpr>, schema: &Schema, wanted: &mut Vec<usize>) -> Result<Self> {
        let conditions = split_conjunction(predicate).into_iter();
        let conditions = conditions.map(|expr| Condition::new(expr, schema, wanted)).collect::<Result<_>>()?;
        Ok(Self { conditions })
    }

    /// Drops the rows that do not meet all conditions. What one drops the next is not asked about.
    pub(crate) fn apply(&self, rows: &mut Rows<'_>) -> Result<(), Fault> {
        for condition in self.conditions.iter() {
            if rows.is_empty() {
                break;
            }
            let batch = rows.columns(&condition.columns)?;
            let met = condition.expr.evaluate(&batch)?.into_array(batch.num_rows())?;
            rows.keep(as_boolean_array(&met)?);
        }
        Ok(())
    }
}

impl Condition {
    fn new(expr: &Arc<dyn PhysicalExpr>, schema: &Schema, wanted: &mut Vec<usize>) -> Result<Self> {
        let needed: BTreeSet<_> = collect_columns(expr).iter().map(|column| column.index()).collect();
        let needed: Vec<_> = needed.into_iter().collect();
        let expr = reassign_expr_columns(Arc::clone(expr), &schema.project(&needed)?)?;
        let place = |column: &usize| {
            wanted.iter().position(|known| known == column).unwrap_or_else(|| {
                wanted.push(*column);
                wanted.len() - 1
            })
        };
        let columns = needed.iter().map(place).collect();
        Ok(Self { expr, columns })
    }
}
