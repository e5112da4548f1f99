//! Decoding complete records to one batch. All batches of the codec are made here.
//!
//! ```text
//! Records ─▶ rows   check the CRC, walk the wire ─▶ tape
//!                   error: fail, or skip the row
//!         ─▶ columns   build the array of all rows from the tape
//!                      error: fail, or skip the row and build the array again
//!         ─▶ RecordBatch, without the skipped rows
//! ```
//!
//! Records with messages inside are not walked to the tape: their arrays are built all together,
//! those of messages of any type from the wire (`column/message/`), those of an
//! `ExampleListWithContext` from its Examples (`example_list.rs`).
//!
//! *Rows* are the records that a filter keeps; without a filter, all of them. A *lane* is the set
//! of slots of one feature on the tape: columns that read the same feature share a lane.

mod example_list;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    mem,
    sync::Arc,
};

use arrow_array::{
    Array, ArrayRef, BooleanArray, ListArray, RecordBatch, RecordBatchOptions, UInt32Array,
    cast::AsArray, new_empty_array,
};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use arrow_select::{filter::filter_record_batch, take::take};

use self::example_list::ExampleListDecoder;
use super::column::{self, ColumnError, message::MessageDecoder};
use crate::{
    Error, ErrorKind, Limits, OnError, RecordType, Records, Result, VerifyCrc, WireError,
    example::tape::Tape,
    message::MessageType,
    schema::{self, Column, Role, Shape},
};

/// The options of decoding, which a [`DecoderBuilder`](crate::DecoderBuilder) sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecoderOptions {
    /// The indices of the wanted columns of the schema, in the order of the batches; `None` for all
    /// columns.
    pub(crate) projection: Option<Vec<usize>>,
    /// The number of values to decode of the lists of a column, by the index of the column; all
    /// values of other columns.
    pub(crate) first_values: HashMap<usize, usize>,
    /// When the CRC of a payload is checked.
    pub(crate) verify_crc: VerifyCrc,
    /// Whether a field that the record type does not define is an error.
    pub(crate) strict: bool,
    /// The treatment of records that are corrupt or do not fit the schema.
    pub(crate) on_error: OnError,
    /// Limits for records, and for names of features without a column.
    pub(crate) limits: Limits,
}

/// Decodes [`Records`] to batches, each by one pass over the wire bytes.
///
/// Use one decoder for each thread, and reuse it: it learns the order of keys from the records that
/// it decodes. Build it with
/// [`DecoderBuilder::build_batch_decoder`](crate::DecoderBuilder::build_batch_decoder).
///
/// ```
/// use arrow_array::{cast::AsArray, types::Int64Type};
/// # use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use tfarrow_codec::{DecoderBuilder, Limits, VerifyCrc, frame};
/// # use tfarrow_codec::EncoderBuilder;
/// # fn main() -> tfarrow_codec::Result<()> {
/// # let column = std::sync::Arc::new(Int64Array::from_iter_values(0..1000)) as ArrayRef;
/// # let batch = RecordBatch::try_from_iter([("x", column)])?;
/// # let mut stream = Vec::new();
/// # EncoderBuilder::new().build(batch.schema())?.encode(&batch, &mut stream)?;
/// # let schema = batch.schema();
/// // A stream of 1,000 records, in which the feature `x` counts from 0.
/// let mut decoder = DecoderBuilder::new(schema).with_verify_crc(VerifyCrc::Always).build_batch_decoder()?;
/// let mut sum = 0;
/// for records in frame::records(&stream, Limits::default()) {
///     let batch = decoder.decode(&records?)?;
///     sum += batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>();
/// }
/// assert_eq!(sum, 499_500);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct BatchDecoder {
    record_type: RecordType,
    /// The columns of the batches.
    columns: Arc<[BatchColumn]>,
    /// The decoder of records with messages inside; `None` for Examples and raw records.
    nested: Option<NestedDecoder>,
    /// The lane of each column on the tape. Columns of the same feature have the same lane.
    lanes: Vec<usize>,
    /// For each column of a feature with a column for each of its kinds: the kinds that have a
    /// column. Indexed by [`Kind`](crate::Kind).
    split: Vec<Option<[bool; 3]>>,
    /// The number of values to decode of the lists of each column; `None` for all values.
    first_values: Vec<Option<usize>>,
    /// The schema of the batches.
    schema: SchemaRef,
    tape: Tape,
    verify_crc: VerifyCrc,
    strict: bool,
    /// Whether a column needs the walk over the wire. Complete records, numbers and offsets do not.
    walks: bool,
    on_error: OnError,
    /// The errors of the records skipped since [`take_skipped`](Self::take_skipped) was called.
    skipped: Vec<Error>,
    /// The rows of the current batch that are skipped.
    bad: BTreeSet<usize>,
    /// The index of the record of each row of the last batch; `None` if every record has a row.
    rows: Option<UInt32Array>,
}

/// A column of a batch.
#[derive(Clone, Debug)]
enum BatchColumn {
    /// A feature, or a column made of the record as a whole.
    Of(Column),
    /// The column with this index among those that the [`NestedDecoder`] makes.
    Nested(usize),
}

/// The decoder of records with messages inside.
#[derive(Debug)]
enum NestedDecoder {
    /// Messages of any type, by their descriptor.
    Message(Box<MessageDecoder>),
    /// Examples in a list.
    ExampleList(Box<ExampleListDecoder>),
}

impl NestedDecoder {
    /// Creates a decoder of messages to the columns of `schema` at `indices`.
    fn of_messages(
        schema: &SchemaRef,
        indices: &[usize],
        options: &DecoderOptions,
    ) -> Result<Self> {
        let fields = indices
            .iter()
            .filter_map(|index| schema.fields().get(*index).cloned())
            .collect();
        let plan = MessageType::plan_of_schema(schema, &fields)?.ok_or_else(|| {
            let reason = "the schema of messages has no message type in its metadata".to_owned();
            Error::usage(ErrorKind::Descriptors(reason))
        })?;
        Ok(Self::Message(Box::new(MessageDecoder::new(
            plan,
            options.limits,
            options.strict,
        ))))
    }

    /// Creates a decoder of lists of examples to the columns of `schema` at `indices`.
    fn of_lists(schema: &SchemaRef, indices: &[usize], options: &DecoderOptions) -> Result<Self> {
        // Columns about records as a whole are no part of a context.
        let is_part = |index: &usize| {
            !schema
                .fields()
                .get(*index)
                .is_some_and(|field| is_of_record(field))
        };
        let all: Vec<_> = (0..schema.fields().len()).filter(is_part).collect();
        let places: Vec<_> = indices
            .iter()
            .filter_map(|index| all.iter().position(|other| other == index))
            .collect();
        let fields: Vec<_> = all
            .iter()
            .filter_map(|index| schema.fields().get(*index).cloned())
            .collect();
        Ok(Self::ExampleList(Box::new(ExampleListDecoder::try_new(
            &fields, &places, options,
        )?)))
    }

    /// Decodes one record for each row, to an array for each column. `None` makes a row of nulls
    /// and defaults.
    fn decode(
        &mut self,
        records: &[Option<&[u8]>],
        chunk: &Buffer,
    ) -> column::Result<Vec<ArrayRef>> {
        match self {
            Self::Message(decoder) => decoder.decode(records, chunk),
            Self::ExampleList(decoder) => decoder.decode(records, chunk),
        }
    }

    /// Checks one record.
    fn check(&mut self, record: &[u8], chunk: &Buffer) -> column::Result<()> {
        match self {
            Self::Message(decoder) => decoder.check(record, chunk),
            Self::ExampleList(decoder) => decoder.check(record, chunk),
        }
    }

    fn foreign(&self) -> Option<(u32, u64)> {
        match self {
            Self::Message(decoder) => decoder.foreign(),
            Self::ExampleList(decoder) => decoder.foreign(),
        }
    }

    /// The decoders of Examples inside of the records.
    fn decoders(&self) -> impl Iterator<Item = &BatchDecoder> {
        let list = match self {
            Self::Message(_) => None,
            Self::ExampleList(decoder) => Some(decoder.decoders()),
        };
        list.into_iter().flatten()
    }
}

/// Returns whether a column is about records as a whole.
fn is_of_record(field: &Field) -> bool {
    matches!(
        schema::role_of(field),
        Some(Role::Record | Role::Index | Role::Offset | Role::Exact)
    )
}

impl BatchDecoder {
    /// Creates a decoder of the columns of `schema` that the projection names.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a column that records are not decoded to, and
    /// [`ErrorKind::Arrow`] for an index of the projection that the schema does not have.
    pub(crate) fn try_new(schema: &SchemaRef, options: DecoderOptions) -> Result<Self> {
        let record_type = schema::record_type_of(schema);
        if matches!(record_type, RecordType::Message | RecordType::ExampleList) {
            return Self::of_nested(schema, record_type, options);
        }
        let all = schema
            .fields()
            .iter()
            .map(|field| Column::try_new(field, record_type))
            .collect::<Result<Vec<_>>>()?;
        let wanted = options
            .projection
            .clone()
            .unwrap_or_else(|| (0..all.len()).collect());
        let projected = Arc::new(schema.project(&wanted)?);
        let columns: Vec<_> = wanted
            .iter()
            .filter_map(|index| all.get(*index).cloned())
            .collect();
        let walks = columns
            .iter()
            .any(|column| column.role.is_of_features() || column.role == Role::Unset);
        // Columns of one feature have one lane: a column that is wanted twice, and the columns of a
        // feature's kinds.
        let firsts = firsts(&all);
        let mut lane_of = HashMap::new();
        let first = |index: &usize| firsts.get(*index).copied().unwrap_or(*index);
        let lanes = wanted
            .iter()
            .enumerate()
            .map(|(lane, index)| *lane_of.entry(first(index)).or_insert(lane))
            .collect();
        let lane_of = (0..all.len())
            .filter_map(|index| Some((index, *lane_of.get(&first(&index))?)))
            .collect();
        let shared: HashSet<_> = firsts
            .iter()
            .enumerate()
            .filter(|(index, first)| index != *first)
            .map(|(_, first)| *first)
            .collect();
        let is_split = |index: &usize| shared.contains(&first(index));
        let split = wanted
            .iter()
            .map(|index| is_split(index).then(|| kinds(&all, &firsts, first(index))))
            .collect();
        let whole = |index: &usize| {
            is_split(index)
                || all
                    .get(*index)
                    .is_none_or(|column| column.shape != Shape::List)
        };
        let first_values = wanted.iter().map(|index| {
            options
                .first_values
                .get(index)
                .copied()
                .filter(|_| !whole(index))
        });
        let first_values = first_values.collect();
        let tape = Tape::new(&all, &lane_of, options.limits);
        let DecoderOptions {
            verify_crc,
            strict,
            on_error,
            ..
        } = options;
        let skipped = Vec::new();
        let bad = BTreeSet::new();
        let schema = projected;
        Ok(Self {
            record_type,
            columns: columns.into_iter().map(BatchColumn::Of).collect(),
            nested: None,
            lanes,
            split,
            first_values,
            schema,
            tape,
            verify_crc,
            strict,
            walks,
            on_error,
            skipped,
            bad,
            rows: None,
        })
    }

    /// Creates a decoder of records with messages inside. The type of
    /// [messages](RecordType::Message) is in the metadata of `schema`.
    ///
    /// # Errors
    /// [`ErrorKind::Descriptors`] for messages without a valid type, and [`ErrorKind::Unsupported`]
    /// for a column that the records are not decoded to.
    fn of_nested(
        schema: &SchemaRef,
        record_type: RecordType,
        options: DecoderOptions,
    ) -> Result<Self> {
        let wanted = options
            .projection
            .clone()
            .unwrap_or_else(|| (0..schema.fields().len()).collect());
        let projected = Arc::new(schema.project(&wanted)?);
        let mut columns = Vec::new();
        let mut indices = Vec::new();
        for (field, index) in projected.fields().iter().zip(wanted) {
            if is_of_record(field) {
                columns.push(BatchColumn::Of(Column::try_new(field, record_type)?));
                continue;
            }
            // A column that is wanted twice is decoded once.
            let place = indices
                .iter()
                .position(|other| *other == index)
                .unwrap_or(indices.len());
            if place == indices.len() {
                indices.push(index);
            }
            columns.push(BatchColumn::Nested(place));
        }
        let walks = !indices.is_empty();
        let nested = match record_type {
            RecordType::Message => NestedDecoder::of_messages(schema, &indices, &options)?,
            _ => NestedDecoder::of_lists(schema, &indices, &options)?,
        };
        let DecoderOptions {
            verify_crc,
            strict,
            on_error,
            limits,
            ..
        } = options;
        Ok(Self {
            record_type,
            columns: columns.into(),
            nested: Some(nested),
            lanes: Vec::new(),
            split: Vec::new(),
            first_values: Vec::new(),
            schema: projected,
            tape: Tape::new(&[], &HashMap::new(), limits),
            verify_crc,
            strict,
            walks,
            on_error,
            skipped: Vec::new(),
            bad: BTreeSet::new(),
            rows: None,
        })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the names of the features found so far that have no column in the schema, with the
    /// number of times that each was found.
    ///
    /// A feature without a kind does not count, see [`lost_unset`](Self::lost_unset).
    pub fn unknown_features(&self) -> impl Iterator<Item = (&str, u64)> {
        self.tapes().flat_map(Tape::unknown)
    }

    /// Returns the number of times that a feature without a column was found whose name exceeds
    /// [`Limits::features`] or [`Limits::name_bytes`], so that
    /// [`unknown_features`](Self::unknown_features) does not have it.
    pub fn excess_features(&self) -> u64 {
        self.tapes().map(|tape| tape.losses.excess).sum()
    }

    /// Returns the number of the first skipped field that the record type does not define, and the
    /// number of such fields. `None` if there was none. A
    /// [strict](crate::DecoderBuilder::with_strict) decoder rejects the first one.
    pub fn foreign_fields(&self) -> Option<(u32, u64)> {
        self.nested
            .as_ref()
            .map_or(self.tape.losses.foreign, NestedDecoder::foreign)
    }

    /// Returns the number of features without a kind that became null, as if they were missing,
    /// because the schema has no column `_tfarrow_unset` to name them. Features that a projection
    /// leaves out are not counted.
    pub fn lost_unset(&self) -> u64 {
        self.tapes().map(|tape| tape.losses.lost_unset).sum()
    }

    /// The tape, and those of the Examples inside of records.
    fn tapes(&self) -> impl Iterator<Item = &Tape> {
        [&self.tape].into_iter().chain(
            self.nested
                .iter()
                .flat_map(NestedDecoder::decoders)
                .map(|decoder| &decoder.tape),
        )
    }

    /// Decodes all records to one batch, with a row for each. Without columns, only the CRCs of the
    /// records are checked.
    ///
    /// # Errors
    /// A record that is corrupt or does not fit the schema, with its number, its offset and the
    /// feature. With [`OnError::Skip`] the record is left out of the batch instead, see
    /// [`take_skipped`](Self::take_skipped).
    ///
    /// [`ErrorKind::BatchLimit`] if the values of a column exceed Arrow's 32-bit offsets, or if the
    /// records are in more than 4 GiB of memory.
    pub fn decode(&mut self, records: &Records) -> Result<RecordBatch> {
        self.decode_rows(records, None)
    }

    /// Decodes the first of `records` to one batch: at most `rows` records, of at most `bytes`
    /// bytes together, and half as many for each time that their values exceed a limit of a batch.
    /// Returns the batch, its records, and the remaining ones.
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode); [`ErrorKind::BatchLimit`] only for a single record.
    pub fn decode_first(
        &mut self,
        records: Records,
        rows: usize,
        bytes: usize,
    ) -> Result<(RecordBatch, Records, Records)> {
        let mut count = records.fit(rows, bytes);
        let (mut first, mut rest) = records.split_at(count);
        let skipped = self.skipped.len();
        loop {
            match self.decode(&first) {
                Err(error) if matches!(error.kind(), ErrorKind::BatchLimit { .. }) && count > 1 => {
                    // Its records are decoded again, and those that do not parse are skipped again.
                    self.skipped.truncate(skipped);
                    count /= 2;
                    let (half, other) = first.split_at(count);
                    (first, rest) = (half, other.joined(rest));
                }
                batch => return Ok((batch?, first, rest)),
            }
        }
    }

    /// Decodes the records for which `filter` is true to one batch. `filter` has a value for each
    /// record; records for which it is false or null are not read, and their CRCs are not checked.
    ///
    /// ```
    /// use arrow_array::{BooleanArray, cast::AsArray, types::Int64Type};
    /// # use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// # use tfarrow_codec::{DecoderBuilder, EncoderBuilder, Limits, Records};
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// # let column = |values: [i64; 3]| std::sync::Arc::new(Int64Array::from_iter_values(values)) as ArrayRef;
    /// # let batch = RecordBatch::try_from_iter([("height", column([1, 2, 3])), ("label", column([4, 5, 6]))])?;
    /// # let mut bytes = Vec::new();
    /// # EncoderBuilder::new().build(batch.schema())?.encode(&batch, &mut bytes)?;
    /// # let records = Records::from_frames(bytes, Limits::default())?;
    /// # let schema = batch.schema();
    /// // Three records with a `height` of 1, 2 and 3, and a `label` of 4, 5 and 6.
    /// let builder = DecoderBuilder::new(schema);
    /// let heights = builder.clone().with_projection(vec![0]).build_batch_decoder()?.decode(&records)?;
    /// let tall = BooleanArray::from_unary(heights.column(0).as_primitive::<Int64Type>(), |height| height > 1);
    /// let labels = builder.with_projection(vec![1]).build_batch_decoder()?.decode_where(&records, &tall)?;
    /// assert_eq!(labels.column(0).as_primitive::<Int64Type>().values(), &[5, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode).
    pub fn decode_where(
        &mut self,
        records: &Records,
        filter: &BooleanArray,
    ) -> Result<RecordBatch> {
        self.check_places(records)?;
        let is_true = |row: &u32| {
            let row = *row as usize;
            row < filter.len() && filter.is_valid(row) && filter.value(row)
        };
        let rows: Vec<_> = (0..records.len() as u32).filter(is_true).collect();
        if rows.len() == records.len() {
            return self.decode(records);
        }
        self.decode_rows(records, Some(rows.into()))
    }

    /// Returns the index of the record that row `row` of the last batch was decoded from. The two
    /// differ if a filter or an error left records out.
    pub fn record_of(&self, row: usize) -> usize {
        self.rows
            .as_ref()
            .and_then(|rows| rows.values().get(row))
            .map_or(row, |record| *record as usize)
    }

    /// Returns the errors of the records skipped since the last call, those of a batch in the order
    /// of its columns. Records are skipped only with [`OnError::Skip`].
    pub fn take_skipped(&mut self) -> Vec<Error> {
        mem::take(&mut self.skipped)
    }

    /// Decodes the records at the indices `rows`, or all of them.
    fn decode_rows(&mut self, records: &Records, rows: Option<UInt32Array>) -> Result<RecordBatch> {
        self.check_places(records)?;
        let count = rows.as_ref().map_or(records.len(), |rows| rows.len());
        self.tape.begin(self.lanes.len(), count);
        self.bad.clear();
        self.rows = rows;
        for row in 0..count {
            let index = self.record_of(row);
            let read = if self.walks {
                self.walk(records, index)
            } else {
                self.check(records, index)
            };
            match read {
                Ok(()) => self.tape.accept(),
                Err(error) => {
                    self.skip(row, error)?;
                    self.tape.skip(row);
                }
            }
        }
        let fields = self.nested_arrays(records)?;
        let columns = Arc::clone(&self.columns);
        let array = |(index, column): (usize, &BatchColumn)| match column {
            BatchColumn::Of(column) => self.array(index, column, records),
            // The decoder makes an array for each of these.
            BatchColumn::Nested(field) => Ok(fields
                .get(*field)
                .map_or_else(|| new_empty_array(&DataType::Null), Arc::clone)),
        };
        let mut arrays = columns
            .iter()
            .enumerate()
            .map(array)
            .collect::<Result<Vec<_>>>()?;
        for (array, field) in arrays.iter_mut().zip(self.schema.fields()) {
            *array = with_item_fields(array, field.data_type())?;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        if self.bad.is_empty() {
            Ok(batch)
        } else {
            self.without_bad(&batch)
        }
    }

    /// Decodes the columns of records with messages inside; none for other records. If errors are
    /// skipped, the rows whose record does not parse or does not fit are skipped, and the arrays
    /// are built without them.
    fn nested_arrays(&mut self, records: &Records) -> Result<Vec<ArrayRef>> {
        let Some(mut decoder) = self.nested.take_if(|_| self.walks) else {
            return Ok(Vec::new());
        };
        let arrays = self.decode_nested(&mut decoder, records);
        self.nested = Some(decoder);
        arrays
    }

    fn decode_nested(
        &mut self,
        decoder: &mut NestedDecoder,
        records: &Records,
    ) -> Result<Vec<ArrayRef>> {
        let count = self.rows.as_ref().map_or(records.len(), |rows| rows.len());
        let data = |row: usize| records.data(self.record_of(row)).unwrap_or_default();
        let mut messages: Vec<_> = (0..count)
            .map(|row| (!self.bad.contains(&row)).then(|| data(row)))
            .collect();
        match decoder.decode(&messages, records.chunk()) {
            Err(fault) if self.on_error == OnError::Fail => {
                return Err(self.batch_error(fault, records));
            }
            Err(_) => {}
            Ok(arrays) => return Ok(arrays),
        }
        // Each message is tried alone, so that many corrupt ones do not take a pass over the batch
        // each, and because a record that exceeds a limit may be the reason that the batch does.
        for (row, message) in messages
            .iter_mut()
            .enumerate()
            .filter(|(_, message)| message.is_some())
        {
            let Err(fault) = decoder.check(message.unwrap_or_default(), records.chunk()) else {
                continue;
            };
            if fault.is_of_row() {
                let error = self.batch_error(fault.map_row(|_| row), records);
                self.skip(row, error)?;
                *message = None;
            }
        }
        decoder
            .decode(&messages, records.chunk())
            .map_err(|fault| self.batch_error(fault, records))
    }

    /// Checks that the memory of the records is within the 32 bits of the tape's positions.
    ///
    /// # Errors
    /// [`ErrorKind::BatchLimit`].
    fn check_places(&self, records: &Records) -> Result<()> {
        let within = column::within(
            "bytes of memory that the records lie in",
            records.chunk().len(),
            u32::MAX.into(),
        );
        within.map_err(|fault| self.batch_error(fault, records))
    }

    /// Counts a row as skipped.
    ///
    /// # Errors
    /// `error`, if errors are not skipped, if it is not about one record, or if the row was skipped
    /// before.
    fn skip(&mut self, row: usize, error: Error) -> Result<()> {
        if self.on_error == OnError::Fail || !error.is_of_record() || !self.bad.insert(row) {
            return Err(error);
        }
        self.skipped.push(error);
        Ok(())
    }

    /// Returns `batch` without the rows that are skipped.
    fn without_bad(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let keep = BooleanBuffer::collect_bool(batch.num_rows(), |row| !self.bad.contains(&row));
        let rows: Vec<_> = keep
            .set_indices()
            .map(|row| self.record_of(row) as u32)
            .collect();
        self.rows = Some(rows.into());
        Ok(filter_record_batch(batch, &keep.into())?)
    }

    /// Checks the CRC of a record that is not walked. A record that a filter has kept was checked
    /// by the decoder that the filter read.
    fn check(&self, records: &Records, index: usize) -> Result<()> {
        match self.verify_crc {
            VerifyCrc::Always if !self.columns.is_empty() || self.rows.is_none() => {
                records.check_crc(index)
            }
            VerifyCrc::Always | VerifyCrc::OnParseFailure | VerifyCrc::Never => Ok(()),
        }
    }

    /// Checks a record, and notes its values on the tape.
    fn walk(&mut self, records: &Records, index: usize) -> Result<()> {
        if self.verify_crc == VerifyCrc::Always {
            records.check_crc(index)?;
        }
        if self.nested.is_some() {
            return Ok(());
        }
        let data = records.data(index).unwrap_or_default();
        let lists = self.record_type == RecordType::SequenceExample;
        let shared = records.shared_features().example();
        let walked = self.tape.record(shared, data, records.chunk(), lists);
        walked.map_err(|e| self.parse_error(e, records, index))?;
        match self.tape.foreign_of_record().filter(|_| self.strict) {
            None => Ok(()),
            Some(field) => {
                let record_type = self.record_type.name();
                Err(records.error(ErrorKind::Foreign { field, record_type }, index))
            }
        }
    }

    /// Returns the error of a record that does not parse: that of its CRC, if the CRC is checked
    /// only now and does not match.
    fn parse_error(&self, error: WireError, records: &Records, index: usize) -> Error {
        self.damage(records, index).unwrap_or_else(|| {
            // An error in an Example of a list is that of the Example.
            let record_type = match self.record_type {
                RecordType::ExampleList => RecordType::Example,
                other => other,
            };
            records.parse_error(error, index, record_type, self.tape.limits())
        })
    }

    /// Returns the error of the CRC of a record that does not parse, if the CRC is checked only
    /// now.
    fn damage(&self, records: &Records, index: usize) -> Option<Error> {
        match self.verify_crc {
            VerifyCrc::OnParseFailure => records.check_crc(index).err(),
            VerifyCrc::Always | VerifyCrc::Never => None,
        }
    }

    /// Builds the array of a column. If errors are skipped, a row whose value does not fit is
    /// skipped, and the array is built again without its value.
    fn array(&mut self, index: usize, column: &Column, records: &Records) -> Result<ArrayRef> {
        loop {
            match self.try_array(index, column, records) {
                Ok(array) => return Ok(array),
                Err(ColumnError::Row { row, kind }) => {
                    let error = self
                        .row_error(row, kind, records)
                        .with_feature(&column.feature);
                    self.skip(row, error)?;
                    self.tape.clear(row);
                }
                Err(fault) => {
                    return Err(self
                        .batch_error(fault, records)
                        .with_feature(&column.feature));
                }
            }
        }
    }

    /// Builds the array of the column at `index`, by its role.
    fn try_array(
        &self,
        index: usize,
        column: &Column,
        records: &Records,
    ) -> std::result::Result<ArrayRef, ColumnError> {
        let rows = self.rows.as_ref();
        match column.role {
            Role::Feature | Role::Context | Role::Sequence => {
                let places = self.tape.places(records.chunk());
                let lane = self.lanes.get(index).copied().unwrap_or(index);
                let slots = self.tape.column(lane);
                let split = self.split.get(index).copied().flatten();
                match (self.first_values.get(index).copied().flatten(), split) {
                    (Some(most), _) => column::beginnings(column.values, most, slots, places),
                    (None, Some(kinds)) => {
                        column::build_split(column.shape, column.values, kinds, slots, places)
                    }
                    (None, None) => column::build(column.shape, column.values, slots, places),
                }
            }
            Role::Record => column::virtual_columns::record(column.values, records)
                .and_then(|all| chosen(all, rows)),
            Role::Index => chosen(column::virtual_columns::index(records), rows),
            Role::Offset => chosen(column::virtual_columns::offset(records), rows),
            // `Column::try_new` rejects schemas with these roles.
            Role::Exact | Role::Examples => Err(ColumnError::Row {
                row: 0,
                kind: ErrorKind::unsupported("no column to decode to"),
            }),
            Role::Unset => {
                let (unset, names) = self.tape.unset().unzip();
                column::virtual_columns::unset(
                    unset.unwrap_or(&Default::default()),
                    names.unwrap_or_default(),
                )
            }
        }
    }

    /// Returns the error that the value of a row does not parse or does not fit, with the position
    /// of its record.
    fn row_error(&self, row: usize, kind: ErrorKind, records: &Records) -> Error {
        let record = self.record_of(row);
        match kind {
            ErrorKind::Wire(e) => self.parse_error(e, records, record),
            kind @ ErrorKind::Message { .. } => self
                .damage(records, record)
                .unwrap_or_else(|| records.error(kind, record)),
            kind => records.error(kind, record),
        }
    }

    /// Returns the error of a column or batch. It has the position of a record only if it is that
    /// of a row.
    fn batch_error(&self, fault: ColumnError, records: &Records) -> Error {
        match fault {
            ColumnError::Row { row, kind } => self.row_error(row, kind, records),
            ColumnError::Part { row, kind, feature } => {
                let error = self.row_error(row, kind, records);
                feature
                    .into_iter()
                    .fold(error, |error, feature| error.with_feature(&feature))
            }
            ColumnError::Overflow { what, found, limit } => records.overflow(what, found, limit),
            ColumnError::Arrow(error) => error.into(),
        }
    }
}

/// Returns, for each column, the index of the first column of the same feature: its own, unless the
/// feature has a column for each of its kinds.
///
/// ```text
/// columns    a    b/int64_list   b/bytes_list   c
/// firsts     0    1              1              3
/// ```
fn firsts(columns: &[Column]) -> Vec<usize> {
    let mut first_of = HashMap::new();
    let first = |(index, column): (usize, &Column)| match column.role {
        Role::Feature | Role::Context => *first_of
            .entry((false, column.feature.clone()))
            .or_insert(index),
        Role::Sequence => *first_of
            .entry((true, column.feature.clone()))
            .or_insert(index),
        Role::Examples | Role::Record | Role::Unset | Role::Exact | Role::Index | Role::Offset => {
            index
        }
    };
    columns.iter().enumerate().map(first).collect()
}

/// Returns the kinds that have a column, of the feature whose first column is `first`. Indexed by
/// [`Kind`](crate::Kind).
fn kinds(columns: &[Column], firsts: &[usize], first: usize) -> [bool; 3] {
    let mut kinds = [false; 3];
    for (column, _) in columns
        .iter()
        .zip(firsts)
        .filter(|(_, first_of)| **first_of == first)
    {
        kinds[column.values.kind() as usize] = true;
    }
    kinds
}

/// Returns an array whose lists have the item fields of `data_type`, the type of its column, which
/// state whether items are nullable.
fn with_item_fields(
    array: &ArrayRef,
    data_type: &DataType,
) -> std::result::Result<ArrayRef, ArrowError> {
    let (DataType::List(item), Some(list)) = (data_type, array.as_list_opt::<i32>()) else {
        return Ok(Arc::clone(array));
    };
    let values = with_item_fields(list.values(), item.data_type())?;
    let offsets = list.offsets().clone();
    let nulls = list.nulls().cloned();
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(item),
        offsets,
        values,
        nulls,
    )?))
}

/// Returns the values at the indices `rows`, or all of them.
fn chosen(all: ArrayRef, rows: Option<&UInt32Array>) -> std::result::Result<ArrayRef, ColumnError> {
    match rows {
        Some(rows) => take(&all, rows, None).map_err(ColumnError::Arrow),
        None => Ok(all),
    }
}
