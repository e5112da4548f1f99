//! Partition columns: columns with one value per file, from folders such as `split=train`, as in
//! Hive, the runs of TensorBoard, and `_file`.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{RecordBatch, RecordBatchOptions, cast::AsArray};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use datafusion::{
    catalog::Session,
    common::{DFSchema, ScalarValue, plan_err, tree_node::TreeNode},
    error::Result,
    logical_expr::{Expr, TableProviderFilterPushDown},
};
use tfarrow_dataset::{Shard, internals::FolderColumn};

use crate::options::FILE_COLUMN;

/// The name of the column of TensorBoard's runs.
pub(crate) const RUN_COLUMN: &str = "run";

/// The partition columns of a table.
#[derive(Clone, Debug, Default)]
pub struct PartitionColumns {
    /// The columns of folders, in the order of the folders.
    folders: Vec<FieldRef>,
    /// The names of TensorBoard's runs, if these are a column.
    runs: Option<Runs>,
    /// Whether `_file` is a column.
    file: bool,
}

impl PartitionColumns {
    /// The columns of the folders of the shards, but for those with the name of a feature.
    pub fn inferred(shards: &[Shard], features: &Schema) -> Self {
        let columns = shards.first().map_or(&[][..], Shard::folder_columns);
        let others = columns
            .iter()
            .filter(|column| features.column_with_name(&column.key).is_none());
        Self {
            folders: others.map(field).collect(),
            ..Self::default()
        }
    }

    /// The columns that a statement declares.
    pub(crate) fn declared(folders: Vec<FieldRef>) -> Self {
        Self {
            folders,
            ..Self::default()
        }
    }

    /// The column `run` of TensorBoard's files.
    pub(crate) fn of_runs(shards: &[Shard]) -> Self {
        Self {
            runs: Some(Runs::of(shards)),
            ..Self::default()
        }
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
    pub fn fields(&self) -> Vec<FieldRef> {
        let mut fields = self.folders.clone();
        if self.runs.is_some() {
            fields.push(Arc::new(Field::new(RUN_COLUMN, DataType::Utf8View, false)));
        }
        if self.file {
            fields.push(Arc::new(Field::new(FILE_COLUMN, DataType::Utf8View, false)));
        }
        fields
    }

    /// The values of the columns for one shard.
    ///
    /// # Errors
    /// The shard is not in a folder of each column, or the value of a folder cannot be cast to the
    /// type of its column.
    pub fn values(&self, shard: &Shard) -> Result<Vec<ScalarValue>> {
        let mut values = self
            .folders
            .iter()
            .map(|field| value(field, shard))
            .collect::<Result<Vec<_>>>()?;
        if let Some(runs) = &self.runs {
            values.push(ScalarValue::Utf8View(Some(runs.name(shard))));
        }
        if self.file {
            values.push(ScalarValue::Utf8View(Some(
                shard.path.to_string_lossy().into_owned(),
            )));
        }
        Ok(values)
    }

    /// Returns whether a filter refers to partition columns only, so that it keeps or prunes
    /// complete files.
    pub fn decides(&self, filter: &Expr) -> bool {
        let fields = self.fields();
        let columns = filter.column_refs();
        if filter.is_volatile() {
            return false;
        }
        let has_query = filter.exists(|expr| {
            Ok(matches!(
                expr,
                Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_)
            ))
        });
        !has_query.unwrap_or(true)
            && !columns.is_empty()
            && columns
                .iter()
                .all(|column| fields.iter().any(|field| *field.name() == column.name))
    }

    /// Returns for each filter whether it is applied to complete files, so that no other node
    /// applies it.
    pub fn pushdown(&self, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
        let mut answers = Vec::with_capacity(filters.len());
        for filter in filters {
            answers.push(match self.decides(filter) {
                true => TableProviderFilterPushDown::Exact,
                false => TableProviderFilterPushDown::Unsupported,
            });
        }
        answers
    }

    /// Evaluates such filters for files with these values. Returns whether to keep each file.
    pub fn keep(
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
        let mut columns = Vec::with_capacity(schema.fields().len());
        for column in 0..schema.fields().len() {
            let values = values
                .iter()
                .filter_map(|values| values.get(column).cloned());
            columns.push(ScalarValue::iter_to_array(values)?);
        }
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

/// The names of TensorBoard's runs: the folder of a file below the source, or `.` for the source
/// itself. With several sources, the folder below the last folder that all sources have in common,
/// so that files of different sources are different runs.
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
        let mut folders = sources.iter().copied();
        let first = folders.next().filter(|_| sources.len() > 1);
        Self {
            common: first.map(|first| folders.fold(first.to_owned(), common_folder)),
        }
    }

    fn name(&self, shard: &Shard) -> String {
        let folder = match &self.common {
            None => shard.name.parent(),
            Some(common) => shard
                .path
                .parent()
                .and_then(|folder| folder.strip_prefix(common).ok()),
        };
        let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
        folder
            .filter(|folder| !folder.is_empty())
            .unwrap_or_else(|| ".".to_owned())
    }
}

/// The last folder that two paths have in common.
fn common_folder(one: PathBuf, other: &Path) -> PathBuf {
    let mut common = PathBuf::new();
    for (part, other) in one.components().zip(other.components()) {
        if part != other {
            break;
        }
        common.push(part);
    }
    common
}

/// The folder that the name of a shard is relative to.
fn source(shard: &Shard) -> &Path {
    let parts = shard.name.components().count();
    shard
        .path
        .ancestors()
        .nth(parts)
        .unwrap_or_else(|| Path::new(""))
}

/// The column of a folder key.
fn field(column: &FolderColumn) -> FieldRef {
    let data_type = if column.is_integer {
        DataType::Int64
    } else {
        DataType::Utf8View
    };
    Arc::new(Field::new(&column.key, data_type, true))
}

/// The value of a shard in the column of a folder key. It is null if other shards are in such
/// folders.
fn value(field: &Field, shard: &Shard) -> Result<ScalarValue> {
    let Some(column) = shard
        .folder_columns()
        .iter()
        .find(|column| column.key == *field.name())
    else {
        return plan_err!(
            "{}: not in a folder {}=..",
            shard.path.display(),
            field.name()
        );
    };
    let Some(text) = &column.text else {
        return ScalarValue::try_from(field.data_type());
    };
    let value = ScalarValue::Utf8(Some(text.clone())).cast_to(field.data_type());
    value.map_err(|error| {
        error.context(format!(
            "{}: the folder of {}",
            shard.path.display(),
            field.name()
        ))
    })
}

#[cfg(test)]
mod tests {
    use tfarrow_dataset::ShardFormat;

    use super::*;

    fn shard(name: &str) -> Shard {
        Shard::file(name.into(), name.into(), 1, ShardFormat::TfRecord)
    }

    #[test]
    fn folders_are_columns_unless_a_feature_has_their_name() {
        let columns = |key: &str| {
            shard("split=a/year=1/x").with_name("split=a/year=1/x".into(), &["split", key])
        };
        let check = |features: &[&str], expect: &[&str]| {
            let fields: Vec<_> = features
                .iter()
                .map(|name| Field::new(*name, DataType::Int64, true))
                .collect();
            let found = PartitionColumns::inferred(&[columns("year")], &Schema::new(fields));
            assert_eq!(
                found
                    .fields()
                    .iter()
                    .map(|field| field.name().as_str())
                    .collect::<Vec<_>>(),
                expect
            );
        };
        check(&[], &["split", "year"]);
        check(&["split"], &["year"]);
        assert!(
            PartitionColumns::inferred(&[], &Schema::empty())
                .fields()
                .is_empty()
        );
    }

    #[test]
    fn runs_are_folders_below_the_source() {
        check_runs(&[
            ("events", "events", "."),
            ("train/events", "train/events", "train"),
            ("a/b/e", "a/b/e", "a/b"),
        ]);
        check_runs(&[
            ("logs/events", "events", "."),
            ("logs/train/events", "train/events", "train"),
        ]);
        check_runs(&[("-", "-", ".")]);
    }

    #[test]
    fn runs_of_several_sources_are_different() {
        check_runs(&[
            ("one/a/events", "events", "a"),
            ("one/b/events", "events", "b"),
        ]);
        check_runs(&[
            ("one/a/events", "events", "one/a"),
            ("two/a/x/events", "x/events", "two/a/x"),
        ]);
        check_runs(&[
            ("one/events", "events", "."),
            ("one/b/events", "events", "b"),
        ]);
        check_runs(&[
            ("/one/events", "events", "one"),
            ("/two/events", "events", "two"),
        ]);
        check_runs(&[
            ("s3://b/one/events", "events", "one"),
            ("s3://b/two/events", "events", "two"),
        ]);
    }

    /// Checks the runs of files, each of which is a path and its end below the source.
    #[track_caller]
    fn check_runs(files: &[(&str, &str, &str)]) {
        let file = |(path, name, _): &(&str, &str, &str)| {
            Shard::file(path.into(), name.into(), 1, ShardFormat::TfRecord)
        };
        let shards: Vec<_> = files.iter().map(file).collect();
        let columns = PartitionColumns::of_runs(&shards);
        let found: Vec<_> = shards
            .iter()
            .map(|shard| columns.values(shard).unwrap().remove(0))
            .collect();
        let expected: Vec<_> = files
            .iter()
            .map(|(_, _, run)| ScalarValue::Utf8View(Some((*run).to_owned())))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn values_are_decoded_and_typed() {
        let field = |data_type| Arc::new(Field::new("k", data_type, true));
        let value = |name: &str, data_type| {
            let shard = shard(name).with_name(name.into(), &["k"]);
            PartitionColumns::declared(vec![field(data_type)])
                .values(&shard)
                .map(|mut values| values.remove(0))
        };
        assert_eq!(
            value("k=a%20b/x", DataType::Utf8View).unwrap(),
            ScalarValue::Utf8View(Some("a b".into()))
        );
        assert_eq!(
            value("k=7/x", DataType::Int32).unwrap(),
            ScalarValue::Int32(Some(7))
        );
        assert!(
            value("k=__HIVE_DEFAULT_PARTITION__/x", DataType::Int32)
                .unwrap()
                .is_null()
        );
        assert!(value("j=7/x", DataType::Int32).unwrap().is_null());
        assert!(value("k=seven/x", DataType::Int32).is_err());
        let other =
            PartitionColumns::declared(vec![field(DataType::Int32)]).values(&shard("k=7/x"));
        assert!(
            other
                .unwrap_err()
                .to_string()
                .contains("not in a folder k=..")
        );
    }
}
