//! The file of an index: Parquet, so that any program can read it. `docs/index.md` describes it.
//!
//! ```text
//! row                 a block of records
//! record, records     the number of its first record, and how many it has
//! offset, bytes       where its first frame begins in the decompressed shard, and the bytes of all frames
//! lengths             the bytes of each payload
//! point               of a gzip or zlib file: an access point before the block
//! zones.x             of a feature x that is a scalar in all records: min, max, nulls, nans
//! metadata            tfarrow.index: the version of the format, the shard, the summary of its records, and its sorted features, as JSON
//! ```

use std::{
    io::{self, Write},
    sync::Arc,
};

use arrow_array::{
    ArrayRef, BinaryArray, Float32Array, Int64Array, RecordBatch, StructArray,
    builder::{Int64Builder, ListBuilder},
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use parquet::{
    arrow::{
        ArrowSchemaConverter,
        arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves},
    },
    basic::{Compression, Encoding, Type as PhysicalType},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
    schema::types::SchemaDescriptor,
};
use serde::{Deserialize, Serialize};
use tfarrow_codec::{Kind, SummaryState};
use tfarrow_columnar::checksums::{self, ChecksumWriter};
use tfarrow_dataset::internals::{AccessPoint, ShardIdentity};

use crate::{
    builder::{BuiltBlock, BuiltBlocks, FRAME_BYTES, IndexBuilder},
    sorted::SortedFeature,
    zone::Zone,
};

/// The version of the format. A program reads indexes of its own version only.
pub(crate) const VERSION: u32 = 1;
/// The key of the metadata that makes a Parquet file an index.
pub(crate) const KEY: &str = "tfarrow.index";
/// Rows of a row group, which readers verify and read as a whole.
const GROUP_BLOCKS: usize = 4096;
/// Rows of a row group that has access points, of some 10 kB each.
const GROUP_POINTS: usize = 256;

/// Names of columns.
pub(crate) const RECORD: &str = "record";
pub(crate) const RECORDS: &str = "records";
pub(crate) const OFFSET: &str = "offset";
pub(crate) const BYTES: &str = "bytes";
pub(crate) const LENGTHS: &str = "lengths";
pub(crate) const POINT: &str = "point";
/// Prefix of the names of columns that are followed by the name of a feature.
pub(crate) const ZONES: &str = "zones.";

/// The version of an index of any version.
#[derive(Deserialize)]
pub(crate) struct IndexVersion {
    pub(crate) version: u32,
}

/// What an index says about its shard as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct IndexHead {
    pub(crate) version: u32,
    /// The shard that the index was made of.
    pub(crate) shard: ShardIdentity,
    /// Number of records.
    pub(crate) records: u64,
    /// The summary of all records.
    pub(crate) summary: SummaryState,
    /// The features whose values do not decrease from record to record.
    #[serde(default)]
    pub(crate) sorted: Vec<SortedFeature>,
}

/// Writes the index of a shard, once all of its chunks were added. `points` are the access points of
/// a gzip or zlib file; without them it can be read only from its start to its end.
///
/// # Errors
/// I/O errors.
pub fn write_index<W: Write + Send>(
    builder: IndexBuilder,
    points: Vec<AccessPoint>,
    shard: ShardIdentity,
    output: W,
) -> io::Result<W> {
    let (summary, mut built) = builder.into_blocks(points);
    let head = IndexHead {
        version: VERSION,
        shard,
        records: summary.records(),
        summary: summary.state(),
        sorted: std::mem::take(&mut built.sorted),
    };
    write(&head, &built, output).map_err(|error| match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    })
}

/// Writes the text index that DALI and the package tfrecord read: a line for each record, with the
/// offset of its frame and the number of bytes of the frame.
///
/// # Errors
/// I/O errors.
pub fn write_text_index<W: Write>(builder: IndexBuilder, mut output: W) -> io::Result<W> {
    let (_, built) = builder.into_blocks(Vec::new());
    let mut lines = Vec::new();
    for block in &built.blocks {
        lines.clear();
        let mut offset = block.offset;
        for length in &block.lengths {
            let bytes = u64::from(*length) + FRAME_BYTES;
            writeln!(lines, "{offset} {bytes}")?;
            offset += bytes;
        }
        output.write_all(&lines)?;
    }
    Ok(output)
}

pub(crate) fn write<W: Write + Send>(
    head: &IndexHead,
    built: &BuiltBlocks,
    output: W,
) -> Result<W, ParquetError> {
    let schema = schema(built);
    let parquet = ArrowSchemaConverter::new().convert(&schema)?;
    let mut writer = SerializedFileWriter::new(
        ChecksumWriter::new(output),
        parquet.root_schema_ptr(),
        Arc::new(properties(head, &parquet)?),
    )?;
    writer.write_all(checksums::MARK)?;
    writer.flush()?;
    writer.inner_mut().begin()?;
    let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&schema));
    let rows = match built.points.is_empty() {
        true => GROUP_BLOCKS,
        false => GROUP_POINTS,
    };
    let mut points = built.points.chunks(rows);
    for (number, blocks) in built.blocks.chunks(rows).enumerate() {
        let points = points.next();
        let batch = batch(&schema, &built.features, blocks, points)?;
        let mut columns = factory.create_column_writers(number)?;
        let mut next = columns.iter_mut();
        for (field, array) in schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, array)? {
                if let Some(column) = next.next() {
                    column.write(&leaf)?;
                }
            }
        }
        let mut group = writer.next_row_group()?;
        for column in columns {
            column.close()?.append_to_row_group(&mut group)?;
        }
        group.close()?;
        writer.flush()?;
        writer.inner_mut().end_part();
    }
    let sums = writer.inner_mut().end_parts();
    writer.append_key_value_metadata(KeyValue::new(checksums::KEY.to_owned(), sums.clone()));
    writer.finish()?;
    writer.inner_mut().end(&sums)?;
    Ok(writer.inner_mut().take_inner()?)
}

/// How the columns are written.
fn properties(
    head: &IndexHead,
    columns: &SchemaDescriptor,
) -> Result<WriterProperties, ParquetError> {
    let head = serde_json::to_string(head).map_err(|error| ParquetError::External(error.into()))?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_created_by(format!(
            "{}{}",
            checksums::CREATED_BY,
            env!("CARGO_PKG_VERSION")
        ))
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), head)]));
    for column in columns.columns() {
        // Numbers of neighbours are alike, but for the bounds of features.
        let is_zone = column
            .path()
            .parts()
            .first()
            .is_some_and(|root| root.starts_with(ZONES));
        if !is_zone && column.physical_type() == PhysicalType::INT64 {
            properties = properties
                .set_column_encoding(column.path().clone(), Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}

fn int64(name: &str) -> Field {
    Field::new(name, DataType::Int64, false)
}

/// The columns of an index.
fn schema(built: &BuiltBlocks) -> SchemaRef {
    let lengths = DataType::List(Arc::new(int64("element")));
    let mut fields = vec![
        int64(RECORD),
        int64(RECORDS),
        int64(OFFSET),
        int64(BYTES),
        Field::new(LENGTHS, lengths, false),
    ];
    if !built.points.is_empty() {
        fields.push(Field::new(POINT, DataType::Struct(point_fields()), false));
    }
    for (name, kind) in &built.features {
        let zones = DataType::Struct(zone_fields(*kind));
        fields.push(Field::new(format!("{ZONES}{name}"), zones, false));
    }
    Arc::new(Schema::new(fields))
}

/// The fields of an access point: its place in the decompressed file, in bytes, and in the file, in
/// bits, and the 32 KiB before it, or nothing.
fn point_fields() -> Fields {
    let window = Field::new("window", DataType::Binary, false);
    vec![int64("offset"), int64("bits"), window].into()
}

/// The fields of the zones of a feature.
fn zone_fields(kind: Kind) -> Fields {
    let values = match kind {
        Kind::Bytes => DataType::Binary,
        Kind::Float => DataType::Float32,
        Kind::Int64 => DataType::Int64,
    };
    let mut fields = vec![
        Field::new("min", values.clone(), true),
        Field::new("max", values, true),
        int64("nulls"),
    ];
    if kind == Kind::Float {
        fields.push(int64("nans"));
    }
    fields.into()
}

/// The rows of some blocks.
fn batch(
    schema: &SchemaRef,
    features: &[(String, Kind)],
    blocks: &[BuiltBlock],
    points: Option<&[AccessPoint]>,
) -> Result<RecordBatch, ArrowError> {
    let mut records = Vec::with_capacity(blocks.len());
    let mut first = Vec::with_capacity(blocks.len());
    let mut offsets = Vec::with_capacity(blocks.len());
    let mut bytes = Vec::with_capacity(blocks.len());
    let element: FieldRef = Arc::new(int64("element"));
    let mut lengths = ListBuilder::new(Int64Builder::new()).with_field(element);
    for block in blocks {
        first.push(block.first as i64);
        records.push(block.lengths.len() as i64);
        offsets.push(block.offset as i64);
        bytes.push(block.bytes() as i64);
        for length in &block.lengths {
            lengths.values().append_value(i64::from(*length));
        }
        lengths.append(true);
    }
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(first)),
        Arc::new(Int64Array::from(records)),
        Arc::new(Int64Array::from(offsets)),
        Arc::new(Int64Array::from(bytes)),
        Arc::new(lengths.finish()),
    ];
    if let Some(points) = points {
        columns.push(Arc::new(point_array(points)?));
    }
    for (number, (_, kind)) in features.iter().enumerate() {
        columns.push(Arc::new(zone_array(*kind, number, blocks)?));
    }
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// The access points of blocks.
fn point_array(points: &[AccessPoint]) -> Result<StructArray, ArrowError> {
    let mut offsets = Vec::with_capacity(points.len());
    let mut bits = Vec::with_capacity(points.len());
    let mut windows = Vec::with_capacity(points.len());
    for point in points {
        offsets.push(point.offset as i64);
        bits.push(point.bits as i64);
        windows.push(point.window.as_slice());
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(offsets)),
        Arc::new(Int64Array::from(bits)),
        Arc::new(BinaryArray::from(windows)),
    ];
    StructArray::try_new(point_fields(), columns, None)
}

/// The zones of the feature `number` in each block.
fn zone_array(kind: Kind, number: usize, blocks: &[BuiltBlock]) -> Result<StructArray, ArrowError> {
    let mut nulls = Vec::with_capacity(blocks.len());
    let mut zones = Vec::with_capacity(blocks.len());
    for block in blocks {
        let zone = block.zones.get(number).unwrap_or(&Zone::Empty);
        nulls.push(block.lengths.len() as i64 - zone.values() as i64);
        zones.push(zone);
    }
    let [min, max]: [ArrayRef; 2] = match kind {
        Kind::Int64 => bounds(&zones, Zone::integers).map(|it| Arc::new(Int64Array::from(it)) as _),
        Kind::Float => bounds(&zones, Zone::floats).map(|it| Arc::new(Float32Array::from(it)) as _),
        Kind::Bytes => {
            bounds(&zones, Zone::bytes).map(|it| Arc::new(BinaryArray::from_iter(it)) as _)
        }
    };
    let mut columns: Vec<ArrayRef> = vec![min, max, Arc::new(Int64Array::from(nulls))];
    if kind == Kind::Float {
        let mut nans = Vec::with_capacity(zones.len());
        for zone in &zones {
            nans.push(match zone {
                Zone::Float { nans, .. } => *nans as i64,
                _ => 0,
            });
        }
        columns.push(Arc::new(Int64Array::from(nans)));
    }
    StructArray::try_new(zone_fields(kind), columns, None)
}

/// The bounds of each zone: the minima, and the maxima.
fn bounds<T>(zones: &[&Zone], of: impl Fn(&Zone) -> [Option<T>; 2]) -> [Vec<Option<T>>; 2] {
    let mut minima = Vec::with_capacity(zones.len());
    let mut maxima = Vec::with_capacity(zones.len());
    for zone in zones {
        let [min, max] = of(zone);
        minima.push(min);
        maxima.push(max);
    }
    [minima, maxima]
}
