//! The accumulator of byte strings: lengths, formats, sizes of images, distinct values and a
//! sample.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};
use tfarrow_dataset::internals::ImageHeader;

use super::{
    budget::Budget,
    distinct::{DistinctValues, HashedValue, KeptValue, SampledValue},
    formats::{ValueFormat, is_text},
    sample::ValueSample,
};

/// The accumulated byte strings of one feature.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BytesAccumulator {
    /// Size of all values in bytes.
    pub(crate) bytes: u64,
    /// Lengths of the shortest and of the longest value in bytes.
    pub(crate) lengths: Option<(u64, u64)>,
    /// Number of values that are not UTF-8.
    pub(crate) invalid_utf8: u64,
    /// Number of values of each format, indexed by [`ValueFormat`].
    pub(crate) formats: [u64; ValueFormat::COUNT],
    /// Sizes of the values that look like images.
    pub(crate) images: ImageAccumulator,
    /// The distinct values, or their number.
    pub(crate) distinct: DistinctValues,
    /// A sample of the values, each cut to its beginning.
    pub(crate) sample: ValueSample<SampledValue>,
}

impl BytesAccumulator {
    /// Adds a value. `key` is the hash of its place.
    pub(crate) fn add(&mut self, value: &[u8], key: u64, budget: Budget) {
        let length = value.len() as u64;
        self.bytes += length;
        self.lengths = Some(self.lengths.map_or((length, length), |(low, high)| {
            (low.min(length), high.max(length))
        }));
        let is_utf8 = value.is_ascii() || simdutf8::basic::from_utf8(value).is_ok();
        self.invalid_utf8 += u64::from(!is_utf8);
        let format = ValueFormat::of(value, is_text(value, is_utf8));
        if let Some(count) = self.formats.get_mut(format as usize) {
            *count += 1;
        }
        if format.is_image() {
            self.images.add(value);
        }
        let value = HashedValue::of(value);
        self.distinct.add(value, 1, budget);
        self.sample.add(key, budget, || SampledValue::of(value));
    }

    /// Returns the number of values.
    pub(crate) fn count(&self) -> u64 {
        self.sample.seen()
    }

    /// Returns whether [`frequencies`](Self::frequencies) counts every value.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self.distinct, DistinctValues::Counted(_)) || self.sample.is_all()
    }

    /// Returns the values, in no particular order. If there are too many to count, they are those
    /// of the sample, with the numbers of occurrences that the sample stands for.
    pub(crate) fn frequencies(&self) -> Vec<ValueFrequency<'_>> {
        let mut found = Vec::new();
        if let DistinctValues::Counted(counts) = &self.distinct {
            for (hash, held) in counts.iter() {
                found.push(ValueFrequency {
                    hash,
                    value: &held.value,
                    count: held.count as f64,
                });
            }
            return found;
        }
        let mut sampled = HashMap::<u64, (&KeptValue, u64), RandomState>::default();
        for value in self.sample.values() {
            sampled.entry(value.hash).or_insert((&value.value, 0)).1 += 1;
        }
        for (hash, (value, count)) in sampled {
            found.push(ValueFrequency {
                hash,
                value,
                count: count as f64 * self.weight(),
            });
        }
        found
    }

    /// Returns the number of values that one value of the sample stands for.
    pub(crate) fn weight(&self) -> f64 {
        self.count() as f64 / self.sample.values().count().max(1) as f64
    }

    /// Adds the values that another thread has accumulated.
    pub(crate) fn merge(&mut self, other: Self, budget: Budget) {
        self.bytes += other.bytes;
        self.lengths = match (self.lengths, other.lengths) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        self.invalid_utf8 += other.invalid_utf8;
        self.formats
            .iter_mut()
            .zip(other.formats)
            .for_each(|(count, more)| *count += more);
        self.images.merge(&other.images);
        self.distinct.merge(other.distinct, budget);
        self.sample.merge(other.sample, budget);
    }

    /// Reduces the accumulator to a smaller budget.
    pub(crate) fn shrink(&mut self, budget: Budget) {
        self.distinct.shrink(budget);
        self.sample.cut(budget);
    }
}

/// A value, and how often it occurs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueFrequency<'a> {
    /// The hash of the whole value, which tells it apart from other values.
    pub(crate) hash: u64,
    /// The value, or its beginning.
    pub(crate) value: &'a KeptValue,
    /// Number of occurrences; a fraction where it is extrapolated from a sample.
    pub(crate) count: f64,
}

/// The sizes of the images of one feature.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ImageAccumulator {
    /// Number of images with a readable header.
    pub(crate) read: u64,
    /// Number of values that begin as an image does but have no readable header.
    pub(crate) damaged: u64,
    /// Smallest and largest width, and smallest and largest height, in pixels.
    pub(crate) sizes: Option<[(u32, u32); 2]>,
}

impl ImageAccumulator {
    /// Adds a value that looks like an image.
    pub(crate) fn add(&mut self, image: &[u8]) {
        match ImageHeader::read(image) {
            Some(ImageHeader { width, height, .. }) => {
                self.read += 1;
                self.widen([(width, width), (height, height)]);
            }
            None => self.damaged += 1,
        }
    }

    /// Adds the sizes that another thread has accumulated.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.read += other.read;
        self.damaged += other.damaged;
        other.sizes.into_iter().for_each(|sizes| self.widen(sizes));
    }

    /// Extends the ranges of both sides.
    fn widen(&mut self, more: [(u32, u32); 2]) {
        let held = self.sizes.get_or_insert(more);
        held.iter_mut()
            .zip(more)
            .for_each(|(held, more)| *held = (held.0.min(more.0), held.1.max(more.1)));
    }
}
