//! Comparison of records by their features, compared with the model.

use proptest::prelude::*;
use tfarrow_codec::{
    Limits, RecordType, Role,
    diff::{Differ, Difference, DifferenceKind, FeatureValue, Incomparable},
};
use tfarrow_testkit::{
    config, generate,
    odd_wire::{Choices, record, tapes},
    oracle::ModelSide,
};

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn forms_of_the_wire_make_no_difference(set in generate::mixed(), tape in tapes(), other in tapes()) {
        let mut differ = Differ::new(RecordType::SequenceExample, Limits::default());
        let (mut one, mut other) = (Choices::new(&tape), Choices::new(&other));
        for row in &set.rows {
            let (left, right) = (record(row, set.sequence, &mut one), record(row, set.sequence, &mut other));
            let found = differ.compare(&left, &right).unwrap();
            // Unknown fields may differ in addition to the features.
            prop_assert!(found.iter().all(|it| it.what == DifferenceKind::Bytes), "{:?}", found);
        }
    }

    #[test]
    fn features_with_different_values_differ(set in generate::mixed(), tape in tapes()) {
        let mut differ = Differ::new(RecordType::SequenceExample, Limits::default());
        let payloads = set.odd_payloads(&mut Choices::new(&tape));
        for (one, left) in set.rows.iter().zip(&payloads) {
            for (other, right) in set.rows.iter().zip(&payloads) {
                let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
                let expect = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
                let expect: Vec<_> = expect.map(|(side, name)| (*side != ModelSide::Features, name.clone())).collect();
                let found = differ.compare(left, right).unwrap();
                let named = found.into_iter().filter_map(|it| it.feature);
                let mut found: Vec<_> = named.map(|(role, name)| (role == Role::Sequence, name)).collect();
                found.sort();
                let mut expect = expect;
                expect.sort();
                prop_assert_eq!(found, expect);
            }
        }
    }
}

/// Returns `Example { features: { "x": feature } }`.
fn example(feature: &[u8]) -> Vec<u8> {
    let field = |tag: u8, body: &[u8]| [&[tag, body.len() as u8], body].concat();
    field(
        0x0a,
        &field(0x0a, &[field(0x0a, b"x"), field(0x12, feature)].concat()),
    )
}

#[test]
fn the_first_value_that_differs_is_reported() {
    let differ = |one: &[u8], other: &[u8]| {
        let found = Differ::new(RecordType::SequenceExample, Limits::default())
            .compare(&example(one), &example(other))
            .unwrap();
        let [
            Difference {
                feature: Some((Role::Feature, name)),
                what,
            },
        ] = found.as_slice()
        else {
            panic!("{found:?}")
        };
        assert_eq!(name, "x");
        what.clone()
    };
    let int = |values: &[u8]| {
        [
            &[0x1a, values.len() as u8 + 2, 0x0a, values.len() as u8],
            values,
        ]
        .concat()
    };
    let values = [FeatureValue::Int64(2), FeatureValue::Int64(4)];
    assert_eq!(
        differ(&int(&[1, 2, 3]), &int(&[1, 4, 5])),
        DifferenceKind::Values {
            step: None,
            index: 1,
            values
        }
    );
    assert_eq!(
        differ(&int(&[1, 2]), &int(&[1])),
        DifferenceKind::Lengths(2, 1)
    );
    assert!(matches!(
        differ(&int(&[1]), &[]),
        DifferenceKind::Kinds(Some(_), None)
    ));
    assert!(matches!(
        differ(&int(&[]), &[0x12, 0]),
        DifferenceKind::Kinds(Some(_), Some(_))
    ));
    // 0.0 and -0.0 differ.
    let values = [FeatureValue::Float(0), FeatureValue::Float(1 << 31)];
    let zeros = [
        &[0x12, 6, 0x0a, 4, 0, 0, 0, 0][..],
        &[0x12, 6, 0x0a, 4, 0, 0, 0, 0x80],
    ];
    assert_eq!(
        differ(zeros[0], zeros[1]),
        DifferenceKind::Values {
            step: None,
            index: 0,
            values
        }
    );
}

#[test]
fn records_that_do_not_parse_are_reported() {
    let mut differ = Differ::new(RecordType::SequenceExample, Limits::default());
    assert!(matches!(
        differ.compare(b"\x0a", b"\x0a\x00"),
        Err(Incomparable::Left(_))
    ));
    assert!(matches!(
        differ.compare(b"\x0a\x00", b"\x0a"),
        Err(Incomparable::Right(_))
    ));
    assert_eq!(differ.compare(b"\xff", b"\xff"), Ok(vec![]));
    let limits = Limits {
        features: 0,
        ..Limits::default()
    };
    assert_eq!(
        Differ::new(RecordType::SequenceExample, limits).compare(&example(&[]), b""),
        Err(Incomparable::Names)
    );
    let found = differ.compare(b"", b"\x18\x01").unwrap();
    assert_eq!(
        found,
        [Difference {
            feature: None,
            what: DifferenceKind::Bytes
        }]
    );
}
