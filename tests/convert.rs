//! `tfarrow convert`.

use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::support::{command, path, tfarrow, tfarrow_reads};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The sorted paths of the files below a folder, relative to it.
fn listing(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            names.extend(
                listing(&entry.path())
                    .into_iter()
                    .map(|below| format!("{name}/{below}")),
            );
        } else {
            names.push(name);
        }
    }
    names.sort();
    names
}

/// Runs a conversion that must succeed, and returns its standard error.
#[track_caller]
fn convert(args: &[&str]) -> String {
    let run = tfarrow(&[&["convert"], args].concat());
    assert_eq!(run.stdout, "");
    run.ends(0)
}

fn records(source: &str) -> String {
    tfarrow(&["head", "-n", "100000", "--full", source]).prints()
}

#[test]
fn every_record_survives_a_round_trip() {
    let sets = [
        "scalar", "ragged", "states", "sequence", "numbers", "text", "names", "raw", "empty",
    ];
    for set in sets {
        for layout in ["auto", "list"] {
            for format in ["parquet", "arrow"] {
                let folder = tempdir().unwrap();
                let (there, back) = (
                    folder.path().join(format!("a.{format}")),
                    folder.path().join("b.tfrecord"),
                );
                let original = format!("testdata/{set}.tfrecord");
                convert(&[&original, text(&there), "--layout", layout]);
                convert(&[text(&there), text(&back)]);
                assert_eq!(
                    records(text(&back)),
                    records(&original),
                    "{set} {layout} {format}"
                );
            }
        }
    }
}

#[test]
fn shards_keep_their_names() {
    let folder = tempdir().unwrap();
    let (there, back) = (folder.path().join("parquet"), folder.path().join("back"));
    let stderr = convert(&["testdata/tfds/", text(&there)]);
    assert!(
        stderr.starts_with("tfarrow: 10 records: read ") && stderr.contains(" in 2 files, wrote "),
        "{stderr}"
    );
    assert_eq!(
        listing(&there),
        [
            "mnist-train-00000-of-00002.parquet",
            "mnist-train-00001-of-00002.parquet"
        ]
    );
    convert(&[text(&there), text(&back), "--to", "tfrecord"]);
    assert_eq!(
        listing(&back),
        [
            "mnist-train.tfrecord-00000-of-00002",
            "mnist-train.tfrecord-00001-of-00002"
        ]
    );
    assert_eq!(records(text(&back)), records("testdata/tfds/"));
}

#[test]
fn paths_below_a_folder_are_kept() {
    let folder = tempdir().unwrap();
    let there = folder.path().join("out");
    convert(&["testdata/{tfds,shards}/*-00000-of-*", text(&there)]);
    assert_eq!(
        listing(&there),
        [
            "shards/train-00000-of-00004.parquet",
            "tfds/mnist-train-00000-of-00002.parquet"
        ]
    );
}

#[test]
fn an_existing_output_is_refused() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("a.parquet");
    std::fs::write(&out, "precious").unwrap();
    let stderr = tfarrow(&["convert", "testdata/scalar.tfrecord", text(&out)]).ends(2);
    assert!(
        stderr.contains(text(&out)) && stderr.contains("--overwrite"),
        "{stderr}"
    );
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "precious");
    convert(&["testdata/scalar.tfrecord", text(&out), "--overwrite"]);
    assert_eq!(tfarrow(&["count", text(&out)]).prints(), "20\n");
}

/// Runs a conversion that must fail and write nothing, and returns its folder.
#[track_caller]
fn check_failure(args: &[&str], expected: &[&str]) -> TempDir {
    let folder = tempdir().unwrap();
    let out = folder.path().join("out");
    let error = tfarrow(&[&["convert"], args, &[text(&out)]].concat()).fails();
    assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    assert_eq!(listing(folder.path()), [""; 0], "{error}");
    folder
}

#[test]
fn a_failed_conversion_leaves_no_files() {
    check_failure(
        &["testdata/corrupt/data.tfrecord"],
        &["testdata/corrupt/data.tfrecord: record 1 (byte "],
    );
    check_failure(
        &["testdata/corrupt/truncated.tfrecord.gz"],
        &["testdata/corrupt/truncated.tfrecord.gz: "],
    );
    let places = [
        "\"x\"",
        "part-00000-of-00002",
        "part-00001-of-00002",
        "int64_list",
        "float_list",
    ];
    check_failure(&["testdata/mixed_kinds/"], &places);
    check_failure(
        &["testdata/generate.py"],
        &["testdata/generate.py: not TFRecord: "],
    );
}

#[test]
fn two_outputs_of_one_name_are_refused() {
    let folder = tempdir().unwrap();
    let copy = folder.path().join("in/scalar.tfrecord");
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::copy(path("testdata/scalar.tfrecord"), &copy).unwrap();
    let out = folder.path().join("out");
    let run = tfarrow(&[
        "convert",
        "testdata/scalar.tfrecord",
        text(&copy),
        text(&out),
    ]);
    assert_ne!(run.status, Some(0));
    assert!(
        run.stderr.contains("scalar.parquet") && !out.exists(),
        "{}",
        run.stderr
    );
}

/// A folder with two formats is ambiguous: the files of one format may be outputs of the other, or
/// contain new records.
#[test]
fn a_folder_of_two_formats_is_refused() {
    let folder = tempdir().unwrap();
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    convert(&["testdata/shards/", &place("in")]);
    std::fs::copy(path("testdata/scalar.tfrecord"), place("in/stray.tfrecord")).unwrap();
    let stderr = tfarrow(&["convert", &place("in"), &place("out"), "--to", "tfrecord"]).ends(2);
    assert!(
        stderr.contains("stray.tfrecord is TFRecord and ")
            && stderr.contains(".parquet is Parquet; "),
        "{stderr}"
    );
    assert!(!folder.path().join("out").exists());
    let query = format!("SELECT count(*) FROM '{}'", place("in"));
    assert!(
        tfarrow(&["sql", &query])
            .fails()
            .contains("one table cannot hold both ")
    );
    // Files below the destination are outputs and not sources, unless the command names them.
    convert(&[
        "testdata/scalar.tfrecord",
        &place("set/a.tfrecord"),
        "--record-type",
        "raw",
    ]);
    for more in [&[][..], &["--overwrite"]] {
        convert(&[&[&place("set")[..], &place("set/made")], more].concat());
        assert_eq!(
            listing(folder.path().join("set").as_path()),
            ["a.tfrecord", "made/a.parquet"]
        );
    }
    for more in [&[][..], &["--overwrite"]] {
        convert(
            &[
                &[
                    &place("set/made")[..],
                    &place("set/made/back"),
                    "--to",
                    "tfrecord",
                ],
                more,
            ]
            .concat(),
        );
    }
    let named = [&place("set/a.tfrecord"), &place("set/made/a.parquet")];
    tfarrow(&[
        "convert",
        named[0],
        named[1],
        &place("set/made"),
        "--overwrite",
    ])
    .ends(2);
}

/// A mistyped extension does not create a folder.
#[test]
fn a_destination_with_an_unknown_extension_is_refused() {
    let folder = tempdir().unwrap();
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    for (name, expected) in [
        (
            "nope.xyz",
            "no format is known by this extension; known are .parquet, .arrow and .tfrecord",
        ),
        ("a.parqet", "(did you mean .parquet?)"),
        ("out.v2", "for a folder of this name, end it with a slash"),
        ("a.csv", "no format is known by this extension"),
        (
            "a.tfrecord-00000-of-00002",
            "no format is known by this extension",
        ),
    ] {
        for source in ["testdata/shards/", "testdata/scalar.tfrecord"] {
            let stderr = tfarrow(&["convert", source, &place(name)]).ends(2);
            assert!(stderr.contains(expected), "{name}: {stderr}");
            let stderr = tfarrow(&["repair", source, &place(name)]).ends(2);
            assert!(stderr.contains(expected), "{name}: {stderr}");
        }
        assert_eq!(listing(folder.path()), [""; 0], "{name}");
    }
    // A folder is a name that ends with a slash, an existing folder, a name without an extension,
    // or a name that ends with a version number.
    std::fs::create_dir(folder.path().join("there.v1")).unwrap();
    for name in ["out.v2/", "there.v1", "plain", "mnist-1.0", "3.0.1"] {
        convert(&["testdata/scalar.tfrecord", &place(name)]);
        assert_eq!(
            listing(&folder.path().join(name)),
            ["scalar.parquet"],
            "{name}"
        );
    }
}

#[test]
fn folders_that_are_created_above_the_output_are_reported() {
    let folder = tempdir().unwrap();
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    let scalar = "testdata/scalar.tfrecord";
    let stderr = convert(&[scalar, &place("typo/deep/a.parquet")]);
    assert!(
        stderr.contains(&format!(
            "created 2 folders above the output: {}\n",
            place("typo/deep")
        )),
        "{stderr}"
    );
    let stderr = convert(&[scalar, &place("other/out/")]);
    assert!(
        stderr.contains(&format!(
            "created 1 folder above the output: {}\n",
            place("other")
        )),
        "{stderr}"
    );
    // The destination itself is not reported.
    for dest in ["out", "slash/", "typo/more", "b.parquet"] {
        let stderr = convert(&[scalar, &place(dest)]);
        assert!(!stderr.contains("created"), "{dest}: {stderr}");
    }
    // A conversion that fails removes the folders that it created.
    tfarrow(&[
        "convert",
        "testdata/corrupt/data.tfrecord",
        &place("new/deep/a.parquet"),
    ])
    .ends(1);
    tfarrow(&[
        "convert",
        "testdata/corrupt/data.tfrecord",
        &place("new/deep/"),
    ])
    .ends(1);
    assert!(!folder.path().join("new").exists());
}

#[test]
fn convert_accepts_the_json_output_of_schema() {
    for set in ["states", "sequence", "names", "raw", "shards/"] {
        let source = if set.ends_with('/') {
            format!("testdata/{set}")
        } else {
            format!("testdata/{set}.tfrecord")
        };
        let folder = tempdir().unwrap();
        let (json, out) = (folder.path().join("schema.json"), folder.path().join("out"));
        let schema = tfarrow(&["schema", &source, "--format", "json"]);
        assert_eq!(schema.status, Some(0), "{}", schema.stderr);
        std::fs::write(&json, schema.stdout).unwrap();
        convert(&[&source, text(&out), "--schema", text(&json)]);
        let back = folder.path().join("back");
        convert(&[text(&out), text(&back), "--to", "tfrecord"]);
        assert_eq!(records(text(&back)), records(&source), "{set}");
    }
}

#[test]
fn the_number_of_shards_can_be_changed() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("out");
    convert(&[
        "testdata/shards/",
        text(&out),
        "--to",
        "tfrecord",
        "--shards",
        "3",
        "--compression",
        "gzip",
    ]);
    let names = [
        "train-00000-of-00003.tfrecord.gz",
        "train-00001-of-00003.tfrecord.gz",
        "train-00002-of-00003.tfrecord.gz",
    ];
    assert_eq!(listing(&out), names);
    assert_eq!(records(text(&out)), records("testdata/shards/"));
    let out = folder.path().join("small");
    convert(&["testdata/shards/", text(&out), "--shard-size", "20kB"]);
    assert!(listing(&out).len() > 1);
    assert_eq!(tfarrow(&["count", text(&out)]).prints(), "200\n");
}

/// The records of small files are read at once, so that few files are open at a time.
#[cfg(unix)]
#[test]
fn many_small_files_need_few_descriptors() {
    let folder = tempdir().unwrap();
    let source = folder.path().join("in");
    std::fs::create_dir(&source).unwrap();
    for number in 0..300 {
        let shard = source.join(format!("{number}.tfrecord"));
        std::fs::copy(path("testdata/scalar.tfrecord"), shard).unwrap();
    }
    let outs = ["a.parquet", "b.arrow", "c.tfrecord"].map(|name| folder.path().join(name));
    for out in &outs {
        let program = env!("CARGO_BIN_EXE_tfarrow");
        let limited = std::process::Command::new("sh")
            .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\"", program])
            .args(["convert", text(&source), text(out), "--jobs", "8"])
            .env("TFARROW_CONFIG", "")
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&limited.stderr);
        assert!(limited.status.success(), "{}: {message}", out.display());
    }
}

#[test]
fn many_files_are_merged_into_one() {
    let folder = tempdir().unwrap();
    for name in [
        "all.parquet",
        "all.arrow",
        "all.tfrecord",
        "all.tfrecord.gz",
    ] {
        let all = folder.path().join(name);
        let stderr = convert(&["testdata/shards/", text(&all)]);
        assert!(
            stderr.contains(" in 4 files, wrote ") && stderr.contains(" in 1 file, "),
            "{stderr}"
        );
        assert_eq!(tfarrow(&["count", text(&all)]).prints(), "200\n");
        let back = folder.path().join(format!("{name}.back.tfrecord"));
        convert(&[text(&all), text(&back)]);
        assert_eq!(records(text(&back)), records("testdata/shards/"), "{name}");
    }
    let stream = command(&["convert", "testdata/shards/", "-", "--to", "arrow"])
        .output()
        .unwrap();
    assert_eq!(
        stream.stdout,
        std::fs::read(folder.path().join("all.arrow")).unwrap()
    );
    // The output is no source of a second run, which is refused.
    let own = folder.path().join("own");
    convert(&["testdata/shards/", text(&own), "--to", "tfrecord"]);
    let all = own.join("all.parquet");
    convert(&[text(&own), text(&all)]);
    convert(&[text(&own), text(&all), "--overwrite"]);
    assert_eq!(tfarrow(&["count", text(&all)]).prints(), "200\n");
    let all = own.join("all.tfrecord");
    convert(&[&format!("{}/*-of-*", text(&own)), text(&all)]);
    let stderr = tfarrow(&[
        "convert",
        &format!("{}/*tfrecord*", text(&own)),
        text(&all),
        "--overwrite",
    ])
    .ends(2);
    assert!(
        stderr.contains("all.tfrecord: is a source; name another output"),
        "{stderr}"
    );
    let stderr = tfarrow(&["convert", "testdata/shards/", "x.parquet", "--shards", "2"]).ends(2);
    assert!(
        stderr.contains("x.parquet: one file cannot hold new shards; name a folder"),
        "{stderr}"
    );
}

#[test]
fn compressions_have_levels() {
    let folder = tempdir().unwrap();
    let size = |name: &str, compression: &str| {
        let out = folder.path().join(name);
        convert(&[
            "testdata/shards/",
            text(&out),
            "--compression",
            compression,
            "--overwrite",
        ]);
        let back = folder.path().join("back.tfrecord");
        convert(&[text(&out), text(&back), "--overwrite"]);
        assert_eq!(
            records(text(&back)),
            records("testdata/shards/"),
            "{name} {compression}"
        );
        std::fs::metadata(out).unwrap().len()
    };
    for (name, default, low, high) in [
        ("a.parquet", "zstd:1", "zstd:1", "zstd:19"),
        ("a.parquet", "gzip:6", "gzip:1", "gzip:9"),
        ("a.arrow", "zstd:3", "zstd:1", "zstd:19"),
        ("a.tfrecord.gz", "gzip:6", "gzip:1", "gzip:9"),
        ("a.tfrecord.zlib", "zlib:6", "zlib:1", "zlib:9"),
    ] {
        assert!(size(name, low) > size(name, high), "{name} {low}");
        let codec = default.split(':').next().unwrap();
        assert_eq!(
            size(name, codec),
            size(name, default),
            "{name}: the default level is documented"
        );
    }
    assert!(size("a.tfrecord.gz", "gzip:0") > size("a.tfrecord", "none"));
    let fails = |compression| {
        tfarrow(&[
            "convert",
            "testdata/shards/",
            "x.parquet",
            "--compression",
            compression,
        ])
        .ends(2)
    };
    let stderr = fails("snappy:3");
    assert!(
        stderr.contains("snappy has no levels; these have: zstd (1 to 22), gzip (0 to 9)"),
        "{stderr}"
    );
    assert!(fails("zstd:30").contains("zstd has the levels 1 to 22, and not 30"));
    assert!(fails("zlib:3").contains("parquet has no compression \"zlib\""));
    assert!(fails("lzo").contains("zstd"));
}

/// The columns of a file, in their order.
fn columns(source: &Path) -> Vec<String> {
    let described = tfarrow(&[
        "sql",
        "--format",
        "csv",
        &format!("DESCRIBE '{}'", text(source)),
    ])
    .prints();
    described
        .lines()
        .skip(1)
        .filter_map(|line| Some(line.split_once(',')?.0.to_owned()))
        .collect()
}

#[test]
fn columns_are_chosen_by_names_and_globs() {
    let folder = tempdir().unwrap();
    let out = |name: &str| folder.path().join(name);
    for source in ["testdata/shards/", "all.parquet", "all.arrow"] {
        let source = if source.starts_with("all") {
            text(&out(source)).to_owned()
        } else {
            source.to_owned()
        };
        if !source.starts_with("testdata") {
            convert(&["testdata/shards/", &source]);
        }
        for name in ["one.parquet", "one.arrow", "one.tfrecord"] {
            convert(&[
                &source,
                text(&out(name)),
                "--columns",
                "price,c*",
                "--columns",
                "label",
                "--overwrite",
            ]);
            let expect = ["price", "city", "label"];
            let sorted = ["city", "label", "price"];
            assert_eq!(
                columns(&out(name)),
                if name.ends_with("tfrecord") {
                    sorted
                } else {
                    expect
                },
                "{source} {name}"
            );
            convert(&[
                &source,
                text(&out(name)),
                "--exclude",
                "{p*,embedding},city",
                "--overwrite",
            ]);
            assert!(!columns(&out(name)).contains(&"price".to_owned()));
            let back = out("back.tfrecord");
            convert(&[
                text(&out(name)),
                text(&back),
                "--columns",
                "label",
                "--overwrite",
            ]);
            let labels = tfarrow(&[
                "sql",
                &format!("SELECT sum(label) FROM '{}'", text(&back)),
                "--format",
                "csv",
            ])
            .prints();
            let expect = tfarrow(&[
                "sql",
                "SELECT sum(label) FROM 'testdata/shards/'",
                "--format",
                "csv",
            ])
            .prints();
            assert_eq!(labels, expect, "{source} {name}");
        }
    }
    let fails = |args: &[&str]| {
        tfarrow(&[&["convert", "testdata/shards/", "x.parquet"], args].concat()).ends(2)
    };
    let stderr = fails(&["--columns", "lable"]);
    assert!(
        stderr.contains(
            "there is no column \"lable\" (did you mean \"label\"?); there are \"city\", "
        ),
        "{stderr}"
    );
    assert!(fails(&["--columns", "x["]).contains("is not a valid glob"));
    assert!(fails(&["--columns", "label", "--exclude", "*"]).contains("no column is left"));
    assert!(fails(&["--columns", "label", "--exact"]).contains("cannot be used with '--exact'"));
    let stderr = tfarrow(&[
        "convert",
        text(&out("all.parquet")),
        "x.arrow",
        "--exclude",
        "zzz",
    ])
    .ends(2);
    assert!(
        stderr.contains("all.parquet: there is no column \"zzz\"; there are "),
        "{stderr}"
    );
}

/// A feature of two kinds is an error only if it is converted.
#[test]
fn features_of_two_kinds_can_be_left_out() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("a.parquet");
    let stderr = tfarrow(&[
        "convert",
        "testdata/mixed_kinds/",
        text(&out),
        "--columns",
        "x",
    ])
    .fails();
    assert!(
        stderr.contains("feature \"x\" has two kinds: ") && !out.exists(),
        "{stderr}"
    );
    convert(&["testdata/mixed_kinds/", text(&out), "--exclude", "x"]);
    assert!(!columns(&out).is_empty() && !columns(&out).contains(&"x".to_owned()));
    convert(&[
        "testdata/mixed_kinds/",
        text(&out),
        "--columns",
        "x",
        "--on-conflict",
        "split",
        "--overwrite",
    ]);
    let back = folder.path().join("back.tfrecord");
    convert(&[text(&out), text(&back)]);
    // The feature is one of the records again, and so has no column.
    let records = tfarrow(&["head", text(&back)]).prints();
    assert!(
        records
            .lines()
            .all(|record| record.starts_with("{\"x\":[") || record == "{}"),
        "{records}"
    );
}

#[test]
fn feature_lists_are_chosen_by_the_names_of_their_columns() {
    let folder = tempdir().unwrap();
    let (all, some) = (
        folder.path().join("all.parquet"),
        folder.path().join("some.tfrecord"),
    );
    convert(&["testdata/sequence.tfrecord", text(&all)]);
    for source in ["testdata/sequence.tfrecord", text(&all)] {
        let take = |name| convert(&[source, text(&some), "--columns", name, "--overwrite"]);
        take("token");
        let first = || tfarrow(&["head", "-n", "1", text(&some)]).prints();
        assert_eq!(
            first(),
            "{\"context\":{},\"feature_lists\":{\"token\":[[\"a\"],[\"b\",\"c\"]]}}\n"
        );
        take("feature_lists/shared");
        assert_eq!(
            first(),
            "{\"context\":{},\"feature_lists\":{\"shared\":[[1],[2,3]]}}\n"
        );
        // The column of the context feature has this name.
        take("shared");
        assert_eq!(first(), "{\"shared\":[\"context\"]}\n");
    }
}

#[test]
fn convert_reads_standard_input_and_writes_standard_output() {
    let bytes = std::fs::read(path("testdata/compressed/gzip-00001-of-00003.tfrecord.gz")).unwrap();
    let folder = tempdir().unwrap();
    let file = folder.path().join("a.parquet");
    let output = {
        let mut child = command(&["convert", "-", "-"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &bytes).unwrap();
        child.wait_with_output().unwrap()
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::write(&file, output.stdout).unwrap();
    assert_eq!(tfarrow(&["count", text(&file)]).prints(), "30\n");
    let run = tfarrow_reads(
        &[
            "convert",
            "-",
            text(&folder.path().join("b.parquet")),
            "--schema",
            text(&file),
        ],
        &bytes,
    );
    run.ends(0);
}

#[test]
fn lossy_values_are_refused_without_the_lossy_option() {
    let folder = tempdir().unwrap();
    let (parquet, out) = (
        folder.path().join("a.parquet"),
        folder.path().join("a.tfrecord"),
    );
    let query = format!(
        "COPY (SELECT 0.1 AS x, 1 AS y) TO '{}' STORED AS PARQUET",
        text(&parquet)
    );
    tfarrow(&["sql", &query]).prints();
    let error = tfarrow(&["convert", text(&parquet), text(&out)]).fails();
    assert!(
        error.contains("\"x\"") && error.contains("--lossy"),
        "{error}"
    );
    assert!(!out.exists());
    let stderr = tfarrow(&["convert", text(&parquet), text(&out), "--lossy"]).ends(3);
    assert!(
        stderr.contains("x") && stderr.contains("1 time"),
        "{stderr}"
    );
    assert_eq!(records(text(&out)), "{\"x\":[0.1],\"y\":[1]}\n");
}

/// Runs a command that must succeed, and returns its standard output as JSON.
#[track_caller]
fn json(args: &[&str]) -> Value {
    let run = tfarrow(args);
    let found =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    run.ends(0);
    found
}

fn size(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

#[test]
fn the_summary_as_json_has_files_records_and_bytes() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("out");
    let found = json(&["convert", "testdata/shards/", text(&out), "--json"]);
    let (mut sources, outputs) = (listing(&path("testdata/shards")), listing(&out));
    sources.retain(|name| name.ends_with(".tfrecord"));
    let total = |folder: &Path, names: &[String]| {
        names
            .iter()
            .map(|name| size(&folder.join(name)))
            .sum::<u64>()
    };
    let expected = serde_json::json!({
        "dest": text(&out),
        "shards": 4,
        "files": 4,
        "records": 200,
        "bytes_in": total(&path("testdata/shards"), &sources),
        "bytes_out": total(&out, &outputs),
        "lossy_changes": {},
        "rounded": {},
        "skipped": {"records": 0, "ranges": 0, "bytes": 0},
    });
    assert_eq!(found, expected);
    let second = folder.path().join("b.parquet");
    let corrupt = [
        "convert",
        "testdata/corrupt/data.tfrecord",
        text(&second),
        "--json",
    ];
    let run = tfarrow(&[&corrupt[..], &["--on-error", "skip"]].concat());
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&found["records"], &found["skipped"]["records"]),
        (&2.into(), &1.into())
    );
    run.ends(3);
    // An error is a message, and not JSON.
    assert_eq!(tfarrow(&corrupt).stdout, "");
    let stderr = tfarrow(&[
        "convert",
        "testdata/scalar.tfrecord",
        "-",
        "--to",
        "parquet",
        "--json",
    ])
    .ends(2);
    assert!(stderr.contains("--json needs standard output"), "{stderr}");
}

#[test]
fn a_dry_run_writes_nothing_and_names_what_the_conversion_writes() {
    let cases: &[&[&str]] = &[
        &["testdata/shards/"],
        &[
            "testdata/shards/",
            "--to",
            "arrow",
            "--columns",
            "city,image/*",
        ],
        &[
            "testdata/shards/",
            "--to",
            "tfrecord",
            "--compression",
            "gzip",
        ],
        &["testdata/shards/", "--to", "tfrecord", "--exclude", "city"],
        &["testdata/shards/", "--shards", "3"],
        &[
            "testdata/{tfds,shards}/*-00000-of-*",
            "--layout",
            "list",
            "--exact",
        ],
        &["testdata/sequence.tfrecord", "--row-group-rows", "1"],
    ];
    for args in cases {
        let folder = tempdir().unwrap();
        let out = folder.path().join("new/out");
        let (source, options) = args.split_first().unwrap();
        let args = [&["convert", *source, text(&out)], options].concat();
        let plan = json(&[&args[..], &["--dry-run", "--json"]].concat());
        assert_eq!(listing(folder.path()), [""; 0], "{args:?}");
        tfarrow(&[&args[..], &["--dry-run"]].concat()).prints();
        assert_eq!(listing(folder.path()), [""; 0], "{args:?}");
        let done = json(&[&args[..], &["--json"]].concat());
        for field in ["dest", "shards", "files", "bytes_in"] {
            assert_eq!(plan[field], done[field], "{args:?} {field}");
        }
        let jobs = plan["jobs"].as_array().unwrap();
        let outputs = jobs
            .iter()
            .flat_map(|job| job["outputs"].as_array().unwrap());
        let mut outputs: Vec<_> = outputs
            .map(|output| output.as_str().unwrap().to_owned())
            .collect();
        outputs.sort();
        let written: Vec<_> = listing(&out)
            .into_iter()
            .map(|name| text(&out.join(name)).to_owned())
            .collect();
        assert_eq!(outputs, written, "{args:?}");
        if plan["to"] == "tfrecord" && plan["columns"].is_null() {
            continue;
        }
        let planned = plan["columns"].as_array().unwrap();
        let planned: Vec<_> = planned
            .iter()
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        assert_eq!(planned, columns(&out), "{args:?}");
    }
}

#[test]
fn a_dry_run_shows_sources_sizes_and_columns() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("all.parquet");
    let shown = tfarrow(&["convert", "testdata/shards/", text(&out), "--dry-run"]).prints();
    let first = "testdata/shards/train-00000-of-00004.tfrecord and 3 more";
    assert!(
        shown.contains(text(&out)) && shown.contains(first),
        "{shown}"
    );
    assert!(
        shown.contains("label") && shown.contains("list<float32>"),
        "{shown}"
    );
    let summary = "would convert 4 files (59 kB) to 1 Parquet file, compression zstd; the columns are those of all 200 records; \
                   nothing was written\n";
    assert!(shown.ends_with(summary), "{shown}");
    let plan = json(&[
        "convert",
        "testdata/shards/",
        text(&out),
        "--dry-run",
        "--json",
    ]);
    let sources = plan["jobs"][0]["sources"].as_array().unwrap();
    for source in sources {
        assert_eq!(
            source["bytes"],
            size(&path(source["path"].as_str().unwrap()))
        );
    }
    assert_eq!(
        (sources.len(), &plan["inferred_from"], &plan["is_sampled"]),
        (4, &200.into(), &false.into())
    );
    let cut = json(&[
        "convert",
        "testdata/shards/",
        text(folder.path()),
        "--shard-size",
        "5kB",
        "--dry-run",
        "--json",
    ]);
    assert!(cut["files"].is_null());
    let glob = cut["jobs"][0]["outputs"][0].as_str().unwrap();
    tfarrow(&[
        "convert",
        "testdata/shards/",
        text(folder.path()),
        "--shard-size",
        "5kB",
    ])
    .ends(0);
    assert_eq!(tfarrow(&["count", glob]).prints(), "200\n");
    // Nothing is written to standard output but the plan.
    let piped = json(&[
        "convert",
        "testdata/scalar.tfrecord",
        "-",
        "--dry-run",
        "--json",
    ]);
    assert_eq!(
        (&piped["files"], &piped["jobs"][0]["outputs"][0]),
        (&0.into(), &"-".into())
    );
}

#[test]
fn a_dry_run_has_a_row_for_each_field_of_a_struct() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let shown = tfarrow(&["convert", "testdata/events/logs/", text(&out), "--dry-run"]).prints();
    for row in [
        "| summary.value.tag ",
        "| list<struct>",
        "| summary.value.simple_value ",
    ] {
        assert!(shown.contains(row), "{row} is not in {shown}");
    }
    assert!(!shown.contains("struct<"), "{shown}");
}

#[test]
fn options_may_stand_between_the_sources_and_the_destination() {
    let folder = tempfile::tempdir().unwrap();
    let (parquet, sound) = (
        folder.path().join("x.parquet"),
        folder.path().join("sound.tfrecord"),
    );
    let source = "testdata/scalar.tfrecord";
    for args in [
        ["convert", source, "--overwrite", text(&parquet)],
        ["convert", "--overwrite", source, text(&parquet)],
        ["convert", source, text(&parquet), "--overwrite"],
        ["repair", source, "--overwrite", text(&sound)],
    ] {
        tfarrow(&args).ends(0);
    }
    let all = folder.path().join("all.tfrecord");
    tfarrow(&[
        "convert",
        source,
        "--jobs",
        "1",
        source,
        "--overwrite",
        "--",
        text(&all),
    ])
    .ends(0);
    assert_eq!(
        tfarrow(&["count", text(&all)]).prints(),
        tfarrow(&["count", source, source]).prints()
    );
    assert_eq!(tfarrow(&["diff", source, text(&parquet)]).status, Some(0));
}

#[test]
fn a_dry_run_finds_the_errors_of_the_conversion() {
    let folder = tempdir().unwrap();
    let (out, lossy) = (
        folder.path().join("a.parquet"),
        folder.path().join("lossy.parquet"),
    );
    std::fs::write(&out, "precious").unwrap();
    let below = folder.path().join("a.parquet/below.parquet");
    let quarantines =
        ["a.parquet", "nowhere/q.tfrecord", "q.tfrecord"].map(|name| folder.path().join(name));
    std::fs::write(&quarantines[2], "precious").unwrap();
    let new = folder.path().join("new.parquet");
    let skip = |quarantine| {
        [
            "testdata/scalar.tfrecord",
            text(&new),
            "--on-error",
            "skip",
            "--quarantine",
            text(quarantine),
        ]
    };
    tfarrow(&[
        "sql",
        &format!(
            "COPY (SELECT DATE '2026-11-26' AS x) TO '{}' STORED AS PARQUET",
            text(&lossy)
        ),
    ])
    .prints();
    let (back, other) = (
        folder.path().join("back.tfrecord"),
        folder.path().join("b.parquet"),
    );
    let cases: &[(&[&str], i32, &str)] = &[
        (&["testdata/scalar.tfrecord", text(&out)], 2, "--overwrite"),
        (
            &[
                "testdata/scalar.tfrecord",
                text(&back),
                "--compression",
                "zstd",
            ],
            2,
            "tfrecord has no compression",
        ),
        (
            &["testdata/scalar.tfrecord", text(&other), "--columns", "no"],
            2,
            "no column \"no\"",
        ),
        (&["testdata/mixed_kinds/", text(&other)], 1, "two kinds"),
        (&[text(&lossy), text(&back)], 2, "--lossy"),
        (
            &["testdata/no.tfrecord", text(&back)],
            1,
            "testdata/no.tfrecord",
        ),
        (
            &["testdata/scalar.tfrecord", text(&below)],
            1,
            "a.parquet: not a directory",
        ),
        (
            &[
                "testdata/scalar.tfrecord",
                &format!("{}/", text(&below)),
                "--to",
                "arrow",
            ],
            1,
            "a.parquet: not a directory",
        ),
        (&skip(&quarantines[0]), 2, "the name says parquet"),
        (&skip(&quarantines[1]), 2, "its folder does not exist"),
        (&skip(&quarantines[2]), 2, "already exists"),
    ];
    for (args, status, expected) in cases {
        let (real, dry) = (
            [&["convert"], *args].concat(),
            [&["convert", "--dry-run"], *args].concat(),
        );
        let (real, dry) = (tfarrow(&real), tfarrow(&dry));
        assert_eq!(
            (dry.status, &dry.stderr),
            (real.status, &real.stderr),
            "{args:?}"
        );
        assert!(
            dry.status == Some(*status) && dry.stdout.is_empty() && dry.stderr.contains(expected),
            "{dry:?}"
        );
    }
    assert_eq!(
        listing(folder.path()),
        ["a.parquet", "lossy.parquet", "q.tfrecord"]
    );
    let plan = json(&[
        "convert",
        "--dry-run",
        "testdata/scalar.tfrecord",
        text(&out),
        "--overwrite",
        "--json",
    ]);
    assert_eq!(plan["replaced"], serde_json::json!([text(&out)]));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "precious");
    // The journal of an interrupted run.
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let journal = folder.path().join("out/.tfarrow-convert.journal");
    std::fs::write(&journal, "{\"conversion\":\"{}\"}\n").unwrap();
    let out = folder.path().join("out");
    let run = tfarrow(&[
        "convert",
        "--dry-run",
        "testdata/scalar.tfrecord",
        text(&out),
    ]);
    assert!(run.ends(2).contains("was interrupted"));
    assert_eq!(
        std::fs::read_to_string(&journal).unwrap(),
        "{\"conversion\":\"{}\"}\n"
    );
    json(&[
        "convert",
        "--dry-run",
        "testdata/scalar.tfrecord",
        text(&out),
        "--overwrite",
        "--json",
    ]);
    tfarrow(&[
        "convert",
        "--dry-run",
        "--resume",
        "testdata/scalar.tfrecord",
        text(&out),
    ])
    .ends(2);
}

#[test]
fn bloom_filters_and_the_page_index_are_options() {
    let folder = tempdir().unwrap();
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    convert(&["testdata/shards/", &place("plain.parquet")]);
    convert(&[
        "testdata/shards/",
        &place("filter.parquet"),
        "--bloom-filter",
        "label,c*",
    ]);
    convert(&[
        "testdata/shards/",
        &place("no-index.parquet"),
        "--no-page-index",
    ]);
    let sizes = ["plain", "filter", "no-index"]
        .map(|name| size(Path::new(&place(&format!("{name}.parquet")))));
    assert!(sizes[1] > sizes[0] && sizes[2] < sizes[0], "{sizes:?}");
    for name in ["plain", "filter", "no-index"] {
        assert!(
            tfarrow(&["verify", &place(&format!("{name}.parquet"))])
                .ends(0)
                .contains("no faults")
        );
        assert_eq!(
            records(&place(&format!("{name}.parquet"))),
            records("testdata/shards/")
        );
    }
    let stderr = tfarrow(&[
        "convert",
        "testdata/shards/",
        &place("b.parquet"),
        "--bloom-filter",
        "lable",
    ])
    .ends(2);
    assert!(stderr.contains("(did you mean \"label\"?)"), "{stderr}");
    let stderr = tfarrow(&[
        "convert",
        "testdata/shards/",
        &place("b.arrow"),
        "--bloom-filter",
        "label",
    ])
    .ends(2);
    assert!(
        stderr.contains("only Parquet files have Bloom filters"),
        "{stderr}"
    );
    assert!(!Path::new(&place("b.parquet")).exists() && !Path::new(&place("b.arrow")).exists());
}
