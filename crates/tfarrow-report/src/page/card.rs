//! The card of one feature and kind: its figures, its chart, and tables of details, for one data
//! set or two.

use maud::{Markup, html};
use tfarrow_stats::{
    Alert, Distance, Distribution, FeatureStatistics, KindStatistics, ListLengths, Measure,
};

use super::{alerts, chart, excerpt::feature_name};
use crate::text::{count, percent, plural, range, short};

/// A feature, and its statistics of one kind; `None` where the feature has no kind.
#[derive(Clone, Copy)]
pub(super) struct FeatureKind<'a> {
    pub(super) feature: &'a FeatureStatistics,
    pub(super) kind: Option<&'a KindStatistics>,
}

/// A feature of one kind, in the data set, in the baseline, or in both.
#[derive(Clone)]
pub(super) struct Card<'a> {
    /// The number of the card's anchor.
    pub(super) id: usize,
    pub(super) now: Option<FeatureKind<'a>>,
    pub(super) before: Option<FeatureKind<'a>>,
    /// Whether there is a baseline.
    pub(super) has_baseline: bool,
    /// The distances from the baseline.
    pub(super) distances: &'a [Distance],
    /// The distribution of numbers.
    pub(super) distribution: Option<&'a Distribution>,
    pub(super) alerts: Vec<&'a Alert>,
    /// Number of anomalies.
    pub(super) anomalies: usize,
    /// The Arrow type of the column.
    pub(super) arrow: Option<String>,
    /// Some texts, where most values differ.
    pub(super) samples: Vec<String>,
}

/// The share of this number of records of all records.
pub(super) fn share_of_records(feature: &FeatureStatistics, records: u64) -> String {
    if records == 0 {
        "0".to_owned()
    } else {
        percent(records, feature.present + feature.missing)
    }
}

/// A figure of a card: its name, its value now, and its value before if that was another.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) now: Option<String>,
    pub(super) before: Option<String>,
}

impl<'a> Card<'a> {
    /// The feature in the data set, or else in the baseline.
    pub(super) fn side(&self) -> Option<FeatureKind<'a>> {
        self.now.or(self.before)
    }

    /// The statistics of the kind, in the data set or else in the baseline.
    pub(super) fn kind(&self) -> Option<&'a KindStatistics> {
        self.side().and_then(|side| side.kind)
    }

    /// Whether the feature has numbers.
    pub(super) fn is_numeric(&self) -> bool {
        self.kind().is_some_and(|kind| kind.numbers.is_some())
    }

    /// The name, with `[]` for a feature list.
    pub(super) fn name(&self) -> String {
        self.side().map_or_else(String::new, |side| {
            feature_name(&side.feature.name, side.feature.is_list)
        })
    }

    /// The distance of the distributions by the one measure that both numbers and strings have.
    /// Other measures are not comparable with it: a normalized absolute difference grows with the
    /// size of the data set.
    pub(super) fn drift(&self) -> Option<f64> {
        let divergence = self
            .distances
            .iter()
            .find(|distance| distance.measure == Measure::JensenShannonDivergence);
        divergence.map(|distance| distance.value)
    }

    /// The share of records without the feature.
    pub(super) fn missing(&self) -> f64 {
        let Some(FeatureKind { feature, .. }) = self.side() else {
            return 0.0;
        };
        feature.missing as f64 / (feature.present + feature.missing).max(1) as f64
    }

    /// The card with a body.
    pub(super) fn html(&self, body: &Markup) -> Markup {
        html! {
            article
                class="card"
                id={ "f" (self.id) }
                data-group=(if self.is_numeric() { "numeric" } else { "bytes" })
                data-alerts=(self.alerts.len() + self.anomalies)
                data-missing=(format!("{:.4}", self.missing()))
                data-drift=[self.drift().map(|drift| format!("{drift:.6}"))]
            {
                (self.head())
                (body)
            }
        }
    }

    fn head(&self) -> Markup {
        let state = match (self.now, self.before) {
            (Some(_), None) if self.has_baseline => Some("new"),
            (None, Some(_)) => Some("gone"),
            _ => None,
        };
        html! {
            header {
                h4 { a href={ "#f" (self.id) } { (self.name()) } }
                p class="type" {
                    (self.kind().map_or("no kind", |kind| kind.kind))
                    @if let Some(arrow) = &self.arrow { " · " (arrow) }
                }
                @let drift = self.drift().map(|drift| format!("drift {drift:.3}"));
                @if state.is_some() || drift.is_some() || !self.alerts.is_empty() || self.anomalies > 0 {
                    ul class="badges" {
                        @if let Some(state) = state { li class="badge drifted" { (state) } }
                        @if let Some(drift) = drift { li class="badge drifted" { (drift) } }
                        @if self.anomalies > 0 {
                            li { a class="badge severe" href="#anomalies" {
                                (count(self.anomalies as u64)) @if self.anomalies == 1 { " anomaly" } @else { " anomalies" }
                            } }
                        }
                        @for alert in &self.alerts { li class={ "badge " (alerts::severity(alert.kind)) } { (alerts::badge(alert)) } }
                    }
                }
            }
        }
    }

    /// A figure of both data sets.
    pub(super) fn figure(
        &self,
        name: &'static str,
        of: impl Fn(FeatureKind<'_>) -> Option<String>,
    ) -> Figure {
        let now = self.now.and_then(&of);
        let before = self.before.and_then(of);
        Figure {
            name,
            before: before.filter(|before| now.as_ref() != Some(before)),
            now,
        }
    }

    /// The figures that every feature has.
    pub(super) fn common_figures(&self) -> Vec<Figure> {
        let length_name = if self.is_list() {
            "values per step"
        } else {
            "values per record"
        };
        vec![
            self.figure("missing", |side| {
                Some(share_of_records(side.feature, side.feature.missing))
            }),
            self.figure("unset", unset),
            self.figure("steps", |side| {
                let (fewest, most) = side.feature.steps?;
                Some(range(fewest, most))
            }),
            self.figure(length_name, |side| {
                Some(range_and_mean(&side.kind?.lengths))
            }),
        ]
    }

    fn is_list(&self) -> bool {
        self.side().is_some_and(|side| side.feature.is_list)
    }

    /// The lengths of lists as a chart and a table, where they vary, and the distances from the
    /// baseline.
    pub(super) fn common_details(&self) -> Markup {
        let now = lengths(self.now);
        let before = lengths(self.before);
        let varies = [now, before]
            .into_iter()
            .flatten()
            .any(|lengths| lengths.min < lengths.max);
        let percentages: Vec<f64> = (0..=10).map(|decile| f64::from(decile) * 10.0).collect();
        let deciles_now = now.map(|lengths| lengths.deciles.as_slice());
        let deciles_before = before.map(|lengths| lengths.deciles.as_slice());
        html! {
            @if varies {
                div class="pair" {
                    (chart::quantiles(&format!("Lengths of lists of {}", self.name()), &percentages, deciles_now, deciles_before))
                    (percentile_table("Lengths of lists, percentiles", &percentages, deciles_now, deciles_before))
                }
                @if let Some(sampled) = now.and_then(|lengths| lengths.sampled) {
                    p class="note" { "Percentiles of lengths are estimates from a sample of " (count(sampled)) " lists." }
                }
            }
            (distances(self.distances))
        }
    }
}

/// The steps, or the share of the records, in which the feature has no kind; `None` if there are
/// none.
fn unset(side: FeatureKind<'_>) -> Option<String> {
    match side.feature.unset {
        0 => None,
        steps if side.feature.is_list => Some(plural(steps, "step")),
        records => Some(share_of_records(side.feature, records)),
    }
}

/// The lengths of the lists of a side.
fn lengths<'a>(side: Option<FeatureKind<'a>>) -> Option<&'a ListLengths> {
    Some(&side?.kind?.lengths)
}

/// The range of the lengths of lists, and their mean if they vary.
fn range_and_mean(lengths: &ListLengths) -> String {
    let mean = if lengths.min == lengths.max {
        String::new()
    } else {
        format!(", mean {}", short(lengths.mean))
    };
    format!("{}{mean}", range(lengths.min, lengths.max))
}

/// A list of figures. Figures that neither data set has are left out.
pub(super) fn figures(figures: &[Figure]) -> Markup {
    html! {
        dl class="figures" {
            @for figure in figures.iter().filter(|figure| figure.now.is_some() || figure.before.is_some()) {
                div {
                    dt { (figure.name) }
                    dd {
                        (figure.now.as_deref().unwrap_or("–"))
                        @if let Some(before) = &figure.before { " " small { "was " (before) } }
                    }
                }
            }
        }
    }
}

/// A table of percentiles.
pub(super) fn percentile_table(
    title: &str,
    percentages: &[f64],
    now: Option<&[f64]>,
    before: Option<&[f64]>,
) -> Markup {
    let sides = [("now", now), ("before", before)];
    let sides: Vec<_> = sides
        .into_iter()
        .filter_map(|(name, side)| Some((name, side?)))
        .collect();
    html! {
        table class="data" {
            caption { (title) }
            thead { tr { th scope="col" { "percentile" } @for (name, _) in &sides { th scope="col" { (name) } } } }
            tbody {
                @for (index, percentage) in percentages.iter().enumerate() {
                    tr {
                        th scope="row" { (percentile_name(*percentage)) }
                        @for (_, side) in &sides { td { (side.get(index).map_or_else(String::new, |value| short(*value))) } }
                    }
                }
            }
        }
    }
}

fn percentile_name(percentage: f64) -> String {
    match percentage {
        0.0 => "minimum".to_owned(),
        50.0 => "median".to_owned(),
        100.0 => "maximum".to_owned(),
        percentage => format!("{percentage} %"),
    }
}

/// All distances, each with the name of its measure.
fn distances(distances: &[Distance]) -> Markup {
    html! {
        @if !distances.is_empty() {
            table class="data" {
                caption { "Distances from the baseline" }
                tbody {
                    @for distance in distances {
                        tr {
                            th scope="row" { (measure(distance.measure)) }
                            td { @if distance.is_estimated { "about " } (short(distance.value)) }
                        }
                    }
                }
            }
        }
    }
}

fn measure(measure: Measure) -> &'static str {
    match measure {
        Measure::LInfty => "L-infinity distance of shares",
        Measure::JensenShannonDivergence => "Jensen-Shannon divergence",
        Measure::NormalizedAbsoluteDifference => {
            "difference of counts, which grows with the difference of sizes"
        }
    }
}
