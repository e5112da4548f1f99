//! Enables `CREATE EXTERNAL TABLE .. STORED AS TFRECORD` with declared columns, and `COPY .. TO ..
//! STORED AS TFRECORD`, in any session.
//!
//! `cargo run --release --example statements -- testdata/shards/ new.tfrecord`

use std::env;

use datafusion::prelude::SessionContext;
use tfarrow_datafusion::SessionContextTfRecordExt;

#[tokio::main]
async fn main() -> datafusion::error::Result<()> {
    let mut args = env::args().skip(1);
    let source = args.next().unwrap_or("testdata/shards/".to_owned());
    let dest = args.next().unwrap_or("new.tfrecord".to_owned());
    let context = SessionContext::new();
    context.enable_tfrecord()?;
    let create = format!(
        "CREATE EXTERNAL TABLE shards (label INT NOT NULL, price DOUBLE DEFAULT 0) STORED AS TFRECORD LOCATION '{source}'"
    );
    context.sql(&create).await?.collect().await?;
    let copy = format!(
        "COPY (SELECT label, price FROM shards WHERE price > 40) TO '{dest}' STORED AS TFRECORD"
    );
    context.sql(&copy).await?.show().await
}
