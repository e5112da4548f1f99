//! Encoding of `ExampleListWithContext` records: Examples inside of records.
//!
//! The contexts and the examples of a batch are encoded as records of their own, and put together
//! row by row.
//!
//! ```text
//! columns     query   examples                                     record of the row
//! row         "q"     [{relevance: 1}, {relevance: 0}]             0a len {relevance: 1}  0a len {relevance: 0}
//!                                                                  12 len {query: "q"}
//! ```

use std::ops::Range;

use arrow_array::{
    Array, ListArray, RecordBatch, RecordBatchOptions, StructArray, UInt64Array, cast::AsArray,
};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::take::take;

use super::{Encoder, Loss, WriterBuilder, check_len};
use crate::{
    Error, ErrorKind, RecordType, Result, Role,
    encode::{lists::with_short_offsets, losses::AllowedLosses, plan::item},
    example::{list::FIELD_2, wire},
    frame, schema,
};

/// Encodes batches as `ExampleListWithContext` messages.
#[derive(Debug)]
pub(super) struct ExampleListEncoder {
    /// The indices of the columns of the context.
    context_columns: Vec<usize>,
    /// Encodes the contexts.
    context: Encoder,
    /// The index of the list of examples, with the encoder of its items; `None` if there is no such
    /// column.
    examples: Option<(usize, Encoder)>,
    /// The changes of values that are no errors.
    allowed: AllowedLosses,
    /// Number of null examples that were left out.
    nulls: u64,
}

/// The examples of a batch that are written.
#[derive(Default)]
struct ListedExamples {
    /// The index of each example in the items of the list column.
    items: Vec<usize>,
    /// Number of examples up to the end of the list of each row.
    ends: Vec<usize>,
    /// The indices of the items of the lists that are null, and the rows of these lists.
    nulls: Vec<(usize, usize)>,
}

impl ListedExamples {
    /// Lists the examples of a column. A row that is null has no examples, whatever the items under
    /// it are.
    fn of(lists: &ListArray) -> Self {
        let mut listed = Self::default();
        for (row, range) in lists.value_offsets().windows(2).enumerate() {
            let &[start, end] = range else { continue };
            let range = if lists.is_valid(row) {
                start as usize..end as usize
            } else {
                0..0
            };
            for item in range {
                if lists.values().is_valid(item) {
                    listed.items.push(item)
                } else {
                    listed.nulls.push((item, row))
                }
            }
            listed.ends.push(listed.items.len());
        }
        listed
    }

    /// Returns the items of the examples.
    ///
    /// # Errors
    /// Items that Arrow cannot copy.
    fn items(&self, lists: &ListArray) -> Result<StructArray> {
        let start = self.items.first().copied().unwrap_or_default();
        let count = self.items.len();
        if self
            .items
            .last()
            .is_none_or(|last| last - start + 1 == count)
        {
            return Ok(lists.values().as_struct().slice(start, count));
        }
        let items: UInt64Array = self.items.iter().map(|item| *item as u64).collect();
        Ok(take(lists.values(), &items, None)?.as_struct().clone())
    }

    /// The row of an example.
    fn row_of(&self, example: usize) -> usize {
        self.ends.partition_point(|end| *end <= example)
    }

    /// The examples of a row.
    fn of_row(&self, row: usize) -> Range<usize> {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before));
        start.copied().unwrap_or(0)..self.ends.get(row).copied().unwrap_or(0)
    }

    /// The feature of an example, with the number of the example in its list, such as
    /// `examples[2].relevance`.
    fn place_of(&self, example: usize, row: usize, lists: &ListArray, feature: &str) -> String {
        let start = lists
            .value_offsets()
            .get(row)
            .map_or(0, |start| *start as usize);
        let number = self.items.get(example).map_or(0, |item| item - start);
        format!("{}[{number}].{feature}", schema::EXAMPLES_COLUMN)
    }
}

impl ExampleListEncoder {
    /// Creates an encoder of batches of `schema`, whose column with differences to canonical
    /// records it ignores. Columns that no Example can hold are left out, and their errors are
    /// returned.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a second list of structs, and for a field of the structs that
    /// is no feature.
    pub(super) fn try_new(
        schema: &SchemaRef,
        allowed: AllowedLosses,
    ) -> Result<(Self, Vec<Error>)> {
        let mut context_columns = Vec::new();
        let mut of_examples = None::<(usize, &Fields)>;
        for (index, field) in schema.fields().iter().enumerate() {
            match fields_of_examples(field) {
                Some(_) if of_examples.is_some() => {
                    let reason = "a second list of structs, and a record has one list of examples";
                    return Err(
                        Error::usage(ErrorKind::unsupported(reason)).with_feature(field.name())
                    );
                }
                Some(fields) => {
                    schema::check_example_fields(field, fields)?;
                    of_examples = Some((index, fields));
                }
                None if schema::is_exact(field) => {}
                None => context_columns.push(index),
            }
        }
        let (context, mut errors) = example_builder(allowed)
            .build_partial_encoder(schema.project(&context_columns)?.into())?;
        let examples = match of_examples {
            None => None,
            Some((index, fields)) => {
                let (encoder, of_examples) = example_builder(allowed)
                    .build_partial_encoder(Schema::new(fields.clone()).into())?;
                errors.extend(of_examples.into_iter().map(|error| {
                    let (kind, feature) = error.into_parts();
                    let feature = format!(
                        "{}.{}",
                        schema::EXAMPLES_COLUMN,
                        feature.unwrap_or_default()
                    );
                    Error::usage(in_list(kind, None)).with_feature(&feature)
                }));
                Some((index, encoder))
            }
        };
        Ok((
            Self {
                context_columns,
                context,
                examples,
                allowed,
                nulls: 0,
            },
            errors,
        ))
    }

    /// Sets whether floats of the next rows are rounded, as [`Encoder::set_rounding`].
    pub(super) fn set_rounding(&mut self, rounding: bool) {
        self.context.set_rounding(rounding);
        self.examples
            .iter_mut()
            .for_each(|(_, encoder)| encoder.set_rounding(rounding));
    }

    /// The changes of values so far, as [`Encoder::losses`].
    pub(super) fn losses(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let encoders = [&self.context]
            .into_iter()
            .chain(self.examples.as_ref().map(|(_, encoder)| encoder));
        let nulls = (
            schema::EXAMPLES_COLUMN,
            "nulls in lists dropped",
            self.nulls,
        );
        let of_encoders = encoders.flat_map(|encoder| encoder.losses.iter().map(Loss::parts));
        of_encoders.chain([nulls].into_iter().filter(|(.., times)| *times > 0))
    }

    /// Appends the frames of the records of a batch to `out`. `first` is the number of the first
    /// one.
    ///
    /// # Errors
    /// Those of [`Encoder::encode`]. Nothing is written then.
    pub(super) fn encode(
        &mut self,
        batch: &RecordBatch,
        first: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut contexts = Vec::new();
        let mut examples = Vec::new();
        self.context.set_next(first);
        self.context
            .encode(&batch.project(&self.context_columns)?, &mut contexts)?;
        let listed = self.encode_examples(batch, first, &mut examples)?;
        let mut examples = frame::frames(&examples).map(|(_, example)| example);
        let before = out.len();
        let mut record = Vec::new();
        for (row, (_, context)) in frame::frames(&contexts).enumerate() {
            record.clear();
            let of_row = examples.by_ref().take(listed.of_row(row).len());
            of_row.for_each(|example| wire::put_bytes(example, &mut record));
            if !context.is_empty() {
                record.push(FIELD_2);
                wire::put_varint(context.len() as u64, &mut record);
                record.extend_from_slice(context);
            }
            if let Err(kind) = check_len(record.len() as u64) {
                out.truncate(before);
                return Err(Error::at(kind, first + row as u64, 0));
            }
            frame::write(&record, out);
        }
        Ok(())
    }

    /// Encodes the examples of all lists to `frames`.
    fn encode_examples(
        &mut self,
        batch: &RecordBatch,
        first: u64,
        frames: &mut Vec<u8>,
    ) -> Result<ListedExamples> {
        let Some((index, encoder)) = &mut self.examples else {
            return Ok(ListedExamples::default());
        };
        let lists = &with_short_offsets(batch.column(*index))?;
        let listed = ListedExamples::of(lists);
        if !self.allowed.all
            && let Some((_, row)) = listed.nulls.first()
        {
            let record = first + *row as u64;
            let reason = "a null in its list of examples; leave it out".to_owned();
            let kind = ErrorKind::Lossy {
                row: Some(record),
                reason,
                remedies: Vec::new(),
            };
            return Err(Error::at(kind, record, 0).with_feature(schema::EXAMPLES_COLUMN));
        }
        let items = listed.items(lists)?;
        let options = RecordBatchOptions::new().with_row_count(Some(items.len()));
        let columns = items.columns().to_vec();
        let examples = RecordBatch::try_new_with_options(
            SchemaRef::clone(&encoder.schema),
            columns,
            &options,
        )?;
        encoder.set_next(0);
        encoder.encode(&examples, frames).map_err(|error| {
            let example = error.position().record as usize;
            let row = listed.row_of(example);
            let feature = error.position().feature.as_deref().unwrap_or_default();
            let feature = listed.place_of(example, row, lists, feature);
            let record = first + row as u64;
            Error::at(in_list(error.into_parts().0, Some(record)), record, 0).with_feature(&feature)
        })?;
        self.nulls += listed.nulls.len() as u64;
        Ok(listed)
    }
}

/// Returns the builder of an encoder of Examples, whose losses are those `allowed`.
fn example_builder(allowed: AllowedLosses) -> WriterBuilder {
    WriterBuilder {
        allowed,
        ..WriterBuilder::new().with_record_type(RecordType::Example)
    }
}

/// Returns the fields of an example, if `field` is the column of the examples: as
/// [`schema::fields_of_examples`], for lists of any type.
fn fields_of_examples(field: &Field) -> Option<&Fields> {
    let DataType::Struct(fields) = item(field.data_type())? else {
        return None;
    };
    schema::role_of(field)
        .is_none_or(|role| role == Role::Examples)
        .then_some(fields)
}

/// Returns the error of an example as that of its record. It has no remedies, which are those of a
/// column of a query: a field of structs in a list is none.
fn in_list(kind: ErrorKind, record: Option<u64>) -> ErrorKind {
    match kind {
        ErrorKind::Lossy { row, reason, .. } => ErrorKind::Lossy {
            row: row.and(record),
            reason,
            remedies: Vec::new(),
        },
        ErrorKind::Unsupported { reason, .. } => ErrorKind::unsupported(reason),
        other => other,
    }
}
