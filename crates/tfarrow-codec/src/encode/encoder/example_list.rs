//! Encoding of `ExampleListWithContext` records: Examples inside of records.
//!
//! The contexts and the examples of a batch are encoded as records of their own, and put together row by row.
//!
//! ```text
//! columns     query   examples                                     record of the row
//! row         "q"     [{relevance: 1}, {relevance: 0}]             0a len {relevance: 1}  0a len {relevance: 0}
//!                                                                  12 len {query: "q"}
//! ```

use arrow_array::{Array, RecordBatch, RecordBatchOptions, StructArray, cast::AsArray};
use arrow_schema::{Fields, Schema, SchemaRef};

use super::{Encoder, EncoderBuilder, Loss, check_len};
use crate::{
    Error, ErrorKind, RecordType, Result,
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
    /// The index of the list of examples, with the encoder of its items; `None` if there is no such column.
    examples: Option<(usize, Encoder)>,
    lossy: bool,
    /// Number of null examples that were left out.
    nulls: u64,
}

/// The examples of a batch.
struct EncodedExamples<'a> {
    /// The payload of each example; `None` for a null.
    payloads: Vec<Option<&'a [u8]>>,
    /// The ends of the lists, from that of the first one's start on.
    offsets: &'a [i32],
}

impl ExampleListEncoder {
    /// Creates an encoder of batches of `schema`, whose column with differences to canonical records it ignores. Columns that
    /// no Example can hold are left out, and their errors are returned.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a second list of structs.
    pub(super) fn try_new(schema: &SchemaRef, lossy: bool) -> Result<(Self, Vec<Error>)> {
        let (mut context_columns, mut of_examples) = (Vec::new(), None::<(usize, &Fields)>);
        for (index, field) in schema.fields().iter().enumerate() {
            match schema::fields_of_examples(field) {
                Some(_) if of_examples.is_some() => {
                    let reason = "a second list of structs, and a record has one list of examples";
                    return Err(Error::usage(ErrorKind::unsupported(reason)).with_feature(field.name()));
                }
                Some(fields) => of_examples = Some((index, fields)),
                None if schema::is_exact(field) => {}
                None => context_columns.push(index),
            }
        }
        let builder = || EncoderBuilder::new().with_record_type(RecordType::Example).with_lossy(lossy);
        let (context, mut errors) = builder().build_partial(schema.project(&context_columns)?.into())?;
        let examples = match of_examples {
            None => None,
            Some((index, fields)) => {
                let (encoder, of_examples) = builder().build_partial(Schema::new(fields.clone()).into())?;
                errors.extend(of_examples);
                Some((index, encoder))
            }
        };
        Ok((Self { context_columns, context, examples, lossy, nulls: 0 }, errors))
    }

    /// The changes of values so far, as [`Encoder::losses`].
    pub(super) fn losses(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let encoders = [&self.context].into_iter().chain(self.examples.as_ref().map(|(_, encoder)| encoder));
        let nulls = (schema::EXAMPLES_COLUMN, "nulls in lists dropped", self.nulls);
        let of_encoders = encoders.flat_map(|encoder| encoder.losses.iter().map(Loss::parts));
        of_encoders.chain([nulls].into_iter().filter(|(.., times)| *times > 0))
    }

    /// Appends the frames of the records of a batch to `out`. `first` is the number of the first one.
    ///
    /// # Errors
    /// Those of [`Encoder::encode`]. Nothing is written then.
    pub(super) fn encode(&mut self, batch: &RecordBatch, first: u64, out: &mut Vec<u8>) -> Result<()> {
        let (mut contexts, mut examples) = (Vec::new(), Vec::new());
        self.context.set_next(first);
        self.context.encode(&batch.project(&self.context_columns)?, &mut contexts)?;
        let EncodedExamples { payloads, offsets } = self.encode_examples(batch, first, &mut examples)?;
        let start = offsets.first().copied().unwrap_or_default();
        let (before, mut record) = (out.len(), Vec::new());
        for (row, (_, context)) in frame::frames(&contexts).enumerate() {
            record.clear();
            let ends =
                offsets.get(row).zip(offsets.get(row + 1)).map_or((0, 0), |(from, to)| (from - start, to - start));
            let listed = payloads.get(ends.0 as usize..ends.1 as usize).unwrap_or_default();
            listed.iter().flatten().for_each(|example| wire::put_bytes(example, &mut record));
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

    /// Encodes the items of all lists to `frames`.
    fn encode_examples<'a>(
        &mut self,
        batch: &'a RecordBatch,
        first: u64,
        frames: &'a mut Vec<u8>,
    ) -> Result<EncodedExamples<'a>> {
        let Some((index, encoder)) = &mut self.examples else {
            return Ok(EncodedExamples { payloads: Vec::new(), offsets: &[] });
        };
        let lists = batch.column(*index).as_list::<i32>();
        let offsets = lists.value_offsets();
        let (start, end) = offsets.first().zip(offsets.last()).map_or((0, 0), |(start, end)| (*start, *end));
        let items = lists.values().slice(start as usize, (end - start) as usize);
        let items: &StructArray = items.as_struct();
        let row_of = |item: usize| offsets.partition_point(|end| (*end - start) as usize <= item).saturating_sub(1);
        if !self.lossy
            && let Some(item) = (0..items.len()).find(|item| items.is_null(*item))
        {
            let record = first + row_of(item) as u64;
            let reason = format!("row {record} has a null in its list of examples; leave it out");
            let kind = ErrorKind::Lossy { reason, remedies: Vec::new() };
            return Err(Error::at(kind, record, 0).with_feature(schema::EXAMPLES_COLUMN));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(items.len()));
        let columns = items.columns().to_vec();
        let examples = RecordBatch::try_new_with_options(SchemaRef::clone(&encoder.schema), columns, &options)?;
        encoder.set_next(0);
        encoder.encode(&examples, frames).map_err(|error| {
            let item = error.position().record as usize;
            let row = row_of(item);
            let number = item as i32 - (offsets.get(row).copied().unwrap_or_default() - start);
            let feature = error.position().feature.as_deref().unwrap_or_default();
            let feature = format!("{}[{number}].{feature}", schema::EXAMPLES_COLUMN);
            Error::at(error.into_parts().0, first + row as u64, 0).with_feature(&feature)
        })?;
        let payloads = frame::frames(frames).enumerate();
        let payloads: Vec<_> = payloads.map(|(item, (_, payload))| items.is_valid(item).then_some(payload)).collect();
        self.nulls += payloads.iter().filter(|payload| payload.is_none()).count() as u64;
        Ok(EncodedExamples { payloads, offsets })
    }
}
