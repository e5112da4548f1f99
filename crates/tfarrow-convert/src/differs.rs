//! The I/O error that marks an output that differs from an existing file.

use std::fmt;

/// Marks a difference among the I/O errors that the Parquet and Arrow writers return.
#[derive(Debug)]
pub(crate) struct Differs;

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the output differs from the existing file")
    }
}

impl std::error::Error for Differs {}
