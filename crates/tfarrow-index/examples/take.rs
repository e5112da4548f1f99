//! Takes records at random, and prints how many a second, as `docs/bench/index.py` runs it:
//!
//! ```sh
//! cargo run --release --package tfarrow-index --example take -- shards/ 1024
//! ```
#![allow(clippy::print_stdout, reason = "the result of the program")]

use std::{error::Error, time::Instant};

use tfarrow_dataset::resolve;
use tfarrow_index::{Dataset, DatasetOptions};

/// Number of measurements, of which the best counts.
const RUNS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let source = args.next().ok_or("SOURCE is missing")?;
    let count: usize = args.next().ok_or("COUNT is missing")?.parse()?;
    let begin = Instant::now();
    let dataset = Dataset::open(resolve(&[source])?, &DatasetOptions::default())?;
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
        let records = dataset.records(&numbers)?;
        records.verify(tfarrow_codec::VerifyCrc::Always)?;
        best[0] = best[0].min(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        let batch = dataset.take(&numbers)?;
        best[1] = best[1].min(begin.elapsed().as_secs_f64());
        assert_eq!((records.len(), batch.num_rows()), (count, count));
    }
    let [raw, decoded] = best.map(|seconds| count as f64 / seconds);
    println!("records {raw:.0} /s, decoded {decoded:.0} /s");
    Ok(())
}
