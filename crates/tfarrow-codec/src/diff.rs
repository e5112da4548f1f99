//! In what two records differ: feature by feature, whatever form the wire has.

use std::{collections::BTreeSet, fmt};

use crate::{
    Kind, Limits, RecordType, Role, WireError,
    keys::Keys,
    tape::{Slot, State, slot},
    walk::{self, Numbers, Side, Visitor},
    wire,
};

/// Something in which two records differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The feature, and whether it is a [feature list](Role::Sequence) or a [feature](Role::Feature); `None`: the records
    /// as a whole.
    pub feature: Option<(Role, String)>,
    /// What differs.
    pub what: DifferenceKind,
}

/// In what two records, or two features, differ. The first of each pair is the left record's.
#[derive(Clone, Debug, PartialEq)]
pub enum DifferenceKind {
    /// The right record has no such feature.
    OnlyLeft,
    /// The left record has no such feature.
    OnlyRight,
    /// The kinds; `None` of a feature without one.
    Kinds(Option<Kind>, Option<Kind>),
    /// How many steps feature lists have.
    Steps(usize, usize),
    /// How many values lists have.
    Lengths(usize, usize),
    /// The first values that differ, and their place in the list.
    Values {
        /// The step of a feature list.
        step: Option<usize>,
        /// The value's place in its list, from 0.
        index: usize,
        /// The values.
        values: [Value; 2],
    },
    /// Bytes that are no feature: the records' other fields, or records that are no messages.
    Bytes,
}

/// One value of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a `bytes_list`.
    Bytes(Vec<u8>),
    /// Of a `float_list`: its bits.
    Float(u32),
    /// Of an `int64_list`.
    Int64(i64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int64(value) => value.fmt(f),
            Self::Float(bits) => {
                let value = f32::from_bits(*bits);
                if value.is_nan() { write!(f, "NaN ({bits:#010x})") } else { write!(f, "{value:?}") }
            }
            Self::Bytes(bytes) => match str::from_utf8(bytes) {
                Ok(text) => write!(f, "{text:?}"),
                Err(_) => write!(f, "\"{}\"", bytes.escape_ascii()),
            },
        }
    }
}

/// Why records cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomparable {
    /// The left record does not parse.
    Left(WireError),
    /// The right record does not parse.
    Right(WireError),
    /// They have more names than [`Limits`] allow.
    Names,
}

/// Compares records. It remembers names, so that it is worth keeping.
#[derive(Debug)]
pub struct Differ {
    /// Whether field 2 is `feature_lists`.
    lists: bool,
    keys: [Keys; 2],
    left: Found,
    right: Found,
}

/// What a record has: for each side and key the place of its message.
#[derive(Debug, Default)]
struct Found {
    slots: [Vec<Option<Slot>>; 2],
    joined: Vec<u8>,
    /// Whether it has fields besides its features.
    has_others: bool,
    forgot: bool,
}

impl Differ {
    /// Of messages of this type, with no more names than these limits allow.
    pub fn new(record_type: RecordType, limits: Limits) -> Self {
        let keys = || Keys::new([], limits);
        let lists = record_type == RecordType::SequenceExample;
        Self { lists, keys: [keys(), keys()], left: Found::default(), right: Found::default() }
    }

    /// In what two messages differ: nothing, where they have the same features with the same values, floats to the bit.
    /// A feature without a kind is another thing than one that is not there. Context features of a SequenceExample are
    /// features here, as they stand in the same field.
    ///
    /// # Errors
    /// Where one of them does not parse.
    pub fn compare(&mut self, left: &[u8], right: &[u8]) -> Result<Vec<Difference>, Incomparable> {
        if left == right {
            return Ok(Vec::new());
        }
        self.left.read(left, self.lists, &mut self.keys).map_err(Incomparable::Left)?;
        self.right.read(right, self.lists, &mut self.keys).map_err(Incomparable::Right)?;
        if self.left.forgot || self.right.forgot {
            return Err(Incomparable::Names);
        }
        let mut differences = Vec::new();
        for (side, role) in [(Side::Features, Role::Feature), (Side::Lists, Role::Sequence)] {
            for id in self.ids(side) {
                let what = self.feature(side, id, left, right)?;
                let name = self.keys[side as usize].names().get(id).map_or("", |name| name);
                differences.extend(what.map(|what| Difference { feature: Some((role, name.to_owned())), what }));
            }
        }
        if differences.is_empty() && (self.left.has_others || self.right.has_others) {
            differences.push(Difference { feature: None, what: DifferenceKind::Bytes });
        }
        Ok(differences)
    }

    /// The keys that either record has, by name.
    fn ids(&self, side: Side) -> Vec<usize> {
        let of = |found: &Found| {
            let slots = found.slots[side as usize].iter().enumerate();
            slots.filter_map(|(id, slot)| slot.map(|_| id)).collect::<Vec<_>>()
        };
        let ids: BTreeSet<_> = of(&self.left).into_iter().chain(of(&self.right)).collect();
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_by_key(|id| self.keys[side as usize].names().get(*id));
        ids
    }

    fn feature(
        &self,
        side: Side,
        id: usize,
        left: &[u8],
        right: &[u8],
    ) -> Result<Option<DifferenceKind>, Incomparable> {
        let message = |found: &Found| found.slots[side as usize].get(id).copied().flatten();
        let (one, other) = match (message(&self.left), message(&self.right)) {
            (Some(one), Some(other)) => (one.body(left, &self.left.joined), other.body(right, &self.right.joined)),
            (Some(_), None) => return Ok(Some(DifferenceKind::OnlyLeft)),
            (None, Some(_)) => return Ok(Some(DifferenceKind::OnlyRight)),
            (None, None) => return Ok(None),
        };
        if one == other {
            return Ok(None);
        }
        let nesting = self.keys[0].limits().nesting;
        let (one, other) = match side {
            Side::Features => {
                let one = list(one, nesting).map_err(Incomparable::Left)?;
                return Ok(differ(None, &one, &list(other, nesting).map_err(Incomparable::Right)?));
            }
            Side::Lists => {
                (steps(one, nesting).map_err(Incomparable::Left)?, steps(other, nesting).map_err(Incomparable::Right)?)
            }
        };
        if one.len() != other.len() {
            return Ok(Some(DifferenceKind::Steps(one.len(), other.len())));
        }
        Ok(one.iter().zip(&other).enumerate().find_map(|(step, (one, other))| differ(Some(step), one, other)))
    }
}

/// The list of a feature.
#[derive(Debug)]
enum List {
    Unset,
    Bytes(Vec<Vec<u8>>),
    /// As bits.
    Float(Vec<u32>),
    Int64(Vec<i64>),
}

impl List {
    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Unset => None,
            Self::Bytes(_) => Some(Kind::Bytes),
            Self::Float(_) => Some(Kind::Float),
            Self::Int64(_) => Some(Kind::Int64),
        }
    }
}

fn differ(step: Option<usize>, one: &List, other: &List) -> Option<DifferenceKind> {
    match (one, other) {
        (List::Unset, List::Unset) => None,
        (List::Bytes(one), List::Bytes(other)) => first(step, one, other, |value| Value::Bytes(value.clone())),
        (List::Float(one), List::Float(other)) => first(step, one, other, |bits| Value::Float(*bits)),
        (List::Int64(one), List::Int64(other)) => first(step, one, other, |value| Value::Int64(*value)),
        _ => Some(DifferenceKind::Kinds(one.kind(), other.kind())),
    }
}

/// The first difference of two lists of one kind.
fn first<T: PartialEq>(
    step: Option<usize>,
    left: &[T],
    right: &[T],
    value: impl Fn(&T) -> Value,
) -> Option<DifferenceKind> {
    if left.len() != right.len() {
        return Some(DifferenceKind::Lengths(left.len(), right.len()));
    }
    let (index, (left, right)) = left.iter().zip(right).enumerate().find(|(_, (left, right))| left != right)?;
    Some(DifferenceKind::Values { step, index, values: [value(left), value(right)] })
}

fn steps(message: &[u8], nesting: usize) -> wire::Result<Vec<List>> {
    let mut steps = Vec::new();
    walk::steps(message, nesting, |step| {
        steps.push(list(step, nesting)?);
        Ok(())
    })?;
    Ok(steps)
}

fn list(message: &[u8], nesting: usize) -> wire::Result<List> {
    walk::feature(message, nesting, |feature| {
        feature.map_or(Ok(List::Unset), |(kind, body)| values(kind, body, nesting))
    })
}

fn values(kind: Kind, body: &[u8], nesting: usize) -> wire::Result<List> {
    match kind {
        Kind::Bytes => {
            let mut values = Vec::new();
            walk::bytes_values(body, nesting, |value| {
                values.push(value.to_vec());
                Ok(())
            })?;
            Ok(List::Bytes(values))
        }
        Kind::Float => {
            let mut values = Vec::new();
            walk::float_pieces(body, nesting, |piece| {
                match piece {
                    Numbers::Packed(bytes) => {
                        values.extend(bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)));
                    }
                    Numbers::One(bytes) => values.push(u32::from_le_bytes(bytes)),
                }
                Ok(())
            })?;
            Ok(List::Float(values))
        }
        Kind::Int64 => {
            let mut values = Vec::new();
            walk::int64_pieces(body, nesting, |piece| {
                match piece {
                    Numbers::Packed(packed) => {
                        wire::count_varints(packed)?;
                        wire::unpack_varints(packed, &mut values)?;
                    }
                    Numbers::One(value) => values.push(value as i64),
                }
                Ok(())
            })?;
            Ok(List::Int64(values))
        }
    }
}

impl Found {
    fn read(&mut self, data: &[u8], lists: bool, keys: &mut [Keys; 2]) -> wire::Result<()> {
        self.slots.iter_mut().for_each(|slots| slots.fill(None));
        self.joined.clear();
        (self.has_others, self.forgot) = (false, false);
        walk::record(data, lists, &mut Reading { found: self, keys, data })
    }
}

struct Reading<'f, 'a> {
    found: &'f mut Found,
    keys: &'f mut [Keys; 2],
    data: &'a [u8],
}

impl Visitor for Reading<'_, '_> {
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.keys[side as usize]
    }

    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<&[u8]>) -> wire::Result<()> {
        let Some(id) = id.map(|id| id as usize) else {
            self.found.forgot = true;
            return Ok(());
        };
        let slots = &mut self.found.slots[side as usize];
        if slots.len() <= id {
            slots.resize(id + 1, None);
        }
        if let Some(place) = slots.get_mut(id) {
            *place = Some(slot(State::Steps, value.unwrap_or_default(), self.data, &mut self.found.joined));
        }
        Ok(())
    }

    fn foreign(&mut self, _: u32) -> wire::Result<()> {
        self.found.has_others = true;
        Ok(())
    }
}
