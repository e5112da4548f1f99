//! The virtual columns with the number, the offset and the bytes of each record.

use std::sync::Arc;

use arrow_array::{BooleanArray, cast::AsArray, types::Int64Type};
use arrow_schema::{Schema, SchemaRef};
use tfarrow_codec::{DecoderBuilder, Role, schema::place_field};

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
    for projection in [(0..columns).collect::<Vec<_>>(), vec![columns - 3, columns - 2, columns - 1]] {
        let builder = DecoderBuilder::new(Arc::clone(&schema)).with_projection(projection);
        let mut decoder = builder.build_batch_decoder().unwrap();
        let mut seen = 0;
        for records in chunks(&file, 4096).unwrap() {
            let odd: BooleanArray = (0..records.len()).map(|index| Some(index % 2 == 1)).collect();
            for filter in [None, Some(odd)] {
                let batch = match &filter {
                    None => decoder.decode(&records).unwrap(),
                    Some(filter) => decoder.decode_where(&records, filter).unwrap(),
                };
                for row in 0..batch.num_rows() {
                    let record = records.first() as usize + if filter.is_some() { 2 * row + 1 } else { row };
                    let number = |name| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().value(row);
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
