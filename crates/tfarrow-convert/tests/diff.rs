//! Comparison by key, with ignored features and tolerances, through the library interface.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray};
use tempfile::TempDir;
use tfarrow_codec::{
    RecordType, VerifyCrc, WriterBuilder,
    diff::{FeatureValue, Tolerance},
};
use tfarrow_convert::{ConvertOptions, DataSetDiff, DiffOptions, Error, Progress, convert, diff};
use tfarrow_dataset::{ReadOptions, ShardReader, resolve};

/// A record: its key, if it has one, and its value.
type Row = (Option<i64>, f32);

fn batch(rows: &[Row]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|(id, _)| *id)));
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values(
        rows.iter().map(|(_, value)| *value),
    ));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
        rows.iter().map(|(id, _)| format!("text {id:?}")),
    ));
    RecordBatch::try_from_iter_with_nullable([
        ("id", ids, true),
        ("text", texts, true),
        ("value", values, true),
    ])
    .unwrap()
}

/// Writes two TFRecord files, `a` and `b`.
fn write(folder: &Path, sides: [&[Row]; 2]) -> [PathBuf; 2] {
    ["a.tfrecord", "b.tfrecord"]
        .map(|name| folder.join(name))
        .into_iter()
        .zip(sides)
        .map(|(path, rows)| {
            let (batch, mut frames) = (batch(rows), Vec::new());
            WriterBuilder::new()
                .build_encoder(batch.schema())
                .unwrap()
                .encode(&batch, &mut frames)
                .unwrap();
            fs::write(&path, frames).unwrap();
            path
        })
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

fn on_id() -> DiffOptions {
    DiffOptions {
        on: vec!["id".to_owned()],
        ..DiffOptions::default()
    }
}

fn compare([a, b]: &[PathBuf; 2], options: &DiffOptions) -> DataSetDiff {
    diff(&[a], &[b], options, &Progress::default()).unwrap()
}

/// The payloads of a TFRecord file, sorted; none if it does not exist.
fn payloads(path: &Path) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for shard in resolve(&[path]).unwrap_or_default() {
        let mut reader = ShardReader::open(&shard, &ReadOptions::default()).unwrap();
        while let Some(records) = reader.next().unwrap() {
            records.verify(VerifyCrc::Always).unwrap();
            all.extend(records.iter().map(<[u8]>::to_vec));
        }
    }
    all.sort();
    all
}

/// Rows with few keys, so that many have partners and some repeat, in no order.
fn rows(seed: u64, count: usize) -> Vec<Row> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % end
    };
    let id = |random: &mut dyn FnMut(u64) -> u64| {
        Some(random(count as u64) as i64).filter(|_| random(10) > 0)
    };
    (0..count)
        .map(|_| (id(&mut random), random(3) as f32))
        .collect()
}

/// The numbers of a comparison that pairs the n-th record of a key with the n-th one.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    equal: u64,
    different: u64,
    unpaired: [u64; 2],
    missing: [u64; 2],
    repeated: [u64; 2],
}

/// The numbers by a simple algorithm.
fn expected(sides: [&[Row]; 2]) -> Counts {
    let mut counts = Counts::default();
    let mut groups: BTreeMap<i64, [Vec<f32>; 2]> = BTreeMap::new();
    for (side, rows) in sides.into_iter().enumerate() {
        for (id, value) in rows {
            match id {
                Some(id) => groups.entry(*id).or_default()[side].push(*value),
                None => {
                    counts.missing[side] += 1;
                    counts.unpaired[side] += 1;
                }
            }
        }
    }
    for [left, right] in groups.values() {
        let pairs = left.len().min(right.len());
        let equal = left
            .iter()
            .zip(right)
            .filter(|(left, right)| left == right)
            .count();
        counts.equal += equal as u64;
        counts.different += (pairs - equal) as u64;
        for (side, records) in [left, right].into_iter().enumerate() {
            counts.unpaired[side] += (records.len() - pairs) as u64;
            counts.repeated[side] += if pairs > 0 {
                records.len() as u64 - 1
            } else {
                0
            };
        }
    }
    counts
}

fn counts(found: &DataSetDiff) -> Counts {
    let DataSetDiff {
        equal,
        different,
        unpaired,
        ..
    } = *found;
    let keys = found.keys.as_ref().unwrap();
    Counts {
        equal,
        different,
        unpaired,
        missing: keys.missing,
        repeated: keys.repeated,
    }
}

/// With a small memory limit, the data sets are compared in several passes, with the same result.
#[test]
fn records_are_paired_by_key_in_any_order_and_any_number_of_passes() {
    for seed in 0..30 {
        let folder = TempDir::new().unwrap();
        let (left, right) = (rows(seed, 150 + seed as usize), rows(seed + 1000, 170));
        let files = write(folder.path(), [&left, &right]);
        let mut first = None;
        for memory_limit in [usize::MAX, 20_000, 3_000] {
            let unmatched = ["x.tfrecord", "y.tfrecord"].map(|name| Some(folder.path().join(name)));
            let options = DiffOptions {
                memory_limit,
                unmatched,
                overwrite: true,
                max_differences: 7,
                ..on_id()
            };
            let found = compare(&files, &options);
            assert_eq!(
                counts(&found),
                expected([&left, &right]),
                "{seed} {memory_limit}"
            );
            assert_eq!(found.records, [left.len() as u64, right.len() as u64]);
            let passes = found.keys.as_ref().unwrap().passes;
            assert!(
                if memory_limit > 100_000 {
                    passes == 1
                } else {
                    passes > 1
                },
                "{passes} passes"
            );
            let unmatched =
                ["x.tfrecord", "y.tfrecord"].map(|name| payloads(&folder.path().join(name)));
            assert_eq!(
                unmatched.each_ref().map(|records| records.len() as u64),
                found.unpaired
            );
            let numbers: Vec<_> = found
                .first
                .iter()
                .map(|d| (d.number, d.positions.clone(), d.key.clone()))
                .collect();
            assert_eq!(numbers.len(), 7);
            let same = (numbers, unmatched);
            assert_eq!(
                first.get_or_insert_with(|| same.clone()),
                &same,
                "{seed} {memory_limit}"
            );
        }
    }
}

#[test]
fn equal_data_sets_in_another_order_and_format_are_equal() {
    let folder = TempDir::new().unwrap();
    let left: Vec<Row> = (0..1000).map(|id| (Some(id), id as f32)).collect();
    let right: Vec<_> = left.iter().rev().copied().collect();
    let [a, b] = write(folder.path(), [&left, &right]);
    let parquet = folder.path().join("b.parquet");
    convert(
        &[&b],
        &parquet,
        &ConvertOptions::default(),
        &Progress::default(),
    )
    .unwrap();
    let found = compare(&[a.clone(), parquet], &on_id());
    assert!(found.is_equal() && found.equal == 1000);
    assert!(
        !compare(&[a, b], &DiffOptions::default()).is_equal(),
        "in order, they differ"
    );
}

#[test]
fn keys_of_several_features_distinguish_kinds_and_values() {
    let folder = TempDir::new().unwrap();
    let left = [(Some(1), 1.0), (Some(1), 2.0), (Some(2), 1.0)];
    let right = [(Some(2), 1.0), (Some(1), 2.0), (Some(1), 1.0)];
    let files = write(folder.path(), [&left, &right]);
    let on = |names: &[&str]| DiffOptions {
        on: names.iter().map(ToString::to_string).collect(),
        ..on_id()
    };
    let found = compare(&files, &on(&["id", "value", "id"]));
    assert!(found.is_equal());
    assert_eq!(found.keys.unwrap().features, ["id", "value"]);
    let found = compare(&files, &on(&["id"]));
    assert_eq!((found.equal, found.different), (1, 2));
    assert_eq!(found.first[0].key, Some(vec![vec![FeatureValue::Int64(1)]]));
    let found = compare(&files, &on(&["text"]));
    assert_eq!(
        found.first[0].key,
        Some(vec![vec![FeatureValue::Bytes(b"text Some(1)".to_vec())]])
    );
}

#[test]
fn a_key_that_no_record_has_is_an_error() {
    let folder = TempDir::new().unwrap();
    let [a, b] = write(folder.path(), [&[(Some(1), 1.0)], &[(Some(1), 1.0)]]);
    let options = DiffOptions {
        on: vec!["idd".to_owned()],
        ..on_id()
    };
    let error = diff(&[&a], &[&b], &options, &Progress::default()).unwrap_err();
    let expect =
        r#"there is no feature "idd" (did you mean "id"?); there are "id", "text", "value""#;
    assert!(error.is_usage() && error.to_string() == expect, "{error}");
    let raw = DiffOptions {
        record_type: Some(RecordType::Raw),
        ..on_id()
    };
    let error = diff(&[&a], &[&b], &raw, &Progress::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "keys need features, and raw records have none"
    );
    let empty = write(folder.path(), [&[], &[]]);
    assert!(compare(&empty, &options).is_equal());
}

/// Records of one key cannot be divided among passes.
#[test]
fn records_of_one_key_above_the_memory_limit_are_an_error() {
    let folder = TempDir::new().unwrap();
    let rows = vec![(Some(7), 1.0); 100];
    let [a, b] = write(folder.path(), [&rows, &rows]);
    let options = DiffOptions {
        memory_limit: 5_000,
        ..on_id()
    };
    let error = diff(&[&a], &[&b], &options, &Progress::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("records with the key id = 7 exceed the memory limit of 5000 bytes"),
        "{error}"
    );
}

#[test]
fn floats_within_the_tolerance_are_equal() {
    let folder = TempDir::new().unwrap();
    let nan = f32::from_bits(0xffc0_0001);
    let left = [
        (Some(1), 1.0),
        (Some(2), 100.0),
        (Some(3), f32::NAN),
        (Some(4), 0.0),
    ];
    let right = [
        (Some(1), 1.05),
        (Some(2), 101.0),
        (Some(3), nan),
        (Some(4), -0.0),
    ];
    let files = write(folder.path(), [&left, &right]);
    let different = |tolerance: Option<(f64, f64)>, on: &[String]| {
        let tolerance = tolerance.map(|(absolute, relative)| Tolerance { absolute, relative });
        compare(
            &files,
            &DiffOptions {
                tolerance,
                on: on.to_vec(),
                ..DiffOptions::default()
            },
        )
        .different
    };
    for on in [vec![], on_id().on] {
        assert_eq!(different(None, &on), 4);
        assert_eq!(different(Some((0.0, 0.0)), &on), 2);
        assert_eq!(different(Some((0.1, 0.0)), &on), 1);
        assert_eq!(different(Some((0.0, 0.02)), &on), 1);
        assert_eq!(different(Some((0.1, 0.02)), &on), 0);
    }
}

#[test]
fn excluded_features_are_not_compared() {
    let folder = TempDir::new().unwrap();
    let files = write(
        folder.path(),
        [
            &[(Some(1), 1.0), (Some(2), 2.0)],
            &[(Some(1), 5.0), (Some(3), 2.0)],
        ],
    );
    let exclude = |names: &[&str]| {
        let exclude = names.iter().map(ToString::to_string).collect();
        let found = compare(
            &files,
            &DiffOptions {
                exclude,
                ..DiffOptions::default()
            },
        );
        (
            found.equal,
            found
                .features
                .into_keys()
                .map(|(_, name)| name)
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(
        exclude(&["value"]),
        (1, vec!["id".to_owned(), "text".to_owned()])
    );
    assert_eq!(exclude(&["val*", "{id,text}"]), (2, vec![]));
    assert_eq!(exclude(&["other"]).0, 0);
}

#[test]
fn files_of_unmatched_records_are_complete_or_absent() {
    let folder = TempDir::new().unwrap();
    let left = [(Some(1), 1.0), (Some(2), 2.0), (None, 3.0)];
    let files = write(folder.path(), [&left, &left[..1]]);
    let [x, y] = ["x.tfrecord.gz", "y.tfrecord"].map(|name| folder.path().join(name));
    let options = DiffOptions {
        unmatched: [Some(x.clone()), Some(y.clone())],
        ..DiffOptions::default()
    };
    for options in [
        &options,
        &DiffOptions {
            on: vec!["id".to_owned()],
            overwrite: true,
            ..options.clone()
        },
    ] {
        compare(&files, options);
        assert_eq!(payloads(&x).len(), 2);
        assert!(fs::read(&x).unwrap().starts_with(&[0x1f, 0x8b]) && !y.exists());
    }
    let run =
        |options: &DiffOptions| diff(&[&files[0]], &[&files[1]], options, &Progress::default());
    assert!(matches!(
        run(&options),
        Err(Error::Exists { others: 0, .. })
    ));
    // Nothing is left of a run that fails, or has no such records.
    let failing = DiffOptions {
        on: vec!["none".to_owned()],
        overwrite: true,
        ..options.clone()
    };
    let before = fs::read(&x).unwrap();
    assert!(run(&failing).is_err() && fs::read(&x).unwrap() == before);
    let equal = DiffOptions {
        overwrite: true,
        ..options.clone()
    };
    diff(&[&files[0]], &[&files[0]], &equal, &Progress::default()).unwrap();
    assert!(!x.exists() && !y.exists());
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 2, "no temporary files are left");
    for wrong in ["x.parquet", "-", ""] {
        let options = DiffOptions {
            unmatched: [Some(wrong.into()), None],
            ..DiffOptions::default()
        };
        assert!(
            run(&options).is_err_and(|error| error.is_usage()),
            "{wrong:?}"
        );
    }
    let twice = DiffOptions {
        unmatched: [Some(x.clone()), Some(x)],
        ..DiffOptions::default()
    };
    assert!(run(&twice).is_err_and(|error| error.is_usage()));
}
