//! Anomalies of a data set, and its distances from a baseline.

use std::io;

use serde::Serialize;
use tfarrow_codec::Place;
use tfarrow_stats::{Anomaly, AnomalyKind, Comparison, Distance, NonFinite, Validation};

use crate::text::{BAD, GOOD, Screen, count, escape, plural, pretty_json, short, text_table};

/// Returns the anomalies and the distances from a baseline as text: the number of anomalies, two
/// lines for each, notes, and a table of distances.
pub fn validation_text(compared: &Comparison, screen: Screen) -> String {
    ValidationReport::of(compared).text(screen)
}

/// Returns the anomalies and the distances from a baseline as JSON.
///
/// # Errors
/// A failure of the JSON writer, of which no case is known.
pub fn validation_json(compared: &Comparison) -> io::Result<String> {
    ValidationReport::of(compared).json()
}

/// A report of anomalies, and of distances from the baseline.
struct ValidationReport<'a> {
    found: &'a Validation,
    distances: &'a [Distance],
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    records: u64,
    /// The numbers of sampled shards and of all shards.
    sampled: Option<(usize, usize)>,
    anomalies: Vec<Located<'a>>,
    distances: &'a [Distance],
    /// Features with floats that are NaN or infinite.
    non_finite: Vec<NonFinite>,
}

#[derive(Serialize)]
struct Located<'a> {
    #[serde(flatten)]
    anomaly: &'a Anomaly,
    first: Option<First<'a>>,
}

/// The first record that has an anomaly.
#[derive(Serialize)]
struct First<'a> {
    file: &'a str,
    record: u64,
    /// `None` for a row of a file of another format than TFRecord.
    offset: Option<u64>,
}

impl<'a> ValidationReport<'a> {
    fn of(compared: &'a Comparison) -> Self {
        Self {
            found: &compared.found,
            distances: &compared.distances,
        }
    }

    fn records(&self) -> u64 {
        self.found.statistics.inferred.summary.records()
    }

    fn first(&self, place: Place) -> First<'_> {
        let file = self
            .found
            .statistics
            .inferred
            .names
            .get(place.shard as usize)
            .map_or("", String::as_str);
        First {
            file,
            record: place.record,
            offset: place.offset,
        }
    }

    /// The report as JSON.
    fn json(&self) -> io::Result<String> {
        let mut anomalies = Vec::with_capacity(self.found.anomalies.len());
        for anomaly in &self.found.anomalies {
            let first = anomaly.first.map(|place| self.first(place));
            anomalies.push(Located { anomaly, first });
        }
        pretty_json(&Document {
            records: self.records(),
            sampled: self
                .found
                .statistics
                .inferred
                .sampled
                .map(|sampled| (sampled.shards, sampled.of)),
            anomalies,
            distances: self.distances,
            non_finite: self.found.non_finite(),
        })
    }

    /// The number of anomalies, two lines for each, notes, and a table of distances.
    fn text(&self, screen: Screen) -> String {
        let anomalies = &self.found.anomalies;
        let found = match anomalies.len() {
            0 => screen.coloured(GOOD, "no anomalies"),
            1 => screen.coloured(BAD, "1 anomaly"),
            many => screen.coloured(BAD, &format!("{} anomalies", count(many as u64))),
        };
        let mut parts = vec![format!("{}, {found}", plural(self.records(), "record"))];
        parts.extend(
            anomalies
                .iter()
                .map(|anomaly| self.description(anomaly, screen)),
        );
        parts.extend(
            self.found
                .non_finite()
                .iter()
                .flat_map(|found| self.notes(found)),
        );
        if !self.distances.is_empty() {
            let mut rows = Vec::with_capacity(self.distances.len());
            for distance in self.distances {
                let measure = serde_json::to_value(distance.measure).unwrap_or_default();
                let measure = measure.as_str().unwrap_or_default().to_owned();
                let threshold = distance.threshold.map(short).unwrap_or_default();
                let about = if distance.is_estimated { "about " } else { "" };
                rows.push(vec![
                    escape(&distance.feature),
                    measure,
                    format!("{about}{}", short(distance.value)),
                    threshold,
                ]);
            }
            let names = ["feature", "distance from the baseline", "is", "may be"];
            parts.push(text_table(
                &names,
                &[false, false, true, true],
                &[],
                rows,
                screen,
            ));
        }
        parts.join("\n")
    }

    /// Notes about values that are NaN or infinite, where the schema allows them.
    fn notes(&self, found: &NonFinite) -> Vec<String> {
        let kinds = [
            (
                found.nan,
                "NaN",
                "disallow_nan",
                AnomalyKind::FloatTypeHasNan,
            ),
            (
                found.infinite,
                "infinite",
                "disallow_inf",
                AnomalyKind::FloatTypeHasInf,
            ),
        ];
        let mut notes = Vec::new();
        for (times, name, rule, kind) in kinds {
            if times == 0 || self.is_anomaly(found, kind) {
                continue;
            }
            let of = format!(
                "{} of {} values are {name}",
                count(times),
                count(found.values)
            );
            let feature = escape(&found.feature);
            notes.push(format!(
                "{feature}: note: {of}; float_domain {{ {rule}: true }} in the schema makes it an anomaly"
            ));
        }
        notes
    }

    /// Whether a feature has an anomaly of this kind.
    fn is_anomaly(&self, found: &NonFinite, kind: AnomalyKind) -> bool {
        let mut anomalies = self.found.anomalies.iter();
        anomalies
            .any(|anomaly| anomaly.kind == kind && anomaly.feature.as_ref() == Some(&found.feature))
    }

    fn description(&self, anomaly: &Anomaly, screen: Screen) -> String {
        let name = anomaly
            .feature
            .as_deref()
            .map_or("the data set".to_owned(), escape);
        let kind = screen.coloured(BAD, anomaly.kind.as_str_name());
        let of_records = anomaly.records.map_or(String::new(), |records| {
            let first = anomaly
                .first
                .map(|place| format!(", first {}: {place}", escape(self.first(place).file)));
            format!(
                " in {} of {}{}",
                count(records),
                plural(self.records(), "record"),
                first.unwrap_or_default()
            )
        });
        format!(
            "{name}: {kind}{of_records}\n    {}",
            escape(&anomaly.description)
        )
    }
}
