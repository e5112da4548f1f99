//! `tfarrow report`: a data set as a page.

use std::{io::Write, ops::ControlFlow, process::ExitCode};

use anyhow::{Context, Result};
use tfarrow_dataset::OutputFile;
use tfarrow_stats::{Examples, Statistics, Validation, proto::Schema};

use crate::{
    args::Report,
    commands::{look, stats, validate::read_schema},
    failure::FOUND,
    page::Page,
};

/// Writes the page.
pub(crate) fn run(args: &Report) -> Result<ExitCode> {
    let mut file = OutputFile::create(&args.output, true)?;
    let written = args.schema.as_deref().map(read_schema).transpose()?;
    let baseline = match args.baseline.as_slice() {
        [] => None,
        sources => Some(stats::collect(sources, args.looking)?),
    };
    let schema = written.or_else(|| Some(baseline.as_ref()?.schema()));
    let (shards, progress) = look::shards(&args.sources)?;
    let on_progress = |bytes, records| {
        progress.add(bytes, records);
        ControlFlow::Continue(())
    };
    let (options, count) = (look::options(args.looking), args.examples);
    let begin = || Examples::new(count);
    let is_held = schema.is_some();
    // Without a schema there is nothing to hold it against, and what is found so is not told.
    let schema = schema.unwrap_or_else(Schema::default);
    let (mut found, parts) = Validation::with(&shards, &schema, None, &options, &on_progress, begin)?;
    drop(progress);
    let distances = baseline.as_ref().map_or_else(Vec::new, |baseline| found.compare(baseline, args.max_drift));
    let examples = Examples::merged(count, parts);
    let inferred = &found.statistics.inferred;
    let (figures, before) = (found.statistics.figures(), baseline.as_ref().map(Statistics::figures));
    let page = Page {
        title: &args.title.clone().unwrap_or_else(|| args.sources.join(" ")),
        figures: &figures,
        before: before.as_ref(),
        anomalies: is_held.then_some(found.anomalies.as_slice()),
        distances: &distances,
        examples: &examples,
        shards: &inferred.names,
        skipped: inferred.skipped.first.as_ref().map(|_| inferred.skipped.to_string()),
    };
    let html = page.html();
    file.write_all(html.as_bytes()).with_context(|| args.output.display().to_string())?;
    file.persist()?;
    let has_lost = look::tell_skipped(inferred) | look::tell_strays(inferred);
    let has_found = is_held && !found.anomalies.is_empty();
    Ok(if has_lost || has_found { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}
