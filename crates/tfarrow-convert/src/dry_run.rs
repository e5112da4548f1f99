//! The dry run of a conversion: its sources, outputs and columns, without any output.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use tfarrow_dataset::{
    MissingShards, Resolved, SkippedFiles,
    internals::{TfdsSplit, existing, tfds_splits},
};

use crate::{
    ConvertOptions, Error, PlannedJob, Progress, Result, Target,
    convert::{find, infer_columns, journal_of, prepare},
    damage::{DamageLog, quarantine::Quarantine},
    earlier::Earlier,
    journal::{
        Journal,
        folders::{check_folder, folder_of},
    },
    plan::{part, setup::Conversion},
};

/// The result of a dry run: what a conversion would read and write.
#[derive(Debug)]
pub struct ConversionPlan {
    /// The output format.
    pub target: Target,
    /// The parts of the conversion, in the order of their sources.
    pub jobs: Vec<PlannedJob>,
    /// The outputs that exist, and would be replaced.
    pub replaced: Vec<PathBuf>,
    /// The number of records that the columns were inferred from, if any were.
    pub inferred_from: Option<u64>,
    /// Whether these records are a sample, so that the columns of all records may differ.
    pub is_sampled: bool,
    /// Other files in the folders and globs of the sources.
    pub skipped_files: SkippedFiles,
    /// Shards that are missing from numbered sets in folders.
    pub missing: Vec<MissingShards>,
    /// The splits of TFDS that the shards belong to.
    pub splits: Vec<TfdsSplit>,
}

/// Plans the conversion that [`convert`](crate::convert()) would run with these arguments, and
/// writes nothing. The columns are those that the conversion would begin with: of a sample, where
/// they would be verified while the sample's columns are written, or of all records. The plan of a
/// [part](ConvertOptions::part) has the jobs of the part.
///
/// # Errors
/// The errors of the conversion that are found before its first output is written. A dry run of a
/// conversion that is [resumed](ConvertOptions::resume) is [`Error::Usage`].
pub fn dry_run<S: AsRef<OsStr>>(
    sources: &[S],
    dest: &Path,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConversionPlan> {
    if options.resume {
        return Err(Error::Usage(
            "a conversion that is resumed has no dry run".to_owned(),
        ));
    }
    let Resolved {
        mut shards,
        skipped_files,
        missing,
    } = find(sources, dest, options)?;
    let (plan, compression, options) = prepare(&mut shards, dest, options)?;
    let options = options.as_ref();
    if let Some(journal) = journal_of(&plan) {
        check_folder(folder_of(&journal))?;
        if options.part.is_some() {
            part::check_no_journal(Some(journal))?;
        } else if !options.overwrite {
            Journal::check(&journal)?;
        }
    }
    if let Some(quarantine) = &options.quarantine {
        Quarantine::check(quarantine, options.earlier())?;
    }
    let damage = DamageLog::new(None, Earlier::Refused, None)?;
    let conversion = Conversion::new(
        &shards,
        &plan,
        compression,
        options,
        progress,
        (&damage, None),
    )?;
    let inferred = infer_columns(&conversion)?;
    let jobs = conversion.planned_jobs(inferred.as_ref())?;
    let outputs: Vec<_> = jobs
        .iter()
        .flat_map(|job| job.outputs.files())
        .map(PathBuf::as_path)
        .collect();
    let replaced = if options.earlier() == Earlier::Compared {
        Vec::new()
    } else {
        existing(&outputs)?
    };
    let replaced = replaced.into_iter().map(Path::to_owned).collect();
    Ok(ConversionPlan {
        target: plan.target,
        replaced,
        inferred_from: inferred.as_ref().map(|inferred| inferred.summary.records()),
        is_sampled: inferred.is_some_and(|inferred| inferred.sampled.is_some()),
        jobs,
        skipped_files,
        missing,
        splits: tfds_splits(&shards),
    })
}
