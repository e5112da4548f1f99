//! COPY and INSERT: written files are read back unchanged, and are complete or absent.

use std::path::PathBuf;

use datafusion::prelude::SessionContext;

use crate::common::*;

/// The paths of the files below a folder, relative to it.
fn files(folder: &Folder, below: &str) -> Vec<String> {
    fn visit(at: PathBuf, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(path, found)
            } else {
                found.push(path)
            }
        }
    }
    let (root, mut found) = (folder.path().join(below), Vec::new());
    if root.exists() {
        visit(root.clone(), &mut found);
    }
    let mut names: Vec<_> = found
        .iter()
        .map(|p| p.strip_prefix(&root).unwrap().display().to_string())
        .collect();
    names.sort();
    names
}

async fn run(context: &SessionContext, statement: &str) -> Vec<String> {
    rows(context, statement).await.unwrap()
}

#[tokio::test]
async fn copy_writes_the_result_of_the_query() {
    let (folder, context) = (Folder::new(), session());
    let out = folder.name("out.tfrecord");
    let source = testdata("shards/");
    assert_eq!(
        run(
            &context,
            &format!("COPY (SELECT * FROM '{source}') TO '{out}'")
        )
        .await,
        ["200"]
    );
    assert_eq!(files(&folder, ""), ["out.tfrecord"]);
    for (from, to) in [(&source, &out), (&out, &source)] {
        let more = format!("SELECT * FROM '{from}' EXCEPT SELECT * FROM '{to}'");
        assert_eq!(run(&context, &more).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn feature_lists_are_written_as_they_were_read() {
    let (folder, context) = (Folder::new(), session());
    let (source, out) = (testdata("sequence.tfrecord"), folder.name("out.tfrecord"));
    run(&context, "SET tfarrow.layout = 'list'").await;
    run(
        &context,
        &format!("COPY (SELECT * FROM '{source}') TO '{out}'"),
    )
    .await;
    let all = |file: &str| format!("SELECT * FROM '{file}'");
    assert_eq!(
        run(&context, &all(&out)).await,
        run(&context, &all(&source)).await
    );
}

#[tokio::test]
async fn files_are_compressed_as_asked_or_as_named() {
    let (folder, context) = (Folder::new(), session());
    let query = "(SELECT 1 AS x)";
    run(
        &context,
        &format!(
            "COPY {query} TO '{}' STORED AS TFRECORD",
            folder.name("a.tfrecord.gz")
        ),
    )
    .await;
    let zlib = format!(
        "COPY {query} TO '{}' OPTIONS (compression 'zlib')",
        folder.name("b.tfrecord")
    );
    run(&context, &zlib).await;
    run(&context, "SET tfarrow.compression = 'gzip'").await;
    run(
        &context,
        &format!("COPY {query} TO '{}' STORED AS TFRECORD", folder.name("c/")),
    )
    .await;
    let head = |name: &str| std::fs::read(folder.path().join(name)).unwrap()[..2].to_vec();
    assert_eq!(head("a.tfrecord.gz"), [0x1f, 0x8b]);
    assert_eq!(head("b.tfrecord")[0], 0x78);
    let [name] = files(&folder, "c").try_into().unwrap();
    assert!(name.ends_with(".tfrecord.gz"), "{name}");
    assert_eq!(head(&format!("c/{name}")), [0x1f, 0x8b]);
    check(
        rows(
            &context,
            &format!("SELECT count(*), sum(x) FROM '{}'", folder.name("**")),
        )
        .await,
        ["3 | 3"],
    );
}

#[tokio::test]
async fn shards_are_named_as_tensorflow_does_and_share_the_rows() {
    let (folder, context) = (Folder::new(), session());
    let query = "(SELECT value AS x, value % 2 AS k FROM generate_series(1, 1000))";
    let copy = |to: &str, more: &str| {
        format!(
            "COPY {query} TO '{}' STORED AS TFRECORD {more} OPTIONS (shards 3)",
            folder.name(to)
        )
    };
    run(&context, &copy("a/train.tfrecord", "")).await;
    let names = |stem: &str| {
        (0..3)
            .map(|i| format!("{stem}-{i:05}-of-00003.tfrecord"))
            .collect::<Vec<_>>()
    };
    assert_eq!(files(&folder, "a"), names("train"));
    let sizes = format!(
        "SELECT count(*) FROM read_tfrecord('{}', metadata_columns => '_file') GROUP BY _file ORDER BY 1",
        folder.name("a")
    );
    check(rows(&context, &sizes).await, ["333", "333", "334"]);
    run(&context, &copy("b", "")).await;
    assert_eq!(files(&folder, "b"), names("part"));
    run(&context, &copy("c", "PARTITIONED BY (k)")).await;
    let expected: Vec<_> = ["k=0/part", "k=1/part"]
        .into_iter()
        .flat_map(names)
        .collect();
    assert_eq!(files(&folder, "c"), expected);
    let sums = format!(
        "SELECT k, count(*), sum(x) FROM '{}' GROUP BY k ORDER BY k",
        folder.name("c")
    );
    check(
        rows(&context, &sums).await,
        ["0 | 500 | 250500", "1 | 500 | 250000"],
    );
}

#[tokio::test]
async fn existing_files_are_replaced_only_with_overwrite() {
    let (folder, context) = (Folder::new(), session());
    let copy = |x: u8, options: &str| {
        format!(
            "COPY (SELECT {x} AS x) TO '{}' {options}",
            folder.name("a.tfrecord")
        )
    };
    run(&context, &copy(1, "")).await;
    let message = error(&context, &copy(2, "")).await;
    assert!(
        message.contains("a.tfrecord: this file exists"),
        "{message}"
    );
    let sum = format!("SELECT sum(x) FROM '{}'", folder.name("a.tfrecord"));
    check(rows(&context, &sum).await, ["1"]);
    run(&context, &copy(2, "OPTIONS (overwrite true)")).await;
    check(rows(&context, &sum).await, ["2"]);
}

#[tokio::test]
async fn no_file_is_left_if_a_row_fails() {
    let (folder, context) = (Folder::new(), session());
    // The last row fails after others have been written.
    let query =
        "(SELECT value % 3 AS k, 10 / (100000 - value) AS x FROM generate_series(1, 100000))";
    for more in ["", "PARTITIONED BY (k)"] {
        let copy = format!(
            "COPY {query} TO '{}' STORED AS TFRECORD {more}",
            folder.name("out/")
        );
        assert!(error(&context, &copy).await.contains("Divide by zero"));
        assert_eq!(files(&folder, "out"), Vec::<String>::new());
    }
    let copy = format!(
        "COPY (SELECT arrow_cast(0.1, 'Float64') AS x) TO '{}'",
        folder.name("a.tfrecord")
    );
    let message = error(&context, &copy).await;
    assert!(
        message.contains("\"x\"") && message.contains("OPTIONS (lossy true) allows the change"),
        "{message}"
    );
    run(
        &context,
        &copy.replace(".tfrecord'", ".tfrecord' OPTIONS (lossy true)"),
    )
    .await;
    assert_eq!(files(&folder, ""), ["a.tfrecord"]);
}

#[tokio::test]
async fn columns_that_cannot_be_encoded_are_errors_before_writing() {
    let (folder, context) = (Folder::new(), session());
    for (query, part) in [
        ("SELECT now() AS x", "Timestamp"),
        ("SELECT named_struct('a', 1) AS x", "x"),
        (
            "SELECT [[1], [2]] AS x",
            "OPTIONS (record_type 'sequence-example')",
        ),
    ] {
        let message = error(
            &context,
            &format!("COPY ({query}) TO '{}'", folder.name("a.tfrecord")),
        )
        .await;
        assert!(message.contains(part), "{message}");
        assert_eq!(files(&folder, ""), Vec::<String>::new());
    }
    let copy = format!(
        "COPY (SELECT [[1], [2]] AS x) TO '{}' OPTIONS (record_type 'sequence-example')",
        folder.name("a.tfrecord")
    );
    run(&context, &copy).await;
    check(
        rows(
            &context,
            &format!("SELECT x FROM '{}'", folder.name("a.tfrecord")),
        )
        .await,
        ["[[1], [2]]"],
    );
}

#[tokio::test]
async fn other_formats_come_out_of_copy_too() {
    let (folder, context) = (Folder::new(), session());
    for ending in ["csv", "json", "parquet", "arrow"] {
        let out = folder.name(&format!("a.{ending}"));
        let copy = format!(
            "COPY (SELECT city, label FROM '{}') TO '{out}'",
            testdata("shards/")
        );
        assert_eq!(run(&context, &copy).await, ["200"], "{ending}");
        check(
            rows(&context, &format!("SELECT count(*) FROM '{out}'")).await,
            ["200"],
        );
    }
}

#[tokio::test]
async fn rows_are_added_to_a_table_that_is_a_folder() {
    let (folder, context) = (Folder::new(), session());
    let create = format!(
        "CREATE EXTERNAL TABLE t (x INT, name VARCHAR DEFAULT 'none', split VARCHAR) STORED AS TFRECORD \
         PARTITIONED BY (split) LOCATION '{}'",
        folder.name("t")
    );
    run(&context, &create).await;
    check(rows(&context, "SELECT count(*) FROM t").await, ["0"]);
    run(
        &context,
        "INSERT INTO t VALUES (1, 'a', 'train'), (2, NULL, 'test')",
    )
    .await;
    run(&context, "INSERT INTO t (x, split) VALUES (3, 'train')").await;
    let found = run(&context, "SELECT x, name, split FROM t ORDER BY x").await;
    assert_eq!(
        found,
        ["1 | a | train", "2 | none | test", "3 | none | train"]
    );
    let files = files(&folder, "t");
    assert_eq!(
        files
            .iter()
            .filter(|name| name.starts_with("split=train/"))
            .count(),
        2,
        "{files:?}"
    );
    // A column of another type is cast by the statement, and one that does not fit is an error.
    let message = error(
        &context,
        "INSERT INTO t (x, split) VALUES (3000000000, 'train')",
    )
    .await;
    assert!(message.contains("3000000000"), "{message}");
    check(rows(&context, "SELECT count(*) FROM t").await, ["3"]);
}

#[tokio::test]
async fn repeated_inserts_add_shards() {
    let (folder, context) = (Folder::new(), session());
    let create = format!(
        "CREATE EXTERNAL TABLE t (x INT) STORED AS TFRECORD LOCATION '{}' OPTIONS (shards 2, overwrite true)",
        folder.name("t")
    );
    run(&context, &create).await;
    for x in 1..4 {
        run(&context, &format!("INSERT INTO t VALUES ({x})")).await;
    }
    check(
        rows(&context, "SELECT x FROM t ORDER BY x").await,
        ["1", "2", "3"],
    );
    assert_eq!(files(&folder, "t").len(), 6);
}

#[tokio::test]
async fn folders_have_the_names_of_their_values() {
    let (folder, context) = (Folder::new(), session());
    let values = "(VALUES (1, 'Gdańsk'), (2, 'a/b'), (3, '10 %'), (4, '')) AS t(x, city)";
    for (out, options) in [("plain", ""), ("shards", " OPTIONS (shards 2)")] {
        let place = folder.name(out);
        let copy = format!(
            "COPY (SELECT * FROM {values}) TO '{place}/' STORED AS TFRECORD PARTITIONED BY (city){options}"
        );
        run(&context, &copy).await;
        let found = rows(
            &context,
            &format!("SELECT city, x FROM '{place}/' ORDER BY x"),
        )
        .await;
        check(found, ["Gdańsk | 1", "a/b | 2", "10 % | 3", " | 4"]);
    }
    let copy = format!(
        "COPY (SELECT 1 AS x) TO '{}' OPTIONS (shards 2)",
        folder.name("a b.tfrecord")
    );
    run(&context, &copy).await;
    assert!(folder.path().join("a b-00000-of-00002.tfrecord").is_file());
    // NULL has a folder of its own, unless the column is also in the files.
    let place = folder.name("null");
    let copy = format!(
        "COPY (VALUES (1, 7), (2, NULL)) TO '{place}/' STORED AS TFRECORD PARTITIONED BY (column2)"
    );
    let message = error(
        &context,
        &format!("{copy} OPTIONS ('execution.keep_partition_by_columns' true)"),
    )
    .await;
    assert!(
        message.contains("PARTITIONED BY column2: it is NULL in a row"),
        "{message}"
    );
    run(&context, &copy).await;
    let parts = [
        "column2=7/part-00000.tfrecord",
        "column2=__HIVE_DEFAULT_PARTITION__/part-00000.tfrecord",
    ];
    assert_eq!(files(&folder, "null"), parts);
    check(
        rows(
            &context,
            &format!("SELECT column1 FROM '{place}' WHERE column2 IS NULL"),
        )
        .await,
        ["2"],
    );
}

#[tokio::test]
async fn rows_are_not_added_to_files() {
    let (folder, context) = (Folder::new(), session());
    let file = folder.shard("a.tfrecord", [example(&[("x", Value::Ints(&[1]))])]);
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION '{}'",
        file.display()
    );
    run(&context, &create).await;
    let message = error(&context, "INSERT INTO t VALUES (2)").await;
    assert!(
        message.contains("INSERT needs a table whose LOCATION is one folder"),
        "{message}"
    );
    let message = error(
        &context,
        &format!("INSERT INTO '{}' VALUES (2)", file.display()),
    )
    .await;
    assert!(message.contains("CREATE EXTERNAL TABLE"), "{message}");
}

/// Values of every type with a view type, also nested.
const VIEWS: &str = "SELECT arrow_cast('a', 'Utf8View') AS text, arrow_cast('b', 'BinaryView') AS bytes, \
                     [arrow_cast('c', 'Utf8View')] AS list, [[arrow_cast('c', 'BinaryView')]] AS lists, \
                     named_struct('t', arrow_cast('d', 'Utf8View'), 'l', [arrow_cast('e', 'Utf8View')]) AS both, \
                     map(['k'], [arrow_cast('f', 'Utf8View')]) AS pairs, \
                     arrow_cast(['g'], 'ListView(Utf8View)') AS list_view, \
                     arrow_cast(['h'], 'LargeList(Utf8View)') AS large, \
                     arrow_cast(['i'], 'FixedSizeList(1 x Utf8View)') AS fixed, \
                     arrow_cast('j', 'Dictionary(Int32, Utf8View)') AS dictionary";

#[tokio::test]
async fn copied_files_have_no_views() {
    use datafusion::parquet::arrow::{
        ARROW_SCHEMA_META_KEY, arrow_reader::ParquetRecordBatchReaderBuilder,
    };
    let (context, folder) = (session(), Folder::new());
    // Readers take the types from the Arrow schema in the metadata, which must not declare views.
    for (query, name) in [
        (VIEWS.to_owned(), "views"),
        (format!("SELECT * FROM '{}'", testdata("shards/")), "data"),
    ] {
        let file = folder.name(&format!("{name}.parquet"));
        rows(&context, &format!("COPY ({query}) TO '{file}'"))
            .await
            .unwrap();
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&file).unwrap()).unwrap();
        let metadata = builder
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .unwrap();
        assert!(
            metadata
                .iter()
                .any(|pair| pair.key == ARROW_SCHEMA_META_KEY),
            "{metadata:?}"
        );
        let schema = builder.schema().to_string();
        assert!(
            !schema.contains("View") && schema.contains("Utf8"),
            "{schema}"
        );
        let file = folder.name(&format!("{name}.arrow"));
        rows(&context, &format!("COPY ({query}) TO '{file}'"))
            .await
            .unwrap();
        let file = std::fs::File::open(&file).unwrap();
        let reader = datafusion::arrow::ipc::reader::FileReader::try_new(file, None).unwrap();
        let schema = reader.schema().to_string();
        assert!(
            !schema.contains("View") && schema.contains("Utf8"),
            "{schema}"
        );
    }
}

#[tokio::test]
async fn copies_without_views_keep_rows_and_metadata() {
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let (context, folder, shards) = (session(), Folder::new(), testdata("shards/"));
    let file = folder.name("a.parquet");
    let query = |source: &str| format!("SELECT city, tags, label FROM '{source}' ORDER BY 1, 2, 3");
    rows(
        &context,
        &format!("COPY (SELECT * FROM '{shards}') TO '{file}' PARTITIONED BY (label)"),
    )
    .await
    .unwrap();
    let expect = rows(&context, &query(&shards)).await.unwrap();
    let found = rows(
        &context,
        &format!("SELECT city, tags, label FROM '{file}/' ORDER BY 1, 2, 3"),
    )
    .await
    .unwrap();
    assert_eq!(found, expect);
    let file = folder.name("b.parquet");
    rows(
        &context,
        &format!("COPY (SELECT * FROM '{shards}') TO '{file}'"),
    )
    .await
    .unwrap();
    let schema = context
        .sql(&format!("SELECT * FROM '{shards}'"))
        .await
        .unwrap()
        .schema()
        .as_arrow()
        .clone();
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&file).unwrap()).unwrap();
    for field in schema.fields() {
        let copied = builder.schema().field_with_name(field.name()).unwrap();
        assert_eq!(copied.metadata(), field.metadata(), "{field}");
        assert_eq!(copied.is_nullable(), field.is_nullable(), "{field}");
    }
}

#[tokio::test]
async fn columns_with_equal_names_are_errors() {
    let (context, folder) = (session(), Folder::new());
    for (query, part) in [
        (
            "SELECT a.v, b.v FROM (VALUES (1)) a(v), (VALUES (2)) b(v)",
            "two columns are named \"v\"",
        ),
        (
            "SELECT named_struct('x', 1, 'x', 2) AS s",
            "two fields of column \"s\" are named \"x\"",
        ),
        (
            "SELECT [named_struct('x', 1, 'x', 2)] AS s",
            "two fields of column \"s\" are named \"x\"",
        ),
    ] {
        for ending in ["parquet", "arrow", "json"] {
            let file = folder.name(&format!("a.{ending}"));
            let message = error(&context, &format!("COPY ({query}) TO '{file}'")).await;
            assert!(message.contains(part), "{ending}: {message}");
            assert!(!std::path::Path::new(&file).exists(), "{file}");
        }
    }
    rows(
        &context,
        &format!(
            "COPY (SELECT a.v, b.v FROM (VALUES (1)) a(v), (VALUES (2)) b(v)) TO '{}'",
            folder.name("a.csv")
        ),
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn a_lossy_value_is_reported_once_in_the_syntax_of_sql() {
    let (context, folder) = (session(), Folder::new());
    let copy = format!("COPY (SELECT 0.1 AS s) TO '{}'", folder.name("a.tfrecord"));
    let found = rows(&context, &copy).await.unwrap_err();
    let mut messages = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = Some(found.find_root());
    while let Some(error) = cause {
        messages.push(error.to_string());
        cause = error.source();
    }
    assert!(
        messages
            .iter()
            .any(|text| text.contains("OPTIONS (lossy true)")),
        "{messages:?}"
    );
    assert!(
        messages.iter().all(|text| !text.contains("--lossy")),
        "{messages:?}"
    );
}

/// NaN, bytes and nulls among the values of dictionaries are what `--format json` and `csv` print.
#[tokio::test]
async fn text_files_have_the_values_that_are_printed() {
    let (folder, context) = (Folder::new(), session());
    let query = "SELECT CAST('NaN' AS DOUBLE) AS n, CAST('-inf' AS FLOAT) AS i, X'ff00' AS b, X'6869' AS t, \
                 arrow_cast(CAST(NULL AS VARCHAR), 'Dictionary(Int32, Utf8)') AS d, \
                 arrow_cast('x', 'Dictionary(Int32, Utf8)') AS e, [1.5, CAST('NaN' AS DOUBLE)] AS l";
    for (format, expected) in [
        (
            "json",
            "{\"n\":\"NaN\",\"i\":\"-Infinity\",\"b\":{\"b64\":\"/wA=\"},\"t\":\"hi\",\"d\":null,\"e\":\"x\",\"l\":[1.5,\"NaN\"]}\n",
        ),
        (
            "csv",
            "n,i,b,t,d,e,l\nNaN,-Infinity,\"{\"\"b64\"\":\"\"/wA=\"\"}\",hi,,x,\"[1.5,\"\"NaN\"\"]\"\n",
        ),
    ] {
        let to = folder.name(&format!("a.{format}"));
        rows(&context, &format!("COPY ({query}) TO '{to}'"))
            .await
            .unwrap();
        assert_eq!(std::fs::read_to_string(&to).unwrap(), expected);
    }
    // The options of CSV are DataFusion's.
    let to = folder.name("b.csv");
    let options = "OPTIONS (has_header false, delimiter ';', null_value 'NA')";
    rows(
        &context,
        &format!("COPY (SELECT 1 AS a, NULL AS b, X'6869' AS c) TO '{to}' {options}"),
    )
    .await
    .unwrap();
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "1;NA;hi\n");
}
