//! Compares the merged results of all parts of a data set with those of one pass over it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::{collections::BTreeMap, fs, ops::ControlFlow};

use arrow_schema::SchemaRef;
use proptest::{prelude::*, test_runner::TestRunner};
use tempfile::TempDir;
use tfarrow_codec::{Layout, OnConflict, OnError};
use tfarrow_dataset::{Part, ReadOptions, Shard, internals::ProbablePayload, resolve};
use tfarrow_scan::{InferOptions, Inferred, Sample, infer};
use tfarrow_stats::{
    Comparison, Expected, MergedContent, MergedResult, PartError, PartExpected, PartMerger,
    PartWork, PartialResult, RecordProfiler, Statistics, proto::Schema, schema_to_text,
};
use tfarrow_testkit::{
    config, frame,
    generate::mixed,
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue, example_from_row},
};
use xxhash_rust::xxh3::xxh3_64;

/// A data set of a file for each list of records, and a baseline of the first half of the files.
struct Set {
    folder: TempDir,
    on_error: OnError,
}

fn set(files: impl IntoIterator<Item = Vec<u8>>, on_error: OnError) -> Set {
    let folder = tempfile::tempdir().unwrap();
    for (number, bytes) in files.into_iter().enumerate() {
        fs::write(folder.path().join(format!("{number:03}.tfrecord")), bytes).unwrap();
    }
    Set { folder, on_error }
}

fn merge(parts: Vec<PartialResult>) -> Result<MergedResult, PartError> {
    let mut merger = PartMerger::default();
    parts.into_iter().try_for_each(|part| merger.add(part))?;
    merger.finish()
}

fn progress(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

impl Set {
    fn shards(&self) -> Vec<Shard> {
        resolve(&[self.folder.path()]).unwrap()
    }

    fn options(&self, part: Option<Part>, threads: usize) -> InferOptions {
        let read = ReadOptions {
            on_error: self.on_error,
            chunk_bytes: 1_000,
            ..ReadOptions::default()
        };
        InferOptions {
            part,
            threads,
            read,
            ..InferOptions::default()
        }
    }

    /// The merged result of `count` parts, each of which goes through bytes, in reverse order.
    fn merged(&self, count: usize, work: PartWork<'_>) -> Result<MergedContent, PartError> {
        let read = |index: usize| {
            let part = Part::new(index, count);
            let read = |threads| {
                let options = self.options(part, threads);
                PartialResult::read(&self.shards(), work, BTreeMap::new(), &options, &progress)
            };
            let bytes = read(1 + index % 3)?.to_bytes();
            // A part that is read again, by other threads, has the same bytes.
            assert_eq!(read(3)?.to_bytes(), bytes);
            PartialResult::from_bytes(&bytes)
        };
        let parts = (0..count).rev().map(read).collect::<Result<_, _>>()?;
        merge(parts).map(|merged| {
            assert_eq!(merged.shards.len(), self.shards().len());
            merged.content
        })
    }

    /// Compares schema, statistics and comparison with those of one pass, for several numbers of
    /// parts.
    fn check(&self) {
        let (shards, options) = (self.shards(), self.options(None, 2));
        let inferred = infer(&shards, &options, &progress).unwrap();
        let statistics = Statistics::collect(&shards, &options, &progress).unwrap();
        let schema = statistics.infer_schema();
        let strict = narrowed(&schema);
        for count in [1, 2, 3, 7] {
            let MergedContent::Columns(found, probable) =
                self.merged(count, PartWork::Columns).unwrap()
            else {
                panic!()
            };
            assert_eq!(described(&found), described(&inferred), "{count}");
            if inferred.why_raw().is_some() {
                assert_eq!(
                    probable,
                    ProbablePayload::of(&shards, &options.read).unwrap()
                );
            }
            let MergedContent::Statistics(found) =
                self.merged(count, PartWork::Statistics).unwrap()
            else {
                panic!()
            };
            assert_eq!(json(&found), json(&statistics), "{count}");
            assert_eq!(found.infer_schema(), schema);
            self.check_comparison(count, &strict);
        }
    }

    fn check_comparison(&self, count: usize, schema: &Schema) {
        let (shards, options) = (self.shards(), self.options(None, 2));
        let baseline = &shards[..shards.len().div_ceil(2)];
        let expected = Expected {
            schema: Some(schema.clone()),
            baseline: Some(Statistics::collect(baseline, &options, &progress).unwrap()),
            environment: None,
            max_drift: Some(0.1),
        };
        let (whole, profilers) =
            Comparison::run_with(&shards, expected, &options, &progress, || {
                RecordProfiler::new(5)
            })
            .unwrap();
        let profile = RecordProfiler::merged(5, profilers).finish();
        let expected = PartExpected {
            schema: Some(schema),
            environment: None,
            baseline: Some(baseline),
            max_drift: Some(0.1),
            examples: Some(5),
        };
        let merged = self.merged(count, PartWork::Comparison(expected)).unwrap();
        let MergedContent::Comparison(found, Some(found_profile)) = merged else {
            panic!()
        };
        assert_eq!(found.anomalies(), whole.anomalies(), "{count}");
        assert_eq!(
            schema_to_text(&found.found.updated).unwrap(),
            schema_to_text(&whole.found.updated).unwrap()
        );
        assert_eq!(
            format!("{:?}", found.distances),
            format!("{:?}", whole.distances)
        );
        assert_eq!(json(&found.found.statistics), json(&whole.found.statistics));
        assert_eq!(
            json(found.baseline.as_ref().unwrap()),
            json(whole.baseline.as_ref().unwrap())
        );
        assert_eq!(format!("{found_profile:?}"), format!("{profile:?}"));
    }
}

/// A schema that data violates: every second feature is missing, and values are in narrow domains.
fn narrowed(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    let mut number = 0;
    schema.feature.retain(|_| {
        number += 1;
        number % 2 == 1
    });
    schema
        .string_domain
        .iter_mut()
        .for_each(|domain| domain.value.truncate(1));
    schema
}

fn json(statistics: &Statistics) -> String {
    serde_json::to_string(&statistics.summarize()).unwrap()
}

/// All that front ends print of an inferred schema.
fn described(inferred: &Inferred) -> (Option<SchemaRef>, String) {
    let schema = inferred.schema_with(Layout::Auto, None, OnConflict::Split);
    let features: Vec<_> = inferred.summary.features().collect();
    let (why, skipped) = (inferred.why_raw(), inferred.skipped.to_string());
    let kinds = inferred
        .check_kinds(None, &|_, _| true)
        .map_err(|error| error.to_string());
    (
        schema.ok(),
        format!(
            "{:?} {features:?} {why:?} {skipped} {kinds:?}",
            inferred.summary.records()
        ),
    )
}

#[test]
fn parts_of_any_records_equal_the_whole() {
    let mut runner = TestRunner::new(config(24));
    runner
        .run(&(mixed(), 1_usize..9), |(data, files)| {
            let mut parts = vec![Vec::new(); files];
            data.payloads()
                .into_iter()
                .enumerate()
                .for_each(|(at, record)| parts[at % files].push(record));
            set(parts.iter().map(frame::file), OnError::Fail).check();
            Ok(())
        })
        .unwrap();
}

/// Records with an integer, a string, and a list of floats each.
fn row(i: i64) -> ModelRow {
    let one = |name: &str, value| {
        (
            (ModelSide::Features, name.to_owned()),
            ModelCell::One(value),
        )
    };
    let word = format!("word {}", i * i % 30_011);
    let list = (0..i % 5)
        .map(|j| (i as f32).sin() * j as f32)
        .map(f32::to_bits)
        .collect();
    ModelRow::from([
        one("number", ModelValue::Int64(vec![i])),
        one("class", ModelValue::Int64(vec![i % 3])),
        one("word", ModelValue::Bytes(vec![word.into_bytes()])),
        one("list", ModelValue::Float(list)),
    ])
}

fn examples(numbers: impl IntoIterator<Item = i64>) -> Vec<u8> {
    frame::file(numbers.into_iter().map(|i| example_from_row(&row(i))))
}

#[test]
fn estimates_and_samples_of_parts_equal_those_of_the_whole() {
    // Files of different sizes, so that parts have different numbers of them.
    let files =
        (0..8_i64).map(|file| examples(file * file * 1_000..(file + 1) * (file + 1) * 1_000));
    set(files, OnError::Fail).check();
}

#[test]
fn slices_of_parts_equal_those_of_the_whole() {
    let set = set(
        (0..5_i64).map(|file| examples(file * 100..file * 100 + 70)),
        OnError::Fail,
    );
    let whole =
        Statistics::collect_sliced(&set.shards(), &set.options(None, 2), &progress, "class")
            .unwrap();
    for count in [1, 2, 3, 7] {
        let MergedContent::Slices(by, found) =
            set.merged(count, PartWork::Slices("class")).unwrap()
        else {
            panic!()
        };
        assert_eq!(
            (by.as_str(), found.without, json(&found.all)),
            ("class", whole.without, json(&whole.all))
        );
        let slices = |slices: &[tfarrow_stats::Slice]| -> Vec<_> {
            slices
                .iter()
                .map(|slice| (slice.value.clone(), json(&slice.statistics)))
                .collect()
        };
        assert_eq!(slices(&found.slices), slices(&whole.slices));
    }
    let absent = set.merged(2, PartWork::Slices("clas")).unwrap_err();
    assert!(
        absent
            .to_string()
            .starts_with("no record has a feature \"clas\""),
        "{absent}"
    );
}

#[test]
fn damage_and_strays_of_parts_equal_those_of_the_whole() {
    let (sound, mut corrupt) = (examples(0..20), examples(20..40));
    corrupt[60] ^= 1;
    let mut truncated = examples(40..60);
    truncated.truncate(700);
    let strays = frame::file([b"\xff".to_vec(), b"no message".to_vec()]);
    // A minority of the records of a file of Examples.
    let odd = frame::file([
        example_from_row(&row(7)),
        b"\xff".to_vec(),
        b"no message".to_vec(),
    ]);
    set(
        [sound.clone(), odd.clone(), corrupt, truncated],
        OnError::Skip,
    )
    .check();
    set([odd, sound.clone()], OnError::Fail).check();
    set([strays.clone(), strays], OnError::Fail).check();
    set([Vec::new(), sound], OnError::Fail).check();
}

fn parts(set: &Set, count: usize, settings: &[(&str, &str)]) -> Vec<PartialResult> {
    let settings: BTreeMap<_, _> = settings
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let read = |index| {
        let options = set.options(Part::new(index, count), 1);
        PartialResult::read(
            &set.shards(),
            PartWork::Columns,
            settings.clone(),
            &options,
            &progress,
        )
        .unwrap()
    };
    (0..count).map(read).collect()
}

#[test]
fn options_that_name_no_part_or_a_sample_are_refused() {
    let set = set([examples(0..3)], OnError::Fail);
    let sampled = InferOptions {
        sample: Sample::Records(1),
        ..set.options(Part::new(0, 1), 1)
    };
    for (options, message) in [
        (set.options(None, 1), "the options name no part"),
        (
            sampled,
            "all records of a part are read: the options must not name a sample",
        ),
    ] {
        let read = PartialResult::read(
            &set.shards(),
            PartWork::Statistics,
            BTreeMap::new(),
            &options,
            &progress,
        );
        assert_eq!(read.unwrap_err().to_string(), message);
    }
}

fn refused(parts: Vec<PartialResult>, message: &str) {
    assert_eq!(merge(parts).unwrap_err().to_string(), message);
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let one = set(
        [examples(0..3), examples(3..6), examples(6..9)],
        OnError::Fail,
    );
    let mut missing = parts(&one, 5, &[]);
    missing.drain(1..4);
    refused(missing, "3 of 5 parts are missing: 1/5, 2/5, 3/5");
    refused(
        parts(&one, 2, &[])
            .into_iter()
            .chain(parts(&one, 3, &[]))
            .collect(),
        "these are partial results of different numbers of parts: 2 and 3; read all parts with the same command line",
    );
    let other = set(
        [examples(0..3), examples(3..7), examples(6..9)],
        OnError::Fail,
    );
    let mixed = parts(&one, 2, &[])
        .into_iter()
        .take(1)
        .chain(parts(&other, 2, &[]).into_iter().skip(1));
    refused(
        mixed.collect(),
        "these are partial results of different data sets, or of one that has changed; read all parts with the same command line",
    );
    let mixed = parts(&one, 2, &[("a", "1")])
        .into_iter()
        .take(1)
        .chain(parts(&one, 2, &[("a", "2")]).into_iter().skip(1));
    refused(
        mixed.collect(),
        "these are partial results of different options: a is 1 and 2; read all parts with the same command line",
    );
    let sliced = |by: &str| {
        let options = one.options(Part::new(0, 2), 1);
        PartialResult::read(
            &one.shards(),
            PartWork::Slices(by),
            BTreeMap::new(),
            &options,
            &progress,
        )
        .unwrap()
    };
    let second = PartialResult::read(
        &one.shards(),
        PartWork::Slices("word"),
        BTreeMap::new(),
        &one.options(Part::new(1, 2), 1),
        &progress,
    );
    refused(
        vec![sliced("class"), second.unwrap()],
        "these are partial results of different features to slice by: class and word; read all parts with the same command line",
    );
    refused(Vec::new(), "there is no partial result");
    // A part that was read twice counts once.
    let twice = parts(&one, 2, &[])
        .into_iter()
        .chain(parts(&one, 2, &[]))
        .collect();
    assert!(merge(twice).is_ok());
}

#[test]
fn a_part_of_a_schema_has_no_records() {
    let set = set([examples(0..500)], OnError::Fail);
    let bytes = parts(&set, 1, &[]).remove(0).to_bytes();
    let (size, word) = (set.shards()[0].size, b"word 10000");
    assert!((bytes.len() as u64) < size / 4, "{} of {size}", bytes.len());
    assert!(!bytes.windows(word.len()).any(|window| window == word));
}

#[test]
fn notes_may_differ_between_parts() {
    let set = set([examples(0..3), examples(3..6)], OnError::Fail);
    let notes = [
        vec!["a".to_owned(), "b".to_owned()],
        vec!["b".to_owned(), "c".to_owned()],
    ];
    let parts = parts(&set, 2, &[]).into_iter().zip(notes).rev();
    let parts = parts.map(|(part, notes)| {
        PartialResult::from_bytes(&part.with_notes(notes).to_bytes()).unwrap()
    });
    assert_eq!(merge(parts.collect()).unwrap().notes, ["a", "b", "c"]);
}

#[test]
fn bytes_are_not_trusted() {
    let set = set([examples(0..50), examples(50..60)], OnError::Fail);
    let expected = PartExpected {
        examples: Some(3),
        ..PartExpected::default()
    };
    let options = set.options(Part::new(0, 1), 1);
    let work = PartWork::Comparison(expected);
    let bytes = PartialResult::read(&set.shards(), work, BTreeMap::new(), &options, &progress)
        .unwrap()
        .to_bytes();
    for length in [0, 5, 11, 19, 20, 100, bytes.len() - 1] {
        assert!(
            PartialResult::from_bytes(&bytes[..length]).is_err(),
            "{length}"
        );
    }
    let mut runner = TestRunner::new(config(2_000));
    runner
        .run(&(20..bytes.len(), any::<u8>()), |(at, byte)| {
            let mut changed = bytes.clone();
            changed[at] = byte;
            assert!(changed == bytes || PartialResult::from_bytes(&changed).is_err());
            // With the right hash, the content is read, and may be anything.
            let hash = xxh3_64(&changed[20..]).to_le_bytes();
            changed[12..20].copy_from_slice(&hash);
            let merged = PartialResult::from_bytes(&changed).and_then(|part| merge(vec![part]));
            if let Ok(MergedContent::Comparison(found, _)) = merged.map(|merged| merged.content) {
                found.found.statistics.summarize();
                found.found.statistics.infer_schema();
            }
            Ok(())
        })
        .unwrap();
}
