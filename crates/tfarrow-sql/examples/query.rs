//! Runs queries over files, and prints the results:
//!
//! ```text
//! cargo run --release -p tfarrow-sql --example query -- "SELECT city, count(*) FROM 'testdata/shards' GROUP BY city"
//! ```
#![allow(clippy::print_stderr, reason = "an example is a program")]

use std::sync::Arc;

use tfarrow_sql::{SessionOptions, session_context};

#[tokio::main]
async fn main() -> datafusion::error::Result<()> {
    let on_notice = Some(Arc::new(|notice: &_| eprintln!("{notice}")) as _);
    let context = session_context(SessionOptions {
        on_notice,
        ..SessionOptions::default()
    })?;
    for query in std::env::args().skip(1) {
        context.sql(&query).await?.show().await?;
    }
    Ok(())
}
