//! The local files of an operator.

use std::path::PathBuf;

use datafusion::{
    common::exec_err,
    datasource::{
        file_format::parquet::ParquetSink,
        listing::PartitionedFile,
        physical_plan::{FileScanConfig, FileSink, FileSinkConfig},
        sink::{DataSink, DataSinkExec},
        source::DataSourceExec,
    },
    error::Result,
    execution::object_store::ObjectStoreUrl,
    physical_plan::ExecutionPlan,
};
use object_store::{local::LocalFileSystem, path::Path};
use tfarrow_datafusion::{TfRecordSink, internals::external};
use tfarrow_dataset::{Shard, internals::ShardAddress};
use tfarrow_index::ShardIndex;

use crate::{text::sink::TextSink, write::staging::StagingSink};

/// The local files and folders that an operator reads or writes; none for objects in stores.
///
/// # Errors
/// A path is no path of a file, or an operator writes to another store than that of its paths.
pub fn local_files(node: &dyn ExecutionPlan) -> Result<Vec<PathBuf>> {
    if let Some(exec) = node.downcast_ref::<DataSinkExec>() {
        return written_files(exec.sink());
    }
    let Some(config) = scan_config(node) else {
        return Ok(Vec::new());
    };
    let mut local = Vec::new();
    for file in files(config) {
        match file.extension::<Shard>() {
            Some(shard) if !shard.is_remote() => local.push(shard.local_path().to_owned()),
            Some(_) => {}
            None => local.extend(local_path(&config.object_store_url, file.path())?),
        }
        let index = file.extension::<ShardIndex>().map(ShardIndex::file);
        if let Some(index) = index.filter(|index| !index.is_remote()) {
            local.push(index.local_path().to_owned());
        }
    }
    Ok(local)
}

/// Checks that other processes read the same files as this one.
///
/// # Errors
/// An operator reads a stream, or a file that only this process can open by its path.
pub fn check_shared(node: &dyn ExecutionPlan) -> Result<()> {
    let Some(config) = scan_config(node) else {
        return Ok(());
    };
    for file in files(config) {
        match file.extension::<Shard>() {
            Some(shard) => ShardAddress::check(shard).map_err(external)?,
            None => {
                if let Some(path) = local_path(&config.object_store_url, file.path())? {
                    ShardAddress::check_path(&path).map_err(external)?;
                }
            }
        }
    }
    Ok(())
}

fn scan_config(node: &dyn ExecutionPlan) -> Option<&FileScanConfig> {
    node.downcast_ref::<DataSourceExec>()?
        .data_source()
        .downcast_ref()
}

fn files(config: &FileScanConfig) -> impl Iterator<Item = &PartitionedFile> {
    config.file_groups.iter().flat_map(|group| group.iter())
}

fn written_files(sink: &dyn DataSink) -> Result<Vec<PathBuf>> {
    if let Some(staging) = sink.downcast_ref::<StagingSink>() {
        let (inner, target) = staging.parts();
        let mut written = written_files(inner.sink())?;
        for url in target
            .file
            .iter()
            .chain(target.folder.as_ref().map(|(url, _)| url))
        {
            written.extend(local_path(&url.object_store(), url.prefix())?);
        }
        return Ok(written);
    }
    let Some(config) = sink_config(sink) else {
        return Ok(Vec::new());
    };
    let paths = config.table_paths.iter().map(|url| {
        // Sinks write to the store of the configuration, whatever that of the path is.
        if url.object_store() != config.object_store_url {
            return exec_err!(
                "{url}: the plan writes to {}, which is another store",
                config.object_store_url
            );
        }
        local_path(&config.object_store_url, url.prefix())
    });
    paths.filter_map(Result::transpose).collect()
}

/// Returns whether there is a message for a sink: files of TFRecord, Parquet, CSV and JSON lines.
pub fn has_message(sink: &dyn DataSink) -> bool {
    match sink.downcast_ref::<StagingSink>() {
        Some(staging) => has_message(staging.parts().0.sink()),
        None => sink_config(sink).is_some(),
    }
}

fn sink_config(sink: &dyn DataSink) -> Option<&FileSinkConfig> {
    if let Some(tfrecord) = sink.downcast_ref::<TfRecordSink>() {
        return Some(tfrecord.parts().0);
    }
    if let Some(parquet) = sink.downcast_ref::<ParquetSink>() {
        return Some(FileSink::config(parquet));
    }
    sink.downcast_ref::<TextSink>().map(FileSink::config)
}

/// The path of an object, or of a folder, of DataFusion's store of local files; `None` for other
/// stores.
fn local_path(store: &ObjectStoreUrl, path: &Path) -> Result<Option<PathBuf>> {
    if *store != ObjectStoreUrl::local_filesystem() {
        return Ok(None);
    }
    // The store has no path for a folder that cannot be the name of an object, such as the root: it
    // has one for a file in it.
    let file = LocalFileSystem::new().path_to_filesystem(&path.clone().join("file"))?;
    Ok(file.parent().map(ToOwned::to_owned))
}

#[cfg(test)]
mod tests {
    use datafusion::datasource::listing::ListingTableUrl;

    use super::*;

    #[test]
    fn folders_of_any_name_have_a_path() {
        let local = ObjectStoreUrl::local_filesystem();
        for path in ["/", "/data", "/home/x#1", "/a b/\u{fc}"] {
            let url = ListingTableUrl::parse(format!("{path}/")).unwrap();
            assert_eq!(
                local_path(&local, url.prefix()).unwrap(),
                Some(PathBuf::from(path)),
                "{path}"
            );
        }
        let store = ObjectStoreUrl::parse("s3://bucket").unwrap();
        assert_eq!(local_path(&store, &Path::from("data")).unwrap(), None);
    }
}
