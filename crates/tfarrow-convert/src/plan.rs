//! Which outputs a conversion makes, under which names: decided, and refused, before anything is written.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{self, Path, PathBuf},
};

use arrow_schema::SchemaRef;
use tfarrow_dataset::{Compression, Contents, Shard, existing, is_remote, names, names_in};

use crate::{ConvertOptions, Error, OutputCompression, Result, Target, folders::folder_of, output::Destination};

/// Metadata key of a file: the name of the shard that it was made of.
pub(crate) const SHARD: &str = "tfarrow.shard";
/// Metadata key of a file: how that shard was compressed.
pub(crate) const COMPRESSION: &str = "tfarrow.compression";

/// Where everything goes.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: Target,
    pub(crate) place: Place,
}

/// Where outputs go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// One file, or standard output.
    One(Destination, Option<Compression>),
    /// A folder.
    Folder(PathBuf),
}

impl Plan {
    /// What `dest` asks for.
    ///
    /// # Errors
    /// Where it cannot be: one file for many shards, or a format that nothing says.
    pub(crate) fn new(shards: &[Shard], dest: &Path, options: &ConvertOptions) -> Result<Self> {
        let said = Target::from_path(dest);
        let by_source = match shards.first().map(|shard| shard.contents) {
            Some(Contents::TfRecord) => Some(Target::Parquet),
            _ => None,
        };
        if dest == Path::new("-") {
            let target = options.to.or(by_source).ok_or_else(no_format)?;
            one_shard(shards, dest, options)?;
            return Ok(Self { target, place: Place::One(Destination::Stream, None) });
        }
        if dest.as_os_str().is_empty() {
            return Err(Error::Usage("the destination has an empty name".to_owned()));
        }
        if let Some(url) = dest.to_str().filter(|dest| dest.contains("://") && !is_remote(dest)) {
            let why = "no URL that is known: s3://bucket/.., gs://, az:// and abfs:// are, and paths of files";
            return Err(Error::Usage(format!("{url}: {why}")));
        }
        let is_folder = dest.is_dir() || dest.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR);
        match said.filter(|_| !is_folder) {
            Some((target, compression)) => {
                one_shard(shards, dest, options)?;
                if let (Some(named), Some(said)) = (compression, options.compression)
                    && !said.is_of(named)
                {
                    let (said, dest) = (said.name(), dest.display());
                    return Err(Error::Usage(format!(
                        "{dest}: is called {named}, and is to have the compression {said}"
                    )));
                }
                if options.to.is_some_and(|to| to != target) {
                    let (name, to) = (target.name(), options.to.map_or("", Target::name));
                    return Err(Error::Usage(format!("{}: a {name} file is not written as {to}", dest.display())));
                }
                Ok(Self { target, place: Place::One(Destination::File(dest.to_owned()), compression) })
            }
            None if !is_folder && let Some(hint) = unknown_extension(dest) => {
                let why = "no format is known by this extension";
                let way_out =
                    "known are .parquet, .arrow and .tfrecord; for a folder of this name, end it with a slash";
                Err(Error::Usage(format!("{}: {why}{hint}; {way_out}", dest.display())))
            }
            None => {
                let target = options.to.or(by_source).ok_or_else(no_format)?;
                Ok(Self { target, place: Place::Folder(dest.to_owned()) })
            }
        }
    }

    /// The compression of the outputs, of which that of TFRecord may still be the original's.
    pub(crate) fn compression(&self, options: &ConvertOptions) -> Result<OutputCompression> {
        let by_name = match &self.place {
            Place::One(_, Some(Compression::Gzip)) => Some(OutputCompression::Gzip),
            Place::One(_, Some(Compression::Zlib)) => Some(OutputCompression::Zlib),
            Place::One(..) | Place::Folder(_) => None,
        };
        let usual = if self.target == Target::Parquet { OutputCompression::Zstd } else { OutputCompression::None };
        let compression = options.compression.or(by_name).unwrap_or(usual);
        compression.check(self.target)?;
        Ok(compression)
    }
}

/// Extensions that are long enough to be mistyped, and how many letters of each may be.
const MISTYPED: &[(&str, usize)] = &[("parquet", 2), ("tfrecord", 2), ("tfrecords", 2), ("arrow", 1), ("feather", 1)];

/// What a destination that is no folder yet and has an unknown extension may have meant, as a hint: the extension is nearly
/// one that is known. `None` where the name has no extension: one that begins with a digit, as in `mnist-1.0`, is a version.
fn unknown_extension(dest: &Path) -> Option<String> {
    let own = dest.extension()?.to_string_lossy().to_ascii_lowercase();
    let first = own.chars().next().filter(|first| !first.is_ascii_digit())?;
    let is_near =
        |(known, most): &&(&str, usize)| known.starts_with(first) && strsim::osa_distance(&own, known) <= *most;
    let near = MISTYPED.iter().find(is_near);
    Some(near.map_or(String::new(), |(known, _)| format!(" (did you mean .{known}?)")))
}

fn no_format() -> Error {
    Error::Usage(
        "say what to convert to: --to parquet, tfrecord or arrow, or an output with such an extension".to_owned(),
    )
}

fn one_shard(shards: &[Shard], dest: &Path, options: &ConvertOptions) -> Result<()> {
    if shards.len() == 1 && options.reshard.is_none() {
        return Ok(());
    }
    let why = if options.reshard.is_some() { "new shards".to_owned() } else { format!("{} shards", shards.len()) };
    let format = if options.to.is_none() { ", and the format with --to" } else { "" };
    Err(Error::Usage(format!("{}: one file cannot take {why}; name a folder{format}", dest.display())))
}

/// What a Parquet or Arrow file remembers of the shard that it was made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) shard: Option<String>,
    pub(crate) compression: Option<Compression>,
}

impl Origin {
    pub(crate) fn of(schema: &SchemaRef) -> Self {
        let get = |key| schema.metadata().get(key);
        let compression = get(COMPRESSION).and_then(|name| Compression::from_name(name));
        Self { shard: get(SHARD).cloned(), compression }
    }

    /// The compression that the way back uses.
    pub(crate) fn resolve(&self, compression: OutputCompression) -> OutputCompression {
        match (compression, self.compression) {
            (OutputCompression::Original, Some(Compression::Gzip)) => OutputCompression::Gzip,
            (OutputCompression::Original, Some(Compression::Zlib)) => OutputCompression::Zlib,
            (OutputCompression::Original, _) => OutputCompression::None,
            (other, _) => other,
        }
    }

    /// The name of the output made of `shard`, in its folder.
    pub(crate) fn output_name(&self, shard: &Shard, target: Target, compression: Compression) -> PathBuf {
        let original = self.shard.as_deref().filter(|_| target == Target::TfRecord);
        let was = self.compression.unwrap_or(Compression::None);
        let restored = original.and_then(|name| names::original_name(&shard.name, name, was, compression));
        restored.unwrap_or_else(|| {
            let suffix = if target == Target::TfRecord { compression.suffix() } else { "" };
            names::output_name(&shard.name, &format!("{}{suffix}", target.name()))
        })
    }
}

/// Refuses two outputs of one name, and outputs that are there already, unless they are to be replaced, or compared with
/// what a conversion makes that is resumed.
pub(crate) fn check_outputs(outputs: &[(&Shard, PathBuf)], options: &ConvertOptions) -> Result<()> {
    let mut taken: HashMap<&Path, &Shard> = HashMap::new();
    for (shard, output) in outputs {
        if let Some(other) = taken.insert(output, shard) {
            let (one, two, output) = (other.path.display(), shard.path.display(), output.display());
            return Err(Error::Usage(format!(
                "{one} and {two} would both become {output}; convert them to two folders"
            )));
        }
    }
    if options.overwrite || options.resume {
        return Ok(());
    }
    let outputs: Vec<_> = outputs.iter().map(|(_, output)| output.as_path()).collect();
    let there = existing(&outputs)?;
    match there.first() {
        None => Ok(()),
        Some(first) => {
            let more = if there.len() > 1 { format!(" (and {} more outputs)", there.len() - 1) } else { String::new() };
            let way_out = "--overwrite replaces it";
            Err(Error::Usage(format!("{}{more}: is there already; {way_out}", first.display())))
        }
    }
}

/// Refuses to write where a source is.
pub(crate) fn check_no_source<'p>(shards: &[Shard], places: impl IntoIterator<Item = &'p Path>) -> Result<()> {
    let sources = shards.iter().filter(|shard| !shard.is_stream() && !shard.is_remote());
    let sources: HashSet<_> = sources.filter_map(|shard| fs::canonicalize(&shard.path).ok()).collect();
    let is_source = |path: &&Path| fs::canonicalize(path).is_ok_and(|path| sources.contains(&path));
    match places.into_iter().find(is_source) {
        Some(path) => Err(Error::Usage(format!("{}: is a source; name another place", path.display()))),
        None => Ok(()),
    }
}

/// Refuses a quarantine where an output is to be.
pub(crate) fn check_quarantine(quarantine: Option<&Path>, outputs: &[Destination]) -> Result<()> {
    let own = quarantine.map(place_of);
    match outputs.iter().filter_map(Destination::file).find(|path| Some(place_of(path)) == own) {
        Some(path) => Err(quarantine_is_output(path)),
        None => Ok(()),
    }
}

/// Refuses a quarantine that has the name of a shard of the set that is to be cut.
pub(crate) fn check_quarantine_of_set(
    quarantine: Option<&Path>,
    folder: &Path,
    stem: &str,
    extension: &str,
) -> Result<()> {
    let Some(quarantine) = quarantine else { return Ok(()) };
    let name = quarantine.file_name().unwrap_or_default();
    let is_shard = name.to_str().is_some_and(|name| names::tf_shard_number(name, stem, extension).is_some());
    if is_shard && place_of(&folder.join(name)) == place_of(quarantine) {
        return Err(quarantine_is_output(quarantine));
    }
    Ok(())
}

fn quarantine_is_output(path: &Path) -> Error {
    Error::Usage(format!("{}: is to be an output, and cannot be the quarantine", path.display()))
}

/// The place of a file that may not be there yet, without symbolic links in its folder.
fn place_of(path: &Path) -> PathBuf {
    let folder = fs::canonicalize(folder_of(path)).ok();
    let place = folder.zip(path.file_name()).map(|(folder, name)| folder.join(name));
    place.or_else(|| path::absolute(path).ok()).unwrap_or_else(|| path.to_owned())
}

/// The number of shards of the set that `folder` holds already, as their names say; `None` where it holds none of it.
pub(crate) fn cut_of(folder: &Path, stem: &str, extension: &str) -> Result<Option<usize>> {
    let names = names_in(folder)?;
    let number = |name: &PathBuf| names::tf_shard_number(name.to_str()?, stem, extension);
    Ok(names.iter().find_map(number).map(|(_, of)| of))
}

/// Refuses new shards beside those of the same name that were cut otherwise: whoever reads the folder would read both.
/// `count` is how many new ones there will be, where that is known.
pub(crate) fn check_other_cuts(folder: &Path, stem: &str, extension: &str, count: Option<usize>) -> Result<()> {
    for name in names_in(folder)? {
        let number = name.to_str().and_then(|name| names::tf_shard_number(name, stem, extension));
        if number.is_some_and(|(_, of)| count != Some(of)) {
            let path = folder.join(name);
            let why = "is a shard of another cut of the same set; remove it, or name another folder";
            return Err(Error::Usage(format!("{}: {why}", path.display())));
        }
    }
    Ok(())
}
