//! Lists of numbers out of Parquet.
//!
//! Parquet has no lists: every number stands with a *repetition level*, 0 where a row begins, and a *definition level*,
//! which says whether there is a number, or an empty list, or none ([Dremel], as told in [Parquet's nested encoding]).
//! Parquet's own reader goes over these levels five times, to end with bitmaps that say that no number is null. Features'
//! lists have no nulls in them, and so one pass is enough. The five took two fifths of the time in which such data sets
//! came back.
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

/// The definition levels of a list that may be null, of items that may be null.
const EMPTY: i16 = 1;
const NULL_ITEM: i16 = 2;
const ITEM: i16 = 3;

/// Reads one column of lists.
pub(crate) trait ListReader: Send {
    /// The next rows, of which there have to be so many.
    fn read(&mut self, rows: usize) -> Result<ArrayRef>;
}

/// A reader for each column of a row group that is a list of numbers as this module reads it.
pub(crate) fn readers(
    file: &Arc<File>,
    metadata: &ArrowReaderMetadata,
    group: usize,
) -> Result<Vec<Option<Box<dyn ListReader>>>> {
    let mut readers: Vec<_> = metadata.schema().fields().iter().map(|_| None).collect();
    for leaf in 0..metadata.parquet_schema().num_columns() {
        let column = metadata.parquet_schema().get_column_root_idx(leaf);
        let field = metadata.schema().fields().get(column);
        let Some((field, reader)) = field.zip(readers.get_mut(column)) else { continue };
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
    let Some(item) = item(field, &column) else { return Ok(None) };
    let item = Arc::clone(item);
    let group = metadata.metadata().row_group(group);
    let rows = usize::try_from(group.num_rows())?;
    let pages = Box::new(SerializedPageReader::new(Arc::clone(file), group.column(leaf), rows, None)?);
    Ok(match (item.data_type(), column.physical_type()) {
        (DataType::Int64, Type::INT64) => {
            Some(Box::new(Column::<data_type::Int64Type, Int64Type>::new(ColumnReaderImpl::new(column, pages), item)))
        }
        (DataType::Float32, Type::FLOAT) => {
            Some(Box::new(Column::<data_type::FloatType, Float32Type>::new(ColumnReaderImpl::new(column, pages), item)))
        }
        _ => None,
    })
}

/// The items of a column whose levels are those that this module knows.
fn item<'f>(field: &'f Field, column: &ColumnDescriptor) -> Option<&'f FieldRef> {
    match field.data_type() {
        DataType::List(item) => Some(item).filter(|item| {
            let levels = (column.max_rep_level(), column.max_def_level());
            field.is_nullable() && item.is_nullable() && levels == (1, ITEM)
        }),
        _ => None,
    }
}

struct Column<P: ParquetType, A> {
    reader: ColumnReaderImpl<P>,
    item: FieldRef,
    /// The levels of the rows in hand, kept for their memory.
    definition: Vec<i16>,
    repetition: Vec<i16>,
    /// Numbers in the rows before: the most that a read had.
    most: usize,
    array: PhantomData<A>,
}

impl<P: ParquetType, A> Column<P, A> {
    fn new(reader: ColumnReaderImpl<P>, item: FieldRef) -> Self {
        Self { reader, item, definition: Vec::new(), repetition: Vec::new(), most: 0, array: PhantomData }
    }
}

impl<P: ParquetType, A: ArrowPrimitiveType<Native = P::T> + Send> ListReader for Column<P, A>
where
    P::T: ArrowNativeType,
{
    fn read(&mut self, rows: usize) -> Result<ArrayRef> {
        let (definition, repetition) = (&mut self.definition, &mut self.repetition);
        definition.clear();
        repetition.clear();
        let mut values = Vec::with_capacity(self.most);
        self.reader.read_records(rows, Some(definition), Some(repetition), &mut values)?;
        self.most = self.most.max(values.len());
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

/// What levels say of lists.
struct Lists {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    /// Numbers and nulls in all lists.
    items: usize,
}

/// Levels that are looked at together: the compiler makes a few instructions of it where no row begins among them.
const TOGETHER: usize = 32;

impl Lists {
    fn new(definition: &[i16], repetition: &[i16], rows: usize) -> Result<Self> {
        i32::try_from(definition.len()).map_err(|_| broken("lists of more than 2^31 items in one batch"))?;
        let mut lists = Self { offsets: Vec::with_capacity(rows + 1), nulls: NullBufferBuilder::new(rows), items: 0 };
        let (definitions, definitions_left) = definition.as_chunks::<TOGETHER>();
        let (repetitions, repetitions_left) = repetition.as_chunks::<TOGETHER>();
        for (definition, repetition) in definitions.iter().zip(repetitions) {
            if repetition.iter().map(|level| i16::from(*level == 0)).sum::<i16>() == 0 {
                lists.items += definition.iter().map(|level| i16::from(*level >= NULL_ITEM)).sum::<i16>() as usize;
            } else {
                lists.begin(definition, repetition);
            }
        }
        lists.begin(definitions_left, repetitions_left);
        let whole = lists.offsets.len() == rows && repetition.first().is_none_or(|first| *first == 0);
        lists.offsets.push(lists.items as i32);
        if whole && definition.len() == repetition.len() {
            Ok(lists)
        } else {
            Err(broken("a column of lists has other rows than its row group"))
        }
    }

    /// Adds levels among which rows begin.
    fn begin(&mut self, definition: &[i16], repetition: &[i16]) {
        let mut items = self.items;
        for (&definition, &repetition) in definition.iter().zip(repetition) {
            if repetition == 0 {
                // No more than there are levels, which fit an offset.
                self.offsets.push(items as i32);
                self.nulls.append(definition >= EMPTY);
            }
            items += usize::from(definition >= NULL_ITEM);
        }
        self.items = items;
    }
}

/// Puts nulls where levels tell of items that are null. `values` are the others.
fn with_nulls<A: ArrowPrimitiveType>(definition: &[i16], values: Vec<A::Native>) -> PrimitiveArray<A> {
    let mut values = values.into_iter();
    let items = definition.iter().filter(|level| **level >= NULL_ITEM);
    items.map(|level| if *level == ITEM { values.next() } else { None }).collect()
}

fn broken(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(definition: &[i16], repetition: &[i16], rows: usize) -> Option<(Vec<i32>, usize)> {
        Lists::new(definition, repetition, rows).ok().map(|lists| (lists.offsets, lists.items))
    }

    #[test]
    fn levels_that_make_no_lists_are_refused() {
        assert_eq!(lists(&[0, 1, 3, 2, 3], &[0, 0, 0, 1, 0], 4), Some((vec![0, 0, 0, 2, 3], 3)));
        assert_eq!(lists(&[], &[], 0), Some((vec![0], 0)));
        assert_eq!(lists(&[3, 3], &[0, 0], 3), None, "fewer rows than asked for");
        assert_eq!(lists(&[3, 3], &[0, 0], 1), None, "more");
        assert_eq!(lists(&[3, 3], &[1, 0], 1), None, "an item before the first row");
        assert_eq!(lists(&[3, 3], &[0], 1), None, "a level missing");
        let (definition, mut repetition) = ([ITEM; 100], [1; 100]);
        assert_eq!(lists(&definition, &repetition, 0), None, "items of no row");
        repetition[0] = 0;
        assert_eq!(lists(&definition, &repetition, 1), Some((vec![0, 100], 100)));
        repetition[70] = 0;
        assert_eq!(lists(&definition, &repetition, 2), Some((vec![0, 70, 100], 100)));
    }
}
