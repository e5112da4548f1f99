//! What a schema asks of each list of a feature, and in which records that was not so.
//!
//! What it asks of all records together, such as how many have a feature, is `validate.rs`'s.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState;
use tfarrow_codec::{
    Kind, Place, Role,
    infer::{BytesValues, RecordObserver, SeenFeature, SeenRecord, ValueList},
};

use crate::{
    infer_schema::SEQUENCE,
    proto::{BoolDomain, Feature, FeatureType, Schema, ValueCount, feature::DomainInfo, feature::ShapeType},
    validate::AnomalyKind,
};

/// Distinct values outside of a domain that are remembered for each feature: as many as TFDV lets a domain have.
pub(crate) const MOST_UNEXPECTED: usize = 400;

/// In how many records something was found, and in which first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Finding {
    pub(crate) records: u64,
    pub(crate) first: Option<Place>,
    last: Option<Place>,
}

impl Finding {
    /// Counts a record, once however often it is told of. A record is told of by one thread, before it goes on.
    fn add(&mut self, place: Place) {
        if self.last != Some(place) {
            self.records += 1;
            self.last = Some(place);
        }
        self.first = Some(self.first.map_or(place, |first| first.min(place)));
    }

    fn merge(&mut self, other: Self) {
        self.records += other.records;
        self.first = [self.first, other.first].into_iter().flatten().min();
    }
}

/// What values a feature may have.
#[derive(Clone, Debug)]
enum Domain {
    /// Any.
    Any,
    /// One of these strings.
    Strings(HashSet<Box<[u8]>>),
    /// 0 or 1, or one of these strings.
    Bools(HashSet<Box<[u8]>>),
    /// An integer, or a string that is one, in this range.
    Ints(i64, i64),
    /// A number, or a string that is one.
    Floats(Floats),
}

#[derive(Clone, Copy, Debug)]
struct Floats {
    min: f32,
    max: f32,
    disallows_nan: bool,
    disallows_inf: bool,
}

/// What is asked of one feature, and what was found.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    r#type: FeatureType,
    /// Values of a list, from the fewest to the most.
    lengths: Option<(u64, u64)>,
    /// Steps of a feature list, likewise.
    steps: Option<(u64, u64)>,
    /// Values that every record has.
    shape: Option<u64>,
    domain: Domain,
    pub(crate) found: BTreeMap<AnomalyKind, Finding>,
    /// Records that have no list.
    pub(crate) missing: Finding,
    /// Strings outside of the domain, and how often there are.
    pub(crate) unexpected: HashMap<Box<[u8]>, u64, RandomState>,
    /// All of these, also those that were too many to remember.
    pub(crate) unexpected_values: u64,
    /// The last record that has a list, by its turn, and how many lists.
    turn: u64,
    lists: u64,
}

impl Rule {
    fn new(feature: &Feature, schema: &Schema) -> Self {
        let (mut lengths, mut steps, mut shape) = (None, None, None);
        match &feature.shape_type {
            Some(ShapeType::ValueCount(count)) => lengths = Some(range(count)),
            Some(ShapeType::ValueCounts(counts)) => match counts.value_count.as_slice() {
                [count] => lengths = Some(range(count)),
                [outer, inner] => (steps, lengths) = (Some(range(outer)), Some(range(inner))),
                _ => {}
            },
            Some(ShapeType::Shape(fixed)) => shape = Some(size(fixed)),
            None => {}
        }
        Self {
            r#type: feature.r#type(),
            lengths,
            steps,
            shape,
            domain: Domain::new(feature, schema),
            found: BTreeMap::new(),
            missing: Finding::default(),
            unexpected: HashMap::default(),
            unexpected_values: 0,
            turn: 0,
            lists: 0,
        }
    }

    fn note(&mut self, kind: AnomalyKind, place: Place) {
        self.found.entry(kind).or_default().add(place);
    }

    /// Looks at a list of the record in hand.
    fn check(&mut self, list: ValueList<'_>, place: Place) {
        self.lists += 1;
        let (kind, length) = match list {
            ValueList::Unset => return,
            ValueList::Bytes(values) => (Kind::Bytes, self.check_bytes(values, place)),
            ValueList::Float(values) => (Kind::Float, self.check_floats(values, place)),
            ValueList::Int64(values) => (Kind::Int64, self.check_ints(values, place)),
        };
        if crate::infer_schema::feature_type(Some(kind)) != self.r#type {
            self.note(AnomalyKind::UnexpectedDataType, place);
        }
        if self.shape.is_some_and(|shape| shape != length) {
            self.note(AnomalyKind::InvalidFeatureShape, place);
        }
        self.check_count(self.lengths, length, place);
    }

    fn check_count(&mut self, range: Option<(u64, u64)>, count: u64, place: Place) {
        let (fewest, most) = range.unwrap_or((0, u64::MAX));
        if count < fewest {
            self.note(AnomalyKind::FeatureTypeLowNumberValues, place);
        }
        if count > most {
            self.note(AnomalyKind::FeatureTypeHighNumberValues, place);
        }
    }

    fn check_bytes(&mut self, values: BytesValues<'_>, place: Place) -> u64 {
        let mut length = 0;
        values.each(|value| {
            length += 1;
            let Some(kind) = self.domain.refuses_string(value) else { return };
            self.note(kind, place);
            self.unexpected_values += 1;
            if let Some(count) = self.unexpected.get_mut(value) {
                *count += 1;
            } else if self.unexpected.len() <= MOST_UNEXPECTED {
                self.unexpected.insert(value.into(), 1);
            }
        });
        length
    }

    fn check_floats(&mut self, values: &[f32], place: Place) -> u64 {
        if !matches!(self.domain, Domain::Any) {
            for value in values {
                if let Some(kind) = self.domain.refuses_float(*value) {
                    self.note(kind, place);
                }
            }
        }
        values.len() as u64
    }

    fn check_ints(&mut self, values: &[i64], place: Place) -> u64 {
        if !matches!(self.domain, Domain::Any) {
            for value in values {
                if let Some(kind) = self.domain.refuses_int(*value) {
                    self.note(kind, place);
                }
            }
        }
        values.len() as u64
    }

    /// Ends the record in hand, which is of this turn.
    fn end(&mut self, turn: u64, place: Place) {
        if self.turn != turn {
            self.missing.add(place);
            if self.shape.is_some() {
                self.note(AnomalyKind::InvalidFeatureShape, place);
            }
        } else {
            self.check_count(self.steps, self.lists, place);
        }
        self.lists = 0;
    }

    fn merge(&mut self, other: Self) {
        for (kind, finding) in other.found {
            self.found.entry(kind).or_default().merge(finding);
        }
        self.missing.merge(other.missing);
        self.unexpected_values += other.unexpected_values;
        for (value, count) in other.unexpected {
            *self.unexpected.entry(value).or_default() += count;
        }
    }
}

fn range(count: &ValueCount) -> (u64, u64) {
    let bound = |bound: Option<i64>, otherwise| bound.map_or(otherwise, |bound| bound.try_into().unwrap_or_default());
    (bound(count.min, 0), bound(count.max, u64::MAX))
}

/// Values that a shape has.
pub(crate) fn size(shape: &crate::proto::FixedShape) -> u64 {
    let sizes = shape.dim.iter().map(|dim| u64::try_from(dim.size()).unwrap_or_default());
    sizes.fold(1, u64::saturating_mul)
}

impl Domain {
    fn new(feature: &Feature, schema: &Schema) -> Self {
        let strings = |values: &[String]| values.iter().map(|value| value.as_bytes().into()).collect();
        match &feature.domain_info {
            Some(DomainInfo::Domain(name)) => {
                let named = schema.string_domain.iter().find(|domain| domain.name() == name);
                named.map_or(Self::Any, |domain| Self::Strings(strings(&domain.value)))
            }
            Some(DomainInfo::StringDomain(domain)) => Self::Strings(strings(&domain.value)),
            Some(DomainInfo::BoolDomain(BoolDomain { true_value, false_value, .. })) => {
                Self::Bools([true_value, false_value].into_iter().flatten().map(|v| v.as_bytes().into()).collect())
            }
            Some(DomainInfo::IntDomain(domain)) => {
                Self::Ints(domain.min.unwrap_or(i64::MIN), domain.max.unwrap_or(i64::MAX))
            }
            Some(DomainInfo::FloatDomain(domain)) => Self::Floats(Floats {
                min: domain.min.unwrap_or(f32::NEG_INFINITY),
                max: domain.max.unwrap_or(f32::INFINITY),
                disallows_nan: domain.disallow_nan(),
                disallows_inf: domain.disallow_inf(),
            }),
            // Nothing is known here of images, languages, machine identifiers, URLs and times.
            _ => Self::Any,
        }
    }

    fn refuses_string(&self, value: &[u8]) -> Option<AnomalyKind> {
        let text = || std::str::from_utf8(value).ok().map(str::trim);
        match self {
            Self::Any => None,
            Self::Strings(values) if values.contains(value) => None,
            Self::Strings(_) if std::str::from_utf8(value).is_err() => Some(AnomalyKind::EnumTypeInvalidUtf8),
            Self::Strings(_) => Some(AnomalyKind::EnumTypeUnexpectedStringValues),
            Self::Bools(values) => (!values.contains(value)).then_some(AnomalyKind::BoolTypeUnexpectedString),
            Self::Ints(..) => match text().and_then(|text| text.parse().ok()) {
                Some(number) => self.refuses_int(number),
                None => Some(AnomalyKind::IntTypeNotIntString),
            },
            Self::Floats(_) => match text().and_then(|text| text.parse().ok()) {
                Some(number) => self.refuses_float(number),
                None => Some(AnomalyKind::FloatTypeStringNotFloat),
            },
        }
    }

    fn refuses_int(&self, value: i64) -> Option<AnomalyKind> {
        match self {
            Self::Any | Self::Strings(_) | Self::Floats(_) => None,
            Self::Bools(_) if value < 0 => Some(AnomalyKind::BoolTypeSmallInt),
            Self::Bools(_) => (value > 1).then_some(AnomalyKind::BoolTypeBigInt),
            Self::Ints(min, _) if value < *min => Some(AnomalyKind::IntTypeSmallInt),
            Self::Ints(_, max) => (value > *max).then_some(AnomalyKind::IntTypeBigInt),
        }
    }

    fn refuses_float(&self, value: f32) -> Option<AnomalyKind> {
        match self {
            Self::Any | Self::Strings(_) | Self::Ints(..) => None,
            Self::Bools(_) => (value != 0.0 && value != 1.0).then_some(AnomalyKind::BoolTypeUnexpectedFloat),
            Self::Floats(floats) if value.is_nan() => floats.disallows_nan.then_some(AnomalyKind::FloatTypeHasNan),
            Self::Floats(floats) if floats.disallows_inf && value.is_infinite() => Some(AnomalyKind::FloatTypeHasInf),
            Self::Floats(floats) if value < floats.min => Some(AnomalyKind::FloatTypeSmallFloat),
            Self::Floats(floats) => (value > floats.max).then_some(AnomalyKind::FloatTypeBigFloat),
        }
    }
}

/// What is asked of all features, and looks at records.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    /// Rules by what they are about: features, and feature lists.
    by_name: [HashMap<String, usize>; 2],
    /// Rules by the numbers that features have in this thread; `None` where that was not looked up yet.
    by_number: [Vec<Option<Option<usize>>>; 2],
    turn: u64,
}

impl Rules {
    pub(crate) fn new(schema: &Schema) -> Self {
        let mut rules = Self { rules: Vec::new(), by_name: Default::default(), by_number: Default::default(), turn: 0 };
        for (is_list, feature) in features(schema) {
            rules.by_name[usize::from(is_list)].insert(feature.name().to_owned(), rules.rules.len());
            rules.rules.push(Rule::new(feature, schema));
        }
        rules
    }

    /// The rule about a feature, or a feature list, of this name.
    pub(crate) fn of(&self, is_list: bool, name: &str) -> Option<&Rule> {
        self.rules.get(*self.by_name[usize::from(is_list)].get(name)?)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.rules.iter_mut().zip(other.rules).for_each(|(rule, other)| rule.merge(other));
    }

    fn index_of(&mut self, feature: SeenFeature<'_>) -> Option<usize> {
        let side = usize::from(feature.role == Role::Sequence);
        let known = &mut self.by_number[side];
        if feature.number >= known.len() {
            known.resize(feature.number + 1, None);
        }
        *known[feature.number].get_or_insert_with(|| self.by_name[side].get(feature.name).copied())
    }
}

impl RecordObserver for Rules {
    fn record(&mut self, record: &mut SeenRecord<'_>) {
        let place = record.place();
        self.turn += 1;
        let turn = self.turn;
        // A feature list is there also where it has no step.
        for list in record.features().filter(|feature| feature.role == Role::Sequence) {
            if let Some(index) = self.index_of(list) {
                self.rules[index].turn = turn;
            }
        }
        record.each_list(|feature, list| {
            let Some(index) = self.index_of(feature) else { return };
            let rule = &mut self.rules[index];
            if !matches!(list, ValueList::Unset) {
                rule.turn = turn;
            }
            rule.check(list, place);
        });
        self.rules.iter_mut().for_each(|rule| rule.end(turn, place));
    }
}

/// The features of a schema, and whether each is a feature list.
pub(crate) fn features(schema: &Schema) -> impl Iterator<Item = (bool, &Feature)> {
    schema.feature.iter().flat_map(|feature| {
        let steps = match &feature.domain_info {
            Some(DomainInfo::StructDomain(steps)) if feature.name() == SEQUENCE => steps.feature.as_slice(),
            _ => &[],
        };
        let own = (feature.name() != SEQUENCE).then_some((false, feature));
        own.into_iter().chain(steps.iter().map(|step| (true, step)))
    })
}
