//! Places of charts, which `page.js` fills with drawings by Observable Plot, and bars of frequent
//! values.
//!
//! The numbers of a chart are attributes of its place, as JSON:
//!
//! ```text
//! <figure class="chart" data-chart="histogram" data-x="[0,10]" data-now="[4,2]">   two buckets: 0 to 5, 5 to 10
//! ```
//!
//! A table with the same numbers follows each chart, for readers without scripts.

use maud::{Markup, html};
use tfarrow_stats::{Correlation, Distribution, DistributionSide, PERCENTAGES};

use crate::text::{count, short};

/// Number of significant digits of counts, and of values.
const COUNT_DIGITS: usize = 4;
const VALUE_DIGITS: usize = 7;

/// The place of a histogram of numbers; empty if there are no two different values.
pub(super) fn histogram(name: &str, distribution: &Distribution) -> Markup {
    let (Some(low), Some(high)) = (distribution.bounds.first(), distribution.bounds.last()) else {
        return Markup::default();
    };
    let now = distribution.now.as_ref();
    let before = distribution.before.as_ref();
    html! {
        figure
            class="chart"
            data-chart="histogram"
            data-title={ "Histogram of " (name) }
            data-x=(json(&[*low, *high], VALUE_DIGITS))
            data-whole[is_whole(distribution)]
            data-now=[now.map(|side| json(&side.counts, COUNT_DIGITS))]
            data-before=[before.map(|side| json(&side.counts, COUNT_DIGITS))] {}
    }
}

/// The place of a chart of quantiles. Infinite values are left out.
pub(super) fn quantiles(
    title: &str,
    percentages: &[f64],
    now: Option<&[f64]>,
    before: Option<&[f64]>,
) -> Markup {
    html! {
        figure
            class="chart"
            data-chart="quantiles"
            data-title=(title)
            data-x=(json(percentages, VALUE_DIGITS))
            data-now=[now.map(|values| json(values, VALUE_DIGITS))]
            data-before=[before.map(|values| json(values, VALUE_DIGITS))] {}
    }
}

/// The percentages of the percentiles of a [`DistributionSide`].
pub(super) fn percentages() -> Vec<f64> {
    PERCENTAGES.into_iter().chain([100.0]).collect()
}

/// The place of a matrix of correlations. Pairs refer to names by index.
pub(super) fn matrix(names: &[String], pairs: &[Correlation]) -> Markup {
    let mut cells = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let coefficient = number(pair.coefficient, 3);
        cells.push(format!("[{},{},{coefficient}]", pair.one, pair.other));
    }
    html! {
        figure
            class="chart"
            data-chart="matrix"
            data-title="Correlations of numeric features"
            data-x=(serde_json::json!(names))
            data-now={ "[" (cells.join(",")) "]" } {}
    }
}

/// The place of lines over the steps of an episode: one line for each dimension, with every
/// `stride`th step.
pub(super) fn steps(title: &str, dimensions: &[Vec<f64>], stride: usize) -> Markup {
    let lines = dimensions
        .iter()
        .map(|values| json(values, COUNT_DIGITS))
        .collect::<Vec<_>>()
        .join(",");
    html! { figure class="chart" data-chart="steps" data-title=(title) data-x=(stride) data-now={ "[" (lines) "]" } {} }
}

/// The place of the curves of a tag: a line for each run, of steps and values.
pub(super) fn curves(title: &str, runs: &[(String, &[(i64, f64)])]) -> Markup {
    let mut names = Vec::with_capacity(runs.len());
    let mut lines = Vec::with_capacity(runs.len());
    for (name, points) in runs {
        let steps: Vec<_> = points.iter().map(|(step, _)| step.to_string()).collect();
        let values: Vec<_> = points.iter().map(|(_, value)| *value).collect();
        let values = json(&values, VALUE_DIGITS);
        names.push(name);
        lines.push(format!("[[{}],{values}]", steps.join(",")));
    }
    html! {
        figure
            class="chart"
            data-chart="curves"
            data-title=(title)
            data-x=(serde_json::json!(names))
            data-now={ "[" (lines.join(",")) "]" } {}
    }
}

/// A bar whose length is a share of the width of its cell, and a second one for the baseline. The
/// text beside it has the number.
pub(super) fn bar(now: Option<f64>, before: Option<f64>) -> Markup {
    let bars = [("now", now), ("before", before)]
        .into_iter()
        .filter_map(|(class, share)| Some((class, share?)));
    html! {
        span class="bars" aria-hidden="true" {
            @for (class, share) in bars {
                svg class=(class) width="100%" height="8" {
                    rect width={ (number(100.0 * share.clamp(0.0, 1.0), 4)) "%" } height="8" rx="2" {}
                }
            }
        }
    }
}

/// A rectangle, as left edge, upper edge, width and height.
pub(super) fn rect(at: [f64; 4]) -> Markup {
    let [x, y, width, height] = at.map(|length| format!("{length:.1}"));
    html! { rect x=(x) y=(y) width=(width) height=(height) {} }
}

/// The buckets of a histogram as a table.
pub(super) fn histogram_table(distribution: &Distribution) -> Markup {
    let sides = [("now", &distribution.now), ("before", &distribution.before)];
    let sides: Vec<_> = sides
        .into_iter()
        .filter_map(|(name, side)| Some((name, side.as_ref()?)))
        .collect();
    html! {
        @if !distribution.bounds.is_empty() {
            table class="data" {
                caption { "Histogram" }
                thead { tr { th scope="col" { "values" } @for (name, _) in &sides { th scope="col" { (name) } } } }
                tbody {
                    @for (index, bounds) in distribution.bounds.windows(2).enumerate() {
                        tr {
                            th scope="row" { (bucket(bounds, is_whole(distribution))) }
                            @for (_, side) in &sides { td { (bucket_count(side, index)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The number of values in a bucket.
fn bucket_count(side: &DistributionSide, index: usize) -> String {
    count(side.counts.get(index).copied().unwrap_or_default().round() as u64)
}

/// The values of a bucket: `3`, `3 to 5`, or `0.5 to 1.5`. The bounds of integers lie between
/// integers.
fn bucket(bounds: &[f64], is_whole: bool) -> String {
    let &[low, high] = bounds else {
        return String::new();
    };
    let [low, high] = if is_whole {
        [low.ceil(), high.floor()]
    } else {
        [low, high]
    };
    if low == high {
        short(low)
    } else {
        format!("{} to {}", short(low), short(high))
    }
}

/// Returns whether the bounds of buckets lie between integers.
fn is_whole(distribution: &Distribution) -> bool {
    distribution.kind == "int64_list"
        && distribution
            .bounds
            .first()
            .is_some_and(|low| low.fract() != 0.0)
}

/// Numbers as a JSON list; `null` for those that are not finite.
fn json(values: &[f64], digits: usize) -> String {
    let values: Vec<String> = values.iter().map(|value| number(*value, digits)).collect();
    format!("[{}]", values.join(","))
}

/// A number with so many significant digits.
fn number(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    // The largest float would be rounded to infinity.
    let rounded = format!("{value:.*e}", digits - 1)
        .parse()
        .ok()
        .filter(|rounded: &f64| rounded.is_finite());
    let rounded = rounded.unwrap_or(value);
    match rounded.abs() {
        size if size != 0.0 && !(1e-4..1e15).contains(&size) => format!("{rounded:e}"),
        _ => rounded.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_json() {
        let numbers = [
            0.0,
            -0.5,
            1.0 / 3.0,
            123_456.0,
            1e-9,
            f64::MAX,
            f64::NAN,
            f64::INFINITY,
        ];
        let text = json(&numbers, 4);
        assert_eq!(
            text,
            "[0,-0.5,0.3333,123500,1e-9,1.7976931348623157e308,null,null]"
        );
        assert_eq!(
            serde_json::from_str::<Vec<Option<f64>>>(&text)
                .unwrap()
                .len(),
            numbers.len()
        );
    }

    #[test]
    fn buckets_of_integers_have_their_values() {
        assert_eq!(bucket(&[2.5, 3.5], true), "3");
        assert_eq!(bucket(&[2.5, 5.5], true), "3 to 5");
        assert_eq!(bucket(&[2.5, 3.5], false), "2.5 to 3.5");
    }
}
