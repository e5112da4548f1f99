//! Error messages and exit statuses.

use std::{
    fs,
    process::{Command, Stdio},
};

use tempfile::TempDir;
use tfarrow_testkit::{
    frame,
    proto::{self, KindOneof},
};

use crate::support::{command, path, tfarrow};

#[test]
fn usage_errors_end_with_status_2() {
    for args in [
        &[][..],
        &["count"],
        &["head"],
        &["schema", "--format", "xml", "testdata/scalar.tfrecord"],
        &["sql", "--sample", "0", "SELECT 1"],
        &["convert", "testdata/scalar.tfrecord"],
        &["nosuch"],
    ] {
        let run = tfarrow(args);
        assert_eq!((run.status, run.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(!run.stderr.is_empty());
    }
}

/// The program has no statements without a command.
#[test]
fn statements_without_a_command_have_a_tip() {
    for args in [
        &["-c", "SELECT 1"][..],
        &["FROM 'x'"],
        &["SELECT 1"],
        &["select", "1"],
        &["-q", "-f", "x.sql"],
    ] {
        let error = tfarrow(args).ends(2);
        assert!(
            error.contains("tip: to run SQL, use 'tfarrow sql'"),
            "{args:?}: {error}"
        );
        assert!(!error.contains("similar"), "{args:?}: {error}");
    }
    for args in [&["sqll", "x"][..], &["head", "-c", "x"], &["--nosuch"]] {
        assert!(!tfarrow(args).ends(2).contains("to run SQL"), "{args:?}");
    }
}

#[test]
fn unknown_options_have_no_tip_about_values() {
    for args in [
        &["head", "x", "--nosuch"][..],
        &["sql", "--proto-file", "x"],
        &["count", "-Z"],
    ] {
        let error = tfarrow(args).ends(2);
        assert!(
            error.contains("unexpected argument") && !error.contains("as a value"),
            "{args:?}: {error}"
        );
    }
    assert!(
        tfarrow(&["head", "x", "--recordtype", "raw"])
            .ends(2)
            .contains("'--record-type'")
    );
}

#[test]
fn help_has_an_example_for_every_command() {
    for command in [
        "sql", "convert", "schema", "head", "count", "verify", "repair", "diff",
    ] {
        let help = tfarrow(&[command, "--help"]).prints();
        assert!(
            help.contains(&format!("Examples:\n  tfarrow {command} ")),
            "{help}"
        );
    }
    assert!(tfarrow(&["--version"]).prints().starts_with("tfarrow 0."));
    assert!(
        tfarrow(&["--help"])
            .prints()
            .contains("Exit status: 0 success")
    );
}

#[test]
fn a_source_that_is_not_tfrecord_is_reported_as_such() {
    for command in ["head", "count", "schema"] {
        let error = tfarrow(&[command, "testdata/generate.py"]).fails();
        assert!(
            error.starts_with("testdata/generate.py: not TFRecord: "),
            "{error}"
        );
    }
}

#[test]
fn damage_is_reported_with_its_position() {
    let cases = [
        ("length.tfrecord", "record 1 (byte "),
        ("length_high.tfrecord", "record 1 (byte "),
        ("data.tfrecord", "record 1 (byte "),
        ("data_crc.tfrecord", "record 1 (byte "),
        ("truncated.tfrecord", "record 2 (byte "),
        ("truncated_header.tfrecord", "record 2 (byte "),
        ("truncated_crc.tfrecord", "record 2 (byte "),
        ("trailing.tfrecord", "record 3 (byte "),
        ("bad_deflate.tfrecord.gz", "record 2"),
    ];
    for (name, place) in cases {
        let file = format!("testdata/corrupt/{name}");
        let query = format!("SELECT count(i) FROM '{file}'");
        for args in [&["schema", file.as_str()][..], &["sql", query.as_str()]] {
            let error = tfarrow(args).fails();
            assert!(
                error.starts_with(&format!("{file}: {place}")),
                "{args:?}: {error}"
            );
            assert_eq!(error.matches(name).count(), 1, "reported once: {error}");
            assert!(
                error.ends_with("tfarrow repair recovers the valid records"),
                "no advice: {error}"
            );
        }
    }
}

#[test]
fn the_error_of_an_exceeded_limit_names_the_option_that_raises_it() {
    let help = tfarrow(&["convert", "--help"])
        .prints()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        help.contains("Defaults: record-bytes=2147483647, ") && help.contains(" nesting=100, "),
        "{help}"
    );
    let query = "SELECT * FROM 'testdata/shards/'";
    for args in [
        &["schema", "testdata/shards"][..],
        &["head", "testdata/shards"],
        &["sql", query],
    ] {
        let error = tfarrow(&[args, &["--limit", "record-bytes=10"]].concat()).fails();
        assert!(
            error.ends_with("the limit record-bytes is 10; --limit record-bytes=N allows more"),
            "{args:?}: {error}"
        );
    }
}

/// The default limit of nested messages and groups is that of TensorFlow.
#[test]
fn nesting_has_a_limit_and_an_option() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // Nested groups of the unknown field 12 after a map entry: the byte 0x63 begins a group, and
    // 0x64 ends it.
    let nested = |groups: usize| {
        let [entry, begin, end] = [
            b"\x0a\x03\x0a\x01x".to_vec(),
            vec![0x63; groups],
            vec![0x64; groups],
        ];
        proto::field(1, &[entry, begin, end].concat())
    };
    let plain = proto::example([("x", KindOneof::ints([1]))]);
    fs::write(
        path("a.tfrecord"),
        frame::file([plain.clone(), nested(99), plain.clone()]),
    )
    .unwrap();
    tfarrow(&["verify", &path("a.tfrecord")]).ends(0);
    fs::write(
        path("b.tfrecord"),
        frame::file([plain.clone(), nested(150), plain.clone()]),
    )
    .unwrap();
    let run = tfarrow(&["verify", &path("b.tfrecord")]);
    assert!(
        run.stdout.contains("record 1 (byte ") && run.stdout.contains("the limit nesting"),
        "{}",
        run.stdout
    );
    assert!(run.ends(3).contains("--limit nesting=N allows more"));
    let more = ["--limit", "nesting=151"];
    tfarrow(&[&["verify", &path("b.tfrecord")], &more[..]].concat()).ends(0);
    let less = ["--limit", "nesting=99"];
    tfarrow(&[&["verify", &path("a.tfrecord")], &less[..]].concat()).ends(3);
    for (args, part) in [
        (&["schema"][..], "x"),
        (&["head"], "\"x\""),
        (&["stats"], "x"),
    ] {
        let run = tfarrow(&[args, &[&path("b.tfrecord")], &more].concat());
        assert!(run.stdout.contains(part), "{args:?}: {}", run.stdout);
        run.ends(0);
    }
    let query = format!("SELECT count(x) FROM '{}'", path("b.tfrecord"));
    assert!(
        tfarrow(&[&["sql", &query, "--format", "csv"], &more[..]].concat())
            .prints()
            .ends_with("\n2\n")
    );
    tfarrow(
        &[
            &[
                "convert",
                &path("b.tfrecord"),
                &path("b.parquet"),
                "--exact",
            ],
            &more[..],
        ]
        .concat(),
    )
    .ends(0);
    tfarrow(&["convert", &path("b.parquet"), &path("back.tfrecord")]).ends(0);
    assert_eq!(
        fs::read(path("back.tfrecord")).unwrap(),
        fs::read(path("b.tfrecord")).unwrap()
    );
    // A million nested groups do not overflow the stack.
    fs::write(path("deep.tfrecord"), frame::file([plain, nested(1 << 20)])).unwrap();
    tfarrow(&[
        "verify",
        &path("deep.tfrecord"),
        "--limit",
        "nesting=2000000",
    ])
    .ends(0);
    tfarrow(&["verify", &path("deep.tfrecord")]).ends(3);
}

#[test]
fn control_characters_in_names_are_not_shown_raw() {
    let error = tfarrow(&["count", "testdata/no\u{1b}[2Jsuch"]).fails();
    assert!(error.contains("\\u{1b}[2J"), "{error}");
}

/// Waits until the running program catches this signal, according to its status in /proc.
#[cfg(target_os = "linux")]
fn wait_until_caught(child: &mut std::process::Child, signal: u32) {
    let start = std::time::Instant::now();
    while start.elapsed().as_secs() < 60 {
        assert_eq!(
            child.try_wait().unwrap(),
            None,
            "the program ended before the signal"
        );
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() >> (signal - 1) & 1 == 1 {
            return;
        }
        std::thread::yield_now();
    }
    child.kill().unwrap();
    panic!("signal {signal} is not caught");
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_ends_the_program_with_its_number() {
    let sql = [
        "sql",
        "SELECT count(*) FROM range(100000000) AS a, range(100000000) AS b",
    ];
    for args in [&["count", "-"][..], &["schema", "-"], &sql] {
        for (signal, status) in [(2, 130), (15, 143)] {
            let mut child = command(args).stdin(Stdio::piped()).spawn().unwrap();
            // The input stays open, so that nothing else can end the program.
            let stdin = child.stdin.take();
            wait_until_caught(&mut child, signal);
            assert!(
                Command::new("kill")
                    .args([format!("-{signal}"), child.id().to_string()])
                    .status()
                    .unwrap()
                    .success()
            );
            assert_eq!(child.wait().unwrap().code(), Some(status), "{args:?}");
            drop(stdin);
        }
    }
}

#[test]
fn a_missing_schema_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let args = [
        "convert",
        "testdata/scalar.tfrecord",
        out.to_str().unwrap(),
        "--schema",
        "testdata/nosuch.json",
    ];
    let error = tfarrow(&args).fails();
    assert!(error.contains("testdata/nosuch.json"), "{error}");
    assert!(!path("testdata/nosuch.json").exists() && !out.exists());
}
