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
    bytes::Values,
    feature::FeatureValues,
    infer_schema::{SEQUENCE, feature_type},
    proto::{
        BoolDomain, Feature, FeatureType, FixedShape, Schema, StringDomain, ValueCount,
        feature::{DomainInfo, ShapeType},
    },
    validate::AnomalyKind,
};

/// Distinct values outside of a domain that are remembered for each feature; a domain that would need more is dropped.
const MOST_UNEXPECTED: usize = 400;
/// Bytes of these values, of all features of a schema together, in one thread.
const ALL_UNEXPECTED_BYTES: usize = 16 << 20;
/// The same of one feature, at least.
const LEAST_UNEXPECTED_BYTES: usize = 8 << 10;

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

    pub(crate) fn merge(&mut self, other: Self) {
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
    /// Strings outside of the domain, and how often there are: those that were met first.
    unexpected: Unexpected,
    /// All of these, also those that were too many to remember.
    pub(crate) unexpected_values: u64,
    /// Records that have a list.
    present: u64,
    /// The last of them, by its turn, and how many lists it has.
    turn: u64,
    lists: u64,
}

impl Rule {
    fn new(feature: &Feature, is_list: bool, domains: &Domains<'_>) -> Self {
        let (mut lengths, mut steps, mut shape) = (None, None, None);
        match &feature.shape_type {
            Some(ShapeType::ValueCount(count)) if !is_list => lengths = Some(range(count)),
            Some(ShapeType::ValueCount(_)) => {}
            Some(ShapeType::ValueCounts(counts)) => match (is_list, counts.value_count.as_slice()) {
                (false, [count]) => lengths = Some(range(count)),
                (true, [outer, inner]) => (steps, lengths) = (Some(range(outer)), Some(range(inner))),
                // What is nested otherwise is told once, of the feature.
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
            domain: Domain::new(feature, domains),
            found: BTreeMap::new(),
            missing: Finding::default(),
            unexpected: Unexpected::default(),
            unexpected_values: 0,
            present: 0,
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
        if feature_type(Some(kind)) != self.r#type {
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
            let mut is_refused = false;
            let (domain, found) = (&self.domain, &mut self.found);
            domain.refuse_string(value, &mut |kind| {
                is_refused = true;
                found.entry(kind).or_default().add(place);
            });
            if is_refused {
                self.unexpected_values += 1;
                self.unexpected.add(value, 1);
            }
        });
        length
    }

    fn check_floats(&mut self, values: &[f32], place: Place) -> u64 {
        if !matches!(self.domain, Domain::Any) {
            let (domain, found) = (&self.domain, &mut self.found);
            let mut note = |kind| found.entry(kind).or_default().add(place);
            values.iter().for_each(|value| domain.refuse_float(*value, &mut note));
        }
        values.len() as u64
    }

    fn check_ints(&mut self, values: &[i64], place: Place) -> u64 {
        if !matches!(self.domain, Domain::Any) {
            let (domain, found) = (&self.domain, &mut self.found);
            let mut note = |kind| found.entry(kind).or_default().add(place);
            values.iter().for_each(|value| domain.refuse_int(*value, &mut note));
        }
        values.len() as u64
    }

    /// Strings outside of the domain, and how often there are: of all values, where they were counted one by one. And
    /// whether these are all of them.
    pub(crate) fn unexpected<'a>(&'a self, values: &'a FeatureValues) -> (HashMap<&'a [u8], u64>, bool) {
        let Some(Values::Each { counts, .. }) = values.bytes.as_ref().map(|bytes| &bytes.values) else {
            let known = self.unexpected.counts.iter().map(|(value, count)| (&**value, *count));
            return (known.collect(), !self.unexpected.is_cut);
        };
        let is_refused = |value: &[u8]| {
            let mut is_refused = false;
            self.domain.refuse_string(value, &mut |_| is_refused = true);
            is_refused
        };
        let refused = counts.iter().filter(|(value, _)| is_refused(value));
        let refused: HashMap<_, _> = refused.map(|(value, count)| (&**value, *count)).collect();
        let is_few = refused.len() <= MOST_UNEXPECTED;
        (refused, is_few)
    }

    /// The record in hand, which is of this turn, has it.
    fn touch(&mut self, turn: u64) -> bool {
        let is_first = self.turn != turn;
        self.turn = turn;
        self.present += u64::from(is_first);
        is_first
    }

    /// Ends a record that has it.
    fn end(&mut self, place: Place) {
        self.check_count(self.steps, self.lists, place);
        self.lists = 0;
    }

    fn merge(&mut self, other: Self) {
        for (kind, finding) in other.found {
            self.found.entry(kind).or_default().merge(finding);
        }
        self.missing.merge(other.missing);
        self.unexpected_values += other.unexpected_values;
        self.unexpected.is_cut |= other.unexpected.is_cut;
        other.unexpected.counts.iter().for_each(|(value, count)| self.unexpected.add(value, *count));
    }
}

/// Strings outside of a domain: as many as there is room for.
#[derive(Clone, Debug)]
struct Unexpected {
    counts: HashMap<Box<[u8]>, u64, RandomState>,
    /// Bytes that there is room for.
    room: usize,
    /// Whether there are more.
    is_cut: bool,
}

impl Default for Unexpected {
    fn default() -> Self {
        Self { counts: HashMap::default(), room: ALL_UNEXPECTED_BYTES, is_cut: false }
    }
}

impl Unexpected {
    fn add(&mut self, value: &[u8], times: u64) {
        if let Some(count) = self.counts.get_mut(value) {
            *count += times;
        } else if self.counts.len() < MOST_UNEXPECTED && value.len() <= self.room {
            self.room -= value.len();
            self.counts.insert(value.into(), times);
        } else {
            self.is_cut = true;
        }
    }
}

fn range(count: &ValueCount) -> (u64, u64) {
    let bound = |bound: Option<i64>, otherwise| bound.map_or(otherwise, |bound| bound.try_into().unwrap_or_default());
    (bound(count.min, 0), bound(count.max, u64::MAX))
}

/// Values that a shape has.
pub(crate) fn size(shape: &FixedShape) -> u64 {
    let sizes = shape.dim.iter().map(|dim| u64::try_from(dim.size()).unwrap_or_default());
    sizes.fold(1, u64::saturating_mul)
}

/// The domains of a schema, by name.
type Domains<'a> = HashMap<&'a str, &'a StringDomain>;

impl Domain {
    fn new(feature: &Feature, domains: &Domains<'_>) -> Self {
        let strings = |values: &[String]| values.iter().map(|value| value.as_bytes().into()).collect();
        match &feature.domain_info {
            Some(DomainInfo::Domain(name)) => {
                domains.get(name.as_str()).map_or(Self::Any, |domain| Self::Strings(strings(&domain.value)))
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

    /// Tells `wrong` in which ways a value is not of the domain.
    fn refuse_string(&self, value: &[u8], wrong: &mut impl FnMut(AnomalyKind)) {
        let text = || std::str::from_utf8(value).ok().map(str::trim);
        match self {
            Self::Any => {}
            Self::Strings(values) if values.contains(value) => {}
            Self::Strings(_) if std::str::from_utf8(value).is_err() => wrong(AnomalyKind::EnumTypeInvalidUtf8),
            Self::Strings(_) => wrong(AnomalyKind::EnumTypeUnexpectedStringValues),
            Self::Bools(values) if values.contains(value) => {}
            Self::Bools(_) => wrong(AnomalyKind::BoolTypeUnexpectedString),
            Self::Ints(..) => match text().and_then(|text| text.parse().ok()) {
                Some(number) => self.refuse_int(number, wrong),
                None => wrong(AnomalyKind::IntTypeNotIntString),
            },
            Self::Floats(_) => match text().and_then(|text| text.parse().ok()) {
                Some(number) => self.refuse_float(number, wrong),
                None => wrong(AnomalyKind::FloatTypeStringNotFloat),
            },
        }
    }

    fn refuse_int(&self, value: i64, wrong: &mut impl FnMut(AnomalyKind)) {
        match self {
            Self::Any | Self::Strings(_) | Self::Floats(_) => {}
            Self::Bools(_) => {
                if value < 0 {
                    wrong(AnomalyKind::BoolTypeSmallInt);
                } else if value > 1 {
                    wrong(AnomalyKind::BoolTypeBigInt);
                }
            }
            Self::Ints(min, max) => {
                if value < *min {
                    wrong(AnomalyKind::IntTypeSmallInt);
                }
                if value > *max {
                    wrong(AnomalyKind::IntTypeBigInt);
                }
            }
        }
    }

    fn refuse_float(&self, value: f32, wrong: &mut impl FnMut(AnomalyKind)) {
        match self {
            Self::Any | Self::Strings(_) | Self::Ints(..) => {}
            Self::Bools(_) => {
                if value != 0.0 && value != 1.0 {
                    wrong(AnomalyKind::BoolTypeUnexpectedFloat);
                }
            }
            Self::Floats(floats) => {
                if floats.disallows_nan && value.is_nan() {
                    wrong(AnomalyKind::FloatTypeHasNan);
                }
                if floats.disallows_inf && value.is_infinite() {
                    wrong(AnomalyKind::FloatTypeHasInf);
                }
                if value < floats.min {
                    wrong(AnomalyKind::FloatTypeSmallFloat);
                }
                if value > floats.max {
                    wrong(AnomalyKind::FloatTypeBigFloat);
                }
            }
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
    /// Records that were seen, and the place of the last.
    turn: u64,
    last: Option<Place>,
    /// Rules that the record in hand has lists for.
    touched: Vec<usize>,
    /// Rules that no record lacks, of those since the last time that places went backwards: what comes later is not the
    /// first that lacks them.
    unmissed: Vec<usize>,
}

impl Rules {
    pub(crate) fn new(schema: &Schema) -> Self {
        let mut rules = Self {
            rules: Vec::new(),
            by_name: Default::default(),
            by_number: Default::default(),
            turn: 0,
            last: None,
            touched: Vec::new(),
            unmissed: Vec::new(),
        };
        let mut domains = Domains::new();
        for domain in &schema.string_domain {
            domains.entry(domain.name()).or_insert(domain);
        }
        for (is_list, feature) in features(schema).filter(|(_, feature)| feature.name.is_some()) {
            // Of a name that is given twice, the first counts.
            rules.by_name[usize::from(is_list)].entry(feature.name().to_owned()).or_insert(rules.rules.len());
            rules.rules.push(Rule::new(feature, is_list, &domains));
        }
        rules.unmissed = (0..rules.rules.len()).collect();
        let room = (ALL_UNEXPECTED_BYTES / rules.rules.len().max(1)).max(LEAST_UNEXPECTED_BYTES);
        rules.rules.iter_mut().for_each(|rule| rule.unexpected.room = room);
        rules
    }

    /// The rule about a feature, or a feature list, of this name.
    pub(crate) fn of(&self, is_list: bool, name: &str) -> Option<&Rule> {
        self.rules.get(*self.by_name[usize::from(is_list)].get(name)?)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (rule, mut part) in self.rules.iter_mut().zip(other.rules) {
            part.missing.records = other.turn - part.present;
            rule.merge(part);
        }
    }

    fn touch(&mut self, index: usize) {
        if self.rules[index].touch(self.turn) {
            self.touched.push(index);
        }
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
        if self.last.is_some_and(|last| place < last) {
            self.unmissed = (0..self.rules.len()).collect();
        }
        self.last = Some(place);
        // A feature list is there also where it has no step.
        for list in record.features().filter(|feature| feature.role == Role::Sequence) {
            if let Some(index) = self.index_of(list) {
                self.touch(index);
            }
        }
        record.each_list(|feature, list| {
            let Some(index) = self.index_of(feature) else { return };
            if !matches!(list, ValueList::Unset) {
                self.touch(index);
            }
            self.rules[index].check(list, place);
        });
        for index in self.touched.drain(..) {
            self.rules[index].end(place);
        }
        let (rules, turn) = (&mut self.rules, self.turn);
        self.unmissed.retain(|index| {
            let rule = &mut rules[*index];
            if rule.turn != turn {
                rule.missing.first = Some(rule.missing.first.map_or(place, |first| first.min(place)));
            }
            rule.turn == turn
        });
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
