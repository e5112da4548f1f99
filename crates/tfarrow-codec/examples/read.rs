//! Reads a TFRecord file in batches, and prints the columns and the rows of each batch.
//!
//! `cargo run --release --example read -- testdata/scalar.tfrecord`
#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::{env, error::Error, fs::File, io::BufReader};

use tfarrow_codec::{Layout, ReaderBuilder, infer::infer_schema};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("name a file")?;
    // The schema of the first thousand records. A record that does not fit the schema is an error
    // of the reader.
    let schema = infer_schema(File::open(&path)?, Layout::Auto, Some(1000))?;
    for field in schema.fields() {
        println!("{}: {}", field.name(), field.data_type());
    }
    let reader = ReaderBuilder::new(schema)
        .with_batch_size(1000)
        .build(BufReader::new(File::open(&path)?))?;
    for batch in reader {
        println!("{} rows", batch?.num_rows());
    }
    Ok(())
}
