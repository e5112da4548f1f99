//! `FROM 'shards/*.tfrecord'`: a name that no table has, and that names files.
//!
//! DataFusion's own factory tells a format by the ending of the first file's name, and takes what fails for a table
//! that is not there. Ours finds shards as the rest of tfarrow does, by content, and says what fails. What has the
//! ending of CSV or JSON goes to DataFusion's.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use datafusion::{
    catalog::{TableProvider, UrlTableFactory},
    common::{plan_datafusion_err, plan_err},
    datasource::dynamic_file::DynamicListTableFactory,
    error::Result,
    execution::SessionState,
    prelude::SessionContext,
};
use tfarrow_dataset::{Contents, Shard, is_remote, is_shard_spec, resolve};

use crate::{
    error::external,
    listing::listing_table,
    options::TfRecordOptions,
    session::Shared,
    table::{TfRecordTable, blocking, spooled},
};

/// Makes tables of names of files, folders and globs.
pub(crate) struct UrlTables {
    /// DataFusion's own, which also holds the session.
    stock: DynamicListTableFactory,
    shared: Arc<Shared>,
    /// Copies of what can be read only once, by the name of the source: a second query sees what the first saw.
    streams: Arc<Mutex<HashMap<String, Vec<Shard>>>>,
}

impl std::fmt::Debug for UrlTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlTables").finish_non_exhaustive()
    }
}

impl UrlTables {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { stock: DynamicListTableFactory::default(), shared, streams: Arc::default() }
    }

    /// Tells which session the tables are for.
    pub(crate) fn bind(&self, context: &SessionContext) {
        self.stock.session_store().with_state(context.state_weak_ref());
    }

    fn session(&self) -> Result<SessionState> {
        let session = self.stock.session_store().get_session().upgrade();
        let state = session.and_then(|session| session.read().as_any().downcast_ref::<SessionState>().cloned());
        state.ok_or_else(|| plan_datafusion_err!("the session is gone"))
    }

    /// The table that DataFusion makes of these files.
    async fn stock_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.stock.try_new(name).await? {
            None => plan_err!("{name}: no such files, or none that can be read as their names say"),
            table => Ok(table),
        }
    }

    async fn shards(&self, source: &str) -> Result<Vec<Shard>> {
        let (streams, source) = (Arc::clone(&self.streams), source.to_owned());
        blocking(move || {
            let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(shards) = streams.get(&source) {
                return Ok(shards.clone());
            }
            let shards = resolve(&[&source]).map_err(external)?;
            if !shards.iter().any(Shard::is_stream) {
                return Ok(shards);
            }
            let shards = spooled(shards).map_err(external)?;
            streams.insert(source, shards.clone());
            Ok(shards)
        })
        .await
    }

    async fn table(&self, source: &str, shards: Vec<Shard>) -> Result<Arc<dyn TableProvider>> {
        let state = self.session()?;
        match contents(source, &shards)? {
            Contents::TfRecord => {
                let options = TfRecordOptions::of(state.config());
                let table = TfRecordTable::infer(shards, &options).await?;
                Ok(self.shared.adopt(table, source))
            }
            Contents::Parquet => listing_table(source, &shards, "parquet", &state).await,
            Contents::Arrow => listing_table(source, &shards, "arrow", &state).await,
        }
    }
}

#[async_trait]
impl UrlTableFactory for UrlTables {
    async fn try_new(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if (is_url(name) && !is_remote(name)) || has_stock_ending(name) {
            return self.stock_table(name).await;
        }
        if !looks_like_path(name) && !Path::new(name).exists() {
            return Ok(None);
        }
        match self.shards(name).await {
            Ok(shards) => self.table(name, shards).await.map(Some),
            Err(_) if is_folder_of_stock_files(Path::new(name)) => self.stock_table(name).await,
            Err(error) => Err(error),
        }
    }
}

/// What all these shards hold.
fn contents(source: &str, shards: &[Shard]) -> Result<Contents> {
    let first = shards.first().ok_or_else(|| plan_datafusion_err!("{source}: no shard"))?;
    match shards.iter().find(|shard| shard.contents != first.contents) {
        None => Ok(first.contents),
        Some(other) => plan_err!(
            "{source}: one table cannot hold both {} ({}) and {} ({}); name one of them, such as with a glob",
            first.contents,
            first.path.display(),
            other.contents,
            other.path.display()
        ),
    }
}

/// Whether a name can only be meant as that of files. A word may be either: it is what is there.
fn looks_like_path(name: &str) -> bool {
    is_shard_spec(name)
        || name == "-"
        || name.starts_with('~')
        || name.contains(['/', '\\', '.', '*', '?', '[', '{'])
        || name.contains("-of-")
}

fn is_url(name: &str) -> bool {
    name.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// Endings of formats that are not told by content, and are DataFusion's to read.
const STOCK: [&str; 2] = [".csv", ".json"];

fn has_stock_ending(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    STOCK.iter().any(|ending| name.ends_with(ending))
}

/// Whether all visible files of a folder have the same ending, and that is of a format of DataFusion's.
fn is_folder_of_stock_files(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().to_ascii_lowercase());
    let names: Vec<_> = names.filter(|name| !name.starts_with(['.', '_'])).collect();
    !names.is_empty() && STOCK.iter().any(|ending| names.iter().all(|name| name.ends_with(ending)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_no_path_and_what_has_a_separator_is() {
        for name in ["-", "~/x", "a/b", "a.tfrecord", "train-*", "train-00000-of-00001", "a[0]", "{a,b}", "train@4"] {
            assert!(looks_like_path(name), "{name}");
        }
        for name in ["shards", "My Table", "train-1", ""] {
            assert!(!looks_like_path(name), "{name}");
        }
    }

    #[test]
    fn urls_and_endings() {
        assert!(is_url("s3://bucket/x") && is_url("file:///x"));
        assert!(!is_url("a/b") && !is_url("://x") && !is_url("a b://x"));
        assert!(has_stock_ending("x/*.CSV") && !has_stock_ending("x/csv"));
    }
}
