//! The decoders of one execution of a scan: whichever thread has records takes one, and gives it back warm.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arrow_array::{Array, BooleanArray, RecordBatch};
use datafusion::error::Result;
use tfarrow_codec::{BatchDecoder, DecoderBuilder, OnError, Records, Skipped};
use tfarrow_dataset::{Error, SkippedRecords};

use crate::{
    columns::{Columns, Fitted, Misfit, without},
    error::explained,
    filter::Filter,
    metrics::ScanMetrics,
    notice::Teller,
    origin::Origin,
};

/// Decoders. One remembers the order of keys, so that it is worth keeping.
#[derive(Debug)]
pub(crate) struct Decoders {
    lane: Lane,
    /// Which records become rows, and who decodes what tells that.
    filter: Option<(Filter, Lane)>,
    on_error: OnError,
    origin: Arc<Origin>,
    teller: Arc<Teller>,
}

impl Decoders {
    /// Decoders of `projection`, which are some of the columns that `builder` decodes to.
    pub(crate) fn new(
        builder: &DecoderBuilder,
        columns: &Arc<Columns>,
        projection: Vec<usize>,
        on_error: OnError,
        filter: Option<Filter>,
    ) -> Self {
        let lane = |builder: DecoderBuilder, projection: Vec<usize>| Lane {
            builder: builder.with_on_error(on_error).with_projection(projection.clone()),
            columns: Arc::clone(columns),
            projection,
            idle: Mutex::default(),
        };
        let filter = filter.map(|filter| {
            // Which records are passed over must not depend on how much of them a filter asks for.
            let may_cut = |column: &usize| on_error == OnError::Fail && columns.is_as_decoded(*column);
            let cut = filter.first_values().filter(|(column, _)| may_cut(column));
            let builder = cut.fold(builder.clone(), |builder, (column, most)| builder.with_first_values(column, most));
            let first = lane(builder, filter.columns().to_vec());
            (filter, first)
        });
        let (origin, teller) = Default::default();
        Self { lane: lane(builder.clone(), projection), filter, on_error, origin, teller }
    }

    /// What is known of the schema, and whom to tell what.
    pub(crate) fn with_origin(mut self, origin: Arc<Origin>, teller: Arc<Teller>) -> Self {
        (self.origin, self.teller) = (origin, teller);
        self
    }

    /// How many columns a batch has at most, on its way.
    pub(crate) fn columns(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, |(_, lane)| lane.projection.len());
        self.lane.projection.len().max(filter)
    }

    /// One batch of these records, which are of the file `path`: of all, or of those that the filter keeps.
    pub(crate) fn decode(&self, records: &Records, path: &Path, metrics: &ScanMetrics) -> Result<RecordBatch> {
        let decode = |lane: &Lane, filter: Option<&BooleanArray>| {
            let mut skipped = Skipped::default();
            let decoded = lane.decode(records, filter, self.on_error, &mut skipped);
            self.count_skipped(skipped, path, metrics);
            decoded.map_err(|wrong| match wrong {
                Wrong::Record(error) => {
                    let error = Error::codec(path, error);
                    metrics.crc_errors.add(usize::from(error.is_damage()));
                    explained(error, &self.origin)
                }
                Wrong::Query(error) => error,
            })
        };
        let Some((filter, first)) = &self.filter else { return Ok(decode(&self.lane, None)?.batch) };
        let decoded = decode(first, None)?;
        let kept = filter.keep(&decoded.batch)?;
        metrics.rows_pruned.add(decoded.batch.num_rows() - kept.true_count());
        let kept = decoded.of_records(kept, records.len());
        Ok(decode(&self.lane, Some(&kept))?.batch)
    }

    /// Tells what was passed over, before the rows behind it are handed on: whoever has them has heard of it, however soon
    /// the query ends.
    pub(crate) fn tell_skipped(&self, skipped: SkippedRecords) {
        self.teller.tell_skipped(skipped);
    }

    fn count_skipped(&self, new: Skipped, path: &Path, metrics: &ScanMetrics) {
        let Some(first) = new.errors.into_iter().next() else { return };
        metrics.records_skipped.add(new.records as usize);
        metrics.crc_errors.add(new.corrupt as usize);
        let first = Some(Arc::new(Error::codec(path, first)));
        self.tell_skipped(SkippedRecords { records: new.records, corrupt: new.corrupt, first, ..Default::default() });
    }
}

/// The execution has ended: what its decoders met without a column is told.
impl Drop for Decoders {
    fn drop(&mut self) {
        let mut names = BTreeSet::new();
        for lane in std::iter::once(&self.lane).chain(self.filter.as_ref().map(|(_, lane)| lane)) {
            for decoder in lane.lock().iter() {
                names.extend(decoder.unknown_features().map(|(name, _)| name.to_owned()));
            }
        }
        self.teller.tell_unknown(names, &self.origin);
    }
}

/// What goes wrong where records are decoded.
enum Wrong {
    /// A record is to blame.
    Record(tfarrow_codec::Error),
    /// Something else is.
    Query(datafusion::error::DataFusionError),
}

impl From<tfarrow_codec::Error> for Wrong {
    fn from(error: tfarrow_codec::Error) -> Self {
        Self::Record(error)
    }
}

/// A batch, and of which records its rows are: `None`: of all, in order.
struct Decoded {
    batch: RecordBatch,
    records: Option<Vec<usize>>,
}

impl Decoded {
    /// Drops the rows that do not fit.
    fn without(self, misfits: &[Misfit]) -> Result<Self, Wrong> {
        let (batch, rows) = without(&self.batch, misfits).map_err(|e| Wrong::Query(e.into()))?;
        let record = |row: usize| self.records.as_ref().map_or(row, |of| of.get(row).copied().unwrap_or(row));
        Ok(Self { batch, records: Some(rows.into_iter().map(record).collect()) })
    }

    fn record_of(&self, row: usize) -> usize {
        self.records.as_ref().and_then(|records| records.get(row)).copied().unwrap_or(row)
    }

    /// What is said of each row as said of each of `count` records.
    fn of_records(&self, rows: BooleanArray, count: usize) -> BooleanArray {
        let Some(records) = &self.records else { return rows };
        let mut all = vec![false; count];
        for (row, record) in records.iter().enumerate() {
            if let Some(kept) = all.get_mut(*record) {
                *kept = rows.is_valid(row) && rows.value(row);
            }
        }
        all.into()
    }
}

/// Decoders of the same columns.
#[derive(Debug)]
struct Lane {
    builder: DecoderBuilder,
    columns: Arc<Columns>,
    projection: Vec<usize>,
    /// Those that no thread has in hand.
    idle: Mutex<Vec<BatchDecoder>>,
}

impl Lane {
    /// Decodes these records, or those that `filter` says, with a decoder that nobody else has.
    fn decode(
        &self,
        records: &Records,
        filter: Option<&BooleanArray>,
        on_error: OnError,
        skipped: &mut Skipped,
    ) -> Result<Decoded, Wrong> {
        let idle = self.lock().pop();
        let mut decoder = idle.map_or_else(|| self.builder.clone().build_batch_decoder(), Ok)?;
        let batch = match filter {
            Some(filter) => decoder.decode_where(records, filter),
            None => decoder.decode(records),
        };
        *skipped = decoder.take_skipped();
        let decoded = batch.map(|batch| {
            let is_all = batch.num_rows() == records.len();
            let of = (!is_all).then(|| (0..batch.num_rows()).map(|row| decoder.record_of(row)).collect());
            Decoded { batch, records: of }
        });
        self.lock().push(decoder);
        self.fit(decoded?, records, on_error, skipped)
    }

    /// Makes what a query sees of what was decoded. Each turn drops rows, so that there is an end.
    fn fit(
        &self,
        mut decoded: Decoded,
        records: &Records,
        on_error: OnError,
        skipped: &mut Skipped,
    ) -> Result<Decoded, Wrong> {
        loop {
            let (misfits, batch) = match self.columns.fit(&self.projection, decoded.batch).map_err(Wrong::Query)? {
                Fitted::Batch(batch) => return Ok(Decoded { batch, ..decoded }),
                Fitted::Misfits(misfits, batch) => (misfits, batch),
            };
            decoded.batch = batch;
            for Misfit { row, column, expected, found } in &misfits {
                let error = records.misfit(decoded.record_of(*row), column, expected.clone(), found.clone());
                match on_error {
                    OnError::Fail => return Err(error.into()),
                    OnError::Skip => skipped.add(error),
                }
            }
            decoded = decoded.without(&misfits)?;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<BatchDecoder>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
