//! The walk: one pass over the wire bytes of a record that passes each feature to a [`Visitor`],
//! with the place of its value.
//!
//! All rules that follow from the messages of `tensorflow/core/example/example.proto` and
//! `feature.proto` are here. A `Feature` of an `Example` is nested like this (an entry of a map is
//! a message with `key = 1` and `value = 2`):
//!
//! ```text
//! 0a len                         Example.features                      field 1 of the record
//!    0a len                      Features.feature: a map entry         field 1 of the map
//!       0a len "age"             key
//!       12 len                   value: Feature
//!          1a len                Feature.int64_list (0a: bytes_list, 12: float_list)
//!             0a len 2a          Int64List.value, packed: 42
//! ```
//!
//! A `SequenceExample` has its context in field 1, in the same form, and `feature_lists` in field
//! 2: there the value of an entry is a `FeatureList`, whose field 1 is a `Feature` for each step.
//!
//! As protobuf's parser does, the walk takes the last of several entries with one key, concatenates
//! a message that comes in several pieces, and takes the last kind that is set in the `oneof` of a
//! `Feature`. It decodes no value, and skips unknown fields.

use std::borrow::Cow;

use super::{
    keys::Keys,
    wire::{self, LEN, Result},
};
use crate::{Limits, WireError, schema::Kind, slices};

/// Tag of a length-delimited field 1 of any message.
const FIELD_1: u8 = 0x0a;

/// The map of a record that a feature is in. Also an index: 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `Example.features` or `SequenceExample.context`, which have the same field number.
    Features,
    /// `SequenceExample.feature_lists`.
    Lists,
}

/// The bytes of a message: borrowed from the record, or concatenated from several pieces.
type Joined<'a> = Cow<'a, [u8]>;

/// Receives the features of a record, one call for each map entry, in the order of the wire.
pub(crate) trait Visitor {
    /// Returns the names of one map, by which keys are looked up.
    fn keys(&mut self, side: Side) -> &mut Keys;

    /// Receives a feature: the number of its key, or `None` if the limits allow no further name;
    /// and the bytes of its `Feature` or `FeatureList`, or `None` if the entry has no value. The
    /// bytes are part of the record's data, unless they come in several pieces.
    ///
    /// # Errors
    /// [`WireError`] for a value that does not parse or exceeds a limit; it ends the walk.
    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<&[u8]>) -> Result<()>;

    /// Receives the presence of `feature_lists`, which may be empty.
    fn lists(&mut self) {}

    /// Receives the number of a field of the record that its message type does not define.
    ///
    /// # Errors
    /// [`WireError`]; it ends the walk.
    fn foreign(&mut self, field: u32) -> Result<()>;
}

/// Walks one record. `lists` is true if field 2 is `feature_lists`; otherwise it is an unknown
/// field.
///
/// # Errors
/// [`WireError`] for a record that does not parse or exceeds a limit.
pub(crate) fn record<V: Visitor>(data: &[u8], lists: bool, visitor: &mut V) -> Result<()> {
    record_with(&[], data, lists, visitor)
}

/// Walks one record, and before it the features `shared`, an Example that each of several records
/// begins with.
///
/// # Errors
/// [`WireError`] for a record that does not parse or exceeds a limit.
pub(crate) fn record_with<V: Visitor>(
    shared: &[u8],
    data: &[u8],
    lists: bool,
    visitor: &mut V,
) -> Result<()> {
    let Limits {
        record_features,
        nesting,
        ..
    } = *visitor.keys(Side::Features).limits();
    // An entry takes two bytes or more, so that short records need no count.
    if data.len() / 2 > record_features && count_entries(data, lists, nesting)? > record_features {
        return Err(WireError::ManyFeatures);
    }
    visitor.keys(Side::Features).begin();
    if lists {
        visitor.keys(Side::Lists).begin();
    }
    for mut rest in [shared, data] {
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
    }
    Ok(())
}

/// Returns the number of map entries of a record.
///
/// # Errors
/// [`WireError`] for a record whose maps do not parse.
#[cold]
pub(crate) fn count_entries(data: &[u8], lists: bool, nesting: usize) -> Result<usize> {
    let mut count = 0;
    entries(data, lists, nesting, |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Returns the length in bytes of the longest key of a record, up to the first field that does not
/// parse.
#[cold]
pub(crate) fn longest_key(data: &[u8], lists: bool, nesting: usize) -> usize {
    let mut longest = 0;
    // Parse errors end the iteration; the keys before them count.
    let _ = entries(data, lists, nesting, |_, entry| {
        longest = longest.max(read_entry(entry, nesting)?.0.len());
        Ok(())
    });
    longest
}

/// Returns the first feature of a record with more values than [`Limits::values`]: their number,
/// and the name.
#[cold]
pub(crate) fn long_feature(data: &[u8], lists: bool, limits: &Limits) -> Option<(usize, String)> {
    let nesting = limits.nesting;
    let mut found = None;
    // Parse errors end the iteration; the features before them count.
    let _ = entries(data, lists, nesting, |side, entry| {
        let (key, value) = read_entry(entry, nesting)?;
        let value = value.as_deref().unwrap_or_default();
        let count = match side {
            Side::Features => count_feature(value, nesting),
            Side::Lists => count_steps(value, nesting),
        };
        // A feature that no column reads may not parse.
        let count = count.unwrap_or(0);
        if count > limits.values {
            found.get_or_insert_with(|| (count, String::from_utf8_lossy(key).into_owned()));
        }
        Ok(())
    });
    found
}

/// Calls `then` with the map and the bytes of each map entry of a record.
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

/// Skips an unknown field of a message that is nested `depth` messages deep in its record.
///
/// Depths: 0 is the record, 1 the map, 2 an entry, 3 a `Feature` or a `FeatureList`, 4 a list of
/// values. The rest of [`Limits::nesting`] is the allowed depth of groups in the field.
fn skip(rest: &mut &[u8], field: wire::Tag, depth: usize, nesting: usize) -> Result<()> {
    wire::skip(rest, field, nesting.saturating_sub(depth))
}

/// Walks a map: a message whose field 1 has the entries.
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

/// Reads a tag of any form. Returns whether it is that of a map entry; otherwise its field is
/// skipped.
#[inline(never)]
fn odd_tag(rest: &mut &[u8], nesting: usize) -> Result<bool> {
    let tag = wire::tag(rest)?;
    if tag != (1, LEN) {
        skip(rest, tag, 1, nesting)?;
    }
    Ok(tag == (1, LEN))
}

/// Passes a map entry to the visitor, by the guess of its key if that matches.
#[inline(always)]
fn entry<V: Visitor>(entry: &[u8], side: Side, visitor: &mut V) -> Result<()> {
    if let Some((id, value)) = visitor.keys(side).guess(entry) {
        return visitor.feature(side, Some(id), Some(value));
    }
    odd_entry(entry, side, visitor)
}

/// Passes a map entry to the visitor that has another key than the guesses, or is not in the usual
/// form.
#[inline(never)]
fn odd_entry<V: Visitor>(entry: &[u8], side: Side, visitor: &mut V) -> Result<()> {
    let (key, value) = read_entry(entry, visitor.keys(side).limits().nesting)?;
    let id = visitor.keys(side).find(key)?;
    visitor.feature(side, id, value.as_deref())
}

/// Returns the key and the value of a map entry. A missing key is empty; the last key counts, and
/// the pieces of the value are concatenated.
///
/// ```text
/// 0a 01 'a'   12 02 P1   0a 01 'b'   12 03 P2        key "b", value P1 ++ P2
/// 12 02 P1                                           key "" (the default of a string), value P1
/// 0a 01 'a'                                          key "a", no value: a Feature without a kind
/// ```
fn read_entry(mut rest: &[u8], nesting: usize) -> Result<(&[u8], Option<Joined<'_>>)> {
    let mut key = &[][..];
    let mut value = None;
    while !rest.is_empty() {
        match wire::tag(&mut rest)? {
            (1, LEN) => {
                // A key that is replaced must be UTF-8, too.
                simdutf8::basic::from_utf8(key).map_err(|_| WireError::Key)?;
                key = wire::bytes(&mut rest)?;
            }
            (2, LEN) => merge(&mut value, wire::bytes(&mut rest)?),
            tag => skip(&mut rest, tag, 2, nesting)?,
        }
    }
    Ok((key, value))
}

/// Adds a piece of a message to those before it.
fn merge<'a>(message: &mut Option<Joined<'a>>, piece: &'a [u8]) {
    match message {
        Some(message) => message.to_mut().extend_from_slice(piece),
        None => *message = Some(Cow::Borrowed(piece)),
    }
}

/// Parses a `Feature`, and calls `then` with its kind and the body of its list; `None` if no kind
/// is set.
///
/// # Errors
/// [`WireError`] for a message that does not parse, and the errors of `then`.
#[inline]
pub(crate) fn feature<R>(
    message: &[u8],
    nesting: usize,
    then: impl FnOnce(Option<(Kind, &[u8])>) -> Result<R>,
) -> Result<R> {
    match plain_feature(message) {
        Some(list) => then(Some(list)),
        None => then(
            odd_feature(message, nesting)?
                .as_ref()
                .map(|(kind, body)| (*kind, &**body)),
        ),
    }
}

/// Returns the kind and the list of a `Feature` that has exactly one field, as writers make it;
/// `None` for any other form.
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

/// Parses a `Feature` of any form. A kind that follows the same kind is concatenated with it; one
/// that follows another replaces it.
///
/// ```text
/// 0a len B1   0a len B2                bytes_list: B1 ++ B2
/// 0a len B1   1a len I1                int64_list: I1
/// 0a len B1   1a len I1   0a len B2    bytes_list: B2, since I1 has replaced B1
/// ```
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

/// Calls `step` with the bytes of each `Feature` of a `FeatureList`.
///
/// # Errors
/// [`WireError`] for a message that does not parse, and the errors of `step`.
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
///
/// # Errors
/// [`WireError`] for a list that does not parse, and the errors of `value`.
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

/// A field of a list of numbers: packed values, or a single one. Parsers must accept both (protobuf
/// encoding, "Packed Repeated Fields"), also mixed.
pub(crate) enum Numbers<'a, T> {
    /// The bytes of the values, one after the other.
    Packed(&'a [u8]),
    /// A value in a field of its own.
    One(T),
}

/// Calls `piece` with each field of an `Int64List`. Packed varints are not checked.
///
/// # Errors
/// [`WireError`] for a list that does not parse, and the errors of `piece`.
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

/// Calls `piece` with each field of a `FloatList`. The length of a packed one is a multiple of 4
/// bytes.
///
/// # Errors
/// [`WireError`] for a list that does not parse, and the errors of `piece`.
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

/// Parses a list without keeping its values.
///
/// # Errors
/// [`WireError`] for a list that does not parse.
///
/// The varints of a packed `Int64List` are checked for their lengths, too.
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

/// Checks that a list has no more than [`Limits::values`] values. Counts them only if the body has
/// more bytes than that, since a value takes a byte or more.
///
/// # Errors
/// [`WireError::ManyValues`], or the error of a list that does not parse.
#[inline]
pub(crate) fn check_values(kind: Kind, body: &[u8], limits: &Limits) -> Result<()> {
    // A value takes at least one byte.
    let is_long =
        body.len() > limits.values && count_values(kind, body, limits.nesting)? > limits.values;
    if is_long {
        Err(WireError::ManyValues)
    } else {
        Ok(())
    }
}

/// Returns the number of values of a list.
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

/// Checks that a feature list has no more than [`Limits::values`] steps and values together.
///
/// # Errors
/// [`WireError::ManyValues`], or the error of a feature list that does not parse.
#[inline]
pub(crate) fn check_feature_list(message: &[u8], limits: &Limits) -> Result<()> {
    let is_long =
        message.len() > limits.values && count_steps(message, limits.nesting)? > limits.values;
    if is_long {
        Err(WireError::ManyValues)
    } else {
        Ok(())
    }
}

/// Returns the number of steps and values of a feature list.
///
/// A step counts as one, so that many empty steps are limited, too.
#[cold]
fn count_steps(message: &[u8], nesting: usize) -> Result<usize> {
    let mut count = 0;
    steps(message, nesting, |step| {
        count += 1 + count_feature(step, nesting)?;
        Ok(())
    })?;
    Ok(count)
}

/// Returns the number of values of a `Feature`.
fn count_feature(message: &[u8], nesting: usize) -> Result<usize> {
    feature(message, nesting, |list| {
        list.map_or(Ok(0), |(kind, body)| count_values(kind, body, nesting))
    })
}

/// Cuts the body of a list to its first `most` values. Returns the fields before the one that the
/// cut is in, and, if that field is packed, the bytes of its first values. The rest of the list is
/// not parsed.
///
/// # Errors
/// [`WireError`] for a list that does not parse up to the cut.
///
/// With `most` = 3 of the values 1 | 2 3 4 | 5, of which the field in the middle is packed:
///
/// ```text
/// 08 01   0a 03 02 03 04   08 05
/// └─┬─┘         └─┬─┘
/// fields        packed values, to be written with a length of their own
/// ```
pub(crate) fn first_values(
    kind: Kind,
    body: &[u8],
    most: usize,
    nesting: usize,
) -> Result<(&[u8], &[u8])> {
    let mut rest = body;
    let mut left = most;
    while !rest.is_empty() {
        let before = slices::part(body, ..body.len() - rest.len());
        if left == 0 {
            return Ok((before, &[]));
        }
        let tag = wire::tag(&mut rest)?;
        match (kind, tag) {
            (Kind::Int64 | Kind::Float, (1, LEN)) => {
                match end_of_values(kind, wire::bytes(&mut rest)?, left) {
                    Ok(packed) => return Ok((before, packed)),
                    Err(count) => left -= count,
                }
            }
            (Kind::Bytes, (1, LEN))
            | (Kind::Int64, (1, wire::VARINT))
            | (Kind::Float, (1, wire::FIXED32)) => {
                left -= 1;
                skip(&mut rest, tag, 4, nesting)?;
            }
            _ => skip(&mut rest, tag, 4, nesting)?,
        }
    }
    Ok((body, &[]))
}

/// Returns the bytes of the first `values` packed values; as the error, the number of values if
/// there are fewer.
fn end_of_values(kind: Kind, packed: &[u8], values: usize) -> std::result::Result<&[u8], usize> {
    let mut count = 0;
    for end in 1..=packed.len() {
        count += usize::from(match kind {
            Kind::Float => end % 4 == 0,
            Kind::Int64 | Kind::Bytes => packed.get(end - 1).is_some_and(|byte| *byte < 0x80),
        });
        if count == values {
            return Ok(slices::part(packed, ..end));
        }
    }
    Err(count)
}

/// Checks that packed floats are complete.
fn whole_floats(packed: &[u8]) -> Result<&[u8]> {
    if packed.len().is_multiple_of(4) {
        Ok(packed)
    } else {
        Err(WireError::PackedLength)
    }
}
