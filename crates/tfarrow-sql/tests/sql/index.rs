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

async fn with_setting(setting: &str) -> SessionContext {
    let context = session();
    // The sample of the first records has no scores.
    let sample = "tfarrow.sample_records = 'all'";
    for set in [sample, "tfarrow.metadata_columns = 'all'", setting] {
        context.sql(&format!("SET {set}")).await.unwrap();
    }
    context
}

/// The rows of a query of the indexed files as `t`, with and without their indexes.
async fn both(query: &str) -> [Result<Vec<String>>; 2] {
    let query = query.replace("FROM t", &format!("FROM '{}'", indexed().path().display()));
    let with = with_setting("tfarrow.index = 'beside'").await;
    let without = with_setting("tfarrow.index = 'none'").await;
    [rows(&with, &query).await, rows(&without, &query).await]
}

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
        let [with, without] = runtime.block_on(both(&query));
        prop_assert_eq!(with.unwrap(), without.unwrap());
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
        let [with, without] = both(query).await;
        assert_eq!(with.unwrap(), without.unwrap(), "{query}");
    }
}

/// A metric of the scan of a query.
async fn metric(query: &str, name: &str) -> u64 {
    let query = query.replace("FROM t", &format!("FROM '{}'", indexed().path().display()));
    let context = with_setting("tfarrow.index = 'beside'").await;
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
        let context = with_setting(&format!("tfarrow.index = '{index}'")).await;
        let create = format!(
            "CREATE EXTERNAL TABLE t (text TEXT) STORED AS TFRECORD LOCATION '{}'",
            path.display()
        );
        context.sql(&create).await.unwrap();
        let found = error(&context, "SELECT count(*) FROM t WHERE text = 'z'").await;
        assert!(found.contains("record 2000"), "{index}: {found}");
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
