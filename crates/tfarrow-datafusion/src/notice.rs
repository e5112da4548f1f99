//! Notices of a scan besides its rows: features without a column, each name once, a field that
//! messages do not define, and skipped records.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tfarrow_dataset::DamageReport;
use tfarrow_dataset::internals::Lock;
use tfarrow_index::UnusableIndex;
use tfarrow_scan::RowLosses;

use crate::{remedy::SAMPLE_ALL, schema::provenance::SchemaProvenance};

/// Features of records that have no column in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFeatures {
    /// Their names, sorted.
    pub names: Vec<String>,
    /// The size of the sample that the schema was inferred from, in words; `None` if all records
    /// were read, or the schema was declared.
    pub sample: Option<String>,
}

/// Maximum number of names in a message.
const MAX_LISTED: usize = 10;

impl UnknownFeatures {
    /// Returns the number of the features and the first of their names, without a remedy.
    pub fn description(&self) -> String {
        let features = if self.names.len() == 1 {
            "feature has"
        } else {
            "features have"
        };
        let names: Vec<_> = self
            .names
            .iter()
            .take(MAX_LISTED)
            .map(|name| format!("{name:?}"))
            .collect();
        let more = if self.names.len() > MAX_LISTED {
            ", .."
        } else {
            ""
        };
        format!(
            "{} {features} no column: {}{more}",
            self.names.len(),
            names.join(", ")
        )
    }
}

/// The description, with a remedy in SQL if the schema was inferred from a sample.
impl fmt::Display for UnknownFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description())?;
        match &self.sample {
            Some(sample) => write!(f, "; the schema was inferred from {sample}: {SAMPLE_ALL}"),
            None => Ok(()),
        }
    }
}

/// A notice of a scan.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Features have no column.
    UnknownFeatures(UnknownFeatures),
    /// A field of messages that their type does not define, by its number. Such fields are skipped.
    UnknownField(u32),
    /// Records skipped since the last notice. A scan sends one before it returns the rows after
    /// them, and thus several in a query: [`DamageReport::merge`] adds them up. Its faults have the
    /// shard number 0; their errors have the paths.
    Skipped(DamageReport),
    /// Columns of a query, or of a file of another format, that `SUMMARIZE` leaves out because no
    /// record can hold them, and values that it changes.
    Losses(RowLosses),
    /// Why the records of a file have no features to summarize.
    NoFeatures(String),
    /// The index of a file is not used.
    UnusableIndex(UnusableIndex),
    /// A table has several splits of TFDS: their names, and the globs of their files.
    Splits(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFeatures(unknown) => unknown.fmt(f),
            Self::UnknownField(field) => {
                write!(
                    f,
                    "the messages have fields that their type does not define, such as field {field}: they are skipped"
                )
            }
            Self::Skipped(skipped) => skipped.fmt(f),
            Self::Losses(losses) => f.write_str(&losses.notes().join("; ")),
            Self::UnusableIndex(unusable) => unusable.fmt(f),
            Self::NoFeatures(why) | Self::Splits(why) => f.write_str(why),
        }
    }
}

/// A callback for notices. Threads of a scan call it, several at the same time.
pub type OnNotice = Arc<dyn Fn(&Notice) + Send + Sync>;

/// The notices of a session, which its configuration has as an extension.
#[derive(Clone, Default)]
pub struct SessionNotices {
    /// The callback of the session.
    pub on_notice: Option<OnNotice>,
}

impl SessionNotices {
    /// Passes a notice to the callback of the session, if there is one.
    pub fn notify(&self, notice: &Notice) {
        if let Some(on_notice) = &self.on_notice {
            on_notice(notice);
        }
    }

    /// Passes the notice of columns and values that are left out or changed, if there are any.
    pub fn notify_losses(&self, losses: &RowLosses) {
        if *losses != RowLosses::default() {
            self.notify(&Notice::Losses(losses.clone()));
        }
    }
}

/// Sends the notices of the scans of a table. Each unknown feature is reported once in the lifetime
/// of the table, and one unknown field.
#[derive(Default)]
pub struct NoticeSender {
    on_notice: Option<OnNotice>,
    /// Unknown features that have been reported.
    reported: Lock<BTreeSet<String>>,
    /// Whether a field has been reported that the type of the messages does not define.
    has_unknown_field: AtomicBool,
}

impl NoticeSender {
    /// Creates a sender to this callback.
    pub fn new(on_notice: Option<OnNotice>) -> Self {
        Self {
            on_notice,
            ..Self::default()
        }
    }

    /// Reports the features among `names` that have not been reported yet.
    pub fn send_unknown(&self, names: BTreeSet<String>, provenance: &SchemaProvenance) {
        let Some(send) = &self.on_notice else { return };
        let mut reported = self.reported.lock();
        let names: Vec<_> = names
            .into_iter()
            .filter(|name| reported.insert(name.clone()))
            .collect();
        drop(reported);
        if !names.is_empty() {
            let sample = provenance.sample().map(|sample| sample.to_string());
            send(&Notice::UnknownFeatures(UnknownFeatures { names, sample }));
        }
    }

    /// Reports a field that the type of the messages does not define, unless one was reported.
    pub fn send_unknown_field(&self, field: u32) {
        let Some(send) = &self.on_notice else { return };
        if !self.has_unknown_field.swap(true, Ordering::Relaxed) {
            send(&Notice::UnknownField(field));
        }
    }

    /// Reports indexes that are not used.
    pub(crate) fn send_unusable(&self, unusable: &[UnusableIndex]) {
        let Some(send) = &self.on_notice else { return };
        for index in unusable {
            send(&Notice::UnusableIndex(index.clone()));
        }
    }

    /// Reports skipped records, if there are any.
    pub fn send_skipped(&self, skipped: DamageReport) {
        if let Some(send) = self.on_notice.as_ref().filter(|_| !skipped.is_empty()) {
            send(&Notice::Skipped(skipped));
        }
    }
}

impl fmt::Debug for NoticeSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoticeSender").finish_non_exhaustive()
    }
}
