//! The tape: for each wanted column and each record of a batch, where the value lies. Filled by WALK, read by COLUMNS.

use std::{collections::HashMap, mem};

use arrow_buffer::Buffer;

use crate::{
    Limits, WireError,
    keys::Keys,
    schema::{Column, Kind, Role},
    walk::{self, Side, Visitor},
    wire,
};

/// What a record has of one column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// No such feature.
    #[default]
    Absent,
    /// The feature, with no kind set.
    Unset,
    /// A list of this kind; the place is that of its body.
    List(Kind),
    /// A feature list; the place is that of the `FeatureList`.
    Steps,
}

/// One place on the tape.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    start: u32,
    len: u32,
    pub(crate) state: State,
    /// The bytes stand in the tape's own memory, joined from several places, and not in the chunk.
    joined: bool,
}

impl Slot {
    /// A feature with no kind set.
    pub(crate) const UNSET: Self = Self { start: 0, len: 0, state: State::Unset, joined: false };

    /// The bytes of the body, which stand in the chunk or in what was joined.
    #[inline]
    pub(crate) fn body<'t>(&self, chunk: &'t [u8], joined: &'t [u8]) -> &'t [u8] {
        let bytes = if self.joined { joined } else { chunk };
        let start = self.start as usize;
        bytes.get(start..start + self.len as usize).unwrap_or_default()
    }

    /// The length of the body in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}

/// Bytes that slots point into, and how deep messages in them may be nested.
#[derive(Clone, Copy)]
pub(crate) struct Places<'t> {
    pub(crate) chunk: &'t Buffer,
    pub(crate) joined: &'t [u8],
    pub(crate) nesting: usize,
}

impl<'t> Places<'t> {
    /// The bytes of a slot.
    #[inline]
    pub(crate) fn body(&self, slot: &Slot) -> &'t [u8] {
        slot.body(self.chunk.as_slice(), self.joined)
    }
}

/// Makes a slot of a message: a place in the chunk where it stands there whole, else a copy in `joined`.
#[inline]
pub(crate) fn slot(state: State, body: &[u8], chunk: &[u8], joined: &mut Vec<u8>) -> Slot {
    match offset_in(chunk, body) {
        Some(start) => Slot { start: start as u32, len: body.len() as u32, state, joined: false },
        None => {
            let start = joined.len();
            joined.extend_from_slice(body);
            joined_slot(state, joined, start)
        }
    }
}

/// Makes a slot of what stands in `joined` from `start` on.
pub(crate) fn joined_slot(state: State, joined: &[u8], start: usize) -> Slot {
    Slot { start: start as u32, len: (joined.len() - start) as u32, state, joined: true }
}

/// Where `part` lies in `whole`, if it does.
#[inline]
pub(crate) fn offset_in(whole: &[u8], part: &[u8]) -> Option<usize> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (start + part.len() <= whole.len()).then_some(start)
}

/// No column.
const NONE: u32 = u32::MAX;

/// The places of a batch.
#[derive(Debug)]
pub(crate) struct Tape {
    rows: usize,
    row: usize,
    /// A column after the other, each with a slot a row.
    slots: Vec<Slot>,
    joined: Vec<u8>,
    sides: [SideKeys; 2],
    /// The keys without a kind: of the record in hand, and how many each record before it has.
    unset: Option<Unset>,
    pending: Pending,
    /// How often a feature with no kind was met whose name nobody keeps.
    pub(crate) lost_unset: u64,
    /// How often a feature was met that has no column, and whose name is one too many to remember.
    pub(crate) forgotten: u64,
    /// The first field of a record that no feature stands in, and how many such fields there were.
    pub(crate) foreign: Option<(u32, u64)>,
}

#[derive(Debug)]
struct SideKeys {
    keys: Keys,
    /// The column of each key, by its number.
    columns: Vec<u32>,
    /// For each key past these, which has no column, how often it was met with something that needs one.
    unknown: Vec<u64>,
}

impl SideKeys {
    /// Notes that a key without a column needs one.
    fn miss(&mut self, id: u32) {
        let place = id as usize - self.columns.len();
        if self.unknown.len() <= place {
            self.unknown.resize(place + 1, 0);
        }
        if let Some(times) = self.unknown.get_mut(place) {
            *times += 1;
        }
    }

    fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        let names = self.keys.names().iter().skip(self.columns.len());
        names.zip(&self.unknown).map(|(name, times)| (&**name, *times)).filter(|(_, times)| *times > 0)
    }
}

/// What the record in hand has that no column holds. It is counted once the record has been accepted, so that one that is
/// left out is not counted.
#[derive(Debug, Default)]
struct Pending {
    /// The keys without a column that need one.
    unknown: Vec<(Side, u32)>,
    lost_unset: u64,
    forgotten: u64,
    foreign: Option<(u32, u64)>,
}

/// The names of unset features, record by record.
#[derive(Debug, Default)]
pub(crate) struct Unset {
    record: Vec<u32>,
    pub(crate) lengths: Vec<usize>,
    pub(crate) names: Vec<u32>,
}

impl Tape {
    /// A tape for `columns`, of which those in `lane_of` are filled, each at its place there.
    pub(crate) fn new(columns: &[Column], lane_of: &HashMap<usize, usize>, limits: Limits) -> Self {
        let has_unset = lane_of.keys().any(|index| columns.get(*index).is_some_and(|c| c.role == Role::Unset));
        let side = |side: Side| {
            let of_side = |column: &&Column| side_of(column.role) == Some(side);
            let keys = Keys::new(columns.iter().filter(of_side).map(|c| c.feature.as_str()), limits);
            let of_side = columns.iter().enumerate().filter(|(_, column)| of_side(column));
            let columns: Vec<_> =
                of_side.map(|(index, _)| lane_of.get(&index).map_or(NONE, |lane| *lane as u32)).collect();
            // Where the names of unset features are wanted, every feature is looked at.
            let idle = columns.iter().map(|column| *column == NONE && (side == Side::Lists || !has_unset)).collect();
            SideKeys { keys: keys.with_idle(idle), columns, unknown: Vec::new() }
        };
        Self {
            rows: 0,
            row: 0,
            slots: Vec::new(),
            joined: Vec::new(),
            sides: [side(Side::Features), side(Side::Lists)],
            unset: has_unset.then(Unset::default),
            pending: Pending::default(),
            lost_unset: 0,
            forgotten: 0,
            foreign: None,
        }
    }

    /// What records may have.
    pub(crate) fn limits(&self) -> &Limits {
        self.sides[0].keys.limits()
    }

    /// Makes room for the places of a batch.
    pub(crate) fn begin(&mut self, columns: usize, rows: usize) {
        self.slots.clear();
        self.slots.resize(columns * rows, Slot::default());
        self.joined.clear();
        (self.rows, self.row) = (rows, 0);
        if let Some(unset) = &mut self.unset {
            *unset = Unset::default();
        }
    }

    /// Walks the batch's next record, whose data lies in `chunk`. It is followed by [`accept`](Self::accept) or
    /// [`skip`](Self::skip). Of a record that does not parse no name is remembered.
    pub(crate) fn record(&mut self, data: &[u8], chunk: &[u8], lists: bool) -> wire::Result<()> {
        self.pending = Pending::default();
        let known = self.sides.each_ref().map(|side| side.keys.names().len());
        if let Err(error) = walk::record(data, lists, &mut TapeVisitor { tape: self, chunk }) {
            self.sides.iter_mut().zip(known).for_each(|(side, known)| side.keys.abandon(known));
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

    /// The first field of the record in hand that its type has not, if any.
    pub(crate) fn foreign_of_record(&self) -> Option<u32> {
        self.pending.foreign.map(|(field, _)| field)
    }

    /// Counts what the record in hand has that no column holds.
    pub(crate) fn accept(&mut self) {
        let Pending { unknown, lost_unset, forgotten, foreign } = mem::take(&mut self.pending);
        unknown.into_iter().for_each(|(side, id)| self.sides[side as usize].miss(id));
        self.lost_unset += lost_unset;
        self.forgotten += forgotten;
        if let Some((field, times)) = foreign {
            self.foreign.get_or_insert((field, 0)).1 += times;
        }
    }

    /// Goes on after `row`, the record in hand, as if it had nothing.
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

    /// Takes away what the record of `row` has of all columns.
    #[cold]
    pub(crate) fn clear(&mut self, row: usize) {
        let slots = self.slots.iter_mut().skip(row).step_by(self.rows.max(1));
        slots.for_each(|slot| *slot = Slot::default());
    }

    /// The slots of a column, one a record.
    pub(crate) fn column(&self, column: usize) -> &[Slot] {
        self.slots.get(column * self.rows..(column + 1) * self.rows).unwrap_or_default()
    }

    /// What the slots point into.
    pub(crate) fn places<'t>(&'t self, chunk: &'t Buffer) -> Places<'t> {
        Places { chunk, joined: &self.joined, nesting: self.limits().nesting }
    }

    /// The names of unset features, where they are wanted.
    pub(crate) fn unset(&self) -> Option<(&Unset, &[Box<str>])> {
        Some((self.unset.as_ref()?, self.sides[0].keys.names()))
    }

    /// The features that have no column, and need one: those with a kind, and feature lists. And how often each was met.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        self.sides.iter().flat_map(SideKeys::unknown)
    }

    /// Fills the slot of the record in hand, where there is such a column.
    #[inline]
    fn set(&mut self, column: u32, slot: Slot, chunk: &[u8]) -> wire::Result<()> {
        let Some(place) = self.slots.get_mut(column as usize * self.rows + self.row) else { return Ok(()) };
        let replaced = mem::replace(place, slot);
        if replaced.state == State::Absent { Ok(()) } else { self.check(&replaced, chunk) }
    }

    /// Nobody will look at a value that another has replaced; what does not parse is refused all the same.
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

/// The map that columns of a role are found in.
fn side_of(role: Role) -> Option<Side> {
    match role {
        Role::Feature | Role::Context => Some(Side::Features),
        Role::Sequence => Some(Side::Lists),
        Role::Record | Role::Unset | Role::Exact | Role::Index | Role::Offset => None,
    }
}

impl Unset {
    /// The last word on a feature counts: it may be given again.
    fn note(&mut self, id: u32, unset: bool) {
        self.record.retain(|other| *other != id);
        if unset {
            self.record.push(id);
        }
    }
}

struct TapeVisitor<'t, 'a> {
    tape: &'t mut Tape,
    chunk: &'a [u8],
}

impl TapeVisitor<'_, '_> {
    /// A key that no column has is a loss: of its values, or where it has none, of the word that it was there.
    #[cold]
    fn note_unknown(&mut self, side: Side, id: u32, message: &[u8]) -> wire::Result<()> {
        let nesting = self.tape.limits().nesting;
        if side == Side::Lists || walk::feature(message, nesting, |feature| Ok(feature.is_some()))? {
            self.tape.pending.unknown.push((side, id));
        } else {
            self.tape.pending.lost_unset += u64::from(self.tape.unset.is_none());
        }
        Ok(())
    }

    /// Fills the slot of a value of the features' side.
    #[inline]
    fn feature_slot(&mut self, id: u32, column: u32, message: &[u8]) -> wire::Result<()> {
        let (tape, chunk) = (&mut *self.tape, self.chunk);
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
            self.tape.pending.forgotten += 1;
            return Ok(());
        };
        let message = value.unwrap_or_default();
        let column = self.tape.sides[side as usize].columns.get(id as usize).copied();
        if column.is_none() {
            self.note_unknown(side, id, message)?;
        }
        let column = column.unwrap_or(NONE);
        match side {
            // Where nobody keeps the names of unset features, the value of one that nobody wants is not looked at.
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
