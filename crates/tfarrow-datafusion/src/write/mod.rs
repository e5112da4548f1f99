//! Writing of files by COPY and INSERT. All files of a statement get their names after the last one is complete.
//!
//! ```text
//! TFRecord:       format ─▶ sink ────┬▶ outputs ─▶ files, objects
//! other formats:  output_schema ─▶ staging ─┘
//! ```
//!
//! `output_folder` names the files in a folder, and `float_bounds` leaves statistics out of Parquet files.

mod float_bounds;
pub(crate) mod format;
pub(crate) mod output_folder;
pub(crate) mod output_schema;
mod outputs;
pub(crate) mod sink;
pub(crate) mod staging;
