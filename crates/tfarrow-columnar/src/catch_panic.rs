//! Guarded calls to the libraries that read Parquet and Arrow files: a panic on a corrupt file
//! becomes an error.

use std::{io, path::Path};

use tfarrow_dataset::{Error, Result, internals::catch_panic};

/// Calls `read`, and returns its panic as an error. After a panic, variables that `read` captures
/// must not be used again.
pub fn catch_panic_in<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_panic(read)
        .map_err(|e: io::Error| Error::io(path, e))
        .flatten()
}

/// An iterator over the results of `next`, which ends after the first error.
pub(crate) fn until_error<T>(
    mut next: impl FnMut() -> Result<Option<T>>,
) -> impl Iterator<Item = Result<T>> {
    let mut ended = false;
    std::iter::from_fn(move || {
        let item = if ended { None } else { next().transpose() };
        ended = !matches!(item, Some(Ok(_)));
        item
    })
}
