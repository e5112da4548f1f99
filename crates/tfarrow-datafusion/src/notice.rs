//! Notices of a scan besides its rows: features without a column, each name once, and skipped records.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tfarrow_dataset::DamageReport;

use crate::{origin::SchemaProvenance, remedy::SAMPLE_ALL};

/// Features that a scan met and its table has no column for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFeatures {
    /// Their names, sorted.
    pub names: Vec<String>,
    /// How much the schema was inferred from, in words; `None`: from everything, or not at all.
    pub sample: Option<String>,
}

/// Names that a message lists before it only counts.
const LISTED: usize = 10;

impl fmt::Display for UnknownFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (features, are) = if self.names.len() == 1 { ("feature", "is") } else { ("features", "are") };
        write!(f, "{} {features} of the records {are} no column: ", self.names.len())?;
        for (index, name) in self.names.iter().take(LISTED).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name:?}")?;
        }
        if self.names.len() > LISTED {
            write!(f, ", ..")?;
        }
        match &self.sample {
            Some(sample) => write!(f, "; the schema is that of {sample}: {SAMPLE_ALL}"),
            None => Ok(()),
        }
    }
}

/// A notice of a scan.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Features have no column.
    UnknownFeatures(UnknownFeatures),
    /// Records skipped since the last notice. A scan sends one before it returns the rows after them, and so many in a query:
    /// [`DamageReport::merge`] adds them up. Its faults have the shard number 0; their errors have the paths.
    Skipped(DamageReport),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFeatures(unknown) => unknown.fmt(f),
            Self::Skipped(skipped) => skipped.fmt(f),
        }
    }
}

/// Whom a scan tells, on whichever thread.
pub type OnNotice = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Tells each name once in a table's life, and what scans pass over.
#[derive(Default)]
pub(crate) struct Teller {
    tell: Option<OnNotice>,
    told: Mutex<BTreeSet<String>>,
}

impl Teller {
    pub(crate) fn new(tell: Option<OnNotice>) -> Self {
        Self { tell, told: Mutex::default() }
    }

    /// Tells of those of `names` that were not told of before.
    pub(crate) fn tell_unknown(&self, names: BTreeSet<String>, origin: &SchemaProvenance) {
        let Some(tell) = &self.tell else { return };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<_> = names.into_iter().filter(|name| told.insert(name.clone())).collect();
        drop(told);
        if !names.is_empty() {
            let sample = origin.sample().map(|sample| sample.to_string());
            tell(&Notice::UnknownFeatures(UnknownFeatures { names, sample }));
        }
    }

    /// Tells what was passed over, where anything was.
    pub(crate) fn tell_skipped(&self, skipped: DamageReport) {
        if let Some(tell) = self.tell.as_ref().filter(|_| !skipped.is_empty()) {
            tell(&Notice::Skipped(skipped));
        }
    }
}

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teller").finish_non_exhaustive()
    }
}
