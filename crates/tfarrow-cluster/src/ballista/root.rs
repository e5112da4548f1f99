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
use tfarrow_datafusion::wire::local_files;

/// Checks that all local files of a plan are below `root`, which is a real path. Links are followed.
///
/// # Errors
/// A file is outside of `root`.
pub(crate) fn check_files(plan: &Arc<dyn ExecutionPlan>, root: &Path) -> Result<()> {
    plan.apply(|node| {
        for path in local_files(node.as_ref()) {
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

/// The real path of a file, which may not exist yet: the real path of the deepest folder that exists, and the rest.
fn real(path: &Path) -> io::Result<PathBuf> {
    if path.components().any(|component| component == Component::ParentDir) {
        return path.canonicalize();
    }
    let mut ancestors = path.ancestors();
    let existing = ancestors.find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    let Some((ancestor, real)) = existing else { return path.canonicalize() };
    Ok(match path.strip_prefix(ancestor) {
        Ok(rest) if rest.as_os_str().is_empty() => real,
        Ok(rest) => real.join(rest),
        Err(_) => real,
    })
}
