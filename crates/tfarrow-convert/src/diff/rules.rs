//! The comparison of two records by the options.

use tfarrow_codec::{
    RecordType,
    diff::{Differ, Difference, DifferenceKind, Incomparable},
};

use super::report::DiffOptions;
use crate::{Result, names::NamePattern};

/// Compares two records.
pub(super) struct Rules {
    /// Whether records are compared as bytes.
    is_raw: bool,
    differ: Differ,
}

impl Rules {
    /// The rules of the options for records of this type.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a glob that is not valid.
    pub(super) fn new(record_type: RecordType, options: &DiffOptions) -> Result<Self> {
        let exclude = NamePattern::all(&options.exclude)?;
        let differ =
            Differ::new(record_type, options.read.limits).with_tolerance(options.tolerance);
        let differ =
            differ.ignoring(move |name| exclude.iter().any(|pattern| pattern.matches(name)));
        Ok(Self {
            is_raw: record_type == RecordType::Raw,
            differ,
        })
    }

    /// The differences of two records; empty if they are equal.
    ///
    /// # Errors
    /// As [`Differ::compare`].
    pub(super) fn compare(
        &mut self,
        left: &[u8],
        right: &[u8],
    ) -> Result<Vec<Difference>, Incomparable> {
        if self.is_raw {
            let differ = left != right;
            return Ok(Vec::from_iter(differ.then_some(Difference {
                feature: None,
                what: DifferenceKind::Bytes,
            })));
        }
        self.differ.compare(left, right)
    }
}
