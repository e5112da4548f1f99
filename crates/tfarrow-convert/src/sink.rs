//! Writing: the pieces of a shard, in their order, into one file that appears whole.

use std::{
    collections::HashSet,
    io, mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_ipc::{
    CompressionType,
    writer::{FileWriter, IpcWriteOptions},
};
use arrow_schema::{ArrowError, Field, FieldRef, Schema, SchemaRef};
use parquet::{
    arrow::{
        ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata,
        arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory},
    },
    basic::{Compression as ParquetCompression, Encoding, GzipLevel, ZstdLevel},
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr},
        writer::SerializedFileWriter,
    },
    schema::types::ColumnPath,
};
use tfarrow_codec::{Role, schema::role_of};
use tfarrow_dataset::{Compression, OutputFile, ShardWriter, WholeFile};

use xxhash_rust::xxh3::Xxh3;

use crate::{
    Error, OutputCompression, Result, Target,
    checksums::{self, ChecksumWriter},
    dictionary,
    journal::Journal,
    present::PresentFile,
};

/// What workers make of units, ready to be written.
pub(crate) enum Piece {
    /// A Parquet row group.
    RowGroup(Vec<ArrowColumnChunk>),
    /// Rows of an Arrow file.
    Batch(RecordBatch),
    /// Frames of a TFRecord file.
    Frames(Vec<u8>),
}

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    File(PathBuf),
    Stdout,
}

impl Destination {
    /// Its path, if it has one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdout => None,
        }
    }
}

/// What an output is to be.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    pub(crate) target: Target,
    pub(crate) compression: OutputCompression,
    pub(crate) overwrite: bool,
    pub(crate) row_group_rows: usize,
}

/// One output file being written.
pub(crate) struct Sink {
    path: PathBuf,
    writer: Writer,
}

enum Writer {
    Parquet(Box<SerializedFileWriter<ChecksumWriter<Output>>>),
    Arrow(Box<FileWriter<io::BufWriter<ChecksumWriter<Output>>>>),
    TfRecord(Box<ShardWriter<Output>>),
}

impl Sink {
    /// Opens an output. `schema` is that of the rows, with the metadata that the file is to have.
    pub(crate) fn create(
        destination: &Destination,
        format: &Format,
        schema: &SchemaRef,
        journal: Option<&Journal>,
    ) -> Result<Self> {
        let path = match destination {
            Destination::File(path) => path.clone(),
            Destination::Stdout => PathBuf::from("standard output"),
        };
        let output = Output::create(destination, format.overwrite, journal)?;
        let writer = match format.target {
            Target::Parquet => parquet_writer(output, schema, format).map_err(|e| Error::parquet(&path, e))?,
            Target::Arrow => arrow_writer(output, schema, format).map_err(|e| Error::arrow(&path, e))?,
            Target::TfRecord => {
                Writer::TfRecord(Box::new(ShardWriter::new(output, tfrecord_compression(format.compression))))
            }
        };
        Ok(Self { path, writer })
    }

    /// Ends the file, which has no name yet.
    pub(crate) fn finish(self) -> Result<Whole> {
        let Self { path, writer } = self;
        let output = match writer {
            Writer::Parquet(mut writer) => {
                let text = writer.inner_mut().end_parts();
                writer.append_key_value_metadata(KeyValue::new(checksums::KEY.to_owned(), text.clone()));
                writer.finish().map_err(|e| Error::parquet(&path, e))?;
                // Its `into_inner` turns the system's error, as of a closed pipe, into text. Nothing goes to what is put
                // in the output's place.
                writer.inner_mut().end(&text).map_err(|e| Error::io(&path, e))?;
                Ok(mem::replace(&mut writer.inner_mut().inner, Output::Stdout(io::stdout(), 0)))
            }
            Writer::Arrow(mut writer) => {
                let text = writer.get_mut().get_mut().end_parts();
                writer.write_metadata(checksums::KEY, text.clone());
                let output = writer.finish().and_then(|()| writer.into_inner()).map_err(|e| Error::arrow(&path, e))?;
                let mut output = output.into_inner().map_err(|e| Error::io(&path, e.into_error()))?;
                output.mark_arrow();
                output.end(&text).map_err(|e| Error::io(&path, e))?;
                Ok(output.inner)
            }
            Writer::TfRecord(writer) => writer.finish().map_err(|e| Error::io(&path, e)),
        };
        output?.close()
    }

    /// Writes one piece.
    pub(crate) fn write(&mut self, piece: Piece) -> Result<()> {
        match (&mut self.writer, piece) {
            (Writer::Parquet(writer), Piece::RowGroup(chunks)) => {
                append(writer, chunks).map_err(|e| Error::parquet(&self.path, e))
            }
            (Writer::Arrow(writer), Piece::Batch(batch)) => {
                let written = writer.write(&batch).and_then(|()| writer.flush());
                written.map_err(|e| Error::arrow(&self.path, e))?;
                writer.get_mut().get_mut().end_part();
                Ok(())
            }
            (Writer::TfRecord(writer), Piece::Frames(frames)) => {
                io::Write::write_all(writer, &frames).map_err(|e| Error::io(&self.path, e))
            }
            _ => Err(Error::Usage("a piece of one format was made for a file of another".to_owned())),
        }
    }
}

impl Piece {
    /// The bytes that it keeps in memory until it is written, as far as workers have to be held back for it.
    pub(crate) fn held(&self) -> usize {
        match self {
            // As much as a worker may hold: it makes no other before this one is written.
            Self::RowGroup(_) => usize::MAX,
            Self::Batch(batch) => batch.get_array_memory_size(),
            Self::Frames(frames) => frames.len(),
        }
    }
}

fn parquet_writer(output: Output, schema: &SchemaRef, format: &Format) -> parquet::errors::Result<Writer> {
    let (root, properties) = parquet_schema(schema, format, &HashSet::new())?;
    let mut writer = SerializedFileWriter::new(ChecksumWriter::new(output), root, properties)?;
    writer.write_all(checksums::MARK)?;
    writer.flush()?;
    writer.inner_mut().begin()?;
    Ok(Writer::Parquet(Box::new(writer)))
}

fn arrow_writer(output: Output, schema: &SchemaRef, format: &Format) -> Result<Writer, ArrowError> {
    let output = io::BufWriter::with_capacity(1 << 20, ChecksumWriter::new(output));
    let mut writer = FileWriter::try_new_with_options(output, schema, ipc_options(format.compression)?)?;
    writer.flush()?;
    writer.get_mut().get_mut().begin()?;
    Ok(Writer::Arrow(Box::new(writer)))
}

fn append(
    writer: &mut SerializedFileWriter<ChecksumWriter<Output>>,
    chunks: Vec<ArrowColumnChunk>,
) -> parquet::errors::Result<()> {
    let mut group = writer.next_row_group()?;
    for chunk in chunks {
        chunk.append_to_row_group(&mut group)?;
    }
    group.close()?;
    writer.flush()?;
    writer.inner_mut().end_part();
    Ok(())
}

/// Makes the column writers of a row group that begins with these rows, for a worker that has no file.
pub(crate) fn row_group(
    schema: &SchemaRef,
    format: &Format,
    begin: &[RecordBatch],
) -> parquet::errors::Result<Vec<ArrowColumnWriter>> {
    let begin_of = |column: usize| begin.iter().filter_map(move |batch| batch.columns().get(column));
    let least = if schema.fields().len() > dictionary::MOST { dictionary::FEW } else { 0 };
    let has_dictionary = |column, field: &Field| match role_of(field) {
        Some(Role::Exact) => dictionary::repeats(begin_of(column)),
        _ => dictionary::may_fit(begin_of(column), least),
    };
    let mut dictionaries = 0;
    let is_plain = |(column, field): &(usize, &FieldRef)| {
        let has_dictionary = dictionaries < dictionary::MOST && has_dictionary(*column, field);
        dictionaries += usize::from(has_dictionary);
        !has_dictionary
    };
    let plain = schema.fields().iter().enumerate().filter(is_plain);
    let plain = plain.map(|(_, field)| field.name().as_str()).collect();
    let (root, properties) = parquet_schema(schema, format, &plain)?;
    let writer = SerializedFileWriter::new(Vec::new(), root, properties)?;
    ArrowRowGroupWriterFactory::new(&writer, Arc::clone(schema)).create_column_writers(0)
}

/// The columns in `plain` get no dictionary.
fn parquet_schema(
    schema: &Schema,
    format: &Format,
    plain: &HashSet<&str>,
) -> parquet::errors::Result<(parquet::schema::types::TypePtr, WriterPropertiesPtr)> {
    let compression = match format.compression {
        OutputCompression::Zstd => ParquetCompression::ZSTD(ZstdLevel::default()),
        OutputCompression::Snappy => ParquetCompression::SNAPPY,
        OutputCompression::Gzip => ParquetCompression::GZIP(GzipLevel::default()),
        OutputCompression::Lz4 => ParquetCompression::LZ4_RAW,
        OutputCompression::None | OutputCompression::Zlib | OutputCompression::Original => {
            ParquetCompression::UNCOMPRESSED
        }
    };
    let columns = ArrowSchemaConverter::new().convert(schema)?;
    let plain = columns
        .columns()
        .iter()
        .map(|column| column.path())
        .filter(|path| path.parts().first().is_some_and(|field| plain.contains(field.as_str())));
    let exact = schema.fields().iter().filter(|field| role_of(field) == Some(Role::Exact)).map(|field| field.name());
    let properties = plain
        .fold(WriterProperties::builder(), |builder, path| builder.set_column_dictionary_enabled(path.clone(), false))
        .set_compression(compression);
    // Where each record has an order of its own, a length before each number of an order would take as much again.
    let properties = exact.fold(properties, |builder, name| {
        builder.set_column_encoding(ColumnPath::from(name.as_str()), Encoding::DELTA_LENGTH_BYTE_ARRAY)
    });
    let mut properties = properties
        .set_created_by(format!("{}{}", checksums::CREATED_BY, env!("CARGO_PKG_VERSION")))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(format.row_group_rows))
        .build();
    add_encoded_arrow_schema_to_metadata(schema, &mut properties);
    Ok((columns.root_schema_ptr(), Arc::new(properties)))
}

fn ipc_options(compression: OutputCompression) -> Result<IpcWriteOptions, ArrowError> {
    IpcWriteOptions::default().try_with_compression(match compression {
        OutputCompression::Zstd => Some(CompressionType::ZSTD),
        OutputCompression::Lz4 => Some(CompressionType::LZ4_FRAME),
        OutputCompression::None
        | OutputCompression::Snappy
        | OutputCompression::Gzip
        | OutputCompression::Zlib
        | OutputCompression::Original => None,
    })
}

/// The compression of a TFRecord file. `Original` has been looked up by now.
pub(crate) fn tfrecord_compression(compression: OutputCompression) -> Compression {
    match compression {
        OutputCompression::Gzip => Compression::Gzip,
        OutputCompression::Zlib => Compression::Zlib,
        OutputCompression::None
        | OutputCompression::Zstd
        | OutputCompression::Snappy
        | OutputCompression::Lz4
        | OutputCompression::Original => Compression::None,
    }
}

/// Where bytes go: a file that has its name only once it is whole, one that must hold them already, or standard output.
pub(crate) enum Output {
    /// With the hash of the bytes that it has taken.
    File(OutputFile, Box<Xxh3>),
    Present(PresentFile),
    /// With the bytes that it has taken.
    Stdout(io::Stdout, u64),
}

/// An output that has all its bytes.
pub(crate) enum Whole {
    /// With the hash of its bytes.
    File(WholeFile, u64),
    /// So many bytes that had their name before.
    Present(u64),
    Stdout(u64),
}

impl Output {
    fn create(destination: &Destination, overwrite: bool, journal: Option<&Journal>) -> Result<Self> {
        Ok(match destination {
            Destination::File(path) => {
                let present = match journal {
                    Some(journal) if journal.resumes() && !overwrite => PresentFile::open(path)?,
                    _ => None,
                };
                if let Some(present) = present {
                    return Ok(Self::Present(present));
                }
                let file = match journal {
                    Some(journal) => OutputFile::create_at(path, &journal.begin(path)?, overwrite)?,
                    None => OutputFile::create(path, overwrite)?,
                };
                Self::File(file, Box::default())
            }
            Destination::Stdout => Self::Stdout(io::stdout(), 0),
        })
    }

    fn close(self) -> Result<Whole> {
        match self {
            Self::File(file, hash) => Ok(Whole::File(file.close()?, hash.digest())),
            Self::Present(file) => file.close().map(Whole::Present),
            Self::Stdout(mut stdout, bytes) => {
                io::Write::flush(&mut stdout).map_err(|e| Error::io("standard output".as_ref(), e))?;
                Ok(Whole::Stdout(bytes))
            }
        }
    }
}

impl Whole {
    /// Leaves a file where it is, for another run to find.
    pub(crate) fn leave(self) {
        if let Self::File(file, _) = self {
            file.leave();
        }
    }

    /// Gives a file its name, in the folder that it was created in. Returns its bytes.
    pub(crate) fn persist(self, destination: &Destination) -> Result<u64> {
        match (self, destination) {
            (Self::File(file, _), Destination::File(path)) => {
                let size = file.size();
                file.persist_as(path)?;
                Ok(size)
            }
            (Self::File(..), Destination::Stdout) => Err(Error::Usage("a file is not standard output".to_owned())),
            (Self::Present(bytes) | Self::Stdout(bytes), _) => Ok(bytes),
        }
    }
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file, hash) => {
                let count = file.write(bytes)?;
                hash.update(bytes.get(..count).unwrap_or_default());
                Ok(count)
            }
            Self::Present(file) => file.write(bytes),
            Self::Stdout(stdout, taken) => {
                let count = stdout.write(bytes)?;
                *taken += count as u64;
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.flush(),
            Self::Present(file) => file.flush(),
            Self::Stdout(stdout, _) => stdout.flush(),
        }
    }
}
