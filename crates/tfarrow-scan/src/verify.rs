//! Verification of data sets: of TFRecord files by their CRCs and messages, of Parquet and Arrow
//! files by their checksums, and of CSV, JSON and files without checksums by reading them.

use std::{collections::BTreeMap, path::PathBuf};

use tfarrow_codec::{
    OnError, Place, RecordType, WireError,
    infer::{RecordObserver, SeenRecord},
};
use tfarrow_dataset::{
    DamageReport, Error, ErrorKind, Fault, FaultKind, OnProgress, ReadOptions, Result, Shard,
    ShardFormat,
    internals::{Payload, TfdsSplit, check_length, check_one_payload, tfds_splits, try_map},
};

use crate::{
    inferred::{Inferred, shown_names},
    options::InferOptions,
    scan::{Scanned, scan},
    verify_file::VerifiedFile,
};

/// Options of verification.
#[derive(Clone, Copy, Debug)]
pub struct VerifyOptions {
    /// The type of message that a record of a TFRecord file has to be. By default the inferred type
    /// of the data set.
    pub record_type: Option<RecordType>,
    /// Number of threads. By default one.
    pub threads: usize,
    /// Options for reading the shards. Corrupt records are always skipped.
    pub read: ReadOptions,
    /// The number of faults that are kept. By default 10,000.
    pub max_faults: usize,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self {
            record_type: None,
            threads: 1,
            read: ReadOptions::default(),
            max_faults: 10_000,
        }
    }
}

/// The result of verification.
#[derive(Debug)]
pub struct Verified {
    /// The shards, TFRecord files first. The shard numbers of faults are indices of these.
    pub shards: Vec<Shard>,
    /// Number of valid records.
    pub records: u64,
    /// Number of records of each shard, in which those that are no messages count.
    pub of_shards: Vec<u64>,
    /// Number of bytes: of the data of records in TFRecord files, and of other files.
    pub bytes: u64,
    /// The type of the records of TFRecord files; `None` if there are none.
    pub record_type: Option<RecordType>,
    /// The damage found.
    pub damage: DamageReport,
    /// The files of other formats than TFRecord without checksums: CSV, JSON, and Parquet and Arrow
    /// of other programs. Only that these can be read is verified.
    pub without_checksums: Vec<PathBuf>,
    /// The error that the TFRecord files have records of different types, which is no fault.
    pub mixed_records: Option<Error>,
    /// The splits of TFDS that the shards belong to.
    pub splits: Vec<TfdsSplit>,
}

/// Verifies all records of shards, which may have any format. A fault of a file does not end the
/// verification; [a failure of the machine](Error::is_machine) does.
///
/// # Errors
/// A failure of the machine, and [`ErrorKind::Stopped`] if `progress` stops the verification.
pub fn verify(
    shards: Vec<Shard>,
    options: &VerifyOptions,
    progress: &OnProgress<'_>,
) -> Result<Verified> {
    let (tfrecords, others): (Vec<_>, Vec<_>) = shards
        .into_iter()
        .partition(|shard| shard.format == ShardFormat::TfRecord);
    let mut verified = verify_records(tfrecords, options, progress)?;
    let first = verified.shards.len();
    let files = try_map(&others, options.threads, |index, shard| {
        let file = VerifiedFile::of(shard, first + index, options.max_faults)?;
        match progress(shard.size, file.records).is_break() {
            true => Err(Error::general(ErrorKind::Stopped)),
            false => Ok(file),
        }
    })?;
    for (shard, file) in others.iter().zip(files) {
        if !file.has_checksums && file.damage.is_empty() {
            verified.without_checksums.push(shard.path.clone());
        }
        verified.records = verified.records.saturating_add(file.records);
        verified.of_shards.push(file.records);
        verified.bytes += shard.size;
        verified.damage.merge(file.damage);
    }
    verified.shards.extend(others);
    verified.splits = tfds_splits(&verified.shards);
    verified.add_wrong_lengths();
    Ok(verified)
}

/// Verifies TFRecord files: the CRC of every record, and its protobuf message.
fn verify_records(
    shards: Vec<Shard>,
    options: &VerifyOptions,
    progress: &OnProgress<'_>,
) -> Result<Verified> {
    let VerifyOptions {
        record_type,
        threads,
        read,
        max_faults,
    } = *options;
    // A truncated last event is reported, unless it is to be ignored.
    let read = ReadOptions {
        on_error: OnError::Skip,
        ..read.of_payload(Payload::Unknown)
    };
    let options = InferOptions {
        threads,
        record_type,
        read,
        ..InferOptions::default()
    };
    let all: Vec<_> = (0..shards.len()).collect();
    let scanned = scan(&shards, &all, &options, Some(max_faults), progress, &|| {
        Strays {
            most: max_faults,
            first: BTreeMap::new(),
        }
    })?;
    let Scanned {
        summary,
        observers,
        mut damage,
        records,
        ..
    } = scanned;
    let mut inferred = Inferred::of_summary(summary, shown_names(&shards));
    let has_messages =
        record_type.map_or_else(|| inferred.has_strays(), |it| it != RecordType::Raw);
    let strays = if has_messages {
        inferred
            .summary
            .drop_unparsable()
            .map_or(0, |(strays, ..)| strays)
    } else {
        0
    };
    let record_type = record_type.unwrap_or_else(|| inferred.summary.record_type());
    if strays > 0 {
        let mut kept = 0;
        for (place, (error, bytes)) in observers.into_iter().flat_map(|strays| strays.first) {
            let Some(shard) = shards.get(place.shard as usize) else {
                continue;
            };
            let error = Error::codec(&shard.path, place.parse_error(error, record_type));
            damage.add(Fault {
                bytes,
                ..Fault::of(place.shard as usize, error)
            });
            kept += 1;
        }
        damage.count(FaultKind::Message, strays - kept);
    }
    Ok(Verified {
        records: inferred.summary.records(),
        of_shards: records,
        bytes: inferred.summary.bytes(),
        record_type: (!shards.is_empty()).then_some(record_type),
        damage,
        without_checksums: Vec::new(),
        mixed_records: check_one_payload(&shards).err(),
        splits: Vec::new(),
        shards,
    })
}

impl Verified {
    /// Adds the shards without lost records whose number of records is not that of their
    /// description by TFDS: a file that was cut between two records has no other sign of it.
    fn add_wrong_lengths(&mut self) {
        for (number, (shard, records)) in self.shards.iter().zip(&self.of_shards).enumerate() {
            let mut faults = self.damage.faults().iter();
            // A record that is no message counts.
            let loses =
                faults.any(|fault| fault.shard == number && fault.kind() != FaultKind::Message);
            if !loses && let Err(error) = check_length(&self.splits, shard, *records) {
                self.damage.add(Fault::of(number, error));
            }
        }
    }
}

/// The observer of the first records that do not parse, and of their numbers of bytes.
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
