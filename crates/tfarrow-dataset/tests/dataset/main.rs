//! The public interface of the crate: finding, reading, inferring and writing shards.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

mod batch_reader;
mod compression;
mod damage;
mod images;
mod output;
mod pieces;
mod ranges;
mod refusal;
mod resolve;
mod shared;
mod truncated;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use tfarrow_codec::frame;
use tfarrow_dataset::{
    Compression, Error, ReadOptions, Shard, ShardFormat, ShardReader, ShardWriter,
};

/// Returns the frames of records with this data.
fn frames<D: AsRef<[u8]>>(records: &[D]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for data in records {
        frame::write(data.as_ref(), &mut bytes);
    }
    bytes
}

fn compressed(bytes: &[u8], compression: Compression) -> Vec<u8> {
    let mut writer = ShardWriter::new(Vec::new(), compression);
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// Reads a shard. Returns the data of its records, its compression, and the error at the end.
fn read(bytes: &[u8], options: &ReadOptions) -> (Vec<Vec<u8>>, Option<Compression>, Option<Error>) {
    let source = std::io::Cursor::new(bytes.to_vec());
    let mut reader = match ShardReader::from_read(Box::new(source), "x", options) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), None, Some(error)),
    };
    let mut data = Vec::new();
    let mut error = None;
    loop {
        match reader.next() {
            Ok(Some(records)) => data.extend(records.iter().map(<[u8]>::to_vec)),
            Ok(None) => break,
            Err(e) => {
                error = Some(e);
                break;
            }
        }
    }
    assert!(
        matches!(reader.next(), Ok(None)),
        "a reader returns nothing after its end"
    );
    (data, Some(reader.compression()), error)
}

fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

fn shard_of(path: &Path) -> Shard {
    let size = fs::metadata(path).unwrap().len();
    Shard::file(
        path.to_owned(),
        path.file_name().unwrap().into(),
        size,
        ShardFormat::TfRecord,
    )
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(name)
}
