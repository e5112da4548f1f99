//! Sources: from the names that a user gives to shards.
//!
//! ```text
//! source ─┬▶ "-"                      standard input ─┐
//!         ├▶ URL                      remote ─────────┤
//!         ├▶ file, folder             local ──────────┼▶ FormatFilter ─▶ natural order ─▶ Resolved
//!         ├▶ shard spec `train@10`    local, remote ──┤
//!         └▶ glob `*.tfrecord`        local, remote ──┘
//! ```

mod folder_columns;
mod local;
mod remote;
mod resolved;
mod table_log;

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use percent_encoding::percent_decode_str;

use self::folder_columns::set_folder_columns;
pub(crate) use self::remote::object_compression;
pub use self::{
    folder_columns::without_folder_columns,
    remote::read_heads,
    resolved::{Exclude, FormatFilter, Resolved},
};
use crate::{
    Error, ErrorKind, Result, Shard,
    file_names::STDIN,
    sharding::{glob::Glob, natural_sort, spec::ShardSpec},
    store::location::{UNKNOWN_URL, invalid_source, is_remote},
    system::is_machine,
};

/// Finds the shards that `sources` name: those of one source after those of another, each in
/// natural order of the paths.
///
/// Calls [`resolve_filtered`] with [`FormatFilter::Any`].
///
/// # Errors
/// A source names no shard, or an I/O error.
pub fn resolve<S: AsRef<OsStr>>(sources: &[S]) -> Result<Vec<Shard>> {
    resolve_filtered(sources, FormatFilter::Any).map(|resolved| resolved.shards)
}

/// Finds the shards that `sources` name: those of one source after those of another, each in
/// natural order of the paths.
///
/// A source is the first of these that applies:
/// - `-`: standard input.
/// - A URL: an object, a folder, a shard spec or a glob in an object store; one file of a web
///   server; `file:///..` is a path.
/// - A file: read whatever its format, an empty file as a shard without records.
/// - A folder: the files in it and below it that have one of the formats in `filter`. Also files
///   that are named like TFRecord files or numbered like shards, and files with a valid record
///   after a damaged one, so that damage is not skipped silently. Links to folders inside of the
///   source are not followed, since their files are found anyway.
/// - A shard spec, `train@10` or `train@10.tfrecord`: the shards `train-00000-of-00010` to
///   `train-00009-of-00010`, with any extension. All of them must exist; an empty file is a shard
///   without records.
/// - A glob (`* ? [..] {a,b} **`): the files that match it, and the files in folders that match it.
///
/// Skipped in folders and globs are:
/// - files and folders whose names begin with `_` or `.`, unless the glob names them, or the name
///   is that of a folder column, as `_split=train`; in folders that begin with `_`, files of
///   TensorBoard are found,
/// - files of TensorBoard, whose names contain `tfevents`, if there are other files with records,
/// - `*.json`, `*.txt`, `*.index` and `*.idx` of no known format, `*.tfindex`, and
///   `tfrds-reader-index.parquet`,
/// - empty files that are not named like shards,
/// - pipes and devices.
///
/// A file that two sources name is returned once.
///
/// Folders `key=value` below a source, or below the fixed part of a glob, are
/// [columns](Shard::folder_columns) of all shards.
///
/// # Errors
/// A source names no shard; the error contains where shards were searched, and which files were
/// skipped. Or an I/O error.
pub fn resolve_filtered<S: AsRef<OsStr>>(sources: &[S], filter: FormatFilter) -> Result<Resolved> {
    resolve_excluding(sources, filter, &|_| ())
}

/// Finds the shards that `sources` name, as [`resolve_filtered`] does. `exclude` removes files of
/// each folder or glob before those are chosen that are probably meant, such as outputs beside the
/// sources.
///
/// # Errors
/// As [`resolve_filtered`].
pub fn resolve_excluding<S: AsRef<OsStr>>(
    sources: &[S],
    filter: FormatFilter,
    exclude: Exclude<'_>,
) -> Result<Resolved> {
    if sources.is_empty() {
        return Err(Error::general(ErrorKind::Usage(
            "nothing to read: no source is named",
        )));
    }
    let mut all = Resolved::default();
    let mut seen = HashSet::new();
    for source in sources {
        let Resolved {
            mut shards,
            skipped_files,
            missing,
        } = find(source.as_ref(), filter, exclude)?;
        all.missing.extend(missing);
        shards.sort_by(|a, b| natural_sort::compare(&a.path, &b.path));
        all.skipped_files.merge(skipped_files);
        if sources.len() == 1 {
            all.shards = shards;
        } else {
            add_new(shards, &mut all.shards, &mut seen);
        }
    }
    set_folder_columns(&mut all.shards);
    Ok(all)
}

/// Adds the shards that no earlier source named. Two names of one file in the same source are kept,
/// because links in a folder may represent equal shards that are stored once.
fn add_new(found: Vec<Shard>, shards: &mut Vec<Shard>, seen: &mut HashSet<PathBuf>) {
    let mut here = Vec::new();
    for shard in found {
        let identity = if shard.is_stream() || shard.is_remote() {
            shard.path.clone()
        } else {
            // If the file has vanished, opening it reports the error.
            fs::canonicalize(&shard.path).unwrap_or_else(|_| shard.path.clone())
        };
        if !seen.contains(&identity) {
            here.push(identity);
            shards.push(shard);
        }
    }
    seen.extend(here);
}

/// Finds the shards that one source names.
fn find(source: &OsStr, filter: FormatFilter, exclude: Exclude<'_>) -> Result<Resolved> {
    if source.is_empty() {
        return Err(Error::general(ErrorKind::Usage(
            "nothing to read: a source has an empty name",
        )));
    }
    if source == STDIN {
        return Ok(Resolved::of([Shard::stream(STDIN.into(), "stdin".into())]));
    }
    if let Some(url) = source.to_str().filter(|source| is_remote(source)) {
        return remote::find(url, filter, exclude);
    }
    let file = source.to_str().and_then(path_of_file_url);
    let source = file.as_deref().map_or(source, OsStr::new);
    let path = Path::new(source);
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => local::find_in_folder(path, filter, exclude),
        Ok(metadata) => Ok(Resolved::of([local::named_file(path, &metadata, filter)?])),
        Err(error)
            if filter == FormatFilter::ToVerify && path.is_symlink() && !is_machine(&error) =>
        {
            Ok(Resolved::of([local::unreadable(path)]))
        }
        Err(error) => match source.to_str() {
            Some(pattern) if Glob::is_glob(pattern) => {
                local::find_by_glob(pattern, filter, exclude)
            }
            text => match text.and_then(ShardSpec::parse) {
                Some(spec) => local::find_by_spec(&spec, filter),
                None if text.is_some_and(|text| text.contains("://")) => {
                    Err(invalid_source(path, UNKNOWN_URL))
                }
                None => Err(Error::io(path, error)),
            },
        },
    }
}

/// Returns the percent-decoded path of a `file:` URL, which may be a glob.
fn path_of_file_url(source: &str) -> Option<String> {
    let path = source.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    path.starts_with('/')
        .then(|| percent_decode_str(path).decode_utf8_lossy().into_owned())
}
