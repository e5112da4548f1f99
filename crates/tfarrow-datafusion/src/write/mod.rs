//! Writing of TFRecord files by COPY and INSERT. All files of a statement get their names after the
//! last one is complete.
//!
//! ```text
//! file_format ─▶ sink ─▶ outputs ─▶ files, objects
//! ```
//!
//! `output_folder` names the files in a folder, and `output_schema` checks the columns.

pub(crate) mod output_folder;
pub(crate) mod output_schema;
pub(crate) mod outputs;
pub(crate) mod sink;
