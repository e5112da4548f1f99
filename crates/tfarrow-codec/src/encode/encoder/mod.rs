//! The encoder of batches, and its builder.

mod example_list;

use std::{mem, sync::Arc};

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;

use self::example_list::ExampleListEncoder;
use super::{
    columns, feature,
    losses::{AllowedLosses, Ledger, Loss},
    message::MessageEncoder,
    plan::{self, ColumnPlan, SchemaPlan},
    record::{self, Message},
};
use crate::{Error, ErrorKind, Limits, MOST_RECORD_BYTES, RecordType, Result, Role, exact, frame};

/// Builds an [`Encoder`] or a [`Writer`](crate::Writer).
#[derive(Clone, Debug, Default)]
pub struct WriterBuilder {
    record_type: Option<RecordType>,
    allowed: AllowedLosses,
    limits: Limits,
}

impl WriterBuilder {
    /// Creates a builder of an encoder that writes the record type of the schema and rejects values
    /// that would change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the record type. The default is that of the schema's metadata, then that of its
    /// columns' metadata, then Example. The type of messages is always that of the schema's
    /// metadata, see `MessageType::metadata`.
    pub fn with_record_type(mut self, record_type: RecordType) -> Self {
        self.record_type = Some(record_type);
        self
    }

    /// Sets whether values that a record cannot hold may change. [`Encoder::losses`] counts the
    /// changes. By default such values are errors.
    ///
    /// | value | written as |
    /// |---|---|
    /// | uint64 of 2^63 or more | the int64 of the same bits, which is negative |
    /// | float64 that is not equal to a float32 | the nearest float32 |
    /// | timestamp, date, time, duration | int64, in the type's unit |
    /// | decimal | the nearest float32 |
    /// | null inside a list | nothing: the list is shorter |
    /// | empty list of a type without a kind | a feature without a kind |
    /// | feature named in `_tfarrow_unset` that has a value | the value |
    /// | null in a column of raw records | an empty record |
    /// | value in `_tfarrow_exact` that belongs to another record | nothing: the record has its canonical form |
    pub fn with_lossy(mut self, lossy: bool) -> Self {
        self.allowed.all = lossy;
        self
    }

    /// Sets whether floats of 64 bits are rounded to those of 32 bits, which are the only ones that
    /// a record has, where no other change is allowed: for values that were written with digits,
    /// such as 0.1. [`Encoder::losses`] counts the values that change. By default such values are
    /// errors.
    pub fn with_rounding(mut self, rounding: bool) -> Self {
        self.allowed.rounding = rounding;
        self
    }

    /// Sets the limits, of which [`Limits::nesting`] applies: to the groups in bytes that are
    /// written as the fields of a group. Set those with which the records were read.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Builds an encoder of batches of this schema.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a column that no record can hold, [`ErrorKind::Lossy`] for
    /// one of a type whose values would change. Both name the column, and
    /// [remedies](Error::remedies) that convert it.
    pub fn build_encoder(self, schema: SchemaRef) -> Result<Encoder> {
        let (encoder, errors) = self.build_partial_encoder(schema)?;
        errors.into_iter().next().map_or(Ok(encoder), Err)
    }

    /// Builds an encoder of batches of this schema that leaves out the columns for which
    /// [`build_encoder`](Self::build_encoder) returns an error. Returns it and the error of each of
    /// these columns.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for raw records that are not one column of bytes, and for columns
    /// that are not those of a message.
    pub fn build_partial_encoder(self, schema: SchemaRef) -> Result<(Encoder, Vec<Error>)> {
        let Self {
            record_type,
            allowed,
            limits,
        } = self;
        let record_type = record_type.unwrap_or_else(|| plan::record_type_of(&schema));
        let mut nested = None;
        let mut planned = SchemaPlan::default();
        if record_type == RecordType::Message {
            nested = Some(NestedEncoder::Message(MessageEncoder::new(
                &schema,
                limits.nesting,
            )?));
        } else {
            planned = plan::plan(&schema, record_type, allowed.all)?;
        }
        if record_type == RecordType::ExampleList {
            let (list, errors) = ExampleListEncoder::try_new(&schema, allowed)?;
            nested = Some(NestedEncoder::ExampleList(Box::new(list)));
            planned.errors.extend(errors);
        }
        let SchemaPlan { columns, errors } = planned;
        let losses = Vec::new();
        let canonical = Vec::new();
        Ok((
            Encoder {
                schema,
                record_type,
                columns,
                nested,
                allowed,
                records: 0,
                bytes: 0,
                losses,
                canonical,
            },
            errors,
        ))
    }
}

/// Encodes batches as framed records. Performs no IO; [`Writer`](crate::Writer) drives it to a
/// [`Write`](std::io::Write).
///
/// The features of a record are written in the order of the schema's columns, unless the column
/// `_tfarrow_exact` has another form of the record. The same batch always gives the same bytes.
///
/// ```
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
/// use tfarrow_codec::{WriterBuilder, Limits, Records};
/// # fn main() -> tfarrow_codec::Result<()> {
/// let ids: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![Some(7), None]));
/// let names: ArrayRef = std::sync::Arc::new(StringArray::from(vec!["a", "b"]));
/// let batch = RecordBatch::try_from_iter([("id", ids), ("name", names)])?;
/// let mut encoder = WriterBuilder::new().build_encoder(batch.schema())?;
/// let mut frames = Vec::new();
/// encoder.encode(&batch, &mut frames)?;
/// // The second record does not have the feature `id`.
/// let records = Records::from_frames(frames, Limits::default())?;
/// assert_eq!(records.iter().map(|record| record.len()).collect::<Vec<_>>(), [30, 17]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Encoder {
    /// The schema that all batches have.
    schema: SchemaRef,
    record_type: RecordType,
    /// The plan of each column, in the order of the schema.
    columns: Vec<ColumnPlan>,
    /// The encoder of records with messages inside; `None` for Examples and raw records.
    nested: Option<NestedEncoder>,
    /// The changes of values that are no errors.
    allowed: AllowedLosses,
    /// Number of records written so far, which is the number of the next one.
    records: u64,
    /// Number of bytes written so far, which is the offset of the next frame.
    bytes: u64,
    /// The changes of values so far.
    losses: Vec<Loss>,
    /// The canonical records of a batch with the column `_tfarrow_exact`.
    canonical: Vec<u8>,
}

/// The encoder of records with messages inside.
#[derive(Debug)]
enum NestedEncoder {
    /// Messages of any type, by their descriptor.
    Message(MessageEncoder),
    /// Examples in a list.
    ExampleList(Box<ExampleListEncoder>),
}

impl Encoder {
    /// Appends the frames of a batch to `out`, one record for each row.
    ///
    /// # Errors
    /// [`ErrorKind::Lossy`] for a value that would change, and [`ErrorKind::Limit`] for a record of
    /// 2 GiB or more, with the number of the record, counted over all batches;
    /// [`ErrorKind::Unsupported`] for a batch of another schema. Nothing is written then.
    pub fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        self.check_types(batch)?;
        let before = out.len();
        match self.record_type {
            RecordType::Raw => self.encode_raw(batch, out)?,
            RecordType::Message => self.encode_messages(batch, out)?,
            RecordType::Example | RecordType::SequenceExample | RecordType::ExampleList => {
                self.encode_features(batch, out)?;
            }
        }
        self.records += batch.num_rows() as u64;
        self.bytes += (out.len() - before) as u64;
        Ok(())
    }

    /// Sets the number of the next record, which errors have: the number of the row in its file, if
    /// the encoder does not encode all rows of the file.
    pub fn set_next(&mut self, record: u64) {
        self.records = record;
    }

    /// Sets whether floats of the next rows are rounded, as [`WriterBuilder::with_rounding`] does.
    pub fn set_rounding(&mut self, rounding: bool) {
        self.allowed.rounding = rounding;
        if let Some(NestedEncoder::ExampleList(list)) = &mut self.nested {
            list.set_rounding(rounding);
        }
    }

    /// Returns the type of the records.
    pub fn record_type(&self) -> RecordType {
        self.record_type
    }

    /// Returns the changes of values so far: the column, the kind of change, and the number of
    /// values. Empty unless the encoder is [lossy](WriterBuilder::with_lossy), or
    /// [rounds](WriterBuilder::with_rounding).
    pub fn losses(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let of_list = match &self.nested {
            Some(NestedEncoder::ExampleList(list)) => Some(list.losses()),
            Some(NestedEncoder::Message(_)) | None => None,
        };
        self.losses
            .iter()
            .map(Loss::parts)
            .chain(of_list.into_iter().flatten())
    }

    /// Checks that a batch has the names and types of the schema.
    fn check_types(&self, batch: &RecordBatch) -> Result<()> {
        if Arc::ptr_eq(&self.schema, batch.schema_ref()) {
            return Ok(());
        }
        let ours = self.schema.fields();
        let theirs = batch.schema_ref().fields();
        for (ours, theirs) in ours.iter().zip(theirs) {
            if ours.name() != theirs.name() || !ours.data_type().equals_datatype(theirs.data_type())
            {
                let message = format!("expected a column {ours}, found {theirs}");
                return Err(Error::usage(ErrorKind::unsupported(message)));
            }
        }
        if ours.len() == theirs.len() {
            return Ok(());
        }
        let message = format!("expected {} columns, found {}", ours.len(), theirs.len());
        Err(Error::usage(ErrorKind::unsupported(message)))
    }

    /// Writes the values of one column of bytes as records.
    fn encode_raw(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let Some(plan) = self.columns.first() else {
            return Ok(());
        };
        let mut ledger = Ledger::new(plan, self.allowed, self.records, &mut self.losses);
        let array = columns::records(plan, batch.column(plan.index), &mut ledger)?;
        let payload = columns::bytes_of(&array, plan.leaf.values());
        let lens: Vec<_> = (0..array.len())
            .map(|row| payload(row).len() as u64)
            .collect();
        out.reserve(self.framed_len(&lens)?);
        (0..array.len()).for_each(|row| frame::write(payload(row), out));
        Ok(())
    }

    /// Writes messages of the type that is given, or that the schema has in its metadata.
    fn encode_messages(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let Some(NestedEncoder::Message(message)) = &self.nested else {
            return Ok(());
        };
        let start = out.len();
        let encoded = message.encode(batch, |record| {
            check_len(record.len() as u64)?;
            frame::write(record, out);
            Ok(())
        });
        encoded.map_err(|(row, kind)| {
            let offset = self.bytes + (out.len() - start) as u64;
            out.truncate(start);
            Error::at(kind, self.records + row as u64, offset).of_row()
        })
    }

    /// Writes records, by way of their canonical form if the batch has the column `_tfarrow_exact`.
    fn encode_features(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let Some(plan) = self
            .columns
            .iter()
            .find(|plan| plan.role == Role::Exact)
            .cloned()
        else {
            return self.encode_canonical(batch, out);
        };
        let mut canonical = mem::take(&mut self.canonical);
        canonical.clear();
        self.encode_canonical(batch, &mut canonical)?;
        self.restore(&plan, batch, &canonical, out)?;
        self.canonical = canonical;
        Ok(())
    }

    /// Writes records in their original form, given their canonical form and the differences.
    fn restore(
        &mut self,
        plan: &ColumnPlan,
        batch: &RecordBatch,
        canonical: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut ledger = Ledger::new(plan, self.allowed, self.records, &mut self.losses);
        let array = columns::converted(plan, batch.column(plan.index), &mut ledger)?;
        let difference = columns::bytes_of(&array, plan.leaf.values());
        let start = out.len();
        let mut unfit = 0;
        for (row, (frame, canonical)) in frame::frames(canonical).enumerate() {
            let difference = if array.is_valid(row) {
                difference(row)
            } else {
                &[]
            };
            if difference.is_empty() {
                out.extend_from_slice(frame);
                continue;
            }
            match exact::restore(canonical, difference) {
                Ok(record) => frame::write(&record, out),
                Err(exact::Unfit) => {
                    let found = "a form that its features cannot have";
                    let refused = ledger.refuse(
                        row,
                        found,
                        "leave the column out, so that records have their usual form",
                    );
                    if refused.is_err() {
                        out.truncate(start);
                    }
                    refused?;
                    unfit += 1;
                    out.extend_from_slice(frame);
                }
            }
        }
        ledger.count("forms of other records dropped", unfit);
        Ok(())
    }

    /// Writes records in their canonical form: features in the order of the columns, then feature
    /// lists.
    ///
    /// Columns are converted and measured first, so that an error leaves `out` unchanged.
    fn encode_canonical(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        if let Some(NestedEncoder::ExampleList(list)) = &mut self.nested {
            return list.encode(batch, self.records, out);
        }
        let rows = batch.num_rows();
        let mut features = Message::new(1, rows);
        let mut feature_lists = Message::new(2, rows);
        let mut unset = None;
        let mut lists: Vec<(&ColumnPlan, Vec<_>)> = Vec::new();
        for plan in &self.columns {
            let mut ledger = Ledger::new(plan, self.allowed, self.records, &mut self.losses);
            let array = batch.column(plan.index);
            match plan.role {
                Role::Feature | Role::Context => {
                    features.push(plan, columns::column(plan, array, &mut ledger)?);
                    if plan.splits {
                        columns::check_kinds(plan, &features, rows, &mut ledger)?;
                    }
                }
                Role::Sequence => {
                    let part = columns::steps(plan, array, &mut ledger)?;
                    match lists
                        .iter_mut()
                        .find(|(of, _)| plan.splits && of.feature == plan.feature)
                    {
                        Some((_, parts)) => parts.push(part),
                        None => lists.push((plan, vec![part])),
                    }
                }
                Role::Unset => unset = Some((plan, array)),
                // `plan` gives these roles to no column of features.
                Role::Record | Role::Index | Role::Offset | Role::Examples | Role::Exact => {}
            }
        }
        for (plan, parts) in lists {
            let mut ledger = Ledger::new(plan, self.allowed, self.records, &mut self.losses);
            columns::check_joins(&parts, rows, &mut ledger)?;
            feature_lists.push(plan, Some(feature::feature_list(&plan.feature, parts)));
        }
        if let Some((plan, array)) = unset {
            let mut ledger = Ledger::new(plan, self.allowed, self.records, &mut self.losses);
            features.push(plan, columns::unset(plan, array, &features, &mut ledger)?);
        }
        let messages = [features, feature_lists];
        let lens = record::lens(&messages, rows);
        out.reserve(self.framed_len(&lens)?);
        record::write(&messages, &lens, out);
        Ok(())
    }

    /// Returns the size of the frames of records with these lengths, and checks the limit of a
    /// record.
    fn framed_len(&self, lens: &[u64]) -> Result<usize> {
        let mut framed = 0;
        for (row, len) in lens.iter().enumerate() {
            check_len(*len)
                .map_err(|kind| Error::at(kind, self.records + row as u64, self.bytes + framed))?;
            framed += len + (frame::HEADER + frame::FOOTER) as u64;
        }
        Ok(framed as usize)
    }
}

/// Checks the length of a record against the maximum of protobuf.
fn check_len(found: u64) -> Result<(), ErrorKind> {
    let what = "bytes in one record";
    let limit = MOST_RECORD_BYTES as u64;
    if found > limit {
        Err(ErrorKind::Limit {
            what,
            limit,
            found,
            name: None,
        })
    } else {
        Ok(())
    }
}
