//! The loop around the push decoder for asynchronous sources: a stream of batches from any
//! `AsyncRead`.
//!
//! `cargo run --example async_read -- FILE` prints the rows of each batch. The codec depends on no
//! runtime. This example uses the executor of the crate `futures`; the loop is the same with the
//! reader of tokio.
#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::{env, error::Error, fs::File};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{
    AsyncRead, AsyncReadExt, Stream, TryStreamExt, executor::block_on, io::AllowStdIo, pin_mut,
    stream::try_unfold,
};
use tfarrow_codec::{Decoder, Layout, ReaderBuilder, infer::infer_schema};

/// Number of bytes of one read.
const READ_BYTES: usize = 256 << 10;

/// Returns the batches of a TFRecord stream. Bytes are read only while the stream is polled.
fn batches<R>(
    reader: R,
    schema: SchemaRef,
) -> Result<impl Stream<Item = Result<RecordBatch, Box<dyn Error>>>, Box<dyn Error>>
where
    R: AsyncRead + Unpin,
{
    let decoder = ReaderBuilder::new(schema).build_decoder()?;
    let state = Loop {
        reader,
        decoder,
        buffer: vec![0; READ_BYTES],
        start: 0,
        end: 0,
    };
    Ok(try_unfold(state, |mut state| async move {
        Ok(state.next().await?.map(|batch| (batch, state)))
    }))
}

struct Loop<R> {
    reader: R,
    decoder: Decoder,
    /// The bytes of the last read, and the range of them that the decoder has not taken yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<R: AsyncRead + Unpin> Loop<R> {
    async fn next(&mut self) -> Result<Option<RecordBatch>, Box<dyn Error>> {
        loop {
            if self.start == self.end {
                (self.start, self.end) = (0, self.reader.read(&mut self.buffer).await?);
            }
            let taken = self.decoder.decode(&self.buffer[self.start..self.end])?;
            self.start += taken;
            if taken == 0 {
                // The batch is full, or the stream has ended.
                break;
            }
        }
        let batch = self.decoder.flush()?;
        if batch.is_none() {
            self.decoder.finish()?;
        }
        Ok(batch)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("which file?")?;
    let schema = infer_schema(File::open(&path)?, Layout::Auto, None)?;
    let batches = batches(AllowStdIo::new(File::open(&path)?), schema)?;
    pin_mut!(batches);
    block_on(async {
        while let Some(batch) = batches.try_next().await? {
            println!(
                "{} rows of {} columns",
                batch.num_rows(),
                batch.num_columns()
            );
        }
        Ok(())
    })
}
