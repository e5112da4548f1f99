//! Which column a feature has, and the way back.
//!
//! A column has its feature's name, but for the names that are taken: those of our own columns (`_tfarrow..`), and,
//! for a feature list, that of a context feature. Such a column has a prefix, repeated until its name is free, and
//! the feature's own name stands in the field's metadata. So it does where a feature has a column for each of its kinds,
//! whose names end in the kind's.

use std::collections::HashSet;

use crate::schema::{Kind, Role};

/// What the names of all our own columns begin with.
pub(crate) const OWN: &str = "_tfarrow";

/// What a column is named after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) role: Role,
    pub(crate) feature: &'a str,
    /// Its kind, where others have columns of their own.
    pub(crate) kind: Option<Kind>,
}

impl Named<'_> {
    fn is_plain(&self) -> bool {
        self.role != Role::Sequence && self.kind.is_none() && !self.feature.starts_with(OWN)
    }
}

/// Gives each column its name. Plain features come first, in the order given, so that theirs are kept.
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

fn free_name(Named { role, feature, kind }: Named<'_>, taken: &HashSet<String>) -> String {
    let prefix = if role == Role::Sequence { "feature_lists/" } else { "features/" };
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
        let named = features.iter().map(|(role, feature)| Named { role: *role, feature, kind: None });
        assert_eq!(column_names(named), expect);
    }

    #[test]
    fn names_are_kept_where_they_are_free() {
        check(&[(Role::Context, "a"), (Role::Sequence, "b")], &["a", "b"]);
        check(&[(Role::Sequence, "a"), (Role::Context, "a")], &["feature_lists/a", "a"]);
        check(&[(Role::Feature, "_tfarrow_unset")], &["features/_tfarrow_unset"]);
    }

    #[test]
    fn a_prefix_is_repeated_until_the_name_is_free() {
        check(
            &[(Role::Context, "a"), (Role::Context, "feature_lists/a"), (Role::Sequence, "a")],
            &["a", "feature_lists/a", "feature_lists/feature_lists/a"],
        );
    }

    #[test]
    fn columns_of_kinds_are_named_after_them() {
        let named = |feature, kind| Named { role: Role::Feature, feature, kind };
        let columns = [named("a", Some(Kind::Int64)), named("a", Some(Kind::Bytes)), named("a/int64_list", None)];
        let expect = ["features/a/int64_list", "a/bytes_list", "a/int64_list"];
        assert_eq!(column_names(columns.into_iter()), expect);
    }
}
