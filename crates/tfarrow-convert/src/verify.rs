//! Whether Parquet and Arrow files are as they were written.

use std::{fs::File, io};

use arrow_ipc::reader::FileReader;
use tfarrow_dataset::{Contents, Fault, Losses, Shard};

use crate::{
    Error, Result,
    columnar::{ParquetFile, arrow_reader, guarded},
    parquet_rows,
};

/// What a Parquet or Arrow file was found to be.
#[derive(Debug)]
pub struct VerifiedFile {
    /// Records that are sound.
    pub records: u64,
    /// Whether it has checksums. Of one that has none, as others write them, all that is known is that it can be read.
    pub has_checksums: bool,
    /// What is wrong with it.
    pub losses: Losses,
}

/// Holds all parts of a file, the shard of this `number`, against their checksums, or reads it where it has none. What is
/// wrong with a part does not keep the next from being looked at, unless it is the library that reads it that gives up. Of
/// all faults, the first `most` are kept with their places.
///
/// # Errors
/// [A failure of the machine](tfarrow_dataset::Error::is_machine), which says nothing about the file.
pub fn verify(shard: &Shard, number: usize, most: usize) -> Result<VerifiedFile> {
    let mut file = VerifiedFile { records: 0, has_checksums: false, losses: Losses::new(most) };
    let read = match shard.contents {
        Contents::Parquet => file.parquet(shard, number),
        Contents::Arrow => file.arrow(shard, number),
        Contents::TfRecord => Err(Error::Usage(format!("{}: is TFRecord", shard.path.display()))),
    };
    if let Err(error) = read {
        file.note(shard, number, error)?;
    }
    Ok(file)
}

impl VerifiedFile {
    fn parquet(&mut self, shard: &Shard, shard_number: usize) -> Result<()> {
        let path = &shard.path;
        let parquet = ParquetFile::open(path, shard.local_path())?;
        let file = File::open(shard.local_path()).map_err(|e| Error::io(path, e))?;
        self.has_checksums = parquet.checks.is_some();
        for (number, group) in parquet.groups().iter().enumerate() {
            let checked = match &parquet.checks {
                Some(checks) => checks.check(path, &file, parquet.groups(), number),
                None => parquet_rows::rows(shard, &parquet, number..number + 1)?.try_for_each(|rows| rows.map(drop)),
            };
            match checked {
                Ok(()) => self.records = self.records.saturating_add(group.num_rows().max(0) as u64),
                Err(error) => self.note(shard, shard_number, error)?,
            }
        }
        Ok(())
    }

    fn arrow(&mut self, shard: &Shard, shard_number: usize) -> Result<()> {
        let path = &shard.path;
        let (mut reader, mut checks) = arrow_reader(path, shard.local_path(), None)?;
        self.has_checksums = checks.is_some();
        for number in 0..reader.num_batches() {
            match checks.iter_mut().try_for_each(|checks| checks.check_next(path, self.records)) {
                Ok(()) => self.records += guarded(path, || rows(&mut reader, number, shard))?,
                Err(error) => self.note(shard, shard_number, error)?,
            }
        }
        Ok(())
    }

    /// Notes why something was not read, unless the machine failed.
    fn note(&mut self, shard: &Shard, number: usize, error: Error) -> Result<()> {
        let error = match error {
            Error::Dataset(error) if error.is_machine() => return Err(error.into()),
            Error::Dataset(error) => error,
            Error::Parquet { source, .. } => tfarrow_dataset::Error::io(&shard.path, io::Error::other(source)),
            Error::Arrow { source, .. } => tfarrow_dataset::Error::io(&shard.path, io::Error::other(source)),
            error => tfarrow_dataset::Error::io(&shard.path, io::Error::other(error)),
        };
        self.losses.add_record(Fault::of(number, error));
        Ok(())
    }
}

/// Reads a batch, and says how many rows it has.
fn rows<R: io::Read + io::Seek>(reader: &mut FileReader<R>, number: usize, shard: &Shard) -> Result<u64> {
    let batch = reader.set_index(number).and_then(|()| reader.next().transpose());
    let batch = batch.map_err(|e| Error::arrow(&shard.path, e))?;
    Ok(batch.map_or(0, |batch| batch.num_rows()) as u64)
}
