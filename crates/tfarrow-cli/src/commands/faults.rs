//! Reports of faults in files, as lines or as JSON.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use tfarrow_codec::Remedy;
use tfarrow_dataset::{DamageReport, Fault, FaultKind, Shard};

use crate::{
    args::FaultFormat,
    error::{reading_remedy, words},
    output::{self, BAD, Screen, count, plural},
    stderr,
    text::escape,
};

/// The faults found in files.
pub(crate) struct FaultReport<'f> {
    /// The names of the files, by the shard indices of the faults.
    pub(crate) files: &'f [String],
    pub(crate) damage: &'f DamageReport,
}

impl FaultReport<'_> {
    /// Number of faults.
    pub(super) fn total(&self) -> u64 {
        self.damage.by_kind().values().sum()
    }

    /// Prints the faults on standard output. The JSON document has the fields of `summary` as well.
    pub(super) fn print(&self, format: FaultFormat, summary: Value) -> Result<()> {
        match format {
            FaultFormat::Table if self.damage.faults().is_empty() => output::nothing()?,
            FaultFormat::Table => output::line(&self.text(Screen::stdout()))?,
            FaultFormat::Json => output::line(&output::pretty(&self.json(summary))?)?,
        }
        let more = self.total() - self.damage.faults().len() as u64;
        if more > 0 {
            let are = if more == 1 { "is" } else { "are" };
            stderr::print(&format!(
                "{} {are} counted and not listed",
                plural(more, "more fault")
            ));
        }
        for remedy in self.remedies() {
            match &remedy {
                Remedy::RaiseLimit(name) => {
                    stderr::print(&format!("{name} is a limit: {}", words(&remedy)))
                }
                _ => stderr::print(&words(&remedy)),
            }
        }
        Ok(())
    }

    /// Prints the faults on standard error, for commands that write data to standard output.
    pub(super) fn print_to_stderr(&self) {
        let text =
            |fault: &Fault| escape(&format!("{}{}", fault.error, reading_remedy(&fault.error)));
        self.damage
            .faults()
            .iter()
            .for_each(|fault| stderr::print(&text(fault)));
    }

    /// The faults, one a line.
    pub(crate) fn text(&self, screen: Screen) -> String {
        let lines: Vec<_> = self
            .damage
            .faults()
            .iter()
            .map(|fault| line(fault, screen))
            .collect();
        lines.join("\n")
    }

    /// The remedies for the faults, each once, besides repairing the files.
    fn remedies(&self) -> Vec<Remedy> {
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
    pub(crate) fn json(&self, mut summary: Value) -> Value {
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
    pub(crate) fn summary(&self) -> String {
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
pub(super) fn names(shards: &[Shard]) -> Vec<String> {
    shards
        .iter()
        .map(|shard| shard.path.to_string_lossy().into_owned())
        .collect()
}
