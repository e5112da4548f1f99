//! Converts a data set to Parquet, one file for each shard, with the progress of a program of your
//! own.
//!
//! `cargo run --release --example convert -- testdata/shards/ parquet/`
#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::{env, error::Error, path::Path};

use tfarrow_convert::{ConvertOptions, Progress, convert};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().skip(1).collect();
    let [sources @ .., dest] = args.as_slice() else {
        return Err("name sources and a folder".into());
    };
    // Another thread may read the progress, and cancel the conversion.
    let progress = Progress::default();
    let options = ConvertOptions {
        overwrite: true,
        ..ConvertOptions::default()
    };
    let report = convert(sources, Path::new(dest), &options, &progress)?;
    println!(
        "{} records of {} shards in {} files",
        report.records, report.shards, report.files
    );
    Ok(())
}
