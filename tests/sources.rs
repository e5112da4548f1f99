//! What names a data set, the same for every command and for `FROM`.

use crate::support::{path, tfarrow, tfarrow_reads};

#[track_caller]
fn check(source: &str, records: u64) {
    // What a folder lacks is told besides.
    let counted = tfarrow(&["count", source]);
    assert_eq!(counted.stdout, format!("{records}\n"), "count {source}");
    counted.ends(0);
    let query = format!("SELECT count(*) AS n FROM '{source}'");
    assert_eq!(tfarrow(&["sql", "--format", "csv", &query]).prints(), format!("n\n{records}\n"), "{query}");
}

#[test]
fn a_file_is_a_source() {
    check("testdata/scalar.tfrecord", 20);
    check("testdata/tfds/mnist-train.tfrecord-00000-of-00002", 5);
    check("testdata/compressed/zlib-00002-of-00003.tfrecord", 30);
    check(path("testdata/scalar.tfrecord").to_str().unwrap(), 20);
}

#[test]
fn a_folder_is_a_source_and_what_lies_beside_its_shards_is_not() {
    check("testdata/shards/", 200);
    check("testdata/tfds", 10);
    check("testdata/compressed/", 120);
}

#[test]
fn a_glob_is_a_source() {
    check("testdata/shards/*.tfrecord", 200);
    check("testdata/shards/train-0000[12]-of-*", 100);
    check("testdata/{tfds,shards}/*-00000-of-*", 55);
    check("testdata/**/train-?????-of-00004.tfrecord", 200);
}

#[test]
fn standard_input_is_a_source() {
    let bytes = std::fs::read(path("testdata/scalar.tfrecord")).unwrap();
    assert_eq!(tfarrow_reads(&["count", "-"], &bytes).prints(), "20\n");
    let query = "SELECT count(*), min(id) FROM '-'";
    assert_eq!(tfarrow_reads(&["sql", query, "--format", "ndjson"], &bytes).prints().lines().count(), 1);
    assert_eq!(tfarrow_reads(&["head", "-"], &bytes).prints().lines().count(), 10);
    assert!(tfarrow_reads(&["schema", "-"], &bytes).prints().contains("title"));
}

#[test]
fn standard_input_may_be_parquet_or_arrow() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.parquet", "a.arrow"] {
        let file = folder.path().join(name);
        let outcome = tfarrow(&["convert", "testdata/scalar.tfrecord", file.to_str().unwrap()]);
        assert_eq!(outcome.status, Some(0));
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(tfarrow_reads(&["count", "-"], &bytes).prints(), "20\n", "{name}");
        assert_eq!(tfarrow_reads(&["head", "-", "-n", "3"], &bytes).prints().lines().count(), 3, "{name}");
    }
}

#[test]
fn what_names_nothing_is_an_error_that_says_where_it_looked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "no shard").unwrap();
    let folder = folder.path().to_str().unwrap();
    let sources = ["testdata/nothing.tfrecord", "testdata/nothing/*.tfrecord", folder];
    for source in sources {
        for command in ["count", "head", "schema"] {
            let said = tfarrow(&[command, source]).fails();
            assert!(said.contains(source.trim_end_matches("*.tfrecord")), "{command} {source}: {said}");
        }
        let said = tfarrow(&["sql", &format!("SELECT * FROM '{source}'")]).fails();
        assert!(said.contains(source.trim_end_matches("*.tfrecord")), "sql {source}: {said}");
    }
}

#[test]
fn shards_of_no_records_come_back() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("in")).unwrap();
    std::fs::copy(crate::support::path("testdata/scalar.tfrecord"), path("in/a.tfrecord")).unwrap();
    std::fs::write(path("in/b.tfrecord"), "").unwrap();
    std::fs::write(path("in/notes"), "of no known format").unwrap();
    let said = tfarrow(&["convert", &path("in"), &path("out/")]).ends(0);
    assert!(said.contains("passed over: 1 of no known format (such as "), "{said}");
    tfarrow(&["convert", &path("out"), &path("back/"), "--to", "tfrecord"]).ends(0);
    assert_eq!(std::fs::read(path("back/b.tfrecord")).unwrap(), b"");
    assert_eq!(tfarrow(&["count", &path("back/a.tfrecord")]).prints(), tfarrow(&["count", &path("in")]).stdout);
}
