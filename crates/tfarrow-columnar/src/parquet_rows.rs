//! The rows of a Parquet file, in batches.
//!
//! Lists of numbers, which are most of the values of many data sets, are read by [`parquet_lists`].
//! All other columns are read by the Arrow reader of the `parquet` crate.

use std::{fs::File, ops::Range, path::Path, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
        },
    },
    errors::ParquetError,
};
use tfarrow_codec::BATCH_CELLS;
use tfarrow_dataset::{Error, Result, Shard};

use crate::{
    catch_panic::{catch_panic_in, until_error},
    folder_columns::FolderColumns,
    parquet_file::ParquetFile,
    parquet_lists::{self, ListReader},
    unreadable::{in_part, unreadable, unreadable_arrow, unreadable_parquet},
};

/// Maximum rows of a batch.
pub const BATCH_ROWS: usize = 8192;

/// Maximum uncompressed bytes of the rows in one batch, by the average of the row group.
const READ_BYTES: i64 = 4 << 20;

/// Reads the rows of some row groups of a Parquet file, in batches of bounded size. The columns of
/// its folders follow its own.
///
/// # Errors
/// A file that cannot be opened. Corrupt rows are errors of the iterator.
pub fn row_group_rows(
    shard: &Shard,
    parquet: &ParquetFile,
    groups: Range<usize>,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let file = File::open(shard.local_path()).map_err(|e| Error::io(&shard.path, e))?;
    let file = Arc::new(file);
    let parquet = parquet.clone();
    let path = shard.path.clone();
    let mut row = parquet.first_row(groups.start);
    let own = parquet.metadata.schema();
    let mut folders = FolderColumns::of(shard, own);
    if let Some(wanted) = &parquet.columns {
        folders.keep(wanted, own.fields().len());
    }
    let mut groups = groups;
    let mut open = None;
    Ok(until_error(move || {
        loop {
            let (group, mut rows) = match open.take() {
                Some(rows) => rows,
                None => match groups.next() {
                    Some(group) => {
                        row = parquet.first_row(group);
                        let rows = catch_panic_in(&path, || {
                            RowGroupReader::open(&file, &parquet, group, &path)
                        });
                        (group, rows.map_err(|e| in_row_group(&path, e, group, row))?)
                    }
                    None => return Ok(None),
                },
            };
            if let Some(batch) = catch_panic_in(&path, || rows.next())
                .map_err(|e| in_row_group(&path, e, group, row))?
            {
                row += batch.num_rows() as u64;
                open = Some((group, rows));
                return folders.add(batch).map(Some);
            }
        }
    }))
}

/// Adds the row group, and the first row that may be affected, to an error.
fn in_row_group(path: &Path, error: Error, group: usize, row: u64) -> Error {
    in_part(
        path,
        error,
        || format!("row group {group}, from row {row} on"),
        row,
    )
}

/// Reads the rows of one row group.
struct RowGroupReader {
    path: Arc<Path>,
    file: Arc<File>,
    metadata: ArrowReaderMetadata,
    group: usize,
    schema: SchemaRef,
    /// Reads the columns without a reader in `lists`. If there are none, it yields the number of
    /// rows of each batch.
    others: ParquetRecordBatchReader,
    /// The reader of each column of `schema`, the wanted columns, that is a list of numbers.
    lists: Vec<Option<Box<dyn ListReader>>>,
}

impl RowGroupReader {
    fn open(file: &Arc<File>, parquet: &ParquetFile, group: usize, path: &Path) -> Result<Self> {
        let ParquetFile {
            metadata,
            verifier,
            columns,
            ..
        } = parquet;
        verifier
            .iter()
            .try_for_each(|verifier| verifier.verify(path, file, parquet.groups(), group))?;
        let readers = parquet_lists::readers(file, metadata, group)
            .map_err(|e| unreadable_parquet(path, e))?;
        let mut wanted = Vec::new();
        let mut others = Vec::new();
        let mut lists = Vec::new();
        for (column, list) in readers.into_iter().enumerate() {
            if let Some(columns) = columns
                && columns.binary_search(&column).is_err()
            {
                continue;
            }
            wanted.push(column);
            if list.is_none() {
                others.push(column);
            }
            lists.push(list);
        }
        let others = ProjectionMask::roots(metadata.parquet_schema(), others);
        let schema = Arc::new(
            metadata
                .schema()
                .project(&wanted)
                .map_err(|e| unreadable_arrow(path, e))?,
        );
        let row_group = metadata.metadata().row_group(group);
        let row_bytes = row_group.total_byte_size() / row_group.num_rows().max(1);
        let max_rows = (BATCH_CELLS / row_group.num_columns().max(1)).clamp(1, BATCH_ROWS);
        let rows = usize::try_from(READ_BYTES / row_bytes.max(1))
            .unwrap_or(max_rows)
            .clamp(1, max_rows);
        let others = reader(file, metadata, group, others, path)?.with_batch_size(rows);
        let others = others.build().map_err(|e| unreadable_parquet(path, e))?;
        let file = Arc::clone(file);
        let metadata = metadata.clone();
        Ok(Self {
            path: path.into(),
            file,
            metadata,
            group,
            schema,
            others,
            lists,
        })
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let others = self
            .others
            .next()
            .transpose()
            .map_err(|e| self.in_column(e))?;
        others.map(|others| self.with_lists(&others)).transpose()
    }

    /// Adds the name of the column to an error of the reader of several columns, which does not
    /// know it. The columns are read one after the other until one fails.
    fn in_column(&self, error: ArrowError) -> Error {
        if matches!(error, ArrowError::IoError(..)) {
            return unreadable_arrow(&self.path, error);
        }
        for (column, field) in self.schema.fields().iter().enumerate() {
            let is_other = self.lists.get(column).is_some_and(Option::is_none);
            let Some(root) = self
                .metadata
                .schema()
                .index_of(field.name())
                .ok()
                .filter(|_| is_other)
            else {
                continue;
            };
            let mask = ProjectionMask::roots(self.metadata.parquet_schema(), [root]);
            let reader = reader(&self.file, &self.metadata, self.group, mask, &self.path);
            let failed = reader
                .ok()
                .and_then(|reader| reader.build().ok()?.find_map(Result::err));
            if let Some(failed) = failed {
                return unreadable(&self.path, in_words(field.name(), &failed));
            }
        }
        unreadable_arrow(&self.path, error)
    }

    /// Reads the lists of a batch, and puts all columns in the order of the schema.
    fn with_lists(&mut self, others: &RecordBatch) -> Result<RecordBatch> {
        let rows = others.num_rows();
        let mut others = others.columns().iter();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.lists.len());
        for list in &mut self.lists {
            let column = match list {
                Some(list) => list.read(rows),
                None => others.next().cloned().ok_or_else(|| {
                    ParquetError::General("internal error: a column was not read".to_owned())
                }),
            };
            columns.push(column.map_err(|e| unreadable_parquet(&self.path, e))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|e| unreadable_arrow(&self.path, e))
    }
}

/// The builder of a reader of some columns of a row group.
fn reader(
    file: &Arc<File>,
    metadata: &ArrowReaderMetadata,
    group: usize,
    columns: ProjectionMask,
    path: &Path,
) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = file.try_clone().map_err(|e| Error::io(path, e))?;
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
    Ok(reader.with_projection(columns).with_row_groups(vec![group]))
}

/// The error of a column.
fn in_words(column: &str, error: &ArrowError) -> String {
    let message = error.to_string();
    match message.contains("UTF-8") {
        true => format!(
            "column {column:?} is annotated as text, and has bytes that are not UTF-8; leave the column out, or write it again \
             as binary"
        ),
        false => format!("column {column:?}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use arrow_array::{
        Array, FixedSizeListArray, Int64Array, LargeListArray, ListArray, StringArray, StructArray,
        types::{Float32Type, Int64Type},
    };
    use arrow_schema::{DataType, Field, Schema};
    use arrow_select::concat::concat_batches;
    use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
    use tempfile::TempDir;
    use tfarrow_dataset::resolve;

    use super::*;

    const ROWS: usize = 20_000;

    /// A pseudorandom number below `end`.
    fn random(row: usize, salt: u64, end: u64) -> u64 {
        ((row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ salt.rotate_left(31)) >> 20) % end
    }

    /// A list: null in about one of six rows, empty in as many, and otherwise of fewer than
    /// `max_len` items.
    fn list<T>(
        row: usize,
        max_len: u64,
        item: impl Fn(u64) -> Option<T>,
    ) -> Option<Vec<Option<T>>> {
        match random(row, max_len, 6) {
            0 => None,
            1 => Some(Vec::new()),
            _ => Some(
                (0..random(row, max_len + 1, max_len))
                    .map(|i| item(random(row, i, 1 << 40)))
                    .collect(),
            ),
        }
    }

    fn ints(max_len: u64, item: impl Fn(u64) -> Option<i64>) -> ListArray {
        ListArray::from_iter_primitive::<Int64Type, _, _>(
            (0..ROWS).map(|row| list(row, max_len, &item)),
        )
    }

    fn floats(max_len: u64) -> ListArray {
        let item = |i| Some(f32::from_bits(i as u32));
        ListArray::from_iter_primitive::<Float32Type, _, _>(
            (0..ROWS).map(|row| list(row, max_len, item)),
        )
    }

    /// Lists of different lengths, with other columns before, between and after them.
    fn lists() -> Vec<(&'static str, ArrayRef)> {
        let ids =
            Int64Array::from_iter((0..ROWS).map(|row| Some(row as i64).filter(|row| row % 7 > 0)));
        let texts = StringArray::from_iter_values((0..ROWS).map(|row| format!("text {row}")));
        let item = Arc::new(Field::new("item", DataType::Int64, false));
        let (_, offsets, values, nulls) = ints(40, |i| Some(i as i64)).into_parts();
        let required = ListArray::new(item, offsets, values, nulls);
        vec![
            ("id", Arc::new(ids)),
            ("short", Arc::new(ints(4, |i| Some(i as i64)))),
            ("text", Arc::new(texts)),
            ("long", Arc::new(ints(200, |i| Some(i as i64 % 5)))),
            ("floats", Arc::new(floats(70))),
            ("required items", Arc::new(required)),
            (
                "null items",
                Arc::new(ints(20, |i| Some(i as i64).filter(|i| i % 3 > 0))),
            ),
            ("null", Arc::new(ints(1, |_| None).slice(0, ROWS))),
        ]
    }

    /// Columns that resemble lists of numbers, but have other levels or types.
    fn others() -> Vec<(&'static str, ArrayRef)> {
        let no_nulls = ints(9, |i| Some(i as i64));
        let large = LargeListArray::from_iter_primitive::<Int64Type, _, _>(
            (0..ROWS).map(|row| list(row, 5, |_| Some(1))),
        );
        let fixed = (0..ROWS).map(|row| Some(vec![Some(row as i64); 3]));
        let fixed = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(fixed, 3);
        let inner: ArrayRef = Arc::new(no_nulls);
        let field = Field::new("inner", inner.data_type().clone(), true);
        let within = StructArray::from(vec![(Arc::new(field), inner)]);
        vec![
            ("large", Arc::new(large)),
            ("fixed", Arc::new(fixed)),
            ("within", Arc::new(within)),
        ]
    }

    /// Writes a file with pages of a few rows, and row groups that are not a multiple of a page.
    fn write(columns: Vec<(&'static str, ArrayRef)>) -> (TempDir, Shard) {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("a.parquet");
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        );
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(9_000))
            .set_data_page_size_limit(1000)
            .set_write_batch_size(64)
            .build();
        let batch = batch.unwrap();
        let file = File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let shards = resolve(&[&path]).unwrap();
        (folder, shards.into_iter().next().unwrap())
    }

    /// Compares the rows with those of Parquet's own reader. Returns the number of columns read by
    /// each reader.
    fn compare(columns: Vec<(&'static str, ArrayRef)>) -> (usize, usize) {
        let (_folder, shard) = write(columns);
        let parquet = ParquetFile::open(&shard.path, shard.local_path()).unwrap();
        let metadata = &parquet.metadata;
        let groups = parquet.groups().len();
        assert_eq!(groups, 3);
        let ours: Vec<_> = row_group_rows(&shard, &parquet, 0..groups)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(ours.len() > groups, "several batches a row group");
        let file = File::open(&shard.path).unwrap();
        let theirs = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
            .build()
            .unwrap();
        let theirs: Vec<_> = theirs.map(Result::unwrap).collect();
        let schema: &Arc<Schema> = metadata.schema();
        assert_eq!(
            concat_batches(schema, &ours).unwrap(),
            concat_batches(schema, &theirs).unwrap()
        );
        let file = Arc::new(File::open(&shard.path).unwrap());
        let lists = parquet_lists::readers(&file, metadata, 0).unwrap();
        let read = lists.iter().filter(|list| list.is_some()).count();
        (read, lists.len() - read)
    }

    #[test]
    fn lists_are_equal_to_those_of_parquets_own_reader() {
        assert_eq!(compare(lists()), (6, 2));
        assert_eq!(compare(others()), (0, 3));
        assert_eq!(
            compare(lists().into_iter().chain(others()).collect()),
            (6, 5)
        );
    }

    #[test]
    fn a_file_with_only_lists_has_all_rows() {
        assert_eq!(
            compare(
                lists()
                    .into_iter()
                    .filter(|(name, _)| !["id", "text"].contains(name))
                    .collect()
            ),
            (6, 0)
        );
    }
}
