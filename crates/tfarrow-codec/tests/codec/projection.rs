//! Any choice of columns decodes to the same arrays as all of them.

use proptest::{prelude::*, sample::Index};
use tfarrow_codec::DecoderBuilder;
use tfarrow_testkit::{
    config, generate,
    odd_wire::{Choices, tapes},
};

use crate::support::{WAYS, chunks, decode, schema_of, small};

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn a_column_is_the_same_alone(
        set in generate::data_sets(),
        tape in tapes(),
        chosen in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let file = set.odd_file(&mut Choices::new(&tape));
        for way in [WAYS[0], WAYS[3]] {
            let schema = schema_of(&file, set.sequence, way).unwrap();
            let mut projection: Vec<_> =
                chosen.iter().filter(|_| !schema.fields().is_empty()).map(|i| i.index(schema.fields().len())).collect();
            let mut seen = std::collections::HashSet::new();
            projection.retain(|index| seen.insert(*index));
            let builder = DecoderBuilder::new(schema).with_batch_size(5);
            let all = decode(&file, builder.clone()).unwrap();
            let some = decode(&file, builder.with_projection(projection.clone())).unwrap();
            let expected: Vec<_> = all.iter().map(|batch| batch.project(&projection).unwrap()).collect();
            prop_assert_eq!(some, expected);
        }
    }
}

#[test]
fn no_column_is_a_count() {
    let set = small(false);
    let builder = DecoderBuilder::new(schema_of(&set.file(), false, WAYS[0]).unwrap()).with_projection(vec![]);
    let batches = decode(&set.file(), builder).unwrap();
    assert_eq!(batches.iter().map(|batch| (batch.num_columns(), batch.num_rows())).collect::<Vec<_>>(), [(0, 3)]);
}

#[test]
fn a_column_may_be_asked_for_twice() {
    let set = small(false);
    let builder = DecoderBuilder::new(schema_of(&set.file(), false, WAYS[0]).unwrap());
    let all = decode(&set.file(), builder.clone()).unwrap();
    let twice = decode(&set.file(), builder.with_projection(vec![2, 0, 2])).unwrap();
    assert_eq!(twice, [all[0].project(&[2, 0, 2]).unwrap()]);
}

#[test]
fn a_column_that_is_not_there_is_refused() {
    let schema = schema_of(&small(false).file(), false, WAYS[0]).unwrap();
    assert!(DecoderBuilder::new(schema).with_projection(vec![99]).build().is_err());
}

#[test]
fn features_without_a_column_are_told_by_name() {
    let set = small(true);
    let (few, all) = (schema_of(&small(false).file(), false, WAYS[0]).unwrap(), set.file());
    let keep: Vec<_> = few.fields().iter().filter(|field| field.name() != "f").cloned().collect();
    let schema = tfarrow_codec::schema::with_record_type(
        keep.iter().map(|field| field.as_ref().clone()).collect(),
        tfarrow_codec::RecordType::SequenceExample,
    );
    let mut decoder = DecoderBuilder::new(schema).build_batch_decoder().unwrap();
    let records = &chunks(&all, 1 << 20).unwrap()[0];
    decoder.decode(records).unwrap();
    let mut unknown: Vec<_> = decoder.unknown_features().map(|(name, _)| name).collect();
    unknown.sort_unstable();
    // `u` never has a kind, and so no column in any schema.
    assert_eq!(unknown, ["f", "i", "t"]);
}
