//! `tfarrow repair`: copies the valid records of corrupt files to new files.

use anyhow::Result;
use serde_json::json;
use tfarrow_codec::OnError;
use tfarrow_convert::{ConvertOptions, repair};
use tfarrow_report::FaultReport;

use crate::{
    args::{FaultFormat, Repair},
    commands::{
        convert::{self, Run},
        faults,
    },
    error::{FOUND, SUCCESS, Usage, unless_closed},
    stderr,
};

/// Repairs, and prints the faults.
pub(crate) fn run(args: &Repair) -> Result<u8> {
    let defaults = ConvertOptions::default();
    let options = ConvertOptions {
        jobs: args.jobs.map_or(defaults.jobs, usize::from),
        overwrite: args.overwrite,
        quarantine: args.quarantine.clone(),
        read: args.bounds.read(OnError::Skip),
        resume: args.resume,
        ..defaults
    };
    let (sources, dest) = args.paths.split()?;
    let is_pipe = dest == "-";
    if is_pipe && args.format.get() == FaultFormat::Json {
        return Err(Usage(
            "--format json needs standard output, which takes the records".to_owned(),
        )
        .into());
    }
    convert::run_with(dest, &options, repair, sources, |Run { report, .. }| {
        let damage = &report.damage;
        let found = FaultReport {
            files: &report.sources,
            damage,
        };
        let summary = json!({
            "files": report.shards,
            "records": report.records,
            "lost": {
                "records": damage.records,
                "stretches": damage.ranges,
                "bytes": damage.faults().iter().map(|fault| fault.bytes).sum::<u64>(),
            },
        });
        if is_pipe {
            faults::print_to_stderr(&found);
        } else {
            unless_closed(faults::print(&found, args.format.get(), summary))?;
        }
        // The first fault has just been printed.
        if found.total() > 0 {
            stderr::print(&damage.counts().to_string());
        }
        Ok(if found.total() == 0 { SUCCESS } else { FOUND })
    })
}
