//! Conversions of Parquet to Parquet and Arrow: the types, annotations and metadata are those of
//! the source.

use std::fs::File;

use arrow_array::{
    Array, Date64Array, StructArray, Time32SecondArray, TimestampSecondArray,
    builder::{Int64Builder, MapBuilder, StringBuilder},
    cast::AsArray,
    types::{Date32Type, Time32MillisecondType, TimestampMillisecondType},
};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::{
    arrow::arrow_reader::ParquetRecordBatchReaderBuilder,
    basic::{LogicalType, TimeUnit},
    data_type::{
        ByteArray, ByteArrayType, DataType as ParquetDataType, FixedLenByteArray,
        FixedLenByteArrayType,
    },
    file::{
        metadata::{KeyValue, ParquetMetaData},
        properties::WriterProperties,
        reader::{FileReader as _, SerializedFileReader},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{parser::parse_message_type, types::TypePtr},
};

use super::*;

const MESSAGE: &str = "
    message m {
        REQUIRED FIXED_LEN_BYTE_ARRAY (16) id (UUID);
        OPTIONAL BINARY doc (JSON);
        OPTIONAL BINARY shape (GEOMETRY);
        OPTIONAL GROUP v (VARIANT) { REQUIRED BINARY metadata; REQUIRED BINARY value; }
        OPTIONAL GROUP names (LIST) { REPEATED GROUP list { OPTIONAL BINARY element (STRING); } }
        OPTIONAL BINARY data;
    }";

fn write<T: ParquetDataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    value: T::T,
    levels: (Option<i16>, bool),
) {
    let mut column = group.next_column().unwrap().unwrap();
    let (definition, repetition) = (levels.0.map(|level| vec![level]), levels.1.then(|| vec![0]));
    column
        .typed::<T>()
        .write_batch(&[value], definition.as_deref(), repetition.as_deref())
        .unwrap();
    column.close().unwrap();
}

/// Writes a Parquet file of one row, without the schema of Arrow.
fn source(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.write(name, b"");
    let keys = [
        ("geo", "{\"version\": \"1.1.0\"}"),
        ("huggingface", "{\"info\": {}}"),
    ];
    let keys = keys
        .map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()))
        .to_vec();
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(keys))
        .build();
    let root = Arc::new(parse_message_type(MESSAGE).unwrap());
    let mut writer =
        SerializedFileWriter::new(File::create(&path).unwrap(), root, Arc::new(properties))
            .unwrap();
    let mut group = writer.next_row_group().unwrap();
    let bytes = |text: &str| ByteArray::from(text);
    write::<FixedLenByteArrayType>(
        &mut group,
        FixedLenByteArray::from(vec![7; 16]),
        (None, false),
    );
    for (text, levels) in [
        ("{}", (Some(1), false)),
        ("shape", (Some(1), false)),
        ("metadata", (Some(1), false)),
        ("value", (Some(1), false)),
        ("name", (Some(3), true)),
        ("data", (Some(1), false)),
    ] {
        write::<ByteArrayType>(&mut group, bytes(text), levels);
    }
    group.close().unwrap();
    writer.close().unwrap();
    path
}

fn metadata(path: &Path) -> ParquetMetaData {
    SerializedFileReader::new(File::open(path).unwrap())
        .unwrap()
        .metadata()
        .clone()
}

fn types(path: &Path) -> Vec<TypePtr> {
    metadata(path)
        .file_metadata()
        .schema()
        .get_fields()
        .to_vec()
}

fn key_value(path: &Path, key: &str) -> Option<String> {
    let keys = metadata(path)
        .file_metadata()
        .key_value_metadata()
        .cloned()
        .unwrap_or_default();
    keys.into_iter().find(|found| found.key == key)?.value
}

fn rows(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.build().unwrap().next().unwrap().unwrap()
}

fn has_view(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::List(item) => has_view(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_view(field.data_type())),
        _ => false,
    }
}

fn assert_no_views(schema: &SchemaRef) {
    assert!(
        schema
            .fields()
            .iter()
            .all(|field| !has_view(field.data_type())),
        "{schema:?}"
    );
}

#[test]
fn parquet_of_parquet_has_its_types_annotations_and_footer() {
    let folder = Folder::new();
    let path = source(&folder, "a/a.parquet");
    source(&folder, "a/b.parquet");
    let to_parquet = options(Target::Parquet, 1);
    folder.convert(&path, "same.parquet", &to_parquet).unwrap();
    folder
        .convert(&folder.path("a"), "merged.parquet", &to_parquet)
        .unwrap();
    folder
        .convert(
            &path,
            "cut/",
            &ConvertOptions {
                reshard: Some(Reshard::Shards(1)),
                ..to_parquet.clone()
            },
        )
        .unwrap();
    let cut = fs::read_dir(folder.path("cut"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for copy in [
        folder.path("same.parquet"),
        folder.path("merged.parquet"),
        cut,
    ] {
        assert_eq!(types(&copy), types(&path), "{copy:?}");
        assert_eq!(
            key_value(&copy, "geo").as_deref(),
            Some("{\"version\": \"1.1.0\"}"),
            "{copy:?}"
        );
        assert_eq!(
            key_value(&copy, "huggingface").as_deref(),
            Some("{\"info\": {}}"),
            "{copy:?}"
        );
        let copied = rows(&copy);
        assert_no_views(&copied.schema());
        assert_eq!(
            copied.slice(0, 1).columns(),
            rows(&path).columns(),
            "{copy:?}"
        );
    }
    let shape = metadata(&folder.path("same.parquet"))
        .row_group(0)
        .column(2)
        .statistics()
        .cloned();
    assert!(
        shape.is_none_or(|shape| shape.min_bytes_opt().is_none()),
        "shapes have no order"
    );
}

#[test]
fn selected_columns_keep_their_types() {
    let folder = Folder::new();
    let path = source(&folder, "a.parquet");
    let columns = ["v", "id"].map(str::to_owned).to_vec();
    let selected = ConvertOptions {
        columns,
        ..options(Target::Parquet, 1)
    };
    folder.convert(&path, "b.parquet", &selected).unwrap();
    let (source, copy) = (types(&path), types(&folder.path("b.parquet")));
    assert_eq!(copy, [Arc::clone(&source[3]), Arc::clone(&source[0])]);
}

#[test]
fn arrow_of_parquet_has_its_types_and_extension_types() {
    let folder = Folder::new();
    let path = source(&folder, "a.parquet");
    folder
        .convert(&path, "a.arrow", &options(Target::Arrow, 1))
        .unwrap();
    let mut reader =
        FileReader::try_new(File::open(folder.path("a.arrow")).unwrap(), None).unwrap();
    let (schema, batch) = (reader.schema(), reader.next().unwrap().unwrap());
    assert_no_views(&schema);
    assert_eq!(batch.columns(), rows(&path).columns());
    let extensions: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| field.extension_type_name())
        .collect();
    let expected = [
        "arrow.uuid",
        "arrow.json",
        "geoarrow.wkb",
        "arrow.parquet.variant",
    ]
    .map(Some);
    assert_eq!(extensions, [&expected[..], &[None, None]].concat());
    assert_eq!(
        schema.field(2).extension_type_metadata(),
        Some("{\"crs\":\"OGC:CRS84\"}")
    );
    assert_eq!(
        schema.metadata().get("huggingface").map(String::as_str),
        Some("{\"info\": {}}")
    );
}

/// Writes an Arrow file of one batch.
fn write_arrow(path: &Path, columns: &[(&str, ArrayRef)]) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns
            .iter()
            .map(|(name, array)| (*name, Arc::clone(array), true)),
    );
    let batch = batch.unwrap();
    let mut writer = FileWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

#[test]
fn times_in_seconds_and_dates_in_milliseconds_get_types_of_parquet() {
    let folder = Folder::new();
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(1), None]));
    let day: ArrayRef = Arc::new(Date64Array::from(vec![86_400_000, 0]));
    let time: ArrayRef = Arc::new(Time32SecondArray::from(vec![5, 6]));
    write_arrow(
        &folder.path("a.arrow"),
        &[("seconds", seconds), ("day", day), ("time", time)],
    );
    folder
        .convert(
            &folder.path("a.arrow"),
            "a.parquet",
            &options(Target::Parquet, 1),
        )
        .unwrap();
    let logical = |column: &TypePtr| column.get_basic_info().logical_type_ref().cloned();
    let expected = [
        LogicalType::timestamp(false, TimeUnit::MILLIS),
        LogicalType::Date,
        LogicalType::time(false, TimeUnit::MILLIS),
    ];
    assert_eq!(
        types(&folder.path("a.parquet"))
            .iter()
            .map(logical)
            .collect::<Vec<_>>(),
        expected.map(Some)
    );
    let read = rows(&folder.path("a.parquet"));
    assert_eq!(
        read.column(0).as_primitive::<TimestampMillisecondType>(),
        &[Some(1_000), None].into_iter().collect()
    );
    assert_eq!(
        read.column(1).as_primitive::<Date32Type>().values(),
        &[1, 0]
    );
    assert_eq!(
        read.column(2)
            .as_primitive::<Time32MillisecondType>()
            .values(),
        &[5_000, 6_000]
    );
    let noon: ArrayRef = Arc::new(Date64Array::from(vec![43_200_000]));
    write_arrow(&folder.path("b.arrow"), &[("day", noon)]);
    let error = folder
        .convert(
            &folder.path("b.arrow"),
            "b.parquet",
            &options(Target::Parquet, 1),
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("column \"day\": a value of the type Date64 is none of Date32"),
        "{error}"
    );
}

#[test]
fn maps_and_lists_of_rows_have_the_names_of_the_specification() {
    let folder = Folder::new();
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    map.append(true).unwrap();
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some([
        Some(1),
    ])]));
    write_arrow(
        &folder.path("a.arrow"),
        &[("map", Arc::new(map.finish())), ("list", list)],
    );
    folder
        .convert(
            &folder.path("a.arrow"),
            "a.parquet",
            &options(Target::Parquet, 1),
        )
        .unwrap();
    let metadata = metadata(&folder.path("a.parquet"));
    let columns = metadata
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.path().string());
    assert_eq!(
        columns.collect::<Vec<_>>(),
        [
            "map.key_value.key",
            "map.key_value.value",
            "list.list.element"
        ]
    );
}

#[test]
fn a_type_that_parquet_does_not_have_is_an_error_with_its_column() {
    let folder = Folder::new();
    let empty: ArrayRef = Arc::new(StructArray::new_empty_fields(1, None));
    let outer = StructArray::from(vec![(
        Arc::new(Field::new("inner", empty.data_type().clone(), true)),
        empty,
    )]);
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    write_arrow(
        &folder.path("a.arrow"),
        &[("id", id), ("outer", Arc::new(outer))],
    );
    let to_parquet = options(Target::Parquet, 1);
    let error = folder
        .convert(&folder.path("a.arrow"), "a.parquet", &to_parquet)
        .unwrap_err();
    assert!(
        matches!(&error, Error::NoParquetType { column, .. } if column == "outer.inner"),
        "{error}"
    );
    let without = ConvertOptions {
        exclude: vec!["outer".to_owned()],
        ..to_parquet
    };
    folder
        .convert(&folder.path("a.arrow"), "a.parquet", &without)
        .unwrap();
}

#[test]
fn the_first_message_of_an_arrow_file_is_at_byte_8() {
    let folder = Folder::new();
    let source = folder.write("a.tfrecord", &frames(0, 3));
    folder
        .convert(&source, "a.arrow", &options(Target::Arrow, 1))
        .unwrap();
    let bytes = fs::read(folder.path("a.arrow")).unwrap();
    let mut stream = StreamReader::try_new(&bytes[8..], None).unwrap();
    assert_eq!(stream.next().unwrap().unwrap().num_rows(), 3);
}
