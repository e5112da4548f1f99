//! `ExampleListWithContext` records: their contexts and examples are those that the same Examples
//! are as records of their own, and encoding them gives equal records.

use std::{fs, sync::Arc};

use arrow_array::{
    Array, ArrayRef, Date32Array, FixedSizeListArray, Float64Array, Int64Array, LargeListArray,
    ListArray, ListViewArray, RecordBatch, StructArray, cast::AsArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, SchemaRef};
use proptest::prelude::*;
use tfarrow_codec::{
    Encoder, ErrorKind, ExactColumn, Layout, Limits, OnError, ReaderBuilder, RecordType, Records,
    Remedy, Role, Summary, VerifyCrc, WireError, WriterBuilder,
    diff::{Differ, DifferenceKind},
    schema,
};
use tfarrow_testkit::{
    arrow, config, frame, generate, golden,
    odd_wire::{self, Choices},
    oracle::{self, ModelRow},
    proto::{self, KindOneof},
};

use crate::support::{WAYS, chunks, summary, testdata};

/// A record: the Example of its context, if it has one, and those of its list.
#[derive(Clone, Debug)]
struct Model {
    context: Option<ModelRow>,
    examples: Vec<ModelRow>,
}

/// Generates records whose contexts and examples have one kind for each feature.
fn models() -> impl Strategy<Value = Vec<Model>> {
    (
        generate::examples(),
        generate::examples(),
        prop::collection::vec((any::<bool>(), 0..5usize), 0..12),
    )
        .prop_map(|(contexts, examples, counts)| {
            let (mut contexts, mut examples) =
                (contexts.rows.into_iter(), examples.rows.into_iter());
            let model = |(has_context, count): (bool, usize)| Model {
                context: contexts.next().filter(|_| has_context),
                examples: examples.by_ref().take(count).collect(),
            };
            counts.into_iter().map(model).collect()
        })
}

/// The payload of a record, whose Examples are written by `write`.
fn payload(model: &Model, mut write: impl FnMut(&ModelRow) -> Vec<u8>) -> Vec<u8> {
    let mut record: Vec<u8> = model
        .examples
        .iter()
        .flat_map(|row| proto::field(1, &write(row)))
        .collect();
    record.extend(
        model
            .context
            .iter()
            .flat_map(|row| proto::field(2, &write(row))),
    );
    record
}

/// A file in TensorFlow's form.
fn file(models: &[Model]) -> Vec<u8> {
    frame::file(
        models
            .iter()
            .map(|model| payload(model, oracle::example_from_row)),
    )
}

fn schema_of(file: &[u8], (layout, views): (Layout, bool)) -> SchemaRef {
    let schema = summary(file)
        .unwrap()
        .schema(layout, Some(RecordType::ExampleList))
        .unwrap();
    schema::with_views(&schema, views)
}

/// All records of a file in one batch.
fn records(file: &[u8]) -> Records {
    Records::from_frames(file.to_vec(), Limits::default()).unwrap()
}

fn decode(file: &[u8], schema: &SchemaRef) -> RecordBatch {
    let builder = ReaderBuilder::new(SchemaRef::clone(schema)).with_strict(true);
    builder
        .build_batch_decoder()
        .unwrap()
        .decode(&records(file))
        .unwrap()
}

/// Reads a batch into the model. A context without features is none.
fn models_of(batch: &RecordBatch) -> Vec<Model> {
    let schema = batch.schema();
    let of_examples = |index: &usize| schema::fields_of_examples(schema.field(*index)).is_some();
    let (list, context): (Vec<_>, Vec<_>) = (0..batch.num_columns()).partition(of_examples);
    let contexts = arrow::rows_from_batch(&batch.project(&context).unwrap()).unwrap();
    let [list] = list[..] else { panic!("{list:?}") };
    let lists = batch.column(list).as_list::<i32>();
    let model = |(row, context): (usize, ModelRow)| Model {
        context: Some(context).filter(|context| !context.is_empty()),
        examples: arrow::rows_from_batch(&RecordBatch::from(lists.value(row).as_struct())).unwrap(),
    };
    contexts.into_iter().enumerate().map(model).collect()
}

/// The models as a batch has them, in which a context without features is the same as none.
fn without_empty_contexts(models: &[Model]) -> Vec<Model> {
    let context = |model: &Model| model.context.clone().filter(|context| !context.is_empty());
    models
        .iter()
        .map(|model| Model {
            context: context(model),
            examples: model.examples.clone(),
        })
        .collect()
}

fn shown(models: &[Model]) -> String {
    format!("{models:#?}")
}

fn encode(batch: &RecordBatch) -> (Vec<u8>, Encoder) {
    let mut encoder = WriterBuilder::new().build_encoder(batch.schema()).unwrap();
    let mut frames = Vec::new();
    encoder.encode(batch, &mut frames).unwrap();
    (frames, encoder)
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn every_layout_decodes_every_record(models in models()) {
        let file = file(&models);
        for way in WAYS {
            let batch = decode(&file, &schema_of(&file, way));
            batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
            prop_assert_eq!(shown(&models_of(&batch)), shown(&without_empty_contexts(&models)), "{:?}", way);
        }
    }

    #[test]
    fn every_form_of_the_wire_decodes_to_the_same_batch(models in models(), tape in odd_wire::tapes()) {
        let usual = file(&models);
        let schema = schema_of(&usual, (Layout::Auto, false));
        let mut choices = Choices::new(&tape);
        let odd = frame::file(models.iter().map(|model| payload(model, |row| odd_wire::record(row, false, &mut choices))));
        let batch = ReaderBuilder::new(SchemaRef::clone(&schema)).build_batch_decoder().unwrap().decode(&records(&odd)).unwrap();
        prop_assert_eq!(batch, decode(&usual, &schema));
    }

    #[test]
    fn encoding_gives_equal_records(models in models()) {
        let file = file(&models);
        let batch = decode(&file, &schema_of(&file, (Layout::Auto, false)));
        let (encoded, _) = encode(&batch);
        let mut differ = Differ::new(RecordType::ExampleList, Limits::default());
        let (left, right) = (frame::read(&file).unwrap(), frame::read(&encoded).unwrap());
        prop_assert_eq!(left.len(), right.len());
        for (left, right) in left.iter().zip(right) {
            prop_assert_eq!(differ.compare(left, right), Ok(vec![]));
        }
        // The second time, the bytes are equal.
        let (again, _) = encode(&decode(&encoded, &batch.schema()));
        prop_assert!(again == encoded);
    }

    #[test]
    fn the_exact_form_restores_the_bytes(models in models(), tape in odd_wire::tapes()) {
        let usual = file(&models);
        let schema = schema_of(&usual, (Layout::Auto, false));
        let mut choices = Choices::new(&tape);
        let odd = frame::file(models.iter().map(|model| payload(model, |row| odd_wire::record(row, false, &mut choices))));
        let batch = ReaderBuilder::new(SchemaRef::clone(&schema)).build_batch_decoder().unwrap().decode(&records(&odd)).unwrap();
        let batch = ExactColumn::new(schema).unwrap().add(&batch, &records(&odd), |row| row).unwrap();
        prop_assert!(encode(&batch).0 == odd);
    }

    #[test]
    fn summaries_of_parts_merge_to_that_of_the_whole(models in models(), cut in 0..12usize) {
        let cut = cut.min(models.len());
        let whole = summary(&file(&models)).unwrap();
        let (one, other) = (summary(&file(&models[..cut])).unwrap(), summary(&file(&models[cut..])).unwrap());
        for (mut one, other) in [(&one, &other), (&other, &one)].map(|(a, b)| (copy(a), b)) {
            one.merge(other).unwrap();
            prop_assert_eq!(one.record_type(), whole.record_type());
            prop_assert_eq!(one.instances(Role::Examples), whole.instances(Role::Examples));
            let schemas = [&one, &whole].map(|summary| summary.schema(Layout::Auto, Some(RecordType::ExampleList)));
            prop_assert_eq!(schemas[0].as_ref().unwrap(), schemas[1].as_ref().unwrap());
        }
    }

    #[test]
    fn corrupt_bytes_are_errors_or_records(models in models(), bit in any::<prop::sample::Index>()) {
        let payloads: Vec<_> = models.iter().map(|model| payload(model, oracle::example_from_row)).collect();
        let schema = schema_of(&file(&models), (Layout::Auto, false));
        let mut bytes = payloads.concat();
        prop_assume!(!bytes.is_empty());
        let at = bit.index(bytes.len() * 8);
        bytes[at / 8] ^= 1 << (at % 8);
        let mut rest = &bytes[..];
        let damaged: Vec<&[u8]> = payloads.iter().map(|payload| rest.split_off(..payload.len()).unwrap()).collect();
        let all = records(&frame::file(&damaged));
        let builder = ReaderBuilder::new(schema).with_on_error(OnError::Skip);
        let mut decoder = builder.clone().build_batch_decoder().unwrap();
        let batch = decoder.decode(&all).unwrap();
        // Each record alone gives the same: a row, or an error.
        let mut rows = 0;
        for (index, record) in damaged.iter().enumerate() {
            let mut alone = builder.clone().with_on_error(OnError::Fail).build_batch_decoder().unwrap();
            if let Ok(one) = alone.decode(&records(&frame::file([record]))) {
                prop_assert_eq!(decoder.record_of(rows), index);
                prop_assert_eq!(&batch.slice(rows, 1), &one);
                rows += 1;
            }
        }
        prop_assert_eq!(rows, batch.num_rows());
        prop_assert_eq!(rows + decoder.take_skipped().len(), damaged.len());
    }
}

/// A summary of the same records.
fn copy(summary: &Summary) -> Summary {
    let mut copy = Summary::new(0);
    copy.merge(summary).unwrap();
    copy
}

fn example(features: &[(&str, KindOneof)]) -> Vec<u8> {
    proto::example(features.iter().cloned())
}

/// A query with two documents.
fn query() -> Vec<u8> {
    let document = |relevance: i64, title: &str| {
        proto::field(
            1,
            &example(&[
                ("relevance", KindOneof::ints([relevance])),
                ("title", KindOneof::bytes(title)),
            ]),
        )
    };
    let context = proto::field(2, &example(&[("query", KindOneof::bytes("rust arrow"))]));
    [document(1, "a"), document(0, "b"), context].concat()
}

#[test]
fn the_type_follows_from_the_records() {
    let summary_of = |records: &[Vec<u8>]| summary(&frame::file(records)).unwrap();
    let found = summary_of(&[query(), Vec::new(), query()]);
    assert_eq!(
        (found.record_type(), found.records()),
        (RecordType::ExampleList, 3)
    );
    assert_eq!(
        (
            found.instances(Role::Context),
            found.instances(Role::Examples)
        ),
        (3, 4)
    );
    let features: Vec<_> = found
        .features()
        .map(|f| (f.name.as_str(), f.role, f.present))
        .collect();
    let expected = [
        ("query", Role::Feature, 2),
        ("relevance", Role::Examples, 4),
        ("title", Role::Examples, 4),
    ];
    assert_eq!(features, expected);
    let schema = found.schema(Layout::Auto, None).unwrap();
    let DataType::List(item) = schema.field(1).data_type() else {
        panic!("{schema:?}")
    };
    assert_eq!(
        (
            schema.field(0).name().as_str(),
            schema.field(1).name().as_str()
        ),
        ("query", "examples")
    );
    assert!(matches!(item.data_type(), DataType::Struct(fields) if fields.len() == 2));
    // Records of another type beside them make the data set raw.
    let other = example(&[("x", KindOneof::ints([1]))]);
    for records in [
        [query(), other.clone()],
        [other, query()],
        [query(), b"text".to_vec()],
    ] {
        assert_eq!(summary_of(&records).record_type(), RecordType::Raw);
    }
    let foreign = [query(), proto::field(3, b"")].concat();
    assert_eq!(summary_of(&[foreign]).record_type(), RecordType::Raw);
}

/// As for Examples, a stated type means that fields which the type does not define are skipped.
#[test]
fn a_stated_type_reads_records_with_unknown_fields() {
    let unknown = proto::field(3, b"");
    let with_context = |field: &[u8]| [&query()[..], &proto::field(2, field)].concat();
    for record in [[query(), unknown.clone()].concat(), with_context(&unknown)] {
        let all = records(&frame::file([record]));
        let mut found = Summary::new(0).with_record_type(Some(RecordType::ExampleList));
        found.observe(&all, VerifyCrc::Always).unwrap();
        assert_eq!(
            found.foreign().map(|(place, field)| (place.record, field)),
            Some((0, 3))
        );
        assert_eq!(
            (found.record_type(), found.instances(Role::Examples)),
            (RecordType::Raw, 2)
        );
        let schema = found
            .schema(Layout::Auto, Some(RecordType::ExampleList))
            .unwrap();
        assert_eq!(
            schema,
            schema_of(&frame::file([query()]), (Layout::Auto, false))
        );
        let batch = ReaderBuilder::new(schema)
            .build_batch_decoder()
            .unwrap()
            .decode(&all)
            .unwrap();
        assert_eq!(batch.column(1).as_list::<i32>().value_length(0), 2);
    }
    // An Example is none of these.
    let mut found = Summary::new(0).with_record_type(Some(RecordType::ExampleList));
    let other = frame::file([query(), b"text".to_vec()]);
    found.observe(&records(&other), VerifyCrc::Always).unwrap();
    assert_eq!(
        (found.unparsable(), found.parsed_type()),
        (1, RecordType::ExampleList)
    );
}

/// The error is that of the list, and names its type, also where the type is inferred.
#[test]
fn a_record_that_does_not_parse_is_named_by_its_type() {
    // The value of a feature says that it is longer than its list.
    let malformed = [query(), proto::field(2, b"\x0a\x05\x0a\x03\x0a\x09x")].concat();
    let file = frame::file([query(), query(), malformed.clone()]);
    let mut found = summary(&file).unwrap();
    assert_eq!(
        (found.record_type(), found.parsed_type()),
        (RecordType::Raw, RecordType::ExampleList)
    );
    assert_eq!(
        found
            .first_unparsable()
            .map(|(place, error)| (place.record, error)),
        Some((2, WireError::PastEnd))
    );
    let offset = 2 * (query().len() + 16);
    let message = format!(
        "record 2 (byte {offset}): not a message tensorflow.serving.ExampleListWithContext: a field extends past the end of \
         its message"
    );
    let (count, _, error) = found.drop_unparsable().unwrap();
    assert_eq!((count, error.to_string()), (1, message.clone()));
    let schema = schema_of(&frame::file([query()]), (Layout::Auto, false));
    let mut decoder = ReaderBuilder::new(schema).build_batch_decoder().unwrap();
    assert_eq!(
        decoder.decode(&records(&file)).unwrap_err().to_string(),
        message
    );
    let cut = frame::file([query(), query(), query()[..9].to_vec()]);
    assert_eq!(
        decoder.decode(&records(&cut)).unwrap_err().to_string(),
        message
    );
}

#[test]
fn a_context_feature_may_have_the_name_of_the_list() {
    let context = example(&[("examples", KindOneof::ints([7]))]);
    let file = frame::file([[query(), proto::field(2, &context)].concat()]);
    let schema = schema_of(&file, (Layout::Auto, false));
    assert_eq!(
        schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect::<Vec<_>>(),
        ["examples", "query", "examples/examples"]
    );
    let batch = decode(&file, &schema);
    assert_eq!(batch.column(2).as_list::<i32>().value_length(0), 2);
    // The two pieces of the context are one.
    assert_eq!(batch.column(1).as_string::<i32>().value(0), "rust arrow");
}

#[test]
fn errors_name_the_example_and_its_feature() {
    let file = frame::file([query()]);
    let schema = schema_of(&file, (Layout::Auto, false));
    let document = example(&[("relevance", KindOneof::bytes("no number"))]);
    let odd = frame::file([query(), [query(), proto::field(1, &document)].concat()]);
    let mut decoder = ReaderBuilder::new(SchemaRef::clone(&schema))
        .build_batch_decoder()
        .unwrap();
    let error = decoder.decode(&records(&odd)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Kind { .. }), "{error}");
    let position = error.position();
    assert_eq!(
        (position.record, position.feature.as_deref()),
        (1, Some("examples[2].relevance"))
    );
    assert_eq!(position.offset, file.len() as u64);
    let mut decoder = ReaderBuilder::new(schema)
        .with_on_error(OnError::Skip)
        .build_batch_decoder()
        .unwrap();
    assert_eq!(decoder.decode(&records(&odd)).unwrap().num_rows(), 1);
    assert_eq!(decoder.take_skipped().len(), 1);
}

#[test]
fn losses_count_once_beside_a_skipped_record() {
    let schema = schema_of(&frame::file([query()]), (Layout::Auto, false));
    let other = example(&[
        ("other", KindOneof::bytes("x")),
        ("relevance", KindOneof::bytes("no number")),
    ]);
    let known = example(&[("other", KindOneof::bytes("x"))]);
    let good = [
        query(),
        proto::field(1, &known),
        proto::field(2, &known),
        proto::field(9, b"x"),
    ]
    .concat();
    let bad = [query(), proto::field(1, &other), proto::field(9, b"x")].concat();
    let file = frame::file([good.clone(), bad, good]);
    let mut decoder = ReaderBuilder::new(schema)
        .with_on_error(OnError::Skip)
        .build_batch_decoder()
        .unwrap();
    assert_eq!(decoder.decode(&records(&file)).unwrap().num_rows(), 2);
    assert_eq!(decoder.take_skipped().len(), 1);
    // One of the contexts, and one of the examples.
    assert_eq!(
        decoder.unknown_features().collect::<Vec<_>>(),
        [("other", 2), ("other", 2)]
    );
    assert_eq!(decoder.foreign_fields(), Some((9, 2)));
}

#[test]
fn a_projection_reads_the_wanted_parts() {
    let file = frame::file([query(), query()]);
    let schema = schema_of(&file, (Layout::Auto, false));
    for wanted in [vec![0], vec![1], vec![1, 0, 1], vec![]] {
        let builder = ReaderBuilder::new(SchemaRef::clone(&schema)).with_projection(wanted.clone());
        let batch = builder
            .build_batch_decoder()
            .unwrap()
            .decode(&records(&file))
            .unwrap();
        assert_eq!(batch, decode(&file, &schema).project(&wanted).unwrap());
    }
}

/// A batch of one list column `examples`, with a row for each length: examples with the field `x`.
/// A null length is a null row, which has one hidden example.
fn lists(lengths: &[Option<usize>], x: ArrayRef, nulls: Option<NullBuffer>) -> RecordBatch {
    let fields: Fields = vec![Field::new("x", x.data_type().clone(), true)].into();
    let items = StructArray::new(fields.clone(), vec![x], nulls);
    let item = Arc::new(Field::new_list_field(DataType::Struct(fields), true));
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(1)));
    let valid: NullBuffer = lengths.iter().map(Option::is_some).collect();
    let list: ArrayRef = Arc::new(ListArray::new(item, offsets, Arc::new(items), Some(valid)));
    RecordBatch::try_from_iter([("examples", list)]).unwrap()
}

/// Encodes a batch as lists of examples.
fn encode_lists(
    builder: WriterBuilder,
    batch: &RecordBatch,
) -> tfarrow_codec::Result<(Vec<Vec<u8>>, Encoder)> {
    let mut encoder = builder
        .with_record_type(RecordType::ExampleList)
        .build_encoder(batch.schema())?;
    let mut frames = Vec::new();
    let encoded = encoder.encode(batch, &mut frames);
    assert!(encoded.is_ok() || frames.is_empty());
    encoded?;
    Ok((
        frame::read(&frames)
            .unwrap()
            .into_iter()
            .map(<[u8]>::to_vec)
            .collect(),
        encoder,
    ))
}

fn ints(values: &[i64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|x| proto::field(1, &example(&[("x", KindOneof::ints([*x]))])))
        .collect()
}

#[test]
fn a_null_example_is_an_error_unless_losses_are_allowed() {
    let x: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let nulls = NullBuffer::from(vec![true, true, false, true]);
    let batch = lists(&[Some(1), Some(3)], x, Some(nulls));
    let error = encode_lists(WriterBuilder::new(), &batch).unwrap_err();
    assert_eq!(
        error.to_string(),
        "feature \"examples\": row 1 has a null in its list of examples; leave it out"
    );
    let (records, encoder) = encode_lists(WriterBuilder::new().with_lossy(true), &batch).unwrap();
    assert_eq!(
        encoder.losses().collect::<Vec<_>>(),
        [("examples", "nulls in lists dropped", 1)]
    );
    assert_eq!(records, [ints(&[1]), ints(&[2, 4])]);
}

#[test]
fn a_null_list_has_no_examples_whatever_is_under_the_null() {
    let x: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    for nulls in [None, Some(NullBuffer::from(vec![true, false, true, true]))] {
        let batch = lists(&[Some(1), None, Some(2)], Arc::clone(&x), nulls);
        let (records, encoder) = encode_lists(WriterBuilder::new(), &batch).unwrap();
        assert_eq!(records, [ints(&[1]), vec![], ints(&[3, 4])]);
        assert_eq!(encoder.losses().count(), 0);
        let (records, _) = encode_lists(WriterBuilder::new(), &batch.slice(1, 2)).unwrap();
        assert_eq!(records, [vec![], ints(&[3, 4])]);
    }
}

#[test]
fn lists_of_examples_may_have_any_type_of_lists() {
    let x: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let batch = lists(&[Some(2), None, Some(1)], x, None);
    let (item, offsets, values, nulls) = batch.column(0).as_list::<i32>().clone().into_parts();
    let (expected, _) = encode_lists(WriterBuilder::new(), &batch).unwrap();
    let long = offsets
        .iter()
        .map(|offset| i64::from(*offset))
        .collect::<Vec<_>>();
    let long: ArrayRef = Arc::new(LargeListArray::new(
        Arc::clone(&item),
        OffsetBuffer::new(long.into()),
        values,
        nulls,
    ));
    let views: ArrayRef = Arc::new(ListViewArray::from(
        batch.column(0).as_list::<i32>().clone(),
    ));
    for lists in [long, views] {
        let batch = RecordBatch::try_from_iter([("examples", lists)]).unwrap();
        assert_eq!(
            encode_lists(WriterBuilder::new(), &batch).unwrap().0,
            expected
        );
        assert_eq!(
            encode_lists(WriterBuilder::new(), &batch.slice(1, 2))
                .unwrap()
                .0,
            expected[1..]
        );
    }
    let values = batch.column(0).as_list::<i32>().values().slice(0, 2);
    let fixed: ArrayRef = Arc::new(FixedSizeListArray::new(item, 2, values, None));
    let batch = RecordBatch::try_from_iter([("examples", fixed)]).unwrap();
    assert_eq!(
        encode_lists(WriterBuilder::new(), &batch).unwrap().0,
        expected[..1]
    );
}

#[test]
fn values_of_null_examples_count_no_losses() {
    // 0.1 is no float of 32 bits; it is under a null list, then under a null struct.
    let x: ArrayRef = Arc::new(Float64Array::from(vec![0.1, 0.5, 0.1, 0.1]));
    let nulls = NullBuffer::from(vec![true, true, false, true]);
    let batch = lists(&[None, Some(3)], x, Some(nulls));
    let (_, encoder) = encode_lists(WriterBuilder::new().with_lossy(true), &batch).unwrap();
    let losses: Vec<_> = encoder.losses().collect();
    assert_eq!(
        losses,
        [
            ("x", "float64 rounded to float32", 1),
            ("examples", "nulls in lists dropped", 1)
        ]
    );
}

#[test]
fn an_example_that_cannot_be_written_is_named_by_its_row_and_its_place() {
    let x: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 0.5, 0.5, 0.1]));
    let batch = lists(&[Some(1), Some(0), Some(3)], x, None);
    let error = encode_lists(WriterBuilder::new(), &batch).unwrap_err();
    let message = "feature \"examples[2].x\": row 2 has 0.1, which float32 cannot hold exactly";
    assert_eq!(
        (error.to_string().as_str(), error.position().record),
        (message, 2)
    );
    // A cast of the column would not reach a field of the structs.
    assert_eq!(error.remedies(), [Remedy::AllowLossy]);
    let (_, encoder) = encode_lists(WriterBuilder::new().with_rounding(true), &batch).unwrap();
    assert_eq!(
        encoder.losses().collect::<Vec<_>>(),
        [("x", "float64 rounded to float32", 1)]
    );
    let mut encoder = WriterBuilder::new()
        .with_record_type(RecordType::ExampleList)
        .build_encoder(batch.schema())
        .unwrap();
    for rounding in [false, true, false] {
        encoder.set_rounding(rounding);
        assert_eq!(encoder.encode(&batch, &mut Vec::new()).is_ok(), rounding);
    }
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![1]));
    let error = encode_lists(WriterBuilder::new(), &lists(&[Some(1)], dates, None)).unwrap_err();
    assert_eq!(error.position().feature.as_deref(), Some("examples.x"));
    assert_eq!(error.remedies(), [Remedy::AllowLossy]);
}

#[test]
fn the_fields_of_examples_are_features() {
    let batch = lists(&[Some(1)], Arc::new(Int64Array::from(vec![1])), None);
    for role in Role::ALL {
        let x = Field::new("x", DataType::Int64, true);
        let x = x.with_metadata([(schema::ROLE.to_owned(), role.to_string())].into());
        let list = schema::with_example_fields(batch.schema().field(0), vec![x].into());
        let schema = schema::with_record_type(vec![list], RecordType::ExampleList);
        let decoder = ReaderBuilder::new(SchemaRef::clone(&schema))
            .build_batch_decoder()
            .map(drop);
        let encoder = WriterBuilder::new().build_encoder(schema).map(drop);
        for built in [decoder, encoder] {
            let is_other_role =
                matches!(&built, Err(error) if error.to_string().contains("found the role"));
            assert_eq!(
                is_other_role,
                !matches!(role, Role::Feature | Role::Unset),
                "{role}: {built:?}"
            );
        }
    }
}

#[test]
fn differences_have_the_place_of_the_example() {
    let mut differ = Differ::new(RecordType::ExampleList, Limits::default());
    let other = proto::field(
        1,
        &example(&[
            ("relevance", KindOneof::ints([2])),
            ("title", KindOneof::bytes("a")),
        ]),
    );
    let second = proto::field(
        1,
        &example(&[
            ("relevance", KindOneof::ints([0])),
            ("title", KindOneof::bytes("b")),
        ]),
    );
    let context = proto::field(2, &example(&[("query", KindOneof::bytes("other"))]));
    let differences = differ
        .compare(&query(), &[other.clone(), second, context.clone()].concat())
        .unwrap();
    let found: Vec<_> = differences
        .iter()
        .map(|difference| difference.feature.clone().unwrap())
        .collect();
    assert_eq!(
        found,
        [
            (Role::Feature, "query".to_owned()),
            (Role::Examples, "examples[0].relevance".to_owned())
        ]
    );
    let differences = differ
        .compare(&query(), &[other, context].concat())
        .unwrap();
    assert_eq!(differences[1].what, DifferenceKind::Steps(2, 1));
}

/// A list with many empty examples would take memory for each column.
#[test]
fn the_cells_of_a_batch_have_a_limit() {
    let names: Vec<_> = (0..1000).map(|index| format!("f{index:03}")).collect();
    let wide = proto::example(
        names
            .iter()
            .map(|name| (name.as_str(), KindOneof::ints([1]))),
    );
    let file = frame::file([proto::field(1, &wide)]);
    let schema = schema_of(&file, (Layout::Auto, false));
    let builder = ReaderBuilder::new(schema);
    let decode = |file: &[u8]| {
        builder
            .clone()
            .build_batch_decoder()
            .unwrap()
            .decode(&records(file))
    };
    let list = |count| [0x0a, 0].repeat(count);
    let error = decode(&frame::file([list(40_000), list(40_000)])).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::BatchLimit { .. }),
        "{error}"
    );
    // A record that has too many alone is skipped, since no limit can be raised.
    let file = frame::file([list(1), list(100_000), list(2)]);
    let error = decode(&file).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Wire(WireError::ManyMessages)),
        "{error}"
    );
    assert_eq!(error.position().record, 1);
    let mut skipping = builder
        .with_on_error(OnError::Skip)
        .build_batch_decoder()
        .unwrap();
    assert_eq!(
        (
            skipping.decode(&records(&file)).unwrap().num_rows(),
            skipping.take_skipped().len()
        ),
        (2, 1)
    );
}

#[test]
fn records_are_read_in_chunks() {
    let file = frame::file((0..100).map(|_| query()));
    let mut summary = Summary::new(0);
    for records in chunks(&file, 64).unwrap() {
        summary.observe(&records, VerifyCrc::Always).unwrap();
    }
    assert_eq!(
        (summary.record_type(), summary.instances(Role::Examples)),
        (RecordType::ExampleList, 200)
    );
}

#[test]
fn the_file_of_protobuf_has_the_values_of_its_library() {
    let folder = testdata().join("example_list");
    let file = fs::read(folder.join("queries.tfrecord")).unwrap();
    let text = fs::read_to_string(folder.join("queries.txt")).unwrap();
    let mut expected: Vec<Model> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((part, example)) = line.split_once(' ') else {
            expected.push(Model {
                context: None,
                examples: Vec::new(),
            });
            continue;
        };
        let row = golden::parse(&format!("[{example}]")).unwrap().1.remove(0);
        let record = expected.last_mut().unwrap();
        if part == "context" {
            record.context = Some(row)
        } else {
            record.examples.push(row)
        }
    }
    assert_eq!(expected.len(), 5);
    assert_eq!(
        summary(&file).unwrap().record_type(),
        RecordType::ExampleList
    );
    for way in WAYS {
        let batch = decode(&file, &schema_of(&file, way));
        assert_eq!(
            shown(&models_of(&batch)),
            shown(&without_empty_contexts(&expected)),
            "{way:?}"
        );
    }
}
