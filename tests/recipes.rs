//! The recipes of `sql/`: each runs in the program unchanged, and an `.slt` file contains its
//! expected results.
//!
//! `TFARROW_UPDATE=1 cargo test recipes` writes the results into the `.slt` files for review.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use datafusion::{arrow, error::DataFusionError, prelude::SessionContext};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use tfarrow_sql::{SessionOptions, session_context};

use crate::support::{path, root, tfarrow};

/// The files of `sql/` with this extension, sorted.
fn files(extension: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(path("sql"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    files
}

/// The statements of a recipe, without comments.
fn statements(recipe: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(recipe).unwrap();
    let code: Vec<_> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect();
    let statements = code.join("\n");
    statements
        .split(';')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_recipe_runs_unchanged() {
    let recipes = files("sql");
    assert!(recipes.len() >= 10);
    for recipe in recipes {
        let text = std::fs::read_to_string(&recipe).unwrap();
        assert!(
            text.starts_with("-- "),
            "{} starts without a comment",
            recipe.display()
        );
        let printed = tfarrow(&["sql", "-f", recipe.to_str().unwrap()]).prints();
        let tables = printed
            .lines()
            .filter(|line| line.starts_with("+-"))
            .count();
        assert_eq!(
            tables,
            3 * statements(&recipe).len(),
            "{}: {printed}",
            recipe.display()
        );
    }
}

#[test]
fn every_statement_of_a_recipe_has_an_expected_result() {
    for recipe in files("sql") {
        let answers = std::fs::read_to_string(recipe.with_extension("slt")).unwrap();
        for statement in statements(&recipe) {
            assert!(
                answers.contains(&format!("\n{statement}\n----\n")),
                "{}: {statement}",
                recipe.display()
            );
        }
    }
}

#[tokio::test]
async fn results_match_the_slt_files() {
    // Recipes name their files relative to the root of the repository.
    std::env::set_current_dir(root()).unwrap();
    for file in files("slt") {
        let runner =
            || Runner::new(|| async { Ok(Database(session_context(SessionOptions::default())?)) });
        if std::env::var_os("TFARROW_UPDATE").is_some() {
            let (validator, normalizer) = (
                sqllogictest::default_validator,
                sqllogictest::default_normalizer,
            );
            let columns = sqllogictest::strict_column_validator;
            runner()
                .update_test_file(&file, " ", validator, normalizer, columns)
                .await
                .unwrap();
        }
        let mut runner = runner();
        runner.with_column_validator(sqllogictest::strict_column_validator);
        runner
            .run_file_async(&file)
            .await
            .unwrap_or_else(|e| panic!("{e}"));
    }
}

/// A session of tfarrow-datafusion as a database of `sqllogictest`.
struct Database(SessionContext);

#[derive(Debug)]
struct Failed(DataFusionError);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failed {}

impl From<DataFusionError> for Failed {
    fn from(error: DataFusionError) -> Self {
        Self(error)
    }
}

#[async_trait]
impl AsyncDB for Database {
    type Error = Failed;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failed> {
        let frame = self.0.sql(sql).await?;
        let types: Vec<_> = frame
            .schema()
            .fields()
            .iter()
            .map(|field| column_type(field.data_type()))
            .collect();
        let batches = frame.collect().await?;
        if types.is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let cell = |column: &arrow::array::ArrayRef, row| {
            let text = arrow::util::display::array_value_to_string(column, row).unwrap();
            match text.as_str() {
                _ if arrow::array::Array::is_null(column, row) => "NULL".to_owned(),
                "" => "(empty)".to_owned(),
                _ => text,
            }
        };
        let rows = batches.iter().flat_map(|batch| {
            (0..batch.num_rows()).map(move |row| {
                batch
                    .columns()
                    .iter()
                    .map(|column| cell(column, row))
                    .collect()
            })
        });
        Ok(DBOutput::Rows {
            types,
            rows: rows.collect(),
        })
    }

    async fn shutdown(&mut self) {}
}

fn column_type(data_type: &arrow::datatypes::DataType) -> DefaultColumnType {
    match data_type {
        integer if integer.is_integer() => DefaultColumnType::Integer,
        float if float.is_floating() => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}
