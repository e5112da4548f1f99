//! `IntDomain`: integers, and strings that are integers, within a range.

use super::{parse, strings};
use crate::{
    collect::feature::FeatureAccumulator,
    proto::{IntDomain, feature::DomainInfo},
    validation::{anomaly::AnomalyKind, feature_validator::FeatureValidator},
};

/// Checks values against an `IntDomain`. Both bounds are inclusive; one that is not set is the
/// extreme of an `i64`.
#[derive(Clone, Debug)]
pub(in crate::validation) struct IntCheck {
    min: i64,
    max: i64,
}

impl IntCheck {
    /// Creates the check of a domain.
    pub(super) fn new(domain: &IntDomain) -> Self {
        Self {
            min: domain.min.unwrap_or(i64::MIN),
            max: domain.max.unwrap_or(i64::MAX),
        }
    }

    /// Reports a string that is not an integer, or whose integer is out of range.
    pub(super) fn check_string(&self, value: &[u8], report: &mut impl FnMut(AnomalyKind)) {
        match parse(value) {
            Some(number) => self.check_int(number, report),
            None => report(AnomalyKind::IntTypeNotIntString),
        }
    }

    /// Reports an integer out of range.
    pub(super) fn check_int(&self, value: i64, report: &mut impl FnMut(AnomalyKind)) {
        if value < self.min {
            report(AnomalyKind::IntTypeSmallInt);
        }
        if value > self.max {
            report(AnomalyKind::IntTypeBigInt);
        }
    }
}

impl FeatureValidator<'_> {
    /// Reports values out of range or not integers, and widens or drops the domain.
    pub(super) fn validate_ints(&mut self, values: &FeatureAccumulator) {
        let all = strings(values);
        let range = values.ints.as_ref().and_then(|ints| ints.finite);
        let not_int = self.report_if_found(
            AnomalyKind::IntTypeNotIntString,
            "Invalid values",
            |validator| {
                format!(
                    "Values that are not integers: {}.",
                    validator.unexpected_text(all)
                )
            },
        );
        if not_int {
            self.feature.domain_info = None;
            return;
        }
        let (min, max) = range.unzip();
        let small = self.report_out_of_range(AnomalyKind::IntTypeSmallInt, min, all);
        let big = self.report_out_of_range(AnomalyKind::IntTypeBigInt, max, all);
        if let Some(DomainInfo::IntDomain(domain)) = &mut self.feature.domain_info {
            domain.min = if small { min } else { domain.min };
            domain.max = if big { max } else { domain.max };
        }
    }
}
