//! `tfarrow count`.

use crate::support::{tfarrow, tfarrow_reads};

#[test]
fn count_prints_one_number() {
    assert_eq!(tfarrow(&["count", "testdata/shards"]).prints(), "200\n");
    assert_eq!(
        tfarrow(&["count", "testdata/empty.tfrecord"]).prints(),
        "0\n"
    );
    // Missing shards are reported on standard error.
    let run = tfarrow(&["count", "testdata/compressed/", "testdata/raw.tfrecord"]);
    assert_eq!(run.stdout, "125\n");
    assert!(
        run.ends(0).contains(
            "2 of 3 shards are missing, the first testdata/compressed/gzip-00000-of-00003"
        )
    );
}

#[test]
fn per_file_prints_the_count_of_each_file() {
    let lines = tfarrow(&[
        "count",
        "--per-file",
        "testdata/tfds",
        "testdata/scalar.tfrecord",
    ])
    .prints();
    assert_eq!(
        lines,
        "5\ttestdata/tfds/mnist-train.tfrecord-00000-of-00002\n\
         5\ttestdata/tfds/mnist-train.tfrecord-00001-of-00002\n20\ttestdata/scalar.tfrecord\n"
    );
}

#[test]
fn count_reads_standard_input() {
    let bytes = std::fs::read(crate::support::path(
        "testdata/compressed/gzip-00001-of-00003.tfrecord.gz",
    ))
    .unwrap();
    assert_eq!(tfarrow_reads(&["count", "-"], &bytes).prints(), "30\n");
}

#[test]
fn count_verifies_lengths_but_not_data() {
    assert_eq!(
        tfarrow(&["count", "testdata/corrupt/data.tfrecord"]).prints(),
        "3\n"
    );
    let error = tfarrow(&["count", "testdata/corrupt/length_crc.tfrecord"]).fails();
    assert!(
        error.starts_with("testdata/corrupt/length_crc.tfrecord: record 1 (byte "),
        "{error}"
    );
    let error = tfarrow(&["count", "testdata/corrupt/truncated.tfrecord"]).fails();
    assert!(
        error.contains("record 2 (byte ") && error.contains("the file ends inside this record"),
        "{error}"
    );
}

#[test]
fn help_describes_which_crcs_are_verified() {
    assert!(
        tfarrow(&["count", "--help"])
            .prints()
            .contains("CRCs of their lengths are checked")
    );
}

#[test]
fn on_error_skip_counts_the_records_after_damage() {
    let corrupt = "testdata/corrupt/length_crc.tfrecord";
    let run = tfarrow(&[
        "count",
        "--on-error",
        "skip",
        corrupt,
        "testdata/scalar.tfrecord",
    ]);
    let sound: u64 = run.stdout.trim().parse().unwrap();
    let stderr = run.ends(3);
    assert!(
        stderr.contains("skipped ") && stderr.contains("length_crc.tfrecord: record 1 (byte "),
        "{stderr}"
    );
    let run = tfarrow(&[
        "count",
        "--on-error",
        "skip",
        "--per-file",
        corrupt,
        "testdata/scalar.tfrecord",
    ]);
    assert_eq!(
        run.stdout,
        format!("{}\t{corrupt}\n20\ttestdata/scalar.tfrecord\n", sound - 20)
    );
    run.ends(3);
    // The count is the number of records that a repair saves.
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.tfrecord");
    let saved = saved.to_str().unwrap();
    tfarrow(&["repair", corrupt, saved]).ends(3);
    assert_eq!(
        tfarrow(&["count", saved]).prints(),
        format!("{}\n", sound - 20)
    );
    // Valid files have the same count with and without `--on-error skip`.
    assert_eq!(
        tfarrow(&["count", "--on-error", "skip", "testdata/shards"]).prints(),
        "200\n"
    );
}

#[test]
fn counts_as_json() {
    let found: serde_json::Value =
        serde_json::from_str(&tfarrow(&["count", "testdata/tfds", "--json"]).prints()).unwrap();
    let shards = ["00000", "00001"]
        .map(|number| format!("testdata/tfds/mnist-train.tfrecord-{number}-of-00002"));
    let bytes: u64 = shards
        .iter()
        .map(|shard| crate::support::path(shard).metadata().unwrap().len())
        .sum();
    let skipped = serde_json::json!({"records": 0, "ranges": 0, "bytes": 0});
    let mut expected =
        serde_json::json!({"files": 2, "records": 10, "bytes": bytes, "skipped": skipped});
    assert_eq!(found, expected);
    expected["per_file"] = shards
        .iter()
        .map(|shard| serde_json::json!({"file": shard, "records": 5}))
        .collect();
    let found = tfarrow(&["count", "testdata/tfds", "--per-file", "--json"]).prints();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&found).unwrap(),
        expected
    );
    let run = tfarrow(&[
        "count",
        "testdata/corrupt/length_crc.tfrecord",
        "--json",
        "--on-error",
        "skip",
    ]);
    let found: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["skipped"]["ranges"], 1, "{found}");
    run.ends(3);
}

/// TFDS writes the number of records of each shard, so that a shard that was cut between two
/// records is noticed.
#[test]
fn a_shard_of_tfds_that_lost_records_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str, to: &str| {
        std::fs::copy(
            crate::support::path("testdata/tfds").join(name),
            folder.path().join(to),
        )
        .unwrap();
    };
    for name in [
        "dataset_info.json",
        "mnist-train.tfrecord-00000-of-00002",
        "mnist-train.tfrecord-00001-of-00002",
    ] {
        copy(name, name);
    }
    let source = folder.path().display().to_string();
    assert_eq!(tfarrow(&["count", &source]).ends(0), "");
    tfarrow(&["verify", &source]).ends(0);
    let shard = folder.path().join("mnist-train.tfrecord-00001-of-00002");
    let bytes = std::fs::read(&shard).unwrap();
    let first = tfarrow_codec::frame::length(&bytes).unwrap() as usize + 16;
    std::fs::write(&shard, &bytes[first..]).unwrap();
    let expected = format!(
        "{}: has 4 records, and 5 by dataset_info.json",
        shard.display()
    );
    let counted = tfarrow(&["count", &source]);
    assert_eq!(counted.stdout, "9\n");
    assert!(counted.ends(3).contains(&expected));
    let verified = tfarrow(&["verify", &source]);
    assert!(
        verified.stdout.contains(&expected)
            && verified.stdout.matches("dataset_info.json").count() == 1
    );
    verified.ends(3);
    // A split is read by a glob, and the others are named in a note otherwise.
    let splits = r#"{"name": "mnist", "fileFormat": "tfrecord", "splits": [
        {"name": "train", "shardLengths": ["5", "4"]}, {"name": "test", "shardLengths": [5]}]}"#;
    std::fs::write(folder.path().join("dataset_info.json"), splits).unwrap();
    copy(
        "mnist-train.tfrecord-00000-of-00002",
        "mnist-test.tfrecord-00000-of-00001",
    );
    let (train, test) = (
        format!("{source}/mnist-train.tfrecord-*"),
        format!("{source}/mnist-test.tfrecord-*"),
    );
    let note = format!(
        "2 splits of TensorFlow Datasets: train (9 records, {train}), test (5 records, {test})\n"
    );
    let out = tempfile::tempdir().unwrap();
    let at = |name: &str| out.path().join(name).display().to_string();
    for (command, dest) in [
        (&["count"][..], None),
        (&["verify"], None),
        (&["schema"], None),
        (&["stats"], None),
        (&["convert", "--dry-run"], Some(at("all.parquet"))),
        (&["convert"], Some(at("all.parquet"))),
        (&["convert", "--to", "tfrecord"], Some(at("records/"))),
        (&["repair"], Some(at("repaired/"))),
        (&["head"], None),
        (&["diff", &train], None),
    ] {
        let mut args = command.to_vec();
        args.push(&source);
        args.extend(dest.as_deref());
        let notes = tfarrow(&args).ends(if command[0] == "diff" { 3 } else { 0 });
        assert_eq!(notes.matches(&note).count(), 1, "{command:?}: {notes}");
    }
    let query =
        |source: &str| tfarrow(&["sql", &format!("SELECT count(*) FROM '{source}'")]).ends(0);
    assert!(query(&source).contains(&note) && !query(&train).contains("splits"));
    assert_eq!(tfarrow(&["count", &train]).ends(0), "");
    assert!(
        !tfarrow(&["convert", &train, &at("train.parquet")])
            .ends(0)
            .contains("splits")
    );
}

/// TFDS describes Parquet files as it describes TFRecord files.
#[test]
fn a_parquet_file_of_tfds_that_lost_records_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().display().to_string();
    let shard = folder.path().join("mnist-train.parquet-00000-of-00001");
    std::fs::copy(
        crate::support::path("testdata/tfds_parquet/mnist-train.parquet-00000-of-00001"),
        &shard,
    )
    .unwrap();
    for (length, status) in [(5, 0), (6, 3)] {
        let splits = format!(
            r#"{{"name": "mnist", "fileFormat": "parquet", "splits": [{{"name": "train", "shardLengths": ["{length}"]}}]}}"#
        );
        std::fs::write(folder.path().join("dataset_info.json"), splits).unwrap();
        let (counted, verified) = (tfarrow(&["count", &source]), tfarrow(&["verify", &source]));
        assert_eq!(counted.stdout, "5\n");
        let expected = format!(
            "{}: has 5 records, and 6 by dataset_info.json",
            shard.display()
        );
        assert_eq!(
            verified.stdout.matches(&expected).count(),
            usize::from(status == 3),
            "{}",
            verified.stdout
        );
        verified.ends(status);
        assert_eq!(counted.ends(status).contains(&expected), status == 3);
    }
}
