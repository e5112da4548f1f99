//! Limits on the memory that one thread takes for each feature.

use tfarrow_codec::{Kind, Summary};

/// Largest number of values of a sample, with few features.
const MAX_SAMPLE: usize = 16_384;
/// Smallest number of values of a sample, with many features.
const MIN_SAMPLE: usize = 1_024;
/// Number of values of the samples of all features together, as long as [`MIN_SAMPLE`] allows it.
const ALL_SAMPLES: usize = 4 << 20;
/// Bytes of the sampled byte strings of all features together. A sample grows to twice its budget
/// before it is cut.
const ALL_SAMPLED_BYTES: usize = 16 << 20;
/// Largest number of distinct byte strings of one feature that are counted exactly.
const MAX_DISTINCT: usize = 20_000;
/// Smallest such number: more than the 100 values of the largest domain that TFDV infers.
const MIN_DISTINCT: usize = 256;
/// Number of distinct byte strings of all features together, as long as [`MIN_DISTINCT`] allows it.
const ALL_DISTINCT: usize = 1 << 19;
/// Largest size of the distinct byte strings of one feature, or of their beginnings, in bytes.
const MAX_DISTINCT_BYTES: usize = 8 << 20;
/// Smallest budget of bytes of one feature, for its distinct values and for its sample each.
const MIN_BYTES: usize = 8 << 10;
/// Bytes of the distinct byte strings of all features together, as long as [`MIN_BYTES`] allows it.
const ALL_DISTINCT_BYTES: usize = 24 << 20;

/// The most that one thread keeps of one feature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Number of values of a sample.
    pub(crate) sample: usize,
    /// Bytes of a sample of byte strings.
    pub(crate) sample_bytes: usize,
    /// Number of distinct byte strings that are counted exactly.
    pub(crate) distinct: usize,
    /// Bytes of these together.
    pub(crate) distinct_bytes: usize,
}

impl Budget {
    /// Returns the budget of each feature of a summary. `sets` is the number of data sets that
    /// share the memory.
    pub(crate) fn of(summary: &Summary, sets: usize) -> Self {
        let strings = summary
            .features()
            .filter(|feature| feature.kinds().any(|(kind, _)| kind == Kind::Bytes));
        Self::per_feature(summary.features().count() * sets, strings.count() * sets)
    }

    /// Returns the budget of each of `features` features, `strings` of which have byte strings.
    pub(crate) fn per_feature(features: usize, strings: usize) -> Self {
        let features = features.max(1);
        let strings = strings.max(1);
        Self {
            sample: (ALL_SAMPLES / features).clamp(MIN_SAMPLE, MAX_SAMPLE),
            sample_bytes: (ALL_SAMPLED_BYTES / strings).max(MIN_BYTES),
            distinct: (ALL_DISTINCT / strings).clamp(MIN_DISTINCT, MAX_DISTINCT),
            distinct_bytes: (ALL_DISTINCT_BYTES / strings).clamp(MIN_BYTES, MAX_DISTINCT_BYTES),
        }
    }
}
