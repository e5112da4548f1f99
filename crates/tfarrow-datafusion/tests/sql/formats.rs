//! Files of other formats, in the same session.

use std::{fs::File, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::{arrow::ipc::writer::FileWriter, parquet::arrow::ArrowWriter};

use crate::common::*;

#[tokio::test]
async fn parquet_arrow_csv_and_json() {
    let folder = Folder::new();
    let context = session();
    let source = testdata("shards");
    for (format, count) in [("parquet", 200), ("arrow", 200), ("csv", 200), ("json", 200)] {
        let to = folder.name(&format!("{format}/part.{format}"));
        let columns = "label, price";
        let query = format!("COPY (SELECT {columns} FROM '{source}') TO '{to}' STORED AS {format}");
        check(rows(&context, &query).await, [count.to_string().as_str()]);
        for from in [to.clone(), folder.name(format), folder.name(&format!("{format}/*.{format}"))] {
            check(rows(&context, &format!("SELECT sum(label) FROM '{from}'")).await, ["341"]);
        }
    }
    // The content determines the format, whatever the extension.
    std::fs::rename(folder.name("parquet/part.parquet"), folder.name("parquet/part-0[1]")).unwrap();
    check(rows(&context, &format!("SELECT sum(label) FROM '{}'", folder.name("parquet"))).await, ["341"]);
    // Files of other formats in the same folder.
    let (arrow, csv) = (folder.name("arrow"), folder.name("csv"));
    let query = format!("SELECT sum(label) FROM (SELECT * FROM '{arrow}' UNION ALL SELECT * FROM '{csv}')");
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
    check(rows(&context, &format!("SELECT count(*) FROM '{to}' WHERE city = 'Lima'")).await, ["42"]);
}

#[tokio::test]
async fn one_table_holds_one_format() {
    let folder = Folder::new();
    let context = session();
    folder.shard("x/a.tfrecord", [example(&[("label", Value::Ints(&[1]))])]);
    let query = format!("COPY (SELECT 1 AS label) TO '{}' STORED AS PARQUET", folder.name("y/b.parquet"));
    rows(&context, &query).await.unwrap();
    let query =
        format!("SELECT count(*) FROM '{}' a JOIN '{}' b ON a.label = b.label", folder.name("x"), folder.name("y"));
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
        for (number, query) in ["SELECT 1 AS a", "SELECT 2.5::double AS a, 'x' AS b"].iter().enumerate() {
            let to = folder.name(&format!("{format}/{number}.{format}"));
            rows(&context, &format!("COPY ({query}) TO '{to}' STORED AS {format}")).await.unwrap();
        }
        let query = format!("SELECT sum(a), max(b), count(b) FROM '{}'", folder.name(&format!("{format}/*.{format}")));
        check(rows(&context, &query).await, ["3.5 | x | 1"]);
    }
    rows(&context, &format!("COPY (SELECT 'text' AS a) TO '{}'", folder.name("parquet/2.parquet"))).await.unwrap();
    let error = rows(&context, &format!("SELECT * FROM '{}'", folder.name("parquet"))).await.unwrap_err().to_string();
    assert!(error.contains("column \"a\"") && error.contains("2.parquet"), "{error}");
}

/// DataFusion finds the columns of Arrow files by position, and does not cast them.
#[tokio::test]
async fn arrow_files_of_one_table_have_the_same_columns() {
    let (folder, context) = (Folder::new(), session());
    for (name, query) in
        [("1", "SELECT 1 AS a, 2 AS b"), ("2", "SELECT 3 AS b, 4 AS a"), ("3", "SELECT 1 AS a, 2.5 AS b")]
    {
        rows(&context, &format!("COPY ({query}) TO '{}'", folder.name(&format!("{name}.arrow")))).await.unwrap();
    }
    for names in ["[12]", "[13]"] {
        let error = rows(&context, &format!("SELECT * FROM '{}'", folder.name(&format!("{names}.arrow")))).await;
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
            ("late.jsonl", &(ints("{\"a\":1}\n") + "{\"a\":2.5,\"late\":\"x\"}\n")),
            ("late.csv", &("a\n".to_owned() + &ints("1\n") + "2.5\n")),
        ],
    );
    check(
        rows(&context, &format!("SELECT sum(a), max(late) FROM '{}'", folder.name("late.jsonl"))).await,
        ["2002.5 | x"],
    );
    check(rows(&context, &format!("SELECT sum(a) FROM '{}'", folder.name("late.csv"))).await, ["2002.5"]);
}

/// DataFusion finds the columns of CSV by position, so that files with other columns are an error.
#[tokio::test]
async fn csv_files_of_one_table_have_the_same_columns() {
    let (folder, context) = (Folder::new(), session());
    texts(
        &folder,
        &[
            ("same/1.csv", "a,b\n1,2\n"),
            ("same/2.csv", "a,b\n3,4.5\n"),
            ("other/1.csv", "a,b\n1,2\n"),
            ("other/2.csv", "b,a\n3,4\n"),
        ],
    );
    check(rows(&context, &format!("SELECT sum(a), sum(b) FROM '{}'", folder.name("same/"))).await, ["4 | 6.5"]);
    let error = rows(&context, &format!("SELECT * FROM '{}'", folder.name("other/"))).await.unwrap_err().to_string();
    assert!(error.contains("2.csv has the columns b, a") && error.contains("same order"), "{error}");
}

/// The metadata of Parquet files has the type of their records.
#[tokio::test]
async fn records_of_parquet_are_written_back() {
    let (folder, context) = (Folder::new(), session());
    let (parquet, back) = (folder.name("lists.parquet"), folder.name("lists.tfrecord"));
    let source = testdata("example_list/queries.tfrecord");
    rows(&context, &format!("COPY (SELECT * FROM '{source}') TO '{parquet}'")).await.unwrap();
    rows(&context, &format!("COPY (SELECT * FROM '{parquet}') TO '{back}'")).await.unwrap();
    let expect = rows(&context, &format!("SELECT * FROM '{source}'")).await.unwrap();
    assert_eq!(rows(&context, &format!("SELECT * FROM '{back}'")).await.unwrap(), expect);
    // Without the examples, rows are Examples.
    rows(&context, &format!("COPY (SELECT count(*) AS n FROM '{parquet}') TO '{}'", folder.name("n.tfrecord")))
        .await
        .unwrap();
    let count = expect.len().to_string();
    check(rows(&context, &format!("SELECT * FROM '{}'", folder.name("n.tfrecord"))).await, [count.as_str()]);
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
    let others: [(&str, ArrayRef); 2] =
        [("x", Arc::new(Int64Array::from(vec![1, 2]))), ("x", Arc::new(StringArray::from(vec!["a", "b"])))];
    for (name, columns, second) in [("same", columns.to_vec(), 3), ("other", others.to_vec(), 2)] {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let (parquet, arrow) = (folder.name(&format!("{name}.parquet")), folder.name(&format!("{name}.arrow")));
        let mut writer = ArrowWriter::try_new(File::create(&parquet).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let mut writer = FileWriter::try_new(File::create(&arrow).unwrap(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        for file in [parquet, arrow] {
            let copy = format!("COPY (SELECT * FROM '{file}') TO '{}'", folder.name("copy.tfrecord"));
            for statement in [format!("SELECT * FROM '{file}'"), copy] {
                let found = refusal(&statement).await;
                let expect = format!("columns 1 and {second} have the name \"x\"");
                assert!(found.contains(&expect) && found.contains(&file), "{found}");
            }
        }
    }
}
