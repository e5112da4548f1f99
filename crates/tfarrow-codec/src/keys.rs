//! Finding a feature by its name, faster than by hashing it: most writers give every record the same keys in the same
//! order, so the next key is guessed, and compared together with the bytes of the wire around it.

use std::collections::HashMap;

use crate::{Limits, error::WireError, wire};

/// How many keys past the one that was guessed are tried before hashing: as many as a record may well leave out.
const LOOK_AHEAD: usize = 4;

/// A set of names, numbered in the order in which they were met.
#[derive(Debug)]
pub(crate) struct Keys {
    names: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32, foldhash::fast::RandomState>,
    /// What is expected of the next record: the start of each map entry, up to its value's length.
    order: Vec<Guess>,
    /// Where in `order` the next key is looked for.
    next: usize,
    /// The keys of this record, and how many of them were not where they were looked for.
    seen: Vec<u32>,
    missed: usize,
    /// Where in `order` each key stands, by its number.
    places: Vec<u32>,
    /// Records to wait before another new order is believed, and how many to wait after that.
    wait: u32,
    patience: u32,
    name_bytes: usize,
    limits: Limits,
}

#[derive(Debug)]
struct Guess {
    id: u32,
    /// Tag and length of the key, the key, and the tag of the value.
    prefix: Box<[u8]>,
}

impl Keys {
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>, limits: Limits) -> Self {
        let mut keys = Self {
            names: Vec::new(),
            ids: HashMap::default(),
            order: Vec::new(),
            next: 0,
            seen: Vec::new(),
            missed: 0,
            places: Vec::new(),
            wait: 0,
            patience: 1,
            name_bytes: 0,
            limits,
        };
        for name in names {
            keys.insert(name);
        }
        keys
    }

    /// All names, by number.
    pub(crate) fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Begins a record: its keys are expected from the first on.
    pub(crate) fn begin(&mut self) {
        if self.missed * 2 <= self.seen.len() {
            self.patience = 1;
        } else if self.wait == 0 {
            self.learn_order();
        } else {
            self.wait -= 1;
        }
        (self.next, self.missed) = (0, 0);
        self.seen.clear();
    }

    /// Expects the keys of the record just read, of which most were not where they were looked for. Writers that give
    /// every record an order of its own are asked ever less often.
    fn learn_order(&mut self) {
        self.order = self.seen.iter().map(|id| self.guess_of(*id)).collect();
        self.places.clear();
        self.places.resize(self.names.len(), u32::MAX);
        for (place, id) in self.seen.iter().enumerate() {
            if let Some(slot) = self.places.get_mut(*id as usize) {
                *slot = place as u32;
            }
        }
        self.wait = self.patience;
        self.patience = (self.patience * 2).min(1024);
    }

    fn guess_of(&self, id: u32) -> Guess {
        let name = self.names.get(id as usize).map_or(&[][..], |name| name.as_bytes());
        let mut prefix = vec![0x0a];
        let mut length = name.len();
        while length >= 0x80 {
            prefix.push(length as u8 | 0x80);
            length >>= 7;
        }
        prefix.push(length as u8);
        prefix.extend_from_slice(name);
        prefix.push(0x12);
        Guess { id, prefix: prefix.into() }
    }

    /// The number and the value of a map entry that has one of the keys expected here, then one value, and no more.
    #[inline]
    pub(crate) fn guess<'a>(&mut self, entry: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let ahead = self.order.get(self.next..)?;
        for (i, guess) in ahead.iter().enumerate().take(LOOK_AHEAD) {
            if let Some(rest) = entry.strip_prefix(&*guess.prefix) {
                let mut rest = rest;
                let value = wire::bytes(&mut rest).ok()?;
                if !rest.is_empty() {
                    return None;
                }
                self.next += i + 1;
                self.seen.push(guess.id);
                return Some((guess.id, value));
            }
        }
        None
    }

    /// The number of a key; a new one where it is new. `None` where no more names are remembered.
    pub(crate) fn find(&mut self, key: &[u8]) -> wire::Result<Option<u32>> {
        let key = simdutf8::basic::from_utf8(key).map_err(|_| WireError::Key)?;
        let id = match self.ids.get(key) {
            Some(id) => Some(*id),
            None => self.insert(key),
        };
        if let Some(id) = id {
            self.missed += 1;
            self.seen.push(id);
            if let Some(place) = self.places.get(id as usize).filter(|place| **place != u32::MAX) {
                self.next = *place as usize + 1;
            }
        }
        Ok(id)
    }

    fn insert(&mut self, name: &str) -> Option<u32> {
        let full = self.names.len() >= self.limits.features || self.name_bytes + name.len() > self.limits.name_bytes;
        let id = u32::try_from(self.names.len()).ok().filter(|_| !full)?;
        self.name_bytes += name.len();
        self.names.push(name.into());
        self.ids.insert(name.into(), id);
        Some(id)
    }
}
