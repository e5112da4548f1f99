//! Cutting the input elsewhere never changes the output.

use arrow_array::RecordBatch;
use proptest::prelude::*;
use tfarrow_codec::{DecoderBuilder, VerifyCrc};
use tfarrow_testkit::{
    arrow, config,
    corrupt::{halves, piece_sizes, pieces},
    generate,
};

use crate::support::{WAYS, chunks, decode, finish, push, schema_of, small};

/// Decodes a file that comes in pieces.
fn decode_pieces(pieces: &[&[u8]], builder: DecoderBuilder) -> Vec<RecordBatch> {
    let mut decoder = builder.build().unwrap();
    let mut batches: Vec<_> = pieces.iter().flat_map(|piece| push(&mut decoder, piece).unwrap()).collect();
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
            let builder = DecoderBuilder::new(schema).with_batch_size(batch_size).with_batch_bytes(batch_bytes);
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
        let builder = DecoderBuilder::new(schema).with_batch_bytes(4096);
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
        let builder = DecoderBuilder::new(schema).with_batch_size(batch_size).with_batch_bytes(batch_bytes);
        let batches = decode(&file, builder).unwrap();
        let mut rest = payloads.iter().map(Vec::len);
        for batch in &batches {
            let bytes: usize = rest.by_ref().take(batch.num_rows()).sum();
            prop_assert!((1..=batch_size).contains(&batch.num_rows()));
            prop_assert!(bytes <= batch_bytes || batch.num_rows() == 1, "{bytes} bytes in {} rows", batch.num_rows());
        }
        prop_assert_eq!(rest.count(), 0);
        prop_assert_eq!(arrow::rows_from_batches(&batches).unwrap(), set.rows);
    }

    /// `flush` is legal at any time, also inside a frame.
    #[test]
    fn a_flush_anywhere_loses_nothing(set in generate::data_sets(), sizes in piece_sizes()) {
        let file = set.file();
        let mut decoder = DecoderBuilder::new(schema_of(&file, set.sequence, WAYS[2]).unwrap()).build().unwrap();
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
            let builder = DecoderBuilder::new(schema_of(&file, sequence, way).unwrap()).with_batch_size(2);
            let whole = decode(&file, builder.clone()).unwrap();
            assert_eq!(whole.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
            for halves in halves(&file) {
                assert_eq!(decode_pieces(&halves, builder.clone()), whole, "cut at {}", halves[0].len());
            }
        }
    }
}

#[test]
fn an_empty_stream_has_no_batches() {
    let schema = schema_of(&small(false).file(), false, WAYS[0]).unwrap();
    assert_eq!(decode(&[], DecoderBuilder::new(schema)).unwrap(), []);
    assert!(chunks(&[], 1 << 20).unwrap().is_empty());
}

#[test]
fn records_know_their_places_wherever_they_are_split() {
    let set = small(false);
    let records = chunks(&set.file(), 1 << 20).unwrap().remove(0);
    let (first, rest) = records.clone().split_at(1);
    assert_eq!((first.len(), first.first(), rest.len(), rest.first()), (1, 0, 2, 1));
    assert_eq!(first.bytes() + rest.bytes(), set.file().len());
    assert_eq!(rest.data(0), records.data(1));
    assert!(records.data(3).is_none());
    assert!(rest.verify(VerifyCrc::Always).is_ok());
    let builder = DecoderBuilder::new(schema_of(&set.file(), false, WAYS[0]).unwrap());
    let mut decoder = builder.build_batch_decoder().unwrap();
    let parts = [&first, &rest].map(|records| decoder.decode(records).unwrap());
    assert_eq!(arrow::rows_from_batches(&parts).unwrap(), set.rows);
    let (all, none) = records.split_at(99);
    assert_eq!((all.len(), none.is_empty(), none.first()), (3, true, 3));
}

fn raw(batches: &[RecordBatch]) -> Vec<Vec<u8>> {
    use arrow_array::cast::AsArray;
    let column =
        |batch: &RecordBatch| batch.column(0).as_binary_view().iter().flatten().map(<[u8]>::to_vec).collect::<Vec<_>>();
    batches.iter().flat_map(column).collect()
}
