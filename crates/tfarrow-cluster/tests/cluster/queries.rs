//! The rows of a cluster are those of one process.

use tfarrow_sql::{QueryLimits, SessionOptions, session_context, statements};

use crate::processes::{Cluster, local, root};

/// The statements of the recipes, and the queries that other tests compare with Parquet.
fn queries() -> Vec<String> {
    let mut queries = Vec::new();
    let session = session_context(SessionOptions::default()).unwrap();
    for file in std::fs::read_dir(root().join("sql")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "sql") {
            let text = std::fs::read_to_string(&file).unwrap();
            let found = statements(&text, &session, QueryLimits::default()).unwrap();
            queries.extend(found.map(|statement| statement.unwrap().to_string()));
        }
    }
    let lines = include_str!("../../../../tests/side_by_side.sql")
        .lines()
        .filter(|line| !line.starts_with("--"));
    queries.extend(lines.map(|query| {
        let query = query
            .replace("SHARDS", "'testdata/shards/'")
            .replace("RAGGED", "'testdata/ragged.tfrecord'");
        query.replace("SEQUENCE", "'testdata/sequence.tfrecord'")
    }));
    queries
}

#[test]
fn one_two_and_four_executors() {
    let queries = queries();
    assert!(queries.len() >= 38, "{}", queries.len());
    let expected: Vec<_> = queries
        .iter()
        .map(|query| local(&["--format", "csv", query]).sorted())
        .collect();
    for executors in [1, 2, 4] {
        let cluster = Cluster::start(executors);
        for (query, expected) in queries.iter().zip(&expected) {
            assert_eq!(
                &cluster.sql(&["--format", "csv", query]).sorted(),
                expected,
                "{executors} executors: {query}"
            );
        }
    }
}

#[test]
fn options_of_scans() {
    let cluster = Cluster::start(2);
    for (options, query) in [
        (&["layout=list"][..], "SELECT * FROM 'testdata/shards/'"),
        (
            &["layout=list", "bytes_type=binary_view"],
            "SELECT city, label FROM 'testdata/ragged.tfrecord'",
        ),
        (
            &["record_type=raw"],
            "SELECT * FROM 'testdata/scalar.tfrecord'",
        ),
        (
            &["record_type=sequence-example"],
            "SELECT * FROM 'testdata/sequence.tfrecord'",
        ),
        (
            &["on_conflict=split"],
            "SELECT * FROM 'testdata/mixed_kinds/'",
        ),
        (
            &["sample_records=1", "on_error=skip"],
            "SELECT * FROM 'testdata/mixed_kinds/'",
        ),
        (
            &["verify_crc=never", "partial_tail=ignore"],
            "SELECT count(*) FROM 'testdata/corrupt/data_crc.tfrecord'",
        ),
        (
            &["verify_crc=on_parse_failure"],
            "SELECT count(city) FROM 'testdata/corrupt/data_crc.tfrecord'",
        ),
        (
            &["metadata_columns=all"],
            "SELECT city, _record, _offset, octet_length(_raw) FROM 'testdata/shards/'",
        ),
        (
            &["metadata_columns=_file"],
            "SELECT _file, max(price) FROM 'testdata/shards/' WHERE label > 1 GROUP BY _file",
        ),
        (
            &["pushdown_filters=false"],
            "SELECT city FROM 'testdata/shards/' WHERE price > 100",
        ),
        (
            &["preserve_order=false"],
            "SELECT city, price FROM 'testdata/shards/' WHERE label IN (1, 2)",
        ),
        (
            &["message=tensorflow.Event"],
            "SELECT * FROM 'testdata/events/logs/'",
        ),
        (
            &[],
            "SELECT run, step, tag, value FROM 'testdata/events/logs/'",
        ),
    ] {
        let options: Vec<_> = options
            .iter()
            .flat_map(|option| ["--option", option])
            .collect();
        let args = [&["--format", "csv"], &options[..], &[query]].concat();
        let (found, expected) = (cluster.sql(&args).sorted(), local(&args).sorted());
        assert!(expected.status != Some(2), "{expected:?}");
        assert_eq!(found, expected, "{args:?}");
    }
}

#[test]
fn files_of_other_formats_and_written_files() {
    let cluster = Cluster::start(2);
    let folder = cluster.folder.path().display().to_string();
    let sql = |query: &str| cluster.sql(&["--format", "csv", query]);
    for format in ["parquet", "csv", "json", "tfrecord"] {
        let file = format!("{folder}/cities.{format}");
        let columns = "city, label, price, octet_length(\"image/encoded\") AS bytes";
        let copy = format!("COPY (SELECT {columns} FROM 'testdata/shards/') TO '{file}'");
        assert_eq!(sql(&copy).stderr, "");
        let query = format!(
            "SELECT city, count(*), sum(label), round(sum(price), 6), sum(bytes) FROM '{file}' GROUP BY city ORDER BY city"
        );
        let run = sql(&query);
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        assert_eq!(run, local(&["--format", "csv", &query]), "{format}");
    }
}

/// The rows of converted event files are read as events by the executors.
#[test]
fn events_in_files_of_other_formats() {
    let cluster = Cluster::start(2);
    for format in ["parquet", "arrow"] {
        let file = format!("{}/events.{format}", cluster.folder.path().display());
        let messages = "read_tfrecord('testdata/events/logs/', message => 'tensorflow.Event')";
        let copied = local(&[&format!("COPY (SELECT * FROM {messages}) TO '{file}'")]);
        assert_eq!(copied.status, Some(0), "{}", copied.stderr);
        for query in [
            "SELECT step, tag, plugin, kind, value, text FROM 'LOGS'",
            "SELECT max(value) FROM 'LOGS' GROUP BY tag",
        ] {
            let found = cluster
                .sql(&["--format", "csv", &query.replace("LOGS", &file)])
                .sorted();
            let expected = local(&[
                "--format",
                "csv",
                &query.replace("LOGS", "testdata/events/logs/"),
            ])
            .sorted();
            assert_eq!(found, expected, "{format}: {query}");
        }
    }
}

#[test]
fn statements_without_files_stay_in_the_client() {
    let cluster = Cluster::start(0);
    // There is no executor that could run them.
    for query in [
        "SELECT 1 + 1",
        "SHOW TABLES",
        "EXPLAIN SELECT 1",
        "CREATE TABLE t AS VALUES (1), (2); SELECT * FROM t",
    ] {
        assert_eq!(cluster.sql(&[query]), local(&[query]), "{query}");
    }
}

#[test]
fn explain_analyze_names_the_engine() {
    let cluster = Cluster::start(1);
    let run = cluster.sql(&["EXPLAIN ANALYZE SELECT city FROM 'testdata/shards/'"]);
    assert!(
        run.stdout
            .contains(&format!("RemoteExec: engine=ballista {}", cluster.address)),
        "{run:?}"
    );
}

#[test]
fn a_long_file_is_read_in_pieces() {
    let cluster = Cluster::start(2);
    let shards = ["00000", "00001", "00002", "00003"];
    let shard = |index| {
        std::fs::read(root().join(format!("testdata/shards/train-{index}-of-00004.tfrecord")))
            .unwrap()
    };
    let mut bytes = shards.map(shard).concat().repeat(5);
    let file = cluster
        .folder
        .path()
        .join("long.tfrecord")
        .display()
        .to_string();
    std::fs::write(&file, &bytes).unwrap();

    let explained = cluster.sql(&[
        "--option",
        "piece_bytes=20000",
        &format!("EXPLAIN SELECT city FROM '{file}'"),
    ]);
    assert!(explained.stdout.contains("6 groups"), "{explained:?}");
    let check = |query: &str| {
        let query = query.replace("FILE", &format!("'{file}'"));
        let found = cluster.sql(&["--format", "csv", "--option", "piece_bytes=20000", &query]);
        assert_eq!(
            found.sorted(),
            local(&["--format", "csv", &query]).sorted(),
            "{query}"
        );
    };
    check("SELECT count(*), sum(label), min(city) FROM FILE");
    check("SELECT city, count(*), round(sum(price), 6) FROM FILE GROUP BY city");
    check("SELECT city, label, price FROM FILE");
    check(
        "SELECT count(*) FROM read_tfrecord(FILE, metadata_columns => '_record') WHERE _record > 100",
    );

    // After an error of a piece, the file is read as a whole: the error has the number of the
    // record.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(&file, &bytes).unwrap();
    check("SELECT count(*), max(\"image/encoded\"), max(city), sum(price), sum(label) FROM FILE");
    let end = bytes.len() - 7;
    std::fs::write(&file, &bytes[..end]).unwrap();
    check("SELECT count(*) FROM FILE");
}

#[test]
fn an_indexed_file_is_read_in_parts() {
    let cluster = Cluster::start(2);
    let shard = std::fs::read(root().join("testdata/shards/train-00000-of-00004.tfrecord"));
    let bytes = shard.unwrap();
    let file = cluster.folder.path().join("a.tfrecord");
    std::fs::write(&file, bytes.repeat((6 << 20) / bytes.len())).unwrap();
    let shards = tfarrow_dataset::resolve(&[&file]).unwrap();
    let options = tfarrow_scan::IndexOptions::default();
    tfarrow_scan::index(&shards, &options, &|_, _| {
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    let options = ["--format", "csv", "--option", "piece_bytes=100000"];
    let from = format!(
        "read_tfrecord('{}', metadata_columns => 'all')",
        file.display()
    );
    let explained = cluster.sql(&[
        options[2],
        options[3],
        &format!("EXPLAIN SELECT _record FROM {from} WHERE label > 1"),
    ]);
    assert!(explained.stdout.contains("6 groups"), "{explained:?}");
    for query in [
        "SELECT count(*), sum(_record), min(city) FROM t WHERE label > 1",
        "SELECT _record, label FROM t WHERE _record > 5000 AND price > 20",
        "SELECT city, count(*) FROM t GROUP BY city",
        "SELECT _record FROM t ORDER BY price, _record LIMIT 5",
    ] {
        let query = query.replace("FROM t", &format!("FROM {from}"));
        let [a, b, c, d] = options;
        let found = cluster.sql(&[a, b, c, d, &query]);
        assert_eq!(
            found.sorted(),
            local(&["--format", "csv", &query]).sorted(),
            "{query}"
        );
    }
}

#[test]
fn a_limit_returns_no_row_of_an_embedded_file() {
    let cluster = Cluster::start(2);
    let inner = std::fs::read(root().join("testdata/shards/train-00000-of-00004.tfrecord"))
        .unwrap()
        .repeat(4);
    let hex: String = inner.iter().map(|byte| format!("{byte:02x}")).collect();
    let (file, copy) = (
        cluster.folder.path().join("outer.tfrecord"),
        cluster.folder.path().join("copy.sql"),
    );
    let file = file.display().to_string();
    std::fs::write(
        &copy,
        format!("COPY (SELECT 'outer' AS city, decode('{hex}', 'hex') AS image) TO '{file}'"),
    )
    .unwrap();
    assert_eq!(local(&["-f", copy.to_str().unwrap()]).status, Some(0));
    // Pieces begin inside of the only record, and find records of the embedded file.
    for query in [
        "SELECT city FROM FILE WHERE city <> 'outer' LIMIT 1",
        "SELECT DISTINCT city FROM FILE WHERE city <> 'outer' LIMIT 1",
        "SELECT a.city FROM FILE a JOIN FILE b ON a.city = b.city WHERE b.city <> 'outer' LIMIT 1",
        "SELECT city, count(*) FROM FILE GROUP BY city",
        "SELECT city FROM FILE ORDER BY city LIMIT 2",
    ] {
        let query = query.replace("FILE", &format!("'{file}'"));
        let found = cluster.sql(&["--format", "csv", "--option", "piece_bytes=10000", &query]);
        assert_eq!(found, local(&["--format", "csv", &query]), "{query}");
    }
}

#[test]
fn rows_of_20_megabytes() {
    let cluster = Cluster::start(2);
    let data = cluster.folder.path().join("images");
    std::fs::create_dir(&data).unwrap();
    for shard in 0..2 {
        // Random text does not become shorter in a message.
        let image = "string_agg(md5(CAST(value AS TEXT) || 'shard'), '')";
        let query = format!(
            "COPY (SELECT 'image' || (value % 2) AS name, {image} AS image FROM generate_series(1, 1250000) GROUP BY value % 2) \
             TO '{}/{shard}.tfrecord'",
            data.display()
        );
        assert_eq!(
            local(&[&query.replace("'shard'", &format!("'{shard}'"))]).status,
            Some(0)
        );
    }
    let data = data.display();
    for query in [
        format!("SELECT name, md5(max(image)), count(*) FROM '{data}/' GROUP BY name"),
        format!("SELECT * FROM '{data}/'"),
    ] {
        for bytes_type in ["binary", "binary_view"] {
            let args = [
                "--format",
                "csv",
                "--option",
                &format!("bytes_type={bytes_type}"),
                &query,
            ];
            let (found, expected) = (cluster.sql(&args).sorted(), local(&args).sorted());
            assert_eq!((found.status, &found.stderr), (Some(0), &expected.stderr));
            assert!(found.stdout == expected.stdout, "{bytes_type}: {query}");
        }
    }
}
