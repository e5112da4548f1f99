//! The decoders of one execution of a scan: whichever thread has records takes one, and gives it back warm.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arrow_array::RecordBatch;
use tfarrow_codec::{BatchDecoder, DecoderBuilder, Records};

use crate::{
    filter::{Fault, Filter},
    origin::Origin,
    unknown::Teller,
};

/// Decoders. One remembers the order of keys, so that it is worth keeping.
#[derive(Debug)]
pub(crate) struct Decoders {
    builder: DecoderBuilder,
    idle: Idle,
    /// Which records become rows, and who decodes what tells that.
    filter: Option<(Filter, DecoderBuilder, Idle)>,
    origin: Arc<Origin>,
    teller: Arc<Teller>,
}

impl Decoders {
    /// Decoders of these columns.
    pub(crate) fn new(builder: DecoderBuilder, columns: Vec<usize>, origin: Arc<Origin>, teller: Arc<Teller>) -> Self {
        Self { builder: builder.with_projection(columns), idle: Idle::default(), filter: None, origin, teller }
    }

    /// Decodes only the records that `filter` keeps.
    pub(crate) fn with_filter(mut self, filter: Option<Filter>) -> Self {
        self.filter = filter.map(|filter| {
            let builder = self.builder.clone().with_projection(filter.columns().to_vec());
            (filter, builder, Idle::default())
        });
        self
    }

    /// One batch of these records: of all, or of those that the filter keeps.
    pub(crate) fn decode(&self, records: &Records) -> Result<RecordBatch, Fault> {
        self.idle.with(&self.builder, |decoder| match &self.filter {
            Some((filter, builder, idle)) => idle.with(builder, |first| filter.decode(first, decoder, records)),
            None => Ok(decoder.decode(records)?),
        })
    }
}

/// Decoders of one kind that no thread has in hand.
#[derive(Debug, Default)]
struct Idle(Mutex<Vec<BatchDecoder>>);

impl Idle {
    /// Calls `decode` with a decoder that nobody else has.
    fn with<T>(
        &self,
        builder: &DecoderBuilder,
        decode: impl FnOnce(&mut BatchDecoder) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let idle = self.lock().pop();
        let mut decoder = idle.map_or_else(|| builder.clone().build_batch_decoder(), Ok)?;
        let decoded = decode(&mut decoder);
        self.lock().push(decoder);
        decoded
    }

    fn lock(&self) -> MutexGuard<'_, Vec<BatchDecoder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The execution has ended: what its decoders met without a column is told.
impl Drop for Decoders {
    fn drop(&mut self) {
        let mut names = BTreeSet::new();
        for idle in std::iter::once(&self.idle).chain(self.filter.as_ref().map(|(_, _, idle)| idle)) {
            for decoder in idle.lock().iter() {
                names.extend(decoder.unknown_features().map(|(name, _)| name.to_owned()));
            }
        }
        self.teller.tell(names, &self.origin);
    }
}
