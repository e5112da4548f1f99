//! The headings of the groups of options in `--help`.

/// Which columns there are, and their types.
pub(super) const COLUMNS: &str = "Columns";
/// Which records, and their order.
pub(super) const RECORDS: &str = "Records";
/// The form and the place of the output.
pub(super) const OUTPUT: &str = "Output";
/// The comparison with another data set, or with a schema.
pub(super) const COMPARISON: &str = "Comparison";
/// Checks, and what to do where they fail.
pub(super) const DAMAGE: &str = "Corrupt data";
/// Parts of a data set that several processes read.
pub(super) const PARTS: &str = "Parts of a data set";
/// Limits of memory, threads and sizes.
pub(super) const RESOURCES: &str = "Resources";
/// Options of all commands.
pub(super) const GLOBAL: &str = "Global options";
