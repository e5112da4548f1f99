//! Parquet and Arrow files, found by content, as DataFusion's own tables.

use std::{collections::HashMap, path::Path, sync::Arc};

use arrow_schema::{ArrowError, SchemaRef};
use datafusion::{
    arrow::ipc::reader::StreamReader,
    catalog::TableProvider,
    common::plan_datafusion_err,
    datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl},
    error::{DataFusionError, Result},
    execution::SessionState,
};
use object_store::ObjectStoreExt;
use tfarrow_codec::schema::check_columns;
use tfarrow_dataset::{Contents, Error, Shard, guard, is_remote};

use crate::{TfRecordOptions, error::external, table::is_pattern};

/// Bytes of an Arrow file in a store that are asked for first, to find its schema.
const HEAD_BYTES: u64 = 64 << 10;

/// A format of DataFusion's.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    /// Its options, as a statement would give them.
    pub(crate) options: HashMap<String, String>,
    /// What the names of files in folders end in.
    pub(crate) ending: String,
}

impl Format {
    /// A format without options, whose files are called so.
    pub(crate) fn of(name: &'static str) -> Self {
        Self { name, options: HashMap::new(), ending: format!(".{name}") }
    }
}

/// The table of these files, whatever their names are. Folders such as `split=train` below the source are columns, where
/// it is a folder itself: DataFusion knows no globs over such.
pub(crate) async fn listing_table(
    source: &str,
    shards: &[Shard],
    format: &Format,
    state: &SessionState,
) -> Result<Arc<dyn TableProvider>> {
    let Format { name, options, ending } = format;
    let factory = state.get_file_format_factory(name);
    let factory = factory.ok_or_else(|| plan_datafusion_err!("{source}: {name} files cannot be read"))?;
    let options = ListingOptions::new(factory.create(state, options)?);
    let config = if is_partitioned(shards) && !is_pattern(source) {
        let options = options.with_file_extension(ending);
        let config = ListingTableConfig::new(folder(source)?).with_listing_options(options);
        config.infer_partitions_from_path(state).await?
    } else {
        let of_shard = |shard: &Shard| match shard.is_remote() {
            true => remote(&shard.path, false),
            false => local(shard.local_path(), false),
        };
        let urls = shards.iter().map(of_shard).collect::<Result<Vec<_>>>()?;
        let options = options.with_file_extension("");
        ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options)
    };
    let config = match shards.first() {
        Some(first) if first.is_remote() && first.contents == Contents::Arrow => {
            config.with_schema(arrow_schema(first, state).await?)
        }
        _ => config.infer_schema(state).await?,
    };
    let table = ListingTable::try_new(config)?;
    // Each column costs time in every plan, and memory in every batch.
    let limits = TfRecordOptions::of(state.config()).limits;
    let checked = check_columns(&table.schema(), &limits);
    checked.map_err(|error| external(Error::codec(source, error)))?;
    Ok(Arc::new(table))
}

/// The schema of an Arrow file in a store. DataFusion looks for it eight bytes behind the beginning of an object, where
/// files whose buffers are aligned to more than eight bytes, as Arrow's own writer aligns them, have zeros.
async fn arrow_schema(shard: &Shard, state: &SessionState) -> Result<SchemaRef> {
    let url = remote(&shard.path, false)?;
    let store = state.runtime_env().object_store(&url)?;
    let mut asked = HEAD_BYTES;
    loop {
        let head = store.get_range(url.prefix(), 0..asked.min(shard.size)).await?;
        match guard(|| schema_of_head(&head))? {
            Ok(schema) => return Ok(schema),
            Err(error) if asked >= shard.size => {
                return Err(DataFusionError::from(error).context(shard.path.display().to_string()));
            }
            Err(_) => asked = asked.saturating_mul(16),
        }
    }
}

/// The schema at the beginning of an Arrow file, which is a stream behind a magic number and zeros.
fn schema_of_head(head: &[u8]) -> Result<SchemaRef, ArrowError> {
    let stream = head.strip_prefix(b"ARROW1").unwrap_or(head);
    let padding = stream.iter().take_while(|byte| **byte == 0).count();
    Ok(StreamReader::try_new(stream.get(padding..).unwrap_or_default(), None)?.schema())
}

/// Whether files lie in folders such as `split=train` below the source.
fn is_partitioned(shards: &[Shard]) -> bool {
    let folders = |shard: &Shard| shard.name.parent().is_some_and(|folders| folders.to_string_lossy().contains('='));
    !shards.is_empty() && shards.iter().all(folders)
}

/// The URL of a folder, on this machine or in a store.
pub(crate) fn folder(source: &str) -> Result<ListingTableUrl> {
    if is_remote(source) { remote(Path::new(source), true) } else { local(Path::new(source), true) }
}

/// The URL of an object, or of a folder of them. What in it looks like a glob is not one.
fn remote(path: &Path, folder: bool) -> Result<ListingTableUrl> {
    let text = path.to_string_lossy();
    let (scheme, rest) = text.split_once("://").unwrap_or(("", &text));
    let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
    let mut url = ListingTableUrl::parse(format!("{scheme}://{authority}/"))?.get_url().clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.clear().extend(key.split('/').filter(|part| !part.is_empty())).extend(folder.then_some(""));
    }
    ListingTableUrl::try_new(url, None)
}

/// The URL of a file or a folder. What in its name looks like a glob is not one.
fn local(path: &Path, folder: bool) -> Result<ListingTableUrl> {
    let path = std::path::absolute(path).map_err(DataFusionError::from)?;
    let mut url = ListingTableUrl::parse("file:///")?.get_url().clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        let names = path.components().filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        segments.clear().extend(names).extend(folder.then_some(""));
    }
    ListingTableUrl::try_new(url, None)
}
