//! Validation of records: each is parsed as a decoder parses it, and nothing is kept.
//!
//! `repair` and `verify` use it for records that they do not decode. A record is valid if a decoder
//! of all its features would read it without an error, in any of the forms that protobuf allows.

use super::{
    keys::Keys,
    list::ExampleList,
    walk::{self, Side, Visitor},
    wire,
};
use crate::{Limits, RecordType, WireError};

/// Validates records of one type. Reuse it: it learns the order of keys from the records that it
/// reads.
///
/// ```
/// use tfarrow_codec::{Validator, Limits, RecordType};
/// let mut validator = Validator::new(RecordType::Example, Limits::default());
/// assert!(validator.check(b"").is_ok());
/// assert!(validator.check(b"\xff\xff").is_err());
/// ```
#[derive(Debug)]
pub struct Validator {
    record_type: RecordType,
    /// Whether a record had a field that its message type does not define.
    has_foreign: bool,
    /// The keys of features and of feature lists.
    keys: [Keys; 2],
}

impl Validator {
    /// Creates a validator of `record_type` messages. A [`Raw`](RecordType::Raw) record is
    /// validated as an `Example`.
    pub fn new(record_type: RecordType, limits: Limits) -> Self {
        Self {
            record_type,
            has_foreign: false,
            keys: [Keys::new([], limits), Keys::new([], limits)],
        }
    }

    /// Parses a record, including the values of all features.
    ///
    /// # Errors
    /// [`WireError`] for a record that does not parse, or that exceeds a limit.
    pub fn check(&mut self, data: &[u8]) -> Result<(), WireError> {
        if self.record_type != RecordType::ExampleList {
            return walk::record(data, self.record_type == RecordType::SequenceExample, self);
        }
        let list = ExampleList::parse(data, self.keys(Side::Features).limits().nesting)?;
        self.has_foreign |= list.foreign.is_some();
        list.parts()
            .try_for_each(|part| walk::record(part, false, self))
    }

    /// Returns whether a record had a field that its message type does not define.
    pub(crate) fn has_foreign(&self) -> bool {
        self.has_foreign
    }
}

impl Visitor for Validator {
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.keys[side as usize]
    }

    fn feature(&mut self, side: Side, _: Option<u32>, value: Option<&[u8]>) -> wire::Result<()> {
        let limits = *self.keys(side).limits();
        let value = value.unwrap_or_default();
        match side {
            Side::Features => feature(value, &limits),
            Side::Lists => {
                walk::check_feature_list(value, &limits)?;
                walk::steps(value, limits.nesting, |step| feature(step, &limits))
            }
        }
    }

    fn foreign(&mut self, _: u32) -> wire::Result<()> {
        self.has_foreign = true;
        Ok(())
    }
}

/// Parses a `Feature` and its list, and checks the number of values.
fn feature(message: &[u8], limits: &Limits) -> wire::Result<()> {
    walk::feature(message, limits.nesting, |list| {
        let Some((kind, body)) = list else {
            return Ok(());
        };
        walk::check_values(kind, body, limits)?;
        walk::check_list(kind, body, limits.nesting)
    })
}
