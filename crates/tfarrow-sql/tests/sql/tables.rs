//! Tables of CREATE EXTERNAL TABLE: declared columns, partition columns, options, metadata columns.

use crate::common::*;

fn record(label: i64, rest: &[(&str, Value<'_>)]) -> Vec<u8> {
    let labels = [label];
    let mut features = vec![("label", Value::Ints(&labels))];
    features.extend(rest.iter().map(|(name, value)| (*name, value.clone())));
    example(&features)
}

/// A table `t` of a file of these records.
async fn table(
    columns: &str,
    records: Vec<Vec<u8>>,
) -> (datafusion::prelude::SessionContext, Folder) {
    let (folder, context) = (Folder::new(), session());
    let file = folder.shard("a.tfrecord", records).display().to_string();
    rows(
        &context,
        &format!("CREATE EXTERNAL TABLE t {columns} STORED AS TFRECORD LOCATION '{file}'"),
    )
    .await
    .unwrap();
    (context, folder)
}

#[tokio::test]
async fn columns_are_inferred_if_none_is_declared() {
    let (context, _folder) = table("", vec![record(1, &[]), record(2, &[])]).await;
    check(rows(&context, "SELECT sum(label) FROM t").await, ["3"]);
}

#[tokio::test]
async fn declared_columns_have_their_types_and_defaults() {
    let records = vec![
        record(
            1,
            &[
                ("v", Value::Floats(&[1.0, 2.0])),
                ("name", Value::Bytes(&[b"x"])),
                ("on", Value::Ints(&[1])),
            ],
        ),
        record(2, &[("unasked", Value::Ints(&[7]))]),
    ];
    let columns = "(label SMALLINT NOT NULL, v FLOAT[2] DEFAULT [0.5, 0.25], name VARCHAR, \"on\" BOOLEAN DEFAULT false, \
                   w DOUBLE DEFAULT 1.5, more BIGINT[])";
    let (context, _folder) = table(columns, records).await;
    check(
        rows(&context, "SELECT * FROM t").await,
        [
            "1 | [1.0, 2.0] | x | true | 1.5 | ",
            "2 | [0.5, 0.25] |  | false | 1.5 | ",
        ],
    );
    let types = "SELECT arrow_typeof(label), arrow_typeof(w), arrow_typeof(name) FROM t LIMIT 1";
    check(rows(&context, types).await, ["Int16 | Float64 | Utf8View"]);
    // A filter sees the declared values, and a projection casts only its own columns.
    check(
        rows(
            &context,
            "SELECT label FROM t WHERE v[1] = 0.5 AND NOT \"on\"",
        )
        .await,
        ["2"],
    );
    check(rows(&context, "SELECT count(*) FROM t").await, ["2"]);
}

/// The error of a query over a record with the value `value` in a declared column, without its
/// position.
async fn cast_error(column: &str, value: Value<'_>) -> String {
    let (context, folder) = table(
        &format!("({column})"),
        vec![
            record(0, &[("x", value.clone()), ("ok", Value::Ints(&[5]))]),
            record(1, &[("ok", Value::Ints(&[6]))]),
        ],
    )
    .await;
    let message = error(&context, "SELECT * FROM t").await;
    let place = format!("{}: record 0 (byte 0): ", folder.name("a.tfrecord"));
    let (_, cause) = message
        .split_once(&place)
        .unwrap_or_else(|| panic!("{message}"));
    // A filter on the column gives the same error.
    let filtered = error(&context, "SELECT 1 FROM t WHERE x IS NOT NULL").await;
    assert!(filtered.ends_with(cause), "{filtered}");
    cause.to_owned()
}

#[tokio::test]
async fn a_value_that_cannot_be_cast_is_an_error_with_its_position() {
    let cause = cast_error("x TINYINT", Value::Ints(&[300])).await;
    assert_eq!(cause, "feature \"x\": declared as Int8, found 300");
    let cause = cast_error("x BIGINT UNSIGNED", Value::Ints(&[-1])).await;
    assert_eq!(cause, "feature \"x\": declared as UInt64, found -1");
    let cause = cast_error("x BOOLEAN", Value::Ints(&[2])).await;
    assert_eq!(cause, "feature \"x\": declared as Boolean, found 2");
    let cause = cast_error("x FLOAT[3]", Value::Floats(&[1.0, 2.0])).await;
    assert!(
        cause.starts_with("feature \"x\": declared as FixedSizeList(3 x Float32"),
        "{cause}"
    );
    assert!(cause.ends_with("found [1.0, 2.0] (2 values)"), "{cause}");
    let cause = cast_error("x INT[]", Value::Ints(&[1, 1 << 40])).await;
    assert!(
        cause.ends_with("found [1, 1099511627776] (2 values)"),
        "{cause}"
    );
    let cause = cast_error("x FLOAT", Value::Ints(&[1])).await;
    assert!(
        cause.contains("expected float_list, found int64_list"),
        "{cause}"
    );
    let cause = cast_error("x VARCHAR", Value::Bytes(&[b"\xff"])).await;
    assert!(cause.contains("expected UTF-8 text"), "{cause}");
}

#[tokio::test]
async fn a_missing_required_feature_is_an_error_with_its_position() {
    let records = vec![record(0, &[("x", Value::Ints(&[1]))]), record(1, &[])];
    let (context, _folder) = table("(x INT NOT NULL)", records).await;
    let message = error(&context, "SELECT x FROM t").await;
    assert!(message.contains("record 1 (byte "), "{message}");
    assert!(
        message.ends_with("feature \"x\": declared as Int32 NOT NULL, found no such feature"),
        "{message}"
    );
}

#[tokio::test]
async fn types_that_no_feature_can_be_cast_to_are_errors() {
    for (column, part) in [
        ("x TIMESTAMP", "cannot be read as Timestamp"),
        ("x DECIMAL(5, 2)", "declare BOOLEAN"),
    ] {
        let folder = Folder::new();
        let file = folder.shard("a", [record(1, &[])]).display().to_string();
        let create =
            format!("CREATE EXTERNAL TABLE t ({column}) STORED AS TFRECORD LOCATION '{file}'");
        let message = error(&session(), &create).await;
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn feature_lists_are_lists_of_lists() {
    let context = session();
    let create = format!(
        "CREATE EXTERNAL TABLE t (id BIGINT, tokens VARCHAR[][]) STORED AS TFRECORD LOCATION '{}'",
        testdata("sequence.tfrecord")
    );
    rows(&context, &create).await.unwrap();
    let inferred = format!("SELECT count(*) FROM '{}'", testdata("sequence.tfrecord"));
    assert_eq!(
        rows(&context, "SELECT count(*) FROM t").await.unwrap(),
        rows(&context, &inferred).await.unwrap()
    );
}

fn partitioned() -> Folder {
    let folder = Folder::new();
    for (name, label) in [
        ("split=train/year=2024/a", 1),
        ("split=train/year=2025/b", 2),
        ("split=a%20b/year=2024/c", 3),
    ] {
        folder.shard(name, [record(label, &[]), record(label, &[])]);
    }
    folder
}

#[tokio::test]
async fn folders_are_partition_columns_and_prune_files() {
    let (folder, context) = (partitioned(), session());
    let root = folder.name("");
    let query =
        format!("SELECT split, year, sum(label) FROM '{root}' GROUP BY split, year ORDER BY 3");
    check(
        rows(&context, &query).await,
        ["train | 2024 | 2", "train | 2025 | 4", "a b | 2024 | 6"],
    );
    // Pruned files are not opened, so that a corrupt one is no error.
    let damaged = folder.path().join("split=train/year=2025/b");
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[12] ^= 1;
    std::fs::write(damaged, bytes).unwrap();
    let query = format!(
        "SELECT sum(label), max(split) FROM '{root}' WHERE split <> 'train' OR year = '2024'"
    );
    rows(&context, "SET tfarrow.sample_records = 1")
        .await
        .unwrap();
    assert!(
        rows(&context, &query).await.is_err(),
        "the sample looks into all files"
    );
    let create = format!(
        "CREATE EXTERNAL TABLE t (label INT, split VARCHAR, year INT) STORED AS TFRECORD PARTITIONED BY (split, year) \
         LOCATION '{root}' OPTIONS (record_type 'example')"
    );
    rows(&context, &create).await.unwrap();
    let query = "SELECT sum(label), max(split), arrow_typeof(max(year)) FROM t WHERE split <> 'train' OR year < 2025";
    check(rows(&context, query).await, ["8 | train | Int32"]);
    check(
        rows(&context, "SELECT label FROM t WHERE year = 1999").await,
        [],
    );
    assert!(rows(&context, "SELECT sum(label) FROM t").await.is_err());
}

#[tokio::test]
async fn declared_partition_columns_require_their_folders() {
    let (folder, context) = (partitioned(), session());
    let create = |column: &str| {
        format!(
            "CREATE EXTERNAL TABLE t STORED AS TFRECORD PARTITIONED BY ({column}) LOCATION '{}'",
            folder.name("")
        )
    };
    rows(&context, &create("year")).await.unwrap();
    check(
        rows(
            &context,
            "SELECT year, count(*) FROM t GROUP BY year ORDER BY year",
        )
        .await,
        ["2024 | 4", "2025 | 2"],
    );
    let message = error(&session(), &create("label")).await;
    assert!(
        message.contains("the data already has a feature \"label\""),
        "{message}"
    );
    let context = session();
    rows(
        &context,
        &format!(
            "{} OPTIONS (metadata_columns '_record,_file')",
            create("year")
        ),
    )
    .await
    .unwrap();
    let query =
        "SELECT year, _record, right(_file, 11) FROM t ORDER BY year DESC, _file, _record LIMIT 2";
    check(
        rows(&context, query).await,
        ["2025 | 0 | year=2025/b", "2025 | 1 | year=2025/b"],
    );
    let context = session();
    rows(&context, &create("month")).await.unwrap();
    assert!(
        error(&context, "SELECT * FROM t")
            .await
            .contains("not in a folder month=..")
    );
}

#[tokio::test]
async fn new_files_are_seen_by_the_next_query() {
    let (folder, context) = (Folder::new(), session());
    folder.shard("a.tfrecord", [record(1, &[])]);
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION '{}'",
        folder.name("")
    );
    rows(&context, &create).await.unwrap();
    check(rows(&context, "SELECT sum(label) FROM t").await, ["1"]);
    folder.shard("b.tfrecord", [record(2, &[])]);
    check(rows(&context, "SELECT sum(label) FROM t").await, ["3"]);
}

#[tokio::test]
async fn metadata_columns_are_optional() {
    let (folder, context) = (Folder::new(), session());
    let file = folder
        .shard("a.tfrecord", [record(5, &[]), record(6, &[])])
        .display()
        .to_string();
    let length = record(5, &[]).len();
    let query = format!(
        "SELECT * FROM read_tfrecord('{file}', metadata_columns => '_file, _record, _offset')"
    );
    check(
        rows(&context, &query).await,
        [
            format!("5 | 0 | 0 | {file}").as_str(),
            &format!("6 | 1 | {} | {file}", length + 16),
        ],
    );
    rows(&context, "SET tfarrow.metadata_columns = 'all'")
        .await
        .unwrap();
    let query = format!(
        "SELECT octet_length(_raw), label FROM '{file}' WHERE _record = 1 AND _file LIKE '%a.tfrecord'"
    );
    check(
        rows(&context, &query).await,
        [format!("{length} | 6").as_str()],
    );
    let taken = folder
        .shard("b.tfrecord", [example(&[("_raw", Value::Ints(&[1]))])])
        .display()
        .to_string();
    let message = error(&context, &format!("SELECT * FROM '{taken}'")).await;
    assert!(
        message.contains("the data already has a feature \"_raw\""),
        "{message}"
    );
}

#[tokio::test]
async fn read_tfrecord_has_its_own_options() {
    let (context, file) = (session(), testdata("scalar.tfrecord"));
    let typeof_id =
        |args: &str| format!("SELECT arrow_typeof(id) FROM read_tfrecord({args}) LIMIT 1");
    let auto = rows(&context, &typeof_id(&format!("'{file}'")))
        .await
        .unwrap();
    let list = rows(
        &context,
        &typeof_id(&format!("'{file}', layout => 'list', sample_records => 5")),
    )
    .await
    .unwrap();
    assert_eq!(list, [format!("List({})", auto[0])]);
    for (args, part) in [
        (
            format!("'{file}', layuot => 'list'"),
            "there is no option tfarrow.layuot; there are: layout",
        ),
        (
            format!("'{file}', layout => 'wide'"),
            "expected one of: auto, list",
        ),
        (String::new(), "read_tfrecord needs a source"),
        ("'no/such.tfrecord'".to_owned(), "no/such.tfrecord: "),
        (format!("'{file}', layout => label"), ""),
    ] {
        let message = error(
            &context,
            &format!("SELECT * FROM read_tfrecord({args}) AS t"),
        )
        .await;
        assert!(message.contains(part), "{args}: {message}");
    }
    // Two sources are one table, and the table can have another name.
    let two = format!(
        "SELECT count(*) FROM read_tfrecord('{file}', '{}') AS t",
        testdata("scalar.tfrecord")
    );
    assert_eq!(rows(&context, &two).await.unwrap().len(), 1);
}

#[tokio::test]
async fn options_of_a_statement_are_checked() {
    let create = |options: &str| {
        format!(
            "CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION '{}' OPTIONS ({options})",
            testdata("scalar.tfrecord")
        )
    };
    let context = session();
    rows(
        &context,
        &create("layout 'list', 'tfarrow.verify_crc' 'never'"),
    )
    .await
    .unwrap();
    assert!(
        rows(&context, "SELECT arrow_typeof(id) FROM t LIMIT 1")
            .await
            .unwrap()[0]
            .starts_with("List")
    );
    let message = error(&session(), &create("layuot 'list'")).await;
    assert!(
        message.contains("there is no option tfarrow.layuot"),
        "{message}"
    );
    let message = error(&session(), &create("on_error 'ignore'")).await;
    assert!(message.contains("expected one of: fail, skip"), "{message}");
}

#[tokio::test]
async fn bytes_can_be_plain_arrays() {
    let (context, file) = (session(), testdata("shards/"));
    let query =
        format!("SELECT arrow_typeof(\"image/encoded\"), arrow_typeof(city) FROM '{file}' LIMIT 1");
    check(rows(&context, &query).await, ["BinaryView | Utf8View"]);
    rows(&context, "SET tfarrow.bytes_type = 'binary'")
        .await
        .unwrap();
    check(rows(&context, &query).await, ["Binary | Utf8"]);
}

#[tokio::test]
async fn explain_insert_creates_no_folder() {
    let (context, folder) = (session(), Folder::new());
    let location = folder.name("new/");
    let create =
        format!("CREATE EXTERNAL TABLE t (a INT) STORED AS TFRECORD LOCATION '{location}'");
    rows(&context, &create).await.unwrap();
    rows(&context, "EXPLAIN INSERT INTO t VALUES (1)")
        .await
        .unwrap();
    assert!(!std::path::Path::new(&location).exists());
    rows(&context, "INSERT INTO t VALUES (1)").await.unwrap();
    check(rows(&context, "SELECT a FROM t").await, ["1"]);
}
