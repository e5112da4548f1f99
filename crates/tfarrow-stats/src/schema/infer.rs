//! Schema inference by the rules of TFDV's `infer_schema` (`anomalies/schema.cc`,
//! `feature_util.cc`, `bool_domain_util.cc` and `string_domain_util.cc`).

use tfarrow_codec::{FeatureSummary, Kind, KindSummary, Role};

use super::{SEQUENCE, path_step};
use crate::{
    collect::{Statistics, bytes::BytesAccumulator, feature::FeatureAccumulator},
    proto::{
        BoolDomain, Feature, FeaturePresence, FeatureType, FixedShape, IntDomain, Schema,
        StringDomain, StructDomain, ValueCount, ValueCountList,
        feature::{DomainInfo, PresenceConstraints, ShapeType},
        fixed_shape::Dim,
    },
};

/// Largest number of values of a string domain.
const MAX_DOMAIN_VALUES: usize = 100;
/// Strings that TFDV takes for true, and for false.
const TRUE: [&str; 6] = ["TRUE", "true", "SET", "set", "1", ""];
const FALSE: [&str; 5] = ["FALSE", "false", "CLEAR", "clear", "0"];

impl Statistics {
    /// Infers the schema that TFDV would infer. TFDV fails for a feature of several kinds; here it
    /// gets the kind of most lists.
    ///
    /// ```text
    /// records                                  feature
    /// label = [0], label = [1]                 INT, presence 1.0, shape { 1 }, bool_domain
    /// city = ["Oslo"], city = ["Lima"]         BYTES, presence 1.0, shape { 1 }, domain "city"
    /// ids = [1, 2, 3], ids = [4]               INT, presence 1.0, value_count { min 1 }
    /// ```
    pub fn infer_schema(&self) -> Schema {
        let records = self.inferred.summary.records();
        let mut schema = Schema::default();
        let mut steps = StructDomain::default();
        for (summary, values) in self.features() {
            let (feature, domain) = feature(summary, values, records);
            schema.string_domain.extend(domain);
            match summary.role {
                Role::Sequence => steps.feature.push(feature),
                _ => schema.feature.push(feature),
            }
        }
        if !steps.feature.is_empty() {
            schema.feature.push(Feature {
                name: Some(SEQUENCE.to_owned()),
                r#type: Some(FeatureType::Struct.into()),
                domain_info: Some(DomainInfo::StructDomain(steps)),
                presence_constraints: Some(presence(records, records)),
                // Every record has one struct of feature lists.
                shape_type: Some(ShapeType::ValueCount(value_count(1, 1))),
                ..Feature::default()
            });
        }
        schema
    }
}

/// Returns the kind with most lists, and its summary; `None` if no list has a kind.
pub(crate) fn main_kind(summary: &FeatureSummary) -> Option<(Kind, &KindSummary)> {
    summary
        .kinds()
        .max_by_key(|(kind, seen)| (seen.lists, std::cmp::Reverse(*kind as usize)))
}

/// Returns the number of records that have a list with a kind for a feature, or that have a feature
/// list.
pub(crate) fn non_missing(summary: &FeatureSummary) -> u64 {
    match summary.role {
        Role::Sequence => summary.present,
        _ => summary.kinds().map(|(_, seen)| seen.lists).sum(),
    }
}

/// Returns the feature of a schema, and the string domain that it names, if any. `records` is the
/// number of records of the data set.
pub(crate) fn feature(
    summary: &FeatureSummary,
    values: &FeatureAccumulator,
    records: u64,
) -> (Feature, Option<StringDomain>) {
    let seen = main_kind(summary);
    let present = non_missing(summary);
    let (domain_info, string_domain) = domain(summary, values);
    let feature = Feature {
        name: Some(summary.name.clone()),
        r#type: Some(feature_type(seen.map(|(kind, _)| kind)).into()),
        presence_constraints: Some(presence(present, records)),
        shape_type: seen.and_then(|(_, seen)| shape(summary, seen, present == records)),
        domain_info,
        ..Feature::default()
    };
    (feature, string_domain)
}

/// Returns the type of features of this kind.
pub(crate) fn feature_type(kind: Option<Kind>) -> FeatureType {
    match kind {
        Some(Kind::Int64) => FeatureType::Int,
        Some(Kind::Float) => FeatureType::Float,
        // TFDV gives features without a value the type BYTES.
        Some(Kind::Bytes) | None => FeatureType::Bytes,
    }
}

/// Returns the presence of a feature that `present` of `records` records have: a fraction of 1 if
/// all have it.
fn presence(present: u64, records: u64) -> PresenceConstraints {
    PresenceConstraints::Presence(FeaturePresence {
        min_count: Some(i64::from(present > 0)),
        min_fraction: (present == records && present > 0).then_some(1.0),
    })
}

/// Returns the shape of a feature: a fixed shape if every record has lists of one length above 0,
/// else the bounds of the number of values if no list is empty. A feature list that does not have a
/// fixed shape gets the bounds of its steps and of the values of a step.
fn shape(summary: &FeatureSummary, seen: &KindSummary, is_everywhere: bool) -> Option<ShapeType> {
    if let Some(sizes) = fixed_shape(summary).filter(|_| is_everywhere) {
        let dim = sizes
            .into_iter()
            .map(|size| Dim {
                size: Some(size as i64),
                name: None,
            })
            .collect();
        return Some(ShapeType::Shape(FixedShape { dim }));
    }
    let min = seen.min_len;
    let max = seen.max_len;
    if summary.role == Role::Sequence {
        let (fewest, most) = summary.steps.unwrap_or_default();
        let value_count = vec![value_count(fewest, most), value_count(min, max)];
        return Some(ShapeType::ValueCounts(ValueCountList { value_count }));
    }
    (min > 0).then(|| ShapeType::ValueCount(value_count(min, max)))
}

/// Returns the sizes of the dimensions that all lists of a feature have in common: the length of
/// its lists and, before it, the number of steps of a feature list. `None` if a size varies or is
/// 0, or if a step has no kind.
///
/// ```text
/// feature         [1, 2], [3, 4]                     2
/// feature list    [[1], [2], [3]], [[4], [5], [6]]   3, 1
/// ```
pub(crate) fn fixed_shape(summary: &FeatureSummary) -> Option<Vec<u64>> {
    let (_, seen) = main_kind(summary)?;
    if summary.role == Role::Sequence && summary.unset > 0 {
        return None;
    }
    let ranges = summary
        .steps
        .into_iter()
        .chain([(seen.min_len, seen.max_len)]);
    let mut sizes = Vec::new();
    for (min, max) in ranges {
        if min != max || min == 0 {
            return None;
        }
        sizes.push(min);
    }
    Some(sizes)
}

/// Returns bounds: equal ones if all lists are of one length, else a minimum of 1; no bounds if a
/// list is empty.
fn value_count(min: u64, max: u64) -> ValueCount {
    match min {
        0 => ValueCount::default(),
        _ if min == max => ValueCount {
            min: Some(min as i64),
            max: Some(max as i64),
        },
        _ => ValueCount {
            min: Some(1),
            max: None,
        },
    }
}

/// Returns the domain of a feature; with it the string domain that it names, which the schema
/// holds.
fn domain(
    summary: &FeatureSummary,
    values: &FeatureAccumulator,
) -> (Option<DomainInfo>, Option<StringDomain>) {
    match main_kind(summary).map(|(kind, _)| kind) {
        Some(Kind::Int64) => {
            let range = values.ints.as_ref().and_then(|numbers| numbers.finite);
            let is_bool = range.is_some_and(|(low, high)| low >= 0 && high == 1);
            (
                is_bool.then(|| DomainInfo::BoolDomain(BoolDomain::default())),
                None,
            )
        }
        Some(Kind::Bytes) => values
            .bytes
            .as_ref()
            .map_or((None, None), |bytes| string_domain(&summary.name, bytes)),
        Some(Kind::Float) | None => (None, None),
    }
}

/// Returns the domain of byte strings: bool or int if all values are such, a string domain for up
/// to [`MAX_DOMAIN_VALUES`] UTF-8 values, and none for others or if distinct values are too many or
/// too long to keep.
fn string_domain(
    name: &str,
    bytes: &BytesAccumulator,
) -> (Option<DomainInfo>, Option<StringDomain>) {
    let Some(counts) = bytes.distinct.whole() else {
        return (None, None);
    };
    let text: Option<Vec<&str>> = counts
        .map(|(value, _)| std::str::from_utf8(value).ok())
        .collect();
    let Some(mut text) = text.filter(|text| !text.is_empty()) else {
        return (None, None);
    };
    text.sort_unstable();
    if let Some(domain) = bool_domain(&text) {
        return (Some(DomainInfo::BoolDomain(domain)), None);
    }
    if text.iter().all(|value| value.parse::<i64>().is_ok()) {
        return (Some(DomainInfo::IntDomain(IntDomain::default())), None);
    }
    if text.len() > MAX_DOMAIN_VALUES {
        return (None, None);
    }
    let value = text.into_iter().map(str::to_owned).collect();
    let name = path_step(name);
    let domain = StringDomain {
        name: Some(name.clone()),
        value,
        ..StringDomain::default()
    };
    (Some(DomainInfo::Domain(name)), Some(domain))
}

/// Returns a bool domain if at most one of the values means true, at most one means false, and
/// there are no others.
fn bool_domain(values: &[&str]) -> Option<BoolDomain> {
    let mut domain = BoolDomain::default();
    for value in values {
        let place = match value {
            _ if TRUE.contains(value) => &mut domain.true_value,
            _ if FALSE.contains(value) => &mut domain.false_value,
            _ => return None,
        };
        if place.replace((*value).to_owned()).is_some() {
            return None;
        }
    }
    Some(domain)
}
