//! The plan of a conversion: its output format, the names of its outputs, and the checks before
//! anything is written.
//!
//! ```text
//! destination, options ─▶ Plan ─▶ Conversion (setup.rs) ─▶ columns (columns.rs) ─▶ jobs (jobs.rs) ─▶ worker::job::run
//!                         place   outputs, properties                              route, units,
//!                         format  of the sources                                   names, journal
//! ```

use std::{
    collections::{HashMap, HashSet},
    fs,
    ops::Range,
    path::{self, Path, PathBuf},
};

use tfarrow_dataset::{
    Compression, Shard, ShardFormat, file_names,
    internals::{existing, is_remote, names_in},
};

use crate::{
    ConvertOptions, Error, OutputCompression, Result, Target, earlier::Earlier,
    journal::folders::folder_of, output::Destination,
};

mod choice;
mod columns;
pub(crate) mod fingerprint;
pub(crate) mod folders;
mod jobs;
mod origin;
pub(crate) mod part;
pub(crate) mod planned;
pub(crate) mod setup;

/// The format and the place of the outputs, and the shards that this run converts.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: Target,
    pub(crate) place: OutputPlace,
    /// The numbers of the shards that are converted: all, or those of a part.
    pub(crate) own: Range<usize>,
}

/// The place of the outputs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OutputPlace {
    /// One file or stream for all shards, and the compression of TFRecord that its name has.
    One(Destination, Option<Compression>),
    /// A folder.
    Folder(PathBuf),
}

impl Plan {
    /// The plan for the destination `dest` and the shards of these numbers.
    ///
    /// # Errors
    /// [`Error::Usage`] for one file for new shards, an unknown format, or a name that contradicts
    /// the options.
    pub(crate) fn new(
        shards: &[Shard],
        own: Range<usize>,
        dest: &Path,
        options: &ConvertOptions,
    ) -> Result<Self> {
        let (target, place) = Self::place(shards, dest, options)?;
        let plan = Self { target, place, own };
        part::check(shards, &plan, options)?;
        Ok(plan)
    }

    fn place(
        shards: &[Shard],
        dest: &Path,
        options: &ConvertOptions,
    ) -> Result<(Target, OutputPlace)> {
        let by_name = Target::from_path(dest);
        let by_source = match shards.first().map(|shard| shard.format) {
            Some(ShardFormat::TfRecord) => Some(Target::Parquet),
            _ => None,
        };
        if dest == Path::new("-") {
            let target = options.to.or(by_source).ok_or_else(no_format)?;
            no_new_shards(dest, options)?;
            return Ok((target, OutputPlace::One(Destination::Stream, None)));
        }
        if dest.as_os_str().is_empty() {
            return Err(Error::Usage(
                "the name of the destination is empty".to_owned(),
            ));
        }
        if let Some(url) = dest
            .to_str()
            .filter(|dest| dest.contains("://") && !is_remote(dest))
        {
            let why = "no URL that is known: s3://bucket/.., gs://, az:// and abfs:// are, and paths of files";
            return Err(Error::Usage(format!("{url}: {why}")));
        }
        let is_folder =
            dest.is_dir() || dest.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR);
        match by_name.filter(|_| !is_folder) {
            Some((target, compression)) => {
                no_new_shards(dest, options)?;
                check_name(dest, (target, compression), options)?;
                Ok((
                    target,
                    OutputPlace::One(Destination::File(dest.to_owned()), compression),
                ))
            }
            None if !is_folder && let Some(hint) = unknown_extension(dest) => {
                let why = "no format is known by this extension";
                let remedy = "known are .parquet, .arrow and .tfrecord; for a folder of this name, end it with a slash";
                Err(Error::Usage(format!(
                    "{}: {why}{hint}; {remedy}",
                    dest.display()
                )))
            }
            None => {
                let target = options.to.or(by_source).ok_or_else(no_format)?;
                Ok((target, OutputPlace::Folder(dest.to_owned())))
            }
        }
    }

    /// The compression of the outputs. That of TFRecord may be `Original`, which each source
    /// resolves.
    ///
    /// # Errors
    /// [`Error::Usage`] for a compression that the format does not have, and a level that the
    /// compression does not have.
    pub(crate) fn compression(&self, options: &ConvertOptions) -> Result<OutputCompression> {
        let by_name = match &self.place {
            OutputPlace::One(_, Some(Compression::Gzip)) => Some(OutputCompression::Gzip),
            OutputPlace::One(_, Some(Compression::Zlib)) => Some(OutputCompression::Zlib),
            OutputPlace::One(_, Some(Compression::Snappy)) => Some(OutputCompression::Snappy),
            OutputPlace::One(..) | OutputPlace::Folder(_) => None,
        };
        let default = if self.target == Target::Parquet {
            OutputCompression::Zstd
        } else {
            OutputCompression::None
        };
        let compression = options.compression.or(by_name).unwrap_or(default);
        compression.check(self.target, options.compression_level)?;
        Ok(compression)
    }
}

/// Checks that the format and the compression in the name of the output are those of the options.
fn check_name(
    dest: &Path,
    (target, compression): (Target, Option<Compression>),
    options: &ConvertOptions,
) -> Result<()> {
    if let (Some(named), Some(wanted)) = (compression, options.compression)
        && !wanted.is_of(named)
    {
        let wanted = wanted.name();
        let dest = dest.display();
        return Err(Error::Usage(format!(
            "{dest}: the name says {named}, but the compression option is {wanted}"
        )));
    }
    match options.to {
        Some(to) if to != target => {
            let name = target.name();
            let to = to.name();
            Err(Error::Usage(format!(
                "{}: the name says {name}, but the output format is {to}",
                dest.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Extensions that are long enough for a spelling correction, and the maximum number of wrong
/// letters in each.
const CORRECTIONS: &[(&str, usize)] = &[
    ("parquet", 2),
    ("tfrecord", 2),
    ("tfrecords", 2),
    ("arrow", 1),
    ("feather", 1),
];

/// A hint about the unknown extension of a destination: the correct spelling, or nothing. `None` if
/// the name has no extension, or one that begins with a digit: that is a version, as in
/// `mnist-1.0`.
fn unknown_extension(dest: &Path) -> Option<String> {
    let extension = dest.extension()?.to_string_lossy().to_ascii_lowercase();
    let first = extension
        .chars()
        .next()
        .filter(|first| !first.is_ascii_digit())?;
    let near = CORRECTIONS.iter().find(|(known, max)| {
        known.starts_with(first) && strsim::osa_distance(&extension, known) <= *max
    });
    Some(near.map_or(String::new(), |(known, _)| {
        format!(" (did you mean .{known}?)")
    }))
}

fn no_format() -> Error {
    Error::NoFormat(
        "the output format is not known: name an output that ends in .parquet, .arrow or .tfrecord"
            .to_owned(),
    )
}

/// Checks that the output, which is one file, is not cut into new shards or splits.
fn no_new_shards(dest: &Path, options: &ConvertOptions) -> Result<()> {
    let what = match (options.reshard, options.splits.is_empty()) {
        (None, true) => return Ok(()),
        (Some(_), _) => "new shards",
        (None, false) => "splits",
    };
    Err(Error::Usage(format!(
        "{}: one file cannot hold {what}; name a folder",
        dest.display()
    )))
}

/// Checks that no two outputs have the same name, and that none exists, if existing outputs are an
/// error.
pub(crate) fn check_outputs(outputs: &[(&Shard, PathBuf)], options: &ConvertOptions) -> Result<()> {
    let mut taken: HashMap<&Path, &Shard> = HashMap::new();
    for (shard, output) in outputs {
        if let Some(other) = taken.insert(output, shard) {
            let one = other.path.display();
            let two = shard.path.display();
            let output = output.display();
            return Err(Error::Usage(format!(
                "{one} and {two} would both be written to {output}; convert them to two folders"
            )));
        }
    }
    if options.earlier() != Earlier::Refused {
        return Ok(());
    }
    let outputs: Vec<_> = outputs.iter().map(|(_, output)| output.as_path()).collect();
    let existing = existing(&outputs)?;
    match existing.first() {
        None => Ok(()),
        Some(first) => Err(Error::Exists {
            path: first.to_path_buf(),
            others: existing.len() - 1,
        }),
    }
}

/// Checks that no output is a source.
pub(crate) fn check_no_source<'p>(
    shards: &[Shard],
    outputs: impl IntoIterator<Item = &'p Path>,
) -> Result<()> {
    let mut sources = HashSet::new();
    for shard in shards {
        if !shard.is_stream()
            && !shard.is_remote()
            && let Ok(path) = fs::canonicalize(&shard.path)
        {
            sources.insert(path);
        }
    }
    for output in outputs {
        if fs::canonicalize(output).is_ok_and(|path| sources.contains(&path)) {
            return Err(Error::Usage(format!(
                "{}: is a source; name another output",
                output.display()
            )));
        }
    }
    Ok(())
}

/// Checks that the quarantine is not an output.
pub(crate) fn check_quarantine(
    quarantine: Option<&Path>,
    outputs: &[(Range<usize>, Destination)],
) -> Result<()> {
    let quarantine = quarantine.map(resolved);
    let mut files = outputs.iter().filter_map(|(_, output)| output.file());
    match files.find(|path| Some(resolved(path)) == quarantine) {
        Some(path) => Err(quarantine_is_output(path)),
        None => Ok(()),
    }
}

/// Checks that the quarantine does not have the name of a new shard.
pub(crate) fn check_quarantine_of_set(
    quarantine: Option<&Path>,
    folder: &Path,
    stem: &str,
    extension: &str,
) -> Result<()> {
    let Some(quarantine) = quarantine else {
        return Ok(());
    };
    let name = quarantine.file_name().unwrap_or_default();
    let is_shard = name
        .to_str()
        .is_some_and(|name| file_names::tf_shard_number(name, stem, extension).is_some());
    if is_shard && resolved(&folder.join(name)) == resolved(quarantine) {
        return Err(quarantine_is_output(quarantine));
    }
    Ok(())
}

fn quarantine_is_output(path: &Path) -> Error {
    Error::Usage(format!(
        "{}: is an output, and cannot be the quarantine; name another file",
        path.display()
    ))
}

/// The absolute path of a file that may not exist, without symbolic links in its folder.
fn resolved(path: &Path) -> PathBuf {
    let folder = fs::canonicalize(folder_of(path)).ok();
    let resolved = folder
        .zip(path.file_name())
        .map(|(folder, name)| folder.join(name));
    resolved
        .or_else(|| path::absolute(path).ok())
        .unwrap_or_else(|| path.to_owned())
}

/// The number of shards in the set of this name in `folder`, from the name of one of them; `None`
/// if there is none.
pub(crate) fn existing_count(folder: &Path, stem: &str, extension: &str) -> Result<Option<usize>> {
    for name in names_in(folder)? {
        if let Some(name) = name.to_str()
            && let Some((_, of)) = file_names::tf_shard_number(name, stem, extension)
        {
            return Ok(Some(of));
        }
    }
    Ok(None)
}

/// Checks that `folder` has no shards of a set of the same name and another number of shards: a
/// reader of the folder would read both sets. `count` is the number of new shards, if it is known.
pub(crate) fn check_other_shards(
    folder: &Path,
    stem: &str,
    extension: &str,
    count: Option<usize>,
) -> Result<()> {
    for name in names_in(folder)? {
        let number = name
            .to_str()
            .and_then(|name| file_names::tf_shard_number(name, stem, extension));
        if number.is_some_and(|(_, of)| count != Some(of)) {
            let path = folder.join(name);
            let why =
                "is a shard of an existing set of the same name; remove it, or name another folder";
            return Err(Error::Usage(format!("{}: {why}", path.display())));
        }
    }
    Ok(())
}
