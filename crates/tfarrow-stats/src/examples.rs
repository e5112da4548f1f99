//! Example records for reports, chosen as samples of values are: those with the smallest hashes of their places.

use tfarrow_codec::{
    Place,
    infer::{RecordObserver, SeenRecord, ValueList},
};

use crate::collect::{formats::ValueFormat, sample::SampleKey};

/// Largest number of values that an example keeps of a feature.
const MAX_VALUES: usize = 64;
/// Largest number of bytes that an example keeps of a value that is not an image.
const MAX_VALUE_BYTES: usize = 512;
/// Largest size of the images that one example keeps, in bytes. The first value of each feature may be kept as an
/// image.
const MAX_IMAGE_BYTES: usize = 16 << 20;
/// Largest size of the images of all examples together, in one thread.
const ALL_IMAGE_BYTES: usize = 48 << 20;
/// Largest size of the names and of the other values of all examples together, in bytes, in one thread.
const ALL_BYTES: usize = 16 << 20;

/// A record of the data set, cut to the size of a report.
#[derive(Clone, Debug)]
pub struct ExampleRecord {
    /// The place of the record in the data set.
    pub place: Place,
    /// Its features that have a kind, in the order of the record. A feature list is one feature with the values of all
    /// steps.
    pub features: Vec<ExampleFeature>,
}

/// A feature of an example record.
#[derive(Clone, Debug)]
pub struct ExampleFeature {
    /// The name.
    pub name: String,
    /// Number of values in the record, including those that are not kept.
    pub length: usize,
    /// The first values.
    pub values: ExampleValues,
}

/// The first values of a feature.
#[derive(Clone, Debug)]
pub enum ExampleValues {
    /// Byte strings, each with its length in bytes: the complete first value if it is an image within the budget, and
    /// the first 512 bytes of others.
    Bytes(Vec<(Vec<u8>, usize)>),
    /// Values of a `FloatList`.
    Float(Vec<f32>),
    /// Values of an `Int64List`.
    Int64(Vec<i64>),
}

/// An observer that keeps some records of those that one thread reads.
#[derive(Debug)]
pub struct ExampleSampler {
    count: usize,
    /// The examples, ordered by their keys.
    kept: Vec<(u64, ExampleRecord)>,
}

impl ExampleSampler {
    /// Creates a sampler of `count` records.
    pub fn new(count: usize) -> Self {
        Self { count, kept: Vec::new() }
    }

    /// Merges the samplers of all threads into `count` examples, in data-set order.
    pub fn merge(count: usize, parts: impl IntoIterator<Item = Self>) -> Vec<ExampleRecord> {
        let mut all: Vec<_> = parts.into_iter().flat_map(|part| part.kept).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all.truncate(count);
        let mut examples: Vec<_> = all.into_iter().map(|(_, example)| example).collect();
        examples.sort_by_key(|example| example.place);
        examples
    }
}

impl RecordObserver for ExampleSampler {
    fn record(&mut self, record: &mut SeenRecord<'_>) {
        let key = SampleKey::of_record(record.place()).of_value(0);
        let at = self.kept.partition_point(|(kept, _)| *kept < key);
        if at < self.count {
            let mut features: Vec<ExampleFeature> = Vec::new();
            let mut budget = ExampleBudget {
                images: (ALL_IMAGE_BYTES / self.count).min(MAX_IMAGE_BYTES),
                values: ALL_BYTES / self.count,
            };
            record.each_list(|feature, list| {
                let is_new = features.last().is_none_or(|last| last.name != feature.name);
                if is_new && !budget.take(feature.name.len() + size_of::<ExampleFeature>()) {
                    return;
                }
                let Some(new) = first_values(feature.name, list, &mut budget) else { return };
                match features.last_mut().filter(|last| last.name == new.name) {
                    Some(last) => last.append(new),
                    None => features.push(new),
                }
            });
            self.kept.insert(at, (key, ExampleRecord { place: record.place(), features }));
            self.kept.truncate(self.count);
        }
    }
}

impl ExampleFeature {
    /// Appends the values of the next step of a feature list.
    fn append(&mut self, next: Self) {
        self.length += next.length;
        match (&mut self.values, next.values) {
            (ExampleValues::Bytes(all), ExampleValues::Bytes(more)) => extend(all, more),
            (ExampleValues::Float(all), ExampleValues::Float(more)) => extend(all, more),
            (ExampleValues::Int64(all), ExampleValues::Int64(more)) => extend(all, more),
            // Values of another kind than the first step's are counted and not kept.
            _ => {}
        }
    }
}

/// Appends values, up to [`MAX_VALUES`] in total.
fn extend<T>(all: &mut Vec<T>, more: Vec<T>) {
    all.extend(more.into_iter().take(MAX_VALUES.saturating_sub(all.len())));
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

    /// Returns the first numbers of a list, or none if the budget does not allow them.
    fn numbers<T: Copy>(&mut self, values: &[T]) -> Vec<T> {
        let first = values.get(..MAX_VALUES).unwrap_or(values);
        if self.take(size_of_val(first)) { first.to_vec() } else { Vec::new() }
    }
}

/// Returns the first values of a feature that the budget allows; `None` for a feature without a kind.
fn first_values(name: &str, list: ValueList<'_>, budget: &mut ExampleBudget) -> Option<ExampleFeature> {
    let mut length = 0;
    let values = match list {
        ValueList::Unset => return None,
        ValueList::Float(values) => {
            length = values.len();
            ExampleValues::Float(budget.numbers(values))
        }
        ValueList::Int64(values) => {
            length = values.len();
            ExampleValues::Int64(budget.numbers(values))
        }
        ValueList::Bytes(values) => {
            let mut kept = Vec::new();
            values.each(|value| {
                length += 1;
                // Values after a gap would be attributed to the wrong index.
                if kept.len() + 1 != length || length > MAX_VALUES {
                    return;
                }
                let is_image = length == 1 && value.len() <= budget.images && ValueFormat::of(value, false).is_image();
                let most = if is_image { value.len() } else { MAX_VALUE_BYTES };
                let start = value.get(..most).unwrap_or(value);
                if is_image {
                    budget.images -= value.len();
                } else if !budget.take(start.len() + size_of::<(Vec<u8>, usize)>()) {
                    return;
                }
                kept.push((start.to_vec(), value.len()));
            });
            ExampleValues::Bytes(kept)
        }
    };
    Some(ExampleFeature { name: name.to_owned(), length, values })
}
