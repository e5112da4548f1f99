//! The error of a record that does not parse or exceeds a limit.
//!
//! A [`WireError`] is small, since it passes through the hot loops. The numbers that a message
//! needs are determined here, by reading the record again.

use super::walk;
use crate::{Error, ErrorKind, Limit, Limits, RecordType, Records, WireError};

impl Records {
    /// Returns the error that the record at `index` does not parse or exceeds one of `limits`, with
    /// its position and, for a limit of an Example or a SequenceExample, the number that was found.
    pub fn parse_error(
        &self,
        error: WireError,
        index: usize,
        record_type: RecordType,
        limits: &Limits,
    ) -> Error {
        if record_type == RecordType::ExampleList {
            return self.error(ErrorKind::of_wire(error, record_type), index);
        }
        let lists = record_type == RecordType::SequenceExample;
        let data = self.data(index).unwrap_or_default();
        let mut feature = None;
        let (what, limit, found, name) = match error {
            WireError::LongKey => {
                let found = walk::longest_key(data, lists, limits.nesting);
                (
                    "bytes in the name of a feature",
                    limits.key_bytes,
                    found,
                    Limit::KeyBytes,
                )
            }
            WireError::ManyFeatures => {
                let found = walk::count_entries(data, lists, limits.nesting).unwrap_or_default();
                (
                    "features in one record",
                    limits.record_features,
                    found,
                    Limit::RecordFeatures,
                )
            }
            WireError::ManyValues => {
                let found = walk::long_feature(data, lists, limits);
                let found = found.map_or(0, |(found, name)| {
                    feature = Some(name);
                    found
                });
                ("values", limits.values, found, Limit::Values)
            }
            _ => return self.error(ErrorKind::Wire(error), index),
        };
        let kind = ErrorKind::Limit {
            what,
            limit: limit as u64,
            found: found as u64,
            name: Some(name),
        };
        let error = self.error(kind, index);
        feature
            .into_iter()
            .fold(error, |error, feature| error.with_feature(&feature))
    }
}
