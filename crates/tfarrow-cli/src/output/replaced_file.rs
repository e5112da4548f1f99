//! The check that a result replaces an earlier result, and no other file or object, such as a data
//! set.

use std::{fs::File, io::Read, path::Path};

use anyhow::{Context, Result};
use tfarrow_dataset::internals::{existing_objects, is_remote};

use crate::error::Usage;

/// Checks that a result may be written to `path`, a file or the URL of an object: nothing is there,
/// or it is empty, or it begins with `start`, as all results of its kind do. `kind` names one of
/// them.
///
/// # Errors
/// The path has other content, or a request to its store failed.
pub(crate) fn refuse_other_file(path: &Path, start: &[u8], kind: &str) -> Result<()> {
    let may_be_replaced = match path.to_str().is_some_and(is_remote) {
        true => may_replace_object(path, start)?,
        false => may_replace_file(path, start)?,
    };
    match may_be_replaced {
        true => Ok(()),
        false => {
            let why = format!(
                "{} exists and is not {kind}: remove it, or choose another name",
                path.display()
            );
            Err(Usage(why).into())
        }
    }
}

fn may_replace_file(path: &Path, start: &[u8]) -> Result<bool, Usage> {
    // Opening a pipe would block.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Usage(format!("{} is not a regular file", path.display())));
    }
    let Ok(mut file) = File::open(path) else {
        return Ok(true);
    };
    let mut found = vec![0; start.len()];
    let begins_so = file.read_exact(&mut found).is_ok() && found == start;
    Ok(begins_so || file.metadata().is_ok_and(|metadata| metadata.len() == 0))
}

fn may_replace_object(url: &Path, start: &[u8]) -> Result<bool> {
    let Some(object) = existing_objects(&[url])?.pop().flatten() else {
        return Ok(true);
    };
    let found = object
        .first_bytes(start.len() as u64)
        .with_context(|| url.display().to_string())?;
    Ok(object.size() == 0 || found.starts_with(start))
}
