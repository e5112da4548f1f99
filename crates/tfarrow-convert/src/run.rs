//! A whole conversion: from sources and a destination to jobs, and from these to a report.

use std::{
    ffi::OsStr,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_schema::{Schema, SchemaRef};
use tfarrow_codec::{
    EncoderBuilder, Layout, RecordType, VerifyCrc,
    schema::{RECORD_COLUMN, with_record_type},
};
use tfarrow_dataset::{
    Contents, InferOptions, Inferred, ReadOptions, Sample, Shard, ShardReader, count, infer_with, names, resolve,
};

use crate::{
    ConvertOptions, Error, OutputCompression, Progress, Recut, Result, Target, columnar,
    input::{UnitReader, UnitSize},
    job::{self, Done, Job, Names, Naming},
    plan::{self, COMPRESSION, Origin, Place, Plan, SHARD},
    sink::{self, Destination, Format},
    trial,
    worker::{Decoding, Encoding},
};

/// Bytes of a unit where units are not row groups.
const CHUNK_BYTES: usize = 2 << 20;

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
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
    pub losses: Vec<(String, u64)>,
    /// Why the records were taken as they are, where that was found out and not asked for.
    pub why_raw: Option<String>,
    /// Whether that was for the sake of a few among records with features.
    pub strays: bool,
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
) -> Result<Report> {
    let mut shards = resolve(sources)?;
    // A pipe is read once where its columns are given. Else it is copied, which also tells what it holds.
    if options.schema.is_none() || options.recut.is_some() {
        shards.iter_mut().try_for_each(Shard::spool)?;
    }
    shards.iter_mut().filter(|shard| shard.is_remote()).try_for_each(Shard::spool_columnar)?;
    one_kind(&shards)?;
    check_options(&shards, options)?;
    let plan = Plan::new(&shards, dest, options)?;
    Conversion::new(shards, plan, options, progress)?.run()
}

/// Refuses sources of which some are TFRecord and some are not.
fn one_kind(shards: &[Shard]) -> Result<()> {
    let is_tfrecord = |shard: &&Shard| shard.contents == Contents::TfRecord;
    let (Some(one), Some(other)) = (shards.iter().find(is_tfrecord), shards.iter().find(|shard| !is_tfrecord(shard)))
    else {
        return Ok(());
    };
    let (one, other, format) = (one.path.display(), other.path.display(), other.contents.name());
    Err(Error::Usage(format!("{one} is TFRecord and {other} is {format}; convert them one format at a time")))
}

/// Refuses what would be passed over in silence.
fn check_options(shards: &[Shard], options: &ConvertOptions) -> Result<()> {
    let columnar = shards.iter().find(|shard| shard.contents != Contents::TfRecord);
    let said = [
        (options.schema.is_some(), "a schema says"),
        (options.sample != Sample::All, "a sample says"),
        (options.layout != Layout::Auto, "a layout says"),
    ];
    if let (Some(shard), Some((_, says))) = (columnar, said.iter().find(|(is_said, _)| *is_said)) {
        let (path, format) = (shard.path.display(), shard.contents.name());
        return Err(Error::Usage(format!(
            "{says} how TFRecord becomes columns, and {path} is {format}, which has them"
        )));
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
    pub(crate) shards: Vec<Shard>,
    plan: Plan,
    inputs: Vec<Input>,
    /// The output of each shard; none where shards are cut anew.
    pub(crate) outputs: Vec<Destination>,
    compression: OutputCompression,
    pub(crate) options: &'c ConvertOptions,
    pub(crate) progress: &'c Progress,
}

/// What is known of a shard before it is converted.
struct Input {
    /// The schema of a Parquet or Arrow file.
    schema: Option<SchemaRef>,
    origin: Origin,
}

impl<'c> Conversion<'c> {
    fn new(shards: Vec<Shard>, plan: Plan, options: &'c ConvertOptions, progress: &'c Progress) -> Result<Self> {
        let inputs = shards.iter().map(Input::of).collect::<Result<Vec<_>>>()?;
        let compression = plan.compression(options)?;
        let outputs = outputs(&shards, &inputs, &plan, compression, options)?;
        Ok(Self { shards, plan, inputs, outputs, compression, options, progress })
    }
}

impl Conversion<'_> {
    fn run(&self) -> Result<Report> {
        let bytes_in = self.shards.iter().map(|shard| shard.size).sum();
        self.progress.restart(bytes_in);
        let infers = self.reads_tfrecord() && self.plan.target != Target::TfRecord && self.options.schema.is_none();
        let (done, inferred) = match infers {
            true => self.infer_and_convert(bytes_in).map(|(done, inferred)| (done, Some(inferred)))?,
            false => (self.convert(None)?, None),
        };
        let inferred = inferred.filter(|_| self.options.record_type.is_none());
        Ok(Report {
            shards: self.shards.len() as u64,
            files: done.files,
            records: self.progress.records(),
            bytes_in,
            bytes_out: done.bytes,
            losses: done.losses.into_iter().collect(),
            why_raw: inferred.as_ref().and_then(Inferred::why_raw),
            strays: inferred.is_some_and(|inferred| inferred.has_strays()),
        })
    }

    fn reads_tfrecord(&self) -> bool {
        self.shards.first().is_some_and(|shard| shard.contents == Contents::TfRecord)
    }

    fn infer_and_convert(&self, bytes_in: u64) -> Result<(Done, Inferred)> {
        let looks_at_all = self.options.sample == Sample::All;
        if looks_at_all && let Some(done) = trial::run(self)? {
            return Ok(done);
        }
        self.progress.restart(bytes_in * (1 + u64::from(looks_at_all)));
        let inferred = self.infer(self.options.sample, &|bytes| self.progress.add_bytes(bytes))?;
        Ok((self.convert(Some(&inferred))?, inferred))
    }

    /// Looks at the records, or at a sample of them. `on_bytes` is told how many bytes more were looked at.
    pub(crate) fn infer(&self, sample: Sample, on_bytes: &(dyn Fn(u64) + Sync)) -> Result<Inferred> {
        // Whole records are checked when they are converted; what is looked at here, only where it cannot be read.
        let verify = match self.options.verify_crc {
            VerifyCrc::Always => VerifyCrc::OnParseFailure,
            other => other,
        };
        let infer = InferOptions { sample, jobs: self.options.jobs.max(1), verify, ..Default::default() };
        let inferred = infer_with(&self.shards, &infer, &|bytes, _| {
            on_bytes(bytes);
            if self.progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if self.progress.is_cancelled() { Err(Error::Cancelled) } else { Ok(inferred?) }
    }

    /// Converts everything, by the columns that were inferred.
    pub(crate) fn convert(&self, inferred: Option<&Inferred>) -> Result<Done> {
        let is_sample = inferred.is_some_and(|inferred| inferred.sampled.is_some());
        let names = if is_sample { Names::Late } else { Names::Early };
        job::run(self.jobs(inferred)?, self.options.jobs.max(1), names)
    }

    fn jobs(&self, inferred: Option<&Inferred>) -> Result<Vec<Job<'_>>> {
        match self.options.recut {
            Some(recut) => Ok(vec![self.recut_job(recut, inferred)?]),
            None => self.shard_jobs(inferred),
        }
    }

    /// How TFRecord is decoded; `None` where it need not be, or is not the source.
    fn decoding(&self, inferred: Option<&Inferred>) -> Result<Option<Decoding>> {
        if !self.reads_tfrecord() || self.plan.target == Target::TfRecord {
            return Ok(None);
        }
        let schema = match (&self.options.schema, inferred) {
            (Some(schema), _) => of_type(schema, self.options.record_type),
            (None, Some(inferred)) => inferred.schema(self.options.layout, self.options.record_type)?,
            (None, None) => return Ok(None),
        };
        let sampled = inferred.is_some_and(|inferred| inferred.sampled.is_some());
        let strict = self.options.record_type.is_none();
        Ok(Some(Decoding { schema, verify_crc: self.options.verify_crc, sampled, strict }))
    }

    fn encoding(&self, schema: &SchemaRef, format: &Format) -> Encoding {
        match (self.plan.target, self.reads_tfrecord()) {
            (Target::Parquet, _) => {
                let (rows, bytes) = (self.options.row_group_rows.max(1), self.options.row_group_bytes.max(1));
                Encoding::Parquet { schema: Arc::clone(schema), format: format.clone(), rows, bytes }
            }
            (Target::Arrow, _) => Encoding::Arrow(Arc::clone(schema)),
            (Target::TfRecord, true) => Encoding::Frames(self.options.verify_crc),
            (Target::TfRecord, false) => {
                let builder = EncoderBuilder::new().with_lossy(self.options.lossy);
                let builder = match self.options.record_type {
                    Some(record_type) => builder.with_record_type(record_type),
                    None => builder,
                };
                Encoding::TfRecord(builder, Arc::clone(schema))
            }
        }
    }

    fn unit_size(&self) -> UnitSize {
        let (rows, bytes) = match self.plan.target {
            Target::Parquet => (self.options.row_group_rows.max(1), self.options.row_group_bytes.max(1)),
            Target::TfRecord | Target::Arrow => (usize::MAX, CHUNK_BYTES),
        };
        UnitSize { rows, bytes }
    }

    fn format(&self, compression: OutputCompression) -> Format {
        let Self { plan, options, .. } = self;
        Format {
            target: plan.target,
            compression,
            overwrite: options.overwrite,
            row_group_rows: options.row_group_rows.max(1),
        }
    }

    fn shard_jobs(&self, inferred: Option<&Inferred>) -> Result<Vec<Job<'_>>> {
        let decoding = self.decoding(inferred)?;
        let job = |((shard, input), output): ((&Shard, &Input), &Destination)| {
            let schema = input.schema.as_ref().or(decoding.as_ref().map(|decoding| &decoding.schema));
            let schema = with_origin(schema, &input.origin);
            let format = self.format(input.origin.resolve(self.compression));
            let encoding = self.encoding(&schema, &format);
            let reader = UnitReader::new(vec![shard.clone()], self.unit_size(), self.progress);
            let outputs = (Naming::One(output.clone()), format, schema);
            Ok(Job::new(reader, decoding.clone(), encoding, outputs, self.progress))
        };
        self.shards.iter().zip(&self.inputs).zip(&self.outputs).map(job).collect()
    }

    fn recut_job(&self, recut: Recut, inferred: Option<&Inferred>) -> Result<Job<'_>> {
        let Place::Folder(folder) = &self.plan.place else {
            return Err(Error::Usage("new shards need a folder to be written to".to_owned()));
        };
        let decoding = self.decoding(inferred)?;
        let schema = match &decoding {
            Some(decoding) => Some(&decoding.schema),
            None => self.one_schema()?,
        };
        let schema = with_origin(schema, &Origin::default());
        let format = self.format(Origin::default().resolve(self.compression));
        let encoding = self.encoding(&schema, &format);
        let count = match recut {
            Recut::Shards(shards) => Some(usize::try_from(shards.max(1)).unwrap_or(usize::MAX)),
            Recut::Bytes(_) => None,
        };
        let naming = self.set_naming(folder, &format, count)?;
        let records = match (recut, inferred) {
            (Recut::Bytes(_), _) => 0,
            (Recut::Shards(_), Some(inferred)) if inferred.sampled.is_none() => inferred.summary.records(),
            (Recut::Shards(_), _) => self.count()?,
        };
        let reader = UnitReader::new(self.shards.clone(), self.unit_size(), self.progress).with_recut(recut, records);
        Ok(Job::new(reader, decoding, encoding, (naming, format, schema), self.progress))
    }

    /// The names of new shards: that of the old ones without their numbers. The first must be free.
    fn set_naming(&self, folder: &Path, format: &Format, count: Option<usize>) -> Result<Naming> {
        let name = self.shards.first().map_or(PathBuf::from("shard"), |shard| shard.name.clone());
        let stem = names::set_name(&name);
        let suffix = match self.plan.target {
            Target::TfRecord => sink::tfrecord_compression(format.compression).suffix(),
            Target::Parquet | Target::Arrow => "",
        };
        let extension = format!("{}{suffix}", self.plan.target.extension());
        if let (Some(count), Some(shard)) = (count, self.shards.first()) {
            let name = |number| (shard, folder.join(names::tf_shard_name(&stem, number, count, &extension)));
            plan::check_outputs(&(0..count).map(name).collect::<Vec<_>>(), self.options.overwrite)?;
        }
        plan::check_other_cuts(folder, &stem, &extension, count)?;
        Ok(Naming::Set { folder: folder.to_owned(), stem, extension, count })
    }

    /// The schema that all Parquet or Arrow files have.
    fn one_schema(&self) -> Result<Option<&SchemaRef>> {
        let first = self.inputs.first().and_then(|input| input.schema.as_ref());
        for (shard, input) in self.shards.iter().zip(&self.inputs) {
            let differs = |schema: &&SchemaRef| Some(schema.fields()) != first.map(|schema| schema.fields());
            if input.schema.as_ref().is_some_and(|schema| differs(&schema)) {
                let (one, other) = (self.shards.first().map(|s| s.path.display().to_string()), shard.path.display());
                let one = one.unwrap_or_default();
                return Err(Error::Data(format!(
                    "{other}: has other columns than {one}; they cannot become one set of shards"
                )));
            }
        }
        Ok(first)
    }

    fn count(&self) -> Result<u64> {
        let (nobody, size) = (Progress::default(), UnitSize { rows: usize::MAX, bytes: usize::MAX });
        let rows = |shard: &Shard| match shard.contents {
            Contents::TfRecord => Ok(count(shard)?),
            Contents::Parquet | Contents::Arrow => UnitReader::new(vec![shard.clone()], size, &nobody).count_rows(),
        };
        self.shards.iter().map(rows).sum()
    }
}

impl Input {
    fn of(shard: &Shard) -> Result<Self> {
        if let Some(schema) = columnar::schema(Some(shard.contents), &shard.path, shard.local_path())? {
            return Ok(Self { origin: Origin::of(&schema), schema: Some(schema) });
        }
        let compression = match shard.is_stream() {
            true => None,
            false => Some(ShardReader::open(shard, &ReadOptions::default())?.compression()),
        };
        let name = shard.name.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { schema: None, origin: Origin { shard: name, compression } })
    }
}

fn outputs(
    shards: &[Shard],
    inputs: &[Input],
    plan: &Plan,
    compression: OutputCompression,
    options: &ConvertOptions,
) -> Result<Vec<Destination>> {
    let folder = match &plan.place {
        Place::One(Destination::File(path), _) => {
            let one = shards.first().map(|shard| (shard, path.clone()));
            plan::check_outputs(&Vec::from_iter(one), options.overwrite)?;
            return Ok(vec![Destination::File(path.clone())]);
        }
        Place::One(Destination::Stdout, _) => return Ok(vec![Destination::Stdout]),
        Place::Folder(folder) => folder,
    };
    if options.recut.is_some() {
        return Ok(Vec::new());
    }
    let output = |(shard, input): (_, &Input)| {
        let compression = sink::tfrecord_compression(input.origin.resolve(compression));
        (shard, folder.join(input.origin.output_name(shard, plan.target, compression)))
    };
    let outputs: Vec<_> = shards.iter().zip(inputs).map(output).collect();
    plan::check_outputs(&outputs, options.overwrite)?;
    Ok(outputs.into_iter().map(|(_, path)| Destination::File(path)).collect())
}

/// `schema` for records of the type given, if one is.
fn of_type(schema: &SchemaRef, record_type: Option<RecordType>) -> SchemaRef {
    match record_type {
        Some(record_type) => {
            with_record_type(schema.fields().iter().map(|field| field.as_ref().clone()).collect(), record_type)
        }
        None => Arc::clone(schema),
    }
}

/// `schema` with what the file is to remember of its shard.
fn with_origin(schema: Option<&SchemaRef>, origin: &Origin) -> SchemaRef {
    let Some(schema) = schema else { return Arc::new(Schema::empty()) };
    let mut metadata = schema.metadata().clone();
    metadata.remove(SHARD);
    metadata.remove(COMPRESSION);
    metadata.extend(origin.shard.iter().map(|name| (SHARD.to_owned(), name.clone())));
    metadata
        .extend(origin.compression.iter().map(|compression| (COMPRESSION.to_owned(), compression.name().to_owned())));
    Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata))
}
