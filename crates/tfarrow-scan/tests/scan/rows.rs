//! Inference over rows of Parquet and Arrow files: every row is observed once under its number,
//! whatever the threads do.

use std::{
    fs::{self, File},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, TimestampMillisecondArray,
    types::{Int32Type, Int64Type},
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field};
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use tempfile::TempDir;
use tfarrow_codec::{
    Kind,
    infer::{RecordObserver, SeenRecord, ValueList},
};
use tfarrow_columnar::ParquetFile;
use tfarrow_dataset::resolve;
use tfarrow_scan::{InferOptions, Inferred, Sample, infer, infer_observed};

const ROWS: i64 = 20_000;

/// Rows `first..first + count`, which have their number, and a text of its own length.
fn batch(first: i64, count: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + count));
    let text = |i: i64| format!("{i:0>width$}", width = 1 + (i % 50) as usize);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
        (first..first + count).map(text),
    ));
    RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap()
}

fn parquet(path: &Path, batch: &RecordBatch, group_rows: usize) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .build();
    let mut writer = ArrowWriter::try_new(
        File::create(path).unwrap(),
        batch.schema(),
        Some(properties),
    )
    .unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn arrow(path: &Path, batches: &[RecordBatch]) {
    let mut writer =
        FileWriter::try_new(File::create(path).unwrap(), &batches[0].schema()).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

/// Files of the rows: Parquet with many row groups and with one, Arrow with one batch and with
/// many.
fn files(folder: &TempDir) -> [PathBuf; 4] {
    let paths = ["groups.parquet", "one.parquet", "one.arrow", "many.arrow"]
        .map(|name| folder.path().join(name));
    parquet(&paths[0], &batch(0, ROWS), 3_000);
    parquet(&paths[1], &batch(0, ROWS), 1 << 20);
    arrow(&paths[2], &[batch(0, ROWS)]);
    arrow(
        &paths[3],
        &(0..ROWS / 100)
            .map(|i| batch(100 * i, 100))
            .collect::<Vec<_>>(),
    );
    paths
}

/// The place of each record, and the number in it.
#[derive(Default)]
struct Ids(Vec<Seen>);

impl RecordObserver for Ids {
    fn record(&mut self, record: &mut SeenRecord<'_>) {
        let place = record.place();
        assert_eq!(place.offset, None);
        record.each_list(|feature, list| {
            if let ("id", ValueList::Int64([id])) = (feature.name, list) {
                self.0.push((place.shard, place.record, *id));
            }
        });
    }
}

/// A record that an observer has seen: its shard, its number and its id.
type Seen = (u32, u64, i64);

fn observe(
    paths: &[PathBuf],
    threads: usize,
    sample: Sample,
) -> tfarrow_dataset::Result<(Inferred, Vec<Seen>)> {
    let options = InferOptions {
        threads,
        sample,
        ..InferOptions::default()
    };
    let bytes = std::sync::atomic::AtomicU64::new(0);
    let progress = |more, _| {
        bytes.fetch_add(more, std::sync::atomic::Ordering::Relaxed);
        ControlFlow::Continue(())
    };
    let shards = resolve(paths).unwrap();
    let (inferred, observers) = infer_observed(&shards, &options, &progress, Ids::default)?;
    if sample == Sample::All {
        assert_eq!(
            bytes.into_inner(),
            shards.iter().map(|shard| shard.size).sum::<u64>()
        );
    }
    let mut ids: Vec<_> = observers.into_iter().flat_map(|ids| ids.0).collect();
    ids.sort_unstable();
    Ok((inferred, ids))
}

#[test]
fn each_row_is_observed_once_under_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let paths = files(&folder);
    let expect: Vec<_> = (0..4)
        .flat_map(|shard| (0..ROWS).map(move |id| (shard, id as u64, id)))
        .collect();
    for threads in [1, 2, 5] {
        let (inferred, ids) = observe(&paths, threads, Sample::All).unwrap();
        assert_eq!(inferred.summary.records(), 4 * ROWS as u64);
        assert!(ids == expect, "{threads} threads");
    }
}

#[test]
fn a_sample_has_the_first_rows_of_each_file() {
    let folder = tempfile::tempdir().unwrap();
    let paths = files(&folder);
    for (threads, records) in [(1, 10), (3, 3_500), (2, 7_000)] {
        let expect: Vec<_> = (0..4)
            .flat_map(|shard| (0..records).map(move |id| (shard, id as u64, id)))
            .collect();
        let (inferred, ids) = observe(&paths, threads, Sample::Records(records as usize)).unwrap();
        assert!(ids == expect, "{records} rows with {threads} threads");
        assert_eq!(inferred.sampled.unwrap().records, 4 * records as u64);
    }
    // A sample that has all rows is none.
    let (inferred, ids) = observe(&paths[..1], 2, Sample::Records(ROWS as usize)).unwrap();
    assert_eq!((inferred.sampled, ids.len()), (None, ROWS as usize));
}

#[test]
fn the_first_corrupt_row_group_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = files(&folder)[0].clone();
    let mut bytes = fs::read(&path).unwrap();
    let file = ParquetFile::open(&path, &path).unwrap();
    // The third and the fifth of seven row groups lose the header of a page.
    for group in [2, 4] {
        let (start, _) = file.groups()[group].column(1).byte_range();
        bytes[start as usize..][..16].fill(0xff);
    }
    fs::write(&path, bytes).unwrap();
    for threads in [1, 2, 4] {
        let error = observe(std::slice::from_ref(&path), threads, Sample::All)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("groups.parquet: row group 2, from row 6000 on: "),
            "{threads} threads: {error}"
        );
    }
}

/// Columns that records hold, change, and cannot hold.
fn foreign() -> RecordBatch {
    let within = StructArray::from(vec![(
        Arc::new(Field::new("a", DataType::Int64, true)),
        Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef,
    )]);
    let items = |rows: [Option<Vec<Option<i64>>>; 3]| {
        ListArray::from_iter_primitive::<Int64Type, _, _>(rows)
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "id",
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
        ),
        ("price", Arc::new(Float64Array::from(vec![0.1, 0.5, 1e300]))),
        (
            "at",
            Arc::new(TimestampMillisecondArray::from(vec![0, 1, 2])),
        ),
        (
            "city",
            Arc::new(DictionaryArray::<Int32Type>::from_iter([
                "Lima", "Porto", "Lima",
            ])),
        ),
        (
            "items",
            Arc::new(items([Some(vec![Some(1), None]), None, Some(vec![])])),
        ),
        ("within", Arc::new(within)),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

#[test]
fn columns_of_other_tools_become_features_or_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.parquet", "a.arrow"].map(|name| folder.path().join(name));
    parquet(&paths[0], &foreign(), 2);
    arrow(&paths[1], &[foreign()]);
    for path in paths {
        let options = InferOptions {
            threads: 2,
            ..InferOptions::default()
        };
        let inferred = infer(&resolve(&[&path]).unwrap(), &options, &|_, _| {
            ControlFlow::Continue(())
        })
        .unwrap();
        let features: Vec<_> = inferred
            .summary
            .features()
            .map(|f| (f.name.as_str(), f.kind(), f.present))
            .collect();
        let expect = [
            ("at", Some(Kind::Int64), 3),
            ("city", Some(Kind::Bytes), 3),
            ("id", Some(Kind::Int64), 2),
            ("items", Some(Kind::Int64), 2),
            ("price", Some(Kind::Float), 3),
        ];
        assert_eq!(features, expect, "{}", path.display());
        let losses = &inferred.losses;
        let left_out: Vec<_> = losses.left_out.iter().collect();
        assert!(
            matches!(left_out[..], [within] if within.contains("\"within\"")),
            "{left_out:?}"
        );
        let changed: Vec<_> = losses
            .changed
            .iter()
            .map(|(what, times)| (what.split(':').next().unwrap(), *times))
            .collect();
        assert_eq!(
            changed,
            [
                ("column \"at\"", 3),
                ("column \"items\"", 1),
                ("column \"price\"", 2)
            ]
        );
        assert_eq!(losses.notes().len(), 2);
    }
}
