//! Whether Parquet and Arrow files are as they were written.

use std::{fs::File, io};

use arrow_ipc::reader::FileReader;
use tfarrow_dataset::{Contents, Shard};

use crate::{
    Error, Result, checksums,
    columnar::{arrow_reader, guarded, parquet_metadata},
    parquet_rows,
};

/// What a Parquet or Arrow file was found to be.
#[derive(Debug, Default)]
pub struct VerifiedFile {
    /// Records that are sound.
    pub records: u64,
    /// Whether it has checksums. Of one that has none, as others write them, all that is known is that it can be read.
    pub has_checksums: bool,
    /// What is wrong with it, in its order.
    pub faults: Vec<tfarrow_dataset::Error>,
}

/// Holds all parts of a file against their checksums, or reads it where it has none. What is wrong with a part does not keep
/// the next from being looked at, unless it is the library that reads it that gives up.
pub fn verify(shard: &Shard) -> VerifiedFile {
    let mut file = VerifiedFile::default();
    let read = match shard.contents {
        Contents::Parquet => file.parquet(shard),
        Contents::Arrow => file.arrow(shard),
        Contents::TfRecord => Err(Error::Usage(format!("{}: is TFRecord", shard.path.display()))),
    };
    file.note(shard, read.map(|()| 0));
    file
}

impl VerifiedFile {
    fn parquet(&mut self, shard: &Shard) -> Result<()> {
        let path = &shard.path;
        let metadata = parquet_metadata(path, shard.local_path())?;
        let file = File::open(shard.local_path()).map_err(|e| Error::io(path, e))?;
        self.has_checksums = checksums::has_checksums(path, &file, metadata.metadata())?;
        for number in 0..metadata.metadata().num_row_groups() {
            let checked = match self.has_checksums {
                true => guarded(path, || checksums::check_row_group(path, &file, metadata.metadata(), number)),
                false => parquet_rows::rows(shard, &metadata, number..number + 1)?.try_for_each(|rows| rows.map(drop)),
            };
            let rows = metadata.metadata().row_group(number).num_rows();
            self.note(shard, checked.map(|()| rows.max(0) as u64));
        }
        Ok(())
    }

    fn arrow(&mut self, shard: &Shard) -> Result<()> {
        let path = &shard.path;
        let (mut reader, mut checks) = arrow_reader(path, shard.local_path(), None)?;
        self.has_checksums = checks.is_some();
        for number in 0..reader.num_batches() {
            match checks.iter_mut().try_for_each(|checks| checks.check_next(path, self.records)) {
                Ok(()) => self.records += guarded(path, || rows(&mut reader, number, shard))?,
                Err(error) => self.note(shard, Err(error)),
            }
        }
        Ok(())
    }

    /// Counts the records of what was read, or notes why it was not.
    fn note(&mut self, shard: &Shard, read: Result<u64>) {
        match read {
            Ok(records) => self.records += records,
            Err(Error::Dataset(error)) => self.faults.push(error),
            Err(error) => {
                let why = match error {
                    Error::Parquet { source, .. } => io::Error::other(source),
                    Error::Arrow { source, .. } => io::Error::other(source),
                    error => io::Error::other(error),
                };
                self.faults.push(tfarrow_dataset::Error::io(&shard.path, why));
            }
        }
    }
}

/// Reads a batch, and says how many rows it has.
fn rows<R: io::Read + io::Seek>(reader: &mut FileReader<R>, number: usize, shard: &Shard) -> Result<u64> {
    let batch = reader.set_index(number).and_then(|()| reader.next().transpose());
    let batch = batch.map_err(|e| Error::arrow(&shard.path, e))?;
    Ok(batch.map_or(0, |batch| batch.num_rows()) as u64)
}
