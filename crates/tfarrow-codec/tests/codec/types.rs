//! Arrow types as in Parquet files of users: every type that a feature can hold, and the rejection
//! of all others.

use std::sync::Arc;

use arrow_array::{
    types::{Float16Type, Int8Type, Int32Type, UInt8Type, UInt64Type},
    *,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use tfarrow_codec::{Error, ErrorKind, RecordType, Remedy, Rewrite, WriterBuilder};
use tfarrow_testkit::{
    frame,
    oracle::{self, ModelCell, ModelSide, ModelValue},
};

fn batch(name: &str, array: ArrayRef) -> RecordBatch {
    let field = Field::new(name, array.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

fn encode(builder: WriterBuilder, batch: &RecordBatch) -> Result<(Vec<u8>, u64), Error> {
    let mut bytes = Vec::new();
    let mut encoder = builder.build_encoder(batch.schema())?;
    encoder.encode(batch, &mut bytes)?;
    let losses = encoder.losses().map(|(_, _, times)| times).sum();
    Ok((bytes, losses))
}

/// Returns the feature `x` of each record.
fn features(file: &[u8]) -> Vec<Option<ModelValue>> {
    let rows = frame::read(file)
        .unwrap()
        .into_iter()
        .map(|payload| oracle::row_from_example(payload).unwrap());
    rows.map(
        |mut row| match row.remove(&(ModelSide::Features, "x".to_owned()))? {
            ModelCell::One(value) => Some(value),
            ModelCell::Steps(_) => None,
        },
    )
    .collect()
}

/// Checks the features that a column is encoded to, completely and in slices.
#[track_caller]
fn check(array: impl Array + 'static, expected: &[Option<ModelValue>]) {
    let batch = batch("x", Arc::new(array));
    for start in 0..=batch.num_rows() {
        for end in start..=batch.num_rows() {
            let (file, losses) =
                encode(WriterBuilder::new(), &batch.slice(start, end - start)).unwrap();
            assert_eq!(
                features(&file),
                expected[start..end],
                "rows {start} to {end}"
            );
            assert_eq!(losses, 0);
        }
    }
}

/// Checks that a column is rejected for its value in row 1, and the features that it is encoded to
/// if losses are allowed.
#[track_caller]
fn check_lossy(array: impl Array + 'static, expected: &[Option<ModelValue>], losses: u64) {
    let batch = batch("x", Arc::new(array));
    let mut encoder = WriterBuilder::new().build_encoder(batch.schema()).unwrap();
    let mut file = Vec::new();
    // Record 0 is written, and nothing after it.
    encoder.encode(&batch.slice(0, 1), &mut file).unwrap();
    let error = encoder
        .encode(&batch.slice(1, batch.num_rows() - 1), &mut file)
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Lossy { .. }), "{error}");
    assert_eq!(
        (error.position().record, error.position().feature.as_deref()),
        (1, Some("x")),
        "{error}"
    );
    assert_eq!(features(&file), expected[..1]);
    let (file, counted) = encode(WriterBuilder::new().with_lossy(true), &batch).unwrap();
    assert_eq!(features(&file), expected);
    assert_eq!(counted, losses);
}

/// Checks that a column is rejected for its type, with a message that contains `word`, and with
/// these remedies.
#[track_caller]
fn check_refused(array: impl Array + 'static, word: &str, remedies: &[Remedy]) {
    let batch = batch("an \"x\"", Arc::new(array));
    let error = WriterBuilder::new()
        .build_encoder(batch.schema())
        .unwrap_err();
    assert_eq!(
        error.position().feature.as_deref(),
        Some("an \"x\""),
        "{error}"
    );
    assert!(
        error.to_string().contains(word),
        "{error} does not say {word}"
    );
    assert_eq!(error.remedies(), remedies, "{error}");
}

/// A rewrite of the column of `check_refused`.
fn rewrite(with: Rewrite) -> Remedy {
    Remedy::Rewrite {
        column: "an \"x\"".to_owned(),
        with,
    }
}

fn ints(values: &[i64]) -> Option<ModelValue> {
    Some(ModelValue::Int64(values.to_vec()))
}

fn floats(values: &[f32]) -> Option<ModelValue> {
    Some(ModelValue::Float(
        values.iter().map(|value| value.to_bits()).collect(),
    ))
}

fn texts(values: &[&str]) -> Option<ModelValue> {
    Some(ModelValue::Bytes(
        values
            .iter()
            .map(|value| value.as_bytes().to_vec())
            .collect(),
    ))
}

#[test]
fn integers_become_int64() {
    check(
        Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX)]),
        &[ints(&[-128]), None, ints(&[127])],
    );
    check(
        Int16Array::from(vec![i16::MIN, -1]),
        &[ints(&[-32768]), ints(&[-1])],
    );
    check(
        Int32Array::from(vec![i32::MIN, i32::MAX]),
        &[ints(&[i32::MIN.into()]), ints(&[i32::MAX.into()])],
    );
    check(
        Int64Array::from(vec![Some(i64::MIN), None]),
        &[ints(&[i64::MIN]), None],
    );
    check(UInt8Array::from(vec![255]), &[ints(&[255])]);
    check(
        UInt16Array::from(vec![None, Some(65_535)]),
        &[None, ints(&[65_535])],
    );
    check(
        UInt32Array::from(vec![u32::MAX]),
        &[ints(&[u32::MAX.into()])],
    );
    check(
        UInt64Array::from(vec![0, i64::MAX as u64]),
        &[ints(&[0]), ints(&[i64::MAX])],
    );
    check(
        BooleanArray::from(vec![Some(true), None, Some(false)]),
        &[ints(&[1]), None, ints(&[0])],
    );
    check_lossy(
        UInt64Array::from(vec![1, 1 << 63, 2, u64::MAX]),
        &[ints(&[1]), ints(&[i64::MIN]), ints(&[2]), ints(&[-1])],
        2,
    );
}

#[test]
fn a_value_under_a_null_does_not_count() {
    let nulls = NullBuffer::from(vec![true, false]);
    check(
        UInt64Array::new(vec![1, u64::MAX].into(), Some(nulls.clone())),
        &[ints(&[1]), None],
    );
    check(
        Float64Array::new(vec![1.0, 0.1].into(), Some(nulls.clone())),
        &[floats(&[1.0]), None],
    );
    let items = Arc::new(UInt64Array::from(vec![1, u64::MAX]));
    let field = Arc::new(Field::new_list_field(DataType::UInt64, true));
    let lists = ListArray::new(
        Arc::clone(&field),
        OffsetBuffer::from_lengths([1, 1]),
        items,
        Some(nulls),
    );
    check(lists, &[ints(&[1]), None]);
    let items = UInt64Array::from(vec![None, Some(1), Some(2), None]);
    check(
        ListArray::new(
            field,
            OffsetBuffer::from_lengths([0, 1, 0]),
            Arc::new(items.slice(1, 2)),
            None,
        ),
        &[ints(&[]), ints(&[1]), ints(&[])],
    );
}

#[test]
fn floats_become_float32_if_exact() {
    check(
        Float32Array::from(vec![Some(-0.0), None, Some(f32::INFINITY)]),
        &[floats(&[-0.0]), None, floats(&[f32::INFINITY])],
    );
    let half = |value: f32| <Float16Type as types::ArrowPrimitiveType>::Native::from_f32(value);
    check(
        Float16Array::from(vec![half(0.5), half(-65_504.0)]),
        &[floats(&[0.5]), floats(&[-65_504.0])],
    );
    check(
        Float64Array::from(vec![Some(0.5), None, Some(f64::NEG_INFINITY)]),
        &[floats(&[0.5]), None, floats(&[f32::NEG_INFINITY])],
    );
    let (file, _) = encode(
        WriterBuilder::new(),
        &batch("x", Arc::new(Float64Array::from(vec![f64::NAN]))),
    )
    .unwrap();
    let Some(ModelValue::Float(bits)) = &features(&file)[0] else {
        panic!()
    };
    assert!(f32::from_bits(bits[0]).is_nan());
    check_lossy(
        Float64Array::from(vec![0.5, 0.1, 1e300]),
        &[floats(&[0.5]), floats(&[0.1]), floats(&[f32::INFINITY])],
        2,
    );
}

#[test]
fn bytes_and_text_become_bytes() {
    let long = "a text that is longer than the twelve bytes that a view holds";
    let values = || vec![Some("one"), None, Some(""), Some(long)];
    let expected = [texts(&["one"]), None, texts(&[""]), texts(&[long])];
    check(StringArray::from(values()), &expected);
    check(LargeStringArray::from(values()), &expected);
    check(StringViewArray::from(values()), &expected);
    let values = || {
        values()
            .into_iter()
            .map(|value| value.map(str::as_bytes))
            .collect::<Vec<_>>()
    };
    check(BinaryArray::from(values()), &expected);
    check(LargeBinaryArray::from(values()), &expected);
    check(BinaryViewArray::from(values()), &expected);
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        [Some(b"ab"), None, Some(b"cd")].into_iter(),
        2,
    )
    .unwrap();
    check(fixed, &[texts(&["ab"]), None, texts(&["cd"])]);
}

#[test]
fn dictionaries_become_their_values() {
    let array: DictionaryArray<Int32Type> = vec![Some("b"), None, Some("a"), Some("b")]
        .into_iter()
        .collect();
    check(array, &[texts(&["b"]), None, texts(&["a"]), texts(&["b"])]);
    let values: ArrayRef = Arc::new(UInt64Array::from(vec![Some(7), None, Some(u64::MAX)]));
    let keys = UInt8Array::from(vec![Some(0), Some(1), None]);
    // A value without a key does not count.
    check(
        DictionaryArray::<UInt8Type>::new(keys, Arc::clone(&values)),
        &[ints(&[7]), None, None],
    );
    let keys = UInt8Array::from(vec![0, 2, 2]);
    check_lossy(
        DictionaryArray::<UInt8Type>::new(keys, values),
        &[ints(&[7]), ints(&[-1]), ints(&[-1])],
        2,
    );
    let items: DictionaryArray<Int8Type> = vec!["x", "y", "x"].into_iter().collect();
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let lists = ListArray::new(
        field,
        OffsetBuffer::from_lengths([2, 0, 1]),
        Arc::new(items),
        None,
    );
    check(lists, &[texts(&["x", "y"]), texts(&[]), texts(&["x"])]);
}

#[test]
fn all_types_of_lists_become_lists() {
    let rows = || {
        vec![
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![]),
            Some(vec![Some(3)]),
        ]
    };
    let expected = [ints(&[1, 2]), None, ints(&[]), ints(&[3])];
    check(
        ListArray::from_iter_primitive::<Int32Type, _, _>(rows()),
        &expected,
    );
    check(
        LargeListArray::from_iter_primitive::<Int32Type, _, _>(rows()),
        &expected,
    );
    let fixed = vec![
        Some(vec![Some(1), Some(2)]),
        None,
        Some(vec![Some(3), Some(4)]),
    ];
    let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(fixed, 2);
    check(fixed, &[ints(&[1, 2]), None, ints(&[3, 4])]);
    // Views may be in any order, share values, and leave values out.
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let items: ArrayRef = Arc::new(Int64Array::from(vec![9, 1, 2, 3]));
    let nulls = Some(NullBuffer::from(vec![true, false, true, true]));
    let views = ListViewArray::new(
        field,
        ScalarBuffer::from(vec![2, 0, 0, 1]),
        ScalarBuffer::from(vec![2, 1, 0, 2]),
        items,
        nulls,
    );
    check(views, &[ints(&[2, 3]), None, ints(&[]), ints(&[1, 2])]);
}

#[test]
fn a_null_in_a_list_is_rejected_or_dropped() {
    let rows = vec![
        Some(vec![Some(1)]),
        Some(vec![None, Some(2), None]),
        Some(vec![None]),
    ];
    let expected = [ints(&[1]), ints(&[2]), ints(&[])];
    check_lossy(
        ListArray::from_iter_primitive::<Int32Type, _, _>(rows.clone()),
        &expected,
        3,
    );
    check_lossy(
        LargeListArray::from_iter_primitive::<Int32Type, _, _>(rows),
        &expected,
        3,
    );
    let rows = vec![Some(vec![Some(1)]), Some(vec![Some(u64::MAX)])];
    check_lossy(
        ListArray::from_iter_primitive::<UInt64Type, _, _>(rows),
        &[ints(&[1]), ints(&[-1])],
        1,
    );
}

#[test]
fn a_column_of_nulls_becomes_no_feature() {
    check(NullArray::new(2), &[None, None]);
}

#[test]
fn times_are_rejected_by_their_type() {
    let array = TimestampMicrosecondArray::from(vec![Some(5), None]);
    let cast = rewrite(Rewrite::Cast(DataType::Int64));
    check_refused(array.clone(), "Timestamp", &[cast, Remedy::AllowLossy]);
    let (file, losses) = encode(
        WriterBuilder::new().with_lossy(true),
        &batch("x", Arc::new(array)),
    )
    .unwrap();
    assert_eq!((features(&file), losses), (vec![ints(&[5]), None], 1));
    let (file, _) = encode(
        WriterBuilder::new().with_lossy(true),
        &batch("x", Arc::new(Date32Array::from(vec![-3]))),
    )
    .unwrap();
    assert_eq!(features(&file), [ints(&[-3])]);
    let decimal = Decimal128Array::from(vec![Some(125), None])
        .with_precision_and_scale(5, 2)
        .unwrap();
    let cast = rewrite(Rewrite::Cast(DataType::Float32));
    check_refused(
        decimal.clone(),
        "Decimal128(5, 2)",
        &[cast, Remedy::AllowLossy],
    );
    let (file, _) = encode(
        WriterBuilder::new().with_lossy(true),
        &batch("x", Arc::new(decimal)),
    )
    .unwrap();
    assert_eq!(features(&file), [floats(&[1.25]), None]);
}

#[test]
fn structs_and_maps_are_rejected_with_a_remedy() {
    let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, true));
    let part: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let array = StructArray::from(vec![(field("a"), Arc::clone(&part)), (field("b's"), part)]);
    let fields = Rewrite::Fields(vec!["a".to_owned(), "b's".to_owned()]);
    check_refused(array.clone(), "Struct", &[rewrite(fields)]);
    let mut map = builder::MapBuilder::new(
        None,
        builder::StringBuilder::new(),
        builder::Int64Builder::new(),
    );
    map.append(true).unwrap();
    let map = map.finish();
    check_refused(map.clone(), "Map", &[rewrite(Rewrite::MapKeys)]);
    // Keys into structs have no fields in a query, and a struct without fields has none at all.
    let keys =
        DictionaryArray::<Int32Type>::new(Int32Array::from(vec![0]), Arc::new(array.clone()));
    check_refused(
        keys,
        "Struct",
        &[rewrite(Rewrite::Cast(array.data_type().clone()))],
    );
    check_refused(
        StructArray::new_empty_fields(1, None),
        "a struct without fields",
        &[],
    );
    // Within lists, fields and keys are no columns of a query.
    check_refused(
        list_of(Arc::new(array)),
        "Struct",
        &[Remedy::WriteAs(RecordType::ExampleList)],
    );
    check_refused(list_of(Arc::new(map)), "Map", &[]);
}

/// A list of all values.
fn list_of(values: ArrayRef) -> ListArray {
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    ListArray::new(
        item,
        OffsetBuffer::from_lengths([values.len()]),
        values,
        None,
    )
}

#[test]
fn lists_of_lists_need_the_record_type_sequence_example() {
    let mut lists =
        builder::ListBuilder::new(builder::ListBuilder::new(builder::Int16Builder::new()));
    lists.values().append_value([Some(1), Some(2)]);
    lists.values().append_null();
    lists.values().append_value([]);
    lists.append(true);
    lists.append(false);
    lists.append(true);
    let lists = lists.finish();
    let remedies = [
        Remedy::WriteAs(RecordType::SequenceExample),
        rewrite(Rewrite::Flatten),
    ];
    check_refused(lists.clone(), "a list of lists", &remedies);
    let builder = WriterBuilder::new().with_record_type(RecordType::SequenceExample);
    let (file, _) = encode(builder, &batch("x", Arc::new(lists))).unwrap();
    let rows = frame::read(&file)
        .unwrap()
        .into_iter()
        .map(|payload| oracle::row_from_sequence_example(payload).unwrap());
    let steps: Vec<_> = rows
        .map(|row| row.into_iter().next().map(|(_, cell)| cell))
        .collect();
    let first = vec![
        ModelValue::Int64(vec![1, 2]),
        ModelValue::Unset,
        ModelValue::Int64(vec![]),
    ];
    assert_eq!(
        steps,
        [
            Some(ModelCell::Steps(first)),
            None,
            Some(ModelCell::Steps(vec![]))
        ]
    );
}

#[test]
fn one_feature_has_one_column() {
    let field = |name: &str| {
        let metadata = [("tfarrow.feature".to_owned(), "x".to_owned())].into();
        Field::new(name, DataType::Int64, true).with_metadata(metadata)
    };
    let error = WriterBuilder::new()
        .build_encoder(Arc::new(Schema::new(vec![field("a"), field("b")])))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("second column for the feature \"x\""),
        "{error}"
    );
}

#[test]
fn a_feature_is_not_both_set_and_unset() {
    let mut unset = builder::ListBuilder::new(builder::StringBuilder::new());
    unset.append_value([Some("y")]);
    unset.append_value([Some("y"), Some("x")]);
    let x: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([
        ("x", x),
        ("_tfarrow_unset", Arc::new(unset.finish()) as ArrayRef),
    ])
    .unwrap();
    let error = encode(WriterBuilder::new(), &batch).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Lossy { .. }), "{error}");
    assert_eq!(error.position().record, 1);
    let (file, losses) = encode(WriterBuilder::new().with_lossy(true), &batch).unwrap();
    assert_eq!((features(&file), losses), (vec![ints(&[1]), ints(&[2])], 1));
    let rows: Vec<_> = frame::read(&file)
        .unwrap()
        .into_iter()
        .map(|p| oracle::row_from_example(p).unwrap())
        .collect();
    assert!(rows.iter().all(
        |row| row[&(ModelSide::Features, "y".to_owned())] == ModelCell::One(ModelValue::Unset)
    ));
}

#[test]
fn a_batch_of_another_schema_is_rejected() {
    let one = batch("x", Arc::new(Int64Array::from(vec![1])));
    let other = batch("x", Arc::new(Float32Array::from(vec![1.0])));
    let mut encoder = WriterBuilder::new().build_encoder(one.schema()).unwrap();
    let mut file = Vec::new();
    assert!(encoder.encode(&other, &mut file).is_err());
    assert!(file.is_empty());
    encoder.encode(&one, &mut file).unwrap();
    assert_eq!(features(&file), [ints(&[1])]);
}

#[test]
fn raw_records_are_one_column_of_bytes() {
    let raw = || WriterBuilder::new().with_record_type(RecordType::Raw);
    let (file, _) = encode(
        raw(),
        &batch("x", Arc::new(LargeStringArray::from(vec!["one", ""]))),
    )
    .unwrap();
    assert_eq!(frame::read(&file).unwrap(), [&b"one"[..], b""]);
    assert!(
        raw()
            .build_encoder(batch("x", Arc::new(Int64Array::from(vec![1]))).schema())
            .is_err()
    );
    let error = encode(
        raw(),
        &batch(
            "x",
            Arc::new(BinaryArray::from(vec![Some(&b"a"[..]), None])),
        ),
    )
    .unwrap_err();
    assert_eq!(
        (error.position().record, error.position().feature.as_deref()),
        (1, Some("x"))
    );
}
