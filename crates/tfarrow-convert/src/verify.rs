//! Verification of data sets: of TFRecord files by their CRCs, of Parquet and Arrow files by their checksums, and of CSV, JSON and
//! files without checksums by reading them.

use std::{fs::File, path::PathBuf};

use tfarrow_codec::RecordType;
use tfarrow_columnar::{ParquetFile, arrow_batch, arrow_reader, row_group_rows, rows};
use tfarrow_dataset::{
    DamageReport, Fault, FaultKind, OnProgress, ReadOptions, Shard, ShardFormat, TfdsSplit, Verified, check_length,
    check_one_payload, tfds_splits, try_map,
};

use crate::{Error, Result};

/// The result of verifying a data set.
#[derive(Debug)]
pub struct VerifiedDataSet {
    /// The shards, TFRecord files first. The shard numbers of faults are indices of these.
    pub shards: Vec<Shard>,
    /// The records of all shards, and the damage.
    pub found: Verified,
    /// Whether any shard is a TFRecord file, so that the type of the records is known.
    pub has_tfrecord: bool,
    /// The files of other formats than TFRecord without checksums: CSV, JSON, and Parquet and Arrow of other programs. Only that
    /// these can be read is verified.
    pub without_checksums: Vec<PathBuf>,
    /// The error that the TFRecord files have records of different types, which is no fault.
    pub mixed_records: Option<tfarrow_dataset::Error>,
    /// The splits of TFDS that the shards belong to.
    pub splits: Vec<TfdsSplit>,
}

/// Verifies all records of shards, which may have any format, on up to `threads` threads. The first `max_faults` faults are
/// kept. A record of a TFRecord file has to be a message of the type `record_type`; by default, of the inferred type.
///
/// # Errors
/// [A failure of the machine](tfarrow_dataset::Error::is_machine), which is not a fault of a file; [`Error::Cancelled`] or an
/// error of the kind [`Stopped`](tfarrow_dataset::ErrorKind::Stopped) if `progress` stops the verification.
pub fn verify_data_set(
    shards: Vec<Shard>,
    record_type: Option<RecordType>,
    threads: usize,
    read: ReadOptions,
    max_faults: usize,
    progress: &OnProgress<'_>,
) -> Result<VerifiedDataSet> {
    let (mut shards, columnar): (Vec<_>, Vec<_>) =
        shards.into_iter().partition(|shard| shard.format == ShardFormat::TfRecord);
    let tfrecords = shards.len();
    let mixed_records = check_one_payload(&shards).err();
    let mut found = tfarrow_dataset::verify(&shards, record_type, threads, read, max_faults, progress)?;
    let files = try_map(&columnar, threads, |index, shard| {
        let file = verify(shard, tfrecords + index, max_faults)?;
        if progress(shard.size, file.records).is_break() { Err(Error::Cancelled) } else { Ok(file) }
    })?;
    let mut without_checksums = Vec::new();
    for (shard, file) in columnar.iter().zip(files) {
        if !file.has_checksums && file.damage.is_empty() {
            without_checksums.push(shard.path.clone());
        }
        found.records = found.records.saturating_add(file.records);
        found.of_shards.push(file.records);
        found.bytes += shard.size;
        found.damage.merge(file.damage);
    }
    shards.extend(columnar);
    let splits = tfds_splits(&shards);
    add_wrong_lengths(&splits, &shards, &mut found);
    Ok(VerifiedDataSet { shards, found, has_tfrecord: tfrecords > 0, without_checksums, mixed_records, splits })
}

/// Adds the shards without lost records whose number of records is not that of their description by TFDS: a file that was cut
/// between two records has no other sign of it.
fn add_wrong_lengths(splits: &[TfdsSplit], shards: &[Shard], found: &mut Verified) {
    for (number, (shard, records)) in shards.iter().zip(&found.of_shards).enumerate() {
        // A record that is no message counts.
        let loses = |fault: &Fault| fault.shard == number && fault.kind() != FaultKind::Message;
        if !found.damage.faults().iter().any(loses)
            && let Err(error) = check_length(splits, shard, *records)
        {
            found.damage.add(Fault::of(number, error));
        }
    }
}

/// The result of verifying a file of another format than TFRecord.
#[derive(Debug)]
struct VerifiedFile {
    /// Number of valid records.
    records: u64,
    /// Whether the file has checksums. Without them, which other programs do not write, only readability is verified.
    has_checksums: bool,
    /// The faults of the file.
    damage: DamageReport,
}

/// Verifies the checksums of all parts of a file, or reads the file if it has none. After a corrupt part, verification
/// continues with the next, unless the library cannot continue. `number` is the number of the shard in its data set. The
/// first `max_faults` faults are kept.
///
/// # Errors
/// [A failure of the machine](tfarrow_dataset::Error::is_machine), which is not a fault of the file; [`Error::Usage`] for a
/// TFRecord file.
fn verify(shard: &Shard, number: usize, max_faults: usize) -> Result<VerifiedFile> {
    let mut file = VerifiedFile { records: 0, has_checksums: false, damage: DamageReport::new(max_faults) };
    let read = match shard.format {
        ShardFormat::Parquet => file.parquet(shard, number),
        ShardFormat::Arrow => file.arrow(shard, number),
        ShardFormat::Csv | ShardFormat::Json => file.text(shard),
        ShardFormat::TfRecord => return Err(Error::Usage(format!("{}: is TFRecord", shard.path.display()))),
    };
    if let Err(error) = read {
        file.add_fault(number, error)?;
    }
    Ok(file)
}

impl VerifiedFile {
    fn parquet(&mut self, shard: &Shard, shard_number: usize) -> tfarrow_dataset::Result<()> {
        let path = &shard.path;
        let parquet = ParquetFile::open(path, shard.local_path())?;
        let file = File::open(shard.local_path()).map_err(|e| tfarrow_dataset::Error::io(path, e))?;
        self.has_checksums = parquet.verifier.is_some();
        for (number, group) in parquet.groups().iter().enumerate() {
            let verified = match &parquet.verifier {
                Some(verifier) => verifier.verify(path, &file, parquet.groups(), number),
                None => row_group_rows(shard, &parquet, number..number + 1)?.try_for_each(|rows| rows.map(drop)),
            };
            match verified {
                Ok(()) => self.records = self.records.saturating_add(group.num_rows().max(0) as u64),
                Err(error) => self.add_fault(shard_number, error)?,
            }
        }
        Ok(())
    }

    fn arrow(&mut self, shard: &Shard, shard_number: usize) -> tfarrow_dataset::Result<()> {
        let path = &shard.path;
        let (mut reader, mut verifier) = arrow_reader(path, shard.local_path(), None)?;
        self.has_checksums = verifier.is_some();
        for number in 0..reader.num_batches() {
            match verifier.iter_mut().try_for_each(|verifier| verifier.verify_next(path, self.records)) {
                Ok(()) => self.records += arrow_batch(path, &mut reader, number)?.num_rows() as u64,
                Err(error) => self.add_fault(shard_number, error)?,
            }
        }
        Ok(())
    }

    fn text(&mut self, shard: &Shard) -> tfarrow_dataset::Result<()> {
        rows(shard)?.try_for_each(|batch| {
            self.records += batch?.num_rows() as u64;
            Ok(())
        })
    }

    /// Adds the error as a fault of the file, unless the machine failed.
    fn add_fault(&mut self, number: usize, error: tfarrow_dataset::Error) -> tfarrow_dataset::Result<()> {
        if error.is_machine() {
            return Err(error);
        }
        self.damage.add_record(Fault::of(number, error));
        Ok(())
    }
}
