//! Credentials for S3: from environment variables, or from the instance metadata service of a
//! machine at AWS.

use std::{env, io, net::TcpStream, time::Duration};

use url::Url;

/// Environment variables that provide credentials for S3, or turn signing off.
const VARIABLES: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
];
/// Address of the instance metadata service, unless `AWS_METADATA_ENDPOINT` is set.
const METADATA_SERVICE: &str = "http://169.254.169.254";
/// Timeout for a connection to the metadata service, which runs on the same network.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Checks that there is a source of credentials for S3. Without this check, the first request would
/// wait for minutes for the metadata service, where there is none.
///
/// # Errors
/// There are no credentials; the message names the variables to set.
pub(super) fn check_s3() -> io::Result<()> {
    if VARIABLES.iter().any(|name| env::var_os(name).is_some()) {
        return Ok(());
    }
    let service = env::var("AWS_METADATA_ENDPOINT");
    match accepts_connections(service.as_deref().unwrap_or(METADATA_SERVICE)) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for public data",
        )),
    }
}

fn accepts_connections(url: &str) -> bool {
    let addresses = Url::parse(url)
        .ok()
        .and_then(|url| url.socket_addrs(|| None).ok())
        .unwrap_or_default();
    addresses
        .iter()
        .any(|address| TcpStream::connect_timeout(address, TIMEOUT).is_ok())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_service_is_detected_by_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        assert!(accepts_connections(&url));
        drop(listener);
        assert!(!accepts_connections(&url));
        assert!(!accepts_connections("no url"));
    }
}
