//! Takes records at random, and prints how many a second, as `docs/bench/index.py` runs it:
//!
//! ```sh
//! cargo run --release --package tfarrow-scan --example take -- shards/ 1024
//! ```
#![allow(clippy::print_stdout, reason = "the result of the program")]

use std::{error::Error, ops::ControlFlow, time::Instant};

use tfarrow_codec::{Layout, ReaderBuilder, VerifyCrc};
use tfarrow_dataset::resolve;
use tfarrow_index::{Dataset, DatasetOptions};
use tfarrow_scan::{InferOptions, SAMPLE_RECORDS, Sample, infer};

/// Number of measurements, of which the best counts.
const RUNS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let source = args.next().ok_or("SOURCE is missing")?;
    let count: usize = args.next().ok_or("COUNT is missing")?.parse()?;
    let begin = Instant::now();
    let shards: Vec<_> = resolve(&[source])?.into_iter().collect();
    let options = InferOptions {
        sample: Sample::Records(SAMPLE_RECORDS),
        ..InferOptions::default()
    };
    let progress = |_, _| ControlFlow::Continue(());
    let schema = infer(&shards, &options, &progress)?.schema(Layout::Auto, None)?;
    let builder = ReaderBuilder::new(schema);
    let dataset = Dataset::open(shards, builder, &DatasetOptions::default(), &progress)?;
    println!(
        "open {:.4} s, {} records",
        begin.elapsed().as_secs_f64(),
        dataset.len()
    );
    let mut state = 1u64;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..RUNS {
        let mut numbers = Vec::with_capacity(count);
        for _ in 0..count {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            numbers.push((state >> 33) % dataset.len());
        }
        let begin = Instant::now();
        let fetched = dataset.fetch(&numbers, 1)?;
        fetched.records().verify(VerifyCrc::Always)?;
        best[0] = best[0].min(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        let batch = dataset.take(&numbers)?;
        best[1] = best[1].min(begin.elapsed().as_secs_f64());
        assert_eq!((fetched.len(), batch.num_rows()), (count, count));
    }
    let [raw, decoded] = best.map(|seconds| count as f64 / seconds);
    println!("records {raw:.0} /s, decoded {decoded:.0} /s");
    Ok(())
}
