//! `tfarrow report`: a data set as a page.

use std::{
    fs::File,
    io::{Read, Write},
    ops::ControlFlow,
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, Result};
use tfarrow_dataset::OutputFile;
use tfarrow_stats::{Examples, Statistics, Validation, proto::Schema};

use crate::{
    args::Report,
    commands::{
        look,
        validate::{baseline, read_schema},
    },
    failure::{FOUND, Usage},
    output::{self, count},
    page::{self, Page},
};

/// Writes the page.
pub(crate) fn run(args: &Report) -> Result<ExitCode> {
    let to_stdout = args.output == Path::new("-");
    if !to_stdout {
        refuse_other(&args.output)?;
    }
    let written = args.schema.as_deref().map(read_schema).transpose()?;
    let baseline = baseline(&args.sources, &args.baseline, args.looking)?;
    let schema = written.or_else(|| Some(baseline.as_ref()?.schema()));
    let (shards, progress) = look::shards(&args.sources)?;
    let on_progress = |bytes, records| {
        progress.add(bytes, records);
        ControlFlow::Continue(())
    };
    let (options, examples) = (look::options(args.looking), args.examples);
    let begin = || Examples::new(examples);
    let is_held = schema.is_some();
    // Without a schema there is nothing to hold it against, and what is found so is not told.
    let schema = schema.unwrap_or_else(Schema::default);
    let (mut found, parts) = Validation::with(&shards, &schema, None, &options, &on_progress, begin)?;
    drop(progress);
    let distances = baseline.as_ref().map_or_else(Vec::new, |baseline| found.compare(baseline, args.max_drift));
    let inferred = &found.statistics.inferred;
    let (figures, before) = (found.statistics.figures(), baseline.as_ref().map(Statistics::figures));
    let page = Page {
        title: &args.title.clone().unwrap_or_else(|| page::title(&args.sources)),
        figures: &figures,
        before: before.as_ref(),
        anomalies: is_held.then_some(found.anomalies.as_slice()),
        distances: &distances,
        examples: &Examples::merged(examples, parts),
        shards: &inferred.names,
        skipped: inferred.skipped.first.as_ref().map(|_| inferred.skipped.to_string()),
    };
    let html = page.html();
    if to_stdout {
        output::bytes(html.as_bytes())?;
    } else {
        let mut file = OutputFile::create(&args.output, true)?;
        file.write_all(html.as_bytes()).with_context(|| args.output.display().to_string())?;
        file.persist()?;
        let held = if is_held { format!(", {} anomalies", count(found.anomalies.len() as u64)) } else { String::new() };
        let (records, features) = (count(figures.records), count(figures.features.len() as u64));
        let name = output::escape(&args.output.display().to_string());
        output::line(&format!("{name}: {records} records, {features} features{held}"))?;
    }
    let has_lost = look::tell_all([Some(&found.statistics), baseline.as_ref()]);
    let has_found = is_held && !found.anomalies.is_empty();
    Ok(if has_lost || has_found { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// An error where a file is there that is no page, lest a slip of the hand replace a data set.
fn refuse_other(path: &Path) -> Result<()> {
    let mut start = [0; page::START.len()];
    let Ok(mut file) = File::open(path) else { return Ok(()) };
    match file.read_exact(&mut start) {
        Ok(()) if start == *page::START.as_bytes() => Ok(()),
        _ if file.metadata().is_ok_and(|held| held.len() == 0) => Ok(()),
        _ => {
            Err(Usage(format!("{} is there already, and is no page: remove it, or write another", path.display()))
                .into())
        }
    }
}
