//! `tfarrow validate`: what of a data set is not as a schema says, or as it was before.

use std::{fs, io::Write, path::Path, process::ExitCode};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use tfarrow_codec::{Place, infer::RecordObserver};
use tfarrow_dataset::OutputFile;
use tfarrow_stats::{
    Anomaly, AnomalyKind, Distance, NonFinite, Statistics, Validation, anomalies_to_text, proto::Schema,
    schema_from_text, schema_to_text,
};

use crate::{
    args::{Expectations, Looking, Validate, ValidateFormat},
    commands::{look, stats},
    failure::{self, FOUND, Usage},
    output::{self, BAD, GOOD, coloured, count, escape, short},
};

/// Prints what is wrong.
pub(crate) fn run(args: &Validate) -> Result<ExitCode> {
    let update = args.update.as_deref().map(begin_update).transpose()?;
    let environment = args.environment.as_deref();
    let (held, _) = hold(&args.sources, &args.against, environment, &args.looking, || ())?;
    if let Some(mut file) = update {
        file.write_all(schema_to_text(&held.found.updated)?.as_bytes())?;
        file.persist()?;
    }
    let report = Report { found: &held.found, distances: &held.distances };
    match args.format {
        ValidateFormat::Table => report.print()?,
        ValidateFormat::Json => output::line(&output::pretty(&report.document())?)?,
        // Clap sees to it that there is one.
        ValidateFormat::Pbtxt => {
            let schema = held.schema.as_ref().unwrap_or(&held.found.updated);
            output::bytes(anomalies_to_text(&held.found.to_proto(schema))?.as_bytes())?;
        }
    }
    if report.records() == 0 {
        failure::say("there are no records to look at");
    }
    Ok(held.ends(report.records() == 0))
}

/// A data set that was held against what the command line says.
pub(super) struct Held {
    pub(super) found: Validation,
    /// The schema: the one of the command line, else that of the baseline.
    pub(super) schema: Option<Schema>,
    pub(super) baseline: Option<Statistics>,
    pub(super) distances: Vec<Distance>,
}

/// Holds a data set against a schema and a baseline, and tells others of each record as well. Where it is held against
/// nothing, what is found is of no meaning.
pub(super) fn hold<O: RecordObserver + Send>(
    sources: &[String],
    against: &Expectations,
    environment: Option<&str>,
    looking: &Looking,
    others: impl Fn() -> O + Sync,
) -> Result<(Held, Vec<O>)> {
    let written = against.schema.as_deref().map(read_schema).transpose()?;
    let baseline = baseline(sources, &against.baseline, looking)?;
    let schema = written.or_else(|| Some(baseline.as_ref()?.infer_schema()));
    let (shards, progress) = look::shards(sources)?;
    let (none, options) = (Schema::default(), look::options(looking));
    let held = schema.as_ref().unwrap_or(&none);
    let (mut found, others) =
        Validation::validate_with(&shards, held, environment, &options, &look::told(&progress), others)?;
    let distances = baseline.as_ref().map_or_else(Vec::new, |baseline| found.compare(baseline, against.max_drift));
    Ok((Held { found, schema, baseline, distances }, others))
}

impl Held {
    /// Says what was lost, and how the program ends.
    pub(super) fn ends(&self, is_odd: bool) -> ExitCode {
        let has_lost = look::tell_all([Some(&self.found.statistics), self.baseline.as_ref()]);
        let has_found = self.schema.is_some() && !self.found.anomalies.is_empty();
        if has_lost || has_found || is_odd { ExitCode::from(FOUND) } else { ExitCode::SUCCESS }
    }
}

/// The data set that another is held against.
fn baseline(sources: &[String], baseline: &[String], looking: &Looking) -> Result<Option<Statistics>> {
    let has_input = |sources: &[String]| sources.iter().any(|source| source == "-");
    if has_input(sources) && has_input(baseline) {
        return Err(Usage("standard input is either the data or the baseline".to_owned()).into());
    }
    Ok(if baseline.is_empty() { None } else { Some(stats::collect(baseline, looking)?) })
}

/// The file of an updated schema, which replaces a schema alone.
fn begin_update(path: &Path) -> Result<OutputFile> {
    if path.exists() && fs::metadata(path).is_ok_and(|held| held.len() > 0) {
        read_schema(path).with_context(|| format!("--update would replace {}", path.display()))?;
    }
    Ok(OutputFile::create(path, true)?)
}

/// The schema that a file holds.
fn read_schema(path: &Path) -> Result<Schema> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(anyhow!("{} is binary: a schema in text format is expected", path.display()));
    };
    schema_from_text(&text).with_context(|| format!("{} is no schema.pbtxt", path.display()))
}

struct Report<'a> {
    found: &'a Validation,
    distances: &'a [Distance],
}

/// What programs read.
#[derive(Serialize)]
struct Document<'a> {
    records: u64,
    /// Shards that a sample looked at, and all.
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
    offset: u64,
}

impl Report<'_> {
    fn records(&self) -> u64 {
        self.found.statistics.inferred.summary.records()
    }

    fn first(&self, place: Place) -> First<'_> {
        let file = self.found.statistics.inferred.names.get(place.shard as usize).map_or("", String::as_str);
        First { file, record: place.record, offset: place.offset }
    }

    fn document(&self) -> Document<'_> {
        let located = |anomaly| Located { anomaly, first: anomaly.first.map(|place| self.first(place)) };
        Document {
            records: self.records(),
            sampled: self.found.statistics.inferred.sampled.map(|sampled| (sampled.shards, sampled.of)),
            anomalies: self.found.anomalies.iter().map(located).collect(),
            distances: self.distances,
            non_finite: self.found.non_finite(),
        }
    }

    /// Two lines an anomaly, and one a distance.
    fn print(&self) -> Result<()> {
        let anomalies = &self.found.anomalies;
        let found = match anomalies.len() {
            0 => coloured(GOOD, "no anomalies"),
            1 => coloured(BAD, "1 anomaly"),
            many => coloured(BAD, &format!("{} anomalies", count(many as u64))),
        };
        output::line(&format!("{} records, {found}", count(self.records())))?;
        anomalies.iter().try_for_each(|anomaly| output::line(&self.words(anomaly)))?;
        self.found.non_finite().iter().try_for_each(|found| self.note(found))?;
        if !self.distances.is_empty() {
            let row = |distance: &Distance| {
                let measure = serde_json::to_value(distance.measure).unwrap_or_default();
                let measure = measure.as_str().unwrap_or_default().to_owned();
                let threshold = distance.threshold.map(short).unwrap_or_default();
                let about = if distance.is_estimated { "about " } else { "" };
                vec![escape(&distance.feature), measure, format!("{about}{}", short(distance.value)), threshold]
            };
            let names = ["feature", "distance from the baseline", "is", "may be"];
            let rows = self.distances.iter().map(row).collect();
            output::text_table(&names, &[false, false, true, true], &[], rows)?;
        }
        Ok(())
    }

    /// Notes values that are NaN or infinite, where the schema does not disallow them.
    fn note(&self, found: &NonFinite) -> Result<()> {
        let is_told = |kind| {
            let mut anomalies = self.found.anomalies.iter();
            anomalies.any(|anomaly| anomaly.kind == kind && anomaly.feature.as_ref() == Some(&found.feature))
        };
        let kinds = [
            (found.nan, "NaN", "disallow_nan", AnomalyKind::FloatTypeHasNan),
            (found.infinite, "infinite", "disallow_inf", AnomalyKind::FloatTypeHasInf),
        ];
        for (times, name, rule, kind) in kinds {
            if times > 0 && !is_told(kind) {
                let of = format!("{} of {} values are {name}", count(times), count(found.values));
                output::line(&format!(
                    "{}: note: {of}; float_domain {{ {rule}: true }} in the schema makes it an anomaly",
                    escape(&found.feature)
                ))?;
            }
        }
        Ok(())
    }

    fn words(&self, anomaly: &Anomaly) -> String {
        let name = anomaly.feature.as_deref().map_or("the data set".to_owned(), escape);
        let kind = coloured(BAD, anomaly.kind.as_str_name());
        let of_records = anomaly.records.map_or(String::new(), |records| {
            let first = anomaly.first.map(|place| self.first(place));
            let first =
                first.map(|at| format!(", first {}: record {} (byte {})", escape(at.file), at.record, at.offset));
            format!(" in {} of {} records{}", count(records), count(self.records()), first.unwrap_or_default())
        });
        format!("{name}: {kind}{of_records}\n    {}", escape(&anomaly.description))
    }
}
