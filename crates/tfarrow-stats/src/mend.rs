//! What a schema says that cannot be, and what it must have meant: TFDV's `UpdateFeatureSelf` (`anomalies/schema.cc`).

use std::collections::HashSet;

use crate::{
    proto::{
        Feature, FeatureType, FixedShape, LifecycleStage,
        feature::{DomainInfo, PresenceConstraints, ShapeType},
    },
    validate::{Anomaly, AnomalyKind},
};

/// Whether nothing is asked of a feature in this stage of its life.
pub(crate) fn is_deprecated(feature: &Feature) -> bool {
    use LifecycleStage::{Alpha, DebugOnly, Deprecated, Disabled, Planned};
    let is_out = matches!(feature.lifecycle_stage(), Planned | Alpha | Deprecated | DebugOnly | Disabled);
    feature.deprecated() || (feature.lifecycle_stage.is_some() && is_out)
}

/// What a schema says against itself of a feature, which is mended. `domains` are the names of the schema's.
pub(crate) fn mend(feature: &mut Feature, domains: &HashSet<String>) -> Vec<Anomaly> {
    let mut found = Vec::new();
    if is_deprecated(feature) {
        return found;
    }
    if feature.name.is_none() {
        found.push(Anomaly::new(AnomalyKind::FeatureMissingName, "unspecified name", "The schema gives it no name."));
        feature.lifecycle_stage = Some(LifecycleStage::Deprecated.into());
        return found;
    }
    let has_strings = matches!(feature.domain_info, Some(DomainInfo::Domain(_) | DomainInfo::StringDomain(_)));
    if feature.r#type.is_none() {
        found.push(Anomaly::new(AnomalyKind::FeatureMissingType, "unspecified type", "The schema gives it no type."));
        match has_strings {
            true => feature.r#type = Some(FeatureType::Bytes.into()),
            false => {
                feature.lifecycle_stage = Some(LifecycleStage::Deprecated.into());
                return found;
            }
        }
    }
    own_numbers(feature, &mut found);
    if !allows(feature) {
        let text = format!("Its domain is none of values of type {}.", feature.r#type().as_str_name());
        found.push(Anomaly::new(AnomalyKind::DomainInvalidForType, "The domain does not match the type", text));
        feature.domain_info = None;
    }
    if let Some(DomainInfo::Domain(name)) = &feature.domain_info
        && !domains.contains(name)
    {
        let text = format!("The schema has no string_domain {name:?}.");
        found.push(Anomaly::new(AnomalyKind::InvalidDomainSpecification, "missing domain", text));
        feature.domain_info = None;
    }
    let has_strings = matches!(feature.domain_info, Some(DomainInfo::Domain(_) | DomainInfo::StringDomain(_)));
    if !has_strings && feature.distribution_constraints.take().is_some() {
        let text = "Its distribution_constraints are about the values of a string domain, which it has not.";
        found.push(Anomaly::new(
            AnomalyKind::InvalidSchemaSpecification,
            "distribution constraints require a domain",
            text,
        ));
    }
    found
}

/// Numbers of the schema that can be none.
fn own_numbers(feature: &mut Feature, found: &mut Vec<Anomaly>) {
    let mut wrong = Vec::new();
    if let Some(PresenceConstraints::Presence(presence)) = &mut feature.presence_constraints
        && let Some(fraction) = presence.min_fraction.as_mut().filter(|share| !(0.0..=1.0).contains(*share))
    {
        wrong.push(format!("Its min_fraction is {fraction}, and no share."));
        *fraction = if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) };
    }
    let counts: &mut [_] = match &mut feature.shape_type {
        Some(ShapeType::ValueCount(count)) => std::slice::from_mut(count),
        Some(ShapeType::ValueCounts(counts)) => counts.value_count.as_mut_slice(),
        _ => &mut [],
    };
    for count in counts {
        if count.min() < 0 {
            wrong.push("A min of its value_count is negative.".to_owned());
            count.min = None;
        }
        if count.max.is_some_and(|max| max < count.min()) {
            wrong.push("A max of its value_count is less than the min.".to_owned());
            count.max = Some(count.min());
        }
    }
    let is_zero = |shape: &FixedShape| shape.dim.iter().any(|dim| dim.size() <= 0);
    if matches!(&feature.shape_type, Some(ShapeType::Shape(shape)) if is_zero(shape)) {
        wrong.push("A size of its shape is not positive.".to_owned());
        feature.shape_type = None;
    }
    for text in wrong {
        found.push(Anomaly::new(AnomalyKind::InvalidSchemaSpecification, "A number that cannot be", text));
    }
}

/// Whether a feature of this type can have this domain.
fn allows(feature: &Feature) -> bool {
    use FeatureType::{Bytes, Float, Int, Struct};
    let allowed: &[FeatureType] = match &feature.domain_info {
        None => return true,
        Some(DomainInfo::Domain(_) | DomainInfo::StringDomain(_) | DomainInfo::ImageDomain(_)) => &[Bytes],
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
