//! Schemas of data sets: as JSON, and in files.

mod file;
pub mod json;

pub use file::read_schema;
