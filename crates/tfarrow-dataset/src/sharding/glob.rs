//! Globs: `* ? [..] {a,b} **`.
//!
//! ```text
//! data/train/part-*/[0-9]*.tfrecord
//! prefix    │pattern, matched against paths below the prefix
//! ```

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// A glob, split into the folder to search and the pattern for paths below it.
#[derive(Debug)]
pub(crate) struct Glob {
    /// The leading folders without characters of a pattern; empty for the current folder.
    pub(crate) prefix: PathBuf,
    matcher: GlobMatcher,
    pattern: String,
    deep: bool,
}

impl Glob {
    /// Returns whether `source` contains a character with a meaning in globs.
    pub(crate) fn is_glob(source: &str) -> bool {
        source.contains(['*', '?', '[', '{'])
    }

    /// Parses a glob.
    ///
    /// # Errors
    /// The glob has unbalanced brackets or braces.
    pub(crate) fn new(source: &str) -> Result<Self, globset::Error> {
        let mut prefix = PathBuf::from(if source.starts_with('/') { "/" } else { "" });
        let mut parts = source
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .peekable();
        while let Some(part) = parts.next_if(|part| !part.contains(['*', '?', '[', '{', '\\'])) {
            prefix.push(part);
        }
        let pattern = parts.collect::<Vec<_>>().join("/");
        let glob = GlobBuilder::new(&pattern)
            .literal_separator(true)
            .empty_alternates(true)
            .build()?;
        Ok(Self {
            prefix,
            matcher: glob.compile_matcher(),
            deep: pattern.contains("**"),
            pattern,
        })
    }

    /// Returns whether a path, relative to the prefix, matches.
    pub(crate) fn matches(&self, below: &Path) -> bool {
        self.matcher.is_match(below)
    }

    /// Returns whether the pattern contains `**`, which matches folders of any depth.
    pub(crate) fn is_deep(&self) -> bool {
        self.deep
    }

    /// Maximum number of components of a path that matches, relative to the prefix. With braces it
    /// may be too large.
    pub(crate) fn depth(&self) -> usize {
        if self.deep {
            usize::MAX
        } else {
            self.pattern.split('/').count()
        }
    }

    /// Returns whether a component of the pattern begins with `first`. Otherwise names that begin
    /// with it are skipped.
    pub(crate) fn names_prefix(&self, first: char) -> bool {
        self.pattern.split('/').any(|part| part.starts_with(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, prefix: &str, yes: &[&str], no: &[&str]) {
        let glob = Glob::new(source).unwrap();
        assert_eq!(glob.prefix, Path::new(prefix), "{source}");
        for path in yes {
            assert!(
                glob.matches(Path::new(path)),
                "{source} should match {path}"
            );
        }
        for path in no {
            assert!(
                !glob.matches(Path::new(path)),
                "{source} should not match {path}"
            );
        }
    }

    #[test]
    fn patterns_match_like_those_of_shells() {
        check(
            "*.tfrecord",
            "",
            &["a.tfrecord"],
            &["a/b.tfrecord", "a.tfrecord.gz"],
        );
        check("/data/x/*", "/data/x", &["a", "a.b"], &["a/b"]);
        check("../d/a?.t", "../d", &["a1.t"], &["a.t", "a12.t"]);
        check("d/[0-9]*", "d", &["1", "1a"], &["a1"]);
        check("d/[!0-9]", "d", &["a"], &["1"]);
        check(
            "d/{train,val}/*.t",
            "d",
            &["train/a.t", "val/b.t"],
            &["test/a.t", "a.t"],
        );
        check("d//./a*.t{,.gz}", "d", &["a.t", "a1.t.gz"], &["a.t.g"]);
        check("d/**/*.t", "d", &["a.t", "x/a.t", "x/y/a.t"], &["x/a.u"]);
        check("d/**", "d", &["a", "x/a"], &[]);
        check("{a/x,b}/c*", "", &["a/x/c1", "b/c"], &["a/c"]);
        check("d/\\[x\\]*", "d", &["[x]1"], &["x1"]);
    }

    #[test]
    fn depth_and_prefixes_are_those_of_the_pattern() {
        assert_eq!(Glob::new("a/b*/c").unwrap().depth(), 2);
        assert_eq!(Glob::new("a/**").unwrap().depth(), usize::MAX);
        assert!(Glob::new("a/[").is_err());
        assert!(Glob::new("a/*/_x*").unwrap().names_prefix('_'));
        assert!(!Glob::new("_a/*").unwrap().names_prefix('_'));
    }
}
