//! What is lost when the rows of a file become records.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Maximum number of columns and changes that a note names, and maximum number of characters of
/// each.
const MAX_NAMED: usize = 20;
const MAX_CHARS: usize = 200;

/// The differences between rows and the records that they were encoded as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowLosses {
    /// The columns that were left out, because no record can hold them, each with the reason.
    pub left_out: BTreeSet<String>,
    /// The changes of values, each with its column, and the number of values.
    pub changed: BTreeMap<String, u64>,
}

impl RowLosses {
    /// Adds the losses of other rows.
    pub fn merge(&mut self, other: Self) {
        self.left_out.extend(other.left_out);
        other
            .changed
            .into_iter()
            .for_each(|(what, times)| *self.changed.entry(what).or_default() += times);
    }

    /// Describes the losses for the user, one kind of loss a line; empty if there are none.
    pub fn notes(&self) -> Vec<String> {
        let mut changed = Vec::with_capacity(self.changed.len());
        for (what, times) in &self.changed {
            let values = if *times == 1 { "value" } else { "values" };
            changed.push(format!("{what} ({times} {values})"));
        }
        let left_out: Vec<_> = self.left_out.iter().cloned().collect();
        [
            ("left out, because no record can hold it", left_out),
            ("changed to what a record can hold", changed),
        ]
        .into_iter()
        .filter(|(_, all)| !all.is_empty())
        .map(|(what, all)| format!("{what}: {}", named(&all)))
        .collect()
    }
}

/// The first [`MAX_NAMED`] of some texts, and the number of others.
fn named(all: &[String]) -> String {
    let more = all.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    let mut shown = Vec::new();
    for text in all.iter().take(MAX_NAMED) {
        shown.push(match text.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
            None => text.clone(),
        });
    }
    shown.join("; ") + &more
}
