//! Decoding complete records to one batch. All batches of the codec are made here.
//!
//! ```text
//! Records ─▶ check the CRC of each row     error: fail, or skip the row
//!         ─▶ decode the payloads           FeatureDecoder: features   NestedDecoder: other messages
//!         ─▶ add the columns about records as a whole
//!         ─▶ RecordBatch, without the skipped rows
//! ```
//!
//! *Rows* are the records that a filter keeps; without a filter, all of them.

mod example_list;
mod features;
mod nested;
mod rows;

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use arrow_array::{
    Array, ArrayRef, BooleanArray, ListArray, RecordBatch, RecordBatchOptions, UInt32Array,
    cast::AsArray, new_empty_array,
};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::take::take;

use self::{
    features::FeatureDecoder,
    nested::{NestedDecoder, is_of_record},
    rows::BatchRows,
};
use super::column::{self, ColumnError};
use crate::{
    Error, ErrorKind, Limits, OnError, RecordType, Records, Result, VerifyCrc,
    example::tape::{Losses, Tape},
    schema::{self, Column, Role},
};

/// The options of decoding, which a [`ReaderBuilder`](crate::ReaderBuilder) sets.
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
    /// Whether features without a column are counted although no wanted column is of a feature.
    pub(crate) counts_unknown: bool,
}

/// Decodes [`Records`] to batches, each by one pass over the wire bytes.
///
/// Use one decoder for each thread, and reuse it: it learns the order of keys from the records that
/// it decodes. Build it with
/// [`ReaderBuilder::build_batch_decoder`](crate::ReaderBuilder::build_batch_decoder).
///
/// ```
/// use arrow_array::{cast::AsArray, types::Int64Type};
/// # use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use tfarrow_codec::{ReaderBuilder, Limits, VerifyCrc, frame};
/// # use tfarrow_codec::WriterBuilder;
/// # fn main() -> tfarrow_codec::Result<()> {
/// # let column = std::sync::Arc::new(Int64Array::from_iter_values(0..1000)) as ArrayRef;
/// # let batch = RecordBatch::try_from_iter([("x", column)])?;
/// # let mut stream = Vec::new();
/// # WriterBuilder::new().build_encoder(batch.schema())?.encode(&batch, &mut stream)?;
/// # let schema = batch.schema();
/// // A stream of 1,000 records, in which the feature `x` counts from 0.
/// let mut decoder = ReaderBuilder::new(schema).with_verify_crc(VerifyCrc::Always).build_batch_decoder()?;
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
    /// The schema of the batches.
    schema: SchemaRef,
    /// The columns of the batches.
    columns: Vec<BatchColumn>,
    payloads: PayloadDecoder,
    rows: BatchRows,
}

/// A column of a batch.
#[derive(Debug)]
enum BatchColumn {
    /// A column about records as a whole: complete records, numbers or offsets.
    Record(Column),
    /// The column with this index among those that the [`PayloadDecoder`] makes.
    Decoded(usize),
}

/// The decoder of the payloads of records.
#[derive(Debug)]
enum PayloadDecoder {
    /// No column needs them.
    Unread,
    /// Examples and SequenceExamples.
    Features(Box<FeatureDecoder>),
    /// Records with messages inside.
    Nested(NestedDecoder),
}

impl BatchDecoder {
    /// Creates a decoder of the columns of `schema` that the projection names.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a column that records are not decoded to,
    /// [`ErrorKind::Descriptors`] for messages without a valid type in the metadata of the schema,
    /// and [`ErrorKind::Arrow`] for an index of the projection that the schema does not have.
    pub(crate) fn try_new(schema: &SchemaRef, options: DecoderOptions) -> Result<Self> {
        let record_type = schema::record_type_of(schema);
        let is_nested = matches!(record_type, RecordType::Message | RecordType::ExampleList);
        let wanted = match &options.projection {
            Some(projection) => projection.clone(),
            None => (0..schema.fields().len()).collect(),
        };
        let mut all = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            // Other columns of such records are no features, and are checked by their decoder.
            let is_of_decoder = is_nested && !(is_of_record(field) && wanted.contains(&index));
            all.push(match is_of_decoder {
                true => None,
                false => Some(Column::try_new(field, record_type)?),
            });
        }
        let projected = Arc::new(schema.project(&wanted)?);
        let mut columns = Vec::with_capacity(wanted.len());
        // A column that is wanted twice is decoded once.
        let mut decoded = Vec::new();
        let mut place_of = HashMap::new();
        for index in wanted {
            if let Some(Some(column)) = all.get(index)
                && matches!(column.role, Role::Record | Role::Index | Role::Offset)
            {
                columns.push(BatchColumn::Record(column.clone()));
                continue;
            }
            let place = match place_of.entry(index) {
                Entry::Occupied(place) => *place.get(),
                Entry::Vacant(entry) => {
                    decoded.push(index);
                    *entry.insert(decoded.len() - 1)
                }
            };
            columns.push(BatchColumn::Decoded(place));
        }
        let payloads = if is_nested {
            // Created also if no column needs it, because it checks the columns of the schema.
            let nested = NestedDecoder::try_new(schema, &decoded, record_type, &options)?;
            match decoded.is_empty() {
                true => PayloadDecoder::Unread,
                false => PayloadDecoder::Nested(nested),
            }
        } else if decoded.is_empty() && !options.counts_unknown {
            PayloadDecoder::Unread
        } else {
            let all: Vec<_> = all.into_iter().flatten().collect();
            let features = FeatureDecoder::new(&all, &decoded, record_type, &options);
            PayloadDecoder::Features(Box::new(features))
        };
        Ok(Self {
            schema: projected,
            columns,
            payloads,
            rows: BatchRows::new(record_type, &options),
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
        self.tapes().into_iter().flat_map(Tape::unknown)
    }

    /// Returns the number of times that a feature without a column was found whose name exceeds
    /// [`Limits::features`] or [`Limits::name_bytes`], so that
    /// [`unknown_features`](Self::unknown_features) does not have it.
    pub fn excess_features(&self) -> u64 {
        self.tapes().iter().map(|tape| tape.losses.excess).sum()
    }

    /// Returns the number of the first skipped field that the record type does not define, and the
    /// number of such fields. `None` if there was none. A
    /// [strict](crate::ReaderBuilder::with_strict) decoder rejects the first one.
    pub fn foreign_fields(&self) -> Option<(u32, u64)> {
        match &self.payloads {
            PayloadDecoder::Unread => None,
            PayloadDecoder::Features(decoder) => decoder.tape.losses.foreign,
            PayloadDecoder::Nested(decoder) => decoder.foreign(),
        }
    }

    /// Returns the number of features without a kind that became null, as if they were missing,
    /// because the schema has no column `_tfarrow_unset` to name them. Features that a projection
    /// leaves out are not counted.
    pub fn lost_unset(&self) -> u64 {
        self.tapes().iter().map(|tape| tape.losses.lost_unset).sum()
    }

    /// The tape of the features, or the tapes of the Examples inside of records.
    fn tapes(&self) -> Vec<&Tape> {
        match &self.payloads {
            PayloadDecoder::Unread => Vec::new(),
            PayloadDecoder::Features(decoder) => vec![&decoder.tape],
            PayloadDecoder::Nested(decoder) => decoder.tapes(),
        }
    }

    /// What the records have and no column keeps; nothing if the records are not of features.
    fn losses(&self) -> Losses {
        match &self.payloads {
            PayloadDecoder::Features(decoder) => decoder.tape.losses.clone(),
            PayloadDecoder::Unread | PayloadDecoder::Nested(_) => Losses::default(),
        }
    }

    fn set_losses(&mut self, losses: Losses) {
        if let PayloadDecoder::Features(decoder) = &mut self.payloads {
            decoder.tape.losses = losses;
        }
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
        let skipped = self.rows.skipped.len();
        loop {
            match self.decode(&first) {
                Err(error) if matches!(error.kind(), ErrorKind::BatchLimit { .. }) && count > 1 => {
                    // Its records are decoded again, and those that do not parse are skipped again.
                    self.rows.skipped.truncate(skipped);
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
    /// # use tfarrow_codec::{ReaderBuilder, WriterBuilder, Limits, Records};
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// # let column = |values: [i64; 3]| std::sync::Arc::new(Int64Array::from_iter_values(values)) as ArrayRef;
    /// # let batch = RecordBatch::try_from_iter([("height", column([1, 2, 3])), ("label", column([4, 5, 6]))])?;
    /// # let mut bytes = Vec::new();
    /// # WriterBuilder::new().build_encoder(batch.schema())?.encode(&batch, &mut bytes)?;
    /// # let records = Records::from_frames(bytes, Limits::default())?;
    /// # let schema = batch.schema();
    /// // Three records with a `height` of 1, 2 and 3, and a `label` of 4, 5 and 6.
    /// let builder = ReaderBuilder::new(schema);
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
        let mut rows = Vec::new();
        for row in 0..records.len() as u32 {
            let place = row as usize;
            if place < filter.len() && filter.is_valid(place) && filter.value(place) {
                rows.push(row);
            }
        }
        if rows.len() == records.len() {
            return self.decode(records);
        }
        self.decode_rows(records, Some(rows.into()))
    }

    /// Returns the index of the record that row `row` of the last batch was decoded from. The two
    /// differ if a filter or an error left records out.
    pub fn record_of(&self, row: usize) -> usize {
        self.rows.record_of(row)
    }

    /// Returns the errors of the records skipped since the last call, those of a batch in the order
    /// of its columns. Records are skipped only with [`OnError::Skip`].
    pub fn take_skipped(&mut self) -> Vec<Error> {
        self.rows.take_skipped()
    }

    /// Decodes the records at the indices `kept`, or all of them.
    fn decode_rows(&mut self, records: &Records, kept: Option<UInt32Array>) -> Result<RecordBatch> {
        self.check_places(records)?;
        let is_filtered = kept.is_some();
        self.rows.begin(kept);
        let count = self.rows.count(records);
        let decoded = match &mut self.payloads {
            PayloadDecoder::Features(decoder) => decoder.decode(records, &mut self.rows)?,
            PayloadDecoder::Nested(decoder) => decoder.decode(records, &mut self.rows)?,
            PayloadDecoder::Unread => {
                // Without columns, records that a filter has kept were checked by the decoder that
                // the filter read.
                if !self.columns.is_empty() || !is_filtered {
                    self.rows.check_crcs(records)?;
                }
                Vec::new()
            }
        };
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter().zip(self.schema.fields()) {
            let array = match column {
                BatchColumn::Record(column) => self.record_array(column, records)?,
                BatchColumn::Decoded(place) => match decoded.get(*place) {
                    Some(array) => Arc::clone(array),
                    // A batch rejects it. The decoder makes an array for each column.
                    None => new_empty_array(&DataType::Null),
                },
            };
            arrays.push(with_item_fields(&array, field.data_type())?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        self.rows.without_skipped(batch)
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
        within.map_err(|fault| self.rows.error(fault, records))
    }

    /// Builds the array of a column about records as a whole.
    fn record_array(&self, column: &Column, records: &Records) -> Result<ArrayRef> {
        let all = match column.role {
            Role::Index => Ok(column::virtual_columns::index(records)),
            Role::Offset => Ok(column::virtual_columns::offset(records)),
            _ => column::virtual_columns::record(column.values, records),
        };
        let chosen = match (all, self.rows.kept()) {
            (Ok(all), Some(kept)) => take(&all, kept, None).map_err(ColumnError::Arrow),
            (all, _) => all,
        };
        chosen.map_err(|fault| {
            self.rows
                .error(fault, records)
                .with_feature(&column.feature)
        })
    }
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
