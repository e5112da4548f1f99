//! The damage that a conversion skips: counted with the places of the first faults, and kept in a
//! quarantine if one is given.

use std::{collections::HashSet, path::Path};

use tfarrow_dataset::{DamageReport, Fault, Lost, internals::Lock};

use self::quarantine::{OtherParts, Quarantine};
use crate::{Result, earlier::Earlier};

pub(crate) mod quarantine;

/// Faults that a report keeps with their places.
pub(crate) const FAULTS: usize = 10_000;

/// The damage that the workers of a conversion skip.
pub(crate) struct DamageLog {
    state: Lock<LogState>,
}

struct LogState {
    report: DamageReport,
    /// The numbers of the damaged shards.
    shards: HashSet<usize>,
    quarantine: Option<Quarantine>,
}

impl DamageLog {
    /// An empty log. Lost bytes are written to the file `quarantine`, if one is given, which is
    /// created at once. `others` are the files of other parts, if the conversion is one of a part.
    ///
    /// # Errors
    /// As [`Quarantine::create`].
    pub(crate) fn new(
        quarantine: Option<&Path>,
        earlier: Earlier,
        others: Option<OtherParts>,
    ) -> Result<Self> {
        let quarantine = quarantine
            .map(|path| Quarantine::create(path, earlier, others))
            .transpose()?;
        let report = DamageReport::new(FAULTS);
        Ok(Self {
            state: Lock::new(LogState {
                report,
                shards: HashSet::new(),
                quarantine,
            }),
        })
    }

    /// Adds a range of the shard of this number, or a piece that continues the last one.
    pub(crate) fn lost(&self, shard: usize, path: &Path, lost: Lost) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(quarantine) = &mut state.quarantine {
            quarantine.add_lost(shard, path, &lost)?;
        }
        state.shards.insert(shard);
        state.report.add_lost(shard, lost);
        Ok(())
    }

    /// Adds a record of a shard that is corrupt, or does not fit, and its data.
    pub(crate) fn record(
        &self,
        shard: usize,
        path: &Path,
        data: &[u8],
        error: tfarrow_codec::Error,
    ) -> Result<()> {
        let record = error.position().record;
        let offset = error.position().offset;
        let fault = Fault::of(shard, tfarrow_dataset::Error::codec(path, error));
        let mut state = self.state.lock();
        if let Some(quarantine) = &mut state.quarantine {
            quarantine.add(
                path,
                (record, offset),
                &fault.error.to_string(),
                data,
                false,
            )?;
        }
        state.shards.insert(shard);
        state.report.add_record(Fault {
            bytes: data.len() as u64,
            ..fault
        });
        Ok(())
    }

    /// Whether the shard of this number is damaged.
    pub(crate) fn is_of(&self, shard: usize) -> bool {
        self.state.lock().shards.contains(&shard)
    }

    /// Ends the quarantine, and returns the report.
    ///
    /// # Errors
    /// As [`Quarantine::finish`].
    pub(crate) fn finish(self) -> Result<DamageReport> {
        let LogState {
            report, quarantine, ..
        } = self.state.into_inner();
        if let Some(quarantine) = quarantine {
            quarantine.finish()?;
        }
        Ok(report)
    }
}
