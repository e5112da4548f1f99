//! `tfarrow report`: the statistics of a data set as an HTML page.

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
};

use anyhow::{Context, Result};
use tfarrow_dataset::OutputFile;
use tfarrow_stats::{ExampleSampler, Statistics};

use crate::{
    args::Report,
    commands::validate::{compare, exit_status},
    error::Usage,
    output::{self, count},
    page::{self, Page},
    stderr, text,
};

/// Writes the page, and prints a summary.
pub(crate) fn run(args: &Report) -> Result<u8> {
    let to_stdout = args.output == Path::new("-");
    if !to_stdout {
        refuse_other_file(&args.output)?;
    }
    let (compared, parts) =
        compare(&args.sources, &args.against, None, &args.looking, || ExampleSampler::new(args.examples))?;
    let found = &compared.found;
    let inferred = &found.statistics.inferred;
    let (figures, before) = (found.statistics.summarize(), compared.baseline.as_ref().map(Statistics::summarize));
    let page = Page {
        title: &args.title.clone().unwrap_or_else(|| page::title(&args.sources)),
        figures: &figures,
        before: before.as_ref(),
        anomalies: compared.anomalies(),
        distances: &compared.distances,
        examples: &ExampleSampler::merge(args.examples, parts),
        shards: &inferred.names,
        skipped: (!inferred.skipped.is_empty()).then(|| stderr::skipped_text(&inferred.skipped)),
    };
    let html = page.html();
    if to_stdout {
        output::bytes(html.as_bytes())?;
    } else {
        let mut file = OutputFile::create(&args.output, true)?;
        file.write_all(html.as_bytes()).with_context(|| args.output.display().to_string())?;
        file.persist()?;
        let anomalies = compared.anomalies().map(|found| format!(", {} anomalies", count(found.len() as u64)));
        let (records, features) = (count(figures.records), count(figures.features.len() as u64));
        let name = text::escape(&args.output.display().to_string());
        output::line(&format!("{name}: {records} records, {features} features{}", anomalies.unwrap_or_default()))?;
    }
    Ok(exit_status(&compared, false))
}

/// Returns an error if the file exists and is not a page, such as a data set.
///
/// # Errors
/// The path exists, and is not a page.
fn refuse_other_file(path: &Path) -> Result<()> {
    let mut start = [0; page::START.len()];
    // Opening a pipe would block.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Usage(format!("{} is not a regular file", path.display())).into());
    }
    let Ok(mut file) = File::open(path) else { return Ok(()) };
    match file.read_exact(&mut start) {
        Ok(()) if start == *page::START.as_bytes() => Ok(()),
        _ if file.metadata().is_ok_and(|metadata| metadata.len() == 0) => Ok(()),
        _ => {
            Err(Usage(format!("{} exists and is not a report page: remove it, or choose another name", path.display()))
                .into())
        }
    }
}
