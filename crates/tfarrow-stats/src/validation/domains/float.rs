//! `FloatDomain`: floats, and strings that are floats, within a range; optionally without NaN and
//! infinity.

use super::{parse, strings};
use crate::{
    collect::feature::FeatureAccumulator,
    proto::{FloatDomain, feature::DomainInfo},
    validation::{anomaly::AnomalyKind, feature_validator::FeatureValidator},
};

/// Checks values against a `FloatDomain`. Both bounds are inclusive; one that is not set is
/// infinite.
#[derive(Clone, Debug)]
pub(in crate::validation) struct FloatCheck {
    min: f32,
    max: f32,
    disallow_nan: bool,
    disallow_inf: bool,
}

impl FloatCheck {
    /// Creates the check of a domain.
    pub(super) fn new(domain: &FloatDomain) -> Self {
        Self {
            min: domain.min.unwrap_or(f32::NEG_INFINITY),
            max: domain.max.unwrap_or(f32::INFINITY),
            disallow_nan: domain.disallow_nan(),
            disallow_inf: domain.disallow_inf(),
        }
    }

    /// Reports a string that is not a number, or whose number violates the domain.
    pub(super) fn check_string(&self, value: &[u8], report: &mut impl FnMut(AnomalyKind)) {
        match parse(value) {
            Some(number) => self.check_float(number, report),
            None => report(AnomalyKind::FloatTypeStringNotFloat),
        }
    }

    /// Reports a float out of range, and NaN or infinity if they are disallowed.
    pub(super) fn check_float(&self, value: f32, report: &mut impl FnMut(AnomalyKind)) {
        if self.disallow_nan && value.is_nan() {
            report(AnomalyKind::FloatTypeHasNan);
        }
        if self.disallow_inf && value.is_infinite() {
            report(AnomalyKind::FloatTypeHasInf);
        }
        if value < self.min {
            report(AnomalyKind::FloatTypeSmallFloat);
        }
        if value > self.max {
            report(AnomalyKind::FloatTypeBigFloat);
        }
    }
}

impl FeatureValidator<'_> {
    /// Reports values that violate the domain, and widens or drops it.
    pub(super) fn validate_floats(&mut self, values: &FeatureAccumulator) {
        let all = strings(values);
        let not_float = self.report_if_found(
            AnomalyKind::FloatTypeStringNotFloat,
            "Invalid values",
            |validator| {
                format!(
                    "Values that are not numbers: {}.",
                    validator.unexpected_text(all)
                )
            },
        );
        let nan = self.report_if_found(AnomalyKind::FloatTypeHasNan, "Invalid values", |_| {
            "There are NaNs.".to_owned()
        });
        let infinite = self.report_if_found(AnomalyKind::FloatTypeHasInf, "Invalid values", |_| {
            "There are infinities.".to_owned()
        });
        if not_float {
            self.feature.domain_info = None;
            return;
        }
        let (min, max) = values.floats.as_ref().map(|floats| floats.range()).unzip();
        let small = self.report_out_of_range(AnomalyKind::FloatTypeSmallFloat, min, all);
        let big = self.report_out_of_range(AnomalyKind::FloatTypeBigFloat, max, all);
        if let Some(DomainInfo::FloatDomain(domain)) = &mut self.feature.domain_info {
            domain.disallow_nan = domain.disallow_nan.filter(|_| !nan);
            domain.disallow_inf = domain.disallow_inf.filter(|_| !infinite);
            domain.min = if small {
                min.map(|min| min as f32)
            } else {
                domain.min
            };
            domain.max = if big {
                max.map(|max| max as f32)
            } else {
                domain.max
            };
        }
    }
}
