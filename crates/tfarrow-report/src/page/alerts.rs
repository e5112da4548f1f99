//! The section of alerts: groups of one kind, each with links to the features.

use maud::{Markup, html};
use tfarrow_stats::{Alert, AlertKind};

use super::{excerpt::feature_name, links::Links};
use crate::text::{count, short};

/// Number of links of a group that are shown at once, and in all.
const FIRST_LINKS: usize = 12;
const MAX_LINKS: usize = 100;

/// The section; empty where there are no alerts.
pub(super) fn section(alerts: &[Alert], links: &Links) -> Markup {
    html! {
        @if !alerts.is_empty() {
            section id="alerts" {
                h2 { "Alerts " span class="count" { (count(alerts.len() as u64)) } }
                ul class="groups" {
                    @for group in alerts.chunk_by(|one, next| one.kind == next.kind) { (self::group(group, links)) }
                }
            }
        }
    }
}

fn group(alerts: &[Alert], links: &Links) -> Markup {
    let Some(kind) = alerts.first().map(|alert| alert.kind) else {
        return Markup::default();
    };
    let shown = alerts.get(..FIRST_LINKS).unwrap_or(alerts);
    let rest = alerts.get(FIRST_LINKS..).unwrap_or_default();
    let named = rest.get(..MAX_LINKS).unwrap_or(rest);
    html! {
        li class={ "group " (severity(kind)) } {
            h3 { (title(kind)) @if alerts.len() > 1 { " " span class="count" { (count(alerts.len() as u64)) } } }
            p class="note" { (description(kind)) }
            ul class="links" { @for alert in shown { li { (item(alert, links)) } } }
            @if !rest.is_empty() {
                details {
                    summary { (count(rest.len() as u64)) " more" }
                    ul class="links" { @for alert in named { li { (item(alert, links)) } } }
                    @if named.len() < rest.len() {
                        p class="note" { "and " (count((rest.len() - named.len()) as u64)) " more, omitted to limit the size of the page" }
                    }
                }
            }
        }
    }
}

/// A link to the feature, and the number of the alert.
fn item(alert: &Alert, links: &Links) -> Markup {
    let value = value(alert);
    html! {
        @match &alert.feature {
            Some((name, is_list)) => (links.to(name, *is_list, &feature_name(name, *is_list))),
            None => a href="#overview" { "the data set" },
        }
        @if let Some(other) = &alert.other { " and " (links.to(other, false, &feature_name(other, false))) }
        @if let Some(value) = value { " " span class="value" { (value) } }
    }
}

/// The class of a kind of alert.
pub(super) fn severity(kind: AlertKind) -> &'static str {
    use AlertKind::{DamagedImages, Infinite, InvalidText, MixedKinds, Nan, NoValues};
    match kind {
        MixedKinds | Nan | Infinite | DamagedImages | InvalidText | NoValues => "severe",
        AlertKind::Skewed | AlertKind::Correlated | AlertKind::Unique | AlertKind::MostlyZeros => {
            "mild"
        }
        _ => "fair",
    }
}

/// The badge of a feature that has the alert.
pub(super) fn badge(alert: &Alert) -> String {
    let title = title(alert.kind).to_lowercase().replace("nan", "NaN");
    match (&alert.other, value(alert)) {
        (Some(other), _) => format!("{title} with {}", feature_name(other, false)),
        (None, Some(value)) if !matches!(alert.kind, AlertKind::Unique | AlertKind::MixedKinds) => {
            format!("{title} {value}")
        }
        _ => title,
    }
}

fn title(kind: AlertKind) -> &'static str {
    match kind {
        AlertKind::MixedKinds => "Several kinds",
        AlertKind::Nan => "NaN",
        AlertKind::Infinite => "Infinite values",
        AlertKind::DamagedImages => "Damaged images",
        AlertKind::InvalidText => "Invalid UTF-8",
        AlertKind::NoValues => "No values",
        AlertKind::AllZero => "All zero",
        AlertKind::Constant => "Constant",
        AlertKind::MostlyMissing => "Mostly missing",
        AlertKind::DuplicateRecords => "Duplicate records",
        AlertKind::Imbalanced => "Imbalanced",
        AlertKind::MostlyZeros => "Mostly zeros",
        AlertKind::Skewed => "Skewed",
        AlertKind::Correlated => "Correlated",
        AlertKind::Unique => "Unique",
    }
}

fn description(kind: AlertKind) -> &'static str {
    match kind {
        AlertKind::MixedKinds => "Records disagree on the kind of the feature.",
        AlertKind::Nan => "Share of values that are not a number.",
        AlertKind::Infinite => "Share of values that are infinite.",
        AlertKind::DamagedImages => "Share of images whose header cannot be read.",
        AlertKind::InvalidText => "Share of values that are not UTF-8, where most are text.",
        AlertKind::NoValues => "No record has a value.",
        AlertKind::AllZero => "All values are zero.",
        AlertKind::Constant => "All values are equal.",
        AlertKind::MostlyMissing => "Share of records without a value, at least 50 %.",
        AlertKind::DuplicateRecords => "Share of records that equal an earlier one byte for byte.",
        AlertKind::Imbalanced => "Share of the most frequent value, at least 95 %.",
        AlertKind::MostlyZeros => "Share of zeros, at least 90 %.",
        AlertKind::Skewed => "Skewness, at least 4 or at most -4.",
        AlertKind::Correlated => "Linear correlation, at least 0.95 or at most -0.95.",
        AlertKind::Unique => "No two values are equal, as in identifiers.",
    }
}

/// The number of an alert as text.
fn value(alert: &Alert) -> Option<String> {
    let value = alert.value?;
    Some(match alert.kind {
        AlertKind::Skewed => format!("{value:.1}"),
        AlertKind::Correlated => format!("{value:.3}"),
        AlertKind::Constant => short(value),
        AlertKind::MixedKinds => format!("{} kinds", short(value)),
        AlertKind::Unique => format!("{} values", short(value)),
        _ if value > 0.0 && value < 0.000_5 => "less than 0.1 %".to_owned(),
        _ if value == 1.0 => "100 %".to_owned(),
        _ => format!("{:.1} %", 100.0 * value),
    })
}
