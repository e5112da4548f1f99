//! From what a user names to the shards there are: files, folders, globs and standard input.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
};

use percent_encoding::percent_decode_str;
use walkdir::{DirEntry, WalkDir};

use crate::{
    Contents, Error, ErrorKind, PassedOver, Result, Shard,
    glob::Glob,
    looks,
    names::{is_bare_shard, says_tfrecord},
    natural, remote,
    shard::STDIN,
    spec::ShardSpec,
};

/// Suffixes of files that stand beside shards and are none.
const BESIDE: &[&str] = &["json", "txt", "index"];

/// What is looked for in folders and globs. A file that is named as it is is always taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// In each source TFRecord where there is any, else Parquet and Arrow.
    #[default]
    Any,
    /// TFRecord alone.
    TfRecord,
    /// Parquet and Arrow.
    Columnar,
    /// Every file, whatever it holds: nothing is looked into, and [`Shard::contents`] says nothing.
    Files,
}

impl Wanted {
    pub(crate) fn takes(self, contents: Contents) -> bool {
        match self {
            Self::Any | Self::Files => true,
            Self::TfRecord => contents == Contents::TfRecord,
            Self::Columnar => contents != Contents::TfRecord,
        }
    }

    /// Leaves TFRecord alone of what a folder holds, where it holds any: the rest may be copies of the same data.
    pub(crate) fn prefer(self, shards: &mut Vec<Shard>) {
        let is_tfrecord = |shard: &Shard| shard.contents == Contents::TfRecord;
        if self == Self::Any && shards.iter().any(is_tfrecord) {
            shards.retain(is_tfrecord);
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any => "TFRecord, Parquet or Arrow",
            Self::TfRecord => "TFRecord",
            Self::Columnar => "Parquet or Arrow",
            Self::Files => "one that is not empty",
        }
    }
}

/// The shards that `sources` name, in their order, and of one source in natural order of the paths. See [`resolve_wanted`], of which this takes
/// [`Wanted::Any`].
///
/// # Errors
/// As there.
pub fn resolve<S: AsRef<OsStr>>(sources: &[S]) -> Result<Vec<Shard>> {
    resolve_wanted(sources, Wanted::Any)
}

/// The shards that `sources` name, in their order, and of one source in natural order of the paths.
///
/// A source is one of these, the first that fits:
/// - `-`: standard input.
/// - A URL: what it names in a store, likewise; of a web server, one file; `file:///..`, a path.
/// - A file: taken whatever it holds, an empty one as a shard of no records.
/// - A folder: the files in it and below, by what they hold. A file that is called TFRecord, or numbered as its shards
///   are, and holds something else is taken too, as is one that has a sound record behind a damaged one, so that damage is
///   not passed over in silence. Links to folders inside the source are not
///   followed, since what they lead to is found without them.
/// - A shard spec, `train@10` or `train@10.tfrecord`: the shards `train-00000-of-00010` to `train-00009-of-00010`,
///   whatever their names end in. All of them have to be there; an empty one is a shard of no records.
/// - A glob (`* ? [..] {a,b} **`): the files that match it, and the folders that do, as above.
///
/// In folders and globs are passed over: names that begin with `_` or `.` (of files and folders, unless the glob asks
/// for them), `*.json`, `*.txt`, `*.index`, empty files, and what is no plain file. A file that two sources name is
/// taken once.
///
/// # Errors
/// A source that names no shard, with where it was looked; what the system says.
pub fn resolve_wanted<S: AsRef<OsStr>>(sources: &[S], wanted: Wanted) -> Result<Vec<Shard>> {
    if sources.is_empty() {
        return Err(Error::general(ErrorKind::Usage("nothing to read: no source is named")));
    }
    let mut shards = Vec::new();
    let mut seen = HashSet::new();
    for source in sources {
        let mut found = find(source.as_ref(), wanted)?;
        found.sort_by(|a, b| natural::compare(&a.path, &b.path));
        if sources.len() == 1 {
            shards = found;
        } else {
            add_new(found, &mut shards, &mut seen)?;
        }
    }
    Ok(shards)
}

/// Adds the shards that no source before has named. Two names of one file inside one source both stay: a store that
/// keeps equal files once shows equal shards so.
fn add_new(found: Vec<Shard>, shards: &mut Vec<Shard>, seen: &mut HashSet<PathBuf>) -> Result<()> {
    let mut here = Vec::new();
    for shard in found {
        let identity = if shard.is_stream() || shard.is_remote() {
            shard.path.clone()
        } else {
            fs::canonicalize(&shard.path).map_err(|error| Error::io(&shard.path, error))?
        };
        if !seen.contains(&identity) {
            here.push(identity);
            shards.push(shard);
        }
    }
    seen.extend(here);
    Ok(())
}

fn find(source: &OsStr, wanted: Wanted) -> Result<Vec<Shard>> {
    if source.is_empty() {
        return Err(Error::general(ErrorKind::Usage("nothing to read: a source has an empty name")));
    }
    if source == STDIN {
        return Ok(vec![Shard::stream(STDIN.into(), "stdin".into())]);
    }
    if let Some(url) = source.to_str().filter(|source| remote::is_remote(source)) {
        return remote::find(url, wanted);
    }
    let file = source.to_str().and_then(file_of_url);
    let source = file.as_deref().map_or(source, OsStr::new);
    let path = Path::new(source);
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => find_in_folder(path, wanted),
        Ok(metadata) => Ok(vec![named_file(path, &metadata)?]),
        Err(error) => match source.to_str() {
            Some(pattern) if Glob::is_glob(pattern) => find_by_glob(pattern, wanted),
            text => match text.and_then(ShardSpec::parse) {
                Some(spec) => find_by_spec(&spec),
                None if text.is_some_and(|text| text.contains("://")) => Err(remote::usage(path, remote::UNKNOWN)),
                None => Err(Error::io(path, error)),
            },
        },
    }
}

/// The path that a `file:` URL is of. What in it looks like a glob is one.
fn file_of_url(source: &str) -> Option<String> {
    let path = source.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    path.starts_with('/').then(|| percent_decode_str(path).decode_utf8_lossy().into_owned())
}

fn find_by_spec(spec: &ShardSpec<'_>) -> Result<Vec<Shard>> {
    let file = |path: PathBuf| {
        let metadata = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
        named_file(&path, &metadata)
    };
    spec.files()?.into_iter().map(file).collect()
}

fn named_file(path: &Path, metadata: &Metadata) -> Result<Shard> {
    let name = path.file_name().map_or_else(|| "records".into(), PathBuf::from);
    if !metadata.is_file() {
        return Ok(Shard::stream(path.to_owned(), name));
    }
    let contents = Contents::of(path)?.unwrap_or(Contents::TfRecord);
    Ok(Shard::file(path.to_owned(), name, metadata.len(), contents))
}

fn find_in_folder(folder: &Path, wanted: Wanted) -> Result<Vec<Shard>> {
    let mut search = Search::new(folder, wanted);
    search.folder(folder)?;
    let looked = format!("no {} file in this folder or below it", wanted.name());
    search.finish(folder, looked)
}

fn find_by_glob(pattern: &str, wanted: Wanted) -> Result<Vec<Shard>> {
    let glob = Glob::new(pattern).map_err(|error| Error::new(pattern, ErrorKind::Glob(error)))?;
    let mut search = Search::new(&glob.prefix, wanted);
    let start = if glob.prefix.as_os_str().is_empty() { Path::new(".") } else { &glob.prefix };
    if !start.is_dir() {
        let looked = format!("{} is no folder", start.display());
        return search.finish(Path::new(pattern), looked);
    }
    search.glob(start, &glob)?;
    let place = if start == Path::new(".") { "this folder".to_owned() } else { start.display().to_string() };
    let looked = match (search.files, search.matched) {
        (0, _) => format!("{place} holds no file"),
        (files, 0) => format!("none of {files} files in {place} matches"),
        (_, matched) => format!("of {matched} files that match in {place}, none is {}", wanted.name()),
    };
    search.finish(Path::new(pattern), looked)
}

/// How a file was found.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    InFolder,
    ByGlob,
}

/// What one source was found to name so far.
struct Search {
    /// What names are relative to.
    base: PathBuf,
    wanted: Wanted,
    shards: Vec<Shard>,
    passed_over: PassedOver,
    /// Files looked at, and those of them that match the glob.
    files: u64,
    matched: u64,
    /// A glob names a file of another format than TFRecord.
    names_others: bool,
}

impl Search {
    fn new(base: &Path, wanted: Wanted) -> Self {
        Self {
            base: plain(base),
            wanted,
            shards: Vec::new(),
            passed_over: PassedOver::default(),
            files: 0,
            matched: 0,
            names_others: false,
        }
    }

    /// Takes what is in a folder and below.
    fn folder(&mut self, folder: &Path) -> Result<()> {
        let root = fs::canonicalize(folder).map_err(|error| Error::io(folder, error))?;
        let mut walk = walk(folder, usize::MAX);
        while let Some(entry) = next_entry(&mut walk, |path| !is_hidden(path) && !stands_beside(path))? {
            if entry.depth() == 0 {
                continue;
            }
            if is_hidden(entry.path()) {
                self.pass_by_name(&entry, &mut walk);
            } else if !entry.file_type().is_dir() {
                self.file(&entry, Found::InFolder)?;
            } else if entry.path_is_symlink() && leads_into(entry.path(), &root)? {
                walk.skip_current_dir();
            }
        }
        Ok(())
    }

    /// Takes the files and folders below `start` that match.
    fn glob(&mut self, start: &Path, glob: &Glob) -> Result<()> {
        let hides = |first| !glob.asks_for(first);
        let (underscore, dot) = (hides('_'), hides('.'));
        let mut walk = walk(start, glob.depth());
        let below = |path: &Path| path.strip_prefix(start).unwrap_or(path).to_owned();
        while let Some(entry) = next_entry(&mut walk, |path| glob.matches(&below(path)))? {
            let below = below(entry.path());
            if entry.depth() == 0 {
                continue;
            }
            let name = entry.file_name();
            if underscore && begins_with(name, '_') || dot && begins_with(name, '.') {
                self.pass_by_name(&entry, &mut walk);
            } else if entry.file_type().is_dir() {
                if !glob.is_deep() && glob.matches(&below) {
                    walk.skip_current_dir();
                    self.folder(&plain(entry.path()))?;
                }
            } else {
                self.files += 1;
                if glob.matches(&below) {
                    self.matched += 1;
                    self.file(&entry, Found::ByGlob)?;
                }
            }
        }
        Ok(())
    }

    fn pass_by_name(&mut self, entry: &DirEntry, walk: &mut walkdir::IntoIter) {
        self.passed_over.by_name += 1;
        if entry.file_type().is_dir() {
            walk.skip_current_dir();
        }
    }

    fn file(&mut self, entry: &DirEntry, found: Found) -> Result<()> {
        let path = plain(entry.path());
        if self.wanted != Wanted::Files && stands_beside(&path) {
            self.passed_over.by_name += 1;
            return Ok(());
        }
        // A pipe or a device would hold up whoever looks into it.
        if !entry.file_type().is_file() {
            self.pass_over(path, |over| &mut over.other);
            return Ok(());
        }
        let size = entry.metadata().map_err(|error| walk_error(&path, error))?.len();
        if size == 0 {
            self.passed_over.empty += 1;
            return Ok(());
        }
        let known = if self.wanted == Wanted::Files { Some(Contents::TfRecord) } else { Contents::of(&path)? };
        let contents = match known {
            Some(contents) => contents,
            None if found == Found::ByGlob || says_tfrecord(&path) || is_bare_shard(&path) => Contents::TfRecord,
            None if Contents::is_behind_damage(&path)? => Contents::TfRecord,
            None => {
                self.pass_over(path, |over| &mut over.other);
                return Ok(());
            }
        };
        self.names_others |= found == Found::ByGlob && contents != Contents::TfRecord;
        if self.wanted.takes(contents) {
            let name = path.strip_prefix(&self.base).unwrap_or(&path).to_owned();
            self.shards.push(Shard::file(path, name, size, contents));
        } else {
            self.pass_over(path, |over| &mut over.unwanted);
        }
        Ok(())
    }

    fn pass_over(&mut self, path: PathBuf, count: impl Fn(&mut PassedOver) -> &mut u64) {
        *count(&mut self.passed_over) += 1;
        self.passed_over.example.get_or_insert(path);
    }

    fn finish(mut self, source: &Path, looked: String) -> Result<Vec<Shard>> {
        if self.shards.is_empty() {
            let mut passed_over = self.passed_over;
            passed_over.looks_like = passed_over.example.as_deref().and_then(looks::known_file);
            return Err(Error::new(source, ErrorKind::NoShards { looked, passed_over }));
        }
        // A glob means what it names.
        if !self.names_others {
            self.wanted.prefer(&mut self.shards);
        }
        Ok(self.shards)
    }
}

fn walk(root: &Path, depth: usize) -> walkdir::IntoIter {
    WalkDir::new(root).follow_links(true).max_depth(depth).sort_by_file_name().into_iter()
}

/// The next entry. Passed over are a link back to a folder that is being walked, for its files are found without it,
/// and a link to nothing, unless its name `matters`.
fn next_entry(walk: &mut walkdir::IntoIter, matters: impl Fn(&Path) -> bool) -> Result<Option<DirEntry>> {
    loop {
        match walk.next() {
            None => return Ok(None),
            Some(Ok(entry)) => return Ok(Some(entry)),
            Some(Err(error)) => {
                let path = error.path().unwrap_or(Path::new("")).to_owned();
                let leads_nowhere = error.io_error().is_some_and(|e| e.kind() == io::ErrorKind::NotFound);
                if error.loop_ancestor().is_none() && (!leads_nowhere || matters(&path)) {
                    return Err(walk_error(&path, error));
                }
            }
        }
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| begins_with(name, '_') || begins_with(name, '.'))
}

pub(crate) fn stands_beside(path: &Path) -> bool {
    path.extension().is_some_and(|own| BESIDE.iter().any(|suffix| own.eq_ignore_ascii_case(suffix)))
}

fn walk_error(path: &Path, error: walkdir::Error) -> Error {
    // Only a loop has no error of the system behind it.
    let error = error.into_io_error().unwrap_or_else(|| io::ErrorKind::Other.into());
    Error::io(path, error)
}

fn begins_with(name: &OsStr, first: char) -> bool {
    name.as_encoded_bytes().first().is_some_and(|byte| char::from(*byte) == first)
}

fn leads_into(link: &Path, root: &Path) -> Result<bool> {
    let target = fs::canonicalize(link).map_err(|error| Error::io(link, error))?;
    Ok(target.starts_with(root))
}

/// `path` without the `.` that it may begin with.
fn plain(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}
