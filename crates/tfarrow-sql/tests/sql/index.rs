//! Queries of files with an index return what they return without one, and read less.

use std::{fs, io::Write, ops::ControlFlow, path::Path, sync::OnceLock};

use datafusion::{error::Result, prelude::SessionContext};
use proptest::prelude::*;
use tempfile::TempDir;
use tfarrow_codec::frame;
use tfarrow_datafusion::Notice;
use tfarrow_dataset::{Compression, ShardWriter, resolve};
use tfarrow_scan::{IndexOptions, index};

use crate::common::{Value, check, error, example, rows, session, session_with_notices};

/// Records of each file: some megabytes, so that there are several blocks.
const RECORDS: i64 = 6000;

fn payload(file: i64, record: i64) -> Vec<u8> {
    let id = match record {
        0 => i64::MIN,
        1 => i64::MAX,
        _ => file * RECORDS + record,
    };
    // Blocks without the feature, with NaN, and with zeros of one sign.
    let score = match record / 1000 {
        0 => None,
        1 if record % 100 == 0 => Some(f32::NAN),
        2 => Some(-0.0),
        3 => Some(0.0),
        4 => Some(-f32::NAN),
        _ => Some(record as f32 / 10.0 - 300.0),
    };
    let ids = [id];
    let list = [record, record + 1];
    let text = text(record);
    let texts = [text.as_slice()];
    let pads = [[0xff; 600].as_slice()];
    let scores = [score.unwrap_or_default()];
    let mut features = vec![
        ("id", Value::Ints(&ids)),
        ("text", Value::Bytes(&texts)),
        ("ids", Value::Ints(&list)),
        ("pad", Value::Bytes(&pads)),
    ];
    if score.is_some() {
        features.push(("score", Value::Floats(&scores)));
    }
    example(&features)
}

fn text(record: i64) -> Vec<u8> {
    let word = ["", "a", "é", "zebra", "\u{10ffff}"][(record / 1300) as usize % 5];
    format!("{word}{:x<1$}{record:05}", "", (record / 500 * 30) as usize).into_bytes()
}

fn write(folder: &Path, file: i64) {
    fs::write(
        folder.join(format!("part-{file}.tfrecord")),
        frames(file, RECORDS),
    )
    .unwrap();
}

/// A file whose blocks are read from access points on.
fn write_gzip(folder: &Path, file: i64) {
    let output = fs::File::create(folder.join(format!("part-{file}.tfrecord.gz"))).unwrap();
    let mut writer = ShardWriter::new(output, Compression::Gzip);
    writer.write_all(&frames(file, 2 * RECORDS)).unwrap();
    writer.finish().unwrap();
}

fn frames(file: i64, records: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in 0..records {
        frame::write(&payload(file, record), &mut bytes);
    }
    bytes
}

fn make_indexes(folder: &Path) {
    let shards = resolve(&[folder]).unwrap();
    let options = IndexOptions::default();
    index(&shards, &options, &|_, _| ControlFlow::Continue(())).unwrap();
}

/// A folder of files with an index each.
fn indexed() -> &'static TempDir {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        for file in 0..2 {
            write(folder.path(), file);
        }
        write_gzip(folder.path(), 2);
        make_indexes(folder.path());
        folder
    })
}

async fn with_settings(settings: &[&str]) -> SessionContext {
    let context = session();
    // The sample of the first records has no scores.
    let sample = "tfarrow.sample_records = 'all'";
    for set in [sample, "tfarrow.metadata_columns = 'all'"]
        .iter()
        .chain(settings)
    {
        context.sql(&format!("SET {set}")).await.unwrap();
    }
    context
}

/// The rows of a query of the indexed files as `t`: with their indexes, with files divided by them
/// as for a cluster, and without.
async fn all_ways(query: &str) -> [Result<Vec<String>>; 3] {
    let query = query.replace("FROM t", &format!("FROM '{}'", indexed().path().display()));
    let with = with_settings(&["tfarrow.index = 'beside'"]).await;
    let divided = with_settings(&DIVIDED).await;
    let without = with_settings(&["tfarrow.index = 'none'"]).await;
    [
        rows(&with, &query).await,
        rows(&divided, &query).await,
        rows(&without, &query).await,
    ]
}

/// Settings by which the files are divided.
const DIVIDED: [&str; 2] = [
    "tfarrow.piece_bytes = 20000",
    "datafusion.execution.target_partitions = 7",
];

/// A comparison of a column with a value at or near the ends of blocks.
fn comparison() -> impl Strategy<Value = String> {
    let operator = prop_oneof![
        Just("="),
        Just("<>"),
        Just("<"),
        Just("<="),
        Just(">"),
        Just(">=")
    ];
    let operand = prop_oneof![
        (0..RECORDS * 2).prop_map(|value| format!("id OP {value}")),
        prop_oneof![Just(i64::MAX.to_string()), Just(i64::MIN.to_string())]
            .prop_map(|value| format!("id OP {value}")),
        (0..RECORDS).prop_map(|value| format!("_record OP {value}")),
        (0..RECORDS * 800).prop_map(|value| format!("_offset OP {value}")),
        (-400..400i32).prop_map(|value| format!("score OP {value}.5")),
        prop_oneof![
            Just("0.0"),
            Just("-0.0"),
            Just("CAST('NaN' AS DOUBLE)"),
            Just("CAST('NaN' AS FLOAT)"),
            Just("1e39"),
        ]
        .prop_map(|value| format!("score OP {value}")),
        (0..RECORDS).prop_map(|record| {
            format!("text OP '{}'", String::from_utf8(text(record)).unwrap())
        }),
        (0..RECORDS).prop_map(|value| format!("ids[1] OP {value}")),
    ];
    let compared =
        (operand, operator).prop_map(|(operand, operator)| operand.replace("OP", operator));
    prop_oneof![
        8 => compared,
        1 => prop_oneof![
            Just("score IS NULL".to_owned()),
            Just("score IS NOT NULL".to_owned()),
            Just("text LIKE 'zebra%'".to_owned()),
            Just("text NOT LIKE 'a%'".to_owned()),
            Just("isnan(score)".to_owned()),
        ],
        1 => prop::collection::vec(0..RECORDS * 2, 1..4)
            .prop_map(|values| format!("id IN ({})", join(&values))),
        1 => (0..RECORDS, 0..RECORDS)
            .prop_map(|(a, b)| format!("_record BETWEEN {} AND {}", a.min(b), a.max(b))),
    ]
}

fn join(values: &[i64]) -> String {
    let values: Vec<_> = values.iter().map(i64::to_string).collect();
    values.join(", ")
}

fn predicate() -> impl Strategy<Value = String> {
    let negated = (comparison(), any::<bool>()).prop_map(|(comparison, negated)| match negated {
        true => format!("NOT ({comparison})"),
        false => comparison,
    });
    prop::collection::vec((negated, prop_oneof![Just("AND"), Just("OR")]), 1..4).prop_map(|terms| {
        let mut text = String::new();
        for (number, (term, operator)) in terms.into_iter().enumerate() {
            if number > 0 {
                text = format!("({text}) {operator} ");
            }
            text.push_str(&term);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn filters_keep_the_same_records(predicate in predicate()) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let query = format!(
            "SELECT count(*), sum(_record), min(id), max(text), count(score) FROM t WHERE {predicate}"
        );
        let [with, divided, without] = runtime.block_on(all_ways(&query)).map(Result::unwrap);
        prop_assert_eq!(&with, &without);
        prop_assert_eq!(divided, without);
    }
}

#[tokio::test]
async fn queries_return_the_same_rows() {
    for query in [
        "SELECT count(*) FROM t",
        "SELECT count(*), count(score), count(DISTINCT text) FROM t",
        "SELECT id, score FROM t ORDER BY id DESC LIMIT 7",
        "SELECT id, score FROM t ORDER BY score, id LIMIT 2005",
        "SELECT text FROM t ORDER BY text DESC LIMIT 3",
        "SELECT _record, id FROM t LIMIT 3 OFFSET 7000",
        "SELECT _file, _record, id FROM t LIMIT 2000 OFFSET 5999",
        "SELECT _record FROM t OFFSET 11999",
        "SELECT _record FROM t OFFSET 12000",
        "SELECT _record FROM t WHERE id > 100 LIMIT 2 OFFSET 7000",
        "SELECT _record FROM (SELECT * FROM t LIMIT 9000 OFFSET 2000) LIMIT 2 OFFSET 3000",
        "SELECT a.id, b.text FROM t a JOIN (SELECT id, text FROM t WHERE id = 5) b ON a.id = b.id",
        "SELECT _file <> '', id FROM t WHERE _record = 4321",
        "SELECT id FROM t WHERE id < 0 OR text = '' ORDER BY id",
        "DESCRIBE SELECT * FROM t",
    ] {
        let [with, divided, without] = all_ways(query).await.map(Result::unwrap);
        assert_eq!(with, without, "{query}");
        assert_eq!(divided, without, "divided: {query}");
    }
}

#[tokio::test]
async fn files_are_divided_by_their_indexes() {
    let context = with_settings(&DIVIDED).await;
    // A block of a compressed file has 2 MiB.
    for (name, groups) in [("", 7), ("part-1.tfrecord", 5), ("part-2.tfrecord.gz", 5)] {
        let source = indexed().path().join(name);
        let query = format!("EXPLAIN SELECT max(_record) FROM '{}'", source.display());
        let plan = rows(&context, &query).await.unwrap().join("\n");
        assert!(plan.contains(&format!("{groups} groups")), "{plan}");
    }
}

/// A folder of three files whose times do not decrease, with indexes. The last file is short.
fn sorted() -> &'static TempDir {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        for (file, records) in [(0, 4000), (1, 4000), (2, 10)] {
            let mut bytes = Vec::new();
            for record in 0..records {
                let number = file * 4000 + record;
                let key = format!("{number:06}");
                let ids = [number / 3];
                let downs = [-number];
                let pads = [[0; 500].as_slice()];
                let mut features = vec![
                    ("time", Value::Ints(&ids)),
                    ("down", Value::Ints(&downs)),
                    ("pad", Value::Bytes(&pads)),
                ];
                let keys = [key.as_bytes()];
                features.push(("key", Value::Bytes(&keys)));
                if number != 5000 {
                    features.push(("some", Value::Ints(&ids)));
                }
                frame::write(&example(&features), &mut bytes);
            }
            fs::write(folder.path().join(format!("{file}.tfrecord")), bytes).unwrap();
        }
        make_indexes(folder.path());
        folder
    })
}

#[tokio::test]
async fn files_that_are_sorted_are_not_sorted_again() {
    let folder = sorted().path().display().to_string();
    let one = format!("{folder}/1.tfrecord");
    // Queries, and whether a sort is left.
    for (query, sorts) in [
        ("SELECT time FROM t ORDER BY time", false),
        ("SELECT time FROM t ORDER BY time NULLS FIRST", false),
        (
            "SELECT key FROM t WHERE down < -10 ORDER BY key LIMIT 2000",
            false,
        ),
        (
            "SELECT time AS t1 FROM t ORDER BY t1 LIMIT 4500 OFFSET 4100",
            false,
        ),
        ("SELECT upper(key) AS k FROM t ORDER BY key", false),
        (
            "SELECT key, sum(down) OVER (ORDER BY key) AS s FROM t",
            false,
        ),
        ("SELECT time FROM t ORDER BY time DESC LIMIT 5", true),
        ("SELECT down FROM t ORDER BY down", true),
        ("SELECT some FROM t ORDER BY some", true),
        ("SELECT time, down FROM t ORDER BY time, down", true),
        ("SELECT down + time AS u FROM t ORDER BY u", true),
        (
            "SELECT count(*) AS n, time FROM t GROUP BY time ORDER BY n, time",
            true,
        ),
    ] {
        for partitions in [1, 2, 5] {
            for source in [&folder, &one] {
                let partitions = format!("datafusion.execution.target_partitions = {partitions}");
                let context = with_settings(&[&partitions]).await;
                let query = query.replace("FROM t", &format!("FROM '{source}'"));
                let plan = rows(&context, &format!("EXPLAIN {query}")).await.unwrap();
                let plan = plan.join("\n");
                assert_eq!(plan.contains("SortExec"), sorts, "{query}: {plan}");
                let without = with_settings(&["tfarrow.index = 'none'"]).await;
                let expected = rows(&without, &query).await.unwrap();
                assert_eq!(rows(&context, &query).await.unwrap(), expected, "{query}");
            }
        }
    }
}

/// Files in another order are merged, unless they are one partition.
#[tokio::test]
async fn sorted_files_that_overlap_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [(2, 'a'), (1, 'b'), (0, 'c'), (1, 'd')] {
        let from = sorted().path().join(format!("{from}.tfrecord"));
        fs::copy(from, folder.path().join(format!("{to}.tfrecord"))).unwrap();
    }
    make_indexes(folder.path());
    let source = folder.path().display();
    for query in [
        format!("SELECT time AS t FROM '{source}' ORDER BY t"),
        format!("SELECT key FROM '{source}' WHERE down < -10 ORDER BY key LIMIT 5000"),
        format!("SELECT key FROM '{source}' ORDER BY key LIMIT 3 OFFSET 5000"),
        // The rows of the inner query are those of another order.
        format!(
            "SELECT key FROM (SELECT * FROM '{source}' ORDER BY down LIMIT 7) ORDER BY key LIMIT 5"
        ),
    ] {
        let without = with_settings(&["tfarrow.index = 'none'"]).await;
        let expected = rows(&without, &query).await.unwrap();
        for (partitions, sorts) in [(1, true), (2, false), (5, false)] {
            let partitions = format!("datafusion.execution.target_partitions = {partitions}");
            let context = with_settings(&[&partitions]).await;
            let plan = rows(&context, &format!("EXPLAIN {query}")).await.unwrap();
            let plan = plan.join("\n");
            let sorts = sorts || query.contains("down LIMIT");
            assert_eq!(plan.contains("SortExec"), sorts, "{query}: {plan}");
            assert_eq!(rows(&context, &query).await.unwrap(), expected, "{query}");
        }
    }
}

/// A metric of the scan of a query.
async fn metric(query: &str, name: &str) -> u64 {
    let query = query.replace("FROM t", &format!("FROM '{}'", indexed().path().display()));
    let context = with_settings(&["tfarrow.index = 'beside'"]).await;
    let plan = rows(&context, &format!("EXPLAIN ANALYZE {query}"))
        .await
        .unwrap()
        .join("\n");
    let Some((_, rest)) = plan.split_once(&format!(" {name}=")) else {
        return 0;
    };
    let end = rest.find([',', ']']).unwrap();
    let value = rest[..end].trim();
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let unit = match unit {
        "K" => 1e3,
        "M" => 1e6,
        _ => 1.0,
    };
    (number.parse::<f64>().unwrap() * unit) as u64
}

#[tokio::test]
async fn blocks_that_cannot_match_are_not_read() {
    // Each file has a block of its own for the record.
    for query in [
        "SELECT id FROM t WHERE id = 9000",
        "SELECT count(*), max(score) FROM t WHERE _record BETWEEN 3000 AND 3001",
        "SELECT id FROM t WHERE text < '1' AND _record < 100000",
        // NaN, which some blocks have, is above all of these numbers.
        "SELECT id FROM t WHERE score < -250",
        "SELECT id FROM t WHERE score = -250.5",
    ] {
        let pruned = metric(query, "blocks_pruned").await;
        let read = metric(query, "blocks_read").await;
        assert!(
            pruned >= 4 && read < pruned,
            "{query}: read {read}, pruned {pruned}"
        );
    }
    // The rows before are not read either.
    let query = "SELECT id, text FROM t LIMIT 3 OFFSET 11000";
    assert_eq!(metric(query, "blocks_read").await, 1);
}

#[tokio::test]
async fn an_index_of_another_version_of_a_file_is_reported_and_not_used() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0);
    make_indexes(folder.path());
    let path = folder.path().join("part-0.tfrecord");
    let mut bytes = fs::read(&path).unwrap();
    frame::write(&payload(1, 7), &mut bytes);
    fs::write(&path, bytes).unwrap();
    let (context, notices) = session_with_notices();
    let query = format!("SELECT count(*) AS n FROM '{}'", path.display());
    check(rows(&context, &query).await, ["6001"]);
    let notices = notices.lock().unwrap();
    assert!(
        matches!(&notices[..], [Notice::UnusableIndex(_)]),
        "{notices:?}"
    );
}

#[tokio::test]
async fn a_table_notices_that_its_file_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0);
    make_indexes(folder.path());
    let path = folder.path().join("part-0.tfrecord");
    let context = session();
    let create = format!(
        "CREATE EXTERNAL TABLE t STORED AS TFRECORD LOCATION '{}'",
        path.display()
    );
    context.sql(&create).await.unwrap();
    let count = "SELECT count(*) AS n FROM t WHERE id > 5990";
    check(rows(&context, count).await, ["10"]);
    let mut bytes = fs::read(&path).unwrap();
    frame::write(&payload(1, 7), &mut bytes);
    fs::write(&path, bytes).unwrap();
    check(rows(&context, count).await, ["11"]);
}

#[tokio::test]
async fn an_error_of_a_record_is_not_hidden_by_its_block() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    for record in 0..4000i64 {
        // The bounds of its block are text.
        let text: &[u8] = match record {
            2000 => b"b\xff",
            _ if record % 2 == 0 => b"a",
            _ => b"c",
        };
        let pads = [[0; 600].as_slice()];
        let features = [
            ("text", Value::Bytes(&[text])),
            ("pad", Value::Bytes(&pads)),
        ];
        frame::write(&example(&features), &mut bytes);
    }
    let path = folder.path().join("a.tfrecord");
    fs::write(&path, bytes).unwrap();
    make_indexes(folder.path());
    for index in ["beside", "none"] {
        let context = with_settings(&[&format!("tfarrow.index = '{index}'")]).await;
        let create = format!(
            "CREATE EXTERNAL TABLE t (text TEXT) STORED AS TFRECORD LOCATION '{}'",
            path.display()
        );
        context.sql(&create).await.unwrap();
        let found = error(&context, "SELECT count(*) FROM t WHERE text = 'z'").await;
        assert!(found.contains("record 2000"), "{index}: {found}");
    }
}

/// Replaces a file by one of the same size, time and ends.
fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[tokio::test]
async fn damage_after_indexing_is_found_or_skipped_as_without_an_index() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0);
    write_gzip(folder.path(), 1);
    make_indexes(folder.path());
    let plain = folder.path().join("part-0.tfrecord");
    let gzip = folder.path().join("part-1.tfrecord.gz");
    damage(&plain, |bytes| {
        // The length of a record in the middle, and a byte of a later one.
        let record = 2500;
        let before: usize = (0..record)
            .map(|record| payload(0, record).len() + 16)
            .sum();
        bytes[before + 3] ^= 0x40;
        let length = bytes.len();
        bytes[length - 5000] ^= 1;
    });
    damage(&gzip, |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 50].fill(0xff);
    });
    for file in [&plain, &gzip] {
        for policy in ["fail", "skip"] {
            for query in [
                "SELECT count(*) AS n, sum(id) AS ids, sum(_record) AS records FROM t WHERE id > 7",
                "SELECT _record, _offset FROM t WHERE _record > 2000 AND id < 100000",
            ] {
                let query = query.replace("FROM t", &format!("FROM '{}'", file.display()));
                let policy = format!("tfarrow.on_error = '{policy}'");
                let with = with_settings(&[&policy]).await;
                let without = with_settings(&[&policy, "tfarrow.index = 'none'"]).await;
                let text = |found: Result<Vec<String>>| found.map_err(|e| e.strip_backtrace());
                assert_eq!(
                    text(rows(&with, &query).await),
                    text(rows(&without, &query).await),
                    "{policy}: {query}"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_index_that_is_damaged_is_reported_when_its_blocks_are_read() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 0);
    make_indexes(folder.path());
    let path = folder.path().join("part-0.tfrecord");
    let index = folder.path().join("part-0.tfrecord.tfindex");
    let mut bytes = fs::read(&index).unwrap();
    // In the first row group, which is not read before a file is scanned.
    bytes[40] ^= 1;
    fs::write(&index, bytes).unwrap();
    let (context, notices) = session_with_notices();
    let query = format!("SELECT id FROM '{}' WHERE id = 4321", path.display());
    check(rows(&context, &query).await, ["4321"]);
    let notices = notices.lock().unwrap();
    assert!(
        matches!(&notices[..], [Notice::UnusableIndex(_)]),
        "{notices:?}"
    );
}
