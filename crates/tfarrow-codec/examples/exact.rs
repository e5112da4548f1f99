//! Restores the bytes of records that another encoder wrote, for example with unpacked lists or
//! features in another order.
//!
//! `cargo run --release --example exact -- testdata/scalar.tfrecord`
#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::{env, error::Error, fs, sync::Arc};

use tfarrow_codec::{
    ExactColumn, Layout, Limits, ReaderBuilder, Records, WriterBuilder, infer::infer_schema,
};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("name a file")?;
    let file = fs::read(path)?;
    let schema = infer_schema(file.as_slice(), Layout::Auto, None)?;
    let records = Records::from_frames(file.clone(), Limits::default())?;
    let batch = ReaderBuilder::new(Arc::clone(&schema))
        .build_batch_decoder()?
        .decode(&records)?;
    // The column has the differences to what the encoder would write; null for most records.
    let batch = ExactColumn::new(schema)?.add(&batch, &records, |row| row)?;
    let mut restored = Vec::new();
    WriterBuilder::new()
        .build_encoder(batch.schema())?
        .encode(&batch, &mut restored)?;
    println!(
        "{} records, the bytes are {}",
        batch.num_rows(),
        if restored == file {
            "equal"
        } else {
            "different"
        }
    );
    Ok(())
}
