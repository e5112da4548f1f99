//! The options of a conversion.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    str::FromStr,
};

use arrow_schema::SchemaRef;
use tfarrow_codec::{Layout, OnConflict, RecordType, UnknownName, VerifyCrc, named_values};
use tfarrow_dataset::{Compression, Part, ReadOptions, file_names::TFRECORD_EXTENSIONS};
use tfarrow_scan::Sample;

use crate::{Error, OutputStream, Result, earlier::Earlier};

/// The output format. Its name is also the extension of output files.
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
    /// The format by the extension of a file name, and for TFRecord the compression; `None` for
    /// other extensions.
    pub fn from_path(path: &Path) -> Option<(Self, Option<Compression>)> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let (name, compression) = Compression::of_name(&name);
        let target = match name.rsplit_once('.')?.1 {
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            other if TFRECORD_EXTENSIONS.contains(&other) => Self::TfRecord,
            _ => return None,
        };
        (target == Self::TfRecord || compression.is_none()).then_some((target, compression))
    }
}

/// The compression of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputCompression {
    /// No compression.
    None,
    /// Zstandard. Parquet and Arrow.
    Zstd,
    /// Snappy. Parquet and TFRecord.
    Snappy,
    /// gzip. Parquet and TFRecord.
    Gzip,
    /// LZ4. Parquet and Arrow.
    Lz4,
    /// zlib. TFRecord only.
    Zlib,
    /// The compression of the TFRecord shard that the source was converted from. TFRecord only.
    Original,
}

named_values!(OutputCompression {
    None = "none": "No compression",
    Zstd = "zstd": "Zstandard (Parquet, Arrow)",
    Snappy = "snappy": "Snappy (Parquet, TFRecord)",
    Gzip = "gzip": "gzip (Parquet, TFRecord)",
    Lz4 = "lz4": "LZ4 (Parquet, Arrow)",
    Zlib = "zlib": "zlib (TFRecord)",
    Original = "original": "As the TFRecord file that the source was converted from (TFRecord)",
});

impl OutputCompression {
    /// Whether a TFRecord file with this compression may have a name with the extension of `named`.
    pub(crate) fn is_of(self, named: Compression) -> bool {
        match self {
            Self::Gzip => named == Compression::Gzip,
            Self::Zlib => named == Compression::Zlib,
            Self::Snappy => named == Compression::Snappy,
            Self::None => named == Compression::None,
            Self::Original | Self::Zstd | Self::Lz4 => true,
        }
    }

    /// The levels of the compression, from the fastest to the one with the smallest output; `None`
    /// if it has none.
    pub fn levels(self) -> Option<RangeInclusive<u32>> {
        match self {
            Self::Zstd => Some(1..=22),
            Self::Gzip | Self::Zlib => Some(0..=9),
            Self::None | Self::Snappy | Self::Lz4 | Self::Original => None,
        }
    }

    /// Parses a compression with or without a level.
    ///
    /// ```
    /// use tfarrow_convert::OutputCompression;
    /// assert_eq!(OutputCompression::with_level("zstd:9"), Ok((OutputCompression::Zstd, Some(9))));
    /// assert_eq!(OutputCompression::with_level("gzip"), Ok((OutputCompression::Gzip, None)));
    /// ```
    ///
    /// # Errors
    /// The message for an unknown name, and for a level that the compression does not have.
    pub fn with_level(text: &str) -> Result<(Self, Option<u32>), String> {
        let (name, level) = text
            .split_once(':')
            .map_or((text, None), |(name, level)| (name, Some(level)));
        let compression: Self = name
            .parse()
            .map_err(|error: UnknownName| error.to_string())?;
        let Some(level) = level else {
            return Ok((compression, None));
        };
        let number = level
            .parse()
            .map_err(|_| format!("{level:?} is not the level of a compression: it is no number"))?;
        compression.check_level(number)?;
        Ok((compression, Some(number)))
    }

    fn check_level(self, level: u32) -> Result<(), String> {
        let name = self.name();
        match self.levels() {
            Some(levels) if levels.contains(&level) => Ok(()),
            Some(levels) => Err(format!(
                "{name} has the levels {} to {}, and not {level}",
                levels.start(),
                levels.end()
            )),
            None => {
                let mut known = Vec::new();
                for compression in Self::ALL {
                    if let Some(levels) = compression.levels() {
                        let (first, last) = levels.into_inner();
                        known.push(format!("{} ({first} to {last})", compression.name()));
                    }
                }
                Err(format!(
                    "{name} has no levels; these have: {}",
                    known.join(", ")
                ))
            }
        }
    }

    /// Checks that the output format has this compression, and the compression this level.
    ///
    /// # Errors
    /// [`Error::Usage`] if they do not.
    pub(crate) fn check(self, target: Target, level: Option<u32>) -> Result<()> {
        let known: &[Self] = match target {
            Target::Parquet => &[Self::None, Self::Zstd, Self::Snappy, Self::Gzip, Self::Lz4],
            Target::TfRecord => &[
                Self::None,
                Self::Gzip,
                Self::Zlib,
                Self::Snappy,
                Self::Original,
            ],
            Target::Arrow => &[Self::None, Self::Zstd, Self::Lz4],
        };
        if known.contains(&self) {
            return level
                .map_or(Ok(()), |level| self.check_level(level))
                .map_err(Error::Usage);
        }
        let names: Vec<_> = known.iter().map(|c| c.name()).collect();
        let format = target.name();
        let names = names.join(", ");
        Err(Error::Usage(format!(
            "{format} has no compression {:?}; it has {names}",
            self.name()
        )))
    }
}

/// The unit of the timestamps of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampUnit {
    /// Nanoseconds, which `google.protobuf.Timestamp` has.
    #[default]
    Nanoseconds,
    /// Microseconds. A time of no whole number of them is an error of its record.
    Microseconds,
}

named_values!(TimestampUnit {
    Nanoseconds = "ns": "Nanoseconds, as messages have them",
    Microseconds = "us": "Microseconds, which Spark reads; a time with nanoseconds is an error",
});

/// The size of new shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reshard {
    /// This number of shards. Their numbers of records differ by at most one.
    Shards(u64),
    /// Shards of about this number of bytes: bytes of records if the source is TFRecord, else of
    /// Arrow arrays.
    Bytes(u64),
}

/// A split that a conversion writes: a random part of the records, in a folder of its own.
///
/// ```
/// use tfarrow_convert::OutputSplit;
/// let split: OutputSplit = "train=0.8".parse()?;
/// assert_eq!((split.name(), split.fraction()), ("train", 0.8));
/// # Ok::<(), tfarrow_convert::NotASplit>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSplit {
    name: String,
    fraction: f64,
}

impl OutputSplit {
    /// A split with this fraction of the records, in the folder of this name.
    ///
    /// # Errors
    /// A name that is no name of a folder, and a fraction that is not above 0 and at most 1.
    pub fn new(name: String, fraction: f64) -> Result<Self, NotASplit> {
        let is_folder =
            !matches!(name.as_str(), "" | "." | "..") && !name.contains(['/', '\\', '\0']);
        if !is_folder {
            return Err(NotASplit::Name(name));
        }
        if !is_fraction(fraction) {
            return Err(NotASplit::Fraction(fraction.to_string()));
        }
        Ok(Self { name, fraction })
    }

    /// The name of its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The part of the records that it has.
    pub fn fraction(&self) -> f64 {
        self.fraction
    }
}

impl FromStr for OutputSplit {
    type Err = NotASplit;

    fn from_str(text: &str) -> Result<Self, NotASplit> {
        let (name, fraction) = text.split_once('=').ok_or(NotASplit::Syntax)?;
        let number = fraction.parse();
        let number = number.map_err(|_| NotASplit::Fraction(fraction.to_owned()))?;
        Self::new(name.to_owned(), number)
    }
}

/// The error that a text is not an [`OutputSplit`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotASplit {
    /// Another form.
    #[error("expected the name of a split and its part of the records, such as train=0.8")]
    Syntax,
    /// A name that no folder has.
    #[error("{0:?} is not the name of a folder")]
    Name(String),
    /// A number that is no fraction.
    #[error(
        "{0} is not a part of the records: expected a number above 0 and at most 1, such as 0.8"
    )]
    Fraction(String),
}

/// Whether a number is above 0 and at most 1.
pub(crate) fn is_fraction(number: f64) -> bool {
    number > 0.0 && number <= 1.0
}

/// The options of a conversion. The defaults are those of the command line.
#[derive(Clone, Debug)]
pub struct ConvertOptions {
    /// The output format. By default that of the name of the output, and Parquet for a folder or
    /// stream of TFRecord sources.
    pub to: Option<Target>,
    /// The layout of inferred columns.
    pub layout: Layout,
    /// The compression of the output. By default zstd for Parquet, else none.
    pub compression: Option<OutputCompression>,
    /// The level of the compression, one of its [levels](OutputCompression::levels). By default 1
    /// for zstd in Parquet, 3 for zstd in Arrow, and 6 for gzip and zlib.
    pub compression_level: Option<u32>,
    /// Number of threads that decode and encode. By default the number of cores.
    pub jobs: usize,
    /// The columns. By default they are inferred.
    pub schema: Option<SchemaRef>,
    /// The names of the columns to convert, in the order of the outputs. A name is that of a column
    /// or of its feature, or a glob. By default all columns.
    pub columns: Vec<String>,
    /// The names of columns that are not converted, as `columns` has them.
    pub exclude: Vec<String>,
    /// The records that columns are inferred from. By default all.
    pub sample: Sample,
    /// The size of new shards. By default each shard has one output.
    pub reshard: Option<Reshard>,
    /// With new shards, the keys of folders `key=value` of the sources that the outputs are in
    /// folders of. The columns of other folders are columns of new shards. Outputs for each source
    /// are in all folders of their sources.
    pub partition_by: Vec<String>,
    /// The seed of a random order of all records, which are read at their places in TFRecord files. By
    /// default records have the order of their files.
    pub shuffle: Option<u64>,
    /// The part of the records that is converted, above 0 and at most 1: a random choice. By default
    /// all of them.
    pub fraction: Option<f64>,
    /// Random parts of the records that are written to folders of their own. By default none.
    pub splits: Vec<OutputSplit>,
    /// The seed of the random choices of `fraction` and `splits`. By default 0.
    pub seed: Option<u64>,
    /// The type of the records. By default it is inferred.
    pub record_type: Option<RecordType>,
    /// Whether values that TFRecord cannot hold may be changed, such as float64 to float32.
    pub lossy: bool,
    /// Whether existing outputs are replaced.
    pub overwrite: bool,
    /// Which records' data CRCs are verified.
    pub verify_crc: VerifyCrc,
    /// Whether a column stores the exact wire form of each record, so that converting back is
    /// byte-identical.
    pub exact: bool,
    /// The policy for features that have more than one kind.
    pub on_conflict: OnConflict,
    /// The unit of the columns of `google.protobuf.Timestamp`.
    pub timestamp_unit: TimestampUnit,
    /// How TFRecord is read: the policy for corrupt records, and the limits.
    pub read: ReadOptions,
    /// The TFRecord file for the corrupt records and bytes that are skipped. It is created only if
    /// there are any. Its folder must exist.
    pub quarantine: Option<PathBuf>,
    /// Whether this run resumes another. Outputs that an interrupted run has completed are kept,
    /// and objects in a store that say that they were made of the same data with the same options.
    /// Other existing outputs must have the same bytes as the new ones, and are not written.
    pub resume: bool,
    /// The part of the shards that this run converts, of a data set that several processes convert
    /// to one folder. By default all of them. The outputs are those of one run over all shards.
    /// Existing outputs must have the same bytes as the new ones, and are not written, so that a
    /// part can be run again at any time, also while it runs.
    pub part: Option<Part>,
    /// Maximum rows of a Parquet row group.
    pub row_group_rows: usize,
    /// Maximum encoded bytes of a Parquet row group, and maximum bytes of its records. A worker
    /// holds both in memory.
    pub row_group_bytes: usize,
    /// The names of the columns with a Bloom filter in each row group of Parquet outputs, as
    /// `columns` has them. By default none.
    pub bloom_filters: Vec<String>,
    /// Whether Parquet outputs have a page index: the range of the values of each page, and its
    /// place.
    pub page_index: bool,
    /// The output stream for the destination `-`. By default there is none, and that destination is
    /// an error.
    pub stream: Option<OutputStream>,
}

impl ConvertOptions {
    /// Whether records are chosen by their numbers: in random order, or a part of them.
    pub(crate) fn chooses(&self) -> bool {
        self.shuffle.is_some() || self.fraction.is_some() || !self.splits.is_empty()
    }

    /// Whether outputs in a folder are not those of single shards.
    pub(crate) fn writes_new_shards(&self) -> bool {
        self.reshard.is_some() || self.chooses()
    }

    /// The policy for existing outputs.
    pub(crate) fn earlier(&self) -> Earlier {
        match (self.overwrite, self.resume || self.part.is_some()) {
            (true, _) => Earlier::Replaced,
            (false, true) => Earlier::Compared,
            (false, false) => Earlier::Refused,
        }
    }
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            to: None,
            layout: Layout::Auto,
            compression: None,
            compression_level: None,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            schema: None,
            columns: Vec::new(),
            exclude: Vec::new(),
            sample: Sample::All,
            reshard: None,
            partition_by: Vec::new(),
            shuffle: None,
            fraction: None,
            splits: Vec::new(),
            seed: None,
            record_type: None,
            lossy: false,
            overwrite: false,
            verify_crc: VerifyCrc::Always,
            exact: false,
            on_conflict: OnConflict::Fail,
            timestamp_unit: TimestampUnit::Nanoseconds,
            read: ReadOptions::default(),
            quarantine: None,
            resume: false,
            part: None,
            row_group_rows: 1 << 20,
            row_group_bytes: 64 << 20,
            bloom_filters: Vec::new(),
            page_index: true,
            stream: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressions_have_levels() {
        let parse = OutputCompression::with_level;
        assert_eq!(parse("zstd:22"), Ok((OutputCompression::Zstd, Some(22))));
        assert_eq!(parse("zlib:0"), Ok((OutputCompression::Zlib, Some(0))));
        assert_eq!(
            parse("zstd:23"),
            Err("zstd has the levels 1 to 22, and not 23".to_owned())
        );
        let none = "snappy has no levels; these have: zstd (1 to 22), gzip (0 to 9), zlib (0 to 9)";
        assert_eq!(parse("snappy:1"), Err(none.to_owned()));
        assert!(
            parse("zstd:").is_err()
                && parse("zstd:-1").is_err()
                && parse(":3").is_err()
                && parse("lzo").is_err()
        );
    }
}
