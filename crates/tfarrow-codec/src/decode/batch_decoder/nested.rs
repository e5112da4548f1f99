//! Decoding of records with messages inside: their arrays are built all together.
//!
//! The arrays of messages of any type are built from the wire (`column/message/`), the arrays of an
//! `ExampleListWithContext` from its Examples (`example_list.rs`).

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use arrow_schema::{Field, SchemaRef};

use super::{BatchRows, DecoderOptions, example_list::ExampleListDecoder};
use crate::{
    Error, ErrorKind, RecordType, Records, Result,
    decode::column::{self, message::MessageDecoder},
    example::tape::Tape,
    message,
    schema::{self, Role},
};

/// The decoder of records with messages inside.
#[derive(Debug)]
pub(super) enum NestedDecoder {
    /// Messages of any type, by their descriptor.
    Message(Box<MessageDecoder>),
    /// Examples in a list.
    ExampleList(Box<ExampleListDecoder>),
}

impl NestedDecoder {
    /// Creates a decoder of the columns of `schema` at `indices`.
    ///
    /// # Errors
    /// [`ErrorKind::Descriptors`] for messages without a valid type, and [`ErrorKind::Unsupported`]
    /// for a column that the records are not decoded to.
    pub(super) fn try_new(
        schema: &SchemaRef,
        indices: &[usize],
        record_type: RecordType,
        options: &DecoderOptions,
    ) -> Result<Self> {
        match record_type {
            RecordType::Message => Self::of_messages(schema, indices, options),
            _ => Self::of_lists(schema, indices, options),
        }
    }

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
        let plan = message::plan_of_schema(schema, &fields)?.ok_or_else(|| {
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
        let mut all = Vec::new();
        let mut fields = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if !is_of_record(field) {
                all.push(index);
                fields.push(Arc::clone(field));
            }
        }
        let places: Vec<_> = indices
            .iter()
            .filter_map(|index| all.iter().position(|other| other == index))
            .collect();
        Ok(Self::ExampleList(Box::new(ExampleListDecoder::try_new(
            &fields, &places, options,
        )?)))
    }

    /// Decodes the rows to an array for each column. If errors are skipped, the rows whose record
    /// does not parse or does not fit are skipped, and the arrays are built without them.
    ///
    /// # Errors
    /// Such a record, unless errors are skipped, and arrays that exceed Arrow's offsets.
    pub(super) fn decode(
        &mut self,
        records: &Records,
        rows: &mut BatchRows,
    ) -> Result<Vec<ArrayRef>> {
        rows.check_crcs(records)?;
        let mut messages = Vec::new();
        for row in 0..rows.count(records) {
            let data = records.data(rows.record_of(row)).unwrap_or_default();
            messages.push((!rows.is_skipped(row)).then_some(data));
        }
        match self.try_decode(&messages, records.chunk()) {
            Ok(arrays) => return Ok(arrays),
            Err(fault) if !rows.skips() => return Err(rows.error(fault, records)),
            Err(_) => {}
        }
        // Each message is tried alone, so that many corrupt ones do not take a pass over the batch
        // each, and because a record that exceeds a limit may be the reason that the batch does.
        for (row, message) in messages.iter_mut().enumerate() {
            let Some(data) = *message else {
                continue;
            };
            let Err(fault) = self.check(data, records.chunk()) else {
                continue;
            };
            if fault.row().is_some() {
                rows.skip(row, rows.error(fault.map_row(|_| row), records))?;
                *message = None;
            }
        }
        match self.try_decode(&messages, records.chunk()) {
            Ok(arrays) => Ok(arrays),
            Err(fault) => Err(rows.error(fault, records)),
        }
    }

    /// Decodes one record for each row, to an array for each column. `None` makes a row of nulls
    /// and defaults.
    fn try_decode(
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

    /// Returns the number of the first field that the message does not define, and the number of
    /// such fields.
    pub(super) fn foreign(&self) -> Option<(u32, u64)> {
        match self {
            Self::Message(decoder) => decoder.foreign(),
            Self::ExampleList(decoder) => decoder.foreign(),
        }
    }

    /// The tapes of the Examples inside of the records.
    pub(super) fn tapes(&self) -> Vec<&Tape> {
        match self {
            Self::Message(_) => Vec::new(),
            Self::ExampleList(decoder) => decoder.tapes(),
        }
    }
}

/// Returns whether a column is about records as a whole.
pub(super) fn is_of_record(field: &Field) -> bool {
    matches!(
        schema::role_of(field),
        Some(Role::Record | Role::Index | Role::Offset | Role::Exact)
    )
}
