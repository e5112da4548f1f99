//! Example records for reports, chosen as samples of values are: those with the smallest hashes of
//! their places.

use serde::{Deserialize, Serialize};
use tfarrow_codec::{
    Place, Role,
    infer::{SeenRecord, ValueList},
};

use crate::collect::{formats::ValueFormat, sample::SampleKey};

/// Largest number of byte strings that an example keeps of a feature.
const MAX_VALUES: usize = 64;
/// Largest number of numbers that an example keeps of a feature, while the budget allows: the steps
/// of an episode.
const MAX_NUMBERS: usize = 4_096;
/// Largest number of images that an example keeps of a list, besides the first.
const MAX_FRAMES: usize = 11;
/// Largest number of bytes that an example keeps of a value that is not an image.
const MAX_VALUE_BYTES: usize = 512;
/// Largest size of the images that one example keeps, in bytes.
const MAX_IMAGE_BYTES: usize = 16 << 20;
/// Largest size of the images of all examples together, in one thread.
const ALL_IMAGE_BYTES: usize = 48 << 20;
/// Largest size of the names and of the other values of all examples together, in bytes, in one
/// thread.
const ALL_BYTES: usize = 16 << 20;

/// A record of the data set, cut to the size of a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExampleRecord {
    /// The place of the record in the data set.
    pub place: Place,
    /// Its features that have a kind, in the order of the record. A feature list is one feature
    /// with the values of all steps.
    pub features: Vec<ExampleFeature>,
}

/// A feature of an example record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExampleFeature {
    /// The name.
    pub name: String,
    /// Whether it is a feature list.
    pub is_list: bool,
    /// Number of lists: 1, or the number of steps of a feature list.
    pub steps: usize,
    /// Whether all steps have the same number of values.
    pub is_even: bool,
    /// Number of values in the record, including those that are not kept.
    pub length: usize,
    /// The first values.
    pub values: ExampleValues,
    /// Further images of a list whose first value is an image, each with its index, at equal
    /// distances: up to 11.
    pub frames: Vec<(usize, Vec<u8>)>,
}

/// The first values of a feature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ExampleValues {
    /// Byte strings, each with its length in bytes: the complete first value if it is an image
    /// within the budget, and the first 512 bytes of others.
    Bytes(Vec<(Vec<u8>, usize)>),
    /// Values of a `FloatList`.
    Float(Vec<f32>),
    /// Values of an `Int64List`.
    Int64(Vec<i64>),
}

/// A sampler of the records that one thread reads.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ExampleSampler {
    count: usize,
    /// The examples, ordered by their keys.
    kept: Vec<(u64, ExampleRecord)>,
}

impl ExampleSampler {
    /// Creates a sampler of `count` records.
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            kept: Vec::new(),
        }
    }

    /// Adds the examples of another thread.
    pub(super) fn merge(&mut self, other: Self) {
        self.kept.extend(other.kept);
        self.kept.sort_unstable_by_key(|(key, _)| *key);
        self.kept.truncate(self.count);
    }

    /// Returns the examples, in data-set order.
    pub(super) fn into_examples(self) -> Vec<ExampleRecord> {
        let mut examples: Vec<_> = self.kept.into_iter().map(|(_, example)| example).collect();
        examples.sort_by_key(|example| example.place);
        examples
    }

    /// Adds a record.
    pub(super) fn add(&mut self, record: &mut SeenRecord<'_>) {
        let key = SampleKey::of_record(record.place()).of_value(0);
        let at = self.kept.partition_point(|(kept, _)| *kept < key);
        if at < self.count {
            let mut features: Vec<ExampleFeature> = Vec::new();
            let mut budget = ExampleBudget {
                images: (ALL_IMAGE_BYTES / self.count).min(MAX_IMAGE_BYTES),
                values: ALL_BYTES / self.count,
            };
            record.each_list(|feature, list| {
                let is_list = feature.role == Role::Sequence;
                let is_new = features
                    .last()
                    .is_none_or(|last| last.name != feature.name || last.is_list != is_list);
                if is_new && !budget.take(feature.name.len() + size_of::<ExampleFeature>()) {
                    return;
                }
                match features.last_mut().filter(|_| !is_new) {
                    Some(last) => last.append(list, &mut budget),
                    None => features.extend(ExampleFeature::of(
                        feature.name,
                        is_list,
                        list,
                        &mut budget,
                    )),
                }
            });
            self.kept.insert(
                at,
                (
                    key,
                    ExampleRecord {
                        place: record.place(),
                        features,
                    },
                ),
            );
            self.kept.truncate(self.count);
        }
    }
}

impl ExampleFeature {
    /// Returns the first values of a feature that the budget allows; `None` for a feature without a
    /// kind.
    fn of(
        name: &str,
        is_list: bool,
        list: ValueList<'_>,
        budget: &mut ExampleBudget,
    ) -> Option<Self> {
        let values = match list {
            ValueList::Unset => return None,
            ValueList::Bytes(_) => ExampleValues::Bytes(Vec::new()),
            ValueList::Float(_) => ExampleValues::Float(Vec::new()),
            ValueList::Int64(_) => ExampleValues::Int64(Vec::new()),
        };
        let name = name.to_owned();
        let mut feature = Self {
            name,
            is_list,
            steps: 0,
            is_even: true,
            length: 0,
            values,
            frames: Vec::new(),
        };
        feature.append(list, budget);
        Some(feature)
    }

    /// Appends the values of the next step of a feature list. Values of another kind than the first
    /// step's are counted and not kept.
    fn append(&mut self, list: ValueList<'_>, budget: &mut ExampleBudget) {
        let before = self.length;
        match (&mut self.values, list) {
            (ExampleValues::Float(kept), ValueList::Float(values)) => {
                budget.add_numbers(kept, values)
            }
            (ExampleValues::Int64(kept), ValueList::Int64(values)) => {
                budget.add_numbers(kept, values)
            }
            (ExampleValues::Bytes(kept), ValueList::Bytes(values)) => {
                let mut index = before;
                values.each(|value| {
                    add_bytes(kept, index, value, budget);
                    add_frame(&mut self.frames, index, value, budget);
                    index += 1;
                });
            }
            _ => self.is_even = false,
        }
        self.length += match list {
            ValueList::Unset => 0,
            ValueList::Float(values) => values.len(),
            ValueList::Int64(values) => values.len(),
            ValueList::Bytes(values) => {
                let mut length = 0;
                values.each(|_| length += 1);
                length
            }
        };
        self.is_even &= self.steps == 0 || (self.length - before) * self.steps == before;
        self.steps += 1;
    }
}

/// Appends a byte string: complete if it is the first value, and an image within the budget; else
/// its first 512 bytes.
fn add_bytes(
    kept: &mut Vec<(Vec<u8>, usize)>,
    index: usize,
    value: &[u8],
    budget: &mut ExampleBudget,
) {
    // Values after a gap would be attributed to the wrong index.
    if kept.len() != index || index >= MAX_VALUES {
        return;
    }
    let is_image =
        index == 0 && value.len() <= budget.images && ValueFormat::of(value, false).is_image();
    let most = if is_image {
        value.len()
    } else {
        MAX_VALUE_BYTES
    };
    let start = value.get(..most).unwrap_or(value);
    if is_image {
        budget.images -= value.len();
    } else if !budget.take(start.len() + size_of::<(Vec<u8>, usize)>()) {
        return;
    }
    kept.push((start.to_vec(), value.len()));
}

/// Appends an image that is not the first value of its list, if its index is a multiple of the
/// distance between the kept ones, and if the budget allows it. When there are too many, every
/// second one is dropped, and the distance doubles.
fn add_frame(
    frames: &mut Vec<(usize, Vec<u8>)>,
    index: usize,
    value: &[u8],
    budget: &mut ExampleBudget,
) {
    let distance = frames.first().map_or(1, |(first, _)| *first);
    let is_wanted = index > 0 && index.is_multiple_of(distance) && value.len() <= budget.images;
    if !is_wanted || !ValueFormat::of(value, false).is_image() {
        return;
    }
    budget.images -= value.len();
    frames.push((index, value.to_vec()));
    if frames.len() > MAX_FRAMES {
        frames.retain(|(index, image)| {
            let is_kept = index.is_multiple_of(2 * distance);
            budget.images += if is_kept { 0 } else { image.len() };
            is_kept
        });
    }
}

/// The bytes that an example may still keep.
struct ExampleBudget {
    /// Bytes of images.
    images: usize,
    /// Bytes of names and other values.
    values: usize,
}

impl ExampleBudget {
    /// Takes bytes for a name or a value. Returns whether there were enough.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.values.checked_sub(bytes);
        self.values = left.unwrap_or(self.values);
        left.is_some()
    }

    /// Appends numbers: up to [`MAX_VALUES`] in total, or more if they take at most a quarter of
    /// what is left.
    fn add_numbers<T: Copy>(&mut self, kept: &mut Vec<T>, values: &[T]) {
        let most = (self.values / 4 / size_of::<T>())
            .clamp(MAX_VALUES, MAX_NUMBERS)
            .saturating_sub(kept.len());
        let first = values.get(..most).unwrap_or(values);
        if self.take(size_of_val(first)) {
            kept.extend_from_slice(first);
        }
    }
}
