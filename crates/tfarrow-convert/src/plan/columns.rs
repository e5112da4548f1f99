//! The columns of a conversion: those that records are decoded to, and those of each job.

use std::{ops::Range, path::Path, sync::Arc};

use arrow_schema::{SchemaRef, TimeUnit};
use tfarrow_codec::{
    OnConflict, RecordType,
    file_schema::{with_nullable_items, with_timestamp_unit},
    schema::{RECORD_TYPE, feature_of, record_type_of, role_of, with_record_type},
    with_exact,
};
use tfarrow_dataset::{ReadOptions, internals::are_events};
use tfarrow_scan::Inferred;

use super::{folders, setup::Conversion};
use crate::{
    ConvertOptions, Error, Result, Target, TimestampUnit, formats::parquet::ParquetColumns,
    worker::DecodeConfig,
};

/// The columns of a job.
#[derive(Default)]
pub(super) struct JobColumns {
    /// Those of its outputs, without the metadata of the files; `None` for copied frames.
    pub(super) schema: Option<SchemaRef>,
    /// Those that are read of Parquet or Arrow sources; `None` for all.
    pub(super) read: Option<ReadColumns>,
    /// Whether the items of lists become nullable.
    pub(super) nullable_items: bool,
}

/// The columns that are read of Parquet or Arrow sources.
#[derive(Clone, Debug)]
pub(super) struct ReadColumns {
    /// Their indices, in ascending order.
    pub(super) indices: Arc<[usize]>,
    /// For each column of the output, its place among them.
    pub(super) order: Arc<[usize]>,
}

impl ReadColumns {
    /// The columns with these indices, in the order of the output.
    fn new(selected: &[usize]) -> Self {
        let mut indices = selected.to_vec();
        indices.sort_unstable();
        let order = selected
            .iter()
            .filter_map(|index| indices.binary_search(index).ok())
            .collect();
        Self {
            indices: indices.into(),
            order,
        }
    }
}

impl Conversion<'_> {
    /// The columns of the job of these shards.
    pub(super) fn columns(
        &self,
        decoding: Option<&DecodeConfig>,
        shards: Range<usize>,
    ) -> Result<JobColumns> {
        if let Some(decoding) = decoding {
            return Ok(JobColumns {
                schema: Some(Arc::clone(&decoding.columns)),
                ..JobColumns::default()
            });
        }
        let path = self
            .shards
            .get(shards.start)
            .map(|shard| shard.path.as_path());
        let Some((schema, nullable_items)) = self.one_schema(shards)? else {
            return Ok(JobColumns::default());
        };
        let Some(selected) = self.select(&schema, path, false)? else {
            return Ok(JobColumns {
                schema: Some(schema),
                read: None,
                nullable_items,
            });
        };
        let schema = Some(project(&schema, &selected)?);
        Ok(JobColumns {
            schema,
            read: Some(ReadColumns::new(&selected)),
            nullable_items,
        })
    }

    /// The indices of the selected columns of `schema`; `None` if all columns are converted. Errors
    /// have the path `path`, and whether the columns are `sampled`.
    fn select(
        &self,
        schema: &SchemaRef,
        path: Option<&Path>,
        sampled: bool,
    ) -> Result<Option<Vec<usize>>> {
        let selected = self
            .selection
            .as_ref()
            .map(|selection| selection.select(schema))
            .transpose();
        selected.map_err(|message| Error::Selection {
            path: path.map(Path::to_owned),
            message,
            sampled,
        })
    }

    /// The inferred columns. A feature of more than one kind has a column for each where columns
    /// are selected, because it may not be among them.
    fn inferred_schema(&self, inferred: &Inferred) -> Result<SchemaRef> {
        let ConvertOptions {
            layout,
            record_type,
            on_conflict,
            ..
        } = self.options;
        let on_conflict = if self.selection.is_some() {
            OnConflict::Split
        } else {
            *on_conflict
        };
        Ok(inferred.schema_with(*layout, *record_type, on_conflict)?)
    }

    /// Checks that no feature of these columns has more than one kind, if that is an error.
    fn check_conflicts(&self, inferred: &Inferred, columns: &SchemaRef) -> Result<()> {
        let ConvertOptions {
            record_type,
            on_conflict: OnConflict::Fail,
            ..
        } = self.options
        else {
            return Ok(());
        };
        inferred.check_kinds(*record_type, &|role, feature| {
            columns
                .fields()
                .iter()
                .any(|field| role_of(field) == Some(role) && feature_of(field) == feature)
        })?;
        Ok(())
    }

    /// How TFRecord is decoded; `None` if frames are copied, or if the sources are Parquet or
    /// Arrow.
    pub(super) fn decode_config(
        &self,
        inferred: Option<&Inferred>,
    ) -> Result<Option<Arc<DecodeConfig>>> {
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
                return Err(Error::Usage(
                    "internal error: no columns to decode TFRecord to".to_owned(),
                ));
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
            RecordType::Example
            | RecordType::SequenceExample
            | RecordType::ExampleList
            | RecordType::Raw => self.options.record_type.is_none(),
        };
        // The column of raw records contains their bytes, so that it needs no exact form.
        let exact = self.options.exact && record_type_of(&schema) != RecordType::Raw;
        let ReadOptions {
            on_error, limits, ..
        } = self.options.read;
        let projection = self.select(&schema, None, sampled)?;
        let projected = projection.as_ref().map_or_else(
            || Ok(Arc::clone(&schema)),
            |wanted| project(&schema, wanted),
        )?;
        if let Some(inferred) = inferred.filter(|_| projection.is_some()) {
            self.check_conflicts(inferred, &projected)?;
        }
        let columns = if exact {
            with_exact(&projected)
        } else {
            projected
        };
        let parquet = match self.plan.target {
            Target::Parquet => Some(ParquetColumns::of_records(&columns)?),
            Target::Arrow | Target::TfRecord => None,
        };
        Ok(Some(Arc::new(DecodeConfig {
            schema,
            projection,
            columns,
            selection: self.selection.clone(),
            exact,
            verify_crc: self.options.verify_crc,
            on_error,
            limits,
            sampled,
            strict,
            parquet,
        })))
    }

    /// The columns that records are decoded to, as the outputs have them. No record has a null
    /// within a list, and programs that read Parquet files make use of that. Functions of SQL put
    /// nulls in the lists of Arrow files.
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

    /// The schema of the sources of one job, which must be the same except for nullable items of
    /// lists; `None` for TFRecord. Items are nullable if they are so in one source. Returns whether
    /// they become so.
    fn one_schema(&self, shards: Range<usize>) -> Result<Option<(SchemaRef, bool)>> {
        let sources = self
            .shards
            .iter()
            .zip(&self.sources)
            .skip(shards.start)
            .take(shards.len());
        let mut schemas =
            sources.filter_map(|(shard, source)| Some((shard, source.schema.as_ref()?)));
        let Some((first, schema)) = schemas.next() else {
            return Ok(None);
        };
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
        let becomes_nullable =
            differs || self.plan.target == Target::Arrow && is_of_records && nullable != *schema;
        Ok(Some((
            if becomes_nullable {
                nullable
            } else {
                Arc::clone(schema)
            },
            becomes_nullable,
        )))
    }
}

/// The error of a unit of timestamps for columns that have none.
fn no_timestamps() -> Error {
    Error::Usage(
        "the option timestamp_unit is for records that are messages of a type that is given, and are converted to columns: omit it"
            .to_owned(),
    )
}

/// The columns of `schema` with these indices, in their order.
fn project(schema: &SchemaRef, columns: &[usize]) -> Result<SchemaRef> {
    let projected = schema.project(columns).map(Arc::new);
    projected.map_err(|error| Error::Usage(format!("internal error: {error}")))
}

/// `schema` for records of `record_type`, if that is given.
fn with_type(schema: &SchemaRef, record_type: Option<RecordType>) -> SchemaRef {
    match record_type {
        Some(record_type) => with_record_type(
            schema
                .fields()
                .iter()
                .map(|field| field.as_ref().clone())
                .collect(),
            record_type,
        ),
        None => Arc::clone(schema),
    }
}
