//! Loaders: every record is read once, in the order of the seed, by any number of processes that are
//! stopped and continued.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

use std::{fs, io::Write, ops::ControlFlow, path::Path, sync::Arc};

use arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use tfarrow_codec::{OnError, ReaderBuilder};
use tfarrow_dataset::{Compression, ReadOptions, Result, ShardWriter, resolve};
use tfarrow_index::{Dataset, DatasetOptions};
use tfarrow_loader::{DataExtent, Division, Loaded, LoaderPlan, Order, Selection, Shuffle};
use tfarrow_testkit::{frame, proto};

const SHUFFLES: [Shuffle; 3] = [Shuffle::None, Shuffle::Blocks, Shuffle::Global];

/// Records with the numbers `from..to`, of about this many bytes.
fn payloads(from: i64, to: i64, bytes: usize) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    for id in from..to {
        let padding = vec![id as u8; bytes + id as usize % 7];
        payloads.push(proto::example([
            ("id", proto::KindOneof::ints([id])),
            ("padding", proto::KindOneof::bytes(padding)),
        ]));
    }
    payloads
}

fn write(path: &Path, payloads: &[Vec<u8>], compression: Compression) {
    let mut writer = ShardWriter::new(Vec::new(), compression);
    writer.write_all(&frame::file(payloads)).unwrap();
    fs::write(path, writer.finish().unwrap()).unwrap();
}

/// The data set of the files of a folder, with the column `id`.
fn open(folder: &Path, on_error: OnError) -> Arc<Dataset> {
    let schema = Schema::new(vec![Field::new("id", DataType::Int64, true)]);
    let builder = ReaderBuilder::new(schema.into()).with_on_error(on_error);
    let options = DatasetOptions {
        read: ReadOptions {
            on_error,
            ..ReadOptions::default()
        },
        ..DatasetOptions::default()
    };
    let shards = resolve(&[folder]).unwrap().into_iter().collect();
    let progress = |_, _| ControlFlow::Continue(());
    Arc::new(Dataset::open(shards, builder, &options, &progress).unwrap())
}

/// Files of some sizes, one of which is empty, and one is compressed if `compression` says so.
fn data_set(compression: Compression) -> (tempfile::TempDir, Arc<Dataset>) {
    let folder = tempfile::tempdir().unwrap();
    let mut from = 0;
    for (number, count) in [70, 0, 200, 1, 29].into_iter().enumerate() {
        let compression = match number {
            2 => compression,
            _ => Compression::None,
        };
        let path = folder.path().join(format!("{number}.tfrecord"));
        write(&path, &payloads(from, from + count, 100), compression);
        from += count;
    }
    let dataset = open(folder.path(), OnError::Fail);
    (folder, dataset)
}

fn plan(
    dataset: &Arc<Dataset>,
    selection: &Selection,
    shuffle: Shuffle,
    division: Division,
    (rank, worker): (u64, u64),
) -> LoaderPlan {
    let extent = selection.extent(dataset);
    // As large as in a data set of which a round of 64 MiB has 64 records.
    let extent = DataExtent {
        bytes: extent.records << 20,
        ..extent
    };
    LoaderPlan {
        dataset: Arc::clone(dataset),
        selection: selection.clone(),
        order: Order::new(extent, shuffle, 3, 1),
        share: division.share(rank, worker).unwrap(),
        first: 0,
        threads: 2,
    }
}

fn ids(batch: &RecordBatch) -> Vec<u64> {
    let mut ids = Vec::new();
    for id in batch.column(0).as_primitive::<Int64Type>().values() {
        ids.push(*id as u64);
    }
    ids
}

/// The batches of a worker of a rank.
fn batches(plan: LoaderPlan) -> Vec<Vec<u64>> {
    let mut found = Vec::new();
    for loaded in plan.start() {
        found.push(ids(&loaded.unwrap().batch));
    }
    found
}

#[test]
fn batches_have_the_records_of_the_order() {
    for compression in [Compression::None, Compression::Gzip] {
        let (_folder, dataset) = data_set(compression);
        let some = Selection::Some((0..300).step_by(3).collect());
        for (selection, records) in [(Selection::All, 300), (some, 100)] {
            for shuffle in SHUFFLES {
                for (ranks, workers, batch_size) in [(1, 1, 10), (1, 1, 300), (2, 2, 7), (3, 1, 16)]
                {
                    let division = Division {
                        records,
                        start: 0,
                        batch_size,
                        ranks,
                        workers,
                        drop_last: false,
                    };
                    for process in [(0, 0), (ranks - 1, workers - 1)] {
                        let plan = plan(&dataset, &selection, shuffle, division, process);
                        let mut expected = Vec::new();
                        for batch in plan.share.batches() {
                            let of = |position| selection.record(plan.order.record(position));
                            expected.push(batch.map(of).collect::<Vec<_>>());
                        }
                        assert_eq!(batches(plan), expected, "{shuffle} {division:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_record_is_read_once_by_a_run_that_is_stopped_and_continued() {
    let (_folder, dataset) = data_set(Compression::None);
    let mut state = 1u64;
    for shuffle in [Shuffle::Blocks, Shuffle::Global] {
        for _ in 0..20 {
            let mut random = |most: u64| -> u64 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) % most
            };
            let mut seen = Vec::new();
            let mut start = 0;
            while start < 300 {
                let division = Division {
                    records: 300,
                    start,
                    batch_size: 1 + random(20),
                    ranks: 1 + random(3),
                    workers: 1 + random(2),
                    drop_last: false,
                };
                // Each rank stops after this many batches.
                let stop = 1 + random(division.batches());
                for rank in 0..division.ranks {
                    let mut workers = Vec::new();
                    for worker in 0..division.workers {
                        let process = (rank, worker);
                        let plan = plan(&dataset, &Selection::All, shuffle, division, process);
                        workers.push(plan.start());
                    }
                    for batch in 0..stop {
                        let worker = &mut workers[(batch % division.workers) as usize];
                        seen.extend(ids(&worker.next().unwrap().unwrap().batch));
                    }
                }
                start = division.position_after(stop);
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..300), "{shuffle}");
        }
    }
}

#[test]
fn ranks_without_records_have_as_many_batches() {
    let (_folder, dataset) = data_set(Compression::None);
    let division = Division {
        records: 10,
        start: 0,
        batch_size: 3,
        ranks: 3,
        workers: 1,
        drop_last: false,
    };
    let first = Selection::Some((0..10).collect());
    for (rank, last) in [(0, 1), (1, 0), (2, 0)] {
        let plan = plan(&dataset, &first, Shuffle::Global, division, (rank, 0));
        let sizes: Vec<_> = batches(plan).iter().map(Vec::len).collect();
        assert_eq!(sizes, [3, last]);
    }
}

#[test]
fn corrupt_records_leave_the_batches_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let payloads = payloads(0, 300, 100);
    let path = folder.path().join("a.tfrecord");
    write(&path, &payloads, Compression::None);
    let failing = open(folder.path(), OnError::Fail);
    let skipping = open(folder.path(), OnError::Skip);
    let mut bytes = fs::read(&path).unwrap();
    for record in [30, 31, 200] {
        let offset: usize = payloads[..record].iter().map(|it| it.len() + 16).sum();
        // A length, and two payloads.
        bytes[if record == 30 { offset } else { offset + 14 }] ^= 1;
    }
    fs::write(&path, bytes).unwrap();
    let division = Division {
        records: 300,
        start: 0,
        batch_size: 25,
        ranks: 1,
        workers: 1,
        drop_last: false,
    };
    for shuffle in SHUFFLES {
        let skipping = plan(&skipping, &Selection::All, shuffle, division, (0, 0));
        let loaded: Vec<Loaded> = skipping.start().map(Result::unwrap).collect();
        assert_eq!(loaded.len(), 12);
        let skipped: usize = loaded.iter().map(|loaded| loaded.skipped.len()).sum();
        let mut found: Vec<_> = loaded
            .iter()
            .flat_map(|loaded| ids(&loaded.batch))
            .collect();
        found.sort_unstable();
        let expected = (0..300).filter(|id| ![30, 31, 200].contains(id));
        assert!(found.into_iter().eq(expected), "{shuffle}");
        assert_eq!(skipped, 3);

        let failing = plan(&failing, &Selection::All, shuffle, division, (0, 0));
        let results: Vec<_> = failing.start().collect();
        let Some(Err(error)) = results.last() else {
            panic!("{shuffle}: no error");
        };
        let error = error.to_string();
        assert!(
            error.contains("a.tfrecord") && error.contains("record "),
            "{error}"
        );
    }
}

#[test]
fn threads_end_with_their_consumer() {
    let (_folder, dataset) = data_set(Compression::None);
    let division = Division {
        records: 300,
        start: 0,
        batch_size: 2,
        ranks: 1,
        workers: 1,
        drop_last: true,
    };
    for shuffle in SHUFFLES {
        let mut loader = plan(&dataset, &Selection::All, shuffle, division, (0, 0)).start();
        assert_eq!(loader.next().unwrap().unwrap().batch.num_rows(), 2);
        drop(loader);
    }
    // Each thread has a part of the data set until it ends.
    while Arc::strong_count(&dataset) > 1 {
        std::thread::yield_now();
    }
}
