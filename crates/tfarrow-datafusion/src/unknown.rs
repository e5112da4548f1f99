//! Features that a scan meets and the schema has no column for: told once, by name.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::origin::Origin;

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
            Some(sample) => write!(f, "; the schema is that of {sample}: SET tfarrow.sample_records = 'all'"),
            None => Ok(()),
        }
    }
}

/// What is told of unknown features. It is called once a scan at most, after its last batch, on whichever thread.
pub type OnUnknownFeatures = Arc<dyn Fn(&UnknownFeatures) + Send + Sync>;

/// Tells each name once in a table's life.
#[derive(Default)]
pub(crate) struct Teller {
    tell: Option<OnUnknownFeatures>,
    told: Mutex<BTreeSet<String>>,
}

impl Teller {
    pub(crate) fn new(tell: Option<OnUnknownFeatures>) -> Self {
        Self { tell, told: Mutex::default() }
    }

    /// Tells of those of `names` that were not told of before.
    pub(crate) fn tell(&self, names: BTreeSet<String>, origin: &Origin) {
        let Some(tell) = &self.tell else { return };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<_> = names.into_iter().filter(|name| told.insert(name.clone())).collect();
        drop(told);
        if !names.is_empty() {
            tell(&UnknownFeatures { names, sample: origin.sample().map(|sample| sample.to_string()) });
        }
    }
}

impl fmt::Debug for Teller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teller").finish_non_exhaustive()
    }
}
