//! Whether a record is the message that it is taken for: it is read for its form, as by whoever decodes it, and nothing of
//! it is kept.

use crate::{
    Limits, RecordType, WireError,
    keys::Keys,
    walk::{self, Side, Visitor},
    wire,
};

/// Checks records. It remembers names that it has found sound, so that it is worth keeping.
///
/// ```
/// use tfarrow_codec::{Checker, Limits, RecordType};
/// let mut checker = Checker::new(RecordType::Example, Limits::default());
/// assert!(checker.check(b"").is_ok());
/// assert!(checker.check(b"\xff\xff").is_err());
/// ```
#[derive(Debug)]
pub struct Checker {
    /// Whether field 2 is `feature_lists`.
    lists: bool,
    keys: [Keys; 2],
}

impl Checker {
    /// Of messages of this type, which have no more than these limits allow.
    pub fn new(record_type: RecordType, limits: Limits) -> Self {
        let keys = || Keys::new([], limits);
        Self { lists: record_type == RecordType::SequenceExample, keys: [keys(), keys()] }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// In which way it does not parse, or which limit it passes.
    pub fn check(&mut self, data: &[u8]) -> Result<(), WireError> {
        let lists = self.lists;
        walk::record(data, lists, self)
    }
}

impl Visitor for Checker {
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.keys[side as usize]
    }

    fn feature(&mut self, side: Side, _: Option<u32>, value: Option<&[u8]>) -> wire::Result<()> {
        let (limits, value) = (*self.keys(side).limits(), value.unwrap_or_default());
        match side {
            Side::Features => feature(value, &limits),
            Side::Lists => {
                walk::check_feature_list(value, &limits)?;
                walk::steps(value, limits.nesting, |step| feature(step, &limits))
            }
        }
    }

    fn foreign(&mut self, _: u32) -> wire::Result<()> {
        Ok(())
    }
}

fn feature(message: &[u8], limits: &Limits) -> wire::Result<()> {
    walk::feature(message, limits.nesting, |list| {
        let Some((kind, body)) = list else { return Ok(()) };
        walk::check_values(kind, body, limits)?;
        walk::check_list(kind, body, limits.nesting)
    })
}
