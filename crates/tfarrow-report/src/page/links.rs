//! Links to the cards of features.

use std::collections::HashMap;

use maud::{Markup, html};
use tfarrow_stats::feature_path;

/// The anchors of the features that the page shows, by the names and the schema paths that alerts
/// and anomalies have.
#[derive(Default)]
pub(super) struct Links {
    by_name: HashMap<(String, bool), usize>,
    by_path: HashMap<String, usize>,
}

impl Links {
    /// Adds a feature whose card has the anchor `id`. Of a feature with several cards, the first is
    /// the target.
    pub(super) fn add(&mut self, name: &str, is_list: bool, id: usize) {
        self.by_name.entry((name.to_owned(), is_list)).or_insert(id);
        self.by_path
            .entry(feature_path(is_list, name))
            .or_insert(id);
    }

    /// A link to a feature; the text alone if the page does not show the feature.
    pub(super) fn to(&self, name: &str, is_list: bool, text: &str) -> Markup {
        link(self.by_name.get(&(name.to_owned(), is_list)), text)
    }

    /// A link to the feature with a path.
    pub(super) fn to_path(&self, path: &str, text: &str) -> Markup {
        link(self.by_path.get(path), text)
    }
}

fn link(id: Option<&usize>, text: &str) -> Markup {
    html! {
        @match id {
            Some(id) => a href={ "#f" (id) } { (text) },
            None => span class="name" { (text) },
        }
    }
}
