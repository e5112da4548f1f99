//! The files of records without a partner: TFRecord files that are complete or absent.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use tfarrow_codec::frame;
use tfarrow_dataset::{Compression, OutputFile, ShardWriter, internals::existing};

use super::report::DiffOptions;
use crate::{Error, Result, Target};

/// The files of the left and of the right data set.
pub(super) struct Unmatched {
    files: [Option<UnmatchedFile>; 2],
    overwrite: bool,
}

/// A file of records, which is created with the first record.
struct UnmatchedFile {
    path: PathBuf,
    writer: Option<ShardWriter<OutputFile>>,
}

impl Unmatched {
    /// The files of the options. None is created yet.
    ///
    /// # Errors
    /// [`Error::Usage`] for a path that cannot be a TFRecord file, or is given twice;
    /// [`Error::Exists`].
    pub(super) fn new(options: &DiffOptions) -> Result<Self> {
        let paths: Vec<&Path> = options
            .unmatched
            .iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect();
        paths.iter().try_for_each(|path| check_path(path))?;
        if let [one, other] = paths[..]
            && one == other
        {
            let why = "is the file for unmatched records of both data sets; name two files";
            return Err(Error::Usage(format!("{}: {why}", one.display())));
        }
        let existing = if options.overwrite {
            Vec::new()
        } else {
            existing(&paths)?
        };
        if let Some(first) = existing.first() {
            return Err(Error::Exists {
                path: first.to_path_buf(),
                others: existing.len() - 1,
            });
        }
        let files = options.unmatched.clone().map(|path| {
            Some(UnmatchedFile {
                path: path?,
                writer: None,
            })
        });
        Ok(Self {
            files,
            overwrite: options.overwrite,
        })
    }

    /// Adds a record of the left data set, which is side 0, or of the right one.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn add(&mut self, side: usize, data: &[u8]) -> Result<()> {
        let Some(file) = self.files.get_mut(side).and_then(Option::as_mut) else {
            return Ok(());
        };
        let writer = match &mut file.writer {
            Some(writer) => writer,
            None => {
                let output = OutputFile::create(&file.path, self.overwrite)?;
                let (_, compression) = Compression::of_name(file.path.to_str().unwrap_or_default());
                file.writer
                    .insert(ShardWriter::new(output, compression.unwrap_or_default()))
            }
        };
        let mut bytes = Vec::new();
        frame::write(data, &mut bytes);
        writer
            .write_all(&bytes)
            .map_err(|e| Error::io(&file.path, e))
    }

    /// Completes the files, which now get their names. An existing file is removed if it is to be
    /// replaced and there are no records for it.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn finish(self) -> Result<()> {
        for UnmatchedFile { path, writer } in self.files.into_iter().flatten() {
            match writer {
                Some(writer) => writer
                    .finish()
                    .map_err(|e| Error::io(&path, e))?
                    .persist()?,
                None if self.overwrite && path.is_file() => {
                    std::fs::remove_file(&path).map_err(|e| Error::io(&path, e))?
                }
                None => {}
            }
        }
        Ok(())
    }
}

fn check_path(path: &Path) -> Result<()> {
    let refuse = |why: String| Err(Error::Usage(format!("{}: {why}", path.display())));
    match Target::from_path(path) {
        _ if path == Path::new("-") || path.file_name().is_none() || path.is_dir() => {
            refuse("unmatched records need a file".to_owned())
        }
        Some((target, _)) if target != Target::TfRecord => refuse(format!(
            "unmatched records are written to a TFRecord file, but the name says {}",
            target.name()
        )),
        _ => Ok(()),
    }
}
