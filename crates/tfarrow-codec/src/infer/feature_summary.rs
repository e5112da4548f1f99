//! The summary of one feature, and the column that follows from it.
//!
//! ```text
//! FeatureSummary   x: present in 3 of 4 records
//!   KindSummary    int64_list: 3 lists, 3 values, lengths 1 to 1     ─▶ Layout::Auto  Int64
//!                                                                       Layout::List  List<Int64>
//! ```

use serde::{Deserialize, Serialize};

use super::Place;
use crate::schema::{Column, Kind, Layout, Role, Shape, Values};

/// Properties of the lists of one kind of a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindSummary {
    /// Number of lists: one for each record, or for each step of a feature list.
    pub lists: u64,
    /// Number of values in these lists.
    pub values: u64,
    /// Length of the shortest list.
    pub min_len: u64,
    /// Length of the longest list.
    pub max_len: u64,
    /// The first place of a list of this kind.
    pub first: Place,
    /// Whether every value is UTF-8. Meaningful for bytes only.
    pub utf8: bool,
    /// Number of values that are not empty; 0 if a value is not UTF-8. Meaningful for bytes only.
    pub filled: u64,
    /// Number of values with a [control character](super::has_control_character); 0 if a value is
    /// not UTF-8. Meaningful for bytes only.
    pub controls: u64,
    /// Size of all values in bytes. Meaningful for bytes only.
    pub bytes: u64,
}

/// Properties of one feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureSummary {
    /// The name.
    pub name: String,
    /// [`Role::Feature`]; for a feature list, [`Role::Sequence`]; for a feature of the examples of
    /// an ExampleListWithContext, [`Role::Examples`]. See [`Summary::role`](super::Summary::role).
    pub role: Role,
    /// Number of records, or of examples in lists, that have the feature, including those without a
    /// kind.
    pub present: u64,
    /// Number of records, or of steps of a feature list, that have the feature without a kind.
    pub unset: u64,
    /// Smallest and largest number of steps of a feature list.
    pub steps: Option<(u64, u64)>,
    /// Properties of each kind, indexed by [`Kind`].
    pub kinds: [Option<KindSummary>; 3],
}

impl FeatureSummary {
    /// Creates the summary of a feature that no record has yet.
    pub(super) fn new(name: String, role: Role) -> Self {
        Self {
            name,
            role,
            present: 0,
            unset: 0,
            steps: None,
            kinds: [None, None, None],
        }
    }

    /// Returns the kinds that the feature has, with their properties.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, &KindSummary)> {
        Kind::ALL
            .into_iter()
            .zip(&self.kinds)
            .filter_map(|(kind, seen)| Some((kind, seen.as_ref()?)))
    }

    /// Returns the kind; `None` if the feature has none or several.
    pub fn kind(&self) -> Option<Kind> {
        let mut kinds = self.kinds();
        let (kind, _) = kinds.next()?;
        kinds.next().is_none().then_some(kind)
    }

    /// Returns whether the feature has several kinds.
    pub fn is_mixed(&self) -> bool {
        self.kinds().nth(1).is_some()
    }

    /// Returns the column of the feature in this layout; `None` if it has several kinds, or if it
    /// has none and is not a feature list.
    pub fn column(&self, layout: Layout, role: Role) -> Option<Column> {
        let seen = self.kinds().next();
        if self.is_mixed() || (seen.is_none() && role != Role::Sequence) {
            None
        } else {
            Some(self.of(seen, layout, role))
        }
    }

    /// Returns the columns of the feature in this layout, one for each of its kinds.
    pub(super) fn columns(&self, layout: Layout, role: Role) -> impl Iterator<Item = Column> {
        let split = self
            .kinds()
            .filter(|_| self.is_mixed())
            .map(move |seen| self.of(Some(seen), layout, role));
        self.column(layout, role).into_iter().chain(split)
    }

    /// Returns the column of the lists of one kind.
    fn of(&self, seen: Option<(Kind, &KindSummary)>, layout: Layout, role: Role) -> Column {
        let feature = self.name.clone();
        let values = seen.map_or(Values::Binary, |(kind, seen)| values_of(kind, seen, layout));
        let shape = match (role, layout) {
            (Role::Sequence, _) => Shape::Steps,
            (_, Layout::Auto)
                if seen.is_some_and(|(_, seen)| seen.min_len == 1 && seen.max_len == 1) =>
            {
                Shape::Scalar
            }
            _ => Shape::List,
        };
        Column {
            feature,
            role,
            shape,
            values,
        }
    }

    /// Returns whether the column is suitable for all further records that fit it. The values so
    /// far decide whether they are text, unless all are empty. Steps without a kind do not decide
    /// the kind. A feature without a kind has no column; a record that gives it one does not fit.
    ///
    /// ```text
    /// int64_list only                              settled: another kind or, for a scalar, another length does not fit
    /// bytes_list, text                             settled: bytes that are not UTF-8 do not fit a text column
    /// bytes_list, not text                         settled: all byte strings fit a column of bytes
    /// bytes_list, empty values only                not settled: the next value decides between text and bytes
    /// feature list without a step                  not settled: the kind is unknown
    /// ```
    pub(super) fn is_settled(&self, layout: Layout) -> bool {
        let mut kinds = self.kinds();
        match (kinds.next(), kinds.next()) {
            (None, _) => self.role != Role::Sequence,
            (Some((Kind::Bytes, seen)), None) => {
                layout == Layout::List || !seen.utf8 || seen.filled > 0
            }
            (Some(_), second) => second.is_none(),
        }
    }

    /// Adds the properties of another summary.
    pub(super) fn merge(&mut self, other: &Self) {
        self.present += other.present;
        self.unset += other.unset;
        self.steps = match (self.steps, other.steps) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        for (kind, other) in self.kinds.iter_mut().zip(&other.kinds) {
            match (kind, other) {
                (Some(kind), Some(other)) => kind.merge(other),
                (kind @ None, other) => kind.clone_from(other),
                (Some(_), None) => {}
            }
        }
    }
}

/// Returns the type of the values of a kind.
fn values_of(kind: Kind, seen: &KindSummary, layout: Layout) -> Values {
    match kind {
        Kind::Float => Values::Float32,
        Kind::Int64 => Values::Int64,
        Kind::Bytes if layout == Layout::Auto && seen.is_text() => Values::Utf8,
        Kind::Bytes => Values::Binary,
    }
}

impl KindSummary {
    /// Returns whether byte strings are text: every value is UTF-8, not all are empty, and fewer
    /// than a tenth of those that are not empty have a [control
    /// character](super::has_control_character). A tenth, since text from the web has stray ones.
    pub fn is_text(&self) -> bool {
        self.utf8 && self.controls < self.filled.div_ceil(10)
    }

    /// Adds what further byte strings have of text. Counts of a feature that is not text are
    /// dropped, so that they do not depend on the order of the values.
    pub(super) fn add_text(&mut self, utf8: bool, filled: u64, controls: u64) {
        self.utf8 &= utf8;
        (self.filled, self.controls) = if self.utf8 {
            (self.filled + filled, self.controls + controls)
        } else {
            (0, 0)
        };
    }

    /// Adds the properties of another summary.
    fn merge(&mut self, other: &Self) {
        self.lists += other.lists;
        self.values += other.values;
        self.min_len = self.min_len.min(other.min_len);
        self.max_len = self.max_len.max(other.max_len);
        self.first = self.first.min(other.first);
        self.add_text(other.utf8, other.filled, other.controls);
        self.bytes += other.bytes;
    }
}
