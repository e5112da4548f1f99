//! The columns that a conversion takes, by name.
//!
//! ```text
//! columns of the data    exact    image/height    image/width    label
//! --columns label,image/*         label           image/height   image/width
//! --exclude 'image/*'             label
//! ```

use arrow_schema::Schema;
use tfarrow_codec::{
    Role,
    schema::{feature_of, role_of},
};
use tfarrow_dataset::internals::no_such_name;

use crate::{ConvertOptions, Result, names::NamePattern};

/// A choice of columns.
#[derive(Clone, Debug)]
pub(crate) struct ColumnSelection {
    /// The wanted columns, in the order of the output; all columns if it is empty.
    columns: Vec<NamePattern>,
    exclude: Vec<NamePattern>,
}

impl ColumnSelection {
    /// The selection of the options; `None` if they take all columns.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) for a glob that is not valid.
    pub(crate) fn of(options: &ConvertOptions) -> Result<Option<Self>> {
        if options.columns.is_empty() && options.exclude.is_empty() {
            return Ok(None);
        }
        let columns = NamePattern::all(&options.columns)?;
        let exclude = NamePattern::all(&options.exclude)?;
        Ok(Some(Self { columns, exclude }))
    }

    /// The indices of the selected columns of `schema`: in the order of the wanted names, and for a
    /// glob, or without wanted names, in the order of `schema`. The column of exact forms is left
    /// out, because it needs all features; that of features without a kind, because it may have
    /// names of features that are left out, unless it is wanted by its name.
    ///
    /// # Errors
    /// The message for a name that no column has, and if no column is left.
    pub(crate) fn select(&self, schema: &Schema) -> Result<Vec<usize>, String> {
        let fields: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| (field.name().as_str(), role_of(field)))
            .collect();
        let mut selected: Vec<usize> = Vec::new();
        let exact = fields
            .iter()
            .find(|(_, role)| *role == Some(Role::Exact))
            .map(|(name, _)| *name);
        for pattern in &self.columns {
            if exact == Some(pattern.text()) {
                return Err(format!(
                    "the column {:?} cannot be selected: it needs all features",
                    pattern.text()
                ));
            }
            let more = columns_of(pattern, schema)?;
            selected.extend(
                more.into_iter()
                    .filter(|index| !selected.contains(index))
                    .collect::<Vec<_>>(),
            );
        }
        if self.columns.is_empty() {
            selected.extend(0..fields.len());
        }
        for pattern in &self.exclude {
            let excluded = columns_of(pattern, schema)?;
            selected.retain(|index| !excluded.contains(index));
        }
        selected.retain(|index| match fields.get(*index) {
            None | Some((_, Some(Role::Exact))) => false,
            Some((name, Some(Role::Unset))) => {
                self.columns.iter().any(|pattern| pattern.text() == *name)
            }
            Some(_) => true,
        });
        if selected.is_empty() {
            Err("no column is left".to_owned())
        } else {
            Ok(selected)
        }
    }

    /// Whether a feature that has no column is wanted: a sample may not have had it.
    pub(crate) fn wants(&self, feature: &str) -> bool {
        let is_chosen =
            self.columns.is_empty() || self.columns.iter().any(|pattern| pattern.matches(feature));
        is_chosen && !self.exclude.iter().any(|pattern| pattern.matches(feature))
    }
}

/// The indices of the columns of `schema` that a pattern matches by their names, or if there are
/// none, by the names of their features.
///
/// # Errors
/// The message that there is none.
fn columns_of(pattern: &NamePattern, schema: &Schema) -> Result<Vec<usize>, String> {
    // A context feature and a feature list may have one name, and the column of the feature list
    // another.
    let mut by_name = Vec::new();
    let mut by_feature = Vec::new();
    for (index, field) in schema.fields().iter().enumerate() {
        if pattern.matches(field.name()) {
            by_name.push(index);
        }
        if pattern.matches(feature_of(field)) {
            by_feature.push(index);
        }
    }
    if !by_name.is_empty() {
        return Ok(by_name);
    }
    if !by_feature.is_empty() {
        return Ok(by_feature);
    }
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let known: Vec<_> = names.collect();
    Err(no_such_name("column", pattern.text(), &known))
}

/// The indices of the columns of `schema` with a Bloom filter, in ascending order. A glob does not
/// match the virtual columns, whose values nobody searches.
///
/// # Errors
/// The message for a name that no column has.
pub(crate) fn columns_with_bloom_filter(
    patterns: &[NamePattern],
    schema: &Schema,
) -> Result<Vec<usize>, String> {
    let mut selected = Vec::new();
    for pattern in patterns {
        for index in columns_of(pattern, schema)? {
            let Some(field) = schema.fields().get(index) else {
                continue;
            };
            let is_virtual = matches!(role_of(field), Some(Role::Exact | Role::Unset));
            if !is_virtual || field.name() == pattern.text() {
                selected.push(index);
            }
        }
    }
    selected.sort_unstable();
    selected.dedup();
    Ok(selected)
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field};
    use tfarrow_codec::schema::{EXACT_COLUMN, FEATURE, ROLE, UNSET_COLUMN};

    use super::*;

    #[track_caller]
    fn check(columns: &[&str], exclude: &[&str], expect: Result<&[usize], &str>) {
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let split = Field::new("k/int64_list", DataType::Int64, true)
            .with_metadata([(FEATURE.into(), "k".into())].into());
        let virtual_column = |name: &str, role: Role| {
            field(name).with_metadata([(ROLE.to_owned(), role.name().to_owned())].into())
        };
        let unset = virtual_column(UNSET_COLUMN, Role::Unset);
        let exact = virtual_column(EXACT_COLUMN, Role::Exact);
        let schema = Schema::new(vec![
            field("a"),
            field("b/x"),
            field("b/y"),
            split,
            field("z"),
            unset,
            exact,
        ]);
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let options = ConvertOptions {
            columns: owned(columns),
            exclude: owned(exclude),
            ..ConvertOptions::default()
        };
        let selected = ColumnSelection::of(&options)
            .unwrap()
            .unwrap()
            .select(&schema);
        assert_eq!(
            selected.as_deref(),
            expect
                .map_err(ToOwned::to_owned)
                .as_ref()
                .map(|indices| *indices),
            "{columns:?}"
        );
    }

    #[test]
    fn columns_are_selected_by_name_feature_and_glob() {
        check(&["z", "b/*", "a", "z"], &[], Ok(&[4, 1, 2, 0]));
        check(&[], &["b/*", "z"], Ok(&[0, 3]));
        check(&["k"], &[], Ok(&[3]));
        check(&["*"], &["k/int64_list"], Ok(&[0, 1, 2, 4]));
        check(&["a", "_tfarrow_unset"], &[], Ok(&[0, 5]));
        check(&["_tfarrow_*"], &[], Err("no column is left"));
        let needs_all = "the column \"_tfarrow_exact\" cannot be selected: it needs all features";
        check(&["a", "_tfarrow_exact"], &[], Err(needs_all));
        check(&["a"], &["a"], Err("no column is left"));
        let all = r#"there are "a", "b/x", "b/y", "k/int64_list", "z", "_tfarrow_unset", "_tfarrow_exact""#;
        check(
            &["b/z"],
            &[],
            Err(&format!(
                r#"there is no column "b/z" (did you mean "b/x"?); {all}"#
            )),
        );
        check(
            &[],
            &["q*"],
            Err(&format!(r#"there is no column "q*"; {all}"#)),
        );
    }
}
