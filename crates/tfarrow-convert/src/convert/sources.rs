//! The sources of a conversion, without the outputs of an earlier one.

use std::{collections::HashSet, ffi::OsStr, fs, path::Path};

use tfarrow_dataset::{FormatFilter, Resolved, Shard, ShardFormat, file_names, resolve_excluding};

use crate::{ConvertOptions, Error, Result, Target};

/// Finds the shards of the sources, without the outputs of an earlier conversion to `dest`.
///
/// # Errors
/// Sources that do not exist or have no shards.
pub(crate) fn find<S: AsRef<OsStr>>(
    sources: &[S],
    dest: &Path,
    options: &ConvertOptions,
) -> Result<Resolved> {
    let is_named = |shard: &Shard| sources.iter().any(|source| Path::new(source) == shard.path);
    let exclude = |found: &mut Resolved| exclude_outputs_of_text(found, dest, options);
    let mut found = resolve_excluding(sources, FormatFilter::Convertible, &exclude)?;
    exclude_outputs(&mut found, dest, &is_named);
    Ok(found)
}

/// Removes the outputs of an earlier conversion from the sources. If there are TFRecord files and
/// also Parquet or Arrow files, those in the destination that are not of the kind of the other
/// sources are outputs. A file that `is_named` among the sources itself is no output.
fn exclude_outputs(found: &mut Resolved, dest: &Path, is_named: &dyn Fn(&Shard) -> bool) {
    if one_kind(&found.shards).is_ok() {
        return;
    }
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dest = resolved(dest);
    let may_be_output =
        |shard: &Shard| resolved(&shard.path).starts_with(&dest) && !is_named(shard);
    let is_tfrecord = |shard: &Shard| shard.format == ShardFormat::TfRecord;
    // If all files are in the destination, the outputs are beside their sources, which are
    // TFRecord.
    let are_tfrecord = found
        .shards
        .iter()
        .find(|shard| !may_be_output(shard))
        .is_none_or(is_tfrecord);
    let outputs = found.shards.extract_if(.., |shard| {
        is_tfrecord(shard) != are_tfrecord && may_be_output(shard)
    });
    outputs.for_each(|shard| found.skipped_files.unwanted(shard.path));
}

/// Removes the outputs of an earlier conversion of text from a folder or glob, in which text would
/// not be read beside other files: files in the destination with the names of outputs of the text
/// files. Other files than TFRecord are outputs whatever the format of this conversion. If there
/// are further files, none is removed.
fn exclude_outputs_of_text(found: &mut Resolved, dest: &Path, options: &ConvertOptions) {
    let named = |name: &Path| file_names::output_name(name, "");
    let texts = found.shards.iter().filter(|shard| shard.format.is_text());
    let (names, sets): (HashSet<_>, HashSet<_>) = texts
        .map(|shard| (named(&shard.name), file_names::set_name(&shard.name)))
        .unzip();
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let target = options
        .to
        .or_else(|| Target::from_path(dest).map(|(target, _)| target));
    let dest = resolved(dest);
    let is_output = |shard: &Shard| {
        let path = resolved(&shard.path);
        let Ok(below) = path.strip_prefix(&dest) else {
            return false;
        };
        let is_shard_of_set = || {
            let extension = target.map_or("", Target::name);
            let name = below
                .file_name()
                .and_then(OsStr::to_str)
                .unwrap_or_default();
            sets.iter()
                .any(|set| file_names::tf_shard_number(name, set, extension).is_some())
        };
        let is_named = path == dest
            || names.contains(&named(below))
            || options.reshard.is_some() && is_shard_of_set();
        is_named && (shard.format != ShardFormat::TfRecord || target == Some(Target::TfRecord))
    };
    let mut others = found.shards.iter().filter(|shard| !shard.format.is_text());
    if !names.is_empty() && others.all(is_output) {
        let outputs = found.shards.extract_if(.., |shard| !shard.format.is_text());
        outputs.for_each(|shard| found.skipped_files.unwanted(shard.path));
    }
}

/// Checks that the sources are either TFRecord or not.
pub(super) fn one_kind(shards: &[Shard]) -> Result<()> {
    let is_tfrecord = |shard: &&Shard| shard.format == ShardFormat::TfRecord;
    let (Some(one), Some(other)) = (
        shards.iter().find(is_tfrecord),
        shards.iter().find(|shard| !is_tfrecord(shard)),
    ) else {
        return Ok(());
    };
    let (one, other, format) = (
        one.path.display(),
        other.path.display(),
        other.format.name(),
    );
    Err(Error::Usage(format!(
        "{one} is TFRecord and {other} is {format}; convert them one format at a time, such as with a glob"
    )))
}
