use std::{error::Error, fs, path::Path};
use tfarrow_codec::{DecoderBuilder, Layout, infer::infer_schema};

fn count_rows(path: &Path) -> Result<usize, Box<dyn Error>> {
    let bytes = fs::read(path)?;
    let mut decoder = DecoderBuilder::new(infer_schema(&bytes, Layout::Auto)?).build()?;
    let (mut input, mut rows) = (&bytes[..], 0);
    loop {
        input = &input[decoder.decode(input)?..]; // takes the bytes of one batch
        let Some(batch) = decoder.flush()? else { break }; // an Arrow RecordBatch
        rows += batch.num_rows();
    }
    decoder.finish()?; // an error if the file ends inside a record
    Ok(rows)
}
