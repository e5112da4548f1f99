//! WALK: one pass over a record's wire that tells a visitor of each feature and where its value lies.
//!
//! Everything that is particular to the messages of `tensorflow/core/example/example.proto` and `feature.proto` is here:
//! the maps (an entry given again wins), submessages given in pieces (they merge, and merging messages is joining their
//! bytes), and the oneof (the last kind wins). Nothing is decoded, and what nobody wants is stepped over.

use std::borrow::Cow;

use crate::{
    Limits,
    error::WireError,
    keys::Keys,
    schema::Kind,
    wire::{self, LEN, Result},
};

/// Tag of field 1 of any message, length-delimited.
const FIELD_1: u8 = 0x0a;

/// Which map of a record a feature stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `Example.features`, or `SequenceExample.context`: the same field.
    Features,
    /// `SequenceExample.feature_lists`
    Lists,
}

/// The bytes of a message that may come in pieces: where they stand, or joined.
type Joined<'a> = Cow<'a, [u8]>;

/// What a walk tells of. The walk calls it for every map entry, in the order of the wire.
pub(crate) trait Visitor {
    /// The names of one side, by which entries are looked up.
    fn keys(&mut self, side: Side) -> &mut Keys;

    /// A feature by its number (`None`: one too many to be remembered). `value` is `None` where the entry has no value;
    /// it lies in the record's data, unless it had to be joined from pieces.
    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<&[u8]>) -> Result<()>;

    /// The record has `feature_lists`, empty or not.
    fn lists(&mut self) {}

    /// A field of the record that is none of the features'.
    fn foreign(&mut self, field: u32) -> Result<()>;
}

/// Walks one record. `lists` tells whether field 2 is `feature_lists`, or as foreign as any other.
pub(crate) fn record<V: Visitor>(data: &[u8], lists: bool, visitor: &mut V) -> Result<()> {
    let Limits { record_features, nesting, .. } = *visitor.keys(Side::Features).limits();
    // A map entry takes two bytes at least.
    if data.len() / 2 > record_features && count_entries(data, lists, nesting)? > record_features {
        return Err(WireError::ManyFeatures);
    }
    visitor.keys(Side::Features).begin();
    if lists {
        visitor.keys(Side::Lists).begin();
    }
    let mut rest = data;
    while !rest.is_empty() {
        match wire::tag(&mut rest)? {
            (1, LEN) => map(wire::bytes(&mut rest)?, Side::Features, visitor)?,
            (2, LEN) if lists => {
                visitor.lists();
                map(wire::bytes(&mut rest)?, Side::Lists, visitor)?;
            }
            tag => {
                visitor.foreign(tag.0)?;
                wire::skip(&mut rest, tag, nesting)?;
            }
        }
    }
    Ok(())
}

/// The map entries of a record.
#[cold]
pub(crate) fn count_entries(data: &[u8], lists: bool, nesting: usize) -> Result<usize> {
    let mut count = 0;
    entries(data, lists, nesting, |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// The length of the longest name of a feature of a record.
#[cold]
pub(crate) fn longest_key(data: &[u8], lists: bool, nesting: usize) -> usize {
    let mut longest = 0;
    // What stands before a field that does not parse counts.
    let _ = entries(data, lists, nesting, |_, entry| {
        longest = longest.max(read_entry(entry, nesting)?.0.len());
        Ok(())
    });
    longest
}

/// The first feature of a record that has more values than there may be: how many, and its name.
#[cold]
pub(crate) fn long_feature(data: &[u8], lists: bool, limits: &Limits) -> Option<(usize, String)> {
    let nesting = limits.nesting;
    let mut found = None;
    // As above.
    let _ = entries(data, lists, nesting, |side, entry| {
        let (key, value) = read_entry(entry, nesting)?;
        let value = value.as_deref().unwrap_or_default();
        let count = match side {
            Side::Features => count_feature(value, nesting),
            Side::Lists => count_steps(value, nesting),
        };
        // One that nobody has looked at may not parse.
        let count = count.unwrap_or(0);
        if count > limits.values {
            found.get_or_insert_with(|| (count, String::from_utf8_lossy(key).into_owned()));
        }
        Ok(())
    });
    found
}

/// Calls `then` with the bytes of each map entry of a record.
fn entries<'a>(
    mut rest: &'a [u8],
    lists: bool,
    nesting: usize,
    mut then: impl FnMut(Side, &'a [u8]) -> Result<()>,
) -> Result<()> {
    while !rest.is_empty() {
        let side = match wire::tag(&mut rest)? {
            (1, LEN) => Side::Features,
            (2, LEN) if lists => Side::Lists,
            tag => {
                wire::skip(&mut rest, tag, nesting)?;
                continue;
            }
        };
        let mut map = wire::bytes(&mut rest)?;
        while !map.is_empty() {
            if odd_tag(&mut map, nesting)? {
                then(side, wire::bytes(&mut map)?)?;
            }
        }
    }
    Ok(())
}

/// Steps over an unknown field of a message that stands `depth` messages deep in its record.
fn skip(rest: &mut &[u8], field: wire::Tag, depth: usize, nesting: usize) -> Result<()> {
    wire::skip(rest, field, nesting.saturating_sub(depth))
}

/// Walks a message whose field 1 is a map.
fn map<V: Visitor>(mut rest: &[u8], side: Side, visitor: &mut V) -> Result<()> {
    loop {
        if visitor.keys(side).may_pass() {
            rest = visitor.keys(side).pass(rest);
        }
        if rest.is_empty() {
            return Ok(());
        }
        if let [FIELD_1, tail @ ..] = rest {
            rest = tail;
        } else if !odd_tag(&mut rest, visitor.keys(side).limits().nesting)? {
            continue;
        }
        entry(wire::bytes(&mut rest)?, side, visitor)?;
    }
}

/// Reads a tag of any form, and steps over its field where that is no map entry.
#[inline(never)]
fn odd_tag(rest: &mut &[u8], nesting: usize) -> Result<bool> {
    let tag = wire::tag(rest)?;
    if tag != (1, LEN) {
        skip(rest, tag, 1, nesting)?;
    }
    Ok(tag == (1, LEN))
}

#[inline(always)]
fn entry<V: Visitor>(entry: &[u8], side: Side, visitor: &mut V) -> Result<()> {
    if let Some((id, value)) = visitor.keys(side).guess(entry) {
        return visitor.feature(side, Some(id), Some(value));
    }
    odd_entry(entry, side, visitor)
}

/// Tells of a map entry that has another key than was expected, or another form.
#[inline(never)]
fn odd_entry<V: Visitor>(entry: &[u8], side: Side, visitor: &mut V) -> Result<()> {
    let (key, value) = read_entry(entry, visitor.keys(side).limits().nesting)?;
    let id = visitor.keys(side).find(key)?;
    visitor.feature(side, id, value.as_deref())
}

/// A map entry's key and value: absent ones have their default, repeated keys replace, repeated values merge.
fn read_entry(mut rest: &[u8], nesting: usize) -> Result<(&[u8], Option<Joined<'_>>)> {
    let mut key = &[][..];
    let mut value = None;
    while !rest.is_empty() {
        match wire::tag(&mut rest)? {
            (1, LEN) => {
                // A key that another one replaces has to be UTF-8 as well.
                simdutf8::basic::from_utf8(key).map_err(|_| WireError::Key)?;
                key = wire::bytes(&mut rest)?;
            }
            (2, LEN) => merge(&mut value, wire::bytes(&mut rest)?),
            tag => skip(&mut rest, tag, 2, nesting)?,
        }
    }
    Ok((key, value))
}

/// Adds another piece of a message.
fn merge<'a>(message: &mut Option<Joined<'a>>, piece: &'a [u8]) {
    match message {
        Some(message) => message.to_mut().extend_from_slice(piece),
        None => *message = Some(Cow::Borrowed(piece)),
    }
}

/// Reads a `Feature`, and calls `then` with what it holds: the body of its list, or `None` where no kind is set.
#[inline]
pub(crate) fn feature<R>(
    message: &[u8],
    nesting: usize,
    then: impl FnOnce(Option<(Kind, &[u8])>) -> Result<R>,
) -> Result<R> {
    match plain_feature(message) {
        Some(list) => then(Some(list)),
        None => then(odd_feature(message, nesting)?.as_ref().map(|(kind, body)| (*kind, &**body))),
    }
}

/// What a `Feature` holds whose list is all of it, as every writer writes it.
#[inline(always)]
pub(crate) fn plain_feature(message: &[u8]) -> Option<(Kind, &[u8])> {
    let (tag, rest) = message.split_first()?;
    let kind = match tag {
        0x0a => Kind::Bytes,
        0x12 => Kind::Float,
        0x1a => Kind::Int64,
        _ => return None,
    };
    Some((kind, wire::last_bytes(rest)?))
}

/// Reads a `Feature` of any form: a kind that follows itself merges, one that follows another replaces it.
#[cold]
fn odd_feature(mut rest: &[u8], nesting: usize) -> Result<Option<(Kind, Joined<'_>)>> {
    let mut held: Option<(Kind, Option<Joined<'_>>)> = None;
    while !rest.is_empty() {
        let kind = match wire::tag(&mut rest)? {
            (1, LEN) => Kind::Bytes,
            (2, LEN) => Kind::Float,
            (3, LEN) => Kind::Int64,
            tag => {
                skip(&mut rest, tag, 3, nesting)?;
                continue;
            }
        };
        let piece = wire::bytes(&mut rest)?;
        match &mut held {
            Some((last, body)) if *last == kind => merge(body, piece),
            _ => held = Some((kind, Some(Cow::Borrowed(piece)))),
        }
    }
    Ok(held.and_then(|(kind, body)| Some((kind, body?))))
}

/// Calls `step` with each `Feature` of a `FeatureList`.
pub(crate) fn steps<'a>(
    mut rest: &'a [u8],
    nesting: usize,
    mut step: impl FnMut(&'a [u8]) -> Result<()>,
) -> Result<()> {
    while !rest.is_empty() {
        match wire::tag(&mut rest)? {
            (1, LEN) => step(wire::bytes(&mut rest)?)?,
            tag => skip(&mut rest, tag, 3, nesting)?,
        }
    }
    Ok(())
}

/// Calls `value` with each value of a `BytesList`.
#[inline]
pub(crate) fn bytes_values<'a>(
    mut rest: &'a [u8],
    nesting: usize,
    mut value: impl FnMut(&'a [u8]) -> Result<()>,
) -> Result<()> {
    while !rest.is_empty() {
        match wire::tag(&mut rest)? {
            (1, LEN) => value(wire::bytes(&mut rest)?)?,
            tag => skip(&mut rest, tag, 4, nesting)?,
        }
    }
    Ok(())
}

/// A piece of a list of numbers: many packed together, or one alone.
pub(crate) enum Numbers<'a, T> {
    /// The values' bytes, one after the other.
    Packed(&'a [u8]),
    /// One value with a tag of its own.
    One(T),
}

/// Calls `piece` with each piece of an `Int64List`.
#[inline]
pub(crate) fn int64_pieces<'a>(
    body: &'a [u8],
    nesting: usize,
    mut piece: impl FnMut(Numbers<'a, u64>) -> Result<()>,
) -> Result<()> {
    if let Some(packed) = wire::sole(body, FIELD_1) {
        return piece(Numbers::Packed(packed));
    }
    let mut rest = body;
    while !rest.is_empty() {
        match wire::tag(&mut rest)? {
            (1, LEN) => piece(Numbers::Packed(wire::bytes(&mut rest)?))?,
            (1, wire::VARINT) => piece(Numbers::One(wire::varint(&mut rest)?))?,
            tag => skip(&mut rest, tag, 4, nesting)?,
        }
    }
    Ok(())
}

/// Calls `piece` with each piece of a `FloatList`. A packed one is a multiple of 4 bytes long.
#[inline]
pub(crate) fn float_pieces<'a>(
    body: &'a [u8],
    nesting: usize,
    mut piece: impl FnMut(Numbers<'a, [u8; 4]>) -> Result<()>,
) -> Result<()> {
    if let Some(bytes) = wire::sole(body, FIELD_1) {
        return piece(Numbers::Packed(whole_floats(bytes)?));
    }
    let mut rest = body;
    while !rest.is_empty() {
        match wire::tag(&mut rest)? {
            (1, LEN) => piece(Numbers::Packed(whole_floats(wire::bytes(&mut rest)?)?))?,
            (1, wire::FIXED32) => piece(Numbers::One(wire::fixed32(&mut rest)?))?,
            tag => skip(&mut rest, tag, 4, nesting)?,
        }
    }
    Ok(())
}

/// Reads a list for nothing but its form.
pub(crate) fn check_list(kind: Kind, body: &[u8], nesting: usize) -> Result<()> {
    match kind {
        Kind::Bytes => bytes_values(body, nesting, |_| Ok(())),
        Kind::Float => float_pieces(body, nesting, |_| Ok(())),
        Kind::Int64 => int64_pieces(body, nesting, |piece| match piece {
            Numbers::Packed(packed) => wire::count_varints(packed).map(drop),
            Numbers::One(_) => Ok(()),
        }),
    }
}

/// Refuses a list of more values than there may be.
#[inline]
pub(crate) fn check_values(kind: Kind, body: &[u8], limits: &Limits) -> Result<()> {
    // A value takes a byte at least.
    let is_long = body.len() > limits.values && count_values(kind, body, limits.nesting)? > limits.values;
    if is_long { Err(WireError::ManyValues) } else { Ok(()) }
}

#[cold]
fn count_values(kind: Kind, body: &[u8], nesting: usize) -> Result<usize> {
    let mut count = 0;
    match kind {
        Kind::Bytes => bytes_values(body, nesting, |_| {
            count += 1;
            Ok(())
        })?,
        Kind::Float => float_pieces(body, nesting, |piece| {
            count += match piece {
                Numbers::Packed(bytes) => bytes.len() / 4,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?,
        Kind::Int64 => int64_pieces(body, nesting, |piece| {
            count += match piece {
                Numbers::Packed(bytes) => wire::count_varints(bytes)?,
                Numbers::One(_) => 1,
            };
            Ok(())
        })?,
    }
    Ok(count)
}

/// Refuses a feature list of more steps and values than there may be.
#[inline]
pub(crate) fn check_feature_list(message: &[u8], limits: &Limits) -> Result<()> {
    let is_long = message.len() > limits.values && count_steps(message, limits.nesting)? > limits.values;
    if is_long { Err(WireError::ManyValues) } else { Ok(()) }
}

#[cold]
fn count_steps(message: &[u8], nesting: usize) -> Result<usize> {
    let mut count = 0;
    steps(message, nesting, |step| {
        count += 1 + count_feature(step, nesting)?;
        Ok(())
    })?;
    Ok(count)
}

/// The values of a `Feature`.
fn count_feature(message: &[u8], nesting: usize) -> Result<usize> {
    feature(message, nesting, |list| list.map_or(Ok(0), |(kind, body)| count_values(kind, body, nesting)))
}

/// A list's body up to its first `most` values: the fields before the one that they end in, and, where that is a packed
/// piece with more values than these, the bytes of its first ones. What comes later is not looked at.
pub(crate) fn first_values(kind: Kind, body: &[u8], most: usize, nesting: usize) -> Result<(&[u8], &[u8])> {
    let (mut rest, mut left) = (body, most);
    while !rest.is_empty() {
        let before = body.get(..body.len() - rest.len()).unwrap_or_default();
        if left == 0 {
            return Ok((before, &[]));
        }
        let tag = wire::tag(&mut rest)?;
        match (kind, tag) {
            (Kind::Int64 | Kind::Float, (1, LEN)) => match end_of_values(kind, wire::bytes(&mut rest)?, left) {
                Ok(packed) => return Ok((before, packed)),
                Err(count) => left -= count,
            },
            (Kind::Bytes, (1, LEN)) | (Kind::Int64, (1, wire::VARINT)) | (Kind::Float, (1, wire::FIXED32)) => {
                left -= 1;
                skip(&mut rest, tag, 4, nesting)?;
            }
            _ => skip(&mut rest, tag, 4, nesting)?,
        }
    }
    Ok((body, &[]))
}

/// The bytes of so many packed values; how many there are, where they are fewer.
fn end_of_values(kind: Kind, packed: &[u8], values: usize) -> std::result::Result<&[u8], usize> {
    let mut count = 0;
    for end in 1..=packed.len() {
        count += usize::from(match kind {
            Kind::Float => end % 4 == 0,
            Kind::Int64 | Kind::Bytes => packed.get(end - 1).is_some_and(|byte| *byte < 0x80),
        });
        if count == values {
            return Ok(packed.get(..end).unwrap_or_default());
        }
    }
    Err(count)
}

fn whole_floats(packed: &[u8]) -> Result<&[u8]> {
    if packed.len().is_multiple_of(4) { Ok(packed) } else { Err(WireError::PackedLength) }
}
