//! Functions that replace those of DataFusion, and limits for those that remain.

pub(crate) mod bounded;
mod min_max;
pub(crate) mod normalize;
mod octet_length;

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use tfarrow_datafusion::internals;

/// The functions that replace those of DataFusion.
pub(crate) fn replaced() -> (ScalarUDF, [AggregateUDF; 2]) {
    (
        octet_length::octet_length(),
        [min_max::min(), min_max::max()],
    )
}

/// Returns the function with this name that plans call, and queries cannot.
pub fn plan_function(name: &str) -> Option<Arc<ScalarUDF>> {
    let of_floats = normalize::normalize_nan_and_zero();
    if name == of_floats.name() {
        Some(of_floats)
    } else {
        internals::plan_function(name)
    }
}
