//! Indexes: what they say about a shard, and when they are not used.

use std::{
    fs::{self, File},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use arrow_array::{
    Array,
    cast::AsArray,
    types::{Float32Type, Int64Type},
};
use tfarrow_codec::{Layout, Limits, OnError, ReaderBuilder};
use tfarrow_dataset::{Compression, Error, ErrorKind, ReadOptions, Shard, resolve};
use tfarrow_index::{
    Dataset, DatasetOptions, FeatureZones, IndexFault, IndexForm, IndexPlace, OpenIndex,
};
use tfarrow_scan::{IndexOptions, Indexed, InferOptions, count, index, infer};
use tfarrow_testkit::{frame, proto};

use crate::{compressed, shard_of};

/// The features of a record: a number that grows, a float, a text, and a list.
#[derive(Clone, Debug)]
struct Row {
    id: i64,
    score: Option<f32>,
    text: Vec<u8>,
}

/// Rows whose values have the ends of integers, NaN, both zeros and long texts among them.
fn rows(count: i64) -> Vec<Row> {
    let mut rows = Vec::new();
    for id in 0..count {
        let score = match id % 7 {
            0 => None,
            1 => Some(f32::NAN),
            2 => Some(-0.0),
            3 => Some(0.0),
            _ => Some(id as f32 - 1000.0),
        };
        let id = match id {
            5 => i64::MIN,
            6 => i64::MAX,
            id => id,
        };
        rows.push(Row {
            id,
            score,
            text: format!("{:a<1$}é{id}", "", (id % 70).unsigned_abs() as usize).into_bytes(),
        });
    }
    rows
}

fn payload(row: &Row) -> Vec<u8> {
    let mut features = vec![
        ("id", proto::KindOneof::ints([row.id])),
        ("text", proto::KindOneof::bytes(row.text.clone())),
        ("list", proto::KindOneof::ints([1, row.id])),
        ("pad", proto::KindOneof::bytes(vec![0xff; 300])),
    ];
    if let Some(score) = row.score {
        features.push(("score", proto::KindOneof::floats([score])));
    }
    proto::example(features)
}

fn write(folder: &Path, name: &str, rows: &[Row], compression: Compression) -> Shard {
    let path = folder.join(name);
    fs::write(
        &path,
        compressed(&frame::file(rows.iter().map(payload)), compression),
    )
    .unwrap();
    resolve(&[path]).unwrap().remove(0)
}

fn run(shards: &[Shard], options: &IndexOptions) -> Vec<Indexed> {
    index(shards, options, &|_, _| ControlFlow::Continue(())).unwrap()
}

fn opened(shard: &Shard) -> OpenIndex {
    IndexPlace::Beside.open(shard).unwrap().unwrap()
}

fn path_of(shard: &Shard) -> PathBuf {
    IndexPlace::Beside
        .path_of(shard, IndexForm::Tfindex)
        .unwrap()
}

/// The fault of the index of a shard.
fn fault(shard: &Shard) -> IndexFault {
    match IndexPlace::Beside.open(shard) {
        Err(unusable) => unusable.fault,
        Ok(index) => panic!("{:?}", index.map(|index| index.records())),
    }
}

#[test]
fn every_record_is_in_a_block_whose_zones_hold_its_values() {
    let folder = tempfile::tempdir().unwrap();
    // A block of a compressed file has some 2 MiB.
    for (compression, count) in [(Compression::None, 20_000), (Compression::Gzip, 60_000)] {
        let rows = rows(count as i64);
        let shard = write(folder.path(), "a", &rows, compression);
        let mut files = Vec::new();
        for threads in [1, 3] {
            let options = IndexOptions {
                threads,
                ..IndexOptions::default()
            };
            let indexed = run(std::slice::from_ref(&shard), &options);
            assert!(matches!(
                indexed[..],
                [Indexed::Written { records, .. }] if records == count
            ));
            files.push(fs::read(path_of(&shard)).unwrap());
        }
        assert!(files[0] == files[1], "the index depends on the threads");
        let index = opened(&shard);
        assert_eq!(index.records(), count);
        let lengths = index.lengths().unwrap();
        let payloads: Vec<_> = rows.iter().map(|row| payload(row).len() as u32).collect();
        assert_eq!(lengths, payloads);
        let blocks = index.blocks().unwrap();
        assert!(blocks.len() > 3, "{} blocks", blocks.len());
        let zones = |name| index.zones(name).unwrap();
        assert!(zones("list").is_none() && zones("none").is_none());
        let [id, score, text] = ["id", "score", "text"].map(|name| zones(name).unwrap());
        for (number, block) in blocks.iter().enumerate() {
            let numbers = block.first as usize..block.first as usize + block.records;
            let before: u64 = payloads[..numbers.start]
                .iter()
                .map(|n| u64::from(*n) + 16)
                .sum();
            assert_eq!(block.offset, before);
            let rows = &rows[numbers];
            check_ids(&id, number, rows);
            check_scores(&score, number, rows);
            for row in rows {
                assert!(text.min.as_binary::<i32>().value(number) <= row.text.as_slice());
                assert!(text.max.as_binary::<i32>().value(number) >= row.text.as_slice());
            }
        }
        let options = InferOptions::default();
        let inferred = infer(&[shard], &options, &|_, _| ControlFlow::Continue(())).unwrap();
        let summary = index.summary(0, Limits::default()).unwrap();
        assert_eq!(summary.state(), inferred.summary.state());
        assert!(summary.schema(Layout::Auto, None).is_ok());
    }
}

fn check_ids(zones: &FeatureZones, number: usize, rows: &[Row]) {
    let ids = rows.iter().map(|row| row.id);
    let [min, max] =
        [&zones.min, &zones.max].map(|it| it.as_primitive::<Int64Type>().value(number));
    assert_eq!((Some(min), Some(max)), (ids.clone().min(), ids.max()));
    assert_eq!(zones.nulls.value(number), 0);
    assert!(zones.nans.is_none());
}

fn check_scores(zones: &FeatureZones, number: usize, rows: &[Row]) {
    let scores: Vec<f32> = rows.iter().filter_map(|row| row.score).collect();
    let finite = scores.iter().copied().filter(|score| !score.is_nan());
    let [min, max] =
        [&zones.min, &zones.max].map(|it| it.as_primitive::<Float32Type>().value(number));
    let least = finite.clone().min_by(f32::total_cmp).unwrap();
    let largest = finite.max_by(f32::total_cmp).unwrap();
    assert_eq!(min.total_cmp(&least), std::cmp::Ordering::Equal);
    assert_eq!(max.total_cmp(&largest), std::cmp::Ordering::Equal);
    assert_eq!(
        zones.nulls.value(number) as usize,
        rows.len() - scores.len()
    );
    let nans = scores.iter().filter(|score| score.is_nan()).count();
    assert_eq!(zones.nans.as_ref().unwrap().value(number) as usize, nans);
}

#[test]
fn a_shard_that_has_changed_has_no_index_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(500);
    let shard = write(folder.path(), "a", &all, Compression::None);
    run(std::slice::from_ref(&shard), &IndexOptions::default());
    assert_eq!(opened(&shard).records(), 500);
    let bytes = fs::read(&shard.path).unwrap();
    let one = frame::file([payload(&all[0])]);
    let mut other = all.clone();
    other[250].id += 1;
    let replaced = frame::file(other.iter().map(payload));
    assert_eq!(replaced.len(), bytes.len());
    for (changed, records) in [
        ([bytes.as_slice(), &one].concat(), 501),
        (one.clone(), 1),
        (replaced, 500),
    ] {
        fs::write(&shard.path, changed).unwrap();
        // A clock may be coarse.
        let file = File::options().write(true).open(&shard.path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
        let shard = shard_of(&shard.path);
        assert_eq!(fault(&shard), IndexFault::Changed);
        let counted = count(
            std::slice::from_ref(&shard),
            &ReadOptions::default(),
            1,
            Some(&IndexPlace::Beside),
            &|_, _| ControlFlow::Continue(()),
        )
        .unwrap();
        assert_eq!(counted.records, [records]);
        assert_eq!(counted.unusable.len(), 1);
        let update = IndexOptions {
            update: true,
            ..IndexOptions::default()
        };
        assert!(matches!(
            run(std::slice::from_ref(&shard), &update)[..],
            [Indexed::Written { .. }]
        ));
        assert!(matches!(
            run(std::slice::from_ref(&shard), &update)[..],
            [Indexed::Kept { .. }]
        ));
        assert_eq!(opened(&shard).records(), records);
    }
}

#[test]
fn a_damaged_shard_has_no_index_and_others_have_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let sound = write(folder.path(), "a", &rows(10), Compression::None);
    let damaged = write(folder.path(), "b", &rows(5_000), Compression::None);
    let mut bytes = fs::read(&damaged.path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged.path, bytes).unwrap();
    let shards = [sound.clone(), shard_of(&damaged.path)];
    let options = IndexOptions {
        threads: 2,
        ..IndexOptions::default()
    };
    let indexed = run(&shards, &options);
    match &indexed[..] {
        [Indexed::Written { records: 10, .. }, Indexed::Failed(error)] => {
            assert!(matches!(error.kind(), ErrorKind::Codec(_)), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(path_of(&sound).exists() && !path_of(&damaged).exists());
}

#[test]
fn a_damaged_index_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let shard = write(folder.path(), "a", &rows(3_000), Compression::None);
    run(std::slice::from_ref(&shard), &IndexOptions::default());
    let whole = opened(&shard);
    let (blocks, lengths) = (whole.blocks().unwrap(), whole.lengths().unwrap());
    let minima = whole.zones("id").unwrap().unwrap().min.to_data();
    let path = path_of(&shard);
    let bytes = fs::read(&path).unwrap();
    let mut unused = 0;
    for at in (0..bytes.len()).step_by(29) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, damaged).unwrap();
        let Ok(Some(index)) = IndexPlace::Beside.open(&shard) else {
            unused += 1;
            continue;
        };
        // Each of these reads and verifies all row groups.
        let read = [
            index.blocks().map(|it| it == blocks),
            index.lengths().map(|it| it == lengths),
            index
                .zones("id")
                .map(|it| it.unwrap().min.to_data() == minima),
        ];
        assert!(read.iter().all(Result::is_err), "byte {at}: {read:?}");
        unused += 1;
    }
    assert_eq!(unused, bytes.len().div_ceil(29));
    for cut in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..cut]).unwrap();
        assert!(IndexPlace::Beside.open(&shard).is_err(), "{cut} bytes");
    }
}

#[test]
fn a_file_of_another_program_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let shard = write(folder.path(), "a", &rows(10), Compression::None);
    let path = path_of(&shard);
    fs::write(&path, "0 345\n").unwrap();
    assert_eq!(fault(&shard), IndexFault::Foreign);
    let options = IndexOptions::default();
    let indexed = run(std::slice::from_ref(&shard), &options);
    assert!(
        matches!(&indexed[..], [Indexed::Failed(error)] if matches!(error.kind(), ErrorKind::Exists))
    );
    assert_eq!(fs::read(&path).unwrap(), b"0 345\n");
    let overwrite = IndexOptions {
        overwrite: true,
        ..options
    };
    run(std::slice::from_ref(&shard), &overwrite);
    assert_eq!(opened(&shard).records(), 10);
}

#[test]
fn text_indexes_have_a_line_for_each_record() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(5_000);
    let shard = write(folder.path(), "a", &rows, Compression::None);
    let options = IndexOptions {
        form: IndexForm::Dali,
        place: IndexPlace::Folder(folder.path().join("to").to_string_lossy().into_owned()),
        ..IndexOptions::default()
    };
    run(std::slice::from_ref(&shard), &options);
    let mut expected = String::new();
    let mut offset = 0;
    for row in &rows {
        let bytes = payload(row).len() + 16;
        expected.push_str(&format!("{offset} {bytes}\n"));
        offset += bytes;
    }
    let text = fs::read_to_string(folder.path().join("to/a.idx")).unwrap();
    assert!(text == expected, "{}", text.len());
}

#[test]
fn many_features_have_fewer_and_larger_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let mut payloads = Vec::new();
    for record in 0..700i64 {
        let features = (0..600).map(|n| (format!("f{n}"), proto::KindOneof::ints([record * n])));
        payloads.push(proto::example(features.chain([(
            "pad".to_owned(),
            proto::KindOneof::bytes(vec![0; 60_000]),
        )])));
    }
    let path = folder.path().join("a");
    fs::write(&path, frame::file(&payloads)).unwrap();
    let shard = shard_of(&path);
    let mut files = Vec::new();
    for threads in [1, 4] {
        let options = IndexOptions {
            threads,
            ..IndexOptions::default()
        };
        run(std::slice::from_ref(&shard), &options);
        files.push(fs::read(path_of(&shard)).unwrap());
    }
    assert!(files[0] == files[1]);
    let index = opened(&shard);
    let blocks = index.blocks().unwrap();
    assert!((2..30).contains(&blocks.len()), "{} blocks", blocks.len());
    assert_eq!(index.lengths().unwrap().len(), 700);
    let zones = index.zones("f7").unwrap().unwrap();
    for (number, block) in blocks.iter().enumerate() {
        let [min, max] =
            [&zones.min, &zones.max].map(|it| it.as_primitive::<Int64Type>().value(number));
        assert_eq!(min, block.first as i64 * 7);
        assert_eq!(max, (block.first as usize + block.records - 1) as i64 * 7);
    }
}

/// The data set of these files.
fn dataset(shards: &[Shard], indexes: Option<IndexPlace>) -> Dataset {
    let options = DatasetOptions {
        indexes,
        ..DatasetOptions::default()
    };
    opened_dataset(shards, &options, OnError::Fail).unwrap()
}

/// Opens the data set of these files.
fn opened_dataset(
    shards: &[Shard],
    options: &DatasetOptions,
    on_error: OnError,
) -> Result<Dataset, Error> {
    let options = DatasetOptions {
        read: ReadOptions {
            on_error,
            ..options.read
        },
        ..options.clone()
    };
    let builder = builder_of(shards, on_error)?;
    let progress = |_, _| ControlFlow::Continue(());
    Dataset::open(shards.to_vec(), builder, &options, &progress)
}

/// A builder of decoders of all columns of these files.
pub(crate) fn builder_of(shards: &[Shard], on_error: OnError) -> Result<ReaderBuilder, Error> {
    let mut options = InferOptions::default();
    options.read.on_error = on_error;
    let inferred = infer(shards, &options, &|_, _| ControlFlow::Continue(()))?;
    let schema = inferred.schema(Layout::Auto, None)?;
    Ok(ReaderBuilder::new(schema).with_on_error(on_error))
}

#[test]
fn records_are_taken_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(5_000);
    let (first, second) = all.split_at(3_000);
    let shards = [
        write(folder.path(), "a", first, Compression::None),
        write(folder.path(), "b", second, Compression::None),
    ];
    let without = dataset(&shards, None);
    run(&shards[..1], &IndexOptions::default());
    let with = dataset(&shards, Some(IndexPlace::Beside));
    assert_eq!((with.len(), with.schema()), (5_000, without.schema()));
    let mut numbers = vec![4_999, 0, 2_999, 3_000, 0];
    let mut state = 7u64;
    for _ in 0..500 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        numbers.push((state >> 33) % 5_000);
    }
    numbers.extend(100..200);
    for dataset in [&with, &without] {
        let fetched = dataset.fetch(&numbers, 2).unwrap();
        let batch = dataset.take(&numbers).unwrap();
        let ids = batch
            .column_by_name("id")
            .unwrap()
            .as_primitive::<Int64Type>();
        for (row, number) in numbers.iter().enumerate() {
            let expected = &all[*number as usize];
            assert_eq!(fetched.records().data(row).unwrap(), payload(expected));
            assert_eq!(ids.value(row), expected.id);
        }
        assert_eq!(batch.num_rows(), numbers.len());
        assert_eq!(dataset.take(&[]).unwrap().num_rows(), 0);
        assert!(dataset.take(&[5_000]).is_err() && dataset.take(&[u64::MAX]).is_err());
    }
}

#[test]
fn a_corrupt_record_that_is_taken_has_its_place_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let shard = write(folder.path(), "a", &rows(100), Compression::None);
    let dataset = dataset(std::slice::from_ref(&shard), None);
    let mut bytes = fs::read(&shard.path).unwrap();
    let before: usize = rows(70).iter().map(|row| payload(row).len() + 16).sum();
    bytes[before + 20] ^= 1;
    fs::write(&shard.path, &bytes).unwrap();
    let error = dataset.take(&[3, 70, 5]).unwrap_err().to_string();
    let place = format!("record 70 (byte {before})");
    assert!(error.contains(&place) && error.contains("/a"), "{error}");
    assert!(dataset.take(&[3, 71, 5]).is_ok());
    // A file of the same size whose records have other places.
    let mut others = rows(100);
    others[10].text.push(b'x');
    others[20].text.pop();
    let moved = frame::file(others.iter().map(payload));
    assert_eq!(moved.len(), bytes.len());
    fs::write(&shard.path, moved).unwrap();
    assert!(dataset.take(&[15]).is_err());
    fs::write(&shard.path, &bytes[..before]).unwrap();
    assert!(dataset.take(&[99]).is_err());
}

#[test]
fn records_of_a_snappy_file_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let shard = write(folder.path(), "a", &rows(10), Compression::Snappy);
    let opened = opened_dataset(&[shard], &DatasetOptions::default(), OnError::Fail);
    let error = opened.unwrap_err().to_string();
    assert!(error.contains("only from its start"), "{error}");
}

#[test]
fn records_are_found_by_a_text_index_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(300);
    let shard = write(folder.path(), "a", &all, Compression::None);
    let shards = std::slice::from_ref(&shard);
    let options = IndexOptions {
        form: IndexForm::Dali,
        ..IndexOptions::default()
    };
    run(shards, &options);
    let check = |dataset: &Dataset| {
        let batch = dataset.take(&[299, 0, 150]).unwrap();
        let ids = batch.column_by_name("id").unwrap();
        let ids = ids.as_primitive::<Int64Type>().values().to_vec();
        assert_eq!(ids, [all[299].id, all[0].id, all[150].id]);
    };
    let with = dataset(shards, Some(IndexPlace::Beside));
    assert!(with.unusable().is_empty());
    check(&with);
    let path = folder.path().join("a.idx");
    let text = fs::read_to_string(&path).unwrap();
    // The second frame is longer by a byte, and the third one begins after it.
    let lines: Vec<_> = text.lines().collect();
    let number = |line: usize, word: usize| -> u64 {
        lines[line].split(' ').nth(word).unwrap().parse().unwrap()
    };
    let second = format!("{} {}", number(1, 0), number(1, 1) + 1);
    let third = format!("{} {}", number(2, 0) + 1, number(2, 1) - 1);
    let moved = [&[lines[0], &second, &third], &lines[3..]].concat();
    fs::write(&path, moved.join("\n")).unwrap();
    let moved = dataset(shards, Some(IndexPlace::Beside));
    assert!(moved.take(&[1]).is_err() && moved.take(&[2]).is_err());
    check(&moved);
    // An index that does not fit is a warning.
    fs::write(&path, "0 20\n").unwrap();
    let without = dataset(shards, Some(IndexPlace::Beside));
    let [unusable] = without.unusable() else {
        panic!("{:?}", without.unusable());
    };
    assert_eq!(unusable.path, path);
    check(&without);
}

#[test]
fn corrupt_records_are_skipped_if_the_caller_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(100);
    let shard = write(folder.path(), "a", &all, Compression::None);
    let shards = std::slice::from_ref(&shard);
    let skipping = |indexes| {
        let options = DatasetOptions {
            indexes,
            ..DatasetOptions::default()
        };
        opened_dataset(shards, &options, OnError::Skip).unwrap()
    };
    let offset = |record: usize| -> usize {
        all[..record]
            .iter()
            .map(|row| payload(row).len() + 16)
            .sum()
    };
    run(shards, &IndexOptions::default());
    let before = skipping(Some(IndexPlace::Beside));
    let mut bytes = fs::read(&shard.path).unwrap();
    bytes[offset(20)] ^= 1; // a length
    bytes[offset(30) + 14] ^= 1; // a payload
    fs::write(&shard.path, &bytes).unwrap();
    let numbers = [40, 20, 10, 30];
    let ids = |dataset: &Dataset, numbers: &[u64]| {
        let mut fetched = dataset.fetch(numbers, 1).unwrap();
        let (batch, skipped) = dataset.decode(&fetched, 0..numbers.len()).unwrap();
        let ids = batch.column_by_name("id").unwrap();
        let ids = ids.as_primitive::<Int64Type>().values().to_vec();
        (ids, fetched.take_skipped().len() + skipped.len())
    };
    assert_eq!(ids(&before, &numbers), (vec![all[40].id, all[10].id], 2));
    assert!(before.take(&numbers).is_err());
    // Without an index, the record with a corrupt length is lost bytes between two records.
    let after = skipping(None);
    assert_eq!(after.len(), 99);
    assert_eq!(
        ids(&after, &[19, 20, 29]),
        (vec![all[19].id, all[21].id], 1)
    );
    assert!(opened_dataset(shards, &DatasetOptions::default(), OnError::Fail).is_err());
}

#[test]
fn more_shards_than_files_may_be_open() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(300);
    let mut shards = Vec::new();
    for (number, row) in all.iter().enumerate() {
        let name = format!("{number:03}");
        shards.push(write(
            folder.path(),
            &name,
            std::slice::from_ref(row),
            Compression::None,
        ));
    }
    let dataset = dataset(&shards, None);
    for numbers in [(0..300).rev().collect::<Vec<_>>(), (0..300).collect()] {
        let batch = dataset.take(&numbers).unwrap();
        let ids = batch
            .column_by_name("id")
            .unwrap()
            .as_primitive::<Int64Type>();
        for (row, number) in numbers.iter().enumerate() {
            assert_eq!(ids.value(row), all[*number as usize].id);
        }
    }
}
