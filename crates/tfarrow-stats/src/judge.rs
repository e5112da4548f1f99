//! One feature of a schema, held against what was found of it: TFDV's rules (`anomalies/schema.cc`, `feature_util.cc` and
//! the domains' files there), and how the schema would have to change for the data to be right.

use std::collections::{HashMap, HashSet};

use tfarrow_codec::FeatureSummary;

use crate::{
    feature::FeatureValues,
    figures::excerpt,
    infer_schema::{self, non_missing},
    mend::is_deprecated,
    proto::{
        Feature, FloatDomain, IntDomain, LifecycleStage, Schema,
        feature::{DomainInfo, PresenceConstraints, ShapeType},
    },
    rules::{Finding, Rule, size},
    validate::{Anomaly, AnomalyKind},
};

/// Values outside of a domain that are told.
const SHOWN: usize = 20;

/// A feature of the data.
pub(crate) type Seen<'a> = (&'a FeatureSummary, &'a FeatureValues);

/// Holds what was found of a feature against what the schema says of it, and makes the schema say what was found.
pub(crate) struct Judge<'a> {
    pub(crate) feature: &'a mut Feature,
    /// Whether it is a feature list.
    pub(crate) is_list: bool,
    /// The schema without its features.
    pub(crate) schema: &'a mut Schema,
    pub(crate) rule: &'a Rule,
    /// Records of the data set.
    pub(crate) records: u64,
    pub(crate) environment: Option<&'a str>,
    /// Strings outside of the domain, and how often there are.
    pub(crate) unexpected: HashMap<&'a [u8], u64>,
    /// Whether these are all of them, and no more than a domain may get.
    pub(crate) is_complete: bool,
    pub(crate) found: Vec<Anomaly>,
}

impl<'a> Judge<'a> {
    fn push(&mut self, kind: AnomalyKind, short: &'static str, text: impl Into<String>) {
        self.found.push(Anomaly::new(kind, short, text));
    }

    /// Adds what was found in records, if anything.
    fn push_found(&mut self, kind: AnomalyKind, short: &'static str, text: impl FnOnce(&Self) -> String) -> bool {
        let found = self.rule.found.get(&kind).copied();
        found.is_some_and(|finding| self.push_finding(kind, short, finding, text))
    }

    fn push_finding(
        &mut self,
        kind: AnomalyKind,
        short: &'static str,
        finding: Finding,
        text: impl FnOnce(&Self) -> String,
    ) -> bool {
        let anomaly = Anomaly::new(kind, short, text(self)).in_records(finding);
        self.found.push(anomaly);
        true
    }

    fn deprecate(&mut self) {
        self.feature.lifecycle_stage = Some(LifecycleStage::Deprecated.into());
    }

    fn is_in_environment(&self) -> bool {
        let Some(environment) = self.environment else { return true };
        let has = |names: &[String]| names.iter().any(|name| name == environment);
        has(&self.feature.in_environment)
            || (!has(&self.feature.not_in_environment) && has(&self.schema.default_environment))
    }

    /// Looks at everything.
    pub(crate) fn all(&mut self, seen: Option<Seen<'a>>) {
        if is_deprecated(self.feature) {
            return;
        }
        let present = seen.map_or(0, |(summary, _)| non_missing(summary));
        let (Some((summary, values)), 1..) = (seen, present) else { return self.absent(seen.is_some()) };
        self.environment();
        self.counts();
        self.shape(summary, present);
        self.presence(present);
        self.data_type(summary);
        self.domain(values);
        self.unique(values);
    }

    /// No record has it.
    fn absent(&mut self, is_there: bool) {
        let (count, fraction) = match &self.feature.presence_constraints {
            Some(PresenceConstraints::Presence(presence)) => (presence.min_count(), presence.min_fraction()),
            _ => (0, 0.0),
        };
        if (count <= 0 && fraction <= 0.0) || !self.is_in_environment() {
            return;
        }
        let kind = if is_there { AnomalyKind::FeatureTypeNotPresent } else { AnomalyKind::SchemaMissingColumn };
        let missing = self.rule.missing;
        self.found.push(Anomaly::new(kind, "Column dropped", "No record has it.").in_records(missing));
        self.deprecate();
    }

    fn environment(&mut self) {
        if let (Some(environment), false) = (self.environment, self.is_in_environment()) {
            let text = format!("The data has it, the environment {environment:?} of the schema has not.");
            self.push(AnomalyKind::SchemaNewColumn, "Column missing in environment", text);
            self.feature.not_in_environment.retain(|name| name != environment);
            if !self.is_in_environment() {
                self.feature.in_environment.push(environment.to_owned());
            }
        }
    }

    /// Values of lists, and steps of feature lists.
    fn counts(&mut self) {
        let levels = if self.is_list { 2 } else { 1 };
        let asked = match &self.feature.shape_type {
            Some(ShapeType::ValueCount(_)) => 1,
            Some(ShapeType::ValueCounts(counts)) => counts.value_count.len(),
            Some(ShapeType::Shape(_)) | None => levels,
        };
        if asked != levels {
            let text = format!("Values are nested {levels} deep, where {} has counts for {asked}.", self.shape_name());
            self.push(AnomalyKind::ValueNestednessMismatch, "Mismatched value nest level", text);
            self.feature.shape_type = None;
            return;
        }
        let few = self.push_found(AnomalyKind::FeatureTypeLowNumberValues, "Missing values", |judge| {
            format!("There are fewer values than {} asks for.", judge.shape_name())
        });
        let many = self.push_found(AnomalyKind::FeatureTypeHighNumberValues, "Superfluous values", |judge| {
            format!("There are more values than {} allows.", judge.shape_name())
        });
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

    fn shape_name(&self) -> &'static str {
        if matches!(self.feature.shape_type, Some(ShapeType::ValueCounts(_))) { "value_counts" } else { "value_count" }
    }

    fn shape(&mut self, summary: &FeatureSummary, present: u64) {
        let Some(ShapeType::Shape(shape)) = &self.feature.shape_type else { return };
        let size = size(shape);
        let mut finding = self.rule.found.get(&AnomalyKind::InvalidFeatureShape).copied().unwrap_or_default();
        finding.merge(self.rule.missing);
        if finding.records == 0 {
            return;
        }
        self.push_finding(AnomalyKind::InvalidFeatureShape, "Feature shape dropped", finding, |judge| {
            let least = summary.kinds().map(|(_, seen)| seen.min_len).min().unwrap_or_default();
            let most = summary.kinds().map(|(_, seen)| seen.max_len).max().unwrap_or_default();
            let found = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let without = match judge.records - present {
                0 => String::new(),
                without => format!(", and {without} records have none"),
            };
            format!("Its shape has {size} values in every record; there are {found}{without}.")
        });
        self.feature.shape_type = None;
    }

    fn presence(&mut self, present: u64) {
        let (records, missing) = (self.records, self.rule.missing);
        let Some(PresenceConstraints::Presence(presence)) = &mut self.feature.presence_constraints else { return };
        let mut found = Vec::new();
        if let Some(least) = presence.min_count.as_mut().filter(|least| (present as i64) < **least) {
            let text = format!("{present} records have it, where at least {least} are expected.");
            found.push(Anomaly::new(AnomalyKind::FeatureTypeLowNumberPresent, "Column dropped", text));
            *least = present as i64;
        }
        let fraction = present as f64 / records as f64;
        if let Some(least) = presence.min_fraction.as_mut().filter(|least| fraction < **least) {
            let text =
                format!("{present} of {records} records have it, where a share of at least {least} is expected.");
            found.push(Anomaly::new(AnomalyKind::FeatureTypeLowFractionPresent, "Column dropped", text));
            *least = fraction;
        }
        self.found.extend(found.into_iter().map(|anomaly| anomaly.in_records(missing)));
    }

    fn data_type(&mut self, summary: &FeatureSummary) {
        let is_wrong = self.push_found(AnomalyKind::UnexpectedDataType, "Unexpected data type", |judge| {
            let kinds: Vec<_> = summary.kinds().map(|(kind, _)| infer_schema::feature_type(Some(kind))).collect();
            let others = kinds.into_iter().filter(|kind| *kind != judge.feature.r#type());
            let others: Vec<_> = others.map(|kind| kind.as_str_name()).collect();
            format!("Values are {}, where {} is expected.", others.join(" and "), judge.feature.r#type().as_str_name())
        });
        if is_wrong {
            self.deprecate();
        }
    }

    fn domain(&mut self, values: &'a FeatureValues) {
        (self.unexpected, self.is_complete) = self.rule.unexpected(values);
        self.strings(values);
        self.bools(values);
        self.ints(values);
        self.floats(values);
    }

    fn strings(&mut self, values: &FeatureValues) {
        const TEXT: &str = "Values that are no UTF-8 are in no domain.";
        if self.push_found(AnomalyKind::EnumTypeInvalidUtf8, "Invalid UTF8 strings", |_| TEXT.to_owned()) {
            return self.drop_strings();
        }
        let all = values.bytes.as_ref().map_or(0, |bytes| bytes.count()) as f64;
        let constraints = self.feature.distribution_constraints.as_ref();
        let allowed = constraints.and_then(|constraints| constraints.min_domain_mass).map_or(0.0, |mass| 1.0 - mass);
        if self.rule.unexpected_values as f64 / all <= allowed {
            return;
        }
        let is_found =
            self.push_found(AnomalyKind::EnumTypeUnexpectedStringValues, "Unexpected string values", |judge| {
                format!("Values that the schema has not: {}.", judge.shown(all))
            });
        if !is_found {
            return;
        }
        if !self.is_complete {
            return self.drop_strings();
        }
        let words = self.unexpected.keys().map(|value| String::from_utf8_lossy(value).into_owned());
        let mut words: Vec<_> = words.collect();
        let Some(domain) = self.string_domain() else { return };
        // A domain may be that of several features.
        let known: HashSet<&str> = domain.iter().map(String::as_str).collect();
        words.retain(|word| !known.contains(word.as_str()));
        words.sort_unstable();
        domain.extend(words);
    }

    /// The values that its domain has, its own or one by name.
    fn string_domain(&mut self) -> Option<&mut Vec<String>> {
        match &mut self.feature.domain_info {
            Some(DomainInfo::StringDomain(domain)) => Some(&mut domain.value),
            Some(DomainInfo::Domain(name)) => {
                let named = self.schema.string_domain.iter_mut().find(|domain| domain.name() == name);
                named.map(|domain| &mut domain.value)
            }
            _ => None,
        }
    }

    fn drop_strings(&mut self) {
        self.feature.domain_info = None;
        self.feature.distribution_constraints = None;
    }

    /// Values outside of the domain, the most frequent ones first.
    fn shown(&self, all: f64) -> String {
        let mut values: Vec<_> = self.unexpected.iter().map(|(value, count)| (&**value, *count)).collect();
        values.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let word = |(value, count): &(&[u8], u64)| {
            let share = 100.0 * *count as f64 / all;
            let share = if share < 1.0 { "<1%".to_owned() } else { format!("~{}%", share.floor()) };
            format!("{:?} ({share})", excerpt(value))
        };
        let shown: Vec<_> = values.iter().take(SHOWN).map(word).collect();
        let more = if values.len() > SHOWN { ", and others" } else { "" };
        format!("{}{more}", shown.join(", "))
    }

    fn bools(&mut self, values: &FeatureValues) {
        let ints = values.ints.as_ref().and_then(|ints| ints.finite).unwrap_or_default();
        let small = self.push_found(AnomalyKind::BoolTypeSmallInt, "Non-boolean values", |_| {
            format!("There are integers other than 0 and 1, such as {}.", ints.0)
        });
        // One of them is enough to make it no bool.
        let is_int = small
            || self.push_found(AnomalyKind::BoolTypeBigInt, "Non-boolean values", |_| {
                format!("There are integers other than 0 and 1, such as {}.", ints.1)
            });
        if is_int {
            let domain = IntDomain { min: Some(ints.0), max: Some(ints.1), ..IntDomain::default() };
            self.feature.domain_info = Some(DomainInfo::IntDomain(domain));
        }
        let floats = values.floats.as_ref().map(|floats| floats.range()).unwrap_or_default();
        let odd = self.push_found(AnomalyKind::BoolTypeUnexpectedFloat, "Non-boolean values", |_| {
            format!("There are numbers other than 0 and 1, from {} to {}.", floats.0, floats.1)
        });
        if odd {
            let domain =
                || FloatDomain { min: Some(floats.0 as f32), max: Some(floats.1 as f32), ..FloatDomain::default() };
            // NaNs alone have no range.
            self.feature.domain_info = (!floats.0.is_nan()).then(|| DomainInfo::FloatDomain(domain()));
        }
        let all = values.bytes.as_ref().map_or(0, |bytes| bytes.count()) as f64;
        let words = self.push_found(AnomalyKind::BoolTypeUnexpectedString, "Non-boolean values", |judge| {
            format!("Values that stand neither for true nor for false: {}.", judge.shown(all))
        });
        if words {
            self.feature.domain_info = None;
        }
    }

    fn ints(&mut self, values: &FeatureValues) {
        let all = values.bytes.as_ref().map_or(0, |bytes| bytes.count()) as f64;
        let range = values.ints.as_ref().and_then(|ints| ints.finite);
        let odd = self.push_found(AnomalyKind::IntTypeNotIntString, "Invalid values", |judge| {
            format!("Values that are no integers: {}.", judge.shown(all))
        });
        if odd {
            self.feature.domain_info = None;
            return;
        }
        let small = self.push_found(AnomalyKind::IntTypeSmallInt, "Out-of-range values", |judge| match range {
            Some((min, _)) => format!("There are smaller values, down to {min}."),
            None => format!("There are smaller values: {}.", judge.shown(all)),
        });
        let big = self.push_found(AnomalyKind::IntTypeBigInt, "Out-of-range values", |judge| match range {
            Some((_, max)) => format!("There are larger values, up to {max}."),
            None => format!("There are larger values: {}.", judge.shown(all)),
        });
        if let Some(DomainInfo::IntDomain(domain)) = &mut self.feature.domain_info {
            if small {
                domain.min = range.map(|(min, _)| min);
            }
            if big {
                domain.max = range.map(|(_, max)| max);
            }
        }
    }

    fn floats(&mut self, values: &FeatureValues) {
        let all = values.bytes.as_ref().map_or(0, |bytes| bytes.count()) as f64;
        let range = values.floats.as_ref().map(|floats| floats.range());
        let odd = self.push_found(AnomalyKind::FloatTypeStringNotFloat, "Invalid values", |judge| {
            format!("Values that are no numbers: {}.", judge.shown(all))
        });
        let nan = self.push_found(AnomalyKind::FloatTypeHasNan, "Invalid values", |_| "There are NaNs.".to_owned());
        let infinite =
            self.push_found(AnomalyKind::FloatTypeHasInf, "Invalid values", |_| "There are infinities.".to_owned());
        if odd {
            self.feature.domain_info = None;
            return;
        }
        let small = self.push_found(AnomalyKind::FloatTypeSmallFloat, "Out-of-range values", |judge| match range {
            Some((min, _)) => format!("There are smaller values, down to {min}."),
            None => format!("There are smaller values: {}.", judge.shown(all)),
        });
        let big = self.push_found(AnomalyKind::FloatTypeBigFloat, "Out-of-range values", |judge| match range {
            Some((_, max)) => format!("There are larger values, up to {max}."),
            None => format!("There are larger values: {}.", judge.shown(all)),
        });
        if let Some(DomainInfo::FloatDomain(domain)) = &mut self.feature.domain_info {
            domain.disallow_nan = domain.disallow_nan.filter(|_| !nan);
            domain.disallow_inf = domain.disallow_inf.filter(|_| !infinite);
            if small {
                domain.min = range.map(|(min, _)| min as f32);
            }
            if big {
                domain.max = range.map(|(_, max)| max as f32);
            }
        }
    }

    fn unique(&mut self, values: &FeatureValues) {
        let Some(constraints) = &mut self.feature.unique_constraints else { return };
        let Some(bytes) = &values.bytes else {
            let text = "Distinct values are counted of strings alone.";
            self.feature.unique_constraints = None;
            return self.push(AnomalyKind::FeatureTypeNoUnique, "No unique values", text);
        };
        let found = bytes.values.distinct().0 as i64;
        let (least, most) = (constraints.min, constraints.max);
        if let Some(least) = least.filter(|least| found < *least) {
            constraints.min = Some(found);
            let text = format!("There are {found} distinct values, where at least {least} are expected.");
            self.push(AnomalyKind::FeatureTypeLowUnique, "Low number of unique values", text);
        }
        let Some(constraints) = &mut self.feature.unique_constraints else { return };
        if let Some(most) = most.filter(|most| found > *most) {
            constraints.max = Some(found);
            let text = format!("There are {found} distinct values, where at most {most} are expected.");
            self.push(AnomalyKind::FeatureTypeHighUnique, "High number of unique values", text);
        }
    }
}
