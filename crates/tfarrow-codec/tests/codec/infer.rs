//! The counts of inference are compared with a plain count over the model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tfarrow_codec::{
    Category, ErrorKind, FeatureSummary, KindSummary, Layout, Limit, Limits, Place, RecordType,
    Records, Role, Summary, VerifyCrc,
};
use tfarrow_testkit::{
    config,
    corrupt::flip,
    frame,
    generate::{self, DataSet},
    odd_wire::{Choices, tapes},
    oracle::{ModelCell, ModelRow, ModelSide, ModelValue},
};

use crate::support::{chunks, offsets, record_type, summary};

/// Counts the features of these records, whose places are given.
fn count(rows: &[ModelRow], places: &[Place]) -> Vec<FeatureSummary> {
    let mut features = BTreeMap::new();
    for (row, place) in rows.iter().zip(places) {
        for ((side, name), cell) in row {
            let role = if *side == ModelSide::Features {
                Role::Feature
            } else {
                Role::Sequence
            };
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
            if let ModelCell::Steps(steps) = cell {
                let steps = steps.len() as u64;
                let (min, max) = feature.steps.unwrap_or((steps, steps));
                feature.steps = Some((min.min(steps), max.max(steps)));
            }
            cell.values()
                .iter()
                .for_each(|value| count_value(feature, value, *place));
        }
    }
    features.into_values().collect()
}

fn count_value(feature: &mut FeatureSummary, value: &ModelValue, first: Place) {
    let (kind, utf8, bytes) = match value {
        ModelValue::Unset => {
            feature.unset += 1;
            return;
        }
        ModelValue::Bytes(values) => (
            0,
            values
                .iter()
                .all(|value| std::str::from_utf8(value).is_ok()),
            values.iter().map(|value| value.len() as u64).sum(),
        ),
        ModelValue::Float(_) => (1, true, 0),
        ModelValue::Int64(_) => (2, true, 0),
    };
    let len = value.len() as u64;
    let new = KindSummary {
        lists: 0,
        values: 0,
        min_len: len,
        max_len: len,
        first,
        utf8: true,
        filled: 0,
        controls: 0,
        bytes: 0,
    };
    let seen = feature.kinds[kind].get_or_insert(new);
    seen.lists += 1;
    seen.values += len;
    seen.min_len = seen.min_len.min(len);
    seen.max_len = seen.max_len.max(len);
    seen.utf8 &= utf8;
    if let (ModelValue::Bytes(values), true) = (value, seen.utf8) {
        seen.filled += values.iter().filter(|value| !value.is_empty()).count() as u64;
        seen.controls += values
            .iter()
            .filter(|value| value.iter().any(is_control))
            .count() as u64;
    }
    if !seen.utf8 {
        (seen.filled, seen.controls) = (0, 0);
    }
    seen.bytes += bytes;
}

fn is_control(byte: &u8) -> bool {
    (*byte < 32 && ![9, 10, 12, 13].contains(byte)) || *byte == 127
}

fn places(payloads: &[Vec<u8>], shard: u32) -> Vec<Place> {
    (0..)
        .zip(offsets(payloads))
        .map(|(record, offset)| Place {
            shard,
            record,
            offset: Some(offset),
        })
        .collect()
}

fn all_features(summary: &Summary) -> Vec<FeatureSummary> {
    summary.features().cloned().collect()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn counts_are_equal_to_those_of_the_model_in_every_form(set in generate::mixed(), tape in tapes()) {
        let payloads = set.odd_payloads(&mut Choices::new(&tape));
        let summary = summary(&frame::file(&payloads)).unwrap();
        prop_assert_eq!(summary.records(), set.rows.len() as u64);
        prop_assert!(summary.first_unparsable().is_none());
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
    fn a_mixed_feature_is_rejected_by_name(set in generate::mixed()) {
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
                    let place = kind.first.to_string();
                    prop_assert!(error.to_string().contains(&place), "{error} does not name {place}");
                }
            }
            (schema, _) => prop_assert!(false, "{schema:?}"),
        }
    }
}

#[track_caller]
fn check_type(payloads: &[&[u8]], expected: RecordType) {
    assert_eq!(
        summary(&frame::file(payloads)).unwrap().record_type(),
        expected
    );
}

#[test]
fn the_record_type_follows_from_the_payloads() {
    const EXAMPLE: &[u8] = b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07";
    const LISTS: &[u8] = b"\x12\x07\x0a\x05\x0a\x01l\x12\x00";
    check_type(&[EXAMPLE, b""], RecordType::Example);
    check_type(&[b"", EXAMPLE, LISTS], RecordType::SequenceExample);
    // The field `feature_lists` is present and empty.
    check_type(&[EXAMPLE, b"\x12\x00"], RecordType::SequenceExample);
    // A feature without a kind has an empty value, which counts as a value.
    check_type(&[b"\x0a\x07\x0a\x05\x0a\x01x\x12\x00"], RecordType::Example);
    check_type(&[], RecordType::Raw);
    check_type(&[b""], RecordType::Raw);
    // No value, an unknown field, and bytes that do not parse.
    check_type(&[b"\x0a\x05\x0a\x03\x0a\x01x"], RecordType::Raw);
    check_type(&[EXAMPLE, b"\x1a\x01x"], RecordType::Raw);
    check_type(&[EXAMPLE, b"\xff"], RecordType::Raw);
}

#[test]
fn records_that_do_not_parse_are_counted_with_their_place() {
    let good = DataSet {
        sequence: false,
        rows: vec![ModelRow::from([(
            (ModelSide::Features, "x".into()),
            ModelCell::One(ModelValue::Int64(vec![7])),
        )])],
    };
    let [good] = &good.payloads()[..] else {
        panic!()
    };
    let file = frame::file([&good[..], b"\x0a\x05\x0a\x03\x0a\x01", b"\xff", good]);
    let summary = summary(&file).unwrap();
    let (place, _) = summary.first_unparsable().unwrap();
    assert_eq!(
        (place.record, place.offset),
        (1, Some(good.len() as u64 + 16))
    );
    assert_eq!(
        (summary.records(), summary.record_type()),
        (4, RecordType::Raw)
    );
    let x = summary.features().next().unwrap();
    assert_eq!((&*x.name, x.present), ("x", 2));
}

/// Returns the lowest limits that allow the names of these records.
fn exact_limits(rows: &[ModelRow]) -> Limits {
    let names = |side: ModelSide| {
        let names: BTreeSet<_> = rows
            .iter()
            .flat_map(ModelRow::keys)
            .filter(|(of, _)| *of == side)
            .collect();
        (
            names.len(),
            names.iter().map(|(_, name)| name.len()).sum::<usize>(),
        )
    };
    let (features, lists) = (names(ModelSide::Features), names(ModelSide::Lists));
    Limits {
        features: features.0.max(lists.0),
        name_bytes: features.1.max(lists.1),
        ..Limits::default()
    }
}

/// Inserts records that do not parse between others: records of another data set, which has other
/// names, each with a truncated tag at its end.
fn interleave(good: &[Vec<u8>], bad: &[Vec<u8>], order: &[bool]) -> (Vec<Vec<u8>>, Vec<bool>) {
    let (mut good, mut bad) = (
        good.iter().cloned(),
        bad.iter().map(|payload| [payload, &b"\xff"[..]].concat()),
    );
    let mut all = Vec::new();
    for is_good in order {
        all.extend(
            if *is_good { good.next() } else { bad.next() }.map(|payload| (payload, *is_good)),
        );
    }
    all.extend(good.map(|payload| (payload, true)));
    all.extend(bad.map(|payload| (payload, false)));
    all.into_iter().unzip()
}

/// Adds records, and skips those that are errors, as a reader with `OnError::Skip` does.
fn observe_good(summary: &mut Summary, records: Records, verify: VerifyCrc) -> u64 {
    let (mut rest, mut skipped) = (records, 0);
    while let Err(error) = summary.observe(&rest, verify) {
        assert_eq!(error.category(), Category::Corrupt, "{error}");
        let read = (error.position().record - rest.first()) as usize + 1;
        rest = rest.split_at(read).1;
        skipped += 1;
    }
    skipped
}

proptest! {
    #![proptest_config(config(600))]

    /// Neither a record that is counted as unparsable, nor one that is skipped because of its CRC.
    #[test]
    fn a_record_that_does_not_parse_does_not_change_the_summary(
        set in generate::mixed(),
        strangers in generate::sequence_examples(),
        order in prop::collection::vec(any::<bool>(), 0..12),
        damaged in any::<bool>(),
        merged in any::<bool>(),
    ) {
        let (payloads, is_good) = interleave(&set.payloads(), &strangers.payloads(), &order);
        let mut file = frame::file(&payloads);
        let bad = is_good.iter().filter(|is_good| !**is_good).count() as u64;
        if damaged {
            for (end, _) in offsets(&payloads)[1..].iter().zip(&is_good).filter(|(_, is_good)| !**is_good) {
                file = flip(&file, *end as usize * 8 - 1);
            }
        }
        // Only the names of the records that parse count.
        let limits = exact_limits(&set.rows);
        let mut all = Summary::with_limits(0, limits);
        for records in chunks(&file, 4096).unwrap() {
            let mut part = Summary::with_limits(0, limits);
            let into = if merged { &mut part } else { &mut all };
            let skipped = observe_good(into, records, VerifyCrc::OnParseFailure);
            prop_assert!(damaged || skipped == 0);
            all.merge(&part).unwrap();
        }
        let good = summary(&set.file()).unwrap();
        let places: Vec<_> = places(&payloads, 0).into_iter().zip(&is_good).filter(|(_, is_good)| **is_good).map(|(place, _)| place).collect();
        prop_assert_eq!(all_features(&all), count(&set.rows, &places));
        if !damaged {
            prop_assert_eq!((all.unparsable(), all.records()), (bad, good.records() + bad));
            prop_assert_eq!(all.drop_unparsable().map_or(0, |(strays, ..)| strays), bad);
        }
        prop_assert_eq!((all.unparsable(), all.has_excess_names()), (0, false));
        prop_assert_eq!((all.records(), all.bytes(), all.examples()), (good.records(), good.bytes(), good.examples()));
        prop_assert_eq!(all.record_type(), good.record_type());
        for layout in [Layout::List, Layout::Auto] {
            prop_assert_eq!(all.schema(layout, None).ok(), good.schema(layout, None).ok());
            prop_assert_eq!(all.is_settled(layout, None), good.is_settled(layout, None));
        }
    }
}

/// One record that is truncated inside its feature lists, among ten Examples.
#[test]
fn a_record_that_does_not_parse_does_not_decide_the_type() {
    const EXAMPLE: &[u8] = b"\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x07";
    let file = frame::file([EXAMPLE; 10].into_iter().chain([&b"\x12\x00\xff"[..]]));
    let mut summary = summary(&file).unwrap();
    assert_eq!(summary.record_type(), RecordType::Raw);
    assert_eq!(
        summary.drop_unparsable().map(|(strays, ..)| strays),
        Some(1)
    );
    assert_eq!(summary.record_type(), RecordType::Example);
    // Its value does not count either: the other records have none.
    let file = frame::file([&b""[..], &[EXAMPLE, b"\xff"].concat()]);
    let mut summary = crate::support::summary(&file).unwrap();
    summary.drop_unparsable();
    assert_eq!(
        (summary.record_type(), summary.features().count()),
        (RecordType::Raw, 0)
    );
}

/// A record above a limit may be an Example. It is not counted, and its names are not kept.
#[test]
fn a_record_above_a_limit_is_not_counted() {
    let limits = Limits {
        values: 2,
        features: 1,
        ..Limits::default()
    };
    let row = |name: &str, values| {
        ModelRow::from([(
            (ModelSide::Features, name.to_owned()),
            ModelCell::One(ModelValue::Int64(values)),
        )])
    };
    let set = DataSet {
        sequence: false,
        rows: vec![row("long", vec![1, 2, 3]), row("x", vec![1])],
    };
    let [records] = &chunks(&set.file(), 4096).unwrap()[..] else {
        panic!()
    };
    let mut summary = Summary::with_limits(0, limits);
    let error = summary.observe(records, VerifyCrc::Always).unwrap_err();
    assert_eq!(
        (error.limit(), error.position().record),
        (Some(Limit::Values), 0)
    );
    assert_eq!((summary.records(), summary.bytes()), (0, 0));
    summary
        .observe(&records.clone().split_at(1).1, VerifyCrc::Always)
        .unwrap();
    assert_eq!((summary.records(), summary.features().count()), (1, 1));
}

/// Returns whether a feature `x` with these values is text.
fn is_text<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let row = |value: &[u8]| {
        let value = ModelValue::Bytes(vec![value.to_vec()]);
        ModelRow::from([((ModelSide::Features, "x".to_owned()), ModelCell::One(value))])
    };
    let file = frame::file(
        values
            .into_iter()
            .map(|value| tfarrow_testkit::oracle::example_from_row(&row(value))),
    );
    summary(&file)
        .unwrap()
        .features()
        .next()
        .unwrap()
        .kinds()
        .next()
        .unwrap()
        .1
        .is_text()
}

#[test]
fn text_has_few_values_with_control_characters() {
    let (text, control) = (&b"text"[..], &b"te\x1bxt"[..]);
    assert!(
        is_text([text])
            && is_text(["zażółć".as_bytes(), b""])
            && is_text([&b"\n"[..]])
            && is_text([&b"\t\x0c\r"[..]])
    );
    assert!(!is_text([&b""[..]]) && !is_text([text, b"\xff"]));
    for byte in (0..32).chain([127]) {
        assert_eq!(
            is_text([&[b'a', byte][..]]),
            [9, 10, 12, 13].contains(&byte),
            "{byte}"
        );
    }
    // Small integers that happen to be UTF-8.
    let pixels: Vec<u8> = (0..12_100).map(|i| (i % 127) as u8).collect();
    assert!(!is_text([&pixels[..]]));
    // The character is in the second block.
    assert!(!is_text([&[&[b'a'; 100][..], b"\x01"].concat()[..]]));
    // A tenth of the values that are not empty.
    let of = |texts, controls| {
        is_text(
            [text]
                .repeat(texts)
                .into_iter()
                .chain([control].repeat(controls))
                .chain([&b""[..]; 50]),
        )
    };
    assert!(of(10, 1) && of(91, 10) && !of(9, 1) && !of(90, 10));
}

#[test]
fn a_feature_that_is_not_utf8_has_no_counts_of_text() {
    let row = |value: &[u8]| {
        let value = ModelValue::Bytes(vec![value.to_vec()]);
        ModelRow::from([((ModelSide::Features, "x".to_owned()), ModelCell::One(value))])
    };
    let values: [&[u8]; 3] = [b"a", b"\x01", b"\xff"];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let payloads = order
            .iter()
            .map(|at| tfarrow_testkit::oracle::example_from_row(&row(values[*at])));
        let found = summary(&frame::file(payloads)).unwrap();
        let (_, seen) = found.features().next().unwrap().kinds().next().unwrap();
        assert_eq!(
            (seen.utf8, seen.filled, seen.controls),
            (false, 0, 0),
            "{order:?}"
        );
    }
}
