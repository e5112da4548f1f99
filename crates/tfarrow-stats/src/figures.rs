//! The figures of a data set: what reports print, and `DatasetFeatureStatisticsList` holds.

use std::collections::HashMap;

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use foldhash::fast::RandomState;
use serde::Serialize;
use tfarrow_codec::{FeatureSummary, Kind, KindSummary, Role};

use crate::{
    bytes::{Bytes, Values},
    feature::FeatureValues,
    formats::{Format, is_text},
    images::Images,
    numbers::{Number, Numbers},
    quantiles::{Bucket, Quantiles},
    sample::{Sample, Sampled},
    statistics::Statistics,
};

/// Buckets of a histogram, and parts that deciles cut values into.
const PARTS: u32 = 10;
/// Values that are listed by how often there are.
const RANKS: usize = 1_000;
/// Bytes of a value that are shown to programs.
const SHOWN: usize = 256;

/// The figures of a data set.
#[derive(Clone, Debug, Serialize)]
pub struct DatasetFigures {
    /// Records.
    pub records: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Shards that they are of, and shards that there are, where only a part of the data set was looked at.
    pub sampled: Option<(usize, usize)>,
    /// By name.
    pub features: Vec<FeatureFigures>,
}

/// The figures of one feature.
#[derive(Clone, Debug, Serialize)]
pub struct FeatureFigures {
    /// Its name.
    pub name: String,
    /// Whether it is a feature list.
    pub is_list: bool,
    /// Records that have it, also those that have no kind for it.
    pub present: u64,
    /// Records that do not.
    pub missing: u64,
    /// Records, or steps of a feature list, that have it with no kind set.
    pub unset: u64,
    /// The fewest and the most steps of a feature list.
    pub steps: Option<(u64, u64)>,
    /// The figures of each kind that it has.
    pub kinds: Vec<KindFigures>,
}

/// The figures of what a feature has of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct KindFigures {
    /// `bytes_list`, `float_list` or `int64_list`.
    pub kind: &'static str,
    #[serde(skip)]
    pub(crate) kind_of: Kind,
    /// Lists: one a record, or one a step.
    pub lists: u64,
    /// Lists without a value.
    pub empty: u64,
    /// Values of all lists.
    pub values: u64,
    /// How many values a list has.
    pub lengths: Lengths,
    /// What numbers are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<NumberFigures>,
    /// What byte strings are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strings: Option<StringFigures>,
}

/// How many values lists have.
#[derive(Clone, Debug, Serialize)]
pub struct Lengths {
    /// Of the shortest.
    pub min: u64,
    /// On average.
    pub mean: f64,
    /// Of the longest.
    pub max: u64,
    /// From the shortest to the longest, 11 figures.
    pub deciles: Vec<f64>,
    /// How many lists the deciles were taken of, where that is not all of them.
    pub sampled: Option<u64>,
    #[serde(skip)]
    pub(crate) quantiles: Vec<Bucket>,
}

/// What numbers are. Those about all of them leave NaNs out.
#[derive(Clone, Debug, Serialize)]
pub struct NumberFigures {
    /// Those that are no NaN.
    pub count: u64,
    /// NaNs.
    pub nan: u64,
    /// Zeros.
    pub zeros: u64,
    /// Infinities above all numbers.
    pub positive_infinities: u64,
    /// Infinities below all numbers.
    pub negative_infinities: u64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation, as of all there are.
    pub std_dev: f64,
    /// The smallest; of integers exact below 2^53.
    pub min: f64,
    /// The middle one.
    pub median: f64,
    /// The largest.
    pub max: f64,
    /// From the smallest to the largest, 11 figures.
    pub deciles: Vec<f64>,
    /// Buckets of one width.
    pub histogram: Vec<Bucket>,
    /// Buckets of as many values each.
    pub quantiles: Vec<Bucket>,
    /// How many values the median, the deciles and the histograms were taken of, where that is not all of them.
    pub sampled: Option<u64>,
}

/// What byte strings are.
#[derive(Clone, Debug, Serialize)]
pub struct StringFigures {
    /// All of them.
    pub total: u64,
    /// Distinct ones.
    pub distinct: u64,
    /// Whether that is exact, and not estimated.
    pub is_distinct_exact: bool,
    /// Bytes of the shortest.
    pub min_length: u64,
    /// Bytes on average.
    pub mean_length: f64,
    /// Bytes of the longest.
    pub max_length: u64,
    /// How many are no UTF-8.
    pub invalid_utf8: u64,
    /// What they look like, and how many of them.
    pub formats: Vec<(&'static str, u64)>,
    /// How large those that are images are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageFigures>,
    /// Those that there are most of.
    pub top: Vec<Top>,
    /// How many values the most frequent ones were taken of, where that is not all of them.
    pub sampled: Option<u64>,
}

/// How large images are, in pixels, by their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ImageFigures {
    /// Images whose headers can be read.
    pub count: u64,
    /// What begins as an image and has no header that can be read.
    pub damaged: u64,
    /// The narrowest and the widest of those that can.
    pub width: Option<(u32, u32)>,
    /// The lowest and the highest.
    pub height: Option<(u32, u32)>,
}

/// A value, and how often there is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Top {
    /// The value, up to 256 bytes of it where it was sampled.
    #[serde(serialize_with = "text_or_bytes")]
    pub value: Box<[u8]>,
    /// How often there is; estimated where values were sampled.
    pub count: f64,
}

impl Top {
    /// What the value looks like.
    pub fn format(&self) -> Format {
        Format::of(&self.value, is_text(&self.value, std::str::from_utf8(&self.value).is_ok()))
    }

    /// The value, if it is text: `None` if it is binary, or has control characters other than white space.
    pub fn text(&self) -> Option<&str> {
        let is_text = matches!(self.format(), Format::Empty | Format::Text | Format::Json);
        std::str::from_utf8(&self.value).ok().filter(|_| is_text)
    }
}

/// A value in words: of a long one the beginning, bytes that are no UTF-8 with a mark in their place.
pub(crate) fn excerpt(value: &[u8]) -> String {
    match value.get(..SHOWN) {
        Some(start) if value.len() > SHOWN => {
            format!("{}…", String::from_utf8_lossy(start).trim_end_matches('\u{fffd}'))
        }
        _ => String::from_utf8_lossy(value).into_owned(),
    }
}

/// As text where it is some, else as `head` and `sql` have it: `{"b64": ".."}`. Long ones are cut.
pub(crate) fn text_or_bytes<S: serde::Serializer>(value: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(value) {
        Ok(text) => serializer.serialize_str(text.get(..text.floor_char_boundary(SHOWN)).unwrap_or(text)),
        Err(_) => {
            let bytes = STANDARD.encode(value.get(..SHOWN).unwrap_or(value));
            std::collections::BTreeMap::from([("b64", bytes)]).serialize(serializer)
        }
    }
}

impl FeatureFigures {
    /// Records without a value that has a kind. Of a feature list, it is steps that have none.
    pub fn absent(&self) -> u64 {
        self.missing + if self.is_list { 0 } else { self.unset }
    }
}

impl Statistics {
    /// The figures.
    pub fn figures(&self) -> DatasetFigures {
        let summary = &self.inferred.summary;
        let features = self.features().map(|(seen, values)| feature(seen, values, summary.records()));
        DatasetFigures {
            records: summary.records(),
            bytes: summary.bytes(),
            sampled: self.inferred.sampled.map(|sampled| (sampled.shards, sampled.of)),
            features: features.collect(),
        }
    }
}

fn feature(seen: &FeatureSummary, values: &FeatureValues, records: u64) -> FeatureFigures {
    FeatureFigures {
        name: seen.name.clone(),
        is_list: seen.role == Role::Sequence,
        present: seen.present,
        missing: records - seen.present,
        unset: seen.unset,
        steps: seen.steps,
        kinds: seen.kinds().map(|(kind, seen)| kind_figures(kind, seen, values)).collect(),
    }
}

fn kind_figures(kind: Kind, seen: &KindSummary, values: &FeatureValues) -> KindFigures {
    let index = kind as usize;
    KindFigures {
        kind: kind.name(),
        kind_of: kind,
        lists: seen.lists,
        empty: values.empty[index],
        values: seen.values,
        lengths: lengths(seen, &values.lengths[index]),
        numbers: match kind {
            Kind::Float => values.floats.as_deref().map(numbers),
            Kind::Int64 => values.ints.as_deref().map(numbers),
            Kind::Bytes => None,
        },
        strings: values.bytes.as_deref().filter(|_| kind == Kind::Bytes).map(strings),
    }
}

/// The size of a sample that is not everything.
fn sampled<T: Sampled>(sample: &Sample<T>) -> Option<u64> {
    (!sample.is_all()).then(|| sample.values().count() as u64)
}

fn deciles(quantiles: &Quantiles) -> Vec<f64> {
    (0..=PARTS).map(|part| quantiles.at(f64::from(part) / f64::from(PARTS))).collect()
}

fn lengths(seen: &KindSummary, sample: &Sample<u64>) -> Lengths {
    let ends = (!sample.is_all()).then_some([seen.min_len as f64, seen.max_len as f64]);
    let lengths = sample.values().map(|length| *length as f64);
    let quantiles = Quantiles::new(lengths.chain(ends.into_iter().flatten()), seen.lists);
    Lengths {
        min: seen.min_len,
        mean: seen.values as f64 / seen.lists as f64,
        max: seen.max_len,
        deciles: deciles(&quantiles),
        sampled: sampled(sample),
        quantiles: quantiles.equal_counts(PARTS),
    }
}

pub(crate) fn numbers<T: Number>(numbers: &Numbers<T>) -> NumberFigures {
    let (min, max) = numbers.range();
    // What is rare may have been missed, but the range is that of all values.
    let finite = numbers.finite.into_iter().flat_map(|(low, high)| [low.to_f64(), high.to_f64()]);
    let ends = finite.chain([min, max]).filter(|_| !numbers.sample.is_all());
    let quantiles = Quantiles::new(numbers.sample.values().map(|value| value.to_f64()).chain(ends), numbers.count());
    NumberFigures {
        count: numbers.count(),
        nan: numbers.nan,
        zeros: numbers.zeros,
        positive_infinities: numbers.positive_infinities,
        negative_infinities: numbers.negative_infinities,
        mean: numbers.mean(),
        std_dev: numbers.std_dev(),
        min,
        median: quantiles.median(),
        max,
        deciles: deciles(&quantiles),
        histogram: quantiles.equal_widths(PARTS),
        quantiles: quantiles.equal_counts(PARTS),
        sampled: sampled(&numbers.sample),
    }
}

fn strings(bytes: &Bytes) -> StringFigures {
    let (distinct, is_distinct_exact) = bytes.values.distinct();
    // An estimate may be more than there are.
    let distinct = distinct.min(bytes.count());
    let (min_length, max_length) = bytes.lengths.unwrap_or_default();
    let formats = Format::ALL.into_iter().zip(bytes.formats).filter(|(_, count)| *count > 0);
    StringFigures {
        total: bytes.count(),
        distinct,
        is_distinct_exact,
        min_length,
        mean_length: bytes.bytes as f64 / bytes.count() as f64,
        max_length,
        invalid_utf8: bytes.invalid_utf8,
        formats: formats.map(|(format, count)| (format.name(), count)).collect(),
        images: images(&bytes.images),
        top: top(bytes),
        sampled: if is_distinct_exact { None } else { sampled(&bytes.sample) },
    }
}

fn images(images: &Images) -> Option<ImageFigures> {
    let Images { read: count, damaged, sizes } = *images;
    let [width, height] = [0, 1].map(|side| sizes.map(|sizes| sizes[side]));
    (count + damaged > 0).then_some(ImageFigures { count, damaged, width, height })
}

/// The most frequent values, of equally frequent ones the last by name first, as TFDV ranks them.
fn top(bytes: &Bytes) -> Vec<Top> {
    let mut top: Vec<(&[u8], f64)> = match &bytes.values {
        Values::Each { counts, .. } => counts.iter().map(|(value, count)| (&**value, *count as f64)).collect(),
        Values::Many(_) => {
            let mut counts = HashMap::<&[u8], u64, RandomState>::default();
            bytes.sample.values().for_each(|value| *counts.entry(value).or_default() += 1);
            let weight = bytes.count() as f64 / bytes.sample.values().count().max(1) as f64;
            // What the sample has once tells nothing of how often there is.
            let repeated = counts.into_iter().filter(|(_, count)| *count > 1);
            repeated.map(|(value, count)| (value, count as f64 * weight)).collect()
        }
    };
    let order = |a: &(&[u8], f64), b: &(&[u8], f64)| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(a.0));
    if top.len() > RANKS {
        top.select_nth_unstable_by(RANKS, order);
        top.truncate(RANKS);
    }
    top.sort_unstable_by(order);
    top.into_iter().map(|(value, count)| Top { value: value.into(), count }).collect()
}
