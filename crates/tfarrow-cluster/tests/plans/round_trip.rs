//! Queries, encoded and decoded.

use tfarrow_sql::{QueryLimits, statements};

use crate::common::{check, check_rows, encoded, planned, root, sent, session, testdata};

/// Names files by their absolute paths, since the folder of a test is not the root.
fn located(query: &str) -> String {
    query.replace("'testdata/", &format!("'{}/", testdata("")))
}

#[test]
fn recipes() {
    let mut count = 0;
    for file in std::fs::read_dir(root().join("sql")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "sql") {
            let text = located(&std::fs::read_to_string(&file).unwrap());
            for statement in statements(&text, &session(), QueryLimits::default()).unwrap() {
                check(&statement.unwrap().to_string());
                count += 1;
            }
        }
    }
    assert!(count >= 14, "{count}");
}

#[test]
fn side_by_side() {
    let queries = include_str!("../../../../tests/side_by_side.sql");
    for query in queries.lines().filter(|line| !line.starts_with("--")) {
        let query = query
            .replace("SHARDS", "'testdata/shards/'")
            .replace("RAGGED", "'testdata/ragged.tfrecord'");
        let query = located(&query.replace("SEQUENCE", "'testdata/sequence.tfrecord'"));
        if query.contains("UNION ALL") {
            // DataFusion decodes a union with casts to the same type where its inputs have
            // different metadata.
            let (sent, plan) = sent(&query);
            check_rows(&query, sent, plan);
        } else {
            check(&query);
        }
    }
}

#[test]
fn declared_columns_are_cast_and_have_their_defaults() {
    let table = |columns: &str| {
        let source = testdata("ragged.tfrecord");
        format!(
            "CREATE EXTERNAL TABLE t ({columns}) STORED AS TFRECORD LOCATION '{source}'; SELECT * FROM t"
        )
    };
    check(&table("ints INT[], floats DOUBLE[], words VARCHAR[]"));
    let source = testdata("scalar.tfrecord");
    let scalar = format!(
        "CREATE EXTERNAL TABLE t (label SMALLINT DEFAULT 7, name VARCHAR DEFAULT 'x', missing BIGINT DEFAULT -1) \
         STORED AS TFRECORD LOCATION '{source}'; SELECT * FROM t WHERE missing = -1"
    );
    check(&scalar);
}

#[test]
fn columns_that_no_feature_has() {
    let folder = tempfile::tempdir().unwrap();
    for split in ["train", "it's"] {
        let to = folder.path().join(format!("split={split}"));
        std::fs::create_dir(&to).unwrap();
        std::fs::copy(
            testdata("shards/train-00000-of-00004.tfrecord"),
            to.join("a.tfrecord"),
        )
        .unwrap();
    }
    let source = folder.path().display().to_string().replace('\'', "''");
    check(&format!(
        "SELECT split, count(*) FROM '{source}/' GROUP BY split"
    ));
    let shards = testdata("shards/");
    check(&format!(
        "SELECT _file, _record, _offset, octet_length(_raw) FROM read_tfrecord('{shards}', metadata_columns => 'all')"
    ));
    check(&format!(
        "SELECT input_file_name() AS file, count(*) FROM '{shards}' GROUP BY file"
    ));
}

#[test]
fn options_of_reading() {
    let shards = testdata("shards/");
    for option in [
        "layout => 'list'",
        "bytes_type => 'binary'",
        "verify_crc => 'never'",
        "on_error => 'skip'",
        "partial_tail => 'ignore'",
        "pushdown_filters => 'false'",
        "preserve_order => 'false'",
        "record_type => 'raw'",
    ] {
        check(&format!(
            "SELECT * FROM read_tfrecord('{shards}', {option}) LIMIT 300"
        ));
    }
    check(&format!(
        "SET tfarrow.preserve_order = false; SELECT label FROM '{shards}' WHERE price > 20"
    ));
    check(&format!("SELECT label FROM '{shards}' LIMIT 4294967295"));
}

#[test]
fn functions_and_formats() {
    let shards = testdata("shards/");
    check(&format!(
        "SELECT image_info(\"image/encoded\") AS image FROM '{shards}' LIMIT 3"
    ));
    check(&format!(
        "SELECT (SELECT max(price) FROM '{shards}'), label FROM '{shards}' WHERE tags[1] = 'red' AND label IN (1, 2)"
    ));
    check(&format!(
        "SELECT * FROM (VALUES (1), (2)) AS t(n) JOIN '{shards}' ON label = n"
    ));
    check(&format!(
        "SELECT run, step, tag FROM '{}'",
        testdata("events/logs/")
    ));
    let messages = [
        testdata("message/shapes.tfrecord"),
        testdata("message/shapes.desc"),
    ];
    check(&format!(
        "SELECT * FROM read_tfrecord('{}', proto => '{}', message => 'tfarrow.test.Shape')",
        messages[0], messages[1]
    ));
    check(&format!(
        "SELECT * FROM '{}'",
        testdata("example_list/queries.tfrecord")
    ));
}

/// The rows of text, also of files that are read in parts, of folders as columns, and of tables
/// with options.
#[test]
fn text_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let lines = (0..3_000)
        .map(|row| format!("{row},note {row}\n"))
        .collect::<String>();
    let csv = write("a.csv", &format!("id,note\n{lines}"));
    let divided = "SET datafusion.optimizer.repartition_file_min_size = 1";
    check(&format!(
        "{divided}; SELECT count(*), sum(id), max(note) FROM '{csv}'"
    ));
    check(&format!("SELECT note FROM '{csv}' LIMIT 3 OFFSET 2000"));
    let quoted = write("b.csv", "id,note\n1,\"two\nlines\"\n2,x\n");
    check(&format!("{divided}; SELECT * FROM '{quoted}'"));
    let json = write("a.jsonl", "{\"a\":NaN,\"b\":[1]}\n{\"a\":1,\"b\":null}\n");
    check(&format!("SELECT b, a FROM '{json}' WHERE a > 0"));
    write("set/split=x/a.csv", "b,a\n1,2\n");
    write("set/split=y/a.csv", "a,c\n3,4\n");
    check(&format!(
        "SELECT split, a, b, c FROM '{}/set/' ORDER BY a",
        folder.path().display()
    ));
    let odd = write("odd.csv", "1;NA\n2;'y'\n");
    let options =
        "has_header false, delimiter ';', quote '''', null_regex 'NA', truncated_rows true";
    check(&format!(
        "CREATE EXTERNAL TABLE t (n INT, text VARCHAR) STORED AS CSV LOCATION '{odd}' OPTIONS ({options}); SELECT * FROM t"
    ));
}

#[test]
fn errors_have_the_same_text() {
    for entry in std::fs::read_dir(testdata("corrupt/")).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "tfrecord")
        {
            // The query finds the damage, and not the inference, since the columns are declared.
            let table = format!(
                "CREATE EXTERNAL TABLE t (label BIGINT) STORED AS TFRECORD LOCATION '{}'",
                path.display()
            );
            check(&format!("{table}; SELECT count(label) FROM t"));
        }
    }
}

#[tokio::test]
async fn plans_whose_rows_would_change_are_refused() {
    let shards = testdata("shards/");
    for query in [
        format!("SELECT label FROM '{shards}' LIMIT 4294967296"),
        format!("SELECT label FROM '{shards}' LIMIT 1 OFFSET 4294967296"),
        format!(
            "SET datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery = true; \
             SELECT (SELECT max(price) FROM '{shards}'), label FROM '{shards}'"
        ),
    ] {
        let plan = planned(&session(), &query).await.unwrap();
        let error = encoded(&plan).unwrap_err().to_string();
        assert!(
            error.contains("cannot be sent to other machines"),
            "{query}: {error}"
        );
    }
}
