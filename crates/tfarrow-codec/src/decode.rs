//! From whole records to one batch: the loop that everything drives.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    mem,
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;
use arrow_select::{filter::filter_record_batch, take::take};

use crate::{
    Error, ErrorKind, Limits, OnError, Records, Result, Skipped, VerifyCrc, WireError,
    column::{self, Fault},
    schema::{self, Column, RecordType, Role, Shape},
    tape::Tape,
};

/// What decoding is told besides the schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecodeOptions {
    pub(crate) projection: Option<Vec<usize>>,
    /// How many values are wanted of the lists of a column, where that is not all.
    pub(crate) first_values: HashMap<usize, usize>,
    pub(crate) verify_crc: VerifyCrc,
    pub(crate) strict: bool,
    pub(crate) on_error: OnError,
    pub(crate) limits: Limits,
}

/// Turns [`Records`] into batches, each by one walk over the wire. One a thread: it remembers the order of keys.
#[derive(Debug)]
pub struct BatchDecoder {
    record_type: RecordType,
    columns: Arc<[Column]>,
    /// Where on the tape each column lies: one that is asked for twice lies there once.
    lanes: Vec<usize>,
    /// The kinds that columns of the same feature hold, where that has one for each of several, by column.
    split: Vec<Option<[bool; 3]>>,
    /// How many values are wanted of each column of lists, where that is not all.
    first_values: Vec<Option<usize>>,
    schema: SchemaRef,
    tape: Tape,
    verify_crc: VerifyCrc,
    strict: bool,
    /// Whether records have to be walked at all.
    walks: bool,
    on_error: OnError,
    skipped: Skipped,
    /// The rows of the batch in hand that are left out of it.
    bad: BTreeSet<usize>,
    /// Of which records the rows of the last batch are; `None`: of all.
    rows: Option<UInt32Array>,
}

impl BatchDecoder {
    pub(crate) fn try_new(schema: &SchemaRef, options: DecodeOptions) -> Result<Self> {
        let record_type = schema::record_type_of(schema);
        let all =
            schema.fields().iter().map(|field| Column::try_new(field, record_type)).collect::<Result<Vec<_>>>()?;
        let wanted = options.projection.clone().unwrap_or_else(|| (0..all.len()).collect());
        let projected = Arc::new(schema.project(&wanted)?);
        let columns: Arc<[_]> = wanted.iter().filter_map(|index| all.get(*index).cloned()).collect();
        let walks = columns.iter().any(|column| column.role.is_of_features() || column.role == Role::Unset);
        // Columns of one feature have one lane: one that is wanted twice, and those of a feature's kinds.
        let firsts = firsts(&all);
        let mut lane_of = HashMap::new();
        let first = |index: &usize| firsts.get(*index).copied().unwrap_or(*index);
        let lanes =
            wanted.iter().enumerate().map(|(lane, index)| *lane_of.entry(first(index)).or_insert(lane)).collect();
        let lane_of = (0..all.len()).filter_map(|index| Some((index, *lane_of.get(&first(&index))?))).collect();
        let shared: HashSet<_> =
            firsts.iter().enumerate().filter(|(index, first)| index != *first).map(|(_, first)| *first).collect();
        let is_split = |index: &usize| shared.contains(&first(index));
        let split = wanted.iter().map(|index| is_split(index).then(|| kinds(&all, &firsts, first(index)))).collect();
        let whole = |index: &usize| is_split(index) || all.get(*index).is_none_or(|column| column.shape != Shape::List);
        let first_values =
            wanted.iter().map(|index| options.first_values.get(index).copied().filter(|_| !whole(index)));
        let first_values = first_values.collect();
        let tape = Tape::new(&all, &lane_of, options.limits);
        let DecodeOptions { verify_crc, strict, on_error, .. } = options;
        let (skipped, bad) = (Skipped::default(), BTreeSet::new());
        let schema = projected;
        Ok(Self {
            record_type,
            columns,
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

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The names of the features met so far that the schema has no column for, and how often each was met.
    pub fn unknown_features(&self) -> impl Iterator<Item = (&str, u64)> {
        self.tape.unknown()
    }

    /// How often a feature was met that the schema has no column for, and whose name was one too many to remember: see
    /// [`Limits::features`].
    pub fn forgotten_features(&self) -> u64 {
        self.tape.forgotten
    }

    /// The first field of a record that its type has not, where any was met and skipped, and how many such fields there
    /// were. A [strict](crate::DecoderBuilder::with_strict) decoder refuses the first.
    pub fn foreign_fields(&self) -> Option<(u32, u64)> {
        self.tape.foreign
    }

    /// How often a feature was met that is present with no kind set, while the schema has no column `_tfarrow_unset` to
    /// tell it from one that is absent. A feature that a projection leaves out is not looked at.
    pub fn lost_unset(&self) -> u64 {
        self.tape.lost_unset
    }

    /// One batch of all these records. Where no column is wanted, no more than their CRCs is looked at.
    ///
    /// # Errors
    /// A record that is damaged, or that does not fit the schema; with its number, offset and feature.
    pub fn decode(&mut self, records: &Records) -> Result<RecordBatch> {
        self.decode_rows(records, None)
    }

    /// One batch of those of these records for which `filter`, which has a value a record, is true. The others, also those
    /// for which it is null, are not looked at.
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
    /// As [`decode`](Self::decode).
    pub fn decode_where(&mut self, records: &Records, filter: &BooleanArray) -> Result<RecordBatch> {
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

    /// Of which of its records row `row` of the last batch is: not the same where a filter or an error left some out.
    pub fn record_of(&self, row: usize) -> usize {
        self.rows.as_ref().and_then(|rows| rows.values().get(row)).map_or(row, |record| *record as usize)
    }

    /// What was left out of the batches since this was last asked: always nothing, unless the decoder
    /// [skips](OnError::Skip) what is bad.
    pub fn take_skipped(&mut self) -> Skipped {
        mem::take(&mut self.skipped)
    }

    /// `rows` are the places of records; `None`: of all.
    fn decode_rows(&mut self, records: &Records, rows: Option<UInt32Array>) -> Result<RecordBatch> {
        self.check_places(records)?;
        let count = rows.as_ref().map_or(records.len(), |rows| rows.len());
        self.tape.begin(self.columns.len(), count);
        self.bad.clear();
        self.rows = rows;
        for row in 0..count {
            let index = self.record_of(row);
            let read = if self.walks { self.walk(records, index) } else { self.check(records, index) };
            match read {
                Ok(()) => self.tape.accept(),
                Err(error) => {
                    self.skip(row, error)?;
                    self.tape.skip(row);
                }
            }
        }
        let columns = Arc::clone(&self.columns);
        let array = |(index, column)| self.array(index, column, records);
        let arrays = columns.iter().enumerate().map(array).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        if self.bad.is_empty() { Ok(batch) } else { self.without_bad(&batch) }
    }

    /// Refuses records that lie in more memory than places of 32 bits can count.
    fn check_places(&self, records: &Records) -> Result<()> {
        let within = column::within("bytes of memory that the records lie in", records.chunk().len(), u32::MAX.into());
        within.map_err(|fault| self.batch_error(fault, records))
    }

    /// Notes that a row is to be left out; an error where it may not be.
    fn skip(&mut self, row: usize, error: Error) -> Result<()> {
        if self.on_error == OnError::Fail || !Skipped::takes(&error) || !self.bad.insert(row) {
            return Err(error);
        }
        self.skipped.add(error);
        Ok(())
    }

    fn without_bad(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let keep = BooleanBuffer::collect_bool(batch.num_rows(), |row| !self.bad.contains(&row));
        let rows: Vec<_> = keep.set_indices().map(|row| self.record_of(row) as u32).collect();
        self.rows = Some(rows.into());
        Ok(filter_record_batch(batch, &keep.into())?)
    }

    /// Checks a record of which nothing is decoded. One that a filter has kept was checked before it was filtered.
    fn check(&self, records: &Records, index: usize) -> Result<()> {
        match self.verify_crc {
            VerifyCrc::Always if !self.columns.is_empty() || self.rows.is_none() => records.check_crc(index),
            VerifyCrc::Always | VerifyCrc::OnParseFailure | VerifyCrc::Never => Ok(()),
        }
    }

    fn walk(&mut self, records: &Records, index: usize) -> Result<()> {
        if self.verify_crc == VerifyCrc::Always {
            records.check_crc(index)?;
        }
        let data = records.data(index).unwrap_or_default();
        let lists = self.record_type == RecordType::SequenceExample;
        let walked = self.tape.record(data, records.chunk(), lists);
        walked.map_err(|e| self.unreadable(e, records, index))?;
        match self.tape.foreign_of_record().filter(|_| self.strict) {
            None => Ok(()),
            Some(field) => {
                let record_type = self.record_type.name();
                Err(records.error(ErrorKind::Foreign { field, record_type }, index))
            }
        }
    }

    /// A record that cannot be read may be damaged.
    fn unreadable(&self, error: WireError, records: &Records, index: usize) -> Error {
        let damage = match self.verify_crc {
            VerifyCrc::OnParseFailure => records.check_crc(index).err(),
            VerifyCrc::Always | VerifyCrc::Never => None,
        };
        damage.unwrap_or_else(|| {
            let lists = self.record_type == RecordType::SequenceExample;
            records.unreadable(error, index, lists, self.tape.limits())
        })
    }

    /// The array of a column. A value that does not fit costs its row, where that may be left out.
    fn array(&mut self, index: usize, column: &Column, records: &Records) -> Result<ArrayRef> {
        loop {
            match self.try_array(index, column, records) {
                Ok(array) => return Ok(array),
                Err(Fault::Row { row, kind }) => {
                    let error = self.row_error(row, kind, records).with_feature(&column.feature);
                    self.skip(row, error)?;
                    self.tape.clear(row);
                }
                Err(fault) => return Err(self.batch_error(fault, records).with_feature(&column.feature)),
            }
        }
    }

    fn try_array(&self, index: usize, column: &Column, records: &Records) -> std::result::Result<ArrayRef, Fault> {
        let rows = self.rows.as_ref();
        match column.role {
            Role::Feature | Role::Context | Role::Sequence => {
                let places = self.tape.places(records.chunk());
                let lane = self.lanes.get(index).copied().unwrap_or(index);
                let slots = self.tape.column(lane);
                let split = self.split.get(index).copied().flatten();
                match (self.first_values.get(index).copied().flatten(), split) {
                    (Some(most), _) => column::beginnings(column.values, most, slots, places),
                    (None, Some(kinds)) => column::build_split(column.shape, column.values, kinds, slots, places),
                    (None, None) => column::build(column.shape, column.values, slots, places),
                }
            }
            Role::Record => column::own::record(column.values, records).and_then(|all| chosen(all, rows)),
            Role::Index => chosen(column::own::index(records), rows),
            Role::Offset => chosen(column::own::offset(records), rows),
            // A schema that has it is refused.
            Role::Exact => {
                Err(Fault::Row { row: 0, kind: ErrorKind::Unsupported("no column to decode to".to_owned()) })
            }
            Role::Unset => {
                let (unset, names) = self.tape.unset().unzip();
                column::own::unset(unset.unwrap_or(&Default::default()), names.unwrap_or_default())
            }
        }
    }

    /// The error that the value of a row cannot be read or does not fit.
    fn row_error(&self, row: usize, kind: ErrorKind, records: &Records) -> Error {
        let record = self.record_of(row);
        match kind {
            ErrorKind::Wire(e) => self.unreadable(e, records, record),
            kind => records.error(kind, record),
        }
    }

    /// The error that no one record is to blame for.
    fn batch_error(&self, fault: Fault, records: &Records) -> Error {
        match fault {
            Fault::Row { row, kind } => self.row_error(row, kind, records),
            Fault::Overflow { what, found, limit } => records.overflow(what, found, limit),
            Fault::Arrow(error) => error.into(),
        }
    }
}

/// For each column the first that holds the same feature: itself, unless a feature has a column for each of its kinds.
fn firsts(columns: &[Column]) -> Vec<usize> {
    let mut first_of = HashMap::new();
    let first = |(index, column): (usize, &Column)| match column.role {
        Role::Feature | Role::Context => *first_of.entry((false, column.feature.clone())).or_insert(index),
        Role::Sequence => *first_of.entry((true, column.feature.clone())).or_insert(index),
        Role::Record | Role::Unset | Role::Exact | Role::Index | Role::Offset => index,
    };
    columns.iter().enumerate().map(first).collect()
}

/// The kinds, by [`Kind`](crate::Kind) as an index, of the columns of the feature whose first column this is.
fn kinds(columns: &[Column], firsts: &[usize], first: usize) -> [bool; 3] {
    let mut kinds = [false; 3];
    for (column, _) in columns.iter().zip(firsts).filter(|(_, first_of)| **first_of == first) {
        kinds[column.values.kind() as usize] = true;
    }
    kinds
}

/// The values of these rows; `None`: of all.
fn chosen(all: ArrayRef, rows: Option<&UInt32Array>) -> std::result::Result<ArrayRef, Fault> {
    match rows {
        Some(rows) => take(&all, rows, None).map_err(Fault::Arrow),
        None => Ok(all),
    }
}
