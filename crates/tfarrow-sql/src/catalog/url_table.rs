//! Tables of files that are named in a query: `FROM 'shards/*.tfrecord'`.
//!
//! DataFusion's own factory determines the format from the extension of the first file, and reports
//! a file that cannot be read as a table that does not exist. This factory finds shards by content,
//! as the other commands do, and returns the error of the file. For files that are not TFRecord,
//! Parquet or Arrow, the extension determines the format.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use datafusion::{
    catalog::{TableProvider, UrlTableFactory},
    common::{plan_datafusion_err, plan_err},
    error::Result,
    execution::SessionState,
    prelude::SessionContext,
};
use futures::future::BoxFuture;
use tfarrow_datafusion::{
    Notice, TfRecordOptions, TfRecordTable, TfRecordTableBuilder,
    internals::{TableRegistry, blocking, external, spooled},
};
use tfarrow_dataset::{
    FormatFilter, Shard, ShardFormat,
    internals::{Lock, is_shard_spec, splits_note, tfds_splits},
    resolve_filtered,
};

use crate::catalog::{
    known_tables::{KnownTables, TableOrigin},
    listing_table::{ARROW, ListingFormat, PARQUET, are_converted_events, listing_table},
    text_files::TextFiles,
};

/// Returns the current state of the session; `None` after the session has been dropped. The
/// reference is weak, because the session owns the factory.
type Session = Box<dyn Fn() -> Option<SessionState> + Send + Sync>;

/// Creates tables from names of files, folders and globs.
pub(crate) struct UrlTables {
    session: OnceLock<Session>,
    registry: Arc<TableRegistry>,
    /// Copies of sources that can be read only once, by the name of the source, so that a second
    /// query reads the same data. Each source has its own lock, so that a source that is slow to
    /// list blocks no other.
    streams: Lock<HashMap<String, Arc<Stream>>>,
    known: KnownTables,
}

/// The copies of one source that can be read only once; `None` for other sources, and before the
/// first read.
type Stream = Lock<Option<Vec<Shard>>>;

impl std::fmt::Debug for UrlTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlTables").finish_non_exhaustive()
    }
}

impl UrlTables {
    pub(crate) fn new(registry: Arc<TableRegistry>) -> Self {
        Self {
            session: OnceLock::new(),
            registry,
            streams: Lock::default(),
            known: KnownTables::default(),
        }
    }

    /// Sets the session whose settings the tables use.
    pub(crate) fn bind(&self, context: &SessionContext) {
        let state = context.state_weak_ref();
        self.session
            .get_or_init(|| Box::new(move || Some(state.upgrade()?.read().clone())));
    }

    fn session(&self) -> Result<SessionState> {
        let state = self.session.get().and_then(|session| session());
        state.ok_or_else(|| plan_datafusion_err!("the session has been dropped"))
    }

    /// Lists the shards that `source` names.
    async fn shards(&self, source: &str, wanted: FormatFilter) -> Result<Vec<Shard>> {
        let source = source.to_owned();
        let stream = {
            let mut streams = self.streams.lock();
            Arc::clone(streams.entry(source.clone()).or_default())
        };
        blocking(move || {
            let mut stream = stream.lock();
            if let Some(shards) = stream.as_ref() {
                return Ok(shards.clone());
            }
            let shards = resolve_filtered(&[&source], wanted)
                .map_err(external)?
                .shards;
            let are_copied = shards.iter().any(|shard| {
                // Only this crate reads TFRecord, and sequentially, so that any object can be read
                // in place.
                let is_tfrecord =
                    wanted == FormatFilter::All && shard.format == ShardFormat::TfRecord;
                shard.is_stream() || shard.needs_local_copy() && !is_tfrecord
            });
            if !are_copied {
                return Ok(shards);
            }
            let shards = spooled(shards).map_err(external)?;
            *stream = Some(shards.clone());
            Ok(shards)
        })
        .await
    }

    async fn table(&self, source: &str, shards: Vec<Shard>) -> Result<Arc<dyn TableProvider>> {
        let state = self.session()?;
        let named = blocking(move || Ok((splits_note(&tfds_splits(&shards)), shards)));
        let (note, shards) = named.await?;
        if let Some(note) = note {
            self.registry.notices.notify(&Notice::Splits(note));
        }
        match contents(source, &shards)? {
            ShardFormat::TfRecord => {
                let options = TfRecordOptions::of(state.config());
                let table = self.tfrecord(shards, options).await?;
                self.registry.register(table, source)
            }
            ShardFormat::Parquet => self.columnar(source, shards, PARQUET, &state).await,
            ShardFormat::Arrow => self.columnar(source, shards, ARROW, &state).await,
            ShardFormat::Csv | ShardFormat::Json => match TextFiles::of_shards(&shards) {
                Some(files) => files.table(source, &shards, &state).await,
                None => plan_err!("{source}: text files of one table need the same extension"),
            },
        }
    }

    /// The table of TFRecord files.
    async fn tfrecord(
        &self,
        shards: Vec<Shard>,
        options: TfRecordOptions,
    ) -> Result<TfRecordTable> {
        let origin = TableOrigin::of(&shards, &options);
        if let Some(origin) = &origin
            && let Some(table) = self.known.get(origin)
        {
            return Ok(table);
        }
        let table = TfRecordTableBuilder::of_shards(shards).with_options(options);
        let table = table.build().await?;
        if let Some(origin) = origin {
            self.known.add(origin, table.clone());
        }
        Ok(table)
    }

    /// The table of Parquet or Arrow files: their columns, or the values of TensorBoard's events
    /// that were converted to them.
    async fn columnar(
        &self,
        source: &str,
        shards: Vec<Shard>,
        format: &'static str,
        state: &SessionState,
    ) -> Result<Arc<dyn TableProvider>> {
        let options = TfRecordOptions::of(state.config());
        if !options.states_type() && are_converted_events(&shards, format, state).await {
            let events = TfRecordTableBuilder::of_shards(shards).with_events()?;
            let table = events.with_options(options).build().await?;
            return self.registry.register(table, source);
        }
        listing_table(source, &shards, &ListingFormat::of(format), state).await
    }

    /// Creates the table of a source; `None` for a name that is not a path. Boxed here, because the
    /// future holds a [`SessionState`]: see
    /// [`PlanFuture`](tfarrow_datafusion::internals::PlanFuture).
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Arc<dyn TableProvider>>>> {
        Box::pin(async move {
            if let Some(files) = TextFiles::of_name(name) {
                let shards = self.shards(name, FormatFilter::Files).await?;
                return files.table(name, &shards, &self.session()?).await.map(Some);
            }
            if !looks_like_path(name) && !Path::new(name).exists() {
                return Ok(None);
            }
            let error = match self.shards(name, FormatFilter::All).await {
                Ok(shards) => return self.table(name, shards).await.map(Some),
                Err(error) => error,
            };
            let Ok(shards) = self.shards(name, FormatFilter::Files).await else {
                return Err(error);
            };
            match TextFiles::of_shards(&shards) {
                Some(files) => files.table(name, &shards, &self.session()?).await.map(Some),
                None => Err(error),
            }
        })
    }
}

#[async_trait]
impl UrlTableFactory for UrlTables {
    async fn try_new(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.find(name).await
    }
}

/// The format that all shards have. An empty Parquet or Arrow file is an error, as after a write to
/// a full disk; DataFusion would read it as a file without rows.
pub(super) fn contents(source: &str, shards: &[Shard]) -> Result<ShardFormat> {
    let first = shards
        .first()
        .ok_or_else(|| plan_datafusion_err!("{source}: no shard"))?;
    if let Some(empty) = shards
        .iter()
        .find(|shard| shard.format != ShardFormat::TfRecord && shard.size == 0)
    {
        return plan_err!(
            "{}: an empty file is not a valid {} file",
            empty.path.display(),
            empty.format
        );
    }
    match shards.iter().find(|shard| shard.format != first.format) {
        None => Ok(first.format),
        Some(other) => plan_err!(
            "{source}: one table cannot hold both {} ({}) and {} ({}); select one of them, for example with a glob",
            first.format,
            first.path.display(),
            other.format,
            other.path.display()
        ),
    }
}

/// Returns whether a name is a path and not a table name. A plain word may be either: it is a path
/// if the file exists.
fn looks_like_path(name: &str) -> bool {
    is_shard_spec(name)
        || name == "-"
        || name.starts_with('~')
        || name.contains(['/', '\\', '.', '*', '?', '[', '{'])
        || name.contains("-of-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_not_a_path_and_a_name_with_a_separator_is() {
        for name in [
            "-",
            "~/x",
            "a/b",
            "a.tfrecord",
            "train-*",
            "train-00000-of-00001",
            "a[0]",
            "{a,b}",
            "train@4",
        ] {
            assert!(looks_like_path(name), "{name}");
        }
        for name in ["shards", "My Table", "train-1", ""] {
            assert!(!looks_like_path(name), "{name}");
        }
    }
}
