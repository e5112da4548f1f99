//! Observing one record for a summary. A record counts completely or not at all: the walk notes its
//! features, and they are added to the summary once the record has parsed.
//!
//! ```text
//! walk ─▶ Seen, one for each feature ─▶ did the record parse?
//!           yes: FeatureSummary of each feature, RecordObserver
//!           no:  the notes are dropped, new names are removed
//! ```
//!
//! Numbers are counted without decoding them, and text is checked at most until a value of the
//! feature is not UTF-8.
//!
//! ```text
//! kind        len                                  bytes     utf8, filled, controls
//! bytes       number of fields                     sum       of each value, until one is not UTF-8
//! float       bytes of packed lists / 4            -         true, 0, 0
//! int64       varints, counted by their last byte  -         true, 0, 0
//! ```
//!
//! Values are decoded only for an observer that asks for them (`observer.rs`).

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::{
    FeatureSummary, KindSummary, Place, SideSummary,
    observer::{NumberBuffers, RecordObserver, SeenRecord, place_of},
    seen::{ListTraits, Seen},
    text::{has_control_character, is_utf8},
};
use crate::{
    Limits, WireError,
    example::{
        keys::Keys,
        tape::Slot,
        walk::{self, Numbers, Side, Visitor},
        wire,
    },
    schema::Kind,
    slices,
};

/// Properties of a record, or of all records of a summary, besides its features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Traits {
    /// Whether a map entry has a value, as every entry that TensorFlow writes does.
    pub(super) has_value: bool,
    /// Whether there is a `feature_lists` field, possibly an empty one.
    pub(super) has_lists: bool,
    /// Whether there is a name above the limits.
    pub(super) overflow: bool,
}

impl Traits {
    /// Adds the properties of further records.
    ///
    /// Each is a disjunction, so that the order of records does not matter.
    pub(super) fn merge(&mut self, other: Self) {
        self.has_value |= other.has_value;
        self.has_lists |= other.has_lists;
        self.overflow |= other.overflow;
    }
}

/// Walks records, and holds the features of the current one until they are added to the summary.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// Properties of the current record.
    pub(super) traits: Traits,
    /// The last field of the current record that neither message type defines.
    pub(super) foreign: Option<u32>,
    /// The features of the current record.
    seen: Vec<Seen>,
    /// The lists of the steps of all its feature lists.
    steps: Vec<ListTraits>,
    /// Messages that come in several pieces.
    joined: Vec<u8>,
    /// Buffers for decoded numbers.
    numbers: NumberBuffers,
}

impl Observer {
    /// Adds the features of a record, and those that it shares with others, to `sides`, and passes
    /// the record to `visitor` if that is [enabled](RecordObserver::ENABLED). `lists` is true if
    /// the record may have feature lists.
    ///
    /// # Errors
    /// [`WireError`] for a record that does not parse or exceeds a limit; it changes nothing.
    pub(super) fn record<O: RecordObserver>(
        &mut self,
        (shared, data): (&[u8], &[u8]),
        lists: bool,
        sides: &mut [SideSummary; 2],
        place: Place,
        visitor: &mut O,
    ) -> Result<(), WireError> {
        self.seen.clear();
        self.steps.clear();
        self.joined.clear();
        (self.traits, self.foreign) = (Traits::default(), None);
        for side in sides.iter_mut() {
            side.turn += 1;
        }
        let known = sides.each_ref().map(SideSummary::names);
        let mut walk = Walk::<O> {
            observer: self,
            sides,
            data,
            visitor: PhantomData,
        };
        let walked = walk::record_with(shared, data, lists, &mut walk);
        if walked.is_err() {
            sides
                .iter_mut()
                .zip(known)
                .for_each(|(side, known)| side.abandon(known));
            return walked;
        }
        for seen in &self.seen {
            let side = &mut sides[seen.side as usize];
            if let Some(feature) = side.features.get_mut(seen.id as usize) {
                match seen.steps {
                    None => add(feature, &seen.list, place),
                    Some((first, end)) => {
                        add_steps(feature, slices::part(&self.steps, first..end), place)
                    }
                }
            }
        }
        if O::ENABLED {
            let Self {
                seen,
                joined,
                numbers,
                ..
            } = self;
            visitor.record(&mut SeenRecord {
                place,
                shared,
                data,
                joined,
                seen,
                sides,
                numbers,
            });
        }
        Ok(())
    }

    /// Parses a feature whose name is above the limits, without keeping it, since the record must
    /// be rejected if any of its features does not parse.
    ///
    /// # Errors
    /// [`WireError`].
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

/// Checks that a list has no more than [`Limits::values`] values.
#[inline]
fn check_len(list: &ListTraits, limits: &Limits) -> wire::Result<()> {
    if list.len > limits.values as u64 {
        Err(WireError::ManyValues)
    } else {
        Ok(())
    }
}

/// Adds a feature of a record to its summary.
#[inline]
fn add(feature: &mut FeatureSummary, list: &ListTraits, place: Place) {
    feature.present += 1;
    add_list(feature, list, place);
}

/// Adds a feature list of a record to its summary.
fn add_steps(feature: &mut FeatureSummary, steps: &[ListTraits], place: Place) {
    feature.present += 1;
    let count = steps.len() as u64;
    let (min, max) = feature.steps.unwrap_or((count, count));
    feature.steps = Some((min.min(count), max.max(count)));
    steps.iter().for_each(|list| add_list(feature, list, place));
}

/// Adds the list of a feature, or of a step, to the summary of its kind, which is created at
/// `first` if it is new.
#[inline]
fn add_list(feature: &mut FeatureSummary, list: &ListTraits, first: Place) {
    let ListTraits {
        len,
        bytes,
        kind,
        utf8,
        filled,
        controls,
    } = *list;
    let Some(kind) = kind else {
        feature.unset += 1;
        return;
    };
    let seen = feature.kinds[kind as usize].get_or_insert(KindSummary {
        lists: 0,
        values: 0,
        min_len: len,
        max_len: len,
        first,
        utf8: true,
        filled: 0,
        controls: 0,
        bytes: 0,
    });
    seen.lists += 1;
    seen.values += len;
    seen.min_len = seen.min_len.min(len);
    seen.max_len = seen.max_len.max(len);
    if first < seen.first {
        seen.first = first;
    }
    seen.bytes += bytes;
    seen.add_text(utf8, filled, controls);
}

/// Receives the features of a record from the walk, and notes them.
struct Walk<'o, O> {
    /// The notes of the current record.
    observer: &'o mut Observer,
    /// The summaries, to which a feature with a new name is added.
    sides: &'o mut [SideSummary; 2],
    /// The record.
    data: &'o [u8],
    /// The type of the observer, which decides at compile time whether places are kept.
    visitor: PhantomData<O>,
}

impl<O: RecordObserver> Visitor for Walk<'_, O> {
    #[inline]
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.sides[side as usize].keys
    }

    /// Reads a feature or a feature list, and notes its properties.
    #[inline]
    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<&[u8]>) -> wire::Result<()> {
        self.observer.traits.has_value |= value.is_some();
        let summary = &mut self.sides[side as usize];
        let Some((id, feature)) = id.and_then(|id| Some((id, summary.feature(id)?))) else {
            self.observer.traits.overflow = true;
            return self
                .observer
                .check(side, value.unwrap_or_default(), summary.keys.limits());
        };
        // Once a value is not UTF-8, further values of the feature need no check.
        let utf8 = feature.kinds[Kind::Bytes as usize]
            .as_ref()
            .is_none_or(|seen| seen.utf8);
        let bytes = value.unwrap_or_default();
        let limits = summary.keys.limits();
        let message = if O::ENABLED {
            place_of(bytes, self.data, &mut self.observer.joined)
        } else {
            Slot::default()
        };
        let seen = match side {
            Side::Features => Seen {
                side,
                id,
                message,
                list: one(bytes, utf8, limits.nesting)?,
                steps: None,
            },
            Side::Lists => {
                walk::check_feature_list(bytes, limits)?;
                let all = &mut self.observer.steps;
                let first = all.len();
                steps(bytes, utf8, limits.nesting, all)?;
                Seen {
                    side,
                    id,
                    message,
                    list: ListTraits::UNSET,
                    steps: Some((first, all.len())),
                }
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
    /// Notes a feature. Of a feature that is given twice, the last entry counts.
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

/// Reads a `Feature`. `utf8` is true if byte strings are to be validated as UTF-8. The usual form
/// is read without a closure, whose result would be passed through memory.
#[inline(always)]
fn one(message: &[u8], utf8: bool, nesting: usize) -> wire::Result<ListTraits> {
    match walk::plain_feature(message) {
        Some((kind, body)) => list(kind, body, utf8, nesting),
        None => odd_one(message, utf8, nesting),
    }
}

/// Reads a `Feature` of any form.
#[cold]
fn odd_one(message: &[u8], utf8: bool, nesting: usize) -> wire::Result<ListTraits> {
    walk::feature(message, nesting, |feature| match feature {
        None => Ok(ListTraits::UNSET),
        Some((kind, body)) => list(kind, body, utf8, nesting),
    })
}

/// Reads the steps of a `FeatureList`, and appends their lists to `all`.
fn steps(
    message: &[u8],
    utf8: bool,
    nesting: usize,
    all: &mut Vec<ListTraits>,
) -> wire::Result<()> {
    walk::steps(message, nesting, |step| {
        all.push(one(step, utf8, nesting)?);
        Ok(())
    })
}

/// Reads the body of a list: counts its values and, for byte strings, those that look like text.
/// `utf8` is true if they are to be validated; if not, the result has `utf8: false`, since an
/// earlier value of the feature is not UTF-8.
///
/// # Errors
/// [`WireError`] for a list that does not parse.
#[inline(always)]
fn list(kind: Kind, body: &[u8], utf8: bool, nesting: usize) -> wire::Result<ListTraits> {
    // Most lists of bytes have one value.
    if kind == Kind::Bytes
        && let Some(value) = wire::sole(body, 0x0a)
    {
        let bytes = value.len() as u64;
        let utf8 = utf8 && is_utf8(value);
        let filled = u64::from(bytes > 0);
        let controls = u64::from(utf8 && has_control_character(value));
        return Ok(ListTraits {
            len: 1,
            bytes,
            kind: Some(kind),
            utf8,
            filled,
            controls,
        });
    }
    let mut len = 0;
    let mut bytes = 0;
    let mut utf8 = utf8;
    let mut filled = 0;
    let mut controls = 0;
    match kind {
        Kind::Bytes => walk::bytes_values(body, nesting, |value| {
            len += 1;
            bytes += value.len() as u64;
            utf8 = utf8 && is_utf8(value);
            filled += u64::from(!value.is_empty());
            controls += u64::from(utf8 && has_control_character(value));
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
    // The UTF-8 of byte strings does not apply to numbers of the same feature.
    Ok(ListTraits {
        len,
        bytes,
        kind: Some(kind),
        utf8: utf8 || kind != Kind::Bytes,
        filled,
        controls,
    })
}
