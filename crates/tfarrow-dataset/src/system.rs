//! I/O errors: failures of the machine, and findings about a file.
//!
//! A file that is missing, not readable by the user, or a broken link is a finding about the data
//! set, which `verify` reports. A machine without free file descriptors or memory, a disk that
//! cannot be read, and a network that is down are no findings about the data: every command ends
//! with such an error, even if it skips damage.

use std::io::{self, ErrorKind};

/// Returns whether the machine failed, so that the file may be sound. Unknown errors of the
/// operating system count as such, so that they are never reported as damage.
pub(crate) fn is_machine(error: &io::Error) -> bool {
    let is_system = error.raw_os_error().is_some();
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::PermissionDenied
        | ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::InvalidFilename
        | ErrorKind::InvalidData
        | ErrorKind::InvalidInput
        | ErrorKind::UnexpectedEof => false,
        ErrorKind::Other => {
            is_system
                || error
                    .get_ref()
                    .and_then(|it| it.downcast_ref())
                    .is_some_and(is_store_failure)
        }
        _ => !is_link_loop(error),
    }
}

/// Returns whether an object store failed, so that the object may be sound.
pub(crate) fn is_store_failure(error: &object_store::Error) -> bool {
    use object_store::Error;
    !matches!(
        error,
        Error::NotFound { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::InvalidPath { .. }
            | Error::Precondition { .. }
    )
}

/// Returns whether the process, or the machine, has the maximum number of files open.
#[cfg(unix)]
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    error
        .raw_os_error()
        .is_some_and(|code| [libc::EMFILE, libc::ENFILE].contains(&code))
}

#[cfg(not(unix))]
pub(crate) fn is_out_of_files(_: &io::Error) -> bool {
    false
}

#[cfg(unix)]
fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

#[cfg(not(unix))]
fn is_link_loop(_: &io::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn failures_of_the_machine_are_distinguished_from_findings_about_a_file() {
        for code in [
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOMEM,
            libc::EIO,
            libc::ENOSPC,
            libc::ESTALE,
            libc::ETIMEDOUT,
        ] {
            let error = io::Error::from_raw_os_error(code);
            assert!(is_machine(&error), "{error}");
        }
        for code in [
            libc::ENOENT,
            libc::EACCES,
            libc::EPERM,
            libc::EISDIR,
            libc::ENOTDIR,
            libc::ELOOP,
            libc::ENAMETOOLONG,
        ] {
            let error = io::Error::from_raw_os_error(code);
            assert!(!is_machine(&error), "{error}");
        }
    }

    #[test]
    fn failures_of_a_store_are_distinguished_from_findings_about_an_object() {
        let source = || "no route".into();
        let down = object_store::Error::Generic {
            store: "S3",
            source: source(),
        };
        assert!(is_machine(&io::Error::from(down)));
        let gone = object_store::Error::NotFound {
            path: "a".to_owned(),
            source: source(),
        };
        assert!(!is_machine(&io::Error::from(gone)));
        let forbidden = object_store::Error::PermissionDenied {
            path: "a".to_owned(),
            source: source(),
        };
        assert!(!is_machine(&io::Error::from(forbidden)));
        assert!(is_machine(&io::ErrorKind::ConnectionRefused.into()));
        // An error of a library that cannot parse a file.
        assert!(!is_machine(&io::Error::other("no page here")));
    }
}
