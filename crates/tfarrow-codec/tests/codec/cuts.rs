//! The batches do not depend on how the input is split.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use tfarrow_codec::{BATCH_CELLS, Category, ReaderBuilder, VerifyCrc};
use tfarrow_testkit::{
    arrow, config,
    corrupt::{halves, piece_sizes, pieces},
    generate,
};

use crate::support::{WAYS, chunks, decode, finish, push, schema_of, small};

/// Decodes a file that arrives in pieces.
fn decode_pieces(pieces: &[&[u8]], builder: ReaderBuilder) -> Vec<RecordBatch> {
    let mut decoder = builder.build_decoder().unwrap();
    let mut batches: Vec<_> = pieces
        .iter()
        .flat_map(|piece| push(&mut decoder, piece).unwrap())
        .collect();
    batches.extend(finish(&mut decoder).unwrap());
    batches
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn pieces_of_any_size_give_the_same_batches(
        set in generate::data_sets(),
        sizes in piece_sizes(),
        batch_size in 1..10usize,
        batch_bytes in prop_oneof![Just(0), 1..500usize, Just(1 << 20)],
    ) {
        let file = set.file();
        for way in [WAYS[0], WAYS[3]] {
            let schema = schema_of(&file, set.sequence, way).unwrap();
            let builder = ReaderBuilder::new(schema).with_batch_size(batch_size).with_batch_bytes(batch_bytes);
            let whole = decode(&file, builder.clone()).unwrap();
            prop_assert_eq!(&decode_pieces(&pieces(&file, &sizes), builder), &whole);
        }
    }

    /// Records longer than a chunk, and chunks that end anywhere in a frame.
    #[test]
    fn large_records_cross_chunks(lengths in prop::collection::vec(0..20_000usize, 1..8), sizes in piece_sizes()) {
        let payloads: Vec<_> = lengths.iter().map(|length| [b"\x0a".to_vec(), vec![7; *length]].concat()).collect();
        let file = tfarrow_testkit::frame::file(&payloads);
        let cut = chunks(&file, 4096).unwrap();
        prop_assert_eq!(cut.iter().flat_map(|records| records.iter()).collect::<Vec<_>>(), payloads.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let schema = tfarrow_codec::schema::raw_schema(tfarrow_codec::Values::BinaryView);
        let builder = ReaderBuilder::new(schema).with_batch_bytes(4096);
        let batches = decode_pieces(&pieces(&file, &sizes), builder.clone());
        prop_assert_eq!(&batches, &decode(&file, builder).unwrap());
        prop_assert_eq!(raw(&batches), payloads);
    }

    #[test]
    fn batches_end_at_rows_or_bytes(
        set in generate::data_sets(),
        batch_size in 1..10usize,
        batch_bytes in prop_oneof![Just(0), 1..500usize, Just(1 << 20)],
    ) {
        let (file, payloads) = (set.file(), set.payloads());
        let schema = schema_of(&file, set.sequence, WAYS[0]).unwrap();
        let builder = ReaderBuilder::new(schema).with_batch_size(batch_size).with_batch_bytes(batch_bytes);
        let batches = decode(&file, builder).unwrap();
        let mut rest: Vec<_> = payloads.iter().map(|payload| payload.len() + 16).collect();
        for batch in &batches {
            let next = rest.split_off(batch.num_rows());
            let bytes: usize = rest.iter().sum();
            prop_assert!((1..=batch_size).contains(&batch.num_rows()));
            prop_assert!(bytes <= batch_bytes || batch.num_rows() == 1, "{bytes} bytes in {} rows", batch.num_rows());
            // No batch ends earlier than necessary.
            let fits = next.first().is_some_and(|next| bytes + next <= batch_bytes);
            prop_assert!(batch.num_rows() == batch_size || !fits, "{bytes} bytes in {} rows", batch.num_rows());
            rest = next;
        }
        prop_assert!(rest.is_empty());
        prop_assert_eq!(arrow::rows_from_batches(&batches).unwrap(), set.rows);
    }

    /// `flush` may be called at any time, also inside a frame.
    #[test]
    fn a_flush_anywhere_loses_nothing(set in generate::data_sets(), sizes in piece_sizes()) {
        let file = set.file();
        let mut decoder = ReaderBuilder::new(schema_of(&file, set.sequence, WAYS[2]).unwrap()).build_decoder().unwrap();
        let mut batches = Vec::new();
        for piece in pieces(&file, &sizes) {
            batches.extend(push(&mut decoder, piece).unwrap());
            batches.extend(decoder.flush().unwrap());
        }
        batches.extend(finish(&mut decoder).unwrap());
        prop_assert_eq!(arrow::rows_from_batches(&batches).unwrap(), set.rows);
    }
}

#[test]
fn every_two_halves_give_the_same_batches() {
    for sequence in [false, true] {
        let file = small(sequence).file();
        for way in WAYS {
            let builder =
                ReaderBuilder::new(schema_of(&file, sequence, way).unwrap()).with_batch_size(2);
            let whole = decode(&file, builder.clone()).unwrap();
            assert_eq!(
                whole.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(),
                [2, 1]
            );
            for halves in halves(&file) {
                assert_eq!(
                    decode_pieces(&halves, builder.clone()),
                    whole,
                    "cut at {}",
                    halves[0].len()
                );
            }
        }
    }
}

/// For any length of the input, and any size of its parts.
#[test]
fn batches_have_the_configured_number_of_rows() {
    let record = small(false).payloads().remove(0);
    let file = tfarrow_testkit::frame::file(vec![&record; 20_000]);
    assert!(file.len() > 1 << 20);
    let builder = ReaderBuilder::new(schema_of(&small(false).file(), false, WAYS[0]).unwrap());
    for piece in [1000, 1 << 16, file.len()] {
        let pieces: Vec<_> = file.chunks(piece).collect();
        let rows: Vec<_> = decode_pieces(&pieces, builder.clone())
            .iter()
            .map(RecordBatch::num_rows)
            .collect();
        assert_eq!(rows, [8192, 8192, 20_000 - 2 * 8192]);
    }
}

/// The documented loop does not call `capacity`: a decoder takes no bytes only if a batch can be
/// flushed.
#[test]
fn no_bytes_are_taken_only_if_the_batch_is_full() {
    let file = tfarrow_testkit::frame::file([&b""[..]; 10]);
    let schema = schema_of(&small(false).file(), false, WAYS[0]).unwrap();
    let mut decoder = ReaderBuilder::new(schema)
        .with_batch_size(4)
        .build_decoder()
        .unwrap();
    assert_eq!(
        (decoder.capacity(), decoder.decode(&file).unwrap()),
        (4, 4 * 16)
    );
    assert_eq!(
        (decoder.capacity(), decoder.decode(&file[64..]).unwrap()),
        (0, 0)
    );
    assert_eq!(
        decoder.flush().unwrap().map(|batch| batch.num_rows()),
        Some(4)
    );
    assert_eq!(
        (decoder.capacity(), decoder.decode(&file[64..100]).unwrap()),
        (4, 36)
    );
    assert_eq!(decoder.capacity(), 2);
    assert_eq!(decoder.decode(&file[100..]).unwrap(), 28);
    assert_eq!(
        decoder.flush().unwrap().map(|batch| batch.num_rows()),
        Some(4)
    );
}

/// Each row of a column takes memory, also if the record does not have the feature.
#[test]
fn wide_batches_have_few_rows() {
    let columns = 10_000;
    let field = |number: usize| Field::new(format!("f{number}"), DataType::Int64, true);
    let schema = Arc::new(Schema::new((0..columns).map(field).collect::<Vec<_>>()));
    let file = tfarrow_testkit::frame::file([&b""[..]; 300]);
    let batches = decode(&file, ReaderBuilder::new(Arc::clone(&schema))).unwrap();
    let rows: Vec<_> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(rows, [104, 104, 92]);
    assert!(rows.iter().all(|rows| rows * columns <= BATCH_CELLS));
    // Columns outside of the projection take none.
    let batches = decode(&file, ReaderBuilder::new(schema).with_projection(vec![7])).unwrap();
    assert_eq!(
        batches
            .iter()
            .map(RecordBatch::num_rows)
            .collect::<Vec<_>>(),
        [300]
    );
}

/// The records before a corrupt length are returned first, as one batch.
#[test]
fn records_before_a_corrupt_length_are_flushed_before_the_error() {
    let mut file = small(false).file();
    let at = crate::support::offsets(&small(false).payloads())[2] as usize;
    file[at] ^= 1;
    let mut decoder = ReaderBuilder::new(schema_of(&small(false).file(), false, WAYS[0]).unwrap())
        .build_decoder()
        .unwrap();
    let taken = decoder.decode(&file).unwrap();
    assert_eq!(decoder.capacity(), 0);
    assert_eq!(
        decoder.flush().unwrap().map(|batch| batch.num_rows()),
        Some(2)
    );
    for _ in 0..2 {
        let error = decoder.decode(&file[taken..]).unwrap_err();
        assert_eq!(
            (error.category(), error.position().record),
            (Category::Corrupt, 2)
        );
        assert_eq!(error.position().offset, at as u64);
    }
    assert_eq!(decoder.finish().unwrap_err().category(), Category::Corrupt);
}

#[test]
fn an_empty_stream_has_no_batches() {
    let schema = schema_of(&small(false).file(), false, WAYS[0]).unwrap();
    assert_eq!(decode(&[], ReaderBuilder::new(schema)).unwrap(), []);
    assert!(chunks(&[], 1 << 20).unwrap().is_empty());
}

#[test]
fn records_have_the_same_positions_after_any_split() {
    let set = small(false);
    let records = chunks(&set.file(), 1 << 20).unwrap().remove(0);
    let (first, rest) = records.clone().split_at(1);
    assert_eq!(
        (first.len(), first.first(), rest.len(), rest.first()),
        (1, 0, 2, 1)
    );
    assert_eq!(first.bytes() + rest.bytes(), set.file().len());
    assert_eq!(rest.data(0), records.data(1));
    assert!(records.data(3).is_none());
    assert!(rest.verify(VerifyCrc::Always).is_ok());
    let builder = ReaderBuilder::new(schema_of(&set.file(), false, WAYS[0]).unwrap());
    let mut decoder = builder.build_batch_decoder().unwrap();
    let parts = [&first, &rest].map(|records| decoder.decode(records).unwrap());
    assert_eq!(arrow::rows_from_batches(&parts).unwrap(), set.rows);
    let (all, none) = records.split_at(99);
    assert_eq!((all.len(), none.is_empty(), none.first()), (3, true, 3));
}

fn raw(batches: &[RecordBatch]) -> Vec<Vec<u8>> {
    use arrow_array::cast::AsArray;
    let column = |batch: &RecordBatch| {
        batch
            .column(0)
            .as_binary_view()
            .iter()
            .flatten()
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(column).collect()
}
