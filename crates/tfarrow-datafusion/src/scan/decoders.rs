//! The decoders of one execution of a scan, in pools that its threads share.
//!
//! ```text
//! records ─▶ filter pool: columns of the filter ─▶ rows that pass ─▶ main pool: columns of the query ─▶ batch
//! ```

use std::{collections::BTreeSet, path::Path, sync::Arc};

use arrow_array::{Array, BooleanArray, RecordBatch};
use datafusion::error::Result;
use tfarrow_codec::{
    BatchDecoder, Error as CodecError, OnError, ReaderBuilder, RecordType, Records,
};
use tfarrow_dataset::{DamageReport, Error, Fault, internals::Lock};

use crate::{
    error::explained,
    notice::NoticeSender,
    scan::{filter::Filter, metrics::ScanMetrics},
    schema::{
        columns::{CastBatch, CastError, Columns, without},
        provenance::SchemaProvenance,
    },
};

/// Decodes the records of all files of an execution. Decoders are reused, because each learns the
/// order of keys.
#[derive(Debug)]
pub(crate) struct Decoders {
    pool: DecoderPool,
    /// The filter that selects records, and the decoders of its columns.
    filter: Option<(Filter, DecoderPool)>,
    on_error: OnError,
    /// Whether the records are messages of a type that a descriptor gives.
    is_of_messages: bool,
    provenance: Arc<SchemaProvenance>,
    notices: Arc<NoticeSender>,
}

impl Decoders {
    /// Creates decoders of the columns `projection` of the schema of `builder`.
    pub(crate) fn new(
        builder: &ReaderBuilder,
        columns: &Arc<Columns>,
        projection: Vec<usize>,
        on_error: OnError,
        filter: Option<Filter>,
    ) -> Self {
        let filter = filter.map(|filter| {
            let mut builder = builder.clone();
            for (column, most) in filter.first_values() {
                // The set of skipped records must not depend on how many values of a list the
                // filter needs.
                if on_error == OnError::Fail && columns.is_as_decoded(column) {
                    builder = builder.with_first_values(column, most);
                }
            }
            let projection = filter.columns().to_vec();
            let pool = DecoderPool::new(builder, columns, projection, on_error);
            (filter, pool)
        });
        let is_of_messages = columns.record_type() == RecordType::Message;
        let (provenance, notices) = Default::default();
        Self {
            pool: DecoderPool::new(builder.clone(), columns, projection, on_error),
            filter,
            on_error,
            is_of_messages,
            provenance,
            notices,
        }
    }

    /// Sets the provenance of the schema, for errors, and the receiver of warnings.
    pub(crate) fn with_provenance(
        mut self,
        provenance: Arc<SchemaProvenance>,
        notices: Arc<NoticeSender>,
    ) -> Self {
        (self.provenance, self.notices) = (provenance, notices);
        self
    }

    /// Maximum number of columns of a batch, of the filter or of the query.
    pub(crate) fn columns(&self) -> usize {
        let filter = self
            .filter
            .as_ref()
            .map_or(0, |(_, pool)| pool.projection.len());
        self.pool.projection.len().max(filter)
    }

    /// Decodes the records of the file `path` that pass the filter, to one batch.
    ///
    /// # Errors
    /// A record is corrupt or does not match the schema, unless such records are skipped; or the
    /// filter fails.
    pub(crate) fn decode(
        &self,
        records: &Records,
        path: &Path,
        metrics: &ScanMetrics,
    ) -> Result<RecordBatch> {
        let decode = |pool: &DecoderPool, filter: Option<&BooleanArray>| {
            let mut skipped = Vec::new();
            let decoded = pool.decode(records, filter, self.on_error, &mut skipped);
            self.count_skipped(skipped, path, metrics);
            decoded.map_err(|failure| match failure {
                DecodeFailure::Record(error) => {
                    let error = Error::codec(path, error);
                    metrics.crc_errors.add(usize::from(error.is_damage()));
                    explained(error, &self.provenance)
                }
                DecodeFailure::Query(error) => error,
            })
        };
        let Some((filter, filter_pool)) = &self.filter else {
            return Ok(decode(&self.pool, None)?.batch);
        };
        let decoded = decode(filter_pool, None)?;
        let kept = filter.keep(&decoded.batch)?;
        metrics
            .rows_pruned
            .add(decoded.batch.num_rows() - kept.true_count());
        let kept = decoded.of_records(kept, records.len());
        Ok(decode(&self.pool, Some(&kept))?.batch)
    }

    /// Reports skipped records. Runs before the rows after them are returned, so that they are
    /// reported even if the query ends early.
    pub(crate) fn send_skipped(&self, skipped: DamageReport) {
        self.notices.send_skipped(skipped);
    }

    fn count_skipped(&self, errors: Vec<CodecError>, path: &Path, metrics: &ScanMetrics) {
        let mut skipped = DamageReport::default();
        errors
            .into_iter()
            .for_each(|error| skipped.add_record(Fault::of(0, Error::codec(path, error))));
        metrics.records_skipped.add(skipped.records as usize);
        metrics.crc_errors.add(skipped.corrupt as usize);
        self.send_skipped(skipped);
    }
}

/// Reports the features without a column, and a field that messages do not define, at the end of
/// the execution.
impl Drop for Decoders {
    fn drop(&mut self) {
        let mut names = BTreeSet::new();
        for pool in std::iter::once(&self.pool).chain(self.filter.as_ref().map(|(_, pool)| pool)) {
            for decoder in pool.idle.lock().iter() {
                names.extend(decoder.unknown_features().map(|(name, _)| name.to_owned()));
                if let Some((field, _)) = decoder.foreign_fields().filter(|_| self.is_of_messages) {
                    self.notices.send_unknown_field(field);
                }
            }
        }
        self.notices.send_unknown(names, &self.provenance);
    }
}

/// An error while records are decoded.
enum DecodeFailure {
    /// An error of a record.
    Record(tfarrow_codec::Error),
    /// An error of the query.
    Query(datafusion::error::DataFusionError),
}

impl From<tfarrow_codec::Error> for DecodeFailure {
    fn from(error: tfarrow_codec::Error) -> Self {
        Self::Record(error)
    }
}

/// A batch, and the number of the record of each of its rows; `None` if there is one row for each
/// record.
struct Decoded {
    batch: RecordBatch,
    records: Option<Vec<usize>>,
}

impl Decoded {
    /// Removes the rows that cannot be cast.
    fn without(self, errors: &[CastError]) -> Result<Self, DecodeFailure> {
        let (batch, rows) =
            without(&self.batch, errors).map_err(|e| DecodeFailure::Query(e.into()))?;
        let records = rows.into_iter().map(|row| self.record_of(row)).collect();
        Ok(Self {
            batch,
            records: Some(records),
        })
    }

    /// The record of a row.
    fn record_of(&self, row: usize) -> usize {
        self.records
            .as_ref()
            .and_then(|records| records.get(row))
            .copied()
            .unwrap_or(row)
    }

    /// Maps a flag of each row to a flag of each of `count` records; records without a row get
    /// `false`.
    fn of_records(&self, rows: BooleanArray, count: usize) -> BooleanArray {
        let Some(records) = &self.records else {
            return rows;
        };
        let mut all = vec![false; count];
        for (row, record) in records.iter().enumerate() {
            if let Some(kept) = all.get_mut(*record) {
                *kept = rows.is_valid(row) && rows.value(row);
            }
        }
        all.into()
    }
}

/// A pool of decoders of the same columns, one per thread that decodes.
#[derive(Debug)]
struct DecoderPool {
    builder: ReaderBuilder,
    columns: Arc<Columns>,
    projection: Vec<usize>,
    /// Decoders that no thread uses.
    idle: Lock<Vec<BatchDecoder>>,
}

impl DecoderPool {
    /// Creates a pool of decoders of the columns `projection`, which has none yet.
    fn new(
        builder: ReaderBuilder,
        columns: &Arc<Columns>,
        projection: Vec<usize>,
        on_error: OnError,
    ) -> Self {
        Self {
            builder: builder
                .with_on_error(on_error)
                .with_projection(projection.clone()),
            columns: Arc::clone(columns),
            projection,
            idle: Lock::default(),
        }
    }

    /// Decodes the records, or those that `filter` selects, with an idle decoder or a new one.
    fn decode(
        &self,
        records: &Records,
        filter: Option<&BooleanArray>,
        on_error: OnError,
        skipped: &mut Vec<CodecError>,
    ) -> Result<Decoded, DecodeFailure> {
        let idle = self.idle.lock().pop();
        let mut decoder = idle.map_or_else(|| self.builder.clone().build_batch_decoder(), Ok)?;
        let batch = match filter {
            Some(filter) => decoder.decode_where(records, filter),
            None => decoder.decode(records),
        };
        *skipped = decoder.take_skipped();
        let decoded = batch.map(|batch| {
            let is_all = batch.num_rows() == records.len();
            let numbers = (!is_all).then(|| {
                (0..batch.num_rows())
                    .map(|row| decoder.record_of(row))
                    .collect()
            });
            Decoded {
                batch,
                records: numbers,
            }
        });
        self.idle.lock().push(decoder);
        self.cast(decoded?, records, on_error, skipped)
    }

    /// Casts the columns of a batch. Each iteration of the loop removes rows, so that the loop
    /// ends.
    fn cast(
        &self,
        mut decoded: Decoded,
        records: &Records,
        on_error: OnError,
        skipped: &mut Vec<CodecError>,
    ) -> Result<Decoded, DecodeFailure> {
        loop {
            let cast = self
                .columns
                .cast(&self.projection, decoded.batch)
                .map_err(DecodeFailure::Query)?;
            let (errors, batch) = match cast {
                CastBatch::Cast(batch) => return Ok(Decoded { batch, ..decoded }),
                CastBatch::Failed(errors, batch) => (errors, batch),
            };
            decoded.batch = batch;
            for CastError {
                row,
                column,
                expected,
                found,
            } in &errors
            {
                let error = records.misfit(
                    decoded.record_of(*row),
                    column,
                    expected.clone(),
                    found.clone(),
                );
                match on_error {
                    OnError::Fail => return Err(error.into()),
                    OnError::Skip => skipped.push(error),
                }
            }
            decoded = decoded.without(&errors)?;
        }
    }
}
