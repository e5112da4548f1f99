//! Filters inside a scan: what they need is decoded first, and the rest only of the records that they keep.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use datafusion::{
    common::cast::as_boolean_array,
    error::{DataFusionError, Result},
    physical_expr::{
        expressions::Column,
        utils::{collect_columns, reassign_expr_columns},
    },
    physical_expr_common::physical_expr::is_volatile,
    physical_plan::PhysicalExpr,
};
use tfarrow_codec::{BatchDecoder, Error as CodecError, Records};

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

    /// A batch of the records that the filter keeps. `first` decodes the columns that it needs, `then` those of the batch.
    pub(crate) fn decode(
        &self,
        first: &mut BatchDecoder,
        then: &mut BatchDecoder,
        records: &Records,
    ) -> Result<RecordBatch, Fault> {
        let batch = first.decode(records)?;
        let kept = self.predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
        Ok(then.decode_where(records, as_boolean_array(&kept)?)?)
    }
}
