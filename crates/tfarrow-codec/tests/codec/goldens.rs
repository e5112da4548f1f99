//! Files that TensorFlow wrote decode to the values that TensorFlow reads.

use std::{fs, path::Path};

use tfarrow_codec::{ErrorKind, Layout, ReaderBuilder, RecordType, WireError};
use tfarrow_testkit::{
    arrow, frame,
    golden::{self, Golden},
    oracle,
};

use crate::support::{WAYS, chunks, decode, decode_way, record_type, schema_of, summary, testdata};

/// Returns the files that are not compressed, which the codec reads by itself.
fn goldens() -> Vec<Golden> {
    let mut goldens = golden::below(&testdata()).unwrap();
    goldens.retain(|golden| {
        !golden
            .path
            .components()
            .any(|part| part.as_os_str() == "compressed")
    });
    goldens
}

fn is_below(path: &Path, folder: &str) -> bool {
    path.starts_with(testdata().join(folder))
}

#[test]
fn every_file_decodes_to_the_values_of_tensorflow() {
    let mut whole = 0;
    for Golden {
        path,
        sequence,
        rows,
    } in goldens()
        .into_iter()
        .filter(|golden| !is_below(&golden.path, "wire_disputed"))
    {
        let file = fs::read(&path).unwrap();
        if oracle::kinds(&rows).values().any(|kinds| kinds.len() > 1) {
            let error = schema_of(&file, sequence, WAYS[0]).unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::MixedKinds(_)),
                "{}: {error}",
                path.display()
            );
            continue;
        }
        whole += 1;
        for way in WAYS {
            let batches = decode_way(&file, sequence, way)
                .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert_eq!(
                arrow::rows_from_batches(&batches).unwrap(),
                rows,
                "{}: {way:?}",
                path.display()
            );
        }
    }
    assert!(whole >= 50, "only {whole} files were read whole");
}

/// Record by record, since some files have one feature in several kinds.
#[test]
fn every_record_decodes_to_the_values_of_tensorflow() {
    let mut records = 0;
    for Golden {
        path,
        sequence,
        rows,
    } in goldens()
    {
        let file = fs::read(&path).unwrap();
        let payloads = frame::read(&file).unwrap();
        assert_eq!(payloads.len(), rows.len(), "{}", path.display());
        for (payload, row) in payloads.iter().zip(rows).take(100) {
            if is_below(&path, "wire_disputed")
                || oracle::kinds(std::slice::from_ref(&row))
                    .values()
                    .any(|kinds| kinds.len() > 1)
            {
                continue;
            }
            let file = frame::file([payload]);
            for way in WAYS {
                let batches = decode_way(&file, sequence, way)
                    .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                assert_eq!(
                    arrow::rows_from_batches(&batches).unwrap(),
                    std::slice::from_ref(&row),
                    "{}: {way:?}",
                    path.display()
                );
            }
            records += 1;
        }
    }
    assert!(records >= 200, "only {records} records were read");
}

#[test]
fn inference_distinguishes_examples_and_sequence_examples() {
    let odd = ["wire", "wire_disputed"];
    for Golden { path, sequence, .. } in goldens() {
        if !odd.iter().any(|folder| is_below(&path, folder)) {
            let summary = summary(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(
                summary.record_type(),
                record_type(sequence),
                "{}",
                path.display()
            );
        }
    }
    let raw = fs::read(testdata().join("raw.tfrecord")).unwrap();
    let schema = summary(&raw).unwrap().schema(Layout::Auto, None).unwrap();
    assert_eq!(summary(&raw).unwrap().record_type(), RecordType::Raw);
    let batches = decode(&raw, ReaderBuilder::new(schema)).unwrap();
    let column = arrow_array::cast::AsArray::as_binary::<i32>(batches[0].column(0));
    assert_eq!(
        column.iter().flatten().collect::<Vec<_>>(),
        frame::read(&raw).unwrap()
    );
}

/// Inference reads all features. A decoder reads those of its schema, which therefore has the
/// invalid feature.
#[test]
fn records_that_tensorflow_rejects_are_rejected() {
    let files = golden::files(&testdata().join("wire_bad")).unwrap();
    let files: Vec<_> = files
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "tfrecord"))
        .collect();
    assert!(files.len() >= 40);
    let mut read = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap();
        for payload in frame::read(&fs::read(path).unwrap()).unwrap() {
            let file = frame::file([payload]);
            let seen = summary(&file).unwrap();
            assert_eq!(
                seen.first_unparsable().is_some(),
                seen.record_type() == RecordType::Raw,
                "{name}"
            );
            if seen.first_unparsable().is_none() {
                read.push(format!("inference reads {name}"));
            }
            if !is_refused(name, &file) {
                read.push(format!("decoding reads {name}"));
            }
        }
    }
    assert!(read.is_empty(), "{read:#?}");
}

/// Returns whether a decoder rejects a record, for schemas that have a column `x` (or a list `l`)
/// of each kind.
fn is_refused(name: &str, file: &[u8]) -> bool {
    let sequence = name.starts_with("sequence_");
    let like = if sequence {
        "wire/sequence_unknown.tfrecord"
    } else {
        "wire/nonminimal_tag_2.tfrecord"
    };
    let like = fs::read(testdata().join(like)).unwrap();
    let results = frame::read(&like).unwrap().into_iter().map(|payload| {
        let schema = schema_of(&frame::file([payload]), sequence, WAYS[0]).unwrap();
        decode(file, ReaderBuilder::new(schema))
    });
    let errors: Vec<_> = results.filter_map(Result::err).collect();
    let fits = |error: &tfarrow_codec::Error| {
        matches!(error.kind(), ErrorKind::Wire(_) | ErrorKind::Kind { .. })
    };
    assert!(errors.iter().all(fits), "{name}: {errors:?}");
    errors
        .iter()
        .any(|error| matches!(error.kind(), ErrorKind::Wire(_)))
}

/// TensorFlow's parsers differ in a few forms. tfarrow follows the C++ parser for the fields of a
/// map entry, and upb for the size of a length and the bits of a tag.
#[test]
fn forms_on_which_parsers_differ_are_read_one_way() {
    let disputed = |name: &str| {
        fs::read(
            testdata()
                .join("wire_disputed")
                .join(name)
                .with_extension("tfrecord"),
        )
        .unwrap()
    };
    for name in [
        "unknown_in_entry",
        "wrong_type_map_key",
        "wrong_type_map_value",
        "sequence_unknown_in_entry",
    ] {
        for payload in frame::read(&disputed(name)).unwrap() {
            let batches = decode_way(
                &frame::file([payload]),
                name.starts_with("sequence"),
                WAYS[0],
            )
            .unwrap();
            let rows = arrow::rows_from_batches(&batches).unwrap();
            let seven =
                |cell: &oracle::ModelCell| cell.values() == [oracle::ModelValue::Int64(vec![7])];
            assert!(
                !rows[0].is_empty() && rows[0].values().all(seven),
                "{name}: {rows:?}"
            );
        }
    }
    for Golden { path, rows, .. } in golden::below(&testdata().join("wire_disputed")).unwrap() {
        if path
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("length_")
        {
            for (payload, row) in frame::read(&fs::read(&path).unwrap())
                .unwrap()
                .into_iter()
                .zip(rows)
            {
                let batches = decode_way(&frame::file([payload]), false, WAYS[0]).unwrap();
                assert_eq!(
                    arrow::rows_from_batches(&batches).unwrap(),
                    [row],
                    "{}",
                    path.display()
                );
            }
        }
    }
    for name in ["tag_33_bits", "tag_35_bits"] {
        let (_, error) = summary(&disputed(name))
            .unwrap()
            .first_unparsable()
            .unwrap();
        assert_eq!(error, WireError::FieldNumber, "{name}");
    }
}

#[test]
fn an_error_about_kinds_has_the_place_of_each() {
    let mut merged = tfarrow_codec::Summary::new(0);
    for shard in 0..2 {
        let path = testdata().join(format!("mixed_kinds/part-{shard:05}-of-00002.tfrecord"));
        let mut summary = tfarrow_codec::Summary::new(shard);
        for records in chunks(&fs::read(path).unwrap(), 1 << 20).unwrap() {
            summary
                .observe(&records, tfarrow_codec::VerifyCrc::Always)
                .unwrap();
        }
        merged.merge(&summary).unwrap();
    }
    let error = merged.schema(Layout::Auto, None).unwrap_err().to_string();
    for part in [
        "\"x\"",
        "int64_list in shard 0, record 0",
        "float_list in shard 1, record 0",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

/// Each corrupt file, its corrupt record, and the error.
#[test]
fn corrupt_files_have_the_expected_errors() {
    let good = fs::read(testdata().join("corrupt/good.tfrecord")).unwrap();
    let builder = ReaderBuilder::new(schema_of(&good, false, WAYS[0]).unwrap());
    for (name, record, message) in [
        ("length", 1, "the length's CRC is"),
        ("length_high", 1, "the length's CRC is"),
        ("length_crc", 1, "the length's CRC is"),
        ("data", 1, "the data's CRC is"),
        ("data_crc", 1, "the data's CRC is"),
        ("truncated", 2, "the file ends inside this record"),
        (
            "truncated_header",
            2,
            "the file ends inside a record's header: found 5 of 12 bytes",
        ),
        ("truncated_crc", 2, "the file ends inside this record"),
        ("garbage", 0, "the length's CRC is"),
        (
            "trailing",
            3,
            "the file ends inside a record's header: found 7 of 12 bytes",
        ),
    ] {
        let file = fs::read(
            testdata()
                .join("corrupt")
                .join(name)
                .with_extension("tfrecord"),
        )
        .unwrap();
        let error = decode(&file, builder.clone()).unwrap_err();
        assert_eq!(error.position().record, record, "{name}: {error}");
        assert!(error.to_string().contains(message), "{name}: {error}");
        assert_eq!(
            summary(&file).unwrap_err().to_string(),
            error.to_string(),
            "{name}"
        );
    }
}
