//! Changes to plans: the first three to logical plans, and all others to physical plans.
//!
//! | module | change | when |
//! |---|---|---|
//! | `lateral_unnest` | plans joins with `UNNEST` of a list of the other side | analyzer rule |
//! | `volatile_keys` | evaluates keys such as `random()` once, below sorts and windows | analyzer rule |
//! | `normalize_floats` | compares NaN as one value, and -0.0 as 0.0 | last analyzer rule, and after subqueries have become joins |
//! | `float_statistics` | removes the bounds of float columns from the statistics of files | first optimizer rule |
//! | `input_file_name` | evaluates `input_file_name()` in the scan | optimizer rule |
//! | `exchanges` | merges the inputs of exchanges under a memory limit | after the optimizer |
//! | `text_errors` | names the columns of Parquet files whose text is not UTF-8 | after the optimizer |
//! | `cancellation` | adds cancellation checks to joins, `unnest` and recursive queries | after the optimizer |
//!
//! The rules `preserve_order` and `long_rows` of `tfarrow-datafusion` follow the optimizer rules.

pub(crate) mod cancellation;
pub(crate) mod exchanges;
pub(crate) mod float_statistics;
pub(crate) mod input_file_name;
pub(crate) mod lateral_unnest;
pub(crate) mod normalize_floats;
pub(crate) mod text_errors;
pub(crate) mod volatile_keys;
