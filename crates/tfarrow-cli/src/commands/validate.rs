//! `tfarrow validate`: compares a data set with a schema and a baseline.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
};

use anyhow::{Context, Result};
use tfarrow_codec::infer::RecordObserver;
use tfarrow_dataset::{
    OutputFile, Part, Shard,
    internals::{are_events, existing_objects, is_remote},
};
use tfarrow_report::{PartSettings, validation_json, validation_text};
use tfarrow_stats::{
    Comparison, Expected, PartExpected, PartWork, Statistics, anomalies_to_text, parse_schema,
    read_schema, schema_to_text,
};

use crate::{
    args::{Expectations, Looking, PartArgs, Validate, ValidateFormat},
    commands::{
        inspect,
        partial::{self, value_name},
        stats,
    },
    error::{FOUND, SUCCESS, Usage},
    output, stderr,
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
    match format {
        ValidateFormat::Table => output::line(&validation_text(compared, output::screen()))?,
        ValidateFormat::Json => output::line(&validation_json(compared)?)?,
        // The command line requires a schema or a baseline.
        ValidateFormat::Pbtxt => {
            let schema = compared.schema.as_ref().unwrap_or(&compared.found.updated);
            output::bytes(anomalies_to_text(&compared.found.to_proto(schema))?.as_bytes())?;
        }
    }
    let is_empty = compared.found.statistics.inferred.summary.records() == 0;
    if is_empty {
        stderr::print("there are no records to validate");
    }
    Ok(exit_status(compared, is_empty))
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
    let schema = schema.as_ref();
    let baseline = baseline.as_deref();
    let max_drift = against.max_drift;
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

/// Whether standard input is one of the sources.
fn has_input(sources: &[String]) -> bool {
    sources.iter().any(|source| source == "-")
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
        parse_schema(bytes, path)?;
        return Ok(());
    }
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0) {
        read_schema(path)?;
    }
    Ok(())
}
