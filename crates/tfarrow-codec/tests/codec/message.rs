//! Messages of any type, by their descriptors, against prost-reflect's dynamic messages.

use std::{
    fs,
    path::Path,
    sync::{Arc, OnceLock},
};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, MapArray, RecordBatch, StringArray, StructArray,
    cast::AsArray,
    types::{
        DurationNanosecondType, Float32Type, Float64Type, Int32Type, Int64Type,
        TimestampMicrosecondType, TimestampNanosecondType, UInt32Type, UInt64Type,
    },
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use base64::{Engine, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor,
    ReflectMessage, Value,
    prost::Message,
    prost_types::{
        DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
        FileDescriptorProto, FileDescriptorSet, MessageOptions, OneofDescriptorProto,
        field_descriptor_proto::{Label, Type},
    },
};
use tfarrow_codec::{
    BatchDecoder, Category, ErrorKind, Limits, MessageType, OnError, ReaderBuilder, Records,
    Remedy, WireError, WriterBuilder,
    file_schema::with_timestamp_unit,
    schema::{DESCRIPTORS, with_views},
};

const NANOS: i64 = 1_000_000_000;

fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/message/shapes.desc");
        DescriptorPool::decode(fs::read(path).unwrap().as_slice()).unwrap()
    })
}

fn descriptor(name: &str) -> MessageDescriptor {
    pool()
        .get_message_by_name(&format!("tfarrow.test.{name}"))
        .unwrap()
}

fn schema(name: &str) -> Schema {
    MessageType::new(descriptor(name))
        .schema(&Limits::default())
        .unwrap()
        .as_ref()
        .clone()
}

fn decoder(schema: Schema) -> BatchDecoder {
    ReaderBuilder::new(schema.into())
        .with_strict(true)
        .build_batch_decoder()
        .unwrap()
}

fn decode(schema: Schema, payloads: &[&[u8]]) -> tfarrow_codec::Result<RecordBatch> {
    decoder(schema).decode(&Records::from_payloads(payloads.iter().copied())?)
}

/// Bytes that decide the form of a random message.
struct Entropy<'a>(&'a [u8]);

impl Entropy<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn bits(&mut self) -> u64 {
        // Few bytes, so that small numbers of all widths are frequent.
        let bytes = usize::from(self.byte() % 9);
        let low = (0..bytes).fold(0, |bits, _| bits << 8 | u64::from(self.byte()));
        if self.byte() % 4 == 3 { !low } else { low }
    }

    fn message(&mut self, descriptor: &MessageDescriptor, depth: usize) -> DynamicMessage {
        let mut message = DynamicMessage::new(descriptor.clone());
        match descriptor.full_name() {
            "google.protobuf.Timestamp" => {
                let time = self.bits() as i64;
                message.set_field_by_name("seconds", Value::I64(time.div_euclid(NANOS)));
                message.set_field_by_name("nanos", Value::I32(time.rem_euclid(NANOS) as i32));
                return message;
            }
            "google.protobuf.Duration" => {
                let time = self.bits() as i64;
                message.set_field_by_name("seconds", Value::I64(time / NANOS));
                message.set_field_by_name("nanos", Value::I32((time % NANOS) as i32));
                return message;
            }
            _ => {}
        }
        for field in descriptor.fields() {
            let count = usize::from(self.byte() % 4);
            if count == 0 || depth > 4 {
                continue;
            }
            let value = match field.kind() {
                Kind::Message(entry) if field.is_map() => {
                    let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
                    let entry = |_| {
                        (
                            self.value(&key.kind(), depth).into_map_key().unwrap(),
                            self.value(&value.kind(), depth),
                        )
                    };
                    Value::Map((0..count).map(entry).collect())
                }
                kind if field.is_list() => {
                    Value::List((0..count).map(|_| self.value(&kind, depth)).collect())
                }
                kind => self.value(&kind, depth),
            };
            message.set_field(&field, value);
        }
        message
    }

    fn value(&mut self, kind: &Kind, depth: usize) -> Value {
        match kind {
            // NaN is not equal to itself.
            Kind::Double => Value::F64(
                Some(f64::from_bits(self.bits()))
                    .filter(|it| !it.is_nan())
                    .unwrap_or(0.5),
            ),
            Kind::Float => Value::F32(
                Some(f32::from_bits(self.bits() as u32))
                    .filter(|it| !it.is_nan())
                    .unwrap_or(0.5),
            ),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(self.bits() as i32),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(self.bits() as i64),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(self.bits() as u32),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(self.bits()),
            Kind::Bool => Value::Bool(self.byte() % 2 == 1),
            Kind::String => Value::String(format!("{:x}é", self.bits())),
            Kind::Bytes => Value::Bytes(self.bits().to_le_bytes().to_vec().into()),
            Kind::Enum(names) => {
                let known: Vec<_> = names.values().map(|value| value.number()).collect();
                let any = [known.as_slice(), &[77, i32::MIN]].concat();
                let numbers = if names.full_name().ends_with("Color") {
                    any
                } else {
                    known
                };
                Value::EnumNumber(numbers[usize::from(self.byte()) % numbers.len()])
            }
            Kind::Message(message) => Value::Message(self.message(message, depth + 1)),
        }
    }
}

/// Returns the message of a row.
fn message_of(
    descriptor: &MessageDescriptor,
    fields: &[(&Field, &ArrayRef)],
    row: usize,
) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    for (column, array) in fields {
        let field = descriptor.get_field_by_name(column.name()).unwrap();
        assert_eq!(
            column.is_nullable(),
            field.supports_presence(),
            "{}",
            field.full_name()
        );
        if array.is_null(row) {
            assert!(field.supports_presence(), "{}", field.full_name());
            continue;
        }
        message.set_field(&field, field_value(&field, array, row));
    }
    message
}

fn fields_of(array: &StructArray) -> Vec<(&Field, &ArrayRef)> {
    array
        .fields()
        .iter()
        .map(AsRef::as_ref)
        .zip(array.columns())
        .collect()
}

fn field_value(field: &FieldDescriptor, array: &ArrayRef, row: usize) -> Value {
    match array.data_type() {
        DataType::Map(..) => {
            let Kind::Message(entry) = field.kind() else {
                panic!("a map")
            };
            let entries = array.as_map().value(row);
            let value = |part: &FieldDescriptor, column: usize, at| {
                value_of(&part.kind(), entries.column(column), at)
            };
            let key = |at| -> MapKey {
                value(&entry.map_entry_key_field(), 0, at)
                    .into_map_key()
                    .unwrap()
            };
            let all = (0..entries.len())
                .map(|at| (key(at), value(&entry.map_entry_value_field(), 1, at)));
            let map: std::collections::HashMap<_, _> = all.collect();
            assert_eq!(map.len(), entries.len(), "each key is in a map once");
            Value::Map(map)
        }
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(row);
            Value::List(
                (0..values.len())
                    .map(|at| value_of(&field.kind(), &values, at))
                    .collect(),
            )
        }
        _ => value_of(&field.kind(), array, row),
    }
}

fn value_of(kind: &Kind, array: &ArrayRef, row: usize) -> Value {
    let message = |message: &MessageDescriptor, seconds: i64, nanos: i64| {
        let mut time = DynamicMessage::new(message.clone());
        time.set_field_by_name("seconds", Value::I64(seconds));
        time.set_field_by_name("nanos", Value::I32(nanos as i32));
        Value::Message(time)
    };
    match (kind, array.data_type()) {
        (Kind::Enum(names), DataType::Utf8 | DataType::Utf8View) => {
            let text = text(array, row);
            let number = names
                .get_value_by_name(&text)
                .map_or_else(|| text.parse().unwrap(), |value| value.number());
            Value::EnumNumber(number)
        }
        (Kind::Message(descriptor), DataType::Struct(_)) => {
            Value::Message(message_of(descriptor, &fields_of(array.as_struct()), row))
        }
        (Kind::Message(descriptor), DataType::Timestamp(..)) => {
            let time = array.as_primitive::<TimestampNanosecondType>().value(row);
            message(descriptor, time.div_euclid(NANOS), time.rem_euclid(NANOS))
        }
        (Kind::Message(descriptor), DataType::Duration(_)) => {
            let time = array.as_primitive::<DurationNanosecondType>().value(row);
            message(descriptor, time / NANOS, time % NANOS)
        }
        (Kind::Message(descriptor), DataType::Binary | DataType::BinaryView)
            if descriptor.full_name() != "google.protobuf.BytesValue" =>
        {
            Value::Message(
                DynamicMessage::decode(descriptor.clone(), bytes(array, row).as_slice()).unwrap(),
            )
        }
        (Kind::Message(descriptor), _) => {
            let mut wrapper = DynamicMessage::new(descriptor.clone());
            let field = descriptor.get_field(1).unwrap();
            wrapper.set_field(&field, value_of(&field.kind(), array, row));
            Value::Message(wrapper)
        }
        (_, DataType::Float64) => Value::F64(array.as_primitive::<Float64Type>().value(row)),
        (_, DataType::Float32) => Value::F32(array.as_primitive::<Float32Type>().value(row)),
        (_, DataType::Int32) => Value::I32(array.as_primitive::<Int32Type>().value(row)),
        (_, DataType::Int64) => Value::I64(array.as_primitive::<Int64Type>().value(row)),
        (_, DataType::UInt32) => Value::U32(array.as_primitive::<UInt32Type>().value(row)),
        (_, DataType::UInt64) => Value::U64(array.as_primitive::<UInt64Type>().value(row)),
        (_, DataType::Boolean) => Value::Bool(array.as_boolean().value(row)),
        (_, DataType::Utf8 | DataType::Utf8View) => Value::String(text(array, row)),
        (_, DataType::Binary | DataType::BinaryView) => Value::Bytes(bytes(array, row).into()),
        (kind, data_type) => panic!("{kind:?} as {data_type}"),
    }
}

fn text(array: &ArrayRef, row: usize) -> String {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        _ => array.as_string_view().value(row).to_owned(),
    }
}

fn bytes(array: &ArrayRef, row: usize) -> Vec<u8> {
    match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row).to_vec(),
        _ => array.as_binary_view().value(row).to_vec(),
    }
}

/// The message without fields that have their default, which are absent and present at the same
/// time.
fn normal(message: &DynamicMessage) -> DynamicMessage {
    let mut normal = DynamicMessage::new(message.descriptor());
    for (field, value) in message.fields() {
        let mut value = value.clone();
        normalize(&mut value);
        normal.set_field(&field, value);
    }
    normal
}

fn normalize(value: &mut Value) {
    match value {
        Value::Message(nested) => *nested = normal(nested),
        Value::List(list) => list.iter_mut().for_each(normalize),
        Value::Map(map) => map.values_mut().for_each(normalize),
        _ => {}
    }
}

/// Checks that messages are equal; a failure has the fields that differ as text, since the messages
/// have their descriptors.
#[track_caller]
fn compare(found: &[DynamicMessage], expected: &[DynamicMessage]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        for field in expected.descriptor().fields() {
            let text = |message: &DynamicMessage| {
                format!("{:.1000}", message.get_field(&field).to_string())
            };
            let differs = found.has_field(&field) != expected.has_field(&field)
                || found.get_field(&field) != expected.get_field(&field);
            assert!(
                !differs,
                "{}: found {}, expected {}",
                field.name(),
                text(found),
                text(expected)
            );
        }
    }
}

/// Checks that payloads decode to the messages that prost-reflect reads, and that they are encoded
/// as the same.
#[track_caller]
fn check(name: &str, payloads: &[Vec<u8>]) {
    let descriptor = descriptor(name);
    let read =
        |payload: &[u8]| normal(&DynamicMessage::decode(descriptor.clone(), payload).unwrap());
    let expected: Vec<_> = payloads.iter().map(|payload| read(payload)).collect();
    let slices: Vec<_> = payloads.iter().map(Vec::as_slice).collect();
    for views in [false, true] {
        let batch = decode(with_views(&schema(name), views).as_ref().clone(), &slices).unwrap();
        let batch_schema = batch.schema();
        let columns: Vec<_> = batch_schema
            .fields()
            .iter()
            .map(AsRef::as_ref)
            .zip(batch.columns())
            .collect();
        let found: Vec<_> = (0..batch.num_rows())
            .map(|row| normal(&message_of(&descriptor, &columns, row)))
            .collect();
        compare(&found, &expected);
        let mut frames = Vec::new();
        WriterBuilder::new()
            .build_encoder(batch.schema())
            .unwrap()
            .encode(&batch, &mut frames)
            .unwrap();
        let again = Records::from_frames(frames, Limits::default()).unwrap();
        compare(&again.iter().map(read).collect::<Vec<_>>(), &expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn messages_are_those_of_prost_reflect(
        all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..6),
        name in prop::sample::select(vec!["Shape", "Scalars", "Lists", "Legacy"]),
    ) {
        let message = |bytes: &Vec<u8>| Entropy(bytes).message(&descriptor(name), 0).encode_to_vec();
        check(name, &all.iter().map(message).collect::<Vec<_>>());
    }

    /// The concatenation of two messages is their merger: lists are joined, the last one of single
    /// values counts, messages are merged, and the last member of a oneof replaces the others.
    #[test]
    fn pieces_of_a_message_are_merged(
        one in prop::collection::vec(any::<u8>(), 0..300),
        other in prop::collection::vec(any::<u8>(), 0..300),
        name in prop::sample::select(vec!["Shape", "Lists", "Legacy"]),
    ) {
        let message = |bytes: &[u8]| Entropy(bytes).message(&descriptor(name), 0).encode_to_vec();
        check(name, &[[message(&one), message(&other)].concat()]);
    }

    /// Bytes that are no message are an error, or are skipped; they never panic.
    #[test]
    fn other_bytes_are_an_error_of_their_record(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        sound in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let sound = Entropy(&sound).message(&descriptor("Shape"), 0).encode_to_vec();
        let records = Records::from_payloads([sound.as_slice(), &bytes, &sound]).unwrap();
        let builder = ReaderBuilder::new(schema("Shape").into()).with_strict(true);
        let failed = builder.clone().build_batch_decoder().unwrap().decode(&records);
        let mut skipping = builder.with_on_error(OnError::Skip).build_batch_decoder().unwrap();
        let batch = skipping.decode(&records).unwrap();
        let skipped = skipping.take_skipped();
        prop_assert_eq!(batch.num_rows() + skipped.len(), 3);
        match failed {
            Ok(all) => prop_assert_eq!(all, batch),
            Err(error) => {
                prop_assert_eq!(error.position().record, 1);
                prop_assert_eq!(skipped.len(), 1);
                prop_assert_eq!(skipped[0].to_string(), error.to_string());
                prop_assert_eq!(skipping.record_of(1), 2);
            }
        }
    }
}

#[test]
fn packed_numbers_are_read_in_both_forms_and_in_any_number_of_pieces() {
    // Field 13, int32s: packed [1, 2], one 3, packed [-1].
    let packed = b"\x6a\x02\x01\x02\x68\x03\x6a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    let batch = decode(schema("Lists"), &[packed]).unwrap();
    let list = batch
        .column_by_name("int32s")
        .unwrap()
        .as_list::<i32>()
        .value(0);
    assert_eq!(list.as_primitive::<Int32Type>().values(), &[1, 2, 3, -1]);
}

#[test]
fn a_projection_decodes_only_its_columns_and_nested_fields() {
    let shape = schema("Shape");
    let (index, parts) = shape.column_with_name("parts").unwrap();
    // A schema whose struct has one of the fields of the message.
    let DataType::List(item) = parts.data_type() else {
        panic!()
    };
    let DataType::Struct(fields) = item.data_type() else {
        panic!()
    };
    let name = fields
        .iter()
        .filter(|field| field.name() == "name")
        .cloned()
        .collect();
    let list = DataType::new_list(DataType::Struct(name), true);
    let pruned = Schema::new_with_metadata(
        vec![parts.clone().with_data_type(list)],
        shape.metadata().clone(),
    );
    // {parts: [{name: "a"}, {}]}; then a record whose other field is no valid double.
    let payloads: [&[u8]; 2] = [b"\x6a\x03\x0a\x01a\x6a\x00", b"\x49\0\0\0\0\0\0\0\0"];
    let batch = decode(pruned, &payloads).unwrap();
    let rows = batch.column(0).as_list::<i32>();
    assert_eq!(
        rows.value(0)
            .as_struct()
            .column(0)
            .as_string::<i32>()
            .iter()
            .collect::<Vec<_>>(),
        [Some("a"), Some("")]
    );
    assert!(rows.value(1).is_empty());
    let mut projected = ReaderBuilder::new(shape.into())
        .with_projection(vec![index, 0, index])
        .build_batch_decoder()
        .unwrap();
    let batch = projected
        .decode(&Records::from_payloads(payloads).unwrap())
        .unwrap();
    assert_eq!((batch.num_columns(), batch.column(0).len()), (3, 2));
    assert_eq!(batch.column(0), batch.column(2));
    // Only the second record.
    let batch = projected.decode_where(
        &Records::from_payloads(payloads).unwrap(),
        &BooleanArray::from(vec![false, true]),
    );
    assert_eq!(batch.unwrap().num_rows(), 1);
}

#[test]
fn a_field_that_the_descriptor_does_not_define_is_an_error_or_counted() {
    // Point {x: 0, field 9: 1}, in Shape.points.
    let payload: &[u8] = b"\x2a\x0b\x09\0\0\0\0\0\0\0\0\x48\x01";
    let error = decode(schema("Shape"), &[payload]).unwrap_err();
    let message = "record 0 (byte 0): found field 9 in a message tfarrow.test.Point, whose descriptor does not define it";
    assert_eq!(error.to_string(), message);
    assert_eq!(
        error.remedies(),
        [Remedy::NewerDescriptor, Remedy::AllowLossy]
    );
    let mut lax = ReaderBuilder::new(schema("Shape").into())
        .build_batch_decoder()
        .unwrap();
    lax.decode(&Records::from_payloads([payload, payload]).unwrap())
        .unwrap();
    assert_eq!(lax.foreign_fields(), Some((9, 2)));
}

#[test]
fn values_that_do_not_fit_are_errors_with_the_path_of_the_field() {
    let text = |payload: &[u8]| decode(schema("Shape"), &[payload]).unwrap_err().to_string();
    // Shape.scalars.a_string = ff; Shape.time = {nanos: -1}.
    assert_eq!(
        text(b"\x12\x03\x72\x01\xff"),
        "record 0 (byte 0): field scalars.a_string: expected UTF-8 text, found other bytes"
    );
    assert_eq!(
        text(b"\x72\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        "record 0 (byte 0): field time: expected a time that 64 bits of nanoseconds hold, found 0 seconds and -1 \
         nanoseconds"
    );
    assert_eq!(
        text(b"\x12\x03\x72\x05a"),
        "record 0 (byte 0): not a message tfarrow.test.Scalars: a field extends past the end of its message"
    );
}

#[test]
fn limits_bound_the_elements_of_a_record() {
    // 100 empty points take three elements each.
    let points = [0x2a, 0].repeat(100);
    let with = |values| {
        let limits = Limits {
            values,
            ..Limits::default()
        };
        let decoder = ReaderBuilder::new(schema("Shape").into())
            .with_limits(limits)
            .build_batch_decoder();
        decoder
            .unwrap()
            .decode(&Records::from_payloads([points.as_slice()]).unwrap())
    };
    assert!(with(300).is_ok());
    let error = with(299).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Message {
                error: WireError::ManyValues,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        error.remedies(),
        [Remedy::RaiseLimit(tfarrow_codec::Limit::Values)]
    );
    let columns = MessageType::new(descriptor("Shape")).schema(&Limits {
        features: 20,
        ..Limits::default()
    });
    assert!(matches!(
        columns.unwrap_err().kind(),
        ErrorKind::ManyNames { .. }
    ));
}

/// An empty message of two bytes takes memory in each of its columns.
#[test]
fn the_messages_of_a_record_and_of_a_batch_have_a_limit() {
    // Shape.parts is a list of shapes, each with dozens of columns.
    let parts = |count| [0x6a, 0].repeat(count);
    let (small, large, half) = (parts(2), parts(4_000_000), parts(400_000));
    let records = Records::from_payloads([&small, &large, &small].map(Vec::as_slice)).unwrap();
    let error = decoder(schema("Shape")).decode(&records).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Message {
                error: WireError::ManyMessages,
                ..
            }
        ),
        "{error}"
    );
    let message =
        "record 1 (byte 20): the record has more messages times columns than the limit of 67108864";
    assert_eq!(
        (error.to_string().as_str(), error.category()),
        (message, Category::Limit)
    );
    assert!(error.remedies().is_empty());
    // No limit can be raised, so that the record is skipped like a corrupt one.
    let builder = ReaderBuilder::new(schema("Shape").into()).with_on_error(OnError::Skip);
    let mut skipping = builder.build_batch_decoder().unwrap();
    assert_eq!(skipping.decode(&records).unwrap().num_rows(), 2);
    let skipped: Vec<_> = skipping
        .take_skipped()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(skipped, [message]);
    // No record of this batch has too many.
    let records = Records::from_payloads([half.as_slice(); 20]).unwrap();
    let error = decoder(schema("Shape")).decode(&records).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::BatchLimit {
                limit: 67_108_864,
                records: 20,
                ..
            }
        ),
        "{error}"
    );
}

/// The descriptors of a message in the metadata of its schema are those of its file and of all
/// imports, however long their chain is.
#[test]
fn chains_of_imports_take_no_stack() {
    const FILES: usize = 15_000;
    let file = |index: usize| FileDescriptorProto {
        name: Some(index.to_string()),
        dependency: (index + 1 < FILES)
            .then(|| (index + 1).to_string())
            .into_iter()
            .collect(),
        ..Default::default()
    };
    let mut set = FileDescriptorSet {
        file: (0..FILES).map(file).collect(),
    };
    let field = FieldDescriptorProto {
        name: Some("x".to_owned()),
        number: Some(1),
        label: Some(Label::Optional.into()),
        r#type: Some(Type::Int32.into()),
        ..Default::default()
    };
    set.file[0].message_type.push(DescriptorProto {
        name: Some("M".to_owned()),
        field: vec![field],
        ..Default::default()
    });
    let message = MessageType::parse(&set.encode_to_vec(), "M").unwrap();
    let schema = message.schema(&Limits::default()).unwrap();
    assert_eq!(
        MessageType::of_schema(&schema)
            .unwrap()
            .unwrap()
            .schema(&Limits::default())
            .unwrap(),
        schema
    );
}

#[test]
fn a_batch_beyond_a_limit_is_divided() {
    // 100 empty points take three elements each, so that two records fit in a batch. One record
    // does not parse.
    let points = [0x2a, 0].repeat(100);
    let records = [&points[..], b"\x2a\x01", &points, &points, &points, &points];
    let mut rest = Records::from_payloads(records).unwrap();
    let limits = Limits {
        values: 600,
        ..Limits::default()
    };
    let builder = ReaderBuilder::new(schema("Shape").into())
        .with_limits(limits)
        .with_on_error(OnError::Skip);
    let mut decoder = builder.build_batch_decoder().unwrap();
    let (mut batches, mut numbers) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let (batch, first, others) = decoder.decode_first(rest, 100, 1 << 20).unwrap();
        batches.push((first.first(), batch.num_rows()));
        numbers
            .extend((0..batch.num_rows()).map(|row| first.first() + decoder.record_of(row) as u64));
        rest = others;
    }
    assert_eq!(
        (batches, numbers),
        (vec![(0, 2), (3, 1), (4, 2)], vec![0, 2, 3, 4, 5])
    );
    assert_eq!(
        decoder
            .take_skipped()
            .iter()
            .map(|error| error.position().record)
            .collect::<Vec<_>>(),
        [1]
    );
    let large = Records::from_payloads(
        [[&points[..], &points, &points].concat()]
            .iter()
            .map(Vec::as_slice),
    )
    .unwrap();
    assert!(decoder.decode_first(large, 100, 1 << 20).is_err());
}

#[test]
fn values_that_a_message_cannot_have_are_not_written() {
    let schema = schema("Shape");
    let one: ArrayRef = std::sync::Arc::new(arrow_array::Float64Array::from(vec![Some(1.0)]));
    let label: ArrayRef = std::sync::Arc::new(arrow_array::StringArray::from(vec![Some("a")]));
    let encode = |names: [&str; 2], arrays: Vec<ArrayRef>| {
        let fields: Vec<_> = names
            .iter()
            .map(|name| schema.field_with_name(name).unwrap().clone())
            .collect();
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        let batch = RecordBatch::try_new(schema.into(), arrays).unwrap();
        let mut out = Vec::new();
        let encoded = WriterBuilder::new()
            .build_encoder(batch.schema())
            .unwrap()
            .encode(&batch, &mut out);
        assert!(out.is_empty());
        encoded.unwrap_err()
    };
    let error = encode(["radius", "label"], vec![one, label]);
    let message =
        "row 0: field label: expected one value in a oneof, found values in radius and label";
    // Reading records in another way is no remedy for a row.
    assert_eq!(
        (error.to_string().as_str(), error.remedies()),
        (message, vec![])
    );
}

/// Readers of Parquet give the fields of an absent message any values.
#[test]
fn values_in_a_message_that_is_null_are_not_read() {
    let batch = decode(schema("Shape"), &[b""]).unwrap();
    let index = batch.schema().index_of("scalars").unwrap();
    let scalars = batch.column(index).as_struct();
    let column = |(field, array): (&Field, &ArrayRef)| match field.name().as_str() {
        "a_color" => Arc::new(StringArray::from(vec!["no color"])) as ArrayRef,
        _ => Arc::clone(array),
    };
    let arrays = fields_of(scalars).into_iter().map(column).collect();
    let mut columns = batch.columns().to_vec();
    columns[index] = Arc::new(StructArray::new(
        scalars.fields().clone(),
        arrays,
        scalars.nulls().cloned(),
    ));
    let batch = RecordBatch::try_new(batch.schema(), columns).unwrap();
    let mut frames = Vec::new();
    WriterBuilder::new()
        .build_encoder(batch.schema())
        .unwrap()
        .encode(&batch, &mut frames)
        .unwrap();
    assert!(
        Records::from_frames(frames, Limits::default())
            .unwrap()
            .iter()
            .eq([b""])
    );
}

/// The messages that protobuf's own library wrote, and the text of what it reads
/// (`testdata/message/generate.py`).
#[test]
fn messages_of_protobuf_are_read_as_it_reads_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/message");
    for (file, name, count) in [("shapes", "Shape", 3), ("legacy", "Legacy", 2)] {
        let stream = std::fs::read(folder.join(format!("{file}.tfrecord"))).unwrap();
        let records = Records::from_frames(stream, Limits::default()).unwrap();
        let payloads: Vec<_> = records.iter().map(<[u8]>::to_vec).collect();
        check(name, &payloads);
        let text = std::fs::read_to_string(folder.join(format!("{file}.txt"))).unwrap();
        let read = text.lines().skip(1).zip(&payloads).map(|(line, payload)| {
            let expected = DynamicMessage::parse_text_format(descriptor(name), line).unwrap();
            let decoded = DynamicMessage::decode(descriptor(name), payload.as_slice()).unwrap();
            compare(&[normal(&decoded)], &[normal(&expected)]);
        });
        assert_eq!(read.count(), count);
        // The bytes are the same as well, where a map has one entry.
        let batch = decode(
            schema(name),
            &payloads.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        )
        .unwrap();
        let mut frames = Vec::new();
        WriterBuilder::new()
            .build_encoder(batch.schema())
            .unwrap()
            .encode(&batch, &mut frames)
            .unwrap();
        let again = Records::from_frames(frames, Limits::default()).unwrap();
        assert_eq!(
            again.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(),
            payloads
        );
    }
}

/// A message type of a file with these messages.
fn type_of(messages: Vec<DescriptorProto>, syntax: &str) -> MessageType {
    let name = messages[0].name().to_owned();
    let file = FileDescriptorProto {
        name: Some("test.proto".to_owned()),
        syntax: Some(syntax.to_owned()),
        message_type: messages,
        ..Default::default()
    };
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_proto(file).unwrap();
    MessageType::new(pool.get_message_by_name(&name).unwrap())
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto {
        name: Some(name.to_owned()),
        field,
        ..Default::default()
    }
}

/// A field `name`, of a number or, with a type name, of a message.
fn field(name: &str, number: i32, label: Label, type_name: Option<&str>) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label.into()),
        r#type: Some(
            if type_name.is_some() {
                Type::Message
            } else {
                Type::Int32
            }
            .into(),
        ),
        type_name: type_name.map(str::to_owned),
        ..Default::default()
    }
}

/// The depth of the fields of a type, that of the field of the type itself included.
fn depth(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => {
            1 + fields
                .iter()
                .map(|field| depth(field.data_type()))
                .max()
                .unwrap_or(0)
        }
        DataType::List(item) | DataType::Map(item, _) => 1 + depth(item.data_type()),
        _ => 1,
    }
}

/// Arrow's reader accepts 61 levels of fields in the schema of a file.
#[test]
fn deep_messages_are_bytes_below_the_depth_that_readers_accept() {
    let unlimited = Limits {
        recursion: 1000,
        nesting: 1000,
        ..Limits::default()
    };
    for label in [Label::Optional, Label::Repeated] {
        let messages = (0..80).map(|at| {
            let next = format!(".M{}", at + 1);
            message(
                &format!("M{at}"),
                vec![
                    field("a", 1, label, Some(&next)),
                    field("b", 2, label, None),
                ],
            )
        });
        let last = message("M80", vec![field("a", 1, label, None)]);
        let chain = type_of(messages.chain([last]).collect(), "proto3");
        let itself = type_of(
            vec![message("M", vec![field("a", 1, label, Some(".M"))])],
            "proto3",
        );
        for message in [chain, itself] {
            let schema = message.schema(&unlimited).unwrap();
            let deepest = depth(schema.field(0).data_type());
            assert!((50..=56).contains(&deepest), "{deepest}");
            // Such a schema can be decoded to, and encoded from.
            let record = (0..100).fold(Vec::new(), |inner, _| proto_field(&inner));
            let batch = decode(schema.as_ref().clone(), &[&record]).unwrap();
            let mut frames = Vec::new();
            WriterBuilder::new()
                .build_encoder(schema)
                .unwrap()
                .encode(&batch, &mut frames)
                .unwrap();
            assert!(
                Records::from_frames(frames, Limits::default())
                    .unwrap()
                    .iter()
                    .eq([&record[..]])
            );
        }
    }
}

/// A message with this message in field 1.
fn proto_field(inner: &[u8]) -> Vec<u8> {
    tfarrow_testkit::proto::field(1, inner)
}

#[test]
fn a_long_chain_of_imports_is_in_the_metadata() {
    let mut pool = DescriptorPool::new();
    for at in 0..6_000 {
        // Each file imports the one before it, and every third one also the first.
        let imports = [at - 1, 0]
            .into_iter()
            .take(if at % 3 == 2 { 2 } else { 1 })
            .filter(|import| *import >= 0);
        let file = FileDescriptorProto {
            name: Some(format!("{at}.proto")),
            dependency: imports.map(|import| format!("{import}.proto")).collect(),
            message_type: vec![message(
                &format!("M{at}"),
                vec![field("a", 1, Label::Optional, None)],
            )],
            ..Default::default()
        };
        pool.add_file_descriptor_proto(file).unwrap();
    }
    let message = MessageType::new(pool.get_message_by_name("M5999").unwrap());
    let schema = message.schema(&Limits::default()).unwrap();
    let again = MessageType::of_schema(&schema).unwrap().unwrap();
    assert_eq!(again.name(), "M5999");
    let names = again
        .descriptor()
        .parent_pool()
        .files()
        .map(|file| file.name().to_owned());
    assert!(names.eq((0..6_000).map(|at| format!("{at}.proto"))));
}

/// A type with `count` fields that are `optional` in proto3, each of which is a member of a `oneof`
/// of its own.
fn optional_fields(count: i32) -> MessageType {
    let fields = (0..count).map(|at| FieldDescriptorProto {
        proto3_optional: Some(true),
        oneof_index: Some(at),
        ..field(
            &format!("f{at}"),
            if at < 18_999 { at + 1 } else { at + 1001 },
            Label::Optional,
            None,
        )
    });
    let mut optional = message("M", fields.collect());
    let oneof = |at| OneofDescriptorProto {
        name: Some(format!("_f{at}")),
        ..Default::default()
    };
    optional.oneof_decl = (0..count).map(oneof).collect();
    type_of(vec![optional], "proto3")
}

/// Comparing each field with all members of all oneofs took minutes without optimization.
#[test]
fn many_optional_fields_are_planned_in_linear_time() {
    let limits = Limits {
        features: 20_000,
        ..Limits::default()
    };
    let schema = optional_fields(20_000).schema(&limits).unwrap();
    let last = schema.project(&[18_999]).unwrap();
    // {f18999: 7}, whose number is 20,000.
    let batch = decode(last, &[b"\x80\xe2\x09\x07", b""]).unwrap();
    let values: Vec<_> = batch.column(0).as_primitive::<Int32Type>().iter().collect();
    assert_eq!(values, [Some(7), None]);
}

/// A field of another wire type than its definition is an unknown field, also if it has no column.
#[test]
fn a_member_of_a_oneof_counts_by_its_wire_type_whether_or_not_it_has_a_column() {
    let shape = schema("Shape");
    let project = |names: &[&str]| {
        let indices: Vec<_> = names
            .iter()
            .map(|name| shape.index_of(name).unwrap())
            .collect();
        shape.project(&indices).unwrap()
    };
    // {label: "a"}, then radius, which is a double: as a varint, and as a double.
    let records: [&[u8]; 2] = [b"\x5a\x01a\x48\x01", b"\x5a\x01a\x49\0\0\0\0\0\0\0\0"];
    for names in [&["label"][..], &["label", "radius"]] {
        let mut decoder = ReaderBuilder::new(project(names).into())
            .build_batch_decoder()
            .unwrap();
        let batch = decoder
            .decode(&Records::from_payloads(records).unwrap())
            .unwrap();
        let labels: Vec<_> = batch.column(0).as_string::<i32>().iter().collect();
        assert_eq!(labels, [Some("a"), None], "{names:?}");
        assert_eq!(decoder.foreign_fields(), Some((9, 1)), "{names:?}");
    }
}

#[test]
fn a_null_value_of_a_map_is_not_written() {
    let schema = schema("Shape")
        .project(&[schema("Shape").index_of("counts").unwrap()])
        .unwrap();
    // {counts: {"a": 1, "b": 2}}
    let batch = decode(
        schema,
        &[b"\x32\x05\x0a\x01a\x10\x01\x32\x05\x0a\x01b\x10\x02"],
    )
    .unwrap();
    let map = batch.column(0).as_map();
    let DataType::Map(entries, _) = map.data_type() else {
        panic!("a map")
    };
    let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let parts = StructArray::new(
        map.entries().fields().clone(),
        vec![Arc::clone(map.keys()), values],
        None,
    );
    let map = MapArray::new(
        Arc::clone(entries),
        map.offsets().clone(),
        parts,
        None,
        false,
    );
    let batch = RecordBatch::try_new(batch.schema(), vec![Arc::new(map)]).unwrap();
    let mut frames = Vec::new();
    let error = WriterBuilder::new()
        .build_encoder(batch.schema())
        .unwrap()
        .encode(&batch, &mut frames)
        .unwrap_err();
    let message = "row 0: field counts.value: expected keys and values of a map, found null";
    assert_eq!((error.to_string().as_str(), frames.len()), (message, 0));
}

/// The default of an enum is its first value, which is not 0 in all enums of proto2.
#[test]
fn a_map_entry_without_a_value_has_the_first_value_of_its_enum() {
    let entry = DescriptorProto {
        options: Some(MessageOptions {
            map_entry: Some(true),
            ..Default::default()
        }),
        ..message(
            "GradesEntry",
            vec![
                field("key", 1, Label::Optional, None),
                FieldDescriptorProto {
                    r#type: Some(Type::Enum.into()),
                    ..field("value", 2, Label::Optional, Some(".M.Grade"))
                },
            ],
        )
    };
    let value = |name: &str, number| EnumValueDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        ..Default::default()
    };
    let grade = EnumDescriptorProto {
        name: Some("Grade".to_owned()),
        value: vec![value("GOOD", 1), value("BAD", 2)],
        ..Default::default()
    };
    let mut grades = message(
        "M",
        vec![field("grades", 1, Label::Repeated, Some(".M.GradesEntry"))],
    );
    (grades.nested_type, grades.enum_type) = (vec![entry], vec![grade]);
    let message = type_of(vec![grades], "proto2");
    // {grades: {7: BAD, 8: the default}}
    let record: &[u8] = b"\x0a\x04\x08\x07\x10\x02\x0a\x02\x08\x08";
    let batch = decode(
        message.schema(&Limits::default()).unwrap().as_ref().clone(),
        &[record],
    )
    .unwrap();
    let values: Vec<_> = batch
        .column(0)
        .as_map()
        .values()
        .as_string::<i32>()
        .iter()
        .flatten()
        .collect();
    assert_eq!(values, ["BAD", "GOOD"]);
    let mut frames = Vec::new();
    WriterBuilder::new()
        .build_encoder(batch.schema())
        .unwrap()
        .encode(&batch, &mut frames)
        .unwrap();
    let again = Records::from_frames(frames, Limits::default()).unwrap();
    assert_eq!(
        again.iter().collect::<Vec<_>>(),
        [b"\x0a\x04\x08\x07\x10\x02\x0a\x04\x08\x08\x10\x01"]
    );
}

#[test]
fn times_have_the_time_zone_of_their_column() {
    let shape = schema("Shape");
    let time = shape.field_with_name("time").unwrap();
    for zone in ["UTC", "+01:00", "Europe/Berlin"] {
        let column = time
            .clone()
            .with_data_type(DataType::Timestamp(TimeUnit::Nanosecond, Some(zone.into())));
        let schema = Schema::new_with_metadata(vec![column], shape.metadata().clone());
        // {time: {seconds: 1}}
        let batch = decode(schema, &[b"\x72\x02\x08\x01"]).unwrap();
        assert_eq!(
            batch
                .column(0)
                .as_primitive::<TimestampNanosecondType>()
                .value(0),
            NANOS
        );
        assert_eq!(
            batch.column(0).data_type(),
            batch.schema().field(0).data_type()
        );
    }
}

#[test]
fn times_have_the_unit_of_their_column() {
    let schema = with_timestamp_unit(&schema("Shape"), TimeUnit::Microsecond);
    let time = schema.field_with_name("time").unwrap();
    assert_eq!(
        *time.data_type(),
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    );
    // {time: {seconds: 1, nanos: 5000}}, {time: {seconds: -1, nanos: 999999000}}, {time: {seconds:
    // 100000000000}}, {}
    let payloads: [&[u8]; 4] = [
        b"\x72\x05\x08\x01\x10\x88\x27",
        b"\x72\x11\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x98\x8c\xeb\xdc\x03",
        b"\x72\x07\x08\x80\xd0\xdb\xc3\xf4\x02",
        b"",
    ];
    let batch = decode(schema.as_ref().clone(), &payloads).unwrap();
    let times = batch
        .column_by_name("time")
        .unwrap()
        .as_primitive::<TimestampMicrosecondType>();
    let expected = [
        Some(1_000_005),
        Some(-1),
        Some(100_000_000_000_000_000),
        None,
    ];
    assert_eq!(times.iter().collect::<Vec<_>>(), expected);
    let mut frames = Vec::new();
    WriterBuilder::new()
        .build_encoder(batch.schema())
        .unwrap()
        .encode(&batch, &mut frames)
        .unwrap();
    assert_eq!(tfarrow_testkit::frame::read(&frames).unwrap(), payloads);
    // {time: {seconds: 1, nanos: 5001}}
    let error = decode(schema.as_ref().clone(), &[b"\x72\x05\x08\x01\x10\x89\x27"])
        .unwrap_err()
        .to_string();
    let expected = "record 0 (byte 0): field time: expected a time of whole microseconds";
    assert!(
        error.starts_with(expected) && error.ends_with("found 1 seconds and 5001 nanoseconds"),
        "{error}"
    );
}

#[test]
fn columns_that_a_message_does_not_have_are_refused() {
    let shape = schema("Shape");
    let refused = |names: [&str; 2]| {
        let name = shape.field_with_name("name").unwrap();
        let fields: Vec<_> = names
            .iter()
            .map(|new| name.clone().with_name(*new))
            .collect();
        let schema = Schema::new_with_metadata(fields, shape.metadata().clone());
        ReaderBuilder::new(schema.into())
            .build_batch_decoder()
            .unwrap_err()
            .to_string()
    };
    let message = "the message tfarrow.test.Shape has";
    assert_eq!(
        refused(["name", "nome"]),
        format!("column \"nome\": {message} no such field")
    );
    let twice = format!("column \"name\": {message} this field once, and it has two columns");
    assert_eq!(refused(["name", "name"]), twice);
}

#[test]
fn values_that_the_columns_show() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/message");
    let stream = std::fs::read(folder.join("shapes.tfrecord")).unwrap();
    let records = Records::from_frames(stream, Limits::default()).unwrap();
    let batch = decoder(schema("Shape")).decode(&records).unwrap();
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let lists = column("lists").as_struct();
    let colors = lists
        .column_by_name("colors")
        .unwrap()
        .as_list::<i32>()
        .value(0);
    // A number that has no name in its enum.
    let colors: Vec<_> = colors.as_string::<i32>().iter().flatten().collect();
    assert_eq!(colors, ["COLOR_UNSET", "GREEN", "BLUE", "99"]);
    assert!(lists.is_null(1) && column("scalars").is_null(1));
    // Null and the default of a wrapper are distinct.
    let wrapped = column("wrapped").as_primitive::<Int64Type>();
    assert_eq!(
        (wrapped.is_valid(0), wrapped.value(0), wrapped.is_null(1)),
        (true, 0, true)
    );
    // The second level of a type within itself is columns, the third is bytes.
    let parts = column("parts").as_list::<i32>().value(0);
    let deeper = parts
        .as_struct()
        .column_by_name("parts")
        .unwrap()
        .as_list::<i32>()
        .value(0);
    let part =
        DynamicMessage::decode(descriptor("Shape"), deeper.as_binary::<i32>().value(0)).unwrap();
    assert_eq!(
        part.get_field_by_name("name").unwrap().as_str(),
        Some("part of part")
    );
    let time = column("time").as_primitive::<TimestampNanosecondType>();
    assert_eq!(
        (time.value(0), time.value(2)),
        (981_173_106_789_000_001, -1)
    );
}

#[test]
fn names_of_fields_may_differ_only_in_case_or_underscores() {
    let field = |name: &str, number| FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(Type::Int32.into()),
        json_name: Some(name.to_owned()),
        ..Default::default()
    };
    let message = DescriptorProto {
        name: Some("M".to_owned()),
        field: vec![field("value", 1), field("Value", 2), field("va_lue", 3)],
        ..Default::default()
    };
    for syntax in ["proto2", "proto3"] {
        let file = FileDescriptorProto {
            name: Some("case.proto".to_owned()),
            syntax: Some(syntax.to_owned()),
            message_type: vec![message.clone()],
            ..Default::default()
        };
        let set = FileDescriptorSet { file: vec![file] }.encode_to_vec();
        let schema = MessageType::parse(&set, "M")
            .unwrap()
            .schema(&Limits::default())
            .unwrap();
        let names: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        assert_eq!(names, ["value", "Value", "va_lue"]);
        let payload = b"\x08\x05\x10\x06".as_slice();
        let batch = decode(schema.as_ref().clone(), &[payload]).unwrap();
        let mut frames = Vec::new();
        WriterBuilder::new()
            .build_encoder(batch.schema())
            .unwrap()
            .encode(&batch, &mut frames)
            .unwrap();
        assert_eq!(tfarrow_testkit::frame::read(&frames).unwrap(), [payload]);
        // The metadata has the names of the definition.
        let known = MessageType::of_schema(&schema).unwrap().unwrap();
        assert_eq!(known.metadata(), *schema.metadata());
        let stored = STANDARD.decode(&schema.metadata()[DESCRIPTORS]).unwrap();
        let stored = FileDescriptorSet::decode(stored.as_slice()).unwrap();
        let stored: Vec<_> = stored.file[0].message_type[0]
            .field
            .iter()
            .map(FieldDescriptorProto::name)
            .collect();
        assert_eq!(stored, names);
    }
}
