//! The sources of a conversion, without the outputs of an earlier one.

use std::{collections::HashSet, ffi::OsStr, path::Path};

use tfarrow_dataset::{FormatFilter, Resolved, Shard, ShardFormat, file_names, resolve_excluding};

use crate::{ConvertOptions, Error, Result, Target, journal::folders::canonical};

/// Finds the shards of the sources, without the outputs of an earlier conversion to `dest`.
///
/// # Errors
/// Sources that do not exist or have no shards.
pub(crate) fn find<S: AsRef<OsStr>>(
    sources: &[S],
    dest: &Path,
    options: &ConvertOptions,
) -> Result<Resolved> {
    let mut found = resolve_excluding(sources, FormatFilter::Convertible, &|found| {
        exclude_outputs_of_text(found, dest, options);
    })?;
    exclude_outputs(&mut found, dest, &|shard| {
        sources.iter().any(|source| Path::new(source) == shard.path)
    });
    Ok(found)
}

/// Removes the outputs of an earlier conversion from the sources. If there are TFRecord files and
/// also Parquet or Arrow files, those in the destination that are not of the kind of the other
/// sources are outputs. A file that `is_named` among the sources itself is no output.
fn exclude_outputs(found: &mut Resolved, dest: &Path, is_named: &dyn Fn(&Shard) -> bool) {
    if one_kind(&found.shards).is_ok() {
        return;
    }
    let dest = canonical(dest);
    let source = found
        .shards
        .iter()
        .find(|shard| !may_be_output(shard, &dest, is_named));
    // If all files are in the destination, the outputs are beside their sources, which are
    // TFRecord.
    let are_tfrecord = source.is_none_or(|shard| shard.format == ShardFormat::TfRecord);
    let outputs = found.shards.extract_if(.., |shard| {
        let is_tfrecord = shard.format == ShardFormat::TfRecord;
        is_tfrecord != are_tfrecord && may_be_output(shard, &dest, is_named)
    });
    for output in outputs {
        found.skipped_files.unwanted(output.path);
    }
}

/// Whether a shard is in the destination, and is not named among the sources itself.
fn may_be_output(shard: &Shard, dest: &Path, is_named: &dyn Fn(&Shard) -> bool) -> bool {
    canonical(&shard.path).starts_with(dest) && !is_named(shard)
}

/// Removes the outputs of an earlier conversion of text from a folder or glob, in which text would
/// not be read beside other files: files in the destination with the names of outputs of the text
/// files. Other files than TFRecord are outputs whatever the format of this conversion. If there
/// are further files, none is removed.
fn exclude_outputs_of_text(found: &mut Resolved, dest: &Path, options: &ConvertOptions) {
    let mut names = HashSet::new();
    let mut sets = HashSet::new();
    for shard in &found.shards {
        if shard.format.is_text() {
            names.insert(file_names::output_name(&shard.name, ""));
            sets.insert(file_names::set_name(&shard.name));
        }
    }
    if names.is_empty() {
        return;
    }
    let target = options
        .to
        .or_else(|| Target::from_path(dest).map(|(target, _)| target));
    let dest = canonical(dest);
    for shard in &found.shards {
        if shard.format.is_text() {
            continue;
        }
        let path = canonical(&shard.path);
        let Ok(below) = path.strip_prefix(&dest) else {
            return;
        };
        let has_name = path == dest
            || names.contains(&file_names::output_name(below, ""))
            || options.reshard.is_some() && is_of_set(below, &sets, target);
        let has_format = shard.format != ShardFormat::TfRecord || target == Some(Target::TfRecord);
        if !(has_name && has_format) {
            return;
        }
    }
    let outputs = found.shards.extract_if(.., |shard| !shard.format.is_text());
    for output in outputs {
        found.skipped_files.unwanted(output.path);
    }
}

/// Whether a file has the name of a shard of one of these sets.
fn is_of_set(path: &Path, sets: &HashSet<String>, target: Option<Target>) -> bool {
    let extension = target.map_or("", Target::name);
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    sets.iter()
        .any(|set| file_names::tf_shard_number(name, set, extension).is_some())
}

/// Checks that the sources are either TFRecord or not.
pub(super) fn one_kind(shards: &[Shard]) -> Result<()> {
    let (Some(one), Some(other)) = (
        shards
            .iter()
            .find(|shard| shard.format == ShardFormat::TfRecord),
        shards
            .iter()
            .find(|shard| shard.format != ShardFormat::TfRecord),
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
