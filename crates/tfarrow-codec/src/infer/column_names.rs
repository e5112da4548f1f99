//! The names of columns, which follow from the names of features.
//!
//! A column has the name of its feature, unless that name is taken: by a virtual column
//! (`_tfarrow..`), or, for a feature list, by a context feature. Then it gets a prefix, repeated
//! until the name is free. A feature with a column for each of its kinds gets names that end in the
//! kind. Where the names differ, the feature's own name is in the metadata of the field.
//!
//! ```text
//! feature                        column                     tfarrow.feature
//! context "a"                    a                          -
//! feature list "a"               feature_lists/a            a
//! feature "_tfarrow_unset"       features/_tfarrow_unset    _tfarrow_unset
//! feature "b", kind int64_list   b/int64_list               b
//! ```

use std::collections::HashSet;

use crate::schema::{Kind, Role};

/// Prefix that is reserved for the names of virtual columns.
pub(crate) const OWN: &str = "_tfarrow";

/// The feature that a column is named after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    /// The role of the column, which decides the prefix.
    pub(crate) role: Role,
    /// The name of the feature.
    pub(crate) feature: &'a str,
    /// The kind, if the feature has a column for each of its kinds.
    pub(crate) kind: Option<Kind>,
}

impl Named<'_> {
    /// Returns whether the column keeps the feature's name, if that is free.
    fn is_plain(&self) -> bool {
        self.role != Role::Sequence && self.kind.is_none() && !self.feature.starts_with(OWN)
    }
}

/// Returns the name of each column. Columns that keep their feature's name come first, in the order
/// given, so that no other column takes it.
pub(crate) fn column_names<'a>(columns: impl Iterator<Item = Named<'a>> + Clone) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut names: Vec<Option<String>> = columns.clone().map(|_| None).collect();
    for turn in [true, false] {
        for (slot, named) in names.iter_mut().zip(columns.clone()) {
            if named.is_plain() == turn {
                let column = free_name(named, &taken);
                taken.insert(column.clone());
                *slot = Some(column);
            }
        }
    }
    names.into_iter().flatten().collect()
}

/// Returns the first name that is neither taken nor reserved.
fn free_name(
    Named {
        role,
        feature,
        kind,
    }: Named<'_>,
    taken: &HashSet<String>,
) -> String {
    let prefix = if role == Role::Sequence {
        "feature_lists/"
    } else {
        "features/"
    };
    let mut column = match kind {
        Some(kind) => format!("{feature}/{}", kind.name()),
        None => feature.to_owned(),
    };
    while column.starts_with(OWN) || taken.contains(&column) {
        column.insert_str(0, prefix);
    }
    column
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(features: &[(Role, &str)], expect: &[&str]) {
        let named = features.iter().map(|(role, feature)| Named {
            role: *role,
            feature,
            kind: None,
        });
        assert_eq!(column_names(named), expect);
    }

    #[test]
    fn names_are_kept_where_they_are_free() {
        check(&[(Role::Context, "a"), (Role::Sequence, "b")], &["a", "b"]);
        check(
            &[(Role::Sequence, "a"), (Role::Context, "a")],
            &["feature_lists/a", "a"],
        );
        check(
            &[(Role::Feature, "_tfarrow_unset")],
            &["features/_tfarrow_unset"],
        );
    }

    #[test]
    fn a_prefix_is_repeated_until_the_name_is_free() {
        check(
            &[
                (Role::Context, "a"),
                (Role::Context, "feature_lists/a"),
                (Role::Sequence, "a"),
            ],
            &["a", "feature_lists/a", "feature_lists/feature_lists/a"],
        );
    }

    #[test]
    fn columns_of_kinds_are_named_after_them() {
        let named = |feature, kind| Named {
            role: Role::Feature,
            feature,
            kind,
        };
        let columns = [
            named("a", Some(Kind::Int64)),
            named("a", Some(Kind::Bytes)),
            named("a/int64_list", None),
        ];
        let expect = ["features/a/int64_list", "a/bytes_list", "a/int64_list"];
        assert_eq!(column_names(columns.into_iter()), expect);
    }
}
