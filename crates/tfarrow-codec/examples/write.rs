//! Writes a TFRecord file of `tf.Example` records from Arrow arrays. TensorFlow reads it with
//! `tf.data.TFRecordDataset`.
//!
//! `cargo run --release --example write -- new.tfrecord`

use std::{
    env,
    error::Error,
    fs::File,
    io::{BufWriter, Write},
    sync::Arc,
};

use arrow_array::{
    ArrayRef, Float32Array, Int64Array, ListArray, RecordBatch, StringArray, types::Float32Type,
};
use tfarrow_codec::Writer;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("name a file")?;
    let labels: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(5)]));
    let prices: ArrayRef = Arc::new(Float32Array::from(vec![1.5, 2.5, 3.5]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["one", "two", "three"]));
    let vectors = [vec![Some(0.1), Some(0.2)], vec![], vec![Some(0.3)]];
    let vectors: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(
        vectors.map(Some),
    ));
    let batch = RecordBatch::try_from_iter([
        ("label", labels),
        ("price", prices),
        ("text", texts),
        ("vector", vectors),
    ])?;
    // Null becomes a record without the feature.
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), batch.schema())?;
    writer.write(&batch)?;
    writer.finish()?;
    writer.into_inner().flush()?;
    Ok(())
}
