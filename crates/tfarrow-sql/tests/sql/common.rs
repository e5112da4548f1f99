//! Sessions, files and results for the tests.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use arrow_array::RecordBatch;
use datafusion::{
    arrow::util::pretty::pretty_format_batches, error::Result, prelude::SessionContext,
};
use tfarrow_codec::frame;
use tfarrow_datafusion::Notice;
use tfarrow_sql::{QueryLimits, SessionOptions, plan_statement, session_context, statements};

/// A path below the workspace's test data.
pub(crate) fn testdata(path: &str) -> String {
    format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn session() -> SessionContext {
    session_context(SessionOptions::default()).unwrap()
}

/// A session, and the notices that it reports. Consecutive notices of skipped records are merged.
pub(crate) fn session_with_notices() -> (SessionContext, Arc<Mutex<Vec<Notice>>>) {
    let notices = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&notices);
    let on_notice = move |notice: &Notice| {
        let mut notices = shared.lock().unwrap();
        match (notices.last_mut(), notice) {
            (Some(Notice::Skipped(all)), Notice::Skipped(skipped)) => all.merge(skipped.clone()),
            _ => notices.push(notice.clone()),
        }
    };
    let options = SessionOptions {
        on_notice: Some(Arc::new(on_notice)),
        ..SessionOptions::default()
    };
    (session_context(options).unwrap(), notices)
}

/// The rows of a result, as tables show them, without the frame.
pub(crate) async fn rows(context: &SessionContext, query: &str) -> Result<Vec<String>> {
    table_rows(&context.sql(query).await?.collect().await?)
}

/// The rows of the last statement of a text, which is parsed and planned as the program does.
pub(crate) async fn answer(text: &str) -> Result<Vec<String>> {
    let context = session();
    let mut found = Vec::new();
    for statement in statements(text, &context, QueryLimits::default())? {
        let plan = plan_statement(statement?, &context.state()).await?;
        found = table_rows(&context.execute_logical_plan(plan).await?.collect().await?)?;
    }
    Ok(found)
}

/// The error message of the first statement of a text that fails, without a backtrace.
pub(crate) async fn refusal(text: &str) -> String {
    answer(text).await.map_or_else(
        |error| error.strip_backtrace(),
        |rows| panic!("{text}: {rows:?}"),
    )
}

/// The rows of batches, as tables show them, without the frame.
pub(crate) fn table_rows(batches: &[RecordBatch]) -> Result<Vec<String>> {
    let table = pretty_format_batches(batches)?.to_string();
    let cells = |line: &str| {
        line.trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" | ")
    };
    Ok(table
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(1)
        .map(cells)
        .collect())
}

#[track_caller]
pub(crate) fn check<'a>(found: Result<Vec<String>>, expect: impl AsRef<[&'a str]>) {
    assert_eq!(found.unwrap(), expect.as_ref());
}

/// The error message of a query that must fail, without a backtrace.
pub(crate) async fn error(context: &SessionContext, query: &str) -> String {
    match rows(context, query).await {
        Ok(rows) => panic!("no error: {rows:?}"),
        Err(error) => error.strip_backtrace(),
    }
}

/// One feature of an Example.
#[derive(Clone)]
pub(crate) enum Value<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f32]),
    Bytes(&'a [&'a [u8]]),
    Unset,
}

pub(crate) fn example(features: &[(&str, Value<'_>)]) -> Vec<u8> {
    let mut map = Vec::new();
    for (name, value) in features {
        let mut entry = Vec::new();
        field(&mut entry, 1, name.as_bytes());
        field(&mut entry, 2, &feature(value));
        field(&mut map, 1, &entry);
    }
    let mut message = Vec::new();
    field(&mut message, 1, &map);
    message
}

fn feature(value: &Value<'_>) -> Vec<u8> {
    let (kind, mut list) = (&mut Vec::new(), Vec::new());
    match value {
        Value::Bytes(values) => {
            values.iter().for_each(|value| field(&mut list, 1, value));
            field(kind, 1, &list);
        }
        Value::Floats(values) => {
            field(
                &mut list,
                1,
                &values
                    .iter()
                    .flat_map(|v| v.to_le_bytes())
                    .collect::<Vec<_>>(),
            );
            field(kind, 2, &list);
        }
        Value::Ints(values) => {
            let mut packed = Vec::new();
            values
                .iter()
                .for_each(|value| varint(&mut packed, *value as u64));
            field(&mut list, 1, &packed);
            field(kind, 3, &list);
        }
        Value::Unset => {}
    }
    std::mem::take(kind)
}

fn field(to: &mut Vec<u8>, number: u8, value: &[u8]) {
    to.push(number << 3 | 2);
    varint(to, value.len() as u64);
    to.extend_from_slice(value);
}

fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// A temporary folder, which is removed at the end of the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in the folder.
    pub(crate) fn name(&self, name: &str) -> String {
        self.path().join(name).display().to_string()
    }

    /// Writes a shard of these records.
    pub(crate) fn shard(&self, name: &str, records: impl IntoIterator<Item = Vec<u8>>) -> PathBuf {
        let mut bytes = Vec::new();
        records
            .into_iter()
            .for_each(|record| frame::write(&record, &mut bytes));
        self.file(name, &bytes)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::File::create(&path)
            .unwrap()
            .write_all(bytes)
            .unwrap();
        path
    }
}
