//! Errors, warnings and exit statuses of a cluster are those of one process.

use crate::{
    processes::{Cluster, Process, Run, local, program, root},
    web::serve,
};

#[test]
fn errors_and_warnings() {
    let cluster = Cluster::start(2);
    let mut statuses = Vec::new();
    for args in [
        // Corrupt and truncated records.
        &["SELECT count(*) FROM 'testdata/corrupt/data_crc.tfrecord'"][..],
        &["SELECT count(city) FROM 'testdata/corrupt/'"],
        &[
            "--on-error",
            "skip",
            "SELECT count(*) FROM 'testdata/corrupt/data_crc.tfrecord'",
        ],
        &[
            "--on-error",
            "skip",
            "SELECT count(*) FROM 'testdata/corrupt/length_crc.tfrecord'",
        ],
        // Each task of a nested-loop join reads all files of one side.
        &[
            "--on-error",
            "skip",
            "SELECT count(*) FROM 'testdata/corrupt/data_crc.tfrecord' a JOIN 'testdata/shards/' b ON a.label < b.label",
        ],
        &[
            "--partial-tail",
            "skip",
            "SELECT count(*) FROM 'testdata/corrupt/truncated.tfrecord'",
        ],
        // A feature of two kinds, and features that a sample does not have.
        &["--sample", "1", "SELECT * FROM 'testdata/mixed_kinds/'"],
        &["--sample", "1", "SELECT * FROM 'testdata/ragged.tfrecord'"],
        // Errors of expressions.
        &["SELECT CAST(city AS INT) FROM 'testdata/shards/train-00000-of-00004.tfrecord'"],
        &["SELECT label / (label - label) FROM 'testdata/shards/train-00000-of-00004.tfrecord'"],
        // Errors of planning.
        &["SELECT * FROM 'testdata/no such file.tfrecord'"],
        &["SELECT no_column FROM 'testdata/shards/'"],
        &["SELECT no_function(city) FROM 'testdata/shards/'"],
    ] {
        let expected = local(args);
        let found = cluster.sql(args);
        assert_eq!(
            (found.status, &found.stderr),
            (expected.status, &expected.stderr),
            "{args:?}"
        );
        if expected.status != Some(1) {
            assert_eq!(found.sorted(), local(args).sorted(), "{args:?}");
        }
        statuses.push(expected.status);
    }
    assert!(
        statuses.contains(&Some(3)) && statuses.contains(&Some(1)),
        "{statuses:?}"
    );
}

#[test]
fn files_outside_of_the_root_of_an_executor() {
    let mut cluster = Cluster::start(0);
    let root = root().join("testdata/shards");
    cluster.add_executor(&["--root", root.to_str().unwrap()]);
    let inside = cluster.sql(&["SELECT count(*) FROM 'testdata/shards/'"]);
    assert_eq!(inside.status, Some(0), "{}", inside.stderr);
    let outside = cluster.sql(&["SELECT count(*) FROM 'testdata/scalar.tfrecord'"]);
    assert_eq!(outside.status, Some(1));
    assert!(
        outside
            .stderr
            .contains("scalar.tfrecord: this executor reads and writes files below "),
        "{outside:?}"
    );
    for target in ["out.parquet", "folder#1/"] {
        let written = cluster.folder.path().join(target);
        let copy = format!(
            "COPY (SELECT city FROM 'testdata/shards/') TO '{}' STORED AS PARQUET",
            written.display()
        );
        let outside = cluster.sql(&[&copy]);
        assert!(
            outside
                .stderr
                .contains("this executor reads and writes files below "),
            "{outside:?}"
        );
        assert!(!written.exists());
    }
}

#[test]
fn files_are_not_written_again() {
    let mut cluster = Cluster::start(0);
    // The client cannot fetch the number of rows from there.
    cluster.add_executor(&["--external-host", "127.0.0.2"]);
    let out = cluster.folder.path().join("out");
    let copy = format!(
        "COPY (SELECT city FROM 'testdata/shards/') TO '{}/' STORED AS TFRECORD OPTIONS (shards 2)",
        out.display()
    );
    let run = cluster.sql(&[&copy]);
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(
        run.stderr
            .contains("the statement may have written its files"),
        "{run:?}"
    );
    assert!(run.stderr.contains("the executor 127.0.0.2:"), "{run:?}");
    assert_eq!(std::fs::read_dir(out).unwrap().count(), 2);
}

#[test]
fn a_port_that_is_taken() {
    let cluster = Cluster::start(0);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let work_dir = cluster.work_dir(0).display().to_string();
    let args = [
        "executor",
        "--scheduler",
        &cluster.address,
        "--work-dir",
        &work_dir,
        "--port",
        &port,
    ];
    let run = Run::of(program(&args).output().unwrap());
    assert_eq!(run.status, Some(1), "{run:?}");
    assert!(
        run.stderr
            .starts_with(&format!("tfarrow-cluster: 127.0.0.1:{port}: ")),
        "{run:?}"
    );
}

#[test]
fn a_store_that_fails_twice() {
    let cluster = Cluster::start(1);
    let content =
        std::fs::read(root().join("testdata/shards/train-00000-of-00004.tfrecord")).unwrap();
    let query = "SELECT count(*), sum(label) FROM '{}'";
    let run = cluster.sql(&["--format", "csv", &query.replace("{}", &serve(content))]);
    let expected = query.replace("{}", "testdata/shards/train-00000-of-00004.tfrecord");
    assert_eq!(run, local(&["--format", "csv", &expected]));
}

#[test]
fn a_cluster_without_executors_is_a_warning() {
    let mut cluster = Cluster::start(0);
    let client = cluster.client(&["SELECT count(*) FROM 'testdata/shards/'"]);
    let client = Process::start(client);
    let warning = client.wait_for("has no executors: the query waits for one");
    assert_eq!(
        warning,
        format!(
            "tfarrow: the scheduler at {} has no executors: the query waits for one",
            cluster.address
        )
    );
    cluster.add_executor(&[]);
    assert!(client.ended().success());
}

#[test]
fn plans_for_one_machine() {
    let cluster = Cluster::start(0);
    let file = cluster.folder.path().join("a.arrow").display().to_string();
    let copy = format!("COPY (SELECT city FROM 'testdata/shards/') TO '{file}'");
    let recursive = "WITH RECURSIVE t AS (SELECT min(label) AS n FROM 'testdata/shards/' UNION ALL SELECT n + 1 FROM t WHERE n < 9) \
                     SELECT count(*) FROM t";
    let nested = (0..25).fold("price".to_owned(), |nested, _| format!("abs({nested} + 1)"));
    let nested = format!("SELECT count(*) FROM 'testdata/shards/' WHERE {nested} > 3");
    let joins: String = (1..30)
        .map(|t| {
            format!(
                " JOIN 'testdata/shards/' t{t} ON t{}.price = t{t}.price",
                t - 1
            )
        })
        .collect();
    let joins = format!("SELECT count(*) FROM 'testdata/shards/' t0{joins}");
    let too_deep = "tfarrow: the query has too many nested expressions, joins or subqueries for other machines; some 40 are possible\n";
    for (query, expected) in [
        (nested.as_str(), too_deep),
        (joins.as_str(), too_deep),
        (
            copy.as_str(),
            "tfarrow: other machines write Parquet, CSV, JSON and TFRecord files only\n",
        ),
        (
            recursive,
            "tfarrow: a recursive query cannot be sent to other machines\n",
        ),
    ] {
        let run = cluster.sql(&[query]);
        assert_eq!(
            (run.status, run.stderr.as_str()),
            (Some(1), expected),
            "{query}"
        );
    }
}

#[test]
fn files_of_one_process() {
    let cluster = Cluster::start(0);
    let shard = root().join("testdata/shards/train-00000-of-00004.tfrecord");
    let parquet = cluster.folder.path().join("a.parquet");
    local(&[&format!(
        "COPY (SELECT city FROM '{}') TO '{}'",
        shard.display(),
        parquet.display()
    )]);
    let stream = "standard input: a stream can be read in this process only: copy it to a file that all machines can read";
    let stdin = "/dev/stdin: other processes have another file at this path: use the path of the file itself";
    let descriptor = "/proc/self/fd/0: other processes have another file at this path: use the path of the file itself";
    for (input, query, expected) in [
        (&shard, "SELECT count(*) FROM '-'", stream),
        (&shard, "SELECT count(*) FROM '/dev/stdin'", stdin),
        (
            &shard,
            "SELECT count(city) FROM '/proc/self/fd/0'",
            descriptor,
        ),
        (&parquet, "SELECT city FROM '/proc/self/fd/0'", descriptor),
    ] {
        let input = std::fs::File::open(input).unwrap();
        let run = Run::of(cluster.client(&[query]).stdin(input).output().unwrap());
        assert_eq!(
            (run.status, run.stderr),
            (Some(1), format!("tfarrow: {expected}\n")),
            "{query}"
        );
    }
}

#[test]
fn no_scheduler() {
    let run = Run::of(
        program(&["sql", "--cluster", "127.0.0.1:1", "SELECT 1"])
            .output()
            .unwrap(),
    );
    assert_eq!(run.status, Some(1));
    assert!(
        run.stderr
            .starts_with("tfarrow: no scheduler answers at 127.0.0.1:1 ("),
        "{}",
        run.stderr
    );
}
