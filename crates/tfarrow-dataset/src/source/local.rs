//! Shards in files and folders of this machine.

use std::{
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
};

use walkdir::{DirEntry, WalkDir};

use super::{
    resolved::{Exclude, FormatFilter, Resolved},
    table_log::table_log_error,
};
use crate::{
    Error, ErrorKind, Result, Shard, ShardFormat,
    file_names::{
        is_hidden, is_hidden_by, is_numbered_tfrecord, is_reader_index, is_shard_name, is_sidecar,
    },
    format::{magic, sniff::HeadInfo},
    sharding::{address::PATHS_OF_PROCESSES, glob::Glob, missing::missing_shards, spec::ShardSpec},
    store::location::invalid_source,
};

/// Folders of files that the system makes when they are read.
const FOLDERS_OF_SYSTEM: [&str; 2] = ["/proc", "/sys"];

/// Returns the shards of a shard spec.
///
/// # Errors
/// A shard is missing, or an I/O error.
pub(super) fn find_by_spec(spec: &ShardSpec<'_>, filter: FormatFilter) -> Result<Resolved> {
    let mut shards = Vec::new();
    for path in spec.files()? {
        let metadata = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
        shards.push(named_file(&path, &metadata, filter)?);
    }
    Ok(Resolved::of(shards))
}

/// Returns the shard that a file is, whatever its format. A pipe is a stream, and so is an open
/// file of the process.
///
/// # Errors
/// An I/O error, and another device, or a file that the system makes.
pub(super) fn named_file(path: &Path, metadata: &Metadata, filter: FormatFilter) -> Result<Shard> {
    let name = file_name(path);
    if !metadata.is_file() {
        check_stream(path, metadata)?;
        return Ok(Shard::stream(path.to_owned(), name));
    }
    if metadata.len() == 0 && is_of_system(path) {
        return Err(not_regular(path));
    }
    match ShardFormat::sniff_head(path) {
        Ok((format, head)) => {
            let format = ShardFormat::of_named(format, &head, path);
            Ok(Shard::file(path.to_owned(), name, metadata.len(), format).with_head(head))
        }
        Err(error) if filter == FormatFilter::ToVerify && !error.is_machine() => {
            Ok(unreadable_as(path, name))
        }
        Err(error) => Err(error),
    }
}

/// Checks that a source which is no file may be read as a stream: a pipe, or what the process has
/// as an open file, such as `/dev/stdin`. Another device may never end.
///
/// # Errors
/// A device, or a socket.
fn check_stream(path: &Path, metadata: &Metadata) -> Result<()> {
    match is_pipe(metadata)
        || PATHS_OF_PROCESSES
            .iter()
            .any(|folder| path.starts_with(folder))
    {
        true => Ok(()),
        false => Err(not_regular(path)),
    }
}

/// Returns whether a file is in a folder of the system, whose files have the size 0 and any
/// content, which may never end.
fn is_of_system(path: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|path| {
        FOLDERS_OF_SYSTEM
            .iter()
            .any(|folder| path.starts_with(folder))
    })
}

fn not_regular(path: &Path) -> Error {
    invalid_source(path, "this is no regular file and no pipe")
}

#[cfg(unix)]
fn is_pipe(metadata: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type())
}

#[cfg(not(unix))]
fn is_pipe(_: &Metadata) -> bool {
    true
}

/// Returns a shard for a file that cannot be opened: reading it reports the error.
pub(super) fn unreadable(path: &Path) -> Shard {
    unreadable_as(path, file_name(path))
}

fn unreadable_as(path: &Path, name: PathBuf) -> Shard {
    Shard::file(path.to_owned(), name, 0, ShardFormat::TfRecord)
}

fn file_name(path: &Path) -> PathBuf {
    path.file_name()
        .map_or_else(|| "records".into(), PathBuf::from)
}

/// Finds the shards in a folder and below it.
///
/// # Errors
/// There is no shard, or an I/O error.
pub(super) fn find_in_folder(
    folder: &Path,
    filter: FormatFilter,
    exclude: Exclude<'_>,
) -> Result<Resolved> {
    let mut search = Search::new(folder, filter);
    search.folder(folder)?;
    let searched = format!("no {} file in this folder or below it", filter.name());
    let found = search.finish(folder, searched, exclude)?;
    Ok(Resolved {
        missing: missing_shards(&found.shards),
        ..found
    })
}

/// Finds the shards that match a glob.
///
/// # Errors
/// The glob is invalid, there is no shard, or an I/O error.
pub(super) fn find_by_glob(
    pattern: &str,
    filter: FormatFilter,
    exclude: Exclude<'_>,
) -> Result<Resolved> {
    let glob = Glob::new(pattern).map_err(|error| Error::new(pattern, ErrorKind::Glob(error)))?;
    let mut search = Search::new(&glob.prefix, filter);
    let start = if glob.prefix.as_os_str().is_empty() {
        Path::new(".")
    } else {
        &glob.prefix
    };
    if !start.is_dir() {
        let searched = format!("{} is not a folder", start.display());
        return search.finish(Path::new(pattern), searched, exclude);
    }
    search.glob(start, &glob)?;
    let place = if start == Path::new(".") {
        "this folder".to_owned()
    } else {
        start.display().to_string()
    };
    let searched = match (search.files, search.matches) {
        (0, _) => format!("{place} contains no files"),
        (files, 0) => format!("none of {files} files in {place} matches"),
        (_, matches) => format!(
            "of {matches} files that match in {place}, none is {}",
            filter.name()
        ),
    };
    search.finish(Path::new(pattern), searched, exclude)
}

/// The kind of source that a file was found by.
#[derive(Clone, Copy, PartialEq)]
enum FoundBy {
    Folder,
    Glob,
}

/// The search for the shards of one source.
struct Search {
    /// The folder to which names of shards are relative.
    base: PathBuf,
    filter: FormatFilter,
    resolved: Resolved,
    /// Number of files below the fixed part of the glob.
    files: u64,
    /// Number of these files that match the glob.
    matches: u64,
    /// Set if a file that matches the glob is Parquet or Arrow.
    names_others: bool,
}

impl Search {
    fn new(base: &Path, filter: FormatFilter) -> Self {
        Self {
            base: without_dot(base),
            filter,
            resolved: Resolved::default(),
            files: 0,
            matches: 0,
            names_others: false,
        }
    }

    /// Adds the shards in a folder and below it.
    fn folder(&mut self, folder: &Path) -> Result<()> {
        let root = fs::canonicalize(folder).map_err(|error| Error::io(folder, error))?;
        let mut walk = walk(folder, usize::MAX);
        while let Some(entry) = self.next_entry(&mut walk, |path| {
            !is_hidden(path_below(path, folder)) && !is_sidecar(path)
        })? {
            if entry.depth() == 0 {
                continue;
            }
            check_log(&entry)?;
            if !entry.file_type().is_dir() {
                match is_hidden(path_below(entry.path(), folder)) {
                    true => self.resolved.skipped_files.by_name += 1,
                    false => self.file(&entry, FoundBy::Folder)?,
                }
            } else if is_hidden_by(entry.file_name(), '.') {
                self.skip_by_name(&entry, &mut walk);
            } else if entry.path_is_symlink() && leads_into(entry.path(), &root)? {
                walk.skip_current_dir();
            }
        }
        Ok(())
    }

    /// Adds the files that match below `start`, and the shards in folders that match.
    fn glob(&mut self, start: &Path, glob: &Glob) -> Result<()> {
        let underscore = !glob.names_prefix('_');
        let dot = !glob.names_prefix('.');
        let mut walk = walk(start, glob.depth());
        while let Some(entry) = self.next_entry(&mut walk, |path| {
            path.is_dir() || glob.matches(path_below(path, start))
        })? {
            let below = path_below(entry.path(), start);
            if entry.depth() == 0 {
                continue;
            }
            let name = entry.file_name();
            let is_hidden = underscore && is_hidden_by(name, '_') || dot && is_hidden_by(name, '.');
            if is_hidden && !is_numbered_tfrecord(below) {
                self.skip_by_name(&entry, &mut walk);
            } else if entry.file_type().is_dir() {
                if !glob.is_deep() && glob.matches(below) {
                    walk.skip_current_dir();
                    self.folder(&without_dot(entry.path()))?;
                }
            } else {
                self.files += 1;
                if glob.matches(below) {
                    self.matches += 1;
                    self.file(&entry, FoundBy::Glob)?;
                }
            }
        }
        Ok(())
    }

    fn skip_by_name(&mut self, entry: &DirEntry, walk: &mut walkdir::IntoIter) {
        self.resolved.skipped_files.by_name += 1;
        if entry.file_type().is_dir() {
            walk.skip_current_dir();
        }
    }

    /// Adds a file if it is a shard, and counts it as skipped if not.
    fn file(&mut self, entry: &DirEntry, found_by: FoundBy) -> Result<()> {
        let path = without_dot(entry.path());
        let skipped = &mut self.resolved.skipped_files;
        // Reading a pipe or a device to determine its format could block.
        if !entry.file_type().is_file() {
            skipped.other(path);
            return Ok(());
        }
        if is_reader_index(&path) {
            skipped.by_name += 1;
            return Ok(());
        }
        let size = entry
            .metadata()
            .map_err(|error| walk_error(&path, error))?
            .len();
        let (format, head) = match sniff(&path, size, found_by, self.filter) {
            Ok((Some(format), head)) => (format, head),
            Ok((None, head)) => {
                match size {
                    _ if is_sidecar(&path) => skipped.by_name += 1,
                    _ if size == 0 || head.empty_text(&path).is_some() => skipped.empty += 1,
                    _ => skipped.other(path),
                }
                return Ok(());
            }
            Err(error) if self.filter == FormatFilter::ToVerify && !error.is_machine() => {
                (ShardFormat::TfRecord, HeadInfo::default())
            }
            Err(error) => return Err(error),
        };
        let is_other = matches!(format, ShardFormat::Parquet | ShardFormat::Arrow);
        self.names_others |= found_by == FoundBy::Glob && is_other;
        if self.filter.accepts(format) {
            let name = self.name(&path);
            self.resolved
                .shards
                .push(Shard::file(path, name, size, format).with_head(head));
        } else {
            skipped.unwanted(path);
        }
        Ok(())
    }

    /// The name of a file in the data set.
    fn name(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.base).unwrap_or(path).to_owned()
    }

    /// Returns the next entry of a walk. Skips links back to a folder that is being walked, whose
    /// files are found without them, and broken links and folders that the user may not read,
    /// unless `is_relevant` returns `true` for the path.
    ///
    /// # Errors
    /// An I/O error, unless the entry becomes a shard whose reading reports it.
    fn next_entry(
        &mut self,
        walk: &mut walkdir::IntoIter,
        is_relevant: impl Fn(&Path) -> bool,
    ) -> Result<Option<DirEntry>> {
        loop {
            let error = match walk.next() {
                None => return Ok(None),
                Some(Ok(entry)) => return Ok(Some(entry)),
                Some(Err(error)) => error,
            };
            let path = without_dot(error.path().unwrap_or(Path::new("")));
            let is_unreadable = error.io_error().is_some_and(|e| {
                matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                )
            });
            if error.loop_ancestor().is_some()
                || is_unreadable && !is_relevant(error.path().unwrap_or(&path))
            {
                continue;
            }
            let error = walk_error(&path, error);
            if self.filter != FormatFilter::ToVerify || error.is_machine() {
                return Err(error);
            }
            let name = self.name(&path);
            self.resolved.shards.push(unreadable_as(&path, name));
        }
    }

    fn finish(self, source: &Path, searched: String, exclude: Exclude<'_>) -> Result<Resolved> {
        let mut found = self.resolved;
        exclude(&mut found);
        self.filter.prefer(&mut found, self.names_others);
        found.remove_events();
        found.skipped_files.looks_like = found
            .skipped_files
            .example
            .as_deref()
            .and_then(magic::known_file);
        found.or_none(source, searched)
    }
}

/// Checks that a hidden entry of a folder is no log of a table.
///
/// # Errors
/// [`ErrorKind::Usage`] for the log of a table.
fn check_log(entry: &DirEntry) -> Result<()> {
    let folder = without_dot(entry.path().parent().unwrap_or(entry.path()));
    let error = table_log_error(&folder, entry.file_name()).filter(|_| entry.file_type().is_dir());
    error.map_or(Ok(()), Err)
}

/// Determines the format of a file in a folder or glob; `None` if it is not a shard.
fn sniff(
    path: &Path,
    size: u64,
    found_by: FoundBy,
    filter: FormatFilter,
) -> Result<(Option<ShardFormat>, HeadInfo)> {
    let is_named = is_shard_name(path);
    let tfrecord = Some(ShardFormat::TfRecord);
    match (filter, size) {
        (FormatFilter::Files, _) => Ok((tfrecord.filter(|_| size > 0), HeadInfo::default())),
        // Valid Parquet and Arrow files are never empty; empty ones are left by a full disk or a
        // crash.
        (_, 0) => Ok((
            ShardFormat::of_name(path).or(tfrecord.filter(|_| is_named)),
            HeadInfo::default(),
        )),
        _ => {
            let (known, head) = ShardFormat::sniff_head(path)?;
            if head.empty_text(path).is_some() {
                return Ok((None, head));
            }
            let known = known.or_else(|| filter.text(path, found_by == FoundBy::Glob));
            let is_tfrecord = known.is_none()
                && !is_sidecar(path)
                && (found_by == FoundBy::Glob
                    || is_named
                    || ShardFormat::has_record_after_damage(path)?);
            Ok((if is_tfrecord { tfrecord } else { known }, head))
        }
    }
}

fn walk(root: &Path, depth: usize) -> walkdir::IntoIter {
    WalkDir::new(root)
        .follow_links(true)
        .max_depth(depth)
        .sort_by_file_name()
        .into_iter()
}

fn walk_error(path: &Path, error: walkdir::Error) -> Error {
    // Only the error of a loop has no I/O error as its cause.
    let error = error
        .into_io_error()
        .unwrap_or_else(|| io::ErrorKind::Other.into());
    Error::io(path, error)
}

fn leads_into(link: &Path, root: &Path) -> Result<bool> {
    let target = fs::canonicalize(link).map_err(|error| Error::io(link, error))?;
    Ok(target.starts_with(root))
}

/// Returns the part of `path` below `folder`.
fn path_below<'p>(path: &'p Path, folder: &Path) -> &'p Path {
    path.strip_prefix(folder).unwrap_or(path)
}

/// Returns `path` without a leading `.` component.
fn without_dot(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}
