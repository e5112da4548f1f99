//! Comparison by key: records are partners if they have the same values of the key features, in any
//! order.
//!
//! The records of the right data set are held in memory by key, and those of the left one look up
//! their partners. If the right records exceed the memory limit, half of them are dropped, by a bit
//! of the hash of their keys, as often as needed; further passes over both data sets compare the
//! others.
//!
//! ```text
//! right    a b c d e f g h     limit: 4 records                 pass 1    hash ends in 0     a c d g
//! left     h a c d g b f e                                      pass 2    hash ends in 1     b e f h
//! ```
//!
//! No temporary files are written. A pass takes the time of reading both data sets, and their
//! number is about the size of the right data set divided by the limit.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use tfarrow_codec::{
    WireError,
    diff::{Incomparable, KeyReader, RecordKey},
};
use tfarrow_dataset::internals::no_such_name;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    report::{DataSetDiff, DiffOptions, KeyReport, RecordDifference, RecordPosition},
    rules::Rules,
    sides::{DiffSide, Sources},
    unmatched::Unmatched,
};
use crate::{Error, Progress, Result};

/// Bytes that a held record takes beside its key and its data: its place in a table that is rarely
/// full and is copied where it grows, its place in the records of its key, and what the allocator
/// adds to the four pieces of memory.
const HELD_BYTES: usize = 3 * size_of::<(RecordKey, KeyGroup)>() + size_of::<HeldRecord>() + 4 * 16;

/// Compares two data sets by the key features of the options.
///
/// # Errors
/// Errors of reading, records that cannot be compared, a key feature that no record has, records of
/// one key that exceed the memory limit, errors of writing unmatched records, and
/// [`Error::Cancelled`].
pub(super) fn compare(
    sources: &Sources<'_>,
    rules: Rules,
    unmatched: &mut Unmatched,
    options: &DiffOptions,
) -> Result<DataSetDiff> {
    let mut features: Vec<String> = Vec::new();
    for name in &options.on {
        if !features.contains(name) {
            features.push(name.clone());
        }
    }
    let keys = KeyReader::new(&features, sources.record_type, options.read.limits);
    let found = DataSetDiff {
        keys: Some(KeyReport {
            features,
            ..KeyReport::default()
        }),
        ..DataSetDiff::new()
    };
    let mut comparison = KeyedComparison {
        rules,
        keys,
        unmatched,
        options,
        progress: sources.progress,
        found,
    };
    let mut parts = vec![KeyPart::ALL];
    while let Some(part) = parts.pop() {
        sources.progress.restart(sources.bytes());
        let ((), skipped) =
            sources.read(options, |sides| comparison.pass(sides, part, &mut parts))?;
        comparison.end_pass();
        if part.is_first() {
            comparison.found.skipped = skipped;
            comparison.check_features()?;
        }
    }
    Ok(comparison.found)
}

/// The keys whose hashes end in some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeyPart {
    /// The number of bits.
    bits: u32,
    /// Their value.
    end: u64,
}

impl KeyPart {
    /// All keys.
    const ALL: Self = Self { bits: 0, end: 0 };

    fn has(self, key: &RecordKey) -> bool {
        xxh3_64(key.bytes()) & ((1 << self.bits) - 1) == self.end
    }

    /// The two halves of this part. The first one has the [first](Self::is_first) part if this one
    /// has it.
    fn halves(self) -> [Self; 2] {
        let bits = self.bits + 1;
        [
            Self { bits, ..self },
            Self {
                bits,
                end: self.end | 1 << self.bits,
            },
        ]
    }

    /// Whether this is the part whose pass counts the records, and takes those without a key.
    fn is_first(self) -> bool {
        self.end == 0
    }
}

/// A record of the right data set.
struct HeldRecord {
    number: u64,
    position: RecordPosition,
    data: Box<[u8]>,
}

/// The records of one key.
#[derive(Default)]
struct KeyGroup {
    /// The records of the right data set without a partner so far, in their order.
    held: VecDeque<HeldRecord>,
    /// Number of records of the left and of the right data set.
    records: [u64; 2],
}

impl KeyGroup {
    /// Adds a record of the right data set.
    fn hold(&mut self, record: HeldRecord) {
        self.records[1] += 1;
        // Most keys have one record, and a first growth would make room for four.
        if self.held.is_empty() {
            self.held.reserve_exact(1);
        }
        self.held.push_back(record);
    }
}

/// The records of the right data set that a pass holds, by key.
#[derive(Default)]
struct HeldRecords {
    groups: HashMap<RecordKey, KeyGroup, RandomState>,
    bytes: usize,
}

impl HeldRecords {
    fn add(&mut self, key: RecordKey, record: HeldRecord) {
        self.bytes += bytes_of(&key, &record);
        self.groups.entry(key).or_default().hold(record);
    }

    /// Drops the records whose keys are not of `part`.
    fn keep(&mut self, part: KeyPart) {
        self.groups.retain(|key, _| part.has(key));
        let records = self
            .groups
            .iter()
            .flat_map(|(key, group)| group.held.iter().map(move |record| (key, record)));
        self.bytes = records.map(|(key, record)| bytes_of(key, record)).sum();
    }
}

fn bytes_of(key: &RecordKey, record: &HeldRecord) -> usize {
    key.bytes().len() + record.data.len() + HELD_BYTES
}

/// A running comparison.
struct KeyedComparison<'c> {
    rules: Rules,
    keys: KeyReader,
    unmatched: &'c mut Unmatched,
    options: &'c DiffOptions,
    progress: &'c Progress,
    /// The result of all passes so far.
    found: DataSetDiff,
}

impl KeyedComparison<'_> {
    /// Compares the records of `part`, or of a half of it: the other halves are added to `parts`.
    fn pass(
        &mut self,
        [left, right]: [DiffSide; 2],
        part: KeyPart,
        parts: &mut Vec<KeyPart>,
    ) -> Result<()> {
        let (part, mut held) = self.hold(right, part, parts)?;
        self.match_left(left, part, &mut held)?;
        for group in held.groups.values().filter(|group| group.records[0] > 0) {
            self.count(|keys| {
                for (repeated, records) in keys.repeated.iter_mut().zip(group.records) {
                    *repeated += records.saturating_sub(1);
                }
            });
        }
        self.add_right(held)
    }

    /// Adds the records of the right data set that have no partner, in their order.
    fn add_right(&mut self, held: HeldRecords) -> Result<()> {
        let mut unpaired =
            Vec::with_capacity(held.groups.values().map(|group| group.held.len()).sum());
        for (key, group) in &held.groups {
            unpaired.extend(group.held.iter().map(|record| (key, record)));
        }
        unpaired.sort_unstable_by_key(|(_, record)| record.number);
        for (
            key,
            HeldRecord {
                number,
                position,
                data,
            },
        ) in unpaired
        {
            self.add_unpaired(1, (*number, position.clone()), data, Some(key))?;
        }
        Ok(())
    }

    /// Reads the right data set, and holds the records of `part`, or of a half of it that is within
    /// the memory limit.
    fn hold(
        &mut self,
        mut right: DiffSide,
        mut part: KeyPart,
        parts: &mut Vec<KeyPart>,
    ) -> Result<(KeyPart, HeldRecords)> {
        let mut held = HeldRecords::default();
        let is_first = part.is_first();
        while let Some(record) = right.peek(0)? {
            self.check_cancelled()?;
            match self.key(record.data(), Incomparable::Right)? {
                Some(key) if part.has(&key) => {
                    let position = record.position();
                    let data = record.data().into();
                    held.add(
                        key,
                        HeldRecord {
                            number: right.number,
                            position,
                            data,
                        },
                    );
                    while held.bytes > self.options.memory_limit {
                        // Keys of one hash cannot be divided.
                        if held.groups.len() == 1 || part.bits == u64::BITS - 1 {
                            return Err(self.too_many_of_one_key(&held));
                        }
                        let [kept, other] = part.halves();
                        held.keep(kept);
                        parts.push(other);
                        part = kept;
                    }
                }
                Some(_) => {}
                None if is_first => {
                    self.add_keyless(1, (right.number, record.position()), record.data())?
                }
                None => {}
            }
            right.advance();
        }
        if is_first {
            self.found.records[1] = right.number;
        }
        Ok((part, held))
    }

    /// Reads the left data set, and compares the records of `part` with their partners.
    fn match_left(
        &mut self,
        mut left: DiffSide,
        part: KeyPart,
        held: &mut HeldRecords,
    ) -> Result<()> {
        while let Some(record) = left.peek(0)? {
            self.check_cancelled()?;
            self.progress.add_records(u64::from(part.is_first()));
            let place = (left.number, record.position());
            match self.key(record.data(), Incomparable::Left)? {
                Some(key) if part.has(&key) => {
                    let group = held.groups.get_mut(&key);
                    let partner = group.and_then(|group| {
                        group.records[0] += 1;
                        group.held.pop_front()
                    });
                    match partner {
                        Some(partner) => self.add_pair(place, record.data(), partner, &key)?,
                        None => self.add_unpaired(0, place, record.data(), Some(&key))?,
                    }
                }
                Some(_) => {}
                None if part.is_first() => self.add_keyless(0, place, record.data())?,
                None => {}
            }
            left.advance();
        }
        if part.is_first() {
            self.found.records[0] = left.number;
        }
        Ok(())
    }

    fn key(
        &mut self,
        data: &[u8],
        wrap: fn(WireError) -> Incomparable,
    ) -> Result<Option<RecordKey>> {
        self.keys
            .key(data)
            .map_err(|error| Error::Incomparable(wrap(error)))
    }

    fn add_pair(
        &mut self,
        (number, position): (u64, RecordPosition),
        data: &[u8],
        partner: HeldRecord,
        key: &RecordKey,
    ) -> Result<()> {
        let differences = self
            .rules
            .compare(data, &partner.data)
            .map_err(Error::Incomparable)?;
        let before = self.found.first.len();
        self.found.add_pair(
            number,
            [position, partner.position],
            differences,
            usize::MAX,
        );
        self.add_key(before, Some(key));
        Ok(())
    }

    fn add_unpaired(
        &mut self,
        side: usize,
        (number, position): (u64, RecordPosition),
        data: &[u8],
        key: Option<&RecordKey>,
    ) -> Result<()> {
        let before = self.found.first.len();
        self.found.add_unpaired(side, number, position, usize::MAX);
        self.add_key(before, key);
        self.unmatched.add(side, data)
    }

    fn add_keyless(
        &mut self,
        side: usize,
        place: (u64, RecordPosition),
        data: &[u8],
    ) -> Result<()> {
        self.count(|keys| keys.missing[side] += 1);
        self.add_unpaired(side, place, data, None)
    }

    /// Adds the key to the difference that was added after `before` others. Drops differences that
    /// are not among the first.
    fn add_key(&mut self, before: usize, key: Option<&RecordKey>) {
        let first = &mut self.found.first;
        if let Some(added) = first.get_mut(before) {
            added.key = key.map(RecordKey::values);
        }
        if first.len() > 1000 + 2 * self.options.max_differences {
            keep_first(first, self.options.max_differences);
        }
    }

    fn count(&mut self, add: impl FnOnce(&mut KeyReport)) {
        if let Some(keys) = &mut self.found.keys {
            add(keys);
        }
    }

    fn end_pass(&mut self) {
        self.count(|keys| keys.passes += 1);
        keep_first(&mut self.found.first, self.options.max_differences);
    }

    /// Checks that each key feature is in some record, if there are records.
    fn check_features(&self) -> Result<()> {
        match self
            .keys
            .missing()
            .next()
            .filter(|_| self.found.records != [0, 0])
        {
            None => Ok(()),
            Some(missing) => {
                let mut others: Vec<_> = self.keys.others().collect();
                others.sort_unstable();
                Err(Error::Selection {
                    path: None,
                    message: no_such_name("feature", missing, &others),
                    sampled: false,
                })
            }
        }
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.progress.is_cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }

    fn too_many_of_one_key(&self, held: &HeldRecords) -> Error {
        let records = held
            .groups
            .values()
            .map(|group| group.held.len())
            .sum::<usize>();
        let limit = self.options.memory_limit;
        let key = held.groups.keys().next().zip(self.found.keys.as_ref());
        let key = key
            .map(|(key, report)| report.text(&key.values()))
            .unwrap_or_default();
        Error::Data(format!(
            "the first {records} records with the key {key} exceed the memory limit of {limit} bytes; choose keys that distinguish \
             records, or raise the limit"
        ))
    }
}

/// Keeps the first `max` differences by the number of their record; of one number, the left record
/// comes first.
fn keep_first(differences: &mut Vec<RecordDifference>, max: usize) {
    differences.sort_by_key(|difference| (difference.number, difference.positions[0].is_none()));
    differences.truncate(max);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_record_with_a_key_of_its_own_takes_the_place_of_one() {
        let position = RecordPosition {
            path: Arc::default(),
            record: 0,
            offset: None,
        };
        let held = || HeldRecord {
            number: 0,
            position: position.clone(),
            data: Box::default(),
        };
        let mut group = KeyGroup::default();
        group.hold(held());
        assert_eq!(group.held.capacity(), 1);
        // A place in the table may be empty, or be copied where the table grows.
        assert!(HELD_BYTES >= 3 * size_of::<(RecordKey, KeyGroup)>() + size_of::<HeldRecord>());
        for _ in 0..100 {
            group.hold(held());
        }
        assert!(group.held.capacity() < 256 && group.records == [0, 101]);
    }

    #[test]
    fn parts_of_keys_are_halved() {
        let [first, second] = KeyPart::ALL.halves();
        let quarters = second.halves();
        assert_eq!(
            (first, first.is_first(), second.is_first()),
            (KeyPart { bits: 1, end: 0 }, true, false)
        );
        assert_eq!(
            quarters,
            [KeyPart { bits: 2, end: 1 }, KeyPart { bits: 2, end: 3 }]
        );
        assert_eq!(
            first.halves(),
            [KeyPart { bits: 2, end: 0 }, KeyPart { bits: 2, end: 2 }]
        );
    }
}
