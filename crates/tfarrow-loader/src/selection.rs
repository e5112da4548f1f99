//! The records of a data set that are read.

use std::{ops::Range, sync::Arc};

use tfarrow_index::Dataset;

use crate::source_order::DataExtent;

/// The records of a data set that are read: all of them, or those with some numbers.
#[derive(Clone, Debug)]
pub enum Selection {
    /// All records.
    All,
    /// The records with these growing numbers, for example those that satisfy a condition.
    Some(Arc<[u64]>),
}

impl Selection {
    /// The extent of the selected records of a data set.
    pub fn extent(&self, dataset: &Dataset) -> DataExtent {
        let all = DataExtent {
            records: dataset.len(),
            bytes: dataset.bytes(),
            is_slow: dataset.is_slow(),
        };
        match self {
            Self::All => all,
            Self::Some(numbers) => {
                let records = numbers.len() as u64;
                DataExtent {
                    records,
                    bytes: all.mean_bytes().saturating_mul(records),
                    ..all
                }
            }
        }
    }

    /// The number of selected records of a data set.
    pub fn count(&self, dataset: &Dataset) -> u64 {
        match self {
            Self::All => dataset.len(),
            Self::Some(numbers) => numbers.len() as u64,
        }
    }

    /// The places of the selected records among those with these numbers.
    pub fn places(&self, numbers: Range<u64>) -> Range<u64> {
        match self {
            Self::All => numbers,
            Self::Some(selected) => {
                let place = |end| selected.partition_point(|number| *number < end) as u64;
                place(numbers.start)..place(numbers.end)
            }
        }
    }

    /// The number of the record at a place of the selection.
    pub fn record(&self, place: u64) -> u64 {
        match self {
            Self::All => place,
            // A number that no record has is an error of the data set.
            Self::Some(numbers) => numbers.get(place as usize).copied().unwrap_or(u64::MAX),
        }
    }
}
