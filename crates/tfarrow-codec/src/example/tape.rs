//! The tape: for each wanted column and each record of a batch, the place of the value's bytes. The
//! walk (`walk.rs`) fills it, the column builders (`decode/column/`) read it.
//!
//! Slots are stored column by column, one a record, so that a builder reads one column in order:
//!
//! ```text
//! chunk    …│record 0: a = 7, b = ["x"]   │record 1: b in two pieces, c unset│…
//!               └ 08 07  └ 0a 01 'x'           └ 0a 01 'y'  └ 0a 01 'z'
//! joined   0a 01 'y' 0a 01 'z'                 (pieces of one message, concatenated)
//!
//! slots    row 0                       row 1
//! a        List(Int64) → chunk         Absent
//! b        List(Bytes) → chunk         List(Bytes) → joined
//! c        Absent                      Unset
//! ```
//!
//! Nothing is decoded: a slot has the body of the `BytesList`, `FloatList`, `Int64List` or
//! `FeatureList` as it is on the wire. Protobuf allows a message in several pieces, whose
//! concatenation is the message; such a body is copied to `joined`.

use std::{collections::HashMap, mem};

use arrow_buffer::Buffer;

use super::{
    keys::Keys,
    walk::{self, Side, Visitor},
    wire,
};
use crate::{
    Limits, WireError,
    schema::{Column, Kind, Role},
    slices,
};

/// The state of one column in one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// The record has no such feature.
    #[default]
    Absent,
    /// The record has the feature, and no kind is set.
    Unset,
    /// The feature has a list of this kind; the slot has the list's body.
    List(Kind),
    /// The record has the feature list; the slot has the body of the `FeatureList`.
    Steps,
}

/// The place of one value: a range of bytes in the chunk or in the tape's `joined` bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    /// Index of the first byte of the body.
    start: u32,
    /// Length of the body in bytes.
    len: u32,
    /// The state, on which the meaning of the body depends.
    pub(crate) state: State,
    /// Whether the range is in `joined` instead of the chunk.
    joined: bool,
}

impl Slot {
    /// A feature with no kind set.
    pub(crate) const UNSET: Self = Self {
        start: 0,
        len: 0,
        state: State::Unset,
        joined: false,
    };

    /// Returns the bytes of the body; none if the range is outside of the buffer.
    #[inline]
    pub(crate) fn body<'t>(&self, chunk: &'t [u8], joined: &'t [u8]) -> &'t [u8] {
        let bytes = if self.joined { joined } else { chunk };
        let start = self.start as usize;
        slices::part(bytes, start..start + self.len as usize)
    }

    /// Returns the length of the body in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}

/// The buffers that slots refer to, and the limit of nested groups in them.
#[derive(Clone, Copy)]
pub(crate) struct Places<'t> {
    /// The memory of the records.
    pub(crate) chunk: &'t Buffer,
    /// The bodies that are not in the chunk in one piece.
    pub(crate) joined: &'t [u8],
    /// The allowed depth of groups in unknown fields.
    pub(crate) nesting: usize,
}

impl<'t> Places<'t> {
    /// Returns the bytes of a slot.
    #[inline]
    pub(crate) fn body(&self, slot: &Slot) -> &'t [u8] {
        slot.body(self.chunk.as_slice(), self.joined)
    }
}

/// Makes a slot of a message: a range of the chunk if the message is part of it, else a copy in
/// `joined`.
///
/// The slot of an empty message has no bytes, in whichever buffer it is.
#[inline]
pub(crate) fn slot(state: State, body: &[u8], chunk: &[u8], joined: &mut Vec<u8>) -> Slot {
    match offset_in(chunk, body) {
        Some(start) => Slot {
            start: start as u32,
            len: body.len() as u32,
            state,
            joined: false,
        },
        None => {
            let start = joined.len();
            joined.extend_from_slice(body);
            joined_slot(state, joined, start)
        }
    }
}

/// Makes a slot of the bytes of `joined` from `start` on.
pub(crate) fn joined_slot(state: State, joined: &[u8], start: usize) -> Slot {
    Slot {
        start: start as u32,
        len: (joined.len() - start) as u32,
        state,
        joined: true,
    }
}

/// Returns the offset of `part` in `whole`, or `None` if `part` is another allocation.
///
/// Compares addresses, which is safe for slices of any origin: a body that was concatenated in
/// another allocation is not within the chunk's range.
#[inline]
pub(crate) fn offset_in(whole: &[u8], part: &[u8]) -> Option<usize> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (start + part.len() <= whole.len()).then_some(start)
}

/// The number of no column.
const NONE: u32 = u32::MAX;

/// The slots of a batch.
#[derive(Debug)]
pub(crate) struct Tape {
    /// Number of records of the batch.
    rows: usize,
    /// Number of the current record in the batch.
    row: usize,
    /// The slots, column by column, `rows` each.
    slots: Vec<Slot>,
    /// Bodies that are not in the chunk in one piece.
    joined: Vec<u8>,
    /// The keys of features, and of feature lists.
    sides: [SideKeys; 2],
    /// Features without a kind, if their names are wanted.
    unset: Option<Unset>,
    /// Losses of the current record.
    pending: Pending,
    /// Losses of all accepted records, of all batches.
    pub(crate) losses: Losses,
}

/// What records have and no column keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    /// Number of values of each key without a column, by [`Side`], from the first key after those
    /// of the schema on.
    unknown: [Vec<u64>; 2],
    /// Number of features without a kind whose names no column keeps.
    pub(crate) lost_unset: u64,
    /// Number of features that have no column and whose names exceed the limits.
    pub(crate) excess: u64,
    /// The first field of a record that its message type does not define, and the number of such
    /// fields.
    pub(crate) foreign: Option<(u32, u64)>,
}

/// The keys of one map, and their columns.
///
/// ```text
/// schema a b, of which b is projected to column 0      records also have x
/// keys       a     b   x
/// columns    NONE  0                                    a key past the end of `columns` has no column in the schema
/// losses               3                                x was found three times
/// ```
///
/// Keys with a number below `columns.len()` are those of the schema, in the order of its columns;
/// keys above are those that records have besides.
#[derive(Debug)]
struct SideKeys {
    /// The names of the features, and the prediction of the next one.
    keys: Keys,
    /// The column of each key, by the key's number.
    columns: Vec<u32>,
}

impl SideKeys {
    /// Creates the keys of the columns of one side, each with the lane that `lane_of` has for its
    /// index. `skips` is whether the values of keys without a lane are skipped.
    fn new(
        side: Side,
        columns: &[Column],
        lane_of: &HashMap<usize, usize>,
        skips: bool,
        limits: Limits,
    ) -> Self {
        let mut names = Vec::new();
        let mut lanes = Vec::new();
        let mut idle = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            if side_of(column.role) == Some(side) {
                let lane = lane_of.get(&index).map_or(NONE, |lane| *lane as u32);
                names.push(column.feature.as_str());
                lanes.push(lane);
                idle.push(lane == NONE && skips);
            }
        }
        Self {
            keys: Keys::new(names, limits).with_idle(idle),
            columns: lanes,
        }
    }
}

impl Losses {
    /// Counts a value of a key that has no column, the one at `place` among such keys.
    fn miss(&mut self, side: Side, place: usize) {
        let times = &mut self.unknown[side as usize];
        if times.len() <= place {
            times.resize(place + 1, 0);
        }
        if let Some(times) = times.get_mut(place) {
            *times += 1;
        }
    }
}

/// The losses of the current record. They are counted once the record is accepted, so that those of
/// a skipped record are not.
///
/// ```text
/// record()      fills Pending
/// accept()      adds it to the tape's totals
/// skip()        the next record() clears it
/// ```
#[derive(Debug, Default)]
struct Pending {
    /// The keys without a column that have values.
    unknown: Vec<(Side, u32)>,
    /// See [`Losses::lost_unset`].
    lost_unset: u64,
    /// See [`Losses::excess`].
    excess: u64,
    /// See [`Losses::foreign`].
    foreign: Option<(u32, u64)>,
}

/// The features without a kind, as keys of the features' side.
#[derive(Debug, Default)]
pub(crate) struct Unset {
    /// Those of the current record.
    record: Vec<u32>,
    /// Their number in each record.
    pub(crate) lengths: Vec<usize>,
    /// Those of all records, in the order of records; within a record, ordered by name.
    pub(crate) names: Vec<u32>,
}

impl Tape {
    /// Creates a tape for `columns`. Those in `lane_of` are filled, each at the index that it has
    /// there; the others are skipped.
    pub(crate) fn new(columns: &[Column], lane_of: &HashMap<usize, usize>, limits: Limits) -> Self {
        let has_unset = lane_of
            .keys()
            .any(|index| columns.get(*index).is_some_and(|c| c.role == Role::Unset));
        Self {
            rows: 0,
            row: 0,
            slots: Vec::new(),
            joined: Vec::new(),
            sides: [
                // The names of unset features are found by reading every feature.
                SideKeys::new(Side::Features, columns, lane_of, !has_unset, limits),
                SideKeys::new(Side::Lists, columns, lane_of, true, limits),
            ],
            unset: has_unset.then(Unset::default),
            pending: Pending::default(),
            losses: Losses::default(),
        }
    }

    /// Returns the limits for records.
    pub(crate) fn limits(&self) -> &Limits {
        self.sides[0].keys.limits()
    }

    /// Begins a batch of `rows` records, and resets the slots of its `columns` columns.
    ///
    /// The column `c` of the record `r` is the slot `c * rows + r`.
    pub(crate) fn begin(&mut self, columns: usize, rows: usize) {
        self.slots.clear();
        self.slots.resize(columns * rows, Slot::default());
        self.joined.clear();
        (self.rows, self.row) = (rows, 0);
        if let Some(unset) = &mut self.unset {
            *unset = Unset::default();
        }
    }

    /// Walks the next record of the batch, whose data is part of `chunk`, and before it the
    /// features `shared`. `lists` is true if field 2 is `feature_lists`. The caller then calls
    /// [`accept`](Self::accept) or [`skip`](Self::skip).
    ///
    /// # Errors
    /// [`WireError`] for a record that does not parse or exceeds a limit. The names that it added
    /// are removed.
    pub(crate) fn record(
        &mut self,
        shared: &[u8],
        data: &[u8],
        chunk: &[u8],
        lists: bool,
    ) -> wire::Result<()> {
        self.pending = Pending::default();
        let known = self.sides.each_ref().map(|side| side.keys.names().len());
        if let Err(error) =
            walk::record_with(shared, data, lists, &mut TapeVisitor { tape: self, chunk })
        {
            self.sides
                .iter_mut()
                .zip(known)
                .for_each(|(side, known)| side.keys.abandon(known));
            return Err(error);
        }
        self.row += 1;
        if let Some(unset) = &mut self.unset {
            let names = self.sides[0].keys.names();
            unset.record.sort_by_key(|id| names.get(*id as usize));
            unset.lengths.push(unset.record.len());
            unset.names.append(&mut unset.record);
        }
        Ok(())
    }

    /// Returns the first field of the current record that its message type does not define.
    pub(crate) fn foreign_of_record(&self) -> Option<u32> {
        self.pending.foreign.map(|(field, _)| field)
    }

    /// Adds the losses of the current record to those of the tape.
    pub(crate) fn accept(&mut self) {
        let Pending {
            unknown,
            lost_unset,
            excess,
            foreign,
        } = mem::take(&mut self.pending);
        for (side, id) in unknown {
            self.losses
                .miss(side, id as usize - self.sides[side as usize].columns.len());
        }
        self.losses.lost_unset += lost_unset;
        self.losses.excess += excess;
        if let Some((field, times)) = foreign {
            self.losses.foreign.get_or_insert((field, 0)).1 += times;
        }
    }

    /// Leaves out the current record, `row`: its slots become absent.
    #[cold]
    pub(crate) fn skip(&mut self, row: usize) {
        self.clear(row);
        self.row = row + 1;
        if let Some(unset) = &mut self.unset {
            unset.record.clear();
            let named: usize = unset.lengths.iter().take(row).sum();
            unset.names.truncate(named);
            unset.lengths.resize(row, 0);
            unset.lengths.push(0);
        }
    }

    /// Resets the slots of the record `row`.
    #[cold]
    pub(crate) fn clear(&mut self, row: usize) {
        let slots = self.slots.iter_mut().skip(row).step_by(self.rows.max(1));
        slots.for_each(|slot| *slot = Slot::default());
    }

    /// Returns the slots of a column, one for each record.
    pub(crate) fn column(&self, column: usize) -> &[Slot] {
        slices::part(&self.slots, column * self.rows..(column + 1) * self.rows)
    }

    /// Returns the buffers that the slots refer to.
    pub(crate) fn places<'t>(&'t self, chunk: &'t Buffer) -> Places<'t> {
        Places {
            chunk,
            joined: &self.joined,
            nesting: self.limits().nesting,
        }
    }

    /// Returns the features without a kind and the names of all features, if they are wanted.
    pub(crate) fn unset(&self) -> Option<(&Unset, &[Box<str>])> {
        Some((self.unset.as_ref()?, self.sides[0].keys.names()))
    }

    /// Returns the features with a kind and the feature lists that have no column, with the numbers
    /// of their values.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        let names = self
            .sides
            .iter()
            .map(|side| side.keys.names().iter().skip(side.columns.len()));
        let times = names
            .zip(&self.losses.unknown)
            .flat_map(|(names, times)| names.zip(times));
        times
            .map(|(name, times)| (&**name, *times))
            .filter(|(_, times)| *times > 0)
    }

    /// Sets the slot of a column in the current record. A value that is replaced is still checked.
    ///
    /// ```text
    /// record    0a len (a = [1])   0a len (a = [2])     two entries with one key
    /// slot      [1], then [2]; the list [1] is checked before it is replaced
    /// ```
    #[inline]
    fn set(&mut self, column: u32, slot: Slot, chunk: &[u8]) -> wire::Result<()> {
        let Some(place) = self.slots.get_mut(column as usize * self.rows + self.row) else {
            return Ok(());
        };
        let replaced = mem::replace(place, slot);
        if replaced.state == State::Absent {
            Ok(())
        } else {
            self.check(&replaced, chunk)
        }
    }

    /// Parses a value that another one replaces, without keeping it: a record is invalid if either
    /// does not parse.
    #[cold]
    fn check(&self, slot: &Slot, chunk: &[u8]) -> wire::Result<()> {
        let body = slot.body(chunk, &self.joined);
        let nesting = self.limits().nesting;
        match slot.state {
            State::Absent | State::Unset => Ok(()),
            State::List(kind) => walk::check_list(kind, body, nesting),
            State::Steps => walk::steps(body, nesting, |step| {
                walk::feature(step, nesting, |feature| {
                    feature.map_or(Ok(()), |(kind, body)| walk::check_list(kind, body, nesting))
                })
            }),
        }
    }
}

/// Returns the map that columns of a role come from; `None` for virtual columns.
fn side_of(role: Role) -> Option<Side> {
    match role {
        Role::Feature | Role::Context => Some(Side::Features),
        Role::Sequence => Some(Side::Lists),
        Role::Examples | Role::Record | Role::Unset | Role::Exact | Role::Index | Role::Offset => {
            None
        }
    }
}

impl Unset {
    /// Notes whether a feature is unset. Of a feature that is given twice, the last entry counts.
    fn note(&mut self, id: u32, unset: bool) {
        self.record.retain(|other| *other != id);
        if unset {
            self.record.push(id);
        }
    }
}

/// Writes the features that a walk visits to the tape.
struct TapeVisitor<'t, 'a> {
    tape: &'t mut Tape,
    /// The memory that the record is part of.
    chunk: &'a [u8],
}

impl TapeVisitor<'_, '_> {
    /// Counts the loss of a feature without a column: of its values, or, if it has no kind, of its
    /// presence.
    ///
    /// A feature without a kind is no loss if the column `_tfarrow_unset` is wanted, which keeps
    /// its name.
    #[cold]
    fn note_unknown(&mut self, side: Side, id: u32, message: &[u8]) -> wire::Result<()> {
        let nesting = self.tape.limits().nesting;
        if side == Side::Lists || walk::feature(message, nesting, |feature| Ok(feature.is_some()))?
        {
            self.tape.pending.unknown.push((side, id));
        } else {
            self.tape.pending.lost_unset += u64::from(self.tape.unset.is_none());
        }
        Ok(())
    }

    /// Sets the slot of a feature.
    #[inline]
    fn feature_slot(&mut self, id: u32, column: u32, message: &[u8]) -> wire::Result<()> {
        let tape = &mut *self.tape;
        let chunk = self.chunk;
        walk::feature(message, tape.limits().nesting, |feature| {
            if let Some((kind, body)) = feature {
                walk::check_values(kind, body, tape.limits())?;
            }
            if let Some(unset) = &mut tape.unset
                && (feature.is_none() || !unset.record.is_empty())
            {
                unset.note(id, feature.is_none());
            }
            tape.pending.lost_unset += u64::from(feature.is_none() && tape.unset.is_none());
            let slot = match feature {
                Some((kind, body)) => slot(State::List(kind), body, chunk, &mut tape.joined),
                None => Slot::UNSET,
            };
            tape.set(column, slot, chunk)
        })
    }
}

impl Visitor for TapeVisitor<'_, '_> {
    #[inline(always)]
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.tape.sides[side as usize].keys
    }

    #[inline(always)]
    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<&[u8]>) -> wire::Result<()> {
        let Some(id) = id else {
            self.tape.pending.excess += 1;
            return Ok(());
        };
        let message = value.unwrap_or_default();
        let column = self.tape.sides[side as usize]
            .columns
            .get(id as usize)
            .copied();
        if column.is_none() {
            self.note_unknown(side, id, message)?;
        }
        let column = column.unwrap_or(NONE);
        match side {
            // A feature without a column is read only if the names of unset features are wanted.
            Side::Features if column == NONE && self.tape.unset.is_none() => Ok(()),
            Side::Features => self.feature_slot(id, column, message),
            Side::Lists => {
                walk::check_feature_list(message, self.tape.limits())?;
                let slot = slot(State::Steps, message, self.chunk, &mut self.tape.joined);
                self.tape.set(column, slot, self.chunk)
            }
        }
    }

    fn foreign(&mut self, field: u32) -> Result<(), WireError> {
        self.tape.pending.foreign.get_or_insert((field, 0)).1 += 1;
        Ok(())
    }
}
