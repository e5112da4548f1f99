//! Looking up a feature by its key. Most writers give every record the same keys in the same order,
//! so that the next key is predicted from the records before, and compared together with the wire
//! bytes around it. Hashing is the fallback.
//!
//! A map entry (`map<string, Feature>` of `feature.proto`) in its usual form begins with bytes that
//! depend on its key alone, the *prefix* of a [`Guess`]:
//!
//! ```text
//! 0a 03 'a' 'g' 'e' 12 05 <Feature, 5 bytes>
//! └──── prefix ───────┘ └─ the value's length, which must end with the entry
//! ```
//!
//! [`Keys::order`](Keys) lists the guesses. Reading the keys `a c d x` after a record with `a b c
//! d`:
//!
//! ```text
//! entry  order, with next in []   lookup
//! a      [a] b  c  d              guess:         order[next] matches
//! c       a [b] c  d              guess_further: up to LOOK_AHEAD guesses are tried, c is the second
//! d       a  b  c [d]             guess
//! x       a  b  c  d []           find:          by hash; x is new, and inserted into the order
//!         a  b  c  d  x []
//! ```
//!
//! A record of which most keys were found by hash replaces the order ([`Keys::begin`]), unless
//! orders have changed too often.

use std::collections::HashMap;

use super::wire;
use crate::{Limits, WireError};

/// Number of guesses that are tried from the predicted one on before a key is hashed: a record may
/// well leave out a few features.
const LOOK_AHEAD: usize = 6;

/// Largest order that keys are inserted into. An insertion moves all guesses after it, so that its
/// cost grows with the order.
const MERGED: usize = 1024;

/// A set of names, numbered in the order in which they were added, and the prediction of the next
/// key.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The names, by number.
    names: Vec<Box<str>>,
    /// The number of each name. Of equal names, the last.
    ids: HashMap<Box<str>, u32, foldhash::fast::RandomState>,
    /// Whether a key is idle, by its number: its value is not needed. Keys past the end are not
    /// idle.
    idle: Vec<bool>,
    /// The predicted keys of the next record.
    order: Vec<Guess>,
    /// Index into `order` of the guess for the next key.
    next: usize,
    /// Number of keys of this record that a guess matched.
    hits: u32,
    /// Number of keys of this record that were looked up by hash.
    missed: u32,
    /// The keys of this record, if it is to give the next order.
    seen: Vec<u32>,
    /// Whether this record is to give the next order.
    learns: bool,
    /// Index into `order` of each key, by its number; `u32::MAX` for keys that are not in it.
    places: Vec<u32>,
    /// Number of records with mostly hashed keys to wait before another one gives the order.
    wait: u32,
    /// Value of `wait` after the next change of the order. It doubles with each change, up to
    /// 1,024, and is 1 again after a record whose keys were mostly guessed.
    patience: u32,
    /// Size of all names in bytes, which [`Limits::name_bytes`] bounds.
    name_bytes: usize,
    limits: Limits,
}

/// The start of the map entry that is expected, in a form that is compared quickly.
#[derive(Debug)]
struct Guess {
    /// The number of the key.
    id: u32,
    /// Whether the value of the key is not needed.
    idle: bool,
    /// The first eight bytes of `prefix` as a little-endian word.
    head: u64,
    /// The bits of `head` that are part of the prefix: all of them for prefixes of eight bytes or
    /// more.
    mask: u64,
    /// The last eight bytes of the prefix, if it has as many; otherwise 0.
    tail: u64,
    /// Tag and length of the key, the key, and the tag of the value.
    prefix: Box<[u8]>,
}

impl Guess {
    /// Creates the guess of a key: field 1 with the name, then the tag of field 2.
    fn new(id: u32, name: &[u8], idle: bool) -> Self {
        let mut prefix = Vec::new();
        wire::put_bytes(name, &mut prefix);
        prefix.push(0x12);
        let mut head = [0; 8];
        head.iter_mut()
            .zip(&prefix)
            .for_each(|(to, from)| *to = *from);
        let mask = if prefix.len() < 8 {
            (1 << (8 * prefix.len())) - 1
        } else {
            u64::MAX
        };
        let tail = prefix
            .last_chunk::<8>()
            .map_or(0, |tail| u64::from_le_bytes(*tail));
        Self {
            id,
            idle,
            head: u64::from_le_bytes(head),
            mask,
            tail,
            prefix: prefix.into(),
        }
    }

    /// Returns the bytes after the prefix if `entry` begins with it. Two words are compared first;
    /// they cover all bytes of a prefix of up to 16 bytes. All bytes are compared if the prefix is
    /// longer, or if `entry` has fewer than eight bytes.
    ///
    /// ```text
    /// prefix 0a 03 'a' 'g' 'e' 12 (6 bytes)      mask ff ff ff ff ff ff 00 00
    /// entry  0a 03 'a' 'g' 'e' 12 05 1a ..       entry & mask == head: equal
    /// ```
    #[inline(always)]
    fn strip<'a>(&self, entry: &'a [u8]) -> Option<&'a [u8]> {
        let (start, rest) = entry.split_at_checked(self.prefix.len())?;
        match (entry.first_chunk::<8>(), start.last_chunk::<8>()) {
            (Some(head), _) if u64::from_le_bytes(*head) & self.mask != self.head => None,
            (Some(_), Some(tail)) if u64::from_le_bytes(*tail) != self.tail => None,
            (Some(_), _) if self.prefix.len() <= 16 => Some(rest),
            _ => (*start == *self.prefix).then_some(rest),
        }
    }

    /// Returns the bytes after the map entry at the start of `map`, if it has this key, is in the
    /// usual form with lengths of one or two bytes, and its value is not needed.
    #[inline(always)]
    fn pass<'a>(&self, map: &'a [u8]) -> Option<&'a [u8]> {
        let [0x0a, rest @ ..] = map else { return None };
        let (entry, rest) = wire::short_bytes(rest).filter(|_| self.idle)?;
        let (_, nothing) = wire::short_bytes(self.strip(entry)?)?;
        nothing.is_empty().then_some(rest)
    }
}

impl Keys {
    /// Creates a set of `names`, numbered 0, 1 and so on; a name that is given twice gets two
    /// numbers. The limits apply to further names of records, not to these.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>, limits: Limits) -> Self {
        let mut keys = Self {
            names: Vec::new(),
            ids: HashMap::default(),
            idle: Vec::new(),
            order: Vec::new(),
            next: 0,
            hits: 0,
            missed: 0,
            seen: Vec::new(),
            learns: true,
            places: Vec::new(),
            wait: 0,
            patience: 1,
            name_bytes: 0,
            limits,
        };
        for name in names {
            keys.add(name);
        }
        keys
    }

    /// Sets for each key, by its number, whether its value is not needed.
    pub(crate) fn with_idle(mut self, idle: Vec<bool>) -> Self {
        self.idle = idle;
        self
    }

    /// Returns the limits for records.
    #[inline]
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns all names, by number.
    pub(crate) fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Begins a record. Decides whether the record before gives the order, and whether this one is
    /// to give the next: that is so if more keys of the record before were hashed than guessed, and
    /// `wait` records have passed.
    pub(crate) fn begin(&mut self) {
        if self.learns {
            self.learn_order();
        } else if self.missed <= self.hits {
            self.patience = 1;
        } else if self.wait > 0 {
            self.wait -= 1;
        } else {
            self.learns = true;
        }
        (self.next, self.hits, self.missed) = (0, 0, 0);
    }

    /// Replaces the order by the keys of the record before, and doubles the number of records to
    /// wait. Writers without a fixed order thus cause ever fewer changes.
    fn learn_order(&mut self) {
        if self.seen.is_empty() {
            return;
        }
        self.order = self.seen.iter().map(|id| self.guess_of(*id)).collect();
        self.places.clear();
        self.places.resize(self.names.len(), u32::MAX);
        for (place, id) in self.seen.drain(..).enumerate() {
            if let Some(slot) = self.places.get_mut(id as usize) {
                *slot = place as u32;
            }
        }
        self.learns = false;
        self.wait = self.patience;
        self.patience = (self.patience * 2).min(1024);
    }

    /// Creates the guess of a key by its number.
    fn guess_of(&self, id: u32) -> Guess {
        let name = self
            .names
            .get(id as usize)
            .map_or(&[][..], |name| name.as_bytes());
        Guess::new(
            id,
            name,
            self.idle.get(id as usize).copied().unwrap_or(false),
        )
    }

    /// Returns whether the next guess is of a key whose value is not needed.
    #[inline(always)]
    pub(crate) fn may_pass(&self) -> bool {
        self.order.get(self.next).is_some_and(|guess| guess.idle) && !self.learns
    }

    /// Skips the entries at the start of `map` that match their guesses and whose values are not
    /// needed, and returns the rest. In a query of few of many features these are most entries. The
    /// loop calls no function, so that its variables stay in registers.
    #[inline(never)]
    pub(crate) fn pass<'a>(&mut self, mut map: &'a [u8]) -> &'a [u8] {
        let mut next = self.next;
        while let Some(rest) = self.order.get(next).and_then(|guess| guess.pass(map)) {
            (map, next) = (rest, next + 1);
        }
        self.hits += (next - self.next) as u32;
        self.next = next;
        map
    }

    /// Returns the number of the key and the value of a map entry, if the entry has one of the
    /// predicted keys, in the usual form: a key, a value, and nothing after it.
    #[inline(always)]
    pub(crate) fn guess<'a>(&mut self, entry: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let guess = self.order.get(self.next)?;
        match guess.strip(entry) {
            Some(rest) => {
                let id = guess.id;
                let value = wire::last_bytes(rest)?;
                self.hit(id, self.next + 1);
                Some((id, value))
            }
            None => self.guess_further(entry),
        }
    }

    /// Tries the guesses after the next one: the record leaves out a few features.
    #[inline(never)]
    fn guess_further<'a>(&mut self, entry: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let start = self.next + 1;
        let ahead = self.order.get(start..)?.iter().take(LOOK_AHEAD - 1);
        let (at, guess, rest) = ahead
            .enumerate()
            .find_map(|(at, guess)| Some((at, guess, guess.strip(entry)?)))?;
        let id = guess.id;
        let value = wire::last_bytes(rest)?;
        self.hit(id, start + at + 1);
        Some((id, value))
    }

    /// Counts a key that a guess matched, and continues with the guess at `next`.
    #[inline(always)]
    fn hit(&mut self, id: u32, next: usize) {
        self.next = next;
        self.hits += 1;
        self.learn(id);
    }

    /// Adds a key to the next order. A record with more keys than there are names repeats some,
    /// which the order does not need.
    #[inline(always)]
    fn learn(&mut self, id: u32) {
        if self.learns && self.seen.len() < self.names.len() {
            self.seen.push(id);
        }
    }

    /// Looks up a key by hash, and adds it if it is new. Returns its number; `None` for a new key
    /// above [`Limits::features`] or [`Limits::name_bytes`].
    ///
    /// # Errors
    /// [`WireError::LongKey`] for a key above [`Limits::key_bytes`], [`WireError::Key`] for one
    /// that is not UTF-8.
    pub(crate) fn find(&mut self, key: &[u8]) -> wire::Result<Option<u32>> {
        if key.len() > self.limits.key_bytes {
            return Err(WireError::LongKey);
        }
        let key = simdutf8::basic::from_utf8(key).map_err(|_| WireError::Key)?;
        let id = match self.ids.get(key) {
            Some(id) => Some(*id),
            None => self.insert(key),
        };
        if let Some(id) = id {
            self.missed += 1;
            self.learn(id);
            match self.places.get(id as usize) {
                Some(place) if *place != u32::MAX => self.next = *place as usize + 1,
                _ if self.learns => {}
                _ => self.insert_guess(id),
            }
        }
        Ok(id)
    }

    /// Inserts a key into the order before the next guess, as the record has it there.
    ///
    /// ```text
    /// order a b [c]     the record has x here     ->   order a b x [c]
    /// ```
    fn insert_guess(&mut self, id: u32) {
        if self.order.len() >= MERGED {
            return;
        }
        let at = self.next.min(self.order.len());
        self.order.insert(at, self.guess_of(id));
        self.places.resize(self.names.len(), u32::MAX);
        self.index_order(at);
        self.next = at + 1;
    }

    /// Updates `places` for the guesses from index `at` on.
    fn index_order(&mut self, at: usize) {
        for (place, guess) in self.order.iter().enumerate().skip(at) {
            if let Some(slot) = self.places.get_mut(guess.id as usize) {
                *slot = place as u32;
            }
        }
    }

    /// Undoes a record that does not parse: removes the names that it added to the `known` ones,
    /// and does not learn its order.
    ///
    /// Without it, the names of corrupt records would fill the limits that other records need.
    #[cold]
    pub(crate) fn abandon(&mut self, known: usize) {
        self.seen.clear();
        if self.names.len() <= known {
            return;
        }
        for name in self.names.drain(known..) {
            self.name_bytes -= name.len();
            self.ids.remove(&name);
        }
        // Keys are inserted only into orders of up to MERGED guesses; a longer order was learned
        // from a record that parsed.
        if self.order.len() <= MERGED {
            self.order.retain(|guess| (guess.id as usize) < known);
            self.index_order(0);
        }
        self.places.truncate(known);
        self.next = 0;
    }

    /// Adds a name unless the limits forbid it.
    fn insert(&mut self, name: &str) -> Option<u32> {
        let full = self.names.len() >= self.limits.features
            || self.name_bytes + name.len() > self.limits.name_bytes;
        if full { None } else { self.add(name) }
    }

    /// Adds a name without regard to the limits. `None` if there are 2^32 names.
    fn add(&mut self, name: &str) -> Option<u32> {
        let id = u32::try_from(self.names.len()).ok()?;
        self.name_bytes += name.len();
        self.names.push(name.into());
        self.ids.insert(name.into(), id);
        Some(id)
    }
}
