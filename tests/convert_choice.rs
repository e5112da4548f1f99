//! `tfarrow convert` with `--shuffle`, `--fraction` and `--split`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use tempfile::{TempDir, tempdir};

use crate::support::{command, path, tfarrow};

const SOURCE: &str = "testdata/shards/";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a conversion of a data set to a new folder or file that must succeed.
#[track_caller]
fn converted(source: &str, name: &str, options: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let out = folder.path().join(name);
    let run = tfarrow(&[&["convert", source, text(&out)], options].concat());
    run.ends(0);
    (folder, out)
}

/// The records of a data set, each as a line of JSON.
fn records(source: &str) -> Vec<String> {
    let lines = tfarrow(&["head", "-n", "100000", "--full", source]).prints();
    lines.lines().map(str::to_owned).collect()
}

fn sorted(mut records: Vec<String>) -> Vec<String> {
    records.sort();
    records
}

/// The places of records in the source.
fn places(found: &[String]) -> Vec<usize> {
    let source = records(SOURCE);
    let place = |record: &String| source.iter().position(|other| other == record).unwrap();
    found.iter().map(place).collect()
}

/// The bytes of the files below a folder, by their paths.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            files.extend(
                tree(&path)
                    .into_iter()
                    .map(|(below, it)| (name.join(below), it)),
            );
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

fn names(folder: &Path) -> Vec<String> {
    let files = tree(folder).into_keys();
    files.map(|name| text(&name).replace('\\', "/")).collect()
}

#[test]
fn records_are_distinct() {
    let mut source = sorted(records(SOURCE));
    assert_eq!(source.len(), 200);
    source.dedup();
    assert_eq!(source.len(), 200);
}

#[test]
fn shuffled_records_are_those_of_the_source_in_another_order() {
    let options = ["--to", "tfrecord", "--shuffle", "1"];
    let (_folder, out) = converted(SOURCE, "out", &options);
    // As many shards as the source has.
    let expected: Vec<_> = (0..4)
        .map(|it| format!("train-0000{it}-of-00004.tfrecord"))
        .collect();
    assert_eq!(names(&out), expected);
    let found = records(text(&out));
    assert_ne!(found, records(SOURCE));
    assert_eq!(sorted(found), sorted(records(SOURCE)));
    // Neither threads nor shards nor formats change the order.
    for more in [
        &["--jobs", "1"][..],
        &["--jobs", "7", "--shards", "3"],
        &["--shard-size", "20kB"],
        &["--compression", "gzip"],
    ] {
        let (_folder, other) = converted(SOURCE, "out", &[&options[..], more].concat());
        assert_eq!(records(text(&other)), records(text(&out)), "{more:?}");
    }
    let (_folder, one) = converted(SOURCE, "one.tfrecord", &["--shuffle", "1"]);
    assert_eq!(records(text(&one)), records(text(&out)));
    let (_folder, rows) = converted(SOURCE, "rows.parquet", &["--shuffle", "1"]);
    let (_folder, back) = converted(text(&rows), "back.tfrecord", &[]);
    assert_eq!(records(text(&back)), records(text(&out)));
    // Another seed is another order.
    let (_folder, other) = converted(SOURCE, "out", &["--to", "tfrecord", "--shuffle", "2"]);
    assert_ne!(records(text(&other)), records(text(&out)));
}

#[test]
fn the_order_of_a_seed_never_changes() {
    let (_folder, one) = converted(SOURCE, "one.tfrecord", &["--shuffle", "1"]);
    // The order `global` of loaders, of 200 records, with seed 1 and epoch 0.
    let expected = [162, 57, 114, 154, 98, 188, 164, 171, 1, 49];
    assert_eq!(places(&records(text(&one)))[..10], expected);
}

#[test]
fn splits_have_all_records_once() {
    let options = [
        "--to",
        "tfrecord",
        "--split",
        "train=0.7,val=0.15,test=0.15",
    ];
    let (_folder, out) = converted(SOURCE, "out", &[&options[..], &["--seed", "1"]].concat());
    let expected = [
        "test/train-00000-of-00001.tfrecord",
        "train/train-00000-of-00003.tfrecord",
        "train/train-00001-of-00003.tfrecord",
        "train/train-00002-of-00003.tfrecord",
        "val/train-00000-of-00001.tfrecord",
    ];
    assert_eq!(names(&out), expected);
    let of = |split: &str| records(text(&out.join(split)));
    let all = [of("train"), of("val"), of("test")];
    assert_eq!([all[0].len(), all[1].len(), all[2].len()], [140, 30, 30]);
    assert_eq!(sorted(all.concat()), sorted(records(SOURCE)));
    // Each has the order of the files, and is chosen at random.
    for split in &all {
        let places = places(split);
        assert!(places.is_sorted());
        assert!(places[0] < 30 && places[places.len() - 1] > 170);
    }
    // A random order, other shards and another format have the same splits.
    let more = [
        "--seed",
        "1",
        "--shuffle",
        "5",
        "--shards",
        "2",
        "--jobs",
        "3",
    ];
    let (_folder, shuffled) = converted(SOURCE, "out", &[&options[..], &more].concat());
    assert_eq!(names(&shuffled).len(), 6);
    let found = records(text(&shuffled.join("val")));
    assert_ne!(found, of("val"));
    assert_eq!(sorted(found), sorted(of("val")));
    // Another seed has others, and the default is a seed.
    let (_folder, other) = converted(SOURCE, "out", &options);
    assert_ne!(records(text(&other.join("val"))), of("val"));
    let (_folder, zero) = converted(SOURCE, "out", &[&options[..], &["--seed", "0"]].concat());
    assert_eq!(tree(&zero), tree(&other));
}

#[test]
fn a_fraction_is_a_part_of_larger_ones() {
    let of = |options: &[&str]| {
        let (_folder, out) = converted(SOURCE, "out.tfrecord", options);
        places(&records(text(&out)))
    };
    let tenth = of(&["--fraction", "0.1"]);
    let half = of(&["--fraction", "0.5"]);
    assert_eq!((tenth.len(), half.len()), (20, 100));
    assert!(half.is_sorted() && tenth.iter().all(|place| half.contains(place)));
    assert_eq!(of(&["--fraction", "1"]), (0..200).collect::<Vec<_>>());
    let mut shuffled = of(&["--fraction", "0.1", "--shuffle", "3"]);
    assert_ne!(shuffled, tenth);
    shuffled.sort_unstable();
    assert_eq!(shuffled, tenth);
    // Splits of a part.
    let options = [
        "--fraction",
        "0.1",
        "--split",
        "a=0.5,b=0.5",
        "--to",
        "tfrecord",
    ];
    let (_folder, out) = converted(SOURCE, "out", &options);
    assert_eq!(names(&out).len(), 2);
    let both = [records(text(&out.join("a"))), records(text(&out.join("b")))];
    assert_eq!((both[0].len(), both[1].len()), (10, 10));
    assert_eq!(
        sorted(both.concat()),
        sorted(
            tenth
                .iter()
                .map(|it| records(SOURCE)[*it].clone())
                .collect()
        )
    );
}

#[test]
fn compressed_files_and_pipes_have_the_same_parts() {
    let options = ["--fraction", "0.25", "--seed", "9"];
    let (_folder, plain) = converted(SOURCE, "out.tfrecord", &options);
    let (_zipped_folder, zipped) = converted(
        SOURCE,
        "zipped",
        &["--to", "tfrecord", "--compression", "gzip"],
    );
    let (_folder, out) = converted(text(&zipped), "out.tfrecord", &options);
    assert_eq!(fs::read(&out).unwrap(), fs::read(&plain).unwrap());
    // In blocks, which these files are few of.
    let (_folder, shuffled) = converted(text(&zipped), "out.tfrecord", &["--shuffle", "1"]);
    assert_ne!(records(text(&shuffled)), records(SOURCE));
    assert_eq!(sorted(records(text(&shuffled))), sorted(records(SOURCE)));
    let (_folder, all) = converted(SOURCE, "all.tfrecord", &[]);
    let args = [
        "convert",
        "-",
        "-",
        "--to",
        "tfrecord",
        "--fraction",
        "0.25",
        "--seed",
        "9",
    ];
    let bytes = fs::read(&all).unwrap();
    let mut command = command(&args);
    command.stdin(fs::File::open(&all).unwrap());
    let output = command.output().unwrap();
    assert_eq!(output.stdout, fs::read(&plain).unwrap());
    assert!(output.stdout.len() < bytes.len() / 2);
}

/// A copy of the source, in which a byte of the data of a record of the second file is flipped.
fn damaged() -> (TempDir, PathBuf, u64) {
    let folder = tempdir().unwrap();
    let source = folder.path().join("in");
    fs::create_dir(&source).unwrap();
    for entry in fs::read_dir(path(SOURCE)).unwrap() {
        let file = entry.unwrap().path();
        fs::copy(&file, source.join(file.file_name().unwrap())).unwrap();
    }
    let file = source.join("train-00001-of-00004.tfrecord");
    let mut bytes = fs::read(&file).unwrap();
    let mut offset = 0;
    for _ in 0..7 {
        let length = u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap());
        offset += length as usize + 16;
    }
    bytes[offset + 20] ^= 1;
    fs::write(&file, bytes).unwrap();
    (folder, source, offset as u64)
}

#[test]
fn a_corrupt_record_is_named_and_skipped() {
    let (folder, source, offset) = damaged();
    for name in ["out.tfrecord", "out.parquet"] {
        let out = folder.path().join(name);
        let args = ["convert", text(&source), text(&out), "--shuffle", "1"];
        let message = tfarrow(&args).ends(1);
        let place = format!("train-00001-of-00004.tfrecord: record 7 (byte {offset})");
        assert!(message.contains(&place), "{message}");
        assert!(!out.exists());
        let quarantine = folder.path().join(format!("{name}.lost.tfrecord"));
        let skip = [
            "--on-error",
            "skip",
            "--quarantine",
            text(&quarantine),
            "--json",
        ];
        let run = tfarrow(&[&args[..], &skip].concat());
        assert_eq!(run.status, Some(3), "{}", run.stderr);
        assert!(run.stderr.contains(&place), "{}", run.stderr);
        let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(report["records"], 199);
        assert_eq!(tfarrow(&["count", text(&out)]).prints(), "199\n");
        assert!(records(text(&quarantine))[0].contains(&offset.to_string()));
    }
}

#[test]
fn a_failed_conversion_leaves_no_split() {
    let (folder, source, _) = damaged();
    // With one thread, the first split is complete before the second one fails.
    for seed in ["0", "1", "2", "3"] {
        let out = folder.path().join("out");
        let splits = ["--split", "a=0.1,b=0.9", "--seed", seed, "--jobs", "1"];
        let args = ["convert", text(&source), text(&out), "--to", "tfrecord"];
        tfarrow(&[&args[..], &splits].concat()).ends(1);
        assert!(!out.exists(), "{:?}", tree(&out));
    }
}

#[test]
fn a_corrupt_length_is_an_error() {
    let (folder, source, _) = damaged();
    let file = source.join("train-00002-of-00004.tfrecord");
    let mut bytes = fs::read(&file).unwrap();
    bytes[0] ^= 1;
    fs::write(&file, bytes).unwrap();
    let out = folder.path().join("out.tfrecord");
    let args = [
        "convert",
        text(&source),
        text(&out),
        "--shuffle",
        "1",
        "--on-error",
        "skip",
    ];
    let message = tfarrow(&args).ends(1);
    assert!(
        message.contains("train-00002-of-00004.tfrecord"),
        "{message}"
    );
    assert!(message.contains("tfarrow repair"), "{message}");
    assert!(!out.exists());
}

#[track_caller]
fn check_usage(args: &[&str], expected: &str) {
    let message = tfarrow(&[&["convert"], args].concat()).ends(2);
    assert!(message.contains(expected), "{message}");
}

#[test]
fn choices_that_cannot_be_made_are_errors() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("out/");
    let out = format!("{}/", text(&out));
    let one = text(&folder.path().join("one.parquet")).to_owned();
    let source = SOURCE;
    check_usage(
        &[source, &one, "--split", "a=0.5"],
        "one file cannot hold splits",
    );
    check_usage(
        &[source, &out, "--split", "a=0.5,A=0.5"],
        "there are two splits \"A\"",
    );
    check_usage(
        &[source, &out, "--split", "a=0.7,b=0.7"],
        "1.400 of the records",
    );
    check_usage(
        &[source, &out, "--split", "../a=0.7"],
        "\"../a\" is not the name of a folder",
    );
    check_usage(&[source, &out, "--split", "a"], "such as train=0.8");
    check_usage(
        &[source, &out, "--split", "a=2"],
        "2 is not a part of the records",
    );
    check_usage(
        &[source, &out, "--fraction", "0"],
        "0 is not a part of the records",
    );
    check_usage(
        &[source, &out, "--fraction", "NaN"],
        "NaN is not a part of the records",
    );
    check_usage(&[source, &out, "--seed", "1"], "neither is wanted");
    check_usage(
        &[source, &out, "--seed", "1", "--shuffle", "1"],
        "neither is wanted",
    );
    check_usage(
        &[source, &out, "--shuffle", "1", "--part", "0/2"],
        "cannot cut new shards",
    );
    check_usage(
        &[source, &out, "--sample", "0.01"],
        "`--fraction 0.01` converts a part",
    );
    let (_folder, rows) = converted(SOURCE, "rows.parquet", &[]);
    check_usage(
        &[text(&rows), &out, "--to", "tfrecord", "--shuffle", "1"],
        "is Parquet; only records of TFRecord",
    );
    let below = folder.path().join("in/label=3");
    fs::create_dir_all(&below).unwrap();
    fs::copy(path("testdata/scalar.tfrecord"), below.join("a.tfrecord")).unwrap();
    let folders = folder.path().join("in");
    check_usage(
        &[text(&folders), &out, "--shuffle", "1"],
        "convert each folder by itself",
    );
    check_usage(
        &[
            text(&folders),
            &out,
            "--shuffle",
            "1",
            "--partition-by",
            "label",
        ],
        "convert each folder by itself",
    );
    let below = [
        text(&below),
        text(&folder.path().join("by-itself")),
        "--shuffle",
        "1",
    ]
    .map(str::to_owned);
    let args: Vec<_> = below.iter().map(String::as_str).collect();
    tfarrow(&[&["convert"], &args[..]].concat()).ends(0);
    assert!(!Path::new(&out).exists());
}

#[test]
fn a_dry_run_names_the_outputs_of_splits() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("out");
    let args = [
        "convert",
        SOURCE,
        text(&out),
        "--split",
        "train=0.8,test=0.2",
        "--dry-run",
        "--json",
    ];
    let plan: serde_json::Value = serde_json::from_str(&tfarrow(&args).prints()).unwrap();
    assert_eq!(plan["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(plan["shards"], 4);
    let outputs = plan["jobs"][1]["outputs"].to_string();
    assert!(
        outputs.contains("out/test/train-00000-of-00001.parquet"),
        "{outputs}"
    );
    assert!(!out.exists());
}

#[test]
fn a_complete_conversion_is_compared() {
    let options = ["--split", "train=0.8,test=0.2", "--shuffle", "1"];
    let (_folder, out) = converted(SOURCE, "out", &options);
    let before = tree(&out);
    let again = [&["convert", SOURCE, text(&out), "--resume"], &options[..]].concat();
    tfarrow(&again).ends(0);
    assert_eq!(tree(&out), before);
    let other = [
        "convert",
        SOURCE,
        text(&out),
        "--resume",
        "--split",
        "train=0.8,test=0.2",
        "--shuffle",
        "2",
    ];
    let message = tfarrow(&other).ends(1);
    assert!(message.contains("train-00000-of"), "{message}");
    assert_eq!(tree(&out), before);
}
