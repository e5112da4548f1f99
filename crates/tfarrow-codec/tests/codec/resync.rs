//! Skipping of corrupt ranges, compared with a model that tries every byte, for any division of the
//! stream into parts.

use proptest::{collection::vec, prelude::*};
use tfarrow_codec::{ErrorKind, FrameBuffer, Limits, OnError, Segment};
use tfarrow_testkit::{config, frame};

/// A part of a stream with its offset: the payload of a record, or bytes that contain no record.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Record(usize, Vec<u8>),
    Lost(usize, Vec<u8>),
}

const HEADER: usize = 12;
const FOOTER: usize = 4;

/// Returns the length in the header at `at`, if its CRC matches.
fn length(bytes: &[u8], at: usize) -> Option<u64> {
    let header = bytes.get(at..at + HEADER)?;
    let crc = u32::from_le_bytes(header[8..].try_into().unwrap());
    (frame::masked(&header[..8]) == crc)
        .then(|| u64::from_le_bytes(header[..8].try_into().unwrap()))
}

/// Returns the end of the frame at `at`, if both of its CRCs match.
fn complete(bytes: &[u8], at: usize, most: u64) -> Option<usize> {
    let length =
        length(bytes, at).filter(|length| *length <= most.min(bytes.len() as u64))? as usize;
    let end = at + HEADER + length + FOOTER;
    let data = bytes.get(at + HEADER..end)?;
    (frame::masked(&data[..length]).to_le_bytes() == data[length..]).then_some(end)
}

/// Returns the pieces of a stream by the definition of resynchronization, byte by byte.
fn model(bytes: &[u8], most: u64) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let start = at;
        match length(bytes, at) {
            Some(length)
                if length <= most
                    && length.saturating_add((at + HEADER + FOOTER) as u64)
                        <= bytes.len() as u64 =>
            {
                at += HEADER + length as usize + FOOTER;
                pieces.push(Piece::Record(
                    start,
                    bytes[start + HEADER..at - FOOTER].to_vec(),
                ));
                continue;
            }
            Some(length) => {
                at = (at as u64)
                    .saturating_add(length)
                    .saturating_add(16)
                    .min(bytes.len() as u64) as usize
            }
            None if bytes.len() - at < HEADER => at = bytes.len(),
            None => {
                at = (at + 1..bytes.len())
                    .find(|at| complete(bytes, *at, most).is_some())
                    .unwrap_or(bytes.len())
            }
        }
        pieces.push(Piece::Lost(start, bytes[start..at].to_vec()));
    }
    pieces
}

/// Copies the beginning of `input` into the buffer, and returns the number of bytes copied.
fn fill(buffer: &mut FrameBuffer, input: &[u8]) -> usize {
    let spare = buffer.spare();
    let count = spare.len().min(input.len());
    spare[..count].copy_from_slice(&input[..count]);
    buffer.advance(count);
    count
}

/// Returns the pieces that the codec finds in a stream that arrives in parts of these sizes.
fn read(bytes: &[u8], parts: &[usize], limits: Limits) -> Vec<Piece> {
    let mut buffer = FrameBuffer::new(0, limits).with_on_error(OnError::Skip);
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    let mut add = |segment: Segment| match segment {
        Segment::Records(records) => {
            for (index, data) in records.iter().enumerate() {
                pieces.push(Piece::Record(
                    records.position(index).offset as usize,
                    data.to_vec(),
                ));
            }
        }
        Segment::Lost(lost) => match (&lost.error, pieces.last_mut()) {
            (None, Some(Piece::Lost(at, bytes))) => {
                assert_eq!(
                    *at + bytes.len(),
                    lost.offset as usize,
                    "the parts of a range are adjacent"
                );
                bytes.extend_from_slice(&lost.bytes);
            }
            (error, _) => {
                let error = error.as_ref().expect("a range begins with its error");
                assert_eq!(error.position().offset, lost.offset);
                pieces.push(Piece::Lost(lost.offset as usize, lost.bytes.to_vec()));
            }
        },
    };
    let mut parts = parts.iter().copied().cycle();
    while !rest.is_empty() {
        let part = parts.next().unwrap_or(1).clamp(1, rest.len());
        let taken = fill(&mut buffer, &rest[..part]);
        rest = &rest[taken..];
        // Takes all available segments, or one or two.
        let most = parts.next().unwrap_or(1) % 3;
        let mut taken = 0;
        while (most == 0 || taken < most)
            && let Some(segment) = buffer.next(false).unwrap()
        {
            add(segment);
            taken += 1;
        }
    }
    while let Some(segment) = buffer.next(true).unwrap() {
        add(segment);
    }
    pieces
}

/// Payloads, some of which contain frames.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let plain = prop_oneof![4 => vec(any::<u8>(), 0..40), 1 => vec(any::<u8>(), 3000..9000)];
    let framed = vec(vec(any::<u8>(), 0..20), 0..4);
    prop_oneof![4 => plain, 1 => framed.prop_map(|inner| frame::file(inner.iter().map(Vec::as_slice)))]
}

#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Overwrite(prop::sample::Index, Vec<u8>),
    Insert(prop::sample::Index, Vec<u8>),
    Delete(prop::sample::Index, usize),
    CutOff(prop::sample::Index),
    /// A valid header of this length.
    Header(prop::sample::Index, u64),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    let length = prop_oneof![0..10_000_u64, Just(u64::MAX), any::<u64>()];
    prop_oneof![
        (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (at(), vec(any::<u8>(), 1..60)).prop_map(|(at, bytes)| Damage::Overwrite(at, bytes)),
        (at(), vec(any::<u8>(), 1..6000)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (at(), 1..400_usize).prop_map(|(at, count)| Damage::Delete(at, count)),
        at().prop_map(Damage::CutOff),
        (at(), length).prop_map(|(at, length)| Damage::Header(at, length)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let put = |bytes: &mut Vec<u8>, at: usize, new: &[u8]| {
        let end = bytes.len().min(at + new.len());
        bytes[at..end].copy_from_slice(&new[..end - at]);
    };
    match damage {
        Damage::Flip(at, bit) => {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        Damage::Overwrite(at, new) => put(bytes, at.index(bytes.len()), new),
        Damage::Insert(at, new) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, new.iter().copied());
        }
        Damage::Delete(at, count) => {
            let at = at.index(bytes.len());
            bytes.drain(at..bytes.len().min(at + count));
        }
        Damage::CutOff(at) => bytes.truncate(at.index(bytes.len())),
        Damage::Header(at, length) => {
            let length = length.to_le_bytes();
            let header = [&length[..], &frame::masked(&length).to_le_bytes()].concat();
            put(bytes, at.index(bytes.len()), &header);
        }
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn records_continue_where_both_crcs_match(
        payloads in vec(payload(), 0..12),
        damages in vec(damage(), 0..5),
        parts in vec(1..5000_usize, 1..4),
        most in prop_oneof![Just(usize::MAX), 10..5000_usize],
    ) {
        let mut bytes = frame::file(payloads.iter().map(Vec::as_slice));
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        let limits = Limits { record_bytes: most, ..Limits::default() };
        let expect = model(&bytes, limits.record_bytes as u64);
        let total: usize = expect.iter().map(|piece| match piece {
            Piece::Record(_, data) => data.len() + HEADER + FOOTER,
            Piece::Lost(_, bytes) => bytes.len(),
        }).sum();
        prop_assert_eq!(total, bytes.len(), "the pieces of the model are the complete stream");
        prop_assert_eq!(read(&bytes, &parts, limits), expect);
    }

    /// Overwriting bytes loses only the records that they are in.
    #[test]
    fn only_overwritten_records_are_lost(
        payloads in vec(payload(), 1..12),
        hits in vec((any::<prop::sample::Index>(), vec(any::<u8>(), 1..60)), 0..5),
    ) {
        let mut bytes = frame::file(payloads.iter().map(Vec::as_slice));
        let original = bytes.clone();
        hits.iter().for_each(|(at, new)| apply(&mut bytes, &Damage::Overwrite(*at, new.clone())));
        let found = read(&bytes, &[4096], Limits::default());
        let mut at = 0;
        for payload in &payloads {
            let end = at + HEADER + payload.len() + FOOTER;
            if bytes[at..end] == original[at..end] {
                prop_assert!(found.contains(&Piece::Record(at, payload.clone())), "the record at {}", at);
            }
            at = end;
        }
    }
}

#[test]
fn lost_bytes_have_their_error_and_position() {
    let mut bytes = frame::file([&b"one"[..], b"two", b"three"]);
    bytes[19] ^= 1;
    bytes.truncate(bytes.len() - 1);
    let mut buffer = FrameBuffer::new(1 << 20, Limits::default()).with_on_error(OnError::Skip);
    fill(&mut buffer, &bytes);
    let mut found = Vec::new();
    while let Some(segment) = buffer.next(true).unwrap() {
        if let Segment::Lost(lost) = segment {
            let error = lost.error.unwrap();
            let is_length = matches!(error.kind(), ErrorKind::LengthCrc { .. });
            found.push((
                error.position().record,
                error.position().offset,
                lost.bytes.len(),
                is_length,
            ));
        }
    }
    // The last record is truncated, so that no valid record follows the corrupt length of the
    // second one.
    assert_eq!(found, [(1, 19, bytes.len() - 19, true)]);
    assert_eq!(bytes.len(), 19 + 19 + 20);
}

/// Every position looks like the beginning of a long record. The cost of each must not grow with
/// its length.
#[test]
fn many_overlapping_candidates_take_linear_time() {
    let length = (1_u64 << 20).to_le_bytes();
    let header = [&length[..], &frame::masked(&length).to_le_bytes()].concat();
    let mut bytes = vec![0xff];
    bytes.extend(header.repeat((4 << 20) / HEADER));
    bytes.extend(frame::file([&b"valid"[..]]));
    let found = read(&bytes, &[1 << 16], Limits::default());
    assert_eq!(
        found.last(),
        Some(&Piece::Record(bytes.len() - 21, b"valid".to_vec()))
    );
    assert_eq!(found.len(), 2);
}

/// A valid header of a length that would overflow any sum: all bytes after it are lost.
#[test]
fn the_longest_length_does_not_overflow() {
    let length = u64::MAX.to_le_bytes();
    let header = [&length[..], &frame::masked(&length).to_le_bytes()].concat();
    let bytes = [&header[..], &[0; 5], &frame::file([&b""[..]])].concat();
    for limits in [
        Limits::default(),
        Limits {
            record_bytes: usize::MAX,
            ..Limits::default()
        },
    ] {
        assert_eq!(read(&bytes, &[1], limits), [Piece::Lost(0, bytes.clone())]);
    }
}
