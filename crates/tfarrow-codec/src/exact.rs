//! The column `_tfarrow_exact`: the difference between a record's original bytes and its canonical
//! bytes, which the encoder makes of its columns. With it, converting back is byte-identical.
//!
//! The encoder writes features in the order of columns, in one form. Protobuf leaves both open, and
//! allows much besides: packed or unpacked lists, unknown fields, overlong varints, messages in
//! several pieces, repeated keys.
//!
//! A difference is empty if the bytes are equal. If the original has the canonical map entries in
//! another order, it is the number of that order, with a length that depends on the number of
//! entries alone. A difference of any other length is:
//!
//! | first byte | bytes after it |
//! |---|---|
//! | 1 | the record as parts: varints with a [`Part`] in the low three bits and its argument in the others |
//! | 2 | the complete record |
//! | 3 | one byte without a meaning, and the complete record |
//!
//! The last form, and the part `Nothing`, avoid a difference that has the length of an order by
//! chance.
//!
//! The canonical record `{a, b, c}` as an example:
//!
//! ```text
//! original                            difference
//! a b c                               (empty)
//! c a b                               02          Lehmer code of [2, 0, 1]: digits 2 (of 3), 0 (of 2); 2 + 3·0
//! a b(unpacked) c, unknown field      01 0c 01 0a 11 05 13 78 01
//!                                      │  │  │  │  │  │  └──┴──┴ Bytes(2): 78 01
//!                                      │  │  │  │  │  └ End
//!                                      │  │  │  │  └ Entry(2)
//!                                      │  │  │  └ Unpacked(1)
//!                                      │  │  └ Entry(0)
//!                                      │  └ Begin(1): the map `features`
//!                                      └ the record as parts
//! ```

use std::collections::HashMap;

use crate::{
    MOST_RECORD_BYTES,
    example::wire::{self, LEN, varint_len},
    slices,
};

/// First byte of a difference in parts.
const PARTS: u8 = 1;
/// First byte of a difference that is the complete record.
const WHOLE: u8 = 2;
/// First byte of a difference that is a byte without a meaning and the complete record.
const WHOLE_PADDED: u8 = 3;

/// A part of a record. [`Part::code`] is its varint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// No bytes.
    Nothing,
    /// The canonical map entry of this number; feature lists are numbered after features.
    Entry(usize),
    /// The canonical map entry of this number, with each of its numbers in a field of its own
    /// instead of packed.
    Unpacked(usize),
    /// This number of bytes, which follow.
    Bytes(usize),
    /// The start of a message in this field (1 or 2), whose length has the shortest form.
    Begin(u8),
    /// The end of that message.
    End,
}

/// A map entry of a record.
#[derive(Clone, Copy, Debug)]
struct Entry<'a> {
    /// Field number of the map: 1 for features, 2 for feature lists.
    map: u8,
    /// The key, without tag and length.
    key: &'a [u8],
    /// The entry with its tag and length.
    bytes: &'a [u8],
}

/// Parses a record in the form that the encoder writes: at most one of each map, in the order of
/// their fields, with shortest lengths. Returns the entries and the number of features among them,
/// or `None` for another form.
///
/// ```text
/// 0a len   0a len (key) (value)   0a len (key) (value)     12 len   0a len (key) (value)
///          └ Entry, map 1         └ Entry, map 1                    └ Entry, map 2          features: 2
/// ```
fn entries(mut record: &[u8]) -> Option<(Vec<Entry<'_>>, usize)> {
    let mut entries = Vec::new();
    let mut features = 0;
    for map in [1, 2] {
        if record.first() == Some(&(map << 3 | LEN)) {
            let mut body = shortest(&mut record).filter(|body| !body.is_empty())?;
            while !body.is_empty() {
                let mut rest = body;
                let key = key(shortest(&mut rest)?)?;
                let bytes = body.get(..body.len() - rest.len())?;
                entries.push(Entry { map, key, bytes });
                body = rest;
            }
        }
        if map == 1 {
            features = entries.len();
        }
    }
    record.is_empty().then_some((entries, features))
}

/// Takes a length-delimited field with a tag of one byte from the front of `rest`, and returns its
/// body; `None` if its length is not in the shortest form.
///
/// ```text
/// 0a 02 'h' 'i'        body "hi"
/// 0a 82 00 'h' 'i'     None: the length 2 in two bytes
/// ```
fn shortest<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut after = rest.get(1..)?;
    let start = after;
    let body = wire::bytes(&mut after).ok()?;
    let length = start.len() - after.len() - body.len();
    (length as u64 == varint_len(body.len() as u64)).then(|| {
        *rest = after;
        body
    })
}

/// Returns the key of a map entry's body that begins with it.
fn key(mut entry: &[u8]) -> Option<&[u8]> {
    if entry.first() == Some(&(1 << 3 | LEN)) {
        shortest(&mut entry)
    } else {
        None
    }
}

/// Computes the differences of consecutive records. The order of a record is predicted to be that
/// of the record before.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// The numbers of the canonical entries, in the order of the record before.
    last: Vec<usize>,
}

impl Differences {
    /// Returns the difference of `original` from `canonical`; `None` if they are equal. Parts are
    /// used if they are not longer than the record and restore it exactly.
    ///
    /// The forms are tried in the order of their usual sizes: nothing, the number of an order,
    /// parts, the complete record.
    pub(crate) fn difference(&mut self, original: &[u8], canonical: &[u8]) -> Option<Vec<u8>> {
        if original == canonical {
            return None;
        }
        let Some((entries, features)) = entries(canonical) else {
            return Some(whole(&[WHOLE], original));
        };
        if let Some(order) = self.order(original, &entries, features) {
            return Some(order);
        }
        let order_len = order_len(features) + order_len(entries.len() - features);
        let mut parts = parts(original, &entries);
        if parts.len() == order_len {
            parts.push(Part::Nothing.code() as u8);
        }
        if parts.len() <= original.len()
            && restore(canonical, &parts).is_ok_and(|restored| restored == original)
        {
            return Some(parts);
        }
        Some(if original.len() + 1 == order_len {
            whole(&[WHOLE_PADDED, 0], original)
        } else {
            whole(&[WHOLE], original)
        })
    }

    /// Returns the number of the order in which `original` has the canonical entries, if it has
    /// each of them once and nothing else.
    fn order(
        &mut self,
        original: &[u8],
        canonical: &[Entry<'_>],
        features: usize,
    ) -> Option<Vec<u8>> {
        let (found, of_features) = entries(original)?;
        if found.len() != canonical.len() || of_features != features {
            return None;
        }
        let mut numbers = Vec::with_capacity(found.len());
        let mut by_key = None;
        for (place, entry) in found.iter().enumerate() {
            if let Some(guess) = self.last.get(place)
                && is_at(canonical, *guess, entry)
            {
                numbers.push(*guess);
                continue;
            }
            let by_key = by_key.get_or_insert_with(|| numbers_by_key(canonical));
            let number = *by_key.get(&(entry.map, entry.key))?;
            if !is_at(canonical, number, entry) {
                return None;
            }
            numbers.push(number);
        }
        let (of_features, of_lists) = numbers.split_at(features);
        let of_lists: Vec<_> = of_lists
            .iter()
            .map(|number| number.checked_sub(features))
            .collect::<Option<_>>()?;
        let mut order = Vec::with_capacity(order_len(features));
        rank(of_features, &mut order)?;
        rank(&of_lists, &mut order)?;
        self.last = numbers;
        Some(order)
    }
}

/// Returns the difference that is the complete record, which follows the bytes `form`.
fn whole(form: &[u8], record: &[u8]) -> Vec<u8> {
    [form, record].concat()
}

/// Returns whether the entry of this number is equal to `entry`.
fn is_at(entries: &[Entry<'_>], number: usize, entry: &Entry<'_>) -> bool {
    entries
        .get(number)
        .is_some_and(|other| is_same(entry, other))
}

/// Returns whether two entries are equal to the byte, in the same map.
fn is_same(one: &Entry<'_>, other: &Entry<'_>) -> bool {
    one.map == other.map && one.bytes == other.bytes
}

/// Returns the numbers of entries by their maps and keys.
fn numbers_by_key<'a>(entries: &[Entry<'a>]) -> HashMap<(u8, &'a [u8]), usize> {
    entries
        .iter()
        .enumerate()
        .map(|(number, entry)| ((entry.map, entry.key), number))
        .collect()
}

/// Groups the digits of an order's number so that each group fits in 128 bits. The Lehmer code of
/// `count` items has `count - 1` digits with the radices `count, count - 1, .., 2`. Returns the
/// radices of each group, and the bytes that its number takes.
///
/// ```text
/// count   radices      orders    bytes
/// 0, 1    -            1         0
/// 2       2            2         1
/// 3       3 2          6         1
/// 5       5 4 3 2      120       1
/// 10      10 .. 2      3628800   3
/// ```
fn groups(count: usize) -> impl Iterator<Item = (Vec<u128>, usize)> {
    let mut radix = count as u128;
    std::iter::from_fn(move || {
        let mut radices = Vec::new();
        let mut size = 1_u128;
        while radix >= 2
            && let Some(larger) = size.checked_mul(radix)
        {
            (size, radix) = (larger, radix - 1);
            radices.push(radix + 1);
        }
        let bits = u128::BITS - (size - 1).leading_zeros();
        (!radices.is_empty()).then_some((radices, bits.div_ceil(8) as usize))
    })
}

/// Returns the length in bytes of the number of an order of `count` items.
fn order_len(count: usize) -> usize {
    groups(count).map(|(_, bytes)| bytes).sum()
}

/// The numbers from 0 to `count - 1` that are not taken yet, as a Fenwick tree. Finding and taking
/// a number costs O(log n), so that a record of a million reordered features cannot cause quadratic
/// work.
///
/// ```text
/// place              1  2  3  4  5          5 numbers, none taken: place & -place
/// counts             1  2  1  4  1
/// number 2 taken     1  2  0  3  1          places 3 and 4 cover number 2
/// ```
struct Untaken {
    /// The tree: the element at `place`, from 1 on, counts the untaken numbers among the `place
    /// & -place` ones before it.
    counts: Vec<usize>,
}

impl Untaken {
    /// Creates the tree of `count` numbers, none of which is taken.
    fn new(count: usize) -> Self {
        Self {
            counts: (0..=count)
                .map(|place| place & place.wrapping_neg())
                .collect(),
        }
    }

    /// Returns how many numbers there were at first.
    fn len(&self) -> usize {
        self.counts.len() - 1
    }

    /// Takes a number, and returns how many smaller ones are left; `None` if it is taken or out of
    /// range.
    fn take(&mut self, number: usize) -> Option<usize> {
        let smaller = self.left_before(number);
        let is_left = number < self.len() && self.left_before(number + 1) > smaller;
        is_left.then(|| {
            self.remove(number);
            smaller
        })
    }

    /// Takes the number that has `smaller` smaller ones left, by descending the tree; `None` if
    /// there is none.
    fn take_at(&mut self, mut smaller: usize) -> Option<usize> {
        let mut number = 0;
        let mut step = self.counts.len().next_power_of_two();
        while step > 0 {
            if let Some(left) = self
                .counts
                .get(number + step)
                .filter(|left| **left <= smaller)
            {
                (number, smaller) = (number + step, smaller - left);
            }
            step /= 2;
        }
        (number < self.len()).then(|| {
            self.remove(number);
            number
        })
    }

    /// Returns how many untaken numbers are smaller than `number`.
    fn left_before(&self, number: usize) -> usize {
        let mut place = number;
        let mut left = 0;
        while place > 0 {
            left += slices::item(&self.counts, place);
            place &= place - 1;
        }
        left
    }

    /// Marks a number as taken.
    fn remove(&mut self, number: usize) {
        let mut place = number + 1;
        while let Some(left) = self.counts.get_mut(place) {
            *left -= 1;
            place += place & place.wrapping_neg();
        }
    }
}

/// Appends the number of an order: its Lehmer code, whose digits are the ranks of the items among
/// those that are left. `None` if `order` is not a permutation.
///
/// ```text
/// order of 4    [2, 0, 3, 1]
/// left          {0 1 2 3} -> 2 is number 2 of 4      digit 2, radix 4
///               {0 1 3}   -> 0 is number 0 of 3      digit 0, radix 3
///               {1 3}     -> 3 is number 1 of 2      digit 1, radix 2
///               {1}                                  no digit
/// number        2 + 4 * (0 + 3 * 1) = 14             one byte: 0e
/// ```
fn rank(order: &[usize], out: &mut Vec<u8>) -> Option<()> {
    let mut left = Untaken::new(order.len());
    let mut order = order.iter();
    for (radices, bytes) in groups(order.len()) {
        let mut number = 0;
        let mut size = 1;
        for radix in radices {
            let place = left.take(*order.next()?)?;
            number += size * place as u128;
            size = size.wrapping_mul(radix);
        }
        out.extend(number.to_le_bytes().into_iter().take(bytes));
    }
    // The last item has no digit, since one is left.
    order.all(|last| left.take(*last).is_some()).then_some(())
}

/// Takes the number of an order of `count` items from the front of `bytes`, and returns the order.
/// `None` for a number that is too large or truncated.
///
/// The digits are the remainders of successive divisions by the radices, the least significant one
/// first.
fn unrank(count: usize, bytes: &mut &[u8]) -> Option<Vec<usize>> {
    let mut left = Untaken::new(count);
    let mut order = Vec::with_capacity(count);
    for (radices, len) in groups(count) {
        let (number, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        let mut whole = [0; 16];
        whole
            .iter_mut()
            .zip(number)
            .for_each(|(to, from)| *to = *from);
        let mut number = u128::from_le_bytes(whole);
        for radix in radices {
            order.push(left.take_at((number % radix) as usize)?);
            number /= radix;
        }
        if number > 0 {
            return None;
        }
    }
    order.extend(left.take_at(0));
    Some(order)
}

impl Part {
    /// Returns the varint of the part: the argument shifted by three bits, with the kind of the
    /// part in the low bits.
    fn code(self) -> u64 {
        let (kind, argument) = match self {
            Self::Nothing => (0, 0),
            Self::Entry(number) => (1, number as u64),
            Self::Unpacked(number) => (2, number as u64),
            Self::Bytes(count) => (3, count as u64),
            Self::Begin(field) => (4, u64::from(field)),
            Self::End => (5, 0),
        };
        argument << 3 | kind
    }

    /// Returns the part of a varint; `None` for an unknown kind or a field other than 1 and 2.
    fn of_code(code: u64) -> Option<Self> {
        let argument = usize::try_from(code >> 3).ok()?;
        Some(match code & 7 {
            0 => Self::Nothing,
            1 => Self::Entry(argument),
            2 => Self::Unpacked(argument),
            3 => Self::Bytes(argument),
            4 => Self::Begin(
                u8::try_from(argument)
                    .ok()
                    .filter(|field| (1..=2).contains(field))?,
            ),
            5 => Self::End,
            _ => return None,
        })
    }
}

/// Splits a record into parts. Bytes that match no canonical entry become [`Part::Bytes`].
///
/// It never fails: a record that is not a message becomes one part of bytes.
struct Parts<'a> {
    /// The entries of the canonical record.
    canonical: &'a [Entry<'a>],
    /// The numbers of these entries by their maps and keys.
    by_key: HashMap<(u8, &'a [u8]), usize>,
    /// The parts so far.
    out: Vec<u8>,
    /// Bytes of the part that is being collected.
    bytes: Vec<u8>,
}

/// Returns `original` as parts of the canonical entries, after the byte [`PARTS`].
fn parts(original: &[u8], canonical: &[Entry<'_>]) -> Vec<u8> {
    let by_key = numbers_by_key(canonical);
    let mut parts = Parts {
        canonical,
        by_key,
        out: vec![PARTS],
        bytes: Vec::new(),
    };
    parts.record(original);
    parts.flush();
    parts.out
}

impl Parts<'_> {
    /// Adds a record: its maps, and other fields as bytes.
    fn record(&mut self, mut rest: &[u8]) {
        while let Some(field) = Field::first(rest) {
            match (field.number, field.body) {
                (map @ (1 | 2), Some(body)) => {
                    self.put(Part::Begin(map as u8));
                    self.map(map as u8, body);
                    self.put(Part::End);
                }
                _ => self
                    .bytes
                    .extend(rest.iter().take(rest.len() - field.after.len())),
            }
            rest = field.after;
        }
        self.bytes.extend(rest);
    }

    /// Adds the entries of a map.
    fn map(&mut self, map: u8, mut rest: &[u8]) {
        while let Some(Field {
            number,
            body,
            after,
        }) = Field::first(rest)
        {
            let bytes = slices::part(rest, ..rest.len() - after.len());
            let part = body
                .filter(|_| number == 1)
                .and_then(|body| self.entry(map, body, bytes));
            match part {
                Some(part) => self.put(part),
                None => self.bytes.extend(bytes),
            }
            rest = after;
        }
        self.bytes.extend(rest);
    }

    /// Returns the part of a map entry; `None` if the canonical record has no such entry, packed or
    /// unpacked.
    fn entry(&self, map: u8, body: &[u8], bytes: &[u8]) -> Option<Part> {
        let number = *self.by_key.get(&(map, key(body)?))?;
        let canonical = self.canonical.get(number)?.bytes;
        if bytes == canonical {
            return Some(Part::Entry(number));
        }
        (unpacked(canonical)? == bytes).then_some(Part::Unpacked(number))
    }

    /// Adds a part, after the bytes collected so far.
    fn put(&mut self, part: Part) {
        self.flush();
        wire::put_varint(part.code(), &mut self.out);
    }

    /// Adds the bytes collected so far as a part.
    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            wire::put_varint(Part::Bytes(self.bytes.len()).code(), &mut self.out);
            self.out.append(&mut self.bytes);
        }
    }
}

/// A field of a message.
struct Field<'a> {
    /// The number of the field.
    number: u32,
    /// The body, if the field is length-delimited with a tag of one byte and the shortest length.
    body: Option<&'a [u8]>,
    /// The bytes after the field.
    after: &'a [u8],
}

impl<'a> Field<'a> {
    /// Parses the field at the front of a message; `None` if there is no valid field.
    fn first(rest: &'a [u8]) -> Option<Self> {
        let mut after = rest;
        let tag = wire::tag(&mut after).ok()?;
        if tag.1 == LEN && rest.len() - after.len() == 1 {
            let mut field = rest;
            if let Some(body) = shortest(&mut field) {
                return Some(Self {
                    number: tag.0,
                    body: Some(body),
                    after: field,
                });
            }
        }
        wire::skip(&mut after, tag, usize::MAX).ok()?;
        Some(Self {
            number: tag.0,
            body: None,
            after,
        })
    }
}

/// Returns a canonical entry of packed numbers with a field for each number; `None` for an entry
/// without packed numbers.
///
/// ```text
/// packed      1a 04   0a 02 01 02        Int64List [1, 2]
/// unpacked    1a 04   08 01 08 02
/// ```
fn unpacked(entry: &[u8]) -> Option<Vec<u8>> {
    let mut body = wire::sole(entry, 1 << 3 | LEN)?;
    let start = body;
    shortest(&mut body)?;
    let key = start.get(..start.len() - body.len())?;
    let feature = wire::sole(body, 2 << 3 | LEN)?;
    let kind = *feature.first()?;
    let list = wire::last_bytes(feature.get(1..)?)?;
    let mut values = wire::sole(list, 1 << 3 | LEN)?;
    let mut unpacked = Vec::with_capacity(values.len() * 2);
    while !values.is_empty() {
        let number = values;
        match kind {
            0x12 => {
                wire::fixed32(&mut values).ok()?;
                unpacked.push(1 << 3 | wire::FIXED32);
            }
            0x1a => {
                wire::varint(&mut values).ok()?;
                unpacked.push(1 << 3 | wire::VARINT);
            }
            _ => return None,
        }
        unpacked.extend(number.iter().take(number.len() - values.len()));
    }
    let feature = field(kind, &unpacked);
    Some(field(
        1 << 3 | LEN,
        &[key, &field(2 << 3 | LEN, &feature)].concat(),
    ))
}

/// Returns a length-delimited field with the tag `tag`.
fn field(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(body.len() + 11);
    field.push(tag);
    wire::put_varint(body.len() as u64, &mut field);
    field.extend_from_slice(body);
    field
}

/// A difference that does not fit the canonical record: the column was changed, or belongs to
/// another record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

/// Restores the original record from its canonical bytes and its difference.
///
/// An empty difference is that of a record in its canonical form. One that has exactly the length
/// of an order's number is such a number; any other begins with the byte of its form.
///
/// # Errors
/// [`Unfit`] if no record can have this difference.
pub(crate) fn restore(canonical: &[u8], difference: &[u8]) -> Result<Vec<u8>, Unfit> {
    if difference.is_empty() {
        return Ok(canonical.to_vec());
    }
    let (entries, features) = entries(canonical).unwrap_or_default();
    if difference.len() == order_len(features) + order_len(entries.len() - features) {
        return reordered(&entries, features, difference).ok_or(Unfit);
    }
    match difference {
        [PARTS, rest @ ..] => joined(&entries, rest).ok_or(Unfit),
        [WHOLE, record @ ..] | [WHOLE_PADDED, _, record @ ..] => Ok(record.to_vec()),
        _ => Err(Unfit),
    }
}

/// Returns the record with its entries in the order of this number.
fn reordered(entries: &[Entry<'_>], features: usize, mut numbers: &[u8]) -> Option<Vec<u8>> {
    let mut record = Vec::new();
    for (map, entries) in [(1, entries.get(..features)?), (2, entries.get(features..)?)] {
        let order = unrank(entries.len(), &mut numbers)?;
        if !entries.is_empty() {
            let bytes: usize = entries.iter().map(|entry| entry.bytes.len()).sum();
            record.push(map << 3 | LEN);
            wire::put_varint(bytes as u64, &mut record);
            order
                .iter()
                .filter_map(|number| entries.get(*number))
                .for_each(|entry| record.extend(entry.bytes));
        }
    }
    Some(record)
}

/// Returns the record that consists of these parts; `None` if a part does not fit, or if a message
/// is not closed.
///
/// The result is limited to [`MOST_RECORD_BYTES`], since a difference may come from any file.
fn joined(entries: &[Entry<'_>], mut parts: &[u8]) -> Option<Vec<u8>> {
    let mut record = Vec::new();
    // The message that is open, and the bytes of the record before it.
    let mut open: Option<(u8, Vec<u8>)> = None;
    while !parts.is_empty() {
        match Part::of_code(wire::varint(&mut parts).ok()?)? {
            Part::Nothing => {}
            Part::Entry(number) => record.extend(entries.get(number)?.bytes),
            Part::Unpacked(number) => record.extend(unpacked(entries.get(number)?.bytes)?),
            Part::Bytes(count) => {
                let (bytes, rest) = parts.split_at_checked(count)?;
                record.extend(bytes);
                parts = rest;
            }
            Part::Begin(map) => {
                if open.replace((map, std::mem::take(&mut record))).is_some() {
                    return None;
                }
            }
            Part::End => {
                let (map, before) = open.take()?;
                let body = std::mem::replace(&mut record, before);
                record.extend(field(map << 3 | LEN, &body));
            }
        }
        // A part of one byte may expand to a long entry, so that the size is limited here.
        let before = open.as_ref().map_or(0, |(_, before)| before.len());
        if record.len() + before > MOST_RECORD_BYTES {
            return None;
        }
    }
    open.is_none().then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_has_a_number_of_its_own() {
        for count in 0..7 {
            let orders = (0..count).fold(vec![vec![]], |orders: Vec<Vec<usize>>, next| {
                let insert =
                    |order: &Vec<usize>, at: usize| [&order[..at], &[next], &order[at..]].concat();
                orders
                    .iter()
                    .flat_map(|order| (0..=order.len()).map(move |at| insert(order, at)))
                    .collect()
            });
            let mut numbers = std::collections::HashSet::new();
            for order in &orders {
                let mut number = Vec::new();
                rank(order, &mut number).unwrap();
                assert_eq!(number.len(), order_len(count));
                assert_eq!(unrank(count, &mut number.as_slice()).as_ref(), Some(order));
                assert!(numbers.insert(number));
            }
            assert_eq!(numbers.len(), (1..=count).product::<usize>());
        }
    }

    /// The expected numbers are computed from a plain list of the numbers that are left. They are
    /// part of the file format, and must not change.
    #[test]
    fn numbers_of_orders_do_not_change() {
        assert_eq!(ranked(&[2, 0, 3, 1]), [14]);
        for count in [2, 3, 20, 33, 34, 35, 36, 200] {
            let order: Vec<usize> = (0..count).map(|i| (i * 7919 + 13) % count).collect();
            let mut left: Vec<usize> = (0..count).collect();
            let mut places = order.iter().map(|number| {
                let place = left.binary_search(number).unwrap();
                left.remove(place);
                place as u128
            });
            let mut expect = Vec::new();
            for (radices, bytes) in groups(count) {
                let digits: Vec<_> = places.by_ref().take(radices.len()).zip(radices).collect();
                let number = digits
                    .iter()
                    .rev()
                    .fold(0, |number, (place, radix)| number * radix + place);
                expect.extend(number.to_le_bytes().into_iter().take(bytes));
            }
            assert_eq!(ranked(&order), expect, "{count}");
        }
    }

    fn ranked(order: &[usize]) -> Vec<u8> {
        let mut number = Vec::new();
        rank(order, &mut number).unwrap();
        number
    }

    /// The largest number of features of a record by default: with quadratic work, this test would
    /// not end.
    #[test]
    fn orders_of_a_million_features_take_no_quadratic_time() {
        let count = crate::Limits::default().record_features;
        let order: Vec<usize> = (0..count).map(|i| (i * 7919 + 13) % count).collect();
        assert!(unrank(count, &mut ranked(&order).as_slice()) == Some(order));
    }

    #[test]
    fn numbers_of_orders_take_few_more_bits_than_the_minimum() {
        for count in 2..2000_u32 {
            let bits: f64 = (2..=count).map(|n| f64::from(n).log2()).sum();
            let bytes = order_len(count as usize) as f64;
            assert!(
                bytes * 8.0 <= (bits.ceil() * 1.15).max(bits + 8.0),
                "{count}: {bytes} bytes for {bits} bits"
            );
        }
    }

    #[test]
    fn long_orders_have_a_round_trip() {
        for count in [33, 34, 35, 40, 63, 64, 65, 100, 1000] {
            let order: Vec<usize> = (0..count).map(|i| (i * 7919 + 13) % count).collect();
            let mut seen = order.clone();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), count);
            let mut number = Vec::new();
            rank(&order, &mut number).unwrap();
            assert_eq!(unrank(count, &mut number.as_slice()), Some(order));
        }
        assert_eq!(rank(&[0, 0], &mut Vec::new()), None);
        assert_eq!(rank(&[1, 2], &mut Vec::new()), None);
    }

    #[test]
    fn differences_that_fit_no_record_are_rejected() {
        let entry = |name: &str| {
            field(
                0x0a,
                &[field(0x0a, name.as_bytes()), field(0x12, &field(0x1a, &[]))].concat(),
            )
        };
        let canonical = field(0x0a, &["a", "b", "c"].map(entry).concat());
        for difference in [
            &[6][..],
            &[255],
            &[1, 0x0c],
            &[1, 0x05],
            &[1, 0x21],
            &[1, 0x1b, 1],
            &[9, 9, 9],
        ] {
            assert_eq!(
                restore(&canonical, difference),
                Err(Unfit),
                "{difference:?}"
            );
        }
        assert_eq!(restore(&canonical, &[0]).as_deref(), Ok(&*canonical));
        assert_eq!(restore(&canonical, &[]).as_deref(), Ok(&*canonical));
    }
}
