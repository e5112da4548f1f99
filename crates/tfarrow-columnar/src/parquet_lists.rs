//! A reader of lists of numbers in Parquet files.
//!
//! Parquet stores a list as its numbers and two levels for each number: the *repetition level* is 0
//! where a row begins, and the *definition level* tells a number from a null item, an empty list
//! and a null list ([Dremel], described in [Parquet's nested encoding]):
//!
//! ```text
//! rows                [1, 2]   []   null   [3, null]
//! repetition levels    0  1    0    0       0  1
//! definition levels    3  3    1    0       3  2
//! values               1  2                 3
//! list offsets         0  2    2    2       4
//! ```
//!
//! Parquet's own reader passes over these levels five times, which took two fifths of the time of
//! conversions to TFRecord. This reader computes the offsets in one pass, and builds a bitmap of
//! items only if there are null items. The lists of features have none: conversions declare their
//! items as required, so that the definition level of an item is 2 and not 3.
//!
//! [Dremel]: https://research.google/pubs/dremel-interactive-analysis-of-web-scale-datasets-2/
//! [Parquet's nested encoding]: https://github.com/apache/parquet-format#nested-encoding

use std::{fs::File, marker::PhantomData, sync::Arc};

use arrow_array::{
    ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray,
    types::{Float32Type, Int64Type},
};
use arrow_buffer::{ArrowNativeType, NullBufferBuilder, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef};
use parquet::{
    arrow::arrow_reader::ArrowReaderMetadata,
    basic::Type,
    column::reader::ColumnReaderImpl,
    data_type::{self, DataType as ParquetType},
    errors::{ParquetError, Result},
    file::serialized_reader::SerializedPageReader,
    schema::types::ColumnDescriptor,
};

/// Definition levels of a nullable list of nullable items. The level 0 is a null list.
const EMPTY: i16 = 1;
const NULL_ITEM: i16 = 2;
const ITEM: i16 = 3;
/// The definition level of an item of a nullable list whose items are required.
const REQUIRED_ITEM: i16 = 2;

/// Reads one column of lists.
pub(crate) trait ListReader: Send {
    /// Reads the next `rows` rows.
    ///
    /// # Errors
    /// A column with fewer rows, and levels or pages that are corrupt.
    fn read(&mut self, rows: usize) -> Result<ArrayRef>;
}

/// The readers of a row group, by column; `None` for a column that this module does not read.
///
/// # Errors
/// Corrupt metadata.
pub(crate) fn readers(
    file: &Arc<File>,
    metadata: &ArrowReaderMetadata,
    group: usize,
) -> Result<Vec<Option<Box<dyn ListReader>>>> {
    let mut readers: Vec<_> = metadata.schema().fields().iter().map(|_| None).collect();
    for leaf in 0..metadata.parquet_schema().num_columns() {
        let column = metadata.parquet_schema().get_column_root_idx(leaf);
        let field = metadata.schema().fields().get(column);
        let Some((field, reader)) = field.zip(readers.get_mut(column)) else {
            continue;
        };
        *reader = reader_of(file, metadata, group, leaf, field)?;
    }
    Ok(readers)
}

fn reader_of(
    file: &Arc<File>,
    metadata: &ArrowReaderMetadata,
    group: usize,
    leaf: usize,
    field: &Field,
) -> Result<Option<Box<dyn ListReader>>> {
    let column = metadata.parquet_schema().column(leaf);
    let Some(item) = item(field, &column) else {
        return Ok(None);
    };
    let item = Arc::clone(item);
    let group = metadata.metadata().row_group(group);
    let rows = usize::try_from(group.num_rows())?;
    let pages = Box::new(SerializedPageReader::new(
        Arc::clone(file),
        group.column(leaf),
        rows,
        None,
    )?);
    Ok(match (item.data_type(), column.physical_type()) {
        (DataType::Int64, Type::INT64) => {
            let reader = ColumnReaderImpl::new(column, pages);
            Some(Box::new(
                ListColumn::<data_type::Int64Type, Int64Type>::new(reader, item),
            ))
        }
        (DataType::Float32, Type::FLOAT) => {
            let reader = ColumnReaderImpl::new(column, pages);
            Some(Box::new(
                ListColumn::<data_type::FloatType, Float32Type>::new(reader, item),
            ))
        }
        _ => None,
    })
}

/// The item field of a nullable list; `None` for other columns.
fn item<'f>(field: &'f Field, column: &ColumnDescriptor) -> Option<&'f FieldRef> {
    match field.data_type() {
        DataType::List(item) => Some(item).filter(|item| {
            let levels = (column.max_rep_level(), column.max_def_level());
            field.is_nullable()
                && levels
                    == (
                        1,
                        if item.is_nullable() {
                            ITEM
                        } else {
                            REQUIRED_ITEM
                        },
                    )
        }),
        _ => None,
    }
}

/// A column of lists: of the Parquet type `P`, and the Arrow type `A`.
struct ListColumn<P: ParquetType, A> {
    reader: ColumnReaderImpl<P>,
    item: FieldRef,
    /// The levels of the current read. The vectors are kept for their memory.
    definition: Vec<i16>,
    repetition: Vec<i16>,
    /// Maximum number of values in one read so far, which is allocated for the next.
    max_values: usize,
    array: PhantomData<A>,
}

impl<P: ParquetType, A> ListColumn<P, A> {
    fn new(reader: ColumnReaderImpl<P>, item: FieldRef) -> Self {
        Self {
            reader,
            item,
            definition: Vec::new(),
            repetition: Vec::new(),
            max_values: 0,
            array: PhantomData,
        }
    }
}

impl<P: ParquetType, A: ArrowPrimitiveType<Native = P::T> + Send> ListReader for ListColumn<P, A>
where
    P::T: ArrowNativeType,
{
    fn read(&mut self, rows: usize) -> Result<ArrayRef> {
        let definition = &mut self.definition;
        let repetition = &mut self.repetition;
        definition.clear();
        repetition.clear();
        let mut values = Vec::with_capacity(self.max_values);
        self.reader
            .read_records(rows, Some(definition), Some(repetition), &mut values)?;
        self.max_values = self.max_values.max(values.len());
        let lists = Lists::new(definition, repetition, rows)?;
        let values = if lists.items == values.len() {
            PrimitiveArray::<A>::new(values.into(), None)
        } else {
            with_nulls(definition, values)
        };
        Ok(Arc::new(ListArray::try_new(
            Arc::clone(&self.item),
            OffsetBuffer::new(lists.offsets.into()),
            Arc::new(values),
            lists.nulls.build(),
        )?))
    }
}

/// The offsets and nulls of lists, computed from levels.
struct Lists {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    /// Numbers and null items in all lists.
    items: usize,
}

/// Levels that are processed together: if no row begins among them, the compiler vectorizes the sum
/// of their items.
const BLOCK: usize = 32;

impl Lists {
    fn new(definition: &[i16], repetition: &[i16], rows: usize) -> Result<Self> {
        i32::try_from(definition.len())
            .map_err(|_| corrupt("the lists of one batch have more than 2^31 items"))?;
        let mut lists = Self {
            offsets: Vec::with_capacity(rows + 1),
            nulls: NullBufferBuilder::new(rows),
            items: 0,
        };
        let (definitions, definitions_left) = definition.as_chunks::<BLOCK>();
        let (repetitions, repetitions_left) = repetition.as_chunks::<BLOCK>();
        for (definition, repetition) in definitions.iter().zip(repetitions) {
            if repetition
                .iter()
                .map(|level| i16::from(*level == 0))
                .sum::<i16>()
                == 0
            {
                lists.items += definition
                    .iter()
                    .map(|level| i16::from(*level >= NULL_ITEM))
                    .sum::<i16>() as usize;
            } else {
                lists.add(definition, repetition);
            }
        }
        lists.add(definitions_left, repetitions_left);
        let is_valid =
            lists.offsets.len() == rows && repetition.first().is_none_or(|first| *first == 0);
        lists.offsets.push(lists.items as i32);
        if is_valid && definition.len() == repetition.len() {
            Ok(lists)
        } else {
            Err(corrupt(
                "the rows of a list column are not those of its row group",
            ))
        }
    }

    /// Adds levels among which rows may begin.
    fn add(&mut self, definition: &[i16], repetition: &[i16]) {
        let mut items = self.items;
        for (&definition, &repetition) in definition.iter().zip(repetition) {
            if repetition == 0 {
                // There are at most as many items as levels, whose number fits in an offset.
                self.offsets.push(items as i32);
                self.nulls.append(definition >= EMPTY);
            }
            items += usize::from(definition >= NULL_ITEM);
        }
        self.items = items;
    }
}

/// An array with the null items of the levels. `values` are the items that are not null.
fn with_nulls<A: ArrowPrimitiveType>(
    definition: &[i16],
    values: Vec<A::Native>,
) -> PrimitiveArray<A> {
    let mut values = values.into_iter();
    let items = definition.iter().filter(|level| **level >= NULL_ITEM);
    items
        .map(|level| if *level == ITEM { values.next() } else { None })
        .collect()
}

fn corrupt(message: &str) -> ParquetError {
    ParquetError::General(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(definition: &[i16], repetition: &[i16], rows: usize) -> Option<(Vec<i32>, usize)> {
        Lists::new(definition, repetition, rows)
            .ok()
            .map(|lists| (lists.offsets, lists.items))
    }

    #[test]
    fn inconsistent_levels_are_errors() {
        assert_eq!(
            lists(&[0, 1, 3, 2, 3], &[0, 0, 0, 1, 0], 4),
            Some((vec![0, 0, 0, 2, 3], 3))
        );
        assert_eq!(lists(&[], &[], 0), Some((vec![0], 0)));
        assert_eq!(lists(&[3, 3], &[0, 0], 3), None, "too few rows");
        assert_eq!(lists(&[3, 3], &[0, 0], 1), None, "too many rows");
        assert_eq!(
            lists(&[3, 3], &[1, 0], 1),
            None,
            "an item before the first row"
        );
        assert_eq!(lists(&[3, 3], &[0], 1), None, "a level missing");
        let definition = [ITEM; 100];
        let mut repetition = [1; 100];
        assert_eq!(
            lists(&definition, &repetition, 0),
            None,
            "items without a row"
        );
        repetition[0] = 0;
        assert_eq!(
            lists(&definition, &repetition, 1),
            Some((vec![0, 100], 100))
        );
        repetition[70] = 0;
        assert_eq!(
            lists(&definition, &repetition, 2),
            Some((vec![0, 70, 100], 100))
        );
    }
}
