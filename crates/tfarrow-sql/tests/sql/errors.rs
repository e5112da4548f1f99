//! Errors name the file, record, byte and feature, and keep their causes.

use datafusion::error::DataFusionError;
use tfarrow_codec::ErrorKind as CodecErrorKind;
use tfarrow_datafusion::AdvisedError;
use tfarrow_dataset::{Error, ErrorKind};

use crate::common::*;

/// 2,000 records of an int64 feature, but for the one at `odd`.
fn folder_with(odd: usize, value: fn() -> Value<'static>) -> Folder {
    let folder = Folder::new();
    let record = |i| example(&[("x", if i == odd { value() } else { Value::Ints(&[1]) })]);
    folder.shard("a", (0..2000).map(record));
    folder
}

#[tokio::test]
async fn mixed_kinds_in_the_sample_name_both_places() {
    let message = error(
        &session(),
        &format!("SELECT x FROM '{}'", testdata("mixed_kinds")),
    )
    .await;
    for part in [
        "\"x\"",
        "int64_list",
        "float_list",
        "part-00000-of-00002.tfrecord: record 0",
        "part-00001-of-00002",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains('\n'));
}

#[tokio::test]
async fn mixed_kinds_past_the_sample_name_both_places() {
    let folder = folder_with(1500, || Value::Floats(&[0.5]));
    let message = error(
        &session(),
        &format!("SELECT max(x) FROM '{}'", folder.name("a")),
    )
    .await;
    let file = folder.name("a");
    assert!(
        message.contains(&format!("{file}: record 1500 (byte ")),
        "{message}"
    );
    assert!(
        message.contains("feature \"x\": expected int64_list, found float_list"),
        "{message}"
    );
    assert!(
        message.contains(&format!(
            "the first int64_list is in {file}: record 0 (byte 0)"
        )),
        "{message}"
    );
}

#[tokio::test]
async fn a_list_past_the_sample_has_advice() {
    let folder = folder_with(1500, || Value::Ints(&[1, 2]));
    let (context, file) = (session(), folder.name("a"));
    let query = format!("SELECT x FROM '{file}'");
    let message = error(&context, &query).await;
    for part in [
        "record 1500",
        "exactly one value, found 2",
        "SET tfarrow.layout = 'list'",
        "1000 records",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    rows(&context, "SET tfarrow.layout = 'list'").await.unwrap();
    check(
        rows(
            &context,
            &format!("SELECT sum(array_length(x)) FROM '{file}'"),
        )
        .await,
        ["2001"],
    );
}

#[tokio::test]
async fn errors_keep_their_causes() {
    let folder = folder_with(1500, || Value::Floats(&[0.5]));
    let context = session();
    let found = rows(
        &context,
        &format!("SELECT max(x) FROM '{}'", folder.name("a")),
    )
    .await
    .unwrap_err();
    let DataFusionError::External(found) = found.find_root() else {
        panic!("{found:?}")
    };
    let misfit = found.downcast_ref::<AdvisedError>().unwrap();
    let ErrorKind::Codec(codec) = misfit.error().kind() else {
        panic!("{misfit:?}")
    };
    assert_eq!(codec.position().record, 1500);
    assert_eq!(codec.position().feature.as_deref(), Some("x"));
    assert!(matches!(codec.kind(), CodecErrorKind::Kind { .. }));
}

#[tokio::test]
async fn truncated_and_damaged_files() {
    let context = session();
    for (file, part) in [
        ("truncated.tfrecord", "the file ends inside this record"),
        (
            "truncated_header.tfrecord",
            "the file ends inside a record's header",
        ),
        ("length_crc.tfrecord", "the length's CRC"),
        ("data_crc.tfrecord", "the data's CRC"),
        ("truncated.tfrecord.gz", "record "),
    ] {
        let message = error(
            &context,
            &format!("SELECT * FROM '{}'", testdata(&format!("corrupt/{file}"))),
        )
        .await;
        assert!(
            message.contains(file) && message.contains(part),
            "{message}"
        );
    }
    let found = context
        .sql(&format!(
            "SELECT * FROM '{}'",
            testdata("corrupt/garbage.tfrecord")
        ))
        .await
        .unwrap_err();
    let DataFusionError::External(found) = found.find_root() else {
        panic!("{found:?}")
    };
    assert!(
        matches!(
            found.downcast_ref::<Error>().unwrap().kind(),
            ErrorKind::NotTfRecord { .. }
        ),
        "{found}"
    );
}

#[tokio::test]
async fn damage_past_the_sample_stops_the_scan() {
    let folder = folder_with(0, || Value::Ints(&[1]));
    let bytes = std::fs::read(folder.name("a")).unwrap();
    folder.file("cut", &bytes[..bytes.len() - 3]);
    let context = session();
    let message = error(
        &context,
        &format!("SELECT count(*) FROM '{}'", folder.name("cut")),
    )
    .await;
    assert!(message.contains("record 1999 (byte"), "{message}");
    // A query that needs only the records before the damage succeeds.
    check(
        rows(
            &context,
            &format!("SELECT x FROM '{}' LIMIT 1", folder.name("cut")),
        )
        .await,
        ["1"],
    );
}

#[tokio::test]
async fn another_message_past_the_sample_is_an_error() {
    let folder = Folder::new();
    let record = |i| {
        if i == 1500 {
            vec![0x1a, 1, 0]
        } else {
            example(&[("x", Value::Ints(&[1]))])
        }
    };
    folder.shard("a", (0..2000).map(record));
    let message = error(&session(), &format!("SELECT x FROM '{}'", folder.name("a"))).await;
    assert!(
        message.contains("record 1500") && message.contains("record_type"),
        "{message}"
    );
}
