//! The values of records that have parsed, for observers that compute more than a summary, such as
//! statistics.
//!
//! ```text
//! Summary::observe_with ─▶ record parses ─▶ RecordObserver::record(SeenRecord)
//!                                                  └▶ SeenRecord::each_list ─▶ (SeenFeature, ValueList) for each list
//! ```
//!
//! An observer receives a record only after all of it has parsed, so that it needs no error
//! handling and never has to undo a part of a record.

use super::{Place, SideSummary, seen::Seen};
use crate::{
    WireError,
    example::{
        tape::{Slot, State, slot},
        walk::{self, Numbers, Side},
        wire,
    },
    schema::{Kind, Role},
};

/// Receives each record that parses, after all of it has parsed.
///
/// Several observers are combined as a tuple; `()` observes nothing.
/// [`Summary::observe_with`](super::Summary::observe_with) shows an example.
pub trait RecordObserver {
    /// Whether [`record`](Self::record) is called. A constant, so that a pass without an observer
    /// does not keep the places of values.
    const ENABLED: bool = true;

    /// Receives a record.
    fn record(&mut self, record: &mut SeenRecord<'_>);

    /// Receives a record that does not parse, with its place and the length of its payload in
    /// bytes. Called also if [`ENABLED`](Self::ENABLED) is false.
    fn unparsable(&mut self, _place: Place, _error: WireError, _bytes: u64) {}
}

/// An observer that ignores every record.
impl RecordObserver for () {
    const ENABLED: bool = false;

    fn record(&mut self, _: &mut SeenRecord<'_>) {}
}

/// Forwards each record to the observer, if there is one.
impl<A: RecordObserver> RecordObserver for Option<A> {
    const ENABLED: bool = A::ENABLED;

    fn record(&mut self, record: &mut SeenRecord<'_>) {
        self.iter_mut().for_each(|observer| observer.record(record));
    }

    fn unparsable(&mut self, place: Place, error: WireError, bytes: u64) {
        self.iter_mut()
            .for_each(|observer| observer.unparsable(place, error, bytes));
    }
}

/// Forwards each record to both observers, one after the other.
impl<A: RecordObserver, B: RecordObserver> RecordObserver for (A, B) {
    const ENABLED: bool = A::ENABLED || B::ENABLED;

    fn record(&mut self, record: &mut SeenRecord<'_>) {
        self.0.record(record);
        self.1.record(record);
    }

    fn unparsable(&mut self, place: Place, error: WireError, bytes: u64) {
        self.0.unparsable(place, error, bytes);
        self.1.unparsable(place, error, bytes);
    }
}

/// A record that has parsed.
#[derive(Debug)]
pub struct SeenRecord<'r> {
    /// The place of the record in its data set.
    pub(super) place: Place,
    /// An Example of the features that the record has besides its own.
    pub(super) shared: &'r [u8],
    /// The payload.
    pub(super) data: &'r [u8],
    /// Messages that come in several pieces.
    pub(super) joined: &'r [u8],
    /// The features of the record.
    pub(super) seen: &'r [Seen],
    /// The summaries, which have the names of features.
    pub(super) sides: &'r [SideSummary; 2],
    /// Buffers for decoded numbers.
    pub(super) numbers: &'r mut NumberBuffers,
}

/// A feature of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenFeature<'r> {
    /// Its number among the features of its role, from 0, in the order in which the summary met
    /// them.
    pub number: usize,
    /// [`Role::Feature`] or, for a feature list, [`Role::Sequence`].
    pub role: Role,
    /// The name.
    pub name: &'r str,
}

/// The values of one list, decoded.
#[derive(Clone, Copy, Debug)]
pub enum ValueList<'r> {
    /// A feature without a kind.
    Unset,
    /// A `BytesList`.
    Bytes(BytesValues<'r>),
    /// A `FloatList`.
    Float(&'r [f32]),
    /// An `Int64List`.
    Int64(&'r [i64]),
}

/// The value of a list of one value, decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SingleValue<'r> {
    /// That of a `BytesList`.
    Bytes(&'r [u8]),
    /// That of a `FloatList`.
    Float(f32),
    /// That of an `Int64List`.
    Int64(i64),
}

/// The values of a `BytesList`, which are borrowed from the record.
#[derive(Clone, Copy, Debug)]
pub struct BytesValues<'r>(&'r [u8]);

impl<'r> BytesValues<'r> {
    /// Calls `then` with each value, in order.
    pub fn each(self, mut then: impl FnMut(&'r [u8])) {
        parsed(walk::bytes_values(self.0, ANY, |value| {
            then(value);
            Ok(())
        }));
    }
}

/// Buffers for the decoded numbers of one list at a time. Reused, so that memory is allocated once.
#[derive(Debug, Default)]
pub(super) struct NumberBuffers {
    floats: Vec<f32>,
    ints: Vec<i64>,
    /// A byte string of a list in several pieces.
    bytes: Vec<u8>,
}

impl<'r> SeenRecord<'r> {
    /// Returns the place of the record in the data set.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the payload, without shared features.
    pub fn data(&self) -> &'r [u8] {
        self.data
    }

    /// Returns the features and feature lists of the record, including features without a kind and
    /// feature lists without a step.
    pub fn features(&self) -> impl Iterator<Item = SeenFeature<'r>> {
        self.seen.iter().filter_map(|seen| {
            let number = seen.id as usize;
            let summary = self.sides[seen.side as usize].features.get(number)?;
            Some(SeenFeature {
                number,
                role: summary.role,
                name: &summary.name,
            })
        })
    }

    /// Calls `then` with each list: one for each feature, and one for each step of a feature list.
    /// Of a feature that is given twice, only the last entry is passed.
    ///
    /// ```text
    /// record    a = [1, 2]   b without a kind   feature list f = [["x"], []]
    /// calls     (a, Int64([1, 2]))   (b, Unset)   (f, Bytes "x")   (f, the second step)
    /// ```
    pub fn each_list(&mut self, mut then: impl FnMut(SeenFeature<'r>, ValueList<'_>)) {
        for seen in self.seen {
            let number = seen.id as usize;
            let side = &self.sides[seen.side as usize];
            let Some(summary) = side.features.get(number) else {
                continue;
            };
            let feature = SeenFeature {
                number,
                role: summary.role,
                name: &summary.name,
            };
            let message = seen.message.body(self.data, self.joined);
            let mut pass_list =
                |message: &[u8]| pass_list(message, self.numbers, |list| then(feature, list));
            match seen.side {
                Side::Features => pass_list(message),
                Side::Lists => parsed(walk::steps(message, ANY, |step| {
                    pass_list(step);
                    Ok(())
                })),
            }
        }
    }

    /// Calls `then` with the [number](SeenFeature::number) and the value of each feature that has
    /// exactly one value. Features without a kind, other lists and feature lists are passed over,
    /// without decoding them.
    pub fn each_single_value(&mut self, mut then: impl FnMut(usize, SingleValue<'_>)) {
        for seen in self.seen {
            if seen.side != Side::Features || seen.list.len != 1 {
                continue;
            }
            let message = seen.message.body(self.data, self.joined);
            if let Some(value) = single_value(message, self.numbers) {
                then(seen.id as usize, value);
            }
        }
    }
}

/// Returns the value of a `Feature` that has one value.
#[inline]
fn single_value<'n>(message: &'n [u8], numbers: &'n mut NumberBuffers) -> Option<SingleValue<'n>> {
    // The form in which writers encode one value: a packed list of numbers, or one byte string.
    if let Some((kind, body)) = walk::plain_feature(message)
        && let Some(packed) = wire::sole(body, 0x0a)
    {
        match (kind, packed) {
            (Kind::Bytes, value) => return Some(SingleValue::Bytes(value)),
            (Kind::Float, value) => {
                if let Ok(bytes) = value.try_into() {
                    return Some(SingleValue::Float(f32::from_le_bytes(bytes)));
                }
            }
            (Kind::Int64, mut value) => {
                if let Ok(number) = wire::varint(&mut value)
                    && value.is_empty()
                {
                    return Some(SingleValue::Int64(number as i64));
                }
            }
        }
    }
    odd_single_value(message, numbers)
}

/// Returns the value of a `Feature` of any form that has one value.
#[cold]
fn odd_single_value<'n>(
    message: &'n [u8],
    numbers: &'n mut NumberBuffers,
) -> Option<SingleValue<'n>> {
    let read = walk::feature(message, ANY, |feature| {
        Ok(match feature {
            None => None,
            Some((Kind::Bytes, body)) => {
                // A list in several pieces is no part of the message.
                numbers.bytes.clear();
                walk::bytes_values(body, ANY, |value| {
                    numbers.bytes.extend_from_slice(value);
                    Ok(())
                })?;
                Some(SingleValue::Bytes(&numbers.bytes))
            }
            Some((Kind::Float, body)) => {
                let values = numbers.take_floats(body)?;
                values.first().copied().map(SingleValue::Float)
            }
            Some((Kind::Int64, body)) => {
                let values = numbers.take_ints(body)?;
                values.first().copied().map(SingleValue::Int64)
            }
        })
    });
    debug_assert!(read.is_ok());
    read.ok()?
}

/// Calls `then` with the list of a `Feature`.
fn pass_list(message: &[u8], numbers: &mut NumberBuffers, then: impl FnOnce(ValueList<'_>)) {
    parsed(walk::feature(message, ANY, |feature| {
        match feature {
            None => then(ValueList::Unset),
            Some((Kind::Bytes, body)) => then(ValueList::Bytes(BytesValues(body))),
            Some((Kind::Float, body)) => then(ValueList::Float(numbers.take_floats(body)?)),
            Some((Kind::Int64, body)) => then(ValueList::Int64(numbers.take_ints(body)?)),
        }
        Ok(())
    }));
}

impl NumberBuffers {
    /// Decodes a `FloatList`.
    fn take_floats(&mut self, body: &[u8]) -> wire::Result<&[f32]> {
        let floats = &mut self.floats;
        floats.clear();
        walk::float_pieces(body, ANY, |piece| {
            match piece {
                Numbers::Packed(bytes) => floats.extend(
                    bytes
                        .as_chunks()
                        .0
                        .iter()
                        .map(|bytes| f32::from_le_bytes(*bytes)),
                ),
                Numbers::One(bytes) => floats.push(f32::from_le_bytes(bytes)),
            }
            Ok(())
        })?;
        Ok(floats)
    }

    /// Decodes an `Int64List`.
    fn take_ints(&mut self, body: &[u8]) -> wire::Result<&[i64]> {
        let ints = &mut self.ints;
        ints.clear();
        walk::int64_pieces(body, ANY, |piece| match piece {
            Numbers::Packed(bytes) => wire::unpack_varints(bytes, ints),
            Numbers::One(value) => {
                ints.push(value as i64);
                Ok(())
            }
        })?;
        Ok(ints)
    }
}

/// The allowed depth of groups for messages that have been walked before, and so are within the
/// limit.
const ANY: usize = usize::MAX;

/// Asserts that a message that has been walked before parses.
fn parsed(walked: wire::Result<()>) {
    debug_assert_eq!(walked, Ok(()));
}

/// Makes a slot of a message, which an observer reads later.
pub(super) fn place_of(message: &[u8], data: &[u8], joined: &mut Vec<u8>) -> Slot {
    slot(State::Absent, message, data, joined)
}
