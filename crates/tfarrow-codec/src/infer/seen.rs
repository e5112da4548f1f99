//! The features of the record that is being walked.
//!
//! ```text
//! record   a = [1, 2]   f = [["x"], []]
//! Seen     a: ListTraits { kind: Int64, len: 2, .. }             f: steps 0..2
//! steps                                                         [ListTraits { len: 1, .. }, ListTraits { len: 0, .. }]
//! ```

use crate::{
    example::{tape::Slot, walk::Side},
    schema::Kind,
};

/// A feature of the current record, of which nothing is counted yet: the rest of the record may not
/// parse. Without indirection, so that it is written once and not copied.
#[derive(Debug)]
pub(super) struct Seen {
    /// The map that the feature is in.
    pub(super) side: Side,
    /// The number of its key.
    pub(super) id: u32,
    /// The place of its message, if an observer reads it.
    pub(super) message: Slot,
    /// The list of a feature; [`ListTraits::UNSET`] for a feature list.
    pub(super) list: ListTraits,
    /// The steps of a feature list: a range of the steps of all feature lists of the record.
    pub(super) steps: Option<(usize, usize)>,
}

/// Properties of the list of one `Feature`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListTraits {
    /// Number of values.
    pub(super) len: u64,
    /// Bytes of all values, for byte strings.
    pub(super) bytes: u64,
    /// The kind; `None` if it is unset.
    pub(super) kind: Option<Kind>,
    /// Whether every value is UTF-8; true for numbers.
    pub(super) utf8: bool,
    /// Number of byte strings that are not empty, if all are UTF-8.
    pub(super) filled: u64,
    /// Number of byte strings with a control character that text seldom has, if all are UTF-8.
    pub(super) controls: u64,
}

impl ListTraits {
    /// A feature without a kind.
    pub(super) const UNSET: Self = Self {
        len: 0,
        bytes: 0,
        kind: None,
        utf8: true,
        filled: 0,
        controls: 0,
    };
}
