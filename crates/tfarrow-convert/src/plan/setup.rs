//! The setup of a conversion: its sources, plan, outputs and options, which all its jobs share.

use std::{ops::Range, sync::Arc};

use arrow_schema::SchemaRef;
use parquet::schema::types::SchemaDescPtr;
use tfarrow_codec::{OnError, VerifyCrc, schema::check_columns};
use tfarrow_columnar::{ParquetFile, TextColumns, schema_within, unify_text, with_folder_columns};
use tfarrow_dataset::{ReadOptions, Shard, ShardFormat, ShardReader};
use tfarrow_scan::{InferOptions, Inferred, Sample, infer};

use super::{
    OutputPlace, Plan,
    choice::{self, ChoicePart},
    origin::OriginalShard,
};
use crate::{
    ConvertOptions, Error, OutputCompression, Progress, Result, Target, damage::DamageLog,
    formats::tfrecord::compression_of, input::ReadContext, journal::Journal, output::Destination,
    selection::ColumnSelection,
};

/// A conversion that is ready to run.
pub(crate) struct Conversion<'c> {
    pub(crate) shards: &'c [Shard],
    pub(crate) plan: &'c Plan,
    /// The properties of each shard.
    pub(crate) sources: Vec<SourceInfo>,
    /// The numbers of the shards of each output: one shard, or all. Empty if the conversion writes
    /// new shards.
    pub(crate) outputs: Vec<(Range<usize>, Destination)>,
    pub(crate) compression: OutputCompression,
    /// The columns to convert; `None` for all.
    pub(crate) selection: Option<ColumnSelection>,
    /// The records that are chosen by their numbers; empty if all are converted in their order.
    pub(crate) choice: Vec<ChoicePart>,
    pub(crate) options: &'c ConvertOptions,
    pub(crate) progress: &'c Progress,
    damage: &'c DamageLog,
    pub(crate) journal: Option<&'c Journal>,
}

/// Properties of a shard that are read before its conversion.
pub(crate) struct SourceInfo {
    /// The columns of another file than TFRecord; `None` for TFRecord.
    pub(crate) schema: Option<SchemaRef>,
    /// The columns of a Parquet file as Parquet describes them.
    pub(crate) parquet: Option<SchemaDescPtr>,
    pub(crate) original: OriginalShard,
}

impl<'c> Conversion<'c> {
    /// Reads the properties of the shards, and checks the outputs.
    ///
    /// # Errors
    /// Shards that cannot be opened, outputs that exist or would overwrite a source or each other,
    /// and [`Error::Cancelled`].
    pub(crate) fn new(
        shards: &'c [Shard],
        plan: &'c Plan,
        compression: OutputCompression,
        options: &'c ConvertOptions,
        progress: &'c Progress,
        (damage, journal): (&'c DamageLog, Option<&'c Journal>),
    ) -> Result<Self> {
        let has_one_table = options.reshard.is_some() || matches!(plan.place, OutputPlace::One(..));
        let columns = if has_one_table {
            TextColumns::OfAll
        } else {
            TextColumns::OfFile
        };
        let unified = unify_text(shards, columns, options.jobs.max(1), &|_, _| {
            progress.flow()
        });
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        unified?;
        let sources = shards
            .iter()
            .map(|shard| SourceInfo::of(shard, plan.target, &options.read))
            .collect::<Result<Vec<_>>>()?;
        let mut outputs = outputs(shards, &sources, plan, compression, options)?;
        super::check_no_source(
            shards,
            outputs.iter().filter_map(|(_, output)| output.file()),
        )?;
        super::check_quarantine(options.quarantine.as_deref(), &outputs)?;
        if options.part.is_some() {
            outputs.retain(|(shards, _)| plan.own.contains(&shards.start));
        }
        let selection = ColumnSelection::of(options)?;
        let choice = choice::parts(shards, options, progress)?;
        Ok(Self {
            shards,
            plan,
            sources,
            outputs,
            compression,
            selection,
            choice,
            options,
            progress,
            damage,
            journal,
        })
    }

    /// Bytes of the shards that are converted, as stored.
    pub(crate) fn bytes(&self) -> u64 {
        self.shards
            .get(self.plan.own.clone())
            .unwrap_or_default()
            .iter()
            .map(|shard| shard.size)
            .sum()
    }

    pub(crate) fn context(&self) -> ReadContext<'c> {
        let ConvertOptions {
            read: options,
            jobs: workers,
            ..
        } = *self.options;
        ReadContext {
            options,
            workers,
            progress: self.progress,
            damage: self.damage,
        }
    }

    /// Whether the sources are TFRecord files, not Parquet or Arrow files. They are never mixed.
    pub(crate) fn reads_tfrecord(&self) -> bool {
        self.shards
            .first()
            .is_some_and(|shard| shard.format == ShardFormat::TfRecord)
    }

    /// Whether TFRecord is decoded, for which columns are needed. Otherwise frames are copied, or
    /// the sources are Parquet or Arrow, or none is converted.
    pub(crate) fn decodes(&self) -> bool {
        self.reads_tfrecord()
            && !self.plan.own.is_empty()
            && (self.plan.target != Target::TfRecord || self.selection.is_some())
    }

    /// Infers the columns from all records, or from a sample. Calls `on_bytes` with the number of
    /// further bytes read.
    ///
    /// # Errors
    /// Records that cannot be read, and [`Error::Cancelled`].
    pub(crate) fn infer(
        &self,
        sample: Sample,
        on_bytes: &(dyn Fn(u64) + Sync),
    ) -> Result<Inferred> {
        // The conversion verifies the CRC of every record, so that inference verifies only records
        // that do not parse. Where corrupt records are skipped, inference verifies every record, so
        // that it skips the same ones.
        let read = self.options.read;
        let verify = match self.options.verify_crc {
            VerifyCrc::Always if read.on_error == OnError::Fail => VerifyCrc::OnParseFailure,
            other => other,
        };
        let options = InferOptions {
            part: None,
            sample,
            threads: self.options.jobs.max(1),
            verify,
            record_type: self.options.record_type,
            read,
        };
        let inferred = infer(self.shards, &options, &|bytes, _| {
            on_bytes(bytes);
            self.progress.flow()
        });
        if self.progress.is_cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(inferred?)
        }
    }
}

impl SourceInfo {
    fn of(shard: &Shard, target: Target, read: &ReadOptions) -> Result<Self> {
        // A Parquet or Arrow file of another part, which has no local copy.
        if is_unread(shard) {
            return Ok(Self {
                schema: None,
                parquet: None,
                original: OriginalShard::default(),
            });
        }
        if shard.format == ShardFormat::Parquet && target != Target::TfRecord {
            return Self::of_parquet(shard, target, read);
        }
        if let Some(schema) = schema_within(shard, &read.limits)? {
            return Ok(Self {
                original: OriginalShard::of(&schema),
                schema: Some(schema),
                parquet: None,
            });
        }
        let compression = match (shard.is_stream(), shard.compression()) {
            (true, _) => None,
            (false, None) => Some(ShardReader::open(shard, read)?.compression()),
            (false, known) => known,
        };
        // Metadata is UTF-8. A name that is not UTF-8 is not stored: a conversion back uses the
        // name of the output.
        let name = shard
            .name
            .file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned);
        Ok(Self {
            schema: None,
            parquet: None,
            original: OriginalShard { name, compression },
        })
    }

    /// The properties of a Parquet file whose types the outputs get.
    fn of_parquet(shard: &Shard, target: Target, read: &ReadOptions) -> Result<Self> {
        let file = ParquetFile::open(&shard.path, shard.local_path())?;
        let schema = match target {
            Target::Arrow => file.extended_schema(),
            Target::Parquet | Target::TfRecord => Arc::clone(file.stored_schema()),
        };
        let schema = with_folder_columns(shard, &schema);
        check_columns(&schema, &read.limits).map_err(|e| Error::codec(&shard.path, e))?;
        Ok(Self {
            original: OriginalShard::of(&schema),
            schema: Some(schema),
            parquet: Some(file.parquet_schema()),
        })
    }
}

/// Whether a shard is in a store and cannot be read from start to end, and has no local copy: it is
/// of another part.
fn is_unread(shard: &Shard) -> bool {
    shard.is_remote() && shard.format != ShardFormat::TfRecord
}

/// The numbers of the shards of each output, and the output: one of each shard, or one of all;
/// empty if the conversion writes new shards. Checks that the outputs can be written. The names of
/// outputs of Parquet and Arrow files are in these files, so that those of other parts in a store
/// are not known.
fn outputs(
    shards: &[Shard],
    sources: &[SourceInfo],
    plan: &Plan,
    compression: OutputCompression,
    options: &ConvertOptions,
) -> Result<Vec<(Range<usize>, Destination)>> {
    let folder = match &plan.place {
        OutputPlace::One(output, _) => {
            let one = shards
                .first()
                .zip(output.file())
                .map(|(shard, path)| (shard, path.to_owned()));
            super::check_outputs(&Vec::from_iter(one), options)?;
            return Ok(vec![(0..shards.len(), output.clone())]);
        }
        OutputPlace::Folder(folder) => folder,
    };
    if options.writes_new_shards() {
        return Ok(Vec::new());
    }
    let mut numbers = Vec::new();
    let mut outputs = Vec::new();
    for (number, (shard, source)) in shards.iter().zip(sources).enumerate() {
        if is_unread(shard) {
            continue;
        }
        let compression = compression_of(source.original.resolve(compression));
        let path = folder.join(source.original.output_name(shard, plan.target, compression));
        numbers.push(number);
        outputs.push((shard, path));
    }
    super::check_outputs(&outputs, options)?;
    let mut destinations = Vec::with_capacity(outputs.len());
    for (number, (_, path)) in numbers.into_iter().zip(outputs) {
        destinations.push((number..number + 1, Destination::File(path)));
    }
    Ok(destinations)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tfarrow_codec::frame;
    use tfarrow_dataset::{Compression, resolve};

    use super::*;

    #[test]
    fn the_compression_of_shards_is_known_without_opening_them_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tfrecord");
        let mut bytes = Vec::new();
        frame::write(b"record", &mut bytes);
        fs::write(&path, &bytes).unwrap();
        let shards = resolve(&[&path]).unwrap();
        fs::remove_file(&path).unwrap();
        let source = SourceInfo::of(&shards[0], Target::Parquet, &ReadOptions::default()).unwrap();
        assert_eq!(source.original.compression, Some(Compression::None));
    }
}
