//! One feature of a schema, held against what was found of it: TFDV's rules (`anomalies/schema.cc`, `feature_util.cc` and
//! the domains' files there), and how the schema would have to change for the data to be right.

use tfarrow_codec::FeatureSummary;

use crate::{
    feature::FeatureValues,
    infer_schema::{self, non_missing},
    proto::{
        Feature, FeatureType, FixedShape, FloatDomain, IntDomain, LifecycleStage, Schema,
        feature::{DomainInfo, PresenceConstraints, ShapeType},
    },
    rules::{MOST_UNEXPECTED, Rule, size},
    validate::{Anomaly, AnomalyKind},
};

/// Values outside of a domain that are told.
const SHOWN: usize = 20;

/// A feature of the data.
pub(crate) type Seen<'a> = (&'a FeatureSummary, &'a FeatureValues);

/// Whether nothing is asked of a feature in this stage of its life.
fn is_deprecated(feature: &Feature) -> bool {
    use LifecycleStage::{Alpha, DebugOnly, Deprecated, Disabled, Planned};
    let is_out = matches!(feature.lifecycle_stage(), Planned | Alpha | Deprecated | DebugOnly | Disabled);
    feature.deprecated() || (feature.lifecycle_stage.is_some() && is_out)
}

/// Holds what was found of a feature against what the schema says of it, and makes the schema say what was found.
pub(crate) struct Judge<'a> {
    pub(crate) feature: &'a mut Feature,
    /// The schema without its features.
    pub(crate) schema: &'a mut Schema,
    pub(crate) rule: &'a Rule,
    /// Records of the data set.
    pub(crate) records: u64,
    pub(crate) environment: Option<&'a str>,
    pub(crate) found: Vec<Anomaly>,
}

impl Judge<'_> {
    fn push(&mut self, kind: AnomalyKind, short: &'static str, text: impl Into<String>) {
        self.found.push(Anomaly::new(kind, short, text));
    }

    /// Adds what was found in records, if anything.
    fn push_found(&mut self, kind: AnomalyKind, short: &'static str, text: impl FnOnce(&Self) -> String) -> bool {
        let Some(finding) = self.rule.found.get(&kind) else { return false };
        let anomaly = Anomaly::new(kind, short, text(self)).in_records(*finding);
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
    pub(crate) fn all(&mut self, seen: Option<Seen<'_>>) {
        if is_deprecated(self.feature) {
            return;
        }
        self.schema_itself();
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

    /// What the schema says against itself.
    fn schema_itself(&mut self) {
        if self.feature.name.is_none() {
            self.push(AnomalyKind::FeatureMissingName, "unspecified name", "The schema gives it no name.");
            return self.deprecate();
        }
        let has_strings = matches!(self.feature.domain_info, Some(DomainInfo::Domain(_) | DomainInfo::StringDomain(_)));
        if self.feature.r#type.is_none() {
            self.push(AnomalyKind::FeatureMissingType, "unspecified type", "The schema gives it no type.");
            match has_strings {
                true => self.feature.r#type = Some(FeatureType::Bytes.into()),
                false => return self.deprecate(),
            }
        }
        self.own_numbers();
        if !allows(self.feature) {
            let text = format!("Its domain is none of values of type {}.", self.feature.r#type().as_str_name());
            self.push(AnomalyKind::DomainInvalidForType, "The domain does not match the type", text);
            self.feature.domain_info = None;
        }
        if let Some(DomainInfo::Domain(name)) = &self.feature.domain_info
            && !self.schema.string_domain.iter().any(|domain| domain.name() == name)
        {
            let text = format!("The schema has no string_domain {name:?}.");
            self.push(AnomalyKind::InvalidDomainSpecification, "missing domain", text);
            self.feature.domain_info = None;
        }
        let has_strings = matches!(self.feature.domain_info, Some(DomainInfo::Domain(_) | DomainInfo::StringDomain(_)));
        if !has_strings && self.feature.distribution_constraints.take().is_some() {
            let text = "Its distribution_constraints are about the values of a string domain, which it has not.";
            self.push(AnomalyKind::InvalidSchemaSpecification, "distribution constraints require a domain", text);
        }
    }

    /// Numbers of the schema that can be none.
    fn own_numbers(&mut self) {
        let mut wrong = Vec::new();
        if let Some(PresenceConstraints::Presence(presence)) = &mut self.feature.presence_constraints
            && let Some(fraction) = presence.min_fraction.as_mut().filter(|share| !(0.0..=1.0).contains(*share))
        {
            wrong.push(format!("Its min_fraction is {fraction}, and no share."));
            *fraction = fraction.clamp(0.0, 1.0);
        }
        let counts: &mut [_] = match &mut self.feature.shape_type {
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
        if matches!(&self.feature.shape_type, Some(ShapeType::Shape(shape)) if is_zero(shape)) {
            wrong.push("A size of its shape is not positive.".to_owned());
            self.feature.shape_type = None;
        }
        for text in wrong {
            self.push(AnomalyKind::InvalidSchemaSpecification, "A number that cannot be", text);
        }
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
        let is_wrong = self.push_found(AnomalyKind::InvalidFeatureShape, "Feature shape dropped", |judge| {
            let least = summary.kinds().map(|(_, seen)| seen.min_len).min().unwrap_or_default();
            let most = summary.kinds().map(|(_, seen)| seen.max_len).max().unwrap_or_default();
            let found = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let without = match judge.records - present {
                0 => String::new(),
                without => format!(", and {without} records have none"),
            };
            format!("Its shape has {size} values in every record; there are {found}{without}.")
        });
        if is_wrong {
            self.feature.shape_type = None;
        }
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

    fn domain(&mut self, values: &FeatureValues) {
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
        let words = self.rule.unexpected.keys().map(|value| String::from_utf8_lossy(value).into_owned());
        let mut words: Vec<_> = words.collect();
        words.sort_unstable();
        let Some(domain) = self.string_domain().filter(|_| is_found) else { return };
        domain.extend(words);
        let size = domain.len();
        if size > MOST_UNEXPECTED {
            let text = format!("Its domain would have {size} values and more.");
            self.push(AnomalyKind::InvalidDomainSpecification, "String domain has too many values", text);
            self.drop_strings();
        }
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
        let mut values: Vec<_> = self.rule.unexpected.iter().map(|(value, count)| (&**value, *count)).collect();
        values.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let word = |(value, count): &(&[u8], u64)| {
            let share = 100.0 * *count as f64 / all;
            let share = if share < 1.0 { "<1%".to_owned() } else { format!("~{}%", share.floor()) };
            format!("{:?} ({share})", String::from_utf8_lossy(value))
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
                FloatDomain { min: Some(floats.0 as f32), max: Some(floats.1 as f32), ..FloatDomain::default() };
            self.feature.domain_info = Some(DomainInfo::FloatDomain(domain));
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
        let small = self.push_found(AnomalyKind::IntTypeSmallInt, "Out-of-range values", |judge| match range {
            Some((min, _)) => format!("There are smaller values, down to {min}."),
            None => format!("There are smaller values: {}.", judge.shown(all)),
        });
        let big = self.push_found(AnomalyKind::IntTypeBigInt, "Out-of-range values", |judge| match range {
            Some((_, max)) => format!("There are larger values, up to {max}."),
            None => format!("There are larger values: {}.", judge.shown(all)),
        });
        if odd {
            self.feature.domain_info = None;
        }
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
        let small = self.push_found(AnomalyKind::FloatTypeSmallFloat, "Out-of-range values", |judge| match range {
            Some((min, _)) => format!("There are smaller values, down to {min}."),
            None => format!("There are smaller values: {}.", judge.shown(all)),
        });
        let big = self.push_found(AnomalyKind::FloatTypeBigFloat, "Out-of-range values", |judge| match range {
            Some((_, max)) => format!("There are larger values, up to {max}."),
            None => format!("There are larger values: {}.", judge.shown(all)),
        });
        if odd {
            self.feature.domain_info = None;
        }
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
