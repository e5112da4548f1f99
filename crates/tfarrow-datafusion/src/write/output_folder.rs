//! The files that a statement writes to a folder. Their names depend on its output alone, so that a
//! statement that runs again finds its files, in place of adding others.
//!
//! DataFusion's names are random. Each is replaced before the file is created:
//!
//! ```text
//! q/0oIfq3Xy6KkQbm2N_1.parquet          q/part-00001.parquet
//! q/city=a%2Fb/0oIfq3Xy6KkQbm2N.parquet q/city=a%2Fb/part-00000.parquet
//! ```

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, cast::AsArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::{
    arrow::compute::cast,
    common::exec_err,
    datasource::physical_plan::FileSinkConfig,
    error::{DataFusionError, Result},
    execution::SendableRecordBatchStream,
    physical_plan::stream::RecordBatchStreamAdapter,
};
use futures::StreamExt;
use object_store::path::Path;
use percent_encoding::percent_decode_str;
use tfarrow_dataset::internals::{folder_name, folder_value};

/// The stem of the names of files in a folder, if the statement names no file.
pub const PART: &str = "part";

/// A folder that a statement writes files to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFolder {
    /// The path of the folder.
    pub path: Path,
    /// The columns of PARTITIONED BY.
    pub keys: Vec<String>,
    /// Whether these columns are also in the files.
    pub keeps_columns: bool,
    /// The stem of the names of the files.
    pub stem: String,
}

impl OutputFolder {
    /// The folder of a sink; `None` if the sink writes one file.
    pub(crate) fn of(config: &FileSinkConfig, stem: &str) -> Option<Self> {
        let url = config.table_paths.first()?;
        let keys: Vec<_> = config
            .table_partition_cols
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        if keys.is_empty() && config.file_output_mode.single_file_output(url) {
            return None;
        }
        let path = url.prefix().clone();
        let stem = stem.to_owned();
        Some(Self {
            path,
            keys,
            keeps_columns: config.keep_partition_by_columns,
            stem,
        })
    }

    /// The path of the file that DataFusion names `path`.
    ///
    /// # Errors
    /// The name of the folder is no valid path.
    pub fn file(&self, path: &Path) -> Result<Path> {
        let parts: Vec<_> = path
            .prefix_match(&self.path)
            .into_iter()
            .flatten()
            .collect();
        let Some((file, folders)) = parts.split_last() else {
            return Ok(path.clone());
        };
        let mut names = vec![self.path.as_ref().to_owned()];
        for (folder, key) in folders.iter().zip(&self.keys) {
            names.push(self.folder(folder.as_ref(), key));
        }
        names.push(self.file_name(file.as_ref()));
        let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
        Path::parse(names.join("/"))
            .map_err(|error| DataFusionError::ObjectStore(Box::new(error.into())))
    }

    /// The name of the folder that DataFusion names `name`, which the store has escaped.
    fn folder(&self, name: &str, key: &str) -> String {
        let name = percent_decode_str(name).decode_utf8_lossy();
        let value = name
            .strip_prefix(key)
            .and_then(|name| name.strip_prefix('='))
            .unwrap_or_default();
        // Unless the columns are kept, the value is that of a folder already.
        let value = if self.keeps_columns {
            folder_value(Some(value))
        } else {
            value.to_owned()
        };
        folder_name(key, &value)
    }

    /// The name of the file that DataFusion names `name`: random letters, and a number unless the
    /// file is the only one.
    fn file_name(&self, name: &str) -> String {
        let (random, extension) = name.split_once('.').unwrap_or((name, ""));
        let number = random
            .rsplit_once('_')
            .and_then(|(_, number)| number.parse().ok())
            .unwrap_or(0_usize);
        format!("{}-{number:05}.{extension}", self.stem)
    }

    /// Returns whether a file, which is in the folder or below it, was written by a statement.
    pub(crate) fn is_of_statement(&self, path: &Path) -> bool {
        let parts: Vec<_> = path
            .prefix_match(&self.path)
            .into_iter()
            .flatten()
            .collect();
        let Some((file, folders)) = parts.split_last() else {
            return false;
        };
        folders.iter().all(|folder| folder.as_ref().contains('=')) && is_part_name(file.as_ref())
    }

    /// Replaces the values of the columns of PARTITIONED BY by the values of folders, unless the
    /// columns are also in the files.
    pub fn with_folder_values(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = rows.schema();
        let folder = self.clone();
        let rows = rows.map(move |batch| folder.folder_values(batch?));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    fn folder_values(&self, mut batch: RecordBatch) -> Result<RecordBatch> {
        for key in &self.keys {
            let Some((index, field)) = batch.schema_ref().column_with_name(key) else {
                continue;
            };
            let column = batch.column(index);
            let has_nulls = column.logical_null_count() > 0;
            if self.keeps_columns && has_nulls {
                return exec_err!(
                    "PARTITIONED BY {key}: it is NULL in a row, and keep_partition_by_columns writes no NULL; exclude such rows \
                     with WHERE, or leave the option out"
                );
            }
            // DataFusion's texts of other values have no characters to escape.
            if self.keeps_columns || !has_nulls && !is_text(field.data_type()) {
                continue;
            }
            let text = cast(column, &DataType::Utf8)?;
            let values: StringArray = text
                .as_string::<i32>()
                .iter()
                .map(|value| Some(folder_value(value)))
                .collect();
            batch = with_column(&batch, index, Arc::new(values))?;
        }
        Ok(batch)
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text(values),
        other => other.is_string(),
    }
}

/// The batch with another column of text at `index`.
fn with_column(batch: &RecordBatch, index: usize, column: ArrayRef) -> Result<RecordBatch> {
    let mut fields = batch.schema_ref().fields().to_vec();
    let mut columns = batch.columns().to_vec();
    if let (Some(field), Some(old)) = (fields.get_mut(index), columns.get_mut(index)) {
        *field = Arc::new(Field::new(field.name(), column.data_type().clone(), true));
        *old = column;
    }
    let schema = Schema::new_with_metadata(fields, batch.schema_ref().metadata().clone());
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// Returns whether a file has a name that a statement gives files in a folder: `part-00000.csv`, or
/// `part-00000-of-00004.csv`.
fn is_part_name(name: &str) -> bool {
    let Some(rest) = name
        .strip_prefix(PART)
        .and_then(|rest| rest.strip_prefix('-'))
    else {
        return false;
    };
    // Longer numbers are those of INSERT.
    let count = digits(rest);
    let after = rest.get(count..).unwrap_or_default();
    let after = after
        .strip_prefix("-of-")
        .map_or(after, |rest| rest.get(digits(rest)..).unwrap_or_default());
    (5..10).contains(&count) && after.starts_with('.')
}

/// The number of digits at the start of a text.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_depend_on_the_output_alone() {
        let folder = |keys: &[&str], keeps_columns| {
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            OutputFolder {
                path: Path::from("a b/q"),
                keys,
                keeps_columns,
                stem: PART.to_owned(),
            }
        };
        let check = |folder: &OutputFolder, parts: &[&str], expect: &str| {
            let path = parts
                .iter()
                .fold(folder.path.clone(), |path, part| path.join(*part));
            assert_eq!(
                folder.file(&path).unwrap().as_ref(),
                format!("a b/q/{expect}")
            );
        };
        check(
            &folder(&[], false),
            &["0oIfq3Xy6KkQbm2N_12.csv.gz"],
            "part-00012.csv.gz",
        );
        let by_city = folder(&["a/b"], false);
        check(
            &by_city,
            &["a/b=x%20y", "0oIfq3Xy6KkQbm2N.csv"],
            "a%2Fb=x%20y/part-00000.csv",
        );
        check(
            &by_city,
            &["a/b=__HIVE_DEFAULT_PARTITION__", "x.csv"],
            "a%2Fb=__HIVE_DEFAULT_PARTITION__/part-00000.csv",
        );
        check(
            &by_city,
            &["a/b=%5F_HIVE_DEFAULT_PARTITION__", "x.csv"],
            "a%2Fb=%5F_HIVE_DEFAULT_PARTITION__/part-00000.csv",
        );
        let kept = folder(&["k"], true);
        check(&kept, &["k=x y/z", "x.csv"], "k=x%20y%2Fz/part-00000.csv");
        check(
            &kept,
            &["k=__HIVE_DEFAULT_PARTITION__", "x.csv"],
            "k=%5F_HIVE_DEFAULT_PARTITION__/part-00000.csv",
        );
    }

    #[test]
    fn files_of_statements_are_recognized() {
        let folder = OutputFolder {
            path: Path::from("q"),
            keys: Vec::new(),
            keeps_columns: false,
            stem: PART.to_owned(),
        };
        for name in [
            "part-00000.csv",
            "part-00012.csv.gz",
            "k=1/part-00000.parquet",
            "part-00001-of-00004.tfrecord",
        ] {
            assert!(
                folder.is_of_statement(&Path::from(format!("q/{name}"))),
                "{name}"
            );
        }
        for name in [
            "part-0.csv",
            "part-00000-a.csv",
            "part-00000",
            "x/part-00000.csv",
            "part-0123456789abcdef.tfrecord",
        ] {
            assert!(
                !folder.is_of_statement(&Path::from(format!("q/{name}"))),
                "{name}"
            );
        }
        assert!(!folder.is_of_statement(&Path::from("part-00000.csv")));
    }
}
