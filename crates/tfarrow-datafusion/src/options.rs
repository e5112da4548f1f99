//! What a user may choose: how records become columns, and which checks are made. One set, one spelling, in SQL
//! (`SET tfarrow.layout = 'list'`) as in Rust.

use std::any::Any;

use datafusion::{
    common::config::{ConfigEntry, ConfigExtension, ExtensionOptions},
    error::{DataFusionError, Result},
    execution::config::SessionConfig,
};
use tfarrow_codec::{Layout, RecordType, VerifyCrc};
use tfarrow_dataset::{SAMPLE_RECORDS, Sample};

/// How TFRecord tables are made. What is `SET` counts for the tables that are named after it.
///
/// | option | values | by default |
/// |---|---|---|
/// | `tfarrow.layout` | `auto`, `list` | `auto` |
/// | `tfarrow.record_type` | `auto`, `example`, `sequence-example`, `raw` | `auto` |
/// | `tfarrow.sample_records` | a number, `all` | `1000` |
/// | `tfarrow.pushdown_filters` | `true`, `false` | `true` |
/// | `tfarrow.verify_crc` | `always`, `on_parse_failure`, `never` | `always` |
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
    /// Which records the schema is inferred from.
    pub sample: Sample,
    /// Whether the CRC of a record's data is checked. The CRC of its length always is.
    pub verify_crc: VerifyCrc,
    /// Whether a scan decides the filters of a query, and decodes the other columns of the rows that they keep alone.
    pub pushdown_filters: bool,
}

impl Default for TfRecordOptions {
    fn default() -> Self {
        Self {
            layout: Layout::Auto,
            record_type: None,
            sample: Sample::Records(SAMPLE_RECORDS),
            verify_crc: VerifyCrc::Always,
            pushdown_filters: true,
        }
    }
}

impl TfRecordOptions {
    /// The options that `config` holds; the defaults where it holds none.
    pub fn of(config: &SessionConfig) -> Self {
        config.options().extensions.get::<Self>().cloned().unwrap_or_default()
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
const PUSHDOWN_FILTERS: Known = Known {
    name: "pushdown_filters",
    values: "true, false",
    description: "Whether a scan decides the filters of a query, and decodes the other columns of the rows they keep alone",
};
const KNOWN: [Known; 5] = [LAYOUT, RECORD_TYPE, SAMPLE, VERIFY_CRC, PUSHDOWN_FILTERS];

impl Known {
    /// `value`, or an error that lists what there is.
    fn take<T>(&self, value: Option<T>, found: &str) -> Result<T> {
        let Self { name, values, .. } = self;
        value.ok_or_else(|| {
            DataFusionError::Configuration(format!("tfarrow.{name}: found {found:?}, expected one of: {values}"))
        })
    }

    fn entry(&self, value: String) -> ConfigEntry {
        ConfigEntry { key: self.name.to_owned(), value: Some(value), description: self.description }
    }
}

impl ConfigExtension for TfRecordOptions {
    const PREFIX: &'static str = "tfarrow";
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

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let word = value.trim().to_ascii_lowercase();
        match key {
            "layout" => self.layout = LAYOUT.take(layout_of(&word), value)?,
            "record_type" => self.record_type = RECORD_TYPE.take(record_type_of(&word), value)?,
            "sample_records" => self.sample = SAMPLE.take(sample_of(&word), value)?,
            "verify_crc" => self.verify_crc = VERIFY_CRC.take(verify_crc_of(&word), value)?,
            "pushdown_filters" => self.pushdown_filters = PUSHDOWN_FILTERS.take(word.parse().ok(), value)?,
            _ => {
                let names = KNOWN.map(|known| known.name).join(", ");
                let message = format!("there is no option tfarrow.{key}; there are: {names}");
                return Err(DataFusionError::Configuration(message));
            }
        }
        Ok(())
    }

    /// The keys have no prefix, as DataFusion's own extensions have none: that is what it forwards to other nodes.
    fn entries(&self) -> Vec<ConfigEntry> {
        vec![
            LAYOUT.entry(layout_name(self.layout).to_owned()),
            RECORD_TYPE.entry(self.record_type.map_or("auto", RecordType::name).to_owned()),
            SAMPLE.entry(sample_name(&self.sample)),
            VERIFY_CRC.entry(verify_crc_name(self.verify_crc).to_owned()),
            PUSHDOWN_FILTERS.entry(self.pushdown_filters.to_string()),
        ]
    }
}

fn layout_of(word: &str) -> Option<Layout> {
    [Layout::Auto, Layout::List].into_iter().find(|layout| layout_name(*layout) == word)
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
    let all = [VerifyCrc::Always, VerifyCrc::OnParseFailure, VerifyCrc::Never];
    all.into_iter().find(|verify| verify_crc_name(*verify) == word)
}

fn verify_crc_name(verify: VerifyCrc) -> &'static str {
    match verify {
        VerifyCrc::Always => "always",
        VerifyCrc::OnParseFailure => "on_parse_failure",
        VerifyCrc::Never => "never",
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
                let entry = options.entries().into_iter().find(|entry| entry.key == key).unwrap();
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
        check("sample_records", "10_000", Ok("10000"));
        check("sample_records", "all", Ok("all"));
        check("verify_crc", "never", Ok("never"));
        check("pushdown_filters", "FALSE", Ok("false"));
    }

    #[test]
    fn what_is_unknown_is_refused_with_what_is_known() {
        let error = "Invalid or Unsupported Configuration: tfarrow.layout: found \"wide\", expected one of: auto, list";
        check("layout", "wide", Err(error));
        let error = "Invalid or Unsupported Configuration: tfarrow.sample_records: found \"0\", expected one of: \
                     a number of records, all";
        check("sample_records", "0", Err(error));
        let error = "Invalid or Unsupported Configuration: there is no option tfarrow.layuot; there are: layout, \
                     record_type, sample_records, verify_crc, pushdown_filters";
        check("layuot", "list", Err(error));
    }
}
