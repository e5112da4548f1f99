//! SQL over TFRecord, Parquet, Arrow, CSV and JSON files where they lie, by
//! [DataFusion](https://datafusion.apache.org).
//!
//! ```
//! use tfarrow_sql::{SessionOptions, session_context};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! # let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
//! let context = session_context(SessionOptions::default())?;
//! let query = format!("SELECT count(*) AS records FROM '{testdata}/shards/*.tfrecord'");
//! context.sql(&query).await?.show().await?;
//! # Ok(()) }
//! ```
//!
//! A query passes through these stages, one module each. The scan and the sink of TFRecord are
//! those of [`tfarrow_datafusion`].
//!
//! ```text
//! text ─▶ statements ─▶ catalog ─▶ optimizer ─▶ scan ─▶ rows ─▶ write
//!         parse,        find       change                       COPY,
//!         check         files      plans                        INSERT
//! ```
//!
//! - [`session_context`] creates a session in which names of files are tables; [`enable_sql`]
//!   extends any session.
//! - [`statements`] parses and checks statements.
//! - An [`Engine`] runs plans on other machines; [`wire`] has the messages.
//!
//! The crate prints nothing: features without a column and skipped records are reported to
//! [`SessionOptions::on_notice`], and [`explain_missing_column`] returns a hint for "column not
//! found".

mod catalog;
mod engine;
mod functions;
mod merged_schema;
mod optimizer;
mod progress;
mod session;
mod statements;
mod text;
pub mod wire;
mod write;

pub use engine::{
    Engine, RemoteExec, TaskError, TaskNotices, TaskProgress, with_task_notices, with_whole_files,
};
pub use optimizer::cancellation::Cancellation;
pub use progress::{ScanProgress, scan_progress};
pub use session::{
    SessionOptions, column_hints::explain_missing_column, enable_sql,
    plan_statement::plan_statement, session_context,
};
pub use statements::{QueryLimits, Statements, headings::with_headings, statements};
