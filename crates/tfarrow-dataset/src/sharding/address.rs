//! Addresses of shards: the values with which another process opens the same shards.

use std::{
    collections::HashMap,
    io,
    path::{Component, Path, absolute},
    sync::Arc,
};

use object_store::ObjectStore;
use serde::{Deserialize, Serialize};

use crate::{
    Error, Result, Shard, ShardFormat,
    store::{
        location::{Location, deferred_store, parse_key},
        object::{Object, ObjectAddress},
    },
};

/// Paths below which each process has its own files.
pub(crate) const PATHS_OF_PROCESSES: [&str; 4] =
    ["/dev/stdin", "/dev/fd", "/proc/self", "/proc/thread-self"];

/// The address of a shard of TFRecord, with which each process that has access to the same files or
/// stores can read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardAddress {
    /// The path or URL by which messages name the shard.
    pub path: String,
    /// The absolute path of a file whose `path` is relative to the folder of another process; else
    /// empty.
    pub absolute: String,
    /// The name in the data set.
    pub name: String,
    /// Size in bytes as stored.
    pub size: u64,
    /// The object, for a shard in a store.
    pub object: Option<ObjectAddress>,
}

impl ShardAddress {
    /// The address of a shard.
    ///
    /// # Errors
    /// Only this process can read the shard: standard input, a pipe, a path such as `/dev/stdin`,
    /// or a URL whose query may be a secret. Or its name is not UTF-8.
    pub fn of(shard: &Shard) -> Result<Self> {
        Self::check(shard)?;
        let object = shard.object().map(Object::address);
        let located = shard.located();
        let absolute = match object {
            None if located != shard.path => text_of(located, shard)?,
            None if shard.path.is_relative() => {
                let absolute = absolute(located).map_err(|error| Error::io(located, error))?;
                text_of(&absolute, shard)?
            }
            _ => String::new(),
        };
        Ok(Self {
            path: text_of(&shard.path, shard)?,
            absolute,
            name: text_of(&shard.name, shard)?,
            size: shard.size,
            object,
        })
    }

    /// Checks that a shard has an address, without making it.
    ///
    /// # Errors
    /// Those of [`of`](Self::of).
    pub fn check(shard: &Shard) -> Result<()> {
        if shard.reads_once() {
            return Err(refused(
                &shard.path,
                "a stream can be read in this process only: copy it to a file that all machines can read",
            ));
        }
        if shard.object().is_some_and(Object::has_secret) {
            return Err(refused(
                &shard.path,
                "a URL with a query or a password, which may be secret, is not sent to other machines",
            ));
        }
        if !shard.is_remote() {
            Self::check_path(shard.located())?;
        }
        let is_text = [&shard.path, shard.located(), &shard.name]
            .into_iter()
            .all(|path| path.to_str().is_some());
        if is_text {
            Ok(())
        } else {
            Err(not_utf8(shard))
        }
    }

    /// Checks that a path names the same file in other processes.
    ///
    /// # Errors
    /// The path names an open file of the process that uses it, such as `/dev/stdin`.
    pub fn check_path(path: &Path) -> Result<()> {
        match PATHS_OF_PROCESSES
            .iter()
            .any(|folder| path.starts_with(folder))
        {
            true => Err(refused(
                path,
                "other processes have another file at this path: use the path of the file itself",
            )),
            false => Ok(()),
        }
    }

    /// Creates the shards at these addresses. Opens no store: the first request to a store opens
    /// it.
    ///
    /// # Errors
    /// An address that no shard has, such as a name outside of its data set.
    pub fn shards(addresses: impl IntoIterator<Item = Self>) -> Result<Vec<Shard>> {
        let mut stores = HashMap::new();
        addresses
            .into_iter()
            .map(|address| address.shard(&mut stores))
            .collect()
    }

    fn shard(self, stores: &mut HashMap<String, Arc<dyn ObjectStore>>) -> Result<Shard> {
        let invalid = |path: &str, why: &str| {
            Error::io(
                path,
                io::Error::new(io::ErrorKind::InvalidData, why.to_owned()),
            )
        };
        let Self {
            path,
            absolute,
            name,
            size,
            object,
        } = self;
        if name.is_empty()
            || !Path::new(&name)
                .components()
                .all(|component| matches!(component, Component::Normal(_)))
        {
            return Err(invalid(
                &path,
                "the name of the shard is not relative to its data set",
            ));
        }
        let Some(object) = object else {
            let located = if absolute.is_empty() {
                &path
            } else {
                &absolute
            };
            if Path::new(located).is_relative() {
                return Err(invalid(
                    &path,
                    "the path of the shard is relative to another process",
                ));
            }
            let located = (!absolute.is_empty()).then(|| absolute.into());
            return Ok(
                Shard::file(path.into(), name.into(), size, ShardFormat::TfRecord)
                    .with_located(located),
            );
        };
        let base =
            Location::parse(&path).filter(|location| !location.is_http() || !location.has_secret());
        let base = base
            .ok_or_else(|| invalid(&path, "not the URL of an object"))?
            .url("");
        let key = parse_key(&object.key).map_err(|error| Error::io(&path, error))?;
        let store = Arc::clone(
            stores
                .entry(base)
                .or_insert_with_key(|base| deferred_store(base.clone())),
        );
        let object = Object::at(store, key, size, object);
        Ok(Shard::remote(
            path.into(),
            name.into(),
            size,
            ShardFormat::TfRecord,
            object,
        ))
    }
}

/// A path of a shard, or its name, as text.
///
/// # Errors
/// The path is not UTF-8.
fn text_of(path: &Path, shard: &Shard) -> Result<String> {
    match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(not_utf8(shard)),
    }
}

fn refused(path: &Path, why: &str) -> Error {
    Error::io(
        path,
        io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()),
    )
}

fn not_utf8(shard: &Shard) -> Error {
    refused(&shard.path, "the name is not UTF-8, and cannot be sent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_is_opened_by_its_absolute_path_and_keeps_its_name_in_messages() {
        let shard = Shard::file(
            "Cargo.toml".into(),
            "Cargo.toml".into(),
            1,
            ShardFormat::TfRecord,
        );
        let address = ShardAddress::of(&shard).unwrap();
        assert_eq!(address.path, "Cargo.toml");
        assert!(Path::new(&address.absolute).is_absolute());
        let made = ShardAddress::shards([address.clone()]).unwrap().remove(0);
        assert_eq!(
            (made.path.to_str(), made.local_path().to_str()),
            (Some("Cargo.toml"), Some(address.absolute.as_str()))
        );
        // A process that receives an address sends the same address, whatever its folder is.
        assert_eq!(ShardAddress::of(&made).unwrap(), address);
    }

    #[test]
    fn an_object_keeps_its_version_and_opens_no_store() {
        let object = ObjectAddress {
            key: "a b/x".to_owned(),
            tag: Some("\"7\"".to_owned()),
            has_ranges: true,
        };
        let address = ShardAddress {
            path: "s3://no-such-bucket/a b/x".to_owned(),
            name: "x".to_owned(),
            size: 9,
            object: Some(object),
            ..ShardAddress::default()
        };
        let made = ShardAddress::shards([address.clone()]).unwrap().remove(0);
        assert!(made.is_remote());
        assert_eq!(ShardAddress::of(&made).unwrap(), address);
    }

    #[test]
    fn streams_and_names_outside_of_the_data_set_are_refused() {
        let stream = Shard::stream("-".into(), "-".into());
        assert!(
            ShardAddress::of(&stream)
                .unwrap_err()
                .to_string()
                .contains("in this process only")
        );
        let address = |path: &str, name: &str, key: Option<&str>| {
            let object = key.map(|key| ObjectAddress {
                key: key.to_owned(),
                ..ObjectAddress::default()
            });
            ShardAddress {
                path: path.to_owned(),
                name: name.to_owned(),
                object,
                ..ShardAddress::default()
            }
        };
        let refused = [
            address("/a/x", "../x", None),
            address("/a/x", "/a/x", None),
            address("a/x", "x", None),
            address("/a/x", "x", Some("x")),
            address("https://h/x?token", "x", Some("x")),
            address("s3://b/x", "x", Some("a//x")),
        ];
        for address in refused {
            assert!(
                ShardAddress::shards([address.clone()]).is_err(),
                "{address:?}"
            );
        }
    }
}
