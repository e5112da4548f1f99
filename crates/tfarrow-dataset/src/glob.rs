//! Globs: `* ? [..] {a,b} **`, matched against the paths below their fixed part.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// A pattern, parted in the folder where it begins and what is matched against the paths below.
#[derive(Debug)]
pub(crate) struct Glob {
    /// The leading folders in which no character of the pattern stands; empty for the current one.
    pub(crate) prefix: PathBuf,
    matcher: GlobMatcher,
    pattern: String,
    deep: bool,
}

impl Glob {
    /// Whether `source` has a character that means something in a glob.
    pub(crate) fn is_glob(source: &str) -> bool {
        source.contains(['*', '?', '[', '{'])
    }

    /// Understands a glob.
    ///
    /// # Errors
    /// Unbalanced brackets and braces.
    pub(crate) fn new(source: &str) -> Result<Self, globset::Error> {
        let mut prefix = PathBuf::from(if source.starts_with('/') { "/" } else { "" });
        let mut parts = source.split('/').filter(|part| !matches!(*part, "" | ".")).peekable();
        while let Some(part) = parts.next_if(|part| !part.contains(['*', '?', '[', '{', '\\'])) {
            prefix.push(part);
        }
        let pattern = parts.collect::<Vec<_>>().join("/");
        let glob = GlobBuilder::new(&pattern).literal_separator(true).empty_alternates(true).build()?;
        Ok(Self { prefix, matcher: glob.compile_matcher(), deep: pattern.contains("**"), pattern })
    }

    /// Whether the path below the fixed part matches.
    pub(crate) fn matches(&self, below: &Path) -> bool {
        self.matcher.is_match(below)
    }

    /// Whether the pattern goes to any depth.
    pub(crate) fn is_deep(&self) -> bool {
        self.deep
    }

    /// How deep below the fixed part a match can lie; with braces perhaps less deep.
    pub(crate) fn depth(&self) -> usize {
        if self.deep { usize::MAX } else { self.pattern.split('/').count() }
    }

    /// Whether a part of the pattern asks for names that begin with `first`, which else are passed over.
    pub(crate) fn asks_for(&self, first: char) -> bool {
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
            assert!(glob.matches(Path::new(path)), "{source} should match {path}");
        }
        for path in no {
            assert!(!glob.matches(Path::new(path)), "{source} should not match {path}");
        }
    }

    #[test]
    fn matches_as_shells_do() {
        check("*.tfrecord", "", &["a.tfrecord"], &["a/b.tfrecord", "a.tfrecord.gz"]);
        check("/data/x/*", "/data/x", &["a", "a.b"], &["a/b"]);
        check("../d/a?.t", "../d", &["a1.t"], &["a.t", "a12.t"]);
        check("d/[0-9]*", "d", &["1", "1a"], &["a1"]);
        check("d/[!0-9]", "d", &["a"], &["1"]);
        check("d/{train,val}/*.t", "d", &["train/a.t", "val/b.t"], &["test/a.t", "a.t"]);
        check("d//./a*.t{,.gz}", "d", &["a.t", "a1.t.gz"], &["a.t.g"]);
        check("d/**/*.t", "d", &["a.t", "x/a.t", "x/y/a.t"], &["x/a.u"]);
        check("d/**", "d", &["a", "x/a"], &[]);
        check("{a/x,b}/c*", "", &["a/x/c1", "b/c"], &["a/c"]);
        check("d/\\[x\\]*", "d", &["[x]1"], &["x1"]);
    }

    #[test]
    fn knows_how_deep_it_goes() {
        assert_eq!(Glob::new("a/b*/c").unwrap().depth(), 2);
        assert_eq!(Glob::new("a/**").unwrap().depth(), usize::MAX);
        assert!(Glob::new("a/[").is_err());
        assert!(Glob::new("a/*/_x*").unwrap().asks_for('_'));
        assert!(!Glob::new("_a/*").unwrap().asks_for('_'));
    }
}
