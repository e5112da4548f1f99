//! From whole records to one batch: the loop that everything drives.

use std::{collections::HashMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::{
    Error, ErrorKind, Limits, Records, Result, Rows, VerifyCrc, WireError,
    schema::{self, Column, RecordType, Role},
    tape::Tape,
};

/// What decoding is told besides the schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecodeOptions {
    pub(crate) projection: Option<Vec<usize>>,
    pub(crate) verify_crc: VerifyCrc,
    pub(crate) strict: bool,
    pub(crate) limits: Limits,
}

/// Turns [`Records`] into batches, each by one walk over the wire. One a thread: it remembers the order of keys.
#[derive(Debug)]
pub struct BatchDecoder {
    record_type: RecordType,
    pub(crate) columns: Vec<Column>,
    /// Where on the tape each column lies: one that is asked for twice lies there once.
    pub(crate) lanes: Vec<usize>,
    schema: SchemaRef,
    pub(crate) tape: Tape,
    verify_crc: VerifyCrc,
    strict: bool,
    /// Whether records have to be walked at all.
    walks: bool,
}

impl BatchDecoder {
    pub(crate) fn try_new(schema: &SchemaRef, options: DecodeOptions) -> Result<Self> {
        let record_type = schema::record_type_of(schema);
        let all =
            schema.fields().iter().map(|field| Column::try_new(field, record_type)).collect::<Result<Vec<_>>>()?;
        let wanted = options.projection.clone().unwrap_or_else(|| (0..all.len()).collect());
        let projected = Arc::new(schema.project(&wanted)?);
        let columns: Vec<_> = wanted.iter().filter_map(|index| all.get(*index).cloned()).collect();
        let walks = columns.iter().any(|column| column.role != Role::Record);
        // A column that is wanted twice has its places once.
        let mut lane_of = HashMap::new();
        let lanes = wanted.iter().enumerate().map(|(lane, index)| *lane_of.entry(*index).or_insert(lane)).collect();
        let tape = Tape::new(&all, &lane_of, options.limits);
        let DecodeOptions { verify_crc, strict, .. } = options;
        Ok(Self { record_type, columns, lanes, schema: projected, tape, verify_crc, strict, walks })
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

    /// One batch of all these records. Where no column is wanted, nothing but their number is looked at.
    ///
    /// # Errors
    /// A record that is damaged, or that does not fit the schema; with its number, offset and feature.
    pub fn decode(&mut self, records: &Records) -> Result<RecordBatch> {
        self.rows(records)?.all()
    }

    /// Walks these records and decodes nothing: the columns that a filter needs are decoded first, and the others of the
    /// rows that it keeps.
    ///
    /// ```
    /// use arrow_array::{Array, BooleanArray, cast::AsArray};
    /// # use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// # use tfarrow_codec::{Chunker, DecoderBuilder, EncoderBuilder, Limits};
    /// # fn main() -> tfarrow_codec::Result<()> {
    /// # let column = |values: [i64; 3]| std::sync::Arc::new(Int64Array::from_iter_values(values)) as ArrayRef;
    /// # let batch = RecordBatch::try_from_iter([("height", column([1, 2, 3])), ("label", column([4, 5, 6]))])?;
    /// # let mut bytes = Vec::new();
    /// # EncoderBuilder::new().build(batch.schema())?.encode(&batch, &mut bytes)?;
    /// # let mut chunker = Chunker::new(1 << 20, Limits::default());
    /// # chunker.fill(&bytes);
    /// # let records = chunker.cut()?.expect("three records");
    /// // Three records with a `height` of 1, 2 and 3, and a `label` of 4, 5 and 6.
    /// let mut decoder = DecoderBuilder::new(batch.schema()).build_batch_decoder()?;
    /// let mut rows = decoder.rows(&records)?;
    /// let heights = rows.columns(&[0])?;
    /// let tall = BooleanArray::from_unary(heights.column(0).as_primitive::<arrow_array::types::Int64Type>(), |h| h > 1);
    /// rows.keep(&tall);
    /// assert_eq!(rows.columns(&[1])?.column(0).as_ref(), &Int64Array::from(vec![5, 6]) as &dyn Array);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A record that is damaged.
    pub fn rows<'d>(&'d mut self, records: &'d Records) -> Result<Rows<'d>> {
        self.tape.begin(self.columns.len(), records.len());
        if self.walks {
            (0..records.len()).try_for_each(|index| self.walk(records, index))?;
        } else if !self.columns.is_empty() {
            records.verify(self.verify_crc)?;
        }
        Ok(Rows::new(self, records))
    }

    fn walk(&mut self, records: &Records, index: usize) -> Result<()> {
        if self.verify_crc == VerifyCrc::Always {
            records.check_crc(index)?;
        }
        let data = records.data(index).unwrap_or_default();
        let lists = self.record_type == RecordType::SequenceExample;
        let walked = self.tape.record(data, records.chunk(), lists);
        walked.map_err(|e| self.unreadable(e, records, index))?;
        match self.tape.foreign.filter(|_| self.strict) {
            None => Ok(()),
            Some((field, _)) => {
                let record_type = self.record_type.name();
                Err(records.error(ErrorKind::Foreign { field, record_type }, index))
            }
        }
    }

    /// A record that cannot be read may be damaged.
    pub(crate) fn unreadable(&self, error: WireError, records: &Records, index: usize) -> Error {
        let damage = match self.verify_crc {
            VerifyCrc::OnParseFailure => records.check_crc(index).err(),
            VerifyCrc::Always | VerifyCrc::Never => None,
        };
        damage.unwrap_or_else(|| records.error(ErrorKind::Wire(error), index))
    }
}
