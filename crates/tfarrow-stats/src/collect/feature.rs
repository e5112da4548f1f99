//! The accumulator of one feature: its lists, and the values of each kind.

use serde::{Deserialize, Serialize};
use tfarrow_codec::{Kind, Role, infer::ValueList};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    budget::Budget,
    bytes::BytesAccumulator,
    numbers::NumberAccumulator,
    sample::{SampleKey, ValueSample},
};

/// The accumulated values of one feature, for each kind that it has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FeatureAccumulator {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The hash of the name and the role, for the keys of its lists. Not needed once all records
    /// are added.
    #[serde(skip)]
    pub(crate) key: u64,
    /// Samples of the lengths of lists, indexed by [`Kind`].
    pub(crate) lengths: [ValueSample<u64>; 3],
    /// Number of lists without a value, indexed by [`Kind`].
    pub(crate) empty: [u64; 3],
    /// The values of `BytesList`s.
    pub(crate) bytes: Option<Box<BytesAccumulator>>,
    /// The values of `FloatList`s.
    pub(crate) floats: Option<Box<NumberAccumulator<f32>>>,
    /// The values of `Int64List`s.
    pub(crate) ints: Option<Box<NumberAccumulator<i64>>>,
}

impl FeatureAccumulator {
    /// Creates an empty accumulator.
    pub(crate) fn new(name: &str, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            role,
            key: key_of(name, role),
            lengths: Default::default(),
            empty: [0; 3],
            bytes: None,
            floats: None,
            ints: None,
        }
    }

    /// Sets the name.
    pub(crate) fn set_name(&mut self, name: &str) {
        name.clone_into(&mut self.name);
        self.key = key_of(name, self.role);
    }

    /// Adds a list of one record, or of one step.
    pub(crate) fn add(&mut self, list: ValueList<'_>, key: SampleKey, budget: Budget) {
        let (kind, length) = match list {
            ValueList::Unset => return,
            ValueList::Bytes(values) => {
                let bytes = self.bytes.get_or_insert_default();
                let mut index = 0;
                values.each(|value| {
                    bytes.add(value, key.of_value(index), budget);
                    index += 1;
                });
                (Kind::Bytes, index)
            }
            ValueList::Float(values) => {
                self.floats.get_or_insert_default().add(values, key, budget);
                (Kind::Float, values.len())
            }
            ValueList::Int64(values) => {
                self.ints.get_or_insert_default().add(values, key, budget);
                (Kind::Int64, values.len())
            }
        };
        self.lengths[kind as usize].add(key.of_value(0), budget, || length as u64);
        self.empty[kind as usize] += u64::from(length == 0);
    }

    /// Adds the values that another thread has accumulated.
    pub(crate) fn merge(&mut self, other: Self, budget: Budget) {
        self.lengths
            .iter_mut()
            .zip(other.lengths)
            .for_each(|(own, other)| own.merge(other, budget));
        self.empty
            .iter_mut()
            .zip(other.empty)
            .for_each(|(own, other)| *own += other);
        if let Some(other) = other.bytes {
            self.bytes.get_or_insert_default().merge(*other, budget);
        }
        if let Some(other) = other.floats {
            self.floats.get_or_insert_default().merge(*other, budget);
        }
        if let Some(other) = other.ints {
            self.ints.get_or_insert_default().merge(*other, budget);
        }
    }

    /// Reduces the accumulator to a smaller budget.
    pub(crate) fn shrink(&mut self, budget: Budget) {
        self.lengths
            .iter_mut()
            .for_each(|lengths| lengths.cut(budget));
        if let Some(bytes) = &mut self.bytes {
            bytes.shrink(budget);
        }
        if let Some(floats) = &mut self.floats {
            floats.sample.cut(budget);
        }
        if let Some(ints) = &mut self.ints {
            ints.sample.cut(budget);
        }
    }
}

/// The hash of a feature, which is the same in all threads and data sets.
fn key_of(name: &str, role: Role) -> u64 {
    xxh3_64_with_seed(name.as_bytes(), u64::from(role == Role::Sequence))
}
