//! The entry points: from sources and a destination to a report.
//!
//! ```text
//! sources ─▶ checks ─▶ Plan ─▶ journal, quarantine ─▶ Conversion ─▶ infer the columns ─▶ jobs ─▶ ConvertReport
//!                                                                   TFRecord to rows only
//! ```

use std::{
    borrow::Cow,
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use arrow_schema::SchemaRef;
use tfarrow_codec::{
    Layout, OnConflict, OnError, RecordType, VerifyCrc,
    schema::{RECORD_COLUMN, record_type_of},
};
use tfarrow_dataset::{
    DamageReport, FormatFilter, MissingShards, Resolved, Shard, ShardFormat, SkippedFiles,
    TfdsSplit, UNFINISHED, are_events, check_one_payload, event_message, file_names, is_remote,
    read_heads, resolve_excluding, tfds_splits,
};
use tfarrow_scan::{Inferred, Sample};

use crate::{
    ConvertOptions, Error, OutputCompression, Progress, Result, Target,
    damage::{DamageLog, quarantine::OtherParts},
    journal::Journal,
    output::{Destination, attempts},
    plan::{self, OutputPlace, Plan, fingerprint::fingerprint, folders, part, setup::Conversion},
    selection::ColumnSelection,
    worker::job::JobTotals,
};

mod speculative;

/// The result of a conversion.
#[derive(Debug)]
pub struct ConvertReport {
    /// Shards read.
    pub shards: u64,
    /// Files written.
    pub files: u64,
    /// Records converted.
    pub records: u64,
    /// Bytes of the shards, as stored.
    pub bytes_in: u64,
    /// Bytes of the files, or of the stream.
    pub bytes_out: u64,
    /// Values and features that were changed or left out, and how often.
    pub lossy_changes: Vec<(String, u64)>,
    /// Floats of text that were rounded to those of 32 bits, and how often. With
    /// [`ConvertOptions::lossy`], they are among the lossy changes.
    pub rounded: Vec<(String, u64)>,
    /// Why the records were converted as raw records, if the record type was inferred.
    pub why_raw: Option<String>,
    /// Whether that is because a few records do not parse, while most of them have features.
    pub has_strays: bool,
    /// The path of each shard, indexed by the shard number of a fault.
    pub sources: Vec<String>,
    /// Corrupt records and bytes that were skipped.
    pub damage: DamageReport,
    /// Other files in the folders and globs of the sources.
    pub skipped_files: SkippedFiles,
    /// Shards that are missing from numbered sets in folders.
    pub missing: Vec<MissingShards>,
    /// The splits of TFDS that the shards belong to.
    pub splits: Vec<TfdsSplit>,
    /// Outputs of an interrupted run whose sources are not among those of this run. They are kept.
    pub kept_outputs: Vec<PathBuf>,
    /// Folders above the outputs that were created, each after its parent, except for a destination
    /// that is a folder.
    pub new_folders: Vec<PathBuf>,
}

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

/// Finds the shards of the sources, without the outputs of an earlier conversion to `dest`.
///
/// # Errors
/// Sources that do not exist or have no shards.
pub(crate) fn find<S: AsRef<OsStr>>(
    sources: &[S],
    dest: &Path,
    options: &ConvertOptions,
) -> Result<Resolved> {
    let is_named = |shard: &Shard| sources.iter().any(|source| Path::new(source) == shard.path);
    let exclude = |found: &mut Resolved| exclude_outputs_of_text(found, dest, options);
    let mut found = resolve_excluding(sources, FormatFilter::Convertible, &exclude)?;
    exclude_outputs(&mut found, dest, &is_named);
    Ok(found)
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
    let (quarantine, is_attempt) = (options.quarantine.as_deref(), options.part.is_some());
    let others = options
        .part
        .filter(|_| quarantine.is_some())
        .map(|part| OtherParts::of(&shards, part));
    let outcome = DamageLog::new(quarantine, options.earlier(), others).and_then(|damage| {
        let own = (&damage, journal.as_ref());
        let conversion = Conversion::new(&shards, &plan, compression, options, progress, own)?;
        let (report, outputs) = (run(&conversion)?, conversion.outputs);
        let damage = damage.finish()?;
        let outputs = outputs.iter().filter_map(|(_, output)| output.file());
        if is_attempt {
            attempts::remove(outputs.clone().chain(quarantine));
        }
        let kept_outputs = journal
            .as_ref()
            .map(|journal| journal.unclaimed_outputs(outputs))
            .unwrap_or_default();
        let is_above =
            |folder: &&Path| !matches!(&plan.place, OutputPlace::Folder(dest) if dest == *folder);
        let new_folders = journal
            .iter()
            .flat_map(Journal::new_folders)
            .filter(is_above);
        let new_folders = new_folders.map(Path::to_owned).collect();
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
    if options.schema.is_none() || options.reshard.is_some() {
        shards
            .get_mut(own.clone())
            .unwrap_or_default()
            .iter_mut()
            .try_for_each(Shard::spool)?;
    }
    // The types of text depend on all files. Parquet and Arrow files have their types.
    let is_needed = |number, shard: &Shard| {
        shard.is_remote() && (shard.format.is_text() || own.contains(&number))
    };
    let needed = shards
        .iter_mut()
        .enumerate()
        .filter(|(number, shard)| is_needed(*number, shard));
    needed
        .map(|(_, shard)| shard)
        .try_for_each(Shard::spool_columnar)?;
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

/// Removes the outputs of an earlier conversion from the sources. If there are TFRecord files and
/// also Parquet or Arrow files, those in the destination that are not of the kind of the other
/// sources are outputs. A file that `is_named` among the sources itself is no output.
fn exclude_outputs(found: &mut Resolved, dest: &Path, is_named: &dyn Fn(&Shard) -> bool) {
    if one_kind(&found.shards).is_ok() {
        return;
    }
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dest = resolved(dest);
    let may_be_output =
        |shard: &Shard| resolved(&shard.path).starts_with(&dest) && !is_named(shard);
    let is_tfrecord = |shard: &Shard| shard.format == ShardFormat::TfRecord;
    // If all files are in the destination, the outputs are beside their sources, which are
    // TFRecord.
    let are_tfrecord = found
        .shards
        .iter()
        .find(|shard| !may_be_output(shard))
        .is_none_or(is_tfrecord);
    let outputs = found.shards.extract_if(.., |shard| {
        is_tfrecord(shard) != are_tfrecord && may_be_output(shard)
    });
    outputs.for_each(|shard| found.skipped_files.unwanted(shard.path));
}

/// Removes the outputs of an earlier conversion of text from a folder or glob, in which text would
/// not be read beside other files: files in the destination with the names of outputs of the text
/// files. Other files than TFRecord are outputs whatever the format of this conversion. If there
/// are further files, none is removed.
fn exclude_outputs_of_text(found: &mut Resolved, dest: &Path, options: &ConvertOptions) {
    let named = |name: &Path| file_names::output_name(name, "");
    let texts = found.shards.iter().filter(|shard| shard.format.is_text());
    let (names, sets): (HashSet<_>, HashSet<_>) = texts
        .map(|shard| (named(&shard.name), file_names::set_name(&shard.name)))
        .unzip();
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let target = options
        .to
        .or_else(|| Target::from_path(dest).map(|(target, _)| target));
    let dest = resolved(dest);
    let is_output = |shard: &Shard| {
        let path = resolved(&shard.path);
        let Ok(below) = path.strip_prefix(&dest) else {
            return false;
        };
        let is_shard_of_set = || {
            let extension = target.map_or("", Target::name);
            let name = below
                .file_name()
                .and_then(OsStr::to_str)
                .unwrap_or_default();
            sets.iter()
                .any(|set| file_names::tf_shard_number(name, set, extension).is_some())
        };
        let is_named = path == dest
            || names.contains(&named(below))
            || options.reshard.is_some() && is_shard_of_set();
        is_named && (shard.format != ShardFormat::TfRecord || target == Some(Target::TfRecord))
    };
    let mut others = found.shards.iter().filter(|shard| !shard.format.is_text());
    if !names.is_empty() && others.all(is_output) {
        let outputs = found.shards.extract_if(.., |shard| !shard.format.is_text());
        outputs.for_each(|shard| found.skipped_files.unwanted(shard.path));
    }
}

/// Checks that the sources are either TFRecord or not.
fn one_kind(shards: &[Shard]) -> Result<()> {
    let is_tfrecord = |shard: &&Shard| shard.format == ShardFormat::TfRecord;
    let (Some(one), Some(other)) = (
        shards.iter().find(is_tfrecord),
        shards.iter().find(|shard| !is_tfrecord(shard)),
    ) else {
        return Ok(());
    };
    let (one, other, format) = (
        one.path.display(),
        other.path.display(),
        other.format.name(),
    );
    Err(Error::Usage(format!(
        "{one} is TFRecord and {other} is {format}; convert them one format at a time, such as with a glob"
    )))
}

/// Checks that no option would be ignored, and that the options do not contradict each other.
fn check_options(shards: &[Shard], options: &ConvertOptions) -> Result<()> {
    let columnar = shards
        .iter()
        .find(|shard| shard.format != ShardFormat::TfRecord);
    let of_tfrecord = [
        (options.schema.is_some(), "a schema"),
        (options.sample != Sample::All, "a sample"),
        (options.layout != Layout::Auto, "a layout"),
        (options.exact, "the option exact"),
        (
            options.on_conflict != OnConflict::Fail,
            "the option on_conflict",
        ),
    ];
    if let (Some(shard), Some((_, option))) =
        (columnar, of_tfrecord.iter().find(|(is_set, _)| *is_set))
    {
        let (path, format) = (shard.path.display(), shard.format.name());
        return Err(Error::Usage(format!(
            "{option} applies to TFRecord sources only, and {path} is {format}"
        )));
    }
    if options.exact && options.verify_crc != VerifyCrc::Always {
        return Err(Error::Usage(
            "the option exact requires that the CRC of every record is verified".to_owned(),
        ));
    }
    if options.exact && !(options.columns.is_empty() && options.exclude.is_empty()) {
        return Err(Error::Usage(
            "the option exact stores the encoding of complete records, and needs all columns: omit it, or the choice of columns"
                .to_owned(),
        ));
    }
    if options.exact && reads_messages(options) {
        return Err(Error::Usage(
            "messages have no column of exact forms: omit the option exact".to_owned(),
        ));
    }
    if options.quarantine.is_some() && options.read.on_error == OnError::Fail {
        return Err(Error::NoQuarantine);
    }
    let is_raw = |schema: &SchemaRef| matches!(&schema.fields()[..], [field] if field.name() == RECORD_COLUMN);
    match &options.schema {
        Some(schema) if options.record_type == Some(RecordType::Raw) && !is_raw(schema) => Err(Error::Usage(
            "raw records have one column, `record`, and the schema has others: omit the schema or the record type"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Checks that no option of Parquet outputs would be ignored.
fn check_parquet_options(target: Target, options: &ConvertOptions) -> Result<()> {
    let of_parquet = [
        (!options.bloom_filters.is_empty(), "Bloom filters"),
        (!options.page_index, "a page index"),
    ];
    match of_parquet.iter().find(|(is_set, _)| *is_set) {
        Some((_, what)) if target != Target::Parquet => Err(Error::Usage(format!(
            "only Parquet files have {what}, and the output format is {}",
            target.name()
        ))),
        _ => Ok(()),
    }
}

/// Whether the columns are those of messages of a type that a descriptor gives.
fn reads_messages(options: &ConvertOptions) -> bool {
    options
        .schema
        .as_ref()
        .is_some_and(|schema| record_type_of(schema) == RecordType::Message)
}

/// Infers the columns if there are none, and converts.
fn run(conversion: &Conversion<'_>) -> Result<ConvertReport> {
    let Conversion {
        shards,
        plan,
        options,
        progress,
        ..
    } = conversion;
    let bytes_in = conversion.bytes();
    progress.restart(bytes_in);
    let (totals, inferred) = match infers(conversion) {
        true => infer_and_convert(conversion, bytes_in)
            .map(|(totals, inferred)| (totals, Some(inferred)))?,
        false => (conversion.convert(None)?, None),
    };
    let inferred = inferred.filter(|_| options.record_type.is_none());
    let changes = totals.lossy_changes.into_iter().collect();
    // Where losses are not allowed, the floats of text are the only values of rows that change.
    let rounds = !options.lossy && !conversion.reads_tfrecord();
    let (lossy_changes, rounded) = if rounds {
        (Vec::new(), changes)
    } else {
        (changes, Vec::new())
    };
    Ok(ConvertReport {
        shards: plan.own.len() as u64,
        files: totals.files,
        records: totals.records,
        bytes_in,
        bytes_out: totals.bytes,
        lossy_changes,
        rounded,
        why_raw: inferred.as_ref().and_then(Inferred::why_raw),
        has_strays: inferred.is_some_and(|inferred| inferred.has_strays()),
        sources: shards
            .iter()
            .map(|shard| shard.path.to_string_lossy().into_owned())
            .collect(),
        damage: DamageReport::new(0),
        skipped_files: SkippedFiles::default(),
        missing: Vec::new(),
        splits: Vec::new(),
        kept_outputs: Vec::new(),
        new_folders: Vec::new(),
    })
}

/// The columns that a conversion would begin with: of a sample if that is safe, else of the records
/// of the options; `None` if it infers none.
///
/// # Errors
/// As [`Conversion::infer`].
pub(crate) fn infer_columns(conversion: &Conversion<'_>) -> Result<Option<Inferred>> {
    let Conversion {
        shards,
        options,
        progress,
        ..
    } = conversion;
    if !infers(conversion) {
        return Ok(None);
    }
    if options.part.is_some() {
        return speculative::columns_of_part(conversion).map(Some);
    }
    if options.sample == Sample::All
        && let Some(inferred) = speculative::columns(conversion)
    {
        return Ok(Some(inferred));
    }
    progress.restart(shards.iter().map(|shard| shard.size).sum());
    conversion
        .infer(options.sample, &|bytes| progress.add_bytes(bytes))
        .map(Some)
}

/// Whether the columns are inferred.
fn infers(conversion: &Conversion<'_>) -> bool {
    conversion.decodes() && conversion.options.schema.is_none()
}

/// Converts in one pass with the columns of a sample if that is safe, else in two passes. A part
/// has one pass.
fn infer_and_convert(conversion: &Conversion<'_>, bytes_in: u64) -> Result<(JobTotals, Inferred)> {
    let Conversion {
        options, progress, ..
    } = conversion;
    if options.part.is_some() {
        return speculative::run_part(conversion);
    }
    let infers_all = options.sample == Sample::All;
    if infers_all && let Some(converted) = speculative::run(conversion)? {
        return Ok(converted);
    }
    if let Some(journal) = conversion.journal.filter(|_| infers_all) {
        journal.record_failed_speculation()?;
    }
    progress.restart(bytes_in * (1 + u64::from(infers_all)));
    let inferred = conversion.infer(options.sample, &|bytes| progress.add_bytes(bytes))?;
    Ok((conversion.convert(Some(&inferred))?, inferred))
}
