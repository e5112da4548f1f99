//! The decoders of one execution of a scan: whichever thread has records takes one, and gives it back warm.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::RecordBatch;
use tfarrow_codec::{BatchDecoder, DecoderBuilder, Records, Result};

use crate::{origin::Origin, unknown::Teller};

/// Decoders that no thread has in hand. A decoder remembers the order of keys, so that it is worth keeping.
#[derive(Debug)]
pub(crate) struct Decoders {
    builder: DecoderBuilder,
    idle: Mutex<Vec<BatchDecoder>>,
    origin: Arc<Origin>,
    teller: Arc<Teller>,
}

impl Decoders {
    pub(crate) fn new(builder: DecoderBuilder, origin: Arc<Origin>, teller: Arc<Teller>) -> Self {
        Self { builder, idle: Mutex::default(), origin, teller }
    }

    /// One batch of all these records.
    pub(crate) fn decode(&self, records: &Records) -> Result<RecordBatch> {
        let mut decoder = self.take()?;
        let batch = decoder.decode(records);
        self.idle().push(decoder);
        batch
    }

    fn take(&self) -> Result<BatchDecoder> {
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
