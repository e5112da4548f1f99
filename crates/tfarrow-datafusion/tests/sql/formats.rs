//! Files of other formats, in the same session.

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
