//! `tfarrow validate`: compares a data set with a schema and a baseline.

use std::{
    fs,
    io::{self, Read, Write},
    path::Path,
};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use tfarrow_codec::{Place, infer::RecordObserver};
use tfarrow_dataset::{OutputFile, Part, Shard, are_events, existing_objects, is_remote};
use tfarrow_stats::{
    Anomaly, AnomalyKind, Comparison, Distance, Expected, NonFinite, PartExpected, PartWork,
    Statistics, Validation, anomalies_to_text, proto::Schema, schema_from_text, schema_to_text,
};

use crate::{
    args::{Expectations, Looking, PartArgs, Validate, ValidateFormat},
    commands::{
        inspect,
        part_settings::PartSettings,
        partial::{self, value_name},
        stats,
    },
    error::{FOUND, SUCCESS, Usage},
    output::{self, BAD, GOOD, Screen, count, plural, short},
    stderr,
    text::escape,
};

/// The name of the command.
pub(super) const NAME: &str = "validate";

/// A data set, and the schema and the baseline that it is compared with.
#[derive(Clone, Copy)]
pub(super) struct ComparisonTask<'a> {
    pub(super) sources: &'a [String],
    pub(super) against: &'a Expectations,
    /// The environment of the schema.
    pub(super) environment: Option<&'a str>,
    pub(super) looking: &'a Looking,
}

/// Prints the anomalies.
pub(crate) fn run(args: &Validate) -> Result<u8> {
    let Validate {
        sources,
        against,
        environment,
        looking,
        ..
    } = args;
    let task = ComparisonTask {
        sources,
        against,
        environment: environment.as_deref(),
        looking,
    };
    let format = args.format.get();
    if let Some(part) = args.part.part {
        let settings = PartSettings {
            command: NAME.to_owned(),
            sources: sources.clone(),
            baseline: against.baseline.clone(),
            format: Some(value_name(&format)),
            ..PartSettings::default()
        };
        return compare_part(task, (&args.part, part), None, settings);
    }
    let update = args.update.as_deref().map(create_update).transpose()?;
    let Compared { compared, .. } = compare(task, || ())?;
    print(&compared, format, update)
}

/// Prints the anomalies of a comparison, writes the updated schema, and returns the exit status.
pub(super) fn print(
    compared: &Comparison,
    format: ValidateFormat,
    update: Option<OutputFile>,
) -> Result<u8> {
    if let Some(mut file) = update {
        file.write_all(schema_to_text(&compared.found.updated)?.as_bytes())?;
        file.persist()?;
    }
    let report = ValidationReport {
        found: &compared.found,
        distances: &compared.distances,
    };
    match format {
        ValidateFormat::Table => output::line(&report.text(Screen::stdout()))?,
        ValidateFormat::Json => output::line(&report.json()?)?,
        // The command line requires a schema or a baseline.
        ValidateFormat::Pbtxt => {
            let schema = compared.schema.as_ref().unwrap_or(&compared.found.updated);
            output::bytes(anomalies_to_text(&compared.found.to_proto(schema))?.as_bytes())?;
        }
    }
    if report.records() == 0 {
        stderr::print("there are no records to validate");
    }
    Ok(exit_status(compared, report.records() == 0))
}

/// Compares a part of a data set, and writes the result. `examples` is the number of example
/// records of a report.
pub(super) fn compare_part(
    ComparisonTask {
        sources,
        against,
        environment,
        looking,
    }: ComparisonTask<'_>,
    (args, part): (&PartArgs, Part),
    examples: Option<usize>,
    settings: PartSettings,
) -> Result<u8> {
    if against.schema.is_none() && !against.baseline.is_empty() {
        let why = "--baseline with --part needs --schema: `tfarrow schema BASELINE --format pbtxt` infers it, also in parts";
        return Err(Usage(why.to_owned()).into());
    }
    let schema = against.schema.as_deref().map(read_schema).transpose()?;
    let baseline = match against.baseline.is_empty() {
        true => None,
        false => Some(partial::source(&against.baseline, part)?),
    };
    let (baseline, notes) = baseline
        .map(|baseline| (baseline.shards, baseline.notes))
        .unzip();
    let (schema, baseline, max_drift) = (schema.as_ref(), baseline.as_deref(), against.max_drift);
    let expected = PartExpected {
        schema,
        environment,
        baseline,
        max_drift,
        examples,
    };
    let mut source = partial::source(sources, part)?;
    source.notes.splice(0..0, notes.unwrap_or_default());
    if examples.is_some() && are_events(&source.shards) {
        let why = "the curves of TensorBoard's event files are drawn from all of them at once: leave --part out";
        return Err(Usage(why.to_owned()).into());
    }
    partial::write(
        args,
        part,
        &source,
        PartWork::Comparison(expected),
        &settings,
        &inspect::options(looking),
    )
}

/// A data set that was compared with a schema and a baseline.
pub(super) struct Compared<O> {
    pub(super) compared: Comparison,
    /// The further observers, one for each thread.
    pub(super) others: Vec<O>,
    /// The shards of the data set.
    pub(super) shards: Vec<Shard>,
}

/// Compares a data set with a schema and a baseline. The observers that `others` makes receive each
/// record as well.
pub(super) fn compare<O: RecordObserver + Send>(
    ComparisonTask {
        sources,
        against,
        environment,
        looking,
    }: ComparisonTask<'_>,
    others: impl Fn() -> O + Sync,
) -> Result<Compared<O>> {
    let schema = against.schema.as_deref().map(read_schema).transpose()?;
    let baseline = baseline(sources, &against.baseline, looking)?;
    let (shards, progress) = inspect::shards(sources)?;
    let expected = Expected {
        schema,
        baseline,
        environment,
        max_drift: against.max_drift,
    };
    let options = inspect::options(looking);
    let (compared, others) = Comparison::run_with(
        &shards,
        expected,
        &options,
        &inspect::observer(&progress),
        others,
    )?;
    Ok(Compared {
        compared,
        others,
        shards,
    })
}

/// Reports skipped records, and returns the exit status. `is_odd` makes that 3 in any case.
pub(super) fn exit_status(compared: &Comparison, is_odd: bool) -> u8 {
    let has_lost =
        inspect::report_all([Some(&compared.found.statistics), compared.baseline.as_ref()]);
    if has_lost || compared.has_anomalies() || is_odd {
        FOUND
    } else {
        SUCCESS
    }
}

/// The statistics of the baseline.
fn baseline(
    sources: &[String],
    baseline: &[String],
    looking: &Looking,
) -> Result<Option<Statistics>> {
    let has_input = |sources: &[String]| sources.iter().any(|source| source == "-");
    if has_input(sources) && has_input(baseline) {
        return Err(Usage(
            "standard input can be read only once: name a file for the data set or the baseline"
                .to_owned(),
        )
        .into());
    }
    Ok(if baseline.is_empty() {
        None
    } else {
        Some(stats::collect(baseline, looking)?)
    })
}

/// Maximum size of a schema in a store, in bytes.
const MAX_SCHEMA_BYTES: u64 = 1 << 30;

/// Creates the file, or the object, of the updated schema. It may replace only a schema.
pub(super) fn create_update(path: &Path) -> Result<OutputFile> {
    check_update(path).with_context(|| format!("--update would replace {}", path.display()))?;
    Ok(OutputFile::create(path, true)?)
}

/// Checks that a schema may be written to `path`: nothing is there, or it is empty, or a schema.
fn check_update(path: &Path) -> Result<()> {
    if path.to_str().is_some_and(is_remote) {
        let Some(object) = existing_objects(&[path])?
            .pop()
            .flatten()
            .filter(|object| object.size() > 0)
        else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        object
            .open()
            .take(MAX_SCHEMA_BYTES)
            .read_to_end(&mut bytes)
            .with_context(|| path.display().to_string())?;
        return parse_schema(bytes, path).map(drop);
    }
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0) {
        read_schema(path)?;
    }
    Ok(())
}

/// Reads the schema of a file.
pub(crate) fn read_schema(path: &Path) -> Result<Schema> {
    parse_schema(
        fs::read(path).with_context(|| path.display().to_string())?,
        path,
    )
}

/// Parses the content of the file `path`.
fn parse_schema(content: Vec<u8>, path: &Path) -> Result<Schema> {
    let Ok(text) = String::from_utf8(content) else {
        return Err(anyhow!(
            "{} is binary, and not a schema in text format",
            path.display()
        ));
    };
    schema_from_text(&text)
        .with_context(|| format!("{} is not a schema in text format", path.display()))
}

/// A report of anomalies, and of distances from the baseline.
pub(crate) struct ValidationReport<'a> {
    pub(crate) found: &'a Validation,
    pub(crate) distances: &'a [Distance],
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    records: u64,
    /// The numbers of sampled shards and of all shards.
    sampled: Option<(usize, usize)>,
    anomalies: Vec<Located<'a>>,
    distances: &'a [Distance],
    /// Features with floats that are NaN or infinite.
    non_finite: Vec<NonFinite>,
}

#[derive(Serialize)]
struct Located<'a> {
    #[serde(flatten)]
    anomaly: &'a Anomaly,
    first: Option<First<'a>>,
}

/// The first record that has an anomaly.
#[derive(Serialize)]
struct First<'a> {
    file: &'a str,
    record: u64,
    /// `None` for a row of a file of another format than TFRecord.
    offset: Option<u64>,
}

impl ValidationReport<'_> {
    fn records(&self) -> u64 {
        self.found.statistics.inferred.summary.records()
    }

    fn first(&self, place: Place) -> First<'_> {
        let file = self
            .found
            .statistics
            .inferred
            .names
            .get(place.shard as usize)
            .map_or("", String::as_str);
        First {
            file,
            record: place.record,
            offset: place.offset,
        }
    }

    /// The report as JSON.
    pub(crate) fn json(&self) -> io::Result<String> {
        let located = |anomaly| Located {
            anomaly,
            first: anomaly.first.map(|place| self.first(place)),
        };
        output::pretty(&Document {
            records: self.records(),
            sampled: self
                .found
                .statistics
                .inferred
                .sampled
                .map(|sampled| (sampled.shards, sampled.of)),
            anomalies: self.found.anomalies.iter().map(located).collect(),
            distances: self.distances,
            non_finite: self.found.non_finite(),
        })
    }

    /// The number of anomalies, two lines for each, notes, and a table of distances.
    pub(crate) fn text(&self, screen: Screen) -> String {
        let anomalies = &self.found.anomalies;
        let found = match anomalies.len() {
            0 => screen.coloured(GOOD, "no anomalies"),
            1 => screen.coloured(BAD, "1 anomaly"),
            many => screen.coloured(BAD, &format!("{} anomalies", count(many as u64))),
        };
        let mut parts = vec![format!("{}, {found}", plural(self.records(), "record"))];
        parts.extend(
            anomalies
                .iter()
                .map(|anomaly| self.description(anomaly, screen)),
        );
        parts.extend(
            self.found
                .non_finite()
                .iter()
                .flat_map(|found| self.notes(found)),
        );
        if !self.distances.is_empty() {
            let row = |distance: &Distance| {
                let measure = serde_json::to_value(distance.measure).unwrap_or_default();
                let measure = measure.as_str().unwrap_or_default().to_owned();
                let threshold = distance.threshold.map(short).unwrap_or_default();
                let about = if distance.is_estimated { "about " } else { "" };
                vec![
                    escape(&distance.feature),
                    measure,
                    format!("{about}{}", short(distance.value)),
                    threshold,
                ]
            };
            let names = ["feature", "distance from the baseline", "is", "may be"];
            let rows = self.distances.iter().map(row).collect();
            parts.push(output::text_table(
                &names,
                &[false, false, true, true],
                &[],
                rows,
                screen,
            ));
        }
        parts.join("\n")
    }

    /// Notes about values that are NaN or infinite, where the schema allows them.
    fn notes(&self, found: &NonFinite) -> Vec<String> {
        let is_anomaly = |kind: AnomalyKind| {
            let mut anomalies = self.found.anomalies.iter();
            anomalies.any(|anomaly| {
                anomaly.kind == kind && anomaly.feature.as_ref() == Some(&found.feature)
            })
        };
        let kinds = [
            (
                found.nan,
                "NaN",
                "disallow_nan",
                AnomalyKind::FloatTypeHasNan,
            ),
            (
                found.infinite,
                "infinite",
                "disallow_inf",
                AnomalyKind::FloatTypeHasInf,
            ),
        ];
        let allowed = kinds
            .into_iter()
            .filter(|(times, _, _, kind)| *times > 0 && !is_anomaly(*kind));
        let note = |(times, name, rule, _): (u64, &str, &str, AnomalyKind)| {
            let of = format!(
                "{} of {} values are {name}",
                count(times),
                count(found.values)
            );
            let feature = escape(&found.feature);
            format!(
                "{feature}: note: {of}; float_domain {{ {rule}: true }} in the schema makes it an anomaly"
            )
        };
        allowed.map(note).collect()
    }

    fn description(&self, anomaly: &Anomaly, screen: Screen) -> String {
        let name = anomaly
            .feature
            .as_deref()
            .map_or("the data set".to_owned(), escape);
        let kind = screen.coloured(BAD, anomaly.kind.as_str_name());
        let of_records = anomaly.records.map_or(String::new(), |records| {
            let first = anomaly
                .first
                .map(|place| format!(", first {}: {place}", escape(self.first(place).file)));
            format!(
                " in {} of {}{}",
                count(records),
                plural(self.records(), "record"),
                first.unwrap_or_default()
            )
        });
        format!(
            "{name}: {kind}{of_records}\n    {}",
            escape(&anomaly.description)
        )
    }
}
