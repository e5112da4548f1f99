//! Registers TFRecord files as a table of any session of DataFusion, and reads a data frame of
//! them.
//!
//! `cargo run --release --example register -- testdata/shards/`
#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::env;

use datafusion::prelude::{SessionContext, col, lit};
use tfarrow_datafusion::{SessionContextTfRecordExt, TfRecordOptions};

#[tokio::main]
async fn main() -> datafusion::error::Result<()> {
    let source = env::args().nth(1).unwrap_or("testdata/shards/".to_owned());
    let context = SessionContext::new();
    let options = TfRecordOptions::default();
    context
        .register_tfrecord("shards", &source, &options)
        .await?;
    context
        .sql("SELECT city, count(*) AS n, avg(price) FROM shards GROUP BY city ORDER BY n DESC")
        .await?
        .show()
        .await?;
    // The scan decodes two features of each record, and the second one only where the filter is
    // true.
    let frame = context.read_tfrecord(&source, &options).await?;
    let cheap = frame
        .filter(col("price").lt(lit(10.0)))?
        .select_columns(&["city", "price"])?;
    println!("{} rows", cheap.count().await?);
    Ok(())
}
