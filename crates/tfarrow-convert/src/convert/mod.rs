//! The entry points: from sources and a destination to a report.
//!
//! ```text
//! sources ─▶ checks ─▶ Plan ─▶ journal, quarantine ─▶ Conversion ─▶ infer the columns ─▶ jobs ─▶ ConvertReport
//!                                                                   TFRecord to rows only
//! ```

mod checks;
mod report;
mod run;
mod sources;
mod speculative;

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use tfarrow_codec::RecordType;
use tfarrow_dataset::{
    Resolved, Shard, event_message,
    internals::{UNFINISHED, are_events, check_one_payload, is_remote, read_heads, tfds_splits},
};

pub use self::report::ConvertReport;
use self::{
    checks::{check_options, check_parquet_options, reads_messages},
    run::run,
    sources::one_kind,
};
pub(crate) use self::{run::infer_columns, sources::find};
use crate::{
    ConvertOptions, Error, OutputCompression, Progress, Result, Target,
    damage::{DamageLog, quarantine::OtherParts},
    journal::Journal,
    output::{Destination, attempts},
    plan::{self, OutputPlace, Plan, fingerprint::fingerprint, folders, part, setup::Conversion},
    selection::ColumnSelection,
};

/// Converts the shards that `sources` name: paths, folders, globs or URLs. `dest` is a folder or a
/// file, local or in an object store, or `-` for [the stream](ConvertOptions::stream).
///
/// # Errors
/// Sources that cannot be read, records that do not fit, and outputs that cannot be written. After
/// an error, every output that has its name is complete.
pub fn convert<S: AsRef<OsStr>>(
    sources: &[S],
    dest: &Path,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    convert_resolved(find(sources, dest, options)?, dest, options, progress)
}

/// Converts shards that were resolved.
pub(crate) fn convert_resolved(
    Resolved {
        mut shards,
        skipped_files,
        missing,
    }: Resolved,
    dest: &Path,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let (plan, compression, options) = prepare(&mut shards, dest, options)?;
    let options = options.as_ref();
    let journal = journal(&plan, options)?;
    let quarantine = options.quarantine.as_deref();
    let is_attempt = options.part.is_some();
    let others = options
        .part
        .filter(|_| quarantine.is_some())
        .map(|part| OtherParts::of(&shards, part));
    let outcome = DamageLog::new(quarantine, options.earlier(), others).and_then(|damage| {
        let own = (&damage, journal.as_ref());
        let conversion = Conversion::new(&shards, &plan, compression, options, progress, own)?;
        let report = run(&conversion)?;
        let outputs = conversion.outputs;
        let damage = damage.finish()?;
        let outputs = outputs.iter().filter_map(|(_, output)| output.file());
        if is_attempt {
            attempts::remove(outputs.clone().chain(quarantine));
        }
        let kept_outputs = journal
            .as_ref()
            .map(|journal| journal.unclaimed_outputs(outputs))
            .unwrap_or_default();
        let mut new_folders = Vec::new();
        for folder in journal.iter().flat_map(Journal::new_folders) {
            if !matches!(&plan.place, OutputPlace::Folder(dest) if dest == folder) {
                new_folders.push(folder.to_owned());
            }
        }
        let splits = tfds_splits(&shards);
        Ok(ConvertReport {
            damage,
            skipped_files,
            missing,
            splits,
            kept_outputs,
            new_folders,
            ..report
        })
    });
    let is_resumable = journal.is_some_and(|journal| journal.close(outcome.is_ok()));
    progress.set_resumable(is_resumable);
    outcome
}

/// Makes the shards readable and plans their outputs. Checks the options before anything is
/// written, and returns them, with the columns of TensorBoard's events for its files.
///
/// # Errors
/// Shards that cannot be read, and options that contradict the shards or each other.
pub(crate) fn prepare<'o>(
    shards: &mut [Shard],
    dest: &Path,
    options: &'o ConvertOptions,
) -> Result<(Plan, OutputCompression, Cow<'o, ConvertOptions>)> {
    let own = part::own_shards(shards, options)?;
    // A pipe can be read only once. It is copied to a temporary file, unless the columns are given
    // and the conversion reads it once. The copy also shows the type of its records.
    if options.schema.is_none() || options.writes_new_shards() {
        shards
            .get_mut(own.clone())
            .unwrap_or_default()
            .iter_mut()
            .try_for_each(Shard::spool)?;
    }
    // The types of text depend on all files. Parquet and Arrow files have their types.
    for (number, shard) in shards.iter_mut().enumerate() {
        if shard.is_remote() && (shard.format.is_text() || own.contains(&number)) {
            shard.spool_columnar()?;
        }
    }
    one_kind(shards)?;
    check_options(shards, options)?;
    let selects = ColumnSelection::of(options)?.is_some();
    let plan = Plan::new(shards, own, dest, options)?;
    folders::keep_or_leave_out(shards, &plan, options)?;
    read_heads(shards)?;
    let options = event_options(shards, options)?.map_or(Cow::Borrowed(options), Cow::Owned);
    let is_stated = options.record_type == Some(RecordType::Raw) || reads_messages(&options);
    if (plan.target != Target::TfRecord || selects) && !is_stated {
        check_one_payload(shards)?;
    }
    let compression = plan.compression(&options)?;
    check_parquet_options(plan.target, &options)?;
    plan::check_no_source(shards, options.quarantine.as_deref())?;
    Ok((plan, compression, options))
}

/// The options with the columns of TensorBoard's events, if the shards are files of TensorBoard,
/// and the options state neither columns nor another type of the records. The option exact keeps
/// complete records.
fn event_options(shards: &[Shard], options: &ConvertOptions) -> Result<Option<ConvertOptions>> {
    let is_stated = options.schema.is_some() || options.record_type.is_some() || options.exact;
    if is_stated || !are_events(shards) {
        return Ok(None);
    }
    let schema = event_message()?
        .schema(&options.read.limits)
        .map_err(tfarrow_dataset::Error::from)?;
    Ok(Some(ConvertOptions {
        schema: Some(schema),
        ..options.clone()
    }))
}

/// The path of the journal, if the outputs are local files.
pub(crate) fn journal_of(plan: &Plan) -> Option<PathBuf> {
    let path = match &plan.place {
        OutputPlace::Folder(folder) => Some(folder.join(format!("{UNFINISHED}convert.journal"))),
        OutputPlace::One(Destination::File(path), _) => path.file_name().map(|name| {
            let mut own = OsString::from(UNFINISHED);
            own.push(name);
            own.push(".journal");
            path.with_file_name(own)
        }),
        OutputPlace::One(Destination::Stream, _) => None,
    };
    path.filter(|path| !path.to_str().is_some_and(is_remote))
}

/// Opens the journal, if the outputs are local files of one run. Parts have none: other processes
/// write to the same folder.
fn journal(plan: &Plan, options: &ConvertOptions) -> Result<Option<Journal>> {
    let path = journal_of(plan);
    if options.part.is_some() {
        return part::check_no_journal(path).map(|()| None);
    }
    match path {
        Some(path) => Journal::open(
            &path,
            &fingerprint(plan.target, options),
            options.resume,
            options.overwrite,
        )
        .map(Some),
        None if options.resume
            && matches!(plan.place, OutputPlace::One(Destination::Stream, _)) =>
        {
            Err(Error::Usage(
                "a conversion to a stream cannot be resumed".to_owned(),
            ))
        }
        None => Ok(None),
    }
}
