//! `tfarrow count`.

use crate::support::{tfarrow, tfarrow_reads};

#[test]
fn prints_one_bare_number() {
    assert_eq!(tfarrow(&["count", "testdata/shards"]).prints(), "200\n");
    assert_eq!(tfarrow(&["count", "testdata/empty.tfrecord"]).prints(), "0\n");
    // What a folder lacks is told besides.
    let run = tfarrow(&["count", "testdata/compressed/", "testdata/raw.tfrecord"]);
    assert_eq!(run.stdout, "125\n");
    assert!(run.ends(0).contains("2 of 3 shards are not there, the first testdata/compressed/gzip-00000-of-00003"));
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
