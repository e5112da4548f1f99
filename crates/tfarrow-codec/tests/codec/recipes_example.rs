use std::{
    error::Error,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use tfarrow_codec::{ReaderBuilder, Layout, infer::infer_schema};

fn count_rows(path: &Path) -> Result<usize, Box<dyn Error>> {
    let schema = infer_schema(File::open(path)?, Layout::Auto, None)?;
    let mut decoder = ReaderBuilder::new(schema).build_decoder()?;
    let mut input = BufReader::new(File::open(path)?);
    let mut rows = 0;
    loop {
        let taken = decoder.decode(input.fill_buf()?)?;
        input.consume(taken);
        if taken == 0 {
            // The batch is full, or the file has ended.
            let Some(batch) = decoder.flush()? else { break };
            rows += batch.num_rows(); // `batch` is an arrow RecordBatch
        }
    }
    decoder.finish()?; // an error if the file ends inside a record
    Ok(rows)
}
