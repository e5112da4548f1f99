//! Files of other formats, in the same session.

use std::{fs::File, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::{
    arrow::ipc::writer::FileWriter,
    parquet::arrow::ArrowWriter,
    prelude::{SessionConfig, SessionContext},
};
use tfarrow_sql::{SessionOptions, session_context};

use crate::common::*;

#[tokio::test]
async fn parquet_arrow_csv_and_json() {
    let folder = Folder::new();
    let context = session();
    let source = testdata("shards");
    for (format, count) in [
        ("parquet", 200),
        ("arrow", 200),
        ("csv", 200),
        ("json", 200),
    ] {
        let to = folder.name(&format!("{format}/part.{format}"));
        let columns = "label, price";
        let query = format!("COPY (SELECT {columns} FROM '{source}') TO '{to}' STORED AS {format}");
        check(rows(&context, &query).await, [count.to_string().as_str()]);
        for from in [
            to.clone(),
            folder.name(format),
            folder.name(&format!("{format}/*.{format}")),
        ] {
            check(
                rows(&context, &format!("SELECT sum(label) FROM '{from}'")).await,
                ["341"],
            );
        }
    }
    // The content determines the format, whatever the extension.
    std::fs::rename(
        folder.name("parquet/part.parquet"),
        folder.name("parquet/part-0[1]"),
    )
    .unwrap();
    check(
        rows(
            &context,
            &format!("SELECT sum(label) FROM '{}'", folder.name("parquet")),
        )
        .await,
        ["341"],
    );
    // Files of other formats in the same folder.
    let (arrow, csv) = (folder.name("arrow"), folder.name("csv"));
    let query =
        format!("SELECT sum(label) FROM (SELECT * FROM '{arrow}' UNION ALL SELECT * FROM '{csv}')");
    check(rows(&context, &query).await, ["682"]);
}

#[tokio::test]
async fn folders_of_parquet_may_be_partitioned() {
    let folder = Folder::new();
    let context = session();
    let to = folder.name("out/");
    let query = format!(
        "COPY (SELECT price, city FROM '{}') TO '{to}' STORED AS PARQUET PARTITIONED BY (city)",
        testdata("shards")
    );
    rows(&context, &query).await.unwrap();
    check(
        rows(
            &context,
            &format!("SELECT count(*) FROM '{to}' WHERE city = 'Lima'"),
        )
        .await,
        ["42"],
    );
}

#[tokio::test]
async fn one_table_holds_one_format() {
    let folder = Folder::new();
    let context = session();
    folder.shard("x/a.tfrecord", [example(&[("label", Value::Ints(&[1]))])]);
    let query = format!(
        "COPY (SELECT 1 AS label) TO '{}' STORED AS PARQUET",
        folder.name("y/b.parquet")
    );
    rows(&context, &query).await.unwrap();
    let query = format!(
        "SELECT count(*) FROM '{}' a JOIN '{}' b ON a.label = b.label",
        folder.name("x"),
        folder.name("y")
    );
    check(rows(&context, &query).await, ["1"]);
}

/// Writes a file of a folder, for each text.
fn texts(folder: &Folder, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = std::path::PathBuf::from(folder.name(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// The first file decides neither the columns nor the types of the others.
#[tokio::test]
async fn columns_of_all_files_are_read() {
    let (folder, context) = (Folder::new(), session());
    for format in ["parquet", "json"] {
        for (number, query) in ["SELECT 1 AS a", "SELECT 2.5::double AS a, 'x' AS b"]
            .iter()
            .enumerate()
        {
            let to = folder.name(&format!("{format}/{number}.{format}"));
            rows(
                &context,
                &format!("COPY ({query}) TO '{to}' STORED AS {format}"),
            )
            .await
            .unwrap();
        }
        let query = format!(
            "SELECT sum(a), max(b), count(b) FROM '{}'",
            folder.name(&format!("{format}/*.{format}"))
        );
        check(rows(&context, &query).await, ["3.5 | x | 1"]);
    }
    rows(
        &context,
        &format!(
            "COPY (SELECT 'text' AS a) TO '{}'",
            folder.name("parquet/2.parquet")
        ),
    )
    .await
    .unwrap();
    let error = rows(
        &context,
        &format!("SELECT * FROM '{}'", folder.name("parquet")),
    )
    .await
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("column \"a\"") && error.contains("2.parquet"),
        "{error}"
    );
}

/// DataFusion finds the columns of Arrow files by position, and does not cast them.
#[tokio::test]
async fn arrow_files_of_one_table_have_the_same_columns() {
    let (folder, context) = (Folder::new(), session());
    for (name, query) in [
        ("1", "SELECT 1 AS a, 2 AS b"),
        ("2", "SELECT 3 AS b, 4 AS a"),
        ("3", "SELECT 1 AS a, 2.5 AS b"),
    ] {
        rows(
            &context,
            &format!(
                "COPY ({query}) TO '{}'",
                folder.name(&format!("{name}.arrow"))
            ),
        )
        .await
        .unwrap();
    }
    for names in ["[12]", "[13]"] {
        let error = rows(
            &context,
            &format!("SELECT * FROM '{}'", folder.name(&format!("{names}.arrow"))),
        )
        .await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("same columns in the same order"), "{error}");
    }
}

/// All rows decide the columns of text files, as for the other commands.
#[tokio::test]
async fn late_rows_of_text_are_read() {
    let (folder, context) = (Folder::new(), session());
    let ints = |line: &str| line.repeat(2_000);
    texts(
        &folder,
        &[
            (
                "late.jsonl",
                &(ints("{\"a\":1}\n") + "{\"a\":2.5,\"late\":\"x\"}\n"),
            ),
            ("late.csv", &("a\n".to_owned() + &ints("1\n") + "2.5\n")),
        ],
    );
    check(
        rows(
            &context,
            &format!(
                "SELECT sum(a), max(late) FROM '{}'",
                folder.name("late.jsonl")
            ),
        )
        .await,
        ["2002.5 | x"],
    );
    check(
        rows(
            &context,
            &format!("SELECT sum(a) FROM '{}'", folder.name("late.csv")),
        )
        .await,
        ["2002.5"],
    );
}

#[tokio::test]
async fn columns_of_csv_files_are_found_by_their_names() {
    let (folder, context) = (Folder::new(), session());
    texts(
        &folder,
        &[
            ("same/1.csv", "a,b\n1,2\n"),
            ("same/2.csv", "a,b\n3,4.5\n"),
            ("other/1.csv", "a,b\n1,2\n"),
            ("other/2.csv", "b,a,c\n3,4,x\n"),
        ],
    );
    check(
        rows(
            &context,
            &format!("SELECT sum(a), sum(b) FROM '{}'", folder.name("same/")),
        )
        .await,
        ["4 | 6.5"],
    );
    check(
        rows(
            &context,
            &format!("SELECT * FROM '{}'", folder.name("other/")),
        )
        .await,
        ["1 | 2 | ", "4 | 3 | x"],
    );
}

/// Sets up a session that divides small files among its partitions.
fn dividing() -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(4)
        .set_usize("datafusion.optimizer.repartition_file_min_size", 1);
    session_context(SessionOptions {
        config,
        ..SessionOptions::default()
    })
    .unwrap()
}

/// Files are divided only where each line feed ends a row.
#[tokio::test]
async fn rows_of_divided_text_are_complete() {
    let (folder, context) = (Folder::new(), dividing());
    let csv = |note: &str| {
        let lines = (0..5_000).map(|row| format!("{row},{},\"{note}\"\n", 2 * row));
        "id,twice,note\n".to_owned() + &lines.collect::<String>()
    };
    let json =
        (0..5_000).map(|row| format!("{{\"id\":{row},\"twice\":{},\"note\":\"\"}}\n", 2 * row));
    let json = json.collect::<Vec<_>>();
    let files = [
        ("quoted.csv", csv("see table:\n7,8,9"), false),
        ("plain.csv", csv("x"), true),
        ("windows.csv", csv("x").replace('\n', "\r\n"), true),
        ("mark.csv", "\u{feff}".to_owned() + &csv("x"), true),
        ("a.jsonl", json.concat(), true),
        ("a.json", format!("[{}]", json.join(",")), false),
    ];
    for (name, text, is_divided) in files {
        texts(&folder, &[(name, &text)]);
        let query = format!(
            "SELECT count(*), sum(id), sum(twice), count(note) FROM '{}'",
            folder.name(name)
        );
        check(
            rows(&context, &query).await,
            ["5000 | 12497500 | 24995000 | 5000"],
        );
        let plan = rows(&context, &format!("EXPLAIN {query}"))
            .await
            .unwrap()
            .concat();
        assert_eq!(plan.contains("4 groups"), is_divided, "{name}: {plan}");
        // Rows have the order of the file.
        let query = format!("SELECT id FROM '{}' LIMIT 3 OFFSET 4990", folder.name(name));
        check(rows(&context, &query).await, ["4990", "4991", "4992"]);
    }
}

/// SQL and the other commands infer columns in the same way.
#[tokio::test]
async fn text_has_the_types_of_other_commands() {
    let (folder, context) = (Folder::new(), session());
    texts(
        &folder,
        &[
            (
                "a.csv",
                "zip,day,no_day,plus,dot,e,long\n01234,2026-11-27,2026-02-30,+5,.5,1e3,18446744073709551615\n",
            ),
            (
                "mix.jsonl",
                "{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":true}\n{\"a\":1.5}\n{\"a\":null}\n",
            ),
            (
                "big.jsonl",
                "{\"a\":9007199254740993}\n{\"a\":18446744073709551615}\n",
            ),
            ("same.csv", "a,a\n1,2\n"),
            (
                "nan.jsonl",
                "{\"a\":1.5}\n{\"a\":\"NaN\"}\n{\"a\":-Infinity}\n",
            ),
        ],
    );
    let all = |name: &str| format!("SELECT * FROM '{}'", folder.name(name));
    check(
        rows(&context, &all("a.csv")).await,
        ["01234 | 2026-11-27 | 2026-02-30 | 5 | 0.5 | 1000.0 | 18446744073709551615"],
    );
    check(
        rows(&context, &all("mix.jsonl")).await,
        ["1", "x", "true", "1.5", ""],
    );
    check(
        rows(&context, &all("big.jsonl")).await,
        ["9007199254740993", "18446744073709551615"],
    );
    let query = format!(
        "SELECT a, arrow_typeof(a) FROM '{}'",
        folder.name("nan.jsonl")
    );
    check(
        rows(&context, &query).await,
        ["1.5 | Float64", "NaN | Float64", "-inf | Float64"],
    );
    let error = rows(&context, &all("same.csv"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("same.csv: line 1: columns 1 and 2 have the name \"a\""),
        "{error}"
    );
}

#[tokio::test]
async fn errors_of_text_have_the_file_and_the_line() {
    let (folder, context) = (Folder::new(), session());
    texts(
        &folder,
        &[
            ("a.csv", "a,b\n1,2\n3\n"),
            ("a.jsonl", "{\"a\":1}\n\n{\"a\":[1]}\n"),
            ("b.csv", "a\n1\nx\n"),
        ],
    );
    let error = rows(
        &context,
        &format!("SELECT * FROM '{}'", folder.name("a.csv")),
    )
    .await
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("a.csv: line 3 (row 1): found 1 fields, expected 2 as in the header"),
        "{error}"
    );
    let error = rows(
        &context,
        &format!("SELECT * FROM '{}'", folder.name("a.jsonl")),
    )
    .await
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("a.jsonl: line 3 (row 1): field \"a\": found a list"),
        "{error}"
    );
    let declared = format!(
        "CREATE EXTERNAL TABLE b (a INT) STORED AS CSV LOCATION '{}'",
        folder.name("b.csv")
    );
    rows(&context, &declared).await.unwrap();
    let error = rows(&context, "SELECT * FROM b")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("b.csv: line 3 (row 1): ") && error.contains("'x'"),
        "{error}"
    );
}

#[tokio::test]
async fn external_tables_of_text_have_the_options_of_datafusion() {
    let (folder, context) = (Folder::new(), session());
    texts(
        &folder,
        &[
            ("odd.csv", "# a comment\n1;'a;b';NA\n2;c;3.5\n"),
            ("named.csv", "ID,Name\n1,x\n"),
            ("swapped.csv", "name,id\nx,1\n"),
            ("folder/1.csv", "a,b\n1,x\n"),
            ("folder/2.csv", "b,a\ny,2.5\n"),
            ("a.json", "[{\"a\":1},{\"a\":2}]"),
        ],
    );
    let create = |name: &str, columns: &str, format: &str, file: &str, options: &str| {
        format!(
            "CREATE EXTERNAL TABLE {name}{columns} STORED AS {format} LOCATION '{}' {options}",
            folder.name(file)
        )
    };
    let options =
        "OPTIONS (has_header false, delimiter ';', quote '''', comment '#', null_regex '^NA$')";
    rows(&context, &create("odd", "", "CSV", "odd.csv", options))
        .await
        .unwrap();
    check(
        rows(&context, "SELECT column_1, column_2, column_3 FROM odd").await,
        ["1 | a;b | ", "2 | c | 3.5"],
    );
    // Declared columns may have other names than the header.
    rows(
        &context,
        &create(
            "named",
            " (number INT, text VARCHAR)",
            "CSV",
            "named.csv",
            "",
        ),
    )
    .await
    .unwrap();
    check(
        rows(&context, "SELECT number + 1, text FROM named").await,
        ["2 | x"],
    );
    rows(
        &context,
        &create(
            "swapped",
            " (id INT, name VARCHAR)",
            "CSV",
            "swapped.csv",
            "",
        ),
    )
    .await
    .unwrap();
    check(
        rows(&context, "SELECT id + 1, name FROM swapped").await,
        ["2 | x"],
    );
    rows(&context, &create("folder", "", "CSV", "folder/", ""))
        .await
        .unwrap();
    check(
        rows(&context, "SELECT a, b FROM folder ORDER BY a").await,
        ["1.0 | x", "2.5 | y"],
    );
    rows(
        &context,
        &create(
            "items",
            "",
            "JSON",
            "a.json",
            "OPTIONS (newline_delimited false)",
        ),
    )
    .await
    .unwrap();
    check(rows(&context, "SELECT sum(a) FROM items").await, ["3"]);
    rows(&context, "INSERT INTO folder VALUES (3, 'z')")
        .await
        .unwrap();
    check(
        rows(&context, "SELECT count(*), sum(a) FROM folder").await,
        ["3 | 6.5"],
    );
}

#[tokio::test]
async fn compressed_text_is_read() {
    let (folder, context) = (Folder::new(), session());
    for (ending, name) in [
        ("gz", "gzip"),
        ("bz2", "bzip2"),
        ("xz", "xz"),
        ("zst", "zstd"),
    ] {
        for format in ["csv", "json"] {
            let to = folder.name(&format!("a.{format}.{ending}"));
            let copy = format!(
                "COPY (SELECT 7 AS a, 'x' AS b) TO '{to}' STORED AS {format} OPTIONS (compression '{name}')"
            );
            rows(&context, &copy).await.unwrap();
            check(
                rows(&context, &format!("SELECT a, b FROM '{to}'")).await,
                ["7 | x"],
            );
        }
    }
}

/// The metadata of Parquet files has the type of their records.
#[tokio::test]
async fn records_of_parquet_are_written_back() {
    let (folder, context) = (Folder::new(), session());
    let (parquet, back) = (folder.name("lists.parquet"), folder.name("lists.tfrecord"));
    let source = testdata("example_list/queries.tfrecord");
    rows(
        &context,
        &format!("COPY (SELECT * FROM '{source}') TO '{parquet}'"),
    )
    .await
    .unwrap();
    rows(
        &context,
        &format!("COPY (SELECT * FROM '{parquet}') TO '{back}'"),
    )
    .await
    .unwrap();
    let expect = rows(&context, &format!("SELECT * FROM '{source}'"))
        .await
        .unwrap();
    assert_eq!(
        rows(&context, &format!("SELECT * FROM '{back}'"))
            .await
            .unwrap(),
        expect
    );
    // Without the examples, rows are Examples.
    rows(
        &context,
        &format!(
            "COPY (SELECT count(*) AS n FROM '{parquet}') TO '{}'",
            folder.name("n.tfrecord")
        ),
    )
    .await
    .unwrap();
    let count = expect.len().to_string();
    check(
        rows(
            &context,
            &format!("SELECT * FROM '{}'", folder.name("n.tfrecord")),
        )
        .await,
        [count.as_str()],
    );
}

/// DataFusion merges columns of one name, or fails where their types differ.
#[tokio::test]
async fn two_columns_of_one_name_are_an_error() {
    let folder = Folder::new();
    let columns: [(&str, ArrayRef); 3] = [
        ("x", Arc::new(Int64Array::from(vec![1, 2]))),
        ("y", Arc::new(Int64Array::from(vec![3, 4]))),
        ("x", Arc::new(Int64Array::from(vec![5, 6]))),
    ];
    let others: [(&str, ArrayRef); 2] = [
        ("x", Arc::new(Int64Array::from(vec![1, 2]))),
        ("x", Arc::new(StringArray::from(vec!["a", "b"]))),
    ];
    for (name, columns, second) in [("same", columns.to_vec(), 3), ("other", others.to_vec(), 2)] {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let (parquet, arrow) = (
            folder.name(&format!("{name}.parquet")),
            folder.name(&format!("{name}.arrow")),
        );
        let mut writer =
            ArrowWriter::try_new(File::create(&parquet).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let mut writer =
            FileWriter::try_new(File::create(&arrow).unwrap(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let created = refusal(&format!(
            "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{parquet}'"
        ))
        .await;
        assert!(
            created.contains("have the name \"x\"") && created.contains(&parquet),
            "{created}"
        );
        for file in [parquet, arrow] {
            let copy = format!(
                "COPY (SELECT * FROM '{file}') TO '{}'",
                folder.name("copy.tfrecord")
            );
            for statement in [format!("SELECT * FROM '{file}'"), copy] {
                let found = refusal(&statement).await;
                let expect = format!("columns 1 and {second} have the name \"x\"");
                assert!(found.contains(&expect) && found.contains(&file), "{found}");
            }
        }
    }
}

/// Tables of TFRecord refuse files of other formats: their rows are not read as records, which
/// would change values.
#[tokio::test]
async fn tables_of_tfrecord_refuse_other_formats() {
    let folder = Folder::new();
    let json = folder.file("a.json", b"{\"big\": 123456789.123}\n");
    let csv = folder.file("a.csv", b"big\n123456789.123\n");
    for file in [json, csv] {
        let file = file.display();
        let query = format!("SELECT * FROM read_tfrecord('{file}')");
        let found = error(&session(), &query).await;
        assert!(found.contains("not TFRecord"), "{found}");
        let table =
            format!("CREATE EXTERNAL TABLE t (big DOUBLE) STORED AS TFRECORD LOCATION '{file}'");
        let found = error(&session(), &table).await;
        assert!(found.contains("not TFRecord"), "{found}");
    }
}
