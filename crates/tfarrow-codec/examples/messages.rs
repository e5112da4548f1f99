//! Reads records that are protobuf messages of any type, by their descriptors, as nested columns.
//!
//! `protoc --descriptor_set_out=shapes.desc --include_imports shapes.proto` makes the descriptors.
//! `cargo run --release --example messages -- testdata/message/shapes.desc tfarrow.test.Shape
//! testdata/message/shapes.tfrecord`
#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::{env, error::Error, fs, fs::File, io::BufReader};

use tfarrow_codec::{Limits, MessageType, OnError, ReaderBuilder};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().skip(1).collect();
    let [descriptors, name, path] = args.as_slice() else {
        return Err("name descriptors, a message and a file".into());
    };
    let message = MessageType::parse(&fs::read(descriptors)?, name)?;
    let schema = message.schema(&Limits::default())?;
    let builder = ReaderBuilder::new(schema).with_on_error(OnError::Skip);
    let mut reader = builder.build(BufReader::new(File::open(path)?))?;
    for batch in reader.by_ref() {
        let batch = batch?;
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            println!(
                "{}: {}, {} nulls",
                field.name(),
                field.data_type(),
                column.null_count()
            );
        }
    }
    for error in reader.take_skipped() {
        println!("skipped: {error}");
    }
    Ok(())
}
