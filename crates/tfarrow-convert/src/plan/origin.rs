//! The metadata of Parquet and Arrow files about the TFRecord shard that they were converted from.

use std::{path::PathBuf, sync::Arc};

use arrow_schema::{Schema, SchemaRef};
use tfarrow_columnar::checksums;
use tfarrow_dataset::{Compression, Shard, file_names};

use crate::{OutputCompression, Target};

/// Metadata key for the name of the original shard.
const SHARD: &str = "tfarrow.shard";
/// Metadata key for the compression of the original shard.
const COMPRESSION: &str = "tfarrow.compression";

/// The TFRecord shard that a Parquet or Arrow file was converted from.
#[derive(Clone, Debug, Default)]
pub(crate) struct OriginalShard {
    pub(crate) name: Option<String>,
    pub(crate) compression: Option<Compression>,
}

impl OriginalShard {
    /// Reads the metadata of a file; empty if there is none.
    pub(crate) fn of(schema: &SchemaRef) -> Self {
        let metadata = schema.metadata();
        let compression = metadata.get(COMPRESSION);
        Self {
            name: metadata.get(SHARD).cloned(),
            compression: compression.and_then(|name| Compression::from_name(name)),
        }
    }

    /// The metadata of an output of these shards: of several, the compression if all have the same
    /// one, and no name.
    pub(crate) fn common<'o>(mut shards: impl Iterator<Item = &'o Self>) -> Self {
        let Some(first) = shards.next().cloned() else {
            return Self::default();
        };
        shards.fold(first, |common, shard| Self {
            name: None,
            compression: common
                .compression
                .filter(|compression| shard.compression == Some(*compression)),
        })
    }

    /// Returns `schema` with this metadata in place of the metadata of the file that it was read
    /// from.
    pub(crate) fn add_to(&self, schema: &SchemaRef) -> SchemaRef {
        let mut metadata = schema.metadata().clone();
        metadata.remove(SHARD);
        metadata.remove(COMPRESSION);
        metadata.remove(checksums::KEY);
        metadata.extend(
            self.name
                .iter()
                .map(|name| (SHARD.to_owned(), name.clone())),
        );
        let compression = self
            .compression
            .iter()
            .map(|compression| compression.name().to_owned());
        metadata.extend(compression.map(|name| (COMPRESSION.to_owned(), name)));
        Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata))
    }

    /// Replaces `Original` by the compression of this shard.
    pub(crate) fn resolve(&self, compression: OutputCompression) -> OutputCompression {
        match (compression, self.compression) {
            (OutputCompression::Original, Some(Compression::Gzip)) => OutputCompression::Gzip,
            (OutputCompression::Original, Some(Compression::Zlib)) => OutputCompression::Zlib,
            (OutputCompression::Original, Some(Compression::Snappy)) => OutputCompression::Snappy,
            (OutputCompression::Original, _) => OutputCompression::None,
            (other, _) => other,
        }
    }

    /// The name of the output of `shard`, relative to the folder of outputs. TFRecord outputs get
    /// the name of this shard.
    pub(crate) fn output_name(
        &self,
        shard: &Shard,
        target: Target,
        compression: Compression,
    ) -> PathBuf {
        let original = self.name.as_deref().filter(|_| target == Target::TfRecord);
        let was = self.compression.unwrap_or(Compression::None);
        let restored = original
            .and_then(|name| file_names::original_name(&shard.name, name, was, compression));
        restored.unwrap_or_else(|| {
            let suffix = if target == Target::TfRecord {
                compression.suffix()
            } else {
                ""
            };
            file_names::output_name(&shard.name, &format!("{}{suffix}", target.name()))
        })
    }
}
