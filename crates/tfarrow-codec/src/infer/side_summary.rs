//! The summaries of the features of one map, or of one map in each Example of a list, by the
//! numbers of their keys.
//!
//! ```text
//! keys       a  b  c        a number for each name
//! features   a  b  c        FeatureSummary
//! turns      7  7  5        the last record with the feature; record 7 is the current one, and has a and b so far
//! ```

use super::FeatureSummary;
use crate::{Limits, example::keys::Keys, schema::Role};

/// The features of one map, or the feature lists.
#[derive(Debug)]
pub(super) struct SideSummary {
    /// The role of the features.
    pub(super) role: Role,
    pub(super) keys: Keys,
    /// The summaries of features, by the numbers of their keys.
    pub(super) features: Vec<FeatureSummary>,
    /// For each feature, the number of the last record that has it, and its index among the
    /// features of that record.
    pub(super) turns: Vec<(u64, usize)>,
    /// Number of the current record.
    pub(super) turn: u64,
}

impl SideSummary {
    /// Creates the summaries of a map that no record has yet.
    pub(super) fn new(role: Role, limits: Limits) -> Self {
        Self {
            role,
            keys: Keys::new([], limits),
            features: Vec::new(),
            turns: Vec::new(),
            turn: 0,
        }
    }

    /// Returns the number of known names.
    pub(super) fn names(&self) -> usize {
        self.keys.names().len()
    }

    /// Undoes a record that does not parse: removes the names beyond the first `known`.
    #[cold]
    pub(super) fn abandon(&mut self, known: usize) {
        self.keys.abandon(known);
        self.features.truncate(known);
        self.turns.truncate(known);
    }

    /// Returns the summary of the feature with number `id`, which is created if the number is new.
    #[inline]
    pub(super) fn feature(&mut self, id: u32) -> Option<&mut FeatureSummary> {
        let id = id as usize;
        if self.features.len() <= id {
            self.grow(id)?;
        }
        self.features.get_mut(id)
    }

    /// Creates the summaries of features up to number `id`.
    #[cold]
    fn grow(&mut self, id: usize) -> Option<()> {
        while self.features.len() <= id {
            let name = self.keys.names().get(self.features.len())?;
            self.features
                .push(FeatureSummary::new(name.to_string(), self.role));
            self.turns.push((0, 0));
        }
        Some(())
    }

    /// Returns the index among the features of the current record if the record has had the feature
    /// before; otherwise notes that its index is `at`.
    pub(super) fn met_before(&mut self, id: u32, at: usize) -> Option<usize> {
        let last = self.turns.get_mut(id as usize)?;
        if last.0 == self.turn {
            return Some(last.1);
        }
        *last = (self.turn, at);
        None
    }
}
