//! Inference over shards: results for any number of threads, and the positions of errors.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicU64, Ordering},
};

use tfarrow_codec::{Layout, RecordType, Remedy};
use tfarrow_dataset::{Compression, ErrorKind, Result, Shard, resolve};
use tfarrow_scan::{InferOptions, Inferred, Sample};

use crate::{compressed, frames, shard_of, testdata, write_file};

fn field(number: u8, data: &[u8]) -> Vec<u8> {
    assert!(data.len() < 128);
    [&[number << 3 | 2, data.len() as u8], data].concat()
}

/// Returns an Example with one feature, whose value is this `tf.train.Feature`.
fn example(name: &str, feature: &[u8]) -> Vec<u8> {
    let entry = [field(1, name.as_bytes()), field(2, feature)].concat();
    field(1, &field(1, &entry))
}

fn int64(value: u8) -> Vec<u8> {
    field(3, &field(1, &[value]))
}

fn float() -> Vec<u8> {
    field(2, &field(1, &1f32.to_le_bytes()))
}

fn quiet(_: u64, _: u64) {}

fn infer(
    shards: &[Shard],
    sample: Sample,
    threads: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Inferred> {
    let options = InferOptions {
        sample,
        threads,
        ..InferOptions::default()
    };
    tfarrow_scan::infer(shards, &options, &|bytes, records| {
        progress(bytes, records);
        ControlFlow::Continue(())
    })
}

fn shards(folder: &tempfile::TempDir, shards: &[Vec<Vec<u8>>]) -> Vec<Shard> {
    for (i, records) in shards.iter().enumerate() {
        let compression = Compression::ALL[i % 3];
        write_file(
            folder.path(),
            &format!("s{i}"),
            &compressed(&frames(records), compression),
        );
    }
    resolve(&[folder.path()]).unwrap()
}

fn described(inferred: &Inferred) -> String {
    let features: Vec<_> = inferred.summary.features().collect();
    format!(
        "{} {features:?} {:?}",
        inferred.summary.records(),
        inferred.sampled
    )
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let one = |shard: u8| {
        (0..20_000u32)
            .map(|i| example(&format!("f{}", i % 7), &int64((i as u8 ^ shard) & 0x7f)))
            .collect()
    };
    let set: Vec<Vec<_>> = (0..5).map(one).collect();
    let shards = shards(&folder, &set);
    let expect = described(&infer(&shards, Sample::All, 1, &quiet).unwrap());
    for threads in [2, 3, 8] {
        for _ in 0..5 {
            assert_eq!(
                described(&infer(&shards, Sample::All, threads, &quiet).unwrap()),
                expect,
                "{threads} threads"
            );
        }
        // All threads read the one large shard.
        let first = infer(&shards[..1], Sample::All, threads, &quiet).unwrap();
        assert_eq!(first.summary.records(), 20_000);
        assert_eq!(first.sampled, None);
    }
}

#[test]
fn progress_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<_> = (0..50_000).map(|_| example("x", &int64(1))).collect();
    let shards = shards(&folder, &[records.clone(), records]);
    let (bytes, records) = (AtomicU64::new(0), AtomicU64::new(0));
    let progress = |b, r| {
        bytes.fetch_add(b, Ordering::Relaxed);
        records.fetch_add(r, Ordering::Relaxed);
    };
    infer(&shards, Sample::All, 3, &progress).unwrap();
    assert_eq!(records.into_inner(), 100_000);
    let stored: u64 = shards.iter().map(|shard| shard.size).sum();
    let told = bytes.into_inner();
    assert!(told <= stored && told + 100 > stored, "{told} of {stored}");
}

#[test]
fn mixed_kinds_are_reported_with_both_positions() {
    let folder = tempfile::tempdir().unwrap();
    let ints = vec![example("x", &int64(1)); 20];
    let mut floats = vec![example("y", &int64(1)); 17];
    floats.extend(vec![example("x", &float()); 3]);
    let shards = shards(&folder, &[ints, floats]);
    for threads in [1, 2, 4] {
        let inferred = infer(&shards, Sample::All, threads, &quiet).unwrap();
        let error = inferred.schema(Layout::Auto, None).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::MixedKinds { feature, .. } if feature == "x"),
            "{error}"
        );
        let place = folder.path().display().to_string();
        let offset = 17 * frames(&[example("y", &int64(1))]).len();
        assert_eq!(
            error.to_string().replace(&place, "F"),
            format!(
                "feature \"x\" has two kinds: int64_list in F/s0: record 0 (byte 0), float_list in F/s1: record 17 (byte \
                 {offset}); one column cannot hold them"
            )
        );
        assert_eq!(
            error.remedies(),
            [Remedy::SplitKinds, Remedy::ReadAs(RecordType::Raw)]
        );
        assert!(inferred.schema(Layout::Auto, Some(RecordType::Raw)).is_ok());
    }
}

#[test]
fn mixed_kinds_in_a_data_set_of_tensorflow() {
    let shards = resolve(&[testdata("mixed_kinds")]).unwrap();
    let error = infer(&shards, Sample::All, 2, &quiet)
        .unwrap()
        .schema(Layout::List, None)
        .unwrap_err()
        .to_string();
    for part in [
        "has two kinds",
        "part-00000-of-00002.tfrecord: record ",
        "part-00001-of-00002.tfrecord: record ",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_first_error_is_reported_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<_> = (0..30_000).map(|_| example("x", &int64(1))).collect();
    let bytes = frames(&records);
    let frame = bytes.len() / records.len();
    let mut first = bytes.clone();
    first[29_000 * frame + 14] ^= 1; // a data CRC
    first[29_500 * frame] ^= 1; // a length CRC
    let mut second = bytes.clone();
    second[3 * frame] ^= 1;
    write_file(folder.path(), "a", &bytes);
    let b = write_file(folder.path(), "b", &first);
    write_file(folder.path(), "c", &second);
    write_file(folder.path(), "d.tfrecord", b"text that is no TFRecord");
    let shards = resolve(&[folder.path()]).unwrap();
    for threads in [1, 2, 4] {
        for _ in 0..10 {
            let error = infer(&shards, Sample::All, threads, &quiet)
                .unwrap_err()
                .to_string();
            let expect = format!(
                "{}: record 29000 (byte {}): the data's CRC is ",
                b.display(),
                29_000 * frame
            );
            assert!(error.starts_with(&expect), "{error}");
        }
    }
}

#[test]
fn a_sample_is_bounded_and_spread() {
    let folder = tempfile::tempdir().unwrap();
    let set: Vec<Vec<_>> = (0..40)
        .map(|i| vec![example(&format!("f{i}"), &int64(1)); 30])
        .collect();
    let shards = shards(&folder, &set);
    let inferred = infer(&shards, Sample::Records(10), 3, &quiet).unwrap();
    let sampled = inferred.sampled.unwrap();
    assert_eq!((sampled.records, sampled.shards, sampled.of), (160, 16, 40));
    let seen: Vec<_> = inferred
        .summary
        .features()
        .map(|f| f.name.clone())
        .collect();
    assert_eq!(seen.len(), 16);
    assert!(seen.contains(&"f0".to_owned()) && seen.contains(&"f39".to_owned()));

    let few = infer(&shards[..16], Sample::Records(30), 2, &quiet).unwrap();
    assert_eq!(
        (few.summary.records(), few.sampled),
        (480, None),
        "all there is, and no sample"
    );
    let few = infer(&shards[..16], Sample::Records(29), 2, &quiet).unwrap();
    assert_eq!(few.sampled.map(|sampled| sampled.records), Some(16 * 29));
}

#[test]
fn a_sample_of_large_records_ends_at_the_limit_of_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let records = vec![vec![0u8; 1 << 20]; 12];
    let path = write_file(folder.path(), "large", &frames(&records));
    let inferred = infer(&[shard_of(&path)], Sample::Records(1000), 2, &quiet).unwrap();
    let seen = inferred.sampled.unwrap().records;
    assert!((3..=5).contains(&seen), "{seen} records of 1 MiB");
}

#[test]
fn a_sample_continues_with_other_shards_if_its_own_are_empty() {
    let folder = tempfile::tempdir().unwrap();
    let mut set = vec![Vec::new(); 40];
    set[20] = vec![example("x", &int64(1)); 3];
    for (i, records) in set.iter().enumerate() {
        // A compressed shard without records is not an empty file.
        write_file(
            folder.path(),
            &format!("s{i}"),
            &compressed(&frames(records), Compression::Gzip),
        );
    }
    let shards = resolve(&[folder.path()]).unwrap();
    assert_eq!(shards.len(), 40);
    assert_eq!(
        infer(&shards, Sample::Records(10), 2, &quiet)
            .unwrap()
            .summary
            .records(),
        3
    );
}

#[test]
fn a_data_set_without_records_is_raw() {
    let shards = resolve(&[testdata("empty.tfrecord")]).unwrap();
    let inferred = infer(&shards, Sample::All, 2, &quiet).unwrap();
    assert_eq!(inferred.summary.records(), 0);
    assert!(inferred.schema(Layout::Auto, None).is_ok());
}
