//! Decoding the records that a filter keeps gives the same rows as filtering after decoding.

use arrow_array::BooleanArray;
use arrow_select::filter::filter_record_batch;
use proptest::prelude::*;
use tfarrow_codec::{BatchDecoder, ReaderBuilder, RecordType, Values, schema};
use tfarrow_testkit::{
    config, generate,
    odd_wire::{Choices, tapes},
};

use crate::support::{WAYS, chunks, schema_of, small};

fn mask(rows: usize, choices: &[Option<bool>]) -> BooleanArray {
    choices.iter().cycle().take(rows).copied().collect()
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn kept_rows_equal_those_of_the_complete_batch(
        set in generate::data_sets(),
        tape in tapes(),
        choices in prop::collection::vec(any::<Option<bool>>(), 1..6),
    ) {
        let file = set.odd_file(&mut Choices::new(&tape));
        for way in [WAYS[0], WAYS[3]] {
            let builder = ReaderBuilder::new(schema_of(&file, set.sequence, way).unwrap());
            for records in chunks(&file, 1 << 20).unwrap() {
                let mut decoder = builder.clone().build_batch_decoder().unwrap();
                let all = decoder.decode(&records).unwrap();
                let mask = mask(all.num_rows(), &choices);
                prop_assert_eq!(decoder.decode_where(&records, &mask).unwrap(), filter_record_batch(&all, &mask).unwrap());
            }
        }
    }
}

#[test]
fn raw_records_and_virtual_columns_are_filtered() {
    let file = small(false).file();
    let records = &chunks(&file, 1 << 20).unwrap()[0];
    let mask = BooleanArray::from(vec![true, false, true]);
    for values in [Values::Binary, Values::BinaryView] {
        let mut decoder = ReaderBuilder::new(schema::raw_schema(values))
            .build_batch_decoder()
            .unwrap();
        let all = decoder.decode(records).unwrap();
        assert_eq!(
            decoder.decode_where(records, &mask).unwrap(),
            filter_record_batch(&all, &mask).unwrap()
        );
    }
    let none =
        ReaderBuilder::new(schema_of(&file, false, WAYS[0]).unwrap()).with_projection(Vec::new());
    assert_eq!(
        none.build_batch_decoder()
            .unwrap()
            .decode_where(records, &mask)
            .unwrap()
            .num_rows(),
        2
    );
}

/// A record that the filter drops causes no error. An error has the number of the record, not that
/// of the row.
#[test]
fn an_error_has_the_number_of_the_record() {
    let file = small(false).file();
    let whole = schema_of(&file, false, WAYS[0]).unwrap();
    let wrong = whole
        .fields()
        .iter()
        .map(|field| match field.name().as_str() {
            "i" => field
                .as_ref()
                .clone()
                .with_data_type(arrow_schema::DataType::Int64),
            _ => field.as_ref().clone(),
        });
    let schema = schema::with_record_type(wrong.collect(), RecordType::Example);
    let column = schema.index_of("i").unwrap();
    let records = &chunks(&file, 1 << 20).unwrap()[0];
    let mut decoder = ReaderBuilder::new(schema)
        .with_projection(vec![column])
        .build_batch_decoder()
        .unwrap();
    let blamed = |decoder: &mut BatchDecoder, mask: [bool; 3]| {
        let decoded = decoder.decode_where(records, &BooleanArray::from(mask.to_vec()));
        decoded.err().map(|error| error.position().record)
    };
    // The lists have two values, none, and one. The column accepts only the last.
    assert_eq!(blamed(&mut decoder, [true; 3]), Some(0));
    assert_eq!(blamed(&mut decoder, [false, true, true]), Some(1));
    assert_eq!(blamed(&mut decoder, [false, false, true]), None);
}
