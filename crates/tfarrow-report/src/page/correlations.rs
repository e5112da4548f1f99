//! The section of correlations: a matrix of the features that are correlated most, and a table of
//! the strongest pairs.

use std::collections::BTreeSet;

use maud::{Markup, html};
use tfarrow_stats::{Correlation, Correlations};

use super::{
    chart,
    excerpt::{NAME_CHARS, excerpt},
    links::Links,
};
use crate::text::count;

/// Number of features of the matrix.
const MAX_FEATURES: usize = 24;
/// Number of pairs in the table.
const MAX_PAIRS: usize = 12;

/// The section; empty if no two features can be correlated.
pub(super) fn section(correlations: &Correlations, links: &Links) -> Markup {
    let mut strongest: Vec<&Correlation> = correlations.pairs.iter().collect();
    strongest.sort_by(|a, b| {
        b.coefficient
            .abs()
            .total_cmp(&a.coefficient.abs())
            .then_with(|| (a.one, a.other).cmp(&(b.one, b.other)))
    });
    html! {
        @if !strongest.is_empty() {
            section id="correlations" {
                h2 { "Correlations" }
                p class="note" {
                    "Pearson's coefficient of features with one number in each record, from "
                    @if correlations.is_all { "all " } @else { "a sample of " }
                    (count(correlations.records)) " records."
                    @if correlations.features.len() > MAX_FEATURES || correlations.omitted > 0 {
                        " The matrix has the " (MAX_FEATURES) " features with the strongest correlations of "
                        (count(correlations.features.len() as u64)) " features"
                        @if correlations.omitted > 0 { "; " (count(correlations.omitted as u64)) " more were not compared" }
                        "."
                    }
                }
                div class="pair matrix" {
                    (matrix(correlations, &strongest))
                    table class="data" {
                        caption { "Strongest pairs" }
                        thead { tr { th scope="col" { "features" } th scope="col" { "coefficient" } th scope="col" { "records" } } }
                        tbody {
                            @for pair in strongest.iter().take(MAX_PAIRS) {
                                @let one = name(correlations, pair.one);
                                @let other = name(correlations, pair.other);
                                tr {
                                    th scope="row" {
                                        (links.to(one, false, &excerpt(one, NAME_CHARS)))
                                        " and "
                                        (links.to(other, false, &excerpt(other, NAME_CHARS)))
                                    }
                                    td { (format!("{:.3}", pair.coefficient)) }
                                    td { (count(pair.records)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The name of a feature.
fn name(correlations: &Correlations, index: usize) -> &str {
    correlations.features.get(index).map_or("", String::as_str)
}

/// The matrix of the features that the strongest pairs have, sorted by name.
fn matrix(correlations: &Correlations, strongest: &[&Correlation]) -> Markup {
    let mut chosen = BTreeSet::new();
    for pair in strongest {
        let added: BTreeSet<_> = [pair.one, pair.other]
            .into_iter()
            .filter(|index| !chosen.contains(index))
            .collect();
        if chosen.len() + added.len() <= MAX_FEATURES {
            chosen.extend(added);
        }
    }
    let chosen: Vec<usize> = chosen.into_iter().collect();
    let mut pairs = Vec::new();
    for pair in &correlations.pairs {
        if let Ok(one) = chosen.binary_search(&pair.one)
            && let Ok(other) = chosen.binary_search(&pair.other)
        {
            pairs.push(Correlation {
                one,
                other,
                ..*pair
            });
        }
    }
    let mut names = Vec::with_capacity(chosen.len());
    for index in &chosen {
        names.push(excerpt(name(correlations, *index), 40));
    }
    html! { @if chosen.len() > 2 { (chart::matrix(&names, &pairs)) } }
}
