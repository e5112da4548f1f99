//! CSV and JSON as formats of DataFusion. Files are read as by all other commands, with the reader
//! of `tfarrow-columnar`.
//!
//! ```text
//! FROM 'x.csv', CREATE EXTERNAL TABLE ─▶ format: columns ─▶ source: plan node ─▶ opener: partition ─▶ object: bytes
//!                                        └▶ options: the form of the files
//! COPY, INSERT ─▶ format ─▶ sink
//! ```

pub(crate) mod format;
mod inferred_files;
mod object;
mod opener;
pub(crate) mod options;
pub(crate) mod sink;
pub(crate) mod source;
