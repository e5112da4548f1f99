//! Conversions and comparisons of CSV and JSON files.

use std::{collections::BTreeMap, fs, path::PathBuf};

use tfarrow_codec::{OnError, Remedy};
use tfarrow_columnar::rows;
use tfarrow_convert::{
    ConvertOptions, DiffOptions, Error, Progress, Target, convert, diff, dry_run,
};
use tfarrow_dataset::{ReadOptions, resolve};

use super::Folder;

fn options(to: Target) -> ConvertOptions {
    ConvertOptions {
        to: Some(to),
        overwrite: true,
        ..ConvertOptions::default()
    }
}

/// The columns of a file, and its rows as text.
fn read(folder: &Folder, name: &str) -> (Vec<String>, Vec<String>) {
    let shard = resolve(&[folder.path(name)]).unwrap().remove(0);
    let (mut names, mut found) = (Vec::new(), Vec::new());
    for batch in rows(&shard).unwrap() {
        let batch = batch.unwrap();
        names = batch
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        found.push(format!("{:?}", batch.columns()));
    }
    (names, found)
}

/// The outputs of an earlier conversion are no sources, though text beside other files is no data.
#[test]
fn text_is_converted_again_beside_its_outputs() {
    let folder = Folder::new();
    folder.write("t/a.csv", b"x\n1\n");
    folder.write("t/b.csv", b"x\n2\n");
    let run = |dest: &str, options: ConvertOptions| {
        folder.convert(&folder.path("t"), dest, &options).unwrap()
    };
    run("t", options(Target::Parquet));
    assert_eq!(
        run(
            "t",
            ConvertOptions {
                resume: true,
                overwrite: false,
                ..options(Target::Parquet)
            }
        )
        .shards,
        2
    );
    assert_eq!(run("t", options(Target::Parquet)).files, 2);
    // The Parquet files are stale, and not the sources.
    folder.write("t/a.csv", b"x\n4\n5\n");
    assert_eq!(
        (
            run("t", options(Target::TfRecord)).records,
            run("t", options(Target::TfRecord)).records
        ),
        (3, 3)
    );
    ["a.tfrecord", "b.tfrecord", "a.parquet", "b.parquet"]
        .iter()
        .for_each(|name| fs::remove_file(folder.path("t").join(name)).unwrap());
    assert_eq!(
        (
            run("t/all.parquet", options(Target::Parquet)).records,
            run("t/all.parquet", options(Target::Parquet)).records
        ),
        (3, 3)
    );
    // Files that are no outputs of text are the sources.
    folder.write("o/s.tfrecord", &super::frames(0, 7));
    folder.write("o/labels.csv", b"x\n1\n");
    let found = folder
        .convert(&folder.path("o"), "o", &options(Target::Parquet))
        .unwrap();
    assert_eq!(
        (found.records, folder.path("o/s.parquet").exists()),
        (7, true)
    );
}

#[test]
fn text_files_are_parts_of_one_table() {
    let folder = Folder::new();
    let files = [
        folder.write("a.jsonl", b"{\"a\":1,\"b\":2}\n"),
        folder.write("b.jsonl", b"{\"b\":1.5,\"a\":2,\"c\":\"x\"}\n"),
        folder.write("c.csv", b"b,a\n7,8\n"),
    ];
    let convert = |dest: &str, options| {
        convert(&files, &folder.path(dest), &options, &Progress::default()).unwrap()
    };
    assert_eq!(convert("all.parquet", options(Target::Parquet)).records, 3);
    assert_eq!(read(&folder, "all.parquet").0, ["a", "b", "c"]);
    convert("own/", options(Target::Arrow));
    let (names, found) = read(&folder, "own/a.arrow");
    assert_eq!(names, ["a", "b"]);
    assert!(found[0].contains("Float64"), "{found:?}");
    assert_eq!(read(&folder, "own/c.arrow").0, ["b", "a"]);
    let sides = [
        folder.write("i.csv", b"a\n1\n2\n"),
        folder.write("f.csv", b"a\n1\n2.5\n"),
    ];
    let found = diff(
        &sides[..1],
        &sides[1..],
        &DiffOptions::default(),
        &Progress::default(),
    )
    .unwrap();
    assert_eq!(found.features.values().collect::<Vec<_>>(), [&1]);
}

/// Whether floats are rounded does not depend on the other sources.
#[test]
fn floats_of_text_are_rounded_beside_other_sources() {
    let folder = Folder::new();
    let (digits, held) = (
        folder.write("digits.csv", b"x\n0.1\n"),
        folder.write("held.csv", b"x\n0.5\n"),
    );
    for (source, dest) in [(&digits, "digits.parquet"), (&held, "held.parquet")] {
        folder
            .convert(source, dest, &ConvertOptions::default())
            .unwrap();
    }
    let run = |sources: [&PathBuf; 2]| {
        convert(
            &sources,
            &folder.path("out.tfrecord"),
            &options(Target::TfRecord),
            &Progress::default(),
        )
    };
    let found = run([&digits, &folder.path("held.parquet")]).unwrap();
    assert_eq!(
        found.rounded,
        [("column \"x\": float64 rounded to float32".to_owned(), 1)]
    );
    assert!(found.lossy_changes.is_empty());
    for sources in [
        [&held, &folder.path("digits.parquet")],
        [&folder.path("digits.parquet"), &held],
    ] {
        let error = run(sources).unwrap_err().to_string();
        assert!(error.contains("digits.parquet: "), "{error}");
    }
}

/// Excluded columns are not encoded, so that they may have any values.
#[test]
fn diff_leaves_out_excluded_columns() {
    let folder = Folder::new();
    let line = |y: i64| format!("{{\"id\":7,\"x\":{{\"y\":{y}}},\"l\":[1,null,{y}],\"z\":1}}\n");
    let sides = [
        folder.write("a.jsonl", line(1).as_bytes()),
        folder.write("b.jsonl", line(2).as_bytes()),
    ];
    let run = |exclude: &[&str], on: &[&str]| {
        let [exclude, on] =
            [exclude, on].map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        diff(
            &sides[..1],
            &sides[1..],
            &DiffOptions {
                exclude,
                on,
                ..DiffOptions::default()
            },
            &Progress::default(),
        )
    };
    for (exclude, named) in [("l", "\"x\""), ("x", "\"l\"")] {
        let error = run(&[exclude], &[]).unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
        assert!(!error.remedies().contains(&Remedy::AllowLossy), "{error}");
    }
    assert!(run(&["x", "l"], &[]).unwrap().is_equal());
    // A key is read, also if it is excluded.
    assert!(run(&["x", "l", "id"], &["id"]).unwrap().is_equal());
}

/// A dry run fails as the conversion does, and writes nothing.
#[test]
fn a_dry_run_checks_the_places_of_outputs() {
    let folder = Folder::new();
    let source = folder.write("s.tfrecord", &super::frames(0, 3));
    folder.write("file", b"precious");
    let check = |dest: &str, quarantine: Option<&str>, expected: &str| {
        let read = ReadOptions {
            on_error: OnError::Skip,
            ..ReadOptions::default()
        };
        let quarantine = quarantine.map(|name| folder.path(name));
        let options = ConvertOptions {
            read,
            quarantine,
            ..ConvertOptions::default()
        };
        let dry = dry_run(
            &[&source],
            &folder.path(dest),
            &options,
            &Progress::default(),
        )
        .unwrap_err();
        let real: Error = folder.convert(&source, dest, &options).unwrap_err();
        assert_eq!(dry.to_string(), real.to_string());
        assert!(dry.to_string().contains(expected), "{dry}");
    };
    check("file/x.parquet", None, "file: not a directory");
    check("file/x/y/", None, "file: not a directory");
    check("x.parquet", Some("file"), "already exists");
    check(
        "x.parquet",
        Some("none/q.tfrecord"),
        "its folder does not exist",
    );
    let names: BTreeMap<_, _> = fs::read_dir(folder.path(""))
        .unwrap()
        .map(|entry| (entry.unwrap().file_name(), ()))
        .collect();
    assert_eq!(names.len(), 2);
}
