//! The jobs of a dry run, which say what the jobs of a conversion would read and write.

use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use tfarrow_dataset::file_names::tf_shard_name;

use crate::{OutputCompression, output::Destination, worker::job::Naming};

/// A part of a conversion: some shards, and the outputs that their records are written to.
#[derive(Clone, Debug)]
pub struct PlannedJob {
    /// The shards, in the order of their records.
    pub sources: Vec<PlannedSource>,
    /// The outputs.
    pub outputs: PlannedOutputs,
    /// The compression of the outputs.
    pub compression: OutputCompression,
    /// The columns of the outputs; `None` if the records are copied.
    pub columns: Option<SchemaRef>,
}

/// A shard that a conversion would read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedSource {
    /// The path of the file, or the URL of the object.
    pub path: PathBuf,
    /// Its size as stored.
    pub bytes: u64,
}

/// The outputs of a part of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedOutputs {
    /// These files.
    Files(Vec<PathBuf>),
    /// Numbered shards, whose number depends on their size: a glob that matches their names.
    Numbered(PathBuf),
    /// The stream of the options.
    Stream,
}

impl PlannedOutputs {
    /// The outputs of a job.
    pub(super) fn of(naming: &Naming) -> Self {
        match naming {
            Naming::One(Destination::File(path)) => Self::Files(vec![path.clone()]),
            Naming::One(Destination::Stream) => Self::Stream,
            Naming::Set {
                folder,
                stem,
                extension,
                count: Some(count),
            } => {
                let files = (0..*count)
                    .map(|number| folder.join(tf_shard_name(stem, number, *count, extension)));
                Self::Files(files.collect())
            }
            Naming::Set {
                folder,
                stem,
                extension,
                count: None,
            } => Self::Numbered(folder.join(format!("{stem}-*-of-*.{extension}"))),
        }
    }

    /// The files whose names are known.
    pub fn files(&self) -> &[PathBuf] {
        match self {
            Self::Files(files) => files,
            Self::Numbered(_) | Self::Stream => &[],
        }
    }

    /// The names of the outputs: files, a glob, or `-` for the stream.
    pub fn names(&self) -> Vec<&Path> {
        match self {
            Self::Files(files) => files.iter().map(PathBuf::as_path).collect(),
            Self::Numbered(glob) => vec![glob.as_path()],
            Self::Stream => vec![Path::new("-")],
        }
    }
}
