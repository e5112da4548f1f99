//! What an executor and a client accept of processes that they do not trust.

use std::{fs, path::PathBuf};

use ballista_core::{
    JobId,
    client::BallistaClient,
    serde::scheduler::{PartitionId, ShuffleLayout},
};
use datafusion::arrow::{
    array::{RecordBatch, StringArray},
    ipc::writer::StreamWriter,
};
use futures::TryStreamExt;

use crate::processes::Cluster;

/// The value of a result.
const TEXT: &str = "a text that is valid UTF-8";

/// Asks an executor for the result of stage 1 and partition 0 of a job: as a client does by
/// `do_get`, and else as an executor does.
fn fetch(port: u16, job: &str, do_get: bool) -> Result<Vec<RecordBatch>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let fetched = async {
        let client =
            BallistaClient::try_new("127.0.0.1", port, 1 << 20, false, None, 1, 0, 0, 0).await;
        let mut client = client.map_err(|error| error.to_string())?;
        let partition = PartitionId::new(&JobId::new(job), 1, 0);
        let layout = ShuffleLayout::Passthrough;
        let rows = client
            .fetch_partition_proxied("", &partition, None, layout, "127.0.0.1", port, do_get)
            .await;
        rows.map_err(|error| error.to_string())?
            .try_collect()
            .await
            .map_err(|error| error.to_string())
    };
    runtime.block_on(fetched)
}

/// The folder of an executor for the results of tasks.
fn results(cluster: &Cluster, executor: usize) -> PathBuf {
    let mut folders = cluster.work_dir(executor).read_dir().unwrap();
    folders.next().unwrap().unwrap().path().join("results")
}

/// Writes a result of one row as an executor does, in which `replaced` replaces the text.
fn write_result(folder: PathBuf, replaced: &[u8]) {
    let text: StringArray = vec![TEXT].into();
    let batch = RecordBatch::try_from_iter([("text", std::sync::Arc::new(text) as _)]).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    let mut bytes = writer.into_inner().unwrap();
    let at = bytes
        .windows(TEXT.len())
        .position(|window| window == TEXT.as_bytes())
        .unwrap();
    bytes[at..at + TEXT.len()].copy_from_slice(replaced);
    fs::create_dir_all(folder.join("1/0")).unwrap();
    fs::write(folder.join("1/0/data.arrow"), bytes).unwrap();
}

#[test]
fn rows_of_another_process_are_validated() {
    let cluster = Cluster::start(1);
    let results = results(&cluster, 0);
    write_result(results.join("valid"), TEXT.as_bytes());
    write_result(results.join("invalid"), &[0xff; TEXT.len()]);
    for do_get in [false, true] {
        assert_eq!(
            fetch(cluster.ports[0], "valid", do_get).unwrap()[0].num_rows(),
            1
        );
        let error = fetch(cluster.ports[0], "invalid", do_get).unwrap_err();
        assert!(error.to_lowercase().contains("utf"), "{do_get}: {error}");
    }
}

#[test]
fn requests_name_jobs_and_no_paths() {
    let cluster = Cluster::start(1);
    let results = results(&cluster, 0);
    // A result beside the folder of the results, which a request could name as a path.
    write_result(results.join("../outside"), TEXT.as_bytes());
    write_result(results.join("inside"), TEXT.as_bytes());
    let absolute = results.join("inside");
    for do_get in [false, true] {
        assert_eq!(
            fetch(cluster.ports[0], "inside", do_get).unwrap()[0].num_rows(),
            1
        );
        for job in [
            "../outside",
            "../results/inside",
            absolute.to_str().unwrap(),
            "",
            ".",
        ] {
            let error = fetch(cluster.ports[0], job, do_get).unwrap_err();
            assert!(
                error.contains("is not the identifier of a job"),
                "{do_get}: {job:?}: {error}"
            );
        }
    }
}
