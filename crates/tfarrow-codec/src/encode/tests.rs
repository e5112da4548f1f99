//! Expected bytes are written by hand. Columns of other types are compared with the canonical
//! column of the same values.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array,
    DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float16Array, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeListArray,
    LargeStringArray, ListArray, ListViewArray, NullArray, RecordBatch, RecordBatchOptions,
    StringArray, StringViewArray, StructArray, TimestampMicrosecondArray, UInt8Array, UInt16Array,
    UInt32Array, UInt64Array,
    types::{Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, UInt16Type, UInt64Type},
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use half::f16;

use super::{Encoder, WriterBuilder};
use crate::{
    Error, RecordType, Remedy, Result, Rewrite, Shape, frame,
    schema::{FEATURE, KIND, ROLE, UNSET_COLUMN, with_record_type},
};

fn array<A: Array + 'static>(array: A) -> ArrayRef {
    Arc::new(array)
}

fn ints(rows: &[Option<&[i64]>]) -> ArrayRef {
    let rows = rows
        .iter()
        .map(|row| row.map(|values| values.iter().map(|value| Some(*value)).collect::<Vec<_>>()));
    array(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
}

fn floats(rows: &[Option<&[f32]>]) -> ArrayRef {
    let rows = rows
        .iter()
        .map(|row| row.map(|values| values.iter().map(|value| Some(*value)).collect::<Vec<_>>()));
    array(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
}

/// Returns lists of these values, with these offsets.
fn lists(values: ArrayRef, offsets: &[i32], valid: &[bool]) -> ArrayRef {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::new(offsets.to_vec().into());
    array(ListArray::new(
        field,
        offsets,
        values,
        Some(NullBuffer::from(valid)),
    ))
}

fn batch(columns: Vec<(Field, ArrayRef)>, record_type: Option<RecordType>) -> RecordBatch {
    let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let schema = match record_type {
        Some(record_type) => with_record_type(fields, record_type),
        None => Arc::new(Schema::new(fields)),
    };
    RecordBatch::try_new(schema, columns).unwrap()
}

fn field(name: &str, column: &ArrayRef) -> Field {
    Field::new(name, column.data_type().clone(), true)
}

/// Returns a batch of columns without metadata.
fn plain(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    let columns = columns
        .iter()
        .map(|(name, column)| (field(name, column), Arc::clone(column)));
    batch(columns.collect(), None)
}

fn unset(rows: &[Option<&[&str]>]) -> (Field, ArrayRef) {
    let mut lists =
        arrow_array::builder::ListBuilder::new(arrow_array::builder::StringBuilder::new());
    for row in rows {
        row.iter()
            .copied()
            .flatten()
            .for_each(|name| lists.values().append_value(name));
        lists.append(row.is_some());
    }
    let column = array(lists.finish());
    (field(UNSET_COLUMN, &column), column)
}

fn encode_with(builder: WriterBuilder, batch: &RecordBatch) -> Result<(Vec<u8>, Encoder)> {
    let mut encoder = builder.build_encoder(batch.schema())?;
    let mut out = Vec::new();
    encoder.encode(batch, &mut out)?;
    Ok((out, encoder))
}

/// Checks the payloads of an encoded batch, and the CRCs of its frames.
#[track_caller]
fn check_with(builder: WriterBuilder, batch: &RecordBatch, payloads: &[&[u8]]) {
    let (out, _) = encode_with(builder, batch).unwrap();
    let mut expected = Vec::new();
    payloads
        .iter()
        .for_each(|payload| frame::write(payload, &mut expected));
    assert_eq!(out, expected);
}

#[track_caller]
fn check(batch: &RecordBatch, payloads: &[&[u8]]) {
    check_with(WriterBuilder::new(), batch, payloads);
}

/// Checks that a column and one of the canonical type encode to the same bytes, also as slices.
#[track_caller]
fn same(users: ArrayRef, canonical: ArrayRef) {
    let users = plain(&[("x", users)]);
    let canonical = plain(&[("x", canonical)]);
    let encode = |batch: &RecordBatch| encode_with(WriterBuilder::new(), batch).unwrap().0;
    assert_eq!(encode(&users), encode(&canonical));
    for from in 0..users.num_rows() {
        let count = users.num_rows() - from - 1;
        assert_eq!(
            encode(&users.slice(from, count)),
            encode(&canonical.slice(from, count)),
            "from row {from}"
        );
    }
}

#[track_caller]
fn refused_with(builder: WriterBuilder, batch: &RecordBatch, message: &str) -> Error {
    let error = encode_with(builder, batch).unwrap_err();
    assert_eq!(error.to_string(), message);
    error
}

#[track_caller]
fn refused(column: ArrayRef, message: &str) -> Error {
    refused_with(WriterBuilder::new(), &plain(&[("x", column)]), message)
}

/// A rewrite of the column `x`.
fn rewrite(with: Rewrite) -> Remedy {
    Remedy::Rewrite {
        column: "x".to_owned(),
        with,
    }
}

/// Checks that a lossy encoder writes a column as the canonical one, and counts the changes.
#[track_caller]
fn lossy(column: ArrayRef, canonical: ArrayRef, what: &str, times: u64) {
    let (out, encoder) = encode_with(
        WriterBuilder::new().with_lossy(true),
        &plain(&[("x", column)]),
    )
    .unwrap();
    let (expected, exact) = encode_with(WriterBuilder::new(), &plain(&[("x", canonical)])).unwrap();
    assert_eq!(out, expected);
    assert_eq!(encoder.losses().collect::<Vec<_>>(), [("x", what, times)]);
    assert_eq!(exact.losses().count(), 0);
}

/// Returns a length-delimited field, shorter than 128 bytes.
fn part(tag: u8, bodies: &[Vec<u8>]) -> Vec<u8> {
    let body = bodies.concat();
    assert!(body.len() < 128);
    [&[tag, body.len() as u8], &body[..]].concat()
}

/// Returns an entry of a map.
fn entry(key: &str, value: &[u8]) -> Vec<u8> {
    part(
        0x0a,
        &[part(0x0a, &[key.into()]), part(0x12, &[value.to_vec()])],
    )
}

#[track_caller]
fn check_entries(batch: &RecordBatch, entries: &[Vec<u8>]) {
    let payloads: Vec<_> = entries
        .iter()
        .map(|e| {
            if e.is_empty() {
                vec![]
            } else {
                part(0x0a, std::slice::from_ref(e))
            }
        })
        .collect();
    check(
        batch,
        &payloads.iter().map(Vec::as_slice).collect::<Vec<_>>(),
    );
}

#[test]
fn every_byte_of_a_file_is_as_expected() {
    // As TensorFlow's TFRecordWriter writes Example { features { feature { key: "x" value {
    // int64_list { value: [7] }}}}}.
    let (out, encoder) = encode_with(
        WriterBuilder::new(),
        &plain(&[("x", array(Int64Array::from(vec![7])))]),
    )
    .unwrap();
    assert_eq!(out[..8], [14, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(frame::length(&out), Some(14));
    assert_eq!(
        &out[12..26],
        b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07"
    );
    assert_eq!(out.len(), 30);
    assert_eq!(encoder.record_type(), RecordType::Example);
}

#[test]
fn scalars_of_each_kind_are_encoded() {
    let batch = plain(&[
        (
            "b",
            array(BinaryArray::from_opt_vec(vec![
                Some(b"hi"),
                Some(b""),
                None,
            ])),
        ),
        ("f", array(Float32Array::from(vec![Some(1.5), None, None]))),
        (
            "i",
            array(Int64Array::from(vec![Some(300), Some(-1), None])),
        ),
    ]);
    let first = [
        entry("b", b"\x0a\x04\x0a\x02hi"),
        entry("f", b"\x12\x06\x0a\x04\x00\x00\xc0\x3f"),
        entry("i", b"\x1a\x04\x0a\x02\xac\x02"),
    ];
    let second = [
        entry("b", b"\x0a\x02\x0a\x00"),
        entry(
            "i",
            b"\x1a\x0c\x0a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ),
    ];
    check_entries(&batch, &[first.concat(), second.concat(), vec![]]);
}

#[test]
fn absent_empty_and_other_lists_are_encoded() {
    let texts = lists(
        array(StringArray::from(vec!["a", "bc"])),
        &[0, 0, 0, 2],
        &[false, true, true],
    );
    let batch = plain(&[
        ("", floats(&[None, Some(&[]), Some(&[1.0, -2.0])])),
        ("n", ints(&[None, Some(&[]), Some(&[1, 128])])),
        ("t", texts),
    ]);
    let empty = [
        entry("", b"\x12\x00"),
        entry("n", b"\x1a\x00"),
        entry("t", b"\x0a\x00"),
    ];
    let full = [
        entry("", b"\x12\x0a\x0a\x08\x00\x00\x80\x3f\x00\x00\x00\xc0"),
        entry("n", b"\x1a\x05\x0a\x03\x01\x80\x01"),
        entry("t", b"\x0a\x07\x0a\x01a\x0a\x02bc"),
    ];
    check_entries(&batch, &[vec![], empty.concat(), full.concat()]);
}

#[test]
fn lengths_may_take_two_bytes_at_every_level() {
    // Around 127 each length grows by a byte, one after the other.
    for (name_len, count) in (0..300).flat_map(|len| [(1, len), (len, 1), (len, len)]) {
        let name = "n".repeat(name_len);
        let values: Vec<_> = (0..count as u8 as i64).map(|_| 5).collect();
        let field = |tag: u8, body: Vec<u8>| {
            let len = body.len();
            let len = if len < 128 {
                vec![len as u8]
            } else {
                vec![len as u8 | 0x80, (len >> 7) as u8]
            };
            [vec![tag], len, body].concat()
        };
        let packed = if values.is_empty() {
            vec![]
        } else {
            field(0x0a, vec![5; values.len()])
        };
        let entry = [
            field(0x0a, name.clone().into()),
            field(0x12, field(0x1a, packed)),
        ]
        .concat();
        let payload = field(0x0a, field(0x0a, entry));
        check(&plain(&[(&name, ints(&[Some(&values)]))]), &[&payload]);
    }
}

#[test]
fn a_feature_without_a_kind_has_an_empty_value() {
    let a = ints(&[Some(&[7]), None, None]);
    let batch = batch(
        vec![
            (field("a", &a), a),
            unset(&[Some(&["b", ""]), Some(&["a"]), None]),
        ],
        None,
    );
    let first = [
        entry("a", b"\x1a\x03\x0a\x01\x07"),
        entry("b", b""),
        entry("", b""),
    ];
    check_entries(&batch, &[first.concat(), entry("a", b""), vec![]]);
}

#[test]
fn a_feature_named_as_unset_must_have_no_value() {
    let a = ints(&[None, Some(&[7])]);
    let batch = batch(
        vec![(field("a", &a), a), unset(&[None, Some(&["a", "b"])])],
        None,
    );
    let message = "feature \"_tfarrow_unset\": row 1 has the name \"a\", of a feature that has a value; null one of the two";
    assert_eq!(
        refused_with(WriterBuilder::new(), &batch, message).remedies(),
        [Remedy::AllowLossy]
    );
    let (out, encoder) = encode_with(WriterBuilder::new().with_lossy(true), &batch).unwrap();
    let mut expected = Vec::new();
    frame::write(b"", &mut expected);
    frame::write(
        &part(
            0x0a,
            &[entry("a", b"\x1a\x03\x0a\x01\x07"), entry("b", b"")],
        ),
        &mut expected,
    );
    assert_eq!(out, expected);
    let losses: Vec<_> = encoder.losses().collect();
    assert_eq!(
        losses,
        [(
            UNSET_COLUMN,
            "names of features that have a value dropped",
            1
        )]
    );
}

#[test]
fn sequence_examples_are_encoded() {
    // Steps: [1] and one without a kind; then none; then an empty one; then no feature list at all.
    let inner = ints(&[Some(&[1]), None, Some(&[])]);
    let steps = lists(inner, &[0, 2, 2, 3, 3], &[true, true, true, false]);
    let context = array(Int64Array::from(vec![Some(9), None, None, None]));
    let columns = vec![
        (field("c", &context), Arc::clone(&context)),
        (field("s", &steps), Arc::clone(&steps)),
    ];
    let context = entry("c", b"\x1a\x03\x0a\x01\x09");
    let payloads = [
        [
            part(0x0a, &[context]),
            part(0x12, &[entry("s", b"\x0a\x05\x1a\x03\x0a\x01\x01\x0a\x00")]),
        ]
        .concat(),
        part(0x12, &[entry("s", b"")]),
        part(0x12, &[entry("s", b"\x0a\x02\x1a\x00")]),
        vec![],
    ];
    let payloads: Vec<_> = payloads.iter().map(Vec::as_slice).collect();
    check(
        &batch(columns.clone(), Some(RecordType::SequenceExample)),
        &payloads,
    );
    let asked = WriterBuilder::new().with_record_type(RecordType::SequenceExample);
    check_with(asked, &batch(columns.clone(), None), &payloads);
    let message =
        "feature \"s\": a list of lists is a feature list, which a tf.Example does not have";
    let error = refused_with(WriterBuilder::new(), &batch(columns, None), message);
    let flatten = Remedy::Rewrite {
        column: "s".to_owned(),
        with: Rewrite::Flatten,
    };
    assert_eq!(
        error.remedies(),
        [Remedy::WriteAs(RecordType::SequenceExample), flatten]
    );
}

#[test]
fn a_context_feature_and_a_feature_list_of_one_name() {
    let context = ints(&[Some(&[1])]);
    let steps = lists(ints(&[Some(&[2])]), &[0, 1], &[true]);
    let metadata = HashMap::from([
        (ROLE.to_owned(), "sequence".to_owned()),
        (FEATURE.to_owned(), "a".to_owned()),
    ]);
    let columns = vec![
        (field("a", &context), context),
        (
            field("feature_lists/a", &steps).with_metadata(metadata),
            steps,
        ),
    ];
    // The metadata of the columns alone determines the record type.
    let batch = batch(columns, None);
    let payload = [
        part(0x0a, &[entry("a", b"\x1a\x03\x0a\x01\x01")]),
        part(0x12, &[entry("a", b"\x0a\x05\x1a\x03\x0a\x01\x02")]),
    ];
    check(&batch, &[&payload.concat()]);
}

#[test]
fn raw_records_are_written_unchanged() {
    let records = array(BinaryArray::from(vec![&b"any"[..], b""]));
    let raw = batch(
        vec![(field("record", &records), Arc::clone(&records))],
        Some(RecordType::Raw),
    );
    check(&raw, &[b"any", b""]);
    let asked = WriterBuilder::new().with_record_type(RecordType::Raw);
    let texts = array(StringViewArray::from(vec![
        "any",
        "long enough to be no inline view",
    ]));
    check_with(
        asked.clone(),
        &plain(&[("x", texts)]),
        &[b"any", b"long enough to be no inline view"],
    );
    let two = plain(&[("x", Arc::clone(&records)), ("y", records)]);
    let error = refused_with(
        asked.clone(),
        &two,
        "raw records are written from one column, found 2",
    );
    assert_eq!(
        error.remedies(),
        [Remedy::Rewrite {
            column: "record".to_owned(),
            with: Rewrite::Alone
        }]
    );
    let numbers = plain(&[("x", array(Int64Array::from(vec![1])))]);
    refused_with(
        asked,
        &numbers,
        "feature \"x\": a raw record is one binary value, found Int64",
    );
    let nulls = plain(&[(
        "x",
        array(BinaryArray::from_opt_vec(vec![Some(b"a"), None])),
    )]);
    let asked = WriterBuilder::new().with_record_type(RecordType::Raw);
    let message = "feature \"x\": row 1 has null in place of a record; leave the row out";
    assert_eq!(
        refused_with(asked.clone(), &nulls, message).remedies(),
        [Remedy::AllowLossy]
    );
    check_with(asked.with_lossy(true), &nulls, &[b"a", b""]);
}

#[test]
fn rows_without_columns_are_empty_records() {
    let options = RecordBatchOptions::new().with_row_count(Some(2));
    let batch =
        RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    check(&batch, &[b"", b""]);
}

#[test]
fn integers_of_every_width_become_int64() {
    let wide = || array(Int64Array::from(vec![Some(1), None, Some(100)]));
    same(
        array(Int8Array::from(vec![Some(1), None, Some(100)])),
        wide(),
    );
    same(
        array(Int16Array::from(vec![Some(1), None, Some(100)])),
        wide(),
    );
    same(
        array(Int32Array::from(vec![Some(1), None, Some(100)])),
        wide(),
    );
    same(
        array(UInt8Array::from(vec![Some(1), None, Some(100)])),
        wide(),
    );
    same(
        array(UInt16Array::from(vec![Some(1), None, Some(100)])),
        wide(),
    );
    same(
        array(UInt32Array::from(vec![Some(1), None, Some(100)])),
        wide(),
    );
    same(
        array(UInt64Array::from(vec![Some(1), None, Some(100)])),
        wide(),
    );
    same(
        array(Int8Array::from(vec![-1, i8::MIN])),
        array(Int64Array::from(vec![-1, -128])),
    );
    same(
        array(BooleanArray::from(vec![Some(true), None, Some(false)])),
        array(Int64Array::from(vec![Some(1), None, Some(0)])),
    );
}

#[test]
fn floats_of_every_width_become_float32() {
    let narrow = || {
        array(Float32Array::from(vec![
            Some(0.5),
            None,
            Some(f32::NEG_INFINITY),
            Some(-0.0),
        ]))
    };
    let half = |value| Some(f16::from_f32(value));
    same(
        array(Float16Array::from(vec![
            half(0.5),
            None,
            half(f32::NEG_INFINITY),
            half(-0.0),
        ])),
        narrow(),
    );
    same(
        array(Float64Array::from(vec![
            Some(0.5),
            None,
            Some(f64::NEG_INFINITY),
            Some(-0.0),
        ])),
        narrow(),
    );
    same(
        array(Float64Array::from(vec![f64::NAN])),
        array(Float32Array::from(vec![f32::NAN])),
    );
}

#[test]
fn all_types_of_bytes_and_text_become_bytes() {
    let values = vec![
        Some(&b"a"[..]),
        None,
        Some(b"longer than a view has room for"),
        Some(b""),
    ];
    let binary = || array(BinaryArray::from_opt_vec(values.clone()));
    same(
        array(LargeBinaryArray::from_opt_vec(values.clone())),
        binary(),
    );
    same(array(values.iter().collect::<BinaryViewArray>()), binary());
    let texts: Vec<_> = values
        .iter()
        .map(|value| value.map(|bytes| str::from_utf8(bytes).unwrap()))
        .collect();
    same(array(StringArray::from(texts.clone())), binary());
    same(array(LargeStringArray::from(texts.clone())), binary());
    same(array(StringViewArray::from(texts)), binary());
    let fixed = vec![Some(&b"abc"[..]), None, Some(b"def"), Some(b"ghi")];
    let fixed_array =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.iter().copied(), 3).unwrap();
    same(array(fixed_array), array(BinaryArray::from_opt_vec(fixed)));
}

#[test]
fn dictionaries_become_their_values() {
    let texts: DictionaryArray<Int32Type> = vec![Some("b"), None, Some("a"), Some("b")]
        .into_iter()
        .collect();
    same(
        array(texts),
        array(StringArray::from(vec![
            Some("b"),
            None,
            Some("a"),
            Some("b"),
        ])),
    );
    let keys = || UInt16Array::from(vec![Some(1), Some(0), None, Some(1)]);
    let dictionary = |values| array(DictionaryArray::<UInt16Type>::new(keys(), values));
    // A null among the values of the dictionary is a null as well.
    let longs = dictionary(array(Int64Array::from(vec![None, Some(5)])));
    same(
        longs,
        array(Int64Array::from(vec![Some(5), None, None, Some(5)])),
    );
    let doubles = dictionary(array(Float64Array::from(vec![0.25, 0.5])));
    same(
        doubles,
        array(Float32Array::from(vec![
            Some(0.5),
            Some(0.25),
            None,
            Some(0.5),
        ])),
    );
    let fixed = FixedSizeBinaryArray::try_from_iter([b"ab", b"cd"].into_iter()).unwrap();
    let expected = vec![Some(&b"cd"[..]), Some(b"ab"), None, Some(b"cd")];
    same(
        dictionary(array(fixed)),
        array(BinaryArray::from_opt_vec(expected.clone())),
    );
    same(
        dictionary(array(LargeBinaryArray::from(vec![&b"ab"[..], b"cd"]))),
        array(BinaryArray::from_opt_vec(expected)),
    );
    // A value that no row refers to does not count.
    let unused = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![0]),
        array(Float64Array::from(vec![0.5, 0.1])),
    );
    same(array(unused), array(Float32Array::from(vec![0.5])));
}

#[test]
fn all_types_of_lists_become_lists() {
    let canonical = || ints(&[Some(&[1, 2]), None, Some(&[]), Some(&[3])]);
    let rows = || {
        [
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![]),
            Some(vec![Some(3)]),
        ]
        .into_iter()
    };
    same(
        array(LargeListArray::from_iter_primitive::<Int64Type, _, _>(
            rows(),
        )),
        canonical(),
    );
    let narrow = rows().map(|row| {
        row.map(|values| {
            values
                .into_iter()
                .map(|value| value.map(|v| v as i8))
                .collect::<Vec<_>>()
        })
    });
    same(
        array(ListArray::from_iter_primitive::<Int8Type, _, _>(narrow)),
        canonical(),
    );
    // Views in another order than their values, which share some; the null one refers to none.
    let field = Arc::new(Field::new_list_field(DataType::Int32, true));
    let values = array(Int32Array::from(vec![3, 1, 2]));
    let offsets = ScalarBuffer::from(vec![1, 0, 0, 0]);
    let sizes = ScalarBuffer::from(vec![2, 1, 0, 1]);
    let nulls = NullBuffer::from(vec![true, false, true, true]);
    same(
        array(ListViewArray::new(
            field,
            offsets,
            sizes,
            values,
            Some(nulls),
        )),
        canonical(),
    );
    let pairs = vec![
        Some(vec![Some(1.0), Some(2.0)]),
        None,
        Some(vec![Some(3.0), Some(4.0)]),
    ];
    let fixed = FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(pairs, 2);
    same(
        array(fixed),
        floats(&[Some(&[1.0, 2.0]), None, Some(&[3.0, 4.0])]),
    );
    let texts: DictionaryArray<Int32Type> = vec!["b", "a", "b"].into_iter().collect();
    let plain_texts = array(StringArray::from(vec!["b", "a", "b"]));
    same(
        lists(array(texts), &[0, 2, 3], &[true, true]),
        lists(plain_texts, &[0, 2, 3], &[true, true]),
    );
}

#[test]
fn the_values_of_a_null_list_do_not_count() {
    let values = array(Float64Array::from(vec![
        Some(0.5),
        Some(0.1),
        None,
        Some(0.25),
    ]));
    same(
        lists(values, &[0, 1, 3, 4], &[true, false, true]),
        floats(&[Some(&[0.5]), None, Some(&[0.25])]),
    );
    let unsigned = UInt64Array::new(
        vec![u64::MAX, 1].into(),
        Some(NullBuffer::from(vec![false, true])),
    );
    same(
        array(unsigned),
        array(Int64Array::from(vec![None, Some(1)])),
    );
}

#[test]
fn columns_of_the_type_null_have_no_values() {
    let nothing = || array(NullArray::new(2));
    check_entries(&plain(&[("x", nothing())]), &[vec![], vec![]]);
    let empty = lists(array(NullArray::new(0)), &[0, 0, 0], &[false, true]);
    let message = "feature \"x\": row 1 has an empty list whose type says no kind";
    let error = refused(Arc::clone(&empty), message);
    assert_eq!(
        error.remedies(),
        [rewrite(Rewrite::SomeType), Remedy::AllowLossy]
    );
    let (out, encoder) = encode_with(
        WriterBuilder::new().with_lossy(true),
        &plain(&[("x", Arc::clone(&empty))]),
    )
    .unwrap();
    let mut expected = Vec::new();
    frame::write(b"", &mut expected);
    frame::write(&part(0x0a, &[entry("x", b"")]), &mut expected);
    assert_eq!(out, expected);
    assert_eq!(
        encoder
            .losses()
            .map(|(_, _, times)| times)
            .collect::<Vec<_>>(),
        [1]
    );
    // The metadata may have the kind.
    let metadata = HashMap::from([(KIND.to_owned(), "float_list".to_owned())]);
    let typed = batch(
        vec![(field("x", &empty).with_metadata(metadata), empty)],
        None,
    );
    check_entries(&typed, &[vec![], entry("x", b"\x12\x00")]);
}

#[test]
fn integers_above_int64_are_rejected_or_wrapped() {
    let column = || array(UInt64Array::from(vec![Some(1), None, Some(1 << 63)]));
    let message = "feature \"x\": row 2 has 9223372036854775808, past the end of int64";
    let error = refused(column(), message);
    let casts = [DataType::Utf8, DataType::Float32].map(|to| rewrite(Rewrite::Cast(to)));
    assert_eq!(
        error.remedies(),
        [&casts[..], &[Remedy::AllowLossy]].concat()
    );
    assert_eq!(
        (error.position().record, error.position().feature.as_deref()),
        (2, Some("x"))
    );
    let canonical = array(Int64Array::from(vec![Some(1), None, Some(i64::MIN)]));
    lossy(
        column(),
        canonical,
        "uint64 past int64 written as negative int64 of the same bits",
        1,
    );
    let lists = array(ListArray::from_iter_primitive::<UInt64Type, _, _>(vec![
        Some(vec![]),
        Some(vec![Some(0), Some(u64::MAX)]),
    ]));
    let error = refused(
        lists,
        &message.replace(
            "row 2 has 9223372036854775808",
            "row 1 has 18446744073709551615",
        ),
    );
    let casts = [DataType::Utf8, DataType::Float32]
        .map(|to| rewrite(Rewrite::Cast(Shape::List.data_type(to))));
    assert_eq!(
        error.remedies(),
        [&casts[..], &[Remedy::AllowLossy]].concat()
    );
}

#[test]
fn doubles_that_are_not_exact_are_rejected_or_rounded() {
    let column = || {
        array(Float64Array::from(vec![
            Some(0.5),
            Some(0.1),
            None,
            Some(1e300),
        ]))
    };
    let message = "feature \"x\": row 1 has 0.1, which float32 cannot hold exactly";
    let cast = rewrite(Rewrite::Cast(DataType::Float32));
    assert_eq!(
        refused(column(), message).remedies(),
        [cast, Remedy::AllowLossy]
    );
    let canonical = array(Float32Array::from(vec![
        Some(0.5),
        Some(0.1),
        None,
        Some(f32::INFINITY),
    ]));
    lossy(
        column(),
        Arc::clone(&canonical),
        "float64 rounded to float32",
        2,
    );
    // Rounding may be the only change that is allowed.
    let rounding = WriterBuilder::new().with_rounding(true);
    let (rounded, encoder) = encode_with(rounding.clone(), &plain(&[("x", column())])).unwrap();
    assert_eq!(
        rounded,
        encode_with(WriterBuilder::new(), &plain(&[("x", canonical)]))
            .unwrap()
            .0
    );
    assert_eq!(
        encoder.losses().collect::<Vec<_>>(),
        [("x", "float64 rounded to float32", 2)]
    );
    let large = array(UInt64Array::from(vec![u64::MAX]));
    let message = "feature \"x\": row 0 has 18446744073709551615, past the end of int64";
    refused_with(rounding, &plain(&[("x", large)]), message);
}

#[test]
fn times_and_decimals_are_rejected_or_converted() {
    let times = || array(TimestampMicrosecondArray::from(vec![Some(7), None]));
    let message = "feature \"x\": a feature holds no Timestamp(\u{b5}s), which would be written as int64 microseconds";
    let cast = rewrite(Rewrite::Cast(DataType::Int64));
    assert_eq!(
        refused(times(), message).remedies(),
        [cast, Remedy::AllowLossy]
    );
    let integers = || array(Int64Array::from(vec![Some(7), None]));
    lossy(
        times(),
        integers(),
        "times written as int64 in their unit",
        1,
    );
    lossy(
        array(Date32Array::from(vec![Some(7), None])),
        integers(),
        "times written as int64 in their unit",
        1,
    );
    let decimals = || {
        array(
            Decimal128Array::from(vec![Some(25), None])
                .with_precision_and_scale(5, 1)
                .unwrap(),
        )
    };
    let message = "feature \"x\": a feature holds no Decimal128(5, 1), which would be written as the nearest float32";
    let cast = rewrite(Rewrite::Cast(DataType::Float32));
    assert_eq!(
        refused(decimals(), message).remedies(),
        [cast, Remedy::AllowLossy]
    );
    let expected = array(Float32Array::from(vec![Some(2.5), None]));
    lossy(
        decimals(),
        expected,
        "decimals written as the nearest float32",
        1,
    );
}

#[test]
fn nulls_inside_lists_are_rejected_or_dropped() {
    let column = || {
        let rows = vec![
            Some(vec![Some(1), None, Some(2), None]),
            None,
            Some(vec![Some(3)]),
            Some(vec![None]),
        ];
        array(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
    };
    let message =
        "feature \"x\": row 0 has a null inside its list; drop it or put a value in its place";
    assert_eq!(refused(column(), message).remedies(), [Remedy::AllowLossy]);
    refused(column().slice(2, 2), &message.replace("row 0", "row 1"));
    let canonical = ints(&[Some(&[1, 2]), None, Some(&[3]), Some(&[])]);
    lossy(column(), canonical, "nulls inside lists dropped", 3);
    let texts: DictionaryArray<Int32Type> = vec![Some("a"), None].into_iter().collect();
    refused(lists(array(texts), &[0, 2], &[true]), message);
}

#[test]
fn structs_maps_and_deep_lists_are_rejected() {
    let fields = vec![
        (
            Arc::new(Field::new("a", DataType::Int64, true)),
            array(Int64Array::from(vec![1])),
        ),
        (
            Arc::new(Field::new("b'\"", DataType::Int64, true)),
            array(Int64Array::from(vec![1])),
        ),
    ];
    let message = "feature \"x\": a feature cannot hold Struct(\"a\": Int64, \"b'\\\"\": Int64)";
    let structs = array(StructArray::from(fields));
    let builder = WriterBuilder::new().with_lossy(true);
    let error = encode_with(builder, &plain(&[("x", Arc::clone(&structs))])).unwrap_err();
    let fields = Rewrite::Fields(vec!["a".to_owned(), "b'\"".to_owned()]);
    assert_eq!(
        (error.to_string().as_str(), error.remedies()),
        (message, vec![rewrite(fields)])
    );
    let deep = lists(
        lists(ints(&[Some(&[1])]), &[0, 1], &[true]),
        &[0, 1],
        &[true],
    );
    let error = refused(
        deep,
        "feature \"x\": lists are three deep, a record has two at most",
    );
    assert_eq!(error.remedies(), [rewrite(Rewrite::Unnest)]);
}

#[test]
fn two_columns_of_one_feature_are_rejected() {
    let column = || array(Int64Array::from(vec![1]));
    let metadata = HashMap::from([(FEATURE.to_owned(), "a".to_owned())]);
    let columns = vec![
        (field("a", &column()), column()),
        (field("b", &column()).with_metadata(metadata), column()),
    ];
    let message = "feature \"b\": a second column for the feature \"a\"; rename one of them";
    refused_with(WriterBuilder::new(), &batch(columns, None), message);
}

#[test]
fn a_record_of_two_gigabytes_is_rejected() {
    // Views share their bytes, so that this takes little memory.
    let mut views = arrow_array::builder::BinaryViewBuilder::new();
    let block = views.append_block(vec![0; 1 << 20].into());
    for _ in 0..2049 {
        views.try_append_view(block, 0, 1 << 20).unwrap();
    }
    let column = lists(array(views.finish()), &[0, 1, 2049], &[true, true]);
    let batch = plain(&[("x", column)]);
    let mut encoder = WriterBuilder::new().build_encoder(batch.schema()).unwrap();
    let mut out = b"before".to_vec();
    let error = encoder.encode(&batch, &mut out).unwrap_err();
    let message =
        "record 1 (byte 1048615): bytes in one record: found 2147491867, the limit is 2147483647";
    assert_eq!(error.to_string(), message);
    assert_eq!(out, b"before");
}

#[test]
fn records_are_counted_over_batches() {
    let batch = |value| plain(&[("x", array(Float64Array::from(vec![0.5, value])))]);
    let mut encoder = WriterBuilder::new()
        .build_encoder(batch(0.5).schema())
        .unwrap();
    let mut out = Vec::new();
    encoder.encode(&batch(0.5), &mut out).unwrap();
    let before = out.clone();
    let error = encoder.encode(&batch(0.1), &mut out).unwrap_err();
    assert_eq!(error.position().record, 3);
    assert_eq!(out, before);
}

#[test]
fn another_schema_is_rejected() {
    let mut encoder = WriterBuilder::new()
        .build_encoder(plain(&[("x", ints(&[]))]).schema())
        .unwrap();
    for other in [
        plain(&[("x", floats(&[]))]),
        plain(&[("y", ints(&[]))]),
        plain(&[("x", ints(&[])), ("y", ints(&[]))]),
    ] {
        assert!(encoder.encode(&other, &mut Vec::new()).is_err());
    }
}
