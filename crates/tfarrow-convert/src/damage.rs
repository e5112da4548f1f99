//! What a conversion goes on behind: counted, told with its place, and kept where somebody wants to see it.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Mutex, PoisonError},
};

use tfarrow_codec::Records;
use tfarrow_dataset::{Fault, Losses, Lost};

use crate::{
    Result,
    quarantine::{Earlier, Quarantine},
};

/// Faults that a report keeps with their places.
pub(crate) const FAULTS: usize = 10_000;

/// What all workers of a conversion went on behind.
pub(crate) struct Damage {
    state: Mutex<State>,
}

struct State {
    losses: Losses,
    /// The numbers of the shards that something was lost of.
    shards: HashSet<usize>,
    quarantine: Option<Quarantine>,
}

impl Damage {
    /// No damage yet. Lost bytes go to the file `quarantine`, where one is given, which is begun at once.
    ///
    /// # Errors
    /// As [`Quarantine::create`].
    pub(crate) fn new(quarantine: Option<&Path>, earlier: Earlier) -> Result<Self> {
        let quarantine = quarantine.map(|path| Quarantine::create(path, earlier)).transpose()?;
        Ok(Self { state: Mutex::new(State { losses: Losses::new(FAULTS), shards: HashSet::new(), quarantine }) })
    }

    /// Notes a stretch, or a part of one, of the shard of this number.
    pub(crate) fn lost(&self, shard: usize, path: &Path, lost: Lost) -> Result<()> {
        let mut state = self.lock();
        if let Some(quarantine) = &mut state.quarantine {
            quarantine.add_lost(shard, path, &lost)?;
        }
        state.shards.insert(shard);
        state.losses.add_lost(shard, lost);
        Ok(())
    }

    /// Notes a record of a shard that is damaged, or does not fit.
    pub(crate) fn record(
        &self,
        shard: usize,
        path: &Path,
        records: &Records,
        error: tfarrow_codec::Error,
    ) -> Result<()> {
        let (record, offset) = (error.position().record, error.position().offset);
        let data = records.data(record.saturating_sub(records.first()) as usize).unwrap_or_default();
        let fault = Fault::of(shard, tfarrow_dataset::Error::codec(path, error));
        let mut state = self.lock();
        if let Some(quarantine) = &mut state.quarantine {
            quarantine.add(path, (record, offset), &fault.error.to_string(), data, false)?;
        }
        state.shards.insert(shard);
        state.losses.add_record(Fault { bytes: data.len() as u64, ..fault });
        Ok(())
    }

    /// Whether something of the shard of this number was lost.
    pub(crate) fn is_of(&self, shard: usize) -> bool {
        self.lock().shards.contains(&shard)
    }

    /// Ends the quarantine, and returns the losses.
    ///
    /// # Errors
    /// As [`Quarantine::finish`].
    pub(crate) fn finish(self) -> Result<Losses> {
        let State { losses, quarantine, .. } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(quarantine) = quarantine {
            quarantine.finish()?;
        }
        Ok(losses)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
