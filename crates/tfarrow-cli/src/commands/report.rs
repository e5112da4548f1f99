//! `tfarrow report`: a data set as a page.

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, Result};
use tfarrow_dataset::OutputFile;
use tfarrow_stats::{ExampleSampler, Statistics};

use crate::{
    args::Report,
    commands::validate::hold,
    failure::Usage,
    output::{self, count},
    page::{self, Page},
};

/// Writes the page.
pub(crate) fn run(args: &Report) -> Result<ExitCode> {
    let to_stdout = args.output == Path::new("-");
    if !to_stdout {
        refuse_other(&args.output)?;
    }
    let (held, parts) = hold(&args.sources, &args.against, None, &args.looking, || ExampleSampler::new(args.examples))?;
    let found = &held.found;
    let inferred = &found.statistics.inferred;
    let (figures, before) = (found.statistics.summarize(), held.baseline.as_ref().map(Statistics::summarize));
    let page = Page {
        title: &args.title.clone().unwrap_or_else(|| page::title(&args.sources)),
        figures: &figures,
        before: before.as_ref(),
        anomalies: held.schema.is_some().then_some(found.anomalies.as_slice()),
        distances: &held.distances,
        examples: &ExampleSampler::merge(args.examples, parts),
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
        let anomalies = held.schema.as_ref().map(|_| format!(", {} anomalies", count(found.anomalies.len() as u64)));
        let (records, features) = (count(figures.records), count(figures.features.len() as u64));
        let name = output::escape(&args.output.display().to_string());
        output::line(&format!("{name}: {records} records, {features} features{}", anomalies.unwrap_or_default()))?;
    }
    Ok(held.ends(false))
}

/// An error where a file is there that is no page, lest a slip of the hand replace a data set.
fn refuse_other(path: &Path) -> Result<()> {
    let mut start = [0; page::START.len()];
    // Before it is opened: a pipe would keep the program waiting for its other end.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Usage(format!("{}: a page replaces a file, and this is none", path.display())).into());
    }
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
