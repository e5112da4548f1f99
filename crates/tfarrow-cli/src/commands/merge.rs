//! `tfarrow merge`: the results of all parts of a data set, as one run over all shards prints them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use tfarrow_codec::{Layout, RecordType};
use tfarrow_dataset::{FormatFilter, resolve_filtered};
use tfarrow_stats::{COMMAND, MergedContent, MergedResult, PartMerger, PartialResult};

use crate::{
    args::Merge,
    commands::{
        partial::{FORMAT, LAYOUT, NOTES, RECORD_TYPE, SOURCES, TITLE, cause},
        report,
        schema::{self, InferredSchema},
        stats::{self, StatisticsReport},
        validate,
    },
    error::Usage,
    event_curves::EventCurves,
    page, stderr,
    text::escape,
};

/// Maximum size of the result of a part in bytes.
const MAX_BYTES: u64 = 2 << 30;

/// Merges the parts, and prints the result.
pub(crate) fn run(args: &Merge) -> Result<u8> {
    let MergedResult { shards, settings, content } = read(&args.parts)?;
    let settings = Settings(settings);
    let command = settings.text(COMMAND)?;
    args.check(command)?;
    settings.list(NOTES)?.iter().for_each(|note| stderr::print(note));
    match content {
        MergedContent::Columns(inferred, probable) => {
            let (layout, stated) = (settings.text(LAYOUT)?.parse::<Layout>()?, settings.record_type()?);
            let found = InferredSchema::new(shards, inferred, layout, stated)?.with_probable(probable);
            schema::print(&found, settings.format(args)?, &settings.list(SOURCES)?)
        }
        MergedContent::Statistics(statistics) if command == schema::NAME => schema::print_pbtxt(&statistics),
        MergedContent::Statistics(statistics) => {
            let report = StatisticsReport::new(statistics.summarize());
            stats::print(settings.format(args)?, &statistics, &report)
        }
        MergedContent::Slices(by, found) => {
            stats::print(settings.format(args)?, &found.all, &StatisticsReport::sliced(&found, &by))
        }
        MergedContent::Comparison(compared, None) => {
            let update = args.update.as_deref().map(validate::create_update).transpose()?;
            validate::print(&compared, settings.format(args)?, update)
        }
        MergedContent::Comparison(compared, Some(profile)) => {
            let Some(output) = &args.output else {
                return Err(Usage("these are parts of a report: name its page with -o FILE".to_owned()).into());
            };
            report::check(output, args.json)?;
            let title = args.title.clone().or_else(|| settings.0.get(TITLE).cloned());
            let sources = settings.list(SOURCES)?;
            let title = title.unwrap_or_else(|| page::title(&sources));
            report::write(output, args.json, &title, &compared, &profile, &shards, &EventCurves::default())
        }
    }
}

impl Merge {
    /// Checks that the options are those of the command of the parts.
    fn check(&self, command: &str) -> Result<(), Usage> {
        let options = [
            ("--output", self.output.is_some(), report::NAME),
            ("--title", self.title.is_some(), report::NAME),
            ("--update", self.update.is_some(), validate::NAME),
        ];
        match options.into_iter().find(|(_, is_given, of)| *is_given && *of != command) {
            Some((option, _, of)) => {
                Err(Usage(format!("{option} is an option of {of}, and these are parts of {command}")))
            }
            None if self.format.is_some() && command == report::NAME => {
                Err(Usage("a report has one format".to_owned()))
            }
            None => Ok(()),
        }
    }
}

/// Reads and merges the parts.
fn read(parts: &[String]) -> Result<MergedResult> {
    let found = resolve_filtered(parts, FormatFilter::Files)?;
    stderr::skipped_files(&found.skipped_files, &found.missing);
    let mut merger = PartMerger::default();
    for shard in &found.shards {
        let name = || shard.path.display().to_string();
        let part = PartialResult::from_bytes(&shard.read_all(MAX_BYTES)?).with_context(name)?;
        merger.add(part).map_err(cause).with_context(name)?;
    }
    merger.finish().map_err(cause)
}

/// The settings of the command that has read the parts. They come from a file, and are not trusted.
struct Settings(BTreeMap<String, String>);

impl Settings {
    fn text(&self, name: &str) -> Result<&str> {
        self.0.get(name).map(String::as_str).ok_or_else(|| anyhow!("the parts do not have the setting {name}"))
    }

    /// A list of texts, escaped.
    fn list(&self, name: &str) -> Result<Vec<String>> {
        let texts: Vec<String> = serde_json::from_str(self.text(name)?)?;
        Ok(texts.iter().map(|text| escape(text)).collect())
    }

    fn record_type(&self) -> Result<Option<RecordType>> {
        Ok(self.0.get(RECORD_TYPE).map(|name| name.parse()).transpose()?)
    }

    /// The output format: that of the command line, or else that of the parts.
    fn format<F: ValueEnum>(&self, args: &Merge) -> Result<F> {
        let json = args.json.then_some("json");
        let name = json.or(args.format.as_deref()).map_or_else(|| self.text(FORMAT), Ok)?;
        let known = || F::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let known = || known().map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ");
        Ok(F::from_str(name, false).map_err(|_| Usage(format!("there is no format {name}; there are {}", known())))?)
    }
}
