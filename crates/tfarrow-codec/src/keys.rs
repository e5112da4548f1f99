//! Finding a feature by its name, faster than by hashing it: most writers give every record the same keys in the same
//! order, so the next key is guessed, and compared together with the bytes of the wire around it.

use std::collections::HashMap;

use crate::{Limits, error::WireError, wire};

/// How many keys past the one that was guessed are tried before hashing: as many as a record may well leave out.
const LOOK_AHEAD: usize = 6;

/// An order of this many keys takes no others in between: each one that it takes moves all that follow.
const MERGED: usize = 1024;

/// A set of names, numbered in the order in which they were met.
#[derive(Debug)]
pub(crate) struct Keys {
    names: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32, foldhash::fast::RandomState>,
    /// Whether nobody wants a key, by its number; of those past its end that is not known.
    idle: Vec<bool>,
    /// What is expected of the next record: the start of each map entry, up to its value's length.
    order: Vec<Guess>,
    /// Where in `order` the next key is looked for.
    next: usize,
    /// How many keys of this record were where they were looked for, and how many were not.
    hits: u32,
    missed: u32,
    /// The keys of this record, where they are going to be the next order.
    seen: Vec<u32>,
    learns: bool,
    /// Where in `order` each key stands, by its number.
    places: Vec<u32>,
    /// Records to wait before another new order is believed, and how many to wait after that.
    wait: u32,
    patience: u32,
    name_bytes: usize,
    limits: Limits,
}

/// The start of the map entry that is expected.
#[derive(Debug)]
struct Guess {
    id: u32,
    /// Nobody wants it.
    idle: bool,
    /// The first eight bytes of `prefix`, and which bits of them it has.
    head: u64,
    mask: u64,
    /// The last eight bytes of a prefix of eight and more.
    tail: u64,
    /// Tag and length of the key, the key, and the tag of the value.
    prefix: Box<[u8]>,
}

impl Guess {
    fn new(id: u32, name: &[u8], idle: bool) -> Self {
        let mut prefix = Vec::new();
        wire::put_bytes(name, &mut prefix);
        prefix.push(0x12);
        let mut head = [0; 8];
        head.iter_mut().zip(&prefix).for_each(|(to, from)| *to = *from);
        let mask = if prefix.len() < 8 { (1 << (8 * prefix.len())) - 1 } else { u64::MAX };
        let tail = prefix.last_chunk::<8>().map_or(0, |tail| u64::from_le_bytes(*tail));
        Self { id, idle, head: u64::from_le_bytes(head), mask, tail, prefix: prefix.into() }
    }

    /// What follows the prefix in `entry`, if it begins with it. Words are compared before bytes are: two of them are all
    /// of most prefixes.
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

    /// What follows the map entry at the start of `map`, if it is this one in its shortest form, and nobody wants it.
    #[inline(always)]
    fn pass<'a>(&self, map: &'a [u8]) -> Option<&'a [u8]> {
        let [0x0a, rest @ ..] = map else { return None };
        let (entry, rest) = wire::short_bytes(rest).filter(|_| self.idle)?;
        let (_, nothing) = wire::short_bytes(self.strip(entry)?)?;
        nothing.is_empty().then_some(rest)
    }
}

impl Keys {
    /// Keys with these names, whatever their number, which have the numbers 0, 1 and so on: a name that is given twice has
    /// two. The limits are for what records have beside them.
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

    /// Tells whether nobody wants a key, for each by its number.
    pub(crate) fn with_idle(mut self, idle: Vec<bool>) -> Self {
        self.idle = idle;
        self
    }

    /// What records may have.
    #[inline]
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// All names, by number.
    pub(crate) fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Begins a record: its keys are expected from the first on.
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

    /// Expects the keys of the record just read: before it, most keys were not where they were looked for. Writers that
    /// give every record an order of its own are asked ever less often.
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

    fn guess_of(&self, id: u32) -> Guess {
        let name = self.names.get(id as usize).map_or(&[][..], |name| name.as_bytes());
        Guess::new(id, name, self.idle.get(id as usize).copied().unwrap_or(false))
    }

    /// Whether the entry that is expected next may be passed.
    #[inline(always)]
    pub(crate) fn may_pass(&self) -> bool {
        self.order.get(self.next).is_some_and(|guess| guess.idle) && !self.learns
    }

    /// Steps over the entries at the start of `map` that are those expected, and that nobody wants: most of them where a
    /// query is about a few of many features. The loop calls nothing, and so keeps all it has in registers.
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

    /// The number and the value of a map entry that has one of the keys expected here, then one value, and no more.
    #[inline(always)]
    pub(crate) fn guess<'a>(&mut self, entry: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let guess = self.order.get(self.next)?;
        match guess.strip(entry) {
            Some(rest) => {
                let (id, value) = (guess.id, wire::last_bytes(rest)?);
                self.hit(id, self.next + 1);
                Some((id, value))
            }
            None => self.guess_further(entry),
        }
    }

    /// The same, past the key that is expected first: this record leaves some out.
    #[inline(never)]
    fn guess_further<'a>(&mut self, entry: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let start = self.next + 1;
        let ahead = self.order.get(start..)?.iter().take(LOOK_AHEAD - 1);
        let (at, guess, rest) = ahead.enumerate().find_map(|(at, guess)| Some((at, guess, guess.strip(entry)?)))?;
        let (id, value) = (guess.id, wire::last_bytes(rest)?);
        self.hit(id, start + at + 1);
        Some((id, value))
    }

    /// Notes a key that was where it was looked for.
    #[inline(always)]
    fn hit(&mut self, id: u32, next: usize) {
        self.next = next;
        self.hits += 1;
        self.learn(id);
    }

    /// Notes a key of a record that gives the order. No key is given more than once but by those who mean no good.
    #[inline(always)]
    fn learn(&mut self, id: u32) {
        if self.learns && self.seen.len() < self.names.len() {
            self.seen.push(id);
        }
    }

    /// The number of a key; a new one where it is new. `None` where no more names are remembered.
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
                _ => self.expect(id),
            }
        }
        Ok(id)
    }

    /// Expects a key from now on where it was met: the record that gave the order did not have it.
    fn expect(&mut self, id: u32) {
        if self.order.len() >= MERGED {
            return;
        }
        let at = self.next.min(self.order.len());
        self.order.insert(at, self.guess_of(id));
        self.places.resize(self.names.len(), u32::MAX);
        self.index_order(at);
        self.next = at + 1;
    }

    /// Notes where the keys of the order stand, from the one at `at` on.
    fn index_order(&mut self, at: usize) {
        for (place, guess) in self.order.iter().enumerate().skip(at) {
            if let Some(slot) = self.places.get_mut(guess.id as usize) {
                *slot = place as u32;
            }
        }
    }

    /// Ends a record that does not parse, before which `known` names were known: removes the names that it brought, and
    /// does not learn its order.
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
        // A longer order takes no keys in between.
        if self.order.len() <= MERGED {
            self.order.retain(|guess| (guess.id as usize) < known);
            self.index_order(0);
        }
        self.places.truncate(known);
        self.next = 0;
    }

    fn insert(&mut self, name: &str) -> Option<u32> {
        let full = self.names.len() >= self.limits.features || self.name_bytes + name.len() > self.limits.name_bytes;
        if full { None } else { self.add(name) }
    }

    fn add(&mut self, name: &str) -> Option<u32> {
        let id = u32::try_from(self.names.len()).ok()?;
        self.name_bytes += name.len();
        self.names.push(name.into());
        self.ids.insert(name.into(), id);
        Some(id)
    }
}
