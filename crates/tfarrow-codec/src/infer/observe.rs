//! One record's contribution to a summary. A record counts whole or not at all: what a walk sees is noted first, and
//! added once the record has turned out to parse.

use std::marker::PhantomData;

use super::{
    FeatureSummary, KindSummary, Place, SideSummary,
    values::{NumberBuffers, RecordObserver, SeenRecord, place_of},
};
use crate::{
    Limits, WireError,
    keys::Keys,
    schema::{Kind, Role},
    tape::Slot,
    walk::{self, Numbers, Side, Visitor},
    wire,
};

/// What a record has of one feature. Flat, so that it is written once and not moved about.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) side: Side,
    pub(super) id: u32,
    /// Where its message stands, where somebody will read it.
    pub(super) message: Slot,
    /// Its list, if it has a kind.
    list: List,
    /// For a feature list: which of the record's steps are its own.
    steps: Option<(usize, usize)>,
}

/// What one `Feature` has.
#[derive(Clone, Copy, Debug)]
struct List {
    len: u64,
    bytes: u64,
    kind: Option<Kind>,
    utf8: bool,
    printable: bool,
}

impl List {
    /// Of a feature with no kind set.
    const UNSET: Self = Self { len: 0, bytes: 0, kind: None, utf8: true, printable: false };
}

/// What one record, or all of a summary, has besides its features.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits {
    /// Some feature's map entry has a value, as all entries have that TensorFlow wrote.
    pub(super) has_value: bool,
    /// It has `feature_lists`, if only empty ones.
    pub(super) has_lists: bool,
    /// It has a name that is one too many to remember.
    pub(super) overflow: bool,
}

impl Traits {
    /// Adds the traits of more records.
    pub(super) fn merge(&mut self, other: Self) {
        self.has_value |= other.has_value;
        self.has_lists |= other.has_lists;
        self.overflow |= other.overflow;
    }
}

/// Walks records for a summary, and holds what one record has until it is added.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// The traits of the record in hand.
    pub(super) traits: Traits,
    /// The last field of the record in hand that neither message has.
    pub(super) foreign: Option<u32>,
    seen: Vec<Seen>,
    /// What each step of all feature lists has.
    steps: Vec<List>,
    /// Messages that came in pieces.
    joined: Vec<u8>,
    numbers: NumberBuffers,
}

impl Observer {
    /// Adds one record's features to `sides`, and tells `others` of it. A record that does not parse changes nothing.
    pub(super) fn record<O: RecordObserver>(
        &mut self,
        data: &[u8],
        sides: &mut [SideSummary; 2],
        place: Place,
        others: &mut O,
    ) -> Result<(), WireError> {
        self.seen.clear();
        self.steps.clear();
        self.joined.clear();
        (self.traits, self.foreign) = (Traits::default(), None);
        for side in sides.iter_mut() {
            side.turn += 1;
        }
        let known = sides.each_ref().map(SideSummary::names);
        let walked = walk::record(data, true, &mut Walk::<O> { observer: self, sides, data, told: PhantomData });
        if walked.is_err() {
            sides.iter_mut().zip(known).for_each(|(side, known)| side.abandon(known));
            return walked;
        }
        for seen in &self.seen {
            let side = &mut sides[seen.side as usize];
            if let Some(feature) = side.features.get_mut(seen.id as usize) {
                match seen.steps {
                    None => add(feature, &seen.list, place),
                    Some((first, end)) => add_steps(feature, self.steps.get(first..end).unwrap_or_default(), place),
                }
            }
        }
        if O::IS_TOLD {
            let Self { seen, joined, numbers, .. } = self;
            others.record(&mut SeenRecord { place, data, joined, seen, sides, numbers });
        }
        Ok(())
    }

    /// Reads a feature whose name is not remembered, for nothing but its form and its length.
    #[cold]
    fn check(&mut self, side: Side, bytes: &[u8], limits: &Limits) -> wire::Result<()> {
        match side {
            Side::Features => check_len(&one(bytes, false, limits.nesting)?, limits),
            Side::Lists => {
                walk::check_feature_list(bytes, limits)?;
                let before = self.steps.len();
                let read = steps(bytes, false, limits.nesting, &mut self.steps);
                self.steps.truncate(before);
                read
            }
        }
    }
}

/// Refuses a list of more values than there may be.
#[inline]
fn check_len(list: &List, limits: &Limits) -> wire::Result<()> {
    if list.len > limits.values as u64 { Err(WireError::ManyValues) } else { Ok(()) }
}

#[inline]
fn add(feature: &mut FeatureSummary, list: &List, place: Place) {
    feature.present += 1;
    add_list(feature, list, place);
}

fn add_steps(feature: &mut FeatureSummary, steps: &[List], place: Place) {
    feature.present += 1;
    let count = steps.len() as u64;
    let (min, max) = feature.steps.unwrap_or((count, count));
    feature.steps = Some((min.min(count), max.max(count)));
    steps.iter().for_each(|list| add_list(feature, list, place));
}

#[inline]
fn add_list(feature: &mut FeatureSummary, list: &List, first: Place) {
    let List { len, bytes, kind, utf8, printable } = *list;
    let Some(kind) = kind else {
        feature.unset += 1;
        return;
    };
    let new = || KindSummary {
        lists: 0,
        values: 0,
        min_len: len,
        max_len: len,
        first,
        utf8: true,
        printable: false,
        bytes: 0,
    };
    let seen = feature.kinds[kind as usize].get_or_insert_with(new);
    seen.lists += 1;
    seen.values += len;
    seen.min_len = seen.min_len.min(len);
    seen.max_len = seen.max_len.max(len);
    if first < seen.first {
        seen.first = first;
    }
    seen.bytes += bytes;
    seen.utf8 &= utf8;
    seen.printable |= printable;
}

struct Walk<'o, O> {
    observer: &'o mut Observer,
    sides: &'o mut [SideSummary; 2],
    data: &'o [u8],
    told: PhantomData<O>,
}

impl<O: RecordObserver> Visitor for Walk<'_, O> {
    #[inline]
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.sides[side as usize].keys
    }

    #[inline]
    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<&[u8]>) -> wire::Result<()> {
        self.observer.traits.has_value |= value.is_some();
        let role = match side {
            Side::Features => Role::Feature,
            Side::Lists => Role::Sequence,
        };
        let summary = &mut self.sides[side as usize];
        let Some((id, feature)) = id.and_then(|id| Some((id, summary.feature(id, role)?))) else {
            self.observer.traits.overflow = true;
            return self.observer.check(side, value.unwrap_or_default(), summary.keys.limits());
        };
        // Once a value was no text, the next need not be looked at.
        let utf8 = feature.kinds[Kind::Bytes as usize].as_ref().is_none_or(|seen| seen.utf8);
        let bytes = value.unwrap_or_default();
        let limits = summary.keys.limits();
        let message = if O::IS_TOLD { place_of(bytes, self.data, &mut self.observer.joined) } else { Slot::default() };
        let seen = match side {
            Side::Features => Seen { side, id, message, list: one(bytes, utf8, limits.nesting)?, steps: None },
            Side::Lists => {
                walk::check_feature_list(bytes, limits)?;
                let all = &mut self.observer.steps;
                let first = all.len();
                steps(bytes, utf8, limits.nesting, all)?;
                Seen { side, id, message, list: List::UNSET, steps: Some((first, all.len())) }
            }
        };
        check_len(&seen.list, limits)?;
        self.note(seen);
        Ok(())
    }

    fn lists(&mut self) {
        self.observer.traits.has_lists = true;
    }

    fn foreign(&mut self, field: u32) -> wire::Result<()> {
        self.observer.foreign = Some(field);
        Ok(())
    }
}

impl<O> Walk<'_, O> {
    /// A feature that is given again replaces what was given before.
    #[inline]
    fn note(&mut self, seen: Seen) {
        let all = &mut self.observer.seen;
        let before = self.sides[seen.side as usize].met_before(seen.id, all.len());
        match before.and_then(|index| all.get_mut(index)) {
            Some(held) => *held = seen,
            None => all.push(seen),
        }
    }
}

/// A plain one is read in the place where it is asked for: what a closure returns goes through memory, and there the
/// processor waits for it.
#[inline(always)]
fn one(message: &[u8], utf8: bool, nesting: usize) -> wire::Result<List> {
    match walk::plain_feature(message) {
        Some((kind, body)) => list(kind, body, utf8, nesting),
        None => odd_one(message, utf8, nesting),
    }
}

#[cold]
fn odd_one(message: &[u8], utf8: bool, nesting: usize) -> wire::Result<List> {
    walk::feature(message, nesting, |feature| match feature {
        None => Ok(List::UNSET),
        Some((kind, body)) => list(kind, body, utf8, nesting),
    })
}

fn steps(message: &[u8], utf8: bool, nesting: usize, all: &mut Vec<List>) -> wire::Result<()> {
    walk::steps(message, nesting, |step| {
        all.push(one(step, utf8, nesting)?);
        Ok(())
    })
}

#[inline(always)]
fn list(kind: Kind, body: &[u8], utf8: bool, nesting: usize) -> wire::Result<List> {
    // Most lists of bytes have one value.
    if kind == Kind::Bytes
        && let Some(value) = wire::sole(body, 0x0a)
    {
        let (bytes, printable) = (value.len() as u64, is_printable(value));
        return Ok(List { len: 1, bytes, kind: Some(kind), utf8: utf8 && is_text(value), printable });
    }
    let (mut len, mut bytes, mut utf8, mut printable) = (0, 0, utf8, false);
    match kind {
        Kind::Bytes => walk::bytes_values(body, nesting, |value| {
            len += 1;
            bytes += value.len() as u64;
            utf8 = utf8 && is_text(value);
            printable = printable || is_printable(value);
            Ok(())
        })?,
        Kind::Float => walk::float_pieces(body, nesting, |piece| {
            len += match piece {
                Numbers::Packed(bytes) => bytes.len() as u64 / 4,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?,
        Kind::Int64 => walk::int64_pieces(body, nesting, |piece| {
            len += match piece {
                Numbers::Packed(bytes) => wire::count_varints(bytes)? as u64,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?,
    }
    // That bytes of this feature were no text says nothing of its numbers.
    Ok(List { len, bytes, kind: Some(kind), utf8: utf8 || kind != Kind::Bytes, printable })
}

/// Most values are short, and most text is ASCII: that is told faster than UTF-8 in general.
#[inline]
fn is_text(value: &[u8]) -> bool {
    value.is_ascii() || simdutf8::basic::from_utf8(value).is_ok()
}

/// Whether a value has more than ASCII control characters. The first byte decides it for most values.
#[inline]
fn is_printable(value: &[u8]) -> bool {
    // Values of zeros are long in images: whole blocks are compared at once.
    value.chunks(64).any(|block| block.iter().fold(false, |found, byte| found | !byte.is_ascii_control()))
}
