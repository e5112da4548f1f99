//! Time to read files without decoding them: the lower bound for a scan.
//!
//! ```sh
//! cargo bench -p tfarrow-dataset --bench floor -- shards/*.tfrecord
//! ```
//!
//! Plain files are read in blocks by all cores, with `pread` into buffers that are reused, and the
//! CRC32C of each block is computed. Compressed files are decompressed by one core each, because
//! decompression cannot start in the middle of a gzip member. Prints the best of several runs:
//! seconds, and decompressed megabytes per second.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark for the terminal"
)]

use std::{
    fs::File,
    io::Read,
    os::unix::fs::FileExt,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use tfarrow_dataset::Compression;

/// Size of a block in bytes.
const BLOCK: u64 = 1 << 20;
/// Number of runs, of which the best is printed.
const RUNS: usize = 5;

/// A piece of work for one core.
enum Piece {
    Block(usize, u64),
    Inflate(usize),
}

fn main() {
    let paths: Vec<_> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    if paths.is_empty() {
        // `cargo bench` runs all benchmarks, and this one needs arguments.
        return;
    }
    let files: Vec<_> = paths.iter().map(|path| File::open(path).unwrap()).collect();
    let mut pieces = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mut head = [0; 12];
        let count = file.read_at(&mut head, 0).unwrap();
        match Compression::of(&head[..count]) {
            Compression::None => {
                let blocks = file.metadata().unwrap().len().div_ceil(BLOCK);
                pieces.extend((0..blocks).map(|block| Piece::Block(index, block * BLOCK)));
            }
            Compression::Gzip | Compression::Zlib | Compression::Snappy => {
                pieces.push(Piece::Inflate(index))
            }
        }
    }
    let mut best = f64::INFINITY;
    let mut bytes = 0;
    for _ in 0..RUNS {
        let begun = Instant::now();
        bytes = run(&files, &pieces);
        best = best.min(begun.elapsed().as_secs_f64());
    }
    println!("{best:.4} s, {:.0} MB/s", bytes as f64 / best / 1e6);
}

fn run(files: &[File], pieces: &[Piece]) -> usize {
    let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let cores = std::thread::available_parallelism().unwrap().get();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let mut buffer = vec![0; BLOCK as usize];
                while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = match piece {
                        Piece::Block(file, offset) => block(&files[*file], *offset, &mut buffer),
                        Piece::Inflate(file) => inflate(&files[*file], &mut buffer),
                    };
                    bytes.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    bytes.into_inner()
}

fn block(file: &File, offset: u64, buffer: &mut [u8]) -> usize {
    let mut count = 0;
    while count < buffer.len() {
        match file
            .read_at(&mut buffer[count..], offset + count as u64)
            .unwrap()
        {
            0 => break,
            more => count += more,
        }
    }
    std::hint::black_box(crc32c::crc32c(&buffer[..count]));
    count
}

/// Reads a file from its start, with an offset of its own.
struct Cursor<'a>(&'a File, u64);

impl Read for Cursor<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read_at(to, self.1)?;
        self.1 += count as u64;
        Ok(count)
    }
}

fn inflate(file: &File, buffer: &mut [u8]) -> usize {
    let mut head = [0; 2];
    file.read_exact_at(&mut head, 0).unwrap();
    let source = std::io::BufReader::with_capacity(128 << 10, Cursor(file, 0));
    let mut inflated: Box<dyn Read> = match Compression::of(&head) {
        Compression::Gzip => Box::new(MultiGzDecoder::new(source)),
        Compression::Zlib | Compression::Snappy | Compression::None => {
            Box::new(ZlibDecoder::new(source))
        }
    };
    let mut bytes = 0;
    loop {
        match inflated.read(buffer).unwrap() {
            0 => return bytes,
            count => bytes += count,
        }
    }
}
