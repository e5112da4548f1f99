//! Compression is recognized by content, decompression is complete, and damage is reported with its
//! position.

use std::io::{self, Read};

use tfarrow_dataset::{Compression, Damage, ErrorKind, ReadOptions, ShardReader, count};

use crate::{compressed, frames, read, shard_of, testdata, write_file};

const COMPRESSED: [Compression; 2] = [Compression::Gzip, Compression::Zlib];

#[track_caller]
fn check_whole(bytes: &[u8], compression: Compression, expect: &[Vec<u8>]) {
    for chunk_bytes in [4 << 10, 64 << 10, 2 << 20] {
        let (data, found, error) = read(
            bytes,
            &ReadOptions {
                chunk_bytes,
                ..ReadOptions::default()
            },
        );
        assert!(error.is_none(), "{error:?}");
        assert_eq!(found, Some(compression));
        assert!(
            data == expect,
            "{} records in chunks of {chunk_bytes}",
            data.len()
        );
    }
}

fn noise(len: usize, mut seed: u32) -> Vec<u8> {
    let next = || {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        seed as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn a_valid_header_takes_precedence_over_a_magic_number() {
    // The bytes of these lengths are the magic numbers of gzip and of zlib.
    for (len, magic) in [
        (35_615, [0x1f, 0x8b, 0x00]),
        (559_903, [0x1f, 0x8b, 0x08]),
        (40_056, [0x78, 0x9c, 0x00]),
    ] {
        let records = vec![noise(len, 7), b"after".to_vec()];
        let bytes = frames(&records);
        assert_eq!(bytes[..3], magic);
        check_whole(&bytes, Compression::None, &records);
        for compression in COMPRESSED {
            check_whole(&compressed(&bytes, compression), compression, &records);
        }
    }
}

#[test]
fn large_shards_are_read_completely() {
    let records: Vec<_> = (0..300).map(|i| noise(i * 97, i as u32 + 1)).collect();
    let bytes = frames(&records);
    check_whole(&bytes, Compression::None, &records);
    for compression in [Compression::Gzip, Compression::Zlib, Compression::Snappy] {
        check_whole(&compressed(&bytes, compression), compression, &records);
    }
}

#[test]
fn gzip_may_have_several_members_split_at_any_byte() {
    let records: Vec<_> = (0..40).map(|i| noise(i * 11, 99 + i as u32)).collect();
    let bytes = frames(&records);
    for size in [1, 5, 12, 700, bytes.len() - 1] {
        let members: Vec<_> = bytes
            .chunks(size)
            .flat_map(|part| compressed(part, Compression::Gzip))
            .collect();
        check_whole(&members, Compression::Gzip, &records);
    }
    let empty = compressed(b"", Compression::Gzip);
    let with_empty = [empty.clone(), compressed(&bytes, Compression::Gzip), empty].concat();
    check_whole(&with_empty, Compression::Gzip, &records);
}

/// Returns one byte at a time, as pipes may do.
struct Drip(io::Cursor<Vec<u8>>);

impl Read for Drip {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let one = out.len().min(1);
        self.0.read(&mut out[..one])
    }
}

#[test]
fn the_source_may_return_one_byte_at_a_time() {
    let records = [b"one".to_vec(), vec![], noise(500, 3)];
    let bytes = frames(&records);
    let members = [
        compressed(&bytes[..9], Compression::Gzip),
        compressed(&bytes[9..], Compression::Gzip),
    ]
    .concat();
    let [zlib, snappy] =
        [Compression::Zlib, Compression::Snappy].map(|compression| compressed(&bytes, compression));
    for stored in [bytes.clone(), members, zlib, snappy] {
        let source = Box::new(Drip(io::Cursor::new(stored.clone())));
        let mut reader = ShardReader::from_read(source, "x", &ReadOptions::default()).unwrap();
        let found = reader.next().unwrap().unwrap();
        assert!(found.iter().eq(records.iter().map(Vec::as_slice)));
        assert!(reader.next().unwrap().is_none());
        assert_eq!(reader.bytes_read(), stored.len() as u64);
    }
}

#[test]
fn an_empty_source_is_a_shard_without_records() {
    check_whole(b"", Compression::None, &[]);
    for compression in COMPRESSED {
        check_whole(&compressed(b"", compression), compression, &[]);
    }
}

#[test]
fn truncation_is_reported_at_any_byte() {
    let records = [b"one".to_vec(), noise(60, 5), b"three".to_vec()];
    let bytes = frames(&records);
    let ends = [0, 19, 95, bytes.len()];
    for cut in 1..bytes.len() {
        let (data, _, error) = read(&bytes[..cut], &ReadOptions::default());
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        assert_eq!(data, records[..whole], "cut at {cut}");
        assert_eq!(
            error.is_none(),
            ends.contains(&cut),
            "cut at {cut}: {error:?}"
        );
        if let Some(error) = error {
            let ErrorKind::Codec(codec) = error.kind() else {
                panic!("cut at {cut}: {error}")
            };
            assert_eq!(
                codec.category(),
                tfarrow_codec::Category::Truncated,
                "cut at {cut}"
            );
            assert_eq!(codec.position().record as usize, whole, "cut at {cut}");
        }
    }
}

#[test]
fn truncation_of_compressed_data_is_reported_at_any_byte() {
    let records = [b"one".to_vec(), noise(60, 5), b"three".to_vec()];
    let bytes = frames(&records);
    for compression in COMPRESSED {
        let stored = compressed(&bytes, compression);
        for cut in 2..stored.len() {
            let (data, _, error) = read(&stored[..cut], &ReadOptions::default());
            assert!(records.starts_with(&data), "{compression} cut at {cut}");
            let error = error.unwrap_or_else(|| panic!("{compression} cut at {cut}: no error"));
            let ErrorKind::Damaged {
                damage: Damage::Truncated,
                offset,
                record,
                ..
            } = error.kind()
            else {
                panic!("{compression} cut at {cut}: {error}");
            };
            assert_eq!(
                (*offset as usize, *record as usize),
                (cut, data.len()),
                "{compression} cut at {cut}"
            );
        }
        let (_, _, error) = read(&stored[..1], &ReadOptions::default());
        assert!(error.is_some(), "{compression} cut at 1");
        // If only the checksum is missing, the data is complete but not verified.
        let (data, _, error) = read(&stored[..stored.len() - 1], &ReadOptions::default());
        assert_eq!(data, records);
        assert_eq!(
            error.unwrap().to_string(),
            format!(
                "x: record 3: the {compression} data is truncated at byte {} of the file",
                stored.len() - 1
            )
        );
    }
}

#[test]
fn truncation_in_members_is_reported_and_between_them_is_not() {
    let first = compressed(&frames(&[b"one"]), Compression::Gzip);
    let second = compressed(&frames(&[b"two"]), Compression::Gzip);
    let both = [first.clone(), second].concat();
    for cut in first.len()..both.len() {
        let (data, _, error) = read(&both[..cut], &ReadOptions::default());
        assert!(
            [&b"one"[..], b"two"]
                .starts_with(&data.iter().map(Vec::as_slice).collect::<Vec<_>>()[..])
        );
        assert_eq!(
            error.is_none(),
            cut == first.len(),
            "cut at {cut}: {error:?}"
        );
        if let Some(error) = error {
            assert!(
                matches!(
                    error.kind(),
                    ErrorKind::Damaged {
                        damage: Damage::Truncated,
                        ..
                    }
                ),
                "cut at {cut}: {error}"
            );
        }
    }
}

#[test]
fn bytes_after_compressed_data_are_reported() {
    let bytes = frames(&[b"one"]);
    for compression in COMPRESSED {
        let stored = compressed(&bytes, compression);
        for rest in [b"\0\0\0\x01".as_slice(), b"x", b"\x1f\x8c", b"\x1f\x8b\x07"] {
            let (data, _, error) = read(&[&stored, rest].concat(), &ReadOptions::default());
            assert_eq!(data, [b"one"]);
            assert_eq!(
                error.unwrap().to_string(),
                format!(
                    "x: record 1: the {compression} data is followed by other data at byte {} of the file",
                    stored.len()
                )
            );
        }
    }
}

/// Disks and tapes have blocks; TensorFlow ignores what follows a zlib stream.
#[test]
fn zeros_after_a_zlib_stream_are_ignored() {
    let stored = compressed(&frames(&[b"one"]), Compression::Zlib);
    for zeros in [1, 7, 2 << 20] {
        let padded = [stored.clone(), vec![0; zeros]].concat();
        check_whole(&padded, Compression::Zlib, &[b"one".to_vec()]);
        let (_, _, error) = read(&[padded, b"x".to_vec()].concat(), &ReadOptions::default());
        assert!(
            error
                .unwrap()
                .to_string()
                .contains("the zlib data is followed by other data at byte")
        );
    }
}

/// A Snappy stream of blocks that end at these bytes.
fn snappy(bytes: &[u8], ends: &[usize]) -> Vec<u8> {
    let starts = std::iter::once(&0).chain(ends);
    let blocks = starts
        .zip(ends)
        .flat_map(|(start, end)| compressed(&bytes[*start..*end], Compression::Snappy));
    blocks.collect()
}

#[test]
fn snappy_may_have_blocks_of_any_size() {
    let records: Vec<_> = (0..40).map(|i| noise(i * 11, 99 + i as u32)).collect();
    let bytes = frames(&records);
    for size in [12, 13, 700, bytes.len() - 1] {
        let ends: Vec<_> = (size..bytes.len())
            .step_by(size)
            .chain([bytes.len()])
            .collect();
        check_whole(&snappy(&bytes, &ends), Compression::Snappy, &records);
    }
    // Long records, which are not compressible, and empty ones, which are.
    let records: Vec<_> = [noise(300_000, 5), vec![0; 1 << 20]]
        .into_iter()
        .chain(vec![vec![]; 5000])
        .collect();
    check_whole(
        &compressed(&frames(&records), Compression::Snappy),
        Compression::Snappy,
        &records,
    );
}

#[test]
fn truncation_of_snappy_is_reported_at_any_byte_of_a_block() {
    let records = [noise(50, 3), noise(60, 5), b"three".to_vec()];
    let bytes = frames(&records);
    let stored = snappy(&bytes, &[66, bytes.len()]);
    let first = snappy(&bytes, &[66]).len();
    for cut in first..stored.len() {
        let (data, _, error) = read(&stored[..cut], &ReadOptions::default());
        assert_eq!(data, records[..1]);
        assert_eq!(error.is_none(), cut == first, "cut at {cut}");
        let Some(error) = error else { continue };
        let expected =
            format!("x: record 1: the snappy data is truncated at byte {first} of the file");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn flipped_bits_in_compressed_data_are_reported() {
    let records: Vec<_> = (0..20).map(|i| noise(i, i as u32 + 50)).collect();
    for compression in COMPRESSED {
        let stored = compressed(&frames(&records), compression);
        for at in 0..stored.len() {
            for bit in 0..8 {
                let mut flipped = stored.clone();
                flipped[at] ^= 1 << bit;
                let (data, _, error) = read(&flipped, &ReadOptions::default());
                // Some bits have no effect: the time in gzip's header, the code of a symbol that is
                // not used.
                assert!(
                    error.is_some() || data == records,
                    "{compression}: byte {at} bit {bit}"
                );
            }
        }
    }
}

#[test]
fn records_before_damage_in_the_same_chunk_come_first() {
    let records: Vec<_> = (0..2000).map(|i| noise(100, i + 1)).collect();
    let mut stored = compressed(&frames(&records), Compression::Gzip);
    let middle = stored.len() / 2;
    stored[middle..middle + 64].fill(0xff);
    let (data, _, error) = read(&stored, &ReadOptions::default());
    assert!(data.len() > 500, "{} records", data.len());
    assert!(error.is_some());
}

#[test]
fn files_that_tensorflow_wrote() {
    for (name, compression) in [
        (
            "compressed/plain-00000-of-00003.tfrecord",
            Compression::None,
        ),
        (
            "compressed/gzip-00001-of-00003.tfrecord.gz",
            Compression::Gzip,
        ),
        ("compressed/gzip_members.tfrecord.gz", Compression::Gzip),
        ("compressed/zlib-00002-of-00003.tfrecord", Compression::Zlib),
        ("blocks.tfrecord.snappy", Compression::Snappy),
        ("magic/35615.tfrecord", Compression::None),
        ("magic/40056.tfrecord", Compression::None),
    ] {
        let shard = shard_of(&testdata(name));
        let mut reader = ShardReader::open(&shard, &ReadOptions::default()).unwrap();
        assert_eq!(reader.compression(), compression, "{name}");
        let mut records = 0;
        while let Some(some) = reader.next().unwrap() {
            some.verify(tfarrow_codec::VerifyCrc::Always).unwrap();
            records += some.len() as u64;
        }
        assert!(records > 0, "{name}");
        assert_eq!(
            count(&shard, &ReadOptions::default()).unwrap(),
            records,
            "{name}"
        );
        assert_eq!(reader.bytes_read(), shard.size, "{name}");
    }
}

#[test]
fn count_is_the_number_of_records_read() {
    let folder = tempfile::tempdir().unwrap();
    let small: Vec<_> = (0..5000).map(|i| noise(i % 50, i as u32 + 1)).collect();
    let large: Vec<_> = (0..20)
        .map(|i| noise(100_000 + i * 1000, i as u32 + 1))
        .collect();
    // Large records before small ones, and an empty record at the end.
    let mixed: Vec<_> = large
        .iter()
        .chain(&small)
        .cloned()
        .chain([vec![]])
        .collect();
    for (name, records) in [
        ("small", &small),
        ("large", &large),
        ("mixed", &mixed),
        ("none", &Vec::new()),
    ] {
        for compression in Compression::ALL {
            let stored = compressed(&frames(records), compression);
            let path = write_file(folder.path(), name, &stored);
            assert_eq!(
                count(&shard_of(&path), &ReadOptions::default()).unwrap(),
                records.len() as u64,
                "{name} {compression}"
            );
        }
    }
}

#[test]
fn count_reports_the_errors_of_reading() {
    let folder = tempfile::tempdir().unwrap();
    let large: Vec<_> = (0..10).map(|i| noise(200_000, i as u32 + 1)).collect();
    let bytes = frames(&large);
    let frame = 200_016;
    let mut flipped = bytes.clone();
    flipped[7 * frame + 3] ^= 1;
    let cuts = [9 * frame + 5, 9 * frame + 12, bytes.len() - 1];
    for damaged in cuts
        .map(|cut| bytes[..cut].to_vec())
        .into_iter()
        .chain([flipped])
    {
        let path = write_file(folder.path(), "x", &damaged);
        let shard = shard_of(&path);
        let mut reader = ShardReader::open(&shard, &ReadOptions::default()).unwrap();
        let expect = loop {
            match reader.next() {
                Ok(records) => assert!(records.is_some(), "no error"),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(
            count(&shard, &ReadOptions::default())
                .unwrap_err()
                .to_string(),
            expect
        );
    }
}
