//! The check that a result replaces an earlier result, and no other file, such as a data set.

use std::{fs::File, io::Read, path::Path};

use crate::error::Usage;

/// Checks that a result may be written to `path`: nothing is there, or an empty file, or a file that begins with `start`, as all
/// results of its kind do. `kind` names one of them.
///
/// # Errors
/// The path exists, and is another file.
pub(crate) fn refuse_other_file(path: &Path, start: &[u8], kind: &str) -> Result<(), Usage> {
    // Opening a pipe would block.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Usage(format!("{} is not a regular file", path.display())));
    }
    let Ok(mut file) = File::open(path) else { return Ok(()) };
    let mut found = vec![0; start.len()];
    match file.read_exact(&mut found) {
        Ok(()) if found == start => Ok(()),
        _ if file.metadata().is_ok_and(|metadata| metadata.len() == 0) => Ok(()),
        _ => Err(Usage(format!("{} exists and is not {kind}: remove it, or choose another name", path.display()))),
    }
}
