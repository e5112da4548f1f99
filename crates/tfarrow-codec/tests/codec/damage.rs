//! Corrupt input gives an error of the expected kind, never other data or a panic.

use arrow_array::RecordBatch;
use proptest::{collection::vec, prelude::*};
use tfarrow_codec::{
    Category, Decoder, Error, ErrorKind, FrameBuffer, Layout, Limits, ReaderBuilder, Summary,
    VerifyCrc, WireError,
};
use tfarrow_testkit::{
    arrow, config,
    corrupt::{cuts, flip, flips},
    frame, generate,
    odd_wire::{Choices, tapes},
    oracle,
};

use crate::support::{WAYS, chunks, finish, offsets, push, record_type, schema_of, small, summary};

/// Decodes one record a batch until the first error.
fn decode_all(file: &[u8], builder: ReaderBuilder) -> (Vec<RecordBatch>, Result<(), Error>) {
    let mut decoder = builder.with_batch_size(1).build_decoder().unwrap();
    let mut batches = Vec::new();
    let result = drive(&mut decoder, file, &mut batches);
    (batches, result)
}

fn drive(decoder: &mut Decoder, file: &[u8], batches: &mut Vec<RecordBatch>) -> Result<(), Error> {
    let mut rest = file;
    while !rest.is_empty() {
        let taken = decoder.decode(rest)?;
        rest = &rest[taken..];
        while decoder.capacity() == 0 {
            batches.extend(decoder.flush()?);
        }
    }
    // The end is checked first and its error returned last, since the records before it can still
    // be flushed.
    let end = decoder.finish();
    while let Some(batch) = decoder.flush()? {
        batches.push(batch);
    }
    end
}

#[test]
fn any_flipped_bit_is_an_error() {
    for sequence in [false, true] {
        let set = small(sequence);
        let (file, offsets) = (set.file(), offsets(&set.payloads()));
        for way in [WAYS[0], WAYS[3]] {
            let builder = ReaderBuilder::new(schema_of(&file, sequence, way).unwrap());
            for (bit, damaged) in flips(&file) {
                let (batches, result) = decode_all(&damaged, builder.clone());
                let error = result.expect_err("a flipped bit is found");
                let record = offsets
                    .iter()
                    .rposition(|offset| *offset <= bit as u64 / 8)
                    .unwrap();
                let in_header = bit as u64 / 8 - offsets[record] < 12;
                match error.kind() {
                    ErrorKind::LengthCrc { .. } => assert!(in_header, "bit {bit}: {error}"),
                    ErrorKind::DataCrc { .. } => assert!(!in_header, "bit {bit}: {error}"),
                    _ => panic!("bit {bit}: {error}"),
                }
                assert_eq!(error.category(), Category::Corrupt);
                assert_eq!(
                    (error.position().record, error.position().offset),
                    (record as u64, offsets[record])
                );
                assert_eq!(
                    arrow::rows_from_batches(&batches).unwrap(),
                    set.rows[..record]
                );
                assert!(summary(&damaged).is_err());
            }
        }
    }
}

#[test]
fn any_truncation_is_an_error() {
    for sequence in [false, true] {
        let set = small(sequence);
        let (file, offsets) = (set.file(), offsets(&set.payloads()));
        let builder = ReaderBuilder::new(schema_of(&file, sequence, WAYS[0]).unwrap());
        for cut in cuts(&file) {
            let (batches, result) = decode_all(cut, builder.clone());
            let record = offsets
                .iter()
                .rposition(|offset| *offset <= cut.len() as u64)
                .unwrap();
            assert_eq!(
                arrow::rows_from_batches(&batches).unwrap(),
                set.rows[..record]
            );
            let there = cut.len() as u64 - offsets[record];
            if there == 0 {
                assert!(result.is_ok(), "a file of fewer records is a file");
                continue;
            }
            let error = result.expect_err("the file ends inside a record");
            assert_eq!(
                (error.position().record, error.position().offset),
                (record as u64, offsets[record])
            );
            assert_eq!(error.category(), Category::Truncated);
            let whole = (there >= 12).then(|| offsets[record + 1] - offsets[record]);
            assert!(
                matches!(error.kind(), ErrorKind::Truncated { found, expected } if *found == there && *expected == whole),
                "{error}"
            );
            assert!(summary(cut).is_err());
        }
    }
}

#[test]
fn crcs_are_checked_as_configured() {
    let set = small(false);
    let (file, offsets) = (set.file(), offsets(&set.payloads()));
    let builder = ReaderBuilder::new(schema_of(&file, false, WAYS[0]).unwrap());
    // A bit of the first record's last value: the record still parses.
    let damaged = flip(&file, (offsets[1] as usize - 4 - 8) * 8);
    let data_crc = flip(&file, offsets[1] as usize * 8 - 1);
    for (file, verify, found) in [
        (&damaged, VerifyCrc::Always, true),
        (&data_crc, VerifyCrc::Always, true),
        (&data_crc, VerifyCrc::OnParseFailure, false),
        (&data_crc, VerifyCrc::Never, false),
    ] {
        let (_, result) = decode_all(file, builder.clone().with_verify_crc(verify));
        assert_eq!(result.is_err(), found, "{verify:?}");
    }
    // The tag of the first record's only field. The record no longer parses, and its CRC shows that
    // it is corrupt.
    let unreadable = flip(&file, 12 * 8);
    let (_, result) = decode_all(
        &unreadable,
        builder.clone().with_verify_crc(VerifyCrc::OnParseFailure),
    );
    assert!(matches!(
        result.unwrap_err().kind(),
        ErrorKind::DataCrc { .. }
    ));
    let (_, result) = decode_all(&unreadable, builder.with_verify_crc(VerifyCrc::Never));
    assert!(matches!(result.unwrap_err().kind(), ErrorKind::Wire(_)));
}

#[test]
fn a_long_length_takes_no_memory_before_its_bytes_arrive() {
    let builder = ReaderBuilder::new(schema_of(&small(false).file(), false, WAYS[0]).unwrap());
    for (length, category) in [
        (1u64 << 30, Category::Truncated),
        (1 << 31, Category::Limit),
        (u64::MAX, Category::Limit),
    ] {
        let length = length.to_le_bytes();
        let file = [
            &length[..],
            &frame::masked(&length).to_le_bytes(),
            b"no such length",
        ]
        .concat();
        let (_, result) = decode_all(&file, builder.clone());
        assert_eq!(result.unwrap_err().category(), category);
    }
    // A chunk has at most eight times the bytes that have arrived.
    let length = (1u64 << 30).to_le_bytes();
    let mut buffer = FrameBuffer::new(1 << 16, Limits::default());
    let (mut taken, header) = (
        0,
        [&length[..], &frame::masked(&length).to_le_bytes()].concat(),
    );
    buffer.spare()[..12].copy_from_slice(&header);
    buffer.advance(12);
    while taken < 1 << 20 {
        let spare = buffer.spare().len();
        assert!(
            spare <= (1 << 16) + 7 * taken,
            "{spare} bytes of room after {taken} bytes"
        );
        buffer.advance(spare);
        taken += spare;
        assert!(buffer.next(false).unwrap().is_none());
    }
    assert_eq!(
        buffer.next(true).unwrap_err().category(),
        Category::Truncated
    );
    let limits = Limits {
        record_bytes: 10,
        ..Limits::default()
    };
    let (_, result) = decode_all(&small(false).file(), builder.with_limits(limits));
    let error = result.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Limit { limit: 10, .. }),
        "{error}"
    );
}

#[test]
fn names_above_the_limit_are_not_kept() {
    let file = small(false).file();
    let records = &chunks(&file, 1 << 20).unwrap()[0];
    for limits in [
        Limits {
            features: 2,
            ..Limits::default()
        },
        Limits {
            name_bytes: 2,
            ..Limits::default()
        },
    ] {
        let error = Summary::with_limits(0, limits)
            .observe(records, VerifyCrc::Always)
            .unwrap_err();
        assert_eq!(error.category(), Category::Limit);
    }
}

/// A reader that skips records asks the error for its record, which may be in any chunk.
#[test]
fn names_above_the_limit_are_an_error_of_their_record() {
    let file = small(false).file();
    let (_, rest) = chunks(&file, 1 << 20).unwrap()[0].clone().split_at(1);
    let limits = Limits {
        features: 0,
        ..Limits::default()
    };
    let mut summary = Summary::with_limits(0, limits);
    let error = rest
        .clone()
        .skip_rejected(
            |records| summary.observe(records, VerifyCrc::Always),
            |good, bad, error| {
                assert!(good.is_empty());
                assert_eq!(bad.first(), 1);
                Err(error)
            },
        )
        .unwrap_err();
    assert_eq!(error.position().record, 1);
    assert_eq!(Some(error.position().offset), rest.offset(0));
    assert_eq!(error.category(), Category::Limit);
}

/// Changes to the bytes of one payload: each sets a byte, removes bytes, or inserts bytes.
fn edits() -> impl Strategy<Value = Vec<(usize, u8, u8)>> {
    vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..4)
}

fn edited(payload: &[u8], edits: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    for (at, how, byte) in edits {
        let at = at % (payload.len() + 1);
        match how % 6 {
            0 => payload.truncate(at),
            1 => payload.insert(at, *byte),
            2 if at < payload.len() => drop(payload.remove(at)),
            3 if at < payload.len() => payload[at] = *byte,
            4 if at < payload.len() => payload[at] ^= 1 << (byte % 8),
            _ => payload.extend([*byte; 3]),
        }
    }
    payload
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn random_bytes_are_not_a_file(bytes in vec(any::<u8>(), 1..300)) {
        prop_assert!(summary(&bytes).is_err());
        let builder = ReaderBuilder::new(schema_of(&small(true).file(), true, WAYS[0]).unwrap());
        prop_assert!(decode_all(&bytes, builder).1.is_err());
    }

    #[test]
    fn random_payloads_do_not_panic(payloads in vec(vec(any::<u8>(), 0..100), 1..4), way in 0..4usize) {
        let file = frame::file(&payloads);
        prop_assert_eq!(summary(&file).unwrap().records(), payloads.len() as u64);
        for sequence in [false, true] {
            let schema = schema_of(&small(sequence).file(), sequence, WAYS[way]).unwrap();
            let (batches, result) = decode_all(&file, ReaderBuilder::new(schema));
            prop_assert!(result.is_ok() || batches.len() < payloads.len());
        }
    }

    /// A changed record with a matching CRC is rejected, or read as `prost` reads it.
    #[test]
    fn a_changed_payload_is_read_as_prost_reads_it(
        set in generate::data_sets(),
        tape in tapes(),
        edits in edits(),
        way in 0..4usize,
    ) {
        let payloads = set.odd_payloads(&mut Choices::new(&tape));
        let Some(payload) = payloads.iter().max_by_key(|payload| payload.len()) else { return Ok(()) };
        let payload = edited(payload, &edits);
        let file = frame::file([&payload]);
        let summary = summary(&file).unwrap();
        let read = if set.sequence { oracle::row_from_sequence_example } else { oracle::row_from_example };
        if let (Some((_, error)), true) = (summary.first_unparsable(), set.sequence && read(&payload).is_ok()) {
            // `prost` reads long tags, which TensorFlow rejects. There is no other difference.
            prop_assert_eq!(error, WireError::LongVarint);
        }
        match (summary.schema(WAYS[way].0, Some(record_type(set.sequence))), read(&payload)) {
            (Ok(schema), Ok(row)) if summary.first_unparsable().is_none() => {
                let (batches, result) = decode_all(&file, ReaderBuilder::new(schema));
                prop_assert!(result.is_ok(), "{result:?}");
                prop_assert_eq!(arrow::rows_from_batches(&batches).unwrap(), [row]);
            }
            (Ok(schema), _) => {
                let (batches, result) = decode_all(&file, ReaderBuilder::new(schema));
                prop_assert!(result.is_ok() || batches.is_empty());
            }
            (Err(error), _) => prop_assert!(matches!(error.kind(), ErrorKind::MixedKinds(_)), "{error}"),
        }
    }

    /// Inference and decoding accept the same records.
    #[test]
    fn inference_and_decoding_reject_the_same_records(set in generate::data_sets(), edits in edits()) {
        let Some(payload) = set.payloads().into_iter().max_by_key(Vec::len) else { return Ok(()) };
        let file = frame::file([edited(&payload, &edits)]);
        let readable = summary(&file).unwrap();
        if let Ok(schema) = readable.schema(Layout::List, Some(record_type(true))) {
            let result = decode_all(&file, ReaderBuilder::new(schema)).1;
            if readable.first_unparsable().is_none() {
                prop_assert!(result.is_ok(), "{result:?}");
            }
        }
    }
}

#[test]
fn a_decoder_can_be_used_after_a_record_that_does_not_fit() {
    let set = small(false);
    let records = &chunks(&set.file(), 1 << 20).unwrap()[0];
    let bad = frame::file([&b"\x0a\x02\x0a\x09"[..]]);
    let bad = &chunks(&bad, 1 << 20).unwrap()[0];
    let builder = ReaderBuilder::new(schema_of(&set.file(), false, WAYS[0]).unwrap());
    let mut decoder = builder.build_batch_decoder().unwrap();
    let first = decoder.decode(records).unwrap();
    assert!(decoder.decode(bad).is_err());
    assert_eq!(decoder.decode(records).unwrap(), first);
}

#[test]
fn errors_are_returned_after_the_records_before_them() {
    let set = small(false);
    let file = flip(&set.file(), (set.file().len() - 1) * 8);
    let mut decoder = ReaderBuilder::new(schema_of(&set.file(), false, WAYS[0]).unwrap())
        .build_decoder()
        .unwrap();
    assert!(push(&mut decoder, &file).is_ok());
    assert!(finish(&mut decoder).is_err());
}
