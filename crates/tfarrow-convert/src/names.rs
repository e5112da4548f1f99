//! Names of columns and features as options give them: exact names and globs.

use std::path::Path;

use globset::{Glob, GlobMatcher};

use crate::{Error, Result};

/// Names of a data set that an error lists.
const LISTED_NAMES: usize = 20;

/// A name, or a glob of names: `*` and `?` match any characters, `/` included, `[..]` one of some, and `{a,b}` either.
#[derive(Clone, Debug)]
pub(crate) struct NamePattern {
    text: String,
    glob: GlobMatcher,
}

impl NamePattern {
    /// The pattern of the text `text`.
    ///
    /// # Errors
    /// [`Error::Usage`] for a glob that is not valid.
    pub(crate) fn new(text: &str) -> Result<Self> {
        let glob =
            Glob::new(text).map_err(|error| Error::Usage(format!("{text:?} is not a valid glob: {}", error.kind())))?;
        Ok(Self { text: text.to_owned(), glob: glob.compile_matcher() })
    }

    /// The patterns of some texts.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn all(texts: &[String]) -> Result<Vec<Self>> {
        texts.iter().map(|text| Self::new(text)).collect()
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether `name` is the name, or matches the glob. A name with characters of globs matches itself.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.text == name || self.glob.is_match(Path::new(name))
    }
}

/// The message that no name of `known` is `missing`, with the most similar one, or with all of them.
pub(crate) fn no_such_name(what: &str, missing: &str, known: &[&str]) -> String {
    let lower = missing.to_lowercase();
    let distance = |name: &&&str| strsim::osa_distance(&lower, &name.to_lowercase());
    let near = known.iter().min_by_key(distance).filter(|name| distance(name) <= 1 + missing.chars().count() / 4);
    let hint = near.map_or(String::new(), |name| format!(" (did you mean {name:?}?)"));
    let listed: Vec<_> = known.iter().take(LISTED_NAMES).map(|name| format!("{name:?}")).collect();
    let more = match known.len().saturating_sub(LISTED_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    format!("there is no {what} {missing:?}{hint}; there are {listed}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_globs() {
        let check = |pattern: &str, name: &str| NamePattern::new(pattern).unwrap().matches(name);
        assert!(check("label", "label") && !check("label", "labels"));
        assert!(check("image/*", "image/object/bbox") && !check("image/*", "image"));
        assert!(check("a[1]", "a[1]") && check("a[1]", "a1") && check("{x,y}", "y"));
        assert!(check("*.png", "b.png") && check("*", "") && check("a//*", "a//b") && !check("A", "a"));
        let error = NamePattern::new("a[").unwrap_err().to_string();
        assert!(error.starts_with("\"a[\" is not a valid glob: "), "{error}");
    }

    #[test]
    fn a_missing_name_is_reported_with_the_most_similar_one() {
        let message = no_such_name("column", "lable", &["id", "label", "LABEL2"]);
        assert_eq!(message, r#"there is no column "lable" (did you mean "label"?); there are "id", "label", "LABEL2""#);
        assert_eq!(no_such_name("column", "zzz", &["id"]), r#"there is no column "zzz"; there are "id""#);
        let many: Vec<_> = (0..30).map(|i| format!("c{i}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(no_such_name("column", "other", &many).ends_with("\"c19\" and 10 more"));
    }
}
