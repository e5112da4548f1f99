//! Computing the summary statistics from the accumulators of the pass.

use tfarrow_codec::{FeatureSummary, Kind, KindSummary, Role};

use super::{
    ByteStringStatistics, DatasetStatistics, FeatureStatistics, ImageStatistics, KindStatistics,
    ListLengths, NumberStatistics, TopValue, quantiles::Quantiles,
};
use crate::collect::{
    Statistics,
    bytes::{BytesAccumulator, ImageAccumulator, ValueFrequency},
    feature::FeatureAccumulator,
    formats::ValueFormat,
    numbers::{Number, NumberAccumulator},
    sample::{SampleValue, ValueSample},
};

/// Number of buckets of a histogram, and of parts between deciles.
const BUCKETS: u32 = 10;
/// Largest number of most frequent values.
const MAX_RANKS: usize = 1_000;

impl Statistics {
    /// Computes the summary statistics.
    pub fn summarize(&self) -> DatasetStatistics {
        let summary = &self.inferred.summary;
        let features = self
            .features()
            .map(|(seen, values)| feature(seen, values, summary.records()));
        DatasetStatistics {
            records: summary.records(),
            bytes: summary.bytes(),
            sampled: self
                .inferred
                .sampled
                .map(|sampled| (sampled.shards, sampled.of)),
            features: features.collect(),
        }
    }
}

/// Summarizes a feature. `records` is the number of records of the data set.
fn feature(seen: &FeatureSummary, values: &FeatureAccumulator, records: u64) -> FeatureStatistics {
    FeatureStatistics {
        name: seen.name.clone(),
        is_list: seen.role == Role::Sequence,
        present: seen.present,
        missing: records - seen.present,
        unset: seen.unset,
        steps: seen.steps,
        kinds: seen
            .kinds()
            .map(|(kind, seen)| kind_statistics(kind, seen, values))
            .collect(),
    }
}

/// Summarizes the lists of one kind.
fn kind_statistics(kind: Kind, seen: &KindSummary, values: &FeatureAccumulator) -> KindStatistics {
    let index = kind as usize;
    KindStatistics {
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
        strings: values
            .bytes
            .as_deref()
            .filter(|_| kind == Kind::Bytes)
            .map(strings),
    }
}

/// Returns the size of a sample that dropped values.
fn sampled<T: SampleValue>(sample: &ValueSample<T>) -> Option<u64> {
    (!sample.is_all()).then(|| sample.values().count() as u64)
}

/// Returns the 11 deciles, from the minimum to the maximum.
fn deciles(quantiles: &Quantiles) -> Vec<f64> {
    (0..=BUCKETS)
        .map(|part| quantiles.at(f64::from(part) / f64::from(BUCKETS)))
        .collect()
}

/// Summarizes the lengths of lists. The extremes are exact, also if lengths were sampled.
fn lengths(seen: &KindSummary, sample: &ValueSample<u64>) -> ListLengths {
    let ends = (!sample.is_all()).then_some([seen.min_len as f64, seen.max_len as f64]);
    let lengths = sample.values().map(|length| *length as f64);
    let quantiles = Quantiles::new(lengths.chain(ends.into_iter().flatten()), seen.lists);
    ListLengths {
        min: seen.min_len,
        mean: seen.values as f64 / seen.lists as f64,
        max: seen.max_len,
        deciles: deciles(&quantiles),
        sampled: sampled(sample),
        quantiles: quantiles.equal_counts(BUCKETS),
    }
}

/// Summarizes numbers. The extremes are exact, also if values were sampled.
pub(crate) fn numbers<T: Number>(numbers: &NumberAccumulator<T>) -> NumberStatistics {
    let (min, max) = numbers.ends();
    let quantiles = number_quantiles(numbers);
    NumberStatistics {
        count: numbers.count(),
        nan: numbers.nan,
        zeros: numbers.zeros,
        positive_infinities: numbers.positive_infinities,
        negative_infinities: numbers.negative_infinities,
        mean: numbers.mean(),
        std_dev: numbers.std_dev(),
        skewness: quantiles.skewness(),
        min,
        median: quantiles.median(),
        max,
        deciles: deciles(&quantiles),
        histogram: quantiles.equal_widths(BUCKETS),
        quantiles: quantiles.equal_counts(BUCKETS),
        sampled: sampled(&numbers.sample),
        are_distinct: are_distinct(&numbers.sample),
    }
}

/// Returns whether no two values of a sample are equal.
fn are_distinct<T: Number>(sample: &ValueSample<T>) -> bool {
    let mut values: Vec<T> = sample.values().copied().collect();
    values.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    values
        .windows(2)
        .all(|pair| matches!(pair, [one, other] if one < other))
}

/// Returns the quantiles of numbers.
pub(super) fn number_quantiles<T: Number>(numbers: &NumberAccumulator<T>) -> Quantiles {
    let (min, max) = numbers.range();
    // The sample may lack the extremes, which the accumulator has.
    let finite = numbers
        .finite
        .into_iter()
        .flat_map(|(low, high)| [low.to_f64(), high.to_f64()]);
    let ends = finite
        .chain([min, max])
        .filter(|_| !numbers.sample.is_all());
    Quantiles::new(
        numbers
            .sample
            .values()
            .map(|value| value.to_f64())
            .chain(ends),
        numbers.count(),
    )
}

/// Summarizes byte strings.
fn strings(bytes: &BytesAccumulator) -> ByteStringStatistics {
    let (distinct, is_distinct_exact) = bytes.distinct.count();
    // An estimate may exceed the number of values.
    let distinct = distinct.min(bytes.count());
    let (min_length, max_length) = bytes.lengths.unwrap_or_default();
    let formats = ValueFormat::ALL
        .into_iter()
        .zip(bytes.formats)
        .filter(|(_, count)| *count > 0);
    ByteStringStatistics {
        total: bytes.count(),
        distinct,
        is_distinct_exact,
        min_length,
        mean_length: bytes.bytes as f64 / bytes.count() as f64,
        max_length,
        invalid_utf8: bytes.invalid_utf8,
        formats: formats
            .map(|(format, count)| (format.name(), count))
            .collect(),
        images: images(&bytes.images),
        top: top(bytes),
        sampled: if bytes.is_counted() {
            None
        } else {
            sampled(&bytes.sample)
        },
    }
}

/// Summarizes images; `None` if no value looks like one.
fn images(images: &ImageAccumulator) -> Option<ImageStatistics> {
    let ImageAccumulator {
        read: count,
        damaged,
        sizes,
    } = *images;
    let [width, height] = [0, 1].map(|side| sizes.map(|sizes| sizes[side]));
    (count + damaged > 0).then_some(ImageStatistics {
        count,
        damaged,
        width,
        height,
    })
}

/// Returns the most frequent values. Values of equal counts are in descending order, as TFDV ranks
/// them.
fn top(bytes: &BytesAccumulator) -> Vec<TopValue> {
    let mut top = bytes.frequencies();
    if !bytes.is_counted() {
        // A value that the sample has once may occur any number of times.
        top.retain(|frequency| frequency.count > bytes.weight());
    }
    if top.len() > MAX_RANKS {
        top.select_nth_unstable_by(MAX_RANKS, by_rank);
        top.truncate(MAX_RANKS);
    }
    top.sort_unstable_by(by_rank);
    top.into_iter().map(TopValue::of).collect()
}

/// Compares the ranks of two values: by descending count, then in descending order.
fn by_rank(a: &ValueFrequency<'_>, b: &ValueFrequency<'_>) -> std::cmp::Ordering {
    let values = (&b.value.bytes, b.hash).cmp(&(&a.value.bytes, a.hash));
    b.count.total_cmp(&a.count).then(values)
}
