//! `tfarrow merge`: the results of all parts of a data set, as one run over all shards prints them.

use anyhow::{Context, Result};
use clap::ValueEnum;
use tfarrow_dataset::{FormatFilter, resolve_filtered};
use tfarrow_report::{
    EventCurves, FORMAT, InferredSchema, LAYOUT, PartSettings, SchemaFormat, StatisticsReport,
    report_title, required, text::escape,
};
use tfarrow_stats::{MergedContent, MergedResult, PartMerger, PartialResult};

use crate::{
    args::Merge,
    commands::{report, schema, stats, validate},
    error::Usage,
    stderr,
};

/// Maximum size of the result of a part in bytes.
const MAX_BYTES: u64 = 2 << 30;

/// The error of a `schema.pbtxt` of parts that have no statistics of values.
const NO_VALUES: &str = "a schema.pbtxt depends on the values, which these parts of schema do not have: read all parts \
                         again with `schema --format pbtxt`";

/// The error of another format of parts that have statistics of values in place of columns.
const NO_COLUMNS: &str = "these are parts of `schema --format pbtxt`, which have no other format: leave --format and --json \
                          out, or read all parts again with the format";

/// Merges the parts, and prints the result.
pub(crate) fn run(args: &Merge) -> Result<u8> {
    let MergedResult {
        shards,
        settings,
        notes,
        content,
    } = read(&args.parts)?;
    let settings = PartSettings::parse(&settings)?;
    args.check(&settings.command)?;
    notes.iter().for_each(|note| stderr::print(&escape(note)));
    match content {
        MergedContent::Columns(inferred, probable) => {
            let layout = required(settings.layout, LAYOUT)?;
            let format = args.format(&settings)?;
            if format == SchemaFormat::Pbtxt {
                return Err(Usage(NO_VALUES.to_owned()).into());
            }
            let found = InferredSchema::new(shards, inferred, layout, settings.record_type)?
                .with_probable(probable);
            schema::print(&found, format, &settings.sources)
        }
        MergedContent::Statistics(statistics) if settings.command == schema::NAME => {
            if args.format::<SchemaFormat>(&settings)? != SchemaFormat::Pbtxt {
                return Err(Usage(NO_COLUMNS.to_owned()).into());
            }
            schema::print_pbtxt(&statistics)
        }
        MergedContent::Statistics(statistics) => {
            let report = StatisticsReport::new(statistics.summarize());
            stats::print(args.format(&settings)?, &statistics, &report)
        }
        MergedContent::Slices(by, found) => stats::print(
            args.format(&settings)?,
            &found.all,
            &StatisticsReport::sliced(&found, &by),
        ),
        MergedContent::Comparison(compared, None) => {
            let update = args
                .update
                .as_deref()
                .map(validate::create_update)
                .transpose()?;
            validate::print(&compared, args.format(&settings)?, update)
        }
        MergedContent::Comparison(compared, Some(profile)) => {
            let Some(output) = &args.output else {
                return Err(Usage(
                    "these are parts of a report: name its page with -o FILE".to_owned(),
                )
                .into());
            };
            let json = args.json || settings.format.as_deref() == Some(report::JSON);
            report::check(output, json)?;
            let title = args
                .title
                .clone()
                .or(settings.title)
                .unwrap_or_else(|| report_title(&settings.sources));
            report::write(
                output,
                json,
                &title,
                &compared,
                &profile,
                &shards,
                &EventCurves::default(),
            )
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
        match options
            .into_iter()
            .find(|(_, is_given, of)| *is_given && *of != command)
        {
            Some((option, _, of)) => Err(Usage(format!(
                "{option} is an option of {of}, and these are parts of {command}"
            ))),
            None if self.format.is_some() && command == report::NAME => {
                Err(Usage("a report has one format".to_owned()))
            }
            None => Ok(()),
        }
    }

    /// The output format: that of the command line, or else that of the parts.
    fn format<F: ValueEnum>(&self, settings: &PartSettings) -> Result<F> {
        let json = self.json.then_some("json");
        let name = required(
            json.or(self.format.as_deref())
                .or(settings.format.as_deref()),
            FORMAT,
        )?;
        if let Ok(format) = F::from_str(name, false) {
            return Ok(format);
        }
        let mut known = Vec::new();
        for format in F::value_variants() {
            if let Some(value) = format.to_possible_value() {
                known.push(value.get_name().to_owned());
            }
        }
        let known = known.join(", ");
        Err(Usage(format!("there is no format {name}; there are {known}")).into())
    }
}

/// Reads and merges the parts.
fn read(parts: &[String]) -> Result<MergedResult> {
    let found = resolve_filtered(parts, FormatFilter::Files)?;
    stderr::skipped_files(&found.skipped_files, &found.missing);
    let mut merger = PartMerger::default();
    for shard in &found.shards {
        let name = shard.path.display();
        let part = PartialResult::from_bytes(&shard.read_all(PartialResult::MAGIC, MAX_BYTES)?)
            .with_context(|| name.to_string())?;
        merger.add(part).with_context(|| name.to_string())?;
    }
    Ok(merger.finish()?)
}
