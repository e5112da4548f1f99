//! Verification of a data set: the CRC of every record, and its protobuf message.

use std::collections::BTreeMap;

use tfarrow_codec::{
    OnError, Place, RecordType, WireError,
    infer::{RecordObserver, SeenRecord},
};

use super::{
    infer::{Inferred, shown_names},
    options::{InferOptions, OnProgress},
    rows::RowLosses,
    workers::{Scanned, scan},
};
use crate::{DamageReport, Error, Fault, FaultKind, Payload, ReadOptions, Result, Shard};

/// The result of verification.
#[derive(Debug)]
pub struct Verified {
    /// Number of valid records.
    pub records: u64,
    /// Number of records of each shard, in which those that are no messages count.
    pub of_shards: Vec<u64>,
    /// Number of bytes of their data.
    pub bytes: u64,
    /// The type of the records.
    pub record_type: RecordType,
    /// The damage found.
    pub damage: DamageReport,
}

/// Verifies all of `shards`, and returns the first `most` faults with their places. A fault of a file does not end the
/// verification; [a failure of the machine](Error::is_machine) does.
///
/// A record has to be a message of the type `record_type`; by default, of the inferred type of the data set.
///
/// # Errors
/// [`Stopped`](crate::ErrorKind::Stopped) if `progress` stops the scan, and a failure of the machine.
pub fn verify(
    shards: &[Shard],
    record_type: Option<RecordType>,
    jobs: usize,
    read: ReadOptions,
    most: usize,
    progress: &OnProgress<'_>,
) -> Result<Verified> {
    // A truncated last event is reported, unless it is to be ignored.
    let read = ReadOptions { on_error: OnError::Skip, ..read.of_payload(Payload::Unknown) };
    let options = InferOptions { jobs, record_type, read, ..InferOptions::default() };
    let all: Vec<_> = (0..shards.len()).collect();
    let strays = || Strays { most, first: BTreeMap::new() };
    let Scanned { summary, observers, mut losses, records, .. } =
        scan(shards, &all, &options, Some(most), (progress, &()), &strays)?;
    let names = shown_names(shards);
    let mut inferred = Inferred {
        summary,
        names,
        sampled: None,
        skipped: DamageReport::default(),
        losses: RowLosses::default(),
        is_events: false,
    };
    let has_messages = record_type.map_or_else(|| inferred.has_strays(), |it| it != RecordType::Raw);
    let strays = if has_messages { inferred.summary.drop_unparsable().map_or(0, |(strays, ..)| strays) } else { 0 };
    let record_type = record_type.unwrap_or_else(|| inferred.summary.record_type());
    if strays > 0 {
        let mut kept = 0;
        for (place, (error, bytes)) in observers.into_iter().flat_map(|strays| strays.first) {
            let Some(shard) = shards.get(place.shard as usize) else { continue };
            let error = Error::codec(&shard.path, place.parse_error(error, record_type));
            losses.add(Fault { bytes, ..Fault::of(place.shard as usize, error) });
            kept += 1;
        }
        losses.count(FaultKind::Message, strays - kept);
    }
    let (valid, bytes) = (inferred.summary.records(), inferred.summary.bytes());
    Ok(Verified { records: valid, of_shards: records, bytes, record_type, damage: losses })
}

/// Observes the first records that do not parse, and their numbers of bytes.
struct Strays {
    most: usize,
    first: BTreeMap<Place, (WireError, u64)>,
}

impl RecordObserver for Strays {
    const ENABLED: bool = false;

    fn record(&mut self, _: &mut SeenRecord<'_>) {}

    fn unparsable(&mut self, place: Place, error: WireError, bytes: u64) {
        self.first.insert(place, (error, bytes));
        if self.first.len() > self.most {
            self.first.pop_last();
        }
    }
}
