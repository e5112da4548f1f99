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
    Contents, Error, ErrorKind, MissingShards, PassedOver, Payload, Result, Shard, contents::Peek, glob::Glob, looks,
    missing::missing_shards, names::is_called_shard, natural, payload::is_called_events, remote, shard::STDIN,
    spec::ShardSpec, system::is_machine,
};

/// Suffixes of files that stand beside shards and are usually none.
const BESIDE: &[&str] = &["json", "txt", "index"];

/// What is looked for in folders and globs. A file that is named as it is is always taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// In each source TFRecord where there is any, else Parquet and Arrow.
    #[default]
    Any,
    /// TFRecord, Parquet and Arrow, also beside each other.
    All,
    /// TFRecord alone.
    TfRecord,
    /// Parquet and Arrow.
    Columnar,
    /// Every file, whatever it holds: nothing is looked into, and [`Shard::contents`] says nothing.
    Files,
    /// All of these, and what cannot be opened to tell: whoever reads all of a set to find what is wrong is to hear of it in
    /// its turn.
    ToVerify,
}

impl Wanted {
    pub(crate) fn takes(self, contents: Contents) -> bool {
        match self {
            Self::Any | Self::All | Self::Files | Self::ToVerify => true,
            Self::TfRecord => contents == Contents::TfRecord,
            Self::Columnar => contents != Contents::TfRecord,
        }
    }

    /// Leaves TFRecord alone of what was found, where there is any: the rest may be copies of the same data, unless all of it
    /// was `named`, as a glob names other files, or is wanted. Shards of no records do not count, where there is anything
    /// else.
    pub(crate) fn prefer(self, found: &mut Resolved, named: bool) {
        let is_tfrecord = |shard: &Shard| shard.contents == Contents::TfRecord;
        let has_records = found.shards.iter().any(|shard| is_tfrecord(shard) && shard.size > 0);
        if !matches!(self, Self::Any | Self::All) || found.shards.iter().all(is_tfrecord) {
            return;
        }
        if !has_records {
            let empty = found.shards.extract_if(.., |shard| is_tfrecord(shard));
            found.passed_over.empty += empty.count() as u64;
        } else if !named && self == Self::Any {
            let others = found.shards.extract_if(.., |shard| !is_tfrecord(shard));
            others.for_each(|shard| found.passed_over.unwanted(shard.path));
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any | Self::All | Self::ToVerify => "TFRecord, Parquet or Arrow",
            Self::TfRecord => "TFRecord",
            Self::Columnar => "Parquet or Arrow",
            Self::Files => "one that is not empty",
        }
    }
}

/// What sources name.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// The shards.
    pub shards: Vec<Shard>,
    /// What else folders and globs hold.
    pub passed_over: PassedOver,
    /// What sets of numbered shards lack that are in folders.
    pub missing: Vec<MissingShards>,
}

/// The shards that `sources` name, in their order, and of one source in natural order of the paths. See
/// [`resolve_wanted`], of which this takes [`Wanted::Any`].
///
/// # Errors
/// As there.
pub fn resolve<S: AsRef<OsStr>>(sources: &[S]) -> Result<Vec<Shard>> {
    resolve_wanted(sources, Wanted::Any).map(|resolved| resolved.shards)
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
/// for them), files of TensorBoard (`events.out.tfevents.*`) beside files of other records, `*.json`, `*.txt` and `*.index` that hold nothing that is known, files of no bytes that are not called TFRecord or numbered so, and what is no
/// plain file. A file that two sources name is taken once.
///
/// # Errors
/// A source that names no shard, with where it was looked; what the system says.
pub fn resolve_wanted<S: AsRef<OsStr>>(sources: &[S], wanted: Wanted) -> Result<Resolved> {
    if sources.is_empty() {
        return Err(Error::general(ErrorKind::Usage("nothing to read: no source is named")));
    }
    let mut all = Resolved::default();
    let mut seen = HashSet::new();
    for source in sources {
        let Resolved { mut shards, passed_over, missing } = find(source.as_ref(), wanted)?;
        all.missing.extend(missing);
        shards.sort_by(|a, b| natural::compare(&a.path, &b.path));
        all.passed_over.merge(passed_over);
        if sources.len() == 1 {
            all.shards = shards;
        } else {
            add_new(shards, &mut all.shards, &mut seen);
        }
    }
    Ok(all)
}

/// Adds the shards that no source before has named. Two names of one file inside one source both stay: a store that
/// keeps equal files once shows equal shards so.
fn add_new(found: Vec<Shard>, shards: &mut Vec<Shard>, seen: &mut HashSet<PathBuf>) {
    let mut here = Vec::new();
    for shard in found {
        let identity = if shard.is_stream() || shard.is_remote() {
            shard.path.clone()
        } else {
            // What has vanished, or leads nowhere, is told by whoever opens it.
            fs::canonicalize(&shard.path).unwrap_or_else(|_| shard.path.clone())
        };
        if !seen.contains(&identity) {
            here.push(identity);
            shards.push(shard);
        }
    }
    seen.extend(here);
}

fn find(source: &OsStr, wanted: Wanted) -> Result<Resolved> {
    if source.is_empty() {
        return Err(Error::general(ErrorKind::Usage("nothing to read: a source has an empty name")));
    }
    if source == STDIN {
        return Ok(Resolved::of([Shard::stream(STDIN.into(), "stdin".into())]));
    }
    if let Some(url) = source.to_str().filter(|source| remote::is_remote(source)) {
        return remote::find(url, wanted);
    }
    let file = source.to_str().and_then(file_of_url);
    let source = file.as_deref().map_or(source, OsStr::new);
    let path = Path::new(source);
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => find_in_folder(path, wanted),
        Ok(metadata) => Ok(Resolved::of([named_file(path, &metadata, wanted)?])),
        Err(error) if wanted == Wanted::ToVerify && path.is_symlink() && !is_machine(&error) => {
            Ok(Resolved::of([unread(path, file_name(path))]))
        }
        Err(error) => match source.to_str() {
            Some(pattern) if Glob::is_glob(pattern) => find_by_glob(pattern, wanted),
            text => match text.and_then(ShardSpec::parse) {
                Some(spec) => find_by_spec(&spec, wanted),
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

fn find_by_spec(spec: &ShardSpec<'_>, wanted: Wanted) -> Result<Resolved> {
    let file = |path: PathBuf| {
        let metadata = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
        named_file(&path, &metadata, wanted)
    };
    Ok(Resolved::of(spec.files()?.into_iter().map(file).collect::<Result<Vec<_>>>()?))
}

fn named_file(path: &Path, metadata: &Metadata, wanted: Wanted) -> Result<Shard> {
    let name = file_name(path);
    if !metadata.is_file() {
        return Ok(Shard::stream(path.to_owned(), name));
    }
    match Contents::look(path) {
        Ok((contents, peek)) => {
            let contents = contents.unwrap_or(Contents::TfRecord);
            Ok(Shard::file(path.to_owned(), name, metadata.len(), contents).with_peek(peek))
        }
        Err(error) if wanted == Wanted::ToVerify && !error.is_machine() => Ok(unread(path, name)),
        Err(error) => Err(error),
    }
}

/// A shard that could not be opened to tell what it holds: reading it tells why.
fn unread(path: &Path, name: PathBuf) -> Shard {
    Shard::file(path.to_owned(), name, 0, Contents::TfRecord)
}

fn file_name(path: &Path) -> PathBuf {
    path.file_name().map_or_else(|| "records".into(), PathBuf::from)
}

fn find_in_folder(folder: &Path, wanted: Wanted) -> Result<Resolved> {
    let mut search = Search::new(folder, wanted);
    search.folder(folder)?;
    let looked = format!("no {} file in this folder or below it", wanted.name());
    let found = search.finish(folder, looked)?;
    Ok(Resolved { missing: missing_shards(&found.shards), ..found })
}

fn find_by_glob(pattern: &str, wanted: Wanted) -> Result<Resolved> {
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
    resolved: Resolved,
    /// Files looked at, and those of them that match the glob.
    files: u64,
    matched: u64,
    /// A glob names a file of another format than TFRecord.
    names_others: bool,
}

impl Search {
    fn new(base: &Path, wanted: Wanted) -> Self {
        Self { base: plain(base), wanted, resolved: Resolved::default(), files: 0, matched: 0, names_others: false }
    }

    /// Takes what is in a folder and below.
    fn folder(&mut self, folder: &Path) -> Result<()> {
        let root = fs::canonicalize(folder).map_err(|error| Error::io(folder, error))?;
        let mut walk = walk(folder, usize::MAX);
        while let Some(entry) = self.next_entry(&mut walk, |path| !is_hidden(path) && !stands_beside(path))? {
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
        while let Some(entry) = self.next_entry(&mut walk, |path| glob.matches(&below(path)))? {
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
        self.resolved.passed_over.by_name += 1;
        if entry.file_type().is_dir() {
            walk.skip_current_dir();
        }
    }

    fn file(&mut self, entry: &DirEntry, found: Found) -> Result<()> {
        let path = plain(entry.path());
        // A pipe or a device would hold up whoever looks into it.
        if !entry.file_type().is_file() {
            self.resolved.passed_over.other(path);
            return Ok(());
        }
        let size = entry.metadata().map_err(|error| walk_error(&path, error))?.len();
        let (contents, peek) = match self.contents(&path, size, found) {
            Ok((Some(contents), peek)) => (contents, peek),
            Ok((None, _)) if stands_beside(&path) => {
                self.resolved.passed_over.by_name += 1;
                return Ok(());
            }
            Ok((None, _)) if size == 0 => {
                self.resolved.passed_over.empty += 1;
                return Ok(());
            }
            Ok((None, _)) => {
                self.resolved.passed_over.other(path);
                return Ok(());
            }
            Err(error) if self.wanted == Wanted::ToVerify && !error.is_machine() => {
                (Contents::TfRecord, Peek::default())
            }
            Err(error) => return Err(error),
        };
        self.names_others |= found == Found::ByGlob && contents != Contents::TfRecord;
        if self.wanted.takes(contents) {
            let name = self.name(&path);
            self.resolved.shards.push(Shard::file(path, name, size, contents).with_peek(peek));
        } else {
            self.resolved.passed_over.unwanted(path);
        }
        Ok(())
    }

    /// What a file holds, if it is a shard.
    fn contents(&self, path: &Path, size: u64, found: Found) -> Result<(Option<Contents>, Peek)> {
        let is_called_so = is_called_shard(path);
        let tfrecord = Some(Contents::TfRecord);
        match (self.wanted, size) {
            (Wanted::Files, _) => Ok((tfrecord.filter(|_| size > 0), Peek::default())),
            // None of these is ever empty, unless a disk was full or a machine went down.
            (_, 0) => Ok((Contents::of_name(path).or(tfrecord.filter(|_| is_called_so)), Peek::default())),
            _ => {
                let (known, peek) = Contents::look(path)?;
                let is_tfrecord = known.is_none()
                    && !stands_beside(path)
                    && (found == Found::ByGlob || is_called_so || Contents::is_behind_damage(path)?);
                Ok((if is_tfrecord { tfrecord } else { known }, peek))
            }
        }
    }

    fn name(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.base).unwrap_or(path).to_owned()
    }

    /// The next entry. Passed over are a link back to a folder that is being walked, for its files are found without it,
    /// and a link to nothing, unless its name `matters`.
    fn next_entry(
        &mut self,
        walk: &mut walkdir::IntoIter,
        matters: impl Fn(&Path) -> bool,
    ) -> Result<Option<DirEntry>> {
        loop {
            let error = match walk.next() {
                None => return Ok(None),
                Some(Ok(entry)) => return Ok(Some(entry)),
                Some(Err(error)) => error,
            };
            let path = plain(error.path().unwrap_or(Path::new("")));
            let leads_nowhere = error.io_error().is_some_and(|e| e.kind() == io::ErrorKind::NotFound);
            if error.loop_ancestor().is_some() || leads_nowhere && !matters(error.path().unwrap_or(&path)) {
                continue;
            }
            let error = walk_error(&path, error);
            if self.wanted != Wanted::ToVerify || error.is_machine() {
                return Err(error);
            }
            let name = self.name(&path);
            self.resolved.shards.push(unread(&path, name));
        }
    }

    fn finish(self, source: &Path, looked: String) -> Result<Resolved> {
        let mut found = self.resolved;
        self.wanted.prefer(&mut found, self.names_others);
        found.leave_out_events();
        found.passed_over.looks_like = found.passed_over.example.as_deref().and_then(looks::known_file);
        found.or_none(source, looked)
    }
}

impl Resolved {
    /// Shards that were named as they are.
    pub(crate) fn of(shards: impl Into<Vec<Shard>>) -> Self {
        Self { shards: shards.into(), ..Self::default() }
    }

    /// Leaves out the files of TensorBoard, which writes them beside others, where there is anything else.
    pub(crate) fn leave_out_events(&mut self) {
        let is_events = |shard: &Shard| {
            shard.contents == Contents::TfRecord
                && is_called_events(&shard.path)
                && shard.payload() != Payload::Examples
        };
        if self.shards.iter().all(is_events) {
            return;
        }
        let events = self.shards.extract_if(.., |shard| is_events(shard));
        events.for_each(|shard| self.passed_over.events(shard.path));
    }

    /// This, or, where there is no shard, an error that says where it was `looked`.
    pub(crate) fn or_none(self, source: impl Into<PathBuf>, looked: String) -> Result<Self> {
        if self.shards.is_empty() {
            return Err(Error::new(source, ErrorKind::NoShards { looked, passed_over: self.passed_over }));
        }
        Ok(self)
    }
}

fn walk(root: &Path, depth: usize) -> walkdir::IntoIter {
    WalkDir::new(root).follow_links(true).max_depth(depth).sort_by_file_name().into_iter()
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
