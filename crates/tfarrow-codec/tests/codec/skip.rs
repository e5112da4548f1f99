//! A decoder that skips records: corrupt records and records that do not fit are skipped and
//! counted, and all others are decoded.

use std::sync::Arc;

use arrow_array::BooleanArray;
use proptest::{prelude::*, sample::Index};
use tfarrow_codec::{BatchDecoder, Category, Limits, OnError, ReaderBuilder};
use tfarrow_testkit::{
    arrow, config,
    corrupt::flip,
    frame,
    generate::{self, DataSet},
    odd_wire::{Choices, tapes},
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue},
};

use crate::{
    misfit::{kept, misfits},
    support::{WAYS, chunks, offsets, schema_of, small},
};

proptest! {
    #![proptest_config(config(600))]

    /// The schema is inferred from the first records alone, some records are corrupt, and a filter
    /// keeps some.
    #[test]
    fn all_valid_records_are_decoded(
        set in generate::mixed(),
        tape in tapes(),
        sampled in any::<Index>(),
        damaged in proptest::collection::vec(any::<bool>(), 64),
        wanted in proptest::collection::vec(any::<bool>(), 64),
        way in 0..4usize,
    ) {
        let payloads = set.odd_payloads(&mut Choices::new(&tape));
        let sampled = sampled.index(payloads.len() + 1);
        let Ok(schema) = schema_of(&frame::file(&payloads[..sampled]), set.sequence, WAYS[way]) else { return Ok(()) };
        // Without columns, no record is parsed.
        prop_assume!(!schema.fields().is_empty());
        let (offsets, mut file) = (offsets(&payloads), frame::file(&payloads));
        let is_damaged = |record: usize| damaged[record % damaged.len()];
        for record in (0..payloads.len()).filter(|record| is_damaged(*record)) {
            file = flip(&file, 8 * (offsets[record] as usize + 12 + payloads[record].len()));
        }
        let is_wanted = |record: usize| wanted[record % wanted.len()];
        let is_bad = |record: usize| is_damaged(record) || !misfits(&schema, &set.rows[record]).is_empty();

        let builder = ReaderBuilder::new(Arc::clone(&schema)).with_on_error(OnError::Skip);
        let mut decoder = builder.build_batch_decoder().unwrap();
        for records in chunks(&file, 4096).unwrap() {
            let these = records.first() as usize..records.first() as usize + records.len();
            let filter: BooleanArray = these.clone().map(|record| Some(is_wanted(record))).collect();
            let batch = decoder.decode_where(&records, &filter).unwrap();
            let good: Vec<_> = these.clone().filter(|record| is_wanted(*record) && !is_bad(*record)).collect();
            let expected: Vec<_> = good.iter().map(|record| kept(&schema, &set.rows[*record])).collect();
            prop_assert_eq!(arrow::rows_from_batch(&batch).unwrap(), expected);
            let rows: Vec<_> = (0..batch.num_rows()).map(|row| these.start + decoder.record_of(row)).collect();
            prop_assert_eq!(rows, good);

            let bad: Vec<_> = these.clone().filter(|record| is_wanted(*record) && is_bad(*record)).collect();
            let skipped = decoder.take_skipped();
            prop_assert_eq!(skipped.len(), bad.len());
            let corrupt = skipped.iter().filter(|error| error.category() == Category::Corrupt).count();
            prop_assert_eq!(corrupt, bad.iter().filter(|record| is_damaged(**record)).count());
            let first = skipped.first().map(|error| error.position().record as usize);
            prop_assert!(first.map_or(bad.is_empty(), |first| bad.contains(&first)));
        }
    }
}

fn decoder(file: &[u8], projection: Vec<usize>) -> BatchDecoder {
    let builder =
        ReaderBuilder::new(schema_of(file, false, WAYS[0]).unwrap()).with_projection(projection);
    builder
        .with_on_error(OnError::Skip)
        .build_batch_decoder()
        .unwrap()
}

#[test]
fn without_columns_only_corrupt_records_are_skipped() {
    let set = small(false);
    let file = set.file();
    let last_bit = 8 * file.len() - 1;
    let records = chunks(&flip(&file, last_bit), 1 << 20).unwrap();
    for projection in [vec![], vec![0]] {
        let mut decoder = decoder(&file, projection);
        assert_eq!(
            decoder.decode(&records[0]).unwrap().num_rows(),
            set.rows.len() - 1
        );
        assert_eq!(
            decoder.take_skipped().first().map(|error| error.category()),
            Some(Category::Corrupt)
        );
    }
    // A payload that is not an Example counts as a record.
    let mut odd = Vec::new();
    tfarrow_codec::frame::write(b"\xff", &mut odd);
    tfarrow_codec::frame::write(b"", &mut odd);
    let records = chunks(&odd, 1 << 20).unwrap();
    assert_eq!(
        decoder(&file, vec![])
            .decode(&records[0])
            .unwrap()
            .num_rows(),
        2
    );
}

/// The names of a skipped record are not reported as lost, and do not count toward the limit of
/// names.
#[test]
fn the_names_of_a_skipped_record_do_not_count() {
    let row = |names: &[(&str, ModelValue)]| {
        let cell = |(name, value): &(&str, ModelValue)| {
            (
                (ModelSide::Features, (*name).to_owned()),
                ModelCell::One(value.clone()),
            )
        };
        names.iter().map(cell).collect::<ModelRow>()
    };
    let int = || ModelValue::Int64(vec![1]);
    let payload = |row| {
        DataSet {
            sequence: false,
            rows: vec![row],
        }
        .payloads()
        .remove(0)
    };
    let good = payload(row(&[("x", int())]));
    let bad = payload(row(&[("gone", ModelValue::Unset), ("strange", int())]));
    let known = payload(row(&[("other", int()), ("x", int())]));
    let schema = schema_of(&frame::file([&good]), false, WAYS[0]).unwrap();
    let foreign = b"\x1a\x01x";
    // A record that parses, but is of another type, keeps its names.
    for (end, features) in [(&[foreign, &b"\xff"[..]].concat()[..], 2), (foreign, 4)] {
        let file = frame::file([&good, &[&bad, end].concat(), &known]);
        let limits = Limits {
            features,
            ..Limits::default()
        };
        let builder = ReaderBuilder::new(Arc::clone(&schema))
            .with_limits(limits)
            .with_on_error(OnError::Skip);
        let mut decoder = builder.with_strict(true).build_batch_decoder().unwrap();
        let [records] = &chunks(&file, 1 << 20).unwrap()[..] else {
            panic!()
        };
        assert_eq!(decoder.decode(records).unwrap().num_rows(), 2);
        assert_eq!(decoder.take_skipped().len(), 1);
        assert_eq!(
            decoder.unknown_features().collect::<Vec<_>>(),
            [("other", 1)]
        );
        assert_eq!(
            (
                decoder.excess_features(),
                decoder.lost_unset(),
                decoder.foreign_fields()
            ),
            (0, 0, None)
        );
    }
}
