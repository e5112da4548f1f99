//! Inference counts what a plain count over the model counts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tfarrow_codec::{ErrorKind, FeatureSummary, KindSummary, Layout, Place, RecordType, Role, Summary, VerifyCrc};
use tfarrow_testkit::{
    config, frame,
    generate::{self, DataSet},
    odd_wire::{Choices, tapes},
    oracle::{Cell, Row, Side, Value},
};

use crate::support::{chunks, offsets, record_type, summary};

/// Counts the features of these records, whose places are given.
fn count(rows: &[Row], places: &[Place]) -> Vec<FeatureSummary> {
    let mut features = BTreeMap::new();
    for (row, place) in rows.iter().zip(places) {
        for ((side, name), cell) in row {
            let role = if *side == Side::Features { Role::Feature } else { Role::Sequence };
            let new = || FeatureSummary {
                name: name.clone(),
                role,
                present: 0,
                unset: 0,
                steps: None,
                kinds: [None, None, None],
            };
            let feature = features.entry((name.clone(), *side)).or_insert_with(new);
            feature.present += 1;
            if let Cell::Steps(steps) = cell {
                let steps = steps.len() as u64;
                let (min, max) = feature.steps.unwrap_or((steps, steps));
                feature.steps = Some((min.min(steps), max.max(steps)));
            }
            cell.values().iter().for_each(|value| count_value(feature, value, *place));
        }
    }
    features.into_values().collect()
}

fn count_value(feature: &mut FeatureSummary, value: &Value, first: Place) {
    let (kind, utf8, bytes) = match value {
        Value::Unset => {
            feature.unset += 1;
            return;
        }
        Value::Bytes(values) => (
            0,
            values.iter().all(|value| std::str::from_utf8(value).is_ok()),
            values.iter().map(|value| value.len() as u64).sum(),
        ),
        Value::Float(_) => (1, true, 0),
        Value::Int64(_) => (2, true, 0),
    };
    let len = value.len() as u64;
    let new = KindSummary { lists: 0, values: 0, min_len: len, max_len: len, first, utf8: true, bytes: 0 };
    let seen = feature.kinds[kind].get_or_insert(new);
    seen.lists += 1;
    seen.values += len;
    seen.min_len = seen.min_len.min(len);
    seen.max_len = seen.max_len.max(len);
    seen.utf8 &= utf8;
    seen.bytes += bytes;
}

fn places(payloads: &[Vec<u8>], shard: u32) -> Vec<Place> {
    (0..).zip(offsets(payloads)).map(|(record, offset)| Place { shard, record, offset }).collect()
}

fn all_features(summary: &Summary) -> Vec<FeatureSummary> {
    summary.features().cloned().collect()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn counts_are_right_in_every_form(set in generate::mixed(), tape in tapes()) {
        let payloads = set.odd_payloads(&mut Choices::new(&tape));
        let summary = summary(&frame::file(&payloads)).unwrap();
        prop_assert_eq!(summary.records(), set.rows.len() as u64);
        prop_assert!(summary.unreadable().is_none());
        prop_assert_eq!(all_features(&summary), count(&set.rows, &places(&payloads, 0)));
    }

    #[test]
    fn summaries_merge_in_any_order(set in generate::mixed(), at in any::<prop::sample::Index>(), swap in any::<bool>()) {
        let payloads = set.payloads();
        let (one, two) = payloads.split_at(at.index(payloads.len() + 1));
        let mut parts: Vec<_> = [one, two].into_iter().zip(0..).map(|(part, shard)| {
            let mut summary = Summary::new(shard);
            for records in chunks(&frame::file(part), 4096).unwrap() {
                summary.observe(&records, VerifyCrc::Always).unwrap();
            }
            summary
        }).collect();
        if swap {
            parts.reverse();
        }
        let mut merged = Summary::new(9);
        parts.iter().for_each(|part| merged.merge(part).unwrap());
        let mut all_places = places(one, 0);
        all_places.truncate(one.len());
        all_places.extend(places(two, 1));
        prop_assert_eq!(all_features(&merged), count(&set.rows, &all_places));
        let whole = summary(&set.file()).unwrap();
        prop_assert_eq!((merged.records(), merged.record_type()), (whole.records(), whole.record_type()));
    }

    #[test]
    fn a_mixed_feature_is_refused_by_name(set in generate::mixed()) {
        let summary = summary(&set.file()).unwrap();
        let mixed: Vec<_> = count(&set.rows, &places(&set.payloads(), 0)).into_iter()
            .filter(|feature| feature.kinds.iter().flatten().count() > 1).collect();
        let schema = summary.schema(Layout::Auto, Some(record_type(set.sequence)));
        prop_assert_eq!(summary.conflict().cloned(), mixed.first().cloned());
        match (schema, mixed.first()) {
            (Ok(_), None) => {}
            (Err(error), Some(first)) => {
                prop_assert!(matches!(error.kind(), ErrorKind::MixedKinds(_)), "{error}");
                prop_assert_eq!(error.position().feature.as_deref(), Some(&*first.name));
                for kind in first.kinds.iter().flatten() {
                    let place = format!("record {} (byte {})", kind.first.record, kind.first.offset);
                    prop_assert!(error.to_string().contains(&place), "{error} does not name {place}");
                }
            }
            (schema, _) => prop_assert!(false, "{schema:?}"),
        }
    }
}

#[track_caller]
fn check_type(payloads: &[&[u8]], expected: RecordType) {
    assert_eq!(summary(&frame::file(payloads)).unwrap().record_type(), expected);
}

#[test]
fn payloads_tell_what_they_are() {
    const EXAMPLE: &[u8] = b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07";
    const LISTS: &[u8] = b"\x12\x07\x0a\x05\x0a\x01l\x12\x00";
    check_type(&[EXAMPLE, b""], RecordType::Example);
    check_type(&[b"", EXAMPLE, LISTS], RecordType::SequenceExample);
    // There are feature lists, of which this record has none.
    check_type(&[EXAMPLE, b"\x12\x00"], RecordType::SequenceExample);
    // A feature with no kind has an empty value, and this is a value all the same.
    check_type(&[b"\x0a\x07\x0a\x05\x0a\x01x\x12\x00"], RecordType::Example);
    check_type(&[], RecordType::Raw);
    check_type(&[b""], RecordType::Raw);
    // No value, a field of neither message, and no message at all.
    check_type(&[b"\x0a\x05\x0a\x03\x0a\x01x"], RecordType::Raw);
    check_type(&[EXAMPLE, b"\x1a\x01x"], RecordType::Raw);
    check_type(&[EXAMPLE, b"\xff"], RecordType::Raw);
}

#[test]
fn what_does_not_parse_is_counted_and_placed() {
    let good = DataSet {
        sequence: false,
        rows: vec![Row::from([((Side::Features, "x".into()), Cell::One(Value::Int64(vec![7])))])],
    };
    let [good] = &good.payloads()[..] else { panic!() };
    let file = frame::file([&good[..], b"\x0a\x05\x0a\x03\x0a\x01", b"\xff", good]);
    let summary = summary(&file).unwrap();
    let (place, _) = summary.unreadable().unwrap();
    assert_eq!((place.record, place.offset), (1, good.len() as u64 + 16));
    assert_eq!((summary.records(), summary.record_type()), (4, RecordType::Raw));
    let x = summary.features().next().unwrap();
    assert_eq!((&*x.name, x.present), ("x", 2));
}
