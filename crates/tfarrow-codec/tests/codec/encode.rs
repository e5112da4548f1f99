//! Decoded batches encode to the same records: the same features, kinds, states and values, to the
//! bit.

use std::fs;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use proptest::prelude::*;
use tfarrow_codec::{OnConflict, ReaderBuilder, Result, Values, WriterBuilder, schema};
use tfarrow_testkit::{
    arrow, config, frame,
    generate::{self, DataSet},
    golden::{self, Golden},
    odd_wire::{Choices, tapes},
    oracle::{self, ModelCell, ModelRow, ModelSide, ModelValue},
};

use crate::support::{WAYS, decode, decode_way, record_type, schema_of, small, summary, testdata};

/// Encodes batches of one schema; without batches, the file is empty.
fn encode(batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(first) = batches.first() {
        let mut encoder = WriterBuilder::new().build_encoder(first.schema())?;
        batches
            .iter()
            .try_for_each(|batch| encoder.encode(batch, &mut bytes))?;
        assert_eq!(encoder.losses().count(), 0, "nothing of our own is lossy");
    }
    Ok(bytes)
}

/// Returns the records of a file as `prost` reads them.
fn rows(file: &[u8], sequence: bool) -> Vec<ModelRow> {
    let read = if sequence {
        oracle::row_from_sequence_example
    } else {
        oracle::row_from_example
    };
    frame::read(file)
        .unwrap()
        .into_iter()
        .map(|payload| read(payload).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn every_record_has_a_round_trip(set in generate::data_sets(), tape in tapes(), batch_size in 1..20usize) {
        let file = set.odd_file(&mut Choices::new(&tape));
        for way in WAYS {
            let schema = schema_of(&file, set.sequence, way).unwrap();
            let batches = decode(&file, ReaderBuilder::new(schema).with_batch_size(batch_size)).unwrap();
            let encoded = encode(&batches).unwrap();
            prop_assert_eq!(rows(&encoded, set.sequence), &set.rows[..], "{:?}", way);
            // A second round trip starts from the encoded file.
            let again = decode_way(&encoded, set.sequence, way).unwrap();
            prop_assert_eq!(arrow::rows_from_batches(&again).unwrap(), &set.rows[..]);
        }
    }

    /// Features of several kinds have a column for each kind, from which each record is restored.
    #[test]
    fn split_kinds_are_joined_again(set in generate::mixed(), tape in tapes(), batch_size in 1..20usize) {
        let file = set.odd_file(&mut Choices::new(&tape));
        for (layout, views) in WAYS {
            let summary = summary(&file).unwrap();
            let schema = summary.schema_with(layout, Some(record_type(set.sequence)), OnConflict::Split).unwrap();
            let schema = schema::with_views(&schema, views);
            let builder = ReaderBuilder::new(SchemaRef::clone(&schema)).with_batch_size(batch_size);
            let batches = decode(&file, builder.clone()).unwrap();
            prop_assert_eq!(rows(&encode(&batches).unwrap(), set.sequence), &set.rows[..], "{:?}", layout);
            // Each column decodes alone to the same values as with the others.
            for column in 0..schema.fields().len() {
                let alone = decode(&file, builder.clone().with_projection(vec![column])).unwrap();
                for (alone, all) in alone.iter().zip(&batches) {
                    prop_assert_eq!(alone.column(0), all.column(column));
                }
            }
        }
    }

    /// The bytes do not depend on the layout, on views, on the ends of batches, or on earlier
    /// calls.
    #[test]
    fn the_encoded_bytes_depend_on_the_records_only(set in generate::data_sets(), batch_size in 1..20usize) {
        let file = set.file();
        let expected = encode(&decode_way(&file, set.sequence, WAYS[0]).unwrap()).unwrap();
        for way in WAYS {
            let schema = schema_of(&file, set.sequence, way).unwrap();
            let batches = decode(&file, ReaderBuilder::new(schema).with_batch_size(batch_size)).unwrap();
            prop_assert_eq!(&encode(&batches).unwrap(), &expected, "{:?}", way);
        }
        prop_assert_eq!(&encode(&decode_way(&expected, set.sequence, WAYS[0]).unwrap()).unwrap(), &expected);
    }

    #[test]
    fn slices_encode_as_copies_of_their_rows(set in generate::data_sets(), from in 0..5usize, count in 0..5usize) {
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
    fn raw_records_have_a_round_trip(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 0..5)) {
        let file = frame::file(&payloads);
        for values in [Values::Binary, Values::BinaryView] {
            let batches = decode(&file, ReaderBuilder::new(schema::raw_schema(values))).unwrap();
            prop_assert_eq!(&encode(&batches).unwrap(), &file);
        }
    }
}

/// The form of lengths and entries depends on their size. All lengths are tested up to those that
/// take two bytes at every level, and lengths around 1 KiB, 8 KiB and 16 KiB.
#[test]
fn every_length_is_written_as_tensorflow_writes_it() {
    let lengths: Vec<_> = [
        0..150,
        250..260,
        1000..1040,
        2040..2060,
        8180..8200,
        16_370..16_390,
    ]
    .into_iter()
    .flatten()
    .collect();
    for name in [
        0, 1, 2, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 28, 29, 30, 31, 60, 100, 118, 119, 120, 126,
        127, 128, 140,
    ] {
        check_lengths(&"n".repeat(name), &lengths);
    }
    for name in 0..150 {
        check_lengths(&"n".repeat(name), &[0, 1, 2, 50]);
    }
}

/// A record with one feature, and one feature list, for each length of each kind.
#[track_caller]
fn check_lengths(name: &str, lengths: &[usize]) {
    let values = |length: usize| {
        // Integers of one byte, and of all lengths; one long value, and several values.
        let sorts = (0..length as i64 / 5)
            .map(|i| i64::MAX >> (i % 64))
            .collect();
        let thirds = vec![vec![b'x'; length / 3]; 3];
        [
            vec![ModelValue::Int64(vec![1; length]), ModelValue::Int64(sorts)],
            vec![ModelValue::Float(vec![1; length / 4])],
            vec![
                ModelValue::Bytes(vec![vec![b'x'; length]]),
                ModelValue::Bytes(thirds),
                ModelValue::Bytes(vec![vec![]; length]),
            ],
        ]
    };
    for kind in 0..3 {
        let mut features = DataSet::default();
        let mut lists = DataSet {
            sequence: true,
            ..DataSet::default()
        };
        for value in lengths
            .iter()
            .flat_map(|length| std::mem::take(&mut values(*length)[kind]))
        {
            features.rows.push(ModelRow::from([(
                (ModelSide::Features, name.to_owned()),
                ModelCell::One(value.clone()),
            )]));
            lists.rows.push(ModelRow::from([(
                (ModelSide::Lists, name.to_owned()),
                ModelCell::Steps(vec![value]),
            )]));
        }
        for set in [features, lists] {
            let file = set.file();
            let encoded = encode(&decode_way(&file, set.sequence, WAYS[1]).unwrap()).unwrap();
            assert!(
                encoded == file,
                "a name of {} bytes, kind {kind}, sequence: {}",
                name.len(),
                set.sequence
            );
        }
    }
}

#[test]
fn the_encoder_has_the_record_type_of_the_schema() {
    for sequence in [false, true] {
        let schema = schema_of(&small(sequence).file(), sequence, WAYS[0]).unwrap();
        assert_eq!(
            WriterBuilder::new()
                .build_encoder(schema)
                .unwrap()
                .record_type(),
            record_type(sequence)
        );
    }
}

/// Returns the golden files, without those of unusual wire forms, which an encoder does not write.
fn goldens() -> impl Iterator<Item = Golden> {
    let odd = ["wire", "wire_disputed", "compressed"].map(|folder| testdata().join(folder));
    golden::below(&testdata())
        .unwrap()
        .into_iter()
        .filter(move |g| !odd.iter().any(|folder| g.path.starts_with(folder)))
}

#[test]
fn files_of_tensorflow_have_a_round_trip() {
    for Golden {
        path,
        sequence,
        rows: expected,
    } in goldens()
    {
        let file = fs::read(&path).unwrap();
        for way in WAYS {
            let encoded = encode(&decode_way(&file, sequence, way).unwrap()).unwrap();
            assert_eq!(
                rows(&encoded, sequence),
                expected,
                "{}: {way:?}",
                path.display()
            );
            // An empty context and empty feature lists may be left out.
            assert!(
                encoded.len() <= file.len(),
                "{}: more bytes than TensorFlow takes",
                path.display()
            );
        }
    }
}

/// Files whose keys have the order of columns are restored byte by byte. (The order of Python
/// differs if one name begins with another.)
#[test]
fn files_of_tensorflow_with_sorted_keys_are_byte_identical() {
    let sorted = ["scalar", "ragged", "text", "shards", "tfds", "magic"];
    let mut same = 0;
    for Golden { path, sequence, .. } in goldens() {
        let name = path.strip_prefix(testdata()).unwrap().to_str().unwrap();
        if sorted.iter().any(|part| name.starts_with(part)) {
            let file = fs::read(&path).unwrap();
            let encoded = encode(&decode_way(&file, sequence, WAYS[2]).unwrap()).unwrap();
            assert!(encoded == file, "{name} is not the same");
            same += 1;
        }
    }
    assert!(same >= 10, "only {same} files");
}
