//! Parquet files: pieces are encoded row groups.

mod columns;
mod encoding;
mod float_chunks;

use std::{
    collections::HashMap,
    mem,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{Array, RecordBatch};
use parquet::{
    arrow::{
        add_encoded_arrow_schema_to_metadata,
        arrow_writer::{
            ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
        },
    },
    basic::{
        Compression as ParquetCompression, Encoding, GzipLevel, LogicalType, Type as PhysicalType,
        ZstdLevel,
    },
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::{
            EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr,
        },
        writer::SerializedFileWriter,
    },
    schema::types::{ColumnPath, SchemaDescriptor},
};
use tfarrow_codec::{Role, schema::role_of};
use tfarrow_columnar::checksums::{self, ChecksumWriter};

pub(crate) use self::columns::ParquetColumns;
use self::encoding::ColumnEncoding;
use super::{FileFormat, PieceWriter, RowEncoder, RowFormat, WritePiece};
use crate::{Error, OutputCompression, Result, output::Output};

/// Bytes of the first rows of a row group, from which the encodings of its columns are chosen. The
/// batch that exceeds this number is the last of them.
const FIRST_ROWS_BYTES: usize = 8 << 20;

/// Maximum columns with a Bloom filter. Each takes up to 16 MiB per worker before it is reduced to
/// the size that its values need.
const MAX_BLOOM_FILTERS: usize = 64;
/// The probability that a Bloom filter does not exclude a value that its row group does not have.
/// That of DuckDB and Spark.
const BLOOM_FILTER_FPP: f64 = 0.01;
/// The fewest encoded bytes that a distinct value is expected to take.
const DISTINCT_BYTES: usize = 8;

/// Parquet files with these columns.
#[derive(Clone, Debug)]
pub(crate) struct ParquetFileFormat {
    pub(crate) columns: ParquetColumns,
    pub(crate) compression: OutputCompression,
    /// The level of the compression; by default that of the `parquet` crate.
    pub(crate) level: Option<u32>,
    /// Maximum rows of a row group.
    pub(crate) group_rows: usize,
    /// Encoded bytes at which a row group ends.
    pub(crate) group_bytes: usize,
    /// The indices of the columns with a Bloom filter, in ascending order.
    pub(crate) bloom_filters: Vec<usize>,
    /// Whether the file has a page index.
    pub(crate) page_index: bool,
}

impl FileFormat for ParquetFileFormat {
    type Piece = Vec<ArrowColumnChunk>;
    type Writer = ParquetFileWriter;

    fn create(&self, path: &Path, output: Output) -> Result<ParquetFileWriter> {
        let writer = self.begin(output).map_err(|e| Error::parquet(path, e))?;
        Ok(ParquetFileWriter {
            path: path.to_owned(),
            writer,
        })
    }

    /// More than any limit: a worker waits until its row group is written, so that it never holds
    /// two.
    fn held_bytes(_group: &Self::Piece) -> usize {
        usize::MAX
    }
}

impl RowFormat for ParquetFileFormat {
    type Encoder<'f> = RowGroupEncoder<'f>;

    fn encoder(&self) -> Result<RowGroupEncoder<'_>> {
        self.check_bloom_filters()?;
        Ok(RowGroupEncoder {
            format: self,
            group: RowGroup::new(self),
        })
    }
}

impl ParquetFileFormat {
    fn begin(&self, output: Output) -> Result<InnerWriter, ParquetError> {
        let root = self.columns.parquet.root_schema_ptr();
        let properties = self.properties(&[])?;
        let mut writer = SerializedFileWriter::new(ChecksumWriter::new(output), root, properties)?;
        writer.write_all(checksums::MARK)?;
        writer.flush()?;
        writer.inner_mut().begin()?;
        Ok(writer)
    }

    /// The column writers of a row group that begins with `first_rows`, which determine the
    /// encodings.
    fn column_writers(
        &self,
        first_rows: &[RecordBatch],
    ) -> Result<Vec<ArrowColumnWriter>, ParquetError> {
        let root = self.columns.parquet.root_schema_ptr();
        let properties = self.properties(first_rows)?;
        // Column writers can be created only from a file writer, which is otherwise not used.
        let writer = SerializedFileWriter::new(Vec::new(), root, properties)?;
        ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&self.columns.arrow))
            .create_column_writers(0)
    }

    /// The encoding of each column of a row group that begins with `first_rows`, by its name.
    fn encodings(&self, first_rows: &[RecordBatch]) -> HashMap<&str, ColumnEncoding> {
        let fields = self.columns.arrow.fields();
        let is_wide = fields.len() > encoding::MAX_COLUMNS;
        let min_values = if is_wide { encoding::MIN_VALUES } else { 0 };
        let mut dictionaries = 0;
        let mut deltas = 0;
        let mut encodings = HashMap::with_capacity(fields.len());
        for (column, field) in fields.iter().enumerate() {
            let values = first_rows
                .iter()
                .filter_map(|batch| batch.columns().get(column));
            let chosen = match role_of(field) {
                _ if dictionaries == encoding::MAX_COLUMNS => ColumnEncoding::Plain,
                Some(Role::Exact) => encoding::choose_for_exact(values),
                _ => encoding::choose(values, min_values, deltas < encoding::MAX_DELTA_COLUMNS),
            };
            dictionaries += usize::from(chosen == ColumnEncoding::Dictionary);
            deltas += usize::from(chosen == ColumnEncoding::Delta);
            encodings.insert(field.name().as_str(), chosen);
        }
        encodings
    }

    /// Checks the number of Bloom filters.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are too many.
    fn check_bloom_filters(&self) -> Result<()> {
        match self.bloom_filters.len() {
            0..=MAX_BLOOM_FILTERS => Ok(()),
            count => Err(Error::Usage(format!(
                "{count} columns would have a Bloom filter, each of which takes memory for the values of a row group; name at \
                 most {MAX_BLOOM_FILTERS}"
            ))),
        }
    }

    /// The maximum number of distinct values in a row group of this column. The values in each of
    /// the first rows are an estimate of those in all rows.
    fn max_distinct(&self, first_rows: &[RecordBatch], column: usize) -> u64 {
        let rows: usize = first_rows.iter().map(RecordBatch::num_rows).sum();
        let arrays = first_rows
            .iter()
            .filter_map(|batch| batch.columns().get(column));
        let values: usize = arrays.map(|array| encoding::leaf(array).len()).sum();
        let per_row = values.div_ceil(rows.max(1)).max(1);
        let values = per_row
            .saturating_mul(self.group_rows)
            .min(self.group_bytes / DISTINCT_BYTES);
        values.max(1) as u64
    }

    /// Adds the Bloom filters. Their number of distinct values is a maximum: the writer makes a
    /// filter as small as its values allow. Booleans have none, since a row group usually has both
    /// of them.
    fn with_bloom_filters(
        &self,
        columns: &SchemaDescriptor,
        first_rows: &[RecordBatch],
        properties: WriterPropertiesBuilder,
    ) -> WriterPropertiesBuilder {
        let leaves = columns
            .columns()
            .iter()
            .enumerate()
            .map(|(leaf, column)| (columns.get_column_root_idx(leaf), column));
        let with_filter = leaves.filter(|(root, column)| {
            self.bloom_filters.binary_search(root).is_ok()
                && column.physical_type() != PhysicalType::BOOLEAN
        });
        with_filter.fold(properties, |properties, (root, column)| {
            let path = column.path();
            properties
                .set_column_bloom_filter_enabled(path.clone(), true)
                .set_column_bloom_filter_fpp(path.clone(), BLOOM_FILTER_FPP)
                .set_column_bloom_filter_max_ndv(path.clone(), self.max_distinct(first_rows, root))
        })
    }

    /// The writer properties of row groups that begin with `first_rows`.
    fn properties(&self, first_rows: &[RecordBatch]) -> Result<WriterPropertiesPtr, ParquetError> {
        let encodings = self.encodings(first_rows);
        let ParquetColumns {
            arrow,
            parquet,
            key_values,
            ..
        } = &self.columns;
        let mut properties = WriterProperties::builder();
        for column in parquet.columns() {
            let path = column.path();
            // Shapes have no order, and the writer would compare their bytes.
            if let Some(LogicalType::Geometry(_) | LogicalType::Geography(_)) =
                column.logical_type_ref()
            {
                properties =
                    properties.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
            }
            let encoding = path
                .parts()
                .first()
                .and_then(|field| encodings.get(field.as_str()));
            if encoding == Some(&ColumnEncoding::Long) {
                properties = properties
                    .set_column_statistics_enabled(path.clone(), EnabledStatistics::None)
                    .set_column_data_page_size_limit(path.clone(), usize::MAX);
            }
            properties = match encoding {
                None | Some(ColumnEncoding::Dictionary) => properties,
                // Two columns of one name may have two types.
                Some(ColumnEncoding::Delta) if column.physical_type() == PhysicalType::INT64 => {
                    properties
                        .set_column_dictionary_enabled(path.clone(), false)
                        .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                }
                Some(ColumnEncoding::Delta | ColumnEncoding::Plain | ColumnEncoding::Long) => {
                    properties.set_column_dictionary_enabled(path.clone(), false)
                }
            };
        }
        let exact = arrow
            .fields()
            .iter()
            .filter(|field| role_of(field) == Some(Role::Exact));
        // An exact form is often a number of a few bytes. This encoding stores lengths as deltas
        // and not in 4 bytes each.
        let properties = exact.fold(properties, |builder, field| {
            builder.set_column_encoding(
                ColumnPath::from(field.name().as_str()),
                Encoding::DELTA_LENGTH_BYTE_ARRAY,
            )
        });
        let statistics = if self.page_index {
            EnabledStatistics::Page
        } else {
            EnabledStatistics::Chunk
        };
        let mut properties = self
            .with_bloom_filters(parquet, first_rows, properties)
            .set_compression(self.parquet_compression()?)
            .set_created_by(format!(
                "{}{}",
                checksums::CREATED_BY,
                env!("CARGO_PKG_VERSION")
            ))
            .set_statistics_enabled(statistics)
            .set_offset_index_disabled(!self.page_index)
            .set_max_row_group_row_count(Some(self.group_rows))
            .set_key_value_metadata(Some(key_values.clone()))
            .build();
        add_encoded_arrow_schema_to_metadata(arrow, &mut properties);
        Ok(Arc::new(properties))
    }

    /// # Errors
    /// A level that the compression does not have.
    fn parquet_compression(&self) -> Result<ParquetCompression, ParquetError> {
        Ok(match self.compression {
            OutputCompression::Zstd => ParquetCompression::ZSTD(match self.level {
                Some(level) => ZstdLevel::try_new(i32::try_from(level).unwrap_or(i32::MAX))?,
                None => ZstdLevel::default(),
            }),
            OutputCompression::Snappy => ParquetCompression::SNAPPY,
            OutputCompression::Gzip => ParquetCompression::GZIP(match self.level {
                Some(level) => GzipLevel::try_new(level)?,
                None => GzipLevel::default(),
            }),
            OutputCompression::Lz4 => ParquetCompression::LZ4_RAW,
            OutputCompression::None | OutputCompression::Zlib | OutputCompression::Original => {
                ParquetCompression::UNCOMPRESSED
            }
        })
    }
}

/// Encodes rows as row groups.
pub(crate) struct RowGroupEncoder<'f> {
    format: &'f ParquetFileFormat,
    group: RowGroup<'f>,
}

impl RowEncoder for RowGroupEncoder<'_> {
    type Piece = Vec<ArrowColumnChunk>;

    fn encode(
        &mut self,
        path: &Path,
        batch: RecordBatch,
        write: &mut WritePiece<'_, Self::Piece>,
    ) -> Result<()> {
        let batch = self.format.columns.cast(path, batch)?;
        if encoding::has_long_value(&batch) {
            self.end_unit(path, write)?;
            self.group.write(path, batch)?;
            return self.end_unit(path, write);
        }
        for part in parts(batch.num_rows(), self.format.group_rows, self.group.rows) {
            self.group
                .write(path, batch.slice(part.start, part.len()))?;
            if self.group.rows >= self.format.group_rows
                || self.group.bytes() >= self.format.group_bytes
            {
                self.end_unit(path, write)?;
            }
        }
        Ok(())
    }

    fn end_unit(&mut self, path: &Path, write: &mut WritePiece<'_, Self::Piece>) -> Result<()> {
        let group = mem::replace(&mut self.group, RowGroup::new(self.format));
        if group.rows > 0 {
            write(group.close(path)?)
        } else {
            Ok(())
        }
    }
}

/// Splits a batch of `batch` rows at the ends of row groups of `group_rows` rows. The current row
/// group has `rows`.
fn parts(batch: usize, group_rows: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let mut remaining = group_rows.max(1) - rows;
    std::iter::from_fn(move || {
        let end = batch.min(start + remaining);
        let part = start..end;
        (start, remaining) = (end, group_rows.max(1));
        (!part.is_empty()).then_some(part)
    })
}

/// A row group that is being encoded.
struct RowGroup<'f> {
    format: &'f ParquetFileFormat,
    /// The first rows, until there are enough to choose the encodings of the columns.
    first_rows: Vec<RecordBatch>,
    /// The writer of each leaf column; empty until the encodings are chosen.
    columns: Vec<ArrowColumnWriter>,
    /// Whether the column of each leaf has NaN.
    has_nan: Vec<bool>,
    rows: usize,
}

impl<'f> RowGroup<'f> {
    fn new(format: &'f ParquetFileFormat) -> Self {
        Self {
            format,
            first_rows: Vec::new(),
            columns: Vec::new(),
            has_nan: Vec::new(),
            rows: 0,
        }
    }

    fn write(&mut self, path: &Path, batch: RecordBatch) -> Result<()> {
        if batch.num_columns() == 0 && batch.num_rows() > 0 {
            return Err(Error::NoColumns);
        }
        self.rows += batch.num_rows();
        if !self.columns.is_empty() {
            return self.encode(&batch).map_err(|e| Error::parquet(path, e));
        }
        self.first_rows.push(batch);
        let is_enough = self.rows >= encoding::VALUES || self.bytes() >= FIRST_ROWS_BYTES;
        if is_enough {
            self.begin().map_err(|e| Error::parquet(path, e))
        } else {
            Ok(())
        }
    }

    /// Chooses the encodings, and encodes the first rows.
    fn begin(&mut self) -> Result<(), ParquetError> {
        let first_rows = mem::take(&mut self.first_rows);
        self.columns = self.format.column_writers(&first_rows)?;
        self.has_nan = vec![false; self.columns.len()];
        first_rows.iter().try_for_each(|batch| self.encode(batch))
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let mut columns = self.columns.iter_mut().zip(&mut self.has_nan);
        // The types of the batch, which may have views where the file has plain types.
        for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let array_has_nan = float_chunks::has_nan(array);
            for (leaf, (column, has_nan)) in
                compute_leaves(field, array)?.iter().zip(columns.by_ref())
            {
                column.write(leaf)?;
                *has_nan |= array_has_nan;
            }
        }
        Ok(())
    }

    /// Bytes of the encoded rows, and of the first rows before they are encoded.
    fn bytes(&self) -> usize {
        let waiting: usize = self
            .first_rows
            .iter()
            .map(RecordBatch::get_array_memory_size)
            .sum();
        waiting
            + self
                .columns
                .iter()
                .map(ArrowColumnWriter::get_estimated_total_bytes)
                .sum::<usize>()
    }

    fn close(mut self, path: &Path) -> Result<Vec<ArrowColumnChunk>> {
        let begun = if self.columns.is_empty() {
            self.begin()
        } else {
            Ok(())
        };
        begun
            .and_then(|()| self.chunks())
            .map_err(|e| Error::parquet(path, e))
    }

    fn chunks(self) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
        let mut chunks = Vec::with_capacity(self.columns.len());
        for (column, has_nan) in self.columns.into_iter().zip(self.has_nan) {
            let mut chunk = column.close()?;
            float_chunks::correct(chunk.close_mut(), has_nan)?;
            chunks.push(chunk);
        }
        Ok(chunks)
    }
}

type InnerWriter = SerializedFileWriter<ChecksumWriter<Output>>;

/// Writes a Parquet file, with a checksum of each row group.
pub(crate) struct ParquetFileWriter {
    path: PathBuf,
    writer: InnerWriter,
}

impl ParquetFileWriter {
    fn append(&mut self, chunks: Vec<ArrowColumnChunk>) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.writer.flush()?;
        self.writer.inner_mut().end_part();
        Ok(())
    }
}

impl PieceWriter for ParquetFileWriter {
    type Piece = Vec<ArrowColumnChunk>;

    fn write(&mut self, group: Self::Piece) -> Result<()> {
        self.append(group)
            .map_err(|e| Error::parquet(&self.path, e))
    }

    fn finish(self) -> Result<Output> {
        let Self { path, mut writer } = self;
        let checksums = writer.inner_mut().end_parts();
        writer
            .append_key_value_metadata(KeyValue::new(checksums::KEY.to_owned(), checksums.clone()));
        writer.finish().map_err(|e| Error::parquet(&path, e))?;
        // `SerializedFileWriter::into_inner` converts an I/O error, such as a closed pipe, to a
        // string.
        writer
            .inner_mut()
            .end(&checksums)
            .map_err(|e| Error::io(&path, e))?;
        writer
            .inner_mut()
            .take_inner()
            .map_err(|e| Error::io(&path, e))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    /// The writer of each column with deltas allocates 1 MiB.
    #[test]
    fn the_number_of_columns_with_deltas_is_limited() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let columns = (0..100).map(|column| (format!("c{column}"), Arc::clone(&numbers)));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let format = ParquetFileFormat {
            columns: ParquetColumns::of_records(&batch.schema()).unwrap(),
            compression: OutputCompression::None,
            level: None,
            group_rows: 1000,
            group_bytes: 1 << 20,
            bloom_filters: Vec::new(),
            page_index: true,
        };
        let batches = [batch];
        let encodings = format.encodings(&batches);
        let deltas = encodings
            .values()
            .filter(|encoding| **encoding == ColumnEncoding::Delta);
        assert_eq!(
            (encodings.len(), deltas.count()),
            (100, encoding::MAX_DELTA_COLUMNS)
        );
        assert_eq!(encodings["c0"], ColumnEncoding::Delta);
    }
}
