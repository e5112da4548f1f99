//! Which column a feature has, and the way back.
//!
//! A column has its feature's name, but for the names that are taken: those of our own columns (`_tfarrow..`), and,
//! for a feature list, that of a context feature. Such a column has a prefix, repeated until its name is free, and
//! the feature's own name stands in the field's metadata.

use std::collections::HashSet;

use crate::schema::Role;

/// What the names of all our own columns begin with.
pub(crate) const OWN: &str = "_tfarrow";

/// Gives each feature its column's name. Plain features come first, in the order given, so that theirs are kept.
pub(crate) fn column_names<'a>(features: impl Iterator<Item = (Role, &'a str)> + Clone) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut names: Vec<Option<String>> = features.clone().map(|_| None).collect();
    let plain = |role: Role, name: &str| role != Role::Sequence && !name.starts_with(OWN);
    for turn in [true, false] {
        for (slot, (role, name)) in names.iter_mut().zip(features.clone()) {
            if plain(role, name) == turn {
                let column = free_name(role, name, &taken);
                taken.insert(column.clone());
                *slot = Some(column);
            }
        }
    }
    names.into_iter().flatten().collect()
}

fn free_name(role: Role, name: &str, taken: &HashSet<String>) -> String {
    let prefix = if role == Role::Sequence { "feature_lists/" } else { "features/" };
    let mut column = name.to_owned();
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
        assert_eq!(column_names(features.iter().copied()), expect);
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
}
