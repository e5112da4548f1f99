//! Reads two features of a file, whatever else its records have: the other features are passed over
//! without being decoded.
//!
//! `cargo run --release --example columns -- testdata/scalar.tfrecord`
#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::{env, error::Error, fs::File, io::BufReader, sync::Arc};

use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, Schema};
use tfarrow_codec::ReaderBuilder;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("name a file")?;
    // A schema that is declared needs no inference, and all shards of a data set get the same one.
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("title", DataType::Utf8, true),
    ]);
    let reader = ReaderBuilder::new(Arc::new(schema)).build(BufReader::new(File::open(&path)?))?;
    for batch in reader {
        let batch = batch?;
        let titles = batch.column(1).as_string::<i32>();
        for title in titles.iter().flatten().take(3) {
            println!("{title}");
        }
    }
    Ok(())
}
