use std::{error::Error, fs::File, io::BufReader, path::Path};
use tfarrow_codec::{ReaderBuilder, Layout, infer::infer_schema};

fn count_rows(path: &Path) -> Result<usize, Box<dyn Error>> {
    let schema = infer_schema(File::open(path)?, Layout::Auto, None)?;
    let reader = ReaderBuilder::new(schema).build(BufReader::new(File::open(path)?))?;
    reader.map(|batch| Ok(batch?.num_rows())).sum() // a batch is an Arrow RecordBatch
}
