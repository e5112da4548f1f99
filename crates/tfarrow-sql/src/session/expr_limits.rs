//! Types and frames that DataFusion accepts and Arrow cannot hold: it would allocate memory for
//! them, or overflow, which ends the process.
//!
//! Workaround for DataFusion 55, of which no issue is known.

use datafusion::{
    arrow::datatypes::DataType,
    common::{
        ScalarValue, plan_err,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{Expr, LogicalPlan, WindowFrameBound},
};

/// Maximum bytes of a batch of lists of a fixed size, for which a cast allocates memory before it
/// reads its lists.
const MAX_BATCH_BYTES: u128 = 8 << 30;

/// Checks the types of casts and the frames of windows in a plan whose batches have `batch_size`
/// rows.
///
/// # Errors
/// A batch of a cast to lists of a fixed size would have more than 8 GiB, or a frame has a bound
/// above 9,223,372,036,854,775,807 rows.
pub(crate) fn check_exprs(plan: &LogicalPlan, batch_size: usize) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                match expr {
                    Expr::Cast(cast) => check_type(cast.field.data_type(), batch_size)?,
                    Expr::TryCast(cast) => check_type(cast.field.data_type(), batch_size)?,
                    // The type of this function's result is an argument.
                    Expr::ScalarFunction(function)
                        if ["arrow_cast", "arrow_try_cast"].contains(&function.name()) =>
                    {
                        if let Some(Expr::Literal(ScalarValue::Utf8(Some(name)), _)) =
                            function.args.get(1)
                            && let Ok(data_type) = name.parse()
                        {
                            check_type(&data_type, batch_size)?;
                        }
                    }
                    Expr::WindowFunction(function) => {
                        check_bound(&function.params.window_frame.start_bound)?;
                        check_bound(&function.params.window_frame.end_bound)?;
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

fn check_type(data_type: &DataType, batch_size: usize) -> Result<()> {
    let bytes = fixed_bytes(data_type).saturating_mul(batch_size as u128);
    if bytes <= MAX_BATCH_BYTES {
        return Ok(());
    }
    plan_err!(
        "a batch of {batch_size} rows of {data_type} takes {bytes} bytes, more than {MAX_BATCH_BYTES}; use a list without a fixed \
         size, or fewer rows in a batch: SET datafusion.execution.batch_size"
    )
}

/// The bytes that each value of a type has, null or not.
fn fixed_bytes(data_type: &DataType) -> u128 {
    match data_type {
        DataType::FixedSizeList(item, size) => fixed_bytes(item.data_type())
            .max(1)
            .saturating_mul(u128::from(size.unsigned_abs())),
        DataType::FixedSizeBinary(size) => u128::from(size.unsigned_abs()),
        DataType::Struct(fields) => fields.iter().fold(0, |sum: u128, field| {
            sum.saturating_add(fixed_bytes(field.data_type()))
        }),
        _ => data_type.primitive_width().unwrap_or(0) as u128,
    }
}

/// Checks a bound of a window frame: DataFusion computes with signed numbers.
fn check_bound(bound: &WindowFrameBound) -> Result<()> {
    let (WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value)) = bound else {
        return Ok(());
    };
    match value {
        ScalarValue::UInt64(Some(rows)) if i64::try_from(*rows).is_err() => {
            plan_err!(
                "a window frame of {rows} rows is too long; {} is the maximum, or UNBOUNDED",
                i64::MAX
            )
        }
        _ => Ok(()),
    }
}
