//! Reads all shards of a data set: files, folders, globs, shard specs such as `train@10`, or URLs
//! of object stores, plain or compressed.
//!
//! `cargo run --release --example many_shards -- testdata/shards/ 'testdata/compressed/*.gz'`
#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::{env, error::Error, ops::ControlFlow, sync::Arc};

use tfarrow_codec::{Layout, ReaderBuilder};
use tfarrow_dataset::{ReadOptions, ShardBatchReader, ShardReader, resolve};
use tfarrow_scan::{InferOptions, infer};

fn main() -> Result<(), Box<dyn Error>> {
    let sources: Vec<_> = env::args().skip(1).collect();
    for source in &sources {
        let shards = resolve(&[source])?;
        // Infers on all cores. The closure may report the progress, and stop the inference.
        let inferred = infer(&shards, &InferOptions::default(), &|_, _| {
            ControlFlow::Continue(())
        })?;
        let schema = inferred.schema(Layout::Auto, None)?;
        println!(
            "{source}: {} records, {} columns",
            inferred.summary.records(),
            schema.fields().len()
        );
        for shard in &shards {
            let reader = ShardReader::open(shard, &ReadOptions::default())?;
            let mut rows = 0;
            for batch in ShardBatchReader::new(reader, ReaderBuilder::new(Arc::clone(&schema)))? {
                rows += batch?.num_rows();
            }
            println!("  {}: {rows} rows", shard.name.display());
        }
    }
    Ok(())
}
