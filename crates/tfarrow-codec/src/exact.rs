//! What the encoder does not say of a record: the difference between a record as it was and as it is encoded from its
//! columns, in few bytes, and the way back.
//!
//! The encoder writes a record's features in the order of their columns, each in one form. Protobuf leaves both free, and
//! allows much besides: the same list packed or not, fields that nobody knows, varints of more bytes than they need,
//! messages in several pieces, keys that are given twice. Here `canonical` is the record as the encoder writes it.
//!
//! A difference is nothing, where there is none. Where the record has the canonical map entries in another order, it is a number that tells which: of as many
//! bytes as all orders need, without anything before it. What has another length is:
//!
//! | first byte | what follows |
//! |---|---|
//! | 1 | the record in parts: varints whose low three bits are a [`Part`], the others its argument |
//! | 2 | the record itself |
//! | 3 | one byte that says nothing, and the record itself |
//!
//! The third, and parts that say nothing, keep a difference from having the length of an order's number.

use std::collections::HashMap;

use arrow_array::{RecordBatch, builder::BinaryBuilder};
use arrow_schema::{Schema, SchemaRef};

use crate::{
    Encoder, EncoderBuilder, MOST_RECORD_BYTES, Records, Result,
    encode::varint_len,
    frame,
    schema::{EXACT_COLUMN, exact_field},
    wire::{self, LEN},
};

const PARTS: u8 = 1;
const WHOLE: u8 = 2;
const WHOLE_PADDED: u8 = 3;

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Nothing,
    /// The canonical entry of this number, those of feature lists after those of features.
    Entry(usize),
    /// The same with each of its numbers in a field of its own.
    Unpacked(usize),
    /// As many bytes, which follow.
    Bytes(usize),
    /// The beginning of the message in this field, whose length is written in its shortest form.
    Begin(u8),
    /// Its end.
    End,
}

/// Adds the column `_tfarrow_exact` to batches.
#[derive(Debug)]
pub struct ExactColumn {
    schema: SchemaRef,
    encoder: Encoder,
    canonical: Vec<u8>,
}

impl ExactColumn {
    /// For batches of this schema, which records are decoded to.
    ///
    /// # Errors
    /// As [`EncoderBuilder::build`].
    pub fn new(schema: SchemaRef) -> Result<Self> {
        let encoder = EncoderBuilder::new().build(SchemaRef::clone(&schema))?;
        Ok(Self { schema: with_exact(&schema), encoder, canonical: Vec::new() })
    }

    /// The schema of the batches with the column.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// `batch` with the column. Its rows are those of `records`.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn add(
        &mut self,
        batch: &RecordBatch,
        records: &Records,
        rows: impl Fn(usize) -> usize,
    ) -> Result<RecordBatch> {
        self.canonical.clear();
        self.encoder.encode(batch, &mut self.canonical)?;
        let mut column = BinaryBuilder::new();
        let mut orders = Orders::default();
        let (mut bytes, limit) = (0, i32::MAX as u64);
        for (row, (_, canonical)) in framed(&self.canonical).enumerate() {
            let original = records.data(rows(row)).unwrap_or_default();
            // No null: which records have their usual form would cost more to say than that they have.
            let difference = orders.difference(original, canonical).unwrap_or_default();
            bytes += difference.len() as u64;
            if bytes > limit {
                let error = records.overflow("bytes of one column of a batch", bytes, limit);
                return Err(error.with_feature(EXACT_COLUMN));
            }
            column.append_value(difference);
        }
        let mut columns = batch.columns().to_vec();
        columns.push(std::sync::Arc::new(column.finish()));
        Ok(RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)?)
    }
}

/// `schema` with the column `_tfarrow_exact`.
pub fn with_exact(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone()).chain([exact_field()]);
    Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()).into()
}

/// Each of some frames, which are the encoder's own, and its data.
pub(crate) fn framed(mut frames: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::try_from(frame::length(frames)?).ok()?;
        let (frame, rest) = frames.split_at_checked(frame::HEADER + length + frame::FOOTER)?;
        frames = rest;
        Some((frame, frame.get(frame::HEADER..frame::HEADER + length)?))
    })
}

/// A map entry of a record.
#[derive(Clone, Copy, Debug)]
struct Entry<'a> {
    /// The field that its map is: 1 of features, 2 of feature lists.
    map: u8,
    key: &'a [u8],
    /// Tag and length included.
    bytes: &'a [u8],
}

/// The entries of a record in the form in which the encoder writes it, and how many of them are features. `None` where it
/// has another.
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

/// Takes a field, whose tag is one byte, off the front of `rest`, where its length is written in its shortest form.
fn shortest<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut behind = rest.get(1..)?;
    let start = behind;
    let body = wire::bytes(&mut behind).ok()?;
    let length = start.len() - behind.len() - body.len();
    (length as u64 == varint_len(body.len() as u64)).then(|| {
        *rest = behind;
        body
    })
}

/// The key of an entry that begins with it.
fn key(mut entry: &[u8]) -> Option<&[u8]> {
    if entry.first() == Some(&(1 << 3 | LEN)) { shortest(&mut entry) } else { None }
}

/// Finds differences, record after record: where canonical entries stand is guessed from the record before.
#[derive(Debug, Default)]
struct Orders {
    /// The numbers of the entries of the last record, in its order.
    last: Vec<usize>,
}

impl Orders {
    /// In what `original` differs from `canonical`; `None` where it does not.
    fn difference(&mut self, original: &[u8], canonical: &[u8]) -> Option<Vec<u8>> {
        if original == canonical {
            return None;
        }
        let whole = |first: &[u8]| [first, original].concat();
        let Some((entries, features)) = entries(canonical) else { return Some(whole(&[WHOLE])) };
        if let Some(order) = self.order(original, &entries, features) {
            return Some(order);
        }
        let order_len = order_len(features) + order_len(entries.len() - features);
        let mut parts = parts(original, &entries);
        if parts.len() == order_len {
            parts.push(Part::Nothing.code() as u8);
        }
        if parts.len() <= original.len() && restore(canonical, &parts).is_ok_and(|restored| restored == original) {
            return Some(parts);
        }
        Some(if original.len() + 1 == order_len { whole(&[WHOLE_PADDED, 0]) } else { whole(&[WHOLE]) })
    }

    /// The number of the order that `original` has the entries in, where it has each once and nothing else.
    fn order(&mut self, original: &[u8], canonical: &[Entry<'_>], features: usize) -> Option<Vec<u8>> {
        let (found, of_features) = entries(original)?;
        if found.len() != canonical.len() || of_features != features {
            return None;
        }
        let mut numbers = Vec::with_capacity(found.len());
        let mut by_key = None;
        for (place, entry) in found.iter().enumerate() {
            let is = |number: &usize| canonical.get(*number).is_some_and(|other| is_same(entry, other));
            let guess = self.last.get(place).copied().filter(is);
            let number = guess.or_else(|| {
                let by_key = by_key.get_or_insert_with(|| numbers_by_key(canonical));
                by_key.get(&(entry.map, entry.key)).copied().filter(is)
            });
            numbers.push(number?);
        }
        let (of_features, of_lists) = numbers.split_at(features);
        let of_lists: Vec<_> = of_lists.iter().map(|number| number.checked_sub(features)).collect::<Option<_>>()?;
        let mut order = Vec::with_capacity(order_len(features));
        rank(of_features, &mut order)?;
        rank(&of_lists, &mut order)?;
        self.last = numbers;
        Some(order)
    }
}

fn is_same(one: &Entry<'_>, other: &Entry<'_>) -> bool {
    one.map == other.map && one.bytes == other.bytes
}

fn numbers_by_key<'a>(entries: &[Entry<'a>]) -> HashMap<(u8, &'a [u8]), usize> {
    entries.iter().enumerate().map(|(number, entry)| ((entry.map, entry.key), number)).collect()
}

/// The digits of an order's number that are put together in one integer of 128 bits: the orders of `count` things have one
/// digit less than these, whose radices fall from `count` to 2.
fn groups(count: usize) -> impl Iterator<Item = (Vec<u128>, usize)> {
    let mut radix = count as u128;
    std::iter::from_fn(move || {
        let (mut radices, mut size) = (Vec::new(), 1_u128);
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

/// Bytes of the number of an order of so many things.
fn order_len(count: usize) -> usize {
    groups(count).map(|(_, bytes)| bytes).sum()
}

/// The numbers from 0 on that are not taken yet. A Fenwick tree: to find and to take one costs the logarithm of how many
/// there are, so that a record of a million features in another order is no attack.
struct Untaken {
    /// At each place from 1 on, how many of as many numbers before it are left as its lowest bit says.
    counts: Vec<usize>,
}

impl Untaken {
    fn new(count: usize) -> Self {
        Self { counts: (0..=count).map(|place| place & place.wrapping_neg()).collect() }
    }

    /// How many numbers there were at first.
    fn len(&self) -> usize {
        self.counts.len() - 1
    }

    /// Takes a number, and returns how many smaller ones are left; `None` where it is taken or was none of them.
    fn take(&mut self, number: usize) -> Option<usize> {
        let smaller = self.left_before(number);
        let is_left = number < self.len() && self.left_before(number + 1) > smaller;
        is_left.then(|| {
            self.remove(number);
            smaller
        })
    }

    /// Takes the number that has `smaller` smaller ones left; `None` where there is none.
    fn take_at(&mut self, mut smaller: usize) -> Option<usize> {
        let (mut number, mut step) = (0, self.counts.len().next_power_of_two());
        while step > 0 {
            if let Some(left) = self.counts.get(number + step).filter(|left| **left <= smaller) {
                (number, smaller) = (number + step, smaller - left);
            }
            step /= 2;
        }
        (number < self.len()).then(|| {
            self.remove(number);
            number
        })
    }

    fn left_before(&self, number: usize) -> usize {
        let (mut place, mut left) = (number, 0);
        while place > 0 {
            left += self.counts.get(place).copied().unwrap_or_default();
            place &= place - 1;
        }
        left
    }

    fn remove(&mut self, number: usize) {
        let mut place = number + 1;
        while let Some(left) = self.counts.get_mut(place) {
            *left -= 1;
            place += place & place.wrapping_neg();
        }
    }
}

/// Writes the number of an order of the numbers from 0 on: its Lehmer code, which says of each which of those that are left
/// it is. `None` where it is no order.
fn rank(order: &[usize], out: &mut Vec<u8>) -> Option<()> {
    let mut left = Untaken::new(order.len());
    let mut order = order.iter();
    for (radices, bytes) in groups(order.len()) {
        let (mut number, mut size) = (0, 1);
        for radix in radices {
            let place = left.take(*order.next()?)?;
            number += size * place as u128;
            size = size.wrapping_mul(radix);
        }
        out.extend(number.to_le_bytes().into_iter().take(bytes));
    }
    // The last has no digit.
    order.all(|last| left.take(*last).is_some()).then_some(())
}

/// The order of so many things whose number stands at the front of `bytes`.
fn unrank(count: usize, bytes: &mut &[u8]) -> Option<Vec<usize>> {
    let mut left = Untaken::new(count);
    let mut order = Vec::with_capacity(count);
    for (radices, len) in groups(count) {
        let (number, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        let mut whole = [0; 16];
        whole.iter_mut().zip(number).for_each(|(to, from)| *to = *from);
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

    fn of_code(code: u64) -> Option<Self> {
        let argument = usize::try_from(code >> 3).ok()?;
        Some(match code & 7 {
            0 => Self::Nothing,
            1 => Self::Entry(argument),
            2 => Self::Unpacked(argument),
            3 => Self::Bytes(argument),
            4 => Self::Begin(u8::try_from(argument).ok().filter(|field| (1..=2).contains(field))?),
            5 => Self::End,
            _ => return None,
        })
    }
}

/// A record in parts, as far as it can be told apart; what cannot is there as it is.
struct Parts<'a> {
    canonical: &'a [Entry<'a>],
    by_key: HashMap<(u8, &'a [u8]), usize>,
    out: Vec<u8>,
    /// Bytes that have no other part, until one comes.
    bytes: Vec<u8>,
}

fn parts(original: &[u8], canonical: &[Entry<'_>]) -> Vec<u8> {
    let by_key = numbers_by_key(canonical);
    let mut parts = Parts { canonical, by_key, out: vec![PARTS], bytes: Vec::new() };
    parts.record(original);
    parts.flush();
    parts.out
}

impl Parts<'_> {
    fn record(&mut self, mut rest: &[u8]) {
        while let Some(field) = Field::first(rest) {
            match (field.number, field.body) {
                (map @ (1 | 2), Some(body)) => {
                    self.put(Part::Begin(map as u8));
                    self.map(map as u8, body);
                    self.put(Part::End);
                }
                _ => self.bytes.extend(rest.iter().take(rest.len() - field.behind.len())),
            }
            rest = field.behind;
        }
        self.bytes.extend(rest);
    }

    fn map(&mut self, map: u8, mut rest: &[u8]) {
        while let Some(Field { number, body, behind }) = Field::first(rest) {
            let bytes = rest.get(..rest.len() - behind.len()).unwrap_or_default();
            let part = body.filter(|_| number == 1).and_then(|body| self.entry(map, body, bytes));
            match part {
                Some(part) => self.put(part),
                None => self.bytes.extend(bytes),
            }
            rest = behind;
        }
        self.bytes.extend(rest);
    }

    /// The part that a map's entry is.
    fn entry(&self, map: u8, body: &[u8], bytes: &[u8]) -> Option<Part> {
        let number = *self.by_key.get(&(map, key(body)?))?;
        let canonical = self.canonical.get(number)?.bytes;
        if bytes == canonical {
            return Some(Part::Entry(number));
        }
        (unpacked(canonical)? == bytes).then_some(Part::Unpacked(number))
    }

    fn put(&mut self, part: Part) {
        self.flush();
        wire::put_varint(part.code(), &mut self.out);
    }

    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            wire::put_varint(Part::Bytes(self.bytes.len()).code(), &mut self.out);
            self.out.append(&mut self.bytes);
        }
    }
}

/// A field of a message, and what follows it.
struct Field<'a> {
    number: u32,
    /// Where it is length-delimited, with a tag of one byte and the shortest length.
    body: Option<&'a [u8]>,
    behind: &'a [u8],
}

impl<'a> Field<'a> {
    /// The field at the front of a message; `None` where none can be read.
    fn first(rest: &'a [u8]) -> Option<Self> {
        let mut behind = rest;
        let tag = wire::tag(&mut behind).ok()?;
        if tag.1 == LEN && rest.len() - behind.len() == 1 {
            let mut field = rest;
            if let Some(body) = shortest(&mut field) {
                return Some(Self { number: tag.0, body: Some(body), behind: field });
            }
        }
        wire::skip(&mut behind, tag, usize::MAX).ok()?;
        Some(Self { number: tag.0, body: None, behind })
    }
}

/// An entry of packed numbers with a field for each of them; `None` where it has none.
fn unpacked(entry: &[u8]) -> Option<Vec<u8>> {
    let mut body = wire::sole(entry, 1 << 3 | LEN)?;
    let start = body;
    shortest(&mut body)?;
    let key = start.get(..start.len() - body.len())?;
    let feature = wire::sole(body, 2 << 3 | LEN)?;
    let (kind, list) = (*feature.first()?, wire::last_bytes(feature.get(1..)?)?);
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
    Some(field(1 << 3 | LEN, &[key, &field(2 << 3 | LEN, &feature)].concat()))
}

fn field(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(body.len() + 11);
    field.push(tag);
    wire::put_varint(body.len() as u64, &mut field);
    field.extend_from_slice(body);
    field
}

/// A difference that is none of this record's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

/// The record of which the encoder made `canonical`, and in which this is the difference.
///
/// # Errors
/// Where no record can have this difference.
pub(crate) fn restore(canonical: &[u8], difference: &[u8]) -> std::result::Result<Vec<u8>, Unfit> {
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

fn reordered(entries: &[Entry<'_>], features: usize, mut numbers: &[u8]) -> Option<Vec<u8>> {
    let mut record = Vec::new();
    for (map, entries) in [(1, entries.get(..features)?), (2, entries.get(features..)?)] {
        let order = unrank(entries.len(), &mut numbers)?;
        if !entries.is_empty() {
            let bytes: usize = entries.iter().map(|entry| entry.bytes.len()).sum();
            record.push(map << 3 | LEN);
            wire::put_varint(bytes as u64, &mut record);
            order.iter().filter_map(|number| entries.get(*number)).for_each(|entry| record.extend(entry.bytes));
        }
    }
    Some(record)
}

fn joined(entries: &[Entry<'_>], mut parts: &[u8]) -> Option<Vec<u8>> {
    let mut record = Vec::new();
    // The message in hand, where one is open, and what stands before it.
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
        // A part of a byte may stand for a long entry.
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
                let insert = |order: &Vec<usize>, at: usize| [&order[..at], &[next], &order[at..]].concat();
                orders.iter().flat_map(|order| (0..=order.len()).map(move |at| insert(order, at))).collect()
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

    /// What is taken of a plain list of those that are left: files that are there have to be read in years to come.
    #[test]
    fn numbers_of_orders_stay_what_they_are() {
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
                let number = digits.iter().rev().fold(0, |number, (place, radix)| number * radix + place);
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

    /// As many as a record may have: at a price that grows with their square, this test would not end.
    #[test]
    fn orders_of_a_million_features_are_there_and_back_in_time() {
        let count = crate::Limits::default().record_features;
        let order: Vec<usize> = (0..count).map(|i| (i * 7919 + 13) % count).collect();
        assert!(unrank(count, &mut ranked(&order).as_slice()) == Some(order));
    }

    #[test]
    fn numbers_of_orders_take_hardly_more_than_they_must() {
        for count in 2..2000_u32 {
            let bits: f64 = (2..=count).map(|n| f64::from(n).log2()).sum();
            let bytes = order_len(count as usize) as f64;
            assert!(bytes * 8.0 <= (bits.ceil() * 1.15).max(bits + 8.0), "{count}: {bytes} bytes for {bits} bits");
        }
    }

    #[test]
    fn long_orders_are_there_and_back() {
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
    fn what_fits_no_record_is_refused() {
        let entry = |name: &str| field(0x0a, &[field(0x0a, name.as_bytes()), field(0x12, &field(0x1a, &[]))].concat());
        let canonical = field(0x0a, &["a", "b", "c"].map(entry).concat());
        for difference in [&[6][..], &[255], &[1, 0x0c], &[1, 0x05], &[1, 0x21], &[1, 0x1b, 1], &[9, 9, 9]] {
            assert_eq!(restore(&canonical, difference), Err(Unfit), "{difference:?}");
        }
        assert_eq!(restore(&canonical, &[0]).as_deref(), Ok(&*canonical));
        assert_eq!(restore(&canonical, &[]).as_deref(), Ok(&*canonical));
    }
}
