//! Reports of faults in files, as lines or as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tfarrow_codec::Remedy;
use tfarrow_dataset::{DamageReport, Fault, FaultKind, Shard};

use crate::text::{BAD, Screen, count, escape, plural};

/// The faults found in files.
pub struct FaultReport<'f> {
    /// The names of the files, by the shard indices of the faults.
    pub files: &'f [String],
    /// The faults, and their numbers.
    pub damage: &'f DamageReport,
}

impl FaultReport<'_> {
    /// Number of faults.
    pub fn total(&self) -> u64 {
        self.damage.by_kind().values().sum()
    }

    /// The faults, one a line.
    pub fn text(&self, screen: Screen) -> String {
        let lines: Vec<_> = self
            .damage
            .faults()
            .iter()
            .map(|fault| line(fault, screen))
            .collect();
        lines.join("\n")
    }

    /// The remedies for the faults, each once, besides repairing the files.
    pub fn remedies(&self) -> Vec<Remedy> {
        let mut all = Vec::new();
        for remedy in self
            .damage
            .faults()
            .iter()
            .flat_map(|fault| fault.error.remedies())
        {
            if matches!(remedy, Remedy::RaiseLimit(_) | Remedy::ReadAs(_)) && !all.contains(&remedy)
            {
                all.push(remedy);
            }
        }
        all
    }

    /// The faults and their numbers, with the fields of `summary`, which is an object.
    pub fn json(&self, mut summary: Value) -> Value {
        let counts = FaultKind::ALL
            .iter()
            .filter_map(|kind| Some((kind.name(), *self.damage.by_kind().get(kind)?)));
        summary["counts"] = counts.collect::<BTreeMap<_, _>>().into_iter().collect();
        summary["faults"] = self
            .damage
            .faults()
            .iter()
            .map(|fault| self.fault(fault))
            .collect();
        summary
    }

    fn fault(&self, fault: &Fault) -> Value {
        json!({
            "file": self.files.get(fault.shard),
            "record": fault.record,
            "offset": fault.offset,
            "bytes": fault.bytes,
            "kind": fault.kind().name(),
            "message": fault.error.to_string(),
        })
    }

    /// The numbers of faults by kind: `3 faults (2 data, 1 length)`.
    pub fn summary(&self) -> String {
        let total = self.total();
        let kinds: Vec<_> = self
            .damage
            .by_kind()
            .iter()
            .map(|(kind, times)| format!("{} {}", count(*times), kind.name()))
            .collect();
        if total == 0 {
            "no faults".to_owned()
        } else {
            format!("{} ({})", plural(total, "fault"), kinds.join(", "))
        }
    }
}

/// A fault as a line, with the number of lost bytes where they are more than one record.
fn line(fault: &Fault, screen: Screen) -> String {
    let text = escape(&fault.error.to_string());
    let lost = match fault.kind() {
        FaultKind::Length | FaultKind::Limit | FaultKind::Tail => {
            format!(" ({} lost)", plain_bytes(fault.bytes))
        }
        FaultKind::Data | FaultKind::Message | FaultKind::Compression | FaultKind::File => {
            String::new()
        }
    };
    format!("{}{lost}", screen.coloured(BAD, &text))
}

/// An exact number of bytes, as the error messages have them.
fn plain_bytes(bytes: u64) -> String {
    format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" })
}

/// The names of shards.
pub fn shard_names(shards: &[Shard]) -> Vec<String> {
    shards
        .iter()
        .map(|shard| shard.path.to_string_lossy().into_owned())
        .collect()
}
