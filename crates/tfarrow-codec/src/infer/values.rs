//! The values of records that have parsed, for who counts more than a summary does.

use super::{Place, SideSummary, observe::Seen};
use crate::{
    WireError,
    schema::{Kind, Role},
    tape::Slot,
    walk::{self, Numbers, Side},
    wire,
};

/// Is told of each record that parses, once all of it has.
pub trait RecordObserver {
    /// Whether it is told at all.
    const IS_TOLD: bool = true;

    /// A record.
    fn record(&mut self, record: &mut SeenRecord<'_>);

    /// A record that does not parse, of so many bytes. It is told also where [`IS_TOLD`](Self::IS_TOLD) is false.
    fn unreadable(&mut self, _place: Place, _error: WireError, _bytes: u64) {}
}

/// Nobody.
impl RecordObserver for () {
    const IS_TOLD: bool = false;

    fn record(&mut self, _: &mut SeenRecord<'_>) {}
}

/// Both.
impl<A: RecordObserver, B: RecordObserver> RecordObserver for (A, B) {
    const IS_TOLD: bool = A::IS_TOLD || B::IS_TOLD;

    fn record(&mut self, record: &mut SeenRecord<'_>) {
        self.0.record(record);
        self.1.record(record);
    }

    fn unreadable(&mut self, place: Place, error: WireError, bytes: u64) {
        self.0.unreadable(place, error, bytes);
        self.1.unreadable(place, error, bytes);
    }
}

/// A record that has parsed.
#[derive(Debug)]
pub struct SeenRecord<'r> {
    pub(super) place: Place,
    pub(super) data: &'r [u8],
    pub(super) joined: &'r [u8],
    pub(super) seen: &'r [Seen],
    pub(super) sides: &'r [SideSummary; 2],
    pub(super) numbers: &'r mut NumberBuffers,
}

/// A feature of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenFeature<'r> {
    /// Its number among the features of its role that the summary has met: from 0, in the order in which it met them.
    pub number: usize,
    /// [`Role::Feature`] or, for a feature list, [`Role::Sequence`].
    pub role: Role,
    /// Its name.
    pub name: &'r str,
}

/// The values of one list.
#[derive(Clone, Copy, Debug)]
pub enum ValueList<'r> {
    /// No kind is set.
    Unset,
    /// A `BytesList`.
    Bytes(BytesValues<'r>),
    /// A `FloatList`.
    Float(&'r [f32]),
    /// An `Int64List`.
    Int64(&'r [i64]),
}

/// The values of a `BytesList`, where they stand in the record.
#[derive(Clone, Copy, Debug)]
pub struct BytesValues<'r>(&'r [u8]);

impl<'r> BytesValues<'r> {
    /// Calls `then` with each value.
    pub fn each(self, mut then: impl FnMut(&'r [u8])) {
        parsed(walk::bytes_values(self.0, ANY, |value| {
            then(value);
            Ok(())
        }));
    }
}

/// Numbers of a list, taken off the wire. Kept, so that there is memory for the next.
#[derive(Debug, Default)]
pub(super) struct NumberBuffers {
    floats: Vec<f32>,
    ints: Vec<i64>,
}

impl<'r> SeenRecord<'r> {
    /// Where it stands.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Its payload.
    pub fn data(&self) -> &'r [u8] {
        self.data
    }

    /// The features and feature lists that it has, with a kind, with steps, or without.
    pub fn features(&self) -> impl Iterator<Item = SeenFeature<'r>> {
        let feature_of = |seen: &Seen| {
            let number = seen.id as usize;
            let summary = self.sides[seen.side as usize].features.get(number)?;
            Some(SeenFeature { number, role: summary.role, name: &summary.name })
        };
        self.seen.iter().filter_map(feature_of)
    }

    /// Calls `then` with each list: one a feature, and one a step of a feature list. A feature that is given twice comes
    /// once, as it was given last.
    pub fn each_list(&mut self, mut then: impl FnMut(SeenFeature<'r>, ValueList<'_>)) {
        for seen in self.seen {
            let number = seen.id as usize;
            let side = &self.sides[seen.side as usize];
            let Some(summary) = side.features.get(number) else { continue };
            let feature = SeenFeature { number, role: summary.role, name: &summary.name };
            let message = seen.message.body(self.data, self.joined);
            let mut tell = |message: &[u8]| tell(message, self.numbers, |list| then(feature, list));
            match seen.side {
                Side::Features => tell(message),
                Side::Lists => parsed(walk::steps(message, ANY, |step| {
                    tell(step);
                    Ok(())
                })),
            }
        }
    }
}

/// Calls `then` with the list of a `Feature`.
fn tell(message: &[u8], numbers: &mut NumberBuffers, then: impl FnOnce(ValueList<'_>)) {
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
    fn take_floats(&mut self, body: &[u8]) -> wire::Result<&[f32]> {
        let floats = &mut self.floats;
        floats.clear();
        walk::float_pieces(body, ANY, |piece| {
            match piece {
                Numbers::Packed(bytes) => {
                    floats.extend(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)))
                }
                Numbers::One(bytes) => floats.push(f32::from_le_bytes(bytes)),
            }
            Ok(())
        })?;
        Ok(floats)
    }

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

/// How deep messages may be nested that were walked before.
const ANY: usize = usize::MAX;

/// What was walked before without an error has none now.
fn parsed(walked: wire::Result<()>) {
    debug_assert_eq!(walked, Ok(()));
}

/// What a summary notes of a message: its place, where somebody will read it.
pub(super) fn place_of(message: &[u8], data: &[u8], joined: &mut Vec<u8>) -> Slot {
    crate::tape::slot(crate::tape::State::Absent, message, data, joined)
}
