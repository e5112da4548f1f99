//! The schema of a settled summary is suitable for all larger data sets whose records fit it.

use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use proptest::{prelude::*, sample::select};
use tfarrow_codec::{Layout, Limits, ReaderBuilder, RecordType, Summary};
use tfarrow_testkit::{
    config, frame, generate,
    odd_wire::{Choices, tapes},
};

use crate::support::{chunks, summary};

/// Returns whether a strict decoder reads all of these records without losses.
fn fits(payloads: &[Vec<u8>], schema: SchemaRef, limits: Limits) -> bool {
    let builder = ReaderBuilder::new(schema)
        .with_strict(true)
        .with_limits(limits);
    let mut decoder = builder.build_batch_decoder().unwrap();
    let reads = chunks(&frame::file(payloads), 1 << 20)
        .unwrap()
        .iter()
        .all(|records| decoder.decode(records).is_ok());
    reads
        && decoder.unknown_features().next().is_none()
        && decoder.excess_features() + decoder.lost_unset() == 0
}

/// Returns a schema with bytes in place of text: the values of a sample decide between the two.
fn with_bytes(schema: &SchemaRef) -> Schema {
    let fields = schema.fields().iter().map(|field| {
        field
            .as_ref()
            .clone()
            .with_data_type(bytes_of(field.data_type()))
    });
    Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
}

fn bytes_of(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 => DataType::Binary,
        DataType::List(item) => DataType::List(Arc::new(
            item.as_ref()
                .clone()
                .with_data_type(bytes_of(item.data_type())),
        )),
        other => other.clone(),
    }
}

/// Records that change the schema of a data set.
const STRAYS: [&[u8]; 6] = [
    b"",
    b"\xff",
    b"\x1a\x01x",
    b"\x12\x00",
    b"\x12\x07\x0a\x05\x0a\x01l\x12\x00",
    b"\x0a\x00",
];

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn records_that_fit_a_settled_schema_have_that_schema(
        set in prop_oneof![3 => generate::data_sets(), 1 => generate::mixed()],
        tape in tapes(),
        stray in prop::option::weighted(0.2, (select(&STRAYS[..]), any::<prop::sample::Index>())),
        head in any::<prop::sample::Index>(),
        layout in select(&[Layout::Auto, Layout::List][..]),
    ) {
        let mut payloads = set.odd_payloads(&mut Choices::new(&tape));
        if let Some((stray, at)) = stray {
            payloads.insert(at.index(payloads.len() + 1), stray.to_vec());
        }
        let head = &payloads[..head.index(payloads.len() + 1)];
        let head = summary(&frame::file(head)).unwrap();
        if head.is_settled(layout, None) {
            let schema = head.schema(layout, None).unwrap();
            if fits(&payloads, Arc::clone(&schema), Limits::default()) {
                let all = summary(&frame::file(&payloads)).unwrap().schema(layout, None).unwrap();
                prop_assert_eq!(with_bytes(&schema), with_bytes(&all));
            }
        }
    }
}

/// Returns an Example of `x` with a list of this kind (field number) and body.
fn x(kind: u8, list: &[u8]) -> Vec<u8> {
    entry(b"x", &[&[kind << 3 | 2, list.len() as u8], list].concat())
}

fn entry(name: &[u8], feature: &[u8]) -> Vec<u8> {
    let message = |tag: u8, body: &[u8]| [&[tag, body.len() as u8], body].concat();
    let entry = [message(0x0a, name), message(0x12, feature)].concat();
    message(0x0a, &message(0x0a, &entry))
}

const BYTES: u8 = 1;
const INT64: u8 = 3;

#[track_caller]
fn check(head: &[u8], layout: Layout, settled: bool) {
    assert_eq!(
        summary(&frame::file([head]))
            .unwrap()
            .is_settled(layout, None),
        settled
    );
}

#[test]
fn a_schema_that_may_change_is_not_settled() {
    check(&x(INT64, b"\x0a\x01\x07"), Layout::Auto, true);
    check(&x(BYTES, b"\x0a\x01t"), Layout::Auto, true);
    // No value decides between text and bytes.
    check(&x(BYTES, b""), Layout::Auto, false);
    check(&x(BYTES, b""), Layout::List, true);
    check(&x(BYTES, b"\x0a\x01\xff"), Layout::Auto, true);
    // Values with control characters are bytes, whatever follows.
    check(&x(BYTES, b"\x0a\x01\x03"), Layout::Auto, true);
    check(&x(BYTES, b"\x0a\x00"), Layout::Auto, false);
    // Without a kind, a feature has no column, but a feature list has one.
    check(&entry(b"x", b""), Layout::Auto, true);
    check(b"\x12\x07\x0a\x05\x0a\x01l\x12\x00", Layout::Auto, false);
    // An empty record does not determine the type. Records that are not Examples stay raw, but the
    // first one that is reported may change.
    check(b"", Layout::Auto, false);
    check(b"\xff", Layout::Auto, false);
    check(b"\x1a\x01x", Layout::Auto, false);
    let nothing = summary(&frame::file([b""])).unwrap();
    assert!(
        !nothing.is_settled(Layout::Auto, Some(RecordType::Example)),
        "a schema without columns"
    );
    let mixed = frame::file([x(INT64, b""), x(BYTES, b"\x0a\x01t")]);
    assert!(!summary(&mixed).unwrap().is_settled(Layout::Auto, None));
    assert!(
        summary(&mixed)
            .unwrap()
            .is_settled(Layout::Auto, Some(RecordType::Raw))
    );
}

/// Returns whether `later` fits the schema of a first record.
fn later_fits(head: &[u8], later: &[u8]) -> bool {
    let schema = summary(&frame::file([head]))
        .unwrap()
        .schema(Layout::Auto, None)
        .unwrap();
    fits(&[later.to_vec()], schema, Limits::default())
}

#[test]
fn records_that_change_the_schema_do_not_fit_it() {
    let one = x(INT64, b"\x0a\x01\x07");
    assert!(later_fits(&one, &one) && later_fits(&one, b""));
    assert!(
        !later_fits(&one, &x(INT64, b"\x0a\x02\x07\x08")),
        "a list of two"
    );
    assert!(!later_fits(&one, &x(BYTES, b"\x0a\x01t")), "another kind");
    assert!(
        !later_fits(&one, &entry(b"x", b"")),
        "the first feature with no kind"
    );
    assert!(
        !later_fits(&one, &entry(b"y", b"")),
        "the first feature with no kind, of another name"
    );
    assert!(
        !later_fits(&one, &entry(b"y", b"\x1a\x00")),
        "another feature"
    );
    assert!(
        !later_fits(&one, b"\x12\x07\x0a\x05\x0a\x01l\x12\x00"),
        "a feature list"
    );
    let cut_off = [x(INT64, b"\x0a\x01\x80"), one.clone()].concat();
    assert!(
        !later_fits(&one, &cut_off),
        "a list that does not parse, and is replaced"
    );
    assert!(
        !later_fits(&x(BYTES, b"\x0a\x01t"), &x(BYTES, b"\x0a\x01\xff")),
        "no text"
    );
}

#[test]
fn a_name_above_the_limit_does_not_fit() {
    let one = x(INT64, b"\x0a\x01\x07");
    let schema = summary(&frame::file([&one]))
        .unwrap()
        .schema(Layout::Auto, None)
        .unwrap();
    let limits = Limits {
        features: 1,
        ..Limits::default()
    };
    let mut decoder = ReaderBuilder::new(schema)
        .with_limits(limits)
        .build_batch_decoder()
        .unwrap();
    let file = frame::file([one, entry(b"y", b"\x1a\x00")]);
    let [records] = &chunks(&file, 1 << 20).unwrap()[..] else {
        panic!()
    };
    decoder.decode(records).unwrap();
    assert_eq!(
        (
            decoder.unknown_features().count(),
            decoder.excess_features()
        ),
        (0, 1)
    );
    assert!(
        Summary::with_limits(0, limits)
            .observe(records, tfarrow_codec::VerifyCrc::Always)
            .is_err()
    );
}
