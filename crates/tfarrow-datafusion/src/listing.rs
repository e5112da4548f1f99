//! Parquet and Arrow files, found by content, as DataFusion's own tables.

use std::{collections::HashMap, path::Path, sync::Arc};

use datafusion::{
    catalog::TableProvider,
    common::plan_datafusion_err,
    datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl},
    error::{DataFusionError, Result},
    execution::SessionState,
};
use tfarrow_dataset::{Shard, is_remote};

/// The table of these files, whatever their names are. Folders such as `split=train` below the source are columns.
pub(crate) async fn listing_table(
    source: &str,
    shards: &[Shard],
    format: &str,
    state: &SessionState,
) -> Result<Arc<dyn TableProvider>> {
    let factory = state.get_file_format_factory(format);
    let factory = factory.ok_or_else(|| plan_datafusion_err!("{source}: {format} files cannot be read"))?;
    let options = ListingOptions::new(factory.create(state, &HashMap::new())?);
    let config = if is_partitioned(shards) {
        let options = options.with_file_extension(format!(".{format}"));
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
    Ok(Arc::new(ListingTable::try_new(config.infer_schema(state).await?)?))
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
