//! `tfarrow count`.

use crate::support::{tfarrow, tfarrow_reads};

#[test]
fn prints_one_bare_number() {
    assert_eq!(tfarrow(&["count", "testdata/shards"]).prints(), "200\n");
    assert_eq!(tfarrow(&["count", "testdata/empty.tfrecord"]).prints(), "0\n");
    // What a folder lacks is told besides.
    let run = tfarrow(&["count", "testdata/compressed/", "testdata/raw.tfrecord"]);
    assert_eq!(run.stdout, "125\n");
    assert!(run.ends(0).contains("2 of 3 shards are missing, the first testdata/compressed/gzip-00000-of-00003"));
}

#[test]
fn tells_files_apart_if_asked() {
    let lines = tfarrow(&["count", "--per-file", "testdata/tfds", "testdata/scalar.tfrecord"]).prints();
    assert_eq!(
        lines,
        "5\ttestdata/tfds/mnist-train.tfrecord-00000-of-00002\n\
         5\ttestdata/tfds/mnist-train.tfrecord-00001-of-00002\n20\ttestdata/scalar.tfrecord\n"
    );
}

#[test]
fn reads_standard_input() {
    let bytes = std::fs::read(crate::support::path("testdata/compressed/gzip-00001-of-00003.tfrecord.gz")).unwrap();
    assert_eq!(tfarrow_reads(&["count", "-"], &bytes).prints(), "30\n");
}

#[test]
fn checks_lengths_and_not_data() {
    assert_eq!(tfarrow(&["count", "testdata/corrupt/data.tfrecord"]).prints(), "3\n");
    let said = tfarrow(&["count", "testdata/corrupt/length_crc.tfrecord"]).fails();
    assert!(said.starts_with("testdata/corrupt/length_crc.tfrecord: record 1 (byte "), "{said}");
    let said = tfarrow(&["count", "testdata/corrupt/truncated.tfrecord"]).fails();
    assert!(said.contains("record 2 (byte ") && said.contains("the file ends inside this record"), "{said}");
}

#[test]
fn says_so_in_its_help() {
    assert!(tfarrow(&["count", "--help"]).prints().contains("CRCs of their lengths are checked"));
}

#[test]
fn counts_on_after_damage_where_asked() {
    let corrupt = "testdata/corrupt/length_crc.tfrecord";
    let run = tfarrow(&["count", "--on-error", "skip", corrupt, "testdata/scalar.tfrecord"]);
    let sound: u64 = run.stdout.trim().parse().unwrap();
    let said = run.ends(3);
    assert!(said.contains("skipped ") && said.contains("length_crc.tfrecord: record 1 (byte "), "{said}");
    let run = tfarrow(&["count", "--on-error", "skip", "--per-file", corrupt, "testdata/scalar.tfrecord"]);
    assert_eq!(run.stdout, format!("{}\t{corrupt}\n20\ttestdata/scalar.tfrecord\n", sound - 20));
    run.ends(3);
    // As many as a repair saves.
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.tfrecord");
    let saved = saved.to_str().unwrap();
    tfarrow(&["repair", corrupt, saved]).ends(3);
    assert_eq!(tfarrow(&["count", saved]).prints(), format!("{}\n", sound - 20));
    // Where nothing is damaged, nothing changes.
    assert_eq!(tfarrow(&["count", "--on-error", "skip", "testdata/shards"]).prints(), "200\n");
}
