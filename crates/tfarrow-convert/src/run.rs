//! A whole conversion: from sources and a destination to jobs, and from these to a report.

use std::{
    ffi::{OsStr, OsString},
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use arrow_schema::SchemaRef;
use tfarrow_codec::{Layout, OnConflict, OnError, RecordType, VerifyCrc, schema::RECORD_COLUMN};
use tfarrow_dataset::{
    Contents, InferOptions, Inferred, Losses, MissingShards, PassedOver, ReadOptions, Resolved, Sample, Shard,
    ShardReader, UNFINISHED, Wanted, check_one_payload, infer_with, is_remote, look_into, resolve_wanted,
};

use crate::{
    ConvertOptions, Error, OutputCompression, Progress, Result, Target, columnar,
    damage::Damage,
    formats::tfrecord::compression_of,
    identity::identity,
    input::ReadContext,
    job::{self, CommitMode, JobTotals},
    journal::Journal,
    output::Destination,
    plan::{self, Origin, Place, Plan},
    quarantine::Earlier,
    trial,
};

/// What a conversion did.
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
    /// Bytes of the files, or those that went to standard output.
    pub bytes_out: u64,
    /// What was left out or changed, and how often: empty unless that was allowed.
    pub lossy_changes: Vec<(String, u64)>,
    /// Why the records were taken as they are, where that was found out and not asked for.
    pub why_raw: Option<String>,
    /// Whether that was for the sake of a few among records with features.
    pub has_strays: bool,
    /// The paths of the shards, by the numbers that faults have.
    pub sources: Vec<String>,
    /// What is damaged, and was passed over: nothing, unless that was asked for.
    pub damage: Losses,
    /// What folders and globs hold besides the shards.
    pub passed_over: PassedOver,
    /// What sets of numbered shards lack that are in folders.
    pub missing: Vec<MissingShards>,
    /// Outputs that a run which was interrupted has made of sources that are not among these. They stay.
    pub kept_outputs: Vec<PathBuf>,
    /// Folders above the outputs that were missing and have been created, each after its parent. A destination that is a
    /// folder is not among them.
    pub new_folders: Vec<PathBuf>,
}

/// Converts the shards that `sources` name. `dest` is a folder or one file, on this machine or in a store, or `-`.
///
/// # Errors
/// What the sources, the data and the destination give reason for. Then no output that is not whole has its name.
pub fn convert<S: AsRef<OsStr>>(
    sources: &[S],
    dest: &Path,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let mut found = resolve_wanted(sources, Wanted::All)?;
    let is_named = |shard: &Shard| sources.iter().any(|source| Path::new(source) == shard.path);
    leave_out_made(&mut found, dest, &is_named);
    convert_resolved(found, dest, options, progress)
}

/// Writes the records of TFRecord shards that are sound, as they are, to shards of the same names and compression. What is
/// damaged is passed over, and told in the [report](ConvertReport::damage). Of `options`, those are taken that say nothing of
/// columns.
///
/// # Errors
/// As [`convert`], but for damage.
pub fn repair<S: AsRef<OsStr>>(
    sources: &[S],
    dest: &Path,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    let found = resolve_wanted(sources, Wanted::TfRecord)?;
    if let Some(shard) = found.shards.iter().find(|shard| shard.contents != Contents::TfRecord) {
        let (path, format) = (shard.path.display(), shard.contents.name());
        return Err(Error::Usage(format!("{path}: is {format}; only TFRecord can be repaired")));
    }
    let options = ConvertOptions {
        to: Some(Target::TfRecord),
        compression: Some(OutputCompression::Original),
        read: ReadOptions { on_error: OnError::Skip, ..options.read },
        ..options.clone()
    };
    convert_resolved(found, dest, &options, progress)
}

fn convert_resolved(
    Resolved { mut shards, passed_over, missing }: Resolved,
    dest: &Path,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<ConvertReport> {
    // A pipe is read once where its columns are given. Else it is copied, which also tells what it holds.
    if options.schema.is_none() || options.reshard.is_some() {
        shards.iter_mut().try_for_each(Shard::spool)?;
    }
    shards.iter_mut().filter(|shard| shard.is_remote()).try_for_each(Shard::spool_columnar)?;
    one_kind(&shards)?;
    check_options(&shards, options)?;
    let plan = Plan::new(&shards, dest, options)?;
    look_into(&mut shards)?;
    if plan.target != Target::TfRecord && options.record_type != Some(RecordType::Raw) {
        check_one_payload(&shards).map_err(|error| Error::Usage(error.to_string()))?;
    }
    let compression = plan.compression(options)?;
    plan::check_no_source(&shards, options.quarantine.as_deref())?;
    let journal = journal(&plan, options)?;
    let earlier = match (options.overwrite, options.resume) {
        (true, _) => Earlier::Replaced,
        (false, true) => Earlier::Compared,
        (false, false) => Earlier::Refused,
    };
    let outcome = Damage::new(options.quarantine.as_deref(), earlier).and_then(|damage| {
        let own = (&damage, journal.as_ref());
        let conversion = Conversion::new(&shards, &plan, compression, options, progress, own)?;
        let (report, outputs) = (conversion.run()?, conversion.outputs);
        let damage = damage.finish()?;
        let outputs = outputs.iter().filter_map(Destination::file);
        let kept_outputs = journal.as_ref().map(|journal| journal.unclaimed_outputs(outputs)).unwrap_or_default();
        let is_above = |folder: &&Path| !matches!(&plan.place, Place::Folder(dest) if dest == *folder);
        let new_folders = journal.iter().flat_map(Journal::new_folders).filter(is_above);
        let new_folders = new_folders.map(Path::to_owned).collect();
        Ok(ConvertReport { damage, passed_over, missing, kept_outputs, new_folders, ..report })
    });
    let goes_on = journal.is_some_and(|journal| journal.close(outcome.is_ok()));
    progress.set_resumable(goes_on);
    outcome
}

/// The journal of outputs in a folder on this machine, or of one file there.
fn journal(plan: &Plan, options: &ConvertOptions) -> Result<Option<Journal>> {
    let path = match &plan.place {
        Place::Folder(folder) => Some(folder.join(format!("{UNFINISHED}convert.journal"))),
        Place::One(Destination::File(path), _) => path.file_name().map(|name| {
            let mut own = OsString::from(UNFINISHED);
            own.push(name);
            own.push(".journal");
            path.with_file_name(own)
        }),
        Place::One(Destination::Stream, _) => None,
    };
    match path.filter(|path| !path.to_str().is_some_and(is_remote)) {
        Some(path) => {
            Journal::open(&path, &identity(plan.target, options), options.resume, options.overwrite).map(Some)
        }
        None if options.resume => {
            Err(Error::Usage("only a conversion to files on this machine can be resumed".to_owned()))
        }
        None => Ok(None),
    }
}

/// Leaves out of what was found what an earlier conversion has made of it: where there is TFRecord beside Parquet or Arrow,
/// whatever lies in the destination, and is not what its sources are, unless it `is_named` as it is.
fn leave_out_made(found: &mut Resolved, dest: &Path, is_named: &dyn Fn(&Shard) -> bool) {
    if one_kind(&found.shards).is_ok() {
        return;
    }
    let place = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dest = place(dest);
    let is_made = |shard: &Shard| place(&shard.path).starts_with(&dest) && !is_named(shard);
    let is_tfrecord = |shard: &Shard| shard.contents == Contents::TfRecord;
    // Where all is in one folder, what was made is beside its sources.
    let are_tfrecord = found.shards.iter().find(|shard| !is_made(shard)).is_none_or(is_tfrecord);
    let made = found.shards.extract_if(.., |shard| is_tfrecord(shard) != are_tfrecord && is_made(shard));
    made.for_each(|shard| found.passed_over.unwanted(shard.path));
}

/// Refuses sources of which some are TFRecord and some are not.
fn one_kind(shards: &[Shard]) -> Result<()> {
    let is_tfrecord = |shard: &&Shard| shard.contents == Contents::TfRecord;
    let (Some(one), Some(other)) = (shards.iter().find(is_tfrecord), shards.iter().find(|shard| !is_tfrecord(shard)))
    else {
        return Ok(());
    };
    let (one, other, format) = (one.path.display(), other.path.display(), other.contents.name());
    Err(Error::Usage(format!(
        "{one} is TFRecord and {other} is {format}; convert them one format at a time, such as with a glob"
    )))
}

/// Refuses what would be passed over in silence.
fn check_options(shards: &[Shard], options: &ConvertOptions) -> Result<()> {
    let columnar = shards.iter().find(|shard| shard.contents != Contents::TfRecord);
    let said = [
        (options.schema.is_some(), "a schema says"),
        (options.sample != Sample::All, "a sample says"),
        (options.layout != Layout::Auto, "a layout says"),
        (options.exact, "--exact says"),
        (options.on_conflict != OnConflict::Fail, "--on-conflict says"),
    ];
    if let (Some(shard), Some((_, says))) = (columnar, said.iter().find(|(is_said, _)| *is_said)) {
        let (path, format) = (shard.path.display(), shard.contents.name());
        return Err(Error::Usage(format!(
            "{says} how TFRecord becomes columns, and {path} is {format}, which has them"
        )));
    }
    if options.exact && options.verify_crc != VerifyCrc::Always {
        return Err(Error::Usage("a record whose CRC does not hold has no exact way back: check the CRCs".to_owned()));
    }
    if options.quarantine.is_some() && options.read.on_error == OnError::Fail {
        return Err(Error::Usage("there is no quarantine where damage is an error: give --on-error skip".to_owned()));
    }
    let is_raw = |schema: &SchemaRef| matches!(&schema.fields()[..], [field] if field.name() == RECORD_COLUMN);
    match &options.schema {
        Some(schema) if options.record_type == Some(RecordType::Raw) && !is_raw(schema) => Err(Error::Usage(
            "raw records have one column, `record`, and the schema has others: leave out one of the two".to_owned(),
        )),
        _ => Ok(()),
    }
}

pub(crate) struct Conversion<'c> {
    pub(crate) shards: &'c [Shard],
    pub(crate) plan: &'c Plan,
    pub(crate) inputs: Vec<SourceInfo>,
    /// The output of each shard; none where shards are cut anew.
    pub(crate) outputs: Vec<Destination>,
    pub(crate) compression: OutputCompression,
    pub(crate) options: &'c ConvertOptions,
    pub(crate) progress: &'c Progress,
    damage: &'c Damage,
    pub(crate) journal: Option<&'c Journal>,
}

/// A shard's properties that are read before it is converted.
pub(crate) struct SourceInfo {
    /// The schema of a Parquet or Arrow file; `None` of TFRecord.
    pub(crate) schema: Option<SchemaRef>,
    pub(crate) origin: Origin,
}

impl<'c> Conversion<'c> {
    fn new(
        shards: &'c [Shard],
        plan: &'c Plan,
        compression: OutputCompression,
        options: &'c ConvertOptions,
        progress: &'c Progress,
        (damage, journal): (&'c Damage, Option<&'c Journal>),
    ) -> Result<Self> {
        let inputs = shards.iter().map(|shard| SourceInfo::of(shard, &options.read)).collect::<Result<Vec<_>>>()?;
        let outputs = outputs(shards, &inputs, plan, compression, options)?;
        plan::check_no_source(shards, outputs.iter().filter_map(Destination::file))?;
        plan::check_quarantine(options.quarantine.as_deref(), &outputs)?;
        Ok(Self { shards, plan, inputs, outputs, compression, options, progress, damage, journal })
    }

    pub(crate) fn context(&self) -> ReadContext<'c> {
        ReadContext { options: self.options.read, progress: self.progress, damage: self.damage }
    }
}

impl Conversion<'_> {
    fn run(&self) -> Result<ConvertReport> {
        let bytes_in = self.shards.iter().map(|shard| shard.size).sum();
        self.progress.restart(bytes_in);
        let infers = self.reads_tfrecord() && self.plan.target != Target::TfRecord && self.options.schema.is_none();
        let (done, inferred) = match infers {
            true => self.infer_and_convert(bytes_in).map(|(done, inferred)| (done, Some(inferred)))?,
            false => (self.convert(None)?, None),
        };
        let inferred = inferred.filter(|_| self.options.record_type.is_none());
        Ok(ConvertReport {
            shards: self.shards.len() as u64,
            files: done.files,
            records: done.records,
            bytes_in,
            bytes_out: done.bytes,
            lossy_changes: done.lossy_changes.into_iter().collect(),
            why_raw: inferred.as_ref().and_then(Inferred::why_raw),
            has_strays: inferred.is_some_and(|inferred| inferred.has_strays()),
            sources: self.shards.iter().map(|shard| shard.path.to_string_lossy().into_owned()).collect(),
            damage: Losses::new(0),
            passed_over: PassedOver::default(),
            missing: Vec::new(),
            kept_outputs: Vec::new(),
            new_folders: Vec::new(),
        })
    }

    pub(crate) fn reads_tfrecord(&self) -> bool {
        self.shards.first().is_some_and(|shard| shard.contents == Contents::TfRecord)
    }

    fn infer_and_convert(&self, bytes_in: u64) -> Result<(JobTotals, Inferred)> {
        let looks_at_all = self.options.sample == Sample::All;
        if looks_at_all && let Some(done) = trial::run(self)? {
            return Ok(done);
        }
        if let Some(journal) = self.journal.filter(|_| looks_at_all) {
            journal.record_failed_speculation()?;
        }
        self.progress.restart(bytes_in * (1 + u64::from(looks_at_all)));
        let inferred = self.infer(self.options.sample, &|bytes| self.progress.add_bytes(bytes))?;
        Ok((self.convert(Some(&inferred))?, inferred))
    }

    /// Looks at the records, or at a sample of them. `on_bytes` is told how many bytes more were looked at.
    pub(crate) fn infer(&self, sample: Sample, on_bytes: &(dyn Fn(u64) + Sync)) -> Result<Inferred> {
        // Whole records are checked when they are converted; what is looked at here, only where it cannot be read.
        let read = self.options.read;
        let verify = match self.options.verify_crc {
            VerifyCrc::Always if read.on_error == OnError::Fail => VerifyCrc::OnParseFailure,
            other => other,
        };
        let infer = InferOptions {
            sample,
            jobs: self.options.jobs.max(1),
            verify,
            record_type: self.options.record_type,
            read,
        };
        let inferred = infer_with(self.shards, &infer, &|bytes, _| {
            on_bytes(bytes);
            if self.progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if self.progress.is_cancelled() { Err(Error::Cancelled) } else { Ok(inferred?) }
    }

    /// Converts everything, by the columns that were inferred.
    pub(crate) fn convert(&self, inferred: Option<&Inferred>) -> Result<JobTotals> {
        let is_sample = inferred.is_some_and(|inferred| inferred.sampled.is_some());
        let names = if is_sample { CommitMode::AllJobs } else { CommitMode::EachJob };
        job::run(self.jobs(inferred)?, self.options.jobs.max(1), names)
    }
}

impl SourceInfo {
    fn of(shard: &Shard, read: &ReadOptions) -> Result<Self> {
        if let Some(schema) = columnar::schema_within(shard, &read.limits)? {
            return Ok(Self { origin: Origin::of(&schema), schema: Some(schema) });
        }
        let compression = match (shard.is_stream(), shard.compression()) {
            (true, _) => None,
            (false, None) => Some(ShardReader::open(shard, read)?.compression()),
            (false, known) => known,
        };
        // Metadata is text, and a name that is none is not remembered: the output's own stands for it.
        let name = shard.name.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        Ok(Self { schema: None, origin: Origin { shard: name, compression } })
    }
}

fn outputs(
    shards: &[Shard],
    inputs: &[SourceInfo],
    plan: &Plan,
    compression: OutputCompression,
    options: &ConvertOptions,
) -> Result<Vec<Destination>> {
    let folder = match &plan.place {
        Place::One(Destination::File(path), _) => {
            let one = shards.first().map(|shard| (shard, path.clone()));
            plan::check_outputs(&Vec::from_iter(one), options)?;
            return Ok(vec![Destination::File(path.clone())]);
        }
        Place::One(Destination::Stream, _) => return Ok(vec![Destination::Stream]),
        Place::Folder(folder) => folder,
    };
    if options.reshard.is_some() {
        return Ok(Vec::new());
    }
    let output = |(shard, input): (_, &SourceInfo)| {
        let compression = compression_of(input.origin.resolve(compression));
        (shard, folder.join(input.origin.output_name(shard, plan.target, compression)))
    };
    let outputs: Vec<_> = shards.iter().zip(inputs).map(output).collect();
    plan::check_outputs(&outputs, options)?;
    Ok(outputs.into_iter().map(|(_, path)| Destination::File(path)).collect())
}

#[cfg(test)]
mod tests {
    use tfarrow_codec::frame;
    use tfarrow_dataset::{Compression, resolve};

    use super::*;

    #[test]
    fn the_compression_of_shards_is_known_without_opening_them_once_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tfrecord");
        let mut bytes = Vec::new();
        frame::write(b"record", &mut bytes);
        fs::write(&path, &bytes).unwrap();
        let shards = resolve(&[&path]).unwrap();
        fs::remove_file(&path).unwrap();
        let input = SourceInfo::of(&shards[0], &ReadOptions::default()).unwrap();
        assert_eq!(input.origin.compression, Some(Compression::None));
    }
}
