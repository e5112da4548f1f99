//! The settings of a command in the results of parts, by which `tfarrow merge` prints what one run
//! prints.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use tfarrow_codec::{Layout, RecordType};
use tfarrow_stats::COMMAND;

/// The names of the settings besides that of the command.
const SOURCES: &str = "sources";
const BASELINE: &str = "baseline";
/// The name of the setting of the output format.
pub const FORMAT: &str = "format";
/// The name of the setting of the layout.
pub const LAYOUT: &str = "layout";
const RECORD_TYPE: &str = "record-type";
const TITLE: &str = "title";

/// The settings of a command, which all parts of a data set have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartSettings {
    /// The name of the command.
    pub command: String,
    /// The sources.
    pub sources: Vec<String>,
    /// The sources of the baseline, of `validate` and `report`.
    pub baseline: Vec<String>,
    /// The output format, of a command that has several.
    pub format: Option<String>,
    /// The layout of columns, of `schema`.
    pub layout: Option<Layout>,
    /// The type of the records, of `schema` if it is stated.
    pub record_type: Option<RecordType>,
    /// The title, of `report` if it is stated.
    pub title: Option<String>,
}

impl PartSettings {
    /// Returns the settings by name, as the results of parts have them. The sources have no
    /// queries, which may be secrets such as signatures, and which may differ between processes.
    ///
    /// # Errors
    /// A failure of the JSON writer, of which no case is known.
    pub fn to_map(&self) -> Result<BTreeMap<String, String>> {
        let Self {
            command,
            sources,
            baseline,
            format,
            layout,
            record_type,
            title,
        } = self;
        let baseline = if baseline.is_empty() {
            None
        } else {
            Some(source_list(baseline)?)
        };
        let settings = [
            (COMMAND, Some(command.clone())),
            (SOURCES, Some(source_list(sources)?)),
            (BASELINE, baseline),
            (FORMAT, format.clone()),
            (LAYOUT, layout.map(|layout| layout.name().to_owned())),
            (
                RECORD_TYPE,
                record_type.map(|record_type| record_type.name().to_owned()),
            ),
            (TITLE, title.clone()),
        ];
        Ok(settings
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect())
    }

    /// Parses settings, which come from a file and are not trusted.
    ///
    /// # Errors
    /// Settings that [`to_map`](Self::to_map) has not made.
    pub fn parse(settings: &BTreeMap<String, String>) -> Result<Self> {
        let command = required(settings.get(COMMAND), COMMAND)?;
        let sources = required(settings.get(SOURCES), SOURCES)?;
        Ok(Self {
            command: command.clone(),
            sources: serde_json::from_str(sources)?,
            baseline: settings
                .get(BASELINE)
                .map_or(Ok(Vec::new()), |list| serde_json::from_str(list))?,
            format: settings.get(FORMAT).cloned(),
            layout: settings.get(LAYOUT).map(|name| name.parse()).transpose()?,
            record_type: settings
                .get(RECORD_TYPE)
                .map(|name| name.parse())
                .transpose()?,
            title: settings.get(TITLE).cloned(),
        })
    }
}

/// The JSON of sources without their queries.
fn source_list(sources: &[String]) -> serde_json::Result<String> {
    let sources: Vec<_> = sources.iter().map(|source| without_query(source)).collect();
    serde_json::to_string(&sources)
}

/// A source without its query, if it is the URL of a file on a web server.
fn without_query(source: &str) -> &str {
    let is_url = ["http://", "https://"].iter().any(|scheme| {
        source
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    match source.split_once('?') {
        Some((url, _)) if is_url => url,
        _ => source,
    }
}

/// The value of a setting that the command needs.
pub fn required<T>(value: Option<T>, name: &str) -> Result<T> {
    value.with_context(|| format!("the parts do not have the setting {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_sources_are_left_out() {
        let sources = [
            "https://host/a.tfrecord?signature=secret",
            "HTTP://host/b?x",
            "s3://bucket/?.tfrecord",
            "a?.b",
        ];
        let settings = PartSettings {
            sources: sources.map(str::to_owned).to_vec(),
            ..PartSettings::default()
        };
        let map = settings.to_map().unwrap();
        assert!(!map[SOURCES].contains("secret"));
        let restored = PartSettings::parse(&map).unwrap().sources;
        assert_eq!(
            restored,
            [
                "https://host/a.tfrecord",
                "HTTP://host/b",
                "s3://bucket/?.tfrecord",
                "a?.b"
            ]
        );
    }

    #[test]
    fn settings_are_restored_from_their_map() {
        let least = PartSettings {
            command: "stats".to_owned(),
            ..PartSettings::default()
        };
        let all = PartSettings {
            command: "schema".to_owned(),
            sources: vec!["a \"b\"".to_owned(), "c\n".to_owned()],
            baseline: vec!["d".to_owned()],
            format: Some("json".to_owned()),
            layout: Some(Layout::List),
            record_type: Some(RecordType::SequenceExample),
            title: Some("Trees".to_owned()),
        };
        for (settings, count) in [(least, 2), (all, 7)] {
            let map = settings.to_map().unwrap();
            assert_eq!(map.len(), count);
            assert_eq!(PartSettings::parse(&map).unwrap(), settings);
        }
        let error = PartSettings::parse(&BTreeMap::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the parts do not have the setting command"
        );
    }
}
