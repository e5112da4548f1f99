//! CSV and JSON files, told by their names' endings, as DataFusion's own tables.

use std::{collections::HashMap, sync::Arc};

use datafusion::{catalog::TableProvider, error::Result, execution::SessionState};
use tfarrow_dataset::Shard;

use crate::listing::{Format, listing_table};

/// Endings of names, and the format that each is.
const FORMATS: [(&str, &str); 5] =
    [(".csv", "csv"), (".tsv", "csv"), (".json", "json"), (".ndjson", "json"), (".jsonl", "json")];
/// Endings behind those of names of compressed files.
const COMPRESSIONS: [&str; 4] = [".gz", ".bz2", ".xz", ".zst"];

/// What files are, by the ending that their names share.
#[derive(Debug, PartialEq)]
pub(crate) struct TextFiles {
    /// All of it, as it is written.
    ending: String,
    kind: &'static str,
    format: &'static str,
    compression: Option<&'static str>,
}

impl TextFiles {
    /// What the name of a file says, or of a glob; `None` where it is another's.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let compression = COMPRESSIONS.into_iter().find(|ending| lower.ends_with(ending));
        let bare = lower.strip_suffix(compression.unwrap_or_default()).unwrap_or(&lower);
        let (kind, format) = FORMATS.into_iter().find(|(ending, _)| bare.ends_with(ending))?;
        let ending = name.get(bare.len() - kind.len()..)?.to_owned();
        Some(Self { ending, kind, format, compression })
    }

    /// What all these files are; `None` where there is another among them, or none.
    pub(crate) fn of_shards(shards: &[Shard]) -> Option<Self> {
        let first = Self::of_name(shards.first()?.name.to_str()?)?;
        let is_same = |shard: &Shard| shard.name.to_string_lossy().ends_with(&first.ending);
        shards.iter().all(is_same).then_some(first)
    }

    /// The table of these files, which `source` names.
    ///
    /// # Errors
    /// Where they cannot be read as their names say.
    pub(crate) async fn table(
        &self,
        source: &str,
        shards: &[Shard],
        state: &SessionState,
    ) -> Result<Arc<dyn TableProvider>> {
        let table = match listing_table(source, shards, &self.format(true), state).await {
            // An array of objects, and not one in each line.
            Err(error) if self.kind == ".json" => {
                listing_table(source, shards, &self.format(false), state).await.map_err(|_| error)
            }
            table => table,
        };
        table.map_err(|error| error.context(source))
    }

    fn format(&self, by_lines: bool) -> Format {
        let mut options = HashMap::new();
        let mut set = |name: &str, value: &str| options.insert(format!("format.{name}"), value.to_owned());
        if let Some(compression) = self.compression {
            set("compression", compression.trim_start_matches('.'));
        }
        if self.kind == ".tsv" {
            set("delimiter", "\t");
        }
        if !by_lines {
            set("newline_delimited", "false");
        }
        Format { name: self.format, options, ending: self.ending.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_files_are() {
        let format = |name| TextFiles::of_name(name).map(|files| (files.ending, files.format, files.compression));
        assert_eq!(format("x/*.CSV"), Some((".CSV".into(), "csv", None)));
        assert_eq!(format("a.b.ndjson.gz"), Some((".ndjson.gz".into(), "json", Some(".gz"))));
        assert_eq!(format("a.jsonl"), Some((".jsonl".into(), "json", None)));
        for other in ["x/csv", "x.tfrecord.gz", "", ".gz", "ä.gz"] {
            assert_eq!(format(other), None, "{other}");
        }
    }
}
