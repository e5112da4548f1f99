//! One record's contribution to a summary. A record counts whole or not at all: what a walk sees is noted first, and
//! added once the record has turned out to parse.

use super::{FeatureSummary, KindSummary, Place, SideSummary};
use crate::{
    WireError,
    keys::Keys,
    schema::{Kind, Role},
    walk::{self, Numbers, Side, Visitor},
    wire,
};

/// What a record has of one feature. Flat, so that it is written once and not moved about.
#[derive(Debug)]
struct Seen {
    side: Side,
    id: u32,
    /// Its list, if it has a kind.
    list: List,
    /// For a feature list: what each of its steps has.
    steps: Option<Vec<List>>,
}

/// What one `Feature` has.
#[derive(Clone, Copy, Debug)]
struct List {
    len: u64,
    bytes: u64,
    kind: Option<Kind>,
    utf8: bool,
}

impl List {
    /// Of a feature with no kind set.
    const UNSET: Self = Self { len: 0, bytes: 0, kind: None, utf8: true };
}

/// What the records seen so far are besides their features.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// Some feature's map entry has a value, as all entries have that TensorFlow wrote.
    pub(super) has_value: bool,
    /// A record has `feature_lists`, if only empty ones.
    pub(super) has_lists: bool,
    /// The last field met that neither message has.
    pub(super) foreign: Option<u32>,
    /// A name was met that is one too many to remember.
    pub(super) overflow: bool,
}

/// Walks records for a summary, and holds what one record has until it is added.
#[derive(Debug, Default)]
pub(super) struct Observer {
    pub(super) shape: Shape,
    seen: Vec<Seen>,
}

impl Observer {
    /// Adds one record's features to `sides`.
    pub(super) fn record(&mut self, data: &[u8], sides: &mut [SideSummary; 2], place: Place) -> Result<(), WireError> {
        self.seen.clear();
        for side in sides.iter_mut() {
            side.turn += 1;
        }
        walk::record(data, true, &mut Walk { observer: self, sides })?;
        for seen in self.seen.drain(..) {
            let side = &mut sides[seen.side as usize];
            if let Some(feature) = side.features.get_mut(seen.id as usize) {
                add(feature, &seen, place);
            }
        }
        Ok(())
    }
}

fn add(feature: &mut FeatureSummary, seen: &Seen, place: Place) {
    feature.present += 1;
    let Some(steps) = &seen.steps else { return add_list(feature, &seen.list, place) };
    let count = steps.len() as u64;
    let (min, max) = feature.steps.unwrap_or((count, count));
    feature.steps = Some((min.min(count), max.max(count)));
    steps.iter().for_each(|list| add_list(feature, list, place));
}

#[inline]
fn add_list(feature: &mut FeatureSummary, list: &List, first: Place) {
    let List { len, bytes, kind, utf8 } = *list;
    let Some(kind) = kind else {
        feature.unset += 1;
        return;
    };
    let new = || KindSummary { lists: 0, values: 0, min_len: len, max_len: len, first, utf8: true, bytes: 0 };
    let seen = feature.kinds[kind as usize].get_or_insert_with(new);
    seen.lists += 1;
    seen.values += len;
    seen.min_len = seen.min_len.min(len);
    seen.max_len = seen.max_len.max(len);
    seen.first = seen.first.min(first);
    seen.bytes += bytes;
    seen.utf8 &= utf8;
}

struct Walk<'o> {
    observer: &'o mut Observer,
    sides: &'o mut [SideSummary; 2],
}

impl Visitor for Walk<'_> {
    #[inline]
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.sides[side as usize].keys
    }

    #[inline]
    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<&[u8]>) -> wire::Result<()> {
        self.observer.shape.has_value |= value.is_some();
        let role = match side {
            Side::Features => Role::Feature,
            Side::Lists => Role::Sequence,
        };
        let summary = &mut self.sides[side as usize];
        let Some((id, feature)) = id.and_then(|id| Some((id, summary.feature(id, role)?))) else {
            self.observer.shape.overflow = true;
            return Ok(());
        };
        // Once a value was no text, the next need not be looked at.
        let utf8 = feature.kinds[Kind::Bytes as usize].as_ref().is_none_or(|seen| seen.utf8);
        let message = value.unwrap_or_default();
        let seen = match side {
            Side::Features => Seen { side, id, list: one(message, utf8)?, steps: None },
            Side::Lists => Seen { side, id, list: List::UNSET, steps: Some(steps(message, utf8)?) },
        };
        self.note(seen);
        Ok(())
    }

    fn lists(&mut self) {
        self.observer.shape.has_lists = true;
    }

    fn foreign(&mut self, field: u32) -> wire::Result<()> {
        self.observer.shape.foreign = Some(field);
        Ok(())
    }
}

impl Walk<'_> {
    /// A feature that is given again replaces what was given before.
    #[inline]
    fn note(&mut self, seen: Seen) {
        if self.sides[seen.side as usize].is_first_in_record(seen.id) {
            self.observer.seen.push(seen);
        } else if let Some(held) =
            self.observer.seen.iter_mut().find(|held| (held.side, held.id) == (seen.side, seen.id))
        {
            *held = seen;
        }
    }
}

#[inline]
fn one(message: &[u8], utf8: bool) -> wire::Result<List> {
    walk::feature(message, |feature| match feature {
        None => Ok(List::UNSET),
        Some((kind, body)) => list(kind, body, utf8),
    })
}

fn steps(message: &[u8], utf8: bool) -> wire::Result<Vec<List>> {
    let mut steps = Vec::new();
    walk::steps(message, |step| {
        steps.push(one(step, utf8)?);
        Ok(())
    })?;
    Ok(steps)
}

#[inline]
fn list(kind: Kind, body: &[u8], utf8: bool) -> wire::Result<List> {
    let (mut len, mut bytes, mut utf8) = (0, 0, utf8);
    match kind {
        Kind::Bytes => walk::bytes_values(body, |value| {
            len += 1;
            bytes += value.len() as u64;
            // Most values are short, and most text is ASCII: that is told faster than UTF-8 in general.
            utf8 = utf8 && (value.is_ascii() || simdutf8::basic::from_utf8(value).is_ok());
            Ok(())
        })?,
        Kind::Float => walk::float_pieces(body, |piece| {
            len += match piece {
                Numbers::Packed(bytes) => bytes.len() as u64 / 4,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?,
        Kind::Int64 => walk::int64_pieces(body, |piece| {
            len += match piece {
                Numbers::Packed(bytes) => wire::count_varints(bytes)? as u64,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?,
    }
    Ok(List { len, bytes, kind: Some(kind), utf8 })
}
