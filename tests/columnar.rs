//! Parquet and Arrow files of other programs.

use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::{
    Int, root_as_message,
    writer::{FileWriter, StreamWriter},
};
use arrow_schema::{DataType, Field, Schema};
use base64::{Engine, engine::general_purpose::STANDARD};
use parquet::{
    arrow::{ArrowWriter, arrow_writer::ArrowWriterOptions, encode_arrow_schema},
    file::{metadata::KeyValue, properties::WriterProperties},
};

use crate::support::{tfarrow, tfarrow_reads};

fn batch(first: i64, rows: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + rows));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(
        (first..first + rows).map(|id| format!("n{id}")),
    ));
    RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap()
}

fn write_stream(path: &Path) {
    let mut writer =
        StreamWriter::try_new(File::create(path).unwrap(), &batch(0, 1).schema()).unwrap();
    writer.write(&batch(0, 3)).unwrap();
    writer.write(&batch(3, 4)).unwrap();
    writer.finish().unwrap();
}

fn write_file(path: &Path) {
    let mut writer =
        FileWriter::try_new(File::create(path).unwrap(), &batch(0, 1).schema()).unwrap();
    writer.write(&batch(0, 3)).unwrap();
    writer.write(&batch(3, 4)).unwrap();
    writer.finish().unwrap();
}

#[test]
fn arrow_streams_are_read_as_arrow_files_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    write_file(Path::new(&at("file.arrow")));
    for name in ["stream.arrow", "stream.arrows", "stream.bin"] {
        let (file, stream, out) = (at("file.arrow"), at(name), at("out.tfrecord"));
        write_stream(Path::new(&stream));
        assert_eq!(tfarrow(&["count", &stream]).prints(), "7\n", "{name}");
        assert_eq!(
            tfarrow(&["head", &stream]).prints(),
            tfarrow(&["head", &file]).prints(),
            "{name}"
        );
        assert_eq!(
            tfarrow(&["schema", &stream]).prints(),
            tfarrow(&["schema", &file]).prints(),
            "{name}"
        );
        let verified = tfarrow(&["verify", &stream]);
        assert!(
            verified.status == Some(0) && verified.stderr.contains("7 valid records"),
            "{name}: {verified:?}"
        );
        tfarrow(&["diff", &stream, &file]).ends(0);
        let query = |source: &str| format!("SELECT sum(id) AS s, max(name) AS m FROM '{source}'");
        assert_eq!(
            tfarrow(&["sql", "--format", "csv", &query(&stream)]).prints(),
            "s,m\n21,n6\n",
            "{name}"
        );
        for target in ["out.tfrecord", "out.parquet", "out.arrow"] {
            tfarrow(&["convert", &stream, &at(target), "--overwrite"]).ends(0);
            tfarrow(&["diff", &at(target), &file]).ends(0);
        }
        fs::remove_file(out).unwrap();
    }
    let stream = fs::read(at("stream.arrow")).unwrap();
    assert_eq!(tfarrow_reads(&["count", "-"], &stream).prints(), "7\n");
}

#[test]
fn arrow_streams_that_are_cut_or_corrupt_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    write_stream(Path::new(&at("stream.arrow")));
    let whole = fs::read(at("stream.arrow")).unwrap();
    for cut in [whole.len() - 100, whole.len() / 2, 100, 9] {
        fs::write(at("cut.arrow"), &whole[..cut]).unwrap();
        for command in ["count", "head", "verify"] {
            let run = tfarrow(&[command, &at("cut.arrow")]);
            assert!(run.status != Some(0), "{command} of {cut} bytes: {run:?}");
        }
    }
    // A stream may end without a mark.
    fs::write(at("open.arrow"), &whole[..whole.len() - 8]).unwrap();
    assert_eq!(tfarrow(&["count", &at("open.arrow")]).prints(), "7\n");
}

/// Writes a Parquet file of six rows, whose footer states none.
fn write_parquet_without_rows(path: &Path) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..6));
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let length = bytes.len() - 8;
    let footer_length = u32::from_le_bytes(bytes[length..length + 4].try_into().unwrap()) as usize;
    // The field after the schema is the number of rows: a 64-bit integer, in zigzag.
    let footer = &mut bytes[length - footer_length..length];
    let rows = footer
        .windows(3)
        .position(|bytes| bytes == [0x16, 12, 0x19])
        .unwrap();
    footer[rows + 1] = 0;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_footer_with_another_number_of_rows_than_its_row_groups_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    write_parquet_without_rows(Path::new(&at("a.parquet")));
    let (file, out) = (at("a.parquet"), at("out.tfrecord"));
    let count = format!("SELECT count(*) FROM '{file}'");
    let rows = format!("SELECT * FROM '{file}'");
    let commands: [&[&str]; 9] = [
        &["count", &file],
        &["head", &file],
        &["schema", &file],
        &["stats", &file],
        &["verify", &file],
        &["convert", &file, &out],
        &["diff", &file, &file],
        &["sql", &count],
        &["sql", &rows],
    ];
    for command in commands {
        let run = tfarrow(command);
        let all = run.stdout.clone() + &run.stderr;
        assert!(run.status != Some(0), "{command:?}: {run:?}");
        assert!(
            all.contains("it states 0 rows, and its row groups have 6"),
            "{command:?}: {run:?}"
        );
    }
}

#[test]
fn text_that_is_not_utf8_is_an_error_with_its_column() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let names: ArrayRef = Arc::new(StringArray::from(vec![
        "a",
        "valid text that becomes invalid",
    ]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    // The value of the page, not those of the statistics.
    let value = bytes
        .windows(7)
        .position(|bytes| bytes == b"invalid")
        .unwrap();
    bytes[value] = 0xff;
    fs::write(at("a.parquet"), bytes).unwrap();
    let expected = "column \"name\" is annotated as text, and has bytes that are not UTF-8; leave the column out";
    let (file, arrow, records) = (at("a.parquet"), at("out.arrow"), at("out.tfrecord"));
    let commands: [&[&str]; 4] = [
        &["head", &file],
        &["stats", &file],
        &["convert", &file, &arrow],
        &["convert", &file, &records],
    ];
    for command in commands {
        let error = tfarrow(command).stderr;
        assert!(error.contains(expected), "{command:?}: {error}");
    }
    tfarrow(&[
        "convert",
        &at("a.parquet"),
        &at("id.tfrecord"),
        "--columns",
        "id",
    ])
    .ends(0);
    for query in [
        format!("SELECT * FROM '{file}'"),
        format!("SELECT count(*) FROM '{file}' WHERE name > 'b'"),
        format!(
            "COPY (SELECT upper(name) AS n FROM '{file}' ORDER BY id) TO '{}'",
            at("copy.parquet")
        ),
    ] {
        let error = tfarrow(&["sql", &query]).fails();
        assert!(
            error.contains(expected) && error.contains(&file),
            "{query}: {error}"
        );
    }
    let ids = tfarrow(&[
        "sql",
        &format!("SELECT id FROM '{file}'"),
        "--format",
        "csv",
    ])
    .prints();
    assert_eq!(ids, "id\n1\n2\n");
}

/// The schema of Arrow in the footer of a Parquet file, of one column of integers of 128 bits,
/// which Polars writes.
fn schema_of_long_integers() -> String {
    let schema = Schema::new(vec![Field::new("long", DataType::Int64, true)]);
    let mut bytes = STANDARD.decode(encode_arrow_schema(&schema)).unwrap();
    let message = root_as_message(&bytes[8..]).unwrap();
    let field = message.header_as_schema().unwrap().fields().unwrap().get(0);
    let integer = field.type_as_int().unwrap()._tab;
    let width = 8 + integer.loc() + usize::from(integer.vtable().get(Int::VT_BITWIDTH));
    bytes[width..width + 4].copy_from_slice(&128_i32.to_le_bytes());
    STANDARD.encode(bytes)
}

#[test]
fn types_that_cannot_be_read_are_errors_with_their_column() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let long: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("long", long)]).unwrap();
    let stored = KeyValue::new("ARROW:schema".to_owned(), schema_of_long_integers());
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(vec![stored]))
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    let file = File::create(at("long.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    // A stream and a file that begin with the message of the schema.
    let stream = STANDARD.decode(schema_of_long_integers()).unwrap();
    fs::write(
        at("long.arrows"),
        [&stream[..], &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]].concat(),
    )
    .unwrap();
    for (name, commands) in [
        (
            "long.parquet",
            &["head", "schema", "stats", "count", "verify", "sql"][..],
        ),
        ("long.arrows", &["head", "sql"]),
    ] {
        let file = at(name);
        for command in commands {
            let query = format!("SELECT * FROM '{file}'");
            let run = tfarrow(&[
                command,
                if *command == "sql" {
                    query.as_str()
                } else {
                    file.as_str()
                },
            ]);
            let all = run.stdout.clone() + &run.stderr;
            let expected = "column \"long\" has integers of 128 bits, which cannot be read";
            assert!(
                run.status != Some(0) && all.contains(expected) && all.contains(name),
                "{command} {name}: {run:?}"
            );
        }
    }
    let external = format!(
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'; SELECT * FROM t",
        at("long.parquet")
    );
    assert!(
        tfarrow(&["sql", &external])
            .fails()
            .contains("column \"long\" has integers of 128 bits")
    );
}
