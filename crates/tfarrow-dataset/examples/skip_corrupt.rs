//! Reads what can be read of corrupt files, and says what was lost and where.
//!
//! `cargo run --release --example skip_corrupt -- testdata/corrupt/data.tfrecord`
#![expect(clippy::print_stdout, reason = "an example is a program")]

use std::{env, error::Error};

use tfarrow_codec::{OnError, Records, Segment, VerifyCrc};
use tfarrow_dataset::{ReadOptions, ShardReader, resolve};

fn main() -> Result<(), Box<dyn Error>> {
    let sources: Vec<_> = env::args().skip(1).collect();
    // A corrupt length ends the records of a chunk; reading goes on where both CRCs of a frame
    // match.
    let options = ReadOptions {
        on_error: OnError::Skip,
        ..ReadOptions::default()
    };
    for shard in resolve(&sources)? {
        let mut reader = ShardReader::open(&shard, &options)?;
        let mut intact = 0;
        while let Some(segment) = reader.segment()? {
            match segment {
                Segment::Records(records) => intact += count_intact(records),
                Segment::Lost(lost) => {
                    // A range of lost bytes may come in several pieces, of which the first one has
                    // the error.
                    if let Some(error) = lost.error {
                        println!("{error}");
                    }
                    println!("{} bytes lost at byte {}", lost.bytes.len(), lost.offset);
                }
            }
        }
        println!("{}: {intact} intact records", shard.path.display());
    }
    Ok(())
}

/// Prints the records whose data does not have its CRC, and counts the others.
fn count_intact(records: Records) -> usize {
    let mut intact = 0;
    let mut rest = records;
    while let Err(error) = rest.verify(VerifyCrc::Always) {
        println!("{error}");
        let good = usize::try_from(error.position().record - rest.first()).unwrap_or(usize::MAX);
        intact += good;
        rest = rest.split_at(good + 1).1;
    }
    intact + rest.len()
}
