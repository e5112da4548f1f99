//! What was passed over, for whoever reads on behind damage.

use std::{fmt, sync::Arc};

use crate::{Error, Lost};

/// What a reader passed over.
#[derive(Clone, Debug, Default)]
pub struct SkippedRecords {
    /// Whole records.
    pub records: u64,
    /// How many of them are damaged; the others do not fit what they were read as.
    pub corrupt: u64,
    /// Stretches that no record could be made of: each held one record or more.
    pub stretches: u64,
    /// Bytes of these stretches; of those that do not inflate, as they are stored.
    pub bytes: u64,
    /// What was wrong first.
    pub first: Option<Arc<Error>>,
}

impl SkippedRecords {
    /// Whether nothing was passed over.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Adds a record that is damaged, or does not fit.
    pub fn add_record(&mut self, error: Error) {
        self.records += 1;
        self.corrupt += u64::from(error.is_damage());
        self.first.get_or_insert(Arc::new(error));
    }

    /// Adds a stretch, or a part of one.
    pub fn add_lost(&mut self, lost: Lost) {
        self.bytes += lost.bytes.len() as u64;
        if let Some(error) = lost.error {
            self.stretches += 1;
            self.first.get_or_insert(Arc::new(error));
        }
    }

    /// Adds what another reader passed over, which comes after this.
    pub fn merge(&mut self, other: Self) {
        let Self { records, corrupt, stretches, bytes, first } = other;
        self.records += records;
        self.corrupt += corrupt;
        self.stretches += stretches;
        self.bytes += bytes;
        self.first = self.first.take().or(first);
    }
}

impl fmt::Display for SkippedRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |count| if count == 1 { "" } else { "s" };
        let (bytes, stretches) = (self.bytes, self.stretches);
        f.write_str("passed over ")?;
        if self.records > 0 || stretches == 0 {
            write!(f, "{} record{}", self.records, s(self.records))?;
        }
        if stretches > 0 {
            let and = if self.records > 0 { ", and " } else { "" };
            write!(f, "{and}{bytes} byte{} in {stretches} place{}", s(bytes), s(stretches))?;
            write!(f, " that no record can be made of")?;
        }
        match &self.first {
            Some(first) => write!(f, "; the first: {first}"),
            None => Ok(()),
        }
    }
}
