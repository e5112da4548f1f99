//! Contradictions within a schema, and their repair: TFDV's `UpdateFeatureSelf`
//! (`anomalies/schema.cc`).

use std::collections::HashSet;

use super::anomaly::{Anomaly, AnomalyKind};
use crate::{
    proto::{
        Feature, FeatureType, LifecycleStage, Schema,
        feature::{DomainInfo, PresenceConstraints, ShapeType},
    },
    schema::{each_feature, feature_path, is_deprecated},
};

/// Repairs the contradictions of a schema, and returns an anomaly for each.
pub(super) fn check_schema(schema: &mut Schema) -> Vec<Anomaly> {
    let domains: HashSet<String> = schema
        .string_domain
        .iter()
        .map(|domain| domain.name().to_owned())
        .collect();
    let mut found = Vec::new();
    each_feature(schema, |feature, is_list, _| {
        let path = feature_path(is_list, feature.name());
        let own = check_feature(feature, &domains);
        found.extend(own.into_iter().map(|anomaly| Anomaly {
            feature: Some(path.clone()),
            ..anomaly
        }));
    });
    found
}

/// Repairs the contradictions of one feature. `domains` are the names of the schema's string
/// domains.
fn check_feature(feature: &mut Feature, domains: &HashSet<String>) -> Vec<Anomaly> {
    let mut found = Vec::new();
    if is_deprecated(feature) || !check_name_and_type(feature, &mut found) {
        return found;
    }
    check_numbers(feature, &mut found);
    check_domain(feature, domains, &mut found);
    if !has_string_domain(feature) && feature.distribution_constraints.take().is_some() {
        let short = "distribution constraints require a domain";
        let text = "The feature has distribution_constraints, which apply to a string domain, but no string domain.";
        found.push(Anomaly::new(
            AnomalyKind::InvalidSchemaSpecification,
            short,
            text,
        ));
    }
    found
}

/// Returns whether the feature has a string domain, its own or a named one.
fn has_string_domain(feature: &Feature) -> bool {
    matches!(
        feature.domain_info,
        Some(DomainInfo::Domain(_) | DomainInfo::StringDomain(_))
    )
}

/// Reports a feature without a name or a type. Returns whether the remaining checks apply: a
/// feature whose type does not follow from its domain is deprecated.
fn check_name_and_type(feature: &mut Feature, found: &mut Vec<Anomaly>) -> bool {
    let deprecated = Some(LifecycleStage::Deprecated.into());
    if feature.name.is_none() {
        found.push(Anomaly::new(
            AnomalyKind::FeatureMissingName,
            "unspecified name",
            "The feature has no name.",
        ));
        feature.lifecycle_stage = deprecated;
        return false;
    }
    if feature.r#type.is_none() {
        found.push(Anomaly::new(
            AnomalyKind::FeatureMissingType,
            "unspecified type",
            "The feature has no type.",
        ));
        if !has_string_domain(feature) {
            feature.lifecycle_stage = deprecated;
            return false;
        }
        feature.r#type = Some(FeatureType::Bytes.into());
    }
    true
}

/// Reports fractions, counts and sizes that are out of range.
fn check_numbers(feature: &mut Feature, found: &mut Vec<Anomaly>) {
    let mut invalid = Vec::new();
    if let Some(PresenceConstraints::Presence(presence)) = &mut feature.presence_constraints
        && let Some(fraction) = presence
            .min_fraction
            .as_mut()
            .filter(|fraction| !(0.0..=1.0).contains(*fraction))
    {
        invalid.push(format!(
            "The min_fraction {fraction} is not between 0 and 1."
        ));
        *fraction = if fraction.is_nan() {
            0.0
        } else {
            fraction.clamp(0.0, 1.0)
        };
    }
    let counts: &mut [_] = match &mut feature.shape_type {
        Some(ShapeType::ValueCount(count)) => std::slice::from_mut(count),
        Some(ShapeType::ValueCounts(counts)) => counts.value_count.as_mut_slice(),
        _ => &mut [],
    };
    for count in counts {
        if count.min() < 0 {
            invalid.push("The min of a value_count is negative.".to_owned());
            count.min = None;
        }
        if count.max.is_some_and(|max| max < count.min()) {
            invalid.push("The max of a value_count is less than its min.".to_owned());
            count.max = Some(count.min());
        }
    }
    if let Some(ShapeType::Shape(shape)) = &feature.shape_type
        && shape.dim.iter().any(|dim| dim.size() <= 0)
    {
        invalid.push("The size of a dimension of the shape is not positive.".to_owned());
        feature.shape_type = None;
    }
    for text in invalid {
        found.push(Anomaly::new(
            AnomalyKind::InvalidSchemaSpecification,
            "number out of range",
            text,
        ));
    }
}

/// Reports a domain that does not match the type, or that the schema does not define.
fn check_domain(feature: &mut Feature, domains: &HashSet<String>, found: &mut Vec<Anomaly>) {
    if !is_domain_allowed(feature) {
        let text = format!(
            "A feature of type {} cannot have a domain of this kind.",
            feature.r#type().as_str_name()
        );
        found.push(Anomaly::new(
            AnomalyKind::DomainInvalidForType,
            "The domain does not match the type",
            text,
        ));
        feature.domain_info = None;
    }
    if let Some(DomainInfo::Domain(name)) = &feature.domain_info
        && !domains.contains(name)
    {
        let text = format!("The schema has no string_domain {name:?}.");
        found.push(Anomaly::new(
            AnomalyKind::InvalidDomainSpecification,
            "missing domain",
            text,
        ));
        feature.domain_info = None;
    }
}

/// Returns whether a feature of this type can have its domain.
fn is_domain_allowed(feature: &Feature) -> bool {
    use FeatureType::{Bytes, Float, Int, Struct};
    let allowed: &[FeatureType] = match &feature.domain_info {
        None => return true,
        Some(DomainInfo::Domain(_) | DomainInfo::StringDomain(_) | DomainInfo::ImageDomain(_)) => {
            &[Bytes]
        }
        Some(DomainInfo::MidDomain(_) | DomainInfo::UrlDomain(_)) => &[Bytes],
        Some(DomainInfo::IntDomain(_) | DomainInfo::TimeDomain(_)) => &[Bytes, Int],
        Some(DomainInfo::NaturalLanguageDomain(_)) => &[Bytes, Int],
        Some(DomainInfo::FloatDomain(_)) => &[Bytes, Float],
        Some(DomainInfo::BoolDomain(_)) => &[Bytes, Int, Float],
        Some(DomainInfo::StructDomain(_)) => &[Struct],
        Some(_) => return true,
    };
    allowed.contains(&feature.r#type())
}
