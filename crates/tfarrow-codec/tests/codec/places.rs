//! The virtual columns with the number, the offset and the bytes of each record.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, RecordBatch, cast::AsArray, types::Int64Type,
};
use arrow_schema::{Schema, SchemaRef};
use tfarrow_codec::{
    Layout, Limits, ReaderBuilder, Records, Role, Summary, VerifyCrc, WriterBuilder,
    schema::place_field,
};

use crate::support::{WAYS, chunks, offsets, schema_of, small};

/// The schema of a file, with `_record`, `_offset` and `_raw` after its own columns.
fn with_places(schema: &SchemaRef) -> SchemaRef {
    let places = [Role::Index, Role::Offset, Role::Record].map(|role| Arc::new(place_field(role)));
    let fields: Vec<_> = schema.fields().iter().cloned().chain(places).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

#[test]
fn virtual_columns_have_the_position_of_each_record() {
    let set = small(false);
    let (file, payloads) = (set.file(), set.payloads());
    let offsets = offsets(&payloads);
    let schema = with_places(&schema_of(&file, false, WAYS[0]).unwrap());
    let columns = schema.fields().len();
    for projection in [
        (0..columns).collect::<Vec<_>>(),
        vec![columns - 3, columns - 2, columns - 1],
    ] {
        let builder = ReaderBuilder::new(Arc::clone(&schema)).with_projection(projection);
        let mut decoder = builder.build_batch_decoder().unwrap();
        let mut seen = 0;
        for records in chunks(&file, 4096).unwrap() {
            let odd: BooleanArray = (0..records.len())
                .map(|index| Some(index % 2 == 1))
                .collect();
            for filter in [None, Some(odd)] {
                let batch = match &filter {
                    None => decoder.decode(&records).unwrap(),
                    Some(filter) => decoder.decode_where(&records, filter).unwrap(),
                };
                for row in 0..batch.num_rows() {
                    let record =
                        records.first() as usize + if filter.is_some() { 2 * row + 1 } else { row };
                    let number = |name| {
                        batch
                            .column_by_name(name)
                            .unwrap()
                            .as_primitive::<Int64Type>()
                            .value(row)
                    };
                    assert_eq!(number("_record"), record as i64);
                    assert_eq!(number("_offset"), offsets[record] as i64);
                    let raw = batch.column_by_name("_raw").unwrap().as_binary::<i32>();
                    assert_eq!(raw.value(row), payloads[record]);
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, payloads.len() + payloads.len() / 2);
    }
}

/// The place of the only value of the last column, in the chunk of the records: `None` if it was
/// copied.
fn place(records: &Records, layout: Layout) -> Option<usize> {
    let mut summary = Summary::new(0);
    summary.observe(records, VerifyCrc::Always).unwrap();
    let schema = with_places(&summary.schema(layout, None).unwrap());
    let batch = ReaderBuilder::new(schema)
        .build_batch_decoder()
        .unwrap()
        .decode(records)
        .unwrap();
    let raw = batch
        .column_by_name("_raw")
        .unwrap()
        .as_binary::<i32>()
        .value(0);
    assert_eq!(Some(raw), records.data(0));
    let column = batch.column(0);
    let column = column
        .as_list_opt::<i32>()
        .map_or_else(|| Arc::clone(column), |lists| lists.value(0));
    let value = column.as_binary::<i32>().value(0);
    assert!(value.iter().all(|byte| *byte == 0xff));
    let payload = records.data(0).unwrap();
    let place = |of: &[u8]| {
        of.as_ptr()
            .addr()
            .checked_sub(payload.as_ptr().addr())
            .filter(|at| *at < payload.len())
    };
    assert_eq!(place(value).is_some(), place(raw).is_some());
    place(value)
}

#[test]
fn a_long_value_stays_in_the_memory_of_its_record() {
    let examples = |lengths: &[usize]| {
        let values =
            BinaryArray::from_iter_values(lengths.iter().map(|length| vec![0xff; *length]));
        let batch = RecordBatch::try_from_iter([("x", Arc::new(values) as ArrayRef)]).unwrap();
        let mut frames = Vec::new();
        WriterBuilder::new()
            .build_encoder(batch.schema())
            .unwrap()
            .encode(&batch, &mut frames)
            .unwrap();
        Records::from_frames(frames, Limits::default()).unwrap()
    };
    for layout in [Layout::Auto, Layout::List] {
        assert!(place(&examples(&[2 << 20]), layout).is_some());
        assert_eq!(place(&examples(&[1 << 19]), layout), None);
        // A batch of one record does not hold the memory of many.
        assert_eq!(
            place(&examples(&[2 << 20, 20 << 20]).split_at(1).0, layout),
            None
        );
    }
}

#[test]
fn frames_are_taken_out_of_records_without_a_copy() {
    let payloads = [vec![1; 1000], vec![2; 100], vec![3; 2000]];
    let records = Records::from_payloads(payloads.iter().map(Vec::as_slice)).unwrap();
    let (all, place) = (records.frames().to_vec(), records.frames().as_ptr());
    let frames = records.clone().into_frames();
    assert_eq!(
        (frames.as_slice(), frames.as_ptr()),
        (all.as_slice(), place)
    );
    let (first, rest) = records.split_at(1);
    assert_eq!(
        [
            first.into_frames().as_slice(),
            rest.clone().into_frames().as_slice()
        ]
        .concat(),
        all
    );
    // A small part does not hold the memory of all.
    let small = rest.split_at(1).0.into_frames();
    assert_eq!((small.len(), small.capacity() < 1000), (116, true));
    assert!(Records::from_payloads([]).unwrap().into_frames().is_empty());
}
