//! URLs of object stores and web servers, and the clients for them.

use std::{collections::HashMap, env, io, path::PathBuf, sync::Arc};

use object_store::{ObjectStore, parse_url_opts, path::Path as Key};
use url::Url;

use super::{client::StoreClient, credentials::check_s3};
use crate::{Error, Result, lock::Lock, process::PerProcess};

/// Timeout of a request, including its data, unless `AWS_TIMEOUT` or its like is set: enough for
/// several parts at the same time over a slow connection.
const REQUEST_TIMEOUT: &str = "180s";

/// Prefix of the environment variables that configure S3.
const S3: &str = "AWS_";
/// Schemes of URLs, each with the prefix of the environment variables that configure its stores;
/// empty for web servers.
const SCHEMES: [(&str, &str); 9] = [
    ("s3", S3),
    ("s3a", S3),
    ("gs", "GOOGLE_"),
    ("az", "AZURE_"),
    ("azure", "AZURE_"),
    ("abfs", "AZURE_"),
    ("abfss", "AZURE_"),
    ("http", ""),
    ("https", ""),
];

/// Message for a URL in a build without clients.
const NO_CLIENTS: &str = "this build has no clients for stores and web servers: build it with the feature `stores` of \
                          tfarrow-dataset, or copy the files to a folder";

/// Message for a URL with another scheme.
pub(crate) const UNKNOWN_URL: &str = "unknown URL; supported are s3://bucket/.., gs://, az://, abfs://, https://, \
                                      http:// and file:///, and paths of files";

/// Returns whether `source` is the URL of an object, or of a file on a web server.
///
/// ```
/// use tfarrow_dataset::internals::is_remote;
/// assert!(is_remote("s3://bucket/train/*.tfrecord") && !is_remote("shards/a.tfrecord"));
/// ```
pub fn is_remote(source: &str) -> bool {
    Location::parse(source).is_some()
}

/// Returns the store of a URL, configured by environment variables: `AWS_..`, `GOOGLE_..` or
/// `AZURE_..`. A second call for the same store returns the same client, except for URLs with a
/// query.
///
/// The client connects again, with the same configuration, in a child that the process forks.
///
/// # Errors
/// The URL has no known scheme, a variable has an invalid value, there are no credentials for S3, or
/// the crate is built without the feature `stores`.
pub fn store_of(url: &str) -> Result<Arc<dyn ObjectStore>> {
    let location = Location::parse(url).ok_or_else(|| invalid_source(url, UNKNOWN_URL))?;
    location.store()
}

/// Returns the store of a URL without opening it, as a process needs that only passes shards on.
/// The first request opens the store, and has the errors of [`store_of`].
pub(crate) fn deferred_store(url: String) -> Arc<dyn ObjectStore> {
    let name = url.clone();
    Arc::new(StoreClient::deferred(name, move || {
        store_of(&url).map_err(|error| object_store::Error::Generic {
            store: "remote",
            source: Box::new(error),
        })
    }))
}

/// The parts of a URL.
pub(crate) struct Location<'a> {
    scheme: &'a str,
    /// The bucket or container, or the host of a web server.
    host: &'a str,
    /// The user and the password before the host.
    userinfo: Option<&'a str>,
    /// The path without its first slash. It is not percent-decoded, since `?` and `*` in it may be
    /// a glob.
    pub(crate) path: &'a str,
    /// The part of a web server's URL after `?`, which may contain a signature.
    query: Option<&'a str>,
    /// Prefix of the environment variables that configure the store; empty for a web server.
    variables: &'static str,
}

impl<'a> Location<'a> {
    /// Parses a URL; `None` if it has no known scheme, or no authority.
    pub(crate) fn parse(source: &'a str) -> Option<Self> {
        let (scheme, rest) = source.split_once("://")?;
        let (_, variables) = SCHEMES
            .iter()
            .find(|(known, _)| scheme.eq_ignore_ascii_case(known))?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) if variables.is_empty() => (rest, Some(query)),
            _ => (rest, None),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (userinfo, host) = match authority.rsplit_once('@') {
            Some((userinfo, host)) => (Some(userinfo), host),
            None => (None, authority),
        };
        (!host.is_empty()).then_some(Self {
            scheme,
            host,
            userinfo,
            path,
            query,
            variables,
        })
    }

    /// Returns whether the URL is that of a web server.
    pub(crate) fn is_http(&self) -> bool {
        self.variables.is_empty()
    }

    /// Returns whether the URL has parts that may be secret: a query, or a user and a password.
    pub(crate) fn has_secret(&self) -> bool {
        self.query.is_some() || self.userinfo.is_some()
    }

    /// The URL of a key in the same store, without the query, which is often long and secret, and
    /// without the password.
    pub(crate) fn url(&self, key: &str) -> String {
        format!("{}://{}/{key}", self.scheme, self.host)
    }

    /// The URL of the store, with the user and the password.
    fn base(&self) -> String {
        match self.userinfo {
            Some(userinfo) => format!("{}://{userinfo}@{}/", self.scheme, self.host),
            None => self.url(""),
        }
    }

    /// Returns the client for the store: an existing one, unless the URL has a query.
    ///
    /// # Errors
    /// A variable has an invalid value, there are no credentials for S3, or the crate is built
    /// without the feature `stores`.
    pub(crate) fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        static STORES: PerProcess<Lock<HashMap<String, Arc<dyn ObjectStore>>>> = PerProcess::new();
        let base = self.base();
        let failed = |error| Error::io(self.url(""), error);
        if cfg!(not(feature = "stores")) {
            let error = io::Error::new(io::ErrorKind::Unsupported, NO_CLIENTS);
            return Err(failed(error));
        }
        // A query is often a signature for one file, so that its client is not kept.
        if let Some(query) = self.query {
            return self
                .connect_http(&format!("{base}?{query}"))
                .map_err(failed);
        }
        let mut stores = STORES.get(Lock::default).lock();
        if let Some(store) = stores.get(&base) {
            return Ok(Arc::clone(store));
        }
        if self.variables == S3 {
            check_s3().map_err(failed)?;
        }
        let store = if self.is_http() {
            self.connect_http(&base)
        } else {
            self.connect(&base)
        };
        let store = store.map_err(failed)?;
        stores.insert(base, Arc::clone(&store));
        Ok(store)
    }

    fn connect_http(&self, base: &str) -> io::Result<Arc<dyn ObjectStore>> {
        let base = base.to_owned();
        let allow_http = self.scheme.eq_ignore_ascii_case("http").to_string();
        let client = StoreClient::open(move || web_server(&base, &allow_http))?;
        Ok(Arc::new(client))
    }

    fn connect(&self, base: &str) -> io::Result<Arc<dyn ObjectStore>> {
        let url =
            Url::parse(base).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let options = self.options();
        let client = StoreClient::open(move || {
            let (store, _) = parse_url_opts(&url, options.iter().cloned())?;
            Ok(Arc::from(store))
        })?;
        Ok(Arc::new(client))
    }

    /// The options of the store, from environment variables. An endpoint without TLS is allowed if
    /// a variable names one.
    fn options(&self) -> Vec<(String, String)> {
        // The last value of an option counts, so that a variable replaces the default.
        let mut options = vec![("timeout".to_owned(), REQUEST_TIMEOUT.to_owned())];
        for (name, value) in env::vars_os() {
            let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else {
                continue;
            };
            if name.starts_with(self.variables) {
                options.push((name.to_ascii_lowercase(), value));
            }
        }
        if options
            .iter()
            .any(|(name, value)| name.contains("endpoint") && value.starts_with("http://"))
        {
            options.push(("allow_http".to_owned(), "true".to_owned()));
        }
        options
    }
}

/// Returns a client of the web server of a URL.
#[cfg(feature = "stores")]
fn web_server(url: &str, allow_http: &str) -> object_store::Result<Arc<dyn ObjectStore>> {
    use object_store::{ClientConfigKey, http::HttpBuilder};

    let server = HttpBuilder::new()
        .with_url(url)
        .with_config(ClientConfigKey::Timeout, REQUEST_TIMEOUT)
        .with_config(ClientConfigKey::AllowHttp, allow_http);
    Ok(Arc::new(server.build()?))
}

/// There is none: [`Location::store`] returns an error before.
#[cfg(not(feature = "stores"))]
fn web_server(_: &str, _: &str) -> object_store::Result<Arc<dyn ObjectStore>> {
    Err(object_store::Error::NotImplemented {
        operation: "connect".to_owned(),
        implementer: NO_CLIENTS.to_owned(),
    })
}

/// Returns the error that a source or an output cannot be used, with the reason.
pub(crate) fn invalid_source(source: impl Into<PathBuf>, why: &str) -> Error {
    Error::io(
        source,
        io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()),
    )
}

/// Parses the path of a URL into a key.
///
/// # Errors
/// The path has an empty segment, or characters that keys cannot have.
pub(crate) fn parse_key(path: &str) -> io::Result<Key> {
    Key::parse(path).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_recognized_by_their_schemes() {
        for url in [
            "s3://b/x",
            "gs://b",
            "S3://b/x*",
            "https://h/x?y",
            "abfss://c@a.dfs.core.windows.net/x",
        ] {
            assert!(is_remote(url), "{url}");
        }
        for other in [
            "a/b",
            "file:///x",
            "s3:/b/x",
            "s3:///x",
            "ftp://h/x",
            "://x",
        ] {
            assert!(!is_remote(other), "{other}");
        }
    }

    #[cfg(feature = "stores")]
    #[test]
    fn the_client_of_a_signed_url_is_not_kept() {
        let is_kept = |url| Arc::ptr_eq(&store_of(url).unwrap(), &store_of(url).unwrap());
        assert!(is_kept("http://localhost/a"));
        assert!(!is_kept("http://localhost/a?signature=secret"));
    }

    #[cfg(not(feature = "stores"))]
    #[test]
    fn a_build_without_clients_says_so() {
        for url in ["s3://b/x", "http://localhost/a", "https://h/x?y"] {
            let error = store_of(url).unwrap_err().to_string();
            assert!(error.ends_with(NO_CLIENTS), "{error}");
        }
    }
}
