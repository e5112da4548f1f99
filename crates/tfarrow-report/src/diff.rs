//! The differences of two data sets.

use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tfarrow_codec::{
    Kind, Role,
    diff::{Difference, DifferenceKind, FeatureValue},
};
use tfarrow_convert::{DataSetDiff, KeyReport, RecordDifference};

use crate::text::{BAD, GOOD, Screen, TITLE, count, escape, plural, pretty_json};

/// Number of characters shown of a value.
const SHOWN: usize = 60;

/// Returns the first differences of two data sets, the number of differences of each feature, and a
/// summary. `names` are those of the data sets.
pub fn diff_text(names: [&str; 2], found: &DataSetDiff, screen: Screen) -> String {
    let mut text = String::new();
    for difference in &found.first {
        text.push_str(&record(difference, found.keys.as_ref(), screen));
    }
    let total = found.features.len();
    for ((role, name), times) in &found.features {
        text.push_str(&format!(
            "{}: differs in {}\n",
            feature(*role, name),
            plural(*times, "record")
        ));
    }
    if total > 0 {
        text.push('\n');
    }
    for (name, records) in names.into_iter().zip(found.records) {
        text.push_str(&format!(
            "{}: {}\n",
            escape(name),
            plural(records, "record")
        ));
    }
    found
        .keys
        .iter()
        .for_each(|keys| text.push_str(&keys_text(names, keys)));
    text.push_str(&match found.is_equal() {
        true => screen.coloured(GOOD, "equal"),
        false => {
            let equal = plural(found.equal, "record");
            let different = count(found.different);
            let left = alone(found.unpaired[0], "the first");
            let right = alone(found.unpaired[1], "the second");
            screen.coloured(
                BAD,
                &format!("{equal} equal, {different} different{left}{right}"),
            )
        }
    });
    text
}

/// The records of a data set without a partner, as the end of a sentence; empty if there are none.
fn alone(records: u64, name: &str) -> String {
    if records > 0 {
        format!(", {} of {name} without a partner", count(records))
    } else {
        String::new()
    }
}

/// Records without a key, and with the key of an earlier one.
fn keys_text(names: [&str; 2], keys: &KeyReport) -> String {
    let mut text = String::new();
    for (name, (missing, repeated)) in names
        .into_iter()
        .zip(keys.missing.into_iter().zip(keys.repeated))
    {
        let features = escape(&keys.features.join(", "));
        if missing > 0 {
            text.push_str(&format!(
                "{}: {} without {features}\n",
                escape(name),
                plural(missing, "record")
            ));
        }
        if repeated > 0 {
            let records = plural(repeated, "record");
            text.push_str(&format!(
                "{}: {records} with the {features} of an earlier one\n",
                escape(name)
            ));
        }
    }
    text
}

/// A text of at most `SHOWN` characters.
fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Two records that differ, or one without a partner.
fn record(difference: &RecordDifference, keys: Option<&KeyReport>, screen: Screen) -> String {
    let [left, right] = difference.positions.each_ref().map(|place| match place {
        Some(place) => escape(&place.to_string()),
        None => "no record".to_owned(),
    });
    let key = keys
        .zip(difference.key.as_ref())
        .map(|(keys, values)| cut(&escape(&keys.text(values))));
    let key = key.map_or(String::new(), |key| format!(": {key}"));
    let mut text = screen.coloured(TITLE, &format!("record {}{key}", count(difference.number)));
    text.push_str(&format!("\n  - {left}\n  + {right}\n"));
    for Difference { feature: of, what } in &difference.differences {
        let of = of
            .as_ref()
            .map_or("the records".to_owned(), |(role, name)| {
                feature(*role, name)
            });
        text.push_str(&format!("  {of}: {}\n", description(what)));
    }
    text.push('\n');
    text
}

fn feature(role: Role, name: &str) -> String {
    let what = if role == Role::Sequence {
        "feature list"
    } else {
        "feature"
    };
    format!("{what} \"{}\"", escape(name))
}

fn kind(kind: Option<Kind>) -> &'static str {
    kind.map_or("no kind", Kind::name)
}

fn description(what: &DifferenceKind) -> String {
    match what {
        DifferenceKind::OnlyLeft => "not in the second".to_owned(),
        DifferenceKind::OnlyRight => "not in the first".to_owned(),
        DifferenceKind::Kinds(left, right) => format!("{} and {}", kind(*left), kind(*right)),
        DifferenceKind::Steps(left, right) => format!("{left} and {right} steps"),
        DifferenceKind::Lengths(left, right) => format!("{left} and {right} values"),
        DifferenceKind::Values {
            step,
            index,
            values: [left, right],
        } => {
            let step = step.map_or(String::new(), |step| format!("step {step}, "));
            let [left, right] = excerpts([left, right]);
            format!("{step}value {index}: {left} and {right}")
        }
        DifferenceKind::Bytes => "other bytes".to_owned(),
    }
}

/// Two values; of long ones the part with the first difference.
fn excerpts(values: [&FeatureValue; 2]) -> [String; 2] {
    let texts = values.map(|value| escape(&value.to_string()).chars().collect::<Vec<_>>());
    let same = texts[0]
        .iter()
        .zip(&texts[1])
        .take_while(|(left, right)| left == right)
        .count();
    let from = if same < SHOWN / 2 {
        0
    } else {
        same - SHOWN / 4
    };
    texts.map(|text| {
        let shown: String = text.iter().skip(from).take(SHOWN).collect();
        let before = if from > 0 { "…" } else { "" };
        let after = if text.len() > from + SHOWN { "…" } else { "" };
        format!("{before}{shown}{after}")
    })
}

/// Returns the differences of two data sets as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn diff_json(found: &DataSetDiff) -> io::Result<String> {
    let features = found
        .features
        .iter()
        .map(|((role, name), times)| json!({"name": name, "role": role.name(), "records": times}));
    let skipped = found.skipped.each_ref().map(|skipped| {
        json!({"records": skipped.records, "stretches": skipped.ranges, "bytes": skipped.bytes})
    });
    let keys = found.keys.as_ref().map(|keys| {
        json!({"features": keys.features, "missing": keys.missing, "repeated": keys.repeated, "passes": keys.passes})
    });
    pretty_json(&json!({
        "equal": found.is_equal(),
        "records": found.records,
        "pairs": {"equal": found.equal, "different": found.different},
        "alone": found.unpaired,
        "keys": keys,
        "passed_over": skipped,
        "features": features.collect::<Vec<_>>(),
        "first": found.first.iter().map(record_json).collect::<Vec<_>>(),
    }))
}

/// The values of a key feature: numbers, and byte strings as the table shows them.
fn values_json(values: &[FeatureValue]) -> Value {
    values.iter().map(value_json).collect()
}

fn value_json(value: &FeatureValue) -> Value {
    match value {
        FeatureValue::Int64(value) => json!(value),
        FeatureValue::Float(bits) => json!(f32::from_bits(*bits)),
        FeatureValue::Bytes(bytes) => match str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({"base64": BASE64_STANDARD.encode(bytes)}),
        },
    }
}

fn record_json(difference: &RecordDifference) -> Value {
    let places = difference.positions.each_ref().map(|place| {
        let place = place.as_ref()?;
        Some(json!({"file": place.path.to_string_lossy(), "record": place.record, "offset": place.offset}))
    });
    let differences = difference
        .differences
        .iter()
        .map(|Difference { feature, what }| {
            json!({
                "feature": feature.as_ref().map(|(_, name)| name),
                "role": feature.as_ref().map(|(role, _)| role.name()),
                "what": description(what),
            })
        });
    json!({
        "record": difference.number,
        "key": difference.key.as_ref().map(|key| key.iter().map(|values| values_json(values)).collect::<Vec<_>>()),
        "places": places,
        "differences": differences.collect::<Vec<_>>(),
    })
}
