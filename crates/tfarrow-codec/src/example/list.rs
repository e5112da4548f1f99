//! The wire of `ExampleListWithContext`, the record of learning to rank: Examples inside of a
//! message.
//!
//! ```text
//! 0a len     ExampleListWithContext.examples: an Example
//!    0a len     Example.features
//!       0a len     Features.feature: a map entry with a key (0a) and a value (12)
//! 0a len     .. the next Example
//! 12 len     ExampleListWithContext.context: an Example
//! ```
//!
//! The source is `tensorflow_serving/apis/input.proto`. The features of the Examples are read by
//! the walk (`walk.rs`).

use std::borrow::Cow;

use super::wire::{self, LEN, Result};

/// Tag of a length-delimited field 1 of any message.
const FIELD_1: u8 = 0x0a;
/// Tag of a length-delimited field 2 of any message.
pub(crate) const FIELD_2: u8 = 0x12;

/// The Examples of one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExampleList<'a> {
    /// The Examples of the list.
    pub(crate) examples: Vec<&'a [u8]>,
    /// The Example of the context. Concatenated if it comes in several pieces, which merges them.
    pub(crate) context: Option<Cow<'a, [u8]>>,
    /// The first field that the message does not define, and the number of such fields.
    pub(crate) foreign: Option<(u32, u64)>,
}

impl<'a> ExampleList<'a> {
    /// Cuts a record into its Examples, which are not parsed. `nesting` is the allowed depth of
    /// unknown groups.
    ///
    /// # Errors
    /// [`WireError`](crate::WireError) for a record that does not parse.
    pub(crate) fn parse(data: &'a [u8], nesting: usize) -> Result<Self> {
        let mut list = Self::default();
        let mut rest = data;
        while !rest.is_empty() {
            match wire::tag(&mut rest)? {
                (1, LEN) => list.examples.push(wire::bytes(&mut rest)?),
                (2, LEN) => {
                    let piece = wire::bytes(&mut rest)?;
                    match &mut list.context {
                        Some(context) => context.to_mut().extend_from_slice(piece),
                        None => list.context = Some(Cow::Borrowed(piece)),
                    }
                }
                tag => {
                    list.foreign.get_or_insert((tag.0, 0)).1 += 1;
                    wire::skip(&mut rest, tag, nesting)?;
                }
            }
        }
        Ok(list)
    }

    /// The Examples of the list, and that of the context.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.examples.iter().copied().chain(self.context.as_deref())
    }
}

/// Returns whether a record is an `ExampleListWithContext`, by its first map entry.
///
/// Its Examples have one more level of messages than the features of an Example: at the depth of a
/// map entry, which has a key and a value, it has a map, which has entries only. A record in which
/// no feature has a value is none.
///
/// ```text
/// Example                   0a features   0a entry      0a key     12 value
/// ExampleListWithContext    0a example    0a features   0a entry   0a key     12 value
/// ```
#[inline]
pub(crate) fn is_example_list(data: &[u8]) -> bool {
    // Nearly all records are Examples, which this finds out from three lengths.
    match field(data).and_then(|(message, _)| field_1(message)) {
        Some((entry, _)) if is_entry(entry) => false,
        _ => has_example(data),
    }
}

/// Returns whether the first field of a record with a message in a message is an Example.
#[cold]
fn has_example(data: &[u8]) -> bool {
    let mut rest = data;
    while let Some((message, after)) = field(rest) {
        match field_1(message) {
            // An Example without features is a valid message of both types.
            None if message.is_empty() => {}
            Some(([], _)) => {}
            Some((features, _)) => {
                return !is_entry(features)
                    && field_1(features).is_some_and(|(entry, _)| is_entry(entry));
            }
            None => return false,
        }
        rest = after;
    }
    false
}

/// Returns whether a message begins as a map entry that has a key and a value.
fn is_entry(message: &[u8]) -> bool {
    field_1(message).is_some_and(|(_, rest)| rest.first() == Some(&FIELD_2))
}

/// Splits a message after its first field, if that is a length-delimited field 1.
fn field_1(message: &[u8]) -> Option<(&[u8], &[u8])> {
    message.first().filter(|tag| **tag == FIELD_1)?;
    field(message)
}

/// Splits a message after its first field, if that is a length-delimited field 1 or 2.
fn field(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let (tag, mut rest) = message.split_first()?;
    matches!(*tag, FIELD_1 | FIELD_2).then_some(())?;
    let body = wire::bytes(&mut rest).ok()?;
    Some((body, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireError;

    /// `{"x": [1]}`.
    const EXAMPLE: &[u8] = b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x01";

    /// A message with these fields, each a tag and a body.
    fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
        fields
            .iter()
            .flat_map(|(tag, body)| [&[*tag, body.len() as u8], *body].concat())
            .collect()
    }

    #[test]
    fn a_record_is_cut_into_its_examples() {
        let record = message(&[(0x0a, EXAMPLE), (0x12, EXAMPLE), (0x0a, b""), (0x1a, b"?")]);
        let list = ExampleList::parse(&record, 100).unwrap();
        assert_eq!(list.examples, [EXAMPLE, b""]);
        assert_eq!(list.context.as_deref(), Some(EXAMPLE));
        assert_eq!(list.foreign, Some((3, 1)));
        assert_eq!(list.parts().count(), 3);
        assert_eq!(
            ExampleList::parse(&record[..5], 100),
            Err(WireError::PastEnd)
        );
    }

    #[test]
    fn the_pieces_of_a_context_are_joined() {
        let record = message(&[(0x12, &EXAMPLE[..2]), (0x12, &EXAMPLE[2..])]);
        assert_eq!(
            ExampleList::parse(&record, 100).unwrap().context.as_deref(),
            Some(EXAMPLE)
        );
    }

    #[test]
    fn lists_and_examples_differ_in_their_nesting() {
        let sequence = message(&[(0x0a, &EXAMPLE[2..]), (0x12, &EXAMPLE[2..])]);
        let examples: [&[u8]; 6] = [
            EXAMPLE,
            &sequence,
            b"",
            b"\x0a\0",
            b"\x0a\x02\x0a\0",
            b"text of a record",
        ];
        for record in examples {
            assert!(!is_example_list(record), "{record:?}");
        }
        let lists = [
            message(&[(0x0a, EXAMPLE)]),
            message(&[(0x12, EXAMPLE)]),
            message(&[(0x0a, b""), (0x0a, b"\x0a\0"), (0x0a, EXAMPLE)]),
        ];
        for record in lists {
            assert!(is_example_list(&record), "{record:?}");
            for end in 0..record.len() - 5 {
                assert!(!is_example_list(&record[..end]), "{end}");
            }
        }
    }
}
