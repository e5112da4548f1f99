//! `tfarrow head`: the first records as JSON lines. Only the records shown are read, so that a
//! large data set takes no longer.

use std::{collections::BTreeMap, io::Write, mem, sync::Arc};

use anyhow::{Context, Result};
use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray};
use arrow_schema::{Field, SchemaRef};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use tfarrow_codec::{
    Category, Layout, Limits, OnError, ReaderBuilder, RecordType, Records, Role, Summary,
    VerifyCrc,
    infer::WireMessage,
    schema::{FEATURE, role_of},
};
use tfarrow_columnar::{first_rows, write_json};
use tfarrow_dataset::{
    ReadOptions, Segment, Shard, ShardFormat, ShardReader, SharedReader,
    internals::{ProbablePayload, check_one_payload, read_heads, tfds_splits},
    resolve,
};
use tfarrow_index::IndexPlace;
use tfarrow_scan::stated_records;

use crate::{
    args::Head,
    error::SUCCESS,
    output::{self, Cell, Out, Style, WireJson},
    stderr,
};

/// Number of records of a chunk from which their type is inferred.
const SAMPLE: usize = 1000;

/// Prints the first records.
pub(crate) fn run(args: &Head) -> Result<u8> {
    let style = if args.full { Style::FULL } else { Style::SHORT };
    let record_type = args.record_type;
    let read = args.bounds.read(OnError::Fail);
    let mut shards = resolve(&args.sources)?;
    stderr::splits(&tfds_splits(&shards));
    // The first bytes of other objects in stores are not needed.
    read_heads(shards.get_mut(..1).unwrap_or_default())?;
    shards
        .iter()
        .try_for_each(|shard| args.message.check(shard))?;
    let message = args.message.of(&shards, record_type)?;
    let message = message
        .map(|message| message.schema(&read.limits))
        .transpose()?;
    let mut printer = Printer {
        out: output::stdout(),
        style,
        record_type,
        message,
        has_named: false,
        read,
        indexes: args.indexes.place(),
        before: args.first,
    };
    let mut left = args.records;
    if record_type != Some(RecordType::Raw) && printer.message.is_none() {
        check_one_payload(&shards)?;
    }
    for mut shard in shards {
        if left == 0 {
            break;
        }
        shard.spool_columnar()?;
        args.message.check(&shard)?;
        let printed = match shard.format {
            ShardFormat::TfRecord => printer.records(&shard, &mut left),
            ShardFormat::Parquet | ShardFormat::Arrow => printer.converted(&shard, &mut left),
            ShardFormat::Csv | ShardFormat::Json => printer.rows(&shard, &mut left),
        };
        // The records before an error are printed as well.
        printer.out.flush()?;
        printed?;
    }
    if left == args.records {
        output::nothing()?;
    }
    Ok(SUCCESS)
}

struct Printer {
    out: Out,
    style: Style,
    /// The record type of the command line.
    record_type: Option<RecordType>,
    /// The columns of the records, if they are messages of a type that is known.
    message: Option<SchemaRef>,
    /// Whether the probable kind of raw records, or a field of messages without a column, was
    /// reported.
    has_named: bool,
    read: ReadOptions,
    /// Where the indexes of files are.
    indexes: Option<IndexPlace>,
    /// Number of records before the first one that is printed, from the next shard on.
    before: u64,
}

impl Printer {
    /// Prints the first records of a TFRecord file, at most `left`.
    fn records(&mut self, shard: &Shard, left: &mut usize) -> Result<()> {
        let Some(reader) = self.open(shard)? else {
            return Ok(());
        };
        while *left > 0
            && let Some(taken) = reader.next(None, |taken| taken).transpose()?
        {
            let Segment::Records(records) = taken.segment else {
                continue;
            };
            let records = self.after(records);
            if records.is_empty() {
                continue;
            }
            let count = records.len().min(*left);
            *left -= count;
            self.chunk(records, count)
                .with_context(|| shard.path.display().to_string())?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// Opens a TFRecord file, as far as its index shows at the block of the first record. `None` if
    /// all of its records are before that.
    fn open(&mut self, shard: &Shard) -> Result<Option<SharedReader>> {
        let found = self.indexes.as_ref().filter(|_| self.before > 0);
        let index = match found.map(|place| place.find(shard)) {
            None | Some(Ok(None)) => None,
            Some(Ok(index)) => index,
            Some(Err(unusable)) => {
                stderr::unusable_indexes(&[unusable]);
                None
            }
        };
        if let Some(index) = index {
            if index.records() <= self.before {
                self.before -= index.records();
                return Ok(None);
            }
            let mut blocks = index.blocks()?;
            blocks.retain(|block| block.first + block.records as u64 > self.before);
            let skipped = blocks.first().map_or(0, |block| block.first);
            let points = index.points(&blocks)?;
            let is_wanted = Box::new(|_: &_| true);
            let opened = SharedReader::open_blocks(shard, &self.read, blocks, points, is_wanted)?;
            if let Some(reader) = opened {
                self.before -= skipped;
                return Ok(Some(reader));
            }
        }
        Ok(Some(ShardReader::open(shard, &self.read)?.into()))
    }

    /// The records among the next ones that are printed.
    fn after(&mut self, records: Records) -> Records {
        let before = self.before.min(records.len() as u64);
        self.before -= before;
        records.split_at(before as usize).1
    }

    /// Prints the first records of a Parquet or Arrow file that was converted from TFRecord, or the
    /// rows of another one.
    fn converted(&mut self, shard: &Shard, left: &mut usize) -> Result<()> {
        let limits = self.read.limits;
        let Some((stated, mut records)) = stated_records(shard, &limits)? else {
            return self.rows(shard, left);
        };
        let record_type = self.record_type.unwrap_or(stated);
        while *left > 0
            && let Some(records) = records.next().transpose()?
        {
            let records = self.after(records);
            let count = records.len().min(*left);
            *left -= count;
            let printed = match (self.record_type, record_type) {
                // Raw records may be Examples.
                (None, RecordType::Raw) => self.chunk(records, count),
                _ => self.print(records.split_at(count).0, record_type),
            };
            printed.with_context(|| shard.path.display().to_string())?;
        }
        Ok(())
    }

    /// Prints the first rows of a file of another format than TFRecord, at most `left`, without
    /// their null values.
    fn rows(&mut self, shard: &Shard, left: &mut usize) -> Result<()> {
        let rows = self.before.saturating_add(*left as u64);
        let mut batches = first_rows(shard, rows)?;
        while *left > 0
            && let Some(batch) = batches.next().transpose()?
        {
            let before = self.before.min(batch.num_rows() as u64);
            self.before -= before;
            let batch = batch.slice(before as usize, batch.num_rows() - before as usize);
            let batch = batch.slice(0, batch.num_rows().min(*left));
            *left -= batch.num_rows();
            self.objects(&batch)?;
        }
        Ok(())
    }

    /// Prints an object for each row, without null values.
    fn objects(&mut self, batch: &RecordBatch) -> Result<()> {
        let style = self.style.without_nulls();
        (0..batch.num_rows()).try_for_each(|row| self.line(&Row { batch, row, style }))
    }

    /// Prints messages, up to one that cannot be decoded.
    fn messages(&mut self, records: Records, schema: &SchemaRef) -> Result<()> {
        let decoder = ReaderBuilder::new(Arc::clone(schema)).with_limits(self.read.limits);
        let mut decoder = decoder.build_batch_decoder()?;
        match decoder.decode(&records) {
            Ok(batch) => {
                if let Some((field, _)) = decoder
                    .foreign_fields()
                    .filter(|_| !mem::replace(&mut self.has_named, true))
                {
                    let what = "extensions, or not defined by the descriptor";
                    stderr::print(&format!(
                        "the messages have fields without columns, such as field {field}: {what}"
                    ));
                }
                self.objects(&batch)
            }
            Err(_) if records.len() > 1 => {
                let half = records.len() / 2;
                let (first, second) = records.split_at(half);
                self.messages(first, schema)?;
                self.messages(second, schema)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = Vec::new();
        write_json(&mut line, value)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        Ok(())
    }

    /// Prints the first `count` of these records.
    fn chunk(&mut self, records: Records, count: usize) -> Result<()> {
        if let Some(schema) = self.message.clone() {
            return self.messages(records.split_at(count).0, &schema);
        }
        let record_type = match self.record_type {
            Some(record_type) => record_type,
            None => {
                let (sample, _) = records.clone().split_at(SAMPLE);
                let mut summary = Summary::with_limits(0, self.read.limits);
                // The records before a corrupt one suffice, and are shown.
                match summary.observe(&sample, VerifyCrc::Always) {
                    Err(error)
                        if error.category() != Category::Corrupt || summary.records() == 0 =>
                    {
                        return Err(error.into());
                    }
                    _ => summary.record_type(),
                }
            }
        };
        match (self.record_type, record_type) {
            (None, RecordType::Raw) => self.raw(&records, count),
            _ => self.print(records.split_at(count).0, record_type),
        }
    }

    /// Prints the first `count` records of an unknown type: their bytes, and the fields of those
    /// that are protobuf messages. Reports what they probably are.
    fn raw(&mut self, records: &Records, count: usize) -> Result<()> {
        if !self.has_named {
            self.has_named = true;
            let sample: Vec<_> = records.iter().take(SAMPLE).collect();
            if let Some(probable) =
                ProbablePayload::of_records(&sample).filter(|probable| !probable.is_text)
            {
                stderr::print(&format!(
                    "the records are no tf.Examples, and probably {}",
                    probable.name
                ));
            }
        }
        let (shown, _) = records.clone().split_at(count);
        let batch = decode(&shown, RecordType::Raw, self.read.limits)?;
        for (row, record) in shown.iter().enumerate() {
            let record_json = Cell::new(batch.column(0).as_ref(), row, self.style);
            let message = WireMessage::parse(record);
            let fields = message.as_ref().map(|message| WireJson {
                message,
                style: self.style,
            });
            self.line(&RawRecord {
                record: record_json,
                fields,
            })?;
        }
        Ok(())
    }

    /// Prints records: together where they have one schema, else by halves. A single record that
    /// cannot be decoded is the error.
    fn print(&mut self, records: Records, record_type: RecordType) -> Result<()> {
        match decode(&records, record_type, self.read.limits) {
            Ok(batch) => self.batch(&batch, record_type),
            Err(_) if records.len() > 1 => {
                let half = records.len() / 2;
                let (first, second) = records.split_at(half);
                self.print(first, record_type)?;
                self.print(second, record_type)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn batch(&mut self, batch: &RecordBatch, record_type: RecordType) -> Result<()> {
        let schema = batch.schema();
        let columns: Vec<_> = schema
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, array)| Column::new(field, array))
            .collect();
        let style = self.style;
        (0..batch.num_rows()).try_for_each(|row| {
            self.line(&Record {
                columns: &columns,
                row,
                record_type,
                style,
            })
        })
    }
}

fn decode(
    records: &Records,
    record_type: RecordType,
    limits: Limits,
) -> Result<RecordBatch, tfarrow_codec::Error> {
    let mut summary = Summary::with_limits(0, limits).with_record_type(Some(record_type));
    if record_type != RecordType::Raw {
        summary.observe(records, VerifyCrc::Always)?;
        if let Some((place, error)) = summary.first_unparsable() {
            return Err(records.parse_error(
                error,
                (place.record - records.first()) as usize,
                record_type,
                &limits,
            ));
        }
    }
    let schema = summary.schema(Layout::List, Some(record_type))?;
    ReaderBuilder::new(schema)
        .with_limits(limits)
        .build_batch_decoder()?
        .decode(records)
}

struct Column<'a> {
    /// The feature's name, which may differ from the column's.
    name: &'a str,
    role: Option<Role>,
    array: &'a ArrayRef,
    /// The columns of the examples of a list; empty for other columns.
    of_examples: Vec<Self>,
}

impl<'a> Column<'a> {
    fn new(field: &'a Field, array: &'a ArrayRef) -> Self {
        let role = role_of(field);
        let examples = array
            .as_list_opt::<i32>()
            .filter(|_| role == Some(Role::Examples));
        let examples = examples.and_then(|lists| lists.values().as_struct_opt());
        let of_examples = examples.map_or_else(Vec::new, |examples| {
            examples
                .fields()
                .iter()
                .zip(examples.columns())
                .map(|(field, array)| Self::new(field, array))
                .collect()
        });
        Self {
            name: field.metadata().get(FEATURE).unwrap_or(field.name()),
            role,
            array,
            of_examples,
        }
    }
}

/// One record of an unknown type that can be serialized.
#[derive(Serialize)]
struct RawRecord<'a> {
    /// Its bytes.
    record: Cell<'a>,
    /// Its fields, if it is a protobuf message.
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<WireJson<'a>>,
}

/// One row of a file of another format than TFRecord, or one message, that can be serialized.
struct Row<'a> {
    batch: &'a RecordBatch,
    row: usize,
    style: Style,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (field, array) in self
            .batch
            .schema_ref()
            .fields()
            .iter()
            .zip(self.batch.columns())
        {
            let cell = Cell::new(array.as_ref(), self.row, self.style);
            if !cell.is_null() {
                map.serialize_entry(field.name(), &cell)?;
            }
        }
        map.end()
    }
}

/// One record that can be serialized.
struct Record<'a> {
    columns: &'a [Column<'a>],
    row: usize,
    record_type: RecordType,
    style: Style,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.record_type {
            RecordType::Example => self.features(Role::Feature).serialize(serializer),
            RecordType::Raw | RecordType::Message => {
                self.features(Role::Record).serialize(serializer)
            }
            RecordType::ExampleList => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("context", &self.features(Role::Context))?;
                map.serialize_entry("examples", &self.examples())?;
                map.end()
            }
            RecordType::SequenceExample => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("context", &self.features(Role::Context))?;
                map.serialize_entry("feature_lists", &self.features(Role::Sequence))?;
                map.end()
            }
        }
    }
}

impl<'a> Record<'a> {
    /// The examples of the record.
    fn examples(&self) -> Vec<Record<'_>> {
        let Some(column) = self
            .columns
            .iter()
            .find(|column| column.role == Some(Role::Examples))
        else {
            return Vec::new();
        };
        let offsets = column.array.as_list::<i32>().value_offsets();
        let (Some(from), Some(to)) = (offsets.get(self.row), offsets.get(self.row + 1)) else {
            return Vec::new();
        };
        (*from..*to)
            .map(|row| Record {
                columns: &column.of_examples,
                row: row as usize,
                record_type: RecordType::Example,
                style: self.style,
            })
            .collect()
    }

    /// The features of the record in this role, by name.
    fn features(&self, role: Role) -> BTreeMap<&'a str, Feature<'a>> {
        let mut features = BTreeMap::new();
        for column in self.columns {
            if column.role == Some(role) && !column.array.is_null(self.row) {
                let array = column.array.as_ref();
                let row = self.row;
                let style = self.style;
                let feature = match role {
                    Role::Sequence => Feature::Steps(array.as_list::<i32>().value(row), style),
                    _ => Feature::Values(Cell::new(array, row, style)),
                };
                features.insert(column.name, feature);
            }
            let unset =
                column.role == Some(Role::Unset) && matches!(role, Role::Feature | Role::Context);
            if unset && !column.array.is_null(self.row) {
                let names = column.array.as_list::<i32>();
                let offsets = names.value_offsets();
                let (Some(from), Some(to)) = (offsets.get(self.row), offsets.get(self.row + 1))
                else {
                    continue;
                };
                let names = names.values().as_string::<i32>();
                features.extend((*from..*to).map(|at| (names.value(at as usize), Feature::Unset)));
            }
        }
        features
    }
}

/// One feature that can be serialized.
enum Feature<'a> {
    Values(Cell<'a>),
    Steps(ArrayRef, Style),
    Unset,
}

impl Serialize for Feature<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Values(cell) => cell.serialize(serializer),
            Self::Steps(steps, style) => {
                let mut list = serializer.serialize_seq(Some(steps.len()))?;
                for row in 0..steps.len() {
                    if steps.is_null(row) {
                        list.serialize_element(&Feature::Unset)?;
                    } else {
                        list.serialize_element(&Cell::new(steps.as_ref(), row, *style))?;
                    }
                }
                list.end()
            }
            Self::Unset => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("unset", &true)?;
                map.end()
            }
        }
    }
}
