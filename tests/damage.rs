//! Damaged files: the faults that `verify` reports, the records that `repair` saves, and reading
//! after damage.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;
use tfarrow_testkit::{
    frame,
    proto::{self, KindOneof},
};

use crate::support::{self, tfarrow, tfarrow_with_files};

/// An Example with an integer feature `x` and `padding` bytes of padding.
fn example(x: u8, padding: usize) -> Vec<u8> {
    proto::example([
        ("pad", KindOneof::bytes(vec![b'.'; padding])),
        ("x", KindOneof::ints([i64::from(x & 0x7f)])),
    ])
}

/// A generator of pseudo-random numbers below its argument.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below.max(1)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn json(args: &[&str]) -> Value {
    let run = tfarrow(args);
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", run.stderr))
}

#[test]
fn verify_reports_each_fault_with_its_position() {
    let run = tfarrow(&[
        "verify",
        "testdata/corrupt/length.tfrecord",
        "testdata/corrupt/data.tfrecord",
    ]);
    let lines: Vec<_> = run.stdout.lines().collect();
    assert!(
        lines[0].starts_with(
            "testdata/corrupt/length.tfrecord: record 1 (byte 72): the length's CRC is "
        ),
        "{lines:?}"
    );
    assert!(lines[0].ends_with("(72 bytes lost)"), "{lines:?}");
    assert!(
        lines[1]
            .starts_with("testdata/corrupt/data.tfrecord: record 1 (byte 72): the data's CRC is "),
        "{lines:?}"
    );
    let stderr = run.ends(3);
    assert_eq!(
        stderr,
        "tfarrow: 2 files, 4 valid records, 224 B: 2 faults (1 length, 1 data)\n"
    );
    let found = json(&["verify", "testdata/corrupt/*.tfrecord*", "--format", "json"]);
    let kinds: Vec<_> = found["counts"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_u64().unwrap()))
        .collect();
    assert_eq!(
        kinds,
        [("compression", 5), ("data", 2), ("length", 4), ("tail", 4)]
    );
    assert_eq!(found["faults"].as_array().unwrap().len(), 15);
    let sound = tfarrow(&[
        "verify",
        "testdata/shards",
        "testdata/wire",
        "testdata/sequence.tfrecord",
    ]);
    assert_eq!(sound.stdout, "");
    assert!(sound.ends(0).ends_with(": no faults\n"));
}

#[test]
fn verify_continues_after_a_file_that_is_not_tfrecord() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("a.tfrecord"),
        b"{\"not\": \"TFRecord\", \"and\": \"long enough to tell\"}",
    )
    .unwrap();
    fs::write(
        folder.path().join("b.tfrecord"),
        frame::file([example(1, 10)]),
    )
    .unwrap();
    let run = tfarrow(&["verify", text(folder.path())]);
    assert!(run.stdout.contains("a.tfrecord: "), "{}", run.stdout);
    assert!(run.ends(3).contains("2 files, 1 valid record"));
    // A record of another type is a fault if the other records are Examples or if `--record-type`
    // is given.
    let odd = [example(1, 10), b"\xff\xff".to_vec(), example(2, 10)];
    fs::write(folder.path().join("a.tfrecord"), frame::file(odd)).unwrap();
    let run = tfarrow(&["verify", text(&folder.path().join("a.tfrecord"))]);
    assert!(run.stdout.contains("record 1 (byte "), "{}", run.stdout);
    assert!(run.ends(3).contains("(1 message)"));
    fs::write(
        folder.path().join("raw.tfrecord"),
        frame::file([b"\xff\xff", b"\xff\xfe"]),
    )
    .unwrap();
    let raw = folder.path().join("raw.tfrecord");
    tfarrow(&["verify", text(&raw)]).ends(0);
    tfarrow(&["verify", text(&raw), "--record-type", "example"]).ends(3);
}

#[test]
fn verify_continues_after_an_exceeded_limit_and_an_unreadable_file() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let many = |count: i64| {
        proto::example([
            ("short", KindOneof::ints([1])),
            ("long", KindOneof::ints(0..count)),
        ])
    };
    fs::write(path("a.tfrecord"), frame::file([many(2), many(9), many(3)])).unwrap();
    fs::write(path("b.tfrecord"), frame::file([example(1, 10)])).unwrap();
    let run = tfarrow(&["verify", text(folder.path()), "--limit", "values=5"]);
    assert!(
        run.stdout.contains("a.tfrecord: record 1 (byte 50): feature \"long\": values: found 9, the limit values is 5"),
        "{}",
        run.stdout
    );
    let stderr = run.ends(3);
    assert!(
        stderr.contains("2 files, 3 valid records") && stderr.contains("(1 limit)"),
        "{stderr}"
    );
    assert!(stderr.contains("--limit values=N allows more"), "{stderr}");
    let error = tfarrow(&[
        "convert",
        &path("a.tfrecord"),
        &path("a.parquet"),
        "--limit",
        "values=5",
    ])
    .fails();
    assert!(
        error.contains("feature \"long\"") && error.contains("--limit values=N allows more"),
        "{error}"
    );
    // The limits of columns and of names do not apply to verify. Values are verified under every
    // name.
    tfarrow(&[
        "verify",
        text(folder.path()),
        "--limit",
        "columns=1",
        "--limit",
        "name-bytes=7",
    ])
    .ends(0);
    for limits in [&["--limit", "columns=1"][..], &[]] {
        let run = tfarrow(
            &[
                &["verify", text(folder.path()), "--limit", "values=5"],
                limits,
            ]
            .concat(),
        );
        assert!(run.ends(3).contains("(1 limit)"));
    }
    let odd = proto::example([
        ("a", KindOneof::ints([1])),
        ("b", KindOneof::floats([1.0])),
        ("c", KindOneof::ints([1])),
    ]);
    let mut torn = odd.clone();
    // The list of floats loses one byte, so that each length around it is one less.
    let at = torn
        .windows(4)
        .position(|bytes| bytes == 1.0_f32.to_le_bytes())
        .unwrap();
    torn.remove(at);
    torn.iter_mut()
        .take(at)
        .enumerate()
        .for_each(|(i, byte)| *byte -= u8::from([1, at - 1, at - 3, at - 5, at - 10].contains(&i)));
    fs::create_dir(path("torn")).unwrap();
    fs::write(
        path("torn/a.tfrecord"),
        frame::file([odd.clone(), torn, odd]),
    )
    .unwrap();
    for limits in [&["--limit", "columns=1"][..], &[]] {
        let run = tfarrow(&[&["verify", &path("torn")], limits].concat());
        assert!(
            run.stdout.contains("a packed list of numbers"),
            "{}",
            run.stdout
        );
        assert!(run.ends(3).contains("(1 message)"));
    }
    fs::remove_dir_all(path("torn")).unwrap();
    let error = tfarrow(&["schema", text(folder.path()), "--limit", "name-bytes=7"]).fails();
    assert!(
        error.contains("--limit name-bytes=N allows more"),
        "{error}"
    );
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", path("c.tfrecord")).unwrap();
        let run = tfarrow(&["verify", text(folder.path())]);
        assert!(
            run.stdout.contains("c.tfrecord: is a link to "),
            "{}",
            run.stdout
        );
        assert!(run.ends(3).contains("3 files, 4 valid records"));
    }
}

/// A process with a low limit of open files cannot open some. The exit status is then 1 with
/// advice, and no fault of the data is reported.
#[test]
#[cfg(unix)]
fn too_few_file_descriptors_are_not_reported_as_damage() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for set in ["records/", "columns/"] {
        fs::create_dir(path(set)).unwrap();
    }
    for shard in 0..40 {
        fs::write(
            path(&format!("records/{shard}.tfrecord")),
            frame::file([example(1, 10)]),
        )
        .unwrap();
    }
    tfarrow(&["convert", &path("records"), &path("columns/")]).ends(0);
    let (records, columns, out) = (path("records"), path("columns"), path("out/"));
    let query = format!("SELECT count(*) FROM '{records}/'");
    let commands: [&[&str]; 11] = [
        &["verify", &records],
        &["verify", &columns],
        &["repair", &records, &out, "--overwrite"],
        &[
            "convert",
            &records,
            &out,
            "--on-error",
            "skip",
            "--overwrite",
        ],
        &["schema", &records, "--on-error", "skip"],
        &["stats", &records, "--on-error", "skip"],
        &[
            "validate",
            &records,
            "--baseline",
            &records,
            "--on-error",
            "skip",
        ],
        &["diff", &records, &records, "--on-error", "skip"],
        &["count", &records],
        &["head", &records, "-n", "1000"],
        &["sql", "--on-error", "skip", &query],
    ];
    for command in commands {
        let mut refused = 0;
        for files in (6..24).chain([500]) {
            let run = tfarrow_with_files(files, command);
            match run.status {
                Some(0) => {}
                Some(1) if files < 500 => {
                    refused += u32::from(run.stderr.contains("Too many open files"))
                }
                // A crash: a thread or a system library had too few files.
                None | Some(101..) if files < 12 => {}
                status => panic!(
                    "{command:?} with {files} files: {status:?}: {}{}",
                    run.stdout, run.stderr
                ),
            }
        }
        println!("{command:?}: refused {refused} times");
        assert!(refused > 0, "{command:?}");
    }
    let stderr = (6..24)
        .map(|files| tfarrow_with_files(files, &["verify", &records]).stderr)
        .collect::<String>();
    assert!(
        stderr.contains("raise the limit of open files, e.g. with ulimit -n 1024"),
        "{stderr}"
    );
}

#[test]
fn verify_reports_missing_shards_and_skipped_files() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for shard in [0, 1, 3] {
        fs::write(
            path(&format!("train-0000{shard}-of-00004.tfrecord")),
            frame::file([example(1, 10)]),
        )
        .unwrap();
    }
    fs::write(path("notes.md"), "of no known format").unwrap();
    let stderr = tfarrow(&["verify", text(folder.path())]).ends(0);
    assert!(
        stderr.contains("1 of 4 shards is missing, the first ")
            && stderr.contains("train-00002-of-00004"),
        "{stderr}"
    );
    assert!(
        stderr.contains("skipped: 1 of no known format (such as "),
        "{stderr}"
    );
    let stderr = tfarrow(&["convert", text(folder.path()), &path("out/")]).ends(0);
    assert!(stderr.contains("1 of 4 shards is missing"), "{stderr}");
    fs::remove_dir_all(path("out")).unwrap();
    let found = json(&["verify", text(folder.path()), "--format", "json"]);
    assert_eq!(
        (&found["missing"][0]["shards"], &found["missing"][0]["of"]),
        (&1.into(), &4.into())
    );
}

/// The CRCs of TFRecord are lost in a conversion. Files of `convert` have checksums in their place.
#[test]
fn verify_compares_parquet_and_arrow_with_their_checksums() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(
        path("a.tfrecord"),
        frame::file((0..100).map(|x| example(x, 500 + 7 * usize::from(x)))),
    )
    .unwrap();
    for (name, more) in [
        ("out/a.parquet", &["--row-group-rows", "30"][..]),
        ("out/a.arrow", &[]),
    ] {
        fs::create_dir_all(path("out")).unwrap();
        let plain = [
            "convert",
            &path("a.tfrecord"),
            &path(name),
            "--compression",
            "none",
        ];
        tfarrow(&[&plain, more].concat()).ends(0);
    }
    assert!(
        tfarrow(&["verify", &path("out")])
            .ends(0)
            .contains("2 files, 200 valid records")
    );
    // Most bytes of the files are padding, so that the flipped bytes are in values.
    for (name, places) in [
        ("out/a.parquet", &[10_000, 70_000][..]),
        ("out/a.arrow", &[50_000]),
    ] {
        let mut bytes = fs::read(path(name)).unwrap();
        places.iter().for_each(|place| bytes[*place] ^= 0x40);
        fs::write(path(name), bytes).unwrap();
    }
    let found = json(&["verify", &path("out"), "--format", "json"]);
    assert_eq!(
        (
            &found["counts"]["data"],
            &found["files"],
            &found["record_type"]
        ),
        (&3.into(), &2.into(), &Value::Null)
    );
    let records: Vec<_> = found["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["record"].as_u64().unwrap())
        .collect();
    assert_eq!(
        (found["records"].as_u64(), records),
        (Some(40), vec![0, 0, 60]),
        "{found}"
    );
    let run = tfarrow(&["verify", &path("out/a.parquet"), "--max-faults", "1"]);
    assert!(
        run.stdout.contains(
            "a.parquet: row group 0 (30 records from 0 on, at byte 12) is corrupt: its checksum does not match"
        )
    );
    assert!(run.ends(3).contains("1 more fault"));
    for command in [
        &["convert", &path("out/a.parquet"), &path("b.tfrecord")][..],
        &["diff", &path("a.tfrecord"), &path("out/a.arrow")],
    ] {
        assert!(
            tfarrow(command)
                .ends(1)
                .contains("is corrupt: its checksum does not match")
        );
    }
    assert!(!folder.path().join("b.tfrecord").exists());
    // Files of other writers have no checksums. Checksums that a writer copies with the metadata of
    // its source are ignored.
    let copy = format!(
        "COPY (SELECT * FROM '{}') TO '{}'",
        path("a.tfrecord"),
        path("c.parquet")
    );
    tfarrow(&["sql", &copy]).ends(0);
    let stderr = tfarrow(&["verify", &path("c.parquet")]).ends(0);
    assert!(
        stderr.contains("1 file without checksums") && stderr.contains("100 valid records"),
        "{stderr}"
    );
}

/// Other writers store CRCs of pages. Every command that reads Parquet verifies them.
#[test]
fn crcs_of_parquet_pages_are_verified() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a.parquet");
    let mut bytes = fs::read(support::path("testdata/parquet/page_crc.parquet")).unwrap();
    fs::write(&file, &bytes).unwrap();
    let sum = format!("SELECT sum(label) FROM '{}'", text(&file));
    assert!(
        tfarrow(&["verify", text(&file)])
            .ends(0)
            .contains("100 valid records")
    );
    assert!(tfarrow(&["sql", &sum]).prints().contains("4950"));
    // The lowest byte of the value 50, which a reader that does not verify the CRC reads as 51.
    let place = bytes
        .windows(8)
        .position(|window| window == 50u64.to_le_bytes())
        .unwrap();
    bytes[place] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let back = folder.path().join("back.tfrecord");
    for (command, status) in [
        (&["verify", text(&file)][..], 3),
        (
            &["convert", text(&file), text(&back), "--to", "tfrecord"],
            1,
        ),
        (&["head", text(&file)], 1),
        (&["sql", &sum], 1),
    ] {
        let run = tfarrow(command);
        let output = format!("{}{}", run.stdout, run.stderr);
        assert!(
            output.contains("Page CRC checksum mismatch"),
            "{command:?}: {output}"
        );
        run.ends(status);
    }
    assert!(!back.exists());
}

/// A file with corrupt first bytes, or an empty file that a full disk left, is not skipped: its
/// extension determines the format.
#[test]
fn corrupt_files_named_parquet_or_arrow_are_not_skipped() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(
        path("a.tfrecord"),
        frame::file((0..3).map(|x| example(x, 50))),
    )
    .unwrap();
    for name in [
        "set/a.parquet",
        "set/b.parquet",
        "other/a.arrow",
        "other/b.arrow",
    ] {
        fs::create_dir_all(path(name).rsplit_once('/').unwrap().0).unwrap();
        tfarrow(&["convert", &path("a.tfrecord"), &path(name)]).ends(0);
    }
    for (set, name) in [("set", "set/b.parquet"), ("other", "other/b.arrow")] {
        let whole = fs::read(path(name)).unwrap();
        for bytes in [&[&[0], &whole[1..]].concat()[..], &[], &[0; 100]] {
            fs::write(path(name), bytes).unwrap();
            for source in [set, name] {
                assert_eq!(
                    json(&["verify", &path(source), "--format", "json"])["faults"][0]["file"],
                    path(name)
                );
                tfarrow(&["convert", &path(source), &path("back"), "--to", "tfrecord"]).ends(1);
                // SQL can read a file in which only the first byte is corrupt.
                if bytes.len() < whole.len() {
                    tfarrow(&["sql", &format!("SELECT count(*) FROM '{}'", path(source))]).ends(1);
                }
            }
        }
        // With another extension, the last bytes of the file determine the format.
        fs::remove_file(path(name)).unwrap();
        fs::write(path(&format!("{set}/c.bin")), [&[0], &whole[1..]].concat()).unwrap();
        assert_eq!(
            json(&["verify", &path(set), "--format", "json"])["counts"]["data"],
            1
        );
        tfarrow(&["convert", &path(set), &path("back"), "--to", "tfrecord"]).ends(1);
    }
}

/// Bytes after the place where decompression fails are lost too. They are reported, and kept in the
/// quarantine.
#[test]
fn bytes_that_cannot_be_decompressed_are_counted_and_quarantined() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut pick = random(3);
    let payloads: Vec<_> = (0..3000)
        .map(|_| (0..50).map(|_| pick(16) as u8).collect::<Vec<_>>())
        .collect();
    fs::write(path("a.tfrecord"), frame::file(&payloads)).unwrap();
    tfarrow(&[
        "convert",
        &path("a.tfrecord"),
        &path("b.tfrecord.gz"),
        "--record-type",
        "raw",
    ])
    .ends(0);
    let mut stored = fs::read(path("b.tfrecord.gz")).unwrap();
    let half = stored.len() / 2;
    stored[half..half + 20].fill(0xff);
    fs::write(path("b.tfrecord.gz"), &stored).unwrap();
    tfarrow(&[
        "repair",
        &path("b.tfrecord.gz"),
        &path("c.tfrecord.gz"),
        "--quarantine",
        &path("q"),
    ])
    .ends(3);
    let query = format!(
        "SELECT stored, sum(octet_length(data)) AS bytes FROM '{}' GROUP BY stored ORDER BY stored",
        path("q")
    );
    let kept = tfarrow(&["sql", &query, "--format", "csv"]).prints();
    let bytes: Vec<u64> = kept
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap().1.parse().unwrap())
        .collect();
    let lost = json(&["verify", &path("b.tfrecord.gz"), "--format", "json"]);
    let lost = lost["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["bytes"].as_u64().unwrap());
    assert_eq!(lost.sum::<u64>(), bytes.iter().sum::<u64>());
    assert!(
        bytes.len() == 2 && bytes[1] > 10_000 && bytes[1] < (stored.len() - half) as u64,
        "{kept}"
    );
}

/// A file with a damaged header does not prevent the repair of the files beside it.
#[test]
fn a_damaged_gzip_header_loses_only_its_own_file() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(path("in")).unwrap();
    fs::write(
        path("in/a.tfrecord"),
        frame::file([example(1, 10), example(2, 10)]),
    )
    .unwrap();
    tfarrow(&["convert", &path("in/a.tfrecord"), &path("in/b.tfrecord.gz")]).ends(0);
    let mut stored = fs::read(path("in/b.tfrecord.gz")).unwrap();
    stored[2] ^= 1;
    fs::write(path("in/b.tfrecord.gz"), &stored).unwrap();
    let error = tfarrow(&["convert", &path("in"), &path("out/")]).fails();
    assert!(
        error.contains("starts like gzip, but its header is corrupt; "),
        "{error}"
    );
    assert!(
        error.ends_with("tfarrow repair recovers the valid records after the damage"),
        "{error}"
    );
    tfarrow(&[
        "repair",
        &path("in"),
        &path("saved/"),
        "--quarantine",
        &path("q"),
    ])
    .ends(3);
    assert_eq!(
        tfarrow(&["count", &path("saved/a.tfrecord")]).prints(),
        "2\n"
    );
    let query = format!("SELECT octet_length(data) FROM '{}'", path("q"));
    assert!(
        tfarrow(&["sql", &query, "--format", "csv"])
            .prints()
            .ends_with(&format!("\n{}\n", stored.len()))
    );
    tfarrow(&["convert", &path("in"), &path("out/"), "--on-error", "skip"]).ends(3);
}

/// A query that ends early at its limit reports the records that it skipped.
#[test]
fn a_limit_does_not_hide_skipped_records() {
    let folder = TempDir::new().unwrap();
    let path = folder
        .path()
        .join("a.tfrecord")
        .to_str()
        .unwrap()
        .to_owned();
    let mut bytes = frame::file((0..50_000).map(|i| example(i as u8, 100)));
    let frame = bytes.len() / 50_000;
    bytes[3 * frame + 40] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for _ in 0..30 {
        let stderr = tfarrow(&[
            "sql",
            &format!("SELECT x FROM '{path}' LIMIT 5"),
            "--on-error",
            "skip",
        ])
        .ends(3);
        assert!(stderr.contains("skipped 1 record"), "{stderr}");
    }
}

/// A query with a limit reports skipped records for any number of files, and with a filter.
#[test]
fn a_limit_over_many_files_does_not_hide_skipped_records() {
    let folder = TempDir::new().unwrap();
    for shard in 0..8 {
        let mut bytes = frame::file((0..3000).map(|i| example(i as u8, 20)));
        let frame = bytes.len() / 3000;
        (bytes[frame + 30], bytes[5 * frame]) = (bytes[frame + 30] ^ 1, bytes[5 * frame] ^ 1);
        fs::write(folder.path().join(format!("{shard}.tfrecord")), &bytes).unwrap();
    }
    let all = text(folder.path());
    for query in [
        format!("SELECT x FROM '{all}' WHERE x < 100 LIMIT 12000"),
        format!(
            "SELECT x FROM '{all}' WHERE x < 100 UNION ALL SELECT x FROM '{all}' WHERE x > 5 LIMIT 24000"
        ),
    ] {
        for _ in 0..10 {
            let stderr = tfarrow(&["sql", &query, "--on-error", "skip"]).ends(3);
            assert!(
                stderr.contains("skipped ") && stderr.lines().count() == 1,
                "{query}: {stderr}"
            );
        }
    }
    // Each of two statements reports its own skipped records.
    let one = format!(
        "SELECT sum(x) FROM '{all}/1.tfrecord'; SELECT 1; SELECT sum(x) FROM '{all}/2.tfrecord'"
    );
    let stderr = tfarrow(&["sql", &one, "--on-error", "skip"]).ends(3);
    assert!(
        stderr.lines().count() == 2
            && stderr
                .lines()
                .all(|line| line.contains("skipped 1 record, and")),
        "{stderr}"
    );
}

/// A query over all records reports the skipped records once, for any number of files.
#[test]
fn skipped_records_are_reported_once() {
    let folder = TempDir::new().unwrap();
    for shard in 0..8 {
        let mut bytes = frame::file((0..1000).map(|i| example(i as u8, 100)));
        bytes[40] ^= 1;
        fs::write(folder.path().join(format!("{shard}.tfrecord")), &bytes).unwrap();
    }
    let query = format!("SELECT sum(x) FROM '{}'", text(folder.path()));
    for _ in 0..10 {
        let stderr = tfarrow(&["sql", &query, "--on-error", "skip"]).ends(3);
        assert!(
            stderr.contains("skipped 8 records") && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
}

/// SQL reads chunks of a megabyte, and reports a range that is longer in several notices.
#[test]
fn all_bytes_of_a_long_skipped_range_are_reported() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.tfrecord");
    let garbage = 5_000_000;
    let records = frame::file((0..1000).map(|i| example(i as u8, 100)));
    let bytes = [&records[..], &vec![0xa5; garbage], &records].concat();
    fs::write(&path, &bytes).unwrap();
    let query = format!("SELECT count(x) FROM '{}'", text(&path));
    for args in [["sql", &query], ["count", text(&path)]] {
        let stderr = tfarrow(&[&args[..], &["--on-error", "skip"]].concat()).ends(3);
        let expect = format!("skipped {garbage} bytes in 1 place");
        assert!(stderr.contains(&expect), "{args:?}: {stderr}");
    }
}

#[test]
fn head_decodes_the_records_before_damage() {
    let folder = TempDir::new().unwrap();
    let path = folder
        .path()
        .join("a.tfrecord")
        .to_str()
        .unwrap()
        .to_owned();
    let mut bytes = frame::file((0..30).map(|i| example(i, 10)));
    let frame = bytes.len() / 30;
    // The message of the damaged record cannot be parsed.
    bytes[20 * frame + 12..20 * frame + 16].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let printed = tfarrow(&["head", &path, "-n", "2"]).prints();
    assert!(printed.starts_with("{\"pad\":"), "{printed}");
    let run = tfarrow(&["head", &path, "-n", "25"]);
    assert_eq!(run.stdout.lines().count(), 20);
    assert!(run.ends(1).contains("record 20 ("));
}

/// Damages a file in 100 places without a change of its length. Repair saves every record that was
/// not damaged.
#[test]
fn repair_saves_every_undamaged_record() {
    for seed in 1..6 {
        let folder = TempDir::new().unwrap();
        let mut pick = random(seed);
        let payloads: Vec<_> = (0..2000).map(|i| example(i as u8, pick(400))).collect();
        let sound = frame::file(&payloads);
        let mut damaged = sound.clone();
        for _ in 0..100 {
            let at = pick(damaged.len());
            let len = [1, 1, 4, 30, 300][pick(5)].min(damaged.len() - at);
            let zeros = pick(3) == 0;
            for byte in &mut damaged[at..at + len] {
                *byte = if zeros { 0 } else { *byte ^ (1 << pick(8)) };
            }
        }
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("damaged.tfrecord"), &damaged).unwrap();
        let run = tfarrow(&[
            "repair",
            &path("damaged.tfrecord"),
            &path("saved.tfrecord"),
            "--quarantine",
            &path("lost.tfrecord"),
        ]);
        assert!(!run.stdout.is_empty());
        run.ends(3);
        let mut at = 0;
        let untouched: Vec<_> = payloads
            .iter()
            .filter(|payload| {
                let frame = at..at + payload.len() + 16;
                at = frame.end;
                damaged[frame.clone()] == sound[frame]
            })
            .collect();
        assert!(untouched.len() < payloads.len() && untouched.len() > payloads.len() / 2);
        let saved = fs::read(path("saved.tfrecord")).unwrap();
        let saved = frame::read(&saved).unwrap();
        assert!(
            saved.iter().eq(untouched
                .iter()
                .map(|payload| payload.as_slice())
                .collect::<Vec<_>>()
                .iter())
        );
        // The saved bytes and the lost bytes add up to the file. A fault of the data counts the
        // bytes without the frame.
        let lost = json(&["verify", &path("damaged.tfrecord"), "--format", "json"]);
        let bytes = |kind: &str, frame: u64| -> u64 {
            let faults = lost["faults"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|fault| fault["kind"] == kind);
            faults
                .map(|fault| fault["bytes"].as_u64().unwrap() + frame)
                .sum()
        };
        let saved: u64 = saved.iter().map(|payload| payload.len() as u64 + 16).sum();
        assert_eq!(
            saved + bytes("length", 0) + bytes("tail", 0) + bytes("data", 16),
            damaged.len() as u64
        );
        // A long corrupt range may be several records of the quarantine.
        let query = format!(
            "SELECT sum(octet_length(data)) FROM '{}'",
            path("lost.tfrecord")
        );
        let kept = tfarrow(&["sql", &query, "--format", "csv"]).prints();
        let all = bytes("length", 0) + bytes("tail", 0) + bytes("data", 0);
        assert_eq!(kept.lines().nth(1).unwrap(), all.to_string());
    }
}

/// Frames inside the data of a damaged record are not records of the file.
#[test]
fn frames_inside_a_damaged_record_are_not_saved_as_records() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let inner = frame::file([example(1, 5), example(2, 5)]);
    let mut file = frame::file([example(3, 5), inner, example(4, 5)]);
    let at = frame::file([example(3, 5)]).len() + 12 + 20;
    file[at] ^= 1;
    fs::write(path("a.tfrecord"), &file).unwrap();
    tfarrow(&["repair", &path("a.tfrecord"), &path("b.tfrecord")]).ends(3);
    let saved = fs::read(path("b.tfrecord")).unwrap();
    assert_eq!(frame::read(&saved).unwrap(), [example(3, 5), example(4, 5)]);
}

#[test]
fn repair_to_standard_output_prints_only_records() {
    let output = crate::support::command(&["repair", "testdata/corrupt/length.tfrecord", "-"])
        .output()
        .unwrap();
    assert_eq!(frame::read(&output.stdout).unwrap().len(), 2);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("record 1 (byte 72)")
    );
    tfarrow(&[
        "repair",
        "testdata/corrupt/length.tfrecord",
        "-",
        "--format",
        "json",
    ])
    .ends(2);
}

#[test]
fn repair_of_a_valid_file_changes_no_record() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out/");
    let run = tfarrow(&[
        "repair",
        "testdata/compressed",
        &format!("{}/", text(&out)),
        "--quarantine",
        text(&folder.path().join("q")),
    ]);
    run.ends(0);
    assert!(!folder.path().join("q").exists(), "nothing was lost");
    for entry in fs::read_dir("../../testdata/compressed").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.contains("tfrecord") && !name.ends_with(".json") {
            let (before, after) = (format!("testdata/compressed/{name}"), out.join(&name));
            tfarrow(&["diff", &before, text(&after)]).prints();
        }
    }
    let stderr = tfarrow(&[
        "repair",
        "testdata/shards",
        text(&folder.path().join("x.parquet")),
    ])
    .ends(2);
    assert!(stderr.contains("x.parquet"), "{stderr}");
}

/// A quarantine replaces neither a source nor an output.
#[test]
fn a_quarantine_at_the_path_of_another_file_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::copy(
        crate::support::path("testdata/corrupt/data.tfrecord"),
        path("a.tfrecord"),
    )
    .unwrap();
    let before = fs::read(path("a.tfrecord")).unwrap();
    fs::write(path("there"), "there").unwrap();
    let cases: [(&[&str], &str); 7] = [
        (
            &[&path("a.tfrecord"), &path("b"), "--quarantine", &path("c/")],
            "is a folder",
        ),
        (
            &[
                &path("a.tfrecord"),
                &path("b"),
                "--quarantine",
                &path("c.parquet"),
            ],
            "the name says parquet",
        ),
        (
            &[&path("a.tfrecord"), &path("a.tfrecord"), "--overwrite"],
            "is a source",
        ),
        (
            &[
                &path("a.tfrecord"),
                &path("b"),
                "--quarantine",
                &path("a.tfrecord"),
                "--overwrite",
            ],
            "is a source",
        ),
        (
            &[
                &path("a.tfrecord"),
                &path("b"),
                "--quarantine",
                &path("b/a.tfrecord"),
                "--overwrite",
            ],
            "is an output",
        ),
        (
            &[
                &path("a.tfrecord"),
                &path("b"),
                "--quarantine",
                &path("there"),
            ],
            "--overwrite replaces it",
        ),
        (
            &[&path("a.tfrecord"), &path("b"), "--quarantine", "-"],
            "must be a file",
        ),
    ];
    for (args, expected) in cases {
        let stderr = tfarrow(&[&["repair"], args].concat()).ends(2);
        assert!(
            stderr.contains(expected) && !stderr.contains("--resume"),
            "{args:?}: {stderr}"
        );
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["a.tfrecord", "there"], "{args:?}");
    }
    assert_eq!(fs::read(path("a.tfrecord")).unwrap(), before);
}

#[test]
#[cfg(unix)]
fn a_quarantine_that_is_an_output_by_another_path_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(path("b")).unwrap();
    std::os::unix::fs::symlink(path("b"), path("link")).unwrap();
    let corrupt = "testdata/corrupt/data.tfrecord";
    let set = ["--to", "tfrecord", "--on-error", "skip"];
    let cases: [(&[&str], &str, &str); 6] = [
        (
            &["repair", corrupt, &path("b")],
            "link/data.tfrecord",
            "is an output",
        ),
        (
            &["repair", corrupt, &path("link/")],
            "b/data.tfrecord",
            "is an output",
        ),
        (
            &["convert", corrupt, &path("b"), "--shards", "2"],
            "b/data-00001-of-00002.tfrecord",
            "is an output",
        ),
        (
            &["convert", corrupt, &path("b"), "--shard-size", "9kB"],
            "link/data-00003-of-00004.tfrecord",
            "is an output",
        ),
        (
            &["repair", corrupt, &path("b")],
            "missing/q",
            "its folder does not exist; create it first",
        ),
        (
            &["repair", corrupt, &path("b")],
            ".tfarrow-q",
            "is a name of unfinished files",
        ),
    ];
    for (args, quarantine, expected) in cases {
        let more: &[&str] = if args[0] == "convert" { &set } else { &[] };
        let stderr = tfarrow(&[args, more, &["--quarantine", &path(quarantine)]].concat()).ends(2);
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
        assert_eq!(fs::read_dir(path("b")).unwrap().count(), 0, "{args:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{args:?}");
    }
}

#[test]
fn no_quarantine_is_written_if_no_record_is_lost() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let sound = "testdata/scalar.tfrecord";
    let skip = ["convert", sound, &path("b.parquet"), "--on-error", "skip"];
    let quarantine = path("q.tfrecord");
    for args in [&["repair", sound, &path("a.tfrecord")][..], &skip] {
        let with = [args, &["--quarantine", &quarantine]].concat();
        tfarrow(&with).ends(0);
        assert!(!folder.path().join("q.tfrecord").exists(), "{args:?}");
        tfarrow(&[&with[..], &["--resume"]].concat()).ends(0);
        assert!(!folder.path().join("q.tfrecord").exists(), "{args:?}");
        // The quarantine of an earlier run is out of date, and is removed.
        fs::write(path("q.tfrecord"), frame::file([b"earlier"])).unwrap();
        tfarrow(&[&with[..], &["--overwrite"]].concat()).ends(0);
        assert!(!folder.path().join("q.tfrecord").exists(), "{args:?}");
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert!(
            left == ["a.tfrecord"] || left == ["a.tfrecord", "b.parquet"],
            "{left:?}"
        );
    }
    // A quarantine with lost records can be queried.
    tfarrow(&[
        "repair",
        "testdata/corrupt/data.tfrecord",
        &path("c.tfrecord"),
        "--quarantine",
        &path("q.tfrecord"),
    ])
    .ends(3);
    let query = format!("SELECT record FROM '{}'", path("q.tfrecord"));
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", &query]).prints(),
        "record\n1\n"
    );
}

#[test]
fn the_exit_status_reports_faults_if_standard_output_is_closed() {
    let corrupt = "testdata/corrupt/data.tfrecord";
    let folder = TempDir::new().unwrap();
    let sound = folder.path().join("sound.tfrecord");
    for args in [
        &["verify", corrupt][..],
        &["diff", "testdata/shards", "testdata/scalar.tfrecord"],
        &["repair", corrupt, text(&sound)],
    ] {
        let mut child = crate::support::command(args).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(3), "{args:?}");
    }
}

#[test]
fn partial_tail_ignore_accepts_a_truncated_last_record() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = frame::file((0..50).map(|i| example(i, 100)));
    for cut in [1, 5, 12, 60, 120] {
        fs::write(path("a.tfrecord"), &whole[..whole.len() - cut]).unwrap();
        let (file, dest) = (path("a.tfrecord"), path("a.parquet"));
        let query = format!("SELECT count(*) FROM '{file}'");
        let ways: [&[&str]; 6] = [
            &["count", &file],
            &["sql", &query, "--format", "csv"],
            &["schema", &file],
            &["stats", &file],
            &["verify", &file],
            &["convert", &file, &dest, "--overwrite"],
        ];
        for way in ways {
            let failed = tfarrow(way);
            assert!([Some(1), Some(3)].contains(&failed.status), "{way:?}");
            let run = tfarrow(&[way, &["--partial-tail", "ignore"]].concat());
            assert_eq!(run.status, Some(0), "{way:?}: {}", run.stderr);
        }
        assert_eq!(
            tfarrow(&["count", &file, "--partial-tail", "ignore"]).prints(),
            "49\n"
        );
        assert_eq!(tfarrow(&["count", &dest]).prints(), "49\n");
    }
}

/// Two concatenated files, of which the first is truncated. Reading continues with the first whole
/// record after the end of the truncated one.
#[test]
fn reading_continues_after_a_truncated_file_in_a_concatenation() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (one, other) = (
        frame::file((0..10).map(|i| example(i, 100))),
        frame::file((0..10).map(|i| example(i, 100))),
    );
    fs::write(
        path("a.tfrecord"),
        [&one[..one.len() - 20], &other].concat(),
    )
    .unwrap();
    let found = json(&["verify", &path("a.tfrecord"), "--format", "json"]);
    // The truncated record has a valid length, by which it reaches into the first record of the
    // second file.
    assert_eq!(found["records"], 9 + 9);
    fs::write(path("b.tfrecord"), [&one[..], &other].concat()).unwrap();
    assert_eq!(tfarrow(&["count", &path("b.tfrecord")]).prints(), "20\n");
}

#[test]
fn all_commands_continue_after_damage_and_report_it() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut bytes = frame::file((0..100).map(|i| example(i, 100)));
    let frame = bytes.len() / 100;
    bytes[3 * frame + 2] ^= 1;
    bytes[50 * frame + 40] ^= 1;
    bytes.truncate(bytes.len() - 9);
    fs::write(path("a.tfrecord"), &bytes).unwrap();
    let (file, dest) = (path("a.tfrecord"), path("a.parquet"));
    let query = format!("SELECT count(*) FROM '{file}'");
    for way in [
        &["sql", &query, "--format", "csv"][..],
        &["schema", &file],
        &["stats", &file],
        &["convert", &file, &dest],
        &["convert", &file, &path("b.tfrecord")],
    ] {
        let stderr = tfarrow(&[way, &["--on-error", "skip"]].concat()).ends(3);
        assert!(
            stderr.contains("skipped 1 record, and "),
            "{way:?}: {stderr}"
        );
        assert!(stderr.contains(" bytes in 2 places"), "{way:?}: {stderr}");
    }
    for made in [&dest, &path("b.tfrecord")] {
        assert_eq!(tfarrow(&["count", made]).prints(), "97\n");
        // The outputs contain exactly the valid records.
        let way = ["diff", &file, made];
        let error = tfarrow(&way).fails();
        assert!(error.contains("record 3 (byte "), "{error}");
        let run = tfarrow(&[&way[..], &["--on-error", "skip"]].concat());
        assert!(run.stdout.ends_with("equal\n"), "{}", run.stdout);
        let stderr = run.ends(3);
        assert!(
            stderr.contains("a.tfrecord: skipped 1 record, and ") && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
    // A record with valid CRCs that is not an Example.
    fs::write(
        path("d.tfrecord"),
        frame::file([example(1, 9), b"\xff\xff".to_vec(), example(2, 9)]),
    )
    .unwrap();
    fs::write(
        path("e.tfrecord"),
        frame::file([example(1, 9), example(2, 9)]),
    )
    .unwrap();
    let way = [
        "diff",
        &path("d.tfrecord"),
        &path("e.tfrecord"),
        "--record-type",
        "example",
    ];
    assert!(tfarrow(&way).fails().contains("record 1 (byte "));
    let run = tfarrow(&[&way[..], &["--on-error", "skip"]].concat());
    assert!(run.stdout.ends_with("equal\n"), "{}", run.stdout);
    assert!(
        run.ends(3)
            .contains("d.tfrecord: skipped 1 record; the first: ")
    );
    let stderr = tfarrow(&[
        "convert",
        &file,
        &path("c.parquet"),
        "--quarantine",
        &path("q"),
    ])
    .ends(2);
    assert!(stderr.contains("--on-error skip"), "{stderr}");
}

/// Unparsable records are skipped at any position and in either data set.
#[test]
fn diff_skips_unparsable_records_at_any_position() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| text(&folder.path().join(name)).to_owned();
    let write =
        |name: &str, records: &[&[u8]]| fs::write(path(name), frame::file(records)).unwrap();
    let records: Vec<_> = (0..4).map(|i| example(i, 10)).collect();
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| &records[i][..]);
    let bad: &[u8] = b"\xff\xff";
    write("abcd", &[a, b, c, d]);
    for (name, stands) in [
        ("last", &[a, b, c, d, bad][..]),
        ("first", &[bad, a, b, c, d]),
        ("alone", &[a, bad, c, d]),
    ] {
        write(name, stands);
        let way = [&*path(name), &path("abcd"), "--record-type", "example"];
        let found = json(
            &[
                &["diff", "--on-error", "skip", "--format", "json"],
                &way[..],
            ]
            .concat(),
        );
        let whole = name != "alone";
        assert_eq!(found["equal"], whole, "{name}: {found}");
        assert_eq!(
            found["records"],
            serde_json::json!([stands.len() - 1, 4]),
            "{name}"
        );
        assert_eq!(
            found["alone"],
            serde_json::json!([0, u8::from(!whole)]),
            "{name}"
        );
        assert_eq!(found["passed_over"][0]["records"], 1, "{name}");
        tfarrow(&[&["diff", "--on-error", "skip"], &way[..]].concat()).ends(3);
        let error = tfarrow(&[&["diff"], &way[..]].concat()).fails();
        assert!(error.contains("not a tf.Example"), "{name}: {error}");
    }
    // Skipped records of identical files are reported too.
    let stderr = tfarrow(&[
        "diff",
        &path("last"),
        &path("last"),
        "--record-type",
        "example",
        "--on-error",
        "skip",
    ])
    .ends(3);
    assert_eq!(
        stderr.matches("skipped 1 record; the first: ").count(),
        2,
        "{stderr}"
    );
    // A file in which one record is not an Example is compared as the record type of the other
    // file.
    tfarrow(&["convert", &path("abcd"), &path("abcd.parquet")]).ends(0);
    assert!(
        tfarrow(&["diff", &path("last"), &path("abcd.parquet")])
            .fails()
            .contains("record 4")
    );
    // If the record type of both files is unknown, raw records are compared, and this is reported.
    let run = tfarrow(&["diff", &path("last"), &path("first")]);
    assert!(
        run.stderr.contains("so all records are taken as they are"),
        "{}",
        run.stderr
    );
    // Missing shards of either data set are reported.
    fs::create_dir(path("set")).unwrap();
    fs::write(path("set/a-00000-of-00002"), frame::file([a, b, c, d])).unwrap();
    let run = tfarrow(&["diff", &path("set"), &path("abcd")]);
    assert!(
        run.stdout.ends_with("equal\n") && run.stderr.contains("00001"),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

/// A record that cannot be parsed as the declared type is reported, and is not an empty record.
#[test]
fn an_unparsable_record_is_not_an_empty_record() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| text(&folder.path().join(name)).to_owned();
    fs::write(
        path("a.tfrecord"),
        frame::file([&example(1, 5)[..], b"\xff\xff", &example(2, 5)]),
    )
    .unwrap();
    let stderr = tfarrow(&["schema", &path("a.tfrecord"), "--record-type", "example"]).ends(3);
    assert!(
        stderr.contains("1 record cannot be parsed") && stderr.contains("record 1 (byte "),
        "{stderr}"
    );
    let run = tfarrow(&["head", &path("a.tfrecord"), "--record-type", "example"]);
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
    assert!(run.stderr.contains("record 1 (byte "), "{}", run.stderr);
    let error = tfarrow(&["sql", &format!("SELECT x FROM '{}'", path("a.tfrecord"))]).fails();
    assert!(
        error.contains("no column x; there is record; ") && error.contains("record 1 (byte "),
        "{error}"
    );
    assert!(
        error.ends_with("SET tfarrow.on_error = 'skip' skips such records"),
        "{error}"
    );
    // The error of a conversion has the position of the unparsable record.
    fs::create_dir(path("set")).unwrap();
    for (name, records) in [
        ("a", &[&example(1, 5)[..], &example(2, 5)][..]),
        ("b", &[&example(3, 5), b"\xff\xff"]),
    ] {
        fs::write(path(&format!("set/{name}.tfrecord")), frame::file(records)).unwrap();
    }
    for to in ["parquet", "arrow"] {
        let out = path(&format!("{to}/"));
        let way = [
            "convert",
            &path("set"),
            &out,
            "--record-type",
            "example",
            "--to",
            to,
            "--jobs",
            "1",
        ];
        let stderr = tfarrow(&way).ends(1);
        assert!(stderr.contains("b.tfrecord: record 1"), "{to}: {stderr}");
    }
}
