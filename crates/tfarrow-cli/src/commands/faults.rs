//! Printing of faults in files.

use anyhow::Result;
use serde_json::Value;
use tfarrow_codec::Remedy;
use tfarrow_report::{
    FaultReport,
    text::{escape, plural, pretty_json},
};

use crate::{
    args::FaultFormat,
    error::{reading_remedy, words},
    output, stderr,
};

/// Prints the faults on standard output. The JSON document has the fields of `summary` as well.
pub(super) fn print(found: &FaultReport<'_>, format: FaultFormat, summary: Value) -> Result<()> {
    match format {
        FaultFormat::Table if found.damage.faults().is_empty() => output::nothing()?,
        FaultFormat::Table => output::line(&found.text(output::screen()))?,
        FaultFormat::Json => output::line(&pretty_json(&found.json(summary))?)?,
    }
    let more = found.total() - found.damage.faults().len() as u64;
    if more > 0 {
        let are = if more == 1 { "is" } else { "are" };
        stderr::print(&format!(
            "{} {are} counted and not listed",
            plural(more, "more fault")
        ));
    }
    for remedy in found.remedies() {
        match &remedy {
            Remedy::RaiseLimit(name) => {
                stderr::print(&format!("{name} is a limit: {}", words(&remedy)))
            }
            _ => stderr::print(&words(&remedy)),
        }
    }
    Ok(())
}

/// Prints the faults on standard error, for commands that write data to standard output.
pub(super) fn print_to_stderr(found: &FaultReport<'_>) {
    for fault in found.damage.faults() {
        let text = format!("{}{}", fault.error, reading_remedy(&fault.error));
        stderr::print(&escape(&text));
    }
}
