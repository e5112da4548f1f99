//! The identity of the data of a shard, by which a file that was made of it knows it again.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::{Error, Result, Shard};

/// Number of bytes at each end of a file that are hashed.
const END_BYTES: u64 = 1024;

/// The identity of the data of a shard: of a file its size, the time of its last change and a hash
/// of its first and last kilobyte; of an object its size and ETag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardIdentity {
    size: u64,
    version: Option<String>,
    /// XXH3 of both ends; `None` for an object with an ETag.
    ends: Option<u64>,
}

impl ShardIdentity {
    /// The number of bytes of the shard, as it is stored.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Shard {
    /// The identity of the data. Reads both ends of a file.
    ///
    /// # Errors
    /// An I/O error.
    pub fn identity(&self) -> Result<ShardIdentity> {
        let is_tagged = self.is_remote() && self.checks_version();
        let ends = match is_tagged {
            true => None,
            false => Some(
                self.hash_ends()
                    .map_err(|error| Error::io(&self.path, error))?,
            ),
        };
        Ok(ShardIdentity {
            size: self.size,
            version: self.version(),
            ends,
        })
    }

    fn hash_ends(&self) -> io::Result<u64> {
        let mut bytes = Vec::new();
        let mut hasher = Xxh3::new();
        let last = self.size.saturating_sub(END_BYTES);
        for from in [0, last] {
            bytes.clear();
            self.open_at(from)?
                .take(END_BYTES)
                .read_to_end(&mut bytes)?;
            hasher.update(&bytes);
        }
        Ok(hasher.digest())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;
    use crate::ShardFormat;

    #[test]
    fn another_size_time_or_end_is_another_identity() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let of = |bytes: &[u8], seconds| {
            fs::write(&path, bytes).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            file.set_modified(time).unwrap();
            let size = bytes.len() as u64;
            let shard = Shard::file(path.clone(), "a".into(), size, ShardFormat::TfRecord);
            shard.identity().unwrap()
        };
        let bytes = vec![7; 5000];
        let other = |at: usize| {
            let mut other = bytes.clone();
            other[at] = 8;
            other
        };
        let first = of(&bytes, 1);
        assert_eq!(first, of(&bytes, 1));
        assert_ne!(first, of(&bytes, 2));
        assert_ne!(first, of(&bytes[1..], 1));
        assert_ne!(first, of(&other(1023), 1));
        assert_ne!(first, of(&other(4999), 1));
        // Reading all of it would take as long as having no index.
        assert_eq!(first, of(&other(2500), 1));
    }
}
