//! The comparison of two records.

use std::{collections::BTreeSet, fmt};

use super::{
    found::FoundFeatures,
    tolerance::Tolerance,
    values::{FeatureValue, List, list, steps},
};
use crate::{
    Kind, Limits, RecordType, Role, WireError,
    example::{keys::Keys, list::ExampleList, walk::Side},
    schema::EXAMPLES_COLUMN,
};

/// A difference between two records.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The feature, with the role [`Sequence`](Role::Sequence) for feature lists,
    /// [`Examples`](Role::Examples) for features of an example in a list, whose name begins with
    /// its place such as `examples[2].`, and [`Feature`](Role::Feature) for others; `None` if the
    /// records differ outside of their features.
    pub feature: Option<(Role, String)>,
    /// The kind of the difference.
    pub what: DifferenceKind,
}

/// A difference between two records or two features. The first of each pair is that of the left
/// record.
#[derive(Clone, Debug, PartialEq)]
pub enum DifferenceKind {
    /// The right record does not have the feature.
    OnlyLeft,
    /// The left record does not have the feature.
    OnlyRight,
    /// Different kinds; `None` for a feature without a kind.
    Kinds(Option<Kind>, Option<Kind>),
    /// Different numbers of steps of a feature list, or of examples of an ExampleListWithContext.
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
    record_type: RecordType,
    /// The keys of features and of feature lists, of both records.
    keys: [Keys; 2],
    /// The left record of the current pair.
    left: FoundFeatures,
    /// The right record of the current pair.
    right: FoundFeatures,
    /// The allowed difference of floats; `None` if their bits must be equal.
    tolerance: Option<Tolerance>,
    ignored: IgnoredFeatures,
}

/// Whether a name is that of an ignored feature.
type IsIgnored = Box<dyn Fn(&str) -> bool + Send>;

/// The features that are not compared.
#[derive(Default)]
struct IgnoredFeatures {
    /// Whether a name is that of such a feature; `None` if all features are compared.
    is_ignored: Option<IsIgnored>,
    /// The results for the keys found so far, by map and number.
    known: [Vec<bool>; 2],
}

impl fmt::Debug for IgnoredFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IgnoredFeatures")
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

impl IgnoredFeatures {
    /// Adds the keys that were found since the last call. `names` are those of both maps.
    fn update(&mut self, names: [&[Box<str>]; 2]) {
        let Some(is_ignored) = &self.is_ignored else {
            return;
        };
        for (known, names) in self.known.iter_mut().zip(names) {
            let new = names.iter().skip(known.len()).map(|name| is_ignored(name));
            let new: Vec<_> = new.collect();
            known.extend(new);
        }
    }

    /// Whether the key of this number is ignored.
    fn has(&self, side: Side, id: usize) -> bool {
        self.known[side as usize].get(id).copied().unwrap_or(false)
    }
}

impl Differ {
    /// Creates a comparer of `record_type` messages. Records of the type [`Raw`](RecordType::Raw)
    /// are compared as Examples; compare their bytes instead.
    pub fn new(record_type: RecordType, limits: Limits) -> Self {
        let left = FoundFeatures::default();
        let right = FoundFeatures::default();
        let ignored = IgnoredFeatures::default();
        Self {
            record_type,
            keys: [Keys::new([], limits), Keys::new([], limits)],
            left,
            right,
            tolerance: None,
            ignored,
        }
    }

    /// Sets how far two floats may differ to be equal. By default their bits must be equal.
    pub fn with_tolerance(self, tolerance: Option<Tolerance>) -> Self {
        Self { tolerance, ..self }
    }

    /// Ignores the features and feature lists for whose names `is_ignored` is true.
    pub fn ignoring(mut self, is_ignored: impl Fn(&str) -> bool + Send + 'static) -> Self {
        self.ignored = IgnoredFeatures {
            is_ignored: Some(Box::new(is_ignored)),
            known: Default::default(),
        };
        self
    }

    /// Returns the differences of two records, ordered by feature name, features before feature
    /// lists. None are returned if both have the same features with the same values, floats
    /// compared by their bits or with the [tolerance](Self::with_tolerance). A feature without a
    /// kind is not equal to a missing feature. Context features of a SequenceExample are reported
    /// as features, since they are in the same field.
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
        match self.record_type {
            RecordType::ExampleList => self.compare_lists(left, right),
            _ => self.compare_features(left, right),
        }
    }

    /// Compares two records that are `ExampleListWithContext` messages: their contexts, and their
    /// examples in order.
    fn compare_lists(
        &mut self,
        left: &[u8],
        right: &[u8],
    ) -> Result<Vec<Difference>, Incomparable> {
        let nesting = self.keys[0].limits().nesting;
        let left = ExampleList::parse(left, nesting).map_err(Incomparable::Left)?;
        let right = ExampleList::parse(right, nesting).map_err(Incomparable::Right)?;
        let contexts = [&left, &right].map(|list| list.context.as_deref().unwrap_or_default());
        let mut differences = self.compare_features(contexts[0], contexts[1])?;
        let counts = [&left, &right].map(|list| list.examples.len());
        if counts[0] != counts[1] {
            let feature = Some((Role::Examples, EXAMPLES_COLUMN.to_owned()));
            differences.push(Difference {
                feature,
                what: DifferenceKind::Steps(counts[0], counts[1]),
            });
            return Ok(differences);
        }
        for (index, (left, right)) in left.examples.iter().zip(&right.examples).enumerate() {
            let found = if left == right {
                Vec::new()
            } else {
                self.compare_features(left, right)?
            };
            differences.extend(found.into_iter().map(|Difference { feature, what }| {
                let name = feature.map_or_else(String::new, |(_, name)| format!(".{name}"));
                Difference {
                    feature: Some((Role::Examples, format!("{EXAMPLES_COLUMN}[{index}]{name}"))),
                    what,
                }
            }));
        }
        if differences.is_empty() && (left.foreign.is_some() || right.foreign.is_some()) {
            differences.push(Difference {
                feature: None,
                what: DifferenceKind::Bytes,
            });
        }
        Ok(differences)
    }

    /// Compares two records, or two Examples of records.
    fn compare_features(
        &mut self,
        left: &[u8],
        right: &[u8],
    ) -> Result<Vec<Difference>, Incomparable> {
        let lists = self.record_type == RecordType::SequenceExample;
        self.left
            .read(left, lists, &mut self.keys)
            .map_err(Incomparable::Left)?;
        self.right
            .read(right, lists, &mut self.keys)
            .map_err(Incomparable::Right)?;
        if self.left.has_excess_names || self.right.has_excess_names {
            return Err(Incomparable::Names);
        }
        self.ignored.update(self.keys.each_ref().map(Keys::names));
        let mut differences = Vec::new();
        for (side, role) in [
            (Side::Features, Role::Feature),
            (Side::Lists, Role::Sequence),
        ] {
            for id in self
                .ids(side)
                .into_iter()
                .filter(|id| !self.ignored.has(side, *id))
            {
                let what = self.feature(side, id, left, right)?;
                let name = self.keys[side as usize]
                    .names()
                    .get(id)
                    .map_or("", |name| name);
                differences.extend(what.map(|what| Difference {
                    feature: Some((role, name.to_owned())),
                    what,
                }));
            }
        }
        if differences.is_empty() && (self.left.has_others || self.right.has_others) {
            differences.push(Difference {
                feature: None,
                what: DifferenceKind::Bytes,
            });
        }
        Ok(differences)
    }

    /// Returns the numbers of the keys that either record has, ordered by name.
    fn ids(&self, side: Side) -> Vec<usize> {
        let mut ids = BTreeSet::new();
        for found in [&self.left, &self.right] {
            for (id, slot) in found.slots[side as usize].iter().enumerate() {
                if slot.is_some() {
                    ids.insert(id);
                }
            }
        }
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_by_key(|id| self.keys[side as usize].names().get(*id));
        ids
    }

    /// Returns the difference between the values of one key; `None` if they are equal. `left` and
    /// `right` are the bytes of the records, to which slots refer.
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
        let (one, other) = match (
            self.left.message(side, id, left),
            self.right.message(side, id, right),
        ) {
            (Some(one), Some(other)) => (one, other),
            (Some(_), None) => return Ok(Some(DifferenceKind::OnlyLeft)),
            (None, Some(_)) => return Ok(Some(DifferenceKind::OnlyRight)),
            (None, None) => return Ok(None),
        };
        if one == other {
            return Ok(None);
        }
        let nesting = self.keys[0].limits().nesting;
        let tolerance = self.tolerance;
        let (one, other) = match side {
            Side::Features => {
                let one = list(one, nesting).map_err(Incomparable::Left)?;
                return Ok(differ(
                    None,
                    &one,
                    &list(other, nesting).map_err(Incomparable::Right)?,
                    tolerance,
                ));
            }
            Side::Lists => (
                steps(one, nesting).map_err(Incomparable::Left)?,
                steps(other, nesting).map_err(Incomparable::Right)?,
            ),
        };
        if one.len() != other.len() {
            return Ok(Some(DifferenceKind::Steps(one.len(), other.len())));
        }
        let mut steps = one.iter().zip(&other).enumerate();
        Ok(steps.find_map(|(step, (one, other))| differ(Some(step), one, other, tolerance)))
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
fn differ(
    step: Option<usize>,
    one: &List,
    other: &List,
    tolerance: Option<Tolerance>,
) -> Option<DifferenceKind> {
    match (one, other) {
        (List::Unset, List::Unset) => None,
        (List::Bytes(one), List::Bytes(other)) => first(step, [one, other], Vec::eq, |value| {
            FeatureValue::Bytes(value.clone())
        }),
        (List::Float(one), List::Float(other)) => match tolerance {
            Some(tolerance) => first(
                step,
                [one, other],
                |one, other| tolerance.holds(*one, *other),
                |bits| FeatureValue::Float(*bits),
            ),
            None => first(step, [one, other], u32::eq, |bits| {
                FeatureValue::Float(*bits)
            }),
        },
        (List::Int64(one), List::Int64(other)) => first(step, [one, other], i64::eq, |value| {
            FeatureValue::Int64(*value)
        }),
        _ => Some(DifferenceKind::Kinds(one.kind(), other.kind())),
    }
}

/// Returns the first difference between two lists of one kind: of their lengths, or else of their
/// values.
fn first<T>(
    step: Option<usize>,
    [left, right]: [&Vec<T>; 2],
    is_equal: impl Fn(&T, &T) -> bool,
    value: impl Fn(&T) -> FeatureValue,
) -> Option<DifferenceKind> {
    if left.len() != right.len() {
        return Some(DifferenceKind::Lengths(left.len(), right.len()));
    }
    let (index, (left, right)) = left
        .iter()
        .zip(right)
        .enumerate()
        .find(|(_, (left, right))| !is_equal(left, right))?;
    Some(DifferenceKind::Values {
        step,
        index,
        values: [value(left), value(right)],
    })
}
