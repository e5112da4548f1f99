//! The decoders of one execution of a scan: whichever thread has records takes one, and gives it back warm.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use datafusion::{error::Result, physical_plan::PhysicalExpr};
use tfarrow_codec::{BatchDecoder, DecoderBuilder, Error as CodecError, Records};

use crate::{
    filter::{Fault, Filter},
    origin::Origin,
    unknown::Teller,
};

/// Decoders that no thread has in hand. A decoder remembers the order of keys, so that it is worth keeping.
#[derive(Debug)]
pub(crate) struct Decoders {
    builder: DecoderBuilder,
    /// Decides, by columns of which the last may be there for it alone, which records become rows.
    filter: Option<Filter>,
    /// The columns of the batches: the first of the decoder's.
    columns: Vec<usize>,
    idle: Mutex<Vec<BatchDecoder>>,
    origin: Arc<Origin>,
    teller: Arc<Teller>,
}

impl Decoders {
    /// Decoders of the columns of `schema` that `wanted` says, and of the records that `predicate` lets pass.
    pub(crate) fn new(
        builder: impl FnOnce(Vec<usize>) -> DecoderBuilder,
        (schema, wanted): (&Schema, &[usize]),
        predicate: Option<&Arc<dyn PhysicalExpr>>,
        (origin, teller): (Arc<Origin>, Arc<Teller>),
    ) -> Result<Self> {
        let mut decoded = wanted.to_vec();
        let filter = predicate.map(|predicate| Filter::new(predicate, schema, &mut decoded)).transpose()?;
        let columns = (0..wanted.len()).collect();
        Ok(Self { builder: builder(decoded), filter, columns, idle: Mutex::default(), origin, teller })
    }

    /// Whether fewer rows may come out than records go in.
    pub(crate) fn filters(&self) -> bool {
        self.filter.is_some()
    }

    /// One batch of these records: of all, or of those that the filter keeps.
    pub(crate) fn decode(&self, records: &Records) -> Result<RecordBatch, Fault> {
        let mut decoder = self.take()?;
        let batch = match &self.filter {
            Some(filter) => self.filtered(&mut decoder, filter, records),
            None => decoder.decode(records).map_err(Fault::from),
        };
        self.idle().push(decoder);
        batch
    }

    fn filtered(&self, decoder: &mut BatchDecoder, filter: &Filter, records: &Records) -> Result<RecordBatch, Fault> {
        let mut rows = decoder.rows(records)?;
        filter.apply(&mut rows)?;
        Ok(rows.columns(&self.columns)?)
    }

    fn take(&self) -> Result<BatchDecoder, CodecError> {
        let idle = self.idle().pop();
        idle.map_or_else(|| self.builder.clone().build_batch_decoder(), Ok)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<BatchDecoder>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The execution has ended: what its decoders met without a column is told.
impl Drop for Decoders {
    fn drop(&mut self) {
        let mut names = BTreeSet::new();
        for decoder in self.idle().iter() {
            names.extend(decoder.unknown_features().map(|(name, _)| name.to_owned()));
        }
        self.teller.tell(names, &self.origin);
    }
}
