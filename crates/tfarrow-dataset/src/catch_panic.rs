//! Turns panics of third-party readers into errors.

use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Calls a library that reads a file and panics on some corrupt files, as those for Parquet and
/// Arrow do.
///
/// State that `read` changes must not be used after an error, because the change may be incomplete.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] with the message of the panic.
pub fn catch_panic<T>(read: impl FnOnce() -> T) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(read)).map_err(reader_error)
}

/// The error of a reader that panicked.
fn reader_error(panic: Box<dyn Any + Send>) -> io::Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given");
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("corrupt: its reader failed: {text}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        assert_eq!(catch_panic(|| 1).unwrap(), 1);
        let nothing: Option<u8> = std::hint::black_box(None);
        let told = catch_panic(|| nothing.unwrap()).unwrap_err().to_string();
        assert_eq!(
            told,
            "corrupt: its reader failed: called `Option::unwrap()` on a `None` value"
        );
        let told = catch_panic(|| [0, 1][std::hint::black_box(7)])
            .unwrap_err()
            .to_string();
        assert!(told.ends_with("the len is 2 but the index is 7"), "{told}");
    }
}
