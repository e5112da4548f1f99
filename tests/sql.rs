//! `tfarrow sql`.

use crate::support::{command, path, tfarrow, tfarrow_reads};

#[test]
fn statements_run_in_order() {
    let printed = tfarrow(&[
        "sql",
        "--format",
        "csv",
        "SELECT 1 AS a; -- not; this\nSELECT ';' AS b",
        "SELECT 3 AS c;",
    ]);
    assert_eq!(printed.prints(), "a\n1\nb\n;\nc\n3\n");
}

#[test]
fn statements_are_read_from_files_and_standard_input() {
    let file = path("sql/01-class-balance.sql");
    let printed = tfarrow(&["sql", "-f", file.to_str().unwrap(), "--format", "csv"]).prints();
    assert!(
        printed.starts_with("label,records,percent\n0,"),
        "{printed}"
    );
    assert_eq!(
        tfarrow_reads(&["sql", "--format", "csv"], b"SELECT 1 AS a").prints(),
        "a\n1\n"
    );
    assert_eq!(
        tfarrow_reads(&["sql", "--format", "csv", "-f", "-"], b"SELECT 1 AS a").prints(),
        "a\n1\n"
    );
    assert_eq!(tfarrow(&["sql"]).prints(), "");
}

#[test]
fn an_average_includes_all_shards() {
    let printed = tfarrow(&[
        "sql",
        "--format",
        "csv",
        "SELECT avg(label) AS a, count(*) AS n FROM 'testdata/shards/'",
    ]);
    let printed = printed.prints();
    assert!(printed.ends_with(",200\n"), "{printed}");
}

#[test]
fn headings_have_no_paths() {
    let query = "SELECT max(label) FROM 'testdata/shards/'";
    for (format, expect) in [
        ("csv", "max(label)\n3\n"),
        ("tsv", "max(label)\n3\n"),
        ("json", "[{\"max(label)\":3}]\n"),
        ("ndjson", "{\"max(label)\":3}\n"),
    ] {
        assert_eq!(
            tfarrow(&["sql", "--format", format, query]).prints(),
            expect,
            "{format}"
        );
    }
    let table = tfarrow(&["sql", query]).prints();
    assert!(table.contains("| max(label) |"), "{table}");
    let folder = tempfile::tempdir().unwrap();
    for format in ["parquet", "arrow"] {
        let file = folder.path().join(format!("x.{format}"));
        std::fs::write(
            &file,
            command(&["sql", "--format", format, query])
                .output()
                .unwrap()
                .stdout,
        )
        .unwrap();
        let read = format!("SELECT \"max(label)\" FROM '{}'", file.display());
        assert_eq!(
            tfarrow(&["sql", "--format", "csv", &read]).prints(),
            "max(label)\n3\n",
            "{format}"
        );
    }
}

#[test]
fn printed_json_and_csv_can_be_queried() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["json", "ndjson", "csv", "tsv"] {
        let file = folder.path().join(format!("cities.{format}"));
        let query = "SELECT city, label FROM 'testdata/shards/' ORDER BY 1, 2";
        let printed = tfarrow(&["sql", "--format", format, query]).prints();
        std::fs::write(&file, printed).unwrap();
        let back = format!("SELECT city, label FROM '{}' ORDER BY 1, 2", file.display());
        let [back, there] =
            [&back, query].map(|query| tfarrow(&["sql", "--format", "csv", query]).prints());
        assert_eq!(back, there, "{format}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_copy_leaves_no_files() {
    for name in ["x.tfrecord", "x.csv", "x.parquet"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        // Values that cannot be compressed: a Parquet file is created with its first ten megabytes.
        // Integers, because TFRecord files have no 64-bit floats.
        let copy = format!(
            "COPY (SELECT CAST(random() * 1e15 AS BIGINT) AS x \
             FROM range(100000) a, range(100000) b) TO '{}'",
            file.display()
        );
        let mut child = command(&["sql", &copy]).spawn().unwrap();
        // COPY is writing when its temporary file exists.
        while std::fs::read_dir(folder.path()).unwrap().next().is_none() {
            assert_eq!(child.try_wait().unwrap(), None, "{name}");
            std::thread::yield_now();
        }
        assert!(
            std::process::Command::new("kill")
                .args(["-2", &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(child.wait().unwrap().code(), Some(130), "{name}");
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn copy_reports_an_existing_file_before_the_query_runs() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.tfrecord", "x.csv", "x.arrow"] {
        let file = folder.path().join(name);
        std::fs::write(&file, "x").unwrap();
        // The query would run for days.
        let rows = "SELECT sum(a.value) FROM range(100000000) a, range(100000000) b";
        let error = tfarrow(&["sql", &format!("COPY ({rows}) TO '{}'", file.display())]).ends(2);
        assert!(
            error.contains(name) && error.contains("this file exists"),
            "{error}"
        );
        assert_eq!(std::fs::read(&file).unwrap(), b"x");
    }
}

#[test]
fn syntax_errors_are_reported_before_any_result() {
    let error = tfarrow(&["sql", "SELECT 1; SELEC 2"]).fails();
    assert!(
        error.starts_with("syntax error: ") && error.contains("SELEC"),
        "{error}"
    );
}

#[test]
fn keep_going_skips_statements_with_syntax_errors() {
    let text =
        "SELECT 'a;''b' AS a; SELEC 2; -- no; statement\nSELECT \"x;\" FROM (SELECT 3 AS \"x;\")";
    let run = tfarrow_reads(&["sql", "--format", "csv", "--keep-going"], text.as_bytes());
    assert_eq!(run.stdout, "a\na;'b\nx;\n3\n");
    assert!(run.ends(1).contains("found: SELEC"));
    let unended = tfarrow(&["sql", "--keep-going", "SELECT 1; SELECT 'a"]);
    assert!(unended.ends(1).contains("syntax error"));
}

#[test]
fn a_failing_statement_ends_the_run() {
    let run = tfarrow(&[
        "sql",
        "--format",
        "csv",
        "SELECT 1 AS a; SELECT nosuch FROM 'testdata/scalar.tfrecord'; SELECT 3",
    ]);
    assert_eq!(run.stdout, "a\n1\n");
    assert!(run.ends(1).contains("nosuch"));
}

#[test]
fn the_error_of_a_missing_column_names_the_sample() {
    let error = tfarrow(&[
        "sql",
        "--sample",
        "2",
        "SELECT nosuch FROM 'testdata/shards/'",
    ])
    .fails();
    assert!(
        error.contains("nosuch") && error.contains("8 of") || error.contains("8 records"),
        "{error}"
    );
}

#[test]
fn an_exceeded_memory_limit_is_an_error() {
    let sorted = "SELECT max(value) AS m FROM (SELECT value, row_number() OVER (ORDER BY value DESC) AS r \
                  FROM generate_series(1, 3000000)) WHERE r > 2999999";
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", "--memory-limit", "64MB", sorted]).prints(),
        "m\n1\n"
    );
    assert!(
        tfarrow(&["sql", "--memory-limit", "1MB", sorted])
            .ends(1)
            .contains("Resources exhausted")
    );
    assert!(
        tfarrow(&["sql", "--memory-limit", "much", sorted])
            .ends(2)
            .contains("--memory-limit")
    );
}

#[test]
fn options_determine_how_records_are_read() {
    let query = "SELECT arrow_typeof(id) AS t FROM 'testdata/scalar.tfrecord' LIMIT 1";
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", query]).prints(),
        "t\nInt64\n"
    );
    assert!(
        tfarrow(&["sql", "--format", "csv", "--layout", "list", query])
            .prints()
            .contains("List(")
    );
    let query = "SELECT count(record) AS n FROM 'testdata/scalar.tfrecord'";
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", "--record-type", "raw", query]).prints(),
        "n\n20\n"
    );
    let query = "SELECT count(i) AS n FROM 'testdata/corrupt/data_crc.tfrecord'";
    tfarrow(&["sql", query]).ends(1);
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", "--verify-crc", "never", query]).prints(),
        "n\n3\n"
    );
}

#[test]
fn settings_apply_to_the_statements_after_them() {
    let query =
        "SET tfarrow.layout = 'list'; SELECT id[1] AS id FROM 'testdata/scalar.tfrecord' LIMIT 1";
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", query]).prints(),
        "id\n-5\n"
    );
}

#[test]
fn plans_are_not_abbreviated() {
    let printed = tfarrow(&[
        "sql",
        "EXPLAIN SELECT label FROM 'testdata/shards/' WHERE price > 10",
    ])
    .prints();
    assert!(
        printed.contains("DataSourceExec") && printed.lines().count() > 6,
        "{printed}"
    );
}

#[test]
fn mixed_kinds_name_both_places() {
    let error = tfarrow(&["sql", "SELECT * FROM 'testdata/mixed_kinds/'"]).fails();
    let places = [
        "\"x\"",
        "part-00000-of-00002.tfrecord",
        "part-00001-of-00002.tfrecord",
        "int64_list",
        "float_list",
    ];
    assert!(places.iter().all(|place| error.contains(place)), "{error}");
}

#[test]
fn the_program_starts_within_100_milliseconds() {
    let best = (0..5).map(|_| {
        let start = std::time::Instant::now();
        tfarrow(&["sql", "SELECT 1"]).prints();
        start.elapsed()
    });
    let best = best.min().unwrap();
    assert!(best.as_millis() < 100, "{best:?}");
}

#[test]
fn on_error_skip_skips_corrupt_records() {
    let query = "SELECT count(i) AS n FROM 'testdata/corrupt/data_crc.tfrecord'";
    let run = tfarrow(&["sql", "--format", "csv", "--on-error", "skip", query]);
    assert_eq!(run.stdout, "n\n2\n");
    let stderr = run.ends(3);
    assert!(
        stderr.starts_with(
            "tfarrow: skipped 1 record; the first: testdata/corrupt/data_crc.tfrecord: record "
        ),
        "{stderr}"
    );
}

#[test]
fn keep_going_continues_after_a_failed_statement() {
    let run = tfarrow(&[
        "sql",
        "--keep-going",
        "--format",
        "csv",
        "-c",
        "SELECT 1 AS a",
        "-c",
        "SELECT nosuch",
        "SELECT 3 AS b",
    ]);
    assert_eq!(run.stdout, "a\n1\nb\n3\n");
    assert!(run.ends(1).contains("nosuch"));
}

#[test]
fn options_have_the_names_of_settings() {
    let query = "SELECT arrow_typeof(id) AS t FROM 'testdata/scalar.tfrecord' LIMIT 1";
    let printed = tfarrow(&["sql", "--format", "csv", "--option", "layout=list", query]).prints();
    assert!(printed.contains("List("), "{printed}");
    let stderr = tfarrow(&["sql", "--option", "layuot=list", query]).ends(2);
    assert!(
        stderr.contains("there is no option tfarrow.layuot; there are: layout, "),
        "{stderr}"
    );
    assert!(
        tfarrow(&["sql", "--option", "layout", query])
            .ends(2)
            .contains("expected NAME=VALUE")
    );
}

#[test]
fn results_are_equal_in_all_formats_for_programs() {
    let query =
        "SELECT city, label, tags FROM 'testdata/shards/' ORDER BY \"image/encoded\" LIMIT 3";
    let csv = tfarrow(&["sql", "--format", "csv", query]).prints();
    let tsv = tfarrow(&["sql", "--format", "tsv", query]).prints();
    assert!(tsv.starts_with("city\tlabel\ttags\n"), "{tsv}");
    let folder = tempfile::tempdir().unwrap();
    for format in ["parquet", "arrow"] {
        let file = folder.path().join(format!("a.{format}"));
        let bytes = command(&["sql", "--format", format, query])
            .output()
            .unwrap()
            .stdout;
        std::fs::write(&file, bytes).unwrap();
        let back = format!("SELECT * FROM '{}'", file.display());
        assert_eq!(
            tfarrow(&["sql", "--format", "csv", &back]).prints(),
            csv,
            "{format}"
        );
        let two = command(&["sql", "--format", format, "SELECT 1; SELECT 2"])
            .output()
            .unwrap();
        let stderr = String::from_utf8(two.stderr).unwrap();
        assert!(
            stderr.contains("a file of this format holds one result"),
            "{stderr}"
        );
    }
}

#[test]
fn results_are_written_to_a_file_that_is_complete_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let query = "SELECT city, label FROM 'testdata/shards/' ORDER BY 1, 2 LIMIT 3";
    for name in [
        "x.txt", "x.md", "x.html", "x.csv", "x.tsv", "x.json", "x.jsonl", "x",
    ] {
        assert_eq!(tfarrow(&["sql", "-o", &file(name), query]).prints(), "");
        let format = match name {
            "x.txt" | "x" => "table",
            "x.md" => "markdown",
            "x.jsonl" => "ndjson",
            name => name.trim_start_matches("x."),
        };
        let expected = tfarrow(&["sql", "--format", format, query]).prints();
        assert_eq!(
            std::fs::read_to_string(file(name)).unwrap(),
            expected,
            "{name}"
        );
    }
    for name in ["x.parquet", "x.arrow"] {
        assert_eq!(tfarrow(&["sql", "-o", &file(name), query]).prints(), "");
        let back = format!("SELECT * FROM '{}'", file(name));
        assert_eq!(
            tfarrow(&["sql", &back]).prints(),
            tfarrow(&["sql", query]).prints(),
            "{name}"
        );
    }
    assert_eq!(
        tfarrow(&["sql", "-o", "-", "--format", "csv", "SELECT 1 AS a"]).prints(),
        "a\n1\n"
    );
    assert!(
        tfarrow(&["sql", "-o", &file("x.csv"), "SELECT 1"])
            .ends(2)
            .contains("this file exists")
    );
    assert_eq!(
        tfarrow(&[
            "sql",
            "-o",
            &file("x.csv"),
            "--overwrite",
            "SELECT 1 AS a; SELECT 2 AS b"
        ])
        .prints(),
        ""
    );
    assert_eq!(
        std::fs::read_to_string(file("x.csv")).unwrap(),
        "a\n1\nb\n2\n"
    );
    tfarrow(&["sql", "-o", &file("y.csv"), "SELECT 1 AS a; SELECT nosuch"]).fails();
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 10, "{names:?}");
}

/// The schema of the Parquet or Arrow file that a query prints.
fn written_schema(format: &str, query: &str) -> String {
    let output = command(&["sql", "--format", format, query])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &output.stdout).unwrap();
    match format {
        "arrow" => arrow_ipc::reader::FileReader::try_new(file, None)
            .unwrap()
            .schema()
            .to_string(),
        _ => {
            let builder =
                parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file)
                    .unwrap();
            builder.schema().to_string()
        }
    }
}

#[test]
fn printed_files_have_no_view_types() {
    let nested = "SELECT arrow_cast('a', 'Utf8View') AS text, [arrow_cast('b', 'BinaryView')] AS list, \
                  named_struct('l', [arrow_cast('c', 'Utf8View')]) AS fields, map(['k'], [arrow_cast('d', 'Utf8View')]) AS m";
    for format in ["parquet", "arrow"] {
        for query in ["SELECT * FROM 'testdata/shards/'", nested] {
            let schema = written_schema(format, query);
            assert!(
                !schema.contains("View") && schema.contains("Utf8"),
                "{format}: {schema}"
            );
            // The metadata of the fields stays.
            assert_eq!(
                schema.contains("bytes_list"),
                query != nested,
                "{format}: {schema}"
            );
        }
    }
}

#[test]
fn columns_with_equal_names_are_refused_in_formats_with_named_columns() {
    let query = "SELECT a.v, b.v FROM (VALUES (1)) a(v), (VALUES (2)) b(v)";
    for format in ["json", "ndjson", "parquet", "arrow"] {
        let run = tfarrow(&["sql", "--format", format, query]);
        assert_eq!((run.status, run.stdout.as_str()), (Some(1), ""), "{format}");
        assert!(
            run.stderr
                .contains("two columns are named \"v\"; give one of them another name"),
            "{}",
            run.stderr
        );
    }
    assert_eq!(
        tfarrow(&["sql", "--format", "csv", query]).prints(),
        "v,v\n1,2\n"
    );
}

#[test]
fn statements_of_any_size_succeed_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sum = |terms: usize| format!("SELECT 1{} AS n", "+1".repeat(terms - 1));
    let union = |terms: usize| {
        format!(
            "SELECT count(*) FROM (SELECT 1{})",
            " UNION ALL SELECT 1".repeat(terms - 1)
        )
    };
    let any_of = |count: usize| {
        let terms: Vec<_> = (0..count).map(|i| format!("value = {i}")).collect();
        format!(
            "SELECT count(*) FROM range(100000) WHERE {}",
            terms.join(" OR ")
        )
    };
    let refused = "query_depth=1000";
    for (query, expect) in [
        (sum(900), Ok("n\n900\n")),
        (any_of(10_000), Ok("count(*)\n10000\n")),
        (sum(10_000), Err(refused)),
        (sum(49_000), Err(refused)),
        (format!("EXPLAIN {}", sum(10_000)), Err(refused)),
        (union(5_000), Err(refused)),
        (
            format!("SELECT 1{}", "::BIGINT::INT".repeat(10_000)),
            Err(refused),
        ),
        ("EXPLAIN ".repeat(60_000), Err("write EXPLAIN once")),
        ("(".repeat(50_000), Err("recursion limit")),
        (" ".repeat(600_000), Err("query_bytes=524288")),
        ("SELECT 1;".repeat(200_000), Err("query_bytes=524288")),
    ] {
        let file = folder.path().join("query.sql");
        std::fs::write(&file, &query).unwrap();
        let run = tfarrow(&["sql", "--format", "csv", "-f", file.to_str().unwrap()]);
        match expect {
            Ok(rows) => assert_eq!(run.prints(), rows),
            Err(part) => {
                assert_eq!(run.status, Some(1), "{}: {}", &query[..30], run.stderr);
                assert!(
                    run.stderr.contains(part),
                    "{}: {}",
                    &query[..30],
                    run.stderr
                );
            }
        }
    }
}

#[test]
fn statements_of_a_long_script_run_one_by_one() {
    let statements = "SET datafusion.execution.batch_size = 8192;\n".repeat(10_000);
    let run = tfarrow_reads(
        &["sql", "--format", "csv"],
        format!("{statements}SELECT 1 AS a").as_bytes(),
    );
    assert_eq!(run.prints(), "a\n1\n");
    let run = tfarrow_reads(
        &["sql", "--format", "csv", "--keep-going"],
        b"SELECT 1 AS a; SELECT (; SELECT 2 AS b; nope",
    );
    assert_eq!((run.status, run.stdout.as_str()), (Some(1), "a\n1\nb\n2\n"));
    assert_eq!(
        run.stderr.matches("syntax error").count(),
        2,
        "{}",
        run.stderr
    );
    // A syntax error in a later statement is found before the first statement runs.
    assert_eq!(tfarrow(&["sql", "SELECT 1; SELECT ("]).stdout, "");
}

#[test]
fn type_errors_do_not_mention_the_planner() {
    for (expression, part) in [
        ("avg(city)", "no function avg(Utf8View); there is avg("),
        (
            "sum(embedding)",
            "no function sum(List(Float32)); there is sum(",
        ),
        (
            "round(city)",
            "no function round(Utf8View); there is round(",
        ),
        ("sqrt(city)", "no function sqrt(Utf8View); there is sqrt("),
        (
            "coalesce(label, embedding)",
            "no function coalesce(Int64, List(Float32))",
        ),
        (
            "label = 'x'",
            "Cannot cast string 'x' to value of Int64 type; compare with a value of the same type",
        ),
        (
            "label IN ('x')",
            "Cannot cast string 'x' to value of Int64 type; compare",
        ),
        (
            "CASE label WHEN 'x' THEN 1 END",
            "Cannot cast string 'x' to value of Int64 type; compare",
        ),
        (
            "date 'x'",
            "Cannot cast string 'x' to value of Date32 type; compare",
        ),
        ("label LIKE 'a'", "common type"),
    ] {
        let run = tfarrow(&[
            "sql",
            &format!("SELECT {expression} FROM 'testdata/shards/'"),
        ]);
        assert_eq!(run.status, Some(1), "{expression}");
        assert!(run.stderr.contains(part), "{expression}: {}", run.stderr);
        for word in [
            "nternal error",
            "bug",
            "simplify_expressions",
            "type_coercion",
            "Execution error",
        ] {
            assert!(!run.stderr.contains(word), "{expression}: {}", run.stderr);
        }
    }
    let run = tfarrow(&["sql", "COPY (SELECT 0.1 AS s) TO 'target/none/x.tfrecord'"]);
    assert_eq!(
        run.stderr.matches("row 0 has 0.1").count(),
        1,
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("--lossy"), "{}", run.stderr);
}

#[test]
fn a_tilde_in_a_path_is_the_home_folder() {
    let home = tempfile::tempdir().unwrap();
    std::fs::copy(
        path("testdata/scalar.tfrecord"),
        home.path().join("x.tfrecord"),
    )
    .unwrap();
    let run = |query: &str| {
        let output = command(&["sql", "--format", "csv", query])
            .current_dir(home.path())
            .env("HOME", home.path())
            .output();
        let output = output.unwrap();
        assert!(
            output.status.success(),
            "{query}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let count = run("SELECT count(*) FROM 'x.tfrecord'");
    for query in [
        "SELECT count(*) FROM '~/x.tfrecord'",
        "SELECT count(*) FROM read_tfrecord('~/x.tfrecord')",
    ] {
        assert_eq!(run(query), count);
    }
    run(
        "CREATE EXTERNAL TABLE t (a INT) STORED AS TFRECORD LOCATION '~/out/'; INSERT INTO t VALUES (1)",
    );
    run("COPY '~/x.tfrecord' TO '~/copy.parquet'");
    assert!(home.path().join("copy.parquet").exists() && home.path().join("out").exists());
    assert!(!home.path().join("~").exists());
}

/// The extension of FILE decides the format, and a file of an unknown one is not a table by
/// surprise.
#[test]
fn results_are_written_in_the_format_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let source = "testdata/shards/train-00000-of-00004.tfrecord";
    tfarrow(&["sql", &format!("FROM '{source}'"), "-o", &at("x.tfrecord")]).ends(0);
    tfarrow(&["diff", source, &at("x.tfrecord")]).ends(0);
    for name in ["x.tfrecord.gz", "x.xyz"] {
        let error = tfarrow(&["sql", "SELECT 1", "-o", &at(name)]).ends(2);
        assert!(error.contains("give one with --format"), "{error}");
        assert!(!folder.path().join(name).exists());
    }
    tfarrow(&[
        "sql",
        "SELECT 1 AS a",
        "-o",
        &at("x.xyz"),
        "--format",
        "csv",
    ])
    .ends(0);
    assert_eq!(std::fs::read_to_string(at("x.xyz")).unwrap(), "a\n1\n");
    let error = tfarrow(&[
        "sql",
        "SELECT named_struct('a', 1) AS s",
        "-o",
        &at("y.tfrecord"),
    ])
    .fails();
    assert!(error.contains("Struct"), "{error}");
    assert!(!folder.path().join("y.tfrecord").exists());
}

/// Features outside of the sample have no column. A file without them is not complete.
#[test]
fn a_copy_that_leaves_features_out_ends_with_status_3() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let late =
        "SELECT 1 AS a, CASE WHEN value > 1500 THEN 2 END AS late FROM generate_series(1, 2000)";
    tfarrow(&[
        "sql",
        &format!("COPY ({late}) TO '{}'", at("late.tfrecord")),
    ])
    .ends(0);
    let source = at("late.tfrecord");
    let warning = tfarrow(&["sql", &format!("COPY '{source}' TO '{}'", at("x.parquet"))]).ends(3);
    assert!(warning.contains("\"late\""), "{warning}");
    tfarrow(&[
        "sql",
        "--sample",
        "all",
        &format!("COPY '{source}' TO '{}'", at("y.parquet")),
    ])
    .ends(0);
    tfarrow(&["sql", &format!("SELECT count(a) FROM '{source}'")]).ends(0);
}

/// The commands `convert`, `repair` and `diff` have the same exit status.
#[test]
fn an_output_that_exists_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.csv", "x.parquet", "x.tfrecord", "x.json"] {
        let file = folder.path().join(name).display().to_string();
        std::fs::write(&file, "x").unwrap();
        let copy = format!("COPY (SELECT 1 AS a) TO '{file}'");
        for args in [&["sql", &copy][..], &["sql", "SELECT 1", "-o", &file]] {
            assert!(
                tfarrow(args).ends(2).contains("this file exists"),
                "{args:?}"
            );
        }
        assert_eq!(std::fs::read(&file).unwrap(), b"x");
    }
}

#[test]
fn definitions_are_not_cut() {
    let show = "SHOW CREATE TABLE 'testdata/shards/'";
    for format in ["table", "line"] {
        let printed = tfarrow(&["sql", show, "--format", format]).prints();
        assert!(
            printed.contains("OPTIONS (record_type 'example')") && !printed.contains('…'),
            "{printed}"
        );
    }
    let create = "CREATE TABLE t AS SELECT 1 AS a";
    let columns: Vec<_> = (0..60).map(|i| format!("'{i}' AS column_{i}")).collect();
    let view = format!("CREATE VIEW v AS SELECT {}", columns.join(", "));
    let printed = tfarrow(&["sql", create, &view, "SHOW CREATE TABLE v"]).prints();
    assert!(
        printed.contains("column_59") && !printed.contains('…'),
        "{printed}"
    );
    // The type of this column has more than 200 characters.
    let fields: Vec<_> = (0..40).map(|i| format!("'name_{i}', {i}")).collect();
    let printed = tfarrow(&[
        "sql",
        &format!("DESCRIBE SELECT named_struct({}) AS s", fields.join(", ")),
    ])
    .prints();
    assert!(
        printed.contains("name_39") && !printed.contains('…'),
        "{printed}"
    );
}

#[test]
fn functions_of_duckdb_have_sql_in_their_place() {
    for (query, expect) in [
        (
            "SELECT len([1])",
            "there is no function len; write array_length(x) for lists",
        ),
        (
            "SELECT Mode(a) FROM (SELECT 1 AS a)",
            "there is no function mode; write SELECT x, count(*) .. GROUP BY x",
        ),
        ("SELECT typeof(1)", "; write arrow_typeof(x)"),
        (
            "FROM read_parquet('x')",
            "there is no function read_parquet; write FROM 'file'",
        ),
        (
            "FROM glob('*')",
            "there is no function glob; write FROM 'shards/*.tfrecord'",
        ),
        (
            "SELECT arry_length([1])",
            "there is no function arry_length; did you mean array_length?",
        ),
    ] {
        let error = tfarrow(&["sql", query]).fails();
        assert!(error.contains(expect), "{query}: {error}");
    }
    // No function has a similar name.
    let error = tfarrow(&["sql", "SELECT frobnicate(1)"]).fails();
    assert_eq!(error, "there is no function frobnicate");
}
