//! The folder outside of which the tasks of an executor read and write no local files.

use std::{
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use datafusion::{
    common::{
        exec_err,
        tree_node::{TreeNode, TreeNodeRecursion},
    },
    error::Result,
    physical_plan::ExecutionPlan,
};
use tfarrow_sql::wire::local_files;

/// Checks that all local files of a plan are below `root`, which is a real path. Links are
/// followed.
///
/// # Errors
/// A file is outside of `root`, or the plan has no valid path for it.
pub(crate) fn check_files(plan: &Arc<dyn ExecutionPlan>, root: &Path) -> Result<()> {
    plan.apply(|node| {
        for path in local_files(node.as_ref())? {
            if !real(&path)?.starts_with(root) {
                return exec_err!(
                    "{}: this executor reads and writes files below {} only",
                    path.display(),
                    root.display()
                );
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The real path of a file, which may not exist yet: the real path of the deepest folder that
/// exists, and the rest.
///
/// # Errors
/// A link has no target: a writer would create its target, wherever that is.
fn real(path: &Path) -> io::Result<PathBuf> {
    if path
        .components()
        .any(|component| component == Component::ParentDir)
    {
        return path.canonicalize();
    }
    for ancestor in path.ancestors() {
        if ancestor.symlink_metadata().is_ok() {
            let real = ancestor.canonicalize()?;
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return Ok(if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            });
        }
    }
    path.canonicalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        let folder = tempfile::TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("file"), root.join("link")).unwrap();
        std::os::unix::fs::symlink("/absent/file", root.join("no target")).unwrap();
        assert_eq!(real(&root.join("new/file")).unwrap(), root.join("new/file"));
        assert_eq!(real(&root.join("link")).unwrap(), root.join("file"));
        assert!(real(&root.join("no target")).is_err());
        assert!(real(&root.join("no target/file")).is_err());
        assert!(real(&root.join("new/../file")).is_err());
    }
}
