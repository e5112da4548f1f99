//! The verdict on one feature after the pass, by TFDV's rules (`anomalies/schema.cc` and
//! `feature_util.cc`): its anomalies, and the feature of the updated schema, which has none.
//!
//! The rules for values of a domain are in `domains/`.

use std::collections::HashMap;

use tfarrow_codec::FeatureSummary;

use super::{
    anomaly::{Anomaly, AnomalyKind},
    violations::{FeatureViolations, Violations},
};
use crate::{
    collect::feature::FeatureAccumulator,
    excerpt::excerpt,
    proto::{
        Feature, LifecycleStage, Schema,
        feature::{PresenceConstraints, ShapeType},
    },
    schema::{
        infer::{feature_type, fixed_shape, non_missing},
        is_deprecated, shape_size,
    },
};

/// Largest number of unexpected values that a description lists.
const MAX_LISTED: usize = 20;

/// A feature of the data: its summary and the accumulator of its values.
pub(super) type ObservedFeature<'a> = (&'a FeatureSummary, &'a FeatureAccumulator);

/// Compares a feature of the data with the schema's constraints, and relaxes those that are
/// violated.
pub(super) struct FeatureValidator<'a> {
    /// The feature of the updated schema.
    pub(super) feature: &'a mut Feature,
    /// Whether the feature is a feature list.
    pub(super) is_list: bool,
    /// The updated schema without its features.
    pub(super) schema: &'a mut Schema,
    /// The violations that were found during the pass.
    pub(super) found: &'a FeatureViolations,
    /// Number of records of the data set.
    pub(super) records: u64,
    pub(super) environment: Option<&'a str>,
    /// Byte strings outside of the domain, with their counts.
    pub(super) unexpected: HashMap<&'a [u8], u64>,
    /// Whether `unexpected` has all of these, and not more than may be added to a domain.
    pub(super) is_complete: bool,
    pub(super) anomalies: Vec<Anomaly>,
}

impl<'a> FeatureValidator<'a> {
    /// Applies every rule. `seen` is the feature in the data, if a record has it.
    pub(super) fn validate(&mut self, seen: Option<ObservedFeature<'a>>) {
        if is_deprecated(self.feature) {
            return;
        }
        let present = seen.map_or(0, |(summary, _)| non_missing(summary));
        let (Some((summary, values)), 1..) = (seen, present) else {
            return self.validate_absent(seen.is_some());
        };
        self.validate_environment();
        self.validate_counts();
        self.validate_shape(summary, present);
        self.validate_presence(present);
        self.validate_type(summary);
        self.validate_domain(values);
        self.validate_unique(values);
    }

    /// Adds an anomaly that is not counted by record.
    fn report(&mut self, kind: AnomalyKind, short: &'static str, text: impl Into<String>) {
        self.anomalies.push(Anomaly::new(kind, short, text));
    }

    /// Adds an anomaly with the records that have it.
    fn report_in_records(
        &mut self,
        kind: AnomalyKind,
        short: &'static str,
        violations: Violations,
        text: impl FnOnce(&Self) -> String,
    ) {
        let anomaly = Anomaly::new(kind, short, text(self)).in_records(violations);
        self.anomalies.push(anomaly);
    }

    /// Reports an anomaly if records have it. Returns whether they do.
    pub(super) fn report_if_found(
        &mut self,
        kind: AnomalyKind,
        short: &'static str,
        text: impl FnOnce(&Self) -> String,
    ) -> bool {
        let found = self.found.by_kind.get(&kind).copied();
        found
            .inspect(|violations| self.report_in_records(kind, short, *violations, text))
            .is_some()
    }

    /// Reports numbers below or above the range of the domain, if there are any, with their
    /// extreme. Without an extreme they are strings, of which there are `all`, and the most
    /// frequent ones are listed.
    pub(super) fn report_out_of_range(
        &mut self,
        kind: AnomalyKind,
        extreme: Option<impl std::fmt::Display>,
        all: f64,
    ) -> bool {
        let is_small = matches!(
            kind,
            AnomalyKind::IntTypeSmallInt | AnomalyKind::FloatTypeSmallFloat
        );
        let (order, direction) = if is_small {
            ("smaller", "down")
        } else {
            ("larger", "up")
        };
        self.report_if_found(kind, "Out-of-range values", |validator| match extreme {
            Some(extreme) => format!("There are {order} values, {direction} to {extreme}."),
            None => format!(
                "There are {order} values: {}.",
                validator.unexpected_text(all)
            ),
        })
    }

    /// Lists the unexpected values, the most frequent ones first, each with its share of `all` byte
    /// strings.
    pub(super) fn unexpected_text(&self, all: f64) -> String {
        let mut values: Vec<_> = self
            .unexpected
            .iter()
            .map(|(value, count)| (&**value, *count))
            .collect();
        values.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let mut listed = Vec::new();
        for (value, count) in values.iter().take(MAX_LISTED) {
            let share = 100.0 * *count as f64 / all;
            let share = if share < 1.0 {
                "<1%".to_owned()
            } else {
                format!("~{}%", share.floor())
            };
            let text = excerpt(value, value.len() as u64);
            listed.push(format!("{text:?} ({share})"));
        }
        let more = if values.len() > MAX_LISTED {
            ", and others"
        } else {
            ""
        };
        format!("{}{more}", listed.join(", "))
    }

    /// Sets the lifecycle stage of the updated feature to `DEPRECATED`, which exempts it from
    /// validation.
    fn deprecate(&mut self) {
        self.feature.lifecycle_stage = Some(LifecycleStage::Deprecated.into());
    }

    /// Returns whether the feature is expected in the environment (`in_environment`, else
    /// `default_environment` without `not_in_environment`).
    fn is_in_environment(&self) -> bool {
        let Some(environment) = self.environment else {
            return true;
        };
        contains(&self.feature.in_environment, environment)
            || (!contains(&self.feature.not_in_environment, environment)
                && contains(&self.schema.default_environment, environment))
    }

    /// Reports a required feature that no record has a list of. `is_named` is true if records have
    /// its name.
    fn validate_absent(&mut self, is_named: bool) {
        let (count, fraction) = match &self.feature.presence_constraints {
            Some(PresenceConstraints::Presence(presence)) => {
                (presence.min_count(), presence.min_fraction())
            }
            _ => (0, 0.0),
        };
        if (count <= 0 && fraction <= 0.0) || !self.is_in_environment() {
            return;
        }
        let kind = if is_named {
            AnomalyKind::FeatureTypeNotPresent
        } else {
            AnomalyKind::SchemaMissingColumn
        };
        let missing = self.found.missing;
        self.report_in_records(kind, "Column dropped", missing, |_| {
            "No record has the feature.".to_owned()
        });
        self.deprecate();
    }

    /// Reports a feature that the schema excludes from the environment.
    fn validate_environment(&mut self) {
        if let (Some(environment), false) = (self.environment, self.is_in_environment()) {
            let text = format!(
                "The feature is in the data but not in the environment {environment:?} of the schema."
            );
            self.report(
                AnomalyKind::SchemaNewColumn,
                "Column missing in environment",
                text,
            );
            self.feature
                .not_in_environment
                .retain(|name| name != environment);
            if !self.is_in_environment() {
                self.feature.in_environment.push(environment.to_owned());
            }
        }
    }

    /// Reports the numbers of values of a list, and of steps of a feature list, outside of
    /// `value_count(s)`.
    fn validate_counts(&mut self) {
        let levels = if self.is_list { 2 } else { 1 };
        let expected = match &self.feature.shape_type {
            Some(ShapeType::ValueCount(_)) => 1,
            Some(ShapeType::ValueCounts(counts)) => counts.value_count.len(),
            Some(ShapeType::Shape(_)) | None => levels,
        };
        if expected != levels {
            let name = self.count_field();
            let text = format!(
                "Values are nested {levels} deep, but {name} has counts for a depth of {expected}."
            );
            self.report(
                AnomalyKind::ValueNestednessMismatch,
                "Mismatched value nest level",
                text,
            );
            self.feature.shape_type = None;
            return;
        }
        let few = self.report_if_found(
            AnomalyKind::FeatureTypeLowNumberValues,
            "Missing values",
            |validator| {
                format!(
                    "There are fewer values than {} requires.",
                    validator.count_field()
                )
            },
        );
        let many = self.report_if_found(
            AnomalyKind::FeatureTypeHighNumberValues,
            "Superfluous values",
            |validator| {
                format!(
                    "There are more values than {} allows.",
                    validator.count_field()
                )
            },
        );
        let counts: &mut [_] = match &mut self.feature.shape_type {
            Some(ShapeType::ValueCount(count)) => std::slice::from_mut(count),
            Some(ShapeType::ValueCounts(counts)) => counts.value_count.as_mut_slice(),
            _ => &mut [],
        };
        for count in counts {
            count.min = count.min.filter(|_| !few);
            count.max = count.max.filter(|_| !many);
        }
    }

    /// Returns the name of the schema's field that bounds the number of values.
    fn count_field(&self) -> &'static str {
        if matches!(self.feature.shape_type, Some(ShapeType::ValueCounts(_))) {
            "value_counts"
        } else {
            "value_count"
        }
    }

    /// Reports lists whose number of values is not that of a fixed shape, and records without a
    /// list. As in TFDV, a feature list has the shape if it has the same number of steps in every
    /// record, every step the same number of values, and their product is the size of the shape.
    fn validate_shape(&mut self, summary: &FeatureSummary, present: u64) {
        let Some(ShapeType::Shape(shape)) = &self.feature.shape_type else {
            return;
        };
        let size = shape_size(shape);
        let found = self.found.by_kind.get(&AnomalyKind::InvalidFeatureShape);
        let mut violations = found.copied().unwrap_or_default();
        violations.merge(self.found.missing);
        let has_one_shape = !self.is_list || fixed_shape(summary).is_some();
        if violations.records == 0 && has_one_shape {
            return;
        }
        let without = match self.records - present {
            0 => String::new(),
            without => format!(", and {without} records have none"),
        };
        let text = format!(
            "The shape has {size} values in every record, but there are {}{without}.",
            shape_text(summary)
        );
        let anomaly = Anomaly::new(
            AnomalyKind::InvalidFeatureShape,
            "Feature shape dropped",
            text,
        );
        // Records may have the size in different shapes, such as two steps of three values and
        // three steps of two values.
        let is_in_records = violations.records > 0;
        self.anomalies.push(if is_in_records {
            anomaly.in_records(violations)
        } else {
            anomaly
        });
        self.feature.shape_type = None;
    }

    /// Reports that fewer records have the feature than `presence` requires.
    fn validate_presence(&mut self, present: u64) {
        let records = self.records;
        let missing = self.found.missing;
        let Some(PresenceConstraints::Presence(presence)) = &mut self.feature.presence_constraints
        else {
            return;
        };
        let mut found = Vec::new();
        if let Some(min) = presence
            .min_count
            .as_mut()
            .filter(|min| (present as i64) < **min)
        {
            let text = format!("{present} records have the feature; at least {min} are expected.");
            found.push(Anomaly::new(
                AnomalyKind::FeatureTypeLowNumberPresent,
                "Column dropped",
                text,
            ));
            *min = present as i64;
        }
        let fraction = present as f64 / records as f64;
        if let Some(min) = presence
            .min_fraction
            .as_mut()
            .filter(|min| fraction < **min)
        {
            let text = format!(
                "{present} of {records} records have the feature; a fraction of at least {min} is expected."
            );
            found.push(Anomaly::new(
                AnomalyKind::FeatureTypeLowFractionPresent,
                "Column dropped",
                text,
            ));
            *min = fraction;
        }
        self.anomalies
            .extend(found.into_iter().map(|anomaly| anomaly.in_records(missing)));
    }

    /// Reports lists of another type than the schema's.
    fn validate_type(&mut self, summary: &FeatureSummary) {
        let found = self.report_if_found(
            AnomalyKind::UnexpectedDataType,
            "Unexpected data type",
            |validator| {
                let expected = validator.feature.r#type();
                let types = summary.kinds().map(|(kind, _)| feature_type(Some(kind)));
                let others: Vec<_> = types
                    .filter(|r#type| *r#type != expected)
                    .map(|other| other.as_str_name())
                    .collect();
                format!(
                    "The type of values is {}; {} is expected.",
                    others.join(" and "),
                    expected.as_str_name()
                )
            },
        );
        if found {
            self.deprecate();
        }
    }

    /// Reports a number of distinct strings outside of `unique_constraints`.
    fn validate_unique(&mut self, values: &FeatureAccumulator) {
        let Some(constraints) = &mut self.feature.unique_constraints else {
            return;
        };
        let Some(bytes) = &values.bytes else {
            let text = "Distinct values are counted for strings only.";
            self.feature.unique_constraints = None;
            return self.report(AnomalyKind::FeatureTypeNoUnique, "No unique values", text);
        };
        let found = bytes.distinct.count().0 as i64;
        let min = constraints.min;
        let max = constraints.max;
        if let Some(min) = min.filter(|min| found < *min) {
            constraints.min = Some(found);
            let text = format!("There are {found} distinct values; at least {min} are expected.");
            self.report(
                AnomalyKind::FeatureTypeLowUnique,
                "Low number of unique values",
                text,
            );
        }
        let Some(constraints) = &mut self.feature.unique_constraints else {
            return;
        };
        if let Some(max) = max.filter(|max| found > *max) {
            constraints.max = Some(found);
            let text = format!("There are {found} distinct values; at most {max} are expected.");
            self.report(
                AnomalyKind::FeatureTypeHighUnique,
                "High number of unique values",
                text,
            );
        }
    }
}

/// Returns whether names have this one.
fn contains(names: &[String], name: &str) -> bool {
    names.iter().any(|other| other == name)
}

/// Describes the numbers of values that the lists of a feature have.
fn shape_text(summary: &FeatureSummary) -> String {
    let min = summary
        .kinds()
        .map(|(_, seen)| seen.min_len)
        .min()
        .unwrap_or_default();
    let max = summary
        .kinds()
        .map(|(_, seen)| seen.max_len)
        .max()
        .unwrap_or_default();
    match summary.steps {
        Some((fewest, most)) => format!(
            "{} in each of {} steps",
            range_text(min, max),
            range_text(fewest, most)
        ),
        None => range_text(min, max),
    }
}

/// Describes a range of numbers.
fn range_text(min: u64, max: u64) -> String {
    if min == max {
        min.to_string()
    } else {
        format!("{min} to {max}")
    }
}
