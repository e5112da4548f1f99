//! URLs of files and folders for DataFusion, from names that may contain glob characters.

use std::path::Path;

use datafusion::{
    datasource::listing::ListingTableUrl,
    error::{DataFusionError, Result},
};
use tfarrow_dataset::{Shard, internals::is_remote};

/// The URL of a shard.
pub fn shard(shard: &Shard) -> Result<ListingTableUrl> {
    match shard.is_remote() {
        true => remote(&shard.path, false),
        false => local(shard.local_path(), false),
    }
}

/// The URL of a folder, local or in a store.
pub(crate) fn folder(source: &str) -> Result<ListingTableUrl> {
    if is_remote(source) {
        remote(Path::new(source), true)
    } else {
        local(Path::new(source), true)
    }
}

/// The URL of an object, or of a folder of objects. Glob characters in the path are literal.
pub(crate) fn remote(path: &Path, folder: bool) -> Result<ListingTableUrl> {
    let text = path.to_string_lossy();
    let (scheme, rest) = text.split_once("://").unwrap_or(("", &text));
    let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
    let mut url = ListingTableUrl::parse(format!("{scheme}://{authority}/"))?
        .get_url()
        .clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments
            .clear()
            .extend(key.split('/').filter(|part| !part.is_empty()))
            .extend(folder.then_some(""));
    }
    ListingTableUrl::try_new(url, None)
}

/// The URL of a local file or folder. Glob characters in the path are literal.
pub(crate) fn local(path: &Path, folder: bool) -> Result<ListingTableUrl> {
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
