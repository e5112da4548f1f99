//! Records in unusual forms of the protobuf wire, which no writer makes and every reader must
//! accept.
//!
//! The forms are: lists that are packed, unpacked, or in chunks; fields and map entries in any
//! order; unknown fields of every wire type at every level; repeated map keys, map values and
//! oneofs; submessages in pieces; varints that are longer than necessary. Readers must return the
//! model row. `prost` differs from TensorFlow on some forms, which [`Choices::for_prost`] leaves
//! out.
//!
//! [`Choices`] selects the form. After the last choice everything has the usual form, so that a
//! failing tape shrinks to the choices that matter.

use proptest::{collection::vec, prelude::*};

use crate::oracle::{ModelCell, ModelKind, ModelRow, ModelSide, ModelValue};

/// Selects forms, with one byte for each choice; 0 is the usual form.
#[derive(Clone, Debug)]
pub struct Choices<'t> {
    tape: std::slice::Iter<'t, u8>,
    prost: bool,
}

impl<'t> Choices<'t> {
    /// Creates the choices of this tape.
    pub fn new(tape: &'t [u8]) -> Self {
        Self {
            tape: tape.iter(),
            prost: false,
        }
    }

    /// Creates choices of forms that `prost` reads as TensorFlow does: without known fields of
    /// another wire type, and without varints of more than 64 bits.
    pub fn for_prost(tape: &'t [u8]) -> Self {
        Self {
            prost: true,
            ..Self::new(tape)
        }
    }

    /// Returns a number below `count`.
    fn pick(&mut self, count: usize) -> usize {
        self.tape
            .next()
            .map_or(0, |byte| usize::from(*byte) % count.max(1))
    }

    /// Returns true once in `one_in` times.
    fn odd(&mut self, one_in: usize) -> bool {
        self.pick(one_in) == one_in - 1
    }

    fn one_of<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        let at = self.pick(others.len() + 1);
        at.checked_sub(1)
            .and_then(|at| others.get(at))
            .copied()
            .unwrap_or(first)
    }
}

/// The bytes of [`Choices`], in hexadecimal in the output of a failing test.
#[derive(Clone, PartialEq, Eq)]
pub struct ChoiceTape(Vec<u8>);

impl std::ops::Deref for ChoiceTape {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for ChoiceTape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Generates tapes for [`Choices`]: some are short, some have unusual forms from the first record
/// on, and some only in later records.
pub fn tapes() -> impl Strategy<Value = ChoiceTape> {
    let random = prop_oneof![1 => vec(any::<u8>(), 0..100), 2 => vec(any::<u8>(), 0..4000)];
    let plain = prop_oneof![2 => Just(0), 1 => 0..400usize];
    (plain, random).prop_map(|(plain, random)| ChoiceTape([vec![0; plain], random].concat()))
}

/// A field with its tag. A message is a sequence of fields.
type Field = Vec<u8>;

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LEN: u64 = 2;
const GROUP: u64 = 3;
const END_GROUP: u64 = 4;
const FIXED32: u64 = 5;

/// The known fields of a message, each with its wire type.
type Known = &'static [(u64, u64)];

// Field 2 is not a field of an Example, but inference cannot know in advance that the record is not
// a SequenceExample.
const EXAMPLE: Known = &[(1, LEN), (2, LEN)];
const SEQUENCE_EXAMPLE: Known = &[(1, LEN), (2, LEN)];
const MAP: Known = &[(1, LEN)];
const ENTRY: Known = &[(1, LEN), (2, LEN)];
const FEATURE: Known = &[(1, LEN), (2, LEN), (3, LEN)];
const FEATURE_LIST: Known = &[(1, LEN)];
const BYTES_LIST: Known = &[(1, LEN)];
const FLOAT_LIST: Known = &[(1, LEN), (1, FIXED32)];
const INT64_LIST: Known = &[(1, LEN), (1, VARINT)];

/// Returns a record in one of its forms.
pub fn record(row: &ModelRow, sequence: bool, c: &mut Choices<'_>) -> Vec<u8> {
    let features = parts(1, map(row, ModelSide::Features, c), MAP, c);
    if !sequence {
        return message(features, EXAMPLE, c);
    }
    let lists = parts(2, map(row, ModelSide::Lists, c), MAP, c);
    let fields = interleave(features, lists, c);
    message(fields, SEQUENCE_EXAMPLE, c)
}

/// Returns the entries of a map, in an order in which the entry of each key follows its decoys.
fn map(row: &ModelRow, side: ModelSide, c: &mut Choices<'_>) -> Vec<Field> {
    let mut cells: Vec<_> = row.iter().filter(|((s, _), _)| *s == side).collect();
    if c.odd(2) {
        for last in (1..cells.len()).rev() {
            cells.swap(last - c.pick(last + 1), last);
        }
    }
    let mut entries = Vec::new();
    for ((_, name), cell) in cells {
        while c.odd(6) {
            let decoy = entry(name, &decoy_cell(side, c), c);
            entries.insert(c.pick(entries.len() + 1), decoy);
        }
        let entry = entry(name, cell, c);
        entries.push(entry);
    }
    entries
        .into_iter()
        .map(|entry| field(1, &entry, c))
        .collect()
}

fn decoy_cell(side: ModelSide, c: &mut Choices<'_>) -> ModelCell {
    match side {
        ModelSide::Features => ModelCell::One(decoy(c)),
        ModelSide::Lists => ModelCell::Steps((0..c.pick(3)).map(|_| decoy(c)).collect()),
    }
}

/// Returns a value that must not be read.
fn decoy(c: &mut Choices<'_>) -> ModelValue {
    match c.pick(6) {
        0 => ModelValue::Unset,
        1 => ModelValue::Int64(vec![-1, 99]),
        2 => ModelValue::Float(vec![0x4048_0000]),
        3 => ModelValue::Bytes(vec![b"decoy".to_vec(), vec![0xff]]),
        4 => ModelValue::Bytes(Vec::new()),
        _ => ModelValue::Int64(Vec::new()),
    }
}

/// Returns a map entry: its key, possibly after decoys, and its value, possibly in pieces. Either
/// is possibly left out if it is empty.
fn entry(name: &str, cell: &ModelCell, c: &mut Choices<'_>) -> Vec<u8> {
    let mut keys = Vec::new();
    if c.odd(10) {
        let decoy = c.one_of("a", &["b", "decoy", ""]);
        keys.push(field(1, decoy.as_bytes(), c));
    }
    if !(name.is_empty() && keys.is_empty() && c.odd(2)) {
        keys.push(field(1, name.as_bytes(), c));
    }
    let fields = match cell {
        ModelCell::One(value) => feature(value, c),
        ModelCell::Steps(steps) => feature_list(steps, c),
    };
    let values = if fields.is_empty() && !c.odd(2) {
        vec![field(2, &[], c)]
    } else {
        pieces(2, fields, c)
    };
    let fields = interleave(keys, values, c);
    message(fields, ENTRY, c)
}

/// Returns the fields of a `Feature`: its kind, possibly in pieces, and possibly after decoys,
/// which another kind replaces.
fn feature(value: &ModelValue, c: &mut Choices<'_>) -> Vec<Field> {
    let mut fields = Vec::new();
    if let Some(kind) = value.kind() {
        if c.odd(8) {
            let before = (0..c.pick(3)).map(|_| decoy(c)).collect::<Vec<_>>();
            let last = if kind == ModelKind::Float {
                ModelValue::Int64(vec![3])
            } else {
                ModelValue::Float(vec![1])
            };
            fields.extend(
                before
                    .iter()
                    .chain([&last])
                    .flat_map(|value| kind_fields(value, c)),
            );
        }
        fields.extend(kind_fields(value, c));
    }
    sprinkle(fields, FEATURE, c)
}

/// Returns the field of a value's kind, or several fields that merge.
fn kind_fields(value: &ModelValue, c: &mut Choices<'_>) -> Vec<Field> {
    let (number, mut pieces) = match value {
        ModelValue::Unset => return Vec::new(),
        ModelValue::Bytes(values) => (
            1,
            split(values, c)
                .iter()
                .map(|piece| bytes_list(piece, c))
                .collect::<Vec<_>>(),
        ),
        ModelValue::Float(values) => (
            2,
            split(values, c)
                .iter()
                .map(|piece| float_list(piece, c))
                .collect(),
        ),
        ModelValue::Int64(values) => (
            3,
            split(values, c)
                .iter()
                .map(|piece| int64_list(piece, c))
                .collect(),
        ),
    };
    if pieces.is_empty() {
        pieces.push(Vec::new());
    }
    pieces.iter().map(|piece| field(number, piece, c)).collect()
}

fn feature_list(steps: &[ModelValue], c: &mut Choices<'_>) -> Vec<Field> {
    let fields = steps
        .iter()
        .map(|step| field(1, &feature(step, c).concat(), c))
        .collect();
    sprinkle(fields, FEATURE_LIST, c)
}

fn bytes_list(values: &[Vec<u8>], c: &mut Choices<'_>) -> Vec<u8> {
    let fields = values.iter().map(|value| field(1, value, c)).collect();
    message(fields, BYTES_LIST, c)
}

fn float_list(values: &[u32], c: &mut Choices<'_>) -> Vec<u8> {
    let fields = numbers(values, FIXED32, |bits, _| bits.to_le_bytes().to_vec(), c);
    message(fields, FLOAT_LIST, c)
}

fn int64_list(values: &[i64], c: &mut Choices<'_>) -> Vec<u8> {
    let fields = numbers(values, VARINT, |value, c| long_varint(value as u64, c), c);
    message(fields, INT64_LIST, c)
}

/// Writes a list of numbers: packed, unpacked, or a mixture.
fn numbers<T: Copy>(
    values: &[T],
    wire: u64,
    write: impl Fn(T, &mut Choices<'_>) -> Vec<u8>,
    c: &mut Choices<'_>,
) -> Vec<Field> {
    let mut fields = Vec::new();
    for piece in split(values, c) {
        if c.odd(3) {
            fields.extend(
                piece
                    .iter()
                    .map(|value| [tag(1, wire, c), write(*value, c)].concat()),
            );
        } else {
            let packed = piece
                .iter()
                .flat_map(|value| write(*value, c))
                .collect::<Vec<_>>();
            fields.push(field(1, &packed, c));
        }
    }
    fields
}

/// Splits a list into pieces: usually one, or none for an empty list; sometimes several, also empty
/// ones.
fn split<'a, T>(items: &'a [T], c: &mut Choices<'_>) -> Vec<&'a [T]> {
    let mut pieces = Vec::new();
    let mut rest = items;
    while c.odd(5) {
        let (piece, tail) = rest.split_at(c.pick(rest.len() + 1));
        pieces.push(piece);
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// Returns a submessage of these fields in one piece, or in several pieces that merge; none if it
/// is empty.
fn pieces(number: u64, fields: Vec<Field>, c: &mut Choices<'_>) -> Vec<Field> {
    split(&fields, c)
        .iter()
        .map(|piece| field(number, &piece.concat(), c))
        .collect()
}

/// Does the same, with unknown fields in each piece.
fn parts(number: u64, fields: Vec<Field>, known: Known, c: &mut Choices<'_>) -> Vec<Field> {
    let fields = sprinkle(fields, known, c);
    pieces(number, fields, c)
}

/// Interleaves two sequences of fields, and keeps the order of each.
fn interleave(first: Vec<Field>, second: Vec<Field>, c: &mut Choices<'_>) -> Vec<Field> {
    let mut first = first.into_iter();
    let mut second = second.into_iter();
    let mut fields = Vec::new();
    let swap = c.odd(3);
    while first.len() > 0 && second.len() > 0 {
        let next = if c.odd(3) != swap {
            second.next()
        } else {
            first.next()
        };
        fields.extend(next);
    }
    fields.extend(first);
    fields.extend(second);
    fields
}

fn message(fields: Vec<Field>, known: Known, c: &mut Choices<'_>) -> Vec<u8> {
    sprinkle(fields, known, c).concat()
}

/// Inserts unknown fields at random positions.
fn sprinkle(fields: Vec<Field>, known: Known, c: &mut Choices<'_>) -> Vec<Field> {
    let mut sprinkled = Vec::new();
    for field in fields {
        while c.odd(10) {
            sprinkled.push(unknown(known, 0, c));
        }
        sprinkled.push(field);
    }
    while c.odd(10) {
        sprinkled.push(unknown(known, 0, c));
    }
    sprinkled
}

/// Returns a field that is unknown to a message with these known fields, because of its number or
/// its wire type.
fn unknown(known: Known, depth: usize, c: &mut Choices<'_>) -> Field {
    let wire = c.one_of(VARINT, &[FIXED64, LEN, GROUP, FIXED32]);
    let mut number = c.one_of(9, &[1, 2, 3, 4, 15, 16, 2047, 2048, (1 << 29) - 1]);
    let clash = |(field, its_wire): &(u64, u64)| *field == number && (c.prost || *its_wire == wire);
    if known.iter().any(clash) {
        number = 12;
    }
    let body = match wire {
        VARINT => long_varint(c.one_of(1, &[0, 300, u64::MAX]), c),
        FIXED64 => b"fixed 64".to_vec(),
        FIXED32 => b"four".to_vec(),
        GROUP => {
            let inner: Vec<_> = (0..c.pick(3))
                .filter(|_| depth < 4)
                .map(|_| unknown(&[], depth + 1, c))
                .collect();
            [inner.concat(), tag(number, END_GROUP, c)].concat()
        }
        _ => {
            // Looks like a map entry, is a truncated tag or the end of a group, or is empty.
            let body = c.one_of(
                &b"xyz"[..],
                &[
                    b"",
                    b"\x0a\x03\x0a\x01a",
                    b"\xff\xff\xff\xff\xff\xff",
                    b"\x0c",
                    b"\x00",
                ],
            );
            return field(number, body, c);
        }
    };
    [tag(number, wire, c), body].concat()
}

/// Returns a length-delimited field.
fn field(number: u64, body: &[u8], c: &mut Choices<'_>) -> Field {
    let length = varint(body.len() as u64, 10, c);
    [tag(number, LEN, c), length, body.to_vec()].concat()
}

fn tag(number: u64, wire: u64, c: &mut Choices<'_>) -> Vec<u8> {
    varint(number << 3 | wire, 5, c)
}

/// Returns a varint of up to 10 bytes. The tenth byte has one significant bit.
fn long_varint(value: u64, c: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = varint(value, 10, c);
    if bytes.len() == 10 && !c.prost {
        let excess = (c.pick(64) as u8) << 1;
        bytes.iter_mut().skip(9).for_each(|last| *last |= excess);
    }
    bytes
}

/// Returns a varint of at most `most` bytes.
fn varint(mut value: u64, most: usize, c: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    if c.odd(12) {
        let width = bytes.len() + c.pick(most + 1 - bytes.len());
        for _ in bytes.len()..width {
            bytes
                .iter_mut()
                .last()
                .into_iter()
                .for_each(|last| *last |= 0x80);
            bytes.push(0);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config, generate, oracle};

    proptest! {
        #![proptest_config(config(300))]

        #[test]
        fn prost_reads_the_row_in_every_form(set in generate::mixed(), tape in tapes()) {
            let read = if set.sequence { oracle::row_from_sequence_example } else { oracle::row_from_example };
            let mut choices = Choices::for_prost(&tape);
            for row in &set.rows {
                let payload = record(row, set.sequence, &mut choices);
                prop_assert_eq!(&read(&payload).unwrap(), row);
            }
        }

        #[test]
        fn the_usual_form_is_that_of_prost(set in generate::mixed()) {
            prop_assert_eq!(set.odd_payloads(&mut Choices::new(&[])), set.payloads());
        }
    }

    #[test]
    fn the_usual_form_is_that_of_tensorflow() {
        let row = ModelRow::from([
            (
                (ModelSide::Features, "u".into()),
                ModelCell::One(ModelValue::Unset),
            ),
            (
                (ModelSide::Features, "x".into()),
                ModelCell::One(ModelValue::Int64(vec![7])),
            ),
        ]);
        let wire =
            b"\x0a\x13\x0a\x05\x0a\x01u\x12\x00\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07";
        assert_eq!(record(&row, false, &mut Choices::new(&[])), wire);
    }
}
