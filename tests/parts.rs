//! Commands that read the parts of a data set in several processes, and `merge`: all that is
//! printed is what one run prints.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::support::{self, command, tfarrow};

/// The numbers of parts.
const COUNTS: [usize; 4] = [1, 2, 3, 7];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

/// Reads all parts of a command to files in a new folder, with standard error for each, and returns
/// the folder.
fn read_parts(args: &[&str], count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for index in 0..count {
        let part = read_part(args, index, count, folder.path());
        assert!(
            part.status.success(),
            "{args:?} {index}/{count}: {}",
            text(&part.stderr)
        );
        assert_eq!(text(&part.stdout), "");
        let note = text(&part.stderr);
        assert!(note.contains(&format!("part {index}/{count}: ")), "{note}");
    }
    folder
}

fn read_part(args: &[&str], index: usize, count: usize, folder: &Path) -> Output {
    let (part, file) = (
        format!("{index}/{count}"),
        folder.join("new").join(format!("{index:03}")),
    );
    output(command(
        &[
            args,
            &["--part", &part, "--partial", file.to_str().unwrap()],
        ]
        .concat(),
    ))
}

/// Compares the merged parts of a command with one run.
fn check(args: &[&str], counts: &[usize]) {
    let whole = output(command(args));
    for &count in counts {
        let folder = read_parts(args, count);
        let merged = output(command(&["merge", folder.path().to_str().unwrap()]));
        let name = format!("{args:?} in {count} parts");
        assert_eq!(text(&merged.stderr), text(&whole.stderr), "{name}");
        assert_eq!(
            (merged.status.code(), merged.stdout == whole.stdout),
            (whole.status.code(), true),
            "{name}"
        );
    }
}

#[test]
fn merged_statistics_are_those_of_one_run() {
    for options in [
        &[][..],
        &["--format", "json"],
        &["--format", "pb"],
        &["--by", "label", "--format", "json"],
    ] {
        check(&[&["stats", "testdata/shards/"], options].concat(), &COUNTS);
    }
    check(
        &[
            "stats",
            "testdata/magic/",
            "testdata/shards/",
            "--by",
            "city",
            "--format",
            "pb",
        ],
        &[3],
    );
}

#[test]
fn merged_schemas_are_those_of_one_run() {
    for format in [
        "table",
        "json",
        "arrow",
        "python",
        "rust",
        "sql",
        "features-json",
        "pbtxt",
    ] {
        check(&["schema", "testdata/shards/", "--format", format], &COUNTS);
    }
    check(&["schema", "testdata/mixed_kinds/"], &COUNTS);
    check(
        &[
            "schema",
            "testdata/shards/",
            "--layout",
            "list",
            "--record-type",
            "sequence-example",
        ],
        &[2],
    );
    check(
        &["schema", "testdata/shards/", "--record-type", "raw"],
        &[2],
    );
}

#[test]
#[cfg(unix)]
fn a_merged_statement_names_a_source_with_control_characters() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a\tb.tfrecord");
    fs::copy(support::path("testdata/scalar.tfrecord"), &odd).unwrap();
    check(&["schema", odd.to_str().unwrap(), "--format", "sql"], &[1]);
}

#[test]
fn merged_anomalies_are_those_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("schema.pbtxt");
    let schema = schema.to_str().unwrap();
    let inferred = tfarrow(&[
        "schema",
        "testdata/shards/train-00001-of-00004.tfrecord",
        "--format",
        "pbtxt",
    ])
    .prints();
    let narrow = inferred
        .replace("value: \"Lima\"", "")
        .replace("size: 1", "size: 2");
    assert_ne!(narrow, inferred);
    fs::write(schema, narrow).unwrap();
    for format in ["table", "json", "pbtxt"] {
        check(
            &[
                "validate",
                "testdata/shards/",
                "--schema",
                schema,
                "--format",
                format,
            ],
            &COUNTS,
        );
    }
    let baseline = [
        "--baseline",
        "testdata/scalar.tfrecord",
        "--baseline",
        "testdata/shards/",
        "--max-drift",
        "0.01",
    ];
    check(
        &[
            &[
                "validate",
                "testdata/shards/",
                "--schema",
                schema,
                "--format",
                "json",
            ][..],
            &baseline,
        ]
        .concat(),
        &COUNTS,
    );

    // The updated schema.
    let args = ["validate", "testdata/shards/", "--schema", schema];
    let (whole, merged) = (folder.path().join("whole"), folder.path().join("merged"));
    output(command(
        &[&args[..], &["--update", whole.to_str().unwrap()]].concat(),
    ));
    let parts = read_parts(&args, 3);
    let merge = [
        "merge",
        parts.path().to_str().unwrap(),
        "--update",
        merged.to_str().unwrap(),
    ];
    assert_eq!(output(command(&merge)).status.code(), Some(3));
    assert_eq!(fs::read(merged).unwrap(), fs::read(whole).unwrap());
}

#[test]
fn merged_reports_are_those_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let page = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for source in [
        &["testdata/shards/"][..],
        &["testdata/compressed/"],
        &["testdata/mixed_kinds/", "--on-error", "skip"],
    ] {
        let args = [&["report"], source].concat();
        let whole = output(command(&[&args[..], &["-o", &page("whole.html")]].concat()));
        for count in [1, 3, 7] {
            let parts = read_parts(&args, count);
            let merged = output(command(&[
                "merge",
                parts.path().to_str().unwrap(),
                "-o",
                &page("merged.html"),
            ]));
            assert_eq!(
                merged.status.code(),
                whole.status.code(),
                "{}",
                text(&merged.stderr)
            );
            assert_eq!(text(&merged.stderr), text(&whole.stderr));
            assert_eq!(
                text(&merged.stdout).replace("merged", "whole"),
                text(&whole.stdout)
            );
            assert!(
                fs::read(page("merged.html")).unwrap() == fs::read(page("whole.html")).unwrap(),
                "{source:?} {count}"
            );
        }
    }
    let parts = read_parts(&["report", "testdata/shards/", "--json"], 2);
    let figures = tfarrow(&[
        "merge",
        parts.path().to_str().unwrap(),
        "-o",
        &page("figures.html"),
    ])
    .prints();
    assert!(figures.contains("\"records\": 200"), "{figures}");
    let parts = read_parts(&["report", "testdata/shards/", "--title", "Trees"], 2);
    let error = tfarrow(&["merge", parts.path().to_str().unwrap()]).ends(2);
    assert_eq!(
        error,
        "tfarrow: these are parts of a report: name its page with -o FILE\n"
    );
    tfarrow(&[
        "merge",
        parts.path().to_str().unwrap(),
        "-o",
        &page("titled.html"),
    ])
    .ends(0);
    assert!(
        fs::read_to_string(page("titled.html"))
            .unwrap()
            .contains("<title>Trees")
    );
}

/// Damage, records that do not parse, files of other formats, and more parts than shards.
#[test]
fn merged_results_of_odd_data_sets_are_those_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    tfarrow(&["convert", "testdata/shards/", &out("parquet/")]).ends(0);
    fs::create_dir(out("text")).unwrap();
    fs::write(out("text/a.csv"), "n,word\n1,a\n2,b\n").unwrap();
    fs::write(out("text/b.csv"), "n,word\n1.5,c\n").unwrap();
    for source in [
        &["testdata/corrupt/", "--on-error", "skip"][..],
        &["testdata/compressed/"],
        &["testdata/magic/"],
        &["testdata/tfds/"],
        &["testdata/sequence.tfrecord"],
        &[&out("parquet/")],
        &[&out("text/")],
    ] {
        check(&[&["schema", "--format", "json"], source].concat(), &[2, 7]);
        check(&[&["stats", "--format", "json"], source].concat(), &[3]);
    }
    // Records of an unknown type, whose probable kind is named, and lists of examples.
    for source in [
        "testdata/raw.tfrecord",
        "testdata/tensors.tfrecord",
        "testdata/example_list/",
    ] {
        check(&["schema", source, "--format", "json"], &[2]);
        check(&["stats", source], &[2]);
    }
}

#[test]
fn errors_of_parts_are_those_of_one_run() {
    for source in [
        "testdata/corrupt/data_crc.tfrecord",
        "testdata/corrupt/",
        "testdata/nowhere",
    ] {
        for args in [
            &["stats", source][..],
            &["stats", source, "--by", "x"],
            &["schema", source],
        ] {
            let whole = tfarrow(args).ends(1);
            let part = ["--part", "0/1", "--partial", "/nowhere/else"];
            assert_eq!(tfarrow(&[args, &part].concat()).ends(1), whole);
        }
    }
}

#[test]
fn counts_and_faults_of_parts_add_up() {
    let counted = |args: &[&str]| tfarrow(args).prints().trim_end().parse::<u64>().unwrap();
    let whole = counted(&["count", "testdata/shards/"]);
    for count in COUNTS {
        let parts = (0..count).map(|index| {
            counted(&[
                "count",
                "testdata/shards/",
                "--part",
                &format!("{index}/{count}"),
            ])
        });
        assert_eq!(parts.sum::<u64>(), whole);
    }
    let faults = |args: &[&str]| -> Vec<String> {
        tfarrow(&[&["verify", "testdata/corrupt/"], args].concat())
            .stdout
            .lines()
            .map(str::to_owned)
            .collect()
    };
    let (mut whole, mut parts) = (
        faults(&[]),
        [faults(&["--part", "0/2"]), faults(&["--part", "1/2"])].concat(),
    );
    whole.sort();
    parts.sort();
    assert!(whole.len() > 10);
    assert_eq!(parts, whole);
}

#[test]
fn parts_can_be_read_again_and_twice_at_once() {
    let args = ["stats", "testdata/shards/", "--format", "json"];
    let whole = tfarrow(&args).prints();
    let folder = read_parts(&args, 3);
    let file = folder.path().join("new/001");
    let before = fs::read(&file).unwrap();
    // A part that was killed while it wrote to standard output.
    fs::write(&file, &before[..before.len() / 2]).unwrap();
    let error = tfarrow(&["merge", folder.path().to_str().unwrap()]).fails();
    assert!(
        error.ends_with("001: not a partial result: it is truncated or corrupt"),
        "{error}"
    );
    let part = ["--part", "1/3", "--partial", file.to_str().unwrap()];
    let mut runs = [0, 1].map(|_| command(&[&args[..], &part].concat()).spawn().unwrap());
    assert!(runs.iter_mut().all(|run| run.wait().unwrap().success()));
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 3);
    // The same result under two names counts once.
    fs::copy(&file, folder.path().join("new/copy")).unwrap();
    assert_eq!(
        tfarrow(&["merge", folder.path().to_str().unwrap()]).prints(),
        whole
    );
}

/// Jobs find the results of the jobs before them, and skip them as files of no known format.
#[test]
fn results_in_the_folder_of_the_sources_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    for shard in ["a.tfrecord", "b.tfrecord", "c.tfrecord"] {
        fs::copy(
            support::path("testdata/scalar.tfrecord"),
            folder.path().join(shard),
        )
        .unwrap();
    }
    let source = folder.path().to_str().unwrap();
    for index in 0..3 {
        let part = read_part(&["stats", source, "--json"], index, 3, folder.path());
        assert!(part.status.success(), "{}", text(&part.stderr));
    }
    let results = folder.path().join("new");
    let merged = output(command(&["merge", results.to_str().unwrap()]));
    let notes = text(&merged.stderr);
    assert!(
        merged.status.success() && notes.contains("new/000") && notes.lines().count() == 2,
        "{notes}"
    );
    assert_eq!(
        text(&merged.stdout),
        tfarrow(&["stats", source, "--json"]).stdout
    );
}

#[test]
fn the_result_of_a_part_replaces_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tfrecord");
    let content = fs::read(support::path("testdata/scalar.tfrecord")).unwrap();
    fs::write(&file, &content).unwrap();
    let path = file.to_str().unwrap();
    for args in [&["stats", path][..], &["schema", path], &["report", path]] {
        let error = tfarrow(&[args, &["--part", "0/1", "--partial", path]].concat()).ends(2);
        let why = "exists and is not the result of a part: remove it, or choose another name";
        assert_eq!(error, format!("tfarrow: {path} {why}\n"));
    }
    assert_eq!(fs::read(&file).unwrap(), content);
    // A file that was created for the result.
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    tfarrow(&[
        "stats",
        path,
        "--part",
        "0/1",
        "--partial",
        empty.to_str().unwrap(),
    ])
    .ends(0);
}

#[test]
fn parts_that_are_missing_or_do_not_fit_are_named() {
    let folder = read_parts(&["stats", "testdata/shards/"], 5);
    let path = folder.path().to_str().unwrap();
    fs::remove_file(folder.path().join("new/001")).unwrap();
    fs::remove_file(folder.path().join("new/003")).unwrap();
    assert_eq!(
        tfarrow(&["merge", path]).fails(),
        "2 of 5 parts are missing: 1/5, 3/5"
    );
    for (args, what) in [
        (
            &["stats", "testdata/shards/", "--format", "json"][..],
            "options: format is table and json",
        ),
        (
            &["stats", "testdata/shards/", "--on-error", "skip"],
            "options: on-error is fail and skip",
        ),
        (
            &["stats", "testdata/shards/", "--limit", "values=7000"],
            "options: limit values is 268435456 and 7000",
        ),
        (
            &["stats", "testdata/shards/train-00000-of-00004.tfrecord"],
            "data sets, or of one that has changed",
        ),
        (
            &["schema", "testdata/shards/"],
            "commands: stats and schema",
        ),
        (
            &["stats", "testdata/shards/", "--by", "label"],
            "features to slice by: none and label",
        ),
    ] {
        read_part(args, 1, 5, folder.path());
        let error = tfarrow(&["merge", path]).fails();
        let next = "; read all parts with the same command line";
        assert!(
            error.ends_with(&format!(
                "001: these are partial results of different {what}{next}"
            )),
            "{error}"
        );
    }
    read_part(&["stats", "testdata/shards/"], 1, 4, folder.path());
    let error = tfarrow(&["merge", path]).fails();
    assert!(
        error.contains(
            "001: these are partial results of different numbers of parts: 5 and 4; read all"
        ),
        "{error}"
    );
    let error = tfarrow(&["merge", "testdata/scalar.tfrecord"]).fails();
    assert_eq!(
        error,
        "testdata/scalar.tfrecord: not a partial result: it does not begin as one"
    );
    let folder = read_parts(&["stats", "testdata/shards/"], 1);
    let error = tfarrow(&[
        "merge",
        folder.path().to_str().unwrap(),
        "--format",
        "arrow",
    ])
    .ends(2);
    assert_eq!(
        error,
        "tfarrow: there is no format arrow; there are table, json, pb\n"
    );
    let error = tfarrow(&["merge", folder.path().to_str().unwrap(), "-o", "x.html"]).ends(2);
    assert_eq!(
        error,
        "tfarrow: --output is an option of report, and these are parts of stats\n"
    );
    let json = tfarrow(&["merge", folder.path().to_str().unwrap(), "--json"]).prints();
    assert_eq!(
        json,
        tfarrow(&["stats", "testdata/shards/", "--json"]).prints()
    );
}

#[test]
fn parts_of_a_schema_have_the_formats_of_their_content() {
    let parts = read_parts(&["schema", "testdata/shards/", "--format", "pbtxt"], 2);
    let path = parts.path().to_str().unwrap();
    for format in [&["--json"][..], &["--format", "arrow"]] {
        let error = tfarrow(&[&["merge", path], format].concat()).ends(2);
        assert!(
            error
                .contains("these are parts of `schema --format pbtxt`, which have no other format"),
            "{error}"
        );
    }
    let whole = tfarrow(&["schema", "testdata/shards/", "--format", "pbtxt"]).prints();
    assert_eq!(
        tfarrow(&["merge", path, "--format", "pbtxt"]).prints(),
        whole
    );
    let parts = read_parts(&["schema", "testdata/shards/"], 2);
    let error = tfarrow(&["merge", parts.path().to_str().unwrap(), "--format", "pbtxt"]).ends(2);
    assert!(
        error.ends_with("read all parts again with `schema --format pbtxt`\n"),
        "{error}"
    );
}

/// The size of a pipe is known only after its copy, so that processes would not agree about the
/// division.
#[test]
#[cfg(unix)]
fn pipes_have_no_parts() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let pipe = pipe.to_str().unwrap();
    let schema = folder.path().join("schema.pbtxt");
    fs::write(
        &schema,
        tfarrow(&["schema", "testdata/shards/", "--format", "pbtxt"]).prints(),
    )
    .unwrap();
    let baseline = [
        "validate",
        "testdata/shards/",
        "--schema",
        schema.to_str().unwrap(),
        "--baseline",
        pipe,
    ];
    let sources = ["testdata/scalar.tfrecord", pipe, "--part", "0/2"];
    for args in [&["stats"][..], &["schema"], &["count"], &["verify"]] {
        let error = tfarrow(&[args, &sources].concat()).ends(2);
        assert!(
            error.starts_with(&format!("tfarrow: {pipe} has no parts, because only one")),
            "{error}"
        );
    }
    let error = tfarrow(&[&baseline[..], &["--part", "0/2"]].concat()).ends(2);
    assert!(error.contains("pipe has no parts"), "{error}");
}

#[test]
fn command_lines_that_name_no_part_are_refused() {
    for (args, message) in [
        (
            &["stats", "testdata/shards/", "--part", "4/4"][..],
            "parts are numbered from 0: the last of 4 is 3/4",
        ),
        (
            &["stats", "testdata/shards/", "--part", "x"],
            "expected the number of the part, from 0, and that of all parts",
        ),
        (
            &[
                "stats",
                "testdata/shards/",
                "--part",
                "0/2",
                "--sample",
                "10",
            ],
            "cannot be used with",
        ),
        (
            &["stats", "testdata/shards/", "--partial", "x"],
            "--part <K/N>",
        ),
        (
            &["stats", "-", "--part", "0/2", "--partial", "/nowhere"],
            "standard input has no parts, because only one process can read it",
        ),
        (
            &["count", "-", "--part", "0/2"],
            "standard input has no parts, because only one process can read it",
        ),
        (
            &[
                "validate",
                "testdata/shards/",
                "--baseline",
                "testdata/",
                "--part",
                "0/2",
            ],
            "--baseline with --part needs --schema",
        ),
        (
            &["report", "testdata/events/", "--part", "0/2"],
            "TensorBoard's event files",
        ),
        (
            &["schema", "testdata/events/", "--part", "0/2"],
            "leave --part out",
        ),
        (
            &[
                "schema",
                "testdata/shards/",
                "--message",
                "tensorflow.Event",
                "--part",
                "0/2",
            ],
            "leave --part out",
        ),
    ] {
        let error = tfarrow(args).ends(2);
        assert!(error.contains(message), "{args:?}: {error}");
    }
}
