//! `on_error = skip`: what is bad is skipped, counted and told; everything else is answered.

use tfarrow_datafusion::Notice;

use crate::common::*;

/// Records 0 to 9; the data of 3 is damaged, 5 has a list, and 7 another kind.
fn folder() -> Folder {
    let folder = Folder::new();
    let record = |i: i64| match i {
        5 => example(&[("x", Value::Ints(&[1, 2]))]),
        7 => example(&[("x", Value::Floats(&[0.5]))]),
        _ => example(&[("x", Value::Ints(&[i])), ("y", Value::Ints(&[1]))]),
    };
    let path = folder.shard("a.tfrecord", (0..10).map(record));
    let mut bytes = std::fs::read(&path).unwrap();
    let frame = record(0).len() + 16;
    bytes[3 * frame + 12] ^= 1;
    std::fs::write(path, bytes).unwrap();
    folder
}

async fn skipped(query: &str, statements: &[&str]) -> (Vec<String>, Vec<Notice>) {
    let folder = folder();
    let (context, heard) = session_that_listens();
    rows(&context, "SET tfarrow.on_error = 'skip'").await.unwrap();
    rows(&context, "SET tfarrow.sample_records = 1").await.unwrap();
    for statement in statements {
        rows(&context, statement).await.unwrap();
    }
    let found = rows(&context, &query.replace("FILE", &folder.name("a.tfrecord"))).await.unwrap();
    let heard = heard.lock().unwrap().clone();
    (found, heard)
}

#[tokio::test]
async fn what_is_bad_is_skipped_and_told() {
    let (found, heard) = skipped("SELECT count(x), sum(x) FROM 'FILE'", &[]).await;
    assert_eq!(found, ["7 | 30"]);
    let [Notice::Skipped(skipped)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!((skipped.records, skipped.corrupt, skipped.ranges), (3, 1, 0));
    let said = skipped.to_string();
    assert!(said.starts_with("skipped 3 records; the first: "), "{said}");
    assert!(said.contains("a.tfrecord: record 3 (byte "), "{said}");
}

#[tokio::test]
async fn filters_pass_over_what_they_cannot_read() {
    let (found, heard) = skipped("SELECT x FROM 'FILE' WHERE x > 1 ORDER BY x", &[]).await;
    assert_eq!(found, ["2", "4", "6", "8", "9"]);
    let [Notice::Skipped(skipped)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!(skipped.records, 3);
    // What the filter drops is not looked at: of the other columns' misfits those count that it keeps.
    let (found, heard) = skipped_where("y = 1").await;
    assert_eq!(found, ["0", "1", "2", "4", "6", "8", "9"]);
    assert!(matches!(heard.as_slice(), [Notice::Skipped(skipped)] if skipped.records == 1), "{heard:?}");
}

async fn skipped_where(filter: &str) -> (Vec<String>, Vec<Notice>) {
    skipped(&format!("SELECT x FROM 'FILE' WHERE {filter} ORDER BY x"), &[]).await
}

#[tokio::test]
async fn declared_columns_pass_over_what_does_not_fit() {
    let folder = Folder::new();
    let record = |i: i64| example(&[("x", Value::Ints(&[i * 100])), ("y", Value::Ints(&[i]))]);
    let file = folder.shard("a.tfrecord", (0..4).map(record)).display().to_string();
    let (context, heard) = session_that_listens();
    let create = format!(
        "CREATE EXTERNAL TABLE t (x TINYINT, y INT) STORED AS TFRECORD LOCATION '{file}' OPTIONS (on_error 'skip')"
    );
    rows(&context, &create).await.unwrap();
    check(rows(&context, "SELECT x, y FROM t").await, ["0 | 0", "100 | 1"]);
    assert!(matches!(&heard.lock().unwrap()[..], [Notice::Skipped(skipped)] if skipped.records == 2));
    check(rows(&context, "SELECT y FROM t WHERE x > 0").await, ["1"]);
}

#[tokio::test]
async fn a_file_that_is_cut_off_is_read_as_far_as_it_goes() {
    let folder = Folder::new();
    let record = |i: i64| example(&[("x", Value::Ints(&[i]))]);
    let path = folder.shard("a.tfrecord", (0..4).map(record));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let (context, heard) = session_that_listens();
    let query = format!("SELECT x FROM read_tfrecord('{}', on_error => 'skip')", path.display());
    check(rows(&context, &query).await, ["0", "1", "2"]);
    let heard = heard.lock().unwrap().clone();
    let [Notice::Skipped(skipped)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!((skipped.records, skipped.ranges), (0, 1));
    let says = format!("skipped {} bytes in 1 place that no record can be made of", skipped.bytes);
    assert!(skipped.to_string().starts_with(&says), "{skipped}");
    assert_eq!(skipped.bytes as usize, bytes.len() / 4 - 1);
    let query = format!("SELECT x FROM read_tfrecord('{}', partial_tail => 'ignore')", path.display());
    let (context, heard) = session_that_listens();
    check(rows(&context, &query).await, ["0", "1", "2"]);
    assert!(heard.lock().unwrap().is_empty(), "nothing is lost");
}

#[tokio::test]
async fn a_file_is_read_on_behind_a_length_that_cannot_be_believed() {
    let folder = Folder::new();
    let record = |i: i64| example(&[("x", Value::Ints(&[i]))]);
    let path = folder.shard("a.tfrecord", (0..40).map(record));
    let mut bytes = std::fs::read(&path).unwrap();
    let frame = bytes.len() / 40;
    bytes[0] ^= 1;
    bytes[20 * frame + 9] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (context, heard) = session_that_listens();
    let query = format!("SELECT count(*), sum(x) FROM read_tfrecord('{}', on_error => 'skip')", path.display());
    check(rows(&context, &query).await, [&*format!("38 | {}", (0..40).sum::<i64>() - 20)]);
    let heard = heard.lock().unwrap().clone();
    let [Notice::Skipped(skipped)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!((skipped.ranges, skipped.bytes as usize), (2, 2 * frame));
}

#[tokio::test]
async fn without_it_nothing_is_skipped() {
    let folder = folder();
    let message = error(&session(), &format!("SELECT x FROM '{}'", folder.name("a.tfrecord"))).await;
    assert!(message.contains("record 3 (byte "), "{message}");
}

#[tokio::test]
async fn a_few_records_that_are_no_examples_are_skipped() {
    let folder = Folder::new();
    let record = |i: i64| match i {
        3 => b"\xff\xff\xff".to_vec(),
        // An Example with a field that no Example has.
        6 => [example(&[("x", Value::Ints(&[i]))]), b"\x2a\x01a".to_vec()].concat(),
        _ => example(&[("x", Value::Ints(&[i]))]),
    };
    folder.shard("a.tfrecord", (0..10).map(record));
    let query = format!("SELECT sum(x), count(*) FROM '{}'", folder.name("a.tfrecord"));
    let (context, heard) = session_that_listens();
    assert!(rows(&context, &query).await.unwrap_err().to_string().contains('x'), "all records are taken as they are");
    rows(&context, "SET tfarrow.on_error = 'skip'").await.unwrap();
    assert_eq!(rows(&context, &query).await.unwrap(), ["36 | 8"]);
    let heard = heard.lock().unwrap().clone();
    assert!(matches!(heard.as_slice(), [.., Notice::Skipped(skipped)] if skipped.records == 2), "{heard:?}");
}

#[tokio::test]
async fn also_a_count_knows_what_is_damaged() {
    let (found, heard) = skipped("SELECT count(*) FROM 'FILE'", &[]).await;
    assert_eq!(found, ["9"]);
    assert!(matches!(heard.as_slice(), [Notice::Skipped(skipped)] if skipped.corrupt == 1), "{heard:?}");
    let folder = folder();
    let count = |crc: &str| {
        format!(
            "SELECT count(*) FROM read_tfrecord('{}', sample_records => 1, verify_crc => '{crc}')",
            folder.name("a.tfrecord")
        )
    };
    let message = error(&session(), &count("always")).await;
    assert!(message.contains("record 3 (byte "), "{message}");
    check(rows(&session(), &count("never")).await, ["10"]);
}

#[tokio::test]
async fn a_limit_counts_what_is_left() {
    let (found, _) = skipped("SELECT x FROM 'FILE' LIMIT 5", &[]).await;
    assert_eq!(found, ["0", "1", "2", "4", "6"]);
}

/// A feature has a column for each kind that the sample has seen: another is no null.
#[tokio::test]
async fn a_kind_that_has_no_column_is_not_dropped() {
    let folder = Folder::new();
    let values = [Value::Bytes(&[b"a"]), Value::Ints(&[3]), Value::Floats(&[0.5]), Value::Ints(&[4])];
    folder.shard("a.tfrecord", values.map(|value| example(&[("x", value)])));
    for columns in ["*", "\"x/int64_list\""] {
        let query = format!("SELECT {columns} FROM '{}'", folder.name("a.tfrecord"));
        let (context, heard) = session_that_listens();
        rows(&context, "SET tfarrow.on_conflict = 'split'").await.unwrap();
        rows(&context, "SET tfarrow.sample_records = 2").await.unwrap();
        let message = error(&context, &query).await;
        assert!(message.contains("record 2 (byte ") && message.contains("found float_list"), "{message}");
        rows(&context, "SET tfarrow.on_error = 'skip'").await.unwrap();
        assert_eq!(rows(&context, &query).await.unwrap().len(), 3);
        let heard = heard.lock().unwrap().clone();
        assert!(matches!(heard.as_slice(), [Notice::Skipped(skipped)] if skipped.records == 1), "{heard:?}");
    }
}
