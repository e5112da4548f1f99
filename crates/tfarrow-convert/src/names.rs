//! Names of columns and features as options give them: exact names and globs.

use std::path::Path;

use globset::{Glob, GlobMatcher};

use crate::{Error, Result};

/// A name, or a glob of names: `*` and `?` match any characters, `/` included, `[..]` one of some,
/// and `{a,b}` either.
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
        let glob = Glob::new(text).map_err(|error| {
            Error::Usage(format!("{text:?} is not a valid glob: {}", error.kind()))
        })?;
        Ok(Self {
            text: text.to_owned(),
            glob: glob.compile_matcher(),
        })
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

    /// Whether `name` is the name, or matches the glob. A name with characters of globs matches
    /// itself.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.text == name || self.glob.is_match(Path::new(name))
    }
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
        assert!(
            check("*.png", "b.png") && check("*", "") && check("a//*", "a//b") && !check("A", "a")
        );
        let error = NamePattern::new("a[").unwrap_err().to_string();
        assert!(error.starts_with("\"a[\" is not a valid glob: "), "{error}");
    }
}
