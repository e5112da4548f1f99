//! Reads TFRecord as a listing table of DataFusion, from any object store of the session.
//!
//! `cargo run --release --example listing_table -- testdata/shards/`

use std::{env, sync::Arc};

use datafusion::{datasource::listing::ListingOptions, prelude::SessionContext};
use tfarrow_datafusion::TfRecordFormat;

#[tokio::main]
async fn main() -> datafusion::error::Result<()> {
    let folder = env::args().nth(1).unwrap_or("testdata/shards/".to_owned());
    let context = SessionContext::new();
    // `with_table_partition_cols` adds columns of folders such as `split=train`.
    let options = ListingOptions::new(Arc::new(TfRecordFormat::default()));
    context
        .register_listing_table("records", &folder, options, None, None)
        .await?;
    context
        .sql("SELECT label, count(*) FROM records WHERE price > 40 GROUP BY label ORDER BY label")
        .await?
        .show()
        .await
}
