//! Zones: the smallest and the largest value of a feature in a block of records.
//!
//! ```text
//! records of a block    {"x": 3}  {"x": 1}  {}  {"x": 2}
//! zone of x             min 1, max 3, 3 values
//! ```
//!
//! Only lists of one value have a zone, since only they are scalars in SQL.

use tfarrow_codec::infer::{RecordObserver, SeenRecord, SingleValue};

use crate::sorted::SortedValue;

/// Number of bytes of a byte string that a zone keeps. The minimum is then the first bytes of the
/// smallest value, and the maximum a byte string that is larger than all values.
pub(crate) const BOUND_BYTES: usize = 64;

/// The values of one feature in a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Zone {
    /// No record has a single value.
    #[default]
    Empty,
    /// Of integers.
    Int64(ValueBounds<i64>),
    /// Of floats. NaN has no place among them and is counted; zero has a sign.
    Float {
        /// The [order](float_order) of the values that are not NaN.
        bounds: Option<ValueBounds<i32>>,
        values: u64,
        nans: u64,
    },
    /// Of byte strings.
    Bytes(Box<BytesBounds>),
    /// The feature has values of several kinds.
    Mixed,
}

/// The smallest and the largest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueBounds<T> {
    pub(crate) min: T,
    pub(crate) max: T,
    /// Number of values.
    pub(crate) values: u64,
    /// Whether no value is smaller than the one before it.
    is_sorted: bool,
}

/// The bounds of byte strings, each cut after [`BOUND_BYTES`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BytesBounds {
    pub(crate) min: Vec<u8>,
    pub(crate) max: Vec<u8>,
    /// The [heads](head) of both.
    min_head: u64,
    max_head: u64,
    /// Whether a value that begins with `max` is longer than it.
    pub(crate) is_cut: bool,
    pub(crate) values: u64,
    /// Whether no value is cut, or smaller than the one before it.
    is_sorted: bool,
}

impl<T: Ord + Copy> ValueBounds<T> {
    fn of(value: T) -> Self {
        Self {
            min: value,
            max: value,
            values: 1,
            is_sorted: true,
        }
    }

    #[inline]
    fn add(&mut self, value: T) {
        // The largest of sorted values is the last one.
        self.is_sorted &= value >= self.max;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.values += 1;
    }

    /// Adds the values that follow.
    fn merge(&mut self, other: Self) {
        self.is_sorted &= other.is_sorted && self.max <= other.min;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.values += other.values;
    }
}

impl BytesBounds {
    fn of(value: &[u8]) -> Self {
        let cut = cut(value);
        Self {
            min: cut.to_vec(),
            max: cut.to_vec(),
            min_head: head(value),
            max_head: head(value),
            is_cut: cut.len() < value.len(),
            values: 1,
            is_sorted: cut.len() == value.len(),
        }
    }

    #[inline]
    fn add(&mut self, value: &[u8]) {
        self.values += 1;
        let head = head(value);
        // Most values are between the bounds, as their first bytes show.
        if head > self.min_head && head < self.max_head {
            self.is_sorted = false;
            return;
        }
        let cut = cut(value);
        self.is_sorted = self.is_sorted && cut.len() == value.len() && *cut >= *self.max;
        self.add_min(cut);
        self.add_max(cut, cut.len() < value.len());
    }

    fn add_min(&mut self, cut: &[u8]) {
        if *cut < *self.min {
            cut.clone_into(&mut self.min);
            self.min_head = head(cut);
        }
    }

    fn add_max(&mut self, cut: &[u8], is_cut: bool) {
        if *cut > *self.max {
            cut.clone_into(&mut self.max);
            self.max_head = head(cut);
            self.is_cut = is_cut;
        } else if is_cut && *cut == *self.max {
            self.is_cut = true;
        }
    }

    /// Adds the values that follow.
    fn merge(&mut self, other: &Self) {
        self.is_sorted = self.is_sorted && other.is_sorted && self.max <= other.min;
        self.values += other.values;
        self.add_min(&other.min);
        self.add_max(&other.max, other.is_cut);
    }

    /// A byte string that is not smaller than any value; `None` if there is none. That of text is
    /// text.
    pub(crate) fn upper(&self) -> Option<Vec<u8>> {
        if !self.is_cut {
            return Some(self.max.clone());
        }
        match str::from_utf8(text_prefix(&self.max)) {
            Ok(text) if text.len() + 3 >= self.max.len() => next_text(text),
            _ => next_bytes(&self.max),
        }
    }

    /// A byte string that is not larger than any value. That of text is text.
    pub(crate) fn lower(&self) -> &[u8] {
        let text = text_prefix(&self.min);
        // A character of text is cut after at most three of its bytes.
        let is_cut_text = self.min.len() == BOUND_BYTES && text.len() + 3 >= self.min.len();
        if is_cut_text { text } else { &self.min }
    }
}

/// The first eight bytes of a value as a number, whose order is that of the values if two differ.
#[inline]
fn head(value: &[u8]) -> u64 {
    if let Some(first) = value.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(value) {
        *to = *from;
    }
    u64::from_be_bytes(first)
}

/// The first bytes of a value.
fn cut(value: &[u8]) -> &[u8] {
    value.get(..BOUND_BYTES).unwrap_or(value)
}

/// The longest prefix that is UTF-8.
fn text_prefix(bytes: &[u8]) -> &[u8] {
    match str::from_utf8(bytes) {
        Ok(text) => text.as_bytes(),
        Err(error) => bytes.get(..error.valid_up_to()).unwrap_or_default(),
    }
}

/// The smallest text, of at most as many characters, that is larger than all texts that begin with
/// `text`.
fn next_text(text: &str) -> Option<Vec<u8>> {
    let mut rest = text;
    while let Some(last) = rest.chars().next_back() {
        rest = rest.strip_suffix(last)?;
        // The surrogates are no characters.
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            return Some(format!("{rest}{next}").into_bytes());
        }
    }
    None
}

/// The smallest byte string, of at most as many bytes, that is larger than all that begin with
/// `bytes`.
fn next_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let end = bytes.iter().rposition(|byte| *byte != 0xff)?;
    let mut next = bytes.get(..=end)?.to_vec();
    if let Some(last) = next.last_mut() {
        *last += 1;
    }
    Some(next)
}

/// A number that orders floats as [`f32::total_cmp`] does.
fn float_order(value: f32) -> i32 {
    let bits = value.to_bits() as i32;
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

/// The float of an [order](float_order).
fn ordered_float(order: i32) -> f32 {
    let bits = order ^ (((order >> 31) as u32) >> 1) as i32;
    f32::from_bits(bits as u32)
}

impl Zone {
    /// Adds a value.
    #[inline]
    pub(crate) fn add(&mut self, value: SingleValue<'_>) {
        match (&mut *self, value) {
            (Self::Int64(bounds), SingleValue::Int64(value)) => bounds.add(value),
            (
                Self::Float {
                    bounds: Some(bounds),
                    values,
                    ..
                },
                SingleValue::Float(value),
            ) if !value.is_nan() => {
                *values += 1;
                bounds.add(float_order(value));
            }
            (Self::Bytes(bounds), SingleValue::Bytes(value)) => bounds.add(value),
            _ => self.merge(&Self::of(value)),
        }
    }

    fn of(value: SingleValue<'_>) -> Self {
        match value {
            SingleValue::Int64(value) => Self::Int64(ValueBounds::of(value)),
            SingleValue::Float(value) => Self::Float {
                bounds: (!value.is_nan()).then(|| ValueBounds::of(float_order(value))),
                values: 1,
                nans: u64::from(value.is_nan()),
            },
            SingleValue::Bytes(value) => Self::Bytes(Box::new(BytesBounds::of(value))),
        }
    }

    /// Adds the values of another block. Whether the values are sorted is then known only if the other
    /// block follows.
    pub(crate) fn merge(&mut self, other: &Self) {
        match (&mut *self, other) {
            (_, Self::Empty) => {}
            (Self::Empty, _) => *self = other.clone(),
            (Self::Int64(bounds), Self::Int64(other)) => bounds.merge(*other),
            (
                Self::Float {
                    bounds,
                    values,
                    nans,
                },
                Self::Float {
                    bounds: other,
                    values: other_values,
                    nans: other_nans,
                },
            ) => {
                *values += other_values;
                *nans += other_nans;
                match (bounds, other) {
                    (Some(bounds), Some(other)) => bounds.merge(*other),
                    (bounds @ None, other) => *bounds = *other,
                    (Some(_), None) => {}
                }
            }
            (Self::Bytes(bounds), Self::Bytes(other)) => bounds.merge(other),
            _ => *self = Self::Mixed,
        }
    }

    /// The smallest and the largest integer.
    pub(crate) fn integers(&self) -> [Option<i64>; 2] {
        match self {
            Self::Int64(bounds) => [Some(bounds.min), Some(bounds.max)],
            _ => [None, None],
        }
    }

    /// The smallest and the largest float that is not NaN.
    pub(crate) fn floats(&self) -> [Option<f32>; 2] {
        match self {
            Self::Float {
                bounds: Some(bounds),
                ..
            } => [bounds.min, bounds.max].map(|order| Some(ordered_float(order))),
            _ => [None, None],
        }
    }

    /// The bounds of byte strings.
    pub(crate) fn bytes(&self) -> [Option<Vec<u8>>; 2] {
        match self {
            Self::Bytes(bounds) => [Some(bounds.lower().to_vec()), bounds.upper()],
            _ => [None, None],
        }
    }

    /// The first and the last of the values, if they are `count` integers or texts, and none is smaller
    /// than the one before it.
    pub(crate) fn sorted_ends(&self, count: u64) -> Option<(SortedValue, SortedValue)> {
        match self {
            Self::Int64(bounds) if bounds.is_sorted && bounds.values == count => Some((
                SortedValue::Int64(bounds.min),
                SortedValue::Int64(bounds.max),
            )),
            Self::Bytes(bounds) if bounds.is_sorted && bounds.values == count => {
                let first = str::from_utf8(&bounds.min).ok()?;
                let last = str::from_utf8(&bounds.max).ok()?;
                Some((
                    SortedValue::Text(first.to_owned()),
                    SortedValue::Text(last.to_owned()),
                ))
            }
            _ => None,
        }
    }

    /// The number of values.
    pub(crate) fn values(&self) -> u64 {
        match self {
            Self::Empty | Self::Mixed => 0,
            Self::Int64(bounds) => bounds.values,
            Self::Float { values, .. } => *values,
            Self::Bytes(bounds) => bounds.values,
        }
    }
}

/// An observer that collects the zones of a block, by the numbers of the features in the summary
/// that observes the records.
#[derive(Debug, Default)]
pub(crate) struct ZoneCollector {
    pub(crate) zones: Vec<Zone>,
}

impl RecordObserver for ZoneCollector {
    fn record(&mut self, record: &mut SeenRecord<'_>) {
        record.each_single_value(|number, value| {
            if self.zones.len() <= number {
                self.zones.resize(number + 1, Zone::Empty);
            }
            if let Some(zone) = self.zones.get_mut(number) {
                zone.add(value);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zone_of_bytes(values: &[Vec<u8>]) -> BytesBounds {
        let mut zone = Zone::Empty;
        for value in values {
            zone.add(SingleValue::Bytes(value));
        }
        match zone {
            Zone::Bytes(bounds) => *bounds,
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn bounds_of_bytes_hold_all_values(
            values in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..3),
                    prop::collection::vec(prop_oneof![Just(0xffu8), Just(b'a')], 60..70),
                    "[a\u{d7ff}\u{10ffff}é]{60,70}".prop_map(String::into_bytes),
                    "[a-c]{0,2}".prop_map(String::into_bytes),
                ],
                1..20,
            )
        ) {
            let bounds = zone_of_bytes(&values);
            let upper = bounds.upper();
            for value in &values {
                prop_assert!(bounds.lower() <= value.as_slice());
                if let Some(upper) = &upper {
                    prop_assert!(upper >= value);
                }
            }
            if values.iter().all(|value| str::from_utf8(value).is_ok()) {
                prop_assert!(str::from_utf8(bounds.lower()).is_ok());
                if let Some(upper) = &upper {
                    prop_assert!(str::from_utf8(upper).is_ok());
                }
            }
            prop_assert!(bounds.min.len() <= BOUND_BYTES && bounds.max.len() <= BOUND_BYTES);
            prop_assert_eq!(bounds.values, values.len() as u64);
        }

        #[test]
        fn floats_have_the_total_order(a in any::<u32>(), b in any::<u32>()) {
            let (a, b) = (f32::from_bits(a), f32::from_bits(b));
            prop_assert_eq!(float_order(a).cmp(&float_order(b)), a.total_cmp(&b));
            prop_assert_eq!(ordered_float(float_order(a)).to_bits(), a.to_bits());
        }

        #[test]
        fn zones_merge_in_any_division(
            values in prop::collection::vec(
                prop_oneof![Just(f32::NAN), Just(-0.0), Just(0.0), any::<f32>()],
                0..20,
            ),
            cut in 0usize..20,
        ) {
            let of = |values: &[f32]| {
                let mut zone = Zone::Empty;
                values.iter().for_each(|value| zone.add(SingleValue::Float(*value)));
                zone
            };
            let cut = cut.min(values.len());
            let mut merged = of(&values[..cut]);
            merged.merge(&of(&values[cut..]));
            prop_assert_eq!(&merged, &of(&values));
            if let Zone::Float { bounds, nans, .. } = merged {
                let finite = values.iter().filter(|value| !value.is_nan());
                prop_assert_eq!(nans as usize, values.iter().filter(|value| value.is_nan()).count());
                let least = finite.copied().min_by(f32::total_cmp);
                prop_assert_eq!(bounds.map(|bounds| bounds.min), least.map(float_order));
            }
        }
    }

    proptest! {
        #[test]
        fn sorted_values_are_recognized(
            mut numbers in prop::collection::vec(0i64..9, 1..6),
            mut texts in prop::collection::vec("[ab]{0,3}|a{64,66}", 1..6),
            sort in any::<bool>(),
        ) {
            if sort {
                numbers.sort_unstable();
                texts.sort_unstable();
            }
            let mut zone = Zone::Empty;
            for number in &numbers {
                zone.add(SingleValue::Int64(*number));
            }
            let ends = numbers.is_sorted().then(|| {
                (SortedValue::Int64(numbers[0]), SortedValue::Int64(numbers[numbers.len() - 1]))
            });
            prop_assert_eq!(zone.sorted_ends(numbers.len() as u64), ends);
            prop_assert_eq!(zone.sorted_ends(numbers.len() as u64 + 1), None);
            let mut zone = Zone::Empty;
            for text in &texts {
                zone.add(SingleValue::Bytes(text.as_bytes()));
            }
            let is_short = texts.iter().all(|text| text.len() <= BOUND_BYTES);
            let ends = (is_short && texts.is_sorted()).then(|| {
                let last = texts[texts.len() - 1].clone();
                (SortedValue::Text(texts[0].clone()), SortedValue::Text(last))
            });
            prop_assert_eq!(zone.sorted_ends(texts.len() as u64), ends);
        }
    }

    #[test]
    fn a_feature_of_two_kinds_has_no_bounds() {
        let mut zone = Zone::Empty;
        zone.add(SingleValue::Int64(1));
        zone.add(SingleValue::Bytes(b"1"));
        zone.add(SingleValue::Int64(2));
        assert_eq!((zone.clone(), zone.values()), (Zone::Mixed, 0));
    }
}
