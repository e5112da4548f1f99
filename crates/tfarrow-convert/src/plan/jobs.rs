//! The jobs of a conversion: one for each shard, or one for all shards if the conversion writes new
//! shards or one file.
//!
//! ```text
//! Conversion ─▶ Jobs: what all jobs share ─▶ JobSpec: the shards and outputs of one ─▶ RouteJob
//!               once, with all checks        when a worker begins it
//! ```

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_schema::{Schema, SchemaRef};
use parquet::schema::types::TypePtr;
use tfarrow_codec::WriterBuilder;
use tfarrow_columnar::count as count_rows;
use tfarrow_dataset::{
    CompleteFile, Shard, ShardFormat, count, file_names,
    internals::{ExistingObject, existing_objects, is_remote},
};
use tfarrow_scan::Inferred;

use super::{
    OutputPlace,
    choice::ChoicePart,
    columns::{JobColumns, ReadColumns},
    fingerprint::fingerprint,
    folders,
    origin::OriginalShard,
    planned::{PlannedJob, PlannedOutputs, PlannedSource},
    setup::Conversion,
};
use crate::{
    Error, OutputCompression, Reshard, Result, Target,
    earlier::Earlier,
    formats::{
        RowFormat,
        arrow::ArrowFileFormat,
        parquet::{ParquetColumns, ParquetFileFormat},
        tfrecord::{TfRecordFileFormat, TfRecordRowFormat, compression_of},
    },
    input::{MAX_BLOCKS, RecordSource, UnitReader, UnitSize, UnitSource},
    journal::{CompletedOutput, folders::NewFolders},
    names::NamePattern,
    output::{
        ClosedOutput, Destination, OutputOptions,
        made_of::{MadeOf, source_of},
    },
    selection::columns_with_bloom_filter,
    worker::{
        DecodeConfig,
        job::{
            self, ClosedJob, CommitMode, CompletedJob, Job, JobTotals, Naming, OutputRecord,
            RouteJob, UnnamedOutput,
        },
        routes::{CopyFrames, Decode, Reencode, Route},
    },
};

/// Maximum bytes of a unit that is not a row group.
const CHUNK_BYTES: usize = 2 << 20;
/// The same where records are read in rounds, which have as many bytes.
const ROUND_BYTES: usize = 64 << 20;

/// The shards and outputs of a job of any route.
struct JobSpec<'c> {
    /// The shards, with their numbers in the data set.
    shards: Vec<(usize, Shard)>,
    /// The records that are converted, if they are chosen by their numbers.
    chosen: Option<ChoicePart>,
    /// The size of new shards, and the number of records in all of them.
    reshard: Option<(Reshard, u64)>,
    columns: JobColumns,
    /// The columns of the outputs, with the metadata of the files.
    schema: SchemaRef,
    compression: OutputCompression,
    naming: Naming,
    /// The policy for existing outputs.
    earlier: Earlier,
    /// The record of the output for later runs.
    record: OutputRecord<'c>,
}

/// The new shards of a job.
struct NewShards {
    reshard: Reshard,
    /// The numbers of the shards that they are made of.
    sources: Vec<usize>,
    /// The records that they have, if these are chosen by their numbers.
    chosen: Option<ChoicePart>,
    /// The number of records in them; 0 if the size of new shards is given.
    records: u64,
    naming: Naming,
}

/// The jobs of a conversion. Each is made when it is needed.
struct Jobs<'j, 'c> {
    conversion: &'j Conversion<'c>,
    /// How TFRecord is decoded; `None` if frames are copied, or if the sources are Parquet or
    /// Arrow.
    decoding: Option<Arc<DecodeConfig>>,
    /// The new shards of each job; empty if each job has one output of the conversion.
    new_shards: Vec<NewShards>,
    /// The existing object of each output.
    existing: Vec<Option<ExistingObject>>,
    /// The fingerprint of the options.
    fingerprint: String,
}

impl<'c> Conversion<'c> {
    /// Converts all shards. `inferred` gives the columns unless the sources or the options do.
    ///
    /// # Errors
    /// The first error of a job, and columns that the output format cannot hold.
    pub(crate) fn convert(&self, inferred: Option<&Inferred>) -> Result<JobTotals> {
        let is_sample = inferred.is_some_and(|inferred| inferred.sampled.is_some());
        // A part has the columns of the sample in any case: a record that does not fit them is an
        // error, which other parts that have given outputs their names do not know of. New shards are
        // not resumed, so that those of a failed conversion are of no use.
        let is_uncertain = is_sample && self.options.part.is_none();
        let mode = match is_uncertain || self.options.writes_new_shards() {
            true => CommitMode::AllJobs,
            false => CommitMode::EachJob,
        };
        let jobs = Jobs::new(self, inferred)?;
        // When the jobs have ended, this removes the folders that are empty.
        let _new_folders = jobs.create_folders()?;
        job::run(
            &|number| jobs.begin(number),
            self.options.jobs.max(1),
            mode,
            self.progress,
        )
    }

    /// The jobs of a dry run. Checks that the output format can hold the columns.
    ///
    /// # Errors
    /// Columns that the output format cannot hold.
    pub(crate) fn planned_jobs(&self, inferred: Option<&Inferred>) -> Result<Vec<PlannedJob>> {
        let jobs = Jobs::new(self, inferred)?;
        (0..jobs.count())
            .map(|number| jobs.planned(number))
            .collect()
    }

    /// The new shards of each job; none if the shards are kept. Counts records where the number of
    /// new shards is given.
    fn new_shards(
        &self,
        decoding: Option<&DecodeConfig>,
        inferred: Option<&Inferred>,
    ) -> Result<Vec<NewShards>> {
        if !self.choice.is_empty() && matches!(self.plan.place, OutputPlace::Folder(_)) {
            let parts = self.choice.iter();
            return parts.map(|part| self.new_shards_of_part(part)).collect();
        }
        let Some(reshard) = self.options.reshard else {
            return Ok(Vec::new());
        };
        // Sources whose columns differ are found before records are counted.
        self.columns(decoding, 0..self.shards.len())?;
        let sets = folders::sets(self.shards, &self.options.partition_by)?;
        sets.into_iter()
            .map(|(folder, sources)| self.new_shards_of(reshard, &folder, sources, inferred))
            .collect()
    }

    /// The new shards of a part of the choice: by default as many as there are sources, in proportion to
    /// its records.
    fn new_shards_of_part(&self, part: &ChoicePart) -> Result<NewShards> {
        let by_default = (part.records.share() * self.shards.len() as f64).ceil() as u64;
        let reshard = self.options.reshard;
        let reshard = reshard.unwrap_or(Reshard::Shards(by_default.max(1)));
        let records = part.records.count();
        Ok(NewShards {
            reshard,
            sources: (0..self.shards.len()).collect(),
            chosen: Some(part.clone()),
            records,
            naming: self.naming_of(reshard, &part.folder, self.shards.first())?,
        })
    }

    /// The new shards of the shards of these numbers, in the folder `partition` below the
    /// destination.
    fn new_shards_of(
        &self,
        reshard: Reshard,
        partition: &Path,
        sources: Vec<usize>,
        inferred: Option<&Inferred>,
    ) -> Result<NewShards> {
        let first = sources.first().and_then(|number| self.shards.get(*number));
        let naming = self.naming_of(reshard, partition, first)?;
        let records = match (reshard, inferred) {
            (Reshard::Bytes(_), _) => 0,
            (Reshard::Shards(_), Some(inferred))
                if inferred.sampled.is_none() && sources.len() == self.shards.len() =>
            {
                inferred.summary.records()
            }
            (Reshard::Shards(_), _) => self.count(&sources)?,
        };
        Ok(NewShards {
            reshard,
            sources,
            chosen: None,
            records,
            naming,
        })
    }

    /// The names of new shards in the folder `partition` below the destination.
    fn naming_of(
        &self,
        reshard: Reshard,
        partition: &Path,
        first: Option<&Shard>,
    ) -> Result<Naming> {
        let OutputPlace::Folder(folder) = &self.plan.place else {
            return Err(Error::Usage(
                "new shards need a folder as the destination".to_owned(),
            ));
        };
        let folder = if partition.as_os_str().is_empty() {
            folder.clone()
        } else {
            folder.join(partition)
        };
        let count = match reshard {
            Reshard::Shards(shards) => Some(usize::try_from(shards.max(1)).unwrap_or(usize::MAX)),
            Reshard::Bytes(_) => None,
        };
        self.set_naming(&folder, count, first)
    }

    /// The names of new shards: the name of the sources' set, and numbers. Checks that the outputs
    /// can be written.
    fn set_naming(
        &self,
        folder: &Path,
        count: Option<usize>,
        first: Option<&Shard>,
    ) -> Result<Naming> {
        let name = first.map_or(PathBuf::from("shard"), |shard| shard.name.clone());
        let stem = file_names::set_name(&name);
        let suffix = match self.plan.target {
            Target::TfRecord => {
                compression_of(OriginalShard::default().resolve(self.compression)).suffix()
            }
            Target::Parquet | Target::Arrow => "",
        };
        let extension = format!("{}{suffix}", self.plan.target.name());
        super::check_quarantine_of_set(
            self.options.quarantine.as_deref(),
            folder,
            &stem,
            &extension,
        )?;
        if let (Some(count), Some(shard)) = (count, first) {
            let mut outputs = Vec::with_capacity(count);
            for number in 0..count {
                let name = file_names::tf_shard_name(&stem, number, count, &extension);
                outputs.push((shard, folder.join(name)));
            }
            super::check_outputs(&outputs, self.options)?;
        }
        // The names of shards contain their number, which is not known yet if the size of shards is
        // given. A resumed run takes it from the names of the existing shards.
        let count = match count {
            None if self.options.resume => super::existing_count(folder, &stem, &extension)?,
            count => count,
        };
        super::check_other_shards(folder, &stem, &extension, count)?;
        Ok(Naming::Set {
            folder: folder.to_owned(),
            stem,
            extension,
            count,
        })
    }

    /// Counts the records of the shards of these numbers.
    fn count(&self, numbers: &[usize]) -> Result<u64> {
        let mut records = 0;
        for number in numbers {
            let Some(shard) = self.shards.get(*number) else {
                continue;
            };
            records += match shard.format {
                ShardFormat::TfRecord => count(shard, &self.options.read)?,
                ShardFormat::Parquet
                | ShardFormat::Arrow
                | ShardFormat::Csv
                | ShardFormat::Json => count_rows(shard)?,
            };
        }
        Ok(records)
    }

    /// The existing object of each output, if existing outputs are compared; else nothing.
    fn existing_objects(&self) -> Result<Vec<Option<ExistingObject>>> {
        if self.options.earlier() != Earlier::Compared {
            return Ok(Vec::new());
        }
        let files: Vec<_> = self
            .outputs
            .iter()
            .map(|(_, output)| output.name())
            .collect();
        Ok(existing_objects(&files)?)
    }

    /// The shards of these numbers.
    fn shards_of(&self, numbers: &Range<usize>) -> &'c [Shard] {
        self.shards.get(numbers.clone()).unwrap_or_default()
    }

    /// The metadata about the original shards that their common output has.
    fn original(&self, shards: Range<usize>) -> OriginalShard {
        OriginalShard::common(
            self.sources
                .get(shards)
                .unwrap_or_default()
                .iter()
                .map(|source| &source.original),
        )
    }

    fn encoder_builder(&self) -> WriterBuilder {
        let builder = WriterBuilder::new()
            .with_limits(self.options.read.limits)
            .with_lossy(self.options.lossy);
        self.options
            .record_type
            .into_iter()
            .fold(builder, WriterBuilder::with_record_type)
    }

    /// Maximum rows and encoded bytes of a row group.
    fn row_group(&self) -> (usize, usize) {
        (
            self.options.row_group_rows.max(1),
            self.options.row_group_bytes.max(1),
        )
    }

    fn unit_size(&self) -> UnitSize {
        let (rows, bytes) = match self.plan.target {
            Target::Parquet => self.row_group(),
            Target::TfRecord | Target::Arrow => (usize::MAX, CHUNK_BYTES),
        };
        UnitSize {
            rows,
            bytes,
            blocks: MAX_BLOCKS,
        }
    }
}

impl<'j, 'c> Jobs<'j, 'c> {
    /// Finds what the jobs have in common, and whether the outputs can be written.
    ///
    /// # Errors
    /// Columns that the output format cannot hold, and sources that cannot be read.
    fn new(conversion: &'j Conversion<'c>, inferred: Option<&Inferred>) -> Result<Self> {
        let decoding = conversion.decode_config(inferred)?;
        let new_shards = conversion.new_shards(decoding.as_deref(), inferred)?;
        let existing = conversion.existing_objects()?;
        let fingerprint = fingerprint(conversion.plan.target, conversion.options);
        let jobs = Self {
            conversion,
            decoding,
            new_shards,
            existing,
            fingerprint,
        };
        // All TFRecord files are decoded to the same columns. Other sources have columns of their
        // own.
        let checked = if conversion.reads_tfrecord() {
            1
        } else {
            jobs.count()
        };
        for number in 0..jobs.count().min(checked) {
            jobs.job(jobs.spec(number)?)?;
        }
        Ok(jobs)
    }

    /// Creates the folders of new shards.
    fn create_folders(&self) -> Result<Vec<NewFolders>> {
        let mut created = Vec::new();
        for new_shards in &self.new_shards {
            if let Naming::Set { folder, .. } = &new_shards.naming
                && !folder.to_str().is_some_and(is_remote)
            {
                created.push(NewFolders::create(folder)?);
            }
        }
        Ok(created)
    }

    /// The number of jobs.
    fn count(&self) -> usize {
        self.conversion.outputs.len() + self.new_shards.len()
    }

    /// Begins the job of this number; `None` if there are no more jobs.
    fn begin(&self, number: usize) -> Result<Option<Arc<dyn Job + 'c>>> {
        if number >= self.count() {
            return Ok(None);
        }
        let spec = self.spec(number)?;
        let Some((totals, uncommitted)) = self.completed(number, &spec)? else {
            return self.job(spec).map(Some);
        };
        let progress = self.conversion.progress;
        progress.add_bytes(spec.shards.iter().map(|(_, shard)| shard.size).sum());
        progress.add_records(totals.records);
        progress.add_files(totals.files);
        let options = self.output_options(&spec);
        let unnamed = uncommitted.map(|output| UnnamedOutput {
            output,
            options,
            is_listed: true,
        });
        let closed = ClosedJob {
            totals,
            outputs: unnamed.into_iter().collect(),
        };
        Ok(Some(Arc::new(CompletedJob::new(closed))))
    }

    /// The job of this number of a dry run.
    fn planned(&self, number: usize) -> Result<PlannedJob> {
        let JobSpec {
            shards,
            columns,
            naming,
            compression,
            ..
        } = self.spec(number)?;
        let sources = shards.into_iter().map(|(_, shard)| PlannedSource {
            path: shard.path,
            bytes: shard.size,
        });
        let sources = sources.collect();
        let outputs = PlannedOutputs::of(&naming);
        Ok(PlannedJob {
            sources,
            outputs,
            compression,
            columns: columns.schema,
        })
    }

    fn spec(&self, number: usize) -> Result<JobSpec<'c>> {
        match (
            self.conversion.outputs.get(number),
            self.new_shards.get(number),
        ) {
            (Some((shards, output)), _) => self.spec_of_output(shards.clone(), output),
            (None, Some(new_shards)) => self.spec_of_new_shards(new_shards),
            (None, None) => Err(Error::Usage(format!("internal error: no job {number}"))),
        }
    }

    /// The job of these shards, which writes one output.
    fn spec_of_output(&self, shards: Range<usize>, output: &Destination) -> Result<JobSpec<'c>> {
        let conversion = self.conversion;
        let original = conversion.original(shards.clone());
        let columns = conversion.columns(self.decoding.as_deref(), shards.clone())?;
        let schema = file_schema(columns.schema.as_ref(), &original);
        let record = self.output_record(shards.clone(), &schema, output);
        // A completed output of an interrupted run is replaced if its sources, its columns or its
        // bytes have changed.
        let earlier = match (output.file(), record.journal) {
            (Some(path), Some(journal)) if journal.has_completed(path) => Earlier::Replaced,
            _ => conversion.options.earlier(),
        };
        Ok(JobSpec {
            shards: shards
                .clone()
                .zip(conversion.shards_of(&shards).iter().cloned())
                .collect(),
            chosen: conversion.choice.first().cloned(),
            reshard: None,
            columns,
            schema,
            compression: original.resolve(conversion.compression),
            naming: Naming::One(output.clone()),
            earlier,
            record,
        })
    }

    /// The job that writes these new shards.
    fn spec_of_new_shards(&self, new_shards: &NewShards) -> Result<JobSpec<'c>> {
        let conversion = self.conversion;
        let NewShards {
            reshard,
            sources,
            chosen,
            records,
            naming,
        } = new_shards;
        let columns = conversion.columns(self.decoding.as_deref(), 0..conversion.shards.len())?;
        let shards = sources
            .iter()
            .filter_map(|number| Some((*number, conversion.shards.get(*number)?.clone())));
        Ok(JobSpec {
            shards: shards.collect(),
            chosen: chosen.clone(),
            reshard: Some((*reshard, *records)),
            schema: file_schema(columns.schema.as_ref(), &OriginalShard::default()),
            columns,
            compression: OriginalShard::default().resolve(conversion.compression),
            naming: naming.clone(),
            earlier: conversion.options.earlier(),
            // New shards are not resumed, but the journal lists the unfinished files that a later
            // run has to remove.
            record: OutputRecord {
                journal: conversion.journal,
                ..OutputRecord::default()
            },
        })
    }

    /// The record of an output of these shards.
    fn output_record(
        &self,
        shards: Range<usize>,
        schema: &SchemaRef,
        output: &Destination,
    ) -> OutputRecord<'c> {
        let sources = self.conversion.shards_of(&shards);
        let is_object = output.file().and_then(Path::to_str).is_some_and(is_remote);
        OutputRecord {
            journal: self.conversion.journal.filter(|_| output.file().is_some()),
            shards,
            source: source_of(sources, schema),
            made_of: if is_object {
                MadeOf::of(&self.fingerprint, sources, schema)
            } else {
                None
            },
        }
    }

    /// The totals of an output that an earlier run completed, and its file if it has no name yet;
    /// `None` for another output.
    fn completed(
        &self,
        number: usize,
        spec: &JobSpec<'_>,
    ) -> Result<Option<(JobTotals, Option<ClosedOutput>)>> {
        match (self.existing.get(number), &spec.naming) {
            (Some(Some(object)), _) => {
                Ok(up_to_date(&spec.record, object).map(|totals| (totals, None)))
            }
            (_, Naming::One(Destination::File(path))) => completed_file(&spec.record, path),
            (_, Naming::One(Destination::Stream) | Naming::Set { .. }) => Ok(None),
        }
    }

    /// A job of the route from the format of the sources to the format of the outputs.
    fn job(&self, spec: JobSpec<'c>) -> Result<Arc<dyn Job + 'c>> {
        let conversion = self.conversion;
        let options = conversion.options;
        let schema = Arc::clone(&spec.schema);
        let compression = spec.compression;
        let level = options.compression_level;
        match conversion.plan.target {
            Target::Parquet => {
                let (group_rows, group_bytes) = conversion.row_group();
                let (columns, bloom_filters) =
                    (self.parquet_columns(&spec)?, self.bloom_filters(&spec)?);
                let page_index = options.page_index;
                let format = ParquetFileFormat {
                    columns,
                    compression,
                    level,
                    group_rows,
                    group_bytes,
                    bloom_filters,
                    page_index,
                };
                self.job_of_rows(format, spec)
            }
            Target::Arrow => self.job_of_rows(
                ArrowFileFormat {
                    schema,
                    compression,
                    level,
                },
                spec,
            ),
            Target::TfRecord => {
                let format = TfRecordFileFormat {
                    compression: compression_of(compression),
                    level,
                };
                if conversion.reads_tfrecord() && self.decoding.is_none() {
                    let verify_crc = options.verify_crc;
                    let on_error = options.read.on_error;
                    let route = CopyFrames {
                        verify_crc,
                        on_error,
                        format,
                    };
                    let reader = self.record_reader(&spec);
                    return Ok(self.job_of_route(route, reader, spec));
                }
                let format = TfRecordRowFormat {
                    file: format,
                    builder: conversion.encoder_builder(),
                    schema,
                };
                self.job_of_rows(format, spec)
            }
        }
    }

    /// The columns of a Parquet file.
    fn parquet_columns(&self, spec: &JobSpec<'_>) -> Result<ParquetColumns> {
        match self
            .decoding
            .as_ref()
            .and_then(|decoding| decoding.parquet.as_ref())
        {
            Some(columns) => Ok(columns.with_metadata(&spec.schema)),
            None => ParquetColumns::of_rows(&spec.schema, &self.parquet_types(spec)),
        }
    }

    /// The Parquet type of each column of the output in the sources of a job; `None` for a column
    /// that has none, or several.
    fn parquet_types(&self, spec: &JobSpec<'_>) -> Vec<Option<TypePtr>> {
        let infos = &self.conversion.sources;
        let mut sources = spec
            .shards
            .iter()
            .map(|(number, _)| infos.get(*number)?.parquet.clone());
        let Some(first) = sources.next().flatten() else {
            return Vec::new();
        };
        let mut types: Vec<_> = first
            .root_schema()
            .get_fields()
            .iter()
            .cloned()
            .map(Some)
            .collect();
        for other in sources {
            let fields = match &other {
                Some(other) => other.root_schema().get_fields(),
                None => &[],
            };
            for (index, known) in types.iter_mut().enumerate() {
                if known.as_ref() != fields.get(index) {
                    *known = None;
                }
            }
        }
        let Some(ReadColumns { indices, order }) = &spec.columns.read else {
            return types;
        };
        let selected = order
            .iter()
            .map(|place| types.get(*indices.get(*place)?)?.clone());
        selected.collect()
    }

    /// The indices of the columns with a Bloom filter.
    fn bloom_filters(&self, spec: &JobSpec<'_>) -> Result<Vec<usize>> {
        let decoding = self.decoding.as_ref();
        let patterns = NamePattern::all(&self.conversion.options.bloom_filters)?;
        columns_with_bloom_filter(&patterns, &spec.schema).map_err(|message| {
            // The columns of TFRecord are those of the data set, and not of one file.
            let path = spec
                .shards
                .first()
                .filter(|_| decoding.is_none())
                .map(|(_, shard)| shard.path.clone());
            Error::Selection {
                path,
                message,
                sampled: decoding.is_some_and(|decoding| decoding.sampled),
            }
        })
    }

    fn job_of_rows<F>(&self, format: F, spec: JobSpec<'c>) -> Result<Arc<dyn Job + 'c>>
    where
        F: RowFormat + 'c,
        Decode<F>: Route<Source = RecordSource>,
        Reencode<F>: Route,
    {
        // Finds columns that the format cannot hold before anything is written.
        if let Err(error) = format.encoder() {
            return Err(match error {
                Error::Columns { path: None, source } => Error::Columns {
                    path: spec.shards.first().map(|(_, shard)| shard.path.clone()),
                    source,
                },
                error => error,
            });
        }
        let Some(decoding) = &self.decoding else {
            let columns = spec.columns.read.as_ref();
            let route = Reencode {
                format,
                order: columns.map(|columns| Arc::clone(&columns.order)),
                nullable_items: spec.columns.nullable_items,
            };
            let reader = self.reader(&spec);
            return Ok(self.job_of_route(route, reader, spec));
        };
        let route = Decode {
            decoding: Arc::clone(decoding),
            format,
        };
        let reader = self.record_reader(&spec);
        Ok(self.job_of_route(route, reader, spec))
    }

    /// A reader of TFRecord: of the chosen records of a job, or of all.
    fn record_reader(&self, spec: &JobSpec<'c>) -> UnitReader<'c, RecordSource> {
        let conversion = self.conversion;
        let Some(part) = &spec.chosen else {
            return self.reader(spec);
        };
        let mut size = conversion.unit_size();
        if part.records.order.round().is_some() && conversion.plan.target != Target::Parquet {
            size.bytes = size.bytes.max(ROUND_BYTES);
        }
        let bytes = (conversion.bytes() as f64 * part.weight) as u64;
        let records = Arc::clone(&part.records);
        let path = Arc::clone(&part.path);
        let reader = UnitReader::of_chosen(records, bytes, path, size, conversion.context());
        resharded(reader, spec)
    }

    /// A reader of the shards of a job.
    fn reader<S: UnitSource>(&self, spec: &JobSpec<'c>) -> UnitReader<'c, S> {
        let conversion = self.conversion;
        let shards = spec.shards.clone();
        let columns = spec.columns.read.as_ref();
        let reader = UnitReader::new(shards, conversion.unit_size(), conversion.context())
            .with_columns(columns.map(|columns| Arc::clone(&columns.indices)))
            .with_stored_types(conversion.plan.target == Target::Arrow);
        resharded(reader, spec)
    }

    fn job_of_route<R: Route + 'c>(
        &self,
        route: R,
        reader: UnitReader<'c, R::Source>,
        spec: JobSpec<'c>,
    ) -> Arc<dyn Job + 'c> {
        let options = self.output_options(&spec);
        let JobSpec { naming, record, .. } = spec;
        Arc::new(RouteJob::new(
            route,
            reader,
            (naming, options),
            self.conversion.context(),
            record,
        ))
    }

    fn output_options(&self, spec: &JobSpec<'_>) -> OutputOptions {
        let options = self.conversion.options;
        OutputOptions {
            earlier: spec.earlier,
            is_attempt: options.part.is_some(),
            stream: options.stream.clone(),
        }
    }
}

/// A reader that distributes records to the new shards of a job, if there are any.
fn resharded<'c, S: UnitSource>(
    reader: UnitReader<'c, S>,
    spec: &JobSpec<'c>,
) -> UnitReader<'c, S> {
    match spec.reshard {
        Some((reshard, records)) => reader.with_reshard(reshard, records),
        None => reader,
    }
}

/// The totals of an object that was made of the same data with the same options; `None` for another
/// one.
fn up_to_date(record: &OutputRecord<'_>, object: &ExistingObject) -> Option<JobTotals> {
    let records = record.made_of.as_ref()?.records(object.note()?)?;
    Some(JobTotals {
        files: 1,
        bytes: object.size(),
        records,
        ..JobTotals::default()
    })
}

/// The totals of a file that an interrupted run has completed, and the file if it has no name yet;
/// `None` for another one.
fn completed_file(
    record: &OutputRecord<'_>,
    path: &Path,
) -> Result<Option<(JobTotals, Option<ClosedOutput>)>> {
    let Some(journal) = record.journal else {
        return Ok(None);
    };
    let Some((completed, place)) = journal.find_completed(path, record.source) else {
        return Ok(None);
    };
    let CompletedOutput {
        bytes,
        hash,
        records,
        lossy_changes,
        ..
    } = completed;
    let totals = JobTotals {
        records,
        lossy_changes: lossy_changes.into_iter().collect(),
        ..JobTotals::default()
    };
    if place == path {
        return Ok(Some((
            JobTotals {
                files: 1,
                bytes,
                ..totals
            },
            None,
        )));
    }
    // An output without a name is counted when it is committed.
    let file = CompleteFile::found(&place, path, true)?;
    Ok(Some((totals, Some(ClosedOutput::File(file, hash)))))
}

/// The schema of an output: its columns and its metadata. Copied frames have no columns.
fn file_schema(columns: Option<&SchemaRef>, original: &OriginalShard) -> SchemaRef {
    columns.map_or_else(
        || Arc::new(Schema::empty()),
        |columns| original.add_to(columns),
    )
}
