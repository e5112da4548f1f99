//! What a user may choose: how records become columns, and which checks are made. One set, one spelling, in SQL
//! (`SET tfarrow.layout = 'list'`) as in Rust.

use std::{any::Any, num::NonZeroUsize};

use datafusion::{
    common::config::{ConfigEntry, ConfigExtension, ExtensionOptions},
    error::{DataFusionError, Result},
    execution::config::SessionConfig,
};
use tfarrow_codec::{
    Layout, Limits, OnConflict, OnError, RecordType, Role, VerifyCrc,
    schema::{INDEX_COLUMN, OFFSET_COLUMN, RAW_COLUMN},
};
use tfarrow_dataset::{Compression, PartialTail, SAMPLE_RECORDS, Sample};

/// What the names of our options begin with in SQL.
const PREFIX: &str = "tfarrow";
/// The name of the column of file names, where it is asked for.
pub(crate) const FILE_COLUMN: &str = "_file";
/// Shards that one statement may write: each has an open file.
const MAX_SHARDS: usize = 1000;

/// How TFRecord tables are made, and TFRecord files written. What is `SET` counts for the tables that are named after
/// it; `OPTIONS` of a statement and arguments of `read_tfrecord` count before that, for their table alone.
///
/// | option | values | by default |
/// |---|---|---|
/// | `layout` | `auto`, `list` | `auto` |
/// | `record_type` | `auto`, `example`, `sequence-example`, `raw` | `auto` |
/// | `on_conflict` | `error`, `split` | `error` |
/// | `sample_records` | a number, `all` | `1000` |
/// | `verify_crc` | `always`, `on_parse_failure`, `never` | `always` |
/// | `on_error` | `fail`, `skip` | `fail` |
/// | `partial_tail` | `fail`, `ignore` | `fail` |
/// | `bytes_type` | `auto`, `binary`, `binary_view` | `auto` |
/// | `metadata_columns` | `none`, `all`, names of `_file`, `_record`, `_offset`, `_raw` | `none` |
/// | `pushdown_filters` | `true`, `false` | `true` |
/// | `preserve_order` | `true`, `false` | `true` |
/// | `compression` | `none`, `gzip`, `zlib` | `none` |
/// | `shards` | `auto`, a number | `auto` |
/// | `overwrite` | `true`, `false` | `false` |
/// | `lossy` | `true`, `false` | `false` |
///
/// The last four are about files that are written. How those are compressed that are read is told by their content.
///
/// ```
/// use datafusion::common::config::ExtensionOptions;
/// use tfarrow_datafusion::TfRecordOptions;
/// # fn main() -> datafusion::error::Result<()> {
/// let mut options = TfRecordOptions::default();
/// options.set("layout", "list")?;
/// let error = options.set("layout", "wide").unwrap_err();
/// assert!(error.to_string().contains("auto, list"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct TfRecordOptions {
    /// How features are laid out in columns.
    pub layout: Layout,
    /// What the records are; `None`: what the sample says.
    pub record_type: Option<RecordType>,
    /// What becomes of a feature that has more than one kind.
    pub on_conflict: OnConflict,
    /// Which records the schema is inferred from.
    pub sample: Sample,
    /// Whether the CRC of a record's data is checked. The CRC of its length always is.
    pub verify_crc: VerifyCrc,
    /// What becomes of a record that is damaged or does not fit its table.
    pub on_error: OnError,
    /// What becomes of a last record that is cut short.
    pub partial_tail: PartialTail,
    /// What records can make a scan hold. Of the session: no option of a statement.
    pub limits: Limits,
    /// Which Arrow types bytes and text have.
    pub bytes_type: BytesType,
    /// Columns besides the features.
    pub metadata_columns: MetadataColumns,
    /// Whether a scan decides the filters of a query, and decodes the other columns of the rows that they keep alone.
    pub pushdown_filters: bool,
    /// Whether a query without sort, join, group or window gives rows in the order of the files and of their records.
    /// Without it, rows come as threads have them. See [`PreserveOrder`](crate::PreserveOrder).
    pub preserve_order: bool,
    /// How files that are written are compressed.
    pub compression: Compression,
    /// Into how many shards what is written is cut, with names as TensorFlow gives them; `None`: as DataFusion sees fit.
    pub shards: Option<NonZeroUsize>,
    /// Whether files that are there may be replaced.
    pub overwrite: bool,
    /// Whether values that TFRecord can only hold changed are written changed.
    pub lossy: bool,
}

/// Which Arrow types bytes and text have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BytesType {
    /// What is best for reading here: views.
    #[default]
    Auto,
    /// `Binary` and `Utf8`, for functions and programs that know no views.
    Binary,
    /// `BinaryView` and `Utf8View`: long values are not copied.
    BinaryView,
}

impl BytesType {
    /// Whether columns are arrays of views.
    pub fn is_view(self) -> bool {
        match self {
            Self::Auto | Self::BinaryView => true,
            Self::Binary => false,
        }
    }
}

/// Columns of a table that say of each record where it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataColumns {
    /// `_file`: the path of its file.
    pub file: bool,
    /// `_record`: its number in its file, from 0.
    pub record: bool,
    /// `_offset`: where its frame begins in its file, decompressed, in bytes.
    pub offset: bool,
    /// `_raw`: the record as it is.
    pub raw: bool,
}

impl MetadataColumns {
    /// None of them.
    pub const NONE: Self = Self { file: false, record: false, offset: false, raw: false };
    /// All of them.
    pub const ALL: Self = Self { file: true, record: true, offset: true, raw: true };

    /// The roles of those that a decoder makes. The file's name is not known to it.
    pub(crate) fn roles(self) -> impl Iterator<Item = Role> {
        let all = [(self.record, Role::Index), (self.offset, Role::Offset), (self.raw, Role::Record)];
        all.into_iter().filter_map(|(wanted, role)| wanted.then_some(role))
    }

    fn from_words(words: &str) -> Option<Self> {
        let mut columns = Self::NONE;
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "none" => columns = Self::NONE,
                "all" => columns = Self::ALL,
                FILE_COLUMN => columns.file = true,
                INDEX_COLUMN => columns.record = true,
                OFFSET_COLUMN => columns.offset = true,
                RAW_COLUMN => columns.raw = true,
                _ => return None,
            }
        }
        Some(columns)
    }

    fn words(self) -> String {
        let all = [
            (self.file, FILE_COLUMN),
            (self.record, INDEX_COLUMN),
            (self.offset, OFFSET_COLUMN),
            (self.raw, RAW_COLUMN),
        ];
        let words: Vec<_> = all.into_iter().filter_map(|(wanted, name)| wanted.then_some(name)).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    }
}

impl Default for TfRecordOptions {
    fn default() -> Self {
        Self {
            layout: Layout::Auto,
            record_type: None,
            on_conflict: OnConflict::Fail,
            sample: Sample::Records(SAMPLE_RECORDS),
            verify_crc: VerifyCrc::Always,
            on_error: OnError::Fail,
            partial_tail: PartialTail::Fail,
            limits: Limits::default(),
            bytes_type: BytesType::Auto,
            metadata_columns: MetadataColumns::NONE,
            pushdown_filters: true,
            preserve_order: true,
            compression: Compression::None,
            shards: None,
            overwrite: false,
            lossy: false,
        }
    }
}

impl TfRecordOptions {
    /// The options that `config` holds; the defaults where it holds none.
    pub fn of(config: &SessionConfig) -> Self {
        config.options().extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// These options, and before them those that a statement gives: `layout`, or in full `tfarrow.layout`.
    ///
    /// # Errors
    /// A name or a value that is not known.
    pub fn with<'a>(mut self, given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        for (name, value) in given {
            // SQL's planner puts `format.` before a name that has no dot.
            self.set(name.strip_prefix("format.").unwrap_or(name), value)?;
        }
        Ok(self)
    }
}

/// One option: its name, its values in words, what it does.
struct Known {
    name: &'static str,
    values: &'static str,
    description: &'static str,
}

const LAYOUT: Known = Known {
    name: "layout",
    values: "auto, list",
    description: "How features are laid out in columns: bare values and text where the sample allows it, or always lists",
};
const RECORD_TYPE: Known = Known {
    name: "record_type",
    values: "auto, example, sequence-example, raw",
    description: "What the records are; auto: what the sample says",
};
const ON_CONFLICT: Known = Known {
    name: "on_conflict",
    values: "error, split",
    description: "What becomes of a feature that has more than one kind: an error, or a column for each kind",
};
const SAMPLE: Known = Known {
    name: "sample_records",
    values: "a number of records, all",
    description: "Records of each sampled file that the schema is inferred from",
};
const VERIFY_CRC: Known = Known {
    name: "verify_crc",
    values: "always, on_parse_failure, never",
    description: "Whether the CRC of a record's data is checked; that of its length always is",
};
const ON_ERROR: Known = Known {
    name: "on_error",
    values: "fail, skip",
    description: "What becomes of a record that is damaged or does not fit its table: an error, or left out and counted",
};
const PARTIAL_TAIL: Known = Known {
    name: "partial_tail",
    values: "fail, ignore",
    description: "What becomes of a last record that is cut short, as of a file that is still being written",
};
const BYTES_TYPE: Known = Known {
    name: "bytes_type",
    values: "auto, binary, binary_view",
    description: "Which Arrow types bytes and text have; auto: views, which are not copied",
};
const METADATA_COLUMNS: Known = Known {
    name: "metadata_columns",
    values: "none, all, or some of _file, _record, _offset, _raw",
    description: "Columns that say of each record where it comes from",
};
const PUSHDOWN_FILTERS: Known = Known {
    name: "pushdown_filters",
    values: "true, false",
    description: "Whether a scan decides the filters of a query, and decodes the other columns of the rows they keep alone",
};
const PRESERVE_ORDER: Known = Known {
    name: "preserve_order",
    values: "true, false",
    description: "Whether a query without sort, join, group or window gives rows in the order of the files; false: in any order",
};
const COMPRESSION: Known = Known {
    name: "compression",
    values: "none, gzip, zlib",
    description: "How files that are written are compressed; of those that are read, their content tells",
};
const SHARDS: Known = Known {
    name: "shards",
    values: "auto, a number of shards",
    description: "Into how many shards what is written is cut, named as TensorFlow does: name-00000-of-00008",
};
const OVERWRITE: Known =
    Known { name: "overwrite", values: "true, false", description: "Whether files that are there may be replaced" };
const LOSSY: Known = Known {
    name: "lossy",
    values: "true, false",
    description: "Whether values that TFRecord can only hold changed are written changed",
};
const KNOWN: [Known; 15] = [
    LAYOUT,
    RECORD_TYPE,
    ON_CONFLICT,
    SAMPLE,
    VERIFY_CRC,
    ON_ERROR,
    PARTIAL_TAIL,
    BYTES_TYPE,
    METADATA_COLUMNS,
    PUSHDOWN_FILTERS,
    PRESERVE_ORDER,
    COMPRESSION,
    SHARDS,
    OVERWRITE,
    LOSSY,
];

impl Known {
    /// `value`, or an error that lists what there is.
    fn take<T>(&self, value: Option<T>, found: &str) -> Result<T> {
        let Self { name, values, .. } = self;
        value.ok_or_else(|| {
            DataFusionError::Configuration(format!("tfarrow.{name}: found {found:?}, expected one of: {values}"))
        })
    }

    fn entry(&self, value: String) -> ConfigEntry {
        ConfigEntry { key: format!("{PREFIX}.{}", self.name), value: Some(value), description: self.description }
    }
}

impl ConfigExtension for TfRecordOptions {
    const PREFIX: &'static str = PREFIX;
}

impl ExtensionOptions for TfRecordOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    /// The name may be a whole one, as [`entries`](Self::entries) gives it.
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let word = value.trim().to_ascii_lowercase();
        let key = key.trim().to_ascii_lowercase().replace('-', "_");
        match key.strip_prefix("tfarrow.").unwrap_or(&key) {
            "layout" => self.layout = LAYOUT.take(layout_of(&word), value)?,
            "record_type" => self.record_type = RECORD_TYPE.take(record_type_of(&word), value)?,
            "on_conflict" => self.on_conflict = ON_CONFLICT.take(on_conflict_of(&word), value)?,
            "sample_records" => self.sample = SAMPLE.take(sample_of(&word), value)?,
            "verify_crc" => self.verify_crc = VERIFY_CRC.take(verify_crc_of(&word), value)?,
            "on_error" => self.on_error = ON_ERROR.take(on_error_of(&word), value)?,
            "partial_tail" => self.partial_tail = PARTIAL_TAIL.take(partial_tail_of(&word), value)?,
            "bytes_type" => self.bytes_type = BYTES_TYPE.take(bytes_type_of(&word), value)?,
            "metadata_columns" => {
                self.metadata_columns = METADATA_COLUMNS.take(MetadataColumns::from_words(&word), value)?;
            }
            "pushdown_filters" => self.pushdown_filters = PUSHDOWN_FILTERS.take(word.parse().ok(), value)?,
            "preserve_order" => self.preserve_order = PRESERVE_ORDER.take(word.parse().ok(), value)?,
            "compression" => self.compression = COMPRESSION.take(Compression::from_name(&word), value)?,
            "shards" => self.shards = SHARDS.take(shards_of(&word), value)?,
            "overwrite" => self.overwrite = OVERWRITE.take(word.parse().ok(), value)?,
            "lossy" => self.lossy = LOSSY.take(word.parse().ok(), value)?,
            key => {
                let names = KNOWN.map(|known| known.name).join(", ");
                let message = format!("there is no option tfarrow.{key}; there are: {names}");
                return Err(DataFusionError::Configuration(message));
            }
        }
        Ok(())
    }

    /// Whole names, so that `SHOW tfarrow.layout` finds them.
    fn entries(&self) -> Vec<ConfigEntry> {
        vec![
            LAYOUT.entry(layout_name(self.layout).to_owned()),
            RECORD_TYPE.entry(self.record_type.map_or("auto", RecordType::name).to_owned()),
            ON_CONFLICT.entry(on_conflict_name(self.on_conflict).to_owned()),
            SAMPLE.entry(sample_name(&self.sample)),
            VERIFY_CRC.entry(verify_crc_name(self.verify_crc).to_owned()),
            ON_ERROR.entry(on_error_name(self.on_error).to_owned()),
            PARTIAL_TAIL.entry(partial_tail_name(self.partial_tail).to_owned()),
            BYTES_TYPE.entry(bytes_type_name(self.bytes_type).to_owned()),
            METADATA_COLUMNS.entry(self.metadata_columns.words()),
            PUSHDOWN_FILTERS.entry(self.pushdown_filters.to_string()),
            PRESERVE_ORDER.entry(self.preserve_order.to_string()),
            COMPRESSION.entry(self.compression.name().to_owned()),
            SHARDS.entry(self.shards.map_or("auto".to_owned(), |shards| shards.to_string())),
            OVERWRITE.entry(self.overwrite.to_string()),
            LOSSY.entry(self.lossy.to_string()),
        ]
    }
}

/// The one of `all` that has this name.
fn named<T: Copy>(all: &[T], name: fn(T) -> &'static str, word: &str) -> Option<T> {
    all.iter().copied().find(|value| name(*value) == word)
}

fn layout_of(word: &str) -> Option<Layout> {
    named(&[Layout::Auto, Layout::List], layout_name, word)
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Auto => "auto",
        Layout::List => "list",
    }
}

fn record_type_of(word: &str) -> Option<Option<RecordType>> {
    if word == "auto" { Some(None) } else { RecordType::from_name(&word.replace('_', "-")).map(Some) }
}

fn on_conflict_of(word: &str) -> Option<OnConflict> {
    named(&[OnConflict::Fail, OnConflict::Split], on_conflict_name, word)
}

fn on_conflict_name(on_conflict: OnConflict) -> &'static str {
    match on_conflict {
        OnConflict::Fail => "error",
        OnConflict::Split => "split",
    }
}

fn sample_of(word: &str) -> Option<Sample> {
    if word == "all" {
        return Some(Sample::All);
    }
    word.replace('_', "").parse().ok().filter(|records| *records > 0).map(Sample::Records)
}

fn sample_name(sample: &Sample) -> String {
    match sample {
        Sample::All => "all".to_owned(),
        Sample::Records(records) => records.to_string(),
    }
}

fn verify_crc_of(word: &str) -> Option<VerifyCrc> {
    named(&[VerifyCrc::Always, VerifyCrc::OnParseFailure, VerifyCrc::Never], verify_crc_name, &word.replace('-', "_"))
}

fn verify_crc_name(verify: VerifyCrc) -> &'static str {
    match verify {
        VerifyCrc::Always => "always",
        VerifyCrc::OnParseFailure => "on_parse_failure",
        VerifyCrc::Never => "never",
    }
}

fn on_error_of(word: &str) -> Option<OnError> {
    named(&[OnError::Fail, OnError::Skip], on_error_name, word)
}

fn on_error_name(on_error: OnError) -> &'static str {
    match on_error {
        OnError::Fail => "fail",
        OnError::Skip => "skip",
    }
}

fn partial_tail_of(word: &str) -> Option<PartialTail> {
    named(&[PartialTail::Fail, PartialTail::Ignore], partial_tail_name, word)
}

fn partial_tail_name(partial_tail: PartialTail) -> &'static str {
    match partial_tail {
        PartialTail::Fail => "fail",
        PartialTail::Ignore => "ignore",
    }
}

fn bytes_type_of(word: &str) -> Option<BytesType> {
    named(&[BytesType::Auto, BytesType::Binary, BytesType::BinaryView], bytes_type_name, &word.replace('-', "_"))
}

fn bytes_type_name(bytes_type: BytesType) -> &'static str {
    match bytes_type {
        BytesType::Auto => "auto",
        BytesType::Binary => "binary",
        BytesType::BinaryView => "binary_view",
    }
}

fn shards_of(word: &str) -> Option<Option<NonZeroUsize>> {
    if word == "auto" {
        Some(None)
    } else {
        word.parse().ok().filter(|shards: &NonZeroUsize| shards.get() <= MAX_SHARDS).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, value: &str, expect: Result<&str, &str>) {
        let mut options = TfRecordOptions::default();
        match (options.set(key, value), expect) {
            (Ok(()), Ok(expect)) => {
                let entry = options.entries().into_iter().find(|entry| entry.key == format!("tfarrow.{key}")).unwrap();
                assert_eq!(entry.value.as_deref(), Some(expect));
            }
            (Err(error), Err(expect)) => assert_eq!(error.strip_backtrace(), expect),
            (found, expect) => panic!("found {found:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn values_are_taken_and_shown() {
        check("layout", "LIST", Ok("list"));
        check("record_type", "sequence_example", Ok("sequence-example"));
        check("record_type", "auto", Ok("auto"));
        check("on_conflict", "Split", Ok("split"));
        check("sample_records", "10_000", Ok("10000"));
        check("sample_records", "all", Ok("all"));
        check("verify_crc", "never", Ok("never"));
        check("pushdown_filters", "FALSE", Ok("false"));
        check("on_error", "skip", Ok("skip"));
        check("partial_tail", "ignore", Ok("ignore"));
        check("bytes_type", "binary_view", Ok("binary_view"));
        check("metadata_columns", "_record,_file", Ok("_file, _record"));
        check("metadata_columns", "all", Ok("_file, _record, _offset, _raw"));
        check("metadata_columns", "", Ok("none"));
        check("compression", "GZIP", Ok("gzip"));
        check("shards", "8", Ok("8"));
        check("shards", "auto", Ok("auto"));
        check("overwrite", "true", Ok("true"));
    }

    #[test]
    fn what_is_unknown_is_refused_with_what_is_known() {
        let error = "Invalid or Unsupported Configuration: tfarrow.layout: found \"wide\", expected one of: auto, list";
        check("layout", "wide", Err(error));
        let error = "Invalid or Unsupported Configuration: tfarrow.sample_records: found \"0\", expected one of: \
                     a number of records, all";
        check("sample_records", "0", Err(error));
        let error = "Invalid or Unsupported Configuration: there is no option tfarrow.layuot; there are: layout, \
                     record_type, on_conflict, sample_records, verify_crc, on_error, partial_tail, \
                     bytes_type, metadata_columns, pushdown_filters, preserve_order, compression, shards, overwrite, \
                     lossy";
        check("layuot", "list", Err(error));
    }
}
