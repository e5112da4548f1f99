//! A few records whole, to be looked at: chosen as samples of values are, by the hash of where they stand.

use tfarrow_codec::{
    Place,
    infer::{RecordObserver, SeenRecord, ValueList},
};

use crate::collect::{formats::ValueFormat, sample::SampleKey};

/// Values of a list that an example keeps.
const MAX_VALUES: usize = 64;
/// Bytes of a value that an example keeps; of an image, all or none.
const MAX_VALUE_BYTES: usize = 512;
/// Bytes of the images that an example keeps; of each feature, the first image alone.
const MAX_IMAGE_BYTES: usize = 16 << 20;
/// The same of all examples together, in one thread.
const ALL_IMAGE_BYTES: usize = 48 << 20;
/// Bytes of the names and other values of all examples together, in one thread.
const ALL_BYTES: usize = 16 << 20;

/// A record to be looked at.
#[derive(Clone, Debug)]
pub struct ExampleRecord {
    /// Where it stands.
    pub place: Place,
    /// Its features with a kind, in the order in which they stand; the steps of a feature list are one.
    pub features: Vec<ExampleFeature>,
}

/// A feature of a record, cut to what can be looked at.
#[derive(Clone, Debug)]
pub struct ExampleFeature {
    /// Its name.
    pub name: String,
    /// How many values it has.
    pub length: usize,
    /// The first of them.
    pub values: ExampleValues,
}

/// The first values of a feature.
#[derive(Clone, Debug)]
pub enum ExampleValues {
    /// Byte strings: their beginnings, but all of the first image; and how long they are.
    Bytes(Vec<(Vec<u8>, usize)>),
    /// NumberAccumulator.
    Float(Vec<f32>),
    /// Integers.
    Int64(Vec<i64>),
}

/// Chooses examples.
#[derive(Debug)]
pub struct ExampleSampler {
    count: usize,
    /// By their keys.
    kept: Vec<(u64, ExampleRecord)>,
}

impl ExampleSampler {
    /// Chooses so many.
    pub fn new(count: usize) -> Self {
        Self { count, kept: Vec::new() }
    }

    /// What all threads have chosen together, in the order of the data set.
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
                let Some(new) = beginning(feature.name, list, &mut budget) else { return };
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
    /// Adds the next step of a feature list.
    fn append(&mut self, next: Self) {
        self.length += next.length;
        match (&mut self.values, next.values) {
            (ExampleValues::Bytes(all), ExampleValues::Bytes(more)) => extend(all, more),
            (ExampleValues::Float(all), ExampleValues::Float(more)) => extend(all, more),
            (ExampleValues::Int64(all), ExampleValues::Int64(more)) => extend(all, more),
            // Steps of another kind are told by their number alone.
            _ => {}
        }
    }
}

fn extend<T>(all: &mut Vec<T>, more: Vec<T>) {
    all.extend(more.into_iter().take(MAX_VALUES.saturating_sub(all.len())));
}

/// Bytes that an example may still keep.
struct ExampleBudget {
    /// Of images.
    images: usize,
    /// Of names and other values.
    values: usize,
}

impl ExampleBudget {
    /// Takes room for a name or a value, if there is some.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.values.checked_sub(bytes);
        self.values = left.unwrap_or(self.values);
        left.is_some()
    }

    /// The first numbers of a list.
    fn numbers<T: Copy>(&mut self, values: &[T]) -> Vec<T> {
        let first = values.get(..MAX_VALUES).unwrap_or(values);
        if self.take(size_of_val(first)) { first.to_vec() } else { Vec::new() }
    }
}

fn beginning(name: &str, list: ValueList<'_>, budget: &mut ExampleBudget) -> Option<ExampleFeature> {
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
                // What is left out in the middle would be taken for the value before it.
                if kept.len() + 1 != length || length > MAX_VALUES {
                    return;
                }
                let is_whole = length == 1 && value.len() <= budget.images && ValueFormat::of(value, false).is_image();
                let most = if is_whole { value.len() } else { MAX_VALUE_BYTES };
                let start = value.get(..most).unwrap_or(value);
                if is_whole {
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
