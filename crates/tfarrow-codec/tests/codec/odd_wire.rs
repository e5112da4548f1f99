//! A record decodes to the same values in every form of the wire.

use arrow_array::cast::AsArray;
use proptest::prelude::*;
use tfarrow_testkit::{
    arrow, config, frame, generate,
    odd_wire::{Choices, tapes},
};

use crate::support::{WAYS, decode, decode_way, schema_of};
use tfarrow_codec::ReaderBuilder;

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn odd_forms_decode_to_the_same_record(set in generate::data_sets(), tape in tapes()) {
        let (plain, odd) = (set.file(), set.odd_file(&mut Choices::new(&tape)));
        for way in WAYS {
            let batches = decode_way(&odd, set.sequence, way).unwrap();
            prop_assert_eq!(arrow::rows_from_batches(&batches).unwrap(), &set.rows[..], "{:?}", way);
            // Also properties that the model does not have, such as the order of the names in
            // `_tfarrow_unset`.
            prop_assert_eq!(batches, decode_way(&plain, set.sequence, way).unwrap());
        }
    }

    #[test]
    fn odd_forms_have_the_same_schema(set in generate::data_sets(), tape in tapes()) {
        let (plain, odd) = (set.file(), set.odd_file(&mut Choices::new(&tape)));
        for way in WAYS {
            let [plain, odd] = [&plain, &odd].map(|file| schema_of(file, set.sequence, way).unwrap());
            prop_assert_eq!(plain, odd);
        }
    }

    /// The schema is given, and each record is read by a decoder that has read other records
    /// before.
    #[test]
    fn odd_and_plain_records_mix(set in generate::data_sets(), tape in tapes(), odd in any::<u64>()) {
        let mut choices = Choices::new(&tape);
        let (plain, strange) = (set.payloads(), set.odd_payloads(&mut choices));
        let payloads = plain.iter().zip(&strange).enumerate();
        let payloads = payloads.map(|(i, (plain, strange))| if odd >> (i % 64) & 1 == 1 { strange } else { plain });
        let file = frame::file(payloads);
        let builder = ReaderBuilder::new(schema_of(&set.file(), set.sequence, WAYS[0]).unwrap());
        for batch_size in [1, 3, 100] {
            let batches = decode(&file, builder.clone().with_batch_size(batch_size)).unwrap();
            prop_assert_eq!(arrow::rows_from_batches(&batches).unwrap(), &set.rows[..]);
        }
    }
}

/// Writers shuffle features. The encoded bytes must not depend on their order.
#[test]
fn unset_features_are_named_in_order() {
    const B_THEN_A: &[u8] = b"\x0a\x0e\x0a\x05\x0a\x01b\x12\x00\x0a\x05\x0a\x01a\x12\x00";
    const B: &[u8] = b"\x0a\x07\x0a\x05\x0a\x01b\x12\x00";
    let file = frame::file([B, B_THEN_A]);
    let batches = decode(
        &file,
        ReaderBuilder::new(schema_of(&file, false, WAYS[0]).unwrap()),
    )
    .unwrap();
    let unset = batches[0]
        .column_by_name("_tfarrow_unset")
        .unwrap()
        .as_list::<i32>();
    let names = |row: usize| {
        unset
            .value(row)
            .as_string::<i32>()
            .iter()
            .flatten()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names(0), names(1)),
        (vec!["b".to_owned()], vec!["a".to_owned(), "b".to_owned()])
    );
}
