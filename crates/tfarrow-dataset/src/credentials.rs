//! Who asks a store: said by the usual variables, or by the machine that this runs on.

use std::{env, io, net::TcpStream, time::Duration};

use url::Url;

/// Variables that tell S3 who asks, or that nobody does.
const SAID: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
];
/// Where a machine of Amazon's says who it is.
const MACHINE: &str = "http://169.254.169.254";
/// It is next door.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether anything can tell S3 who asks. The store itself would ask a machine that does not answer for minutes.
///
/// # Errors
/// That there are no credentials, and what to do.
pub(crate) fn check_s3() -> io::Result<()> {
    if SAID.iter().any(|name| env::var_os(name).is_some()) {
        return Ok(());
    }
    let machine = env::var("AWS_METADATA_ENDPOINT");
    match answers(machine.as_deref().unwrap_or(MACHINE)) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for what is public",
        )),
    }
}

fn answers(url: &str) -> bool {
    let addresses = Url::parse(url).ok().and_then(|url| url.socket_addrs(|| None).ok()).unwrap_or_default();
    addresses.iter().any(|address| TcpStream::connect_timeout(address, PATIENCE).is_ok())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_machine_answers_or_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        assert!(answers(&url));
        drop(listener);
        assert!(!answers(&url));
        assert!(!answers("no url"));
    }
}
