//! A record that does not fit the schema is an error with its position, and a record that fits is
//! decoded. No value becomes null or is truncated.

use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_schema::{DataType, Field, Schema};
use proptest::{prelude::*, sample::Index};
use tfarrow_codec::{
    Category, Error, ErrorKind, Limits, OnError, ReaderBuilder, Records, VerifyCrc,
};
use tfarrow_testkit::{
    arrow, config, frame, generate,
    odd_wire::{Choices, tapes},
    oracle::{ModelCell, ModelKind, ModelRow, ModelSide, ModelValue},
};

use crate::support::{WAYS, chunks, finish, offsets, push, schema_of, small};

/// Returns whether a cell does not fit a column.
fn misfit(field: &Field, cell: &ModelCell) -> bool {
    cell.values()
        .iter()
        .any(|value| value.kind().is_some() && !fits(field, value))
}

fn fits(field: &Field, value: &ModelValue) -> bool {
    let (mut data_type, mut depth) = (field.data_type(), 0);
    while let DataType::List(item) = data_type {
        (data_type, depth) = (item.data_type(), depth + 1);
    }
    let text = matches!(data_type, DataType::Utf8 | DataType::Utf8View);
    value.kind() == arrow::kind_of(field)
        && (depth > 0 || value.len() == 1)
        && match value {
            ModelValue::Bytes(values) => {
                !text
                    || values
                        .iter()
                        .all(|value| std::str::from_utf8(value).is_ok())
            }
            ModelValue::Unset | ModelValue::Float(_) | ModelValue::Int64(_) => true,
        }
}

/// The features of a row that do not fit their columns.
pub(crate) fn misfits(schema: &Schema, row: &ModelRow) -> Vec<String> {
    let misfit = |field: &&Arc<Field>| {
        arrow::feature_of(field)
            .and_then(|key| row.get(&key))
            .is_some_and(|cell| misfit(field, cell))
    };
    schema
        .fields()
        .iter()
        .filter(misfit)
        .filter_map(|field| Some(arrow::feature_of(field)?.1))
        .collect()
}

/// Returns the features of a row that have a column.
pub(crate) fn kept(schema: &Schema, row: &ModelRow) -> ModelRow {
    let has = |key: &(ModelSide, String)| {
        schema
            .fields()
            .iter()
            .any(|field| arrow::feature_of(field).as_ref() == Some(key))
    };
    let keeps_unset = schema
        .fields()
        .iter()
        .any(|field| field.name() == "_tfarrow_unset");
    let keep = |key: &(ModelSide, String), cell: &ModelCell| {
        if *cell == ModelCell::One(ModelValue::Unset) {
            keeps_unset
        } else {
            has(key)
        }
    };
    row.iter()
        .filter(|(key, cell)| keep(key, cell))
        .map(|(key, cell)| (key.clone(), cell.clone()))
        .collect()
}

proptest! {
    #![proptest_config(config(600))]

    /// The schema is inferred from the first records alone.
    #[test]
    fn the_first_misfit_is_named(set in generate::mixed(), tape in tapes(), at in any::<Index>(), way in 0..4usize) {
        let payloads = set.odd_payloads(&mut Choices::new(&tape));
        let sampled = at.index(payloads.len() + 1);
        let Ok(schema) = schema_of(&frame::file(&payloads[..sampled]), set.sequence, WAYS[way]) else { return Ok(()) };
        let first = set.rows.iter().position(|row| !misfits(&schema, row).is_empty());

        let mut decoder = ReaderBuilder::new(Arc::clone(&schema)).with_batch_size(1).build_decoder().unwrap();
        let mut batches = Vec::new();
        let error = decode_until_error(&mut decoder, &frame::file(&payloads), &mut batches);
        let expected: Vec<_> = set.rows[..first.unwrap_or(set.rows.len())].iter().map(|row| kept(&schema, row)).collect();
        prop_assert_eq!(arrow::rows_from_batches(&batches).unwrap(), expected);
        prop_assert_eq!(error.as_ref().map(|e| e.position().record), first.map(|record| record as u64));
        if let (Some(error), Some(record)) = (error, first) {
            prop_assert!(record >= sampled);
            prop_assert_eq!(error.category(), Category::Data);
            prop_assert_eq!(error.position().offset, offsets(&payloads)[record]);
            prop_assert!(misfits(&schema, &set.rows[record]).contains(&error.position().feature.as_deref().unwrap().to_owned()));
        }
    }
}

fn decode_until_error(
    decoder: &mut tfarrow_codec::Decoder,
    file: &[u8],
    batches: &mut Vec<arrow_array::RecordBatch>,
) -> Option<Error> {
    let mut rest = file;
    while !rest.is_empty() {
        match decoder.decode(rest) {
            Ok(taken) => rest = &rest[taken..],
            Err(error) => return Some(error),
        }
        while decoder.capacity() == 0 {
            match decoder.flush() {
                Ok(batch) => batches.extend(batch),
                Err(error) => return Some(error),
            }
        }
    }
    if let Err(error) = decoder.finish() {
        return Some(error);
    }
    loop {
        match decoder.flush() {
            Ok(None) => return None,
            Ok(batch) => batches.extend(batch),
            Err(error) => return Some(error),
        }
    }
}

/// The error of a second record after a first one that makes the schema.
#[track_caller]
fn second(one: ModelValue, two: ModelValue) -> Error {
    let row =
        |value| ModelRow::from([((ModelSide::Features, "x".to_owned()), ModelCell::One(value))]);
    let set = generate::DataSet {
        sequence: false,
        rows: vec![row(one), row(two)],
    };
    let file = set.file();
    let schema = schema_of(&frame::file(&set.payloads()[..1]), false, WAYS[2]).unwrap();
    let mut decoder = ReaderBuilder::new(schema).build_decoder().unwrap();
    let error = push(&mut decoder, &file)
        .and_then(|_| finish(&mut decoder))
        .unwrap_err();
    assert_eq!(
        (error.position().record, error.position().feature.as_deref()),
        (1, Some("x"))
    );
    assert_eq!(error.position().offset, offsets(&set.payloads())[1]);
    error
}

#[test]
fn each_misfit_has_its_own_kind_of_error() {
    let text = || ModelValue::Bytes(vec![b"text".to_vec()]);
    let error = second(ModelValue::Int64(vec![1]), ModelValue::Float(vec![1]));
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Kind {
                expected: "int64_list",
                found: "float_list"
            }
        ),
        "{error}"
    );
    let error = second(text(), ModelValue::Int64(vec![1]));
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Kind {
                expected: "bytes_list",
                found: "int64_list"
            }
        ),
        "{error}"
    );
    let error = second(ModelValue::Int64(vec![1]), ModelValue::Int64(vec![]));
    assert!(
        matches!(error.kind(), ErrorKind::NotScalar { found: 0 }),
        "{error}"
    );
    let error = second(ModelValue::Float(vec![1]), ModelValue::Float(vec![1, 2]));
    assert!(
        matches!(error.kind(), ErrorKind::NotScalar { found: 2 }),
        "{error}"
    );
    let error = second(text(), ModelValue::Bytes(vec![vec![0xff]]));
    assert!(matches!(error.kind(), ErrorKind::NotUtf8), "{error}");
    // Bytes that are text only when they are concatenated: a character is split between two values.
    let error = second(
        ModelValue::Bytes(vec![b"a".to_vec(), b"b".to_vec()]),
        ModelValue::Bytes(vec![vec![0xc3], vec![0xa9]]),
    );
    assert!(matches!(error.kind(), ErrorKind::NotUtf8), "{error}");
}

#[test]
fn kinds_of_steps_must_be_that_of_the_column() {
    let list =
        |steps| ModelRow::from([((ModelSide::Lists, "l".to_owned()), ModelCell::Steps(steps))]);
    let rows = vec![
        list(vec![ModelValue::Int64(vec![1])]),
        list(vec![ModelValue::Unset, ModelValue::Float(vec![1])]),
    ];
    let set = generate::DataSet {
        sequence: true,
        rows,
    };
    let schema = schema_of(&frame::file(&set.payloads()[..1]), true, WAYS[0]).unwrap();
    assert_eq!(arrow::kind_of(schema.field(0)), Some(ModelKind::Int64));
    let mut decoder = ReaderBuilder::new(schema).build_decoder().unwrap();
    let error = push(&mut decoder, &set.file())
        .and_then(|_| finish(&mut decoder))
        .unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Kind {
                expected: "int64_list",
                found: "float_list"
            }
        ),
        "{error}"
    );
    assert_eq!(
        (error.position().record, error.position().feature.as_deref()),
        (1, Some("l"))
    );
}

/// Protobuf skips unknown fields. Field 2 of an Example is one, although a SequenceExample has it.
#[test]
fn field_2_of_an_example_is_an_unknown_field() {
    const X: &[u8] = b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07";
    let schema = schema_of(&frame::file([X]), false, WAYS[0]).unwrap();
    let file = frame::file([
        [X, b"\x12\x02\xff\xff"].concat(),
        [b"\x12\x03xyz", X].concat(),
    ]);
    let builder = ReaderBuilder::new(schema);
    let batches = crate::support::decode(&file, builder.clone()).unwrap();
    let row = ModelRow::from([(
        (ModelSide::Features, "x".to_owned()),
        ModelCell::One(ModelValue::Int64(vec![7])),
    )]);
    assert_eq!(
        arrow::rows_from_batches(&batches).unwrap(),
        [row.clone(), row]
    );
    let error = crate::support::decode(&file, builder.with_strict(true)).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Foreign { field: 2, .. }),
        "{error}"
    );
}

#[test]
fn unknown_fields_are_counted() {
    let set = small(true);
    let schema = schema_of(&set.file(), false, WAYS[0]).unwrap();
    let [records] = &chunks(&set.file(), 1 << 20).unwrap()[..] else {
        panic!()
    };
    let mut decoder = ReaderBuilder::new(schema).build_batch_decoder().unwrap();
    assert_eq!(decoder.foreign_fields(), None);
    decoder.decode(records).unwrap();
    decoder.decode(records).unwrap();
    // Two of three records have feature lists, and were read twice.
    assert_eq!(decoder.foreign_fields(), Some((2, 4)));
}

/// Two records of 1.1 GB exceed the offsets of one array. The error names no single record, and
/// none is skipped. Their bytes are never written, so that they take no memory.
#[test]
fn a_batch_above_the_offsets_of_arrow_is_an_error_of_the_batch() {
    let varint = |mut value: usize| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        [bytes, vec![value as u8]].concat()
    };
    let value = 1_100_000_000;
    // The start of a message whose last field is long.
    let begin = |before: &[u8], tag: u8, len: usize| [before, &[tag][..], &varint(len)].concat();
    let (mut head, mut len) = (Vec::new(), value);
    for (before, tag) in [
        (&b""[..], 0x0a),
        (b"", 0x0a),
        (b"\x0a\x01x", 0x12),
        (b"", 0x0a),
        (b"", 0x0a),
    ] {
        let start = begin(before, tag, len);
        len += start.len();
        head = [start, head].concat();
    }
    let mut header = Vec::new();
    header.extend((len as u64).to_le_bytes());
    header.extend(frame::masked(&header).to_le_bytes());
    let small = frame::file([&b""[..]]);
    let mut file = vec![0; small.len() + 2 * (len + 16)];
    file[..small.len()].copy_from_slice(&small);
    for start in [small.len(), small.len() + len + 16] {
        let start_of_record = [&header[..], &head].concat();
        file[start..start + start_of_record.len()].copy_from_slice(&start_of_record);
    }
    let (_, records) = Records::from_frames(file, Limits::default())
        .unwrap()
        .split_at(1);
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Binary, true)]));
    for on_error in [OnError::Fail, OnError::Skip] {
        let builder = ReaderBuilder::new(Arc::clone(&schema)).with_verify_crc(VerifyCrc::Never);
        let mut decoder = builder
            .with_on_error(on_error)
            .build_batch_decoder()
            .unwrap();
        let error = decoder.decode(&records).unwrap_err();
        assert_eq!((error.category(), error.limit()), (Category::Limit, None));
        assert!(
            matches!(error.kind(), ErrorKind::BatchLimit { records: 2, .. }),
            "{error}"
        );
        assert_eq!(
            error.to_string(),
            "records 1 to 2 (from byte 16): feature \"x\": bytes of one column of a batch: found 2200000012, the limit of a \
             batch is 2147483647"
        );
        assert_eq!(decoder.take_skipped().len(), 0);
    }
}

/// Two records of 2 GiB put a third one beyond 4 GiB, where 32-bit positions overflow. The bytes of
/// the long records are never written, so that they take no memory.
#[test]
#[cfg(target_pointer_width = "64")]
fn records_beyond_4_gib_of_memory_are_rejected() {
    let len = i32::MAX as usize;
    let mut header = (len as u64).to_le_bytes().to_vec();
    header.extend(frame::masked(&header).to_le_bytes());
    let last = frame::file([&b"\x0a\x00"[..]]);
    let mut file = vec![0; 2 * (len + 16) + last.len()];
    for (start, bytes) in [(0, &header), (len + 16, &header), (2 * (len + 16), &last)] {
        file[start..start + bytes.len()].copy_from_slice(bytes);
    }
    let (_, records) = Records::from_frames(file, Limits::default())
        .unwrap()
        .split_at(2);
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Binary, true)]));
    let mut decoder = ReaderBuilder::new(schema)
        .with_on_error(OnError::Skip)
        .build_batch_decoder()
        .unwrap();
    let all = BooleanArray::from(vec![true]);
    for result in [
        decoder.decode(&records),
        decoder.decode_where(&records, &all),
    ] {
        let error = result.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::BatchLimit { records: 1, .. }),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .contains("found 4294967344, the limit of a batch is 4294967295"),
            "{error}"
        );
    }
    assert_eq!(decoder.take_skipped().len(), 0);
}
