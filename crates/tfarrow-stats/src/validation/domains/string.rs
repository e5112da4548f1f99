//! `StringDomain`: one of a list of strings.

use std::collections::HashSet;

use super::strings;
use crate::{
    collect::feature::FeatureAccumulator,
    proto::{StringDomain, feature::DomainInfo},
    validation::{anomaly::AnomalyKind, feature_validator::FeatureValidator},
};

/// Checks byte strings against a `StringDomain`.
#[derive(Clone, Debug)]
pub(in crate::validation) struct StringCheck {
    values: HashSet<Box<[u8]>>,
}

impl StringCheck {
    /// Creates the check of a domain.
    pub(super) fn new(domain: &StringDomain) -> Self {
        Self {
            values: domain
                .value
                .iter()
                .map(|value| value.as_bytes().into())
                .collect(),
        }
    }

    /// Reports a value that is not in the domain.
    pub(super) fn check_string(&self, value: &[u8], report: &mut impl FnMut(AnomalyKind)) {
        if !self.values.contains(value) {
            let is_utf8 = std::str::from_utf8(value).is_ok();
            let kinds = [
                AnomalyKind::EnumTypeInvalidUtf8,
                AnomalyKind::EnumTypeUnexpectedStringValues,
            ];
            report(kinds[usize::from(is_utf8)]);
        }
    }
}

impl FeatureValidator<'_> {
    /// Reports values that are not in the domain, if their share exceeds the limit that
    /// `min_domain_mass` sets. Adds them to the domain, or drops the domain if there are too many
    /// or if one is not UTF-8.
    pub(super) fn validate_strings(&mut self, values: &FeatureAccumulator) {
        const INVALID: &str = "A value that is not UTF-8 cannot be in a string domain.";
        if self.report_if_found(
            AnomalyKind::EnumTypeInvalidUtf8,
            "Invalid UTF8 strings",
            |_| INVALID.to_owned(),
        ) {
            return self.drop_string_domain();
        }
        let all = strings(values);
        let constraints = self.feature.distribution_constraints.as_ref();
        let allowed = constraints
            .and_then(|constraints| constraints.min_domain_mass)
            .map_or(0.0, |mass| 1.0 - mass);
        if self.found.unexpected_values as f64 / all <= allowed {
            return;
        }
        let kind = AnomalyKind::EnumTypeUnexpectedStringValues;
        let short = "Unexpected string values";
        let found = self.report_if_found(kind, short, |validator| {
            format!(
                "Values that are not in the domain: {}.",
                validator.unexpected_text(all)
            )
        });
        match (found, self.is_complete) {
            (false, _) => {}
            (true, true) => self.extend_string_domain(),
            (true, false) => self.drop_string_domain(),
        }
    }

    /// Adds the unexpected values to the domain.
    fn extend_string_domain(&mut self) {
        let new = self
            .unexpected
            .keys()
            .map(|value| String::from_utf8_lossy(value).into_owned());
        let mut new: Vec<_> = new.collect();
        let Some(domain) = self.string_domain() else {
            return;
        };
        // Several features may share a domain, and an earlier one may have added the value.
        let known: HashSet<&str> = domain.iter().map(String::as_str).collect();
        new.retain(|value| !known.contains(value.as_str()));
        new.sort_unstable();
        domain.extend(new);
    }

    /// Returns the values of the feature's string domain: its own, or the schema's that it names.
    fn string_domain(&mut self) -> Option<&mut Vec<String>> {
        match &mut self.feature.domain_info {
            Some(DomainInfo::StringDomain(domain)) => Some(&mut domain.value),
            Some(DomainInfo::Domain(name)) => {
                let named = self
                    .schema
                    .string_domain
                    .iter_mut()
                    .find(|domain| domain.name() == name);
                named.map(|domain| &mut domain.value)
            }
            _ => None,
        }
    }

    /// Removes the domain, and the constraints on its values.
    fn drop_string_domain(&mut self) {
        self.feature.domain_info = None;
        self.feature.distribution_constraints = None;
    }
}
