//! Errors of stores in plain words. The `object_store` crate repeats the request, and the answer of
//! the server as XML or JSON.

use std::{error::Error as StdError, io, iter};

use object_store::Error;

/// Message for an object that has another version than the one that was found.
pub(crate) const REPLACED: &str = "the object was replaced while it was read";

/// Returns an error whose cause is in plain words: the finding of the server and a next step.
pub(crate) fn plain(error: Error) -> Error {
    match error {
        Error::Generic { store, source } => Error::Generic {
            store,
            source: words(source),
        },
        Error::PermissionDenied { path, source } => Error::PermissionDenied {
            path,
            source: words(source),
        },
        Error::Unauthenticated { path, source } => Error::Unauthenticated {
            path,
            source: words(source),
        },
        Error::NotFound { path, source } => Error::NotFound {
            path,
            source: words(source),
        },
        Error::Precondition { path, .. } => Error::Precondition {
            path,
            source: REPLACED.into(),
        },
        other => other,
    }
}

/// Converts an error of a store to an I/O error, without the name of the variant: `Generic S3
/// error`.
pub(crate) fn without_variant(error: io::Error) -> io::Error {
    let kind = error.kind();
    match error.downcast() {
        Ok(
            Error::Generic { source, .. }
            | Error::PermissionDenied { source, .. }
            | Error::Unauthenticated { source, .. }
            | Error::NotFound { source, .. }
            | Error::Precondition { source, .. },
        ) => io::Error::new(kind, source),
        Ok(other) => io::Error::new(kind, other),
        Err(error) => error,
    }
}

type Source = Box<dyn StdError + Send + Sync>;

/// The cause in plain words; the cause itself if it is not known.
fn words(source: Source) -> Source {
    let causes = iter::successors(Some(source.as_ref() as &dyn StdError), |&cause| {
        cause.source()
    });
    // Some causes include the texts of their sources, and some do not.
    let text = causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ");
    let shown = without_userinfo(&text);
    match finding(&shown) {
        Some(finding) => finding.into(),
        None if shown != text => shown.into(),
        None => source,
    }
}

/// Returns a text without the users and passwords of the URLs in it.
pub(crate) fn without_userinfo(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        let end = after
            .find(|c: char| c.is_whitespace() || "/?#'\")".contains(c))
            .unwrap_or(after.len());
        let (authority, path) = after.split_at(end);
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        shown.extend([before, "://", host]);
        rest = path;
    }
    shown + rest
}

/// The finding in the text of an error.
fn finding(text: &str) -> Option<String> {
    if let Some(code) = between(text, "<Code>", "</Code>") {
        let message = between(text, "<Message>", "</Message>").unwrap_or_default();
        let message = message
            .trim_start_matches("<![CDATA[")
            .trim_end_matches("]]>");
        return Some(of_code(
            code,
            message,
            between(text, "<Region>", "</Region>"),
        ));
    }
    if let Some((_, status)) = text.split_once("non-2xx status code: ") {
        let (status, answer) = status.split_once(": ").unwrap_or((status, ""));
        let message = between(answer, "\"message\": \"", "\"")
            .or_else(|| between(answer, "\"message\":\"", "\""));
        return Some(of_status(status.trim(), message));
    }
    let (_, cause) = text
        .split_once("client error (Connect): ")
        .or_else(|| text.split_once("error trying to connect: "))?;
    let host = between(text, "://", "/").unwrap_or("the server");
    let cause = cause.split(": ").last().unwrap_or(cause);
    Some(format!("cannot connect to {host}: {cause}"))
}

/// The text between two others.
fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

/// The meaning of an error code of S3 or Azure,
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.
fn of_code(code: &str, message: &str, region: Option<&str>) -> String {
    match code {
        "NoSuchKey" | "BlobNotFound" => "there is no such object".to_owned(),
        "NoSuchBucket" => "the bucket does not exist".to_owned(),
        "ContainerNotFound" => "the container does not exist".to_owned(),
        "AccessDenied" | "AllAccessDisabled" | "AuthorizationFailure" => {
            "access is denied: check the credentials and the rights that they have".to_owned()
        }
        "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "InvalidToken"
        | "AuthenticationFailed" => {
            "the credentials are not valid: check the access key, the secret and the session token"
                .to_owned()
        }
        "ExpiredToken" => "the credentials have expired: get new ones".to_owned(),
        "PermanentRedirect"
        | "AuthorizationHeaderMalformed"
        | "IllegalLocationConstraintException" => {
            format!(
                "the bucket is in another region: set AWS_REGION={}",
                region.unwrap_or("..")
            )
        }
        "SlowDown" => {
            "the store limits the rate of requests: try again later, or with fewer threads"
                .to_owned()
        }
        _ => format!("the server answered {code}: {message}"),
    }
}

/// The meaning of an HTTP status, such as `403 Forbidden`.
fn of_status(status: &str, message: Option<&str>) -> String {
    let advice = match status.get(..3) {
        Some("401") => ": there are no credentials, or they are not valid",
        Some("403") => ": check the credentials and the rights that they have",
        Some("429" | "503") => ": try again later, or with fewer threads",
        _ => "",
    };
    match message {
        Some(message) => format!("the server answered {status}: {message}"),
        None => format!("the server answered {status}{advice}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that `object_store` makes of answers of S3, Google's store, and a server that does not
    /// listen.
    #[test]
    fn answers_become_findings() {
        let get = "Error performing GET http://h:9/b?list-type=2 in 6.2ms - Server returned non-2xx status code: ";
        for (text, expected) in [
            (
                "404 Not Found: <?xml version=\"1.0\"?> <Error> <Code>NoSuchBucket</Code> <Message>no</Message> </Error>",
                "the bucket does not exist",
            ),
            (
                "403 Forbidden: <Error><Code>AccessDenied</Code></Error>",
                "access is denied: check the credentials and",
            ),
            (
                "400 Bad Request: <Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>",
                "the bucket is in another region: set AWS_REGION=eu-west-1",
            ),
            (
                "500 Oops: <Error><Code>InternalError</Code><Message><![CDATA[we are sorry]]></Message></Error>",
                "the server answered InternalError: we are sorry",
            ),
            (
                "403 Forbidden: ",
                "the server answered 403 Forbidden: check the credentials",
            ),
            (
                "404 Not Found: {\"error\": {\"message\": \"no bucket\"}}",
                "the server answered 404 Not Found: no bucket",
            ),
        ] {
            let found = finding(&format!("{get}{text}")).unwrap();
            assert!(found.starts_with(expected), "{found}");
        }
        let refused = "Error performing HEAD http://127.0.0.1:1/data/a in 2.1s, after 10 retries  - HTTP error: error sending \
                       request: client error (Connect): tcp connect error: Connection refused (os error 111)";
        assert_eq!(
            finding(refused).unwrap(),
            "cannot connect to 127.0.0.1:1: Connection refused (os error 111)"
        );
        assert_eq!(finding("anything else"), None);
    }

    #[test]
    fn passwords_are_left_out() {
        for (text, shown) in [
            (
                "GET https://user:pass@host/a@b?x failed",
                "GET https://host/a@b?x failed",
            ),
            ("s3://key:p@ss@bucket", "s3://bucket"),
            ("file:///a@b and a@b", "file:///a@b and a@b"),
        ] {
            assert_eq!(without_userinfo(text), shown);
        }
        let source = "error trying to connect: https://user:pass@host:1/a: refused";
        let error = Error::Generic {
            store: "HTTP",
            source: source.into(),
        };
        assert_eq!(
            without_variant(plain(error).into()).to_string(),
            "cannot connect to host:1: refused"
        );
        let error = Error::Generic {
            store: "HTTP",
            source: "GET https://user:pass@host/a: no".into(),
        };
        assert_eq!(
            without_variant(plain(error).into()).to_string(),
            "GET https://host/a: no"
        );
    }

    #[test]
    fn the_kind_of_an_error_stays() {
        let error = Error::NotFound {
            path: "a".to_owned(),
            source: "<Code>NoSuchKey</Code>".into(),
        };
        let error = without_variant(plain(error).into());
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = Error::Generic {
            store: "S3",
            source: "<Code>NoSuchBucket</Code>".into(),
        };
        assert_eq!(
            without_variant(plain(error).into()).to_string(),
            "the bucket does not exist"
        );
        assert_eq!(without_variant(io::Error::other("x")).to_string(), "x");
    }
}
