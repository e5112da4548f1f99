//! `tfarrow index`, and the commands that use indexes.

use std::{fs, path::Path};

use crate::support::{path, tfarrow, tfarrow_in};

/// A folder with a copy of the four files of `testdata/shards`, of 50 records each.
fn shards() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    fs::create_dir(&shards).unwrap();
    for entry in fs::read_dir(path("testdata/shards")).unwrap() {
        let file = entry.unwrap().path();
        if file
            .extension()
            .is_some_and(|extension| extension == "tfrecord")
        {
            fs::copy(&file, shards.join(file.file_name().unwrap())).unwrap();
        }
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    names.sort();
    names
}

#[test]
fn each_shard_gets_an_index_which_is_no_shard() {
    let folder = shards();
    let index = |args: &[&str]| tfarrow_in(folder.path(), &[&["index", "shards"], args].concat());
    let printed = index(&[]).ends(0);
    assert!(printed.contains("4 indexes of 200 records"), "{printed}");
    assert_eq!(names(&folder.path().join("shards")).len(), 8);
    let printed = index(&["--update"]).ends(0);
    assert!(printed.contains("4 kept"), "{printed}");
    let run = |args: &[&str]| tfarrow_in(folder.path(), args);
    assert_eq!(run(&["count", "shards"]).prints(), "200\n");
    assert_eq!(run(&["count", "shards", "--no-index"]).prints(), "200\n");
    let query = "SELECT count(*) AS n, min(price) AS p FROM 'shards/' WHERE price > 102.9";
    let csv = ["sql", "--format", "csv", query];
    assert_eq!(
        run(&csv).prints(),
        run(&[&csv[..], &["--option", "index=none"]].concat()).prints()
    );
    // The index is a Parquet file, and can be queried by its name.
    let index = "SELECT records FROM 'shards/train-00000-of-00004.tfrecord.tfindex'";
    assert_eq!(
        run(&["sql", "--format", "csv", index]).prints(),
        "records\n50\n"
    );
}

#[test]
fn indexes_in_another_folder_are_used_where_they_are_named() {
    let folder = shards();
    let run = |args: &[&str]| tfarrow_in(folder.path(), args);
    run(&["index", "shards", "--to", "indexes", "--part", "1/2"]).ends(0);
    assert_eq!(names(&folder.path().join("indexes")).len(), 2);
    run(&["index", "shards", "--to", "indexes"]).ends(0);
    assert_eq!(names(&folder.path().join("indexes")).len(), 4);
    assert_eq!(names(&folder.path().join("shards")).len(), 4);
    let query = "EXPLAIN SELECT count(*) FROM 'shards/'";
    let plan = |option: &[&str]| run(&[&["sql", query], option].concat()).prints();
    assert!(plan(&[]).contains("DataSourceExec"));
    let with = plan(&["--option", "index=indexes"]);
    assert!(with.contains("200 as count(*)"), "{with}");
    assert_eq!(
        run(&["count", "shards", "--index", "indexes"]).prints(),
        "200\n"
    );
}

#[test]
fn a_changed_shard_is_reported_and_counted() {
    let folder = shards();
    let run = |args: &[&str]| tfarrow_in(folder.path(), args);
    run(&["index", "shards"]).ends(0);
    let shard = folder.path().join("shards/train-00000-of-00004.tfrecord");
    let bytes = fs::read(&shard).unwrap();
    fs::write(&shard, [bytes.as_slice(), &bytes].concat()).unwrap();
    for args in [
        &["count", "shards"][..],
        &[
            "sql",
            "--format",
            "csv",
            "SELECT count(*) AS n FROM 'shards/'",
        ],
    ] {
        let run = run(args);
        assert!(run.stdout.ends_with("250\n"), "{}", run.stdout);
        let warning = run.ends(0);
        assert!(
            warning.contains(
                "train-00000-of-00004.tfrecord.tfindex is not used: the shard has changed"
            ) && warning.contains("tfarrow index --update"),
            "{warning}"
        );
    }
    let run = |args: &[&str]| tfarrow_in(folder.path(), args);
    assert!(
        run(&["index", "shards", "--update"])
            .ends(0)
            .contains("3 kept")
    );
    assert_eq!(run(&["count", "shards"]).prints(), "250\n");
}

#[test]
fn head_begins_at_a_record() {
    let folder = shards();
    let run = |args: &[&str]| tfarrow_in(folder.path(), args);
    let all = run(&["head", "shards", "-n", "200", "--full"]).prints();
    let lines: Vec<_> = all.lines().collect();
    let check = |options: &[&str]| {
        for first in [0, 1, 49, 50, 149, 198, 199] {
            let number = first.to_string();
            let args = ["head", "shards", "--full", "-n", "3", "--record", &number];
            let printed = run(&[&args[..], options].concat()).prints();
            let expected = &lines[first..(first + 3).min(200)];
            assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
        }
        let past = run(&[&["head", "shards", "--record", "200"], options].concat());
        assert_eq!(past.prints(), "");
    };
    check(&[]);
    run(&["index", "shards"]).ends(0);
    check(&[]);
    check(&["--no-index"]);
    // Rows of other formats have numbers as well.
    run(&["convert", "shards", "parquet"]).ends(0);
    let printed = run(&["head", "parquet", "--full", "-n", "2", "--record", "120"]).prints();
    assert_eq!(printed.lines().collect::<Vec<_>>(), &lines[120..122]);
}

#[test]
fn a_damaged_shard_has_no_index_and_a_text_index_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().display().to_string();
    let error = tfarrow(&["index", "testdata/corrupt/data.tfrecord", "--to", &to]).ends(3);
    assert!(
        error.contains("record 1 (byte ") && error.contains("tfarrow repair"),
        "{error}"
    );
    assert!(names(folder.path()).is_empty());
    let shards = ["index", "testdata/scalar.tfrecord", "--to", &to];
    let dali = [&shards[..], &["--format", "dali"]].concat();
    tfarrow(&dali).ends(0);
    let text = fs::read_to_string(folder.path().join("scalar.tfrecord.idx")).unwrap();
    assert_eq!((text.lines().count(), text.starts_with("0 ")), (20, true));
    assert!(tfarrow(&dali).ends(3).contains("--overwrite"));
    tfarrow(&[&dali[..], &["--overwrite"]].concat()).ends(0);
    let events = tfarrow(&["index", "testdata/events/logs/", "--to", &to]).ends(3);
    assert!(events.contains("TensorBoard"), "{events}");
    let compressed = [
        "index",
        "testdata/compressed/",
        "--to",
        &to,
        "--format",
        "dali",
    ];
    assert!(tfarrow(&compressed).ends(3).contains("compressed"));
    tfarrow(&compressed[..4]).ends(0);
}
