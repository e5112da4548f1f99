//! One record's contribution to a summary. A record counts whole or not at all: what a walk sees is noted first, and
//! added once the record has turned out to parse.

use super::{FeatureSummary, KindSummary, Place, SideSummary};
use crate::{
    WireError,
    keys::Keys,
    schema::{Kind, Role},
    walk::{self, Message, Numbers, Side, Visitor},
    wire,
};

/// What a record has of one feature.
#[derive(Debug)]
enum Seen {
    Unset,
    List(Kind, List),
    Steps(Box<Steps>),
}

#[derive(Clone, Copy, Debug)]
struct List {
    len: u64,
    bytes: u64,
    utf8: bool,
}

#[derive(Debug, Default)]
struct Steps {
    count: u64,
    unset: u64,
    lists: Vec<(Kind, List)>,
}

/// What the records seen so far are besides their features.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// Some feature's map entry has a value, as all entries have that TensorFlow wrote.
    pub(super) has_value: bool,
    /// A record has feature lists.
    pub(super) has_lists: bool,
    /// A record has a field that neither message has.
    pub(super) has_foreign: bool,
    /// A name was met that is one too many to remember.
    pub(super) overflow: bool,
}

/// Walks records for a summary, and holds what one record has until it is added.
#[derive(Debug, Default)]
pub(super) struct Observer {
    pub(super) shape: Shape,
    seen: Vec<(Side, u32, Seen)>,
}

impl Observer {
    /// Adds one record's features to `sides`.
    pub(super) fn record(&mut self, data: &[u8], sides: &mut [SideSummary; 2], place: Place) -> Result<(), WireError> {
        self.seen.clear();
        for side in sides.iter_mut() {
            side.turn += 1;
        }
        walk::record(data, true, &mut Walk { observer: self, sides })?;
        for (side, id, seen) in self.seen.drain(..) {
            let side = &mut sides[side as usize];
            if let Some(feature) = side.features.get_mut(id as usize) {
                add(feature, seen, place);
            }
        }
        Ok(())
    }
}

fn add(feature: &mut FeatureSummary, seen: Seen, place: Place) {
    feature.present += 1;
    match seen {
        Seen::Unset => feature.unset += 1,
        Seen::List(kind, list) => add_list(feature, kind, list, place),
        Seen::Steps(steps) => {
            let (min, max) = feature.steps.unwrap_or((steps.count, steps.count));
            feature.steps = Some((min.min(steps.count), max.max(steps.count)));
            feature.unset += steps.unset;
            steps.lists.into_iter().for_each(|(kind, list)| add_list(feature, kind, list, place));
        }
    }
}

fn add_list(feature: &mut FeatureSummary, kind: Kind, List { len, bytes, utf8 }: List, first: Place) {
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

impl<'a> Visitor<'a> for Walk<'_> {
    #[inline]
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.sides[side as usize].keys
    }

    #[inline]
    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<Message<'a>>) -> wire::Result<()> {
        self.observer.shape.has_value |= value.is_some();
        self.observer.shape.has_lists |= side == Side::Lists;
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
            Side::Features => one(&message, utf8)?,
            Side::Lists => Seen::Steps(Box::new(steps(&message, utf8)?)),
        };
        self.note(side, id, seen);
        Ok(())
    }

    fn foreign(&mut self, _field: u32) -> wire::Result<()> {
        self.observer.shape.has_foreign = true;
        Ok(())
    }
}

impl Walk<'_> {
    /// A feature that is given again replaces what was given before.
    fn note(&mut self, side: Side, id: u32, seen: Seen) {
        if self.sides[side as usize].is_first_in_record(id) {
            self.observer.seen.push((side, id, seen));
        } else if let Some(held) = self.observer.seen.iter_mut().find(|held| held.0 == side && held.1 == id) {
            held.2 = seen;
        }
    }
}

#[inline]
fn one(message: &[u8], utf8: bool) -> wire::Result<Seen> {
    Ok(match walk::feature(message)? {
        None => Seen::Unset,
        Some((kind, body)) => Seen::List(kind, list(kind, &body, utf8)?),
    })
}

fn steps(message: &[u8], utf8: bool) -> wire::Result<Steps> {
    let mut steps = Steps::default();
    walk::steps(message, |step| {
        steps.count += 1;
        match one(step, utf8)? {
            Seen::List(kind, list) => steps.lists.push((kind, list)),
            Seen::Unset | Seen::Steps(_) => steps.unset += 1,
        }
        Ok(())
    })?;
    Ok(steps)
}

#[inline]
fn list(kind: Kind, body: &[u8], utf8: bool) -> wire::Result<List> {
    let mut list = List { len: 0, bytes: 0, utf8 };
    match kind {
        Kind::Bytes => walk::bytes_values(body, |value| {
            list.len += 1;
            list.bytes += value.len() as u64;
            list.utf8 = list.utf8 && simdutf8::basic::from_utf8(value).is_ok();
            Ok(())
        })?,
        Kind::Float => walk::float_pieces(body, |piece| {
            list.len += match piece {
                Numbers::Packed(bytes) => bytes.len() as u64 / 4,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?,
        Kind::Int64 => walk::int64_pieces(body, |piece| {
            list.len += match piece {
                Numbers::Packed(bytes) => wire::count_varints(bytes)? as u64,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?,
    }
    Ok(list)
}
