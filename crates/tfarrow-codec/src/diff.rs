//! Comparing two records feature by feature, whatever their wire encodings.
//!
//! The keys of both records share one set of numbers, so that features are paired by number:
//!
//! ```text
//! left record    a = [1, 2]   b = "x"                      number:  0    1    2
//! right record   c = [0.5]    a = [1, 3]                   left:    a    b    -
//!                                                          right:   a    -    c
//! differences    a: values 2 and 3 at index 1;   b: only left;   c: only right
//! ```
//!
//! The order of features, packed and unpacked lists, and other forms of the same message make no difference. Features
//! whose bytes are equal are not decoded.

use std::{collections::BTreeSet, fmt};

use crate::{
    Kind, Limits, RecordType, Role, WireError,
    example::{
        keys::Keys,
        tape::{Slot, State, slot},
        walk::{self, Numbers, Side, Visitor},
        wire,
    },
};

/// A difference between two records.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The feature, with the role [`Sequence`](Role::Sequence) for feature lists and [`Feature`](Role::Feature) for
    /// others; `None` if the records differ outside of their features.
    pub feature: Option<(Role, String)>,
    /// The kind of the difference.
    pub what: DifferenceKind,
}

/// A difference between two records or two features. The first of each pair is that of the left record.
#[derive(Clone, Debug, PartialEq)]
pub enum DifferenceKind {
    /// The right record does not have the feature.
    OnlyLeft,
    /// The left record does not have the feature.
    OnlyRight,
    /// Different kinds; `None` for a feature without a kind.
    Kinds(Option<Kind>, Option<Kind>),
    /// Different numbers of steps of a feature list.
    Steps(usize, usize),
    /// Different numbers of values of a list.
    Lengths(usize, usize),
    /// The first values that differ.
    Values {
        /// The index of the step, for a feature list.
        step: Option<usize>,
        /// The index of the value in its list.
        index: usize,
        /// The values, left and right.
        values: [FeatureValue; 2],
    },
    /// Bytes outside of features: unknown fields of the records, or records that are not messages.
    Bytes,
}

/// A value of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureValue {
    /// A value of a `bytes_list`.
    Bytes(Vec<u8>),
    /// The bits of a value of a `float_list`.
    Float(u32),
    /// A value of an `int64_list`.
    Int64(i64),
}

/// Formats text in quotes, other bytes in quotes with escapes, floats as Rust does, and NaN with its bits.
impl fmt::Display for FeatureValue {
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

/// The reason why two records cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomparable {
    /// The left record does not parse.
    Left(WireError),
    /// The right record does not parse.
    Right(WireError),
    /// The records have more names than [`Limits`] allow.
    Names,
}

/// Compares pairs of records. Reuse it: it learns the order of keys from the records that it reads.
#[derive(Debug)]
pub struct Differ {
    /// Whether field 2 is `feature_lists`.
    lists: bool,
    /// The keys of features and of feature lists, of both records.
    keys: [Keys; 2],
    /// The left record of the current pair.
    left: Found,
    /// The right record of the current pair.
    right: Found,
}

/// The features of a record: the place of the message of each key, by map and number.
#[derive(Debug, Default)]
struct Found {
    /// A slot for each key of each map; `None` for keys that the record does not have.
    slots: [Vec<Option<Slot>>; 2],
    /// Messages that come in several pieces.
    joined: Vec<u8>,
    /// Whether the record has unknown fields.
    has_others: bool,
    /// Whether the record has a name above the limits.
    has_excess_names: bool,
}

impl Differ {
    /// Creates a comparer of `record_type` messages. Records of the type [`Raw`](RecordType::Raw) are compared as
    /// Examples; compare their bytes instead.
    pub fn new(record_type: RecordType, limits: Limits) -> Self {
        let keys = || Keys::new([], limits);
        let lists = record_type == RecordType::SequenceExample;
        Self { lists, keys: [keys(), keys()], left: Found::default(), right: Found::default() }
    }

    /// Returns the differences of two records, ordered by feature name, features before feature lists. None are
    /// returned if both have the same features with the same values, floats compared by their bits. A feature without a
    /// kind is not equal to a missing feature. Context features of a SequenceExample are reported as features, since
    /// they are in the same field.
    ///
    /// # Errors
    /// [`Incomparable`] if a record does not parse, or if the names exceed the limits.
    ///
    /// ```
    /// use tfarrow_codec::{Limits, RecordType, diff::{Differ, DifferenceKind}};
    /// let mut differ = Differ::new(RecordType::Example, Limits::default());
    /// // A map entry with the key "a", and a Feature without a kind.
    /// let record = b"\x0a\x07\x0a\x05\x0a\x01a\x12\x00";
    /// assert_eq!(differ.compare(record, record), Ok(vec![]));
    /// let differences = differ.compare(record, b"").unwrap();
    /// assert_eq!(differences[0].what, DifferenceKind::OnlyLeft);
    /// ```
    pub fn compare(&mut self, left: &[u8], right: &[u8]) -> Result<Vec<Difference>, Incomparable> {
        if left == right {
            return Ok(Vec::new());
        }
        self.left.read(left, self.lists, &mut self.keys).map_err(Incomparable::Left)?;
        self.right.read(right, self.lists, &mut self.keys).map_err(Incomparable::Right)?;
        if self.left.has_excess_names || self.right.has_excess_names {
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

    /// Returns the numbers of the keys that either record has, ordered by name.
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

    /// Returns the difference between the values of one key; `None` if they are equal. `left` and `right` are the bytes
    /// of the records, to which slots refer.
    ///
    /// # Errors
    /// [`Incomparable`] for a value that does not parse.
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

/// A decoded list of a feature.
#[derive(Debug)]
enum List {
    /// A feature without a kind.
    Unset,
    /// The values of a `bytes_list`.
    Bytes(Vec<Vec<u8>>),
    /// The bits of the values of a `float_list`.
    Float(Vec<u32>),
    /// The values of an `int64_list`.
    Int64(Vec<i64>),
}

impl List {
    /// Returns the kind; `None` if it is unset.
    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Unset => None,
            Self::Bytes(_) => Some(Kind::Bytes),
            Self::Float(_) => Some(Kind::Float),
            Self::Int64(_) => Some(Kind::Int64),
        }
    }
}

/// Returns the difference between two lists, of the step `step` of a feature list.
///
/// ```text
/// Unset, Unset                equal
/// [1, 2] and [1, 3]           Values { index: 1, values: [2, 3] }
/// [1, 2] and [1]              Lengths(2, 1)
/// [1] and ["x"]               Kinds(Int64, Bytes)
/// ```
fn differ(step: Option<usize>, one: &List, other: &List) -> Option<DifferenceKind> {
    match (one, other) {
        (List::Unset, List::Unset) => None,
        (List::Bytes(one), List::Bytes(other)) => first(step, one, other, |value| FeatureValue::Bytes(value.clone())),
        (List::Float(one), List::Float(other)) => first(step, one, other, |bits| FeatureValue::Float(*bits)),
        (List::Int64(one), List::Int64(other)) => first(step, one, other, |value| FeatureValue::Int64(*value)),
        _ => Some(DifferenceKind::Kinds(one.kind(), other.kind())),
    }
}

/// Returns the first difference between two lists of one kind: of their lengths, or else of their values.
fn first<T: PartialEq>(
    step: Option<usize>,
    left: &[T],
    right: &[T],
    value: impl Fn(&T) -> FeatureValue,
) -> Option<DifferenceKind> {
    if left.len() != right.len() {
        return Some(DifferenceKind::Lengths(left.len(), right.len()));
    }
    let (index, (left, right)) = left.iter().zip(right).enumerate().find(|(_, (left, right))| left != right)?;
    Some(DifferenceKind::Values { step, index, values: [value(left), value(right)] })
}

/// Decodes the steps of a `FeatureList`.
fn steps(message: &[u8], nesting: usize) -> wire::Result<Vec<List>> {
    let mut steps = Vec::new();
    walk::steps(message, nesting, |step| {
        steps.push(list(step, nesting)?);
        Ok(())
    })?;
    Ok(steps)
}

/// Decodes the list of a `Feature`.
fn list(message: &[u8], nesting: usize) -> wire::Result<List> {
    walk::feature(message, nesting, |feature| {
        feature.map_or(Ok(List::Unset), |(kind, body)| values(kind, body, nesting))
    })
}

/// Decodes the body of a list.
///
/// # Errors
/// [`WireError`] for a list that does not parse.
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
    /// Walks a record, and replaces the features found before. The features of a record that is given twice are those
    /// of its last entry.
    fn read(&mut self, data: &[u8], lists: bool, keys: &mut [Keys; 2]) -> wire::Result<()> {
        self.slots.iter_mut().for_each(|slots| slots.fill(None));
        self.joined.clear();
        (self.has_others, self.has_excess_names) = (false, false);
        walk::record(data, lists, &mut Reading { found: self, keys, data })
    }
}

/// Notes the features that a walk visits.
struct Reading<'f, 'a> {
    found: &'f mut Found,
    keys: &'f mut [Keys; 2],
    /// The record.
    data: &'a [u8],
}

impl Visitor for Reading<'_, '_> {
    fn keys(&mut self, side: Side) -> &mut Keys {
        &mut self.keys[side as usize]
    }

    fn feature(&mut self, side: Side, id: Option<u32>, value: Option<&[u8]>) -> wire::Result<()> {
        let Some(id) = id.map(|id| id as usize) else {
            self.found.has_excess_names = true;
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
