//! The local files of an operator.

use std::path::PathBuf;

use datafusion::{
    datasource::{
        file_format::{csv::CsvSink, json::JsonSink, parquet::ParquetSink},
        physical_plan::{FileScanConfig, FileSink, FileSinkConfig},
        sink::{DataSink, DataSinkExec},
        source::DataSourceExec,
    },
    execution::object_store::ObjectStoreUrl,
    physical_plan::ExecutionPlan,
};
use object_store::{local::LocalFileSystem, path::Path};
use tfarrow_dataset::Shard;

use crate::write::{sink::TfRecordSink, staging::StagingSink};

/// The local files and folders that an operator reads or writes; none for objects in stores.
pub fn local_files(node: &dyn ExecutionPlan) -> Vec<PathBuf> {
    if let Some(exec) = node.downcast_ref::<DataSinkExec>() {
        return written_files(exec.sink());
    }
    let scan = node.downcast_ref::<DataSourceExec>().map(|scan| scan.data_source());
    let Some(config) = scan.and_then(|source| source.downcast_ref::<FileScanConfig>()) else { return Vec::new() };
    let files = config.file_groups.iter().flat_map(|group| group.iter());
    let local = files.filter_map(|file| match file.extension::<Shard>() {
        Some(shard) => (!shard.is_remote()).then(|| shard.local_path().to_owned()),
        None => local_path(&config.object_store_url, file.path()),
    });
    local.collect()
}

fn written_files(sink: &dyn DataSink) -> Vec<PathBuf> {
    if let Some(staging) = sink.downcast_ref::<StagingSink>() {
        let (inner, file, _) = staging.parts();
        let file = file.and_then(|url| local_path(&url.object_store(), url.prefix()));
        return written_files(inner.sink()).into_iter().chain(file).collect();
    }
    let paths = sink_config(sink).map_or(&[][..], |config| config.table_paths.as_slice());
    paths.iter().filter_map(|url| local_path(&url.object_store(), url.prefix())).collect()
}

/// Returns whether there is a message for a sink: files of TFRecord, Parquet, CSV and JSON lines.
pub fn has_message(sink: &dyn DataSink) -> bool {
    match sink.downcast_ref::<StagingSink>() {
        Some(staging) => has_message(staging.parts().0.sink()),
        None => sink_config(sink).is_some(),
    }
}

fn sink_config(sink: &dyn DataSink) -> Option<&FileSinkConfig> {
    let tfrecord = sink.downcast_ref::<TfRecordSink>().map(|sink| sink.parts().0);
    let parquet = || sink.downcast_ref::<ParquetSink>().map(FileSink::config);
    let csv = || sink.downcast_ref::<CsvSink>().map(FileSink::config);
    tfrecord.or_else(parquet).or_else(csv).or_else(|| sink.downcast_ref::<JsonSink>().map(FileSink::config))
}

/// The path of an object of DataFusion's store of local files; `None` for other stores.
fn local_path(store: &ObjectStoreUrl, path: &Path) -> Option<PathBuf> {
    (*store == ObjectStoreUrl::local_filesystem()).then(|| LocalFileSystem::new().path_to_filesystem(path).ok())?
}
