//! With the column `_tfarrow_exact`, decoded batches encode to the same bytes.

use std::{fs, sync::Arc};

use arrow_array::{BinaryArray, RecordBatch, cast::AsArray};
use arrow_schema::SchemaRef;
use proptest::prelude::*;
use tfarrow_codec::{Encoder, ExactColumn, ReaderBuilder, Records, Remedy, Result, WriterBuilder};
use tfarrow_testkit::{
    config, frame, generate, golden,
    odd_wire::{Choices, tapes},
};

use crate::support::{WAYS, chunks, schema_of, testdata};

fn exact(records: &[Records], schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let mut decoder = ReaderBuilder::new(Arc::clone(schema)).build_batch_decoder()?;
    let mut column = ExactColumn::new(Arc::clone(schema))?;
    records
        .iter()
        .map(|records| column.add(&decoder.decode(records)?, records, |row| row))
        .collect()
}

fn encoder(batches: &[RecordBatch], lossy: bool) -> Encoder {
    WriterBuilder::new()
        .with_lossy(lossy)
        .build_encoder(batches[0].schema())
        .unwrap()
}

fn encode(batches: &[RecordBatch]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !batches.is_empty() {
        let mut encoder = encoder(batches, false);
        batches
            .iter()
            .for_each(|batch| encoder.encode(batch, &mut bytes).unwrap());
    }
    bytes
}

fn differences(batch: &RecordBatch) -> &BinaryArray {
    batch.column_by_name("_tfarrow_exact").unwrap().as_binary()
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn all_bytes_have_a_round_trip(set in generate::data_sets(), tape in tapes()) {
        let file = set.odd_file(&mut Choices::new(&tape));
        for way in WAYS {
            let schema = schema_of(&file, set.sequence, way).unwrap();
            let batches = exact(&chunks(&file, 1 << 20).unwrap(), &schema).unwrap();
            prop_assert!(encode(&batches) == file, "{:?}", way);
            // Records that the encoder has written have empty differences.
            let schema = schema_of(&file, set.sequence, way).unwrap();
            let mut decoder = ReaderBuilder::new(Arc::clone(&schema)).build_batch_decoder().unwrap();
            for records in chunks(&file, 1 << 20).unwrap() {
                let mut plain = Vec::new();
                let batch = decoder.decode(&records).unwrap();
                WriterBuilder::new().build_encoder(batch.schema()).unwrap().encode(&batch, &mut plain).unwrap();
                for batch in exact(&chunks(&plain, 1 << 20).unwrap(), &schema).unwrap() {
                    prop_assert!(differences(&batch).value_data().is_empty());
                }
            }
        }
    }

    /// A difference may come from any file: it is rejected, or restores some record, and takes no
    /// more memory than that record.
    #[test]
    fn any_difference_is_rejected_or_restores_a_record(
        set in generate::data_sets(),
        strange in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 1..9),
    ) {
        let file = set.file();
        let schema = schema_of(&file, set.sequence, WAYS[0]).unwrap();
        for batch in exact(&chunks(&file, 1 << 20).unwrap(), &schema).unwrap() {
            let strange = strange.iter().cycle().take(batch.num_rows());
            let column: BinaryArray = strange.map(|bytes| bytes.as_deref()).collect();
            let mut columns = batch.columns().to_vec();
            *columns.last_mut().unwrap() = Arc::new(column);
            let batch = RecordBatch::try_new(batch.schema(), columns).unwrap();
            let (mut out, mut lossy) = (b"before".to_vec(), Vec::new());
            if encoder(std::slice::from_ref(&batch), false).encode(&batch, &mut out).is_err() {
                prop_assert_eq!(out, b"before", "nothing of a batch that is refused");
            }
            let mut encoder = encoder(std::slice::from_ref(&batch), true);
            encoder.encode(&batch, &mut lossy).unwrap();
            prop_assert_eq!(frame::read(&lossy).unwrap().len(), batch.num_rows());
        }
    }
}

#[test]
fn files_of_tensorflow_are_restored() {
    for folder in ["", "wire", "wire_disputed"] {
        for golden in golden::files(&testdata().join(folder)).unwrap() {
            let file = fs::read(golden).unwrap();
            let Ok(records) = chunks(&file, 1 << 20) else {
                continue;
            };
            for (sequence, way) in [true, false]
                .into_iter()
                .flat_map(|sequence| WAYS.map(|way| (sequence, way)))
            {
                let Ok(schema) = schema_of(&file, sequence, way) else {
                    continue;
                };
                let Ok(batches) = exact(&records, &schema) else {
                    continue;
                };
                assert!(encode(&batches) == file, "{way:?}");
            }
        }
    }
}

/// An order takes the bytes of its number. Small differences keep the column small.
#[test]
fn forms_take_few_bytes() {
    let entry = |name: &str, list: &[u8]| {
        let field = |tag: u8, body: &[u8]| [&[tag, body.len() as u8], body].concat();
        field(
            0x0a,
            &[field(0x0a, name.as_bytes()), field(0x12, list)].concat(),
        )
    };
    let record = |entries: &[Vec<u8>]| {
        let body = entries.concat();
        [&[0x0a, body.len() as u8], &*body].concat()
    };
    let int = |name| entry(name, &[0x1a, 3, 0x0a, 1, 7]);
    let difference = |payload: &[u8]| {
        let file = frame::file([payload]);
        let schema = schema_of(&file, false, WAYS[0]).unwrap();
        let batches = exact(&chunks(&file, 1 << 20).unwrap(), &schema).unwrap();
        assert_eq!(encode(&batches), file);
        let column = differences(&batches[0]);
        Some(column.value(0).to_vec()).filter(|difference| !difference.is_empty())
    };
    assert_eq!(difference(&record(&["a", "b", "c"].map(int))), None);
    assert_eq!(
        difference(&record(&["c", "b", "a"].map(int)))
            .unwrap()
            .len(),
        1
    );
    // Begin, three entries, end.
    let unpacked = entry("b", &[0x1a, 2, 0x08, 7]);
    assert_eq!(
        difference(&record(&[int("a"), unpacked, int("c")])),
        Some(vec![1, 0x0c, 0x01, 0x0a, 0x11, 0x05])
    );
    // A repeated key.
    let twice = difference(&record(&[int("a"), int("a"), int("b")])).unwrap();
    assert_eq!(twice, [1, 0x0c, 0x01, 0x01, 0x09, 0x05]);
    // An empty map.
    assert_eq!(difference(&[0x0a, 0]), Some(vec![2, 0x0a, 0]));
}

#[test]
fn a_form_of_another_record_is_rejected_by_name() {
    let file = generate_file();
    let schema = schema_of(&file, false, WAYS[0]).unwrap();
    let batch = exact(&chunks(&file, 1 << 20).unwrap(), &schema)
        .unwrap()
        .remove(0);
    let mut columns = batch.columns().to_vec();
    *columns.last_mut().unwrap() = Arc::new(BinaryArray::from_iter_values([b"nonsense"]));
    let batch = RecordBatch::try_new(batch.schema(), columns).unwrap();
    let error = encoder(std::slice::from_ref(&batch), false)
        .encode(&batch, &mut Vec::new())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "feature \"_tfarrow_exact\": row 0 has a form that its features cannot have; leave the column out, so that \
         records have their usual form"
    );
    assert_eq!(error.remedies(), [Remedy::AllowLossy]);
}

fn generate_file() -> Vec<u8> {
    frame::file([b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x07".as_slice()])
}
