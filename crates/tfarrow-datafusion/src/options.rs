//! Options of TFRecord tables and files, with the same names in SQL (`SET tfarrow.layout = 'list'`)
//! and in Rust.

use std::{any::Any, fmt, num::NonZeroUsize, path::PathBuf, str::FromStr};

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
use tfarrow_dataset::{Compression, PartialTail};
use tfarrow_index::IndexPlace;
use tfarrow_scan::{SAMPLE_RECORDS, Sample};

use crate::home_dir::HomeDir;

/// The prefix of the names of the options in SQL.
const PREFIX: &str = "tfarrow";
/// The name of the metadata column with the path of the file.
pub(crate) const FILE_COLUMN: &str = "_file";
/// Maximum number of shards that one statement may write; each has an open file.
const MAX_SHARDS: usize = 1000;

/// Options of TFRecord tables, and of writing TFRecord files. `SET` changes the options of tables
/// that are created later. `OPTIONS` of a statement and arguments of `read_tfrecord` take
/// precedence, for their table only.
///
/// | option | values | by default |
/// |---|---|---|
/// | `layout` | `auto`, `list` | `auto` |
/// | `record_type` | `auto`, `example`, `sequence-example`, `example-list`, `raw` | `auto` |
/// | `proto` | a file of message definitions: a `FileDescriptorSet`, or a `.proto` source | none |
/// | `message` | the name of a message in that file, or without a file `tensorflow.Event` | none |
/// | `on_conflict` | `error`, `split` | `error` |
/// | `sample_records` | a number, `all` | `1000` |
/// | `verify_crc` | `always`, `on_parse_failure`, `never` | `always` |
/// | `on_error` | `fail`, `skip` | `fail` |
/// | `partial_tail` | `auto`, `fail`, `ignore` | `auto` |
/// | `bytes_type` | `auto`, `binary`, `binary_view` | `auto` |
/// | `metadata_columns` | `none`, `all`, names of `_file`, `_record`, `_offset`, `_raw` | `none` |
/// | `purge_orphaned_data` | `true`, `false` | `false` |
/// | `index` | `beside`, `none`, a folder of indexes | `beside` |
/// | `pushdown_filters` | `true`, `false` | `true` |
/// | `preserve_order` | `true`, `false` | `true` |
/// | `piece_bytes` | `auto`, a number | `auto`: 256 MiB on a cluster |
/// | `compression` | `none`, `gzip`, `zlib`, `snappy` | `none` |
/// | `shards` | `auto`, a number | `auto` |
/// | `overwrite` | `true`, `false` | `false` |
/// | `lossy` | `true`, `false` | `false` |
/// | `round_floats` | `true`, `false` | `false` |
///
/// The last five are options of writing. The compression of files that are read is detected from
/// their content.
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
    /// Layout of features in columns.
    pub layout: Layout,
    /// Type of the records; `None`: inferred from the sample.
    pub record_type: Option<RecordType>,
    /// The file that defines the type of the records, if they are messages of another type.
    pub proto: Option<PathBuf>,
    /// The name of the type of the records in `proto`, or without a file `tensorflow.Event`.
    /// Without a name, TensorBoard's files are read as a view of their values.
    pub message: Option<String>,
    /// How to handle a feature with more than one kind.
    pub on_conflict: OnConflict,
    /// Records that the schema is inferred from.
    pub sample: Sample,
    /// When to verify the CRC of a record's data. The CRC of its length is always verified.
    pub verify_crc: VerifyCrc,
    /// How to handle corrupt or non-conforming records.
    pub on_error: OnError,
    /// How to handle a truncated last record.
    pub partial_tail: PartialTail,
    /// Limits on records and columns. Only the session sets them; there is no option of this name
    /// in SQL.
    pub limits: Limits,
    /// Arrow types of bytes and text.
    pub bytes_type: BytesType,
    /// Columns with the origin of each record.
    pub metadata_columns: MetadataColumns,
    /// Whether to leave out the values of TensorBoard's events that a later restart of their run
    /// replaces, as TensorBoard does: the values before the event of the restart, from its step on.
    pub purge_orphaned_data: bool,
    /// The indexes of files that are used.
    pub index: IndexChoice,
    /// Whether to evaluate filters in the scan, and to decode other columns only for the rows that
    /// pass.
    pub pushdown_filters: bool,
    /// Whether rows of a query without sort, join, group or window keep the order of the files and
    /// records. Otherwise their order depends on the timing of threads. See
    /// [`PreserveOrder`](crate::PreserveOrder).
    pub preserve_order: bool,
    /// Minimum bytes of a piece of a file, where fewer files than partitions are scanned; `None`:
    /// each file is read by one task. Only an `tfarrow_sql::Engine` reads a query again after an
    /// error of a piece.
    pub piece_bytes: Option<NonZeroUsize>,
    /// Compression of written files.
    pub compression: Compression,
    /// Number of shards to write, with names as in TensorFlow; `None`: DataFusion determines the
    /// number of files.
    pub shards: Option<NonZeroUsize>,
    /// Whether to replace existing files.
    pub overwrite: bool,
    /// Whether to write values that TFRecord cannot represent exactly, such as float64, as the
    /// nearest value.
    pub lossy: bool,
    /// Whether to round floats of 64 bits to those of 32 bits, the only ones of records, and to
    /// report how many changed.
    pub round_floats: bool,
}

/// The indexes of files that are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexChoice(Option<IndexPlace>);

impl IndexChoice {
    /// No index is used.
    pub const NONE: Self = Self(None);

    /// The indexes at this place.
    pub fn at(place: IndexPlace) -> Self {
        Self(Some(place))
    }

    /// Where the indexes are; `None` if none is used.
    pub fn place(&self) -> Option<&IndexPlace> {
        self.0.as_ref()
    }

    /// The choice of this name: `beside`, `none`, or a folder.
    fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "" => None,
            "none" => Some(Self::NONE),
            "beside" => Some(Self::default()),
            _ => {
                let mut folder = name.to_owned();
                if let Some(home) = HomeDir::of_user() {
                    home.expand(&mut folder);
                }
                Some(Self::at(IndexPlace::Folder(folder)))
            }
        }
    }

    fn name(&self) -> &str {
        match &self.0 {
            None => "none",
            Some(IndexPlace::Beside) => "beside",
            Some(IndexPlace::Folder(folder)) => folder,
        }
    }
}

impl Default for IndexChoice {
    fn default() -> Self {
        Self::at(IndexPlace::Beside)
    }
}

/// Arrow types of bytes and text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BytesType {
    /// The fastest types for this crate: views.
    #[default]
    Auto,
    /// `Binary` and `Utf8`, for functions and programs that do not support views.
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
    /// Returns whether columns are view arrays.
    pub fn is_view(self) -> bool {
        match self {
            Self::Auto | Self::BinaryView => true,
            Self::Binary => false,
        }
    }
}

/// Columns of a table with the origin of each record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetadataColumns {
    /// `_file`: the path of the file.
    pub file: bool,
    /// `_record`: the number of the record in its file, from 0.
    pub record: bool,
    /// `_offset`: the start of the frame in the decompressed file, in bytes.
    pub offset: bool,
    /// `_raw`: the bytes of the record.
    pub raw: bool,
}

impl MetadataColumns {
    /// No metadata columns.
    pub const NONE: Self = Self {
        file: false,
        record: false,
        offset: false,
        raw: false,
    };
    /// All metadata columns.
    pub const ALL: Self = Self {
        file: true,
        record: true,
        offset: true,
        raw: true,
    };

    /// The roles of the columns that a decoder produces: all except `_file`, which is a partition
    /// column.
    pub(crate) fn roles(self) -> impl Iterator<Item = Role> {
        let all = [
            (self.record, Role::Index),
            (self.offset, Role::Offset),
            (self.raw, Role::Record),
        ];
        all.into_iter()
            .filter_map(|(wanted, role)| wanted.then_some(role))
    }

    /// The flag and the name of each column.
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
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            match word {
                "none" => columns = Self::NONE,
                "all" => columns = Self::ALL,
                name => match columns
                    .columns()
                    .into_iter()
                    .find(|(_, column)| *column == name)
                {
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
        let names = columns
            .columns()
            .into_iter()
            .filter_map(|(wanted, name)| wanted.then_some(name));
        let names = names.collect::<Vec<_>>().join(", ");
        f.pad(if names.is_empty() { "none" } else { &names })
    }
}

impl Default for TfRecordOptions {
    fn default() -> Self {
        Self {
            layout: Layout::Auto,
            record_type: None,
            proto: None,
            message: None,
            on_conflict: OnConflict::Fail,
            sample: Sample::Records(SAMPLE_RECORDS),
            verify_crc: VerifyCrc::Always,
            on_error: OnError::Fail,
            partial_tail: PartialTail::default(),
            limits: Limits::default(),
            bytes_type: BytesType::Auto,
            metadata_columns: MetadataColumns::NONE,
            purge_orphaned_data: false,
            index: IndexChoice::default(),
            pushdown_filters: true,
            preserve_order: true,
            piece_bytes: None,
            compression: Compression::None,
            shards: None,
            overwrite: false,
            lossy: false,
            round_floats: false,
        }
    }
}

/// Minimum bytes of a piece of a file on a cluster: some seconds of work.
const PIECE_BYTES: usize = 256 << 20;

impl TfRecordOptions {
    /// Returns whether one statement may write this number of shards.
    pub fn allows_shards(shards: NonZeroUsize) -> bool {
        shards.get() <= MAX_SHARDS
    }

    /// Changes the defaults for plans whose partitions run as tasks in other processes. A message
    /// with an array of views contains the buffers of all views; one ordered partition would be one
    /// task; and so would be a long file.
    pub fn prepare_for_engine(&mut self) {
        if self.bytes_type == BytesType::Auto {
            self.bytes_type = BytesType::Binary;
        }
        self.preserve_order = false;
        self.piece_bytes = self.piece_bytes.or(NonZeroUsize::new(PIECE_BYTES));
    }

    /// Returns whether options state the type of the records, so that TensorBoard's events are rows
    /// and no table of values.
    pub fn states_type(&self) -> bool {
        self.message.is_some() || self.record_type.is_some()
    }

    /// The options in `config`, or the defaults if TFRecord is not enabled in the session.
    pub fn of(config: &SessionConfig) -> Self {
        config
            .options()
            .extensions
            .get::<Self>()
            .cloned()
            .unwrap_or_default()
    }

    /// Overrides options by those of a statement, whose names are `layout` or `tfarrow.layout`.
    ///
    /// # Errors
    /// An unknown name or value.
    pub fn with<'a>(mut self, given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        for (name, value) in given {
            // The planner prefixes names without a dot with `format.`.
            self.set(name.strip_prefix("format.").unwrap_or(name), value)?;
        }
        Ok(self)
    }
}

/// Definition of an option: name in SQL, values, description, setter and getter.
struct Setting {
    name: &'static str,
    values: fn() -> String,
    description: &'static str,
    /// Sets the option to a value; `None` for an invalid value.
    set: fn(&mut TfRecordOptions, &str) -> Option<()>,
    show: fn(&TfRecordOptions) -> String,
}

/// All options, in the order of `SHOW ALL`.
const SETTINGS: [Setting; 21] = [
    Setting {
        name: "layout",
        values: names::<Layout>,
        description: "How features become columns: plain values and text where the sample allows it, or always lists",
        set: |options, value| put(&mut options.layout, value),
        show: |options| options.layout.to_string(),
    },
    Setting {
        name: "record_type",
        // The options `proto` and `message` name the type of messages.
        values: || {
            format!(
                "auto, {}",
                RecordType::SELF_DESCRIBED.map(RecordType::name).join(", ")
            )
        },
        description: "Type of the records; auto: inferred from the sample",
        set: |options, value| {
            put_or_auto(&mut options.record_type, value)?;
            options
                .record_type
                .is_none_or(|it| RecordType::SELF_DESCRIBED.contains(&it))
                .then_some(())
        },
        show: |options| or_auto(options.record_type),
    },
    Setting {
        name: "proto",
        values: || "the name of a file".to_owned(),
        description: "File that defines the type of the records: a FileDescriptorSet, or a .proto source",
        set: |options, value| {
            let mut file = value.to_owned();
            if let Some(home) = HomeDir::of_user() {
                home.expand(&mut file);
            }
            put_text(&mut options.proto, &file)
        },
        show: |options| {
            options
                .proto
                .as_ref()
                .map(|file| file.display().to_string())
                .unwrap_or_default()
        },
    },
    Setting {
        name: "message",
        values: || "the name of a message".to_owned(),
        description: "Type of the records: the name of a message that the file of the option proto defines; without a file \
                      tensorflow.Event",
        set: |options, value| put_text(&mut options.message, value),
        show: |options| options.message.clone().unwrap_or_default(),
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
        name: "purge_orphaned_data",
        values: booleans,
        description: "Whether to leave out the values of events that a later restart of their run replaces",
        set: |options, value| put(&mut options.purge_orphaned_data, value),
        show: |options| options.purge_orphaned_data.to_string(),
    },
    Setting {
        name: "index",
        values: || "beside, none, the name of a folder".to_owned(),
        description: "Indexes of files that are used: those beside the files, none, or those in a folder",
        set: |options, value| {
            options.index = IndexChoice::named(value)?;
            Some(())
        },
        show: |options| options.index.name().to_owned(),
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
        name: "piece_bytes",
        values: || "auto, a number of bytes".to_owned(),
        description: "Minimum bytes of a piece of a long file that several tasks of a cluster read",
        set: |options, value| put_or_auto(&mut options.piece_bytes, value),
        show: |options| or_auto(options.piece_bytes),
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
                .filter(|()| options.shards.is_none_or(TfRecordOptions::allows_shards))
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
    Setting {
        name: "round_floats",
        values: booleans,
        description: "Whether to round float64 to float32 in written files, and to report how many values changed",
        set: |options, value| put(&mut options.round_floats, value),
        show: |options| options.round_floats.to_string(),
    },
];

/// The names of an enum's values.
fn names<T: NamedValue>() -> String {
    T::names()
}

fn booleans() -> String {
    "true, false".to_owned()
}

/// Converts a name to snake case, as in SQL.
fn snake(name: &str) -> String {
    name.replace('-', "_")
}

fn put<T: FromStr>(option: &mut T, value: &str) -> Option<()> {
    *option = value.to_ascii_lowercase().parse().ok()?;
    Some(())
}

/// Sets an option to a text, whose case matters; an empty text unsets it.
fn put_text<T: for<'t> From<&'t str>>(option: &mut Option<T>, value: &str) -> Option<()> {
    *option = (!value.is_empty()).then(|| value.into());
    Some(())
}

fn put_or_auto<T: FromStr>(option: &mut Option<T>, value: &str) -> Option<()> {
    let value = value.to_ascii_lowercase();
    *option = if value == "auto" {
        None
    } else {
        Some(value.parse().ok()?)
    };
    Some(())
}

fn or_auto<T: ToString>(option: Option<T>) -> String {
    option.map_or_else(|| "auto".to_owned(), |value| value.to_string())
}

impl Setting {
    /// Sets this option of `options`.
    ///
    /// # Errors
    /// An invalid value; the message lists the valid ones.
    fn apply(&self, options: &mut TfRecordOptions, value: &str) -> Result<()> {
        let mut changed = options.clone();
        let Some(()) = (self.set)(&mut changed, value.trim()) else {
            return config_err!(
                "tfarrow.{}: found {value:?}, expected one of: {}",
                self.name,
                (self.values)()
            );
        };
        *options = changed;
        Ok(())
    }

    fn entry(&self, options: &TfRecordOptions) -> ConfigEntry {
        let key = format!("{PREFIX}.{}", self.name);
        ConfigEntry {
            key,
            value: Some((self.show)(options)),
            description: self.description,
        }
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

    /// Sets an option by its name, with or without the prefix `tfarrow.`.
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

    /// All options. Names have the prefix, so that `SHOW tfarrow.layout` finds them.
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
                let entry = options
                    .entries()
                    .into_iter()
                    .find(|entry| entry.key == format!("tfarrow.{key}"))
                    .unwrap();
                assert_eq!(entry.value.as_deref(), Some(expect));
            }
            (Err(error), Err(expect)) => assert_eq!(error.strip_backtrace(), expect),
            (found, expect) => panic!("found {found:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn values_are_set_and_shown() {
        check("layout", "LIST", Ok("list"));
        check("record_type", "sequence_example", Ok("sequence-example"));
        check("record_type", "auto", Ok("auto"));
        check("proto", "Defs/Scenario.desc", Ok("Defs/Scenario.desc"));
        check(
            "message",
            "waymo.open_dataset.Scenario",
            Ok("waymo.open_dataset.Scenario"),
        );
        check("message", "", Ok(""));
        check("on_conflict", "Split", Ok("split"));
        check("sample_records", "10_000", Ok("10000"));
        check("sample_records", "all", Ok("all"));
        check("verify_crc", "never", Ok("never"));
        check("pushdown_filters", "FALSE", Ok("false"));
        check("index", "NONE", Ok("none"));
        check("index", "beside", Ok("beside"));
        check("index", "My/Indexes", Ok("My/Indexes"));
        check("on_error", "skip", Ok("skip"));
        check("partial_tail", "ignore", Ok("ignore"));
        check("bytes_type", "binary_view", Ok("binary_view"));
        check("metadata_columns", "_record,_file", Ok("_file, _record"));
        check(
            "metadata_columns",
            "all",
            Ok("_file, _record, _offset, _raw"),
        );
        check("metadata_columns", "", Ok("none"));
        check("compression", "GZIP", Ok("gzip"));
        check("shards", "8", Ok("8"));
        check("shards", "auto", Ok("auto"));
        check("overwrite", "true", Ok("true"));
    }

    #[test]
    fn errors_list_the_valid_values_and_names() {
        let error = "Invalid or Unsupported Configuration: tfarrow.layout: found \"wide\", expected one of: auto, list";
        check("layout", "wide", Err(error));
        let error = "Invalid or Unsupported Configuration: tfarrow.sample_records: found \"0\", expected one of: \
                     a number of records, all";
        check("sample_records", "0", Err(error));
        let error = "Invalid or Unsupported Configuration: there is no option tfarrow.layuot; there are: layout, \
                     record_type, proto, message, on_conflict, sample_records, verify_crc, on_error, partial_tail, \
                     bytes_type, metadata_columns, purge_orphaned_data, index, pushdown_filters, preserve_order, piece_bytes, compression, \
                     shards, overwrite, lossy, round_floats";
        check("layuot", "list", Err(error));
    }
}
