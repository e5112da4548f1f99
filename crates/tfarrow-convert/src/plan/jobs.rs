//! The jobs of a conversion: one for each shard, or one for all shards if the conversion writes new shards or one file.

use std::{
    iter,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_schema::{Field, Schema, SchemaRef, TimeUnit};
use parquet::schema::types::TypePtr;
use tfarrow_codec::{
    EncoderBuilder, OnConflict, RecordType,
    file_schema::{with_nullable_items, with_timestamp_unit},
    schema::{RECORD_TYPE, feature_of, record_type_of, role_of, with_record_type},
};
use tfarrow_columnar::count as count_rows;
use tfarrow_dataset::{
    CompleteFile, ExistingObject, Inferred, ReadOptions, Shard, ShardFormat, are_events, count, existing_objects,
    file_names, is_remote,
};

use super::{
    OutputPlace,
    fingerprint::fingerprint,
    folders,
    origin::OriginalShard,
    planned::{PlannedJob, PlannedOutputs, PlannedSource},
    setup::Conversion,
};
use crate::{
    ConvertOptions, Error, OutputCompression, Reshard, Result, Target, TimestampUnit,
    earlier::Earlier,
    formats::{
        RowFormat,
        arrow::ArrowFileFormat,
        parquet::{ParquetColumns, ParquetFileFormat},
        tfrecord::{TfRecordFileFormat, TfRecordRowFormat, compression_of},
    },
    input::{UnitReader, UnitSize},
    journal::CompletedOutput,
    names::NamePattern,
    output::{
        ClosedOutput, Destination, OutputOptions,
        made_of::{MadeOf, source_of},
    },
    selection::columns_with_bloom_filter,
    worker::{
        DecodeConfig,
        job::{self, CommitMode, Job, JobTotals, Naming, OutputRecord, RouteJob},
        routes::{CopyFrames, Decode, Reencode, Route},
    },
};

/// Maximum bytes of a unit that is not a row group.
const CHUNK_BYTES: usize = 2 << 20;

/// The shards and outputs of a job of any route.
struct JobSpec<'c> {
    /// The shards, with their numbers in the data set.
    shards: Vec<(usize, Shard)>,
    /// The size of new shards, and the number of records in all shards.
    reshard: Option<(Reshard, u64)>,
    /// The columns of the outputs, with the metadata of the files.
    schema: SchemaRef,
    /// The columns that are read of Parquet or Arrow sources; `None` for all.
    columns: Option<ReadColumns>,
    /// Whether the items of lists become nullable.
    nullable_items: bool,
    compression: OutputCompression,
    naming: Naming,
    /// The policy for existing outputs.
    earlier: Earlier,
    /// The record of the output for later runs.
    record: OutputRecord<'c>,
    /// The totals of an output that an earlier run completed, and its file if it has no name yet.
    completed: Option<(JobTotals, Option<ClosedOutput>)>,
}

/// The columns of a job.
#[derive(Default)]
struct JobColumns {
    /// Those of its outputs; `None` for copied frames.
    schema: Option<SchemaRef>,
    /// Those that are read of Parquet or Arrow sources; `None` for all.
    read: Option<ReadColumns>,
    /// Whether the items of lists become nullable.
    nullable_items: bool,
}

/// The columns that are read of Parquet or Arrow sources.
#[derive(Clone, Debug)]
struct ReadColumns {
    /// Their indices, in ascending order.
    indices: Arc<[usize]>,
    /// For each column of the output, its place among them.
    order: Arc<[usize]>,
}

impl ReadColumns {
    /// The columns with these indices, in the order of the output.
    fn new(selected: &[usize]) -> Self {
        let mut indices = selected.to_vec();
        indices.sort_unstable();
        let order = selected.iter().filter_map(|index| indices.binary_search(index).ok()).collect();
        Self { indices: indices.into(), order }
    }
}

impl<'c> Conversion<'c> {
    /// Converts all shards. `inferred` gives the columns unless the sources or the options do.
    ///
    /// # Errors
    /// The first error of a job, and columns that the output format cannot hold.
    pub(crate) fn convert(&self, inferred: Option<&Inferred>) -> Result<JobTotals> {
        let is_sample = inferred.is_some_and(|inferred| inferred.sampled.is_some());
        // A part has the columns of the sample in any case: a record that does not fit them is an error, which other parts that have
        // given outputs their names do not know of.
        let mode = match is_sample && self.options.part.is_none() {
            true => CommitMode::AllJobs,
            false => CommitMode::EachJob,
        };
        job::run(self.jobs(inferred)?, self.options.jobs.max(1), mode)
    }

    fn jobs(&self, inferred: Option<&Inferred>) -> Result<Vec<Box<dyn Job + '_>>> {
        let decoding = self.decode_config(inferred)?;
        let specs = self.specs(decoding.as_deref(), inferred)?;
        specs.into_iter().map(|spec| self.job(decoding.as_ref(), spec)).collect()
    }

    /// The jobs of a dry run. Checks that the output format can hold the columns.
    ///
    /// # Errors
    /// Columns that the output format cannot hold.
    pub(crate) fn planned_jobs(&self, inferred: Option<&Inferred>) -> Result<Vec<PlannedJob>> {
        let decoding = self.decode_config(inferred)?;
        let is_copy = self.plan.target == Target::TfRecord && self.reads_tfrecord() && decoding.is_none();
        let planned = |spec: JobSpec<'c>| {
            let source = |(_, shard): &(usize, Shard)| PlannedSource { path: shard.path.clone(), bytes: shard.size };
            let planned = PlannedJob {
                sources: spec.shards.iter().map(source).collect(),
                outputs: PlannedOutputs::of(&spec.naming),
                compression: spec.compression,
                columns: (!is_copy).then(|| Arc::clone(&spec.schema)),
            };
            self.job(decoding.as_ref(), spec).map(|_| planned)
        };
        self.specs(decoding.as_deref(), inferred)?.into_iter().map(planned).collect()
    }

    /// The shards and outputs of the jobs.
    fn specs(&self, decoding: Option<&DecodeConfig>, inferred: Option<&Inferred>) -> Result<Vec<JobSpec<'c>>> {
        if let Some(reshard) = self.options.reshard {
            let sets = folders::sets(self.shards, &self.options.partition_by)?;
            return sets.into_iter().map(|set| self.reshard_spec(reshard, set, decoding, inferred)).collect();
        }
        let objects = self.existing_objects()?;
        let fingerprint = fingerprint(self.plan.target, self.options);
        let spec = |((shards, output), object): (&(Range<usize>, Destination), Option<ExistingObject>)| {
            let original = self.original(shards.clone());
            let JobColumns { schema, read, nullable_items } = self.columns(decoding, shards.clone())?;
            let schema = file_schema(schema.as_ref(), &original);
            let compression = original.resolve(self.compression);
            let record = self.output_record(shards.clone(), &schema, output, &fingerprint);
            let completed = match object {
                Some(object) => self.up_to_date(&record, &object).map(|totals| (totals, None)),
                None => self.completed(&record, output)?,
            };
            // A completed output of an interrupted run is replaced if its sources, its columns or its bytes have changed.
            let was_completed = |path| record.journal.is_some_and(|journal| journal.has_completed(path));
            let earlier = match output.file().is_some_and(was_completed) {
                true => Earlier::Replaced,
                false => self.options.earlier(),
            };
            Ok::<_, Error>(JobSpec {
                shards: shards.clone().zip(self.shards_of(shards).iter().cloned()).collect(),
                reshard: None,
                schema,
                columns: read,
                nullable_items,
                compression,
                naming: Naming::One(output.clone()),
                earlier,
                record,
                completed,
            })
        };
        self.outputs.iter().zip(objects).map(spec).collect()
    }

    /// The existing object of each output, if existing outputs are compared.
    fn existing_objects(&self) -> Result<Vec<Option<ExistingObject>>> {
        if self.options.earlier() != Earlier::Compared {
            return Ok(self.outputs.iter().map(|_| None).collect());
        }
        let files: Vec<_> = self.outputs.iter().map(|(_, output)| output.name()).collect();
        Ok(existing_objects(&files)?)
    }

    /// The record of an output of these shards.
    fn output_record(
        &self,
        shards: Range<usize>,
        schema: &SchemaRef,
        output: &Destination,
        fingerprint: &str,
    ) -> OutputRecord<'c> {
        let sources = self.shards_of(&shards);
        let is_object = output.file().and_then(Path::to_str).is_some_and(is_remote);
        OutputRecord {
            journal: self.journal.filter(|_| output.file().is_some()),
            shards,
            source: source_of(sources, schema),
            made_of: if is_object { MadeOf::of(fingerprint, sources, schema) } else { None },
        }
    }

    /// The totals of an object that was made of the same data with the same options; `None` for another one.
    fn up_to_date(&self, record: &OutputRecord<'_>, object: &ExistingObject) -> Option<JobTotals> {
        let records = record.made_of.as_ref()?.records(object.note()?)?;
        self.progress.add_bytes(self.bytes_of(&record.shards));
        Some(JobTotals { files: 1, bytes: object.size(), records, ..JobTotals::default() })
    }

    /// The totals of an output that an interrupted run has completed, and its file if it has no name yet; `None` for another one.
    fn completed(
        &self,
        record: &OutputRecord<'_>,
        output: &Destination,
    ) -> Result<Option<(JobTotals, Option<ClosedOutput>)>> {
        let Some((journal, path)) = record.journal.zip(output.file()) else { return Ok(None) };
        let Some((completed, place)) = journal.find_completed(path, record.source) else { return Ok(None) };
        self.progress.add_bytes(self.bytes_of(&record.shards));
        let CompletedOutput { bytes, hash, records, lossy_changes, .. } = completed;
        let totals = JobTotals { records, lossy_changes: lossy_changes.into_iter().collect(), ..JobTotals::default() };
        if place == path {
            return Ok(Some((JobTotals { files: 1, bytes, ..totals }, None)));
        }
        // An output without a name is counted when it is committed.
        let file = CompleteFile::found(&place, path, true)?;
        Ok(Some((totals, Some(ClosedOutput::File(file, hash)))))
    }

    /// The shards of these numbers.
    fn shards_of(&self, numbers: &Range<usize>) -> &'c [Shard] {
        self.shards.get(numbers.clone()).unwrap_or_default()
    }

    /// Bytes of the shards of these numbers, as stored.
    fn bytes_of(&self, numbers: &Range<usize>) -> u64 {
        self.shards_of(numbers).iter().map(|shard| shard.size).sum()
    }

    /// The metadata about the original shards that their common output has.
    fn original(&self, shards: Range<usize>) -> OriginalShard {
        OriginalShard::common(self.sources.get(shards).unwrap_or_default().iter().map(|source| &source.original))
    }

    /// The columns of the job of these shards.
    fn columns(&self, decoding: Option<&DecodeConfig>, shards: Range<usize>) -> Result<JobColumns> {
        if let Some(decoding) = decoding {
            return Ok(JobColumns { schema: Some(decoding.columns()), ..JobColumns::default() });
        }
        let path = self.shards.get(shards.start).map(|shard| shard.path.as_path());
        let Some((schema, nullable_items)) = self.one_schema(shards)? else { return Ok(JobColumns::default()) };
        let Some(selected) = self.select(&schema, path, false)? else {
            return Ok(JobColumns { schema: Some(schema), read: None, nullable_items });
        };
        let schema = Some(project(&schema, &selected)?);
        Ok(JobColumns { schema, read: Some(ReadColumns::new(&selected)), nullable_items })
    }

    /// The indices of the selected columns of `schema`; `None` if all columns are converted. Errors have the path `path`, and
    /// whether the columns are `sampled`.
    fn select(&self, schema: &SchemaRef, path: Option<&Path>, sampled: bool) -> Result<Option<Vec<usize>>> {
        let selected = self.selection.as_ref().map(|selection| selection.select(schema)).transpose();
        selected.map_err(|message| Error::Selection { path: path.map(Path::to_owned), message, sampled })
    }

    /// The inferred columns. A feature of more than one kind has a column for each where columns are selected, because it may
    /// not be among them.
    fn inferred_schema(&self, inferred: &Inferred) -> Result<SchemaRef> {
        let ConvertOptions { layout, record_type, on_conflict, .. } = self.options;
        let on_conflict = if self.selection.is_some() { OnConflict::Split } else { *on_conflict };
        Ok(inferred.schema_with(*layout, *record_type, on_conflict)?)
    }

    /// Checks that no feature of these columns has more than one kind, if that is an error.
    fn check_conflicts(&self, inferred: &Inferred, columns: &SchemaRef) -> Result<()> {
        let ConvertOptions { record_type, on_conflict: OnConflict::Fail, .. } = self.options else { return Ok(()) };
        let is_of = |field: &Field, role, feature: &str| role_of(field) == Some(role) && feature_of(field) == feature;
        let is_wanted = |role, feature: &str| columns.fields().iter().any(|field| is_of(field, role, feature));
        Ok(inferred.check_kinds(*record_type, &is_wanted)?)
    }

    /// How TFRecord is decoded; `None` if frames are copied, or if the sources are Parquet or Arrow.
    fn decode_config(&self, inferred: Option<&Inferred>) -> Result<Option<Arc<DecodeConfig>>> {
        if !self.decodes() {
            return match self.options.timestamp_unit {
                TimestampUnit::Microseconds if !self.plan.own.is_empty() => Err(no_timestamps()),
                _ => Ok(None),
            };
        }
        let schema = match (&self.options.schema, inferred) {
            (Some(schema), _) => with_type(schema, self.options.record_type),
            (None, Some(inferred)) => self.inferred_schema(inferred)?,
            (None, None) => {
                debug_assert!(false, "columns are inferred if they are not given");
                return Err(Error::Usage("internal error: no columns to decode TFRecord to".to_owned()));
            }
        };
        let schema = self.written_schema(&schema)?;
        // The folders of TensorBoard's files are the names of runs.
        if !are_events(self.shards) {
            folders::check_type(self.shards, record_type_of(&schema))?;
        }
        let sampled = inferred.is_some_and(|inferred| inferred.sampled.is_some());
        let strict = match record_type_of(&schema) {
            // A field that the descriptor does not define would be lost.
            RecordType::Message => !self.options.lossy,
            RecordType::Example | RecordType::SequenceExample | RecordType::ExampleList | RecordType::Raw => {
                self.options.record_type.is_none()
            }
        };
        // The column of raw records contains their bytes, so that it needs no exact form.
        let exact = self.options.exact && record_type_of(&schema) != RecordType::Raw;
        let ReadOptions { on_error, limits, .. } = self.options.read;
        let projection = self.select(&schema, None, sampled)?;
        let projected =
            projection.as_ref().map_or_else(|| Ok(Arc::clone(&schema)), |wanted| project(&schema, wanted))?;
        if let Some(inferred) = inferred.filter(|_| projection.is_some()) {
            self.check_conflicts(inferred, &projected)?;
        }
        let mut decoding = DecodeConfig {
            schema,
            projection,
            projected,
            selection: self.selection.clone(),
            exact,
            verify_crc: self.options.verify_crc,
            on_error,
            limits,
            sampled,
            strict,
            parquet: None,
        };
        if self.plan.target == Target::Parquet {
            decoding.parquet = Some(ParquetColumns::of_records(&decoding.columns())?);
        }
        Ok(Some(Arc::new(decoding)))
    }

    /// The columns that records are decoded to, as the outputs have them. No record has a null within a list, and programs that
    /// read Parquet files make use of that. Functions of SQL put nulls in the lists of Arrow files.
    ///
    /// # Errors
    /// A unit of timestamps for records that have none.
    fn written_schema(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        let schema = with_nullable_items(schema, self.plan.target != Target::Parquet);
        match self.options.timestamp_unit {
            TimestampUnit::Nanoseconds => Ok(schema),
            TimestampUnit::Microseconds if record_type_of(&schema) == RecordType::Message => {
                Ok(with_timestamp_unit(&schema, TimeUnit::Microsecond))
            }
            TimestampUnit::Microseconds => Err(no_timestamps()),
        }
    }

    /// A job of the route from the format of the sources to the format of the outputs.
    fn job(&self, decoding: Option<&Arc<DecodeConfig>>, spec: JobSpec<'c>) -> Result<Box<dyn Job + '_>> {
        let (schema, compression) = (Arc::clone(&spec.schema), spec.compression);
        let level = self.options.compression_level;
        match self.plan.target {
            Target::Parquet => {
                let (group_rows, group_bytes) = self.row_group();
                let (bloom_filters, page_index) =
                    (self.bloom_filters(decoding.map(Arc::as_ref), &spec)?, self.options.page_index);
                let columns = self.parquet_columns(decoding, &spec)?;
                let format = ParquetFileFormat {
                    columns,
                    compression,
                    level,
                    group_rows,
                    group_bytes,
                    bloom_filters,
                    page_index,
                };
                self.job_of_rows(decoding, format, spec)
            }
            Target::Arrow => self.job_of_rows(decoding, ArrowFileFormat { schema, compression, level }, spec),
            Target::TfRecord => {
                let format = TfRecordFileFormat { compression: compression_of(compression), level };
                if self.reads_tfrecord() && decoding.is_none() {
                    let (verify_crc, on_error) = (self.options.verify_crc, self.options.read.on_error);
                    return Ok(self.job_of_route(CopyFrames { verify_crc, on_error, format }, spec));
                }
                let format = TfRecordRowFormat { file: format, builder: self.encoder_builder(), schema };
                self.job_of_rows(decoding, format, spec)
            }
        }
    }

    /// The columns of a Parquet file.
    fn parquet_columns(&self, decoding: Option<&Arc<DecodeConfig>>, spec: &JobSpec<'_>) -> Result<ParquetColumns> {
        match decoding.and_then(|decoding| decoding.parquet.as_ref()) {
            Some(columns) => Ok(columns.with_metadata(&spec.schema)),
            None => ParquetColumns::of_rows(&spec.schema, &self.parquet_types(spec)),
        }
    }

    /// The Parquet type of each column of the output in the sources of a job; `None` for a column that has none, or several.
    fn parquet_types(&self, spec: &JobSpec<'_>) -> Vec<Option<TypePtr>> {
        let source = |(number, _): &(usize, Shard)| self.sources.get(*number).and_then(|source| source.parquet.clone());
        let mut sources = spec.shards.iter().map(source);
        let Some(first) = sources.next().flatten() else { return Vec::new() };
        let mut types: Vec<_> = first.root_schema().get_fields().iter().cloned().map(Some).collect();
        for other in sources {
            let other = other.iter().flat_map(|other| other.root_schema().get_fields()).map(Some);
            let other = other.chain(iter::repeat(None));
            types
                .iter_mut()
                .zip(other)
                .filter(|(known, other)| known.as_ref() != *other)
                .for_each(|(known, _)| *known = None);
        }
        let Some(ReadColumns { indices, order }) = &spec.columns else { return types };
        let selected = order.iter().map(|place| types.get(*indices.get(*place)?)?.clone());
        selected.collect()
    }

    /// The indices of the columns with a Bloom filter.
    fn bloom_filters(&self, decoding: Option<&DecodeConfig>, spec: &JobSpec<'_>) -> Result<Vec<usize>> {
        let patterns = NamePattern::all(&self.options.bloom_filters)?;
        columns_with_bloom_filter(&patterns, &spec.schema).map_err(|message| {
            // The columns of TFRecord are those of the data set, and not of one file.
            let path = spec.shards.first().filter(|_| decoding.is_none()).map(|(_, shard)| shard.path.clone());
            Error::Selection { path, message, sampled: decoding.is_some_and(|decoding| decoding.sampled) }
        })
    }

    fn job_of_rows<F>(
        &self,
        decoding: Option<&Arc<DecodeConfig>>,
        format: F,
        spec: JobSpec<'c>,
    ) -> Result<Box<dyn Job + '_>>
    where
        F: RowFormat + 'c,
        Decode<F>: Route,
        Reencode<F>: Route,
    {
        // Finds columns that the format cannot hold before anything is written.
        if let Err(error) = format.encoder() {
            return Err(match error {
                Error::Columns { path: None, source } => {
                    Error::Columns { path: spec.shards.first().map(|(_, shard)| shard.path.clone()), source }
                }
                error => error,
            });
        }
        Ok(match decoding {
            Some(decoding) => self.job_of_route(Decode { decoding: Arc::clone(decoding), format }, spec),
            None => {
                let order = spec.columns.as_ref().map(|columns| Arc::clone(&columns.order));
                let nullable_items = spec.nullable_items;
                self.job_of_route(Reencode { format, order, nullable_items }, spec)
            }
        })
    }

    fn job_of_route<R: Route + 'c>(&self, route: R, spec: JobSpec<'c>) -> Box<dyn Job + '_> {
        let JobSpec { shards, reshard, columns, naming, earlier, record, completed, .. } = spec;
        let reader = UnitReader::new(shards, self.unit_size(), self.context());
        let reader = reader.with_columns(columns.map(|columns| columns.indices));
        let reader = reader.with_stored_types(self.plan.target == Target::Arrow);
        let reader = match reshard {
            Some((reshard, records)) => reader.with_reshard(reshard, records),
            None => reader,
        };
        let (is_attempt, stream) = (self.options.part.is_some(), self.options.stream.clone());
        let options = OutputOptions { earlier, is_attempt, stream };
        let job = RouteJob::new(route, reader, (naming, options), self.context()).with_record(record);
        match completed {
            Some((totals, uncommitted)) => Box::new(job.completed(totals, uncommitted)),
            None => Box::new(job),
        }
    }

    fn encoder_builder(&self) -> EncoderBuilder {
        let builder = EncoderBuilder::new().with_limits(self.options.read.limits).with_lossy(self.options.lossy);
        self.options.record_type.into_iter().fold(builder, EncoderBuilder::with_record_type)
    }

    /// Maximum rows and encoded bytes of a row group.
    fn row_group(&self) -> (usize, usize) {
        (self.options.row_group_rows.max(1), self.options.row_group_bytes.max(1))
    }

    fn unit_size(&self) -> UnitSize {
        let (rows, bytes) = match self.plan.target {
            Target::Parquet => self.row_group(),
            Target::TfRecord | Target::Arrow => (usize::MAX, CHUNK_BYTES),
        };
        UnitSize { rows, bytes }
    }

    /// The job of the shards of these numbers, which writes new shards to this folder below the destination.
    fn reshard_spec(
        &self,
        reshard: Reshard,
        (partition, numbers): (PathBuf, Vec<usize>),
        decoding: Option<&DecodeConfig>,
        inferred: Option<&Inferred>,
    ) -> Result<JobSpec<'c>> {
        let OutputPlace::Folder(folder) = &self.plan.place else {
            return Err(Error::Usage("new shards need a folder as the destination".to_owned()));
        };
        let folder = if partition.as_os_str().is_empty() { folder.clone() } else { folder.join(partition) };
        let shards: Vec<_> =
            numbers.iter().filter_map(|number| Some((*number, self.shards.get(*number)?.clone()))).collect();
        let JobColumns { schema, read, nullable_items } = self.columns(decoding, 0..self.shards.len())?;
        let count = match reshard {
            Reshard::Shards(shards) => Some(usize::try_from(shards.max(1)).unwrap_or(usize::MAX)),
            Reshard::Bytes(_) => None,
        };
        let naming = self.set_naming(&folder, count, shards.first().map(|(_, shard)| shard))?;
        let records = match (reshard, inferred) {
            (Reshard::Bytes(_), _) => 0,
            (Reshard::Shards(_), Some(inferred)) if inferred.sampled.is_none() && shards.len() == self.shards.len() => {
                inferred.summary.records()
            }
            (Reshard::Shards(_), _) => self.count(&shards)?,
        };
        Ok(JobSpec {
            shards,
            reshard: Some((reshard, records)),
            schema: file_schema(schema.as_ref(), &OriginalShard::default()),
            columns: read,
            nullable_items,
            compression: OriginalShard::default().resolve(self.compression),
            naming,
            earlier: self.options.earlier(),
            // New shards are not resumed, but the journal lists the unfinished files that a later run has to remove.
            record: OutputRecord { journal: self.journal, ..OutputRecord::default() },
            completed: None,
        })
    }

    /// The names of new shards: the name of the sources' set, and numbers. Checks that the outputs can be written.
    fn set_naming(&self, folder: &Path, count: Option<usize>, first: Option<&Shard>) -> Result<Naming> {
        let name = first.map_or(PathBuf::from("shard"), |shard| shard.name.clone());
        let stem = file_names::set_name(&name);
        let suffix = match self.plan.target {
            Target::TfRecord => compression_of(OriginalShard::default().resolve(self.compression)).suffix(),
            Target::Parquet | Target::Arrow => "",
        };
        let extension = format!("{}{suffix}", self.plan.target.name());
        super::check_quarantine_of_set(self.options.quarantine.as_deref(), folder, &stem, &extension)?;
        if let (Some(count), Some(shard)) = (count, first) {
            let name = |number| (shard, folder.join(file_names::tf_shard_name(&stem, number, count, &extension)));
            super::check_outputs(&(0..count).map(name).collect::<Vec<_>>(), self.options)?;
        }
        // The names of shards contain their number, which is not known yet if the size of shards is given. A resumed run
        // takes it from the names of the existing shards.
        let count = match count {
            None if self.options.resume => super::existing_count(folder, &stem, &extension)?,
            count => count,
        };
        super::check_other_shards(folder, &stem, &extension, count)?;
        Ok(Naming::Set { folder: folder.to_owned(), stem, extension, count })
    }

    /// The schema of the sources of one job, which must be the same except for nullable items of lists; `None` for TFRecord. Items
    /// are nullable if they are so in one source. Returns whether they become so.
    fn one_schema(&self, shards: Range<usize>) -> Result<Option<(SchemaRef, bool)>> {
        let sources = self.shards.iter().zip(&self.sources).skip(shards.start).take(shards.len());
        let mut schemas = sources.filter_map(|(shard, source)| Some((shard, source.schema.as_ref()?)));
        let Some((first, schema)) = schemas.next() else { return Ok(None) };
        let nullable = with_nullable_items(schema, true);
        let mut differs = false;
        for (shard, other) in schemas {
            if other.fields() == schema.fields() {
                continue;
            }
            if with_nullable_items(other, true).fields() != nullable.fields() {
                return Err(Error::Data(format!(
                    "{}: the columns differ from those of {}; new shards, and one file for many sources, need the same columns \
                     in all sources",
                    shard.path.display(),
                    first.path.display()
                )));
            }
            differs = true;
        }
        // The Arrow files of records have nullable items, whatever file they are made of.
        let is_of_records = schema.metadata().contains_key(RECORD_TYPE);
        let becomes_nullable = differs || self.plan.target == Target::Arrow && is_of_records && nullable != *schema;
        Ok(Some((if becomes_nullable { nullable } else { Arc::clone(schema) }, becomes_nullable)))
    }

    /// Counts the records of shards.
    fn count(&self, shards: &[(usize, Shard)]) -> Result<u64> {
        let rows = |(_, shard): &(usize, Shard)| match shard.format {
            ShardFormat::TfRecord => Ok(count(shard, &self.options.read)?),
            ShardFormat::Parquet | ShardFormat::Arrow | ShardFormat::Csv | ShardFormat::Json => Ok(count_rows(shard)?),
        };
        shards.iter().map(rows).sum()
    }
}

/// The error of a unit of timestamps for columns that have none.
fn no_timestamps() -> Error {
    Error::Usage(
        "the option timestamp_unit is for records that are messages of a type that is given, and are converted to columns: omit it"
            .to_owned(),
    )
}

/// The schema of an output: its columns and its metadata. Copied frames have no columns.
fn file_schema(columns: Option<&SchemaRef>, original: &OriginalShard) -> SchemaRef {
    columns.map_or_else(|| Arc::new(Schema::empty()), |columns| original.add_to(columns))
}

/// The columns of `schema` with these indices, in their order.
fn project(schema: &SchemaRef, columns: &[usize]) -> Result<SchemaRef> {
    let projected = schema.project(columns).map(Arc::new);
    projected.map_err(|error| Error::Usage(format!("internal error: {error}")))
}

/// `schema` for records of `record_type`, if that is given.
fn with_type(schema: &SchemaRef, record_type: Option<RecordType>) -> SchemaRef {
    match record_type {
        Some(record_type) => {
            with_record_type(schema.fields().iter().map(|field| field.as_ref().clone()).collect(), record_type)
        }
        None => Arc::clone(schema),
    }
}
