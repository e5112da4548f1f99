//! What a conversion can be told.

use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use tfarrow_codec::{Layout, OnConflict, RecordType, VerifyCrc, named_values};
use tfarrow_dataset::{Compression, ReadOptions, Sample};

use crate::{Error, OutputStream, Result};

/// The format of the output. Its name is also the extension of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Parquet files.
    Parquet,
    /// TFRecord files.
    TfRecord,
    /// Arrow IPC files.
    Arrow,
}

named_values!(Target {
    Parquet = "parquet": "Parquet files",
    TfRecord = "tfrecord": "TFRecord files",
    Arrow = "arrow": "Arrow IPC files",
});

impl Target {
    /// The format that a file's name asks for, if any; and, for TFRecord, the compression.
    pub fn from_path(path: &Path) -> Option<(Self, Option<Compression>)> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let (name, compression) = Compression::of_name(&name);
        let target = match name.rsplit_once('.')?.1 {
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            "tfrecord" | "tfrecords" | "tfrec" | "tfr" | "record" => Self::TfRecord,
            _ => return None,
        };
        (target == Self::TfRecord || compression.is_none()).then_some((target, compression))
    }
}

/// How the output is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputCompression {
    /// Not at all.
    None,
    /// Zstandard. Parquet and Arrow.
    Zstd,
    /// Snappy. Parquet only.
    Snappy,
    /// gzip. Parquet and TFRecord.
    Gzip,
    /// LZ4. Parquet and Arrow.
    Lz4,
    /// zlib. TFRecord only.
    Zlib,
    /// As the shard was that a Parquet or Arrow file came from. TFRecord only.
    Original,
}

named_values!(OutputCompression {
    None = "none": "No compression",
    Zstd = "zstd": "Zstandard (Parquet, Arrow)",
    Snappy = "snappy": "Snappy (Parquet)",
    Gzip = "gzip": "gzip (Parquet, TFRecord)",
    Lz4 = "lz4": "LZ4 (Parquet, Arrow)",
    Zlib = "zlib": "zlib (TFRecord)",
    Original = "original": "As the TFRecord file that the source was converted from (TFRecord)",
});

impl OutputCompression {
    /// Whether a TFRecord file that is compressed so may be called this.
    pub(crate) fn is_of(self, name: Compression) -> bool {
        match self {
            Self::Gzip => name == Compression::Gzip,
            Self::Zlib => name == Compression::Zlib,
            Self::None => name == Compression::None,
            Self::Original | Self::Zstd | Self::Snappy | Self::Lz4 => true,
        }
    }

    pub(crate) fn check(self, target: Target) -> Result<()> {
        let known: &[Self] = match target {
            Target::Parquet => &[Self::None, Self::Zstd, Self::Snappy, Self::Gzip, Self::Lz4],
            Target::TfRecord => &[Self::None, Self::Gzip, Self::Zlib, Self::Original],
            Target::Arrow => &[Self::None, Self::Zstd, Self::Lz4],
        };
        if known.contains(&self) {
            return Ok(());
        }
        let names: Vec<_> = known.iter().map(|c| c.name()).collect();
        let (format, names) = (target.name(), names.join(", "));
        Err(Error::Usage(format!("{format} has no compression {:?}; it has {names}", self.name())))
    }
}

/// How records are shared out among new shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reshard {
    /// Into so many shards, equal to within a record.
    Shards(u64),
    /// Into shards of about so many bytes: of records where the source is TFRecord, else of Arrow arrays.
    Bytes(u64),
}

/// What to do. The defaults are those of the command line.
#[derive(Clone, Debug)]
pub struct ConvertOptions {
    /// The output's format, where its name does not say.
    pub to: Option<Target>,
    /// The columns' layout, where they are inferred.
    pub layout: Layout,
    /// How the output is compressed; by default Parquet with zstd and all else not at all.
    pub compression: Option<OutputCompression>,
    /// Threads that decode and encode; by default one a core.
    pub jobs: usize,
    /// The columns, where they are not to be inferred.
    pub schema: Option<SchemaRef>,
    /// What columns are inferred from; by default everything.
    pub sample: Sample,
    /// New shards instead of the source's.
    pub reshard: Option<Reshard>,
    /// What the records are, where it is not to be guessed.
    pub record_type: Option<RecordType>,
    /// Whether values may change that TFRecord cannot hold as they are.
    pub lossy: bool,
    /// Whether existing outputs are replaced.
    pub overwrite: bool,
    /// When the CRC of a record's data is checked.
    pub verify_crc: VerifyCrc,
    /// Whether the way back from Parquet and Arrow is to give the same bytes, and not only the same records.
    pub exact: bool,
    /// What becomes of features that have more than one kind.
    pub on_conflict: OnConflict,
    /// How TFRecord is read: what becomes of damage, and which limits there are.
    pub read: ReadOptions,
    /// The TFRecord file that takes what is damaged and skipped. Without damage there is no file; its folder must exist.
    pub quarantine: Option<PathBuf>,
    /// Whether this resumes a conversion. Outputs that an interrupted run has completed are kept; other outputs that are
    /// there already must have the bytes that the conversion makes, and are not written.
    pub resume: bool,
    /// The most rows of a Parquet row group.
    pub row_group_rows: usize,
    /// The most encoded bytes of a Parquet row group, and bytes of records that one is made of. A worker holds both.
    pub row_group_bytes: usize,
    /// Takes the output if the destination is `-`. By default there is none, and such a conversion is an error.
    pub stream: Option<OutputStream>,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            to: None,
            layout: Layout::Auto,
            compression: None,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            schema: None,
            sample: Sample::All,
            reshard: None,
            record_type: None,
            lossy: false,
            overwrite: false,
            verify_crc: VerifyCrc::Always,
            exact: false,
            on_conflict: OnConflict::Fail,
            read: ReadOptions::default(),
            quarantine: None,
            resume: false,
            row_group_rows: 1 << 20,
            row_group_bytes: 64 << 20,
            stream: None,
        }
    }
}
