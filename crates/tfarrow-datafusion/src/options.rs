//! What a user may choose: how records become columns, and which checks are made. One set, one spelling, in SQL
//! (`SET tfarrow.layout = 'list'`) as in Rust.

use std::{any::Any, fmt, num::NonZeroUsize, str::FromStr};

use datafusion::{
    common::{
        config::{ConfigEntry, ConfigExtension, ExtensionOptions},
        config_err,
    },
    error::{DataFusionError, Result},
    execution::config::SessionConfig,
};
use tfarrow_codec::{
    Layout, Limits, NamedValue, OnConflict, OnError, RecordType, Role, VerifyCrc, named_values,
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

named_values!(BytesType {
    Auto = "auto": "Views, which are not copied",
    Binary = "binary": "Binary and Utf8",
    BinaryView = "binary_view": "BinaryView and Utf8View",
});

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

    /// Each column, with its name.
    fn columns(&mut self) -> [(&mut bool, &'static str); 4] {
        [
            (&mut self.file, FILE_COLUMN),
            (&mut self.record, INDEX_COLUMN),
            (&mut self.offset, OFFSET_COLUMN),
            (&mut self.raw, RAW_COLUMN),
        ]
    }
}

impl FromStr for MetadataColumns {
    type Err = DataFusionError;

    fn from_str(text: &str) -> Result<Self> {
        let mut columns = Self::NONE;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "none" => columns = Self::NONE,
                "all" => columns = Self::ALL,
                name => match columns.columns().into_iter().find(|(_, column)| *column == name) {
                    Some((wanted, _)) => *wanted = true,
                    None => return config_err!("there is no metadata column {name:?}"),
                },
            }
        }
        Ok(columns)
    }
}

impl fmt::Display for MetadataColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut columns = *self;
        let names = columns.columns().into_iter().filter_map(|(wanted, name)| wanted.then_some(name));
        let names = names.collect::<Vec<_>>().join(", ");
        f.pad(if names.is_empty() { "none" } else { &names })
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

/// One option: its name in SQL, its values in words, and how it is set and shown.
struct Setting {
    name: &'static str,
    values: fn() -> String,
    description: &'static str,
    /// Sets the option to a value in lower case; `None` where it has no such value.
    set: fn(&mut TfRecordOptions, &str) -> Option<()>,
    show: fn(&TfRecordOptions) -> String,
}

/// All options, in the order in which they are shown.
const SETTINGS: [Setting; 15] = [
    Setting {
        name: "layout",
        values: names::<Layout>,
        description: "How features become columns: plain values and text where the sample allows it, or always lists",
        set: |options, value| put(&mut options.layout, value),
        show: |options| options.layout.to_string(),
    },
    Setting {
        name: "record_type",
        values: || format!("auto, {}", names::<RecordType>()),
        description: "What the records are; auto: what the sample shows",
        set: |options, value| put_or_auto(&mut options.record_type, value),
        show: |options| or_auto(options.record_type),
    },
    Setting {
        name: "on_conflict",
        values: names::<OnConflict>,
        description: "How to handle a feature of more than one kind: an error, or a column for each kind",
        set: |options, value| put(&mut options.on_conflict, value),
        show: |options| options.on_conflict.to_string(),
    },
    Setting {
        name: "sample_records",
        values: || "a number of records, all".to_owned(),
        description: "Records of each sampled file that columns are inferred from",
        set: |options, value| put(&mut options.sample, &value.replace('_', "")),
        show: |options| options.sample.to_string(),
    },
    Setting {
        name: "verify_crc",
        values: || snake(&names::<VerifyCrc>()),
        description: "When to check the CRC of a record's data; that of its length is always checked",
        set: |options, value| put(&mut options.verify_crc, value),
        show: |options| snake(options.verify_crc.name()),
    },
    Setting {
        name: "on_error",
        values: names::<OnError>,
        description: "How to handle corrupt or non-conforming records: fail, or skip and count them",
        set: |options, value| put(&mut options.on_error, value),
        show: |options| options.on_error.to_string(),
    },
    Setting {
        name: "partial_tail",
        values: names::<PartialTail>,
        description: "How to handle a truncated last record, as of a file that is still being written",
        set: |options, value| put(&mut options.partial_tail, value),
        show: |options| options.partial_tail.to_string(),
    },
    Setting {
        name: "bytes_type",
        values: names::<BytesType>,
        description: "Arrow types of bytes and text; auto: views, which are not copied",
        set: |options, value| put(&mut options.bytes_type, value),
        show: |options| options.bytes_type.to_string(),
    },
    Setting {
        name: "metadata_columns",
        values: || "none, all, or some of _file, _record, _offset, _raw".to_owned(),
        description: "Columns with the origin of each record",
        set: |options, value| put(&mut options.metadata_columns, value),
        show: |options| options.metadata_columns.to_string(),
    },
    Setting {
        name: "pushdown_filters",
        values: booleans,
        description: "Whether to evaluate filters in the scan, and decode other columns only for the rows that pass",
        set: |options, value| put(&mut options.pushdown_filters, value),
        show: |options| options.pushdown_filters.to_string(),
    },
    Setting {
        name: "preserve_order",
        values: booleans,
        description: "Whether rows of a query without sort, join, group or window keep the order of the files",
        set: |options, value| put(&mut options.preserve_order, value),
        show: |options| options.preserve_order.to_string(),
    },
    Setting {
        name: "compression",
        values: names::<Compression>,
        description: "Compression of written files; that of files that are read is detected",
        set: |options, value| put(&mut options.compression, value),
        show: |options| options.compression.to_string(),
    },
    Setting {
        name: "shards",
        values: || "auto, a number of shards".to_owned(),
        description: "Number of shards to write, named as TensorFlow does: name-00000-of-00008",
        set: |options, value| {
            put_or_auto(&mut options.shards, value)
                .filter(|()| options.shards.is_none_or(|shards| shards.get() <= MAX_SHARDS))
        },
        show: |options| or_auto(options.shards),
    },
    Setting {
        name: "overwrite",
        values: booleans,
        description: "Whether to replace existing files",
        set: |options, value| put(&mut options.overwrite, value),
        show: |options| options.overwrite.to_string(),
    },
    Setting {
        name: "lossy",
        values: booleans,
        description: "Whether to allow lossy conversions, such as float64 to float32",
        set: |options, value| put(&mut options.lossy, value),
        show: |options| options.lossy.to_string(),
    },
];

/// The names of an enum's values.
fn names<T: NamedValue>() -> String {
    T::names()
}

fn booleans() -> String {
    "true, false".to_owned()
}

/// A name as SQL writes it.
fn snake(name: &str) -> String {
    name.replace('-', "_")
}

fn put<T: FromStr>(option: &mut T, value: &str) -> Option<()> {
    *option = value.parse().ok()?;
    Some(())
}

fn put_or_auto<T: FromStr>(option: &mut Option<T>, value: &str) -> Option<()> {
    *option = if value == "auto" { None } else { Some(value.parse().ok()?) };
    Some(())
}

fn or_auto<T: ToString>(option: Option<T>) -> String {
    option.map_or_else(|| "auto".to_owned(), |value| value.to_string())
}

impl Setting {
    /// Sets this option of `options`.
    ///
    /// # Errors
    /// A value that the option does not have; the message lists those that it has.
    fn apply(&self, options: &mut TfRecordOptions, value: &str) -> Result<()> {
        let mut changed = options.clone();
        let Some(()) = (self.set)(&mut changed, &value.trim().to_ascii_lowercase()) else {
            return config_err!("tfarrow.{}: found {value:?}, expected one of: {}", self.name, (self.values)());
        };
        *options = changed;
        Ok(())
    }

    fn entry(&self, options: &TfRecordOptions) -> ConfigEntry {
        let key = format!("{PREFIX}.{}", self.name);
        ConfigEntry { key, value: Some((self.show)(options)), description: self.description }
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

    /// The name may be given in full, as [`entries`](Self::entries) does.
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let key = key.trim().to_ascii_lowercase().replace('-', "_");
        let key = key.strip_prefix("tfarrow.").unwrap_or(&key);
        match SETTINGS.iter().find(|setting| setting.name == key) {
            Some(setting) => setting.apply(self, value),
            None => {
                let names = SETTINGS.map(|setting| setting.name).join(", ");
                config_err!("there is no option tfarrow.{key}; there are: {names}")
            }
        }
    }

    /// Names in full, so that `SHOW tfarrow.layout` finds them.
    fn entries(&self) -> Vec<ConfigEntry> {
        SETTINGS.iter().map(|setting| setting.entry(self)).collect()
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
