//! Damage: detection of every flipped bit, and reading after every kind of fault.

use std::{
    fs,
    io::{self, Cursor, Read, Write},
    thread,
};

use flate2::write::GzEncoder;
use tfarrow_codec::{OnError, VerifyCrc};
use tfarrow_dataset::{Compression, PartialTail, ReadOptions, Segment, ShardReader, count};

use crate::{compressed, frames, read, shard_of};

fn skip() -> ReadOptions {
    ReadOptions {
        on_error: OnError::Skip,
        ..ReadOptions::default()
    }
}

/// Returns whether reading these bytes reports damage.
fn is_damaged(bytes: Vec<u8>) -> bool {
    let Ok(mut reader) = ShardReader::from_read(Box::new(Cursor::new(bytes)), "x", &skip()) else {
        return true;
    };
    loop {
        match reader.segment() {
            Ok(Some(Segment::Records(records))) if records.verify(VerifyCrc::Always).is_ok() => {}
            Ok(None) => return false,
            _ => return true,
        }
    }
}

#[test]
fn every_flipped_bit_is_detected() {
    let mut state = 1_u64;
    let mut payloads: Vec<Vec<u8>> = Vec::new();
    let mut size = 0;
    while size < 100_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let payload = vec![(state >> 40) as u8; (state >> 33) as usize % 900];
        size += payload.len() + 16;
        payloads.push(payload);
    }
    let file = frames(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
    assert!(!is_damaged(file.clone()));
    // Without optimization each flip takes a hundred times as long.
    let step = if cfg!(debug_assertions) { 997 } else { 1 };
    let bits: Vec<_> = (0..8 * file.len()).step_by(step).collect();
    thread::scope(|scope| {
        for part in bits.chunks(bits.len().div_ceil(4)) {
            let file = &file;
            scope.spawn(move || {
                for bit in part {
                    let mut flipped = file.clone();
                    flipped[bit / 8] ^= 1 << (bit % 8);
                    assert!(is_damaged(flipped), "bit {bit}");
                }
            });
        }
    });
    println!("{} flips of {} bytes", bits.len(), file.len());
}

/// Snappy has no checksums: the CRCs of the records show the flip.
#[test]
fn every_flipped_bit_of_a_snappy_stream_is_detected() {
    let payloads: Vec<Vec<u8>> = (0..20_u8).map(|i| vec![i; usize::from(i) * 7]).collect();
    let stored = compressed(&frames(&payloads), Compression::Snappy);
    assert!(!is_damaged(stored.clone()));
    // Without optimization each flip takes ten times as long.
    let step = if cfg!(debug_assertions) { 13 } else { 1 };
    for bit in (0..8 * stored.len()).step_by(step) {
        let mut flipped = stored.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (records, ..) = read(&flipped, &skip());
        // A copy may be that of equal bytes.
        assert!(is_damaged(flipped) || records == payloads, "bit {bit}");
    }
}

/// The bytes after a position at which decompression fails are returned as they are stored.
#[test]
fn bytes_that_do_not_decompress_are_returned_as_stored() {
    let payloads: Vec<Vec<u8>> = (0..60_000_u32)
        .map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes().repeat(9))
        .collect();
    let sound = frames(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for compression in [Compression::Gzip, Compression::Zlib] {
        let stored = compressed(&sound, compression);
        assert!(stored.len() > 300_000);
        let mut broken = stored.clone();
        // An invalid block in the middle.
        broken[stored.len() / 2..][..20].fill(0xff);
        let mut checksum = stored.clone();
        *checksum.last_mut().unwrap() ^= 1;
        let mut followed = stored.clone();
        followed.extend([7; 1000]);
        let cut = stored[..stored.len() - 5000].to_vec();
        for (name, bytes, least) in [
            ("broken", broken, 100_000),
            ("checksum", checksum, 0),
            ("followed", followed, 1000),
            ("cut", cut, 0),
        ] {
            let mut reader =
                ShardReader::from_read(Box::new(Cursor::new(bytes.clone())), "x", &skip()).unwrap();
            let (mut records, mut rest, mut errors) = (0, Vec::new(), 0);
            while let Some(segment) = reader.segment().unwrap() {
                match segment {
                    Segment::Records(some) => records += some.len(),
                    Segment::Lost(lost) => {
                        errors += usize::from(lost.error.is_some());
                        if lost.is_stored {
                            assert_eq!(
                                lost.bytes.as_slice(),
                                &bytes[lost.offset as usize..][..lost.bytes.len()]
                            );
                            rest.extend_from_slice(&lost.bytes);
                        }
                    }
                }
            }
            assert_eq!(errors, 1, "{name}");
            assert!(
                rest.len() >= least && bytes.ends_with(&rest),
                "{name}: {}",
                rest.len()
            );
            assert_eq!(
                records == payloads.len(),
                ["checksum", "followed"].contains(&name),
                "{name}"
            );
        }
    }
}

/// Records of 1,000 bytes in blocks of Snappy, each with 64 records, and the places of the blocks.
fn snappy_blocks() -> (Vec<Vec<u8>>, Vec<u8>, Vec<usize>) {
    let records: Vec<_> = (0..640_u32)
        .map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes().repeat(246))
        .collect();
    let (mut stored, mut places) = (Vec::new(), Vec::new());
    for records in records.chunks(64) {
        places.push(stored.len());
        stored.extend(compressed(&frames(records), Compression::Snappy));
    }
    (records, stored, places)
}

#[test]
fn a_damaged_block_of_snappy_is_skipped() {
    let (records, sound, places) = snappy_blocks();
    // The size of a block, an element in the middle, a length that is too large, one that is too
    // small.
    let damages: [(usize, &[u8]); 4] = [
        (4, &[0x7f]),
        (400, &[0x0d, 0xff, 0x0d, 0xff, 0x0d]),
        (0, &[1]),
        (3, &[0]),
    ];
    for block in [0, 5, 9] {
        for (at, damage) in damages {
            let mut stored = sound.clone();
            stored[places[block] + at..][..damage.len()].copy_from_slice(damage);
            let rest: Vec<_> = [&records[..64 * block], &records[64 * (block + 1)..]].concat();
            let (data, compression, error) = read(&stored, &skip());
            assert!(
                data.iter().all(|record| rest.contains(record)),
                "block {block} at {at}"
            );
            assert_eq!(
                (data.len(), compression),
                (rest.len(), Some(Compression::Snappy)),
                "block {block} at {at}"
            );
            assert!(error.is_none(), "{error:?}");
            let (data, _, error) = read(&stored, &ReadOptions::default());
            assert!(
                data.len() <= 64 * block && error.unwrap().is_damage(),
                "block {block} at {at}"
            );
        }
    }
}

#[test]
fn the_bytes_of_a_damaged_block_are_returned_as_stored() {
    let (_, mut stored, places) = snappy_blocks();
    stored[places[3] + 400..][..5].copy_from_slice(&[0x0d, 0xff, 0x0d, 0xff, 0x0d]);
    let mut reader =
        ShardReader::from_read(Box::new(Cursor::new(stored.clone())), "x", &skip()).unwrap();
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    while let Some(segment) = reader.segment().unwrap() {
        let Segment::Lost(lost) = segment else {
            continue;
        };
        errors.extend(lost.error.map(|error| error.to_string()));
        if lost.is_stored {
            assert_eq!(lost.offset as usize, places[3] + found.len());
            found.extend_from_slice(&lost.bytes);
        }
    }
    assert!(found == stored[places[3]..places[4]]);
    let expected = format!(
        "x: record 192: the snappy data is corrupt (a block does not decompress) at byte {} of the file",
        places[3]
    );
    assert_eq!(errors, [expected]);
}

/// The bytes of the first length are the magic number of another format, and its CRC is corrupt.
#[test]
fn records_after_a_corrupt_length_that_looks_like_another_format_are_read() {
    let damaged = |length: usize| {
        let payloads = [vec![7; length], vec![8; 3000], vec![9; 3000]];
        let mut bytes = frames(&payloads);
        bytes[9] ^= 4;
        (payloads, bytes)
    };
    // zlib, gzip, two Python pickles, and lengths whose lowest bytes are those of zlib.
    for length in [
        40_056,
        559_903,
        640,
        896,
        40_056 + 65_536,
        40_056 + 5 * 65_536,
        0x0178,
    ] {
        let (payloads, bytes) = damaged(length);
        let (data, compression, error) = read(&bytes, &skip());
        assert!(error.is_none(), "{length}: {error:?}");
        assert!(
            data == payloads[1..] && compression == Some(Compression::None),
            "{length}"
        );
        let (_, _, error) = read(&bytes, &ReadOptions::default());
        assert!(error.unwrap().is_damage(), "{length}");
    }
    // This file begins like bzip2, and has no valid record in its first 4 MiB.
    let (_, bytes) = damaged(6_838_850);
    let (_, _, error) = read(&bytes, &skip());
    assert!(error.unwrap().to_string().contains("starts like bzip2"));
}

/// A damaged compressed file is not taken for a plain file.
#[test]
fn a_damaged_first_member_is_not_a_plain_shard() {
    let sound = frames(&vec![vec![7; 1000]; 50]);
    for level in [0, 6] {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(level));
        encoder.write_all(&sound).unwrap();
        let member = encoder.finish().unwrap();
        let mut bytes = member.repeat(3);
        // An invalid block.
        bytes[10] = 0xff;
        let (data, compression, _) = read(&bytes, &skip());
        assert_eq!(
            (data.len(), compression),
            (100, Some(Compression::Gzip)),
            "level {level}"
        );
    }
}

/// Long records are counted by their headers. Lost bytes before them count toward the file offset.
#[test]
fn long_records_after_damage_are_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tfrecord");
    let mut bytes = frames(&vec![vec![7; 70_000]; 100]);
    bytes[8] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(count(&shard_of(&path), &skip()).unwrap(), 99);
    assert!(count(&shard_of(&path), &ReadOptions::default()).is_err());
}

/// Other bytes between gzip members end a chunk early each time.
#[test]
fn records_between_damaged_members_hold_no_more_memory_than_they_need() {
    let member = compressed(&frames(&[b"a record"]), Compression::Gzip);
    let bytes = [member.as_slice(), b"junk"].concat().repeat(300);
    let mut reader = ShardReader::from_read(Box::new(Cursor::new(bytes)), "x", &skip()).unwrap();
    let mut all = Vec::new();
    while let Some(segment) = reader.segment().unwrap() {
        if let Segment::Records(records) = segment {
            assert_eq!(records.data(0), Some(b"a record".as_slice()));
            all.push(records);
        }
    }
    assert_eq!(all.len(), 300);
    let held: usize = all
        .into_iter()
        .map(|records| {
            records
                .reclaim()
                .map_or(usize::MAX / 300, |it| it.capacity())
        })
        .sum();
    assert!(
        held < 300 * 256,
        "300 records of 24 bytes hold {held} bytes"
    );
}

/// In a gzip file with several members, only records of the damaged member are lost.
#[test]
fn the_members_after_a_damaged_one_are_read() {
    let payload = |i: u32| {
        i.wrapping_mul(2_654_435_761)
            .to_le_bytes()
            .repeat(3 + i as usize % 50)
    };
    let member = |number: u32| {
        let payloads: Vec<_> = (number * 5..number * 5 + 5).map(payload).collect();
        compressed(
            &frames(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>()),
            Compression::Gzip,
        )
    };
    let members: Vec<_> = (0..40).map(member).collect();
    let sound = members.concat();
    let of_member = |at: usize| {
        let mut end = 0;
        members.iter().position(|member| {
            end += member.len();
            at < end
        })
    };
    // The magic number of the first member identifies the format of the file.
    for at in (10..sound.len()).step_by(7) {
        for damage in [1, 0x80, 0xff] {
            let mut bytes = sound.clone();
            bytes[at] ^= damage;
            let hit = of_member(at).unwrap() as u32;
            let mut reader =
                ShardReader::from_read(Box::new(Cursor::new(bytes.clone())), "x", &skip()).unwrap();
            let (mut found, mut faults, mut places, mut read) = (Vec::new(), 0, Vec::new(), 0);
            while let Some(segment) = reader.segment().unwrap() {
                assert!(
                    reader.bytes_read() >= read,
                    "the position does not decrease"
                );
                read = reader.bytes_read();
                match segment {
                    Segment::Records(records) => found.extend(
                        (0..records.len())
                            .filter(|index| records.check_crc(*index).is_ok())
                            .map(|index| {
                                (
                                    records.position(index).record,
                                    records.data(index).unwrap().to_vec(),
                                )
                            }),
                    ),
                    Segment::Lost(lost) => {
                        faults += usize::from(lost.error.is_some());
                        if lost.is_stored {
                            assert_eq!(
                                lost.bytes.as_slice(),
                                &bytes[lost.offset as usize..][..lost.bytes.len()]
                            );
                            places.push(lost.offset);
                        }
                    }
                }
            }
            assert_eq!(reader.bytes_read(), bytes.len() as u64);
            let (numbers, data): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            let others = (0..200).filter(|i| i / 5 != hit).map(payload);
            let lost: Vec<_> = others.filter(|payload| !data.contains(payload)).collect();
            assert!(
                lost.is_empty(),
                "byte {at} ^ {damage:#x}, of member {hit}: {} records lost",
                lost.len()
            );
            assert!(
                numbers.is_sorted_by(|one, next| one < next) && places.is_sorted(),
                "byte {at}"
            );
            // The name, the time and the operating system in the header of a member have no
            // checksum.
            assert!(
                faults <= 4 && (faults > 0 || data.len() == 200),
                "byte {at} ^ {damage:#x}: {faults} faults"
            );
        }
    }
    // A member whose checksum is wrong, and a truncated member, whose decoder continues in the last
    // one.
    let mut wrong = members[0].clone();
    let at = wrong.len() - 6;
    wrong[at] ^= 1;
    for cut in 20..members[1].len() - 8 {
        let bytes = [&wrong[..], &members[1][..cut], &members[2]].concat();
        let (found, _) = found_in(&bytes, usize::MAX, &skip());
        assert!(
            (0..5).chain(10..15).all(|i| found.contains(&payload(i))),
            "{cut}"
        );
    }
    // A truncated file, and another file after it.
    let cut = [
        &members[0][..],
        &members[1][..members[1].len() / 2],
        &members[2],
        &members[3],
    ]
    .concat();
    let mut reader = ShardReader::from_read(Box::new(Cursor::new(cut)), "x", &skip()).unwrap();
    let found: Vec<_> = std::iter::from_fn(|| reader.next().unwrap())
        .flat_map(|some| some.iter().map(<[u8]>::to_vec).collect::<Vec<_>>())
        .collect();
    assert!((10..15).chain(15..20).all(|i| found.contains(&payload(i))));
    assert_eq!(reader.lost().ranges, 1);
}

/// Returns the records found in `bytes`, of which `at_once` are read at once, and the number of
/// lost ranges.
fn found_in(bytes: &[u8], at_once: usize, options: &ReadOptions) -> (Vec<Vec<u8>>, u64) {
    let source = Box::new(Slowly(Cursor::new(bytes.to_vec()), at_once));
    let mut reader = ShardReader::from_read(source, "x", options).unwrap();
    let mut found = Vec::new();
    while let Some(records) = reader.next().unwrap() {
        let sound = (0..records.len()).filter(|index| records.check_crc(*index).is_ok());
        found.extend(sound.map(|index| records.data(index).unwrap().to_vec()));
    }
    (found, reader.lost().ranges)
}

/// A source that returns at most this many bytes at once.
struct Slowly(Cursor<Vec<u8>>, usize);

impl Read for Slowly {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(self.1);
        self.0.read(&mut out[..most])
    }
}

/// Returns pseudo-random bytes of which `bits` bits are random.
fn noise(state: &mut u64, length: usize, bits: u32) -> Vec<u8> {
    let mut next = || {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*state >> 56 >> (8 - bits)) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn member(payloads: &[Vec<u8>], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    encoder
        .write_all(&frames(
            &payloads.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        ))
        .unwrap();
    encoder.finish().unwrap()
}

/// The decoder of a truncated member continues in the next member as long as that inflates. All
/// records of the next member are returned once and in order, wherever the first is truncated, and
/// for all sizes of reads.
#[test]
fn the_member_after_a_truncated_one_is_read_completely() {
    let mut state = 7_u64;
    // Random bytes are stored uncompressed, so that the records of one member appear in the output
    // of another. With half of the bits random, the codes of one member synchronize with those of
    // the other.
    for (length, count, bits, level) in [
        (5_000, 60, 8, 6),
        (700, 200, 8, 6),
        (40_000, 8, 8, 6),
        (50, 300, 8, 0),
        (3_000, 100, 4, 6),
        (900, 300, 5, 9),
    ] {
        let [one, two] = [0; 2].map(|_| {
            (0..count)
                .map(|_| noise(&mut state, length, bits))
                .collect::<Vec<_>>()
        });
        let (first, second) = (member(&one, level), member(&two, level));
        for part in 1..20 {
            let cut = first.len() * part / 20;
            let bytes = [&first[..cut], &second, &second].concat();
            let (found, lost) = found_in(&bytes, usize::MAX, &skip());
            let before = found.len().saturating_sub(2 * count);
            assert!(
                found.ends_with(&[&two[..], &two].concat()),
                "{length}, {bits}, {part}: all records of the other members"
            );
            assert!(
                found[..before] == one[..before],
                "{length}, {bits}, {part}: the records before the cut"
            );
            assert!(
                before + 2 + (64 << 10) / length >= count * part / 20,
                "{length}, {bits}, {part}: {before}"
            );
            assert_eq!(lost, 1, "{length}, {bits}, {part}");
            for at_once in [1000, 65_536] {
                assert_eq!(
                    found_in(&bytes, at_once, &skip()),
                    (found.clone(), lost),
                    "{length}, {part}, {at_once}"
                );
            }
        }
        // A truncated member before others is reported even if a truncated end of the file is
        // ignored.
        let bytes = [&second[..], &first[..first.len() / 2], &second].concat();
        let ignore = ReadOptions {
            partial_tail: PartialTail::Ignore,
            ..skip()
        };
        let (found, lost) = found_in(&bytes, usize::MAX, &ignore);
        assert!(
            found.starts_with(&two) && found.ends_with(&two) && lost == 1,
            "{length}: {} {lost}",
            found.len()
        );
    }
}

/// A sound member after a damaged one is returned completely, even if both contain the same
/// records.
#[test]
fn records_that_are_equal_in_two_members_are_returned_twice() {
    let mut state = 3_u64;
    let payloads: Vec<_> = (0..300).map(|_| noise(&mut state, 50, 8)).collect();
    let sound = member(&payloads, 0);
    for missing in [1, 4, 5, 6, 20] {
        let at = 15 + 66 * 10 + 30;
        let bytes = [&sound[..at], &sound[at + missing..], &sound].concat();
        let (found, lost) = found_in(&bytes, usize::MAX, &skip());
        assert!(found.ends_with(&payloads) && lost > 0, "{missing}: {lost}");
        assert!(found.len() >= 2 * 300 - 3, "{missing}: {}", found.len());
    }
    // The frame in which the first member is truncated ends where a frame of the second one does.
    let other: Vec<_> = (0..300).map(|_| noise(&mut state, 50, 8)).collect();
    let bytes = [&sound[..15 + 66 * 101 - 15], &member(&other, 0)].concat();
    let (found, lost) = found_in(&bytes, usize::MAX, &skip());
    assert!(
        found == [&payloads[..100], &other].concat() && lost == 1,
        "{}, {lost}",
        found.len()
    );
    // The second member is damaged as well.
    let mut second = member(&other, 0);
    second[15 + 66 * 50] ^= 1;
    let bytes = [&sound[..15 + 66 * 100 + 30], &second].concat();
    let (found, lost) = found_in(&bytes, usize::MAX, &skip());
    assert!(
        found == [&payloads[..100], &other[..50], &other[51..]].concat(),
        "{}, {lost}",
        found.len()
    );
}

/// Members that a member contains as data are not read as members of the file, for any damage at
/// the end of the outer member.
#[test]
fn members_inside_of_a_member_are_data() {
    let inner = member(&[b"nested".to_vec(), b"records".to_vec()], 6);
    let payloads = vec![
        b"one".to_vec(),
        inner.clone(),
        vec![7; 300],
        inner.clone(),
        b"three".to_vec(),
    ];
    for level in [0, 6] {
        let sound = member(&payloads, level);
        let next = member(&[b"next".to_vec()], 6);
        assert_eq!(
            found_in(&[&sound[..], &next].concat(), usize::MAX, &skip()).1,
            0
        );
        for at in 1..=8 {
            let mut bytes = sound.clone();
            let length = bytes.len();
            bytes[length - at] ^= 1;
            for tail in [&[][..], &next, b"something else"] {
                let (found, lost) = found_in(&[&bytes[..], tail].concat(), 1000, &skip());
                let expect = if tail == next {
                    [&payloads[..], &[b"next".to_vec()]].concat()
                } else {
                    payloads.clone()
                };
                assert!(
                    found == expect && lost == 1,
                    "{level}, {at}: {} {lost}",
                    found.len()
                );
            }
        }
        // A file that is still being written, up to a position after the inner member.
        let ignore = ReadOptions {
            partial_tail: PartialTail::Ignore,
            ..skip()
        };
        // If the file ends with the inner member, the two cases cannot be distinguished.
        for cut in (1..sound.len() - 100).filter(|cut| !sound[..*cut].ends_with(&inner)) {
            let (found, lost) = found_in(&sound[..cut], usize::MAX, &ignore);
            assert!(
                payloads.starts_with(&found) && lost == 0,
                "{level}, {cut}: {} {lost}",
                found.len()
            );
        }
    }
    // Damage after the data: two inner members, and one that extends over two blocks.
    let two = [&inner[..], &inner].concat();
    let large = member(&[noise(&mut 5, 60_000, 8), b"nested".to_vec()], 6);
    for held in [two, large] {
        let mut payloads: Vec<_> = (0..400_u32)
            .map(|i| format!("number {i}").into_bytes())
            .collect();
        payloads.insert(20, held);
        let sound = member(&payloads, 0);
        for at in [sound.len() / 2, sound.len() - 3000] {
            let mut bytes = sound.clone();
            // Without this byte the block ends one byte too late.
            bytes.remove(at);
            let (found, _) = found_in(&bytes, usize::MAX, &skip());
            assert!(
                !found.contains(&b"nested".to_vec()) && found.starts_with(&payloads[..20]),
                "{}",
                found.len()
            );
        }
    }
    // Many inner members in a truncated one.
    let many = member(
        &(0..100).map(|i| member(&[vec![i]], 6)).collect::<Vec<_>>(),
        0,
    );
    let next = member(&[b"next".to_vec()], 6);
    let bytes = [&many[..many.len() - 30], &next, &next].concat();
    assert_eq!(
        found_in(&bytes, usize::MAX, &skip()).0[99..],
        vec![b"next".to_vec(); 2]
    );
    let followed = [&member(&payloads, 0)[..], b"something else"].concat();
    assert_eq!(found_in(&followed, usize::MAX, &skip()), (payloads, 1));
}

/// Many empty records, and members that contain each other, take no more time than others.
#[test]
fn repeated_members_are_read_in_linear_time() {
    let empty = frames(&[&b""[..]; 32_000]);
    let mut broken = compressed(&[&empty[..], &[1; 12], &empty].concat(), Compression::Gzip);
    broken.truncate(broken.len() - 4);
    let (found, _) = found_in(&broken.repeat(2), usize::MAX, &skip());
    assert!(found.len() >= 2 * 63_990, "{}", found.len());
    // Each second member is stored, and its decoder continues in up to 64 KiB of the following
    // members.
    let tiny = member(&[b"x".to_vec()], 6);
    let stored = &member(&[vec![0; 65_000]], 0)[..60];
    let start = std::time::Instant::now();
    let (found, lost) = found_in(&[&tiny, stored].concat().repeat(5_000), usize::MAX, &skip());
    assert!(found.len() >= 400 && lost >= 1, "{} {lost}", found.len());
    let most = if cfg!(debug_assertions) { 200 } else { 20 };
    assert!(start.elapsed().as_secs() < most, "{:?}", start.elapsed());
}

/// Bytes that look like the start of a member at every position take no more time than others.
#[test]
fn false_starts_of_members_are_read_in_linear_time() {
    let sound = compressed(&frames(&[b"one"]), Compression::Gzip);
    let name = b"\x1f\x8b\x08\x08AAAA".repeat(1 << 16);
    let both = b"\x1f\x8b\x08\x0aAAAA".repeat(1 << 16);
    for tail in [name, both] {
        let start = std::time::Instant::now();
        let (found, lost) = found_in(&[&sound[..], &tail].concat(), usize::MAX, &skip());
        assert_eq!((found.len(), lost), (1, 1));
        let most = if cfg!(debug_assertions) { 100 } else { 10 };
        assert!(start.elapsed().as_secs() < most, "{:?}", start.elapsed());
    }
}

#[test]
fn a_truncated_end_is_ignored_with_and_without_compression() {
    let folder = tempfile::tempdir().unwrap();
    let payloads: Vec<Vec<u8>> = (0..2000_u32)
        .map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes().repeat(20))
        .collect();
    let sound = frames(&payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for (name, stored) in [
        ("a", sound.clone()),
        ("b.gz", compressed(&sound, Compression::Gzip)),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, &stored[..stored.len() - stored.len() / 3]).unwrap();
        let ignore = ReadOptions {
            partial_tail: PartialTail::Ignore,
            ..ReadOptions::default()
        };
        let mut records = 0;
        for some in ShardReader::open(&shard_of(&path), &ignore).unwrap() {
            records += some.unwrap().len();
        }
        assert!(records > 1000 && records < 2000, "{name}: {records}");
        let mut strict = ShardReader::open(&shard_of(&path), &ReadOptions::default()).unwrap();
        assert!(
            std::iter::from_fn(|| strict.next().transpose()).any(|some| some.is_err()),
            "{name}"
        );
        let mut patient = ShardReader::open(
            &shard_of(&path),
            &ReadOptions {
                on_error: OnError::Skip,
                ..ignore
            },
        )
        .unwrap();
        while patient.next().unwrap().is_some() {}
        assert!(
            patient.lost().is_empty(),
            "{name}: the truncated end is not counted as lost"
        );
    }
}
