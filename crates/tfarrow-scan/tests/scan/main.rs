//! The public interface of the crate: inference and verification of data sets.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

mod compressed_index;
mod index;
mod infer;
mod object_index;
mod rows;
mod verify;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use tfarrow_codec::frame;
use tfarrow_dataset::{Compression, Shard, ShardFormat, ShardWriter};

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
