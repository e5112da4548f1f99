//! Verification of a file of another format than TFRecord.

use std::fs::File;

use tfarrow_columnar::{ParquetFile, arrow_batch, arrow_reader, row_group_rows, rows};
use tfarrow_dataset::{DamageReport, Error, Fault, Result, Shard, ShardFormat};

/// The result of verifying a file of another format than TFRecord.
#[derive(Debug)]
pub(crate) struct VerifiedFile {
    /// Number of valid records.
    pub(crate) records: u64,
    /// Whether the file has checksums. Without them, which other programs do not write, only
    /// readability is verified.
    pub(crate) has_checksums: bool,
    /// The faults of the file.
    pub(crate) damage: DamageReport,
}

impl VerifiedFile {
    /// Verifies the checksums of all parts of a file, or reads the file if it has none. After a
    /// corrupt part, verification continues with the next, unless the library cannot continue.
    /// `number` is the number of the shard in its data set. The first `max_faults` faults are kept.
    ///
    /// # Errors
    /// [A failure of the machine](Error::is_machine), which is not a fault of the file.
    pub(crate) fn of(shard: &Shard, number: usize, max_faults: usize) -> Result<Self> {
        let mut file = Self {
            records: 0,
            has_checksums: false,
            damage: DamageReport::new(max_faults),
        };
        let read = match shard.format {
            ShardFormat::Parquet => file.parquet(shard, number),
            ShardFormat::Arrow => file.arrow(shard, number),
            ShardFormat::Csv | ShardFormat::Json | ShardFormat::TfRecord => file.text(shard),
        };
        if let Err(error) = read {
            file.add_fault(number, error)?;
        }
        Ok(file)
    }

    fn parquet(&mut self, shard: &Shard, shard_number: usize) -> Result<()> {
        let path = &shard.path;
        let parquet = ParquetFile::open(path, shard.local_path())?;
        let file = File::open(shard.local_path()).map_err(|e| Error::io(path, e))?;
        self.has_checksums = parquet.verifier.is_some();
        for (number, group) in parquet.groups().iter().enumerate() {
            let verified = match &parquet.verifier {
                Some(verifier) => verifier.verify(path, &file, parquet.groups(), number),
                None => row_group_rows(shard, &parquet, number..number + 1)?
                    .try_for_each(|rows| rows.map(drop)),
            };
            match verified {
                Ok(()) => {
                    self.records = self.records.saturating_add(group.num_rows().max(0) as u64)
                }
                Err(error) => self.add_fault(shard_number, error)?,
            }
        }
        Ok(())
    }

    fn arrow(&mut self, shard: &Shard, shard_number: usize) -> Result<()> {
        let path = &shard.path;
        let (mut reader, mut verifier) = arrow_reader(path, shard.local_path(), None)?;
        self.has_checksums = verifier.is_some();
        for number in 0..reader.num_batches() {
            match verifier
                .iter_mut()
                .try_for_each(|verifier| verifier.verify_next(path, self.records))
            {
                Ok(()) => self.records += arrow_batch(path, &mut reader, number)?.num_rows() as u64,
                Err(error) => self.add_fault(shard_number, error)?,
            }
        }
        Ok(())
    }

    fn text(&mut self, shard: &Shard) -> Result<()> {
        rows(shard)?.try_for_each(|batch| {
            self.records += batch?.num_rows() as u64;
            Ok(())
        })
    }

    /// Adds the error as a fault of the file, unless the machine failed.
    fn add_fault(&mut self, number: usize, error: Error) -> Result<()> {
        if error.is_machine() {
            return Err(error);
        }
        self.damage.add_record(Fault::of(number, error));
        Ok(())
    }
}
