//! The body of the card of a feature with numbers.

use maud::{Markup, html};
use tfarrow_stats::NumberStatistics;

use super::{
    card::{Card, Figure, figures, percentile_table},
    chart,
};
use crate::text::{count, number, percent, short};

/// The figures and the histogram, and the quantiles and the lengths of lists as details.
pub(super) fn body(card: &Card<'_>) -> Markup {
    let name = card.name();
    html! {
        div class="body" {
            (figures(&number_figures(card)))
            div class="plot" {
                @if let Some(distribution) = card.distribution { (chart::histogram(&name, distribution)) }
                (sample_note(card))
            }
        }
        details {
            summary { "Quantiles and tables" }
            div class="details" {
                @if let Some(distribution) = card.distribution {
                    @let percentages = chart::percentages();
                    @let now = distribution.now.as_ref().map(|side| side.percentiles.as_slice());
                    @let before = distribution.before.as_ref().map(|side| side.percentiles.as_slice());
                    div class="pair" {
                        @if !distribution.bounds.is_empty() {
                            (chart::quantiles(&format!("Quantiles of {name}"), &percentages, now, before))
                        }
                        (percentile_table("Quantiles", &percentages, now, before))
                        (chart::histogram_table(distribution))
                    }
                }
                (card.common_details())
            }
        }
    }
}

/// A figure of numbers, which a side without numbers does not have.
fn number_figure(
    card: &Card<'_>,
    name: &'static str,
    of: fn(&NumberStatistics) -> Option<String>,
) -> Figure {
    card.figure(name, |side| {
        let numbers = side.kind?.numbers.as_ref()?;
        if numbers.count > 0 { of(numbers) } else { None }
    })
}

/// The share of some of the numbers, which a side without such numbers does not have.
fn share_figure(card: &Card<'_>, name: &'static str, of: fn(&NumberStatistics) -> u64) -> Figure {
    card.figure(name, |side| {
        let numbers = side.kind?.numbers.as_ref()?;
        let part = of(numbers);
        (part > 0).then(|| percent(part, numbers.count + numbers.nan))
    })
}

fn number_figures(card: &Card<'_>) -> Vec<Figure> {
    let mut all = card.common_figures();
    all.extend([
        number_figure(card, "mean", |numbers| known(numbers.mean)),
        number_figure(card, "median", |numbers| of_sample(numbers, numbers.median)),
        number_figure(card, "std. deviation", |numbers| known(numbers.std_dev)),
        number_figure(card, "minimum", |numbers| Some(number(numbers.min))),
        number_figure(card, "maximum", |numbers| Some(number(numbers.max))),
        // A remainder of rounding is no skewness.
        number_figure(card, "skewness", |numbers| {
            of_sample(
                numbers,
                if numbers.skewness.abs() < 1e-6 {
                    0.0
                } else {
                    numbers.skewness
                },
            )
        }),
        share_figure(card, "zeros", |numbers| numbers.zeros),
        share_figure(card, "NaN", |numbers| numbers.nan),
        share_figure(card, "infinite", |numbers| numbers.positive_infinities),
        share_figure(card, "-infinite", |numbers| numbers.negative_infinities),
        card.figure("values", |side| side.kind.map(|kind| count(kind.values))),
    ]);
    all
}

/// A figure as text; `None` for one that the numbers do not have.
fn known(figure: f64) -> Option<String> {
    (!figure.is_nan()).then(|| short(figure))
}

/// A figure that is estimated if numbers were sampled.
pub(super) fn of_sample(numbers: &NumberStatistics, figure: f64) -> Option<String> {
    let about = if numbers.sampled.is_some() {
        "about "
    } else {
        ""
    };
    known(figure).map(|figure| format!("{about}{figure}"))
}

/// Names the size of the sample that the chart is of, or the reason why there is no chart.
fn sample_note(card: &Card<'_>) -> Markup {
    let sampled = card
        .now
        .and_then(|side| side.kind?.numbers.as_ref()?.sampled);
    let has_chart = card
        .distribution
        .is_some_and(|distribution| !distribution.bounds.is_empty());
    html! {
        @if !has_chart {
            p class="note" { "No two finite values are different." }
        } @else if let Some(sampled) = sampled {
            p class="note" { "Median, skewness, histogram and quantiles are estimates from a sample of " (count(sampled)) " values." }
        }
    }
}
