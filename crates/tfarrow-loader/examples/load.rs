//! Loads a data set in each order, and prints how many records a second:
//!
//! ```sh
//! cargo run --release --package tfarrow-loader --example load -- shards/ 256
//! ```
#![allow(clippy::print_stdout, reason = "the result of the program")]

use std::{error::Error, ops::ControlFlow, sync::Arc, time::Instant};

use tfarrow_codec::{Layout, ReaderBuilder};
use tfarrow_dataset::resolve;
use tfarrow_index::{Dataset, DatasetOptions};
use tfarrow_loader::{Division, LoaderPlan, Order, Selection, Shuffle};
use tfarrow_scan::{InferOptions, SAMPLE_RECORDS, Sample, infer};

/// Number of epochs, of which the best counts.
const EPOCHS: u64 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let source = args.next().ok_or("SOURCE is missing")?;
    let batch_size: u64 = args.next().ok_or("BATCH_SIZE is missing")?.parse()?;
    let only = args.next();
    let threads = std::thread::available_parallelism()?.get();
    let shards: Vec<_> = resolve(&[source])?.into_iter().collect();
    let sample = InferOptions {
        sample: Sample::Records(SAMPLE_RECORDS),
        ..InferOptions::default()
    };
    let progress = |_, _| ControlFlow::Continue(());
    let schema = infer(&shards, &sample, &progress)?.schema(Layout::Auto, None)?;
    let options = DatasetOptions {
        threads,
        ..DatasetOptions::default()
    };
    let dataset = Dataset::open(shards, ReaderBuilder::new(schema), &options, &progress)?;
    let dataset = Arc::new(dataset);
    let selection = Selection::All;
    for shuffle in Shuffle::ALL {
        if only.as_ref().is_some_and(|only| only != shuffle.name()) {
            continue;
        }
        let mut first = f64::INFINITY;
        let mut all = f64::INFINITY;
        for epoch in 0..EPOCHS {
            let begin = Instant::now();
            let order = Order::new(selection.extent(&dataset), shuffle, 1, epoch);
            let division = Division {
                records: order.count(),
                start: 0,
                batch_size,
                ranks: 1,
                workers: 1,
                drop_last: false,
            };
            let plan = LoaderPlan {
                dataset: Arc::clone(&dataset),
                selection: selection.clone(),
                order,
                share: division.share(0, 0).ok_or("no share")?,
                first: 0,
                threads,
            };
            let mut rows = 0;
            for loaded in plan.start() {
                if rows == 0 {
                    first = first.min(begin.elapsed().as_secs_f64());
                }
                rows += loaded?.batch.num_rows();
            }
            assert_eq!(rows as u64, dataset.len());
            all = all.min(begin.elapsed().as_secs_f64());
        }
        let speed = dataset.len() as f64 / all;
        println!(
            "{shuffle}: {speed:.0} records/s, first batch {:.1} ms",
            first * 1e3
        );
    }
    Ok(())
}
