//! Any projection decodes to the same arrays as the complete schema.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Float32Array, Int64Array, ListArray, RecordBatch, UInt32Array, cast::AsArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use arrow_select::take::take;
use proptest::{prelude::*, sample::Index};
use tfarrow_codec::{ReaderBuilder, WriterBuilder, schema::UNSET_COLUMN};
use tfarrow_testkit::{
    config, generate,
    odd_wire::{Choices, tapes},
};

use crate::support::{WAYS, chunks, decode, schema_of, small};

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn a_column_decodes_to_the_same_array_without_other_columns(
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
            let builder = ReaderBuilder::new(schema).with_batch_size(5);
            let all = decode(&file, builder.clone()).unwrap();
            let some = decode(&file, builder.with_projection(projection.clone())).unwrap();
            let expected: Vec<_> = all.iter().map(|batch| batch.project(&projection).unwrap()).collect();
            prop_assert_eq!(some, expected);
        }
    }
}

/// Returns the first values of each list, or the array itself if it has no lists.
fn cut(array: &ArrayRef, most: usize) -> ArrayRef {
    let DataType::List(field) = array.data_type() else {
        return Arc::clone(array);
    };
    if matches!(field.data_type(), DataType::List(_)) {
        return Arc::clone(array);
    }
    let list = array.as_list::<i32>();
    let ranges: Vec<_> = list
        .offsets()
        .windows(2)
        .map(|ends| ends[0]..ends[1].min(ends[0] + most as i32))
        .collect();
    let kept: UInt32Array = ranges
        .iter()
        .cloned()
        .flatten()
        .map(|index| index as u32)
        .collect();
    let offsets = OffsetBuffer::from_lengths(ranges.iter().map(ExactSizeIterator::len));
    let values = take(list.values(), &kept, None).unwrap();
    Arc::new(ListArray::new(
        Arc::clone(field),
        offsets,
        values,
        list.nulls().cloned(),
    ))
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn the_first_values_are_those_of_whole_lists(set in generate::data_sets(), tape in tapes(), most in 0_usize..6) {
        let file = set.odd_file(&mut Choices::new(&tape));
        for way in WAYS {
            let schema = schema_of(&file, set.sequence, way).unwrap();
            let all = decode(&file, ReaderBuilder::new(Arc::clone(&schema))).unwrap();
            for column in (0..schema.fields().len()).filter(|column| schema.field(*column).name() != UNSET_COLUMN) {
                let builder = ReaderBuilder::new(Arc::clone(&schema)).with_first_values(column, most);
                let found = decode(&file, builder).unwrap();
                for (found, all) in found.iter().zip(&all) {
                    for (index, (found, all)) in found.columns().iter().zip(all.columns()).enumerate() {
                        let expected = if index == column { cut(all, most) } else { Arc::clone(all) };
                        prop_assert_eq!(found, &expected);
                    }
                }
            }
        }
    }
}

/// Lists whose length in bytes takes more than one byte.
#[test]
fn the_first_values_of_long_lists_are_decoded() {
    let ints = Int64Array::from_iter_values((0..3000).map(|i| (i * i * i - 5000) << (i % 40)));
    let floats = Float32Array::from_iter_values((0..3000).map(|i| i as f32));
    let list = |values: ArrayRef| {
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        Arc::new(ListArray::new(
            field,
            OffsetBuffer::from_lengths([1000, 0, 2000]),
            values,
            None,
        )) as ArrayRef
    };
    let batch =
        RecordBatch::try_from_iter([("i", list(Arc::new(ints))), ("f", list(Arc::new(floats)))])
            .unwrap();
    let mut file = Vec::new();
    WriterBuilder::new()
        .build_encoder(batch.schema())
        .unwrap()
        .encode(&batch, &mut file)
        .unwrap();
    for most in [0, 1, 2, 7, 8, 9, 127, 128, 500, 999, 1000, 1001, 2000, 5000] {
        let builder = ReaderBuilder::new(batch.schema())
            .with_first_values(0, most)
            .with_first_values(1, most);
        let found = &decode(&file, builder).unwrap()[0];
        assert_eq!(
            found.columns(),
            [cut(batch.column(0), most), cut(batch.column(1), most)],
            "{most}"
        );
    }
}

#[test]
fn a_batch_without_columns_has_the_number_of_rows() {
    let set = small(false);
    let builder =
        ReaderBuilder::new(schema_of(&set.file(), false, WAYS[0]).unwrap()).with_projection(vec![]);
    let batches = decode(&set.file(), builder).unwrap();
    assert_eq!(
        batches
            .iter()
            .map(|batch| (batch.num_columns(), batch.num_rows()))
            .collect::<Vec<_>>(),
        [(0, 3)]
    );
}

#[test]
fn a_column_may_be_projected_twice() {
    let set = small(false);
    let builder = ReaderBuilder::new(schema_of(&set.file(), false, WAYS[0]).unwrap());
    let all = decode(&set.file(), builder.clone()).unwrap();
    let twice = decode(&set.file(), builder.with_projection(vec![2, 0, 2])).unwrap();
    assert_eq!(twice, [all[0].project(&[2, 0, 2]).unwrap()]);
}

#[test]
fn a_missing_column_is_rejected() {
    let schema = schema_of(&small(false).file(), false, WAYS[0]).unwrap();
    assert!(
        ReaderBuilder::new(schema)
            .with_projection(vec![99])
            .build_decoder()
            .is_err()
    );
}

#[test]
fn features_without_a_column_are_counted_by_name() {
    let set = small(true);
    let (few, all) = (
        schema_of(&small(false).file(), false, WAYS[0]).unwrap(),
        set.file(),
    );
    let keep: Vec<_> = few
        .fields()
        .iter()
        .filter(|field| field.name() != "f")
        .cloned()
        .collect();
    let schema = tfarrow_codec::schema::with_record_type(
        keep.iter().map(|field| field.as_ref().clone()).collect(),
        tfarrow_codec::RecordType::SequenceExample,
    );
    let mut decoder = ReaderBuilder::new(schema).build_batch_decoder().unwrap();
    let records = &chunks(&all, 1 << 20).unwrap()[0];
    decoder.decode(records).unwrap();
    let mut unknown: Vec<_> = decoder.unknown_features().map(|(name, _)| name).collect();
    unknown.sort_unstable();
    // `u` never has a kind, so that no schema has a column for it.
    assert_eq!(unknown, ["f", "i", "t"]);
}
