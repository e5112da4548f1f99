//! The files whose rows have determined the columns of a table.

use std::{collections::HashMap, sync::MutexGuard};

use datafusion::datasource::physical_plan::FileScanConfig;
use object_store::{ObjectMeta, path::Path};
use tfarrow_dataset::internals::Lock;

/// The files that were inferred, and whether each row of them is on a line of its own. Such files
/// can be read in parts, each of which begins after a line feed.
#[derive(Debug, Default)]
pub(crate) struct InferredFiles(Lock<Option<HashMap<Path, InferredFile>>>);

/// The file as it was when its rows were read.
#[derive(Debug)]
struct InferredFile {
    file: ObjectMeta,
    has_row_per_line: bool,
}

impl InferredFiles {
    /// Adds a file.
    pub(super) fn add(&self, file: ObjectMeta, has_row_per_line: bool) {
        let file_path = file.location.clone();
        self.files().get_or_insert_default().insert(
            file_path,
            InferredFile {
                file,
                has_row_per_line,
            },
        );
    }

    /// Whether no files were inferred, because a statement declares the columns.
    pub(super) fn is_none(&self) -> bool {
        self.files().is_none()
    }

    /// Whether each row of the files of a scan is on a line of its own. Files that have changed are
    /// unknown.
    pub(super) fn has_row_per_line(&self, config: &FileScanConfig) -> bool {
        let inferred = self.files();
        for file in config.file_groups.iter().flat_map(|group| group.iter()) {
            let file = &file.object_meta;
            let known = inferred
                .as_ref()
                .and_then(|files| files.get(&file.location));
            match known {
                Some(known) if known.has_row_per_line && is_same(&known.file, file) => {}
                _ => return false,
            }
        }
        true
    }

    fn files(&self) -> MutexGuard<'_, Option<HashMap<Path, InferredFile>>> {
        self.0.lock()
    }
}

fn is_same(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.size == other.size && one.last_modified == other.last_modified && one.e_tag == other.e_tag
}
