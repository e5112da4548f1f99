//! The domains of a schema, a file each: the check of every value during the pass, and the
//! anomalies and the updated domain after it. They follow TFDV's `string_domain_util.cc`,
//! `bool_domain_util.cc`, `int_domain_util.cc` and `float_domain_util.cc`.
//!
//! A domain applies to values of several kinds: an `IntDomain`, for instance, to integers and to
//! strings that are integers.

mod bool;
mod float;
mod int;
mod string;

use std::collections::HashMap;

use self::{bool::BoolCheck, float::FloatCheck, int::IntCheck, string::StringCheck};
use super::{anomaly::AnomalyKind, feature_validator::FeatureValidator};
use crate::{
    collect::feature::FeatureAccumulator,
    proto::{Feature, StringDomain, feature::DomainInfo},
};

/// The string domains of a schema, by name.
pub(super) type StringDomains<'a> = HashMap<&'a str, &'a StringDomain>;

/// The values that a feature may have.
#[derive(Clone, Debug)]
pub(super) enum DomainCheck {
    /// Any value.
    Any,
    /// One of a list of strings.
    Strings(StringCheck),
    /// A boolean.
    Bools(BoolCheck),
    /// An integer in a range.
    Ints(IntCheck),
    /// A number in a range.
    Floats(FloatCheck),
}

impl DomainCheck {
    /// Creates the check of the domain of a feature. `domains` are the string domains that features
    /// refer to by name.
    pub(super) fn new(feature: &Feature, domains: &StringDomains<'_>) -> Self {
        match &feature.domain_info {
            Some(DomainInfo::Domain(name)) => domains
                .get(name.as_str())
                .map_or(Self::Any, |domain| Self::Strings(StringCheck::new(domain))),
            Some(DomainInfo::StringDomain(domain)) => Self::Strings(StringCheck::new(domain)),
            Some(DomainInfo::BoolDomain(domain)) => Self::Bools(BoolCheck::new(domain)),
            Some(DomainInfo::IntDomain(domain)) => Self::Ints(IntCheck::new(domain)),
            Some(DomainInfo::FloatDomain(domain)) => Self::Floats(FloatCheck::new(domain)),
            // Values of image, natural-language, machine-identifier, URL and time domains are not
            // checked.
            _ => Self::Any,
        }
    }

    /// Returns whether every value is in the domain.
    pub(super) fn is_any(&self) -> bool {
        matches!(self, Self::Any)
    }

    /// Calls `report` with each violation of the domain by a byte string.
    pub(super) fn check_string(&self, value: &[u8], report: &mut impl FnMut(AnomalyKind)) {
        match self {
            Self::Any => {}
            Self::Strings(check) => check.check_string(value, report),
            Self::Bools(check) => check.check_string(value, report),
            Self::Ints(check) => check.check_string(value, report),
            Self::Floats(check) => check.check_string(value, report),
        }
    }

    /// Calls `report` with each violation of the domain by an integer.
    pub(super) fn check_int(&self, value: i64, report: &mut impl FnMut(AnomalyKind)) {
        match self {
            Self::Any | Self::Strings(_) | Self::Floats(_) => {}
            Self::Bools(check) => check.check_int(value, report),
            Self::Ints(check) => check.check_int(value, report),
        }
    }

    /// Calls `report` with each violation of the domain by a float.
    pub(super) fn check_float(&self, value: f32, report: &mut impl FnMut(AnomalyKind)) {
        match self {
            Self::Any | Self::Strings(_) | Self::Ints(_) => {}
            Self::Bools(check) => check.check_float(value, report),
            Self::Floats(check) => check.check_float(value, report),
        }
    }
}

impl<'a> FeatureValidator<'a> {
    /// Reports the values outside of the domain, and widens or drops the domain.
    pub(super) fn validate_domain(&mut self, values: &'a FeatureAccumulator) {
        self.validate_strings(values);
        self.validate_bools(values);
        self.validate_ints(values);
        self.validate_floats(values);
    }
}

/// Parses a byte string as a number, without the white space around it.
fn parse<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Returns the number of byte strings of a feature.
fn strings(values: &FeatureAccumulator) -> f64 {
    values.bytes.as_ref().map_or(0, |bytes| bytes.count()) as f64
}
