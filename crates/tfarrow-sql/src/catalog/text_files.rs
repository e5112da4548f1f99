//! CSV and JSON files, which are recognized by their extensions, as listing tables of DataFusion.

use std::{collections::HashMap, sync::Arc};

use datafusion::{catalog::TableProvider, error::Result, execution::SessionState};
use tfarrow_dataset::Shard;

use crate::catalog::listing_table::{ListingFormat, listing_table};

/// File extensions and the format of each.
const FORMATS: [(&str, &str); 5] = [
    (".csv", "csv"),
    (".tsv", "csv"),
    (".json", "json"),
    (".ndjson", "json"),
    (".jsonl", "json"),
];
/// File extensions of compressed files, which follow those of the format.
const COMPRESSIONS: [&str; 4] = [".gz", ".bz2", ".xz", ".zst"];

/// The format and compression of text files with the same extension.
#[derive(Debug, PartialEq)]
pub(crate) struct TextFiles {
    /// The extension of the files, including that of the compression, in their own case.
    extension: String,
    /// The extension of the format in lower case, one of [`FORMATS`].
    kind: &'static str,
    format: &'static str,
    compression: Option<&'static str>,
}

impl TextFiles {
    /// The format by the extension of a file or a glob; `None` if the extension is not that of a
    /// text format.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let compression = COMPRESSIONS
            .into_iter()
            .find(|extension| lower.ends_with(extension));
        let bare = lower
            .strip_suffix(compression.unwrap_or_default())
            .unwrap_or(&lower);
        let (kind, format) = FORMATS
            .into_iter()
            .find(|(extension, _)| bare.ends_with(extension))?;
        let extension = name.get(bare.len() - kind.len()..)?.to_owned();
        Some(Self {
            extension,
            kind,
            format,
            compression,
        })
    }

    /// The format of these files; `None` if their extensions differ, or there are no files.
    pub(crate) fn of_shards(shards: &[Shard]) -> Option<Self> {
        let first = Self::of_name(shards.first()?.name.to_str()?)?;
        for shard in shards {
            if !shard.name.to_string_lossy().ends_with(&first.extension) {
                return None;
            }
        }
        Some(first)
    }

    /// Returns whether only tables read the files: statistics are read from plain text and gzip.
    pub(crate) fn is_only_for_tables(&self) -> bool {
        self.compression
            .is_some_and(|compression| compression != ".gz")
    }

    /// Creates the table of the files `shards`, which `source` names.
    ///
    /// # Errors
    /// A file is not of the format that its extension names.
    pub(crate) async fn table(
        &self,
        source: &str,
        shards: &[Shard],
        state: &SessionState,
    ) -> Result<Arc<dyn TableProvider>> {
        let format = ListingFormat {
            name: self.format,
            options: self.options(),
        };
        listing_table(source, shards, &format, state)
            .await
            .map_err(|error| error.context(source))
    }

    /// The options of the format, named as in a statement.
    pub(crate) fn options(&self) -> HashMap<String, String> {
        let mut options = HashMap::new();
        if let Some(compression) = self.compression {
            let compression = compression.trim_start_matches('.').to_owned();
            options.insert("format.compression".to_owned(), compression);
        }
        if self.kind == ".tsv" {
            options.insert("format.delimiter".to_owned(), "\t".to_owned());
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_determine_format_and_compression() {
        let format = |name| {
            TextFiles::of_name(name).map(|files| (files.extension, files.format, files.compression))
        };
        assert_eq!(format("x/*.CSV"), Some((".CSV".into(), "csv", None)));
        assert_eq!(
            format("a.b.ndjson.gz"),
            Some((".ndjson.gz".into(), "json", Some(".gz")))
        );
        assert_eq!(format("a.jsonl"), Some((".jsonl".into(), "json", None)));
        for other in ["x/csv", "x.tfrecord.gz", "", ".gz", "ä.gz"] {
            assert_eq!(format(other), None, "{other}");
        }
    }
}
