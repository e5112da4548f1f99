//! Decoding of `ExampleListWithContext` records: Examples inside of records.
//!
//! The Examples of a batch are decoded as records of their own, by a [`BatchDecoder`] for the
//! contexts and one for the examples of all lists.
//!
//! ```text
//! records     {context: c1, examples: [e1, e2]}   {context: c2, examples: [e3]}
//! contexts    c1  c2                               one row for each record
//! examples    e1  e2  e3                           the items of a list column with the lengths 2 and 1
//! ```

use std::{borrow::Cow, sync::Arc};

use arrow_array::{ArrayRef, ListArray, StructArray, new_null_array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, Fields};

use super::{BatchDecoder, DecoderOptions};
use crate::{
    Error, ErrorKind, Limits, OnError, RecordType, Records, Result, VerifyCrc, WireError,
    decode::column::{self, ColumnError},
    example::{
        list::ExampleList,
        tape::{Losses, Tape, offset_in},
    },
    frame::Span,
    limits::NESTED_CELLS,
    schema,
};

/// Decodes records that are `ExampleListWithContext` messages.
#[derive(Debug)]
pub(super) struct ExampleListDecoder {
    /// The columns, in the order of the arrays.
    columns: Vec<ListColumn>,
    /// Decodes the contexts.
    context: BatchDecoder,
    /// Decodes the examples of all lists; `None` if no column has them.
    examples: Option<BatchDecoder>,
    limits: Limits,
    strict: bool,
    /// The first field that the message does not define, and the number of such fields.
    foreign: Option<(u32, u64)>,
}

/// What records have and no column keeps.
struct ListLosses {
    context: Losses,
    examples: Option<Losses>,
    /// See [`ExampleListDecoder::foreign`].
    foreign: Option<(u32, u64)>,
}

/// A column of these records.
#[derive(Debug)]
enum ListColumn {
    /// The column of the contexts with this index.
    Context(usize),
    /// The list of examples, with its type.
    Examples(DataType),
}

impl ExampleListDecoder {
    /// Creates a decoder of the columns at the indices `wanted` of `fields`, which are those of the
    /// schema that are not about records as a whole.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a column or a field that Examples are not decoded to, and for
    /// a second column of examples.
    pub(super) fn try_new(
        fields: &[FieldRef],
        wanted: &[usize],
        options: &DecoderOptions,
    ) -> Result<Self> {
        let mut columns = Vec::new();
        let mut of_context = Vec::new();
        let mut of_examples = None::<&Fields>;
        for field in fields {
            match schema::fields_of_examples(field) {
                None => {
                    columns.push(ListColumn::Context(of_context.len()));
                    of_context.push(field.as_ref().clone());
                }
                Some(_) if of_examples.is_some() => {
                    let reason = format!(
                        "column {:?}: a second column of the examples of a record",
                        field.name()
                    );
                    return Err(Error::usage(ErrorKind::unsupported(reason)));
                }
                Some(fields) => {
                    schema::check_example_fields(field, fields)?;
                    columns.push(ListColumn::Examples(field.data_type().clone()));
                    of_examples = Some(fields);
                }
            }
        }
        // A feature whose column is not wanted is known to the schema.
        let mut shown = Vec::new();
        let mut in_context = Vec::new();
        for column in wanted.iter().filter_map(|index| columns.get(*index)) {
            shown.push(match column {
                ListColumn::Context(index) => {
                    in_context.push(*index);
                    ListColumn::Context(in_context.len() - 1)
                }
                ListColumn::Examples(data_type) => ListColumn::Examples(data_type.clone()),
            });
        }
        let has_examples = shown
            .iter()
            .any(|column| matches!(column, ListColumn::Examples(_)));
        // The CRC is over the complete record, and an error in a part is an error of the record.
        let of_part = DecoderOptions {
            verify_crc: VerifyCrc::Never,
            on_error: OnError::Fail,
            strict: options.strict,
            limits: options.limits,
            ..Default::default()
        };
        let of_contexts = DecoderOptions {
            // Without columns of a context, its features are walked all the same, to report them as
            // unknown.
            counts_unknown: of_context.len() == in_context.len(),
            projection: Some(in_context),
            ..of_part.clone()
        };
        let schema = schema::with_record_type(of_context, RecordType::Example);
        let context = BatchDecoder::try_new(&schema, of_contexts)?;
        let examples = match of_examples {
            Some(fields) if has_examples => {
                let fields = fields.iter().map(|field| field.as_ref().clone()).collect();
                let schema = schema::with_record_type(fields, RecordType::Example);
                Some(BatchDecoder::try_new(&schema, of_part)?)
            }
            _ => None,
        };
        Ok(Self {
            columns: shown,
            context,
            examples,
            limits: options.limits,
            strict: options.strict,
            foreign: None,
        })
    }

    /// The decoders of the parts of a record.
    fn decoders(&self) -> impl Iterator<Item = &BatchDecoder> {
        [&self.context].into_iter().chain(&self.examples)
    }

    /// The tapes of the parts of a record.
    pub(super) fn tapes(&self) -> Vec<&Tape> {
        self.decoders().flat_map(BatchDecoder::tapes).collect()
    }

    /// Returns the number of the first field that the message does not define, and the number of
    /// such fields.
    pub(super) fn foreign(&self) -> Option<(u32, u64)> {
        let mut all = self.foreign;
        for decoder in self.decoders() {
            if let Some((field, count)) = decoder.foreign_fields() {
                all.get_or_insert((field, 0)).1 += count;
            }
        }
        all
    }

    /// Checks one record, without counting its losses.
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode).
    pub(super) fn check(&mut self, record: &[u8], chunk: &Buffer) -> column::Result<()> {
        let before = self.losses();
        let checked = self.try_decode(&[Some(record)], chunk);
        self.set_losses(before);
        checked.map(drop)
    }

    /// Decodes one record for each row, to an array for each column. A row without a record gets
    /// nulls and an empty list. The records are part of `chunk`, to which long values of view
    /// arrays refer.
    ///
    /// # Errors
    /// A record that does not parse, does not fit the columns or exceeds a limit, with its row; and
    /// arrays that exceed Arrow's offsets. The losses of these records are not counted then, since
    /// the others are decoded again.
    pub(super) fn decode(
        &mut self,
        records: &[Option<&[u8]>],
        chunk: &Buffer,
    ) -> column::Result<Vec<ArrayRef>> {
        let before = self.losses();
        let decoded = self.try_decode(records, chunk);
        if decoded.is_err() {
            self.set_losses(before);
        }
        decoded
    }

    /// The losses of the contexts and of the examples, and the fields that the message does not
    /// define.
    fn losses(&self) -> ListLosses {
        ListLosses {
            context: self.context.losses(),
            examples: self.examples.as_ref().map(BatchDecoder::losses),
            foreign: self.foreign,
        }
    }

    fn set_losses(&mut self, losses: ListLosses) {
        self.context.set_losses(losses.context);
        if let (Some(decoder), Some(losses)) = (&mut self.examples, losses.examples) {
            decoder.set_losses(losses);
        }
        self.foreign = losses.foreign;
    }

    fn try_decode(
        &mut self,
        records: &[Option<&[u8]>],
        chunk: &Buffer,
    ) -> column::Result<Vec<ArrayRef>> {
        let mut contexts = Vec::with_capacity(records.len());
        let mut examples = Vec::new();
        let mut offsets = vec![0];
        for (row, record) in records.iter().enumerate() {
            let list = ExampleList::parse(record.unwrap_or_default(), self.limits.nesting);
            let list = list.map_err(|error| ColumnError::Row {
                row,
                kind: ErrorKind::of_wire(error, RecordType::ExampleList),
            })?;
            if let Some((field, count)) = list.foreign {
                self.check_foreign(field)
                    .map_err(|kind| ColumnError::Row { row, kind })?;
                self.foreign.get_or_insert((field, 0)).1 += count;
            }
            if self.cells(list.examples.len()) > NESTED_CELLS {
                return Err(ColumnError::Row {
                    row,
                    kind: ErrorKind::Wire(WireError::ManyMessages),
                });
            }
            contexts.push(list.context.unwrap_or_default());
            examples.extend(list.examples.into_iter().map(Cow::Borrowed));
            column::within(
                "examples times columns",
                self.cells(examples.len()),
                NESTED_CELLS as u64,
            )?;
            offsets.push(examples.len() as i32);
        }
        let context = parts_of(chunk, &contexts).and_then(|parts| self.context.decode(&parts));
        let context = context.map_err(|error| {
            let row = error.position().record as usize;
            part_error(error, row, "")
        })?;
        let items = match &mut self.examples {
            None => None,
            Some(decoder) => {
                let decoded = parts_of(chunk, &examples).and_then(|parts| decoder.decode(&parts));
                Some(decoded.map_err(|error| in_example(error, &offsets))?)
            }
        };
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let mut arrays = Vec::new();
        for column in &self.columns {
            arrays.push(match (column, &items) {
                (ListColumn::Context(index), _) => Arc::clone(context.column(*index)),
                (ListColumn::Examples(DataType::List(item)), Some(items)) => {
                    let items = Arc::new(StructArray::from(items.clone()));
                    let list = ListArray::try_new(Arc::clone(item), offsets.clone(), items, None);
                    Arc::new(list.map_err(ColumnError::Arrow)?) as ArrayRef
                }
                // There is a decoder of examples if a column has them, and such a column is a list.
                (ListColumn::Examples(data_type), _) => new_null_array(data_type, records.len()),
            });
        }
        Ok(arrays)
    }

    fn check_foreign(&self, field: u32) -> Result<(), ErrorKind> {
        let record_type = RecordType::ExampleList.name();
        if self.strict {
            Err(ErrorKind::Foreign { field, record_type })
        } else {
            Ok(())
        }
    }

    /// The number of array elements of this number of examples.
    fn cells(&self, examples: usize) -> usize {
        let columns = self.examples.as_ref().map_or(1, |decoder| {
            schema::array_count(decoder.schema().fields()).max(1)
        });
        examples.saturating_mul(columns)
    }
}

/// Makes the error in an example, with its number in its list. `offsets` are the ends of the lists,
/// from 0 on.
fn in_example(error: Error, offsets: &[i32]) -> ColumnError {
    let example = error.position().record as usize;
    let row = offsets
        .partition_point(|end| *end as usize <= example)
        .saturating_sub(1);
    let number = example - offsets.get(row).map_or(0, |start| *start as usize);
    part_error(
        error,
        row,
        &format!("{}[{number}]", schema::EXAMPLES_COLUMN),
    )
}

/// Makes an error of a column from one of a part of a record, whose name is added to that of the
/// feature.
fn part_error(error: Error, row: usize, part: &str) -> ColumnError {
    let (kind, feature) = error.into_parts();
    match kind {
        ErrorKind::BatchLimit {
            what, found, limit, ..
        } => ColumnError::Overflow { what, found, limit },
        ErrorKind::Arrow(error) => ColumnError::Arrow(error),
        // The context is not named, so that the error is one of the record.
        ErrorKind::Wire(error) if part.is_empty() && feature.is_none() => ColumnError::Row {
            row,
            kind: ErrorKind::of_wire(error, RecordType::ExampleList),
        },
        kind => {
            let feature = match (part.is_empty(), feature) {
                (false, Some(feature)) => Some(format!("{part}.{feature}").into()),
                (false, None) => Some(part.into()),
                (true, feature) => feature,
            };
            ColumnError::Part { row, kind, feature }
        }
    }
}

/// The parts of records as records of their own. A part that was concatenated is not in the chunk:
/// all are copied then.
///
/// # Errors
/// [`ErrorKind::Limit`] for a concatenated part that is too long.
fn parts_of(chunk: &Buffer, parts: &[Cow<'_, [u8]>]) -> Result<Records> {
    let mut spans = Vec::with_capacity(parts.len());
    for part in parts {
        spans.push(if part.is_empty() {
            Span::EMPTY
        } else if let Some(offset) = offset_in(chunk, part) {
            Span::new(offset, part.len())
        } else {
            return Records::from_payloads(parts.iter().map(|part| &**part));
        });
    }
    Ok(Records::of_parts(chunk.clone(), spans))
}
