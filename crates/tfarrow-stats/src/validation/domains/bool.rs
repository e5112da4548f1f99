//! `BoolDomain`: integers and floats that are 0 or 1, and the two strings that are true and false.

use std::collections::HashSet;

use super::strings;
use crate::{
    collect::feature::FeatureAccumulator,
    proto::{BoolDomain, FloatDomain, IntDomain, feature::DomainInfo},
    validation::{anomaly::AnomalyKind, feature_validator::FeatureValidator},
};

/// Checks values against a `BoolDomain`.
#[derive(Clone, Debug)]
pub(in crate::validation) struct BoolCheck {
    /// `true_value` and `false_value`, those that are set.
    strings: HashSet<Box<[u8]>>,
}

impl BoolCheck {
    /// Creates the check of a domain.
    pub(super) fn new(domain: &BoolDomain) -> Self {
        let strings = [&domain.true_value, &domain.false_value]
            .into_iter()
            .flatten();
        Self {
            strings: strings.map(|value| value.as_bytes().into()).collect(),
        }
    }

    /// Reports a string that is neither the `true_value` nor the `false_value`.
    pub(super) fn check_string(&self, value: &[u8], report: &mut impl FnMut(AnomalyKind)) {
        if !self.strings.contains(value) {
            report(AnomalyKind::BoolTypeUnexpectedString);
        }
    }

    /// Reports an integer other than 0 and 1.
    pub(super) fn check_int(&self, value: i64, report: &mut impl FnMut(AnomalyKind)) {
        if value < 0 {
            report(AnomalyKind::BoolTypeSmallInt);
        } else if value > 1 {
            report(AnomalyKind::BoolTypeBigInt);
        }
    }

    /// Reports a float other than 0 and 1, also NaN.
    pub(super) fn check_float(&self, value: f32, report: &mut impl FnMut(AnomalyKind)) {
        if value != 0.0 && value != 1.0 {
            report(AnomalyKind::BoolTypeUnexpectedFloat);
        }
    }
}

impl FeatureValidator<'_> {
    /// Reports values that are not booleans, and replaces or drops the domain.
    pub(super) fn validate_bools(&mut self, values: &FeatureAccumulator) {
        self.validate_bool_ints(values);
        self.validate_bool_floats(values);
        let all = strings(values);
        let found = self.report_if_found(
            AnomalyKind::BoolTypeUnexpectedString,
            "Non-boolean values",
            |validator| {
                format!(
                    "Values that are neither the true_value nor the false_value: {}.",
                    validator.unexpected_text(all)
                )
            },
        );
        if found {
            self.feature.domain_info = None;
        }
    }

    /// Replaces the domain by an `IntDomain` where integers are neither 0 nor 1.
    fn validate_bool_ints(&mut self, values: &FeatureAccumulator) {
        let (min, max) = values
            .ints
            .as_ref()
            .and_then(|ints| ints.finite)
            .unwrap_or_default();
        let both = [
            (AnomalyKind::BoolTypeSmallInt, min),
            (AnomalyKind::BoolTypeBigInt, max),
        ];
        // TFDV reports one of the two.
        let found = both.into_iter().any(|(kind, example)| {
            self.report_if_found(kind, "Non-boolean values", |_| {
                format!("There are integers other than 0 and 1, such as {example}.")
            })
        });
        if found {
            let domain = IntDomain {
                min: Some(min),
                max: Some(max),
                ..IntDomain::default()
            };
            self.feature.domain_info = Some(DomainInfo::IntDomain(domain));
        }
    }

    /// Replaces the domain by a `FloatDomain` where floats are neither 0 nor 1.
    fn validate_bool_floats(&mut self, values: &FeatureAccumulator) {
        let (min, max) = values
            .floats
            .as_ref()
            .map(|floats| floats.range())
            .unwrap_or_default();
        let found = self.report_if_found(
            AnomalyKind::BoolTypeUnexpectedFloat,
            "Non-boolean values",
            |_| format!("There are numbers other than 0 and 1, from {min} to {max}."),
        );
        if found {
            // The range is NaN where all values are NaN.
            self.feature.domain_info = if min.is_nan() {
                None
            } else {
                Some(DomainInfo::FloatDomain(FloatDomain {
                    min: Some(min as f32),
                    max: Some(max as f32),
                    ..FloatDomain::default()
                }))
            };
        }
    }
}
