//! Partition columns: columns with one value per file, from folders such as `split=train`, as in Hive, the runs of TensorBoard,
//! and `_file`.

use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, cast::AsArray};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use datafusion::{
    catalog::Session,
    common::{DFSchema, ScalarValue, plan_err, tree_node::TreeNode},
    error::Result,
    logical_expr::Expr,
};
use percent_encoding::percent_decode_str;
use tfarrow_dataset::Shard;

use crate::options::FILE_COLUMN;

/// The name of the column of TensorBoard's runs.
pub(crate) const RUN_COLUMN: &str = "run";
/// The value of a Hive partition folder that stands for null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The partition columns of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartitionColumns {
    /// The columns of folders, in the order of the folders.
    folders: Vec<FieldRef>,
    /// The names of TensorBoard's runs, if these are a column.
    runs: Option<Runs>,
    /// Whether `_file` is a column.
    file: bool,
}

impl PartitionColumns {
    /// The columns of the folders of the shards; none if the shards have different folders, or if a feature has the name of
    /// a folder.
    pub(crate) fn inferred(shards: &[Shard], features: &Schema) -> Self {
        let keys = |shard: &Shard| folders(shard).map(|(key, _)| key).collect::<Vec<_>>();
        let Some(first) = shards.first().map(keys) else { return Self::default() };
        let is_taken = |key: &String| features.column_with_name(key).is_some();
        let is_twice = first.iter().collect::<HashSet<_>>().len() < first.len();
        if is_twice || first.iter().any(is_taken) || shards.iter().any(|shard| keys(shard) != first) {
            return Self::default();
        }
        let folders = first.into_iter().map(|key| Arc::new(Field::new(key, DataType::Utf8View, true)));
        Self { folders: folders.collect(), ..Self::default() }
    }

    /// The columns that a statement declares.
    pub(crate) fn declared(folders: Vec<FieldRef>) -> Self {
        Self { folders, ..Self::default() }
    }

    /// The column `run` of TensorBoard's files.
    pub(crate) fn of_runs(shards: &[Shard]) -> Self {
        Self { runs: Some(Runs::of(shards)), ..Self::default() }
    }

    /// Returns whether the run of TensorBoard is a column.
    pub(crate) fn has_runs(&self) -> bool {
        self.runs.is_some()
    }

    /// Adds the column `_file` if it is wanted.
    ///
    /// # Errors
    /// A feature has this name.
    pub(crate) fn with_file(mut self, wanted: bool, features: &Schema) -> Result<Self> {
        if wanted && features.column_with_name(FILE_COLUMN).is_some() {
            return plan_err!(
                "the data already has a feature {FILE_COLUMN:?}; leave that name out of tfarrow.metadata_columns"
            );
        }
        self.file = wanted;
        Ok(self)
    }

    /// The columns of folders.
    pub(crate) fn folders(&self) -> &[FieldRef] {
        &self.folders
    }

    /// The fields of all partition columns.
    pub(crate) fn fields(&self) -> Vec<FieldRef> {
        let text = |name| Arc::new(Field::new(name, DataType::Utf8View, false));
        let (run, file) = (self.runs.is_some().then(|| text(RUN_COLUMN)), self.file.then(|| text(FILE_COLUMN)));
        self.folders.iter().cloned().chain(run).chain(file).collect()
    }

    /// The values of the columns for one shard.
    ///
    /// # Errors
    /// The shard is not in a folder of each column, or the value of a folder cannot be cast to the type of its column.
    pub(crate) fn values(&self, shard: &Shard) -> Result<Vec<ScalarValue>> {
        let mut values = self.folders.iter().map(|field| value(field, shard)).collect::<Result<Vec<_>>>()?;
        if let Some(runs) = &self.runs {
            values.push(ScalarValue::Utf8View(Some(runs.name(shard))));
        }
        if self.file {
            values.push(ScalarValue::Utf8View(Some(shard.path.to_string_lossy().into_owned())));
        }
        Ok(values)
    }

    /// Returns whether a filter refers to partition columns only, so that it keeps or prunes complete files.
    pub(crate) fn decides(&self, filter: &Expr) -> bool {
        let fields = self.fields();
        let columns = filter.column_refs();
        let is_of_queries =
            |expr: &Expr| Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_)));
        let is_simple = !filter.is_volatile() && !filter.exists(is_of_queries).unwrap_or(true);
        is_simple
            && !columns.is_empty()
            && columns.iter().all(|column| fields.iter().any(|field| *field.name() == column.name))
    }

    /// Evaluates such filters for files with these values. Returns whether to keep each file.
    pub(crate) fn keep(
        &self,
        filters: &[&Expr],
        values: &[Vec<ScalarValue>],
        state: &dyn Session,
    ) -> Result<Vec<bool>> {
        let mut keep = vec![true; values.len()];
        if filters.is_empty() || values.is_empty() {
            return Ok(keep);
        }
        let schema = Arc::new(Schema::new(self.fields()));
        let column = |column: usize| -> Result<ArrayRef> {
            ScalarValue::iter_to_array(values.iter().filter_map(|values| values.get(column).cloned()))
        };
        let columns = (0..schema.fields().len()).map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(values.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?;
        let schema = DFSchema::try_from(schema)?;
        for filter in filters {
            let filter = state.create_physical_expr((*filter).clone(), &schema)?;
            let kept = filter.evaluate(&batch)?.into_array(values.len())?;
            for (keep, kept) in keep.iter_mut().zip(kept.as_boolean()) {
                *keep &= kept == Some(true);
            }
        }
        Ok(keep)
    }
}

/// The names of TensorBoard's runs: the folder of a file below the source, or `.` for the source itself. With several sources,
/// the folder below the last folder that all sources have in common, so that files of different sources are different runs.
///
/// ```text
/// logs/           logs/train/events   ─▶ train
/// one/a/, two/a/  one/a/train/events  ─▶ one/a/train
/// ```
#[derive(Clone, Debug)]
struct Runs {
    /// The common folder of several sources; `None` for one source.
    common: Option<PathBuf>,
}

impl Runs {
    fn of(shards: &[Shard]) -> Self {
        let sources: HashSet<_> = shards.iter().map(source).collect();
        let common = |one: PathBuf, other: &Path| {
            let parts = one.components().zip(other.components());
            parts.take_while(|(one, other)| one == other).map(|(part, _)| part).collect()
        };
        let mut folders = sources.iter().copied();
        let first = folders.next().filter(|_| sources.len() > 1);
        Self { common: first.map(|first| folders.fold(first.to_owned(), common)) }
    }

    fn name(&self, shard: &Shard) -> String {
        let folder = match &self.common {
            None => shard.name.parent(),
            Some(common) => shard.path.parent().and_then(|folder| folder.strip_prefix(common).ok()),
        };
        let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
        folder.filter(|folder| !folder.is_empty()).unwrap_or_else(|| ".".to_owned())
    }
}

/// The folder that the name of a shard is relative to.
fn source(shard: &Shard) -> &Path {
    let parts = shard.name.components().count();
    shard.path.ancestors().nth(parts).unwrap_or_else(|| Path::new(""))
}

fn value(field: &Field, shard: &Shard) -> Result<ScalarValue> {
    let Some((_, text)) = folders(shard).find(|(key, _)| key == field.name()) else {
        return plan_err!("{}: not in a folder {}=..", shard.path.display(), field.name());
    };
    if text == NULL {
        return ScalarValue::try_from(field.data_type());
    }
    let value = ScalarValue::Utf8(Some(text)).cast_to(field.data_type());
    value.map_err(|error| error.context(format!("{}: the folder of {}", shard.path.display(), field.name())))
}

/// The keys and values of the folders `key=value` between the source and the shard.
fn folders(shard: &Shard) -> impl Iterator<Item = (String, String)> {
    let parents = shard.name.parent().into_iter().flat_map(|parent| parent.components());
    parents.filter_map(|part| match part {
        Component::Normal(name) => {
            let (key, value) = name.to_str()?.split_once('=')?;
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            Some((decoded(key), decoded(value)))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use tfarrow_dataset::ShardFormat;

    use super::*;

    fn shard(name: &str) -> Shard {
        Shard::file(name.into(), name.into(), 1, ShardFormat::TfRecord)
    }

    #[track_caller]
    fn check(names: &[&str], features: &[&str], expect: &[&str]) {
        let shards: Vec<_> = names.iter().map(|name| shard(name)).collect();
        let fields: Vec<_> = features.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
        let found = PartitionColumns::inferred(&shards, &Schema::new(fields));
        let found: Vec<_> = found.fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn folders_are_columns_where_all_shards_have_them() {
        check(&["split=a/year=1/x", "split=b/year=2/x"], &[], &["split", "year"]);
        check(&["split=a/x", "x"], &[], &[]);
        check(&["split=a/x", "kind=b/x"], &[], &[]);
        check(&["split=a/x"], &["split"], &[]);
        check(&["a/x"], &[], &[]);
        check(&["a=1/a=2/x"], &[], &[]);
        check(&[], &[], &[]);
    }

    #[test]
    fn runs_are_folders_below_the_source() {
        check_runs(&[("events", "events", "."), ("train/events", "train/events", "train"), ("a/b/e", "a/b/e", "a/b")]);
        check_runs(&[("logs/events", "events", "."), ("logs/train/events", "train/events", "train")]);
        check_runs(&[("-", "-", ".")]);
    }

    #[test]
    fn runs_of_several_sources_are_different() {
        check_runs(&[("one/a/events", "events", "a"), ("one/b/events", "events", "b")]);
        check_runs(&[("one/a/events", "events", "one/a"), ("two/a/x/events", "x/events", "two/a/x")]);
        check_runs(&[("one/events", "events", "."), ("one/b/events", "events", "b")]);
        check_runs(&[("/one/events", "events", "one"), ("/two/events", "events", "two")]);
        check_runs(&[("s3://b/one/events", "events", "one"), ("s3://b/two/events", "events", "two")]);
    }

    /// Checks the runs of files, each of which is a path and its end below the source.
    #[track_caller]
    fn check_runs(files: &[(&str, &str, &str)]) {
        let file =
            |(path, name, _): &(&str, &str, &str)| Shard::file(path.into(), name.into(), 1, ShardFormat::TfRecord);
        let shards: Vec<_> = files.iter().map(file).collect();
        let columns = PartitionColumns::of_runs(&shards);
        let found: Vec<_> = shards.iter().map(|shard| columns.values(shard).unwrap().remove(0)).collect();
        let expected: Vec<_> = files.iter().map(|(_, _, run)| ScalarValue::Utf8View(Some((*run).to_owned()))).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn values_are_decoded_and_typed() {
        let field = |data_type| Arc::new(Field::new("k", data_type, true));
        let value = |name: &str, data_type| {
            PartitionColumns::declared(vec![field(data_type)]).values(&shard(name)).map(|mut values| values.remove(0))
        };
        assert_eq!(value("k=a%20b/x", DataType::Utf8View).unwrap(), ScalarValue::Utf8View(Some("a b".into())));
        assert_eq!(value("k=7/x", DataType::Int32).unwrap(), ScalarValue::Int32(Some(7)));
        assert!(value(&format!("k={NULL}/x"), DataType::Int32).unwrap().is_null());
        assert!(value("k=seven/x", DataType::Int32).is_err());
        assert!(value("j=7/x", DataType::Int32).is_err());
    }
}
