//! What was decoded encodes to the same records: same features, kinds, states and values, to the bit.

use std::fs;

use arrow_array::RecordBatch;
use proptest::prelude::*;
use tfarrow_codec::{DecoderBuilder, EncoderBuilder, Result, Values, schema};
use tfarrow_testkit::{
    arrow, config, frame, generate,
    golden::{self, Golden},
    odd_wire::{Choices, tapes},
    oracle::{self, Row},
};

use crate::support::{WAYS, decode, decode_way, record_type, schema_of, small, testdata};

/// Encodes batches of one schema; no batches make no file.
fn encode(batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(first) = batches.first() {
        let mut encoder = EncoderBuilder::new().build(first.schema())?;
        batches.iter().try_for_each(|batch| encoder.encode(batch, &mut bytes))?;
        assert_eq!(encoder.losses().count(), 0, "nothing of our own is lossy");
    }
    Ok(bytes)
}

/// What `prost` reads in a file.
fn rows(file: &[u8], sequence: bool) -> Vec<Row> {
    let read = if sequence { oracle::row_from_sequence_example } else { oracle::row_from_example };
    frame::read(file).unwrap().into_iter().map(|payload| read(payload).unwrap()).collect()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn every_record_comes_back(set in generate::data_sets(), tape in tapes(), batch_size in 1..20usize) {
        let file = set.odd_file(&mut Choices::new(&tape));
        for way in WAYS {
            let schema = schema_of(&file, set.sequence, way).unwrap();
            let batches = decode(&file, DecoderBuilder::new(schema).with_batch_size(batch_size)).unwrap();
            let encoded = encode(&batches).unwrap();
            prop_assert_eq!(rows(&encoded, set.sequence), &set.rows[..], "{:?}", way);
            // .. and from there the same way once more.
            let again = decode_way(&encoded, set.sequence, way).unwrap();
            prop_assert_eq!(arrow::rows_from_batches(&again).unwrap(), &set.rows[..]);
        }
    }

    /// Neither layout, nor views, nor where batches end, nor how often it is done.
    #[test]
    fn nothing_but_the_records_decides_the_bytes(set in generate::data_sets(), batch_size in 1..20usize) {
        let file = set.file();
        let expected = encode(&decode_way(&file, set.sequence, WAYS[0]).unwrap()).unwrap();
        for way in WAYS {
            let schema = schema_of(&file, set.sequence, way).unwrap();
            let batches = decode(&file, DecoderBuilder::new(schema).with_batch_size(batch_size)).unwrap();
            prop_assert_eq!(&encode(&batches).unwrap(), &expected, "{:?}", way);
        }
        prop_assert_eq!(&encode(&decode_way(&expected, set.sequence, WAYS[0]).unwrap()).unwrap(), &expected);
    }

    #[test]
    fn slices_encode_as_what_they_show(set in generate::data_sets(), from in 0..5usize, count in 0..5usize) {
        for way in WAYS {
            for batch in decode_way(&set.file(), set.sequence, way).unwrap() {
                let from = from.min(batch.num_rows());
                let slice = batch.slice(from, count.min(batch.num_rows() - from));
                let encoded = encode(std::slice::from_ref(&slice)).unwrap();
                prop_assert_eq!(rows(&encoded, set.sequence), &set.rows[from..from + slice.num_rows()]);
            }
        }
    }

    #[test]
    fn raw_records_come_back(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 0..5)) {
        let file = frame::file(&payloads);
        for values in [Values::Binary, Values::BinaryView] {
            let batches = decode(&file, DecoderBuilder::new(schema::raw_schema(values))).unwrap();
            prop_assert_eq!(&encode(&batches).unwrap(), &file);
        }
    }
}

#[test]
fn the_encoder_knows_what_it_writes() {
    for sequence in [false, true] {
        let schema = schema_of(&small(sequence).file(), sequence, WAYS[0]).unwrap();
        assert_eq!(EncoderBuilder::new().build(schema).unwrap().record_type(), record_type(sequence));
    }
}

/// TensorFlow wrote these with sorted keys, as the columns are: not a byte is different.
#[test]
fn what_tensorflow_wrote_is_written_again() {
    let mut same = 0;
    for Golden { path, sequence, rows: expected } in golden::below(&testdata()).unwrap() {
        let odd = ["wire", "wire_disputed", "compressed"];
        if odd.iter().any(|folder| path.starts_with(testdata().join(folder))) {
            continue;
        }
        let file = fs::read(&path).unwrap();
        for way in WAYS {
            let encoded = encode(&decode_way(&file, sequence, way).unwrap()).unwrap();
            assert_eq!(rows(&encoded, sequence), expected, "{}: {way:?}", path.display());
            same += usize::from(encoded == file);
        }
        eprintln!("{} {}", path.display(), encode(&decode_way(&file, sequence, WAYS[0]).unwrap()).unwrap() == file);
    }
    assert!(same > 0, "only {same} files");
}
