//! `convert --part`: the outputs of all parts are those of one run, whatever is killed, run twice,
//! or run at the same time.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Child,
    thread,
};

use serde_json::Value;
use tempfile::TempDir;
use tfarrow_testkit::{
    frame,
    proto::{self, KindOneof},
};

use crate::support::{command, tfarrow, tfarrow_reads};

/// Records of each shard: more than a sample takes of the first, and none of the last.
const RECORDS: [usize; 9] = [1_500, 40, 300, 40, 1, 700, 5, 90, 0];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The wire bytes of record `row` of a shard.
fn record(shard: usize, row: usize) -> Vec<u8> {
    let hash = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ shard as u64);
    let floats = vec![f32::from_bits(hash as u32); row % 3];
    let id = format!("{shard}-{row}");
    let features = [
        ("a", KindOneof::floats(floats)),
        ("b", KindOneof::bytes(id)),
        ("c", KindOneof::ints([row as i64])),
    ];
    proto::example(features)
}

/// The path of shard `shard` of the data set in `source`, in folders of different depth.
fn shard_path(source: &Path, shard: usize) -> PathBuf {
    let folder = ["", "x", "x/y"][shard % 3];
    source.join(folder).join(format!("train-{shard}.tfrecord"))
}

/// Writes the data set. Some shards are compressed.
fn data_set(folder: &Path) -> PathBuf {
    let source = folder.join("source");
    for (shard, records) in RECORDS.into_iter().enumerate() {
        let path = shard_path(&source, shard);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(
            &path,
            frame::file((0..records).map(|row| record(shard, row))),
        )
        .unwrap();
        if shard % 4 == 2 {
            let gzip = format!("{}.gz", text(&path));
            tfarrow(&["convert", text(&path), &gzip, "--to", "tfrecord"]).ends(0);
            fs::remove_file(path).unwrap();
        }
    }
    source
}

/// The path and the content of each file below a folder, hidden files included; none if there is no
/// folder.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            files.extend(
                tree(&path)
                    .into_iter()
                    .map(|(below, bytes)| (format!("{name}/{below}"), bytes)),
            );
        } else {
            // A temporary file may get its name between both calls.
            files.extend(fs::read(&path).map(|bytes| (name, bytes)));
        }
    }
    files
}

/// The numbers of outputs and of temporary files in a folder.
fn counts(folder: &Path) -> (usize, usize) {
    let names = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name());
    let (temporary, outputs): (Vec<_>, Vec<_>) =
        names.partition(|name| name.to_string_lossy().starts_with(".tfarrow-"));
    (outputs.len(), temporary.len())
}

/// Returns the arguments, and the part.
fn of_part<'a>(args: &[&'a str], part: &'a str) -> Vec<&'a str> {
    [args, &["--part", part]].concat()
}

/// Runs all parts, each of which must end with success, and returns the number of their records.
#[track_caller]
fn run_parts(args: &[&str], count: usize) -> u64 {
    let run = |index: usize| {
        let part = format!("{index}/{count}");
        let run = tfarrow(&[&of_part(args, &part)[..], &["--json"]].concat());
        assert_eq!(run.status, Some(0), "{part}: {}", run.stderr);
        serde_json::from_str::<Value>(&run.stdout).unwrap()["records"]
            .as_u64()
            .unwrap()
    };
    (0..count).map(run).sum()
}

#[test]
fn the_outputs_of_parts_are_those_of_one_run() {
    let folder = TempDir::new().unwrap();
    let source = data_set(folder.path());
    let schema = folder.path().join("schema.json");
    fs::write(
        &schema,
        tfarrow(&["schema", text(&source), "--format", "json"]).prints(),
    )
    .unwrap();
    let parquet = folder.path().join("parquet");
    tfarrow(&["convert", text(&source), text(&parquet)]).ends(0);
    let ways: [(&Path, &[&str]); 12] = [
        (&source, &[]),
        (&source, &["--to", "arrow"]),
        (&source, &["--to", "tfrecord", "--compression", "gzip"]),
        (&source, &["--to", "tfrecord", "--exclude", "b"]),
        (&source, &["--to", "tfrecord", "--columns", "c,a"]),
        (&source, &["--exact"]),
        (&source, &["--schema", text(&schema)]),
        (&source, &["--columns", "c,a"]),
        (&source, &["--sample", "5", "--layout", "list"]),
        (&source, &["--record-type", "raw"]),
        (&parquet, &["--to", "tfrecord", "--compression", "original"]),
        (&parquet, &["--to", "arrow"]),
    ];
    for (turn, (source, way)) in ways.into_iter().enumerate() {
        let place = |name: &str| folder.path().join(format!("{name}-{turn}"));
        let whole = place("whole");
        tfarrow(&[&["convert", text(source), text(&whole)][..], way].concat()).ends(0);
        let expect = tree(&whole);
        assert_eq!(expect.len(), RECORDS.len(), "{way:?}");
        for count in [1, 2, 3, 7, 12] {
            let dest = place(&format!("parts-{count}"));
            let args = [&["convert", text(source), text(&dest)][..], way].concat();
            // The second time, nothing is written.
            for _ in 0..if count == 3 { 2 } else { 1 } {
                assert_eq!(
                    run_parts(&args, count),
                    RECORDS.iter().sum::<usize>() as u64,
                    "{way:?}"
                );
                assert!(tree(&dest) == expect, "{way:?} in {count} parts");
            }
        }
    }
}

#[test]
fn the_types_of_text_are_those_of_all_files() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    for (name, rows) in [("a", "1,2\n"), ("b", "1.5,x\n"), ("c", ",\n")] {
        fs::write(
            source.join(name).with_extension("csv"),
            format!("p,q\n{rows}"),
        )
        .unwrap();
    }
    for format in ["tfrecord", "parquet"] {
        let [whole, dest] =
            ["whole", "dest"].map(|name| folder.path().join(format!("{name}-{format}")));
        let glob = format!("{}/*.csv", text(&source));
        tfarrow(&["convert", &glob, text(&whole), "--to", format]).ends(0);
        assert_eq!(
            run_parts(&["convert", &glob, text(&dest), "--to", format], 3),
            3
        );
        assert!(tree(&dest) == tree(&whole) && tree(&whole).len() == 3);
    }
}

#[test]
fn features_of_several_kinds_are_split_in_all_parts() {
    let folder = TempDir::new().unwrap();
    let [whole, dest] = ["whole", "dest"].map(|name| folder.path().join(name));
    let args = |dest| {
        [
            "convert",
            "testdata/mixed_kinds/",
            dest,
            "--on-conflict",
            "split",
        ]
    };
    tfarrow(&args(text(&whole))).ends(0);
    run_parts(&args(text(&dest)), 2);
    assert!(tree(&dest) == tree(&whole) && tree(&whole).len() == 2);
}

/// A record that does not fit the columns of the sample fails its part. With the columns of all
/// records, each part succeeds.
#[test]
fn a_misfit_fails_its_part_and_a_schema_of_all_records_is_the_way_on() {
    let folder = TempDir::new().unwrap();
    let source = data_set(folder.path());
    let first = shard_path(&source, 0);
    let mut bytes = fs::read(&first).unwrap();
    frame::write(&proto::example([("new", KindOneof::ints([1]))]), &mut bytes);
    fs::write(&first, bytes).unwrap();
    let [whole, dest, schema] =
        ["whole", "dest", "schema.json"].map(|name| folder.path().join(name));
    let args = ["convert", text(&source), text(&dest)];
    // The first shard has more than half of the bytes.
    tfarrow(&of_part(&args, "1/2")).ends(0);
    let stderr = tfarrow(&of_part(&args, "0/2")).ends(1);
    for words in [
        text(&first),
        "\"new\"",
        "a sample of all shards",
        "tfarrow schema --format json",
        "--schema",
    ] {
        assert!(stderr.contains(words), "{words} is not in {stderr}");
    }
    let stderr = tfarrow(&of_part(
        &[&args[..], &["--columns", "new"]].concat(),
        "1/2",
    ))
    .ends(1);
    assert!(
        stderr.contains("new") && stderr.contains("--schema"),
        "{stderr}"
    );

    fs::write(
        &schema,
        tfarrow(&["schema", text(&source), "--format", "json"]).prints(),
    )
    .unwrap();
    let given = [&args[..], &["--schema", text(&schema)]].concat();
    let stderr = tfarrow(&of_part(&given, "1/2")).ends(1);
    assert!(
        stderr.contains("differs from the output of this conversion; --overwrite replaces it"),
        "{stderr}"
    );
    run_parts(&[&given[..], &["--overwrite"]].concat(), 2);
    tfarrow(&["convert", text(&source), text(&whole)]).ends(0);
    assert!(tree(&dest) == tree(&whole));
}

#[test]
fn columns_that_a_sample_cannot_show_are_an_error_at_once() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    // All values of the sample are empty, so that the type of the column is that of the rest.
    let record = |row: usize| proto::example([("a", KindOneof::bytes(vec![b'x'; row / 2_000]))]);
    for shard in 0..2 {
        fs::write(
            source.join(format!("{shard}.tfrecord")),
            frame::file((0..2_500).map(record)),
        )
        .unwrap();
    }
    let dest = folder.path().join("dest");
    let args = ["convert", text(&source), text(&dest)];
    let feature = "no record of the sample has a value that decides the type of feature \"a\"";
    let skipped = "a record that does not fit them would be skipped";
    for (more, why) in [
        (&[][..], feature),
        (&["--dry-run"], feature),
        (&["--on-error", "skip"], skipped),
    ] {
        let stderr = tfarrow(&of_part(&[&args[..], more].concat(), "1/2")).ends(2);
        let next = "tfarrow schema --format json, which also takes --part";
        assert!(
            stderr.contains(&format!("a sample cannot show them: {why}; {next}")),
            "{stderr}"
        );
    }
    assert!(!dest.exists());
    // A part without shards needs no columns.
    tfarrow(&of_part(&args, "2/3")).ends(0);
    // TFRecord is copied without columns.
    assert_eq!(
        run_parts(
            &[&args[..], &["--to", "tfrecord", "--on-error", "skip"]].concat(),
            2
        ),
        5_000
    );
}

/// Shards that take long enough to be interrupted, with a schema so that the conversion begins at
/// once.
fn long_data_set(folder: &Path) -> (PathBuf, PathBuf) {
    let [source, schema] = ["source", "schema.json"].map(|name| folder.join(name));
    fs::create_dir(&source).unwrap();
    for shard in 0..24 {
        let bytes = frame::file((0..4_000).map(|row| record(shard, row)));
        fs::write(
            source.join(format!("train-{shard:05}-of-00024.tfrecord")),
            bytes,
        )
        .unwrap();
    }
    fs::write(
        &schema,
        tfarrow(&["schema", text(&source), "--format", "json"]).prints(),
    )
    .unwrap();
    (source, schema)
}

/// Waits for the program and returns whether it was killed.
fn was_killed(mut child: Child) -> bool {
    child.wait().unwrap().code().is_none()
}

#[test]
#[cfg(unix)]
fn a_killed_part_is_run_again() {
    use std::os::unix::fs::MetadataExt;
    let folder = TempDir::new().unwrap();
    let (source, schema) = long_data_set(folder.path());
    let whole = folder.path().join("whole");
    tfarrow(&[
        "convert",
        text(&source),
        text(&whole),
        "--schema",
        text(&schema),
    ])
    .ends(0);
    let expect = tree(&whole);
    let (mut killed, mut temporary) = (0, 0);
    for (turn, exist) in [0, 1, 2, 3, 5, 7, 8, 10, 11].into_iter().enumerate() {
        let dest = folder.path().join(format!("dest-{turn}"));
        let args = [
            "convert",
            text(&source),
            text(&dest),
            "--schema",
            text(&schema),
            "--jobs",
            "1",
        ];
        for part in ["0/2", "1/2"] {
            let (before, _) = counts(&dest);
            let mut child = command(&of_part(&args, part)).spawn().unwrap();
            // An output that is written has a temporary file.
            let is_reached = |(outputs, temporary)| outputs >= before + exist && temporary > 0;
            while !is_reached(counts(&dest)) && child.try_wait().unwrap().is_none() {
                thread::yield_now();
            }
            child.kill().unwrap();
            killed += usize::from(was_killed(child));
            let left = tree(&dest);
            for (name, bytes) in &left {
                let is_temporary = name.contains(".tfarrow-");
                temporary += usize::from(is_temporary);
                assert!(
                    is_temporary || expect[name] == *bytes,
                    "{name} has its name and is incomplete"
                );
            }
            let inode = |name: &String| fs::metadata(dest.join(name)).unwrap().ino();
            let named: BTreeMap<_, _> = left
                .keys()
                .filter(|name| expect.contains_key(*name))
                .map(|name| (name, inode(name)))
                .collect();
            tfarrow(&of_part(&args, part)).ends(0);
            assert!(
                named.into_iter().all(|(name, was)| inode(name) == was),
                "an output was written again"
            );
            assert!(
                tree(&dest).keys().all(|name| expect.contains_key(name)),
                "temporary files are left"
            );
        }
        assert!(tree(&dest) == expect, "turn {turn}");
    }
    println!("{killed} parts were killed, and left {temporary} temporary files");
    assert!(
        killed > 9 && temporary > 0,
        "{killed} parts were killed, and left {temporary} temporary files"
    );
}

#[test]
fn attempts_at_a_part_at_the_same_time_leave_the_outputs_of_one() {
    let folder = TempDir::new().unwrap();
    let (source, schema) = long_data_set(folder.path());
    let whole = folder.path().join("whole");
    tfarrow(&[
        "convert",
        text(&source),
        text(&whole),
        "--schema",
        text(&schema),
    ])
    .ends(0);
    for (turn, more) in [&[][..], &["--overwrite"], &["--jobs", "1"]]
        .into_iter()
        .enumerate()
    {
        let dest = folder.path().join(format!("dest-{turn}"));
        let args = [
            &[
                "convert",
                text(&source),
                text(&dest),
                "--schema",
                text(&schema),
            ][..],
            more,
        ]
        .concat();
        let parts = ["0/2", "1/2", "0/2", "1/2", "0/2"];
        let children = parts.map(|part| command(&of_part(&args, part)).spawn().unwrap());
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(0),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        assert!(tree(&dest) == tree(&whole), "turn {turn}");
    }
}

#[test]
fn a_source_that_changed_between_runs_is_found() {
    let folder = TempDir::new().unwrap();
    let source = data_set(folder.path());
    let [whole, dest] = ["whole", "dest"].map(|name| folder.path().join(name));
    let args = ["convert", text(&source), text(&dest)];
    run_parts(&args, 3);
    let before = tree(&dest);
    // The shard has the same size, so that all shards stay in their parts.
    let changed = shard_path(&source, 7);
    fs::write(
        &changed,
        frame::file((0..RECORDS[7]).map(|row| record(6, row))),
    )
    .unwrap();
    let runs = [0, 1, 2].map(|index| tfarrow(&of_part(&args, &format!("{index}/3"))));
    let failed: Vec<_> = runs
        .into_iter()
        .filter(|run| run.status != Some(0))
        .collect();
    let [failed] = <[_; 1]>::try_from(failed).unwrap();
    let stderr = failed.ends(1);
    assert!(
        stderr.contains("train-7.parquet: already exists, and differs"),
        "{stderr}"
    );
    assert!(tree(&dest) == before);
    run_parts(&[&args[..], &["--overwrite"]].concat(), 3);
    tfarrow(&["convert", text(&source), text(&whole)]).ends(0);
    assert!(tree(&dest) == tree(&whole));
}

#[test]
fn each_part_has_its_exit_status_and_its_quarantine() {
    let folder = TempDir::new().unwrap();
    let source = data_set(folder.path());
    for shard in [0, 5] {
        let path = shard_path(&source, shard);
        let mut bytes = fs::read(&path).unwrap();
        bytes[20] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    let [whole, dest, lost] = ["whole", "dest", "lost"].map(|name| folder.path().join(name));
    fs::create_dir(&lost).unwrap();
    let args = |dest| {
        [
            "convert",
            text(&source),
            dest,
            "--to",
            "tfrecord",
            "--on-error",
            "skip",
            "--quarantine",
        ]
    };
    let of_all = folder.path().join("lost.tfrecord");
    tfarrow(&[&args(text(&whole))[..], &[text(&of_all)]].concat()).ends(3);
    let records = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_default();
        frame::read(&bytes)
            .unwrap()
            .into_iter()
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    };
    for _ in 0..2 {
        let mut found = Vec::new();
        for index in 0..3 {
            let (part, own) = (format!("{index}/3"), lost.join(format!("{index}.tfrecord")));
            let run = tfarrow(&of_part(
                &[&args(text(&dest))[..], &[text(&own)]].concat(),
                &part,
            ));
            let lost = records(&own);
            assert_eq!(
                run.status,
                Some(if lost.is_empty() { 0 } else { 3 }),
                "{}",
                run.stderr
            );
            assert_eq!(
                run.stderr.contains("skipped 1 record"),
                !lost.is_empty(),
                "{}",
                run.stderr
            );
            found.extend(lost);
        }
        found.sort();
        let mut expect = records(&of_all);
        expect.sort();
        assert_eq!(found, expect);
        assert!(tree(&dest) == tree(&whole));
        assert_eq!(tree(&lost).len(), 2);
    }
    // The quarantine of another part.
    let last = tree(&lost).into_keys().next_back().unwrap();
    let other = lost.join(&last);
    let content = fs::read(&other).unwrap();
    assert_ne!(last, "0.tfrecord");
    // Part 1 has nothing to quarantine.
    for (part, more) in [
        ("0/3", &[][..]),
        ("0/3", &["--overwrite"]),
        ("1/3", &["--overwrite"]),
    ] {
        let args = [&args(text(&dest))[..], &[text(&other)], more].concat();
        let stderr = tfarrow(&of_part(&args, part)).ends(2);
        assert!(
            stderr.contains("which is a shard of another part: name one quarantine for each part"),
            "{stderr}"
        );
        assert!(fs::read(&other).unwrap() == content);
    }
    // The own quarantine is replaced.
    let own = lost.join("0.tfrecord");
    let own = [&args(text(&dest))[..], &[text(&own), "--overwrite"]].concat();
    tfarrow(&of_part(&own, "0/3")).ends(3);
    assert_eq!(tree(&lost).len(), 2);
}

#[test]
fn the_dry_runs_of_parts_have_the_outputs_of_one_run() {
    let folder = TempDir::new().unwrap();
    let source = data_set(folder.path());
    let dest = folder.path().join("dest");
    let args = ["convert", text(&source), text(&dest), "--dry-run", "--json"];
    let jobs = |args: &[&str]| {
        let plan: Value = serde_json::from_str(&tfarrow(args).prints()).unwrap();
        let jobs = plan["jobs"].as_array().unwrap().clone();
        (
            jobs.into_iter()
                .map(|job| job.to_string())
                .collect::<Vec<_>>(),
            plan["columns"].clone(),
        )
    };
    let (mut whole, columns) = jobs(&args);
    let parts = ["0/2", "1/2"].map(|part| jobs(&of_part(&args, part)));
    assert!(
        parts
            .iter()
            .all(|(jobs, of)| !jobs.is_empty() && *of == columns)
    );
    let mut found = parts
        .into_iter()
        .flat_map(|(jobs, _)| jobs)
        .collect::<Vec<_>>();
    found.sort();
    whole.sort();
    assert_eq!(found, whole);
    assert!(!dest.exists());
    tfarrow(&of_part(&["convert", text(&source), text(&dest)], "0/2")).ends(0);
    jobs(&of_part(&args, "0/2"));
}

#[test]
fn conversions_that_have_no_parts_say_why() {
    let folder = TempDir::new().unwrap();
    let source = data_set(folder.path());
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    let (out, file) = (place("out"), place("a.parquet"));
    let refused = |args: &[&str], words: &str| {
        let stderr = tfarrow(&[&["convert"], args].concat()).ends(2);
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    };
    let part = ["--part", "0/2"];
    for more in [["--shards", "2"], ["--shard-size", "1MB"]] {
        refused(
            &[&[text(&source), &out][..], &part, &more].concat(),
            "writes one output for each of its shards",
        );
    }
    for dest in [&file, "-"] {
        refused(
            &[&[text(&source), dest][..], &part].concat(),
            "needs a folder as the destination",
        );
    }
    let bytes = fs::read(shard_path(&source, 1)).unwrap();
    let stderr = tfarrow_reads(&[&["convert", "-", &out][..], &part].concat(), &bytes).ends(2);
    assert!(
        stderr.contains("cannot read -, which other processes cannot read again"),
        "{stderr}"
    );
    refused(
        &[text(&source), &out, "--part", "2/2"],
        "parts are numbered from 0: the last of 2 is 1/2",
    );
    assert!(!Path::new(&out).exists());

    // Outputs of one part would be sources of another. Those of another format are not.
    let inner = format!("{}/inner", text(&source));
    let copy = [&[text(&source), &inner, "--to", "tfrecord"][..], &part].concat();
    tfarrow(&[&["convert"], &copy[..]].concat()).ends(0);
    refused(&copy, "is a source in the folder of the outputs");
    fs::remove_dir_all(&inner).unwrap();
    run_parts(&["convert", text(&source), text(&source)], 2);
    fs::remove_dir_all(folder.path().join("source")).unwrap();

    // A conversion of all shards has a journal.
    let source = data_set(folder.path());
    let journal = Path::new(&out).join(".tfarrow-convert.journal");
    fs::create_dir(&out).unwrap();
    fs::write(&journal, "{\"conversion\":\"x\"}\n").unwrap();
    for more in [&[][..], &["--overwrite"], &["--resume"], &["--dry-run"]] {
        refused(
            &[&[text(&source), &out][..], &part, more].concat(),
            "a conversion of all shards to this folder runs",
        );
    }
    fs::remove_file(journal).unwrap();
    tfarrow(&[&["convert", text(&source), &out, "--resume"][..], &part].concat()).ends(0);
}
